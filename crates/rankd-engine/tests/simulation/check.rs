//! The invariants of the scheduler, read from what a scene left behind: traces, outcomes, counters, the pool's log and what
//! the tasks saw of themselves.
//!
//! Moments are nanoseconds from the start of the run. Timers go off on whole ms, so a limit between two ticks holds until the
//! next one.

use crate::play::Played;
use crate::pool::JobLog;
use crate::quiet::SCRIPTED;
use crate::scene::{Hint, Interruption, NodeScript, RunScript, Scene, WORKERS_UNBOUNDED};
use crate::tasks::{Fate, REPLY_BYTES, Seen, What};
use rankd_column::RowSet;
use rankd_engine::clock::{Instant, nanos_between};
use rankd_engine::link::Linked;
use rankd_engine::trace::{End, Inlined, NodeTrace, Trace, Where};
use rankd_engine::{ErrorKind, Outcome, RunError};
use std::time::Duration;

const MS: u64 = 1_000_000;

macro_rules! ensure {
    ($holds:expr, $($message:tt)*) => {
        if !$holds {
            return Err(format!($($message)*));
        }
    };
}

/// All cells of all outputs.
pub(crate) fn cells(outputs: &[RowSet]) -> String {
    let mut text = String::new();
    for rows in outputs {
        text += &format!("{:?}", rows.ids().collect::<Vec<i64>>());
        for (key, _) in rows.batch().columns() {
            let values: Vec<_> = (0..rows.len()).map(|at| rows.value(*key, at)).collect();
            text += &format!("{key:?}{values:?}");
        }
    }
    text
}

/// Checks every run of a scene and what was counted for all of them. `expected` are each plan's rows when all goes well.
pub(crate) fn scene(scene: &Scene, played: &Played, expected: &[String]) -> Result<(), String> {
    ensure!(played.troubles.is_empty(), "{}", played.troubles.join(", "));
    let (mut late_min, mut late_max, mut wasted, mut dropped, mut chained) = (0, 0, 0, false, 0);
    for (number, script) in scene.runs.iter().enumerate() {
        let began = played.epoch + Duration::from_millis(script.begins_ms);
        let jobs: Vec<JobLog> = played.jobs.iter().copied().filter(|job| job.run == number).collect();
        let seen: Vec<Seen> = played.seen.iter().copied().filter(|seen| seen.run == number as i64).collect();
        let Some(outcome) = &played.outcomes[number] else {
            let Some(Interruption::Drop(ms)) = script.interruption else {
                return Err(format!("run {number} has no outcome"));
            };
            // A job that ends in the very moment of the drop may be on either side of it.
            dropped = true;
            let at = began + Duration::from_millis(ms);
            late_min += jobs.iter().filter(|job| job.end > at).count();
            late_max += jobs.iter().filter(|job| job.end >= at).count();
            ensure!(seen.iter().all(|seen| seen.at <= at), "run {number} went on after its future was dropped");
            continue;
        };
        let plan = scene.plan(number);
        let trace = outcome.trace.as_ref().ok_or("no trace")?;
        let expected = &expected[script.plan];
        let (nodes, linked) = (&*plan.nodes, &*plan.linked);
        let run = &Run { scene, script, began, nodes, linked, outcome, trace, jobs, seen, expected };
        run.check().map_err(|why| format!("run {number}: {why}\n{script:?}\n{:?}\n{trace:#?}", outcome.result))?;
        // Those of a job that came back.
        let went_on = trace.nodes.iter().filter(|record| record.chained_after.is_some());
        chained += went_on.filter(|record| run.last_of_job(record).end != End::Abandoned).count();
        let abandoned = |job: &&(&NodeTrace, &JobLog)| run.last_of_job(job.0).end == End::Abandoned;
        let pooled: Vec<(&NodeTrace, &JobLog)> = run.sent().zip(&run.jobs).collect();
        late_min += pooled.iter().filter(abandoned).count();
        late_max += pooled.iter().filter(abandoned).count();
        wasted += pooled.iter().filter(abandoned).map(|(_, job)| nanos_between(job.start, job.end)).sum::<u64>();
    }
    let stats = &played.stats;
    let late = stats.late_completions() as usize;
    ensure!((late_min..=late_max).contains(&late), "{late} late, where {late_min} to {late_max} jobs were abandoned");
    ensure!(dropped || stats.wasted_ns() == wasted, "{} ns wasted, not {wasted}", stats.wasted_ns());
    ensure!(stats.offloads() as usize == played.jobs.len(), "{} offloads of {}", stats.offloads(), played.jobs.len());
    ensure!(dropped || stats.chained() as usize == chained, "{} chained of {chained}", stats.chained());
    let inlined = traced(played, |record| record.inlined.is_some());
    ensure!(dropped || stats.inlined() as usize == inlined, "{} inlined of {inlined}", stats.inlined());
    let panics = played.seen.iter().filter(|seen| matches!(seen.what, What::Panicked | What::Broke)).count();
    ensure!(stats.panics() as usize == panics, "{} panics of {panics} counted", stats.panics());
    Ok(())
}

