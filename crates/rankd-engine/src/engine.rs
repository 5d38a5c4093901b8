//! Owns the threads: event loops, the CPU pool and, where it is asked for, the IO pool. Requests come in here.

use crate::clock;
use crate::deadline::{Allowed, Limits};
use crate::error::RunError;
use crate::link::Linked;
use crate::loop_context::LoopContext;
use crate::loop_handle::{LongestPoll, LoopHandle, LoopService, MakeService};
use crate::place::{Policy, Scheduler};
use crate::pool::{Pool, Standing};
use crate::request::Request;
use crate::run::{self, Cancel, Outcome};
use crate::sequential::Sequential;
use crate::stats::Stats;
use crate::store::{Open, Stores, Tables, tables_of};
use crate::thread_pools::{self, IoPool};
use crossbeam_channel::{Receiver, bounded};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// How an engine works.
#[derive(Clone, Debug)]
pub struct Settings {
    pub scheduler: Scheduler,
    pub loops: usize,
    pub cpu_threads: usize,
    pub deadline: Option<Duration>,
    pub node_timeout: Option<Duration>,
    /// Bytes of rows that a run may hold. What is there anyway, such as tables, does not count.
    pub run_bytes_max: usize,
    pub policy: Policy,
    pub standing: Standing,
}

/// How many bytes of rows a run may hold where nothing else is said.
pub const RUN_BYTES_MAX: usize = 64 << 20;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            scheduler: Scheduler::Async,
            loops: 1,
            cpu_threads: 1,
            deadline: None,
            node_timeout: None,
            run_bytes_max: RUN_BYTES_MAX,
            policy: Policy::default(),
            standing: Standing::Requests,
        }
    }
}

impl Settings {
    fn allowed(&self) -> Allowed {
        let run_bytes_max = Some(self.run_bytes_max);
        Allowed { deadline: self.deadline, node_timeout: self.node_timeout, run_bytes_max }
    }
}

pub struct Engine {
    settings: Settings,
    stats: Arc<Stats>,
    pool: Arc<Pool>,
    tables: Option<Arc<Tables>>,
    machinery: Machinery,
}

/// How an engine is doing. Does not keep it running.
#[derive(Clone)]
pub struct Gauges {
    pub stats: Arc<Stats>,
    /// By loop: the longest that a task of a service has held it.
    pub longest_polls: Vec<Arc<LongestPoll>>,
    pool: Weak<Pool>,
}

impl Gauges {
    /// How many jobs are waiting for the CPU pool or running in it.
    pub fn pool_depth(&self) -> usize {
        self.pool.upgrade().map_or(0, |pool| pool.depth())
    }

    /// Whether a thread of the CPU pool has nothing to do.
    pub fn pool_has_room(&self) -> bool {
        self.pool.upgrade().is_some_and(|pool| pool.has_room())
    }
}

/// What the chosen scheduler needs.
enum Machinery {
    Async { loops: Vec<EventLoop>, next: AtomicUsize },
    Pools(IoPool),
    Sequential { endpoints: Vec<Arc<dyn Open>>, id: usize },
}

thread_local! {
    /// The runtime and the stores of the calling thread, and the engine that they are for.
    static SEQUENTIAL: RefCell<Option<(usize, Sequential)>> = const { RefCell::new(None) };
}

impl Engine {
    pub fn start(settings: Settings, endpoints: Vec<Arc<dyn Open>>) -> io::Result<Engine> {
        let stats = Arc::new(Stats::new(&endpoints));
        // Without a thread nothing would ever run.
        let pool = Arc::new(Pool::start_as(settings.standing, settings.cpu_threads.max(1))?);
        let tables = tables_of(&endpoints);
        let machinery = match settings.scheduler {
            Scheduler::Async => {
                let start = |number| EventLoop::start(number, &settings, &endpoints, &pool, &stats);
                Machinery::Async {
                    loops: (0..settings.loops.max(1)).map(start).collect::<io::Result<_>>()?,
                    next: AtomicUsize::new(0),
                }
            }
            Scheduler::Pools => Machinery::Pools(IoPool::start(&endpoints)?),
            Scheduler::Sequential => {
                static NEXT: AtomicUsize = AtomicUsize::new(0);
                Machinery::Sequential { endpoints, id: NEXT.fetch_add(1, Ordering::Relaxed) }
            }
        };
        Ok(Engine { settings, stats, pool, tables, machinery })
    }

    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Runs a plan for a request and waits for the answer.
    pub fn run(&self, plan: &Arc<Linked>, request: Request) -> Outcome {
        let limits = |request: &Request| request.limits(clock::now(), self.settings.allowed());
        match &self.machinery {
            Machinery::Async { .. } => self.start_run(plan, request).wait(),
            Machinery::Pools(io) => {
                let limits = limits(&request);
                thread_pools::run(plan, &self.begin(plan, request), limits, &self.pool, io, &self.stats)
            }
            Machinery::Sequential { endpoints, id } => SEQUENTIAL.with_borrow_mut(|kept| {
                // Kept from request to request, so that connections are.
                if kept.as_ref().is_none_or(|(of, _)| of != id) {
                    match Sequential::new(endpoints, self.stats.clone()) {
                        Ok(sequential) => *kept = Some((*id, sequential)),
                        Err(error) => {
                            return Outcome::failed(RunError::bug(format!("cannot start a runtime: {error}")));
                        }
                    }
                }
                let limits = limits(&request);
                match kept {
                    Some((_, sequential)) => sequential.run(plan, &self.begin(plan, request), limits),
                    None => Outcome::failed(RunError::bug("no runtime")),
                }
            }),
        }
    }

