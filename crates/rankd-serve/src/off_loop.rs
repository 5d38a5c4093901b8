//! Parts of a request that would hold its loop for too long: reading a large body and writing a large answer. They go to the
//! CPU pool; what is small is done on the loop right away, where its time is counted.

use crate::reply::{JSON, Reply};
use crate::request_scope::RequestScope;
use bytes::Bytes;
use rankd_column::Key;
use rankd_edge::answer::Answer;
use rankd_edge::arrow;
use rankd_engine::clock::timeout_at;
use rankd_engine::deadline::Deadline;
use rankd_engine::{Linked, Outcome, RunError, codes};
use rankd_plan::Registry;
use std::sync::Arc;

/// A body of more bytes is read on the pool. So much takes the loop about a tenth of a millisecond.
const BYTES_ON_THE_LOOP: usize = 32 << 10;
/// An answer that weighs more, in cells, is written on the pool. So much takes about as long.
const CELLS_ON_THE_LOOP: usize = 4096;

/// Makes something of a body.
pub(crate) async fn parse<T: Send + 'static>(
    scope: &RequestScope,
    bytes: &Bytes,
    parse: impl FnOnce(&Bytes) -> T + Send + 'static,
) -> Result<T, RunError> {
    if bytes.len() <= BYTES_ON_THE_LOOP {
        return Ok(scope.loop_state.admission.timed(|| parse(bytes)).0);
    }
    let bytes = bytes.clone();
    // What limit the request itself sets is not known before it is read.
    let deadline = scope.loop_state.loop_handle.deadline(scope.since, None);
    offload(scope, deadline, move || parse(&bytes)).await
}

/// What is to be answered, besides the outcome.
pub(crate) struct AnswerSpec<'a> {
    pub(crate) plan: &'a Arc<Linked>,
    pub(crate) registry: &'a Arc<Registry>,
    pub(crate) output_keys: Option<Vec<Key>>,
    pub(crate) with_trace: bool,
    /// Whether the rows are to be an Arrow stream.
    pub(crate) arrow: bool,
    pub(crate) deadline: Option<Deadline>,
}

/// Writes an answer. The outcome comes back, unless the answer was not there in time.
pub(crate) async fn write(scope: &RequestScope, spec: AnswerSpec<'_>, outcome: Outcome) -> (Reply, Option<Outcome>) {
    let AnswerSpec { plan, registry, output_keys, with_trace, arrow, deadline } = spec;
    let (request_id, keys) = (scope.request_id.as_str(), output_keys.as_deref());
    let answer = Answer { request_id, plan, registry, output_keys: keys, with_trace };
    if answer.weight(&outcome) <= CELLS_ON_THE_LOOP {
        let reply = scope.loop_state.admission.timed(|| reply(&answer, arrow, &outcome)).0;
        return (reply, Some(outcome));
    }
    let (request_id, plan, registry) = (scope.request_id.clone(), plan.clone(), registry.clone());
    let (id, name) = (request_id.clone(), plan.name.clone());
    let written = offload(scope, deadline, move || {
        let keys = output_keys.as_deref();
        let answer =
            Answer { request_id: &request_id, plan: &plan, registry: &registry, output_keys: keys, with_trace };
        (reply(&answer, arrow, &outcome), outcome)
    });
    match written.await {
        Ok((reply, outcome)) => (reply, Some(outcome)),
        Err(error) => (Reply::error(&id, Some(&name), &error), None),
    }
}

fn reply(answer: &Answer<'_>, arrow: bool, outcome: &Outcome) -> Reply {
    match &outcome.result {
        Err(error) => Reply::failed(error.code, answer.render(outcome)),
        Ok(outputs) if arrow => match answer.arrow(outputs, outcome) {
            Ok(stream) => Reply::of(arrow::MEDIA_TYPE, stream).with_degraded(answer.plan, &outcome.degraded),
            Err(arrow::TooLong { key }) => {
                let message = format!("{key:?} has more text than an Arrow stream can hold: ask for {JSON}");
                let error = RunError::new(codes::TOO_LARGE_FOR_ARROW, message);
                Reply::error(answer.request_id, Some(&answer.plan.name), &error)
            }
        },
        Ok(_) => Reply::json(answer.render(outcome)).with_degraded(answer.plan, &outcome.degraded),
    }
}

/// Does work on the pool, when there is a place for it.
pub(crate) async fn offload<T: Send + 'static>(
    scope: &RequestScope,
    deadline: Option<Deadline>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RunError> {
    let loop_state = &scope.loop_state;
    let slot = loop_state.off_loop.acquire();
    let slot = match deadline {
        None => slot.await,
        Some(deadline) => timeout_at(deadline.at, slot).await.ok_or_else(|| RunError::timeout(&deadline))?,
    };
    // Held until the work is done. Nobody closes the places.
    let _slot = slot.map_err(|_| RunError::bug("there is no place for a large request"))?;
    loop_state.loop_handle.offload(deadline, work).await
}
