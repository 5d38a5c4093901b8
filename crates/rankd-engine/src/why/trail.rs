//! Following rows through a run that is over: from where a row came in, node by node, to its end.
//!
//! Rows are followed by where they lie, never by their ids. A row that several nodes read goes on in each of them, so one row that came in
//! can have several ends. Nothing here recurses, and what is looked at is bounded.

use super::keep::{KeptCall, KeptRun, TakenAlong, origin, positions_from};
use super::scored;
use crate::degraded::{Degraded, StandIn};
use crate::link::Linked;
use crate::request::Request;
use crate::run::Outcome;
use crate::substitutes::source;
use crate::task::{Lost, LostRow};
use rankd_column::expr::Scratch;
use rankd_column::{Id, RowSet};
use rankd_plan::plan::{Node, NodeIx, Plan, Substitute};
use rankd_plan::signature::RowEffect;
use std::cell::Cell;
use std::collections::HashMap;
use std::time::Duration;

/// So many places a question looks at, over all rows of an item.
const VISITS_MAX: usize = 10_000;

/// A row of a node: its position among the rows that readers of the node see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowAt {
    pub node: NodeIx,
    pub position: usize,
}

/// How a row ended.
#[derive(Clone, Debug)]
pub(super) enum TrailEnd {
    /// It is in the answer: in this output of the plan, at its own position.
    Answered { output: usize },
    /// It was alive when the run failed.
    Failed,
    /// This node did not pass it on.
    Dropped { by: NodeIx, input: usize, why: Drop },
    /// The node made new rows of it: so many, where its task says.
    Expanded { by: NodeIx, children: Option<usize> },
    /// The node made one new row of it and of others.
    Grouped { by: NodeIx },
    /// The node only looked at it. Nothing where no node that ran has read it.
    Aside { by: Option<NodeIx> },
}

impl TrailEnd {
    /// How good it is for the row; the best is the least.
    pub(super) fn rank(&self) -> u8 {
        match self {
            TrailEnd::Answered { .. } => 0,
            TrailEnd::Failed => 1,
            TrailEnd::Dropped { .. } => 2,
            TrailEnd::Expanded { .. } => 3,
            TrailEnd::Grouped { .. } => 4,
            TrailEnd::Aside { .. } => 5,
        }
    }
}

/// Why a node did not pass a row on.
#[derive(Clone, Debug)]
pub(super) enum Drop {
    /// Its task says so.
    Task(Lost),
    /// What stood in for the node does not have the row.
    Fallback(Degraded),
    /// The node's condition does not hold, and what stands in for it does not have the row.
    Condition,
    /// The node did not ask for these rows.
    NotAsked,
}

/// One way of a row through a plan: where it was, from its source on, and how it ended.
#[derive(Clone, Debug)]
pub(super) struct Trail {
    pub(super) places: Vec<RowAt>,
    pub(super) end: TrailEnd,
}

/// A run that is over, with the rows of its nodes.
pub(super) struct Walked<'a> {
    pub(super) plan: &'a Plan,
    pub(super) linked: &'a Linked,
    pub(super) request: &'a Request,
    pub(super) calls: HashMap<NodeIx, KeptCall>,
    pub(super) taken: TakenAlong,
    pub(super) outcome: &'a Outcome,
    /// By node: whether its condition does not hold.
    pub(super) skipped: Vec<bool>,
    /// By node: whether its rows had a part in the answer, or would have had one.
    live: Vec<bool>,
    /// How long it may still take to find out what features add to scores.
    pub(super) explaining_left: Cell<Duration>,
}

/// What stood in for a node.
enum InPlace<'a> {
    Fallback(Substitute, &'a Degraded),
    Condition(Substitute),
}

impl InPlace<'_> {
    fn substitute(&self) -> Substitute {
        match self {
            InPlace::Fallback(substitute, _) | InPlace::Condition(substitute) => *substitute,
        }
    }

    fn drop(&self) -> Drop {
        match self {
            InPlace::Fallback(_, degraded) => Drop::Fallback((*degraded).clone()),
            InPlace::Condition(_) => Drop::Condition,
        }
    }
}

