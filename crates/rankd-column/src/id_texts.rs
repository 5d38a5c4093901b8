//! Ids that are texts, as the 64-bit codes that rows hold: equal text, equal code, always.
//!
//! An [`IdDictionary`] has the ids that are known before a run begins, and does not change while one uses it. [`IdTexts`] is such
//! a dictionary and, above its codes, the ids that one run has met: append-only, and read without a lock by every thread of the run.
//! A code means nothing outside the texts that gave it, and no user ever sees one.

use crate::dictionary::DictionaryBuilder;
use crate::id::{IdFault, check_id, read_id};
use hashbrown::HashTable;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

/// Texts and their codes, from 0 on. A longer one is a clone to which texts were added: the codes stay.
#[derive(Clone, Default)]
pub struct IdDictionary {
    texts: DictionaryBuilder,
}

impl IdDictionary {
    /// The dictionary of a process that knows no ids beforehand.
    pub fn empty() -> Arc<IdDictionary> {
        static EMPTY: LazyLock<Arc<IdDictionary>> = LazyLock::new(Arc::default);
        EMPTY.clone()
    }

    /// Adds a text; the code that it has, where it is there already.
    pub fn add(&mut self, text: &str) -> Result<i64, IdFault> {
        check_id(text)?;
        // Codes of a dictionary have 32 bits.
        match self.texts.dictionary().len() < u32::MAX as usize {
            true => Ok(self.texts.code(text).into()),
            false => self.code(text).ok_or(IdFault::TooMany),
        }
    }

    pub fn len(&self) -> usize {
        self.texts.dictionary().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn code(&self, text: &str) -> Option<i64> {
        self.find(self.texts.hash(text), text)
    }

    fn find(&self, hash: u64, text: &str) -> Option<i64> {
        self.texts.find(hash, text).map(i64::from)
    }

    /// The text of a code that this dictionary, or one that it is a longer one of, has given. Any other is a bug and panics.
    pub fn text(&self, code: i64) -> &str {
        self.texts.dictionary().get(code as u32)
    }

    /// How many bytes all texts have together.
    pub fn text_bytes(&self) -> usize {
        self.texts.dictionary().text_bytes()
    }
}

impl fmt::Debug for IdDictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdDictionary({} texts)", self.len())
    }
}

/// How much a run may keep of texts that its dictionary does not have. Each counts with its bytes and those around it, so that
/// their number is bounded as well.
const OWN_BYTES_MAX: usize = 64 << 20;
const BYTES_AROUND: usize = 64;

/// The first segment has this many texts, each further one twice as many as the one before it.
const FIRST_SEGMENT: usize = 64;
/// Enough for as many texts as the bytes allow.
const SEGMENTS: usize = (OWN_BYTES_MAX / BYTES_AROUND / FIRST_SEGMENT).ilog2() as usize + 1;

type Segment = OnceLock<Box<[OnceLock<Box<str>>]>>;

/// The texts of one run's ids.
pub struct IdTexts {
    base: Arc<IdDictionary>,
    /// The run's own texts, numbered from 0 here; their codes follow those of `base`.
    segments: [Segment; SEGMENTS],
    own: Mutex<Own>,
}

/// What is needed to find a text or to add one.
#[derive(Default)]
struct Own {
    /// Numbers of the run's own texts.
    numbers: HashTable<u32>,
    bytes: usize,
}

impl IdTexts {
    pub fn new(base: Arc<IdDictionary>) -> IdTexts {
        IdTexts { base, segments: [const { OnceLock::new() }; SEGMENTS], own: Mutex::default() }
    }

    /// The ids that were known before the run.
    pub fn base(&self) -> &Arc<IdDictionary> {
        &self.base
    }

    /// The code of a text, which is checked and added where it is new.
    pub fn code(&self, text: &str) -> Result<i64, IdFault> {
        self.coder().code(text)
    }

    /// For codes of many texts.
    pub fn coder(&self) -> IdCoder<'_> {
        IdCoder { texts: self, own: None }
    }

    /// The text of a code, without waiting for anyone. A code of other texts is a bug and panics.
    #[expect(clippy::panic, reason = "codes never come from input")]
    pub fn text(&self, code: i64) -> &str {
        let base = self.base.len() as i64;
        if code < base {
            return self.base.text(code);
        }
        self.own_text((code - base) as usize).unwrap_or_else(|| panic!("the code {code} belongs to other texts"))
    }

    fn own_text(&self, number: usize) -> Option<&str> {
        let (segment, at) = place(number);
        self.segments.get(segment)?.get()?.get(at)?.get().map(|text| &**text)
    }
}

impl fmt::Debug for IdTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdTexts({:?})", self.base)
    }
}

