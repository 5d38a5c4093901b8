//! Keyed reads as tasks see them: counted, and with the endpoint's name in errors.

use crate::error::TaskError;
use crate::store::{KeyedEndpoint, KeyedRead, ReadBatch, Replies};
use crate::task::FetchContext;
use std::future::Future;
use std::sync::Arc;

impl FetchContext<'_> {
    /// The reads that an endpoint answers.
    pub fn keyed(&self, KeyedEndpoint(endpoint): KeyedEndpoint) -> KeyedReads<'_> {
        KeyedReads { cx: self, endpoint }
    }
}

/// What a task can read from an endpoint. Each call is one round trip; replies are in the order of the ids.
#[derive(Clone, Copy)]
pub struct KeyedReads<'a> {
    cx: &'a FetchContext<'a>,
    endpoint: u32,
}

impl<'a> KeyedReads<'a> {
    /// Every field of each hash: items are names and values in turn.
    pub fn hash_all(
        self,
        prefix: &'a str,
        ids: &'a [i64],
    ) -> impl Future<Output = Result<Replies, TaskError>> + use<'a> {
        self.read(ReadBatch { read: KeyedRead::HashAll, prefix, ids })
    }

    /// These fields of each hash: an item for each, in this order.
    pub fn hash_fields(
        self,
        prefix: &'a str,
        ids: &'a [i64],
        fields: &'a [Arc<str>],
    ) -> impl Future<Output = Result<Replies, TaskError>> + use<'a> {
        self.read(ReadBatch { read: KeyedRead::HashFields(fields), prefix, ids })
    }

    /// The ids at the head of each list, at most `count`.
    pub fn list_head(
        self,
        prefix: &'a str,
        ids: &'a [i64],
        count: usize,
    ) -> impl Future<Output = Result<Replies, TaskError>> + use<'a> {
        self.read(ReadBatch { read: KeyedRead::ListHead(count), prefix, ids })
    }

    async fn read(self, batch: ReadBatch<'a>) -> Result<Replies, TaskError> {
        let KeyedReads { cx: FetchContext { stores, tally, stats, .. }, endpoint } = self;
        let Some((name, store)) = stores.keyed(endpoint) else {
            return Err(TaskError::bug("an endpoint that does not answer keyed reads"));
        };
        let commands = batch.ids.len() as u64;
        tally.commands.set(tally.commands.get() + commands);
        stats.count_commands(endpoint, commands);
        let replies = store.read(batch).await.map_err(|error| {
            let error = TaskError::store(name, &error);
            tally.detail.replace(error.detail.clone());
            error
        })?;
        tally.bytes.set(tally.bytes.get() + replies.byte_count() as u64);
        Ok(replies)
    }
}
