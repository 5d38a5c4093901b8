//! The keys of a step, in a form that is written into commands as it is: nothing is allocated for each.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;
use std::ops::Range;

/// The keys of a step.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    /// `{prefix}:{id}` for each id.
    Numbered { prefix: &'a str, ids: &'a [i64] },
    /// Any bytes.
    Written(WrittenKeys<'a>),
}

impl<'a> Keys<'a> {
    pub fn len(&self) -> usize {
        match self {
            Keys::Numbered { ids, .. } => ids.len(),
            Keys::Written(keys) => keys.ends.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of them. The range must be within the keys.
    pub(crate) fn part(&self, range: Range<usize>) -> Keys<'a> {
        match *self {
            Keys::Numbered { prefix, ids } => Keys::Numbered { prefix, ids: &ids[range] },
            Keys::Written(keys) => Keys::Written(WrittenKeys {
                bytes: keys.bytes,
                start: keys.start_of(range.start),
                ends: &keys.ends[range],
            }),
        }
    }

    /// Puts a key in place of what was in `into`.
    pub(crate) fn write(&self, at: usize, into: &mut Vec<u8>) {
        into.clear();
        self.append(at, into);
    }

    pub(crate) fn append(&self, at: usize, into: &mut Vec<u8>) {
        match self {
            Keys::Numbered { prefix, ids } => {
                into.extend_from_slice(prefix.as_bytes());
                into.push(b':');
                into.extend_from_slice(itoa::Buffer::new().format(ids[at]).as_bytes());
            }
            Keys::Written(keys) => into.extend_from_slice(keys.get(at)),
        }
    }

    /// A key for people; nothing where there is none at this position.
    pub(crate) fn show(&self, at: usize) -> String {
        let mut key = Vec::new();
        if at < self.len() {
            self.write(at, &mut key);
        }
        String::from_utf8_lossy(&key).into_owned()
    }
}

/// Keys one after the other, and where each ends.
#[derive(Clone, Copy, Debug)]
pub struct WrittenKeys<'a> {
    bytes: &'a [u8],
    /// Where the first one begins.
    start: u32,
    ends: &'a [u32],
}

impl<'a> WrittenKeys<'a> {
    fn start_of(&self, at: usize) -> u32 {
        if at == 0 { self.start } else { self.ends[at - 1] }
    }

    pub fn get(&self, at: usize) -> &'a [u8] {
        &self.bytes[self.start_of(at) as usize..self.ends[at] as usize]
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let keys = *self;
        (0..keys.ends.len()).map(move |at| keys.get(at))
    }

    /// How many bytes all of them have.
    pub(crate) fn byte_count(&self) -> usize {
        self.ends.last().map_or(0, |end| (end - self.start) as usize)
    }
}

/// Where keys are written, one after the other.
#[derive(Clone, Debug, Default)]
pub struct KeyBuffer {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl KeyBuffer {
    pub fn with_capacity(keys: usize, bytes: usize) -> KeyBuffer {
        KeyBuffer { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(keys) }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a key: what `write` appends. All keys together must have less than 4 GiB.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len() as u32);
    }

    /// How many bytes all of them have.
    pub(crate) fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the last key back.
    pub fn pop(&mut self) {
        self.ends.pop();
        self.bytes.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }

    pub fn get(&self, at: usize) -> &[u8] {
        self.written().get(at)
    }

    pub fn keys(&self) -> Keys<'_> {
        Keys::Written(self.written())
    }

    pub(crate) fn written(&self) -> WrittenKeys<'_> {
        WrittenKeys { bytes: &self.bytes, start: 0, ends: &self.ends }
    }
}

/// Keys of which each is there once.
#[derive(Default)]
pub struct DistinctKeys {
    keys: KeyBuffer,
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl DistinctKeys {
    /// The place of a key, which is added where it is new.
    pub fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> u32 {
        let DistinctKeys { keys, places, hasher } = self;
        keys.push(write);
        let last = keys.len() - 1;
        let hash = hasher.hash_one(keys.get(last));
        let found = places.find(hash, |place| keys.get(*place as usize) == keys.get(last)).copied();
        match found {
            Some(place) => {
                keys.pop();
                place
            }
            None => {
                places.insert_unique(hash, last as u32, |place| hasher.hash_one(keys.get(*place as usize)));
                last as u32
            }
        }
    }

    pub fn into_keys(self) -> KeyBuffer {
        self.keys
    }
}

/// Some keys of a step, in another order, for one of several servers.
#[derive(Debug)]
pub(crate) enum PickedKeys {
    Ids(Vec<i64>),
    Written(KeyBuffer),
}

impl PickedKeys {
    /// For keys of the same form as these.
    pub(crate) fn of(keys: &Keys<'_>) -> PickedKeys {
        match keys {
            Keys::Numbered { .. } => PickedKeys::Ids(Vec::new()),
            Keys::Written(_) => PickedKeys::Written(KeyBuffer::default()),
        }
    }

    /// Adds a key of the step that these were made for.
    pub(crate) fn push(&mut self, keys: &Keys<'_>, at: usize) {
        match (self, keys) {
            (PickedKeys::Ids(picked), Keys::Numbered { ids, .. }) => picked.push(ids[at]),
            (PickedKeys::Written(picked), Keys::Written(keys)) => {
                picked.push(|out| out.extend_from_slice(keys.get(at)));
            }
            (PickedKeys::Ids(_), Keys::Written(_)) | (PickedKeys::Written(_), Keys::Numbered { .. }) => {
                debug_assert!(false, "keys of another step");
            }
        }
    }

    /// The keys, with the prefix of the step that they are of.
    pub(crate) fn keys<'a>(&'a self, of: &Keys<'a>) -> Keys<'a> {
        match (self, of) {
            (PickedKeys::Ids(ids), Keys::Numbered { prefix, .. }) => Keys::Numbered { prefix, ids },
            (PickedKeys::Ids(ids), Keys::Written(_)) => Keys::Numbered { prefix: "", ids },
            (PickedKeys::Written(keys), _) => keys.keys(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_keys_has_the_same_keys() {
        let mut buffer = KeyBuffer::default();
        for key in ["a", "", "cd", "efg"] {
            buffer.push(|out| out.extend_from_slice(key.as_bytes()));
        }
        let numbered = Keys::Numbered { prefix: "p", ids: &[1, -2, 3, 4] };
        let shown = |keys: Keys<'_>| (0..keys.len()).map(|at| keys.show(at)).collect::<Vec<_>>();
        assert_eq!(shown(buffer.keys()), ["a", "", "cd", "efg"]);
        assert_eq!(shown(buffer.keys().part(1..3).part(1..2)), ["cd"]);
        assert_eq!(shown(numbered.part(1..3)), ["p:-2", "p:3"]);
        assert_eq!(numbered.show(9), "");
        buffer.pop();
        assert_eq!(shown(buffer.keys()), ["a", "", "cd"]);
        for keys in [numbered, buffer.keys()] {
            let mut picked = PickedKeys::of(&keys);
            [2, 0].iter().for_each(|at| picked.push(&keys, *at));
            assert_eq!(shown(picked.keys(&keys)), [keys.show(2), keys.show(0)]);
        }
    }
}
