//! A cluster: the keys of a step are asked of the masters that have their slots, all at once, one pipeline for each.
//!
//! Where a slot has moved, the server says so: the command goes there once more and the layout is asked for anew, at most a few
//! times a second. A master that does not answer fails the steps that need it, at once, and no others.

use crate::clock::{self, Instant};
use crate::store::breaker::jittered;
use crate::store::budget::Budget;
use crate::store::health::Health;
use crate::store::keys::PickedKeys;
use crate::store::redis::Trouble;
use crate::store::redis::connection::{Answered, Failed};
use crate::store::redis::greeting::{Peer, Refusal};
use crate::store::redis::server::Connections;
use crate::store::redis::slots::{Layout, NodeName, Slotter, slot_of};
use crate::store::redis::{BATCH_KEYS, SECOND_TRIES, in_batches, refused, too_large};
use crate::store::{Answer, Keyed, Keys, ReadBatch, Replies, StoreError};
use futures_util::future::join_all;
use hashbrown::HashMap;
use rankd_plan::registry::Policy;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The least time between two questions for the layout.
const REFRESH_PAUSE: Duration = Duration::from_millis(250);

pub(super) struct ClusterStore(Rc<Cluster>);

struct Cluster {
    seeds: Vec<Peer>,
    policy: Policy,
    health: Arc<Health>,
    budget: Budget,
    nodes: RefCell<HashMap<NodeName, Rc<Connections>>>,
    layout: RefCell<Option<Rc<Layout>>>,
    /// Why the layout could not be had the last time.
    failure: RefCell<Option<StoreError>>,
    /// The layout is being asked for.
    refreshing: Cell<bool>,
    /// Before this time the layout is not asked for again.
    next_refresh: Cell<Option<Instant>>,
    refreshed: Notify,
}

/// What one node is asked of a step.
struct NodeBatch {
    node: NodeName,
    asking: bool,
    keys: PickedKeys,
    /// Where in the step each key stands.
    places: Vec<usize>,
}

impl ClusterStore {
    pub(super) fn new(seeds: &[Peer], policy: Policy, health: &Arc<Health>) -> ClusterStore {
        ClusterStore(Rc::new(Cluster {
            seeds: seeds.to_vec(),
            policy,
            health: health.clone(),
            budget: Budget::new(policy.retry_percent),
            nodes: RefCell::default(),
            layout: RefCell::default(),
            failure: RefCell::default(),
            refreshing: Cell::new(false),
            next_refresh: Cell::new(None),
            refreshed: Notify::new(),
        }))
    }
}

impl Keyed for ClusterStore {
    fn read<'a>(&'a self, batch: ReadBatch<'a>) -> Answer<'a> {
        match batch.keys.len() {
            0 => Box::pin(async { Ok(Replies::default()) }),
            1..=BATCH_KEYS => Box::pin(self.0.send(batch)),
            _ => Box::pin(in_batches(batch, |part| self.0.send(part))),
        }
    }
}

impl Cluster {
    async fn send(self: &Rc<Self>, batch: ReadBatch<'_>) -> Result<Replies, StoreError> {
        let result = self.ask(&batch).await;
        if result.is_err() {
            self.health.count(|health| &health.errors, 1);
        }
        result
    }

    async fn ask(self: &Rc<Self>, batch: &ReadBatch<'_>) -> Result<Replies, StoreError> {
        let layout = self.layout().await?;
        self.budget.count_first_tries(batch.keys.len());
        let parts = split(batch, &layout).inspect_err(|_| self.refresh())?;
        let mut gathered = Gathered::new(batch.keys.len());
        let mut again = self.round(batch, parts, &mut gathered).await?;
        // Where it does not end after a few, something is wrong with the cluster.
        for _ in 0..SECOND_TRIES {
            let count = again.iter().map(|part| part.places.len()).sum();
            if count == 0 || !self.budget.take(count) {
                break;
            }
            self.health.count(|health| &health.retries, count as u64);
            again = self.round(batch, again, &mut gathered).await?;
        }
        match again.is_empty() {
            true => Ok(gathered.replies()),
            false => Err(gathered.why_again()),
        }
    }

    /// Asks all nodes at once; returns what is to be asked again, and of which nodes.
    async fn round(
        self: &Rc<Self>,
        batch: &ReadBatch<'_>,
        parts: Vec<NodeBatch>,
        gathered: &mut Gathered,
    ) -> Result<Vec<NodeBatch>, StoreError> {
        let asked = parts.iter().map(|part| {
            let connections = self.node(&part.node);
            let batch = ReadBatch { keys: part.keys.keys(&batch.keys), read: batch.read };
            async move { connections.read(batch, part.asking, &self.budget).await }
        });
        let answers: Vec<Result<Answered, Failed>> = join_all(asked).await;
        let mut again = Vec::new();
        for (part, answered) in parts.into_iter().zip(answers) {
            match answered {
                Ok(answered) => self.gather(batch, part, answered, gathered, &mut again)?,
                Err(failed) => {
                    // It may have been replaced.
                    self.refresh();
                    if !failed.dropped {
                        return Err(failed.error);
                    }
                    gathered.trouble = Some(failed.error);
                    again.push(part);
                }
            }
        }
        Ok(again)
    }

