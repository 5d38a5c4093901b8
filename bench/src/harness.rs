//! Times contenders against each other: alternating rounds in one process, each round long enough for the clock.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long a round of one contender lasts, at least one call.
const ROUND: Duration = Duration::from_millis(25);
const ROUNDS: usize = 15;

/// Something that can be called again and again, and asked for its answer.
pub trait Contender {
    fn call(&mut self);
    /// The ids in its answer; `None` where it does only a part of the pipeline.
    fn ids(&mut self) -> Option<Vec<i64>>;
}

struct Pipeline<F, G>(F, G);

impl<R, F: FnMut() -> R, G: Fn(R) -> Vec<i64>> Contender for Pipeline<F, G> {
    fn call(&mut self) {
        black_box((self.0)());
    }

    fn ids(&mut self) -> Option<Vec<i64>> {
        Some((self.1)((self.0)()))
    }
}

struct Part<F>(F);

impl<R, F: FnMut() -> R> Contender for Part<F> {
    fn call(&mut self) {
        black_box((self.0)());
    }

    fn ids(&mut self) -> Option<Vec<i64>> {
        None
    }
}

/// The whole pipeline; `ids` reads the answer and is not timed.
pub fn pipeline<'a, R>(run: impl FnMut() -> R + 'a, ids: impl Fn(R) -> Vec<i64> + 'a) -> Box<dyn Contender + 'a> {
    Box::new(Pipeline(run, ids))
}

/// A part of it.
pub fn part<'a, R>(run: impl FnMut() -> R + 'a) -> Box<dyn Contender + 'a> {
    Box::new(Part(run))
}

/// Microseconds a call.
#[derive(Clone, Copy)]
pub struct Time {
    pub min: f64,
    pub median: f64,
}

/// Times all contenders, round after round in turn.
pub fn race(contenders: &mut [(&'static str, Box<dyn Contender + '_>)]) -> Vec<(&'static str, Time)> {
    let calls: Vec<u32> = contenders.iter_mut().map(|(_, contender)| calibrate(&mut **contender)).collect();
    let mut rounds = vec![Vec::with_capacity(ROUNDS); contenders.len()];
    for _ in 0..ROUNDS {
        for (at, (_, contender)) in contenders.iter_mut().enumerate() {
            rounds[at].push(clock(&mut **contender, calls[at]).as_secs_f64() * 1e6 / f64::from(calls[at]));
        }
    }
    contenders
        .iter()
        .zip(rounds)
        .map(|((name, _), mut times)| {
            times.sort_unstable_by(f64::total_cmp);
            (*name, Time { min: times[0], median: times[ROUNDS / 2] })
        })
        .collect()
}

/// How many calls fill a round; warms up on the way.
fn calibrate(contender: &mut dyn Contender) -> u32 {
    let mut calls = 1;
    loop {
        let took = clock(contender, calls);
        if took >= ROUND / 4 {
            return (f64::from(calls) * ROUND.as_secs_f64() / took.as_secs_f64()).ceil() as u32;
        }
        calls *= 2;
    }
}

fn clock(contender: &mut dyn Contender, calls: u32) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "a bench is about the clock")]
    let start = Instant::now();
    for _ in 0..calls {
        contender.call();
    }
    start.elapsed()
}
