//! The protocol: commands out, replies in, with strict limits and without a tree of values.
//!
//! A reply to one of our reads is one string, a flat list of strings, numbers or truth values, a flat map of them, a list of pairs, or an error. What a server pushes of its own accord
//! may come between replies and is passed over. A reply that is larger than our limits is passed over too, as it comes and
//! without being kept, so that the replies behind it can be read. Anything else is malformed: after it nothing on the connection
//! can be trusted, so the connection is closed.

use crate::store::keyed::limits;
use crate::store::redis::flat;
use crate::store::{KeyedRead, Keys, MemberOf, PositionIn, ReadBatch, Replies, TooLarge};

/// What is passed over of a step's replies. Where there is more, a new connection costs less than waiting for the rest.
const PASSED_OVER_BYTES_MAX: usize = 16 << 20;
/// The shortest item, in bytes.
const ITEM_BYTES_MIN: usize = 3;
/// The longest error line that is read.
const LINE_BYTES_MAX: usize = 4096;

/// Appends a command of any words.
pub(super) fn push_command<'a>(
    out: &mut Vec<u8>,
    words: impl IntoIterator<Item = &'a [u8], IntoIter: ExactSizeIterator>,
) {
    let words = words.into_iter();
    push_header(out, b'*', words.len());
    words.for_each(|word| push_word(out, word));
}

