//! The embedded store: answers the tasks' reads in the process, from data that was read at start and never changes.
//!
//! It can be configured to be slow or to fail, so that plans and schedulers can be tried without a network.

use crate::clock;
use crate::store::closing;
use crate::store::{Answer, Keyed, KeyedRead, Open, Opened, ReadBatch, Replies, StoreError, redis};
use hashbrown::HashMap;
use rankd_plan::json::{Fault, Kind, Number, Reader};
use rankd_plan::registry::Inject;
use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// All keys and what they hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Data {
    entries: HashMap<String, Held>,
    is_closed: bool,
}

/// What a key holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Held {
    Hash(Vec<(String, String)>),
    List(Vec<String>),
}

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
    /// Reads NDJSON: `{"key":"user:1","hash":{…}}` or `{"key":"follow:1","list":[…]}`, one a line, and at the end a closing line,
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
    let mut fields = reader.open_object().map_err(fault)?;
    while let Some((name, repeated)) = reader.field(&mut fields).map_err(fault)? {
        match &*name {
            _ if repeated => return Err(bad(format!("the field {name:?} appears twice"))),
            "key" => key = Some(reader.string().map_err(fault)?.into_owned()),
            "hash" => entry = Some(Held::Hash(read_hash(&mut reader).map_err(fault)?)),
            "list" => entry = Some(Held::List(read_list(&mut reader).map_err(fault)?)),
            "lines" | "sha256" => {
                return Err(bad("a closing line belongs at the end of a file, and only once".into()));
            }
            _ => return Err(bad(format!("there is no field {name:?}; a line has key, and hash or list"))),
        }
    }
    reader.end().map_err(fault)?;
    match (key, entry) {
        (Some(key), Some(entry)) => Ok((key, entry)),
        _ => Err(bad("a line has key, and hash or list".into())),
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

/// The data of an endpoint and the faults that it is to inject.
pub struct MemoryEndpoint {
    name: String,
    pub data: Arc<Data>,
    pub inject: Vec<Inject>,
    /// How many commands each rule has seen, on all threads.
    seen: Arc<[AtomicU64]>,
}

impl MemoryEndpoint {
    pub fn new(name: &str, data: Arc<Data>, inject: Vec<Inject>) -> MemoryEndpoint {
        let seen = inject.iter().map(|_| AtomicU64::new(0)).collect();
        MemoryEndpoint { name: name.to_owned(), data, inject, seen }
    }
}

impl Open for MemoryEndpoint {
    fn open(&self) -> Opened {
        Opened::keyed(MemoryStore { data: self.data.clone(), inject: self.inject.clone(), seen: self.seen.clone() })
    }

    fn name(&self) -> &str {
        &self.name
    }
}

struct MemoryStore {
    data: Arc<Data>,
    inject: Vec<Inject>,
    seen: Arc<[AtomicU64]>,
}

impl Keyed for MemoryStore {
    fn read<'a>(&'a self, batch: ReadBatch<'a>) -> Answer<'a> {
        Box::pin(async move {
            let command = redis::command(batch.read);
            let (mut latency_us, mut fails) = (0, false);
            for (rule, seen) in self.inject.iter().zip(&*self.seen) {
                if rule.command.as_ref().is_some_and(|only| only != command) {
                    continue;
                }
                latency_us = latency_us.max(rule.latency_us);
                if rule.fail_every > 0 {
                    let every = u64::from(rule.fail_every);
                    let before = seen.fetch_add(batch.ids.len() as u64, Ordering::Relaxed);
                    fails |= (before + batch.ids.len() as u64) / every > before / every;
                }
            }
            if latency_us > 0 {
                clock::sleep(Duration::from_micros(latency_us)).await;
            }
            if fails { Err(StoreError::Injected { command }) } else { self.data.answer(&batch) }
        })
    }
}

impl Data {
    fn answer(&self, batch: &ReadBatch<'_>) -> Result<Replies, StoreError> {
        let mut replies = Replies::default();
        let mut key = String::with_capacity(batch.prefix.len() + 20);
        for id in batch.ids {
            key.clear();
            // Writing into a string cannot fail.
            let _ = write!(key, "{}:{id}", batch.prefix);
            match (self.entries.get(&key), batch.read) {
                (Some(Held::Hash(hash)), KeyedRead::HashAll) => {
                    for (field, value) in hash {
                        replies.push_item(Some(field.as_bytes()));
                        replies.push_item(Some(value.as_bytes()));
                    }
                }
                (Some(Held::Hash(hash)), KeyedRead::HashFields(fields)) => {
                    for field in fields {
                        let value = hash.iter().find(|(name, _)| **name == **field).map(|(_, value)| value.as_bytes());
                        replies.push_item(value);
                    }
                }
                (None, KeyedRead::HashFields(fields)) => fields.iter().for_each(|_| replies.push_item(None)),
                (Some(Held::List(list)), KeyedRead::ListHead(count)) => {
                    list.iter().take(count).for_each(|element| replies.push_element(element.as_bytes()));
                }
                (None, KeyedRead::HashAll | KeyedRead::ListHead(_)) => {}
                (Some(_), _) => return Err(StoreError::WrongType { key }),
            }
            replies.end_reply();
        }
        Ok(replies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_is_told_by_its_number() {
        let bad = |text: &str| Data::parse(text).map(|data| data.len()).unwrap_err();
        assert_eq!(bad("{\"key\":\"a:1\",\"list\":[1]}\n\n{\"key\":1}").line, 3);
        assert_eq!(bad("{\"key\":\"a:1\"}").message, "a line has key, and hash or list");
    }

    #[test]
    fn values_are_kept_as_text() {
        let data = Data::parse(r#"{"key":"user:1","hash":{"age":30,"vip":true,"note":null,"s":0.5}}"#).unwrap();
        let replies = data.answer(&ReadBatch { read: KeyedRead::HashAll, prefix: "user", ids: &[1, 2] }).unwrap();
        let items: Vec<&[u8]> = replies.items(0).flatten().collect();
        assert_eq!(items, [&b"age"[..], b"30", b"vip", b"true", b"s", b"0.5"]);
        assert_eq!(replies.items(1).len(), 0);
    }

    #[test]
    fn a_list_read_as_a_hash_is_an_error_that_names_the_key() {
        let data = Data::parse(r#"{"key":"user:1","list":[1]}"#).unwrap();
        let error = data.answer(&ReadBatch { read: KeyedRead::HashAll, prefix: "user", ids: &[1] }).unwrap_err();
        assert_eq!(error, StoreError::WrongType { key: "user:1".into() });
    }
}
