//! Whether a new version of a plan is worse than the one before, decided from counts alone: no clock, no plan, no state.
//!
//! The share of bad answers of the new version is compared with that of the version before by a two-proportion test. It is looked at again and
//! again while answers come in, so the test has to be strict: the simulation below shows how often it is wrong, and how soon it is right.

use std::fmt;
use std::time::Duration;

/// How long after its first answer a new version may be rolled back.
pub(crate) const WATCHED: Duration = Duration::from_secs(60);
/// With fewer answers, of the new version or of the one before, nothing is decided.
const ANSWERS_MIN: u64 = 200;
const BAD_MIN: u64 = 20;
/// How much larger the share of bad answers has to be.
const RISE_MIN: f64 = 0.05;
/// By how many standard errors.
const Z_MIN: f64 = 4.0;

/// Answers of a version, and how many of them were bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    pub(crate) all: u64,
    pub(crate) bad: u64,
}

impl Answers {
    pub(crate) fn share(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.bad as f64 / self.all as f64 }
    }

    /// What has come since.
    pub(crate) fn since(self, earlier: Answers) -> Answers {
        Answers { all: self.all.saturating_sub(earlier.all), bad: self.bad.saturating_sub(earlier.bad) }
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} answers bad ({:.1} %)", self.bad, self.all, self.share() * 100.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing can be said yet.
    Open,
    /// The new version is worse: back to the one before.
    RollBack,
    /// It was watched for long enough and is not worse.
    Good,
    /// Time is up, and the new version had too few answers.
    TooFew,
    /// Time is up, and the version before had too few answers to compare with.
    TooFewBefore,
}

/// Decides about a new version by its answers, those of the version before, and the time since its first answer.
pub(crate) fn decide(new: Answers, before: Answers, since_first: Duration) -> Verdict {
    let has_enough = new.all >= ANSWERS_MIN && before.all >= ANSWERS_MIN;
    if since_first <= WATCHED && has_enough && is_worse(new, before) {
        return Verdict::RollBack;
    }
    match since_first >= WATCHED {
        false => Verdict::Open,
        true if new.all < ANSWERS_MIN => Verdict::TooFew,
        true if before.all < ANSWERS_MIN => Verdict::TooFewBefore,
        true => Verdict::Good,
    }
}

/// A two-proportion test on the arcsine scale, where the spread of a share does not depend on the share: with the plain difference of small shares,
/// chance alone passes for a rise ten times too often.
#[expect(clippy::disallowed_methods, reason = "no number of an answer: it is only compared with a threshold")]
fn is_worse(new: Answers, before: Answers) -> bool {
    if new.bad < BAD_MIN || new.share() - before.share() < RISE_MIN {
        return false;
    }
    let angle = |answers: Answers| 2.0 * answers.share().sqrt().asin();
    let error = (1.0 / new.all as f64 + 1.0 / before.all as f64).sqrt();
    angle(new) - angle(before) > Z_MIN * error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lead_to_verdicts() {
        let of = |(bad, all)| Answers { all, bad };
        for (new, before, seconds, expected) in [
            // Clearly worse.
            ((200, 200), (0, 10_000), 1, Verdict::RollBack),
            ((20, 200), (0, 10_000), 1, Verdict::RollBack),
            ((600, 1000), (500, 10_000), 59, Verdict::RollBack),
            ((200, 200), (0, 200), 60, Verdict::RollBack),
            // Not enough answers, or not enough bad ones.
            ((199, 199), (0, 10_000), 1, Verdict::Open),
            ((19, 200), (0, 10_000), 1, Verdict::Open),
            ((200, 200), (0, 199), 1, Verdict::Open),
            // Four points are not five; five are, if there are enough of them.
            ((400, 10_000), (0, 10_000), 30, Verdict::Open),
            ((500, 10_000), (0, 10_000), 30, Verdict::RollBack),
            // Ten points that may be chance: z is 2.6, then 4.2.
            ((120, 200), (500, 1000), 5, Verdict::Open),
            ((520, 870), (500, 1000), 5, Verdict::RollBack),
            // As bad as before, better than before.
            ((500, 1000), (5000, 10_000), 5, Verdict::Open),
            ((0, 1000), (5000, 10_000), 5, Verdict::Open),
            ((1000, 1000), (1000, 1000), 5, Verdict::Open),
            // Time is up.
            ((0, 1000), (0, 10_000), 60, Verdict::Good),
            ((500, 1000), (0, 10_000), 61, Verdict::Good),
            ((100, 199), (0, 10_000), 60, Verdict::TooFew),
            ((0, 0), (0, 0), 60, Verdict::TooFew),
            ((1000, 1000), (0, 0), 60, Verdict::TooFewBefore),
        ] {
            let verdict = decide(of(new), of(before), Duration::from_secs(seconds));
            assert_eq!(verdict, expected, "{new:?} after {before:?}, {seconds} s");
        }
    }

    /// Random numbers from a seed (SplitMix64).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn answers(&mut self, count: u64, share: f64) -> Answers {
            Answers { all: count, bad: (0..count).filter(|_| self.next() < share).count() as u64 }
        }
    }

    /// A new version, looked at four times a second. Gives the verdict, and when it was there.
    fn watch(random: &mut Random, rate: u64, share_before: f64, share: f64) -> (Verdict, Duration) {
        let before = random.answers(rate * 60, share_before);
        let mut new = Answers::default();
        for look in 1.. {
            let more = random.answers(rate / 4, share);
            new = Answers { all: new.all + more.all, bad: new.bad + more.bad };
            let since_first = Duration::from_millis(look * 250);
            match decide(new, before, since_first) {
                Verdict::Open => {}
                verdict => return (verdict, since_first),
            }
        }
        unreachable!("time is up at some point")
    }

    #[test]
    fn versions_that_are_alike_are_left_alone() {
        let mut random = Random(33);
        for (share, rate) in [(0.0, 40), (0.001, 40), (0.01, 40), (0.02, 100), (0.05, 40), (0.1, 40), (0.3, 40)] {
            let runs = 10_000;
            let wrong = (0..runs).filter(|_| watch(&mut random, rate, share, share).0 == Verdict::RollBack).count();
            println!("share {share}, {rate} answers a second: {wrong} of {runs} rolled back");
            assert!(wrong <= if share <= 0.05 { 1 } else { 10 }, "{wrong} of {runs} at {share}");
        }
    }

    #[test]
    fn a_bad_version_is_recognised_within_seconds() {
        let mut random = Random(34);
        for (before, share, rate, seconds) in [
            (0.0, 1.0, 200, 1.25),
            (0.01, 0.5, 200, 1.5),
            (0.01, 0.2, 40, 8.0),
            (0.1, 0.3, 100, 8.0),
            (0.3, 0.5, 40, 60.0),
        ] {
            let runs = 1000;
            let mut times: Vec<f64> = Vec::new();
            for _ in 0..runs {
                let (verdict, after) = watch(&mut random, rate, before, share);
                assert_eq!(verdict, Verdict::RollBack, "{before} to {share}");
                times.push(after.as_secs_f64());
            }
            times.sort_by(f64::total_cmp);
            let (median, last) = (times[runs / 2], times[runs - 1]);
            println!("{before} to {share}, {rate} a second: median {median} s, last {last} s");
            assert!(last <= seconds, "{before} to {share}: {last} s");
        }
    }
}
