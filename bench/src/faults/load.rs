//! Open-loop load over HTTP/1.1: requests are due at fixed times, whatever became of those before, and count from then on.
//!
//! One thread, epoll, connections kept alive, one request at a time on each. A request that finds all connections busy waits
//! here, and its time runs. What came of every request is kept, so that any second of it can be looked at afterwards.

use crate::http::floor::whole;
use rustix::event::{Timespec, epoll};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// A request that has no answer after this time gets none.
const PATIENCE: Duration = Duration::from_secs(10);
/// A request that finds no free connection for so long is given up.
const GIVEN_UP: Duration = Duration::from_secs(1);

/// The connection broke before its request was answered.
pub const UNANSWERED: u16 = 0;
/// The request was never sent: nobody listens, or all connections were busy for a second.
pub const NOT_SENT: u16 = 1;

/// So many requests a second for a while.
#[derive(Clone, Copy)]
pub struct Step {
    /// Infinite: the next request is due as soon as a connection is free.
    pub rate: f64,
    pub time: Duration,
}

pub struct Load<'a> {
    pub address: &'a str,
    pub connections: usize,
    /// Whole requests, sent in turn.
    pub requests: &'a [Vec<u8>],
    pub steps: &'a [Step],
    /// How often a client that was sent away tries again, at once.
    pub retries: u32,
    /// Whether an answer with rows to a request is as it must be.
    pub right: &'a (dyn Fn(usize, &str) -> bool + Sync),
}

/// What became of one request.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Since the load began.
    pub due: Duration,
    pub took: Duration,
    pub status: u16,
    /// Whether rows were not those that were asked for.
    pub wrong: bool,
    /// Which step it was due in.
    pub step: usize,
}

#[derive(Clone, Copy)]
struct Ask {
    number: usize,
    due: Duration,
    tries: u32,
    step: usize,
}

struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
    asked: Option<Ask>,
}

struct Drive<'a> {
    load: &'a Load<'a>,
    began: Instant,
    poll: OwnedFd,
    lines: Vec<Option<Line>>,
    free: Vec<usize>,
    waiting: VecDeque<Ask>,
    next: usize,
    answers: Vec<Answer>,
}

impl Load<'_> {
    pub fn drive(&self) -> Vec<Answer> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll is there");
        let mut drive = Drive {
            load: self,
            began: Instant::now(),
            poll,
            lines: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            next: 0,
            answers: Vec::new(),
        };
        let mut from = Duration::ZERO;
        for (at, step) in self.steps.iter().enumerate() {
            drive.step(at, step, from);
            from += step.time;
        }
        let end = from + PATIENCE;
        while drive.answers.len() < drive.next && drive.began.elapsed() < end {
            drive.send();
            drive.listen(Duration::from_millis(10));
        }
        // Who has not been answered by now is told so.
        let open = drive.lines.iter().flatten().filter_map(|line| line.asked).chain(drive.waiting.iter().copied());
        let open: Vec<Ask> = open.collect();
        open.into_iter().for_each(|ask| drive.note(ask, UNANSWERED, false));
        drive.answers
    }
}

