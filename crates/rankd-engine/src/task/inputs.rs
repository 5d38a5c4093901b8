//! The rows that a computation works on.

use rankd_column::RowSet;
use rankd_plan::limits;
use rankd_plan::plan::NodeIx;
use std::ops::Index;

/// The rows that a computation works on, where they lie: nothing is copied to look at them.
pub struct InputRows<'a> {
    slots: &'a mut [Option<RowSet>],
    /// Where each input lies.
    of: &'a [NodeIx],
    /// A bit for each input that nobody else will look at.
    last: u64,
}

/// Where inputs lie that lie side by side.
static SIDE_BY_SIDE: [NodeIx; limits::INPUTS_MAX] = {
    let mut all = [0; limits::INPUTS_MAX];
    let mut at = 0;
    while at < all.len() {
        all[at] = at as NodeIx;
        at += 1;
    }
    all
};

static FIRST: [NodeIx; limits::INPUTS_MAX] = [0; limits::INPUTS_MAX];

impl<'a> InputRows<'a> {
    #[inline]
    pub(crate) fn new(slots: &'a mut [Option<RowSet>], of: &'a [NodeIx], last: u64) -> InputRows<'a> {
        InputRows { slots, of, last }
    }

    /// Inputs that are this reader's alone. The checks allow no more than there are places.
    pub(crate) fn owned(slots: &'a mut [Option<RowSet>]) -> InputRows<'a> {
        let of = &SIDE_BY_SIDE[..slots.len().min(SIDE_BY_SIDE.len())];
        InputRows { slots, of, last: u64::MAX }
    }

    /// The rows in the first slot, as so many inputs.
    pub(crate) fn same(slots: &'a mut [Option<RowSet>], count: usize) -> InputRows<'a> {
        InputRows { slots, of: &FIRST[..count.min(FIRST.len())], last: u64::from(count == 1) }
    }

    pub fn iter(&self) -> impl Iterator<Item = &RowSet> {
        self.of.iter().filter_map(|at| self.slots[*at as usize].as_ref())
    }

    /// Gives an input away: moved when nobody else looks at it, else shared. It must not be looked at again.
    #[inline]
    pub fn take(&mut self, at: usize) -> RowSet {
        match self.last & (1 << at) {
            0 => self[at].clone(),
            _ => self.slots[self.of[at] as usize].take().unwrap_or_else(|| not_there(at)),
        }
    }
}

impl Index<usize> for InputRows<'_> {
    type Output = RowSet;

    #[inline]
    fn index(&self, at: usize) -> &RowSet {
        self.slots[self.of[at] as usize].as_ref().unwrap_or_else(|| not_there(at))
    }
}

#[cold]
#[expect(
    clippy::panic,
    reason = "a task that reads what it gave away, or has no such input, is caught by its first test"
)]
fn not_there(at: usize) -> ! {
    panic!("the rows of input {at} were read when they were not there")
}
