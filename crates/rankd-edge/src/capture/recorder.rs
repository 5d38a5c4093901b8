//! Where requests are handed over to be captured: which of them are, and a queue to the thread that writes them ([`super::writer`]). The queue is bounded by
//! bytes: what does not fit is dropped and counted, and so is what cannot be written. Nobody waits for a disk.

use super::counts::{CaptureCounts, Dropped};
use super::folder::{CaptureFolder, CaptureLimits, FolderError};
use super::writer::{CaptureWriter, Post, PostedRequest};
use super::{CapturedPlan, CapturedRequest};
use rankd_column::expr::salted_unit_hash;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What waits to be written takes no more bytes than this.
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// Goes before the request's id where it is decided which requests are captured.
const SALT: &str = "capture";

/// Where requests are captured.
pub struct Capture {
    share: f64,
    posts: Sender<Post>,
    /// Nothing comes from here; it is closed when the thread is done.
    ended: Mutex<Receiver<()>>,
    queued: Arc<AtomicUsize>,
    counts: Arc<CaptureCounts>,
    /// Nothing once somebody has waited for its end.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Capture {
    /// Captures a share of the requests into a folder, which is made where it is not there. `tell` is told once of what cannot be written.
    pub fn start(
        folder: &Path,
        share: f64,
        limits: CaptureLimits,
        tell: impl FnMut(String) + Send + 'static,
    ) -> Result<Capture, FolderError> {
        let (queued, counts) = (Arc::new(AtomicUsize::new(0)), Arc::new(CaptureCounts::default()));
        let into = CaptureFolder::open(folder, limits, counts.clone())?;
        let ((posts, inbox), (alive, ended)) = (channel(), channel::<()>());
        let mut writer = CaptureWriter::new(into, queued.clone(), counts.clone(), Box::new(tell));
        let thread = thread::Builder::new().name("rankd-capture".to_owned()).spawn(move || {
            writer.run(&inbox);
            // First, so that whoever hears of the end can hand nothing over any more.
            drop(inbox);
            drop(alive);
        });
        let thread = thread.map_err(|error| FolderError { path: folder.to_owned(), error })?;
        Ok(Capture { share, posts, ended: Mutex::new(ended), queued, counts, thread: Mutex::new(Some(thread)) })
    }

    /// Whether the request with this id is one of the share: always the same for one id.
    pub fn takes(&self, request_id: &str) -> bool {
        self.share >= 1.0 || salted_unit_hash(SALT, request_id) < self.share
    }

    /// Hands a request over to be written, or drops it where too much waits already.
    pub fn keep(&self, request: CapturedRequest, plan: CapturedPlan) {
        let bytes = request.byte_count();
        if request.record.is_cut || bytes > QUEUE_BYTES_MAX {
            return self.counts.drop_some(Dropped::TooLarge, 1);
        }
        let dropped = if self.queued.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > QUEUE_BYTES_MAX {
            Some(Dropped::QueueFull)
        } else {
            let post = Post::Request(Box::new(PostedRequest { request, plan, bytes }));
            self.posts.send(post).is_err().then_some(Dropped::Disk)
        };
        if let Some(why) = dropped {
            self.queued.fetch_sub(bytes, Ordering::Relaxed);
            self.counts.drop_some(why, 1);
        }
    }

    /// What became of requests so far.
    pub fn counts(&self) -> &CaptureCounts {
        &self.counts
    }

    /// Writes what waits, and ends. False where that takes longer than this: a disk that hangs is not waited for.
    pub fn end(&self, within: Duration) -> bool {
        // Where nobody takes it, the thread is done already.
        let _ = self.posts.send(Post::End);
        // Whoever drops this need not wait once more.
        drop(self.thread.lock().unwrap_or_else(PoisonError::into_inner).take());
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.recv_timeout(within) == Err(RecvTimeoutError::Disconnected)
    }
}

/// What waits is written before it is gone.
impl Drop for Capture {
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // As above; a thread that panicked has nothing more to write.
            let _ = self.posts.send(Post::End);
            let _ = thread.join();
        }
    }
}
