//! Calls of a service as tasks see them: counted, and with the endpoint's name in errors.

use crate::error::TaskError;
use crate::recorded::Reads;
use crate::store::{Call, Called, CallsEndpoint, StoreError};
use crate::task::FetchContext;
use bytes::Bytes;
use futures_util::future::try_join_all;

impl FetchContext<'_> {
    /// The calls that an endpoint answers.
    pub fn calls(&self, CallsEndpoint(endpoint): CallsEndpoint) -> ServiceCalls<'_> {
        ServiceCalls { cx: self, endpoint }
    }
}

/// What a task can ask of a service.
#[derive(Clone, Copy)]
pub struct ServiceCalls<'a> {
    cx: &'a FetchContext<'a>,
    endpoint: u32,
}

impl<'a> ServiceCalls<'a> {
    /// The bodies of the answers to these calls, made at the same time; nothing where the service has nothing under a path. One that
    /// fails fails all.
    pub async fn call_all(self, calls: Vec<Call>) -> Result<Vec<Option<Bytes>>, TaskError> {
        try_join_all(calls.into_iter().map(|call| self.call(call))).await
    }

    async fn call(self, call: Call) -> Result<Option<Bytes>, TaskError> {
        let ServiceCalls { cx: FetchContext { request, stores, tally, .. }, endpoint } = self;
        let name = stores.name(endpoint).unwrap_or_default();
        tally.commands.set(tally.commands.get() + 1);
        let body = match &request.reads {
            Reads::Live => self.ask(call)?.await,
            Reads::Recorded(recorder) => {
                let given = self.ask(call.clone())?.await;
                recorder.keep_call(name, call, &given);
                given
            }
            Reads::Replayed(replay) => match replay.call(name, &call) {
                Some(given) => given.map_err(StoreError::Recorded),
                None if replay.is_live() => self.ask(call)?.await,
                None => Err(StoreError::NotRecorded { what: format!("the call of {}", call.path), count: 1 }),
            },
        };
        let body = body.map_err(|error| {
            let error = TaskError::store(name, &error);
            tally.detail.replace(error.detail.clone());
            error
        })?;
        tally.bytes.set(tally.bytes.get() + body.as_ref().map_or(0, Bytes::len) as u64);
        Ok(body)
    }

    /// Asks the service.
    fn ask(self, call: Call) -> Result<Called<'a>, TaskError> {
        let ServiceCalls { cx: FetchContext { stores, stats, .. }, endpoint } = self;
        let Some((_, store)) = stores.calls(endpoint) else {
            return Err(TaskError::bug("an endpoint that does not answer calls"));
        };
        stats.count_commands(endpoint, 1);
        Ok(store.call(call))
    }
}
