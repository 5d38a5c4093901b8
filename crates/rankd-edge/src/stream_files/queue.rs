//! What waits to be written, and the thread that writes it. The queue is bounded by bytes: what does not fit is dropped and counted, and so is what cannot be
//! written. Whoever hands something over takes a lock and wakes the thread once a batch.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// What waits to be written, or is being written, takes no more bytes than this.
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// A batch is written once it has so many items or about so many bytes.
const BATCH_ITEMS: usize = 64;
const BATCH_BYTES: usize = 16 << 20;
/// What is first in a batch waits no longer than this for the rest.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// How often a writer without work looks whether files are old enough to be closed.
const IDLE_WAIT: Duration = Duration::from_secs(60);
/// How long a program that ends waits for what is still to be written, where it does not say.
const END_WAIT: Duration = Duration::from_secs(60);

/// What became of the requests that were to be written.
#[derive(Debug, Default)]
pub struct WriteCounts {
    /// Written to a file.
    pub written: AtomicU64,
    /// Dropped, because more waited than may wait, or because there was too much of one.
    pub dropped: AtomicU64,
    /// Lost, because they could not be written.
    pub failed: AtomicU64,
}

impl WriteCounts {
    /// Each with the name of its result.
    pub fn by_result(&self) -> [(&'static str, u64); 3] {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        [("written", count(&self.written)), ("dropped", count(&self.dropped)), ("failed", count(&self.failed))]
    }
}

/// What writes batches of items, on a thread of its own.
pub(crate) trait BatchWriter: Send + 'static {
    type Item: Send + 'static;

    /// Writes these, and reports what became of each.
    fn write(&mut self, batch: Vec<Self::Item>, report: &mut WriteReport);

    /// Closes files that are old enough. Called after each batch, and now and then without one.
    fn close_old(&mut self) -> io::Result<()>;

    /// Nothing more comes.
    fn close(&mut self) -> io::Result<()>;
}

/// Counts what is written and what is not, and tells of the first thing that is not.
pub(crate) struct WriteReport {
    counts: Arc<WriteCounts>,
    tell: Box<dyn FnMut(String) + Send>,
    /// What cannot be done, in words.
    failure: &'static str,
    has_told: bool,
}

impl WriteReport {
    pub(crate) fn written(&mut self, requests: u64) {
        self.counts.written.fetch_add(requests, Ordering::Relaxed);
    }

    /// So many requests are lost.
    pub(crate) fn lost(&mut self, requests: u64) {
        self.counts.failed.fetch_add(requests, Ordering::Relaxed);
    }

    /// Tells of the first error.
    pub(crate) fn tell(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.has_told, true) {
            (self.tell)(format!("{}: {error}; from now on they are only counted", self.failure));
        }
    }
}

struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    /// Something waits that did not, a batch is full, or nothing more comes.
    changed: Condvar,
    /// The thread is done.
    done: Condvar,
}

struct Waiting<T> {
    items: Vec<T>,
    item_bytes: usize,
    /// With what is being written.
    bytes: usize,
    is_closed: bool,
    is_done: bool,
}

impl<T> Waiting<T> {
    fn is_full(&self) -> bool {
        self.items.len() >= BATCH_ITEMS || self.item_bytes >= BATCH_BYTES
    }
}

impl<T> Queue<T> {
    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch with its bytes, which may be empty; `None` where nothing more comes.
    fn next(&self) -> Option<(Vec<T>, usize)> {
        let waits = |waiting: &mut Waiting<T>| waiting.items.is_empty() && !waiting.is_closed;
        let first = self.changed.wait_timeout_while(self.lock(), IDLE_WAIT, waits);
        let (waiting, _) = first.unwrap_or_else(PoisonError::into_inner);
        if waiting.items.is_empty() {
            return (!waiting.is_closed).then(|| (Vec::new(), 0));
        }
        let waits = |waiting: &mut Waiting<T>| !waiting.is_full() && !waiting.is_closed;
        let rest = self.changed.wait_timeout_while(waiting, BATCH_WAIT, waits);
        let (mut waiting, _) = rest.unwrap_or_else(PoisonError::into_inner);
        let next = Vec::with_capacity(BATCH_ITEMS);
        Some((std::mem::replace(&mut waiting.items, next), std::mem::take(&mut waiting.item_bytes)))
    }
}

/// A thread that writes what it is handed.
pub(crate) struct QueuedWriter<T> {
    queue: Arc<Queue<T>>,
    counts: Arc<WriteCounts>,
}

