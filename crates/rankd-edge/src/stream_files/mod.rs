//! What writes Arrow streams to a folder while requests are answered. Nobody waits for a disk.
//!
//! Reading order: [`sampling`] (which requests are written), [`queue`] (what waits to be written, and the thread that writes it), [`folder`] (files that are
//! rotated and removed). What is in the files is the business of those who use this.

mod folder;
mod queue;
mod sampling;

pub(crate) use folder::StreamFolder;
#[cfg(test)]
pub(crate) use folder::list;
pub use folder::{StreamFolderError, StreamLimits};
pub use queue::WriteCounts;
pub(crate) use queue::{BatchWriter, QueuedWriter, WriteReport};
pub(crate) use sampling::Sampling;
