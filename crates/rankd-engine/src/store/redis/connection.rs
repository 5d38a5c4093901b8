//! One connection of one event loop: steps go in, are written together, and are answered in order.
//!
//! A driver task owns the socket. While it has none, steps fail at once instead of queueing behind the reconnect: see
//! `breaker.rs`. A step that is not answered in time, or a server from which nothing comes, closes the connection, whether or not
//! anybody still waits, so that a late reply can never be taken for another's and a server that hangs is soon known to.

use crate::clock::{self, Instant};
use crate::store::health::Health;
use crate::store::redis::breaker::Breaker;
use crate::store::redis::greeting::{Peer, Refusal, Socket};
use crate::store::redis::parcel::{Parcel, Waiting};
use crate::store::redis::resp::{Expect, Incoming, Malformed, Progress};
use crate::store::{Replies, Step, StoreError, Trouble};
use hashbrown::HashMap;
use rankd_plan::registry::Policy;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep_until, timeout};

const READ_BYTES: usize = 64 << 10;
/// A connection that was up for so long and is then closed by the server gets a new attempt at once.
const SOUND_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Connection {
    peer: Peer,
    policy: Policy,
    health: Arc<Health>,
    breaker: Breaker,
    /// Steps that were written and not yet answered; more wait in order.
    permits: Arc<Semaphore>,
    driven: Cell<bool>,
    /// Nobody will ask any more.
    retired: Cell<bool>,
    /// Bytes to be written in the next turn of the driver.
    out: RefCell<Vec<u8>>,
    pending: RefCell<VecDeque<Pending>>,
    /// The steps under way, by their commands. Empty where sharing is switched off.
    flying: RefCell<HashMap<Rc<Vec<u8>>, Parcel<Outcome>>>,
    driver: Cell<Option<Waker>>,
}

/// What is asked of a server: a step, or a part of one, as bytes.
pub(super) struct Ask<'a> {
    pub(super) step: Step<'a>,
    pub(super) commands: Vec<u8>,
    /// Each command is preceded by one that is answered with a status.
    pub(super) asking: bool,
}

/// A step that was written and not yet answered.
struct Pending {
    since: Instant,
    expect: Expect,
    asking: bool,
    /// Replies that are still to come.
    left: usize,
    answered: Answered,
    parcel: Parcel<Outcome>,
    commands: Rc<Vec<u8>>,
    /// Given back with the reply, also when nobody waits for it any more.
    _permit: Option<OwnedSemaphorePermit>,
}

pub(super) type Outcome = Result<Answered, Failed>;

/// A reply to each command of a step, empty for those that were refused.
#[derive(Clone, Default)]
pub(super) struct Answered {
    pub(super) replies: Replies,
    /// The error lines, and which of the step's commands each one answered.
    pub(super) refused: Vec<(usize, String)>,
}

#[derive(Clone)]
pub(super) struct Failed {
    pub(super) error: StoreError,
    /// The server closed the connection before it answered. Then the step may be asked again.
    pub(super) dropped: bool,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Failed {
        Failed { error, dropped: false }
    }
}

/// Why a socket cannot be used any more.
enum End {
    Closed(String),
    Malformed(&'static str),
    Silent(Duration),
    Retired,
}

/// The socket and what is on its way through it.
struct Line {
    socket: Socket,
    incoming: Incoming,
    writing: Vec<u8>,
    written: usize,
    /// Bytes that TLS may still hold back.
    unflushed: bool,
    heard: Instant,
    watch: Pin<Box<Sleep>>,
}

impl Connection {
    pub(super) fn new(peer: Peer, policy: Policy, health: Arc<Health>) -> Rc<Connection> {
        Rc::new(Connection {
            peer,
            policy,
            breaker: Breaker::new(health.clone()),
            health,
            permits: Arc::new(Semaphore::new(policy.max_inflight as usize)),
            driven: Cell::new(false),
            retired: Cell::new(false),
            out: RefCell::default(),
            pending: RefCell::default(),
            flying: RefCell::default(),
            driver: Cell::new(None),
        })
    }

    /// Gives the connection up when what is under way has been answered.
    pub(super) fn retire(&self) {
        self.retired.set(true);
        self.wake_driver();
    }

    pub(super) async fn read(self: &Rc<Self>, ask: Ask<'_>) -> Outcome {
        self.drive();
        // Almost always there is a connection and room on it, and nothing is waited for but the answer.
        if self.breaker.look() != Some(Ok(())) {
            self.breaker.pass().await?;
        }
        if let Some(answered) = self.join(&ask.commands) {
            return answered.await;
        }
        let permit = match self.permits.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => {
                let limit = Duration::from_millis(self.policy.request_timeout_ms.into());
                let late = |_| self.late(limit);
                // The semaphore is never closed.
                let permit = timeout(limit, self.permits.clone().acquire_owned()).await.map_err(late)?.ok();
                // While this step stood in line, the connection may have gone down, or its twin may have gone ahead.
                self.breaker.pass().await?;
                if let Some(answered) = self.join(&ask.commands) {
                    return answered.await;
                }
                permit
            }
        };
        self.send(ask, permit).await
    }

