//! The distinct strings of a column, numbered in the order of their first appearance.
//!
//! Invariants: entries are distinct; a code is an entry's position; codes never change once given.

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

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|code| self.get(code))
    }
}

impl PartialEq for Dictionary {
    fn eq(&self, other: &Dictionary) -> bool {
        self.ends == other.ends && self.text == other.text
    }
}

/// Gives each distinct string its code.
#[derive(Default)]
pub struct DictionaryBuilder {
    dictionary: Dictionary,
    codes: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl DictionaryBuilder {
    /// A builder that already holds `dictionary`, so that its codes stay as they are.
    pub fn extending(dictionary: &Dictionary) -> DictionaryBuilder {
        let mut builder = DictionaryBuilder::default();
        for entry in dictionary.iter() {
            builder.code(entry);
        }
        builder
    }

    /// The code of `text`, new if it was not seen before.
    pub fn code(&mut self, text: &str) -> u32 {
        let DictionaryBuilder { dictionary, codes, hasher } = self;
        let hash = hasher.hash_one(text);
        if let Some(&code) = codes.find(hash, |&code| dictionary.get(code) == text) {
            return code;
        }
        let code = dictionary.len() as u32;
        dictionary.text.push_str(text);
        dictionary.ends.push(dictionary.text.len());
        codes.insert_unique(hash, code, |&code| hasher.hash_one(dictionary.get(code)));
        code
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
}
