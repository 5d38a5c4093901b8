//! What a data file holds, by key, and how it answers reads: as a Redis server with the same data would.

use crate::base64;
use crate::store::closing;
use crate::store::keyed::limits;
use crate::store::{KeyedRead, MemberOf, PositionIn, ReadBatch, Replies, StoreError, TooLarge};
use hashbrown::{HashMap, HashSet};
use rankd_plan::json::{Fault, Kind, Number, Reader};
use std::fmt;

/// All keys and what they hold.
#[derive(Debug, Default, PartialEq)]
pub struct Data {
    entries: HashMap<String, Held>,
    is_closed: bool,
}

/// What a key holds.
#[derive(Debug, PartialEq)]
pub enum Held {
    Hash(Vec<(String, String)>),
    List(Vec<String>),
    /// Each member once.
    Set(Vec<String>),
    /// Each member once: from the lowest score on, and those of one score by their bytes.
    SortedSet(Vec<(String, f64)>),
    Text(Vec<u8>),
}

/// The fields of a line, one of which it has beside its key.
const KINDS: &str = "hash, list, set, zset, string or base64";

/// A line of a data file that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct BadLine {
    pub line: usize,
    pub message: String,
}

impl std::error::Error for BadLine {}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl Data {
    /// Reads NDJSON, a key a line: `{"key":"user:1","hash":{…}}`, `{"key":"follow:1","list":[…]}`, `{"key":…,"set":[…]}`,
    /// `{"key":…,"zset":[["member",1.5]]}`, `{"key":…,"string":"…"}` or `{"key":…,"base64":"…"}`; and at the end a closing line,
    /// which is checked if there is one.
    pub fn parse(text: &str) -> Result<Data, BadLine> {
        let checked = closing::check(text)?;
        let mut data = Data { is_closed: checked.is_some(), ..Data::default() };
        let text = checked.unwrap_or(text);
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let (key, entry) = parse_line(line, at + 1)?;
            data.entries.insert(key, entry);
        }
        Ok(data)
    }

    /// Whether a closing line says that this is all of it, as it was written.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Every key and what it holds, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Held)> {
        self.entries.iter().map(|(key, held)| (key.as_str(), held))
    }
}

fn parse_line(line: &str, number: usize) -> Result<(String, Held), BadLine> {
    let bad = |message: String| BadLine { line: number, message };
    let fault = |fault: Fault| bad(fault.to_string());
    let mut reader = Reader::new(line, 4);
    let (mut key, mut entry) = (None, None);
    let mut hold = |held: Held| match entry.replace(held) {
        Some(_) => Err(bad(format!("a line has key, and one of {KINDS}"))),
        None => Ok(()),
    };
    let mut fields = reader.open_object().map_err(fault)?;
    while let Some((name, repeated)) = reader.field(&mut fields).map_err(fault)? {
        match &*name {
            _ if repeated => return Err(bad(format!("the field {name:?} appears twice"))),
            "key" => key = Some(reader.string().map_err(fault)?.into_owned()),
            "hash" => hold(Held::Hash(read_hash(&mut reader).map_err(fault)?))?,
            "list" => hold(Held::List(read_list(&mut reader).map_err(fault)?))?,
            "set" => {
                let mut members = read_list(&mut reader).map_err(fault)?;
                members.sort_unstable();
                members.dedup();
                hold(Held::Set(members))?;
            }
            "zset" => hold(Held::SortedSet(read_sorted_set(&mut reader).map_err(fault)?))?,
            "string" => {
                let text = read_scalar(&mut reader).map_err(fault)?;
                hold(Held::Text(text.unwrap_or_default().into_bytes()))?;
            }
            "base64" => {
                let text = reader.string().map_err(fault)?;
                let bytes = base64::decode(&text).ok_or_else(|| bad("this is not base64 as RFC 4648 has it".into()))?;
                hold(Held::Text(bytes))?;
            }
            "lines" | "sha256" => {
                return Err(bad("a closing line belongs at the end of a file, and only once".into()));
            }
            _ => return Err(bad(format!("there is no field {name:?}; a line has key, and one of {KINDS}"))),
        }
    }
    reader.end().map_err(fault)?;
    match (key, entry) {
        (Some(key), Some(entry)) => Ok((key, entry)),
        _ => Err(bad(format!("a line has key, and one of {KINDS}"))),
    }
}

