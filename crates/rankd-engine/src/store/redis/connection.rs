//! One connection of one event loop: steps go in, are written together, and are answered in order.
//!
//! A driver task owns the socket. While it has none, steps fail at once instead of queueing behind the reconnect: see
//! `breaker.rs`. Readers that wait for an overdue step are notified, and may ask elsewhere; the reply is still read when it comes.
//! A step that is not answered in time, or a server from which nothing comes on any connection, closes the connection, whether or
//! not a reader still waits, so that a late reply can never be taken for another's and a hanging server is soon noticed.

use crate::clock::{self, Instant};
use crate::store::breaker::Breaker;
use crate::store::health::Health;
use crate::store::parcel::{Parcel, Waiting};
use crate::store::redis::Trouble;
use crate::store::redis::greeting::{Peer, Refusal, Socket};
use crate::store::redis::pulse::Pulse;
use crate::store::redis::resp::{Expect, Incoming, Malformed, ReplyProgress, push_command};
use crate::store::{ReadBatch, Replies, StoreError, TooLarge};
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
/// The bytes that are read before other tasks on the loop get their turn.
const TURN_BYTES: usize = 1 << 20;
/// How long the watch sleeps while nothing is asked.
const IDLE: Duration = Duration::from_secs(3600);
/// A connection that was up for this long and is then closed by the server gets a new attempt at once.
const SOUND_AFTER: Duration = Duration::from_secs(1);

pub(super) struct Connection {
    peer: Peer,
    policy: Policy,
    health: Arc<Health>,
    pulse: Rc<Pulse>,
    breaker: Breaker,
    /// An answer is overdue and nothing has come since.
    lags: Cell<bool>,
    /// Steps that were written and not yet answered; more wait in order.
    permits: Arc<Semaphore>,
    driven: Cell<bool>,
    /// Nothing will be asked any more.
    retired: Cell<bool>,
    /// Bytes to be written in the next turn of the driver.
    out: RefCell<Vec<u8>>,
    pending: RefCell<VecDeque<Pending>>,
    /// The steps in flight, by their commands. Empty where sharing is switched off.
    flying: RefCell<HashMap<Rc<Vec<u8>>, Parcel<ReadOutcome>>>,
    driver: Cell<Option<Waker>>,
}

/// What is asked of a server: a step, or a part of one, as bytes.
pub(super) struct Ask<'a> {
    pub(super) batch: ReadBatch<'a>,
    pub(super) commands: Rc<Vec<u8>>,
    /// Each command is preceded by one that is answered with a status.
    pub(super) asking: bool,
}

/// A step that was written and not yet answered; or a PING, whose reply no reader waits for.
struct Pending {
    since: Instant,
    expect: Expect,
    is_ping: bool,
    asking: bool,
    /// Replies that are still to come.
    left: usize,
    answered: Answered,
    parcel: Parcel<ReadOutcome>,
    commands: Rc<Vec<u8>>,
    /// Given back with the reply, also when no reader waits for it any more.
    _permit: Option<OwnedSemaphorePermit>,
}

pub(super) type ReadOutcome = Result<Answered, Failed>;

/// A reply to each command of a step, empty for those that were refused.
#[derive(Clone, Default)]
pub(super) struct Answered {
    pub(super) replies: Replies,
    /// The error lines, and which of the step's commands each one answered.
    pub(super) refused: Vec<(usize, String)>,
    /// The first of the step's commands whose reply is more than is read.
    pub(super) too_large: Option<(usize, TooLarge)>,
}

#[derive(Clone)]
pub(super) struct Failed {
    pub(super) error: StoreError,
    /// The connection was closed for no fault of the step, before it was answered. Then it may be asked again.
    pub(super) dropped: bool,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Failed {
        Failed { error, dropped: false }
    }
}

/// Why a socket cannot be used any more.
enum SocketEnd {
    Closed(String),
    Malformed(&'static str),
    /// The first step in line was not answered in this time.
    Late(Duration),
    /// Nothing came from the server in this time, on any connection.
    Silent(Duration),
    /// The rest of a reply that is too large is not worth waiting for.
    TooLarge,
    Retired,
}

impl From<Malformed> for SocketEnd {
    fn from(Malformed(what): Malformed) -> SocketEnd {
        SocketEnd::Malformed(what)
    }
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
    /// When to send the next PING while nothing comes, and how long to wait after that.
    next_ping: Option<(Instant, Duration)>,
    watch: Pin<Box<Sleep>>,
}

impl Connection {
    pub(super) fn new(peer: Peer, policy: Policy, health: Arc<Health>, pulse: Rc<Pulse>) -> Rc<Connection> {
        Rc::new(Connection {
            peer,
            policy,
            breaker: Breaker::new(health.clone()),
            health,
            pulse,
            lags: Cell::new(false),
            permits: Arc::new(Semaphore::new(policy.max_inflight as usize)),
            driven: Cell::new(false),
            retired: Cell::new(false),
            out: RefCell::default(),
            pending: RefCell::default(),
            flying: RefCell::default(),
            driver: Cell::new(None),
        })
    }

