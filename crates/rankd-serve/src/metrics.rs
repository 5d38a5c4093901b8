//! What the server counts. Each loop writes counters of its own, so that loops do not slow each other down; the
//! metrics page adds them up. Labels come from lists that the process knows: plans of the folder, their nodes with a fallback, ops,
//! endpoints, kinds.

use crate::connection_state::CloseReason;
use crate::limiter::Refusal;
use crate::request_outcome::RequestOutcome;
use rankd_engine::Linked;
use rankd_engine::trace::ROW_COUNTS;
use rankd_engine::trace::{Trace, Where};
use rankd_plan::Signatures;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread at a time writes and any thread may read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        // One writer at a time, so this needs no locked instruction.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of the buckets of times, in seconds.
pub(crate) const BOUNDS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// How long things took.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// The last one is for what is longer than all bounds.
    pub(crate) buckets: [Count; BOUNDS.len() + 1],
    pub(crate) sum_ns: Count,
}

impl Times {
    pub(crate) fn add(&self, nanos: u64) {
        let seconds = nanos as f64 / 1e9;
        let at = BOUNDS.partition_point(|bound| *bound < seconds);
        self.buckets[at].add(1);
        self.sum_ns.add(nanos);
    }
}

/// One plan on one loop.
#[derive(Debug, Default)]
pub(crate) struct PlanCounts {
    outcomes: [Count; RequestOutcome::COUNT],
    pub(crate) took: Times,
    pub(crate) rows: Count,
    /// Questions about items, which are counted nowhere else.
    asked: [Count; RequestOutcome::COUNT],
}

impl PlanCounts {
    pub(crate) fn count(&self, outcome: RequestOutcome, took_ns: u64) {
        self.outcomes[outcome.position()].add(1);
        self.took.add(took_ns);
    }

    pub(crate) fn outcome(&self, outcome: RequestOutcome) -> u64 {
        self.outcomes[outcome.position()].get()
    }

    pub(crate) fn count_asked(&self, outcome: RequestOutcome) {
        self.asked[outcome.position()].add(1);
    }

    pub(crate) fn asked(&self, outcome: RequestOutcome) -> u64 {
        self.asked[outcome.position()].get()
    }
}

/// One plan, by loop. Outlives the plan's versions.
#[derive(Debug)]
pub(crate) struct PlanMetrics {
    pub(crate) loops: Box<[PlanCounts]>,
}

impl PlanMetrics {
    pub(crate) fn new(loops: usize) -> PlanMetrics {
        PlanMetrics { loops: (0..loops).map(|_| PlanCounts::default()).collect() }
    }
}

/// Where a node ran, as the metrics name it.
pub(crate) const PLACES: [&str; 2] = ["loop", "pool"];

/// One op on one loop, from the runs that were traced.
#[derive(Debug, Default)]
pub(crate) struct OpCounts {
    pub(crate) run: Times,
    pub(crate) queue: Times,
    pub(crate) rows_in: Count,
    pub(crate) rows_out: Count,
    pub(crate) row_counts: [Count; ROW_COUNTS.len()],
    pub(crate) places: [Count; PLACES.len()],
}

/// One loop.
#[derive(Debug, Default)]
pub(crate) struct LoopMetrics {
    pub(crate) accepted: Count,
    pub(crate) refused: Count,
    pub(crate) accept_failures: Count,
    closed: [Count; CloseReason::ALL.len()],
    /// By route, and then by the status's first digit. The last one is for paths that are no route.
    responses: Box<[[Count; 5]]>,
    pub(crate) rejected: [Count; Refusal::ALL.len()],
    pub(crate) memory_rejected: Count,
    /// Their connection has not taken the answers that it has already.
    pub(crate) unread_rejected: Count,
    /// Their connection has one of the places that are kept for health.
    pub(crate) no_connection_rejected: Count,
    /// Bytes of answers that clients have not taken.
    pub(crate) unread: Count,
    pub(crate) queued: Times,
    pub(crate) running: Count,
    pub(crate) queue_len: Count,
    pub(crate) limit: Count,
    /// In eighths.
    pub(crate) pressure: Count,
    /// Requests for which there is no plan to count them under.
    pub(crate) no_plan: PlanCounts,
    pub(crate) panics: Count,
    seen: Count,
    seen_for_spans: Count,
    pub(crate) traced: Count,
    /// By position in the list of tasks.
    pub(crate) ops: Vec<OpCounts>,
    /// The tasks that `ops` counts, in the same order.
    pub(crate) tasks: Signatures,
}