    /// The tables of its endpoints; `None` where none is one.
    pub fn tables(&self) -> Option<&Arc<Tables>> {
        self.tables.as_ref()
    }

    fn begin(&self, plan: &Linked, request: Request) -> Arc<Request> {
        plan.begin(request, self.tables.as_deref())
    }

    /// Hands a request to a loop. Only the async scheduler has loops; the others answer before this returns.
    pub fn start_run(&self, plan: &Arc<Linked>, request: Request) -> Ticket {
        let (answer, outcome) = bounded(1);
        let ticket = Ticket { outcome, cancel: Arc::default() };
        // The caller may have gone; then the answer is not needed.
        self.submit(plan, request, ticket.cancel.clone(), move |outcome| drop(answer.send(outcome)));
        ticket
    }

    /// The same, with the answer given to `then`, on the thread that has it.
    pub fn start_run_then(&self, plan: &Arc<Linked>, request: Request, then: impl FnOnce(Outcome) + Send + 'static) {
        self.submit(plan, request, Arc::default(), then);
    }

    fn submit(
        &self,
        plan: &Arc<Linked>,
        request: Request,
        cancel: Arc<Cancel>,
        then: impl FnOnce(Outcome) + Send + 'static,
    ) {
        let Machinery::Async { loops, next } = &self.machinery else { return then(self.run(plan, request)) };
        let limits = request.limits(clock::now(), self.settings.allowed());
        let order =
            Order { plan: plan.clone(), request: self.begin(plan, request), limits, cancel, answer: Box::new(then) };
        let at = next.fetch_add(1, Ordering::Relaxed) % loops.len();
        if let Err(refused) = loops[at].orders.send(Message::Run(Box::new(order)))
            && let Message::Run(order) = refused.0
        {
            (order.answer)(Outcome::failed(RunError::bug("the event loop is gone")));
        }
    }

    /// Starts a service on every loop: `make` is called on the thread of each. False where the scheduler has no loops.
    ///
    /// When the engine stops, a service may finish within the drain time, as runs may, and is dropped after it.
    pub fn on_every_loop(&self, make: impl Fn(LoopHandle) -> LoopService + Send + Sync + 'static) -> bool {
        let make: MakeService = Arc::new(make);
        let Machinery::Async { loops, .. } = &self.machinery else { return false };
        loops.iter().all(|event_loop| event_loop.orders.send(Message::Serve(make.clone())).is_ok())
    }

    /// What can be read of the engine from anywhere while it runs.
    pub fn gauges(&self) -> Gauges {
        let loops: &[EventLoop] = if let Machinery::Async { loops, .. } = &self.machinery { loops } else { &[] };
        let longest_polls = loops.iter().map(|event_loop| event_loop.longest_poll.clone()).collect();
        Gauges { stats: self.stats.clone(), longest_polls, pool: Arc::downgrade(&self.pool) }
    }

    /// Stops: no new requests; running ones finish within `drain` or are cancelled; then every thread ends.
    pub fn stop(&self, drain: Duration) {
        if let Machinery::Async { loops, .. } = &self.machinery {
            for event_loop in loops {
                // A loop that is gone has nothing to drain.
                let _ = event_loop.orders.send(Message::Stop { drain });
            }
            loops.iter().for_each(EventLoop::join);
        }
        self.pool.wait_idle();
    }

    /// Stops without waiting for anything: runs are cancelled, and a thread that a task does not give back ends with the process.
    pub fn abandon(self: &Arc<Engine>) {
        if let Machinery::Async { loops, .. } = &self.machinery {
            for event_loop in loops {
                // A loop that is gone need not be stopped.
                let _ = event_loop.orders.send(Message::Stop { drain: Duration::ZERO });
            }
        }
        // Whoever drops the last one waits for its threads.
        std::mem::forget(self.clone());
    }
}

