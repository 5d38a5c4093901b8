//! One request on its event loop: what is ready is started, what happens next is awaited, until there is a verdict.
//!
//! All state of a run is touched by the loop's thread only. The walk is a loop over a closed set of events; nothing here
//! recurses and nothing here waits except for the next event. Invariants: a node starts once, after all its inputs; nothing
//! starts after the verdict; when time wins, the answer goes out now and what still finishes is counted as late.

use crate::clock::{self, Instant};
use crate::deadline::{Deadline, Limits};
use crate::error::RunError;
use crate::flight::{self, Landed, Mailbox};
use crate::link::{Linked, Progress};
use crate::place::{Place, place};
use crate::pool::Offload;
use crate::request::Request;
use crate::stats::Stats;
use crate::store::Stores;
use crate::trace::{Recorder, Trace, Where};
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::task::AtomicWaker;
use rankd_column::RowSet;
use rankd_plan::plan::NodeIx;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// What came of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The rows of each output, in the plan's order.
    pub result: Result<Vec<RowSet>, Box<RunError>>,
    pub trace: Option<Trace>,
    pub took: Duration,
}

/// What the runs of one loop share.
pub struct Host {
    pub stores: Stores,
    pub pool: Arc<dyn Offload + Send + Sync>,
    pub stats: Arc<Stats>,
}

/// Ends a run from outside: the caller has gone, or the process stops.
#[derive(Default)]
pub struct Cancel {
    requested: AtomicBool,
    waker: AtomicWaker,
}

impl Cancel {
    pub fn cancel(&self) {
        self.requested.store(true, Ordering::Release);
        self.waker.wake();
    }
}

/// Runs a plan for a request. Dropping the future is a cancel, too.
pub async fn run(
    plan: Arc<Linked>,
    request: Arc<Request>,
    host: Rc<Host>,
    limits: Limits,
    cancel: Arc<Cancel>,
) -> Outcome {
    let began = clock::now();
    let mut run = Run::new(&plan, request, host, limits, &cancel, began);
    for &node in &plan.starts {
        run.becomes_ready(node);
    }
    let verdict = loop {
        if let Err(error) = run.start_ready() {
            break Err(error);
        }
        if run.progress.is_done() {
            break run.progress.outputs();
        }
        match run.next_event().await {
            Event::Landed(landed) => {
                if let Err(error) = run.land(landed) {
                    break Err(error);
                }
            }
            Event::TimeIsUp(node, deadline) => break Err(plan.at_node(node, RunError::timeout(&deadline))),
            Event::Cancelled => break Err(RunError::cancelled()),
        }
    };
    run.close();
    let now = clock::now();
    let recorder = std::mem::replace(&mut run.recorder, Recorder::new(&plan, false, now));
    let trace = recorder.finish(&plan, now);
    Outcome { result: verdict.map_err(Box::new), trace, took: now.saturating_duration_since(began) }
}

enum Event {
    Landed(Landed),
    /// The time of this node, or of the whole request while it was in flight.
    TimeIsUp(NodeIx, Deadline),
    Cancelled,
}

/// When a node in flight must be back.
#[derive(PartialEq, Eq)]
struct NodeLimit {
    deadline: Deadline,
    started: u32,
    node: NodeIx,
}

impl Ord for NodeLimit {
    fn cmp(&self, other: &NodeLimit) -> std::cmp::Ordering {
        (self.deadline.at, self.started).cmp(&(other.deadline.at, other.started))
    }
}

impl PartialOrd for NodeLimit {
    fn partial_cmp(&self, other: &NodeLimit) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

struct Run<'p> {
    plan: &'p Arc<Linked>,
    request: Arc<Request>,
    host: Rc<Host>,
    limits: Limits,
    cancel: &'p Cancel,
    progress: Progress<'p>,
    ready: VecDeque<NodeIx>,
    fetches: FuturesUnordered<Pin<Box<dyn Future<Output = Landed>>>>,
    mailbox: Arc<Mailbox>,
    /// Results that were collected together and are handled one by one.
    collected: Vec<Landed>,
    /// The limits of nodes that were started, earliest first; those of nodes that have landed are passed over.
    limits_set: BinaryHeap<Reverse<NodeLimit>>,
    landed: Vec<bool>,
    started: u32,
    timer: Option<Pin<Box<Sleep>>>,
    recorder: Recorder,
    open: bool,
}

