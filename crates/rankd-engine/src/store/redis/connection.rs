//! One connection of one event loop: steps go in, are written together, and are answered in order.
//!
//! A driver task owns the socket. While it has none, steps fail at once instead of queueing behind the reconnect; it comes back
//! with a growing, jittered pause, and counts as up only when the server has answered a PING. A step that is not answered in
//! time closes the connection, whether or not anybody still waits for it, so that a late reply can never be taken for
//! another's and a server that hangs is soon known to.

use crate::clock::{self, Instant};
use crate::store::redis::address::{Address, Place};
use crate::store::redis::resp::{self, Expect, Incoming, Malformed, Progress};
use crate::store::{Replies, Step, StoreError};
use hashbrown::HashMap;
use rankd_plan::registry::Policy;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{sleep_until, timeout};

/// The pause before the first new attempt, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(250);
const READ_BYTES: usize = 64 << 10;

pub(super) struct Connection {
    address: Address,
    policy: Policy,
    /// Steps that were written and not yet answered; more wait in order.
    permits: Arc<Semaphore>,
    driven: Cell<bool>,
    state: RefCell<State>,
    /// The state has changed.
    changed: Notify,
    /// Bytes to be written in the next turn of the driver.
    out: RefCell<Vec<u8>>,
    pending: RefCell<VecDeque<Pending>>,
    /// Where in the whole sequence of steps each one under way is, by its commands. Empty where sharing is switched off.
    flying: RefCell<HashMap<Rc<Vec<u8>>, u64>>,
    /// How many steps have left `pending` so far.
    left: Cell<u64>,
    wake: Notify,
}

enum State {
    /// Nobody has tried yet, or the first attempt is under way: worth waiting for.
    Starting,
    Up,
    Down {
        why: Refusal,
        /// When the next attempt begins; `None` while one is under way.
        next: Option<Instant>,
    },
}

/// Why a connection was not made or was given up.
#[derive(Clone)]
pub(super) enum Refusal {
    Words(String),
    /// The server's own error line in answer to the greeting.
    Line(String),
}

/// A step that was written and not yet answered.
struct Pending {
    since: Instant,
    expect: Expect,
    /// Replies that are still to come.
    left: usize,
    replies: Replies,
    /// The first error line, and which of the step's commands it answered.
    refused: Option<(usize, String)>,
    answer: Asker,
    /// Those who asked for the same while it was under way.
    others: Vec<Asker>,
    commands: Rc<Vec<u8>>,
    /// Given back with the reply, also when nobody waits for it any more.
    _permit: Option<OwnedSemaphorePermit>,
}

type Asker = oneshot::Sender<Result<Answered, StoreError>>;

#[derive(Clone)]
struct Answered {
    replies: Replies,
    refused: Option<(usize, String)>,
}

pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl Connection {
    pub(super) fn new(address: Address, policy: Policy) -> Rc<Connection> {
        Rc::new(Connection {
            address,
            policy,
            permits: Arc::new(Semaphore::new(policy.max_inflight as usize)),
            driven: Cell::new(false),
            state: RefCell::new(State::Starting),
            changed: Notify::new(),
            out: RefCell::default(),
            pending: RefCell::default(),
            flying: RefCell::default(),
            left: Cell::new(0),
            wake: Notify::new(),
        })
    }

    pub(super) async fn read(self: &Rc<Self>, step: Step<'_>, commands: Vec<u8>) -> Result<Replies, StoreError> {
        if step.ids.is_empty() {
            return Ok(Replies::default());
        }
        let limit = self.request_limit();
        let late = |_| StoreError::TimedOut { address: self.address.shown(), ms: limit.as_millis() as u64 };
        timeout(limit, self.ask(&step, commands)).await.map_err(late)?
    }

    fn request_limit(&self) -> Duration {
        Duration::from_millis(self.policy.request_timeout_ms.into())
    }

    async fn ask(self: &Rc<Self>, step: &Step<'_>, commands: Vec<u8>) -> Result<Replies, StoreError> {
        self.drive();
        self.wait_until_up().await?;
        let answered = match self.join(&commands) {
            Some(answered) => answered,
            None => {
                // The semaphore is never closed.
                let permit = self.permits.clone().acquire_owned().await.ok();
                // While this step stood in line, the connection may have gone down, or its twin may have gone ahead.
                self.wait_until_up().await?;
                self.join(&commands).unwrap_or_else(|| self.send(step, commands, permit))
            }
        };
        match answered.await {
            Ok(Ok(Answered { replies, refused: None })) => Ok(replies),
            Ok(Ok(Answered { refused: Some((at, line)), .. })) => {
                let key = step.ids.get(at).map(|id| format!("{}:{id}", step.prefix)).unwrap_or_default();
                Err(StoreError::from_server(key, line))
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(self.unavailable(&Refusal::Words("the connection is gone".into()))),
        }
    }

    /// Shares the answer of a step under way that is the same.
    fn join(&self, commands: &Vec<u8>) -> Option<oneshot::Receiver<Result<Answered, StoreError>>> {
        let at = *self.flying.borrow().get(commands)? - self.left.get();
        let (answer, answered) = oneshot::channel();
        self.pending.borrow_mut().get_mut(at as usize)?.others.push(answer);
        Some(answered)
    }

    /// Puts a step in line to be written.
    fn send(
        &self,
        step: &Step<'_>,
        commands: Vec<u8>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> oneshot::Receiver<Result<Answered, StoreError>> {
        let (answer, answered) = oneshot::channel();
        self.out.borrow_mut().extend_from_slice(&commands);
        let (commands, mut pending) = (Rc::new(commands), self.pending.borrow_mut());
        if self.policy.single_flight {
            self.flying.borrow_mut().insert(commands.clone(), self.left.get() + pending.len() as u64);
        }
        pending.push_back(Pending {
            since: clock::now(),
            expect: Expect::of(step.verb),
            left: step.ids.len(),
            replies: Replies::default(),
            refused: None,
            answer,
            others: Vec::new(),
            commands,
            _permit: permit,
        });
        self.wake.notify_one();
        answered
    }

    fn unavailable(&self, why: &Refusal) -> StoreError {
        match why {
            Refusal::Words(why) => StoreError::Unavailable(format!("{}: {why}", self.address.shown())),
            Refusal::Line(line) => StoreError::from_server(String::new(), line.clone()),
        }
    }

    /// Starts the driver on the loop that first reads.
    fn drive(self: &Rc<Self>) {
        if !self.driven.replace(true) {
            tokio::task::spawn_local(self.clone().live());
        }
    }

    async fn wait_until_up(&self) -> Result<(), StoreError> {
        let mut gave_way = false;
        loop {
            // Registered before looking, so that a change in between is not missed.
            let changed = self.changed.notified();
            let failed = match &*self.state.borrow() {
                State::Up => return Ok(()),
                State::Starting => None,
                // The driver is overdue: nothing ran on this thread since the last request. It tries as soon as we wait.
                State::Down { next: Some(next), .. } if *next <= clock::now() => None,
                State::Down { why, .. } => Some(self.unavailable(why)),
            };
            match failed {
                None => changed.await,
                Some(error) if gave_way => return Err(error),
                // On a thread that runs only while somebody asks, the driver gets its turn here or never.
                Some(_) => {
                    gave_way = true;
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    fn enter(&self, state: State) {
        *self.state.borrow_mut() = state;
        self.changed.notify_waiters();
    }

    /// Connects, serves, and connects again, for as long as the loop lives.
    async fn live(self: Rc<Self>) {
        let mut pause = PAUSE_FIRST;
        let mut attempts: u64 = 0;
        loop {
            let why = match self.greet().await {
                Ok(socket) => {
                    pause = PAUSE_FIRST;
                    self.enter(State::Up);
                    Refusal::Words(self.serve(socket).await)
                }
                Err(why) => why,
            };
            attempts += 1;
            let next = clock::now() + jittered(pause, attempts);
            self.enter(State::Down { why: why.clone(), next: Some(next) });
            self.out.borrow_mut().clear();
            while let Some(pending) = self.take_first() {
                pending.answer(Err(self.unavailable(&why)));
            }
            sleep_until(next).await;
            *self.state.borrow_mut() = State::Down { why, next: None };
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Connects once, within the time that the endpoint allows.
    pub(super) async fn greet(&self) -> Result<Box<dyn Duplex>, Refusal> {
        let limit = Duration::from_millis(self.policy.connect_timeout_ms.into());
        let late = |_| Refusal::Words(format!("no connection within {} ms", limit.as_millis()));
        timeout(limit, self.connect()).await.map_err(late)?
    }

    /// Opens a socket and greets the server; it is good when it has answered a PING.
    async fn connect(&self) -> Result<Box<dyn Duplex>, Refusal> {
        let words = |error: io::Error| Refusal::Words(error.to_string());
        let mut socket: Box<dyn Duplex> = match &self.address.place {
            Place::Tcp { host, port } => {
                let socket = TcpStream::connect((host.as_str(), *port)).await.map_err(words)?;
                socket.set_nodelay(true).map_err(words)?;
                Box::new(socket)
            }
            Place::Unix { path } => Box::new(UnixStream::connect(path).await.map_err(words)?),
        };
        let mut out = Vec::new();
        let database = self.address.database.to_string();
        let mut expected = 1;
        if let Some(password) = &self.address.password {
            match &self.address.user {
                Some(user) => resp::push_command(&mut out, &[b"AUTH", user.as_bytes(), password.as_bytes()]),
                None => resp::push_command(&mut out, &[b"AUTH", password.as_bytes()]),
            }
            expected += 1;
        }
        if self.address.database != 0 {
            resp::push_command(&mut out, &[b"SELECT", database.as_bytes()]);
            expected += 1;
        }
        resp::push_command(&mut out, &[b"PING"]);
        socket.write_all(&out).await.map_err(words)?;
        let mut incoming = Incoming::default();
        let mut unused = Replies::default();
        while expected > 0 {
            match incoming.reply(Expect::Status, &mut unused) {
                Ok(Progress::Done) => expected -= 1,
                Ok(Progress::Refused(line)) => return Err(Refusal::Line(line)),
                Err(Malformed(what)) => return Err(Refusal::Words(format!("this is no Redis server: {what}"))),
                Ok(Progress::Incomplete) => {
                    if socket.read_buf(&mut incoming.bytes).await.map_err(words)? == 0 {
                        return Err(Refusal::Words("the server closed the connection".into()));
                    }
                }
            }
        }
        Ok(socket)
    }

    /// Writes steps and hands out answers until the socket cannot be used any more, and says why.
    async fn serve(&self, socket: Box<dyn Duplex>) -> String {
        let (mut reader, mut writer) = tokio::io::split(socket);
        let mut incoming = Incoming::default();
        let (mut writing, mut written) = (Vec::new(), 0);
        let limit = self.request_limit();
        let mut watch = pin!(sleep_until(clock::now() + limit));
        loop {
            if written == writing.len() {
                written = 0;
                writing.clear();
                std::mem::swap(&mut writing, &mut *self.out.borrow_mut());
            }
            incoming.bytes.reserve(READ_BYTES);
            tokio::select! {
                // What has come is read before anybody is called late.
                biased;
                read = reader.read_buf(&mut incoming.bytes) => match read {
                    Ok(0) => return "the server closed the connection".into(),
                    Ok(_) => {
                        if let Err(Malformed(what)) = self.hand_out(&mut incoming) {
                            return format!("malformed reply: {what}");
                        }
                    }
                    Err(error) => return error.to_string(),
                },
                wrote = writer.write(&writing[written..]), if written < writing.len() => match wrote {
                    Ok(0) => return "the server takes no more".into(),
                    Ok(count) => written += count,
                    Err(error) => return error.to_string(),
                },
                () = self.wake.notified() => {}
                () = &mut watch => {
                    // Set for the step that is first in line. One that comes later is due later, so none is missed.
                    let (now, oldest) = (clock::now(), self.pending.borrow().front().map(|pending| pending.since));
                    let due = oldest.unwrap_or(now) + limit;
                    if due <= now {
                        return format!("no answer within {} ms", limit.as_millis());
                    }
                    watch.as_mut().reset(due);
                }
            }
        }
    }

    /// The step that is first in line, which is then under way no longer.
    fn take_first(&self) -> Option<Pending> {
        let first = self.pending.borrow_mut().pop_front()?;
        self.left.set(self.left.get() + 1);
        self.flying.borrow_mut().remove(&first.commands);
        Some(first)
    }

    /// Gives each complete reply to the step that is first in line.
    fn hand_out(&self, incoming: &mut Incoming) -> Result<(), Malformed> {
        let mut pending = self.pending.borrow_mut();
        while !incoming.is_empty() {
            let Some(first) = pending.front_mut() else { return Err(Malformed("a reply that nobody asked for")) };
            match incoming.reply(first.expect, &mut first.replies)? {
                Progress::Incomplete => break,
                Progress::Done => {}
                Progress::Refused(line) => {
                    let at = first.replies.len();
                    first.replies.end_reply();
                    first.refused.get_or_insert((at, line));
                }
            }
            first.left -= 1;
            if first.left == 0 {
                drop(pending);
                if let Some(mut first) = self.take_first() {
                    let (replies, refused) = (std::mem::take(&mut first.replies), first.refused.take());
                    first.answer(Ok(Answered { replies, refused }));
                }
                pending = self.pending.borrow_mut();
            }
        }
        incoming.compact();
        Ok(())
    }
}

impl Pending {
    /// Tells everybody who asked. They may have gone; the reply was read all the same, so that the next one is the next step's.
    fn answer(self, result: Result<Answered, StoreError>) {
        for other in self.others {
            let _ = other.send(result.clone());
        }
        let _ = self.answer.send(result);
    }
}

/// The pause, up to a fifth longer, differently at each attempt.
fn jittered(pause: Duration, attempt: u64) -> Duration {
    let spread = attempt.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
    pause + pause * (spread as u32) / (5 * 256)
}
