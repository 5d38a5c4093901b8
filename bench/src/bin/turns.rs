//! A node that turns from 5 µs to 5 ms while sixteen other requests are always under way on the same loop: what the others notice.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use rankd_bench::stage::moody::{SLOW, plans};
use rankd_engine::{Engine, Linked, Outcome, Request, Settings, clock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const OTHERS: usize = 16;
const PHASE: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;

/// Requests of one plan, one after the other, for as long as the phase lasts.
struct Caller {
    engine: Arc<Engine>,
    plan: Arc<Linked>,
    over: Arc<AtomicBool>,
    told: Arc<Mutex<Vec<u64>>>,
    done: Sender<()>,
}

impl Caller {
    fn call(self: Arc<Caller>) {
        if self.over.load(Ordering::Relaxed) {
            // Whoever counts the callers waits for this.
            let _ = self.done.send(());
            return;
        }
        let asked = clock::now();
        let (engine, plan) = (self.engine.clone(), self.plan.clone());
        let then = move |outcome: Outcome| {
            outcome.result.expect("the plan runs");
            self.told.lock().expect("nobody panics").push(clock::nanos_between(asked, clock::now()));
            self.call();
        };
        engine.start_run_then(&plan, Request { user_id: 1.into(), ..Request::default() }, then);
    }
}

/// The latencies of the others, and the calls of the moody plan, in one phase.
fn phase(engine: &Arc<Engine>, others: &Arc<Linked>, moody: &Arc<Linked>) -> (Vec<u64>, Vec<u64>) {
    let over = Arc::new(AtomicBool::new(false));
    let (done, ended) = channel();
    let told = [Arc::<Mutex<Vec<u64>>>::default(), Arc::default()];
    let start = |plan: &Arc<Linked>, told: &Arc<Mutex<Vec<u64>>>| {
        let (engine, plan, over) = (engine.clone(), plan.clone(), over.clone());
        Arc::new(Caller { engine, plan, over, told: told.clone(), done: done.clone() }).call();
    };
    (0..OTHERS).for_each(|_| start(others, &told[0]));
    start(moody, &told[1]);
    std::thread::sleep(PHASE);
    over.store(true, Ordering::Relaxed);
    (0..=OTHERS).for_each(|_| ended.recv().expect("every caller ends"));
    let [others, moody] = told.map(|told| std::mem::take(&mut *told.lock().expect("nobody panics")));
    (others, moody)
}

fn micros(mut nanos: Vec<u64>, quantile: f64) -> f64 {
    nanos.sort_unstable();
    nanos[((nanos.len() - 1) as f64 * quantile) as usize] as f64 / 1e3
}

fn main() {
    println!(
        "Microseconds of the sixteen others, p50 / p99, in {ROUNDS} rounds of 2 s each, one loop, two CPU threads; the first slow phase"
    );
    println!("includes the requests in which the node's new cost is found out.\n");
    println!(
        "| round | node takes 5 µs | node takes 5 ms | p99 ÷ p99 | trips of the node to the pool ÷ its requests, slow |"
    );
    println!("|---|---|---|---|---|");
    for round in 1..=ROUNDS {
        let settings = Settings { cpu_threads: 2, ..Settings::default() };
        let engine = Arc::new(Engine::start(settings, Vec::new()).expect("an engine starts"));
        let (others, moody) = plans();
        SLOW.store(false, Ordering::Relaxed);
        phase(&engine, &others, &moody);
        let (fast, _) = phase(&engine, &others, &moody);
        SLOW.store(true, Ordering::Relaxed);
        let before = engine.stats().offloads();
        let (slow, calls) = phase(&engine, &others, &moody);
        let trips = engine.stats().offloads() - before;
        let (fast, slow) =
            ((micros(fast.clone(), 0.5), micros(fast, 0.99)), (micros(slow.clone(), 0.5), micros(slow, 0.99)));
        println!(
            "| {round} | {:.1} / {:.1} | {:.1} / {:.1} | {:.2} | {trips} ÷ {} |",
            fast.0,
            fast.1,
            slow.0,
            slow.1,
            slow.1 / fast.1,
            calls.len()
        );
    }
}