    /// Closes the connection when what is in flight has been answered.
    pub(super) fn retire(&self) {
        self.retired.set(true);
        self.wake_driver();
    }

    /// Whether steps can be sent.
    pub(super) fn is_up(&self) -> bool {
        self.breaker.is_closed()
    }

    /// Whether a step that is sent now will be answered as soon as is usual, as far as is known.
    pub(super) fn is_responsive(&self) -> bool {
        self.is_up() && !self.lags.get() && self.pulse.hanging_because().is_none()
    }

    /// Lets one step through, at once or when the connection is there, or says why not.
    pub(super) async fn pass(self: &Rc<Self>) -> Result<(), StoreError> {
        self.drive();
        self.breaker.pass().await
    }

    /// Whether there is a connection; waits while one is being made.
    pub(super) async fn connected(self: &Rc<Self>) -> bool {
        self.drive();
        self.breaker.settled().await
    }

    /// Puts a step in line that has been let through, or shares one that is the same.
    pub(super) async fn start(&self, ask: &Ask<'_>) -> Result<Waiting<ReadOutcome>, Failed> {
        // Almost always there is room, and only the answer is waited for.
        if let Some(answer) = self.join(&ask.commands) {
            return Ok(answer);
        }
        let permit = match self.permits.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => {
                let limit = Duration::from_millis(self.policy.request_timeout_ms.into());
                let late = |_| self.late(limit);
                // The semaphore is never closed.
                let permit = timeout(limit, self.permits.clone().acquire_owned()).await.map_err(late)?.ok();
                // While this step waited, the connection may have gone down, or an identical step may have been sent.
                self.breaker.pass().await?;
                if let Some(answer) = self.join(&ask.commands) {
                    return Ok(answer);
                }
                permit
            }
        };
        Ok(self.send(ask, permit))
    }

    /// Shares the answer of an identical step in flight.
    pub(super) fn join(&self, commands: &Vec<u8>) -> Option<Waiting<ReadOutcome>> {
        let answer = self.flying.borrow().get(commands)?.wait();
        self.health.count(|health| &health.shared, 1);
        Some(answer)
    }

    /// Puts a step in line to be written.
    fn send(&self, ask: &Ask<'_>, permit: Option<OwnedSemaphorePermit>) -> Waiting<ReadOutcome> {
        let Ask { batch, commands, asking } = ask;
        let (parcel, count) = (Parcel::new(), batch.keys.len());
        let answer = parcel.wait();
        self.health.count(|health| &health.steps, 1);
        self.health.count(|health| &health.commands, count as u64);
        self.out.borrow_mut().extend_from_slice(commands);
        if self.policy.single_flight {
            self.flying.borrow_mut().insert(commands.clone(), parcel.clone());
        }
        self.pending.borrow_mut().push_back(Pending {
            since: clock::now(),
            expect: Expect::of(batch.read),
            is_ping: false,
            asking: *asking,
            left: if *asking { 2 * count } else { count },
            answered: Answered::default(),
            parcel,
            commands: commands.clone(),
            _permit: permit,
        });
        self.wake_driver();
        answer
    }

