//! What a run depended on, recorded while it ran, and runs on what another one recorded.
//!
//! Reads are recorded where all tasks read, in [`FetchContext`](crate::task::FetchContext), so that a team's own tasks are covered. A recorded read is
//! found again by endpoint, kind of read, rendered key and fields, never by node: another plan, or another version of the same one, can be run on what
//! one run recorded. `read` has what is recorded of a read, `recorder` keeps it during a run, `replay` answers from it, and `weather` is what struck the
//! nodes of the run.

mod read;
mod recorder;
mod replay;
#[cfg(test)]
mod tests;
mod weather;

pub use read::{RecordedCall, RecordedFault, RecordedKeys, RecordedRead};
pub use recorder::{RECORD_BYTES_MAX, RunFacts, RunRecord, RunRecorder};
pub use replay::Replay;
pub(crate) use replay::Unrecorded;
pub use weather::{Ending, NodeEnd, Struck, Weather};

use std::sync::Arc;

/// Where the reads of a run come from, and whether they are kept.
#[derive(Clone, Debug, Default)]
pub enum Reads {
    /// From stores.
    #[default]
    Live,
    /// From stores, and what they give is kept.
    Recorded(Arc<RunRecorder>),
    /// From what another run recorded.
    Replayed(Arc<Replay>),
}
