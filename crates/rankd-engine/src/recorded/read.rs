//! What is recorded of one read: what was asked of an endpoint, and what it gave.

use crate::codes::ErrorCode;
use crate::store::{CallMethod, KeyBuffer, KeyedRead, MemberOf, PositionIn, Replies, StoreError};
use bytes::Bytes;
use std::sync::Arc;

/// What was read of each key: [`KeyedRead`] with its own fields and members.
#[derive(Clone, Debug)]
pub enum RecordedRead {
    HashAll,
    HashFields(Vec<Arc<str>>),
    ListHead(usize),
    List(usize),
    Set,
    SortedSet { count: usize, descending: bool },
    Text,
    Members { of: MemberOf, members: KeyBuffer },
    Position { of: PositionIn, element: Box<[u8]> },
}

impl RecordedRead {
    pub(crate) fn of(read: &KeyedRead<'_>) -> RecordedRead {
        match *read {
            KeyedRead::HashAll => RecordedRead::HashAll,
            KeyedRead::HashFields(fields) => RecordedRead::HashFields(fields.to_vec()),
            KeyedRead::ListHead(count) => RecordedRead::ListHead(count),
            KeyedRead::List(count) => RecordedRead::List(count),
            KeyedRead::Set => RecordedRead::Set,
            KeyedRead::SortedSet { count, descending } => RecordedRead::SortedSet { count, descending },
            KeyedRead::Text => RecordedRead::Text,
            KeyedRead::Members { of, members } => {
                let mut own = KeyBuffer::default();
                members.iter().for_each(|member| own.push(|out| out.extend_from_slice(member)));
                RecordedRead::Members { of, members: own }
            }
            KeyedRead::Position { of, element } => RecordedRead::Position { of, element: element.into() },
        }
    }

    /// The same as it is asked of stores.
    pub(crate) fn as_read(&self) -> KeyedRead<'_> {
        match self {
            RecordedRead::HashAll => KeyedRead::HashAll,
            RecordedRead::HashFields(fields) => KeyedRead::HashFields(fields),
            RecordedRead::ListHead(count) => KeyedRead::ListHead(*count),
            RecordedRead::List(count) => KeyedRead::List(*count),
            RecordedRead::Set => KeyedRead::Set,
            RecordedRead::SortedSet { count, descending } => {
                KeyedRead::SortedSet { count: *count, descending: *descending }
            }
            RecordedRead::Text => KeyedRead::Text,
            RecordedRead::Members { of, members } => KeyedRead::Members { of: *of, members: members.written() },
            RecordedRead::Position { of, element } => KeyedRead::Position { of: *of, element },
        }
    }

    fn byte_count(&self) -> usize {
        match self {
            RecordedRead::HashFields(fields) => fields.len() * size_of::<Arc<str>>(),
            RecordedRead::Members { members, .. } => members.byte_count(),
            RecordedRead::Position { element, .. } => element.len(),
            RecordedRead::HashAll
            | RecordedRead::ListHead(_)
            | RecordedRead::List(_)
            | RecordedRead::Set
            | RecordedRead::SortedSet { .. }
            | RecordedRead::Text => 0,
        }
    }
}

/// Keys that were read together, and what was stored under each.
#[derive(Clone, Debug)]
pub struct RecordedKeys {
    /// The endpoint's name in the registry.
    pub endpoint: Arc<str>,
    pub read: RecordedRead,
    pub keys: KeyBuffer,
    pub given: Result<Replies, RecordedFault>,
}

impl RecordedKeys {
    /// About how many bytes it takes.
    pub fn byte_count(&self) -> usize {
        let given = self.given.as_ref().map_or_else(|fault| fault.message.len(), Replies::held_bytes);
        size_of::<RecordedKeys>() + self.read.byte_count() + self.keys.byte_count() + 4 * self.keys.len() + given
    }
}

/// A call of a service, and the body of its answer; nothing where the service had nothing under the path.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// The endpoint's name in the registry.
    pub endpoint: Arc<str>,
    pub method: CallMethod,
    pub path: String,
    pub body: Option<Bytes>,
    pub given: Result<Option<Bytes>, RecordedFault>,
}

impl RecordedCall {
    /// About how many bytes it takes.
    pub fn byte_count(&self) -> usize {
        let bytes = |body: &Option<Bytes>| body.as_ref().map_or(0, Bytes::len);
        let given = self.given.as_ref().map_or_else(|fault| fault.message.len(), bytes);
        size_of::<RecordedCall>() + self.path.len() + bytes(&self.body) + given
    }
}

/// Why a store gave nothing, as far as callers may know: no address and nothing that a server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedFault {
    pub code: &'static ErrorCode,
    pub message: String,
}

impl RecordedFault {
    pub(crate) fn of(endpoint: &str, error: &StoreError) -> RecordedFault {
        RecordedFault { code: error.code(), message: error.for_callers(endpoint) }
    }
}
