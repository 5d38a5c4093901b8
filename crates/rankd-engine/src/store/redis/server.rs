//! One server: a step goes to one of the connections; and once more, to another, if that was closed on it or its answer is overdue.
//!
//! A connection on which nothing comes may have lost a packet, which TCP sends again only after 200 ms and more. So a step whose
//! answer is overdue is also asked on another connection, as far as the budget for second tries goes. The first answer counts; the
//! other is read when it comes and thrown away. New steps take a connection that is responsive.

use crate::store::budget::Budget;
use crate::store::health::Health;
use crate::store::parcel::News;
use crate::store::redis::Trouble;
use crate::store::redis::connection::{Answered, Ask, Connection, Failed, ReadOutcome};
use crate::store::redis::greeting::Peer;
use crate::store::redis::pulse::Pulse;
use crate::store::redis::{BATCH_KEYS, SECOND_TRIES, in_batches, refused, resp, too_large};
use crate::store::{Answer, Keyed, ReadBatch, Replies, StoreError};
use futures_util::future::{Either, select};
use hashbrown::DefaultHashBuilder;
use rankd_plan::registry::Policy;
use std::cell::{Cell, OnceCell};
use std::hash::BuildHasher;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use tokio::time::sleep;

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

    async fn send(&self, batch: ReadBatch<'_>) -> Result<Replies, StoreError> {
        self.budget.count_first_tries(batch.keys.len());
        let mut answered = self.connections.read(batch.clone(), false, &self.budget).await;
        for _ in 0..SECOND_TRIES {
            if !worth_another_try(&answered) || !self.budget.take(batch.keys.len()) {
                break;
            }
            self.health.count(|health| &health.retries, batch.keys.len() as u64);
            answered = self.connections.read(batch.clone(), false, &self.budget).await;
        }
        let result = match answered {
            Err(failed) => Err(failed.error),
            Ok(Answered { too_large: Some((at, what)), .. }) => Err(too_large(&batch, at, what)),
            Ok(mut answered) => {
                answered.accept_wrong_types();
                match answered.refused.first() {
                    None => return Ok(answered.replies),
                    Some((at, line)) => Err(refused(&batch, *at, line)),
                }
            }
        };
        self.health.count(|health| &health.errors, 1);
        result
    }
}

/// Whether the server closed the connection before it answered, or asked for another try.
fn worth_another_try(answered: &Result<Answered, Failed>) -> bool {
    match answered {
        Err(failed) => failed.dropped,
        Ok(answered) => answered.refused.iter().any(|(_, line)| Trouble::of(line) == Trouble::TryAgain),
    }
}

impl Keyed for ServerStore {
    fn read<'a>(&'a self, batch: ReadBatch<'a>) -> Answer<'a> {
        match batch.keys.len() {
            0 => Box::pin(async { Ok(Replies::default()) }),
            1..=BATCH_KEYS => Box::pin(self.send(batch)),
            _ => Box::pin(in_batches(batch, |part| self.send(part))),
        }
    }
}

/// All connections to one server.
pub(super) struct Connections {
    all: Vec<Rc<Connection>>,
    /// For second tries where there is only one other; opened when it is first needed.
    spare: OnceCell<Rc<Connection>>,
    peer: Peer,
    policy: Policy,
    health: Arc<Health>,
    pulse: Rc<Pulse>,
    spread: DefaultHashBuilder,
}

impl Connections {
    pub(super) fn new(peer: &Peer, policy: Policy, health: &Arc<Health>) -> Connections {
        let pulse = Rc::new(Pulse::default());
        let connect = |_| Connection::new(peer.clone(), policy, health.clone(), pulse.clone());
        Connections {
            all: (0..policy.connections.max(1)).map(connect).collect(),
            spare: OnceCell::new(),
            peer: peer.clone(),
            policy,
            health: health.clone(),
            pulse,
            spread: DefaultHashBuilder::default(),
        }
    }

