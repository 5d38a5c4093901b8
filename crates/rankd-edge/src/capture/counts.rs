//! What became of the requests that were to be captured, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why a request that was to be captured is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// More waits to be written than may wait.
    QueueFull,
    /// It could not be written: the disk is full, the folder is gone, or the process has stopped.
    Disk,
    /// Its run read more than is kept of one.
    TooLarge,
    /// A key or a field of a read is not UTF-8.
    NotText,
}

impl Dropped {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Dropped; 4] = [Dropped::QueueFull, Dropped::Disk, Dropped::TooLarge, Dropped::NotText];

    /// What metrics call it.
    pub fn name(self) -> &'static str {
        match self {
            Dropped::QueueFull => "queue_full",
            Dropped::Disk => "disk",
            Dropped::TooLarge => "too_large",
            Dropped::NotText => "not_text",
        }
    }
}

/// What became of the requests that were to be captured.
#[derive(Debug, Default)]
pub struct CaptureCounts {
    pub(super) written: AtomicU64,
    dropped: [AtomicU64; Dropped::ALL.len()],
    pub(super) bytes: AtomicU64,
    pub(super) files: AtomicU64,
}

impl CaptureCounts {
    /// How many were written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// How many were dropped for this reason.
    pub fn dropped(&self, why: Dropped) -> u64 {
        self.dropped[why as usize].load(Ordering::Relaxed)
    }

    /// How many bytes were written, without plans and registries.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many files were begun.
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    pub(super) fn drop_some(&self, why: Dropped, requests: u64) {
        self.dropped[why as usize].fetch_add(requests, Ordering::Relaxed);
    }
}