/// The command for a read. The embedded store goes by the same names.
pub(crate) fn command(read: KeyedRead<'_>) -> &'static str {
    match read {
        KeyedRead::HashAll => "HGETALL",
        KeyedRead::HashFields(_) => "HMGET",
        KeyedRead::ListHead(_) | KeyedRead::List(_) => "LRANGE",
        KeyedRead::Set => "SMEMBERS",
        KeyedRead::SortedSet { descending: false, .. } => "ZRANGE",
        KeyedRead::SortedSet { descending: true, .. } => "ZREVRANGE",
        KeyedRead::Text => "GET",
        KeyedRead::Members { of: MemberOf::Set, .. } => "SMISMEMBER",
        KeyedRead::Members { of: MemberOf::SortedSet, .. } => "ZMSCORE",
        KeyedRead::Members { of: MemberOf::Filter, .. } => "BF.MEXISTS",
        KeyedRead::Position { of: PositionIn::List, .. } => "LPOS",
        KeyedRead::Position { of: PositionIn::SortedSet { descending: false }, .. } => "ZRANK",
        KeyedRead::Position { of: PositionIn::SortedSet { descending: true }, .. } => "ZREVRANK",
    }
}

/// Appends one command for each key of a step. With `asking`, each may be asked of a node that is only about to
/// get its slot.
pub(super) fn push_step(out: &mut Vec<u8>, batch: &ReadBatch<'_>, asking: bool) {
    // What stands before and after the key is the same for all keys.
    let (mut before, mut after) = (Vec::with_capacity(64), Vec::with_capacity(64));
    if asking {
        push_command(&mut before, [&b"ASKING"[..]]);
    }
    let more_words = match batch.read {
        KeyedRead::HashAll | KeyedRead::Set | KeyedRead::Text => 0,
        KeyedRead::HashFields(fields) => fields.len(),
        KeyedRead::ListHead(_) | KeyedRead::List(_) => 2,
        KeyedRead::SortedSet { .. } => 3,
        KeyedRead::Members { members, .. } => members.len(),
        KeyedRead::Position { of: PositionIn::List, .. } => 3,
        KeyedRead::Position { of: PositionIn::SortedSet { .. }, .. } => 1,
    };
    push_header(&mut before, b'*', 2 + more_words);
    push_word(&mut before, command(batch.read).as_bytes());
    after.extend_from_slice(b"\r\n");
    match batch.read {
        KeyedRead::HashAll | KeyedRead::Set | KeyedRead::Text => {}
        KeyedRead::HashFields(fields) => fields.iter().for_each(|field| push_word(&mut after, field.as_bytes())),
        KeyedRead::ListHead(count) | KeyedRead::List(count) => push_head(&mut after, count),
        KeyedRead::SortedSet { count, .. } => {
            push_head(&mut after, count);
            push_word(&mut after, b"WITHSCORES");
        }
        KeyedRead::Members { members, .. } => members.iter().for_each(|member| push_word(&mut after, member)),
        KeyedRead::Position { of, element } => {
            push_word(&mut after, element);
            if of == PositionIn::List {
                push_word(&mut after, b"MAXLEN");
                push_word(&mut after, itoa::Buffer::new().format(limits::ELEMENTS).as_bytes());
            }
        }
    }
    match batch.keys {
        Keys::Numbered { prefix, ids } => {
            let mut digits = itoa::Buffer::new();
            out.reserve(ids.len() * (before.len() + after.len() + prefix.len() + 16));
            for id in ids {
                let id = digits.format(*id);
                out.extend_from_slice(&before);
                push_header(out, b'$', prefix.len() + 1 + id.len());
                out.extend_from_slice(prefix.as_bytes());
                out.push(b':');
                out.extend_from_slice(id.as_bytes());
                out.extend_from_slice(&after);
            }
        }
        Keys::Written(keys) => {
            out.reserve(batch.keys.len() * (before.len() + after.len() + 6) + keys.byte_count());
            for key in keys.iter() {
                out.extend_from_slice(&before);
                push_header(out, b'$', key.len());
                out.extend_from_slice(key);
                out.extend_from_slice(&after);
            }
        }
    }
}

/// The first and the last position of a range of this length from the beginning.
fn push_head(out: &mut Vec<u8>, count: usize) {
    push_word(out, b"0");
    push_word(out, itoa::Buffer::new().format(count.max(1) - 1).as_bytes());
}

fn push_header(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn push_word(out: &mut Vec<u8>, word: &[u8]) {
    push_header(out, b'$', word.len());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// What the reply to a command may be, and how many items it may have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expect {
    /// Of something that is read whole, so the server decides how much there is. More than this number is too large.
    Whole(usize, TooLarge),
    AtMost(usize),
    /// A list of at most this number of ids.
    Ids(usize),
    Exactly(usize),
    /// At most this number of members, each with its score: in turn, or in pairs.
    Scored(usize),
    /// One string, or nothing.
    One,
    /// One number, or nothing.
    Number,
    /// A status line, such as the answer to ASKING.
    Status,
}

impl Expect {
    pub(super) fn of(read: KeyedRead<'_>) -> Expect {
        match read {
            KeyedRead::HashAll => Expect::Whole(2 * limits::ELEMENTS, TooLarge::Hash),
            KeyedRead::Set => Expect::Whole(limits::ELEMENTS, TooLarge::Set),
            KeyedRead::HashFields(fields) => Expect::Exactly(fields.len()),
            KeyedRead::ListHead(count) => Expect::Ids(count),
            KeyedRead::List(count) => Expect::AtMost(count),
            KeyedRead::SortedSet { count, .. } => Expect::Scored(count),
            KeyedRead::Text => Expect::One,
            KeyedRead::Members { members, .. } => Expect::Exactly(members.len()),
            KeyedRead::Position { .. } => Expect::Number,
        }
    }

    fn allows(self, count: usize) -> bool {
        match self {
            Expect::Whole(most, _) | Expect::AtMost(most) | Expect::Ids(most) => count <= most,
            Expect::Exactly(wanted) => count == wanted,
            Expect::Scored(most) => count <= 2 * most,
            Expect::One | Expect::Number | Expect::Status => false,
        }
    }
}

/// What has become of the reply at hand.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyProgress {
    /// More bytes are needed.
    Incomplete,
    Done,
    /// The server said something that is no reply.
    Pushed,
    /// The server answered with an error line.
    Refused(String),
    /// The reply is larger than is read. All of it was passed over.
    PassedOver(TooLarge),
    /// It is so large that it is not even passed over: the connection has to be given up.
    Endless(TooLarge),
}

/// What has become of one item of a list.
enum Item {
    Whole,
    /// It is not all there.
    Partial,
    TooLarge(TooLarge),
}

/// Bytes that are no reply that was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// What the server has sent and we have not yet read.
#[derive(Default)]
pub(super) struct Incoming {
    pub(super) bytes: Vec<u8>,
    at: usize,
    /// Items that are still to come of the list at hand.
    left: Option<usize>,
    /// Whether the items at hand come in pairs, each with a line of its own before it.
    paired: bool,
    /// Set while the reply at hand is passed over.
    passing: Option<Passing>,
    /// Bytes of the step at hand that were passed over.
    passed_over: usize,
}

/// A reply that is passed over.
struct Passing {
    why: TooLarge,
    /// Bytes that are still to come of the string at hand, and whether its end is.
    bytes: usize,
    ends: bool,
}

impl Incoming {
    /// Reads on in the reply at hand; items go into `into`.
    pub(super) fn reply(&mut self, expect: Expect, into: &mut Replies) -> Result<ReplyProgress, Malformed> {
        if self.left.is_none() {
            let Some((kind, line)) = self.line()? else { return Ok(ReplyProgress::Incomplete) };
            if matches!((expect, kind), (Expect::One, b'$' | b'_') | (Expect::Number, b':' | b'$' | b'_')) {
                self.left = Some(1);
                return self.items(expect, into);
            }
            let count = match kind {
                b'-' => {
                    let message = String::from_utf8_lossy(line).into_owned();
                    self.consume_line();
                    return Ok(ReplyProgress::Refused(message));
                }
                b'+' if matches!(expect, Expect::Status) => {
                    self.consume_line();
                    return Ok(ReplyProgress::Done);
                }
                b'*' | b'~' => number(line)?,
                b'%' => number(line)?.checked_mul(2).ok_or(Malformed("a map too large"))?,
                b'>' => {
                    // The server pushed it unasked: the reply is still to come.
                    let Some(end) = flat::skip(&self.bytes[self.at..])? else { return Ok(ReplyProgress::Incomplete) };
                    self.at += end;
                    return Ok(ReplyProgress::Pushed);
                }
                _ => return Err(Malformed("a different kind of reply than requested")),
            };
            // Where the first item begins.
            let behind = self.at + line.len() + 3;
            if !expect.allows(count) {
                let Expect::Whole(_, why) = expect else {
                    return Err(Malformed("a different number of items than requested"));
                };
                if count.saturating_mul(ITEM_BYTES_MIN) > PASSED_OVER_BYTES_MAX {
                    return Ok(ReplyProgress::Endless(why));
                }
                self.pass_over(why);
            }
            if matches!(expect, Expect::Scored(_)) {
                // The newer protocol has pairs. Which it is shows in the first item.
                match self.bytes.get(behind) {
                    None if count > 0 => return Ok(ReplyProgress::Incomplete),
                    Some(b'*') if count > 0 => self.paired = true,
                    _ if !count.is_multiple_of(2) => return Err(Malformed("a member without a score")),
                    _ => {}
                }
                if self.paired && !expect.allows(2 * count) {
                    return Err(Malformed("a different number of items than requested"));
                }
            }
            self.consume_line();
            self.left = Some(if self.paired { 2 * count } else { count });
        }
        self.items(expect, into)
    }

    /// Reads on in the items of the reply at hand.
    fn items(&mut self, expect: Expect, into: &mut Replies) -> Result<ReplyProgress, Malformed> {
        let ids = matches!(expect, Expect::Ids(_));
        while let Some(left) = self.left.filter(|left| *left > 0 && self.passing.is_none()) {
            let begun = self.at;
            if self.paired && left.is_multiple_of(2) && !self.open_pair()? {
                return Ok(ReplyProgress::Incomplete);
            }
            match self.item(ids, into)? {
                Item::Whole => self.left = Some(left - 1),
                Item::Partial => {
                    self.at = begun;
                    return Ok(ReplyProgress::Incomplete);
                }
                Item::TooLarge(why) => {
                    self.at = begun;
                    self.pass_over(why);
                }
            }
        }
        if self.passing.is_some() {
            return self.pass_on();
        }
        (self.left, self.paired) = (None, false);
        into.end_reply();
        Ok(ReplyProgress::Done)
    }

    /// Passes the line before a pair; false when it is not all there.
    fn open_pair(&mut self) -> Result<bool, Malformed> {
        match self.line()? {
            None => Ok(false),
            Some((b'*', b"2")) => {
                self.consume_line();
                Ok(true)
            }
            Some(_) => Err(Malformed("a member without a score")),
        }
    }

    fn pass_over(&mut self, why: TooLarge) {
        self.passing = Some(Passing { why, bytes: 0, ends: false });
    }

    /// Why the reply at hand is passed over, if it is.
    pub(super) fn too_large(&self) -> Option<TooLarge> {
        self.passing.as_ref().map(|passing| passing.why)
    }

    /// Passes over what has come of a reply that is too large.
    fn pass_on(&mut self) -> Result<ReplyProgress, Malformed> {
        while let Some(passing) = &mut self.passing {
            let there = (self.bytes.len() - self.at).min(passing.bytes);
            self.at += there;
            passing.bytes -= there;
            if passing.bytes > 0 {
                return Ok(ReplyProgress::Incomplete);
            }
            if passing.ends {
                match self.bytes.get(self.at..self.at + 2) {
                    None => return Ok(ReplyProgress::Incomplete),
                    Some(b"\r\n") => self.at += 2,
                    Some(_) => return Err(Malformed("an unterminated string")),
                }
                passing.ends = false;
            }
            let Some(left) = self.left.filter(|left| *left > 0) else {
                let why = passing.why;
                (self.left, self.passing, self.paired) = (None, None, false);
                return Ok(ReplyProgress::PassedOver(why));
            };
            let why = passing.why;
            let begun = self.at;
            if self.paired && left.is_multiple_of(2) && !self.open_pair()? {
                return Ok(ReplyProgress::Incomplete);
            }
            let Some((kind, line)) = self.line()? else {
                self.at = begun;
                return Ok(ReplyProgress::Incomplete);
            };
            let head = line.len() + 3;
            let (bytes, ends) = match kind {
                b'$' if line == b"-1" => (0, false),
                b'_' | b':' | b',' | b'#' => (0, false),
                b'$' => (number(line)?, true),
                _ => return Err(Malformed("an item that is not a string")),
            };
            self.passed_over = self.passed_over.saturating_add(head + bytes);
            if self.passed_over > PASSED_OVER_BYTES_MAX {
                return Ok(ReplyProgress::Endless(why));
            }
            self.at += head;
            self.left = Some(left - 1);
            self.passing = Some(Passing { why, bytes, ends });
        }
        Ok(ReplyProgress::Incomplete)
    }

    /// The next reply is one of another step.
    pub(super) fn next_step(&mut self) {
        self.passed_over = 0;
    }

    /// Passes over what was pushed while no reply is awaited; false when it is not all there.
    pub(super) fn pushed(&mut self) -> Result<bool, Malformed> {
        match self.reply(Expect::Exactly(0), &mut Replies::default())? {
            ReplyProgress::Pushed => Ok(true),
            ReplyProgress::Incomplete => Ok(false),
            ReplyProgress::Done
            | ReplyProgress::Refused(_)
            | ReplyProgress::PassedOver(_)
            | ReplyProgress::Endless(_) => Err(Malformed("an unsolicited reply")),
        }
    }

    /// Whether nothing is left unread.
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Gives back the room of what has been read.
    pub(super) fn compact(&mut self) {
        if self.is_empty() {
            self.bytes.clear();
            self.at = 0;
        } else if self.at > 64 << 10 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
    }

    /// Reads one item of a list.
    fn item(&mut self, ids: bool, into: &mut Replies) -> Result<Item, Malformed> {
        // Almost every item is a string of less than a hundred bytes that has come whole.
        let rest = &self.bytes[self.at..];
        let (head, len) = match *rest {
            [b'$', a @ b'0'..=b'9', b'\r', b'\n', ..] => (4, usize::from(a - b'0')),
            [b'$', a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', b'\n', ..] => {
                (5, usize::from((a - b'0') * 10 + (b - b'0')))
            }
            _ => return self.rare_item(ids, into),
        };
        match rest.get(head..head + len + 2) {
            Some([text @ .., b'\r', b'\n']) if into.byte_count() + len <= limits::BATCH_BYTES => {
                match ids {
                    true => into.push_element(text),
                    false => into.push_item(Some(text)),
                }
                self.at += head + len + 2;
                Ok(Item::Whole)
            }
            _ => self.rare_item(ids, into),
        }
    }

    /// An item of any kind and length, or what is wrong with it.
    fn rare_item(&mut self, ids: bool, into: &mut Replies) -> Result<Item, Malformed> {
        let push = |into: &mut Replies, item: Option<&[u8]>| match (ids, item) {
            (true, Some(element)) => into.push_element(element),
            (true, None) => into.skip_element(),
            (false, item) => into.push_item(item),
        };
        let room = limits::BATCH_BYTES.saturating_sub(into.byte_count());
        let Some((kind, line)) = self.line()? else { return Ok(Item::Partial) };
        let head = line.len() + 3;
        match kind {
            b'$' if line == b"-1" => push(into, None),
            b'_' if line.is_empty() => push(into, None),
            b':' | b',' | b'#' if line.len() > room => return Ok(Item::TooLarge(TooLarge::Batch)),
            b':' | b',' | b'#' => push(into, Some(line)),
            b'$' => {
                let len = number(line)?;
                if len > limits::VALUE_BYTES {
                    return Ok(Item::TooLarge(TooLarge::Value));
                }
                if len > room {
                    return Ok(Item::TooLarge(TooLarge::Batch));
                }
                let start = self.at + head;
                let Some(end) = self.bytes.get(start + len..start + len + 2) else { return Ok(Item::Partial) };
                if end != b"\r\n" {
                    return Err(Malformed("an unterminated string"));
                }
                push(into, Some(&self.bytes[start..start + len]));
                self.at = start + len + 2;
                return Ok(Item::Whole);
            }
            _ => return Err(Malformed("an item that is not a string")),
        }
        self.at += head;
        Ok(Item::Whole)
    }

    /// The kind and text of the line at hand, if all of it is there.
    fn line(&self) -> Result<Option<(u8, &[u8])>, Malformed> {
        let rest = &self.bytes[self.at..];
        let Some((&kind, text)) = rest.split_first() else { return Ok(None) };
        let window = &text[..text.len().min(LINE_BYTES_MAX)];
        match line_end(window) {
            Some(end) => Ok(Some((kind, &text[..end]))),
            None if window.len() == LINE_BYTES_MAX => Err(Malformed("an unterminated line")),
            None => Ok(None),
        }
    }

    fn consume_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += line_end(rest).map_or(rest.len(), |end| end + 2);
    }
}

