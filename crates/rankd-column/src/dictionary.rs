//! The distinct strings of a column, numbered in the order of their first appearance.
//!
//! Invariants: entries are distinct; a code is an entry's position; codes never change once given.

use crate::stop::{Stop, Stopped};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// An ordered set of strings. Cells hold codes into it.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    text: String,
    ends: Vec<usize>,
}

impl Dictionary {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string behind `code`. A code of another dictionary is a bug and panics.
    pub fn get(&self, code: u32) -> &str {
        let code = code as usize;
        let start = if code == 0 { 0 } else { self.ends[code - 1] };
        &self.text[start..self.ends[code]]
    }

    /// Whether `code` stands for `text`.
    fn is_at(&self, code: u32, text: &str) -> bool {
        let code = code as usize;
        let start = if code == 0 { 0 } else { self.ends[code - 1] };
        self.text.as_bytes()[start..self.ends[code]] == *text.as_bytes()
    }

    /// Adds a string that is not an entry yet; its code.
    pub(crate) fn push(&mut self, text: &str) -> u32 {
        let code = self.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len());
        code
    }

    /// How many bytes all entries have together.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// How many bytes the whole of it takes.
    pub fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.ends)
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|code| self.get(code))
    }

    /// The code of `text`, if it is an entry. Looks at all entries, but only at the length and eight bytes of most.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        let (all, wanted) = (self.text.as_bytes(), text.as_bytes());
        let (len, tail) = (wanted.len(), wanted.last_chunk::<8>());
        let mut start = 0;
        let at = self.ends.iter().position(|&end| {
            let from = std::mem::replace(&mut start, end);
            // Texts that have much in common differ at their ends, as a rule.
            end - from == len
                && tail.is_none_or(|tail| all[..end].last_chunk() == Some(tail))
                && all[from..end] == *wanted
        });
        at.map(|code| code as u32)
    }

    /// How many bytes all entries begin with in common.
    pub(crate) fn shared_prefix(&self, stop: Stop<'_>) -> Result<usize, Stopped> {
        let Some((&first_end, ends)) = self.ends.split_first() else { return Ok(0) };
        let all = self.text.as_bytes();
        let (mut shared, mut start) = (&all[..first_end], first_end);
        for ends in stop.slices(ends) {
            for &end in ends? {
                let entry = &all[start..end];
                if !entry.starts_with(shared) {
                    let common = entry.iter().zip(shared).take_while(|(a, b)| a == b).count();
                    shared = &shared[..common];
                }
                if shared.is_empty() {
                    return Ok(0);
                }
                start = end;
            }
        }
        Ok(shared.len())
    }

    /// Eight bytes of an entry behind the first `skip`, which it has, as a number that orders as they do. Zeros come after the
    /// end, so entries with the same number may still differ.
    #[inline(always)]
    pub(crate) fn window(&self, code: u32, skip: usize) -> u64 {
        let code = code as usize;
        let start = if code == 0 { 0 } else { self.ends[code - 1] };
        let (from, end) = (start + skip, self.ends[code]);
        let rest = end - from;
        match self.text.as_bytes().get(from..from + 8) {
            Some(&[a, b, c, d, e, f, g, h]) => {
                let window = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
                // What follows the end belongs to the next entry.
                if rest < 8 { window & !(u64::MAX >> (8 * rest)) } else { window }
            }
            _ => self.text.as_bytes()[from..end]
                .iter()
                .zip([56, 48, 40, 32, 24, 16, 8, 0])
                .fold(0, |window, (&byte, shift)| window | u64::from(byte) << shift),
        }
    }
}

impl PartialEq for Dictionary {
    fn eq(&self, other: &Dictionary) -> bool {
        self.ends == other.ends && self.text == other.text
    }
}

/// Gives each distinct string its code.
#[derive(Clone, Default)]
pub struct DictionaryBuilder {
    dictionary: Dictionary,
    codes: HashTable<Hashed>,
    hasher: DefaultHashBuilder,
}

/// A code and the hash of its string: neither growing nor passing over another string looks at the text.
#[derive(Clone, Copy)]
struct Hashed {
    hash: u32,
    code: u32,
}

