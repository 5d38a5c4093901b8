//! Numbers all strings of one evaluation: the entries of each dictionary in turn, then the texts that are the same on all rows, then
//! those that the evaluation itself makes.
//!
//! Equal symbols are equal texts; equal texts may have several symbols. What an evaluation makes is kept once for each distinct text
//! and is bounded, by the text and in all.

use crate::dictionary::Dictionary;
use crate::expr::cell::{Bad, Cell};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::cell::{Cell as Slot, OnceCell, RefCell};
use std::hash::BuildHasher;

/// The longest text that an operation may make, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// How many bytes the distinct texts may have together that one evaluation makes.
pub const TEXTS_BYTES_MAX: usize = 64 << 20;

#[derive(Default)]
pub(super) struct Symbols<'a> {
    dictionaries: Vec<(u32, &'a Dictionary)>,
    texts: Vec<&'a str>,
    first_text: u32,
    first_made: u32,
    /// Not there before the first text is made.
    made: OnceCell<Box<MadeTexts>>,
}

impl<'a> Symbols<'a> {
    pub(super) fn add_dictionary(&mut self, dictionary: &'a Dictionary) -> u32 {
        let base = self.first_text;
        self.dictionaries.push((base, dictionary));
        self.first_text += dictionary.len() as u32;
        base
    }

    /// Says how many texts will be added. Call after all dictionaries were added.
    pub(super) fn expect_texts(&mut self, count: usize) {
        self.first_made = self.first_text + count as u32;
    }

    pub(super) fn add_text(&mut self, text: &'a str) -> u32 {
        self.texts.push(text);
        self.first_text + self.texts.len() as u32 - 1
    }

    /// The symbol of a text that an operation made; a text that is too long has none.
    pub(super) fn make(&self, text: &str) -> Cell {
        match self.made.get_or_init(Box::default).symbol(text) {
            Some(at) => Cell::Str(self.first_made + at),
            None => Cell::Bad(Bad::TooLong),
        }
    }

    /// Whether more texts were made than may be.
    pub(super) fn are_too_large(&self) -> bool {
        self.made.get().is_some_and(|made| made.bytes.get() > TEXTS_BYTES_MAX)
    }

    /// The dictionary whose symbols begin there.
    pub(super) fn dictionary(&self, base: u32) -> Option<&'a Dictionary> {
        self.dictionaries.iter().rev().find(|(known, _)| *known == base).map(|(_, dictionary)| *dictionary)
    }

    /// How many symbols there are so far.
    pub(super) fn len(&self) -> usize {
        self.first_made as usize + self.made.get().map_or(0, |made| made.len.get() as usize)
    }

    pub(super) fn get(&self, symbol: u32) -> &str {
        if symbol >= self.first_text {
            return match self.texts.get((symbol - self.first_text) as usize) {
                Some(text) => text,
                None => self.made.get().map_or("", |made| made.get(symbol - self.first_made)),
            };
        }
        let at = self.dictionaries.partition_point(|(base, _)| *base <= symbol) - 1;
        let (base, dictionary) = self.dictionaries[at];
        dictionary.get(symbol - base)
    }
}

/// How many texts the first segment holds; each further one holds twice as many as the one before.
const FIRST_SEGMENT: u32 = 64;
const SEGMENTS: usize = 26;

type TextSegment = Box<[OnceCell<Box<str>>]>;

/// Distinct texts that only ever become more, so that they can be read while others are added.
#[derive(Default)]
struct MadeTexts {
    segments: [OnceCell<TextSegment>; SEGMENTS],
    len: Slot<u32>,
    bytes: Slot<usize>,
    positions: RefCell<HashTable<u32>>,
    hasher: DefaultHashBuilder,
}

impl MadeTexts {
    fn symbol(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        let mut positions = self.positions.borrow_mut();
        if let Some(&known) = positions.find(hash, |&at| self.get(at) == text) {
            return Some(known);
        }
        // What is too large together is not kept, but counted, so that the evaluation ends.
        self.bytes.set(self.bytes.get().saturating_add(text.len()));
        if text.len() > TEXT_BYTES_MAX || self.bytes.get() > TEXTS_BYTES_MAX {
            if text.len() > TEXT_BYTES_MAX {
                self.bytes.set(self.bytes.get() - text.len());
            }
            return None;
        }
        let at = self.len.get();
        let (segment, offset) = place(at);
        let size = FIRST_SEGMENT << segment;
        let cells = self.segments.get(segment)?.get_or_init(|| (0..size).map(|_| OnceCell::new()).collect());
        // The position was free: positions are given once.
        let _ = cells[offset].set(text.into());
        self.len.set(at + 1);
        positions.insert_unique(hash, at, |&at| self.hasher.hash_one(self.get(at)));
        Some(at)
    }

    fn get(&self, at: u32) -> &str {
        let (segment, offset) = place(at);
        let text = self.segments.get(segment).and_then(|cells| cells.get()?.get(offset)?.get());
        text.map_or("", |text| text)
    }
}

/// The segment of a position, and where in it.
fn place(at: u32) -> (usize, usize) {
    let segment = (at / FIRST_SEGMENT + 1).ilog2();
    (segment as usize, (at - FIRST_SEGMENT * ((1 << segment) - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::DictionaryBuilder;

    #[test]
    fn symbols_are_dictionaries_then_texts_then_what_is_made() {
        let mut builder = DictionaryBuilder::default();
        ["a", "b"].iter().for_each(|text| {
            builder.code(text);
        });
        let dictionary = builder.finish();
        let mut symbols = Symbols::default();
        assert_eq!((symbols.add_dictionary(&dictionary), symbols.add_dictionary(&dictionary)), (0, 2));
        symbols.expect_texts(2);
        let text = symbols.add_text("text");
        let Cell::Str(made) = symbols.make("made") else { panic!("a short text has a symbol") };
        // A text may come after what was made.
        let late = symbols.add_text("late");
        for (symbol, text) in [(0, "a"), (3, "b"), (text, "text"), (made, "made"), (late, "late")] {
            assert_eq!(symbols.get(symbol), text);
        }
        assert_eq!(symbols.make("made"), Cell::Str(made), "a text is kept once");
        assert_eq!(symbols.len(), 7);
    }

    #[test]
    fn positions_fill_one_segment_after_the_other() {
        let made = MadeTexts::default();
        for at in 0..5000 {
            assert_eq!(made.symbol(&format!("text {at}")), Some(at));
        }
        assert!((0..5000).all(|at| made.get(at) == format!("text {at}")));
        assert_eq!([0, 63, 64, 191, 192].map(place), [(0, 0), (0, 63), (1, 0), (1, 127), (2, 0)]);
    }

    #[test]
    fn a_text_may_be_so_long_and_all_of_them_so_large() {
        let mut symbols = Symbols::default();
        symbols.expect_texts(0);
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        assert_eq!(symbols.make(&long), Cell::Bad(Bad::TooLong));
        assert!(!symbols.are_too_large(), "a text that is refused takes no room");
        for at in 0..64 {
            let text = format!("{at:04}{}", &long[5..]);
            assert!(matches!(symbols.make(&text), Cell::Str(_)), "{at}");
        }
        assert!(!symbols.are_too_large());
        assert_eq!(symbols.make("one more"), Cell::Bad(Bad::TooLong));
        assert!(symbols.are_too_large());
    }
}