fn read_hash(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>, Fault> {
    let mut hash = Vec::new();
    let mut fields = reader.open_object()?;
    while let Some((name, _)) = reader.field(&mut fields)? {
        hash.extend(read_scalar(reader)?.map(|value| (name.into_owned(), value)));
    }
    Ok(hash)
}

fn read_list(reader: &mut Reader<'_>) -> Result<Vec<String>, Fault> {
    let mut list = Vec::new();
    let mut items = reader.open_array()?;
    while reader.item(&mut items)? {
        list.extend(read_scalar(reader)?);
    }
    Ok(list)
}

/// Pairs of a member and its score. Of a member that is there twice, the last score counts, as in a server.
fn read_sorted_set(reader: &mut Reader<'_>) -> Result<Vec<(String, f64)>, Fault> {
    let mut scores: HashMap<String, f64> = HashMap::new();
    let mut items = reader.open_array()?;
    while reader.item(&mut items)? {
        let pair = |at| Fault { message: "a zset has pairs of a member and a number", at };
        let at = reader.at();
        let mut of_pair = reader.open_array()?;
        let member = if reader.item(&mut of_pair)? { read_scalar(reader)? } else { None };
        let score = match reader.item(&mut of_pair)? {
            true => match reader.number()? {
                Number::Int(value) => Some(value as f64),
                Number::Float(value) => Some(value),
                Number::OutOfRange => None,
            },
            false => None,
        };
        let (Some(member), Some(score), false) = (member, score, reader.item(&mut of_pair)?) else {
            return Err(pair(at));
        };
        // There is no negative zero among scores.
        scores.insert(member, score + 0.0);
    }
    let mut sorted: Vec<(String, f64)> = scores.into_iter().collect();
    sorted.sort_unstable_by(|(a, x), (b, y)| x.total_cmp(y).then_with(|| a.cmp(b)));
    Ok(sorted)
}

/// A value as the store keeps it: text. Null is no value.
fn read_scalar(reader: &mut Reader<'_>) -> Result<Option<String>, Fault> {
    Ok(match reader.peek()? {
        Kind::Null => {
            reader.null()?;
            None
        }
        Kind::Bool => Some(reader.bool()?.to_string()),
        Kind::Number => Some(match reader.number()? {
            Number::Int(value) => value.to_string(),
            Number::Float(value) => value.to_string(),
            Number::OutOfRange => {
                return Err(Fault { message: "a number does not fit 64 bits", at: reader.at() });
            }
        }),
        _ => Some(reader.string()?.into_owned()),
    })
}

impl Data {
    /// What a server with the same data would answer, with the same limits.
    pub(super) fn answer(&self, batch: &ReadBatch<'_>) -> Result<Replies, StoreError> {
        let mut replies = Replies::default();
        let mut key = Vec::with_capacity(64);
        for at in 0..batch.keys.len() {
            batch.keys.write(at, &mut key);
            // Keys of a data file are text.
            let held = std::str::from_utf8(&key).ok().and_then(|key| self.entries.get(key));
            // In a server, a collection without elements is a key that is not there.
            match held.filter(|held| !held.is_empty()) {
                Some(held) => {
                    let too_large = |what| StoreError::TooLarge { key: batch.keys.show(at), what };
                    held.answer(batch.read, &mut replies).map_err(too_large)?;
                }
                None => {
                    match batch.read {
                        KeyedRead::HashFields(fields) => fields.iter().for_each(|_| replies.push_item(None)),
                        KeyedRead::Text | KeyedRead::Position { .. } => replies.push_item(None),
                        KeyedRead::Members { of, members } => {
                            members.iter().for_each(|_| push_member(&mut replies, of, None));
                        }
                        KeyedRead::HashAll
                        | KeyedRead::ListHead(_)
                        | KeyedRead::List(_)
                        | KeyedRead::Set
                        | KeyedRead::SortedSet { .. } => {}
                    }
                    replies.end_reply();
                }
            }
        }
        Ok(replies)
    }
}

impl Held {
    fn is_empty(&self) -> bool {
        match self {
            Held::Hash(fields) => fields.is_empty(),
            Held::List(elements) => elements.is_empty(),
            Held::Set(members) => members.is_empty(),
            Held::SortedSet(members) => members.is_empty(),
            Held::Text(_) => false,
        }
    }

    fn answer(&self, read: KeyedRead<'_>, replies: &mut Replies) -> Result<(), TooLarge> {
        let whole = |count: usize, what| if count > limits::ELEMENTS { Err(what) } else { Ok(()) };
        match (self, read) {
            (Held::Hash(hash), KeyedRead::HashAll) => {
                whole(hash.len(), TooLarge::Hash)?;
                for (field, value) in hash {
                    push(replies, field.as_bytes())?;
                    push(replies, value.as_bytes())?;
                }
            }
            (Held::Hash(hash), KeyedRead::HashFields(fields)) => {
                for field in fields {
                    // Of a field that is there twice, the last one counts, as in a server.
                    match hash.iter().rev().find(|(name, _)| **name == **field) {
                        Some((_, value)) => push(replies, value.as_bytes())?,
                        None => replies.push_item(None),
                    }
                }
            }
            (Held::List(list), KeyedRead::ListHead(count)) => {
                list.iter().take(count).for_each(|element| replies.push_element(element.as_bytes()));
            }
            (Held::List(list), KeyedRead::List(count)) => {
                list.iter().take(count).try_for_each(|element| push(replies, element.as_bytes()))?;
            }
            (Held::Set(members), KeyedRead::Set) => {
                whole(members.len(), TooLarge::Set)?;
                members.iter().try_for_each(|member| push(replies, member.as_bytes()))?;
            }
            (Held::SortedSet(members), KeyedRead::SortedSet { count, descending }) => {
                let mut push = |(member, score): &(String, f64)| {
                    push(replies, member.as_bytes())?;
                    push(replies, score.to_string().as_bytes())
                };
                match descending {
                    false => members.iter().take(count).try_for_each(&mut push)?,
                    true => members.iter().rev().take(count).try_for_each(&mut push)?,
                }
            }
            (Held::Text(bytes), KeyedRead::Text) => push(replies, bytes)?,
            // Whoever tries a plan with a filter has its members in a set.
            (Held::Set(held), KeyedRead::Members { of: of @ (MemberOf::Set | MemberOf::Filter), members }) => {
                let held: HashSet<&[u8]> = held.iter().map(String::as_bytes).collect();
                members.iter().for_each(|member| push_member(replies, of, held.contains(member).then_some(1.0)));
            }
            (Held::SortedSet(held), KeyedRead::Members { of: of @ MemberOf::SortedSet, members }) => {
                let held: HashMap<&[u8], f64> =
                    held.iter().map(|(member, score)| (member.as_bytes(), *score)).collect();
                members.iter().for_each(|member| push_member(replies, of, held.get(member).copied()));
            }
            (Held::List(list), KeyedRead::Position { of: PositionIn::List, element }) => {
                push_position(replies, list.iter().take(limits::ELEMENTS).position(|held| held.as_bytes() == element));
            }
            (Held::SortedSet(held), KeyedRead::Position { of: PositionIn::SortedSet { descending }, element }) => {
                let position = held.iter().position(|(member, _)| member.as_bytes() == element);
                push_position(replies, position.map(|at| if descending { held.len() - 1 - at } else { at }));
            }
            (Held::Hash(_) | Held::List(_) | Held::Set(_) | Held::SortedSet(_) | Held::Text(_), _) => {
                replies.end_wrong_type();
                return Ok(());
            }
        }
        replies.end_reply();
        Ok(())
    }
}

/// Adds whether a member is there, or its score.
fn push_member(replies: &mut Replies, of: MemberOf, score: Option<f64>) {
    match of {
        MemberOf::Set | MemberOf::Filter => replies.push_item(Some(if score.is_some() { b"1" } else { b"0" })),
        MemberOf::SortedSet => replies.push_item(score.map(|score| score.to_string()).as_deref().map(str::as_bytes)),
    }
}

/// Adds where an element stands, if it is there.
fn push_position(replies: &mut Replies, position: Option<usize>) {
    replies.push_item(position.map(|position| position.to_string()).as_deref().map(str::as_bytes));
}

/// Adds an item within the limits of what is read.
fn push(replies: &mut Replies, item: &[u8]) -> Result<(), TooLarge> {
    if item.len() > limits::VALUE_BYTES {
        return Err(TooLarge::Value);
    }
    if replies.byte_count() + item.len() > limits::BATCH_BYTES {
        return Err(TooLarge::Batch);
    }
    replies.push_item(Some(item));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Keys;

    fn batch<'a>(read: KeyedRead<'a>, ids: &'a [i64]) -> ReadBatch<'a> {
        ReadBatch { read, keys: Keys::Numbered { prefix: "k", ids } }
    }

    #[test]
    fn a_bad_line_is_told_by_its_number() {
        let bad = |text: &str| Data::parse(text).map(|data| data.len()).unwrap_err();
        assert_eq!(bad("{\"key\":\"a:1\",\"list\":[1]}\n\n{\"key\":1}").line, 3);
        let one_of = "a line has key, and one of hash, list, set, zset, string or base64";
        assert_eq!(bad("{\"key\":\"a:1\"}").message, one_of);
        assert_eq!(bad("{\"key\":\"a:1\",\"list\":[],\"set\":[]}").message, one_of);
        for zset in ["[1]", "[[\"a\"]]", "[[\"a\",1,2]]", "[[null,1]]", "[[\"a\",\"b\"]]", "[[\"a\",1e999]]"] {
            assert_eq!(bad(&format!("{{\"key\":\"a\",\"zset\":{zset}}}")).line, 1, "{zset}");
        }
        for base64 in ["A", "AB=C", "====", "AA=A", "AB==", "AAA*"] {
            assert_eq!(bad(&format!("{{\"key\":\"a\",\"base64\":\"{base64}\"}}")).line, 1, "{base64}");
        }
    }

    #[test]
    fn values_are_kept_as_text() {
        let data = Data::parse(r#"{"key":"k:1","hash":{"age":30,"vip":true,"note":null,"s":0.5}}"#).unwrap();
        let replies = data.answer(&batch(KeyedRead::HashAll, &[1, 2])).unwrap();
        let items: Vec<&[u8]> = replies.items(0).flatten().collect();
        assert_eq!(items, [&b"age"[..], b"30", b"vip", b"true", b"s", b"0.5"]);
        assert_eq!(replies.items(1).len(), 0);
    }

    #[test]
    fn a_sorted_set_goes_by_score_and_then_by_bytes_and_backwards_is_the_exact_reverse() {
        let data = Data::parse(r#"{"key":"k:1","zset":[["b",1],["a",1],["z",-2.5],["c",9],["c",0]]}"#).unwrap();
        let read = |count, descending| {
            let replies = data.answer(&batch(KeyedRead::SortedSet { count, descending }, &[1])).unwrap();
            let items = replies.items(0).flatten().map(|item| String::from_utf8_lossy(item).into_owned());
            items.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(read(9, false), "z -2.5 c 0 a 1 b 1");
        assert_eq!(read(3, true), "b 1 a 1 c 0");
    }

    #[test]
    fn a_key_of_another_type_is_an_answer_about_that_key() {
        let data = Data::parse("{\"key\":\"k:1\",\"list\":[1]}\n{\"key\":\"k:2\",\"hash\":{\"a\":1}}").unwrap();
        let replies = data.answer(&batch(KeyedRead::HashAll, &[2, 1, 3])).unwrap();
        assert_eq!(replies.wrong_types(), [1]);
        assert_eq!((replies.items(0).len(), replies.items(1).len(), replies.len()), (2, 0, 3));
    }

    #[test]
    fn a_set_that_is_too_large_is_refused_like_from_a_server() {
        let members: Vec<String> = (0..=limits::ELEMENTS).map(|member| member.to_string()).collect();
        let data = Data::parse(&format!("{{\"key\":\"k:1\",\"set\":[{}]}}", members.join(","))).unwrap();
        let error = data.answer(&batch(KeyedRead::Set, &[1])).unwrap_err();
        assert_eq!(error, StoreError::TooLarge { key: "k:1".into(), what: TooLarge::Set });
    }
}