/// The segment of a text, and its place there.
fn place(number: usize) -> (usize, usize) {
    let segment = (number / FIRST_SEGMENT + 1).ilog2() as usize;
    (segment, number - FIRST_SEGMENT * ((1 << segment) - 1))
}

/// Gives codes, one after the other. From the first text that the base does not have until it is dropped, other threads of the run
/// wait for codes of such texts; none waits to read a text.
pub struct IdCoder<'a> {
    texts: &'a IdTexts,
    own: Option<MutexGuard<'a, Own>>,
}

impl IdCoder<'_> {
    /// The code of an id as it is stored.
    pub fn code_of_bytes(&mut self, bytes: &[u8]) -> Result<i64, IdFault> {
        read_id(bytes).and_then(|text| self.checked(text))
    }

    /// The code of a text, which is checked and added where it is new.
    pub fn code(&mut self, text: &str) -> Result<i64, IdFault> {
        check_id(text)?;
        self.checked(text)
    }

    fn checked(&mut self, text: &str) -> Result<i64, IdFault> {
        let IdCoder { texts: IdTexts { base, segments, own }, .. } = self;
        let hash = base.texts.hash(text);
        if let Some(code) = base.find(hash, text) {
            return Ok(code);
        }
        let own = self.own.get_or_insert_with(|| own.lock().unwrap_or_else(PoisonError::into_inner));
        let text_of = |number: u32| self.texts.own_text(number as usize).unwrap_or_default();
        let number = match own.numbers.find(hash, |number| text_of(*number) == text) {
            Some(number) => *number,
            None => {
                let bytes = own.bytes + text.len() + BYTES_AROUND;
                let number = own.numbers.len();
                let (segment, at) = place(number);
                let (Some(segment), true) = (segments.get(segment), bytes <= OWN_BYTES_MAX) else {
                    return Err(IdFault::TooMany);
                };
                let len = FIRST_SEGMENT << place(number).0;
                let cells = segment.get_or_init(|| (0..len).map(|_| OnceLock::new()).collect());
                // Only the holder of the lock adds, and each place is used once. The text is there before its number is.
                cells[at].get_or_init(|| text.into());
                own.bytes = bytes;
                own.numbers.insert_unique(hash, number as u32, |number| base.texts.hash(text_of(*number)));
                number as u32
            }
        };
        Ok(base.len() as i64 + i64::from(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_keep_their_codes_and_new_ones_follow() {
        let mut base = IdDictionary::default();
        assert_eq!((base.add("a"), base.add("b"), base.add("a")), (Ok(0), Ok(1), Ok(0)));
        let mut longer = base.clone();
        assert_eq!((longer.add("c"), longer.add("b")), (Ok(2), Ok(1)));
        for (base, c) in [(base, 4), (longer, 2)] {
            let first = base.len() as i64;
            let texts = IdTexts::new(Arc::new(base));
            assert_eq!((texts.code("x"), texts.code("b"), texts.code("x")), (Ok(first), Ok(1), Ok(first)));
            assert_eq!((texts.code("y"), texts.code("a")), (Ok(first + 1), Ok(0)));
            assert_eq!(texts.code("c"), Ok(c));
            assert_eq!([0, 1, first, first + 1].map(|code| texts.text(code)), ["a", "b", "x", "y"]);
            assert_eq!(texts.code("a\n"), Err(IdFault::ControlCharacter));
        }
    }

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut next = (0, 0);
        for number in 0..FIRST_SEGMENT * 1000 {
            assert_eq!(place(number), next);
            next.1 += 1;
            if next.1 == FIRST_SEGMENT << next.0 {
                next = (next.0 + 1, 0);
            }
        }
        assert!(place(OWN_BYTES_MAX / BYTES_AROUND).0 < SEGMENTS);
    }

    #[test]
    fn a_run_keeps_so_much_and_no_more() {
        let texts = IdTexts::new(IdDictionary::empty());
        let mut coder = texts.coder();
        let mut text = "x".repeat(crate::id::ID_BYTES_MAX - 10);
        let prefix = text.len();
        let mut count = 0;
        let refused = loop {
            text.truncate(prefix);
            text.push_str(&count.to_string());
            match coder.code(&text) {
                Ok(code) => assert_eq!(code, count),
                Err(fault) => break fault,
            }
            count += 1;
        };
        assert_eq!(refused, IdFault::TooMany);
        assert!(count as usize <= OWN_BYTES_MAX / (prefix + BYTES_AROUND), "{count}");
        // What is there is still found.
        text.truncate(prefix);
        text.push('7');
        assert_eq!(coder.code(&text), Ok(7));
    }
}