impl<'a> Walked<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        linked: &'a Linked,
        request: &'a Request,
        kept: KeptRun,
        outcome: &'a Outcome,
    ) -> Walked<'a> {
        let mut skipped = vec![false; plan.nodes.len()];
        if let Some(substitutes) = &linked.written.substitutes {
            // Where a condition cannot be decided, the run has failed at once.
            let found = substitutes.skipped(request.values(), &mut Scratch::default());
            found.unwrap_or_default().into_iter().for_each(|node| skipped[node as usize] = true);
        }
        let live = plan.nodes.iter().map(|node| node.needed).collect();
        let KeptRun { calls, taken } = kept;
        let explaining_left = Cell::new(scored::TIME_MAX_IN_ALL);
        let mut walked = Walked { plan, linked, request, calls, taken, outcome, skipped, live, explaining_left };
        if outcome.result.is_ok() {
            walked.live = walked.live_nodes();
        }
        walked
    }

    /// The nodes that the answer was made of, and those that were tried for it.
    fn live_nodes(&self) -> Vec<bool> {
        let mut live = vec![false; self.plan.nodes.len()];
        let mut open = self.plan.outputs.clone();
        while let Some(ix) = open.pop() {
            if std::mem::replace(&mut live[ix as usize], true) {
                continue;
            }
            let inputs = &self.node(ix).inputs;
            let asked = self.calls.get(&ix).map_or(0, |call| call.inputs.len());
            match self.in_place(ix) {
                None => open.extend(inputs.iter().take(asked)),
                Some(in_place) => {
                    open.extend(source(in_place.substitute(), inputs));
                    if let InPlace::Fallback(..) = in_place {
                        open.extend(inputs.iter().take(asked.max(1)));
                    }
                }
            }
        }
        live
    }

    pub(super) fn node(&self, ix: NodeIx) -> &Node {
        &self.plan.nodes[ix as usize]
    }

    /// The fallback that was taken in place of a node, if one was.
    pub(super) fn degraded(&self, ix: NodeIx) -> Option<&Degraded> {
        self.outcome
            .degraded
            .iter()
            .find(|degraded| degraded.node == ix && matches!(degraded.fallback, StandIn::Substitute(_)))
    }

    fn in_place(&self, ix: NodeIx) -> Option<InPlace<'_>> {
        let taken = self.outcome.degraded.iter().filter(|degraded| degraded.node == ix);
        let mut taken = taken.filter_map(|degraded| match degraded.fallback {
            StandIn::Substitute(substitute) => Some(InPlace::Fallback(substitute, degraded)),
            StandIn::Prefix(_) | StandIn::Finished(_) => None,
        });
        let condition = || {
            let condition = self.node(ix).condition.as_ref().filter(|_| self.skipped[ix as usize]);
            condition.map(|condition| InPlace::Condition(condition.otherwise))
        };
        condition().or_else(|| taken.next())
    }

    /// What a node was given and gave, where its readers got that.
    pub(super) fn call(&self, ix: NodeIx) -> Option<&KeptCall> {
        self.calls.get(&ix).filter(|_| self.in_place(ix).is_none())
    }

    /// The rows that readers of a node got.
    pub(super) fn rows(&self, ix: NodeIx) -> Option<&RowSet> {
        let mut at = ix;
        // A node stands in for another no more often than there are nodes.
        for _ in &self.plan.nodes {
            let Some(in_place) = self.in_place(at) else { return self.calls.get(&at)?.given.as_ref() };
            at = match in_place.substitute() {
                Substitute::NoRows => return None,
                Substitute::FirstInput => *self.node(at).inputs.first()?,
                Substitute::Node(node) => node,
            };
        }
        None
    }

    /// Whether the rows of an input can come out of a node, or are only looked at.
    fn flows(&self, ix: NodeIx, input: usize) -> bool {
        input == 0 || self.node(ix).rows() == RowEffect::Appended
    }

    /// Whether the rows of a node are new ones, in a run in which it was called.
    pub(super) fn is_source(&self, ix: NodeIx, call: &KeptCall) -> bool {
        if call.inputs.is_empty() {
            return true;
        }
        match self.node(ix).rows() {
            RowEffect::Source | RowEffect::FanOut | RowEffect::Grouped | RowEffect::GroupedWhere(_) => true,
            // A task that makes its own batch and does not say where the rows come from.
            RowEffect::Same
            | RowEffect::Fewer
            | RowEffect::FewerWhere(_)
            | RowEffect::Reordered
            | RowEffect::Appended => {
                call.given.as_ref().is_some_and(|rows| !rows.is_empty() && origin(rows, 0).is_none())
            }
        }
    }

    /// The rows with an id where they came in.
    pub(super) fn born(&self, id: &Id) -> Vec<RowAt> {
        let mut born = Vec::new();
        for &node in &self.plan.order {
            let Some(call) = self.call(node).filter(|call| self.is_source(node, call)) else { continue };
            let positions = call.given.iter().flat_map(|rows| positions_of(rows, id));
            born.extend(positions.take(VISITS_MAX).map(|position| RowAt { node, position }));
        }
        born
    }

    /// Every way of the rows with an id through the run, those that came furthest first.
    pub(super) fn trails(&self, id: &Id) -> Vec<Trail> {
        let place_in_plan: HashMap<NodeIx, usize> =
            self.plan.order.iter().enumerate().map(|(at, ix)| (*ix, at)).collect();
        // Each place with the one before it.
        let mut visits: Vec<(RowAt, Option<usize>)> = self.born(id).into_iter().map(|at| (at, None)).collect();
        let (mut next, mut ends) = (0, Vec::new());
        while let Some(&(at, _)) = visits.get(next) {
            for onward in self.onward(at) {
                match onward {
                    Onward::Row(row) if visits.len() < VISITS_MAX => visits.push((row, Some(next))),
                    Onward::Row(_) => {}
                    Onward::TrailEnd(end) => ends.push((next, end)),
                }
            }
            next += 1;
        }
        let furthest = |visit: usize| std::cmp::Reverse(place_in_plan.get(&visits[visit].0.node).copied());
        ends.sort_by_key(|(visit, end)| (end.rank(), furthest(*visit), visits[*visit].0.position));
        let trail = |(visit, end): (usize, TrailEnd)| {
            let before = std::iter::successors(Some(visit), |visit| visits[*visit].1);
            let mut places: Vec<RowAt> = before.map(|visit| visits[visit].0).collect();
            places.reverse();
            Trail { places, end }
        };
        ends.into_iter().map(trail).collect()
    }

    /// The node that brought in the first row of an output with an id; nothing where there is none.
    pub(super) fn source_of(&self, output: usize, id: &Id) -> Option<NodeIx> {
        let is_there = |trail: &Trail| matches!(trail.end, TrailEnd::Answered { output: of } if of == output);
        let trails = self.trails(id).into_iter().filter(is_there);
        let first = trails.min_by_key(|trail| trail.places.last().map(|at| at.position))?;
        first.places.first().map(|at| at.node)
    }

    /// What becomes of a row in the nodes that read it.
    fn onward(&self, at: RowAt) -> Vec<Onward> {
        let mut onward = Vec::new();
        if self.outcome.result.is_ok() {
            let outputs = self.plan.outputs.iter().enumerate().filter(|(_, node)| **node == at.node);
            onward.extend(outputs.map(|(output, _)| Onward::TrailEnd(TrailEnd::Answered { output })));
        }
        for &reader in &self.plan.order {
            let node = self.node(reader);
            if !self.live[reader as usize] {
                continue;
            }
            let inputs = node.inputs.iter().enumerate().filter(|(_, input)| **input == at.node);
            match self.in_place(reader) {
                None => onward.extend(inputs.flat_map(|(input, _)| self.in_reader(at, reader, input))),
                Some(in_place) => {
                    let substitute = in_place.substitute();
                    onward.extend(inputs.map(|(input, _)| match (substitute, input) {
                        (Substitute::FirstInput, 0) => Onward::Row(RowAt { node: reader, ..at }),
                        (Substitute::FirstInput | Substitute::NoRows | Substitute::Node(_), _) => {
                            Onward::TrailEnd(match self.flows(reader, input) {
                                true => TrailEnd::Dropped { by: reader, input, why: in_place.drop() },
                                false => TrailEnd::Aside { by: Some(reader) },
                            })
                        }
                    }));
                    if substitute == Substitute::Node(at.node) {
                        onward.push(Onward::Row(RowAt { node: reader, ..at }));
                    }
                }
            }
        }
        if onward.is_empty() {
            onward.push(Onward::TrailEnd(match self.outcome.result {
                Ok(_) => TrailEnd::Aside { by: None },
                Err(_) => TrailEnd::Failed,
            }));
        }
        onward
    }

    /// What becomes of a row in a node that reads it as this input.
    fn in_reader(&self, at: RowAt, reader: NodeIx, input: usize) -> Vec<Onward> {
        let end = |end| vec![Onward::TrailEnd(end)];
        let Some(call) = self.calls.get(&reader) else {
            // It did not run: it is lazy, or the run was over.
            return match self.outcome.result {
                Ok(_) => Vec::new(),
                Err(_) => end(TrailEnd::Failed),
            };
        };
        let Some(given) = &call.given else { return end(TrailEnd::Failed) };
        let Some(seen) = call.inputs.get(input) else {
            return end(TrailEnd::Dropped { by: reader, input, why: Drop::NotAsked });
        };
        if !self.flows(reader, input) {
            return end(TrailEnd::Aside { by: Some(reader) });
        }
        let row = seen.rows().at(at.position);
        let effect = self.node(reader).rows();
        match effect {
            RowEffect::Grouped | RowEffect::GroupedWhere(_) => end(TrailEnd::Grouped { by: reader }),
            RowEffect::FanOut => {
                let says = given.is_empty() || origin(given, 0).is_some();
                let children = says.then(|| positions_from(given, input, row).len());
                end(TrailEnd::Expanded { by: reader, children })
            }
            RowEffect::Source
            | RowEffect::Same
            | RowEffect::Fewer
            | RowEffect::FewerWhere(_)
            | RowEffect::Reordered
            | RowEffect::Appended => {
                let found = positions_from(given, input, row);
                if found.is_empty() {
                    let why = Drop::Task(self.why_lost(reader, (call, given), input, at.position));
                    return end(TrailEnd::Dropped { by: reader, input, why });
                }
                found.into_iter().map(|position| Onward::Row(RowAt { node: reader, position })).collect()
            }
        }
    }

    fn why_lost(&self, node: NodeIx, (call, given): (&KeptCall, &RowSet), input: usize, position: usize) -> Lost {
        let request = self.request;
        let lost = LostRow {
            inputs: &call.inputs,
            input,
            position,
            given,
            dials: &request.dials,
            params: &request.params,
            served: request.cursor.as_ref().and_then(|cursor| cursor.as_deref().ok()),
        };
        self.linked.written.step(node).task.why_lost(&lost)
    }
}

enum Onward {
    Row(RowAt),
    TrailEnd(TrailEnd),
}

/// Where rows with an id are.
pub(super) fn positions_of<'r>(rows: &'r RowSet, id: &'r Id) -> impl Iterator<Item = usize> + 'r {
    let (batch, texts) = (rows.batch(), rows.batch().id_texts());
    let is_meant = move |row: usize| match (id, texts) {
        (Id::Int(id), None) => batch.ids()[row] == *id,
        (Id::Text(text), Some(texts)) => texts.text(batch.ids()[row]) == &**text,
        (Id::Int(_), Some(_)) | (Id::Text(_), None) => false,
    };
    rows.rows().iter().enumerate().filter(move |(_, row)| is_meant(*row)).map(|(position, _)| position)
}
