//! The files of tables, checked periodically like the plan folder: which have changed and stopped changing.

use crate::watched_folder::LookReason;
use rankd_edge::files::Stamp;
use rankd_edge::tables::TableFiles;
use std::sync::Arc;

pub(crate) struct WatchedTables {
    files: Arc<TableFiles>,
    /// By table.
    seen: Vec<SeenFile>,
}

/// What a file looked like from outside.
pub(crate) struct SeenFile {
    /// When it was last read.
    read: Option<Stamp>,
    /// When it was seen to have changed; it may still be changing.
    changing: Option<Option<Stamp>>,
}

impl WatchedTables {
    /// Made before the files are read for the first time: what changes meanwhile has changed.
    pub(crate) fn new(files: Arc<TableFiles>) -> WatchedTables {
        let seen = files.sources().iter().map(|source| SeenFile::read_as(source.stamp())).collect();
        WatchedTables { files, seen }
    }

    pub(crate) fn files(&self) -> &Arc<TableFiles> {
        &self.files
    }

    /// Whether a file has changed that may still be changing.
    pub(crate) fn is_changing(&self) -> bool {
        self.seen.iter().any(SeenFile::is_changing)
    }

    /// The tables whose files should be read now, by position. They count as read.
    pub(crate) fn look(&mut self, reason: LookReason) -> Vec<usize> {
        let all = self.files.sources().iter().zip(&mut self.seen).enumerate();
        all.filter_map(|(at, (source, seen))| seen.is_due(source.stamp(), reason).then_some(at)).collect()
    }
}

impl SeenFile {
    /// A file that was read when it looked like this.
    pub(crate) fn read_as(stamp: Option<Stamp>) -> SeenFile {
        SeenFile { read: stamp, changing: None }
    }

    pub(crate) fn is_changing(&self) -> bool {
        self.changing.is_some()
    }

    /// Whether it should be read now, as it looks. It counts as read.
    pub(crate) fn is_due(&mut self, now: Option<Stamp>, reason: LookReason) -> bool {
        if now == self.read {
            self.changing = None;
            return false;
        }
        // It may still be being written: wait until two checks see the same.
        if reason == LookReason::Watch && self.changing.as_ref() != Some(&now) {
            self.changing = Some(now);
            return false;
        }
        self.changing = None;
        self.read = now;
        true
    }
}
