//! The answers to a step: for each key what was stored under it, all in one buffer rather than a value for each.
//!
//! Values are kept as bytes: a task knows which types they have. Where elements of lists are asked for as ids, they are read as
//! such when they come in, so that what comes from a socket becomes a column without a copy between.

use std::ops::Range;

/// For each key a run of items, each bytes or nothing; or a run of ids, for steps that read lists of ids.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    bytes: Vec<u8>,
    items: Vec<Option<Range<u32>>>,
    ids: Vec<i64>,
    /// Where the answer for each key ends: in `items`, or in `ids` where there are some.
    ends: Vec<u32>,
    /// Elements of lists that are no ids.
    skipped: u64,
    /// Bytes of elements, which are not kept.
    element_bytes: usize,
    /// The positions of keys that hold another type than was asked for, in order. They have no items.
    wrong_types: Vec<u32>,
}

impl Replies {
    /// Adds an item to the answer at hand.
    pub fn push_item(&mut self, item: Option<&[u8]>) {
        let item = item.map(|bytes| {
            let start = self.bytes.len() as u32;
            self.bytes.extend_from_slice(bytes);
            start..self.bytes.len() as u32
        });
        self.items.push(item);
    }

    /// Adds an element of a list to the answer at hand. One that is no decimal int is counted and left out.
    #[inline]
    pub fn push_element(&mut self, element: &[u8]) {
        self.element_bytes += element.len();
        match parse_id(element) {
            Some(id) => self.ids.push(id),
            None => self.skipped += 1,
        }
    }

    /// Adds an id to the answer at hand.
    pub fn push_id(&mut self, id: i64) {
        self.ids.push(id);
    }

    /// Leaves out an element that is not there, or is no id.
    pub fn skip_element(&mut self) {
        self.skipped += 1;
    }

    /// The key whose answer comes next holds another type than was asked for. Its answer ends, too.
    pub fn end_wrong_type(&mut self) {
        self.wrong_types.push(self.ends.len() as u32);
        self.end_reply();
    }

    /// The same for an answer that has ended, and is empty.
    pub(crate) fn mark_wrong_type(&mut self, at: usize) {
        if let Err(place) = self.wrong_types.binary_search(&(at as u32)) {
            self.wrong_types.insert(place, at as u32);
        }
    }

    /// Ends the answer for one key.
    pub fn end_reply(&mut self) {
        // One of the two is empty.
        self.ends.push((self.items.len() + self.ids.len()) as u32);
    }

    /// Adds the answer for one key of another step.
    pub(crate) fn push_reply(&mut self, other: &Replies, at: usize) {
        if other.is_wrong_type(at) {
            return self.end_wrong_type();
        }
        match other.ids.is_empty() {
            true => other.items(at).for_each(|item| self.push_item(item)),
            false => self.ids.extend_from_slice(other.ids(at)),
        }
        self.end_reply();
    }

    /// Adds the counts of another step whose answers were added one by one.
    pub(crate) fn push_counts(&mut self, other: &Replies) {
        self.skipped += other.skipped;
        self.element_bytes += other.element_bytes;
    }

    /// Adds the answers for more keys after these.
    pub(crate) fn append(&mut self, more: &Replies) {
        let keys = self.ends.len() as u32;
        self.wrong_types.extend(more.wrong_types.iter().map(|at| at + keys));
        let (bytes, before) = (self.bytes.len() as u32, (self.items.len() + self.ids.len()) as u32);
        let shifted = |range: &Range<u32>| range.start + bytes..range.end + bytes;
        self.bytes.extend_from_slice(&more.bytes);
        self.items.extend(more.items.iter().map(|item| item.as_ref().map(shifted)));
        self.ids.extend_from_slice(&more.ids);
        self.ends.extend(more.ends.iter().map(|end| end + before));
        self.push_counts(more);
    }

    /// How many keys have been answered.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn range(&self, at: usize) -> Range<usize> {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        start as usize..self.ends[at] as usize
    }

    /// Whether the key at this position of the step holds another type than was asked for.
    pub fn is_wrong_type(&self, at: usize) -> bool {
        !self.wrong_types.is_empty() && self.wrong_types.binary_search(&(at as u32)).is_ok()
    }

    /// The positions of the keys that hold another type than was asked for.
    pub fn wrong_types(&self) -> &[u32] {
        &self.wrong_types
    }

    /// The items for the key at this position of the step.
    pub fn items(&self, at: usize) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        let items = self.items.get(self.range(at)).unwrap_or_default();
        items.iter().map(|item| item.clone().map(|range| &self.bytes[range.start as usize..range.end as usize]))
    }

    /// The ids in the list for the key at this position of the step.
    pub fn ids(&self, at: usize) -> &[i64] {
        self.ids.get(self.range(at)).unwrap_or_default()
    }

    /// The ids in all lists, one list after the other.
    pub fn into_ids(self) -> Vec<i64> {
        self.ids
    }

    /// How many elements of lists were no ids.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    pub fn byte_count(&self) -> usize {
        self.bytes.len() + self.element_bytes
    }

    /// How many bytes they take here.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.len()
            + size_of_val(&*self.items)
            + size_of_val(&*self.ids)
            + size_of_val(&*self.ends)
            + size_of_val(&*self.wrong_types)
    }

    /// Whether the answers for two keys are the same.
    pub(crate) fn is_same(&self, at: usize, other: &Replies, other_at: usize) -> bool {
        self.is_wrong_type(at) == other.is_wrong_type(other_at)
            && self.ids(at) == other.ids(other_at)
            && self.items(at).eq(other.items(other_at))
    }
}

/// A decimal int, and nothing but: no sign but a minus, no spaces, no fraction.
#[inline]
pub fn parse_id(element: &[u8]) -> Option<i64> {
    let (negative, digits) = match element {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Eighteen digits cannot overflow.
    if digits.len() > 18 {
        return std::str::from_utf8(element).ok()?.parse().ok();
    }
    let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_never_half_parsed() {
        for good in [0, 7, -7, 999_999_999_999_999_999, 1_000_000_000_000_000_000, i64::MAX, i64::MIN] {
            assert_eq!(parse_id(good.to_string().as_bytes()), Some(good));
        }
        assert_eq!(parse_id(b"0000000000000000000000000007"), Some(7));
        for bad in [&b"7x"[..], b" 7", b"7.0", b"+7", b"", b"-", b"--7", b"9223372036854775808", b"\xff"] {
            assert_eq!(parse_id(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn answers_keep_their_places_when_they_are_put_together() {
        let list = |elements: &[&str]| {
            let mut replies = Replies::default();
            elements.iter().for_each(|element| replies.push_element(element.as_bytes()));
            replies.end_reply();
            replies
        };
        let mut all = list(&["1", "x", "2"]);
        all.append(&list(&[]));
        all.append(&list(&["3"]));
        let mut gathered = Replies::default();
        [2, 0, 1].iter().for_each(|at| gathered.push_reply(&all, *at));
        gathered.push_counts(&all);
        assert_eq!((gathered.ids(0), gathered.ids(1), gathered.ids(2)), (&[3][..], &[1, 2][..], &[][..]));
        assert_eq!((gathered.skipped(), gathered.byte_count(), gathered.len()), (1, 4, 3));
        assert_eq!(gathered.into_ids(), [3, 1, 2]);
    }
}
