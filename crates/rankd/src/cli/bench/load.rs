//! What a bench asks for: how much, how fast and for whom, read from the command line before anything runs.

use crate::cli::command_error::{BadArgument, CommandError};
use crate::cli::condition::micros;
use rankd_edge::files;
use rankd_engine::clock::Instant;
use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

/// The largest file of requests.
const REQUESTS_BYTES_MAX: usize = 64 << 20;

/// How a plan or a server is put under load.
pub(crate) struct Load {
    pub(crate) ends: Ends,
    /// The same load before it, which counts for nothing.
    pub(crate) warmup: Option<Ends>,
    pub(crate) concurrency: u64,
    /// Requests a second, whatever became of those before.
    pub(crate) rate: Option<u64>,
    pub(crate) requests: Requests,
}

/// When enough requests were made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ends {
    Count(u64),
    Time(Duration),
}

impl Ends {
    /// `100` or `2s`.
    pub(crate) fn parse(text: &str) -> Result<Ends, BadArgument> {
        match text.parse() {
            Ok(0) => Err("at least one".into()),
            Ok(count) => Ok(Ends::Count(count)),
            Err(_) => duration(text).map(Ends::Time),
        }
    }

    /// A rate knows how many requests a time has.
    pub(crate) fn at_rate(self, rate: Option<u64>) -> Ends {
        match (self, rate) {
            (Ends::Time(time), Some(rate)) => Ends::Count(((time.as_secs_f64() * rate as f64).ceil() as u64).max(1)),
            (ends, _) => ends,
        }
    }

    /// Whether another request is to be started, after so many.
    pub(crate) fn go_on(self, started: u64, began: Instant, now: impl FnOnce() -> Instant) -> bool {
        match self {
            Ends::Count(count) => started < count,
            Ends::Time(time) => now().saturating_duration_since(began) < time,
        }
    }

    /// How far that is and how far it goes, for the line that shows it: in requests, or in milliseconds.
    pub(crate) fn progress(self, ended: u64, took: Duration) -> usize {
        match self {
            Ends::Count(_) => ended as usize,
            Ends::Time(time) => took.min(time).as_millis() as usize,
        }
    }

    pub(crate) fn whole(self) -> usize {
        match self {
            Ends::Count(count) => count as usize,
            Ends::Time(time) => (time.as_millis() as usize).max(1),
        }
    }

    pub(crate) fn shown(self) -> String {
        match self {
            Ends::Count(count) => format!("{count} requests"),
            Ends::Time(time) => format!("{} s", time.as_secs_f64()),
        }
    }
}

/// A time with its unit: `500us`, `20ms`, `1.5s`, `2m`.
pub(crate) fn duration(text: &str) -> Result<Duration, BadArgument> {
    micros(text)
        .filter(|micros| (1.0..=86_400_000_000.0).contains(micros))
        .map(|micros| Duration::from_secs_f64(micros / 1e6))
        .ok_or_else(|| "a time has a unit, such as 500ms, 10s or 2m, and is at most a day".into())
}

/// The user ids of `1..1000`, both ends included, or of one alone.
pub(crate) fn users(text: &str) -> Result<(u64, u64), BadArgument> {
    let wrong = || BadArgument::from("user ids are one number or two with .. between them, such as 1..1000");
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let id = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let (from, to) = (id(from)?, id(to.trim_start_matches('='))?);
    if from == 0 || to < from || to > i64::MAX as u64 { Err(wrong()) } else { Ok((from, to)) }
}

/// The requests that are made, over and over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Requests {
    /// As they were written, at least one.
    Listed(Vec<String>),
    /// One for each of these users, in turn.
    Users(u64, u64),
}

impl Requests {
    pub(crate) fn read(file: Option<&Path>, users: Option<(u64, u64)>) -> Result<Requests, CommandError> {
        let Some(path) = file else {
            let (from, to) = users.unwrap_or((1, 1));
            return Ok(Requests::Users(from, to));
        };
        let text = files::read_named_text(path, REQUESTS_BYTES_MAX).map_err(CommandError::with(path.display()))?;
        let texts: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
        if texts.is_empty() {
            return Err(CommandError::Wrong(format!("{}: there is no request in the file", path.display())));
        }
        Ok(Requests::Listed(texts))
    }

    /// How many there are before they come again.
    pub(crate) fn count(&self) -> u64 {
        match self {
            Requests::Listed(texts) => texts.len() as u64,
            Requests::Users(from, to) => to - from + 1,
        }
    }

    /// The `at`th request.
    pub(crate) fn text(&self, at: u64) -> Cow<'_, str> {
        match self {
            Requests::Listed(texts) => Cow::Borrowed(&texts[(at % texts.len() as u64) as usize]),
            Requests::Users(..) => format!("{{\"user_id\": {}}}", self.user(at).unwrap_or(1)).into(),
        }
    }

    /// The user of the `at`th request, where the requests differ in nothing else.
    pub(crate) fn user(&self, at: u64) -> Option<i64> {
        match self {
            Requests::Listed(_) => None,
            // The range was bounded when it was read.
            Requests::Users(from, to) => i64::try_from(from + at % (to - from + 1)).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_counts_or_times_with_a_unit() {
        assert_eq!(Ends::parse("100"), Ok(Ends::Count(100)));
        assert_eq!(Ends::parse("1.5s"), Ok(Ends::Time(Duration::from_millis(1500))));
        for wrong in ["", "0", "-1", "0s", "10 parsecs", "1.5", "s", "2d", "9999999m"] {
            assert!(Ends::parse(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(Ends::Time(Duration::from_millis(1500)).at_rate(Some(100)), Ends::Count(150));
    }

    #[test]
    fn users_come_in_turn() {
        assert_eq!(users("7"), Ok((7, 7)));
        let requests = users("3..5").map(|(from, to)| Requests::Users(from, to)).unwrap();
        assert_eq!([0, 1, 2, 3].map(|at| requests.user(at)), [Some(3), Some(4), Some(5), Some(3)]);
        assert_eq!(requests.text(1), "{\"user_id\": 4}");
        for wrong in ["", "0..3", "5..3", "a..b", "1..9999999999999999999", "1.3"] {
            assert!(users(wrong).is_err(), "{wrong:?}");
        }
    }
}
