//! The limiter in virtual time: a loop and a pool as queues, a store that may be slow or down, requests that come at a rate or from
//! clients who ask again when they are answered. Every test is a fault and what becomes of requests during and after it.
//!
//! A request costs the loop a little to read. Its run then computes on the loop in turns, waits for the store, has a job on the pool
//! and is taken in by the loop; then its answer is written there, which no round counts. What follows without waiting follows at once.

use super::*;
use rankd_engine::clock;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

mod faults;
mod overload;
mod pressure;

type Ns = u64;

const MS: Ns = 1_000_000;
const SECOND: Ns = 1000 * MS;
const READ: Ns = 20_000;
const TURN: Ns = 200_000;
const TAKE_IN: Ns = 10_000;
/// A refusal before a request is read, and an answer without rows.
const REFUSE: Ns = 8_000;
const FAIL: Ns = 15_000;

/// What a run does, one after the other, and how long it may take.
#[derive(Clone, Copy, Default)]
struct Shape {
    on_loop: Ns,
    store: Ns,
    pool: Ns,
    answer: Ns,
    deadline: Option<Ns>,
    /// How much less it computes in the pool when pressure is at its highest: a dial.
    gives_up: Ns,
}

impl Shape {
    fn under(self, pressure: u8) -> Shape {
        Shape { pool: self.pool - self.gives_up * Ns::from(pressure) / Ns::from(PRESSURE_MAX), ..self }
    }
}

#[derive(Clone, Copy)]
enum Source {
    /// So many a second, at random moments.
    Rate(f64),
    /// So many clients, each with one request at a time.
    Clients(usize),
}

#[derive(Clone, Copy)]
struct Load {
    shape: Shape,
    source: Source,
    from: Ns,
    to: Ns,
}

/// What a store does while it is down.
#[derive(Clone, Copy)]
enum Outage {
    Refuses,
    Hangs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Rows,
    Refused,
    TimedOut,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    InLine,
    Running,
    Over,
}

struct Request {
    load: usize,
    shape: Shape,
    came: Ns,
    phase: Phase,
    end: Option<(Ns, End)>,
    entered: Ns,
    submitted: Option<Ns>,
    pool_wait: Option<Ns>,
    loop_wait: Ns,
    worked: Ns,
    may_wait: Duration,
    /// When it asked to run.
    pressure: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Comes { load: usize },
    LoopIsDone,
    StoreAnswers { request: usize, well: bool },
    JobIsDone { job: usize, request: usize },
    Deadline { request: usize },
    LineEnds { request: usize },
}

/// What is in the loop's line, with the moment since which it could have run.
#[derive(Clone, Copy)]
enum AnswerBytes {
    Read { request: usize },
    Turn { request: usize, left: Ns, since: Option<Ns> },
    TakeIn { request: usize, since: Ns },
    Answer { request: usize, cost: Ns, end: End },
    Probe,
}

struct Machine {
    limiter: Limiter<usize>,
    epoch: Instant,
    now: Ns,
    seed: u64,
    loads: Vec<Load>,
    outage: Option<(Ns, Ns, Outage)>,
    threads: usize,
    events: BinaryHeap<Reverse<(Ns, u64, Event)>>,
    sequence: u64,
    requests: Vec<Request>,
    line: VecDeque<AnswerBytes>,
    at_work: Option<AnswerBytes>,
    probing: bool,
    round: Ns,
    queued: VecDeque<usize>,
    /// Jobs that run, with their requests.
    jobs: Vec<(usize, usize)>,
    jobs_made: usize,
}

impl Machine {
    fn new(threads: usize, loads: &[Load]) -> Machine {
        let settings = AdmissionSettings { queue: None, limit_max: 4096.0 };
        Machine {
            limiter: Limiter::new(&settings),
            epoch: clock::now(),
            now: 0,
            seed: 7,
            loads: loads.to_vec(),
            outage: None,
            threads,
            events: BinaryHeap::new(),
            sequence: 0,
            requests: Vec::new(),
            line: VecDeque::new(),
            at_work: None,
            probing: false,
            round: 0,
            queued: VecDeque::new(),
            jobs: Vec::new(),
            jobs_made: 0,
        }
    }

    fn down(mut self, from: Ns, to: Ns, outage: Outage) -> Machine {
        self.outage = Some((from, to, outage));
        self
    }

