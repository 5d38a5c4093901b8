//! Calls of a service as tasks see them: counted, and with the endpoint's name in errors.

use crate::error::TaskError;
use crate::store::{Call, CallsEndpoint};
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

impl ServiceCalls<'_> {
    /// The bodies of the answers to these calls, made at the same time; nothing where the service has nothing under a path. One that
    /// fails fails all.
    pub async fn call_all(self, calls: Vec<Call>) -> Result<Vec<Option<Bytes>>, TaskError> {
        try_join_all(calls.into_iter().map(|call| self.call(call))).await
    }

    async fn call(self, call: Call) -> Result<Option<Bytes>, TaskError> {
        let ServiceCalls { cx: FetchContext { stores, tally, stats, .. }, endpoint } = self;
        let Some((name, store)) = stores.calls(endpoint) else {
            return Err(TaskError::bug("an endpoint that does not answer calls"));
        };
        tally.commands.set(tally.commands.get() + 1);
        stats.count_commands(endpoint, 1);
        let body = store.call(call).await.map_err(|error| {
            let error = TaskError::store(name, &error);
            tally.detail.replace(error.detail.clone());
            error
        })?;
        tally.bytes.set(tally.bytes.get() + body.as_ref().map_or(0, Bytes::len) as u64);
        Ok(body)
    }
}
