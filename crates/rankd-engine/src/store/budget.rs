//! How much may be asked again: a share of what was asked, so that retries cannot multiply the load.

use std::cell::Cell;

/// What may be saved up, in hundredths of a command: enough for a full pipeline that a connection lost.
const SAVED_MAX: u64 = 100 * 1_000;

/// Counts in hundredths of a command, so that a percentage is a whole number.
pub(super) struct Budget {
    percent: u64,
    saved: Cell<u64>,
}

impl Budget {
    /// Starts empty: what is asked again is never more than this share of what was asked before it.
    pub(super) fn new(percent: u32) -> Budget {
        Budget { percent: percent.into(), saved: Cell::new(0) }
    }

    pub(super) fn count_first_tries(&self, commands: usize) {
        self.saved.set((self.saved.get() + self.percent * commands as u64).min(SAVED_MAX));
    }

    /// Whether this number of commands may be asked again.
    pub(super) fn has_room(&self, commands: usize) -> bool {
        self.saved.get() >= 100 * commands as u64
    }

    /// The same; if they may, the budget is charged for them.
    pub(super) fn take(&self, commands: usize) -> bool {
        let left = self.saved.get().checked_sub(100 * commands as u64);
        left.map(|left| self.saved.set(left)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_stay_within_their_share() {
        let budget = Budget::new(20);
        assert!(!budget.take(1));
        let mut again = 0;
        for asked in 1..=1000u32 {
            budget.count_first_tries(1);
            again += u32::from(budget.take(1));
            assert!(again * 5 <= asked, "{again} of {asked}");
        }
        assert_eq!(again, 200);
        assert!(!Budget::new(0).take(1));
    }

    #[test]
    fn what_is_saved_up_has_an_end() {
        let budget = Budget::new(100);
        budget.count_first_tries(1_000_000);
        assert!(!budget.take(1_001));
        assert!(budget.take(1_000) && !budget.take(1));
    }
}