impl Drive<'_> {
    fn step(&mut self, at: usize, step: &Step, from: Duration) {
        let count = step.rate * step.time.as_secs_f64();
        let mut made = 0.0;
        loop {
            let now = self.began.elapsed();
            if now >= from + step.time {
                break;
            }
            if step.rate.is_infinite() {
                let room = self.free.len() + self.load.connections - self.lines.len();
                (self.waiting.len()..room).for_each(|_| self.due(now, at));
                self.send();
                self.listen(from + step.time - now);
                continue;
            }
            let due = |made: f64| from + Duration::from_secs_f64(made / step.rate);
            while made < count && due(made) <= now {
                self.due(due(made), at);
                made += 1.0;
            }
            self.send();
            let until = if made < count { due(made) } else { from + step.time };
            self.listen(until.saturating_sub(self.began.elapsed()));
        }
        // The last ones of a step whose thread was held up.
        while step.rate.is_finite() && made < count {
            self.due(from + Duration::from_secs_f64(made / step.rate), at);
            made += 1.0;
        }
    }

    fn due(&mut self, due: Duration, step: usize) {
        self.waiting.push_back(Ask { number: self.next, due, tries: 0, step });
        self.next += 1;
    }

    fn send(&mut self) {
        while !self.waiting.is_empty() && (!self.free.is_empty() || self.lines.len() < self.load.connections) {
            let Some(ask) = self.waiting.pop_front() else { return };
            if self.began.elapsed() > ask.due + GIVEN_UP {
                self.note(ask, NOT_SENT, false);
                continue;
            }
            // The one used last is the least likely to be closed for being idle.
            let at = self.free.pop().unwrap_or_else(|| {
                self.lines.push(None);
                self.lines.len() - 1
            });
            if self.lines[at].is_none() {
                self.lines[at] = self.connect(at);
            }
            let request = &self.load.requests[ask.number % self.load.requests.len()];
            match &mut self.lines[at] {
                Some(line) => {
                    line.asked = Some(ask);
                    // A request fits into a socket that nothing waits in.
                    if line.stream.write_all(request).is_err() {
                        self.broken(at);
                    }
                }
                None => {
                    self.note(ask, NOT_SENT, false);
                    self.free.insert(0, at);
                }
            }
        }
    }

    fn connect(&self, at: usize) -> Option<Line> {
        let stream = TcpStream::connect(self.load.address).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_nonblocking(true).ok()?;
        epoll::add(&self.poll, &stream, epoll::EventData::new_u64(at as u64), epoll::EventFlags::IN).ok()?;
        Some(Line { stream, buffer: Vec::with_capacity(8 << 10), asked: None })
    }

    /// Reads what has come, and waits for it at most so long.
    fn listen(&mut self, most: Duration) {
        let mut events = Vec::with_capacity(256);
        let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
        let _ = epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), Some(&most));
        for event in &events {
            self.read(event.data.u64() as usize);
        }
    }

    fn read(&mut self, at: usize) {
        let Some(line) = &mut self.lines[at] else { return };
        let mut bytes = [0; 16 << 10];
        match line.stream.read(&mut bytes) {
            Ok(count) if count > 0 => line.buffer.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            _ => return self.broken(at),
        }
        let Some(end) = whole(&line.buffer) else { return };
        let text = String::from_utf8_lossy(&line.buffer[..end]);
        let status = text.get(9..12).and_then(|digits| digits.parse().ok()).unwrap_or(UNANSWERED);
        let closes = text.contains("\r\nconnection: close\r\n");
        let ask = line.asked.take();
        let wrong = ask.is_some_and(|ask| status == 200 && !(self.load.right)(ask.number, &text));
        line.buffer.clear();
        if closes {
            self.lines[at] = None;
        }
        self.free.push(at);
        match ask {
            Some(ask) if status == 503 && ask.tries < self.load.retries => {
                self.waiting.push_front(Ask { tries: ask.tries + 1, ..ask });
            }
            Some(ask) => self.note(ask, status, wrong),
            None => {}
        }
    }

    /// The connection has gone, with the request on it if there was one.
    fn broken(&mut self, at: usize) {
        let Some(line) = self.lines[at].take() else { return };
        match line.asked {
            Some(ask) => {
                self.note(ask, UNANSWERED, false);
                self.free.insert(0, at);
            }
            // It was free and stays so; it is made anew when it is needed.
            None => {
                self.free.retain(|free| *free != at);
                self.free.insert(0, at);
            }
        }
    }

    fn note(&mut self, ask: Ask, status: u16, wrong: bool) {
        let Ask { due, step, .. } = ask;
        self.answers.push(Answer { due, took: self.began.elapsed().saturating_sub(due), status, wrong, step });
    }
}

/// A request to rank, whole.
pub fn post(plan: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST /rank/{plan} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}