    /// Sends a PING behind what is overdue. If a packet was lost, the next one that arrives shows the other side
    /// which, and TCP sends it again at once instead of after its own, much longer time. If the server hangs, this stays
    /// unanswered, too.
    fn ping(&self, now: Instant) {
        push_command(&mut self.out.borrow_mut(), [&b"PING"[..]]);
        self.pending.borrow_mut().push_back(Pending {
            since: now,
            expect: Expect::Status,
            is_ping: true,
            asking: false,
            left: 1,
            answered: Answered::default(),
            parcel: Parcel::new(),
            commands: Rc::default(),
            _permit: None,
        });
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

    /// Connects, serves, and connects again, for as long as something may be asked.
    async fn live(self: Rc<Self>) {
        while !self.retired.get() {
            self.health.count(|health| &health.connects, 1);
            let next = match self.peer.greet().await {
                Ok(socket) => {
                    let up = clock::now();
                    self.pulse.mark_heard(up);
                    self.lags.set(false);
                    self.breaker.close();
                    let end = self.drive_socket(socket).await;
                    self.give_up(&end, clock::now() >= up + SOUND_AFTER)
                }
                Err(Refusal::Words(words)) => Some(self.breaker.open(self.unavailable(&words))),
                Err(Refusal::Line(line)) => Some(self.breaker.open(StoreError::from_server(String::new(), line))),
            };
            if let Some(next) = next {
                sleep_until(next).await;
                self.breaker.half_open();
            }
        }
    }

    /// Fails every step that waits, because the connection is gone; returns when to try again, if not at once.
    fn give_up(&self, end: &SocketEnd, was_sound: bool) -> Option<Instant> {
        let silent = |limit: &Duration| self.unavailable(&format!("no answer within {} ms", limit.as_millis()));
        let mut dropped = matches!(end, SocketEnd::Closed(_) | SocketEnd::TooLarge);
        let (reported, next) = match end {
            SocketEnd::Closed(why) if was_sound => {
                self.breaker.connect();
                (self.unavailable(why), None)
            }
            SocketEnd::Closed(why) => (self.unavailable(why), Some(self.breaker.open(self.unavailable(why)))),
            SocketEnd::Malformed(what) => {
                let why = self.unavailable(&format!("malformed reply: {what}"));
                (why.clone(), Some(self.breaker.open(why)))
            }
            SocketEnd::Late(limit) => {
                // Only this connection is held up where the server is heard on another.
                let stall = Duration::from_millis(self.policy.stall_timeout_ms.into()).min(*limit);
                dropped = clock::now() < self.pulse.last_heard() + stall;
                (self.late(*limit), Some(self.breaker.open(silent(limit))))
            }
            SocketEnd::Silent(limit) => {
                self.pulse.mark_hanging(silent(limit));
                (self.late(*limit), Some(self.breaker.open(silent(limit))))
            }
            SocketEnd::TooLarge => {
                // It is the fault of one step, which gets that error. The server answers, and the others may ask again.
                if let Some(mut first) = self.take_first() {
                    first.parcel.deliver(Ok(std::mem::take(&mut first.answered)));
                }
                (self.unavailable("closed because of a reply that is too large"), Some(self.breaker.connect_soon()))
            }
            SocketEnd::Retired => {
                let why = self.unavailable("it left the cluster");
                (why.clone(), Some(self.breaker.open(why)))
            }
        };
        self.out.borrow_mut().clear();
        while let Some(first) = self.take_first() {
            first.parcel.deliver(Err(Failed { error: reported.clone(), dropped }));
        }
        next
    }

    /// Writes steps and hands out answers until the socket cannot be used any more, and says why.
    async fn drive_socket(&self, socket: Socket) -> SocketEnd {
        let now = clock::now();
        let mut line = Line {
            socket,
            incoming: Incoming::default(),
            writing: Vec::new(),
            written: 0,
            unflushed: false,
            heard: now,
            next_ping: None,
            watch: Box::pin(sleep_until(now + IDLE)),
        };
        poll_fn(|cx| match self.drive_once(&mut line, cx) {
            Ok(()) => Poll::Pending,
            Err(end) => Poll::Ready(end),
        })
        .await
    }

    /// One turn of the driver: all that has come is read and handed out, all that was asked meanwhile is written.
    fn drive_once(&self, line: &mut Line, cx: &mut Context<'_>) -> Result<(), SocketEnd> {
        self.driver.set(Some(cx.waker().clone()));
        // What has come is read before any step is considered late.
        let mut bytes = 0;
        loop {
            line.incoming.bytes.reserve(READ_BYTES);
            match pin!(line.socket.read_buf(&mut line.incoming.bytes)).poll(cx) {
                Poll::Ready(Ok(0)) => return Err(SocketEnd::Closed("the server closed the connection".into())),
                Poll::Ready(Ok(count)) => {
                    line.heard = clock::now();
                    line.next_ping = None;
                    self.pulse.mark_heard(line.heard);
                    self.lags.set(false);
                    self.hand_out(&mut line.incoming, line.heard)?;
                    bytes += count;
                    if bytes >= TURN_BYTES {
                        cx.waker().wake_by_ref();
                        return self.write(line, cx);
                    }
                }
                Poll::Ready(Err(error)) => return Err(SocketEnd::Closed(error.to_string())),
                Poll::Pending => break,
            }
        }
        if self.retired.get() && self.pending.borrow().iter().all(|step| step.is_ping) {
            return Err(SocketEnd::Retired);
        }
        self.write(line, cx)?;
        if let Some(first) = self.pending.borrow().front().filter(|first| !first.is_ping) {
            let due = first.since + self.pulse.overdue();
            if due < line.watch.deadline() {
                line.watch.as_mut().reset(due);
            }
        }
        while line.watch.as_mut().poll(cx).is_ready() {
            let now = clock::now();
            let mut next = self.look(line, now)?;
            if self.lags.get() {
                let (due, pause) = line.next_ping.unwrap_or((now, self.pulse.overdue()));
                line.next_ping = Some((due, pause));
                if due <= now {
                    self.ping(now);
                    self.write(line, cx)?;
                    line.next_ping = Some((now + pause, 2 * pause));
                }
                next = next.min(line.next_ping.map_or(next, |(due, _)| due));
            }
            line.watch.as_mut().reset(next);
        }
        Ok(())
    }

    fn write(&self, line: &mut Line, cx: &mut Context<'_>) -> Result<(), SocketEnd> {
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
                Poll::Ready(Ok(0)) => return Err(SocketEnd::Closed("the server accepts no more data".into())),
                Poll::Ready(Ok(count)) => {
                    line.written += count;
                    line.unflushed = true;
                }
                Poll::Ready(Err(error)) => return Err(SocketEnd::Closed(error.to_string())),
                Poll::Pending => return Ok(()),
            }
        }
        if line.unflushed {
            match Pin::new(&mut line.socket).poll_flush(cx) {
                Poll::Ready(Ok(())) => line.unflushed = false,
                Poll::Ready(Err(error)) => return Err(SocketEnd::Closed(error.to_string())),
                Poll::Pending => {}
            }
        }
        Ok(())
    }

    /// Notifies the readers of overdue steps, and returns when to look again; or that time is up. The first step in line decides:
    /// one that comes later is due later.
    fn look(&self, line: &Line, now: Instant) -> Result<Instant, SocketEnd> {
        let mut pending = self.pending.borrow_mut();
        let Some(first) = pending.iter_mut().find(|step| !step.is_ping) else { return Ok(now + IDLE) };
        let limit = Duration::from_millis(self.policy.request_timeout_ms.into());
        // What is far away is heard later, and a packet that was lost comes later by as much.
        let stall = (Duration::from_millis(self.policy.stall_timeout_ms.into()) + self.pulse.usual()).min(limit);
        let (late, silent) = (first.since + limit, first.since.max(self.pulse.last_heard()) + stall);
        if late.min(silent) <= now {
            return Err(match line.incoming.too_large() {
                Some(why) => {
                    first.answered.refuse_too_large(why);
                    SocketEnd::TooLarge
                }
                None if silent <= now => SocketEnd::Silent(stall),
                None => SocketEnd::Late(limit),
            });
        }
        let overdue = self.pulse.overdue();
        let mut next = late.min(silent);
        for step in pending.iter().filter(|step| !step.is_ping) {
            let due = step.since.max(line.heard) + overdue;
            if due > now {
                next = next.min(due);
                break;
            }
            self.lags.set(true);
            step.parcel.mark_overdue();
        }
        Ok(next)
    }

    /// Removes the step that is first in line, which is then no longer in flight.
    fn take_first(&self) -> Option<Pending> {
        let first = self.pending.borrow_mut().pop_front()?;
        self.flying.borrow_mut().remove(&first.commands);
        Some(first)
    }

    /// Gives each complete reply to the step that is first in line.
    fn hand_out(&self, incoming: &mut Incoming, now: Instant) -> Result<(), SocketEnd> {
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
                ReplyProgress::Incomplete => break,
                ReplyProgress::Pushed => continue,
                ReplyProgress::Done => {}
                ReplyProgress::Refused(line) => first.answered.refuse(line, about_asking),
                ReplyProgress::PassedOver(why) => first.answered.refuse_too_large(why),
                ReplyProgress::Endless(why) => {
                    first.answered.refuse_too_large(why);
                    return Err(SocketEnd::TooLarge);
                }
            }
            first.left -= 1;
            if first.left == 0 {
                drop(pending);
                incoming.next_step();
                self.answer_first(now);
                pending = self.pending.borrow_mut();
            }
        }
        incoming.compact();
        Ok(())
    }

    fn answer_first(&self, now: Instant) {
        let Some(mut first) = self.take_first() else { return };
        if first.is_ping {
            return;
        }
        let took = now.saturating_duration_since(first.since);
        self.health.record_latency(took);
        self.pulse.record_latency(took);
        let answered = std::mem::take(&mut first.answered);
        let refusal = answered.refused.iter().find(|(_, line)| Trouble::of(line).is_the_servers());
        self.breaker.answered(refusal.map(|(_, line)| StoreError::from_server(String::new(), line.clone())));
        first.parcel.deliver(Ok(answered));
    }
}

impl Answered {
    /// That a key holds another type than was asked for is an answer about that key, and no trouble.
    pub(super) fn accept_wrong_types(&mut self) {
        let Answered { replies, refused, .. } = self;
        refused.retain(|(at, line)| {
            let wrong_type = line.starts_with("WRONGTYPE");
            if wrong_type {
                replies.mark_wrong_type(*at);
            }
            !wrong_type
        });
    }

    fn refuse(&mut self, line: String, about_asking: bool) {
        self.refused.push((self.replies.len(), line));
        if !about_asking {
            self.replies.end_reply();
        }
    }

    fn refuse_too_large(&mut self, why: TooLarge) {
        self.too_large.get_or_insert((self.replies.len(), why));
        self.replies.end_reply();
    }
}