    /// Puts a part's replies in their places; what was sent elsewhere goes to `again`.
    fn gather(
        self: &Rc<Self>,
        batch: &ReadBatch<'_>,
        part: NodeBatch,
        mut answered: Answered,
        gathered: &mut Gathered,
        again: &mut Vec<NodeBatch>,
    ) -> Result<(), StoreError> {
        if let Some((at, what)) = answered.too_large {
            return Err(too_large(batch, part.places.get(at).copied().unwrap_or_default(), what));
        }
        answered.accept_wrong_types();
        for (at, line) in &answered.refused {
            let Some(&place) = part.places.get(*at) else { continue };
            let error = refused(batch, place, line);
            let (node, asking) = match Trouble::of(line) {
                Trouble::Moved => match self.redirected(line, &part.node) {
                    Some(redirected) => redirected,
                    None => return Err(error),
                },
                Trouble::TryAgain => (part.node.clone(), part.asking),
                _ => return Err(error),
            };
            gathered.trouble = Some(error);
            push(again, batch, node, asking, place);
        }
        gathered.take(part.places, answered);
        Ok(())
    }

    /// Where `MOVED slot host:port` or `ASK slot host:port` sends a command.
    fn redirected(self: &Rc<Self>, line: &str, from: &NodeName) -> Option<(NodeName, bool)> {
        let mut words = line.split(' ');
        let (kind, slot, node) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
        let node = NodeName::parse(node, &from.host)?;
        if kind == "MOVED" {
            let mut layout = self.layout.borrow_mut();
            *layout = layout.as_ref().and_then(|layout| layout.moved(slot, &node)).map(Rc::new).or(layout.take());
            drop(layout);
            self.refresh();
        }
        Some((node, kind == "ASK"))
    }

    fn node(&self, name: &NodeName) -> Rc<Connections> {
        let mut nodes = self.nodes.borrow_mut();
        if let Some(known) = nodes.get(name) {
            return known.clone();
        }
        let connections = Rc::new(Connections::new(&self.peer(name), self.policy, &self.health));
        nodes.insert(name.clone(), connections.clone());
        connections
    }

    /// A node is reached as the seeds are.
    fn peer(&self, name: &NodeName) -> Peer {
        // The registry has no cluster without one.
        let seed = &self.seeds[0];
        Peer { address: seed.address.at(&name.host, name.port), ..seed.clone() }
    }

    /// The layout as far as it is known. If there is none and the last request for it has just failed, returns that error at once.
    async fn layout(self: &Rc<Self>) -> Result<Rc<Layout>, StoreError> {
        loop {
            // Registered before looking, so that a change in between is not missed.
            let refreshed = self.refreshed.notified();
            if let Some(layout) = &*self.layout.borrow() {
                return Ok(layout.clone());
            }
            if !self.refreshing.get() {
                self.refresh();
            }
            if !self.refreshing.get()
                && let Some(failure) = &*self.failure.borrow()
            {
                return Err(failure.clone());
            }
            refreshed.await;
        }
    }

    /// Asks for the layout in the background, unless a request for it is running; if one has just ended, after a pause.
    fn refresh(self: &Rc<Self>) {
        let pause = self.next_refresh.get().filter(|next| clock::now() < *next);
        // Without a layout every read waits for it, and no read is to wait for the pause.
        if self.refreshing.get() || (pause.is_some() && self.layout.borrow().is_none()) {
            return;
        }
        self.refreshing.set(true);
        let cluster = self.clone();
        tokio::task::spawn_local(async move {
            if let Some(until) = pause {
                tokio::time::sleep_until(until).await;
            }
            let found = cluster.find_layout().await;
            let number = cluster.health.snapshot().refreshes;
            cluster.next_refresh.set(Some(clock::now() + jittered(REFRESH_PAUSE, number)));
            match found {
                Ok(layout) => cluster.adopt(layout),
                Err(error) => *cluster.failure.borrow_mut() = Some(error),
            }
            cluster.refreshing.set(false);
            cluster.refreshed.notify_waiters();
        });
    }

    fn adopt(&self, layout: Layout) {
        // Connections to nodes that have left the cluster are closed.
        self.nodes.borrow_mut().retain(|name, connections| {
            let stays = layout.masters.contains(name);
            if !stays {
                connections.retire();
            }
            stays
        });
        *self.layout.borrow_mut() = Some(Rc::new(layout));
        *self.failure.borrow_mut() = None;
    }