impl<'p> Run<'p> {
    fn new(
        plan: &'p Arc<Linked>,
        request: Arc<Request>,
        host: Rc<Host>,
        limits: Limits,
        cancel: &'p Cancel,
        began: Instant,
    ) -> Run<'p> {
        let recorder = Recorder::new(plan, request.trace, began);
        Run {
            plan,
            request,
            host,
            limits,
            cancel,
            progress: Progress::new(plan),
            ready: VecDeque::new(),
            fetches: FuturesUnordered::new(),
            mailbox: Arc::default(),
            collected: Vec::new(),
            limits_set: BinaryHeap::new(),
            landed: vec![false; plan.nodes.len()],
            started: 0,
            timer: None,
            recorder,
            open: true,
        }
    }

    fn becomes_ready(&mut self, node: NodeIx) {
        if self.recorder.is_on() {
            self.recorder.ready(node, clock::now());
        }
        self.ready.push_back(node);
    }

    fn start_ready(&mut self) -> Result<(), RunError> {
        while let Some(node) = self.ready.pop_front() {
            self.start(node)?;
        }
        Ok(())
    }

    fn start(&mut self, ix: NodeIx) -> Result<(), RunError> {
        let node = self.plan.node(ix);
        let timed = self.limits.timed(node.timeout) || self.recorder.is_on();
        let now = if timed { Some(clock::now()) } else { None };
        let mut deadline = None;
        if let Some(now) = now {
            if let Some(request) = self.limits.request.filter(|request| request.passed(now)) {
                return Err(self.plan.at_node(ix, RunError::too_late_to_start(&request)));
            }
            deadline = self.limits.of_node(now, node.timeout);
        }
        let inputs = self.progress.inputs(ix).map_err(|error| self.plan.at_node(ix, error))?;
        self.started += 1;
        if let Some(deadline) = deadline {
            self.limits_set.push(Reverse(NodeLimit { deadline, started: self.started, node: ix }));
        }
        match place(node) {
            Place::Loop => {
                if let Some(now) = now {
                    self.recorder.started(ix, &inputs, Where::Loop, now);
                }
                let (plan, request, host) = (self.plan.clone(), self.request.clone(), self.host.clone());
                self.fetches.push(Box::pin(async move {
                    let stats = host.stats.clone();
                    flight::fetch(plan, ix, inputs, request, &host.stores, stats, Where::Loop).await
                }));
            }
            Place::Pool => {
                if let Some(now) = now {
                    self.recorder.started(ix, &inputs, Where::Pool(0), now);
                }
                self.host.stats.count_offload();
                let (plan, request, stats) = (self.plan.clone(), self.request.clone(), self.host.stats.clone());
                self.host.pool.submit(flight::job(plan, ix, inputs, request, self.mailbox.clone(), stats));
            }
        }
        Ok(())
    }

    /// Takes in a node that has ended: its rows are kept and its readers may become ready.
    fn land(&mut self, landed: Landed) -> Result<(), RunError> {
        let Landed { node, result, started, ended, on, tally } = landed;
        self.landed[node as usize] = true;
        self.recorder.ended(node, result.as_ref().ok(), (started, ended), on, &tally);
        let rows = result.map_err(|error| self.plan.blame(node, error))?;
        let now = self.recorder.is_on().then(clock::now);
        let Run { progress, ready, recorder, .. } = self;
        progress.finish(node, rows, |reader| {
            if let Some(now) = now {
                recorder.ready(reader, now);
            }
            ready.push_back(reader);
        });
        Ok(())
    }

    async fn next_event(&mut self) -> Event {
        self.arm();
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// A result that is there wins over a limit that passed in the same moment: the loser is not acted on.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Some(landed) = self.collected.pop() {
            return Poll::Ready(Event::Landed(landed));
        }
        self.mailbox.waker.register(cx.waker());
        self.mailbox.collect(&mut self.collected);
        // Collected in order of arrival, handled from the end.
        self.collected.reverse();
        if let Some(landed) = self.collected.pop() {
            return Poll::Ready(Event::Landed(landed));
        }
        if let Poll::Ready(Some(landed)) = self.fetches.poll_next_unpin(cx) {
            return Poll::Ready(Event::Landed(landed));
        }
        self.cancel.waker.register(cx.waker());
        if self.cancel.requested.load(Ordering::Acquire) {
            return Poll::Ready(Event::Cancelled);
        }
        if let Some(timer) = &mut self.timer
            && timer.as_mut().poll(cx).is_ready()
            && let Some((node, deadline)) = self.earliest()
        {
            return Poll::Ready(Event::TimeIsUp(node, deadline));
        }
        Poll::Pending
    }

    /// Sets the one timer to the earliest limit in flight.
    fn arm(&mut self) {
        let Some((_, Deadline { at, .. })) = self.earliest() else { return };
        match &mut self.timer {
            Some(timer) if timer.deadline() == at => {}
            Some(timer) => timer.as_mut().reset(at),
            None => self.timer = Some(Box::pin(tokio::time::sleep_until(at))),
        }
    }

    /// The earliest limit of a node in flight; of equal ones, that of the node that was started first.
    fn earliest(&mut self) -> Option<(NodeIx, Deadline)> {
        while let Some(Reverse(first)) = self.limits_set.peek() {
            if !self.landed[first.node as usize] {
                return Some((first.node, first.deadline));
            }
            self.limits_set.pop();
        }
        None
    }

    /// Nobody waits any more: reads in flight are dropped, jobs are told to stop, what they still bring is late.
    fn close(&mut self) {
        if std::mem::replace(&mut self.open, false) {
            self.mailbox.close(&self.host.stats);
            self.fetches.clear();
            for landed in self.collected.drain(..) {
                self.host.stats.count_late(clock::nanos_between(landed.started, landed.ended));
            }
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.close();
    }
}
