//! Readers in turn, round after round; each round's rate, and the CPU time of both sides.

use crate::redis::Reader;
use crate::redis::server::{Server, cpu_seconds};
use std::time::Instant;

/// One round of one reader.
#[derive(Clone, Copy, Default)]
pub struct Round {
    pub requests_per_second: f64,
    /// Microseconds of CPU a request: ours, and the server's.
    pub client_us: f64,
    pub server_us: f64,
}

/// Min and median of each figure; for the rate, max and median.
#[derive(Clone, Copy)]
pub struct Figures {
    pub best: Round,
    pub median: Round,
}

/// Runs all readers alternately and gives their figures in order.
pub fn race(
    server: &Server,
    readers: &mut [(&str, &mut dyn Reader)],
    users: &[i64],
    in_flight: usize,
    rounds: usize,
) -> Vec<Figures> {
    let mut all: Vec<Vec<Round>> = vec![Vec::new(); readers.len()];
    for round in 0..=rounds {
        for ((_, reader), figures) in readers.iter_mut().zip(&mut all) {
            let before = (cpu_seconds(std::process::id()), cpu_seconds(server.child.id()));
            let began = Instant::now();
            reader.read(users, in_flight);
            let took = began.elapsed().as_secs_f64();
            let after = (cpu_seconds(std::process::id()), cpu_seconds(server.child.id()));
            // The first round warms up.
            if round > 0 {
                let each = 1e6 / users.len() as f64;
                figures.push(Round {
                    requests_per_second: users.len() as f64 / took,
                    client_us: (after.0 - before.0) * each,
                    server_us: (after.1 - before.1) * each,
                });
            }
        }
    }
    all.iter().map(|rounds| figures(rounds)).collect()
}

fn figures(rounds: &[Round]) -> Figures {
    let sorted = |figure: fn(&Round) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(figure).collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    };
    let [rate, client, server] =
        [sorted(|round| round.requests_per_second), sorted(|round| round.client_us), sorted(|round| round.server_us)];
    let middle = rounds.len() / 2;
    let of = |at: usize, rate_at: usize| Round {
        requests_per_second: rate[rate_at],
        client_us: client[at],
        server_us: server[at],
    };
    Figures { best: of(0, rounds.len() - 1), median: of(middle, middle) }
}
