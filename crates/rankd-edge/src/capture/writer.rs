//! The thread that writes captures: it gathers requests into batches, and hands them to the folder. What cannot be written is counted, and told once.

use super::columns::{self, Unwritable};
use super::counts::{CaptureCounts, Dropped};
use super::folder::CaptureFolder;
use super::{CapturedPlan, CapturedRequest};
use rankd_engine::clock::{self, Instant};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// A batch has no more requests than this, and no more bytes than about this.
const BATCH_REQUESTS: usize = 64;
const BATCH_BYTES: usize = 16 << 20;
/// A request waits no longer than this for a batch to be full.
const BATCH_WAIT: Duration = Duration::from_secs(1);

/// What the thread that writes gets.
pub(super) enum Post {
    Request(Box<PostedRequest>),
    End,
}

pub(super) struct PostedRequest {
    pub(super) request: CapturedRequest,
    pub(super) plan: CapturedPlan,
    /// What it counts in the queue.
    pub(super) bytes: usize,
}

pub(super) struct CaptureWriter {
    into: CaptureFolder,
    queued: Arc<AtomicUsize>,
    counts: Arc<CaptureCounts>,
    tell: Box<dyn FnMut(String) + Send>,
    has_told: bool,
    batch: Vec<CapturedRequest>,
    batch_bytes: usize,
    /// When the first request of the batch came.
    batch_since: Option<Instant>,
}

impl CaptureWriter {
    pub(super) fn new(
        into: CaptureFolder,
        queued: Arc<AtomicUsize>,
        counts: Arc<CaptureCounts>,
        tell: Box<dyn FnMut(String) + Send>,
    ) -> CaptureWriter {
        let (batch, batch_bytes) = (Vec::new(), 0);
        CaptureWriter { into, queued, counts, tell, has_told: false, batch, batch_bytes, batch_since: None }
    }

    /// Writes what comes, to the end.
    pub(super) fn run(&mut self, inbox: &Receiver<Post>) {
        loop {
            let next = match self.wait() {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(wait) => inbox.recv_timeout(wait),
            };
            match next {
                Ok(Post::Request(posted)) => {
                    self.take(*posted);
                    if self.batch.len() < BATCH_REQUESTS && self.batch_bytes < BATCH_BYTES {
                        continue;
                    }
                    self.write();
                }
                Err(RecvTimeoutError::Timeout) => self.write(),
                Ok(Post::End) | Err(RecvTimeoutError::Disconnected) => {
                    self.write();
                    return self.close();
                }
            }
            if self.into.is_due() {
                self.close();
            }
        }
    }

    /// How long there is nothing to do: until the batch has to be written, or the file at hand is old enough.
    fn wait(&self) -> Option<Duration> {
        let waited = self.batch_since.map(|since| clock::now().saturating_duration_since(since));
        waited.map(|waited| BATCH_WAIT.saturating_sub(waited)).or_else(|| self.into.time_left())
    }

    fn take(&mut self, posted: PostedRequest) {
        let PostedRequest { request, plan, bytes } = posted;
        let kept = self.into.keep_beside(&plan, request.record.facts.arms.as_deref());
        match (kept, columns::check(&request)) {
            (Ok(()), Ok(())) => {
                self.batch.push(request);
                self.batch_bytes += bytes;
                self.batch_since.get_or_insert_with(clock::now);
                return;
            }
            (Err(error), _) => self.fail(Dropped::Disk, 1, &error),
            (Ok(()), Err(unwritable)) => self.fail_unwritable(unwritable, 1),
        }
        self.queued.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn write(&mut self) {
        self.batch_since = None;
        let requests = self.batch.len() as u64;
        if requests == 0 {
            return;
        }
        match columns::batch(&self.batch).map(|batch| self.into.write(&batch)) {
            Ok(Ok(())) => {
                self.counts.written.fetch_add(requests, Ordering::Relaxed);
            }
            Ok(Err(error)) => self.fail(Dropped::Disk, requests, &error),
            Err(unwritable) => self.fail_unwritable(unwritable, requests),
        }
        self.batch.clear();
        self.queued.fetch_sub(std::mem::take(&mut self.batch_bytes), Ordering::Relaxed);
    }

    fn close(&mut self) {
        if let Err(error) = self.into.close() {
            self.fail(Dropped::Disk, 0, &error);
        }
    }

    fn fail_unwritable(&mut self, unwritable: Unwritable, requests: u64) {
        let (why, words) = match unwritable {
            Unwritable::NotText => (Dropped::NotText, "a key or a field of a read is not UTF-8"),
            Unwritable::TooMuch => (Dropped::TooLarge, "one batch has more than an Arrow stream can hold"),
        };
        self.fail(why, requests, &io::Error::other(words));
    }

    fn fail(&mut self, why: Dropped, requests: u64, error: &io::Error) {
        self.counts.drop_some(why, requests);
        if !std::mem::replace(&mut self.has_told, true) {
            (self.tell)(format!("requests cannot be captured: {error}; from now on they are only counted"));
        }
    }
}