    /// Asks one node after the other, first those that are masters now.
    async fn find_layout(&self) -> Result<Layout, StoreError> {
        self.health.count(|health| &health.refreshes, 1);
        let known = self.layout.borrow().clone();
        let masters = known.iter().flat_map(|layout| &layout.masters).map(|name| self.peer(name));
        let mut failure = None;
        for peer in masters.chain(self.seeds.iter().cloned()) {
            self.health.count(|health| &health.connects, 1);
            match ask_for_layout(&peer).await {
                Ok(layout) => return Ok(layout),
                Err(refusal) => failure = Some((peer.address.shown(), refusal)),
            }
        }
        Err(match failure {
            Some((shown, Refusal::Words(words))) => StoreError::Unavailable(format!("{shown}: {words}")),
            Some((_, Refusal::Line(line))) => StoreError::from_server(String::new(), line),
            None => StoreError::Unavailable("no node of the cluster is known".into()),
        })
    }
}

/// Asks one node which nodes have which slots.
pub(super) async fn ask_for_layout(peer: &Peer) -> Result<Layout, Refusal> {
    let layout = async {
        let mut socket = peer.greet().await?;
        let (parts, bytes) = Peer::ask(&mut socket, &["CLUSTER", "SLOTS"]).await?;
        let host = peer.address.host();
        let layout = Layout::read(&bytes, &parts, host);
        layout.ok_or_else(|| Refusal::Words("it returned no cluster layout".into()))
    };
    let late = |_| Refusal::Words("it did not return the cluster layout in time".into());
    tokio::time::timeout(2 * peer.connect_timeout, layout).await.map_err(late)?
}

/// The parts of a step by the master that each key belongs to.
fn split(batch: &ReadBatch<'_>, layout: &Layout) -> Result<Vec<NodeBatch>, StoreError> {
    let mut parts: Vec<Option<NodeBatch>> = (0..layout.masters.len()).map(|_| None).collect();
    let mut put = |place: usize, slot: usize| {
        let unserved = || StoreError::Unavailable(format!("no node of the cluster serves slot {slot}"));
        let owner = layout.owner(slot).ok_or_else(unserved)?;
        let part = parts[owner].get_or_insert_with(|| NodeBatch::new(batch, layout.masters[owner].clone(), false));
        part.push(batch, place);
        Ok(())
    };
    match batch.keys {
        Keys::Numbered { prefix, ids } => {
            let slotter = Slotter::new(prefix);
            ids.iter().enumerate().try_for_each(|(place, id)| put(place, slotter.slot(*id)))?;
        }
        Keys::Written(keys) => keys.iter().enumerate().try_for_each(|(place, key)| put(place, slot_of(key)))?,
    }
    Ok(parts.into_iter().flatten().collect())
}

fn push(parts: &mut Vec<NodeBatch>, batch: &ReadBatch<'_>, node: NodeName, asking: bool, place: usize) {
    let at = parts.iter().position(|part| part.node == node && part.asking == asking).unwrap_or_else(|| {
        parts.push(NodeBatch::new(batch, node, asking));
        parts.len() - 1
    });
    parts[at].push(batch, place);
}

impl NodeBatch {
    fn new(of: &ReadBatch<'_>, node: NodeName, asking: bool) -> NodeBatch {
        NodeBatch { node, asking, keys: PickedKeys::of(&of.keys), places: Vec::new() }
    }

    fn push(&mut self, of: &ReadBatch<'_>, place: usize) {
        self.keys.push(&of.keys, place);
        self.places.push(place);
    }
}

/// Replies of several nodes, and which of them is for which key.
struct Gathered {
    answers: Vec<Replies>,
    /// For each key of the step, the answer and the place in it.
    from: Vec<(u32, u32)>,
    /// Why something has to be asked again.
    trouble: Option<StoreError>,
}

impl Gathered {
    fn new(keys: usize) -> Gathered {
        Gathered { answers: Vec::new(), from: vec![(0, 0); keys], trouble: None }
    }

    fn take(&mut self, places: Vec<usize>, answered: Answered) {
        let number = self.answers.len() as u32;
        for (at, place) in places.into_iter().enumerate() {
            self.from[place] = (number, at as u32);
        }
        self.answers.push(answered.replies);
    }

    fn why_again(self) -> StoreError {
        self.trouble.unwrap_or_else(|| StoreError::Unavailable("the cluster redirects reads in a loop".into()))
    }

    /// All in the order of the step.
    fn replies(mut self) -> Replies {
        match self.answers.len() {
            // One node had all of them, in order.
            1 => self.answers.pop().unwrap_or_default(),
            _ => {
                let mut all = Replies::default();
                for (answer, at) in self.from {
                    all.push_reply(&self.answers[answer as usize], at as usize);
                }
                self.answers.iter().for_each(|answer| all.push_counts(answer));
                all
            }
        }
    }
}
