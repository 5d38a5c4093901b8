//! Both plans for groups of requests, and what came of them.
//!
//! The second plan is given what the first one read where it reads the same. Where requests were captured, both are given what was captured, and nothing is
//! asked of a store: a request for which a plan reads more is left out.

use crate::cli::diff::keys::CompareKeys;
use rankd_column::Id;
use rankd_edge::diff::lists::{Paired, RankedRow};
use rankd_edge::diff::{Answered, ComparedRequest, Cost, NotCompared, PlanDiff};
use rankd_edge::process;
use rankd_engine::recorded::{Reads, Replay, RunRecorder};
use rankd_engine::why::AskedPlan;
use rankd_engine::{Engine, Linked, Outcome, Request, Tasks};
use rankd_plan::{Plan, Registry};
use std::sync::Arc;

/// How many requests are in flight at a time, all of one plan.
pub(super) const GROUP: usize = 32;
/// How many requests tell what a plan costs.
pub(super) const COSTED: u64 = 256;
/// What the source of a row is called that could not be followed.
const UNKNOWN_SOURCE: &str = "not known";

/// One of the two plans, as it was checked and as it runs.
#[derive(Clone, Copy)]
pub(super) struct ComparedPlan<'a> {
    pub(super) plan: &'a Plan,
    pub(super) linked: &'a Arc<Linked>,
}

/// A request for both plans. Its id is that of the captured one, where there is one.
#[derive(Clone)]
pub(super) struct DiffRequest {
    pub(super) request: Request,
    pub(super) text: String,
    /// What the captured run has read.
    pub(super) captured: Option<Arc<Replay>>,
}

/// Two plans, and what was counted so far.
pub(super) struct Comparing<'a> {
    pub(super) engine: &'a Engine,
    pub(super) registry: &'a Registry,
    pub(super) tasks: &'a Tasks,
    pub(super) plans: [ComparedPlan<'a>; 2],
    pub(super) keys: CompareKeys,
    pub(super) diff: PlanDiff,
    /// Of how many requests the cost is known.
    pub(super) costed: u64,
}

