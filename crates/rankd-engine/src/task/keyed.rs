//! Keyed reads as tasks see them: counted, and with the endpoint's name in errors.

use crate::error::TaskError;
use crate::recorded::{Reads, Replay, Unrecorded};
use crate::store::{Answer, KeyedEndpoint, KeyedRead, Keys, PickedKeys, ReadBatch, Replies, StoreError};
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
        let FetchContext { request, tally, .. } = self.cx;
        tally.commands.set(tally.commands.get() + keys.len() as u64);
        let replies = match &request.reads {
            Reads::Live => self.ask(read, keys)?.await,
            Reads::Recorded(recorder) => {
                let given = self.ask(read, keys)?.await;
                recorder.keep_keys(self.name(), &read, &keys, &given);
                given
            }
            // In a box, so that other reads have no room for it.
            Reads::Replayed(replay) => Box::pin(self.replay(replay, read, keys)).await?,
        };
        let replies = replies.map_err(|error| self.failed(&error))?;
        tally.bytes.set(tally.bytes.get() + replies.byte_count() as u64);
        Ok(replies)
    }

    /// Asks the store.
    fn ask(self, read: KeyedRead<'a>, keys: Keys<'a>) -> Result<Answer<'a>, TaskError> {
        let KeyedReads { cx: FetchContext { stores, stats, .. }, endpoint } = self;
        let Some((_, store)) = stores.keyed(endpoint) else {
            return Err(TaskError::bug("an endpoint that does not answer keyed reads"));
        };
        stats.count_commands(endpoint, keys.len() as u64);
        Ok(store.read(ReadBatch { read, keys }))
    }

    /// Answers from what another run recorded, and what is missing there from the store, where that is allowed.
    async fn replay(
        self,
        replay: &Replay,
        read: KeyedRead<'a>,
        keys: Keys<'a>,
    ) -> Result<Result<Replies, StoreError>, TaskError> {
        let (found, missing) = match replay.read(self.name(), &read, &keys) {
            Ok(replies) => return Ok(Ok(replies)),
            Err(Unrecorded::Failed(fault)) => return Ok(Err(StoreError::Recorded(fault))),
            Err(Unrecorded::Missing { found, missing }) => (found, missing),
        };
        if !replay.is_live() {
            let first = missing.first().map_or(0, |at| *at as usize);
            let what = format!("the key {}", keys.show(first));
            return Ok(Err(StoreError::NotRecorded { what, count: missing.len() }));
        }
        let mut picked = PickedKeys::of(&keys);
        missing.iter().for_each(|at| picked.push(&keys, *at as usize));
        let read_now = KeyedReads { cx: self.cx, endpoint: self.endpoint }.ask(read, picked.keys(&keys))?.await;
        Ok(read_now.map(|read_now| {
            let (mut all, mut missing) = (Replies::default(), missing.iter().enumerate().peekable());
            for at in 0..keys.len() {
                match missing.next_if(|(_, missing)| **missing as usize == at) {
                    Some((place, _)) => all.push_reply(&read_now, place),
                    None => all.push_reply(&found, at),
                }
            }
            all.push_counts(&read_now);
            all
        }))
    }

    fn name(&self) -> &'a str {
        self.cx.stores.name(self.endpoint).unwrap_or_default()
    }

    /// Counts values of a key that could not be read.
    pub fn count_unread(self, key: &Arc<str>, values: u64) {
        let mut unread = Unread::default();
        unread.count(key, values);
        self.cx.count_unread(self.endpoint, &unread);
    }

    fn failed(self, error: &StoreError) -> TaskError {
        let error = TaskError::store(self.name(), error);
        self.cx.tally.detail.replace(error.detail.clone());
        error
    }
}
