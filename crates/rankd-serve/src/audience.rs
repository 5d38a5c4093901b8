//! Whom a path is for, and which listener serves it.

/// Whom a path is for. Where operators have a listener of their own (`--admin`), this decides which of the two serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Clients that want rows.
    Callers,
    /// Those who run the server: it shows plans, tasks and traffic.
    Operators,
    Everyone,
    /// Everyone, for any host and however many connections there are: it only says whether the process is well.
    Probes,
}

/// The listener that a request came in on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// The only one, which serves every path.
    Only,
    /// The one for callers, beside one for operators.
    Public,
    Admin,
}

impl Listener {
    pub(crate) const ALL: [Listener; 3] = [Listener::Only, Listener::Public, Listener::Admin];

    pub(crate) fn can_serve(self, audience: Audience) -> bool {
        match (self, audience) {
            (Listener::Only, _) | (_, Audience::Everyone | Audience::Probes) => true,
            (Listener::Public, Audience::Callers) | (Listener::Admin, Audience::Operators) => true,
            (Listener::Public, Audience::Operators) | (Listener::Admin, Audience::Callers) => false,
        }
    }
}