impl Comparing<'_> {
    /// Answers requests once by each plan, to see what that costs.
    pub(super) fn cost(&mut self, group: &[DiffRequest]) {
        for side in 0..2 {
            let requests = group.iter().map(|of| of.request.clone()).collect();
            let (_, cost) = self.answer(side, requests);
            self.diff.add_cost(side, cost);
        }
        self.costed += group.len() as u64;
    }

    /// Answers requests by both plans, and counts how the answers differ.
    pub(super) fn compare(&mut self, group: &[DiffRequest]) {
        let with_reads = |reads: Vec<Reads>| -> Vec<Request> {
            group.iter().zip(reads).map(|(of, reads)| Request { reads, ..of.request.clone() }).collect()
        };
        let recorders: Vec<Arc<RunRecorder>> = group.iter().map(|_| Arc::default()).collect();
        let of_first = |(of, recorder): (&DiffRequest, &Arc<RunRecorder>)| match &of.captured {
            Some(replay) => Reads::Replayed(replay.clone()),
            None => Reads::Recorded(recorder.clone()),
        };
        let (first, first_cost) = self.answer(0, with_reads(group.iter().zip(&recorders).map(of_first).collect()));
        let missing = |of: &DiffRequest| of.captured.as_ref().map_or(0, |replay| replay.missing());
        let missing_in_first: Vec<u64> = group.iter().map(missing).collect();
        let of_second = |(of, recorder): (&DiffRequest, &Arc<RunRecorder>)| match &of.captured {
            Some(replay) => Reads::Replayed(replay.clone()),
            None => same_reads(recorder),
        };
        let reads: Vec<Reads> = group.iter().zip(&recorders).map(of_second).collect();
        let (second, second_cost) = self.answer(1, with_reads(reads.clone()));
        for (at, of) in group.iter().enumerate() {
            let missing = [missing_in_first[at] > 0, missing(of) > missing_in_first[at]];
            if missing.contains(&true) {
                self.diff.leave_out(NotCompared::Missing(missing));
                continue;
            }
            let mut answers = [&first[at], &second[at]].map(|outcome| self.keys.answered(outcome));
            self.add_sources(&Request { reads: reads[at].clone(), ..of.request.clone() }, &mut answers);
            let captured_id = of.captured.as_ref().map(|_| of.request.request_id.as_str());
            let request = ComparedRequest { user: &of.request.user_id, text: &of.text, captured_id };
            self.diff.add(request, [&answers[0], &answers[1]]);
        }
        // Runs on what was captured cost what they cost: nothing is recorded meanwhile.
        if group.iter().all(|of| of.captured.is_some()) && self.costed < COSTED {
            self.costed += group.len() as u64;
            [first_cost, second_cost].into_iter().enumerate().for_each(|(side, cost)| self.diff.add_cost(side, cost));
        }
    }

    /// Runs a plan for all of them at once.
    fn answer(&self, side: usize, requests: Vec<Request>) -> (Vec<Outcome>, Cost) {
        let replays = requests.iter().filter_map(|request| match &request.reads {
            Reads::Replayed(replay) => Some(replay.clone()),
            Reads::Live | Reads::Recorded(_) => None,
        });
        let replays: Vec<Arc<Replay>> = replays.collect();
        let commands =
            || self.engine.stats().commands().sum::<u64>() + replays.iter().map(|of| of.served()).sum::<u64>();
        let (cpu, before, count) = (process::cpu_seconds(), commands(), requests.len() as u64);
        let start = |request: Request| self.engine.start_run(self.plans[side].linked, request);
        let tickets: Vec<_> = requests.into_iter().map(start).collect();
        let outcomes = tickets.into_iter().map(|ticket| ticket.wait()).collect();
        let (cpu_seconds, commands) = (process::cpu_seconds() - cpu, commands().saturating_sub(before));
        (outcomes, Cost { requests: count, cpu_seconds, commands })
    }

    /// Finds out which nodes brought in the rows that only one of the answers has.
    fn add_sources(&self, request: &Request, answers: &mut [Answered; 2]) {
        let [Answered { outputs: Ok(a), .. }, Answered { outputs: Ok(b), .. }] = answers else { return };
        let (none, mut only) = (Vec::new(), [Vec::new(), Vec::new()]);
        for output in 0..a.len().max(b.len()) {
            let paired = Paired::new(a.get(output).unwrap_or(&none), b.get(output).unwrap_or(&none));
            only[0].extend(paired.left().map(|at| (output, at)));
            only[1].extend(paired.entered().map(|at| (output, at)));
        }
        for (side, (outputs, only)) in [a, b].into_iter().zip(only).enumerate() {
            self.name_sources(side, request, outputs, &only);
        }
    }

    /// Names the sources of some rows of a plan's answer, given by their outputs and positions.
    fn name_sources(&self, side: usize, request: &Request, outputs: &mut [Vec<RankedRow>], rows: &[(usize, usize)]) {
        if rows.is_empty() {
            return;
        }
        let ids: Vec<(usize, Id)> =
            rows.iter().map(|(output, at)| (*output, outputs[*output][*at].id.clone())).collect();
        let ComparedPlan { plan, linked } = self.plans[side];
        // What has been linked once can be linked again.
        let Ok(asked) = AskedPlan::link(plan, self.tasks, self.registry) else { return };
        let request = asked.request(request.clone());
        let outcome = self.engine.run(asked.linked(), request.clone());
        for ((output, at), source) in rows.iter().zip(asked.sources(plan, &request, &outcome, &ids)) {
            let name = source.map_or(UNKNOWN_SOURCE, |node| {
                let node = linked.node(node);
                node.label.as_deref().unwrap_or(node.op)
            });
            outputs[*output][*at].source = Some(name.to_owned());
        }
    }
}

/// What the first plan's run has read, and the stores for everything else.
fn same_reads(recorder: &RunRecorder) -> Reads {
    let record = recorder.take();
    match record.is_cut {
        true => Reads::Live,
        false => Reads::Replayed(Arc::new(Replay::of(record.reads, record.calls).or_live())),
    }
}
