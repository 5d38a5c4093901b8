//! How the nodes of plans are doing, for the console: from the runs that are traced anyway, for plans that somebody looks at and a quarter of an hour
//! after. Times and counts only: no user, no parameter, no value.
//!
//! Memory is bounded: the slowest nodes of a plan, and all plans together; the plan that was looked at least recently goes first.

use super::{SLOT, SLOTS};
use crate::metrics::BOUNDS;
use rankd_engine::Linked;
use rankd_engine::clock::Instant;
use rankd_engine::trace::{End, NodeTrace, Trace};
use rankd_plan::json::Writer;
use rankd_plan::plan::NodeIx;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many nodes of a plan have figures, and how many bytes all figures take.
const NODES_MAX: usize = 512;
const BYTES_MAX: usize = 8 << 20;
/// How long a plan keeps its figures after somebody looked at it.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// A node takes the place of a faster one; of one run, so many do at most.
const REPLACED_MAX: usize = 16;

/// What became of one node in one slot.
#[derive(Clone, Copy, Debug, Default)]
struct NodeSum {
    slot: u32,
    runs: u32,
    took_us: u64,
    /// Of that, what the answers waited for.
    critical_us: u64,
    most_us: u32,
    failed: u32,
    rows_in: u64,
    rows_out: u64,
}

/// One node.
struct NodeRing {
    node: NodeIx,
    sums: VecDeque<NodeSum>,
    /// Runs by how long they took, since the plan is looked at.
    histogram: [u32; BOUNDS.len() + 1],
    runs: u64,
    took_us: u64,
}

const NODE_BYTES: usize = size_of::<NodeRing>() + SLOTS * size_of::<NodeSum>();
/// Two large plans have room at least.
const _: () = assert!(NODES_MAX * NODE_BYTES < BYTES_MAX / 2);

/// A plan that somebody looks at.
struct ViewedPlan {
    /// The version that the nodes are of. While it is kept, no other one has its address.
    linked: Arc<Linked>,
    looked: Instant,
    runs: u64,
    /// By node: where its figures are.
    places: HashMap<NodeIx, usize>,
    nodes: Vec<NodeRing>,
}

/// All plans that somebody looks at.
pub(crate) struct NodeFigures {
    since: Instant,
    /// How many there are, so that a run of any plan need not ask for the lock to know that there are none.
    watched: AtomicUsize,
    plans: Mutex<Vec<ViewedPlan>>,
}

impl NodeFigures {
    pub(crate) fn new(now: Instant) -> NodeFigures {
        NodeFigures { since: now, watched: AtomicUsize::new(0), plans: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ViewedPlan>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, now: Instant) -> u32 {
        let slots = now.saturating_duration_since(self.since).as_secs() / SLOT.as_secs();
        u32::try_from(slots).unwrap_or(u32::MAX)
    }

    /// Adds a run that was traced.
    pub(crate) fn record(&self, plan: &Linked, trace: &Trace) {
        if self.watched.load(Ordering::Relaxed) > 0 {
            self.record_at(plan, trace, rankd_engine::clock::now());
        }
    }

    fn record_at(&self, plan: &Linked, trace: &Trace, now: Instant) {
        let slot = self.slot(now);
        let mut plans = self.lock();
        if let Some(watched) = plans.iter_mut().find(|watched| std::ptr::eq(&*watched.linked, plan)) {
            watched.add(trace, slot);
        }
    }

    /// Forgets the figures of plans that nobody has looked at for long.
    pub(crate) fn forget_unwatched(&self, now: Instant) {
        let mut plans = self.lock();
        plans.retain(|plan| now.saturating_duration_since(plan.looked) < KEPT);
        self.watched.store(plans.len(), Ordering::Relaxed);
    }

    /// Writes what there is from this slot on for the nodes of a plan, and begins to keep it where nobody did. With a node, also how long its
    /// runs took.
    pub(crate) fn write(&self, linked: &Arc<Linked>, from: u32, node: Option<NodeIx>, now: Instant, w: &mut Writer) {
        let mut plans = self.lock();
        let at = match plans.iter().position(|plan| Arc::ptr_eq(&plan.linked, linked)) {
            Some(at) => at,
            None => {
                // The figures of an earlier version are of other nodes.
                plans.retain(|plan| plan.linked.name != linked.name);
                make_room(&mut plans, cost(linked));
                plans.push(ViewedPlan::new(linked.clone(), now));
                plans.len() - 1
            }
        };
        self.watched.store(plans.len(), Ordering::Relaxed);
        let Some(plan) = plans.get_mut(at) else { return };
        plan.looked = now;
        w.field("slot").int(self.slot(now).into()).field("slot_seconds").int(SLOT.as_secs() as i64);
        w.field("runs").int(plan.runs as i64);
        w.field("nodes").array(|w| plan.nodes.iter().for_each(|ring| ring.write(from, w)));
        let asked = node.and_then(|node| plan.nodes.get(*plan.places.get(&node)?));
        if let Some(ring) = asked {
            w.field("histogram").array(|w| {
                for count in ring.histogram {
                    w.int(count.into());
                }
            });
        }
    }
}

/// What the figures of a plan may come to take.
fn cost(linked: &Linked) -> usize {
    linked.nodes.len().min(NODES_MAX) * NODE_BYTES
}

/// Forgets plans, the one that was looked at least recently first, until so many bytes have room.
fn make_room(plans: &mut Vec<ViewedPlan>, bytes: usize) {
    while plans.iter().map(|plan| cost(&plan.linked)).sum::<usize>() + bytes > BYTES_MAX {
        let oldest = plans.iter().enumerate().min_by_key(|(_, plan)| plan.looked).map(|(at, _)| at);
        let Some(oldest) = oldest else { return };
        plans.swap_remove(oldest);
    }
}

impl ViewedPlan {
    fn new(linked: Arc<Linked>, now: Instant) -> ViewedPlan {
        ViewedPlan { linked, looked: now, runs: 0, places: HashMap::new(), nodes: Vec::new() }
    }

