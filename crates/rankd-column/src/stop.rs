//! How work over many rows learns that nobody waits for it any more.
//!
//! A kernel takes a [`Stop`], looks at it every [`ROWS_A_LOOK`] rows or so, and gives up with [`Stopped`]. What it has made until then
//! is dropped. Nothing here reads a clock: whoever sets a time limit says how to ask whether it has passed.

use crate::rowset::Rows;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How many rows, or things that take about as long, are worked on between two looks.
pub const ROWS_A_LOOK: usize = 4096;

/// Nobody waits for the result any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl std::error::Error for Stopped {}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the caller asked to stop")
    }
}

/// When to stop: a flag that others set once, a time limit, both or neither. The default never stops.
#[derive(Clone, Copy, Default)]
pub struct Stop<'a> {
    flag: Option<&'a AtomicBool>,
    limit: Option<TimeLimit>,
}

/// A moment, and how to ask whether it has passed. For work on the thread that would otherwise watch the time.
#[derive(Clone, Copy)]
pub struct TimeLimit {
    pub at: Instant,
    pub has_passed: fn(Instant) -> bool,
}

impl<'a> Stop<'a> {
    /// Stops once the flag is set.
    pub fn when(flag: &'a AtomicBool) -> Stop<'a> {
        Stop { flag: Some(flag), limit: None }
    }

    /// Stops at this moment, too, where there is one.
    pub fn or_at(self, limit: Option<TimeLimit>) -> Stop<'a> {
        Stop { limit, ..self }
    }

    #[inline(always)]
    pub fn check(self) -> Result<(), Stopped> {
        if self.is_set() { Err(Stopped) } else { Ok(()) }
    }

    #[inline(always)]
    pub fn is_set(self) -> bool {
        self.is_flagged() || self.limit.is_some_and(is_over)
    }

    /// Whether the flag is set. Costs so little that it can be asked for each text or list; the clock is left to the next look.
    #[inline(always)]
    pub(crate) fn is_flagged(self) -> bool {
        self.flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// The rows in chunks, with a look before each.
    #[inline]
    pub fn chunks<'r>(self, rows: Rows<'r>) -> impl Iterator<Item = Result<Rows<'r>, Stopped>> {
        let part = move |start: usize| rows.slice(start, ROWS_A_LOOK.min(rows.len() - start));
        self.starts(rows.len()).map(move |start| start.map(part))
    }

    /// The items in chunks, with a look before each.
    #[inline]
    pub fn slices<T>(self, items: &[T]) -> impl Iterator<Item = Result<&[T], Stopped>> {
        items.chunks(ROWS_A_LOOK).map(move |chunk| self.check().map(|()| chunk))
    }

    /// Where chunks of so many rows begin, with a look before each.
    #[inline]
    pub fn starts(self, rows: usize) -> impl Iterator<Item = Result<usize, Stopped>> {
        (0..rows).step_by(ROWS_A_LOOK).map(move |start| self.check().map(|()| start))
    }

    /// For loops that are not over rows or slices.
    pub fn looks(self) -> Looks<'a> {
        Looks { stop: self, left: 0 }
    }
}

#[cold]
#[inline(never)]
fn is_over(limit: TimeLimit) -> bool {
    (limit.has_passed)(limit.at)
}

/// For work that picks rows one by one: when to give up, and when to hand over the picks that there are.
#[derive(Clone, Copy, Default)]
pub struct Picking<'a> {
    pub stop: Stop<'a>,
    pub until: Stop<'a>,
    /// Hands over after so many picks in any case.
    pub picks_max: Option<usize>,
}

impl Picking<'_> {
    /// Whether there is time for another pick after this many.
    #[inline(always)]
    pub fn goes_on(self, picked: usize) -> Result<bool, Stopped> {
        self.stop.check().map(|()| !self.until.is_set() && self.picks_max.is_none_or(|most| picked < most))
    }
}

/// Counts what a loop does and looks now and then: before the first, and again after [`ROWS_A_LOOK`].
pub struct Looks<'a> {
    stop: Stop<'a>,
    left: usize,
}

impl Looks<'_> {
    /// Before the next thing, which takes about as long as so many rows.
    #[inline]
    pub fn before(&mut self, rows: usize) -> Result<(), Stopped> {
        if self.left < rows {
            self.stop.check()?;
            self.left = ROWS_A_LOOK;
        }
        self.left = self.left.saturating_sub(rows);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static ASKED: Cell<usize> = const { Cell::new(0) };
    }

    fn asked(_: Instant) -> bool {
        ASKED.set(ASKED.get() + 1);
        false
    }

    #[expect(clippy::disallowed_methods, reason = "some moment: nobody compares it")]
    fn counting() -> Stop<'static> {
        ASKED.set(0);
        Stop::default().or_at(Some(TimeLimit { at: Instant::now(), has_passed: asked }))
    }

    #[test]
    fn every_chunk_is_looked_at_once_and_no_row_is_left_out() {
        for len in [0, 1, ROWS_A_LOOK, ROWS_A_LOOK + 1, 3 * ROWS_A_LOOK] {
            let looks = len.div_ceil(ROWS_A_LOOK);
            let rows: usize = counting().chunks(Rows::Range { start: 7, len }).map(|chunk| chunk.unwrap().len()).sum();
            assert_eq!((rows, ASKED.get()), (len, looks));
            let items = vec![(); len];
            let items: usize = counting().slices(&items).map(|chunk| chunk.unwrap().len()).sum();
            assert_eq!((items, ASKED.get()), (len, looks));
            let mut looking = counting().looks();
            (0..len).for_each(|_| looking.before(1).unwrap());
            assert_eq!(ASKED.get(), looks);
        }
    }

    #[test]
    fn what_takes_longer_is_looked_at_more_often() {
        let mut looking = counting().looks();
        (0..8).for_each(|_| looking.before(ROWS_A_LOOK / 2).unwrap());
        assert_eq!(ASKED.get(), 4);
        let mut looking = counting().looks();
        (0..8).for_each(|_| looking.before(2 * ROWS_A_LOOK).unwrap());
        assert_eq!(ASKED.get(), 8);
    }

    #[test]
    fn a_flag_or_a_moment_stops() {
        let flag = AtomicBool::new(true);
        assert!(Stop::default().check().is_ok());
        assert!(Stop::when(&AtomicBool::new(false)).check().is_ok());
        assert_eq!(Stop::when(&flag).check(), Err(Stopped));
        #[expect(clippy::disallowed_methods, reason = "some moment: nobody compares it")]
        let over = TimeLimit { at: Instant::now(), has_passed: |_| true };
        assert_eq!(Stop::when(&AtomicBool::new(false)).or_at(Some(over)).check(), Err(Stopped));
        assert_eq!(Stop::when(&flag).looks().before(1), Err(Stopped));
        let (never, at_once) = (Stop::default(), Stop::default().or_at(Some(over)));
        assert_eq!(Picking::default().goes_on(0), Ok(true));
        assert_eq!(Picking { stop: never, until: at_once, picks_max: None }.goes_on(0), Ok(false));
        assert_eq!(Picking { stop: at_once, until: at_once, picks_max: None }.goes_on(0), Err(Stopped));
        let two = Picking { picks_max: Some(2), ..Picking::default() };
        assert_eq!([0, 1, 2, 3].map(|picked| two.goes_on(picked)), [Ok(true), Ok(true), Ok(false), Ok(false)]);
        assert_eq!(
            Stop::when(&flag).chunks(Rows::Range { start: 0, len: 1 }).next().map(|chunk| chunk.is_err()),
            Some(true)
        );
    }
}
