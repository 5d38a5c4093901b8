//! One server: a step goes to one of the connections, and once more if that was closed on it.

use crate::store::health::Health;
use crate::store::redis::budget::Budget;
use crate::store::redis::connection::{Answered, Ask, Connection, Failed};
use crate::store::redis::greeting::Peer;
use crate::store::redis::{BATCH_IDS, in_batches, refused, resp};
use crate::store::{Answer, Replies, Step, Store, StoreError, Trouble};
use hashbrown::DefaultHashBuilder;
use rankd_plan::registry::Policy;
use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

pub(super) struct ServerStore {
    connections: Connections,
    budget: Budget,
    health: Arc<Health>,
}

impl ServerStore {
    pub(super) fn new(peer: &Peer, policy: Policy, health: &Arc<Health>) -> ServerStore {
        let connections = Connections::new(peer, policy, health);
        ServerStore { connections, budget: Budget::new(policy.retry_percent), health: health.clone() }
    }

    async fn send(&self, step: Step<'_>) -> Result<Replies, StoreError> {
        self.budget.asked(step.ids.len());
        let mut answered = self.connections.read(step.clone(), false).await;
        if worth_another_try(&answered) && self.budget.take(step.ids.len()) {
            self.health.count(|health| &health.retries, step.ids.len() as u64);
            answered = self.connections.read(step.clone(), false).await;
        }
        let result = match answered {
            Err(failed) => Err(failed.error),
            Ok(answered) => match answered.refused.first() {
                None => return Ok(answered.replies),
                Some((at, line)) => Err(refused(&step, *at, line)),
            },
        };
        self.health.count(|health| &health.errors, 1);
        result
    }
}

/// Whether the server closed the connection on it, or asked for it itself.
fn worth_another_try(answered: &Result<Answered, Failed>) -> bool {
    match answered {
        Err(failed) => failed.dropped,
        Ok(answered) => answered.refused.iter().any(|(_, line)| Trouble::of(line) == Trouble::TryAgain),
    }
}

impl Store for ServerStore {
    fn read<'a>(&'a self, step: Step<'a>) -> Answer<'a> {
        match step.ids.len() {
            0 => Box::pin(async { Ok(Replies::default()) }),
            1..=BATCH_IDS => Box::pin(self.send(step)),
            _ => Box::pin(in_batches(step, |batch| self.send(batch))),
        }
    }
}

/// All connections to one server.
pub(super) struct Connections {
    all: Vec<Rc<Connection>>,
    spread: DefaultHashBuilder,
}

impl Connections {
    pub(super) fn new(peer: &Peer, policy: Policy, health: &Arc<Health>) -> Connections {
        let connect = |_| Connection::new(peer.clone(), policy, health.clone());
        Connections {
            all: (0..policy.connections.max(1)).map(connect).collect(),
            spread: DefaultHashBuilder::default(),
        }
    }

    pub(super) async fn read(&self, step: Step<'_>, asking: bool) -> Result<Answered, Failed> {
        let mut commands = Vec::new();
        resp::push_step(&mut commands, &step, asking);
        // By what is asked, so that the same step finds its twin; different ones spread evenly.
        let connection = match self.all.as_slice() {
            [one] => one,
            several => &several[self.spread.hash_one(&commands) as usize % several.len()],
        };
        connection.read(Ask { step, commands, asking }).await
    }

    /// Gives them all up.
    pub(super) fn retire(&self) {
        self.all.iter().for_each(|connection| connection.retire());
    }
}