    /// Shares the answer of a step under way that is the same.
    fn join(&self, commands: &Vec<u8>) -> Option<Waiting<Outcome>> {
        let answer = self.flying.borrow().get(commands)?.wait();
        self.health.count(|health| &health.shared, 1);
        Some(answer)
    }

    /// Puts a step in line to be written.
    fn send(&self, ask: Ask<'_>, permit: Option<OwnedSemaphorePermit>) -> Waiting<Outcome> {
        let Ask { step, commands, asking } = ask;
        let (parcel, count) = (Parcel::new(), step.ids.len());
        let answer = parcel.wait();
        self.health.count(|health| &health.steps, 1);
        self.health.count(|health| &health.commands, count as u64);
        self.out.borrow_mut().extend_from_slice(&commands);
        let commands = Rc::new(commands);
        if self.policy.single_flight {
            self.flying.borrow_mut().insert(commands.clone(), parcel.clone());
        }
        self.pending.borrow_mut().push_back(Pending {
            since: clock::now(),
            expect: Expect::of(step.verb),
            asking,
            left: if asking { 2 * count } else { count },
            answered: Answered::default(),
            parcel,
            commands,
            _permit: permit,
        });
        self.wake_driver();
        answer
    }

    fn wake_driver(&self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    fn late(&self, limit: Duration) -> StoreError {
        StoreError::TimedOut { address: self.peer.address.shown(), ms: limit.as_millis() as u64 }
    }

    fn unavailable(&self, why: &str) -> StoreError {
        StoreError::Unavailable(format!("{}: {why}", self.peer.address.shown()))
    }

    /// Starts the driver on the loop that first reads.
    fn drive(self: &Rc<Self>) {
        if !self.driven.replace(true) {
            tokio::task::spawn_local(self.clone().live());
        }
    }

    /// Connects, serves, and connects again, for as long as somebody may ask.
    async fn live(self: Rc<Self>) {
        while !self.retired.get() {
            self.health.count(|health| &health.connects, 1);
            let next = match self.peer.greet().await {
                Ok(socket) => {
                    self.breaker.closes();
                    let up = clock::now();
                    let end = self.serve(socket).await;
                    self.give_up(&end, clock::now() >= up + SOUND_AFTER)
                }
                Err(Refusal::Words(words)) => Some(self.breaker.opens(self.unavailable(&words))),
                Err(Refusal::Line(line)) => Some(self.breaker.opens(StoreError::from_server(String::new(), line))),
            };
            if let Some(next) = next {
                sleep_until(next).await;
                self.breaker.tries();
            }
        }
    }

    /// Tells everybody who waits that the connection is gone; says when to try again, if not at once.
    fn give_up(&self, end: &End, was_sound: bool) -> Option<Instant> {
        let (told, later) = match end {
            End::Closed(why) => (self.unavailable(why), self.unavailable(why)),
            End::Malformed(what) => {
                let why = self.unavailable(&format!("malformed reply: {what}"));
                (why.clone(), why)
            }
            End::Silent(limit) => {
                (self.late(*limit), self.unavailable(&format!("no answer within {} ms", limit.as_millis())))
            }
            End::Retired => (self.unavailable("it left the cluster"), self.unavailable("it left the cluster")),
        };
        let dropped = matches!(end, End::Closed(_));
        let next = match dropped && was_sound {
            true => {
                self.breaker.connects();
                None
            }
            false => Some(self.breaker.opens(later)),
        };
        self.out.borrow_mut().clear();
        while let Some(first) = self.take_first() {
            first.parcel.deliver(Err(Failed { error: told.clone(), dropped }));
        }
        next
    }

    /// Writes steps and hands out answers until the socket cannot be used any more, and says why.
    async fn serve(&self, socket: Socket) -> End {
        let now = clock::now();
        let mut line = Line {
            socket,
            incoming: Incoming::default(),
            writing: Vec::new(),
            written: 0,
            unflushed: false,
            heard: now,
            watch: Box::pin(sleep_until(now + self.stall_limit())),
        };
        poll_fn(|cx| match self.turn(&mut line, cx) {
            Ok(()) => Poll::Pending,
            Err(end) => Poll::Ready(end),
        })
        .await
    }

    /// One turn of the driver: all that has come is read and handed out, all that was asked meanwhile is written.
    fn turn(&self, line: &mut Line, cx: &mut Context<'_>) -> Result<(), End> {
        self.driver.set(Some(cx.waker().clone()));
        // What has come is read before anybody is called late.
        loop {
            line.incoming.bytes.reserve(READ_BYTES);
            match pin!(line.socket.read_buf(&mut line.incoming.bytes)).poll(cx) {
                Poll::Ready(Ok(0)) => return Err(End::Closed("the server closed the connection".into())),
                Poll::Ready(Ok(_)) => {
                    line.heard = clock::now();
                    self.hand_out(&mut line.incoming, line.heard).map_err(|Malformed(what)| End::Malformed(what))?;
                }
                Poll::Ready(Err(error)) => return Err(End::Closed(error.to_string())),
                Poll::Pending => break,
            }
        }
        if self.retired.get() && self.pending.borrow().is_empty() {
            return Err(End::Retired);
        }
        self.write(line, cx)?;
        while line.watch.as_mut().poll(cx).is_ready() {
            let now = clock::now();
            let due = self.due(line.heard, now)?;
            line.watch.as_mut().reset(due);
        }
        Ok(())
    }

    fn write(&self, line: &mut Line, cx: &mut Context<'_>) -> Result<(), End> {
        loop {
            if line.written == line.writing.len() {
                line.written = 0;
                line.writing.clear();
                std::mem::swap(&mut line.writing, &mut *self.out.borrow_mut());
            }
            if line.writing.is_empty() {
                break;
            }
            match Pin::new(&mut line.socket).poll_write(cx, &line.writing[line.written..]) {
                Poll::Ready(Ok(0)) => return Err(End::Closed("the server takes no more".into())),
                Poll::Ready(Ok(count)) => {
                    line.written += count;
                    line.unflushed = true;
                }
                Poll::Ready(Err(error)) => return Err(End::Closed(error.to_string())),
                Poll::Pending => return Ok(()),
            }
        }
        if line.unflushed {
            match Pin::new(&mut line.socket).poll_flush(cx) {
                Poll::Ready(Ok(())) => line.unflushed = false,
                Poll::Ready(Err(error)) => return Err(End::Closed(error.to_string())),
                Poll::Pending => {}
            }
        }
        Ok(())
    }

    fn stall_limit(&self) -> Duration {
        Duration::from_millis(self.policy.stall_timeout_ms.min(self.policy.request_timeout_ms).into())
    }

    /// When to look again, or that time is up for the step that is first in line. One that comes later is due later.
    fn due(&self, heard: Instant, now: Instant) -> Result<Instant, End> {
        let (limit, stall) = (Duration::from_millis(self.policy.request_timeout_ms.into()), self.stall_limit());
        let Some(since) = self.pending.borrow().front().map(|pending| pending.since) else { return Ok(now + stall) };
        match (since + limit, since.max(heard) + stall) {
            (due, _) if due <= now => Err(End::Silent(limit)),
            (_, due) if due <= now => Err(End::Silent(stall)),
            (whole, silent) => Ok(whole.min(silent)),
        }
    }

    /// The step that is first in line, which is then under way no longer.
    fn take_first(&self) -> Option<Pending> {
        let first = self.pending.borrow_mut().pop_front()?;
        self.flying.borrow_mut().remove(&first.commands);
        Some(first)
    }

    /// Gives each complete reply to the step that is first in line.
    fn hand_out(&self, incoming: &mut Incoming, now: Instant) -> Result<(), Malformed> {
        let mut pending = self.pending.borrow_mut();
        while !incoming.is_empty() {
            let Some(first) = pending.front_mut() else {
                match incoming.pushed()? {
                    true => continue,
                    false => break,
                }
            };
            let about_asking = first.asking && first.left.is_multiple_of(2);
            let expect = if about_asking { Expect::Status } else { first.expect };
            match incoming.reply(expect, &mut first.answered.replies)? {
                Progress::Incomplete => break,
                Progress::Pushed => continue,
                Progress::Done => {}
                Progress::Refused(line) => first.answered.refuse(line, about_asking),
            }
            first.left -= 1;
            if first.left == 0 {
                drop(pending);
                self.answer_first(now);
                pending = self.pending.borrow_mut();
            }
        }
        incoming.compact();
        Ok(())
    }

    fn answer_first(&self, now: Instant) {
        let Some(mut first) = self.take_first() else { return };
        self.health.answered_after(now.saturating_duration_since(first.since));
        let answered = std::mem::take(&mut first.answered);
        let sick = answered.refused.iter().find(|(_, line)| Trouble::of(line).is_the_servers());
        self.breaker.answered(sick.map(|(_, line)| StoreError::from_server(String::new(), line.clone())));
        first.parcel.deliver(Ok(answered));
    }
}

impl Answered {
    fn refuse(&mut self, line: String, about_asking: bool) {
        self.refused.push((self.replies.len(), line));
        if !about_asking {
            self.replies.end_reply();
        }
    }
}
