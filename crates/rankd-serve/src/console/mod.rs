//! The console: a page in the binary that shows plans, runs and stores, on a listener of its own. Here is what it needs besides its routes, which
//! are in `pages/console`: who may ask ([`guard`]), what every answer says to the browser ([`headers`]), the page itself ([`files`]), and the
//! figures that it shows ([`plan_figures`], [`node_figures`]).
//!
//! Without `--console` none of this exists: no figure is kept, and a run that is traced pays one test.

pub(crate) mod files;
pub(crate) mod guard;
pub(crate) mod headers;
pub(crate) mod node_figures;
pub(crate) mod plan_figures;
pub(crate) mod quantile;

use crate::catalog::Catalog;
use crate::hosts::Hosts;
use arc_swap::ArcSwap;
use guard::Guard;
pub use guard::{ConsoleToken, UnusableToken};
use node_figures::NodeFigures;
use plan_figures::PlanFigures;
use rankd_engine::clock::{self, Timer};
use std::net::TcpListener;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a time figures are summed over.
pub(crate) const SLOT: Duration = Duration::from_secs(10);
/// How many such times are kept: a quarter of an hour.
pub(crate) const SLOTS: usize = 90;

/// How the console is served.
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    /// The hosts that requests may be for.
    pub hosts: Hosts,
    /// What those who ask must know; `None` where anyone may ask.
    pub token: Option<ConsoleToken>,
    /// Whether the values of rows are shown.
    pub rows: bool,
}

/// What there is for the console while it is served.
pub(crate) struct Console {
    pub(crate) hosts: Hosts,
    pub(crate) guard: Guard,
    pub(crate) rows: bool,
    /// Until the first loop's acceptor takes it.
    pub(crate) listener: Mutex<Option<TcpListener>>,
    pub(crate) plans: PlanFigures,
    pub(crate) nodes: NodeFigures,
    /// One picture is laid out at a time: that of a large plan keeps a thread of the pool busy.
    pub(crate) pictures: Semaphore,
}

impl Console {
    pub(crate) fn new(listener: TcpListener, settings: ConsoleSettings) -> Console {
        let ConsoleSettings { hosts, token, rows } = settings;
        let now = clock::now();
        Console {
            hosts,
            guard: Guard::new(token),
            rows,
            listener: Mutex::new(Some(listener)),
            plans: PlanFigures::new(now),
            nodes: NodeFigures::new(now),
            pictures: Semaphore::new(1),
        }
    }
}

/// Sums figures up, slot after slot, for as long as it is polled.
pub(crate) async fn keep_figures(console: &Console, catalog: &ArcSwap<Catalog>) {
    let mut at = clock::now();
    loop {
        at += SLOT;
        Timer::new(at).await;
        console.plans.end_slot(&catalog.load_full(), clock::now()).await;
        console.nodes.forget_unwatched(clock::now());
    }
}
