//! Keyed reads as tasks see them: counted, and with the endpoint's name in errors.

use crate::error::TaskError;
use crate::store::{KeyedEndpoint, KeyedRead, Keys, ReadBatch, Replies, StoreError};
use crate::task::ids::code_elements;
use crate::task::{FetchContext, Unread};
use std::future::Future;
use std::sync::Arc;

impl FetchContext<'_> {
    /// The reads that an endpoint answers.
    pub fn keyed(&self, KeyedEndpoint(endpoint): KeyedEndpoint) -> KeyedReads<'_> {
        KeyedReads { cx: self, endpoint }
    }
}

/// What a task can read from an endpoint. Each call is one round trip; replies are in the order of the keys.
#[derive(Clone, Copy)]
pub struct KeyedReads<'a> {
    cx: &'a FetchContext<'a>,
    endpoint: u32,
}

impl<'a> KeyedReads<'a> {
    /// Every field of each hash: items are names and values in turn. A key of another type fails the step.
    pub fn hash_all(self, keys: Keys<'a>) -> impl Future<Output = Result<Replies, TaskError>> + use<'a> {
        self.read_strictly(KeyedRead::HashAll, keys)
    }

    /// These fields of each hash: an item for each, in this order. A key of another type fails the step.
    pub fn hash_fields(
        self,
        keys: Keys<'a>,
        fields: &'a [Arc<str>],
    ) -> impl Future<Output = Result<Replies, TaskError>> + use<'a> {
        self.read_strictly(KeyedRead::HashFields(fields), keys)
    }

    /// The ids at the head of each list, at most `count`, as rows hold them. An element that is no id is left out and counted. A
    /// key of another type fails the step.
    pub async fn list_head(self, keys: Keys<'a>, count: usize) -> Result<Replies, TaskError> {
        match self.cx.id_texts() {
            None => self.read_strictly(KeyedRead::ListHead(count), keys).await,
            Some(texts) => code_elements(texts, &self.read_strictly(KeyedRead::List(count), keys).await?).await,
        }
    }

    /// Any read. A key of another type fails the step.
    pub async fn read_strictly(self, read: KeyedRead<'a>, keys: Keys<'a>) -> Result<Replies, TaskError> {
        let replies = self.read(read, keys).await?;
        match replies.wrong_types().first() {
            None => Ok(replies),
            Some(at) => Err(self.failed(&StoreError::WrongType { key: keys.show(*at as usize) })),
        }
    }

    /// Any read. A key of another type has no items, and the replies know which those are.
    pub async fn read(self, read: KeyedRead<'a>, keys: Keys<'a>) -> Result<Replies, TaskError> {
        let KeyedReads { cx: FetchContext { stores, tally, stats, .. }, endpoint } = self;
        let Some((_, store)) = stores.keyed(endpoint) else {
            return Err(TaskError::bug("an endpoint that does not answer keyed reads"));
        };
        let commands = keys.len() as u64;
        tally.commands.set(tally.commands.get() + commands);
        stats.count_commands(endpoint, commands);
        let replies = store.read(ReadBatch { read, keys }).await.map_err(|error| self.failed(&error))?;
        tally.bytes.set(tally.bytes.get() + replies.byte_count() as u64);
        Ok(replies)
    }

    /// Counts values of a key that could not be read.
    pub fn count_unread(self, key: &Arc<str>, values: u64) {
        let mut unread = Unread::default();
        unread.count(key, values);
        self.cx.count_unread(self.endpoint, &unread);
    }

    fn failed(self, error: &StoreError) -> TaskError {
        let name = self.cx.stores.keyed(self.endpoint).map_or("", |(name, _)| name);
        let error = TaskError::store(name, error);
        self.cx.tally.detail.replace(error.detail.clone());
        error
    }
}