impl LoopMetrics {
    pub(crate) fn count_close(&self, close_reason: CloseReason) {
        self.closed[CloseReason::ALL.iter().position(|known| *known == close_reason).unwrap_or(0)].add(1);
    }

    pub(crate) fn closed(&self, at: usize) -> u64 {
        self.closed[at].get()
    }

    /// Counts an answer.
    pub(crate) fn count_response(&self, route: Option<usize>, status: u16) {
        let digit = usize::from(status / 100).clamp(1, 5) - 1;
        self.responses[route.unwrap_or(self.responses.len() - 1)][digit].add(1);
    }

    pub(crate) fn response(&self, route: usize, digit: usize) -> u64 {
        self.responses[route][digit].get()
    }

    /// Whether the next run should be traced, if one in `every` is.
    pub(crate) fn should_trace_next(&self, every: u64) -> bool {
        self.seen.add(1);
        every > 0 && self.seen.get().is_multiple_of(every)
    }

    /// Whether the spans of the next request should be sent, if those of one in `every` are.
    pub(crate) fn should_sample_next(&self, every: u64) -> bool {
        self.seen_for_spans.add(1);
        every > 0 && self.seen_for_spans.get().is_multiple_of(every)
    }

    pub(crate) fn count_trace(&self, plan: &Linked, trace: &Trace) {
        self.traced.add(1);
        for node in &trace.nodes {
            let op = plan.node(node.node).op;
            let at = self.tasks.position(op);
            let Some(counts) = at.and_then(|at| self.ops.get(at)) else { continue };
            counts.run.add(node.end_ns.saturating_sub(node.start_ns));
            if let Some(queue_ns) = node.queue_ns() {
                counts.queue.add(queue_ns);
            }
            counts.rows_in.add(node.rows_in);
            counts.rows_out.add(node.rows_out);
            counts.row_counts.iter().zip(node.row_counts()).for_each(|(count, rows)| count.add(rows));
            counts.places[usize::from(!matches!(node.on, Where::Loop))].add(1);
        }
    }
}

/// Everything, by loop.
#[derive(Debug)]
pub(crate) struct Metrics {
    loops: Vec<Arc<LoopMetrics>>,
    /// The paths of the pages, in the order in which their answers are counted.
    pub(crate) routes: Vec<&'static str>,
    pub(crate) reloads_ok: Count,
    pub(crate) reloads_failed: Count,
    pub(crate) experiments_ok: Count,
    pub(crate) experiments_failed: Count,
}

impl Metrics {
    pub(crate) fn new(loops: usize, tasks: &Signatures, routes: Vec<&'static str>) -> Metrics {
        let one = |_| {
            Arc::new(LoopMetrics {
                ops: tasks.iter().map(|_| OpCounts::default()).collect(),
                tasks: tasks.clone(),
                responses: (0..=routes.len()).map(|_| Default::default()).collect(),
                ..LoopMetrics::default()
            })
        };
        let loops = (0..loops).map(one).collect();
        Metrics {
            loops,
            routes,
            reloads_ok: Count::default(),
            reloads_failed: Count::default(),
            experiments_ok: Count::default(),
            experiments_failed: Count::default(),
        }
    }

    /// The counters of one loop; those of the first where there is no such loop, which does not happen.
    pub(crate) fn of_loop(&self, number: usize) -> Arc<LoopMetrics> {
        self.loops[number.min(self.loops.len() - 1)].clone()
    }

    pub(crate) fn loops(&self) -> &[Arc<LoopMetrics>] {
        &self.loops
    }
}
