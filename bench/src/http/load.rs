//! The load: `wrk`, one thread, connections kept alive, one request after the other on each; and what the server used for it.

use crate::http::server::Server;
use crate::http::shape::BODY;
use std::path::PathBuf;
use std::process::Command;

pub const CONNECTIONS: usize = 32;
/// Who asks: one user in all requests, or another one each time.
#[derive(Clone, Copy)]
pub enum Users {
    One,
    Many(i64),
}
const SECONDS: u32 = 2;

#[derive(Clone, Copy)]
pub struct Round {
    pub a_second: f64,
    /// Server CPU microseconds a request.
    pub cpu: f64,
    /// Milliseconds; infinite where wrk did not tell.
    pub p99: f64,
}

/// The best and the median of rounds.
pub struct Rounds {
    pub best: Round,
    pub median: Round,
}

/// One round of load.
pub fn round(server: &Server, plan: &str, users: Users, connections: usize) -> Round {
    let before = server.cpu_seconds();
    let wrk = Command::new("wrk")
        .args(["-t1", &format!("-c{connections}"), &format!("-d{SECONDS}s"), "--latency", "-s"])
        .arg(script(users))
        .arg(format!("http://{}/rank/{plan}", server.address))
        .output()
        .expect("wrk is installed");
    let cpu = server.cpu_seconds() - before;
    let text = String::from_utf8_lossy(&wrk.stdout);
    assert!(wrk.status.success() && !text.contains("Socket errors"), "{text}");
    let after = |name: &str| text.split_once(name).map(|(_, rest)| rest.trim_start());
    let number = |text: &str| text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    let a_second = after("Requests/sec:").and_then(number).expect("wrk tells a rate");
    let requests = text.split_once(" requests in").and_then(|(start, _)| start.split_whitespace().next_back());
    let requests = requests.and_then(number).expect("wrk tells how many");
    // A machine that has other things to do holds the server up now and then, and then it refuses a few.
    let refused = after("Non-2xx or 3xx responses:").and_then(number).unwrap_or(0.0);
    assert!(refused * 100.0 < requests, "{text}");
    let p99 = after("99%").and_then(|rest| rest.split_whitespace().next()).map_or(f64::INFINITY, milliseconds);
    Round { a_second, cpu: cpu * 1e6 / requests, p99 }
}

/// Rounds of each server and plan in turn.
pub fn race(contenders: &[(&Server, &str)], users: Users, count: usize) -> Vec<Rounds> {
    let mut rounds = vec![Vec::with_capacity(count); contenders.len()];
    for _ in 0..count {
        for (at, (server, plan)) in contenders.iter().enumerate() {
            rounds[at].push(round(server, plan, users, CONNECTIONS));
        }
    }
    rounds.iter().map(|rounds| Rounds::of(rounds)).collect()
}

impl Rounds {
    pub fn of(rounds: &[Round]) -> Rounds {
        Rounds { best: quantile(rounds, 0), median: quantile(rounds, rounds.len() / 2) }
    }
}

/// The values at one place of their own order, best first.
fn quantile(rounds: &[Round], at: usize) -> Round {
    let sorted = |value: fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values[at]
    };
    Round { a_second: -sorted(|round| -round.a_second), cpu: sorted(|round| round.cpu), p99: sorted(|round| round.p99) }
}

fn milliseconds(text: &str) -> f64 {
    let (factor, digits) = match text {
        _ if text.ends_with("us") => (1e-3, text.trim_end_matches("us")),
        _ if text.ends_with("ms") => (1.0, text.trim_end_matches("ms")),
        _ => (1e3, text.trim_end_matches('s')),
    };
    digits.parse().map_or(f64::INFINITY, |value: f64| value * factor)
}

/// What wrk sends, in the language that it is told in.
fn script(users: Users) -> PathBuf {
    let path = std::env::temp_dir().join(format!("rankd-bench-{}.lua", std::process::id()));
    let start = "wrk.method = \"POST\"\nwrk.headers[\"content-type\"] = \"application/json\"\n";
    let text = match users {
        Users::One => format!("{start}wrk.body = '{BODY}'\n"),
        Users::Many(count) => format!(
            "{start}request = function()\n  return wrk.format(nil, nil, nil, '{{\"user_id\":' .. math.random({count}) .. '}}')\nend\n"
        ),
    };
    std::fs::write(&path, text).expect("a script can be written");
    path
}