fn traced(played: &Played, is: impl Fn(&&NodeTrace) -> bool) -> usize {
    let traces = played.outcomes.iter().flatten().filter_map(|outcome| outcome.trace.as_ref());
    traces.flat_map(|trace| &trace.nodes).filter(is).count()
}

/// Whether a run went the same way alone as beside others. Only where nobody waits for another's job.
pub(crate) fn alone(scene: &Scene, together: &Played, alone: &Played, number: usize) -> Result<(), String> {
    assert_eq!(scene.workers, WORKERS_UNBOUNDED);
    let tell = |played: &Played| {
        played.outcomes[number].as_ref().map(|outcome| {
            let rows = outcome.result.as_ref().map(|rows| cells(rows));
            let nodes = outcome.trace.iter().flat_map(|trace| &trace.nodes);
            let nodes: Vec<_> = nodes.map(|n| (n.node, n.ready_ns, n.start_ns, n.end_ns, n.end, n.critical)).collect();
            format!("{rows:?} after {:?}: {nodes:?}", outcome.took)
        })
    };
    // What ends in the very moment in which its time is up may be on either side of it.
    let end = |played: &Played| {
        let outcome = played.outcomes[number].as_ref()?;
        let timeout = outcome.result.as_ref().is_err_and(|error| error.code.kind == ErrorKind::Timeout);
        Some((outcome.took, timeout))
    };
    if let (Some((at, true)), Some((then, false))) | (Some((at, false)), Some((then, true))) =
        (end(together), end(alone))
        && at == then
    {
        return Ok(());
    }
    let (beside, solo) = (tell(together), tell(alone));
    ensure!(beside == solo, "run {number} went another way beside others:\n{beside:#?}\nthan alone:\n{solo:#?}");
    Ok(())
}

struct Run<'a> {
    scene: &'a Scene,
    script: &'a RunScript,
    began: Instant,
    nodes: &'a [NodeScript],
    linked: &'a Linked,
    outcome: &'a Outcome,
    trace: &'a Trace,
    jobs: Vec<JobLog>,
    seen: Vec<Seen>,
    expected: &'a str,
}

/// A limit of a node in flight: when it passes, and whether it is the request's.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Limit {
    at: u64,
    request: bool,
}

