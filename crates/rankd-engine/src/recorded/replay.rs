//! Answers reads from what another run recorded.
//!
//! A smaller limit and fewer fields are served from what was recorded, and so is a larger limit where the recorded list was whole, and the place of an
//! element in a list as far as the list was recorded. Anything more is
//! missing: it is counted, and the read fails with a code of its own or, where the replay may ask stores, goes to the store.

use super::read::{RecordedCall, RecordedFault, RecordedKeys, RecordedRead};
use super::recorder::RunRecord;
use super::weather::Weather;
use crate::store::{Call, KeyedRead, Keys, MemberOf, PositionIn, Replies, WrittenKeys};
use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What can be served for each other: reads of one family are looked at together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Family {
    Hash,
    Ids,
    List,
    Set,
    SortedSet { descending: bool },
    Text,
    InSet,
    InSortedSet,
    InFilter,
    Position(PositionIn),
}

impl Family {
    fn of(read: &KeyedRead<'_>) -> Family {
        match read {
            KeyedRead::HashAll | KeyedRead::HashFields(_) => Family::Hash,
            KeyedRead::ListHead(_) => Family::Ids,
            KeyedRead::List(_) => Family::List,
            KeyedRead::Set => Family::Set,
            KeyedRead::SortedSet { descending, .. } => Family::SortedSet { descending: *descending },
            KeyedRead::Text => Family::Text,
            KeyedRead::Members { of: MemberOf::Set, .. } => Family::InSet,
            KeyedRead::Members { of: MemberOf::SortedSet, .. } => Family::InSortedSet,
            KeyedRead::Members { of: MemberOf::Filter, .. } => Family::InFilter,
            KeyedRead::Position { of, .. } => Family::Position(*of),
        }
    }
}

/// One key of one recorded batch, and the next one with the same key.
#[derive(Clone, Copy, Debug)]
struct KeyPlace {
    batch: u32,
    at: u32,
    next: Option<u32>,
}

/// The recorded reads of one key: the first and the last of them, as positions among the places.
#[derive(Clone, Copy, Debug)]
struct KeyChain {
    hash: u64,
    first: u32,
    last: u32,
}

/// Why a read cannot be served.
#[derive(Debug)]
pub(crate) enum Unrecorded {
    /// It failed when it was recorded.
    Failed(RecordedFault),
    /// These keys, by position, were not read, or less of them was.
    Missing { found: Box<Replies>, missing: Vec<u32> },
}

enum Found {
    Given,
    Failed(RecordedFault),
    Missing,
}

/// What one run recorded, as the source of another run's reads.
#[derive(Debug, Default)]
pub struct Replay {
    reads: Vec<RecordedKeys>,
    calls: Vec<RecordedCall>,
    places: Vec<KeyPlace>,
    chains: HashTable<KeyChain>,
    hasher: DefaultHashBuilder,
    /// Whether what was not recorded is read from stores.
    live: bool,
    conflicts: usize,
    served: AtomicU64,
    missing: AtomicU64,
    weather: Weather,
}

impl Replay {
    /// Of a record that is whole.
    pub fn new(record: RunRecord) -> Replay {
        Replay::of(record.reads, record.calls).with_weather(record.weather)
    }

    /// The same in this weather; without it nothing strikes any node.
    pub fn with_weather(self, weather: Weather) -> Replay {
        Replay { weather, ..self }
    }

    pub(crate) fn weather(&self) -> &Weather {
        &self.weather
    }

    pub fn of(reads: Vec<RecordedKeys>, calls: Vec<RecordedCall>) -> Replay {
        let mut replay = Replay { reads: Vec::with_capacity(reads.len()), calls, ..Replay::default() };
        reads.into_iter().for_each(|batch| replay.add(batch));
        replay
    }

