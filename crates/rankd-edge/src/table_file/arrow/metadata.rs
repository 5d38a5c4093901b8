//! Just enough of the FlatBuffers format to read Arrow's metadata. Every offset is checked: nothing is read outside of the bytes,
//! and what is not there is `None`.

/// The most tables of a list. They may all be the same, so that the size of the buffer does not limit them.
const TABLES_MAX: usize = 100_000;

/// A table in a buffer.
#[derive(Clone, Copy)]
pub(super) struct FlatTable<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the list of its fields' places is, and how long it is.
    places: usize,
    places_len: usize,
}

impl<'a> FlatTable<'a> {
    /// The table that a buffer is about.
    pub(super) fn root(bytes: &'a [u8]) -> Option<FlatTable<'a>> {
        FlatTable::new(bytes, follow(bytes, 0)?)
    }

    fn new(bytes: &'a [u8], at: usize) -> Option<FlatTable<'a>> {
        let back = i64::from(i32::from_le_bytes(chunk(bytes, at)?));
        let places = usize::try_from(at as i64 - back).ok()?;
        let places_len = usize::from(u16::from_le_bytes(chunk(bytes, places)?));
        bytes.get(places..places.checked_add(places_len)?)?;
        Some(FlatTable { bytes, at, places, places_len })
    }

    /// Where a field is, if the table has it.
    fn place(&self, slot: usize) -> Option<usize> {
        let entry = 4 + 2 * slot;
        if entry + 2 > self.places_len {
            return None;
        }
        match u16::from_le_bytes(chunk(self.bytes, self.places + entry)?) {
            0 => None,
            place => Some(self.at + usize::from(place)),
        }
    }

    pub(super) fn byte(&self, slot: usize) -> Option<u8> {
        self.bytes.get(self.place(slot)?).copied()
    }

    pub(super) fn short(&self, slot: usize) -> Option<i16> {
        chunk(self.bytes, self.place(slot)?).map(i16::from_le_bytes)
    }

    pub(super) fn int(&self, slot: usize) -> Option<i32> {
        chunk(self.bytes, self.place(slot)?).map(i32::from_le_bytes)
    }

    pub(super) fn long(&self, slot: usize) -> Option<i64> {
        chunk(self.bytes, self.place(slot)?).map(i64::from_le_bytes)
    }

    pub(super) fn table(&self, slot: usize) -> Option<FlatTable<'a>> {
        FlatTable::new(self.bytes, follow(self.bytes, self.place(slot)?)?)
    }

    pub(super) fn text(&self, slot: usize) -> Option<&'a str> {
        std::str::from_utf8(self.items(slot, 1)?).ok()
    }

    /// The tables of a list; none where the table has no such list. `None` where one of them cannot be read.
    pub(super) fn tables(&self, slot: usize) -> Option<Vec<FlatTable<'a>>> {
        if self.place(slot).is_none() {
            return Some(Vec::new());
        }
        let list = follow(self.bytes, self.place(slot)?)?;
        let count = Some(self.items(slot, 4)?.len() / 4).filter(|count| *count <= TABLES_MAX)?;
        (0..count).map(|item| FlatTable::new(self.bytes, follow(self.bytes, list + 4 + 4 * item)?)).collect()
    }

    /// The pairs of longs in a list of such structs; none where the table has no such list.
    pub(super) fn pairs(&self, slot: usize) -> Option<Vec<[i64; 2]>> {
        if self.place(slot).is_none() {
            return Some(Vec::new());
        }
        let (longs, _) = self.items(slot, 16)?.as_chunks();
        let (pairs, _) = longs.as_chunks();
        Some(pairs.iter().map(|[first, second]| [i64::from_le_bytes(*first), i64::from_le_bytes(*second)]).collect())
    }

    /// The places of messages in a list of them; none where the table has no such list.
    pub(super) fn blocks(&self, slot: usize) -> Option<Vec<Block>> {
        if self.place(slot).is_none() {
            return Some(Vec::new());
        }
        // The offset, and behind it the lengths of metadata and body, which the message itself says.
        let (blocks, _) = self.items(slot, 24)?.as_chunks::<24>();
        let block = |bytes: &[u8; 24]| Some(Block { offset: u64::from_le_bytes(*bytes.first_chunk()?) });
        blocks.iter().map(block).collect()
    }

    /// The longs of a list; none where the table has no such list.
    pub(super) fn long_list(&self, slot: usize) -> Option<Vec<i64>> {
        if self.place(slot).is_none() {
            return Some(Vec::new());
        }
        let (longs, _) = self.items(slot, 8)?.as_chunks();
        Some(longs.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect())
    }

    /// The bytes of a list's items, so many each.
    fn items(&self, slot: usize, size: usize) -> Option<&'a [u8]> {
        let list = follow(self.bytes, self.place(slot)?)?;
        let count = u32::from_le_bytes(chunk(self.bytes, list)?) as usize;
        let start = list + 4;
        self.bytes.get(start..start.checked_add(count.checked_mul(size)?)?)
    }
}

/// Where a message of a file is.
pub(super) struct Block {
    pub(super) offset: u64,
}

/// Where the offset here leads to.
fn follow(bytes: &[u8], at: usize) -> Option<usize> {
    let offset = u32::from_le_bytes(chunk(bytes, at)?) as usize;
    at.checked_add(offset)
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
