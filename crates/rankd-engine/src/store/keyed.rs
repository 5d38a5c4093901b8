//! The protocol of keyed reads: what is stored under a key, for many keys in one go.
//!
//! A task reads in batches, so there is no way to write one that makes a round trip a row. What answers is a backend that
//! implements [`Keyed`]. What a task sees is [`crate::task::KeyedReads`].

use crate::store::{Keys, Replies, StoreError, WrittenKeys};
use rankd_plan::plan::Arg;
use rankd_plan::signature::ParamKind;
use rankd_plan::signature::typed::ParamType;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// An endpoint that answers keyed reads: a parameter of a task, and its position in the registry.
#[derive(Clone, Copy, Debug)]
pub struct KeyedEndpoint(pub u32);

impl ParamType for KeyedEndpoint {
    type Value = KeyedEndpoint;
    const KIND: ParamKind = ParamKind::Endpoint(&["redis"]);

    fn read(arg: &Arg) -> Option<KeyedEndpoint> {
        match arg {
            Arg::Endpoint(at) => Some(KeyedEndpoint(*at)),
            _ => None,
        }
    }
}

/// Reads that are sent and answered together: the same for many keys. Elsewhere also called a step.
#[derive(Clone, Debug)]
pub struct ReadBatch<'a> {
    pub read: KeyedRead<'a>,
    pub keys: Keys<'a>,
}

/// What is read of each key.
#[derive(Clone, Copy, Debug)]
pub enum KeyedRead<'a> {
    /// Every field of a hash with its value, in turn, in no order.
    HashAll,
    /// Some fields of a hash.
    HashFields(&'a [Arc<str>]),
    /// The ids at the head of a list, at most this number, read as ints.
    ListHead(usize),
    /// The elements at the head of a list, at most this number.
    List(usize),
    /// Every member of a set, in no order.
    Set,
    /// Members and scores in turn, at most this number of members: from the lowest score on, or from the highest.
    SortedSet { count: usize, descending: bool },
    /// The one value of a string.
    Text,
    /// For each of these members whether it is there, in their order: see [`MemberOf`].
    Members { of: MemberOf, members: WrittenKeys<'a> },
    /// The position of an element, if it is there: see [`PositionIn`].
    Position { of: PositionIn, element: &'a [u8] },
}

/// What is asked for the position of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PositionIn {
    /// A list: the first element of several that are the same, among as many as are ever read.
    List,
    /// A sorted set, from the lowest score on, or from the highest.
    SortedSet { descending: bool },
}

/// What is asked for members, and what an item of the answer then is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberOf {
    Set,
    SortedSet,
    /// A Bloom filter, which may say of a few that they are there where they are not.
    Filter,
}

impl MemberOf {
    /// Whether an item of an answer says that the member is there.
    pub fn is_there(self, item: Option<&[u8]>) -> bool {
        match self {
            // Some versions of the protocol have truth values.
            MemberOf::Set | MemberOf::Filter => matches!(item, Some(b"1" | b"t")),
            MemberOf::SortedSet => item.is_some(),
        }
    }
}

/// A store that answers keyed reads, as one event loop sees it.
pub trait Keyed {
    fn read<'a>(&'a self, batch: ReadBatch<'a>) -> Answer<'a>;
}

/// An answer that is on its way, on the thread that asked.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Replies, StoreError>> + 'a>>;

/// The most that is read.
pub(crate) mod limits {
    /// Fields of a hash, or members of a set, that is read whole.
    pub(crate) const ELEMENTS: usize = 100_000;
    /// Bytes of one value: it is held in one piece until all of it is there.
    pub(crate) const VALUE_BYTES: usize = 1 << 20;
    /// Bytes of all replies to a batch.
    pub(crate) const BATCH_BYTES: usize = 12 << 20;
}