    fn random(&mut self) -> f64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.seed >> 11) as f64 / (1u64 << 53) as f64).max(1e-12)
    }

    fn at(&mut self, when: Ns, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((when, self.sequence, event)));
    }

    /// Plays it to its end.
    fn play(mut self) -> Played {
        for load in 0..self.loads.len() {
            let Load { source, from, .. } = self.loads[load];
            let clients = if let Source::Clients(clients) = source { clients } else { 1 };
            (0..clients).for_each(|_| self.at(from, Event::Comes { load }));
        }
        while let Some(Reverse((when, _, event))) = self.events.pop() {
            self.now = when;
            self.happens(event);
            self.start_pieces();
        }
        assert!(self.requests.iter().all(|request| request.end.is_some()), "every request is answered");
        assert_eq!((self.limiter.running(), self.jobs.len()), (0, 0), "nothing is left");
        Played { requests: self.requests }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Comes { load } => {
                let Load { shape, source, to, .. } = self.loads[load];
                if self.now >= to {
                    return;
                }
                if let Source::Rate(rate) = source {
                    let next = self.now + (-rankd_column::math::log(self.random()) * SECOND as f64 / rate) as Ns;
                    self.at(next, Event::Comes { load });
                }
                let request = self.requests.len();
                self.requests.push(Request {
                    load,
                    shape,
                    came: self.now,
                    phase: Phase::InLine,
                    end: None,
                    entered: 0,
                    submitted: None,
                    pool_wait: None,
                    loop_wait: 0,
                    may_wait: Duration::ZERO,
                    pressure: 0,
                    worked: 0,
                });
                self.line.push_back(AnswerBytes::Read { request });
            }
            Event::LoopIsDone => {
                if let Some(piece) = self.at_work.take() {
                    self.is_done(piece);
                }
            }
            Event::StoreAnswers { request, well } if self.requests[request].phase == Phase::Running => match well {
                true if self.requests[request].shape.pool > 0 => {
                    self.requests[request].submitted = Some(self.now);
                    self.queued.push_back(request);
                    self.start_jobs();
                }
                true => self.line.push_back(AnswerBytes::TakeIn { request, since: self.now }),
                false => self.ends(request, End::Failed),
            },
            Event::StoreAnswers { .. } => {}
            Event::JobIsDone { job, request } => {
                if self.stop_job(|(number, _)| number == job) {
                    self.requests[request].worked += self.requests[request].shape.pool;
                    self.line.push_back(AnswerBytes::TakeIn { request, since: self.now });
                    self.start_jobs();
                }
            }
            Event::Deadline { request } => {
                if self.requests[request].phase == Phase::Running {
                    self.ends(request, End::TimedOut);
                    self.stop_job(|(_, of)| of == request);
                    self.start_jobs();
                }
            }
            Event::LineEnds { request } => {
                if self.requests[request].phase == Phase::InLine {
                    self.requests[request].phase = Phase::Over;
                    self.line.push_back(AnswerBytes::Answer { request, cost: FAIL, end: End::Refused });
                }
            }
        }
    }

    fn start_pieces(&mut self) {
        if self.at_work.is_some() {
            return;
        }
        let Some(piece) = self.line.pop_front() else { return };
        let now = self.now;
        let piece = match piece {
            AnswerBytes::Read { request } if self.refuses_unread(request) => {
                self.requests[request].phase = Phase::Over;
                AnswerBytes::Answer { request, cost: REFUSE, end: End::Refused }
            }
            piece => piece,
        };
        let cost = match piece {
            AnswerBytes::Read { .. } => READ,
            AnswerBytes::Turn { request, left, since } => {
                self.requests[request].loop_wait += since.map_or(0, |since| now - since);
                left.min(TURN)
            }
            AnswerBytes::TakeIn { request, since } => {
                self.requests[request].loop_wait += now - since;
                TAKE_IN
            }
            AnswerBytes::Answer { cost, .. } => cost,
            AnswerBytes::Probe => 0,
        };
        self.at_work = Some(piece);
        self.at(now + cost, Event::LoopIsDone);
    }

    fn is_done(&mut self, piece: AnswerBytes) {
        match piece {
            AnswerBytes::Read { request } => self.asks(request),
            AnswerBytes::Turn { request, .. } | AnswerBytes::TakeIn { request, .. }
                if self.requests[request].phase != Phase::Running => {}
            AnswerBytes::Turn { request, left, .. } => {
                let did = left.min(TURN);
                self.round += did;
                self.requests[request].worked += did;
                match left - did {
                    0 => self.reads(request),
                    left => self.line.push_back(AnswerBytes::Turn { request, left, since: Some(self.now) }),
                }
            }
            AnswerBytes::TakeIn { request, .. } => {
                self.round += TAKE_IN;
                self.ends(request, End::Rows);
            }
            AnswerBytes::Answer { request, end, .. } => {
                self.requests[request].end = Some((self.now, end));
                let load = self.requests[request].load;
                if let Source::Clients(_) = self.loads[load].source {
                    // Who was sent away comes back a little later.
                    let pause = if end == End::Refused { MS } else { 0 };
                    self.at(self.now + pause, Event::Comes { load });
                }
            }
            AnswerBytes::Probe => self.probing = false,
        }
    }

    fn moment(&self, at: Ns) -> Instant {
        self.epoch + Duration::from_nanos(at)
    }

    fn deadline(&self, request: usize) -> Option<Instant> {
        let Request { shape, came, .. } = self.requests[request];
        shape.deadline.map(|deadline| self.moment(came + deadline))
    }

    fn probes(&mut self) {
        if !std::mem::replace(&mut self.probing, true) {
            self.round = 0;
            self.line.push_back(AnswerBytes::Probe);
        }
    }

    /// The server knows a request's deadline before it is read only where it is the server's own.
    fn refuses_unread(&mut self, request: usize) -> bool {
        let Some(deadline) = self.deadline(request) else { return false };
        self.probes();
        let (now, round, has_room) = (self.moment(self.now), self.round, self.jobs.len() < self.threads);
        self.limiter.refusal(now, Some(deadline), Duration::from_nanos(round), || has_room).is_some()
    }

    fn asks(&mut self, request: usize) {
        self.probes();
        let (now, deadline, epoch) = (self.moment(self.now), self.deadline(request), self.epoch);
        let (round, has_room) = (Duration::from_nanos(self.round), self.jobs.len() < self.threads);
        self.requests[request].may_wait = self.limiter.may_wait(now, deadline);
        let pressure = self.limiter.pressure(now, deadline, round);
        self.requests[request].pressure = pressure;
        match self.limiter.ask(now, deadline, round, || has_room) {
            Decision::Enter => self.enters(request, true),
            Decision::Refuse(_) => {
                self.requests[request].phase = Phase::Over;
                self.line.push_front(AnswerBytes::Answer { request, cost: FAIL, end: End::Refused });
            }
            Decision::WaitUntil(until) => {
                self.limiter.wait(request, deadline.is_some());
                let until = (until - epoch).as_nanos() as Ns;
                self.at(until.max(self.now), Event::LineEnds { request });
                self.admit();
            }
        }
    }

    fn admit(&mut self) {
        while let Some(request) = self.limiter.next() {
            match self.requests[request].phase {
                Phase::InLine => self.enters(request, false),
                Phase::Running | Phase::Over => self.limiter.leave(),
            }
        }
    }

    /// A request that did not queue goes on where it was read.
    fn enters(&mut self, request: usize, at_once: bool) {
        let Request { shape, came, .. } = self.requests[request];
        let run = &mut self.requests[request];
        (run.phase, run.entered, run.shape) = (Phase::Running, self.now, shape.under(run.pressure));
        if let Some(deadline) = shape.deadline {
            self.at((came + deadline).max(self.now), Event::Deadline { request });
        }
        match shape.on_loop {
            0 => self.reads(request),
            left if at_once => self.line.push_front(AnswerBytes::Turn { request, left, since: None }),
            left => self.line.push_back(AnswerBytes::Turn { request, left, since: None }),
        }
    }

    fn reads(&mut self, request: usize) {
        let Shape { store, pool, .. } = self.requests[request].shape;
        if store == 0 && pool == 0 {
            return self.ends(request, End::Rows);
        }
        let (when, well) = match self.outage {
            Some((from, to, Outage::Refuses)) if (from..to).contains(&self.now) => (self.now + MS / 10, false),
            Some((from, to, Outage::Hangs)) if (from..to).contains(&self.now) => (to + store, true),
            _ => (self.now + store, true),
        };
        self.at(when, Event::StoreAnswers { request, well });
    }

    fn start_jobs(&mut self) {
        while self.jobs.len() < self.threads
            && let Some(request) = self.queued.pop_front()
        {
            if self.requests[request].phase != Phase::Running {
                continue;
            }
            let waited = self.now - self.requests[request].submitted.unwrap_or(self.now);
            self.requests[request].pool_wait = Some(waited);
            self.jobs_made += 1;
            let job = self.jobs_made;
            self.jobs.push((job, request));
            self.at(self.now + self.requests[request].shape.pool, Event::JobIsDone { job, request });
        }
    }

    fn stop_job(&mut self, which: impl Fn((usize, usize)) -> bool) -> bool {
        let before = self.jobs.len();
        self.jobs.retain(|job| !which(*job));
        self.jobs.len() < before
    }

    /// A run is over: it is learned from, its place is free, its answer is written.
    fn ends(&mut self, request: usize, end: End) {
        let now = self.now;
        let run = &mut self.requests[request];
        run.phase = Phase::Over;
        let pool_wait = run.pool_wait.or(run.submitted.map(|at| now - at)).unwrap_or(0);
        let ran = RunUsage {
            took: Duration::from_nanos(now - run.entered),
            waited: Duration::from_nanos(run.loop_wait + pool_wait),
            may_wait: run.may_wait,
            worked: Duration::from_nanos(run.worked),
            timed_out: end == End::TimedOut,
        };
        let cost = if end == End::Rows { run.shape.answer } else { FAIL };
        self.limiter.learn(&ran);
        self.limiter.leave();
        match end {
            End::Rows => self.line.push_front(AnswerBytes::Answer { request, cost, end }),
            // A timer or a store wakes the run.
            End::TimedOut | End::Failed | End::Refused => {
                self.line.push_back(AnswerBytes::Answer { request, cost, end });
            }
        }
        self.admit();
    }
}

