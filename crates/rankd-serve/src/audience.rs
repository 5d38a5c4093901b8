//! Whom a path is for, and which listener serves it.

/// Whom a path is for. Where operators have a listener of their own (`--admin`), this decides which of the two serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Clients that want rows.
    Callers,
    /// Those who run the server: it shows plans, tasks and traffic.
    Operators,
    /// Those who ask what became of items: it shows rows and what a plan made of them. The server's settings say where ([`WhyServed`]).
    Askers,
    Everyone,
    /// Those who look at the console: only its own listener has this.
    Console,
    /// The files of the console's page, which a browser asks for before it can show who asks.
    ConsoleFiles,
    /// Everyone, for any host and however many connections there are: it only says whether the process is well.
    Probes,
}

/// Where questions about items are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhyServed {
    /// On the listener for operators, and nowhere where there is none.
    #[default]
    OnAdmin,
    /// On the listener for callers as well.
    Everywhere,
    /// On none.
    Nowhere,
}

/// The listener that a request came in on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// The only one, which serves every path.
    Only,
    /// The one for callers, beside one for operators.
    Public,
    Admin,
    /// The one for the console, beside any of the others.
    Console,
}

impl Listener {
    pub(crate) const ALL: [Listener; 4] = [Listener::Only, Listener::Public, Listener::Admin, Listener::Console];

    pub(crate) fn can_serve(self, audience: Audience, why: WhyServed) -> bool {
        match (self, audience) {
            (Listener::Console, Audience::Console | Audience::ConsoleFiles | Audience::Everyone) => true,
            (Listener::Console, _) | (_, Audience::Console | Audience::ConsoleFiles) => false,
            (_, Audience::Askers) => match why {
                WhyServed::OnAdmin => self == Listener::Admin,
                WhyServed::Everywhere => true,
                WhyServed::Nowhere => false,
            },
            (Listener::Only, _) | (_, Audience::Everyone | Audience::Probes) => true,
            (Listener::Public, Audience::Callers) | (Listener::Admin, Audience::Operators) => true,
            (Listener::Public, Audience::Operators) | (Listener::Admin, Audience::Callers) => false,
        }
    }
}