/// A request that is running.
pub struct Ticket {
    outcome: Receiver<Outcome>,
    cancel: Arc<Cancel>,
}

impl Ticket {
    /// Waits for the answer.
    pub fn wait(self) -> Outcome {
        self.outcome.recv().unwrap_or_else(|_| Outcome::failed(RunError::bug("the event loop dropped the request")))
    }

    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

enum Message {
    Run(Box<Order>),
    Serve(MakeService),
    Stop { drain: Duration },
}

struct Order {
    plan: Arc<Linked>,
    request: Arc<Request>,
    limits: Limits,
    cancel: Arc<Cancel>,
    answer: Reply,
}

/// Takes the answer.
type Reply = Box<dyn FnOnce(Outcome) + Send>;

/// One thread with a runtime: it owns its stores, its timers and every run on it.
struct EventLoop {
    orders: UnboundedSender<Message>,
    longest_poll: Arc<LongestPoll>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl EventLoop {
    fn start(
        number: usize,
        settings: &Settings,
        endpoints: &[Arc<dyn Open>],
        pool: &Arc<Pool>,
        stats: &Arc<Stats>,
    ) -> io::Result<EventLoop> {
        let (orders, inbox) = unbounded_channel();
        let (endpoints, pool, stats) = (endpoints.to_vec(), pool.clone(), stats.clone());
        let (ready, started) = bounded(1);
        let (allowed, policy, standing) = (settings.allowed(), settings.policy, settings.standing);
        let longest_poll = Arc::new(LongestPoll::default());
        let timed = longest_poll.clone();
        let thread = thread::Builder::new().name(format!("{}-loop-{number}", standing.prefix())).spawn(move || {
            standing.take_loop();
            let runtime = Builder::new_current_thread().enable_all().build_local(Default::default());
            match runtime {
                Ok(runtime) => {
                    let _ = ready.send(Ok(()));
                    let context = Rc::new(LoopContext::new(Stores::open(&endpoints), pool, stats, policy));
                    let loop_handle = LoopHandle::new(number, context.clone(), allowed, timed);
                    runtime.block_on(clock::with_exact_timers(drive(inbox, context, loop_handle)));
                    // Does not wait for threads that resolve the names of stores: a resolver may hang for minutes.
                    runtime.shutdown_background();
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        })?;
        started.recv().unwrap_or_else(|_| Err(io::Error::other("the event loop's thread did not start")))?;
        Ok(EventLoop { orders, longest_poll, thread: Mutex::new(Some(thread)) })
    }

    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A loop that panicked has dropped its runs, and each of them was answered as dropped.
            let _ = thread.join();
        }
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        // A loop that is gone need not be stopped.
        let _ = self.orders.send(Message::Stop { drain: Duration::ZERO });
        self.join();
    }
}

/// Takes requests until it is told to stop, then waits for those that are running.
async fn drive(mut inbox: UnboundedReceiver<Message>, context: Rc<LoopContext>, loop_handle: LoopHandle) {
    let mut runs = JoinSet::new();
    // Dropped with the loop, and every service with it.
    let mut services = JoinSet::new();
    let mut cancels: HashMap<tokio::task::Id, Arc<Cancel>> = HashMap::new();
    let drain = loop {
        tokio::select! {
            biased;
            Some(ended) = runs.join_next_with_id() => {
                let id = match ended {
                    Ok((id, ())) => id,
                    // The run's answer channel is dropped with it, which its caller sees.
                    Err(error) => error.id(),
                };
                cancels.remove(&id);
            }
            message = inbox.recv() => match message {
                Some(Message::Run(order)) => {
                    let Order { plan, request, limits, cancel, answer } = *order;
                    let context = context.clone();
                    let token = cancel.clone();
                    let task = runs.spawn_local(async move {
                        answer(run::run(plan, request, context, limits, cancel).await);
                    });
                    cancels.insert(task.id(), token);
                }
                Some(Message::Serve(make)) => {
                    services.spawn_local(make(loop_handle.clone()));
                }
                Some(Message::Stop { drain }) => break drain,
                None => break Duration::ZERO,
            },
        }
    };
    let finished = async {
        while services.join_next().await.is_some() {}
        while runs.join_next().await.is_some() {}
    };
    if tokio::time::timeout(drain, finished).await.is_err() {
        cancels.values().for_each(|cancel| cancel.cancel());
        while runs.join_next().await.is_some() {}
    }
}
