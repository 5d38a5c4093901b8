//! The thread that writes captures. Requests are handed to it through a queue that is bounded by bytes: what does not fit is dropped and counted, and so is
//! what cannot be written. Nobody waits for a disk.

use super::CapturedRequest;
use super::columns::{self, Unwritable};
use super::folder::{CaptureFolder, CaptureLimits, FolderError};
use crate::library::sha256;
use crate::registry_files::RegistryTexts;
use rankd_column::expr::salted_unit_hash;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What waits to be written takes no more bytes than this.
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// A batch has no more requests than this, and no more bytes than about this.
const BATCH_REQUESTS: usize = 64;
const BATCH_BYTES: usize = 16 << 20;
/// A request waits no longer than this for a batch to be full.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// Goes before the request's id where it is decided which requests are captured.
const SALT: &str = "capture";

/// The plan and the registry that a request ran with, as they are written down.
#[derive(Clone, Debug)]
pub struct CapturedPlan {
    /// The SHA-256 of the artifact, and the artifact.
    pub sha256: Arc<str>,
    /// See [`CapturedPlan::sha256`].
    pub artifact: Arc<str>,
    /// The SHA-256 of the registry, and what its files say.
    pub registry_sha256: Arc<str>,
    /// See [`CapturedPlan::registry_sha256`].
    pub registry: Arc<RegistryTexts>,
}

impl CapturedPlan {
    /// Of an artifact and a registry.
    pub fn new(artifact: &str, registry: &RegistryTexts) -> CapturedPlan {
        CapturedPlan {
            sha256: sha256(artifact).into(),
            artifact: artifact.into(),
            registry_sha256: sha256(&registry.to_json()).into(),
            registry: Arc::new(registry.clone()),
        }
    }
}

/// What became of the requests that were to be captured.
#[derive(Debug, Default)]
pub struct CaptureCounts {
    /// Written to a file.
    pub written: AtomicU64,
    /// Dropped, because more waited than may wait, or because a run read more than is kept of one.
    pub dropped: AtomicU64,
    /// Lost, because they could not be written.
    pub failed: AtomicU64,
}

struct Post {
    request: CapturedRequest,
    plan: CapturedPlan,
    bytes: usize,
}

/// Where requests are captured.
pub struct Capture {
    share: f64,
    queue: Option<Sender<Post>>,
    queued: Arc<AtomicUsize>,
    counts: Arc<CaptureCounts>,
    thread: Option<JoinHandle<()>>,
}

impl Capture {
    /// Captures a share of the requests into a folder, which is made where it is not there. `tell` is told once of what cannot be written.
    pub fn start(
        folder: &Path,
        share: f64,
        limits: CaptureLimits,
        tell: impl FnMut(String) + Send + 'static,
    ) -> Result<Capture, FolderError> {
        let into = CaptureFolder::open(folder, limits)?;
        let (queue, inbox) = channel();
        let (queued, counts) = (Arc::new(AtomicUsize::new(0)), Arc::new(CaptureCounts::default()));
        let mut writer = CaptureWriter {
            into,
            queued: queued.clone(),
            counts: counts.clone(),
            tell: Box::new(tell),
            has_told: false,
            batch: Vec::new(),
            batch_bytes: 0,
        };
        let thread = thread::Builder::new().name("rankd-capture".to_owned()).spawn(move || writer.run(&inbox));
        let thread = thread.map_err(|error| FolderError { path: folder.to_owned(), error })?;
        Ok(Capture { share, queue: Some(queue), queued, counts, thread: Some(thread) })
    }

    /// Whether the request with this id is one of the share: always the same for one id.
    pub fn takes(&self, request_id: &str) -> bool {
        self.share >= 1.0 || salted_unit_hash(SALT, request_id) < self.share
    }

    /// Hands a request over to be written, or drops it where too much waits already.
    pub fn keep(&self, request: CapturedRequest, plan: &CapturedPlan) {
        let bytes = request.byte_count();
        let queued = self.queued.fetch_add(bytes, Ordering::Relaxed);
        let is_dropped = request.record.is_cut || queued.saturating_add(bytes) > QUEUE_BYTES_MAX;
        let sent = !is_dropped
            && self.queue.as_ref().is_some_and(|queue| queue.send(Post { request, plan: plan.clone(), bytes }).is_ok());
        if !sent {
            self.queued.fetch_sub(bytes, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What became of requests so far.
    pub fn counts(&self) -> &CaptureCounts {
        &self.counts
    }
}

/// What waits is written before it is gone.
impl Drop for Capture {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to write.
            let _ = thread.join();
        }
    }
}

struct CaptureWriter {
    into: CaptureFolder,
    queued: Arc<AtomicUsize>,
    counts: Arc<CaptureCounts>,
    tell: Box<dyn FnMut(String) + Send>,
    has_told: bool,
    batch: Vec<CapturedRequest>,
    batch_bytes: usize,
}

impl CaptureWriter {
    fn run(&mut self, inbox: &Receiver<Post>) {
        loop {
            // An empty batch waits for as long as it takes.
            let next = match self.batch.is_empty() {
                true => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => inbox.recv_timeout(BATCH_WAIT),
            };
            match next {
                Ok(post) => {
                    self.take(post);
                    if self.batch.len() < BATCH_REQUESTS && self.batch_bytes < BATCH_BYTES {
                        continue;
                    }
                    self.write();
                }
                Err(RecvTimeoutError::Timeout) => self.write(),
                Err(RecvTimeoutError::Disconnected) => {
                    self.write();
                    if let Err(error) = self.into.close() {
                        self.fail(0, &error);
                    }
                    return;
                }
            }
        }
    }

    fn take(&mut self, post: Post) {
        let Post { request, plan, bytes } = post;
        let kept = self.into.keep_plan(&plan.sha256, &plan.artifact);
        let kept = kept.and_then(|()| self.into.keep_registry(&plan.registry_sha256, &plan.registry));
        match (kept, columns::check(&request)) {
            (Ok(()), Ok(())) => {
                self.batch.push(request);
                self.batch_bytes += bytes;
                return;
            }
            (Err(error), _) => self.fail(1, &error),
            (Ok(()), Err(unwritable)) => self.fail(1, &io::Error::other(in_words(unwritable))),
        }
        self.queued.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn write(&mut self) {
        let requests = self.batch.len() as u64;
        if requests == 0 {
            return;
        }
        let batch = columns::batch(&self.batch).map_err(|unwritable| io::Error::other(in_words(unwritable)));
        match batch.and_then(|batch| self.into.write(&batch)) {
            Ok(()) => {
                self.counts.written.fetch_add(requests, Ordering::Relaxed);
            }
            Err(error) => self.fail(requests, &error),
        }
        self.batch.clear();
        self.queued.fetch_sub(std::mem::take(&mut self.batch_bytes), Ordering::Relaxed);
    }

    fn fail(&mut self, requests: u64, error: &io::Error) {
        self.counts.failed.fetch_add(requests, Ordering::Relaxed);
        if !std::mem::replace(&mut self.has_told, true) {
            (self.tell)(format!("requests cannot be captured: {error}; from now on they are only counted"));
        }
    }
}

fn in_words(unwritable: Unwritable) -> &'static str {
    match unwritable {
        Unwritable::NotText => "a key or a field of a read is not UTF-8",
        Unwritable::TooMuch => "one batch has more than an Arrow stream can hold",
    }
}