    pub(super) async fn read(&self, batch: ReadBatch<'_>, asking: bool, budget: &Budget) -> ReadOutcome {
        let mut commands = Vec::new();
        resp::push_step(&mut commands, &batch, asking);
        let ask = Ask { batch, commands: Rc::new(commands), asking };
        let connection = self.choose(&ask).await?;
        let mut first = connection.start(&ask).await?;
        if let News::Answer(outcome) = (&mut first).await {
            return outcome;
        }
        let sent = Cell::new(false);
        let second = pin!(self.second_try(&ask, connection, budget, &sent));
        match select(pin!(first.answer()), second).await {
            Either::Left((Err(_), second)) if sent.get() => second.await,
            Either::Left((outcome, _)) => outcome,
            Either::Right((Ok(answered), _)) => Ok(answered),
            Either::Right((Err(_), first)) => first.await,
        }
    }

    /// The connection that a step is sent on. Waits for one only where that is worth it.
    async fn choose(&self, ask: &Ask<'_>) -> Result<&Rc<Connection>, StoreError> {
        // Chosen by what is asked, so that identical steps meet on one connection; different ones spread evenly.
        let home = match self.all.as_slice() {
            [one] => one,
            several => &several[self.spread.hash_one(&*ask.commands) as usize % several.len()],
        };
        if home.is_responsive() {
            return Ok(home);
        }
        if let Some(why) = self.pulse.hanging_because() {
            // The connection itself notices when the server no longer hangs.
            home.pass().await?;
            return if self.pulse.hanging_because().is_some() { Err(why) } else { Ok(home) };
        }
        let one = |is: fn(&Connection) -> bool| self.all.iter().chain(self.spare.get()).find(|other| is(other));
        if let Some(other) = one(Connection::is_responsive).or_else(|| one(Connection::is_up)) {
            return Ok(other);
        }
        match select(pin!(home.pass()), pin!(sleep(self.peer.connect_timeout / 2))).await {
            Either::Left((passed, _)) => passed.map(|()| home),
            // A lost packet may keep a connection from being made, too.
            Either::Right(((), passing)) => {
                let other = self.other_than(home);
                match select(passing, pin!(other.connected())).await {
                    Either::Left((passed, _)) => passed.map(|()| home),
                    Either::Right((true, _)) => Ok(other),
                    Either::Right((false, passing)) => passing.await.map(|()| home),
                }
            }
        }
    }

    /// Asks on another connection what is overdue on the first, as soon as one is responsive and the budget allows it;
    /// `sent` is set when it has been asked.
    async fn second_try(
        &self,
        ask: &Ask<'_>,
        first: &Rc<Connection>,
        budget: &Budget,
        sent: &Cell<bool>,
    ) -> ReadOutcome {
        let commands = ask.batch.keys.len();
        loop {
            // Without a budget there is no second connection either.
            if budget.has_room(commands) && self.other_than(first).connected().await {
                let other = self.other_than(first);
                if let Some(mut joined) = other.join(&ask.commands) {
                    sent.set(true);
                    return joined.answer().await;
                }
                // Behind another step that is overdue it would not be answered any sooner.
                if other.is_responsive() && budget.take(commands) {
                    self.health.count(|health| &health.retries, commands as u64);
                    sent.set(true);
                    return other.start(ask).await?.answer().await;
                }
            }
            sleep(self.pulse.overdue()).await;
        }
    }

    /// Another connection, one that is responsive if there is any.
    fn other_than(&self, first: &Rc<Connection>) -> &Rc<Connection> {
        let mut others = self.all.iter().chain(self.spare.get()).filter(|other| !Rc::ptr_eq(other, first));
        let any = others.clone().next();
        others.find(|other| other.is_responsive()).or(any).unwrap_or_else(|| {
            self.spare.get_or_init(|| {
                Connection::new(self.peer.clone(), self.policy, self.health.clone(), self.pulse.clone())
            })
        })
    }

    /// Retires all connections.
    pub(super) fn retire(&self) {
        self.all.iter().chain(self.spare.get()).for_each(|connection| connection.retire());
    }
}
