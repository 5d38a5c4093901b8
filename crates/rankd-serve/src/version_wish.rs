//! What may be done with the versions of plans: by the server's settings, and by an operator's wish on its way to the thread that does it.

use crossbeam_channel::{Receiver, Sender, bounded};
use rankd_engine::RunError;
use tokio::sync::oneshot;

/// How many wishes of operators may wait.
const WAITING_MAX: usize = 32;

/// What may become of the versions of plans besides what their files say.
#[derive(Clone, Copy, Debug, Default)]
pub struct VersionSettings {
    /// Whether operators may roll plans back and pin them.
    pub allow_rollback: bool,
    /// Whether a new version that is clearly worse than the one before is rolled back by itself.
    pub auto_rollback: bool,
}

impl VersionSettings {
    /// Whether versions are counted and their artifacts kept.
    pub(crate) fn keeps_versions(self) -> bool {
        self.allow_rollback || self.auto_rollback
    }
}

/// What an operator wants of a plan.
#[derive(Debug)]
pub(crate) enum Wish {
    /// Back to the version that begins with these digits, or else to the one before.
    RollBack(Option<String>),
    /// Stay at the version that begins with these digits.
    Pin(String),
    Unpin,
}

/// Why nothing was changed.
#[derive(Debug)]
pub(crate) struct NotSwitched {
    pub(crate) error: RunError,
    /// What is wrong with the version, as a JSON array.
    pub(crate) diagnostics: Option<String>,
}

impl From<RunError> for NotSwitched {
    fn from(error: RunError) -> NotSwitched {
        NotSwitched { error, diagnostics: None }
    }
}

/// A wish on its way to the thread.
pub(crate) struct SwitchRequest {
    pub(crate) plan: String,
    pub(crate) wish: Wish,
    pub(crate) done: oneshot::Sender<Result<(), NotSwitched>>,
}

/// The way to the thread, and its other end until the thread has started.
pub(crate) fn channel() -> (Sender<SwitchRequest>, Receiver<SwitchRequest>) {
    bounded(WAITING_MAX)
}
