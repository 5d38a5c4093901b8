//! What answers come to: how many were good, how late, and when all was well again.

use crate::faults::load::{Answer, UNANSWERED};
use std::time::Duration;

/// How late an answer may be after the deadline before it counts as late.
const SLACK: Duration = Duration::from_millis(20);
const WINDOW: Duration = Duration::from_millis(100);

/// Some of the answers of a load.
pub struct Tally<'a>(Vec<&'a Answer>);

impl<'a> Tally<'a> {
    pub fn of(answers: &'a [Answer]) -> Tally<'a> {
        Tally(answers.iter().collect())
    }

    pub fn step(answers: &'a [Answer], step: usize) -> Tally<'a> {
        Tally(answers.iter().filter(|answer| answer.step == step).collect())
    }

    /// Those that were due from one moment to another.
    pub fn between(answers: &'a [Answer], from: Duration, to: Duration) -> Tally<'a> {
        Tally(answers.iter().filter(|answer| (from..to).contains(&answer.due)).collect())
    }

    pub fn all(&self) -> usize {
        self.0.len()
    }

    pub fn with(&self, status: u16) -> usize {
        self.0.iter().filter(|answer| answer.status == status).count()
    }

    /// Answers with rows within this time.
    pub fn good(&self, within: Duration) -> usize {
        self.0.iter().filter(|answer| answer.status == 200 && answer.took <= within).count()
    }

    /// Answers, of whatever kind, that came too late.
    pub fn late(&self, deadline: Duration) -> usize {
        self.0.iter().filter(|answer| answer.took > deadline + SLACK).count()
    }

    pub fn wrong(&self) -> usize {
        self.0.iter().filter(|answer| answer.wrong).count()
    }

    pub fn unanswered(&self) -> usize {
        self.with(UNANSWERED)
    }

    /// Every status that is neither rows nor one of these, with how often it was given.
    pub fn others(&self, expected: &[u16]) -> Vec<(u16, usize)> {
        let mut statuses: Vec<u16> = self.0.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        statuses.dedup();
        statuses.retain(|status| *status != 200 && !expected.contains(status));
        statuses.into_iter().map(|status| (status, self.with(status))).collect()
    }

    /// A percentile of the answers with rows, in milliseconds.
    pub fn good_ms(&self, percent: f64) -> f64 {
        percentile(self.0.iter().filter(|answer| answer.status == 200).map(|answer| answer.took).collect(), percent)
    }

    /// A percentile of all answers, in milliseconds.
    pub fn ms(&self, percent: f64) -> f64 {
        percentile(self.0.iter().map(|answer| answer.took).collect(), percent)
    }
}

fn percentile(mut times: Vec<Duration>, percent: f64) -> f64 {
    times.sort_unstable();
    let at = ((times.len() as f64 * percent / 100.0).ceil() as usize).saturating_sub(1);
    times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

/// How long after a moment the first window of 100 ms begins in which every request got rows, 99 of 100 within this time.
/// `None` if there was none.
pub fn normal_after(answers: &[Answer], from: Duration, to: Duration, within_ms: f64) -> Option<Duration> {
    let mut start = from;
    while start + WINDOW <= to {
        let window = Tally::between(answers, start, start + WINDOW);
        if window.all() > 0 && window.with(200) == window.all() && window.good_ms(99.0) <= within_ms {
            return Some(start - from);
        }
        start += WINDOW;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_whole_window_is_when_all_is_well_again() {
        let answer = |due_ms: u64, status| Answer {
            due: Duration::from_millis(due_ms),
            took: Duration::from_millis(2),
            status,
            wrong: false,
            step: 0,
        };
        let answers = [answer(10, 200), answer(110, 200), answer(150, 503), answer(210, 200), answer(250, 200)];
        let after =
            |from, within| normal_after(&answers, Duration::from_millis(from), Duration::from_millis(300), within);
        assert_eq!(after(0, 5.0), Some(Duration::ZERO));
        assert_eq!(after(100, 5.0), Some(Duration::from_millis(100)));
        assert_eq!(after(100, 1.0), None);
    }
}