fn tick(at: u64) -> u64 {
    at.div_ceil(MS) * MS
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

impl Run<'_> {
    fn check(&self) -> Result<(), String> {
        ensure!(nanos(self.outcome.took) == self.total(), "took {:?}", self.outcome.took);
        self.starts()?;
        self.places()?;
        self.ends()?;
        self.nothing_is_forgotten()?;
        self.limits()?;
        self.verdict()?;
        self.settled()?;
        self.witness()?;
        self.critical()
    }

    fn moment(&self, at: Instant) -> u64 {
        nanos_between(self.began, at)
    }

    fn total(&self) -> u64 {
        self.trace.total_ns
    }

    fn record(&self, node: usize) -> Option<&NodeTrace> {
        self.trace.nodes.iter().find(|record| record.node as usize == node)
    }

    /// The records of nodes that went to the pool by themselves, each with a job of its own.
    fn sent(&self) -> impl Iterator<Item = &NodeTrace> {
        self.trace.nodes.iter().filter(|record| matches!(record.on, Where::Pool(_)) && record.chained_after.is_none())
    }

    /// The job that a node was computed in.
    fn job(&self, record: &NodeTrace) -> Option<&JobLog> {
        let mut head = record;
        while let Some(after) = head.chained_after {
            head = self.record(after as usize)?;
        }
        self.sent().position(|sent| sent.node == head.node).and_then(|at| self.jobs.get(at))
    }

    /// The last node that was begun in the job of this one.
    fn last_of_job<'a>(&'a self, mut record: &'a NodeTrace) -> &'a NodeTrace {
        while let Some(next) = self.trace.nodes.iter().find(|next| next.chained_after == Some(record.node)) {
            record = next;
        }
        record
    }

    /// The only reader of a node that nobody else reads, if it reads nothing else and computes.
    fn next(&self, node: usize) -> Option<usize> {
        let step = self.linked.written.step(node as u32);
        let next = step.next.map(|next| next as usize)?;
        assert!(self.nodes[next].inputs.iter().all(|input| *input == node) && !self.nodes[next].reads);
        Some(next)
    }

    /// When the last input of a node was there; nothing while one is not.
    fn inputs_there(&self, node: usize) -> Option<u64> {
        let ends = self.nodes[node]
            .inputs
            .iter()
            .map(|input| self.record(*input).filter(|record| record.end == End::Done).map(|record| record.end_ns));
        ends.collect::<Option<Vec<u64>>>().map(|ends| ends.into_iter().max().unwrap_or(0))
    }

    /// A node starts once, after all its inputs, and not after the verdict; only nodes that are needed start.
    fn starts(&self) -> Result<(), String> {
        let mut started = vec![false; self.nodes.len()];
        for record in &self.trace.nodes {
            let node = record.node as usize;
            ensure!(!std::mem::replace(&mut started[node], true), "n{node} started twice");
            ensure!(self.linked.nodes[node].needed, "n{node} is needed by no output and started");
            let there = self.inputs_there(node);
            ensure!(
                there == Some(record.ready_ns),
                "n{node} was ready at {}, its inputs at {there:?}",
                record.ready_ns
            );
            ensure!(record.start_ns >= record.ready_ns, "n{node} started before it was ready");
            ensure!(record.start_ns <= self.total(), "n{node} started after the verdict");
            let rows =
                self.nodes[node].inputs.iter().filter_map(|input| self.record(*input)).map(|input| input.rows_out);
            ensure!(record.rows_in == rows.sum::<u64>(), "n{node} was given other rows than its inputs gave");
        }
        Ok(())
    }

    /// Reads are on the loop; computations are there, too, when they are cheap, or else in jobs, in the order of the trace. Only
    /// what was sent to the pool by itself has queued.
    fn places(&self) -> Result<(), String> {
        for record in &self.trace.nodes {
            let (node, script) = (record.node, &self.nodes[record.node as usize]);
            let (pooled, inlined) = (matches!(record.on, Where::Pool(_)), record.inlined.is_some());
            match (script.reads, pooled, inlined, record.chained_after) {
                (true, false, false, None) => {}
                (false, false, true, None) => self.inlined(record)?,
                (false, true, false, None) => self.not_inlined(record)?,
                (false, true, false, Some(after)) => self.chained(record, after as usize)?,
                other => return Err(format!("n{node} was on {:?}: {other:?}", record.on)),
            }
            let queued = (pooled && record.chained_after.is_none()).then(|| record.start_ns - record.ready_ns);
            ensure!(record.queue_ns() == queued, "n{node} has a queue delay of {:?}", record.queue_ns());
        }
        ensure!(self.sent().count() == self.jobs.len(), "{} jobs for other nodes", self.jobs.len());
        for (record, job) in self.sent().zip(&self.jobs).filter(|(record, _)| record.end != End::Abandoned) {
            let logged = (self.moment(job.start), self.moment(job.end), Where::Pool(job.worker));
            let traced = (record.start_ns, record.end_ns, record.on);
            ensure!(logged == traced, "n{} was {logged:?} to the pool and {traced:?} to the run", record.node);
        }
        Ok(())
    }

    /// How deep a node is or would be on the loop, by the trace.
    fn depth(&self, record: &NodeTrace) -> Result<u32, String> {
        let Some(Inlined { parent, depth }) = record.inlined else { return Ok(0) };
        let expected = match parent.map(|parent| parent as usize) {
            None => {
                ensure!(self.nodes[record.node as usize].inputs.is_empty(), "n{} has no parent", record.node);
                1
            }
            Some(parent) => {
                let input = self.nodes[record.node as usize].inputs.contains(&parent);
                let parent = self.record(parent).filter(|parent| input && parent.end_ns == record.ready_ns);
                let parent = parent.ok_or_else(|| format!("n{} was not made ready by its parent", record.node))?;
                1 + parent.inlined.map_or(0, |inlined| inlined.depth)
            }
        };
        ensure!(depth == expected, "n{} is {depth} deep, not {expected}", record.node);
        Ok(depth)
    }

    fn inlined(&self, record: &NodeTrace) -> Result<(), String> {
        let (node, policy) = (record.node, &self.scene.policy);
        let depth = self.depth(record)?;
        ensure!(policy.inline && depth <= policy.max_inline_depth, "n{node} ran on the loop, {depth} deep");
        let hint = self.nodes[node as usize].hint;
        ensure!(hint != Hint::NotOnTheLoop, "n{node} ran on the loop and must not");
        // In the first run nothing is known but what the author says.
        ensure!(self.scene.runs.len() > 1 || hint == Hint::Cheap, "n{node} ran on the loop and is not known as cheap");
        let at_once = record.start_ns == record.ready_ns;
        ensure!(at_once, "n{node} ran on the loop, but not when it was ready");
        Ok(())
    }

    fn not_inlined(&self, record: &NodeTrace) -> Result<(), String> {
        let (node, policy) = (record.node, &self.scene.policy);
        let script = &self.nodes[node as usize];
        let parents = script.inputs.iter().filter_map(|input| self.record(*input));
        let ready = parents.filter(|parent| parent.end_ns == record.ready_ns);
        let depth = 1 + ready.map(|parent| parent.inlined.map_or(0, |inlined| inlined.depth)).max().unwrap_or(0);
        let should = policy.inline && script.hint == Hint::Cheap && depth <= policy.max_inline_depth;
        ensure!(self.scene.runs.len() > 1 || !should, "n{node} is cheap and was sent to the pool");
        Ok(())
    }

    fn chained(&self, record: &NodeTrace, after: usize) -> Result<(), String> {
        let node = record.node as usize;
        ensure!(
            self.scene.policy.chaining && self.next(after) == Some(node),
            "n{node} cannot be chained after n{after}"
        );
        let before = self.record(after).ok_or_else(|| format!("n{after} has no record"))?;
        ensure!(before.end == End::Done && before.on == record.on, "n{node} went on where n{after} did not end");
        ensure!(record.start_ns == before.end_ns, "n{node} did not start when n{after} ended");
        Ok(())
    }

    /// Every started node ends once, when and how its script says, or is abandoned by a verdict that came first.
    fn ends(&self) -> Result<(), String> {
        for record in &self.trace.nodes {
            let (node, script) = (record.node, &self.nodes[record.node as usize]);
            let end = match record.on {
                Where::Pool(_) => self.moment(self.job(record).ok_or("a job is missing")?.end),
                _ if record.inlined.is_some() => record.start_ns,
                _ if script.fate == Fate::PanicsAtOnce => record.start_ns,
                _ => record.start_ns + script.latency_ms * MS,
            };
            let well = script.fate.ends_well();
            match record.end {
                End::Done => ensure!(well && record.end_ns == end, "n{node} was done, not {:?} at {end}", script.fate),
                End::Failed => ensure!(!well && record.end_ns == end, "n{node} failed, not {:?} at {end}", script.fate),
                End::Abandoned => {
                    ensure!(record.end_ns == self.total(), "n{node} was abandoned at {}", record.end_ns);
                    ensure!(end >= self.total(), "n{node} was there at {end} and was not taken");
                }
                End::Skipped => return Err(format!("n{node} was skipped")),
            }
            let read = if script.reads && record.end == End::Done {
                (1, REPLY_BYTES)
            } else {
                (record.commands, record.bytes)
            };
            ensure!(read == (record.commands, record.bytes), "n{node} read {} commands", record.commands);
        }
        let failed = self.trace.nodes.iter().filter(|record| record.end == End::Failed).count();
        ensure!(failed <= 1, "{failed} nodes failed, and the first should have been the last");
        Ok(())
    }

    /// A node whose inputs were there before the verdict was started.
    fn nothing_is_forgotten(&self) -> Result<(), String> {
        let went_on = |record: &NodeTrace| match self.next(record.node as usize) {
            Some(next) if self.scene.policy.chaining && matches!(record.on, Where::Pool(_)) => {
                self.record(next).is_some_and(|next| next.chained_after == Some(record.node))
            }
            _ => true,
        };
        for record in self.trace.nodes.iter().filter(|record| record.end == End::Done) {
            ensure!(went_on(record), "the job of n{} stopped short", record.node);
        }
        for node in (0..self.nodes.len()).filter(|node| self.linked.nodes[*node].needed) {
            let forgotten = self.record(node).is_none() && self.inputs_there(node).is_some_and(|at| at < self.total());
            ensure!(!forgotten, "n{node} was ready and did not start");
        }
        Ok(())
    }

    fn limit(&self, record: &NodeTrace) -> Option<Limit> {
        let own = self.nodes[record.node as usize].timeout_ms.map(|ms| ms * MS);
        let timeout = self.script.node_timeout.map(nanos).into_iter().chain(own).min();
        let node = timeout.map(|timeout| Limit { at: record.ready_ns + timeout, request: false });
        let request = self.script.deadline.map(|deadline| Limit { at: nanos(deadline), request: true });
        match (request, node) {
            (Some(request), Some(node)) if node.at < request.at => Some(node),
            (request, node) => request.or(node),
        }
    }

    /// No answer leaves after a limit, no result is taken after one, and no cancel is passed over.
    fn limits(&self) -> Result<(), String> {
        if let Some(deadline) = self.script.deadline {
            ensure!(self.total() <= tick(nanos(deadline)), "the answer left after the deadline");
        }
        if let Some(Interruption::Cancel(ms) | Interruption::Drop(ms)) = self.script.interruption {
            ensure!(self.total() <= ms * MS, "the answer left after the run was cancelled");
        }
        for record in &self.trace.nodes {
            let late = self.limit(record).is_some_and(|limit| record.end_ns > tick(limit.at));
            ensure!(!late, "n{} was waited for after its time was up", record.node);
        }
        Ok(())
    }

    fn verdict(&self) -> Result<(), String> {
        let error = match &self.outcome.result {
            Ok(rows) => {
                let all = |node: &usize| self.linked.nodes[*node].needed;
                let done = |node: usize| self.record(node).is_some_and(|record| record.end == End::Done);
                ensure!((0..self.nodes.len()).filter(all).all(done), "an answer without all nodes done");
                let last = self.trace.nodes.iter().map(|record| record.end_ns).max();
                ensure!(last == Some(self.total()), "the answer waited after the last node");
                let rows = cells(rows);
                ensure!(rows == self.expected, "other rows than in sequence:\n{rows}\n{}", self.expected);
                return Ok(());
            }
            Err(error) => error,
        };
        match error.code.kind {
            ErrorKind::Timeout if error.code.id == "E303" => self.too_late_to_start(error),
            ErrorKind::Timeout => self.timeout(error),
            ErrorKind::Cancelled => {
                let asked = self.script.interruption == Some(Interruption::Cancel(self.total() / MS));
                ensure!(asked && error.node.is_none(), "cancelled without being asked to");
                Ok(())
            }
            ErrorKind::Task | ErrorKind::Upstream | ErrorKind::Bug => self.failure(error),
            kind => Err(format!("an error of kind {kind:?}")),
        }
    }

    /// A node's failure was settled exactly once, be it an error, a panic, a limit that passed or a start that came too late, and it
    /// is the one that the run ended with. Nothing else was settled as a failure.
    fn settled(&self) -> Result<(), String> {
        let blamed = match &self.outcome.result {
            Err(error) if error.node.is_some() => vec![self.named(error)? as u32],
            _ => Vec::new(),
        };
        let settled = &self.trace.failures;
        ensure!(*settled == blamed, "failures of {settled:?} were settled, where {blamed:?} ended the run");
        Ok(())
    }

    fn named(&self, error: &RunError) -> Result<usize, String> {
        let named = error.node.as_ref().and_then(|node| node.id.strip_prefix('n')?.parse().ok());
        named.ok_or_else(|| format!("{error} names no node"))
    }

    /// The limit that passed first is the one that is told, with the node that was first to have it.
    fn timeout(&self, error: &RunError) -> Result<(), String> {
        let open = self.trace.nodes.iter().filter(|record| record.end == End::Abandoned);
        let limits = open.filter_map(|record| Some((record.node as usize, self.limit(record)?)));
        let Some((node, limit)) = limits.min_by_key(|(_, limit)| limit.at) else {
            return Err("a timeout without a limit".into());
        };
        ensure!(tick(limit.at) == self.total(), "the limit of n{node} was at {}", limit.at);
        ensure!(self.named(error)? == node, "the limit of n{node} passed first, not {error}");
        ensure!(error.code.id == if limit.request { "E301" } else { "E302" }, "another limit than {error}");
        Ok(())
    }

    fn too_late_to_start(&self, error: &RunError) -> Result<(), String> {
        let node = self.named(error)?;
        ensure!(self.record(node).is_none(), "{error}, but it did start");
        ensure!(self.inputs_there(node) == Some(self.total()), "{error}, but it was not ready just now");
        let passed = self.script.deadline.is_some_and(|deadline| nanos(deadline) <= self.total());
        ensure!(passed, "{error}, but there was time");
        Ok(())
    }

    /// The error is that of the one node that failed, and nothing else came of its failure.
    fn failure(&self, error: &RunError) -> Result<(), String> {
        let node = self.named(error)?;
        let failed = self.record(node).is_some_and(|record| record.end == End::Failed && record.end_ns == self.total());
        ensure!(failed, "{error}, but that was not what failed now");
        let (kind, code) = match self.nodes[node].fate {
            Fate::Panics | Fate::PanicsAtOnce => (ErrorKind::Bug, "E901"),
            Fate::Upstream if self.nodes[node].reads => (ErrorKind::Upstream, "E401"),
            Fate::WrongType if self.nodes[node].reads => (ErrorKind::Upstream, "E402"),
            Fate::Fails | Fate::Upstream | Fate::WrongType | Fate::Well | Fate::Brittle => (ErrorKind::Task, "E504"),
        };
        ensure!((error.code.kind, error.code.id) == (kind, code), "{error} is not of kind {kind:?}");
        let scripted = error.message == format!("the task panicked: {SCRIPTED} node {node}");
        ensure!(kind != ErrorKind::Bug || scripted, "a bug of the engine: {error}");
        // Of the failures of one moment, the first among the reads or the first among the jobs.
        let alike = |seen: &&Seen| self.nodes[seen.node].reads == self.nodes[node].reads;
        let first = self.seen.iter().filter(alike).find(|seen| matches!(seen.what, What::Failed | What::Panicked));
        ensure!(first.is_some_and(|seen| seen.node == node), "{error}, but {first:?} was first");
        Ok(())
    }

    /// What the tasks saw: each was called once and only if it was started, and none after the verdict.
    fn witness(&self) -> Result<(), String> {
        let mut called = vec![0; self.nodes.len()];
        let mut failed = false;
        for seen in &self.seen {
            ensure!(self.moment(seen.at) <= self.total(), "n{} was {:?} after the verdict", seen.node, seen.what);
            match seen.what {
                What::Called => {
                    ensure!(!failed || !self.nodes[seen.node].reads, "n{} started after a failure", seen.node);
                    called[seen.node] += 1;
                }
                What::Done | What::Broke => {}
                What::Failed | What::Panicked => failed = true,
            }
        }
        for (node, calls) in called.into_iter().enumerate() {
            let record = self.record(node);
            let must = record.is_some_and(|record| record.end != End::Abandoned);
            ensure!((usize::from(must)..=usize::from(record.is_some())).contains(&calls), "n{node}: {calls} calls");
        }
        Ok(())
    }

    /// The critical path leads from the node that ended last to one without inputs, each step to an input that was there last.
    fn critical(&self) -> Result<(), String> {
        let path: Vec<&NodeTrace> = self.trace.nodes.iter().filter(|record| record.critical).collect();
        let last = self.trace.nodes.iter().map(|record| record.end_ns).max();
        let ends = path.iter().map(|record| record.end_ns).max();
        ensure!(ends == last, "the critical path ends at {ends:?}, the nodes at {last:?}");
        for record in path {
            let inputs = self.nodes[record.node as usize].inputs.iter().filter_map(|input| self.record(*input));
            let held_up = |input: &NodeTrace| input.critical && input.end_ns == record.ready_ns;
            let mut inputs = inputs.peekable();
            ensure!(inputs.peek().is_none() || inputs.any(held_up), "the critical path breaks off at n{}", record.node);
        }
        Ok(())
    }
}
