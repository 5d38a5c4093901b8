//! A request's body: read whole, within limits on its size, its time and what all bodies of a loop take together.

use crate::input::REQUEST_BYTES_MAX;
use crate::serve::desk::Desk;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use rankd_engine::clock;
use rankd_engine::{ErrorKind, RunError};
use std::rc::Rc;
use tokio::time::timeout_at;

/// A body that is here. What it takes counts for its loop until it is dropped.
pub(crate) struct Read {
    desk: Rc<Desk>,
    pub(crate) bytes: Bytes,
    counted: usize,
}

impl Drop for Read {
    fn drop(&mut self) {
        self.desk.body_bytes.set(self.desk.body_bytes.get() - self.counted);
    }
}

/// Why a body was not read: the error, and the status where HTTP has a closer one than the error's kind.
pub(crate) type Unread = (RunError, Option<StatusCode>);

pub(crate) async fn read(desk: &Rc<Desk>, mut body: Incoming) -> Result<Read, Unread> {
    // What is announced to be too large is not waited for.
    if body.size_hint().lower() > REQUEST_BYTES_MAX as u64 {
        return Err(too_large());
    }
    let mut read = Read { desk: desk.clone(), bytes: Bytes::new(), counted: 0 };
    let mut gathered = BytesMut::new();
    let mut until = None;
    loop {
        // Most bodies come with their head, so the clock is asked only when one does not.
        let frame = match futures_util::FutureExt::now_or_never(body.frame()) {
            Some(frame) => frame,
            None => {
                let until = *until.get_or_insert_with(|| clock::now() + desk.app.settings.patience.body);
                timeout_at(until, body.frame()).await.map_err(|_| too_slow(desk))?
            }
        };
        let Some(frame) = frame else { break };
        // The client has broken off; nobody will read this.
        let frame = frame.map_err(|_| (RunError::cancelled(), None))?;
        let Ok(data) = frame.into_data() else { continue };
        read.counted += data.len();
        desk.body_bytes.set(desk.body_bytes.get() + data.len());
        if read.counted > REQUEST_BYTES_MAX {
            return Err(too_large());
        }
        if desk.body_bytes.get() > desk.app.settings.body_bytes_max {
            desk.metrics.memory_rejected.add(1);
            let message = "requests take all the memory that there is for them";
            return Err((RunError::new(ErrorKind::Overloaded, "E604", message), None));
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
    Ok(read)
}

fn too_large() -> Unread {
    let message = format!("a request has at most {REQUEST_BYTES_MAX} bytes");
    (RunError::new(ErrorKind::BadRequest, "E102", message), Some(StatusCode::PAYLOAD_TOO_LARGE))
}

fn too_slow(desk: &Desk) -> Unread {
    let message = format!("the body did not come within {} ms", desk.app.settings.patience.body.as_millis());
    (RunError::new(ErrorKind::BadRequest, "E124", message), Some(StatusCode::REQUEST_TIMEOUT))
}