    /// The same, where what was not recorded is read from stores.
    pub fn or_live(self) -> Replay {
        Replay { live: true, ..self }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// How many keys and calls were answered from what was recorded.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// How many keys and calls were asked for that were not recorded.
    pub fn missing(&self) -> u64 {
        self.missing.load(Ordering::Relaxed)
    }

    /// How many recorded reads contradict an earlier one: what was stored changed while the run was reading it, and a replay cannot tell which
    /// node read what.
    pub fn conflicts(&self) -> usize {
        self.conflicts
    }

    fn add(&mut self, batch: RecordedKeys) {
        let number = self.reads.len() as u32;
        self.reads.push(batch);
        let batch = &self.reads[number as usize];
        let family = Family::of(&batch.read.as_read());
        let mut conflicts = 0;
        for at in 0..batch.keys.len() {
            let key = batch.keys.get(at);
            let hash = self.hasher.hash_one((&*batch.endpoint, family, key));
            let place = self.places.len() as u32;
            let known = self.chain(hash, &batch.endpoint, family, key);
            self.places.push(KeyPlace { batch: number, at: at as u32, next: None });
            let Some(chain) = known else {
                self.chains.insert_unique(hash, KeyChain { hash, first: place, last: place }, |chain| chain.hash);
                continue;
            };
            if let Ok(given) = &batch.given {
                let mut earlier = Replies::default();
                let found = self.serve(chain.first, &batch.read.as_read(), &mut earlier);
                conflicts += usize::from(matches!(found, Found::Given) && !earlier.is_same(0, given, at));
            }
            self.places[chain.last as usize].next = Some(place);
            let same = |known: &KeyChain| known.first == chain.first;
            if let Some(known) = self.chains.find_mut(hash, same) {
                known.last = place;
            }
        }
        self.conflicts += conflicts;
    }

    fn read_at(&self, place: u32) -> (&RecordedKeys, usize) {
        let KeyPlace { batch, at, .. } = self.places[place as usize];
        (&self.reads[batch as usize], at as usize)
    }

    fn chain(&self, hash: u64, endpoint: &str, family: Family, key: &[u8]) -> Option<KeyChain> {
        let is_it = |chain: &KeyChain| {
            let (batch, at) = self.read_at(chain.first);
            batch.keys.get(at) == key && &*batch.endpoint == endpoint && Family::of(&batch.read.as_read()) == family
        };
        self.chains.find(hash, is_it).copied()
    }

    /// The recorded reads of a key, in order.
    fn each(&self, first: u32) -> impl Iterator<Item = (&RecordedKeys, usize)> {
        std::iter::successors(Some(first), |place| self.places[*place as usize].next).map(|place| self.read_at(place))
    }

    /// Answers a read from what was recorded.
    pub(crate) fn read(&self, endpoint: &str, read: &KeyedRead<'_>, keys: &Keys<'_>) -> Result<Replies, Unrecorded> {
        let (mut found, mut missing, mut key) = (Replies::default(), Vec::new(), Vec::new());
        let family = Family::of(read);
        for at in 0..keys.len() {
            keys.write(at, &mut key);
            let hash = self.hasher.hash_one((endpoint, family, &*key));
            let chain = self.chain(hash, endpoint, family, &key);
            match chain.map_or(Found::Missing, |chain| self.serve(chain.first, read, &mut found)) {
                Found::Given => {}
                Found::Missing if self.look_up(endpoint, read, &key, &mut found) => {}
                Found::Failed(fault) => return Err(Unrecorded::Failed(fault)),
                Found::Missing => {
                    found.end_reply();
                    missing.push(at as u32);
                }
            }
        }
        self.served.fetch_add((keys.len() - missing.len()) as u64, Ordering::Relaxed);
        if missing.is_empty() {
            return Ok(found);
        }
        self.missing.fetch_add(missing.len() as u64, Ordering::Relaxed);
        Err(Unrecorded::Missing { found: Box::new(found), missing })
    }

    /// Adds the answer for one key, whose recorded reads begin at this place. Nothing is added where there is none.
    fn serve(&self, first: u32, read: &KeyedRead<'_>, into: &mut Replies) -> Found {
        let mut fault = None;
        for (batch, at) in self.each(first) {
            match &batch.given {
                Err(of) => fault = fault.or(Some(of)),
                Ok(given) if given.is_wrong_type(at) => {
                    into.end_wrong_type();
                    return Found::Given;
                }
                Ok(given) => {
                    if serve_from(&batch.read, given, at, read, into) {
                        return Found::Given;
                    }
                }
            }
        }
        let gathered = match *read {
            KeyedRead::HashFields(fields) => self.gather_fields(first, fields, into),
            KeyedRead::Members { members, .. } => self.gather_members(first, members, into),
            KeyedRead::HashAll
            | KeyedRead::ListHead(_)
            | KeyedRead::List(_)
            | KeyedRead::Set
            | KeyedRead::SortedSet { .. }
            | KeyedRead::Text
            | KeyedRead::Position { .. } => false,
        };
        match (gathered, fault) {
            (true, _) => Found::Given,
            (false, Some(fault)) => Found::Failed(fault.clone()),
            (false, None) => Found::Missing,
        }
    }

    /// Fields that several reads recorded, or that are some of those that one recorded.
    fn gather_fields(&self, first: u32, fields: &[Arc<str>], into: &mut Replies) -> bool {
        let value = |field: &Arc<str>| {
            self.each(first).find_map(|(batch, at)| {
                let given = batch.given.as_ref().ok()?;
                match &batch.read {
                    RecordedRead::HashFields(of) => {
                        given.items(at).nth(of.iter().position(|recorded| recorded == field)?)
                    }
                    RecordedRead::HashAll => {
                        let mut items = given.items(at);
                        while let (Some(name), Some(value)) = (items.next(), items.next()) {
                            if name == Some(field.as_bytes()) {
                                return Some(value);
                            }
                        }
                        // All of the hash was read, so it has no such field.
                        Some(None)
                    }
                    _ => None,
                }
            })
        };
        let values: Option<Vec<Option<&[u8]>>> = fields.iter().map(value).collect();
        push_all(values, into)
    }

    /// Adds where an element stands, by a list that was recorded; false where that does not say it.
    fn look_up(&self, endpoint: &str, read: &KeyedRead<'_>, key: &[u8], into: &mut Replies) -> bool {
        let KeyedRead::Position { of, element } = *read else { return false };
        let families: &[Family] = match of {
            PositionIn::List => &[Family::Ids, Family::List],
            PositionIn::SortedSet { descending: false } => &[Family::SortedSet { descending: false }],
            PositionIn::SortedSet { descending: true } => &[Family::SortedSet { descending: true }],
        };
        let chains = families
            .iter()
            .filter_map(|family| self.chain(self.hasher.hash_one((endpoint, *family, key)), endpoint, *family, key));
        let place =
            chains.flat_map(|chain| self.each(chain.first)).find_map(|(batch, at)| place_of(batch, at, element));
        let Some(place) = place else { return false };
        into.push_item(place.map(|place| place.to_string()).as_deref().map(str::as_bytes));
        into.end_reply();
        true
    }

    fn gather_members(&self, first: u32, members: WrittenKeys<'_>, into: &mut Replies) -> bool {
        let mut known: HashMap<&[u8], Option<&[u8]>> = HashMap::new();
        for (batch, at) in self.each(first) {
            if let (RecordedRead::Members { members, .. }, Ok(given)) = (&batch.read, &batch.given) {
                for (member, item) in members.written().iter().zip(given.items(at)) {
                    known.entry(member).or_insert(item);
                }
            }
        }
        let values: Option<Vec<Option<&[u8]>>> = members.iter().map(|member| known.get(member).copied()).collect();
        push_all(values, into)
    }

    /// Answers a call from what was recorded; `None` where it is missing.
    pub(crate) fn call(&self, endpoint: &str, call: &Call) -> Option<Result<Option<Bytes>, RecordedFault>> {
        let is_it = |recorded: &&RecordedCall| {
            recorded.method == call.method
                && recorded.path == call.path
                && recorded.body == call.body
                && &*recorded.endpoint == endpoint
        };
        let mut recorded = self.calls.iter().filter(is_it);
        // One that was answered, if there is one.
        let found = recorded.clone().find(|recorded| recorded.given.is_ok()).or_else(|| recorded.next());
        let count = if found.is_some() { &self.served } else { &self.missing };
        count.fetch_add(1, Ordering::Relaxed);
        found.map(|recorded| recorded.given.clone())
    }
}

fn push_all(values: Option<Vec<Option<&[u8]>>>, into: &mut Replies) -> bool {
    let Some(values) = values else { return false };
    values.into_iter().for_each(|value| into.push_item(value));
    into.end_reply();
    true
}

/// Where an element stands in a list, or that it is not in it; nothing where what was read of the list does not say.
fn place_of(batch: &RecordedKeys, at: usize, element: &[u8]) -> Option<Option<usize>> {
    let given = batch.given.as_ref().ok().filter(|given| !given.is_wrong_type(at))?;
    let is_it = |item: Option<&[u8]>| item == Some(element);
    let (place, is_whole) = match batch.read {
        // Where elements were left out, it is not known where they stood.
        RecordedRead::ListHead(limit) if given.skipped() == 0 => {
            let ids = given.ids(at);
            (ids.iter().position(|id| is_it(Some(id.to_string().as_bytes()))), ids.len() < limit)
        }
        RecordedRead::List(limit) => (given.items(at).position(is_it), given.items(at).len() < limit),
        // Members and scores in turn.
        RecordedRead::SortedSet { count, .. } => {
            (given.items(at).step_by(2).position(is_it), given.items(at).len() / 2 < count)
        }
        RecordedRead::ListHead(_)
        | RecordedRead::HashAll
        | RecordedRead::HashFields(_)
        | RecordedRead::Set
        | RecordedRead::Text
        | RecordedRead::Members { .. }
        | RecordedRead::Position { .. } => return None,
    };
    (place.is_some() || is_whole).then_some(place)
}

/// Adds an answer for a key from one recorded read of it; false where that is not enough.
fn serve_from(recorded: &RecordedRead, given: &Replies, at: usize, read: &KeyedRead<'_>, into: &mut Replies) -> bool {
    // A list that has fewer elements than were asked for is whole.
    let is_enough = |asked: usize, limit: usize, elements: usize| asked <= limit || elements < limit;
    match (recorded, read) {
        (RecordedRead::HashAll, KeyedRead::HashAll)
        | (RecordedRead::Set, KeyedRead::Set)
        | (RecordedRead::Text, KeyedRead::Text) => into.push_reply(given, at),
        (RecordedRead::HashFields(fields), KeyedRead::HashFields(asked)) if fields == asked => {
            into.push_reply(given, at);
        }
        (RecordedRead::Members { members, .. }, KeyedRead::Members { members: asked, .. })
            if members.written().iter().eq(asked.iter()) =>
        {
            into.push_reply(given, at);
        }
        (RecordedRead::Position { element, .. }, KeyedRead::Position { element: asked, .. })
            if **element == **asked =>
        {
            into.push_reply(given, at);
        }
        (RecordedRead::ListHead(limit), KeyedRead::ListHead(asked)) => {
            let ids = given.ids(at);
            // Where elements were left out, it is not known where they stood.
            let is_exact = given.skipped() == 0 || ids.len() == *limit;
            if asked != limit && !(is_exact && is_enough(*asked, *limit, ids.len())) {
                return false;
            }
            ids.iter().take(*asked).for_each(|id| into.push_id(*id));
            into.end_reply();
        }
        (RecordedRead::List(limit), KeyedRead::List(asked)) => {
            if !is_enough(*asked, *limit, given.items(at).len()) {
                return false;
            }
            given.items(at).take(*asked).for_each(|item| into.push_item(item));
            into.end_reply();
        }
        (
            RecordedRead::SortedSet { count: limit, descending: recorded },
            KeyedRead::SortedSet { count: asked, descending },
        ) if recorded == descending => {
            // Members and scores in turn.
            if !is_enough(*asked, *limit, given.items(at).len() / 2) {
                return false;
            }
            given.items(at).take(asked.saturating_mul(2)).for_each(|item| into.push_item(item));
            into.end_reply();
        }
        _ => return false,
    }
    true
}