struct Played {
    requests: Vec<Request>,
}

impl Played {
    /// How many requests of a load, of those that came in this time, ended in this way.
    fn count(&self, load: usize, from: Ns, to: Ns, end: End) -> usize {
        let of_load = self.requests.iter().filter(|request| request.load == load && (from..to).contains(&request.came));
        of_load.filter(|request| request.end.is_some_and(|(_, ended)| ended == end)).count()
    }

    /// Requests of a load that got rows within their deadline, a second.
    fn goodput(&self, load: usize, from: Ns, to: Ns) -> f64 {
        let of_load = self.requests.iter().filter(|request| request.load == load && (from..to).contains(&request.came));
        let in_time = |request: &&Request| {
            let most = request.shape.deadline.unwrap_or(Ns::MAX);
            request.end.is_some_and(|(at, end)| end == End::Rows && at - request.came <= most)
        };
        of_load.filter(in_time).count() as f64 * SECOND as f64 / (to - from) as f64
    }

    /// When the first request of a load came that fits, if one did.
    fn first(&self, load: usize, fits: impl Fn(&Request) -> bool) -> Option<Ns> {
        self.requests.iter().find(|request| request.load == load && fits(request)).map(|request| request.came)
    }

    /// The latest answer of any kind, counted from its deadline.
    fn latest(&self, load: usize) -> Ns {
        let of_load = self.requests.iter().filter(|request| request.load == load);
        let late = |request: &Request| {
            let due = request.came + request.shape.deadline.unwrap_or(0);
            request.end.map_or(0, |(at, _)| at.saturating_sub(due))
        };
        of_load.map(late).max().unwrap_or(0)
    }
}

const DEADLINE: Option<Ns> = Some(100 * MS);

fn rate(shape: Shape, rate: f64, from: Ns, to: Ns) -> Load {
    Load { shape, source: Source::Rate(rate), from, to }
}

/// Runs of 80 ms that wait for a store most of the time.
const READS: Shape = Shape { on_loop: MS / 10, store: 78 * MS, pool: MS, answer: MS / 20, deadline: None, gives_up: 0 };
/// Runs that compute for one millisecond.
const COMPUTES: Shape =
    Shape { on_loop: MS / 20, store: 0, pool: MS, answer: MS / 20, deadline: DEADLINE, gives_up: 0 };
/// Runs that compute on the loop only, and not for long.
const CHEAP: Shape = Shape { on_loop: MS / 20, store: 0, pool: 0, answer: MS / 50, deadline: DEADLINE, gives_up: 0 };