impl Hashed {
    /// The hash for the table, which looks at the first bits and at the last.
    fn wide(self) -> u64 {
        u64::from(self.hash) << 32 | u64::from(self.hash)
    }
}

impl DictionaryBuilder {
    /// A builder that already holds `dictionary`, so that its codes stay as they are.
    pub fn extending(dictionary: &Dictionary, stop: Stop<'_>) -> Result<DictionaryBuilder, Stopped> {
        let (mut builder, mut looks) = (DictionaryBuilder::default(), stop.looks());
        for entry in dictionary.iter() {
            looks.before(1)?;
            builder.code(entry);
        }
        Ok(builder)
    }

    /// The code of `text`, new if it was not seen before.
    pub fn code(&mut self, text: &str) -> u32 {
        let hash = self.hash(text);
        if let Some(code) = self.find(hash, text) {
            return code;
        }
        let new = Hashed { hash: hash as u32, code: self.dictionary.push(text) };
        self.codes.insert_unique(hash, new, |hashed| hashed.wide());
        new.code
    }

    /// What [`DictionaryBuilder::find`] takes.
    #[inline]
    pub(crate) fn hash(&self, text: &str) -> u64 {
        Hashed { hash: (self.hasher.hash_one(text) >> 32) as u32, code: 0 }.wide()
    }

    /// The code of `text`, if it was seen before.
    #[inline]
    pub(crate) fn find(&self, hash: u64, text: &str) -> Option<u32> {
        let is_it = |hashed: &Hashed| hashed.hash == hash as u32 && self.dictionary.is_at(hashed.code, text);
        self.codes.find(hash, is_it).map(|hashed| hashed.code)
    }

    /// What was seen so far.
    pub(crate) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// Gives back the room for further entries.
    pub fn shrink_to_fit(&mut self) {
        self.dictionary.text.shrink_to_fit();
        self.dictionary.ends.shrink_to_fit();
    }

    pub fn finish(self) -> Dictionary {
        self.dictionary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_follow_first_appearance() {
        let mut builder = DictionaryBuilder::default();
        let codes: Vec<u32> = ["b", "a", "b", "", "a"].iter().map(|s| builder.code(s)).collect();
        assert_eq!(codes, [0, 1, 0, 2, 1]);
        assert_eq!(builder.finish().iter().collect::<Vec<_>>(), ["b", "a", ""]);
    }

    fn dictionary(entries: &[&str]) -> Dictionary {
        let mut builder = DictionaryBuilder::default();
        for entry in entries {
            builder.code(entry);
        }
        builder.finish()
    }

    #[test]
    fn every_entry_is_found_and_nothing_else() {
        let entries = ["", "a", "ab", "abcdefgh", "abcdefghi", "xbcdefgh", "abcdefgx", "ä", "an entry of some length"];
        let dictionary = dictionary(&entries);
        for (code, entry) in entries.iter().enumerate() {
            assert_eq!(dictionary.find(entry), Some(code as u32), "{entry}");
        }
        for other in ["b", "abcdefg", "bcdefghi", "an entry of some lengtH", "An entry of some length"] {
            assert_eq!(dictionary.find(other), None, "{other}");
        }
        assert_eq!(Dictionary::default().find(""), None);
    }

    #[test]
    fn windows_order_as_the_texts_behind_what_all_begin_with() {
        let sets: [&[&str]; 4] = [
            &["", "a", "a\0", "ab", "b"],
            &["item_1", "item_10", "item_2", "item_", "item_100000000000", "item_1000000000001"],
            &["same"],
            &["äö", "äü", "ä"],
        ];
        for (entries, shared) in sets.into_iter().zip([0, 5, 4, 2]) {
            let dictionary = dictionary(entries);
            assert_eq!(dictionary.shared_prefix(Stop::default()), Ok(shared), "{entries:?}");
            let window = |at: usize| dictionary.window(at as u32, shared);
            for a in 0..entries.len() {
                for b in (0..entries.len()).filter(|b| window(a) != window(*b)) {
                    assert_eq!(window(a).cmp(&window(b)), entries[a].cmp(entries[b]), "{} {}", entries[a], entries[b]);
                }
            }
        }
        assert_eq!(Dictionary::default().shared_prefix(Stop::default()), Ok(0));
    }
}