    fn add(&mut self, trace: &Trace, slot: u32) {
        self.runs += 1;
        let mut replaced = 0;
        for record in &trace.nodes {
            let at = match self.places.get(&record.node) {
                Some(at) => *at,
                None if self.nodes.len() < NODES_MAX => {
                    self.nodes.push(NodeRing::new(record.node));
                    self.nodes.len() - 1
                }
                None if replaced < REPLACED_MAX => {
                    let fastest = self.nodes.iter().enumerate().min_by_key(|(_, ring)| ring.mean_us());
                    let Some((at, ring)) = fastest else { continue };
                    if ring.mean_us() >= took_us(record) {
                        continue;
                    }
                    replaced += 1;
                    self.places.remove(&ring.node);
                    self.nodes[at] = NodeRing::new(record.node);
                    at
                }
                None => continue,
            };
            self.places.insert(record.node, at);
            self.nodes[at].add(record, slot);
        }
    }
}

fn took_us(record: &NodeTrace) -> u64 {
    record.end_ns.saturating_sub(record.start_ns) / 1000
}

impl NodeRing {
    fn new(node: NodeIx) -> NodeRing {
        NodeRing { node, sums: VecDeque::new(), histogram: Default::default(), runs: 0, took_us: 0 }
    }

    fn mean_us(&self) -> u64 {
        self.took_us / self.runs.max(1)
    }

    fn add(&mut self, record: &NodeTrace, slot: u32) {
        let took = took_us(record);
        self.runs += 1;
        self.took_us += took;
        let bucket = BOUNDS.partition_point(|bound| *bound * 1e6 < took as f64);
        self.histogram[bucket] = self.histogram[bucket].saturating_add(1);
        if self.sums.back().is_none_or(|last| last.slot != slot) {
            if self.sums.len() == SLOTS {
                self.sums.pop_front();
            }
            self.sums.push_back(NodeSum { slot, ..NodeSum::default() });
        }
        let Some(sum) = self.sums.back_mut() else { return };
        sum.runs += 1;
        sum.took_us += took;
        sum.critical_us += if record.critical { took } else { 0 };
        sum.most_us = sum.most_us.max(u32::try_from(took).unwrap_or(u32::MAX));
        sum.failed += match record.end {
            End::Failed | End::Abandoned => 1,
            End::Done | End::Skipped => 0,
        };
        sum.rows_in += record.rows_in;
        sum.rows_out += record.rows_out;
    }