impl<T: Send + 'static> QueuedWriter<T> {
    /// Starts a thread of this name. `tell` is told once what `failure` says, with the reason.
    pub(crate) fn start(
        name: &str,
        failure: &'static str,
        mut writer: impl BatchWriter<Item = T>,
        tell: impl FnMut(String) + Send + 'static,
    ) -> io::Result<QueuedWriter<T>> {
        let waiting = Waiting { items: Vec::new(), item_bytes: 0, bytes: 0, is_closed: false, is_done: false };
        let queue = Arc::new(Queue { waiting: Mutex::new(waiting), changed: Condvar::new(), done: Condvar::new() });
        let (inbox, counts) = (queue.clone(), Arc::new(WriteCounts::default()));
        let mut report = WriteReport { counts: counts.clone(), tell: Box::new(tell), failure, has_told: false };
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Some((items, bytes)) = inbox.next() {
                if !items.is_empty() {
                    writer.write(items, &mut report);
                    inbox.lock().bytes -= bytes;
                }
                if let Err(error) = writer.close_old() {
                    report.tell(&error);
                }
            }
            if let Err(error) = writer.close() {
                report.tell(&error);
            }
            inbox.lock().is_done = true;
            inbox.done.notify_all();
        })?;
        Ok(QueuedWriter { queue, counts })
    }

    /// Hands an item over, which takes so many bytes, or drops it where too much waits already.
    pub(crate) fn send(&self, item: T, bytes: usize) {
        let mut waiting = self.queue.lock();
        if waiting.is_closed || waiting.bytes.saturating_add(bytes) > QUEUE_BYTES_MAX {
            drop(waiting);
            return self.drop_one();
        }
        let was_full = waiting.is_full();
        waiting.bytes += bytes;
        waiting.item_bytes += bytes;
        waiting.items.push(item);
        let is_news = waiting.items.len() == 1 || (waiting.is_full() && !was_full);
        drop(waiting);
        if is_news {
            self.queue.changed.notify_one();
        }
    }

    fn drop_one(&self) {
        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// What became of requests so far.
    pub(crate) fn counts(&self) -> &Arc<WriteCounts> {
        &self.counts
    }
}

impl<T> QueuedWriter<T> {
    /// Takes nothing more, and waits for what is still to be written, but no longer than this.
    pub(crate) fn end(&self, within: Duration) {
        let mut waiting = self.queue.lock();
        waiting.is_closed = true;
        self.queue.changed.notify_one();
        // A disk that hangs keeps what it has not taken.
        let _ = self.queue.done.wait_timeout_while(waiting, within, |waiting| !waiting.is_done);
    }
}

/// What waits is written before it is gone.
impl<T> Drop for QueuedWriter<T> {
    fn drop(&mut self) {
        let was_ended = self.queue.lock().is_closed;
        if !was_ended {
            self.end(END_WAIT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Notes the sizes of batches, and waits for a word before each.
    struct Noted {
        batches: Sender<usize>,
        may_write: Receiver<()>,
    }

    impl BatchWriter for Noted {
        type Item = ();

        fn write(&mut self, batch: Vec<()>, report: &mut WriteReport) {
            // Whoever does not say anything any more lets all of it go on.
            let _ = self.may_write.recv();
            match batch.len() {
                1 => {
                    report.lost(1);
                    report.tell(&io::Error::other("full"));
                }
                many => report.written(many as u64),
            }
            self.batches.send(batch.len()).unwrap();
        }

        fn close_old(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn close(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_does_not_fit_is_dropped_what_waits_is_written_at_the_end_and_failures_are_told_once() {
        let ((sender, batches), (go, may_write)) = (channel(), channel());
        let (tell, told) = channel();
        let noted = Noted { batches: sender, may_write };
        let writer = QueuedWriter::start("test", "nothing is written", noted, move |note| tell.send(note).unwrap());
        let writer = writer.unwrap();
        let third = QUEUE_BYTES_MAX / 3;
        // More than a batch each, so that each is one of its own.
        for _ in 0..5 {
            writer.send((), third);
        }
        let counts = writer.counts().clone();
        assert_eq!(counts.dropped.load(Ordering::Relaxed), 2);
        drop(go);
        drop(writer);
        let sizes: Vec<usize> = batches.iter().collect();
        assert_eq!(sizes.iter().sum::<usize>(), 3);
        let (written, failed) = (counts.written.load(Ordering::Relaxed), counts.failed.load(Ordering::Relaxed));
        assert_eq!(written + failed, 3);
        let notes: Vec<String> = told.iter().collect();
        assert!(
            notes.len() <= 1 && notes.iter().all(|note| note.starts_with("nothing is written: full; ")),
            "{notes:?}"
        );
    }

    #[test]
    fn many_are_written_together() {
        let ((sender, batches), (go, may_write)) = (channel(), channel());
        let writer = QueuedWriter::start("test", "", Noted { batches: sender, may_write }, drop).unwrap();
        for _ in 0..1000 {
            writer.send((), 100);
        }
        drop(go);
        writer.end(Duration::from_secs(60));
        let sizes: Vec<usize> = batches.try_iter().collect();
        assert_eq!(sizes.iter().sum::<usize>(), 1000);
        assert!(sizes.len() <= 1000 / BATCH_ITEMS + 2, "{sizes:?}");
        writer.send((), 1);
        assert_eq!(writer.counts().dropped.load(Ordering::Relaxed), 1, "nothing is taken after the end");
    }
}
