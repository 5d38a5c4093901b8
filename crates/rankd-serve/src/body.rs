//! A request's body: read whole, within limits on its size, its time and what all bodies of a loop take together. What an answer
//! did not need of it is read and thrown away, so that the answer reaches a client that is still sending.

use crate::connection_state::{ConnectionState, ReceivingBody};
use crate::loop_state::LoopState;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body, Incoming};
use hyper::header::EXPECT;
use rankd_edge::input::REQUEST_BYTES_MAX;
use rankd_engine::clock::{self, Instant};
use rankd_engine::{RunError, codes};
use std::error::Error;
use std::io;
use std::rc::Rc;
use tokio::time::timeout_at;

/// How much of a body that is not needed is read and thrown away. A client that sends more finds its connection closed or its stream reset.
const DISCARDED_MAX: usize = 16 * REQUEST_BYTES_MAX;

/// A body that is here.
pub(crate) struct ReceivedBody {
    pub(crate) bytes: Bytes,
    pub(crate) memory: BodyMemory,
}

/// What a body takes of its loop's memory for bodies. To be kept until the request is answered: the rows that are made of a body take
/// several times as much as it does.
pub(crate) struct BodyMemory {
    loop_state: Rc<LoopState>,
    counted: usize,
}

impl Drop for BodyMemory {
    fn drop(&mut self) {
        self.loop_state.body_bytes.set(self.loop_state.body_bytes.get() - self.counted);
    }
}

/// A body that comes in.
pub(crate) struct RequestBody {
    loop_state: Rc<LoopState>,
    state: Rc<ConnectionState>,
    incoming: Incoming,
    /// When it has to be here; not known as long as nothing had to be waited for.
    until: Option<Instant>,
    receiving: Option<ReceivingBody>,
    /// The client sends it only when it is asked to, which reading does.
    on_demand: bool,
}

impl RequestBody {
    pub(crate) fn new(
        loop_state: &Rc<LoopState>,
        state: &Rc<ConnectionState>,
        headers: &HeaderMap,
        incoming: Incoming,
    ) -> RequestBody {
        let on_demand = headers.contains_key(EXPECT);
        RequestBody {
            loop_state: loop_state.clone(),
            state: state.clone(),
            incoming,
            until: None,
            receiving: None,
            on_demand,
        }
    }

    /// Reads it whole.
    pub(crate) async fn read(&mut self) -> Result<ReceivedBody, RunError> {
        // What is announced to be too large is not waited for.
        if self.incoming.size_hint().lower() > REQUEST_BYTES_MAX as u64 {
            return Err(too_large());
        }
        self.on_demand = false;
        let loop_state = self.loop_state.clone();
        let memory = BodyMemory { loop_state: loop_state.clone(), counted: 0 };
        let mut read = ReceivedBody { bytes: Bytes::new(), memory };
        let mut gathered = BytesMut::new();
        while let Some(data) = self.next().await? {
            read.memory.counted += data.len();
            loop_state.body_bytes.set(loop_state.body_bytes.get() + data.len());
            if read.memory.counted > REQUEST_BYTES_MAX {
                return Err(too_large());
            }
            if loop_state.body_bytes.get() > loop_state.app.settings.body_bytes_max {
                loop_state.metrics.memory_rejected.add(1);
                let message = "request bodies have used up the memory set by --bodies_mb; try again";
                return Err(RunError::new(codes::BODIES_TOO_LARGE, message));
            }
            if read.bytes.is_empty() && gathered.is_empty() {
                read.bytes = data;
            } else {
                if gathered.is_empty() {
                    gathered.extend_from_slice(&std::mem::take(&mut read.bytes));
                }
                gathered.extend_from_slice(&data);
            }
        }
        if !gathered.is_empty() {
            read.bytes = gathered.freeze();
        }
        self.receiving = None;
        Ok(read)
    }

    /// Reads what is left of it, within the same time, and forgets it.
    pub(crate) async fn discard(&mut self) {
        let mut left = DISCARDED_MAX;
        let announced = usize::try_from(self.incoming.size_hint().lower()).unwrap_or(usize::MAX);
        if self.incoming.is_end_stream() || self.on_demand || announced > left {
            self.receiving = None;
            return;
        }
        // Whatever goes wrong now, the answer is known.
        while let Ok(Some(data)) = self.next().await {
            match left.checked_sub(data.len()) {
                Some(less) => left = less,
                None => break,
            }
        }
        self.receiving = None;
    }

    /// The next bytes of it; `None` at its end.
    async fn next(&mut self) -> Result<Option<Bytes>, RunError> {
        loop {
            // Most bodies come with their head, so the clock is asked only when one does not.
            let frame = match self.incoming.frame().now_or_never() {
                Some(frame) => frame,
                None => {
                    let until =
                        *self.until.get_or_insert_with(|| clock::now() + self.loop_state.app.settings.timeouts.body);
                    self.receiving.get_or_insert_with(|| self.state.receive());
                    timeout_at(until, self.incoming.frame()).await.map_err(|_| too_slow(&self.loop_state))?
                }
            };
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(broken(&error)),
                Some(Ok(frame)) => {
                    // Trailers are nothing to us.
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

fn too_large() -> RunError {
    let message = format!("a request has at most {REQUEST_BYTES_MAX} bytes");
    RunError::new(codes::REQUEST_TOO_LARGE, message)
}

fn too_slow(loop_state: &LoopState) -> RunError {
    let message = format!("the body did not arrive within {} ms", loop_state.app.settings.timeouts.body.as_millis());
    RunError::new(codes::BODY_TOO_SLOW, message)
}

/// A body that broke off: the client wrote something that is not a body, or it is gone and will not read this.
fn broken(error: &hyper::Error) -> RunError {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.map(io::Error::kind) {
        Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            let message = format!("the body's chunks cannot be read{cause}");
            RunError::new(codes::BROKEN_BODY, message)
        }
        _ => RunError::cancelled(),
    }
}