/// Where the first line of these bytes ends.
fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|pair| pair == b"\r\n")
}

fn number(line: &[u8]) -> Result<usize, Malformed> {
    // Ten digits hold every length that we accept, and no sign or space is one of them.
    let good = !line.is_empty() && line.len() <= 10 && line.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(line).ok().filter(|_| good);
    text.and_then(|text| text.parse().ok()).ok_or(Malformed("a length that is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER_5: Keys<'_> = Keys::Numbered { prefix: "user", ids: &[5] };
    const LIST: &[u8] = b"*3\r\n$2\r\nab\r\n$-1\r\n$0\r\n\r\n";

    #[test]
    fn a_reply_may_come_in_any_pieces() {
        for cut in 0..LIST.len() {
            let (mut incoming, mut replies) = (Incoming::default(), Replies::default());
            incoming.bytes.extend_from_slice(&LIST[..cut]);
            assert_eq!(incoming.reply(Expect::AtMost(3), &mut replies), Ok(ReplyProgress::Incomplete), "cut at {cut}");
            incoming.bytes.extend_from_slice(&LIST[cut..]);
            assert_eq!(incoming.reply(Expect::AtMost(3), &mut replies), Ok(ReplyProgress::Done), "cut at {cut}");
            assert!(incoming.is_empty());
            let items: Vec<Option<&[u8]>> = replies.items(0).collect();
            assert_eq!(items, [Some(&b"ab"[..]), None, Some(b"")]);
        }
    }

    #[test]
    fn what_is_pushed_between_replies_is_passed_over() {
        let (mut incoming, mut replies) = (Incoming::default(), Replies::default());
        let pushed = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n";
        for cut in 0..pushed.len() {
            incoming.bytes.extend_from_slice(&pushed[..cut]);
            assert_eq!(incoming.reply(Expect::AtMost(3), &mut replies), Ok(ReplyProgress::Incomplete), "cut at {cut}");
            incoming.bytes.extend_from_slice(&pushed[cut..]);
            assert_eq!(incoming.reply(Expect::AtMost(3), &mut replies), Ok(ReplyProgress::Pushed), "cut at {cut}");
        }
        incoming.bytes.extend_from_slice(b"%1\r\n$1\r\na\r\n_\r\n");
        assert_eq!(incoming.reply(Expect::AtMost(3), &mut replies), Ok(ReplyProgress::Done));
        assert_eq!(replies.items(0).collect::<Vec<_>>(), [Some(&b"a"[..]), None]);
        let endless = [&b">1\r\n$900000\r\n"[..], &[b'x'; 20]].concat();
        incoming.bytes.extend_from_slice(&endless.repeat(100_000));
        assert!(incoming.reply(Expect::AtMost(3), &mut replies).is_err());
    }

    #[test]
    fn members_come_with_their_scores_in_turn_or_in_pairs_and_in_any_pieces() {
        let flat = &b"*4\r\n$1\r\na\r\n$3\r\n1.5\r\n$1\r\nb\r\n$1\r\n2\r\n"[..];
        let pairs = b"*2\r\n*2\r\n$1\r\na\r\n,1.5\r\n*2\r\n$1\r\nb\r\n,2\r\n";
        for bytes in [flat, pairs] {
            for cut in 0..bytes.len() {
                let (mut incoming, mut replies) = (Incoming::default(), Replies::default());
                incoming.bytes.extend_from_slice(&bytes[..cut]);
                assert_eq!(incoming.reply(Expect::Scored(2), &mut replies), Ok(ReplyProgress::Incomplete), "{cut}");
                incoming.bytes.extend_from_slice(&bytes[cut..]);
                assert_eq!(incoming.reply(Expect::Scored(2), &mut replies), Ok(ReplyProgress::Done), "{cut}");
                let items: Vec<&[u8]> = replies.items(0).flatten().collect();
                assert_eq!((items, incoming.is_empty()), (vec![&b"a"[..], b"1.5", b"b", b"2"], true));
            }
            let mut incoming = Incoming { bytes: bytes.to_vec(), ..Incoming::default() };
            assert!(incoming.reply(Expect::Scored(1), &mut Replies::default()).is_err());
        }
        for bad in [&b"*1\r\n$1\r\na\r\n"[..], b"*1\r\n*2\r\n*2\r\n", b"*2\r\n*2\r\n$1\r\na\r\n:1\r\n$1\r\n"] {
            let mut incoming = Incoming { bytes: bad.to_vec(), ..Incoming::default() };
            assert!(incoming.reply(Expect::Scored(2), &mut Replies::default()).is_err(), "{bad:?}");
        }
        // A pair that is too large is passed over, and the next reply is read.
        let long = [b"*1\r\n*2\r\n$1048577\r\n", &[b'x'; 1_048_577][..], b"\r\n,1\r\n", pairs].concat();
        let (mut incoming, mut replies) = (Incoming::default(), Replies::default());
        for piece in long.chunks(7_777) {
            incoming.bytes.extend_from_slice(piece);
            while let Ok(ReplyProgress::Done | ReplyProgress::PassedOver(TooLarge::Value)) =
                incoming.reply(Expect::Scored(2), &mut replies)
            {}
        }
        assert_eq!((replies.items(0).len(), incoming.is_empty()), (4, true));
    }

    #[test]
    fn a_position_is_a_number_or_nothing() {
        let list = KeyedRead::Position { of: PositionIn::List, element: b"9" };
        let down = KeyedRead::Position { of: PositionIn::SortedSet { descending: true }, element: b"9" };
        for (read, words) in [(list, "5 LPOS user:5 9 MAXLEN 100000"), (down, "3 ZREVRANK user:5 9")] {
            let mut out = Vec::new();
            push_step(&mut out, &ReadBatch { read, keys: USER_5 }, false);
            let text = String::from_utf8_lossy(&out).into_owned();
            let lines = text.split("\r\n").filter(|line| !line.starts_with('$') && !line.is_empty());
            assert_eq!(lines.collect::<Vec<_>>().join(" ").trim_start_matches('*'), words);
        }
        for (reply, position) in [(&b":83\r\n"[..], Some(&b"83"[..])), (b"$-1\r\n", None), (b"_\r\n", None)] {
            for cut in 0..reply.len() {
                let (mut incoming, mut replies) = (Incoming::default(), Replies::default());
                incoming.bytes.extend_from_slice(&reply[..cut]);
                assert_eq!(incoming.reply(Expect::of(list), &mut replies), Ok(ReplyProgress::Incomplete), "{cut}");
                incoming.bytes.extend_from_slice(&reply[cut..]);
                assert_eq!(incoming.reply(Expect::of(list), &mut replies), Ok(ReplyProgress::Done), "{cut}");
                assert_eq!(replies.items(0).collect::<Vec<_>>(), [position]);
            }
        }
        for bad in [&b"*1\r\n:1\r\n"[..], b"+OK\r\n", b"#t\r\n"] {
            let mut incoming = Incoming { bytes: bad.to_vec(), ..Incoming::default() };
            assert!(incoming.reply(Expect::of(list), &mut Replies::default()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn whether_members_are_there_is_told_by_ints_scores_or_truth_values() {
        let mut members = crate::store::KeyBuffer::default();
        ["a", "b", "c"].iter().for_each(|member| members.push(|out| out.extend_from_slice(member.as_bytes())));
        let Keys::Written(members) = members.keys() else { unreachable!("they were written") };
        for (of, reply) in [
            (MemberOf::Set, &b"*3\r\n:1\r\n:0\r\n:1\r\n"[..]),
            (MemberOf::SortedSet, b"*3\r\n$1\r\n0\r\n$-1\r\n$4\r\n-inf\r\n"),
            (MemberOf::SortedSet, b"*3\r\n,0\r\n_\r\n,-inf\r\n"),
            (MemberOf::Filter, b"*3\r\n:1\r\n:0\r\n:1\r\n"),
            (MemberOf::Filter, b"*3\r\n#t\r\n#f\r\n#t\r\n"),
        ] {
            let read = KeyedRead::Members { of, members };
            for cut in 0..reply.len() {
                let (mut incoming, mut replies) = (Incoming::default(), Replies::default());
                incoming.bytes.extend_from_slice(&reply[..cut]);
                assert_eq!(incoming.reply(Expect::of(read), &mut replies), Ok(ReplyProgress::Incomplete), "{cut}");
                incoming.bytes.extend_from_slice(&reply[cut..]);
                assert_eq!(incoming.reply(Expect::of(read), &mut replies), Ok(ReplyProgress::Done), "{cut}");
                assert_eq!(replies.items(0).map(|item| of.is_there(item)).collect::<Vec<_>>(), [true, false, true]);
            }
            let mut incoming = Incoming { bytes: b"*2\r\n:1\r\n:0\r\n".to_vec(), ..Incoming::default() };
            assert!(incoming.reply(Expect::of(read), &mut Replies::default()).is_err());
        }
        let mut out = Vec::new();
        push_step(
            &mut out,
            &ReadBatch { read: KeyedRead::Members { of: MemberOf::Filter, members }, keys: USER_5 },
            false,
        );
        assert_eq!(out, b"*5\r\n$10\r\nBF.MEXISTS\r\n$6\r\nuser:5\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
    }

    #[test]
    fn one_value_is_a_string_or_nothing() {
        let read = |bytes: &[u8]| {
            let (mut incoming, mut replies) = (Incoming::default(), Replies::default());
            incoming.bytes.extend_from_slice(bytes);
            let progress = incoming.reply(Expect::One, &mut replies);
            (progress, replies.items(0).next().map(|item| item.map(<[u8]>::to_vec)))
        };
        assert_eq!(read(b"$3\r\na\r\n\r\n"), (Ok(ReplyProgress::Done), Some(Some(b"a\r\n".to_vec()))));
        for nothing in [&b"$-1\r\n"[..], b"_\r\n"] {
            assert_eq!(read(nothing), (Ok(ReplyProgress::Done), Some(None)));
        }
        for bad in [&b"*1\r\n$1\r\na\r\n"[..], b"+OK\r\n", b":1\r\n"] {
            let mut incoming = Incoming { bytes: bad.to_vec(), ..Incoming::default() };
            assert!(incoming.reply(Expect::One, &mut Replies::default()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_was_not_asked_for_is_malformed() {
        let deep = b"*1\r\n".repeat(1_000_000);
        let bad: [&[u8]; 9] = [
            b"*99999999999999999999\r\n",
            b"*-1\r\n",
            b"$3\r\nabc\r\n",
            b"+OK\r\n",
            b":1\r\n",
            b"*1\r\n*1\r\n",
            b"*1\r\n$1\r\nabc",
            b"HTTP/1.1 200 OK\r\n",
            &deep,
        ];
        for bytes in bad {
            let (mut incoming, mut replies) = (Incoming::default(), Replies::default());
            incoming.bytes.extend_from_slice(bytes);
            assert!(incoming.reply(Expect::AtMost(3), &mut replies).is_err(), "{:?}", &bytes[..bytes.len().min(20)]);
        }
        let mut endless = Incoming { bytes: vec![b'-'; 10_000], ..Incoming::default() };
        assert!(endless.reply(Expect::AtMost(3), &mut Replies::default()).is_err());
    }

    #[test]
    fn what_is_too_large_is_passed_over_as_it_comes_and_the_next_reply_is_read() {
        let value = [b"*3\r\n$1\r\na\r\n$1048577\r\n", &[b'x'; 1_048_577][..], b"\r\n:5\r\n"].concat();
        let fields = [&b"%3\r\n"[..], &b"$1\r\nf\r\n$-1\r\n".repeat(3)].concat();
        for (bytes, why) in [(value, TooLarge::Value), (fields, TooLarge::Hash)] {
            for piece in [1, 7, 60_000] {
                let (mut incoming, mut replies) = (Incoming::default(), Replies::default());
                let (mut passed_over, mut most) = (None, 0);
                for piece in bytes.chunks(piece) {
                    assert_eq!(passed_over, None);
                    incoming.bytes.extend_from_slice(piece);
                    match incoming.reply(Expect::Whole(4, TooLarge::Hash), &mut replies) {
                        Ok(ReplyProgress::Incomplete) => {}
                        Ok(ReplyProgress::PassedOver(why)) => passed_over = Some(why),
                        other => panic!("{other:?}"),
                    }
                    incoming.compact();
                    most = most.max(incoming.bytes.len());
                }
                assert_eq!((passed_over, incoming.is_empty()), (Some(why), true));
                assert!(most < 200_000, "{most} bytes were kept");
                incoming.bytes.extend_from_slice(LIST);
                assert_eq!(incoming.reply(Expect::AtMost(4), &mut Replies::default()), Ok(ReplyProgress::Done));
            }
        }
    }

    #[test]
    fn what_is_endless_is_known_before_it_has_come() {
        for (bytes, why) in [
            (&b"*1\r\n$536870912\r\n"[..], TooLarge::Value),
            (b"*1\r\n$9999999999\r\n", TooLarge::Value),
            (b"*9999999999\r\n", TooLarge::Hash),
            (b"%100000000\r\n", TooLarge::Hash),
        ] {
            let mut incoming = Incoming { bytes: bytes.to_vec(), ..Incoming::default() };
            let expect = Expect::Whole(3, TooLarge::Hash);
            assert_eq!(incoming.reply(expect, &mut Replies::default()), Ok(ReplyProgress::Endless(why)));
        }
        // Many that are a little too large are as bad as one.
        let mut incoming = Incoming::default();
        let reply = [b"*1\r\n$3000000\r\n", &[b'x'; 3_000_000][..], b"\r\n"].concat();
        let mut answers = (0..7).map(|_| {
            incoming.bytes.extend_from_slice(&reply);
            let progress = incoming.reply(Expect::AtMost(3), &mut Replies::default());
            incoming.compact();
            progress
        });
        assert!(answers.by_ref().take(5).all(|progress| progress == Ok(ReplyProgress::PassedOver(TooLarge::Value))));
        assert_eq!(answers.next(), Some(Ok(ReplyProgress::Endless(TooLarge::Value))));
    }

    #[test]
    fn a_step_is_one_command_an_id() {
        let mut out = Vec::new();
        let fields: [std::sync::Arc<str>; 2] = ["a".into(), "bc".into()];
        push_step(&mut out, &ReadBatch { read: KeyedRead::HashFields(&fields), keys: USER_5 }, true);
        assert_eq!(out, b"*1\r\n$6\r\nASKING\r\n*4\r\n$5\r\nHMGET\r\n$6\r\nuser:5\r\n$1\r\na\r\n$2\r\nbc\r\n");
        out.clear();
        let keys = Keys::Numbered { prefix: "follow", ids: &[7, -1] };
        push_step(&mut out, &ReadBatch { read: KeyedRead::ListHead(10), keys }, false);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "*4\r\n$6\r\nLRANGE\r\n$8\r\nfollow:7\r\n$1\r\n0\r\n$1\r\n9\r\n\
             *4\r\n$6\r\nLRANGE\r\n$9\r\nfollow:-1\r\n$1\r\n0\r\n$1\r\n9\r\n"
        );
    }
}
