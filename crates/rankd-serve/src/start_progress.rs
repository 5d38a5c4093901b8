//! What the thread that loads plans reports while a server starts.

use rankd_edge::endpoints::EndpointError;

/// How far the thread has come with what it does first.
pub(crate) enum StartProgress {
    Note(String),
    Ready,
    Failed(EndpointError),
    /// A shadow is asked for that cannot run; in words.
    NoShadow(String),
}
