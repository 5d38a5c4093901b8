//! The buffers that evaluations work in, kept from run to run.

use crate::expr::arrays::{ListRef, VectorRef};
use crate::expr::calls::TextMemo;
use crate::expr::frame::Frame;
use crate::expr::vector::Register;

/// Buffers kept from run to run. One for each thread that evaluates.
#[derive(Default)]
pub struct Scratch {
    pub(super) ints: Vec<Register<i64>>,
    pub(super) floats: Vec<Register<f64>>,
    pub(super) bools: Vec<Register<bool>>,
    pub(super) symbols: Vec<Register<u32>>,
    pub(super) lists: Vec<Register<ListRef>>,
    pub(super) vectors: Vec<Register<VectorRef>>,
    pub(super) masks: Vec<Vec<bool>>,
    pub(super) loaded: Vec<Loaded>,
    /// By string test: what is known of each symbol.
    pub(super) memos: Vec<Vec<Known>>,
    /// By function of texts: what it gives for each symbol.
    pub(super) texts: Vec<TextMemo>,
    /// By string test: the symbols of the texts that it asks for, where they were looked up.
    pub(super) wanted: Vec<Wanted>,
    /// Rows that a filter kept and the next one looks at.
    pub(super) kept: [Vec<u32>; 2],
    pub(super) rows_out: Vec<usize>,
    pub(super) times: PartTimes,
}

/// What each part of a pass takes, where somebody wants to know.
#[derive(Default)]
pub(super) struct PartTimes {
    clock: Option<fn() -> u64>,
    seen: u64,
    pub(super) nanos: Vec<u64>,
}

impl PartTimes {
    /// A pass with so many parts begins.
    pub(super) fn start(&mut self, parts: usize) {
        self.nanos.clear();
        if let Some(clock) = self.clock {
            self.nanos.resize(parts, 0);
            self.seen = clock();
        }
    }

    /// What has passed since the last call was for this part.
    pub(super) fn spent_on(&mut self, part: usize) {
        if let Some(clock) = self.clock {
            let now = clock();
            self.nanos[part] += now.saturating_sub(self.seen);
            self.seen = now;
        }
    }
}

/// The cells of a column slot at the rows of the chunk, where they do not lie side by side in the column, or are not what registers hold.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) ints: Register<i64>,
    pub(super) floats: Register<f64>,
    pub(super) bools: Register<bool>,
    pub(super) symbols: Register<u32>,
    pub(super) lists: Register<ListRef>,
    pub(super) vectors: Register<VectorRef>,
}

/// The symbols of some texts, as far as the dictionary has them.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) looked_up: bool,
    pub(super) symbols: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Known {
    Nothing,
    Holds(bool),
}

impl Scratch {
    /// How many rows each part of the last pass gave; where one failed, those before it.
    pub fn rows_out(&self) -> &[usize] {
        &self.rows_out
    }

    /// How long each part of the last pass took, in nanoseconds; nothing where that was not asked for.
    pub fn part_nanos(&self) -> &[u64] {
        &self.times.nanos
    }

    /// From now on the parts of a pass are timed by this clock of nanoseconds, or not at all.
    pub fn time_parts(&mut self, clock: Option<fn() -> u64>) {
        self.times.clock = clock;
    }

    /// Makes room for a program over an evaluation.
    pub(super) fn prepare(&mut self, frame: &Frame<'_>) {
        fn at_least<T: Default>(list: &mut Vec<T>, len: usize) {
            if list.len() < len {
                list.resize_with(len, T::default);
            }
        }
        let (program, needs) = (frame.program, frame.program.registers);
        at_least(&mut self.ints, needs.ints as usize);
        at_least(&mut self.floats, needs.floats as usize);
        at_least(&mut self.bools, needs.bools as usize);
        at_least(&mut self.symbols, needs.symbols as usize);
        at_least(&mut self.lists, needs.lists as usize);
        at_least(&mut self.vectors, needs.vectors as usize);
        at_least(&mut self.masks, needs.masks as usize);
        at_least(&mut self.loaded, program.columns.len());
        let (first, after) = (frame.first_memo, frame.first_memo.after(program.memos));
        at_least(&mut self.texts, after.texts as usize);
        for memo in &mut self.texts[first.texts as usize..after.texts as usize] {
            memo.clear(frame.symbols.len(), frame.rows);
        }
        let (first, after) = (first.tests as usize, after.tests as usize);
        at_least(&mut self.memos, after);
        at_least(&mut self.wanted, after);
        self.wanted[first..after].iter_mut().for_each(|wanted| {
            wanted.looked_up = false;
            wanted.symbols.clear();
        });
        for memo in &mut self.memos[first..after] {
            memo.clear();
            memo.resize(frame.symbols.len(), Known::Nothing);
        }
    }
}