    /// Writes its node and its sums from this slot on, if it has any.
    fn write(&self, from: u32, w: &mut Writer) {
        let news = || self.sums.iter().filter(|sum| sum.slot >= from);
        if news().next().is_none() {
            return;
        }
        w.array(|w| {
            w.int(self.node.into());
            for sum in news() {
                w.array(|w| {
                    w.int(sum.slot.into()).int(sum.runs.into()).int(sum.took_us as i64).int(sum.critical_us as i64);
                    w.int(sum.most_us.into()).int(sum.failed.into()).int(sum.rows_in as i64).int(sum.rows_out as i64);
                });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{plan, tasks};
    use rankd_engine::clock;
    use rankd_engine::task::RowCounts;
    use rankd_engine::trace::Where;

    fn record(node: NodeIx, took_us: u64) -> NodeTrace {
        NodeTrace {
            node,
            ready_ns: 0,
            start_ns: 1000,
            end_ns: 1000 + took_us * 1000,
            on: Where::Loop,
            inlined: None,
            chained_after: None,
            fused_into: None,
            fused_after: None,
            end: End::Done,
            rows_in: 5,
            rows_out: 3,
            commands: 0,
            bytes: 0,
            skipped: 0,
            counts: RowCounts::default(),
            detail: None,
            keys_in: Arc::new([]),
            keys_out: Arc::new([]),
            critical: node == 0,
        }
    }

    fn trace(nodes: impl IntoIterator<Item = (NodeIx, u64)>) -> Trace {
        let nodes = nodes.into_iter().map(|(node, took_us)| record(node, took_us)).collect();
        Trace { nodes, ..Trace::default() }
    }

    fn told(figures: &NodeFigures, linked: &Arc<Linked>, from: u32, now: Instant) -> String {
        let mut writer = Writer::new();
        writer.object(|w| figures.write(linked, from, Some(0), now, w));
        writer.finish()
    }

    #[test]
    fn figures_are_kept_from_the_first_look_on_until_long_after_the_last() {
        let now = clock::now();
        let figures = NodeFigures::new(now);
        let linked = Arc::new(plan(&tasks()).2);
        figures.record(&linked, &trace([(0, 700)]));
        assert!(told(&figures, &linked, 0, now).contains(r#""runs":0,"nodes":[]"#));
        figures.record_at(&linked, &trace([(0, 700), (1, 20)]), now);
        figures.record_at(&linked, &trace([(0, 300)]), now);
        let later = now + SLOT;
        figures.record_at(&linked, &trace([(1, 20)]), later);
        let all = told(&figures, &linked, 0, later);
        assert!(all.contains("[0,[0,2,1000,1000,700,0,10,6]],[1,[0,1,20,0,20,0,5,3],[1,1,20,0,20,0,5,3]]"), "{all}");
        assert!(all.contains(r#""histogram":[0,0,1,1,0"#), "{all}");
        let news = told(&figures, &linked, 1, later);
        assert!(news.contains(r#""nodes":[[1,[1,"#) && !news.contains("[0,[0,"), "{news}");
        figures.forget_unwatched(later + KEPT / 2);
        assert_eq!(figures.lock().len(), 1);
        figures.forget_unwatched(later + KEPT);
        assert_eq!((figures.lock().len(), figures.watched.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn memory_is_bounded_and_the_slowest_nodes_stay() {
        let mut watched = ViewedPlan::new(Arc::new(plan(&tasks()).2), clock::now());
        watched.add(&trace((0..2000).map(|node| (node, u64::from(node)))), 0);
        assert_eq!(watched.nodes.len(), NODES_MAX);
        (0..200).for_each(|_| watched.add(&trace((0..2000).map(|node| (node, u64::from(node)))), 0));
        assert!(watched.nodes.iter().all(|ring| ring.node >= 2000 - NODES_MAX as u32));
        for slot in 0..1000 {
            watched.add(&trace([(1999, 10)]), slot);
        }
        assert!(watched.nodes.iter().all(|ring| ring.sums.len() <= SLOTS));
        let now = clock::now();
        let (mut plans, linked) = (Vec::new(), Arc::new(plan(&tasks()).2));
        for at in 0..3 {
            plans.push(ViewedPlan::new(linked.clone(), now + Duration::from_secs(at)));
        }
        make_room(&mut plans, BYTES_MAX - 2 * cost(&linked));
        assert_eq!(plans.len(), 2);
        assert!(plans.iter().all(|plan| plan.looked > now));
    }
}
