//! What stands in for nodes in one run: fallbacks that were taken, nodes that are skipped, lazy nodes that were woken, and reserves that
//! were asked for.
//!
//! A lazy node waits for one thing more than its inputs: to be woken. A node that another may still fall back on is kept, with the rows
//! that it would read, until nothing can need it. A node in whose place others give rows has a slot like any other, so its
//! readers see no difference. A node that asks for a reserve waits for one thing again, and is called once more with one input more. Where
//! weather strikes what feeds a reserve, all that is made of it has no rows. Nothing here recurses: what follows from a step is a list of actions.

use super::Progress;
use crate::clock::Instant;
use crate::degraded::{Degraded, Reason, Short, StandIn};
use crate::error::RunError;
use crate::link::Linked;
use crate::recorded::{Ending, NodeEnd, Weather};
use crate::settle::NodeFailure;
use crate::steps::{Step, Steps};
use crate::substitutes::{Substitutes, source};
use rankd_column::RowSet;
use rankd_plan::plan::{NodeIx, Substitute};
use std::collections::VecDeque;
use std::sync::Arc;

/// What has changed besides the node that was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeNews {
    /// The node has rows: its readers can be counted down.
    HasRows(NodeIx),
    /// The node is needed after all, or a reserve that it has asked for is there: it waits for one thing less.
    Woken(NodeIx),
}

/// Empty for a plan that has no substitutes.
#[derive(Default)]
pub(super) struct Substitution {
    substitutes: Option<Arc<Substitutes>>,
    is_strict: bool,
    began: Option<Instant>,
    /// By node: whether it is not to run unless another needs it, and how many others may still need it.
    asleep: Vec<bool>,
    users_left: Vec<u32>,
    /// By node: its condition does not hold.
    skipped: Vec<bool>,
    /// By node: its fallback was taken, so whatever it still brings is not wanted.
    given_up: Vec<bool>,
    /// By node: what it would have been made of is missing, so it has no rows.
    hollow: Vec<bool>,
    /// By node: how many of its reserves it has asked for.
    asked: Vec<usize>,
    waiting: Vec<PendingSubstitute>,
    /// Nodes that wait for a reserve, each with that.
    asking: Vec<(NodeIx, NodeIx)>,
    /// The node that has just ended and wants so many rows.
    wanting: Option<(NodeIx, usize)>,
    short: Vec<Short>,
    news: VecDeque<NodeNews>,
    taken: Vec<Shortcoming>,
}

/// A node that waits for the rows of another, which stand in for its own.
struct PendingSubstitute {
    node: NodeIx,
    source: NodeIx,
    substitute: Substitute,
}

/// What is missing from the answer, and the failure behind it, where there was one.
struct Shortcoming {
    degraded: Degraded,
    error: Option<RunError>,
}

impl Substitution {
    /// Keeps what is missing in order of time, which in a replay is that of the recorded run.
    fn take(&mut self, shortcoming: Shortcoming) {
        let at = self.taken.partition_point(|taken| taken.degraded.after <= shortcoming.degraded.after);
        self.taken.insert(at, shortcoming);
    }
}

enum Action {
    Wake(NodeIx),
    Substitute(NodeIx, Substitute),
    Give(NodeIx, RowSet),
}

impl Progress {
    /// A run begins whose answer may have less than the plan would give.
    pub(crate) fn began(&mut self, began: Instant) {
        self.substitution.began = Some(began);
        self.substitution.taken.clear();
        self.substitution.short.clear();
    }

    /// Begins a run of a plan that has substitutes. `skipped` are the nodes whose conditions do not hold.
    pub(crate) fn begin_substitution(
        &mut self,
        steps: &Steps,
        outputs: &[NodeIx],
        skipped: &[NodeIx],
        is_strict: bool,
    ) {
        let Some(substitutes) = &steps.substitutes else { return };
        let (nodes, of) = (steps.node_count(), &mut self.substitution);
        of.substitutes = Some(substitutes.clone());
        of.is_strict = is_strict;
        of.asleep.clone_from(&steps.lazy);
        of.users_left.clone_from(&steps.users);
        of.asked.clear();
        of.asked.resize(if steps.has_reserves { nodes } else { 0 }, 0);
        of.asking.clear();
        of.wanting = None;
        for flags in [&mut of.skipped, &mut of.given_up, &mut of.hollow] {
            flags.clear();
            flags.resize(nodes, false);
        }
        of.waiting.clear();
        of.news.clear();
        if !skipped.is_empty() {
            self.skip(steps, outputs, skipped);
        }
    }

    /// A run is over whose plan has substitutes: rows may be left that were kept for a node that did not run.
    pub(super) fn end_substitution(&mut self) {
        if self.substitution.substitutes.take().is_some() {
            self.slots.iter_mut().for_each(|slot| *slot = None);
            // The next run may be of a plan without any of this, which does not begin with it.
            self.substitution.given_up.clear();
        }
    }

    /// What has changed, in order.
    pub(crate) fn next_news(&mut self) -> Option<NodeNews> {
        self.substitution.news.pop_front()
    }

    /// Whether the fallback of a node was taken, so that what it still brings is late.
    pub(crate) fn has_given_up(&self, node: NodeIx) -> bool {
        self.substitution.given_up.get(node as usize).is_some_and(|given_up| *given_up)
    }

    /// Whether the rows in the place of a node are not its own.
    pub(super) fn is_substituted(&self, node: NodeIx) -> bool {
        let of = &self.substitution;
        // What a plan without substitutes finds here is of an earlier run.
        let is_in = |nodes: &Vec<bool>| nodes.get(node as usize).is_some_and(|is_in| *is_in);
        of.substitutes.is_some() && [&of.given_up, &of.skipped, &of.hollow].into_iter().any(is_in)
    }

    /// The fallback of a node, where this run may take it.
    pub(crate) fn fallback_of(&self, node: NodeIx) -> Option<Substitute> {
        let of = &self.substitution;
        let of_node = of.substitutes.as_ref().filter(|_| !of.is_strict)?.of_node(node);
        of_node.fallback.or(of_node.feeds_reserves.then_some(Substitute::NoRows))
    }

    /// The nodes whose conditions do not hold and that some output would have needed.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = NodeIx> + '_ {
        let of = &self.substitution;
        (0..)
            .zip(of.skipped.iter().zip(&of.asleep))
            .filter(|(_, (skipped, asleep))| **skipped && !**asleep)
            .map(|(at, _)| at)
    }

    /// A node that others have to do with has rows of its own.
    #[cold]
    #[inline(never)]
    pub(crate) fn has_rows(&mut self, steps: &Steps, node: NodeIx) {
        let wanting = self.substitution.wanting.take().filter(|(of, _)| *of == node);
        if let Some((_, wanted)) = wanting {
            if self.ask(steps, node) {
                return;
            }
            let got = self.slots[node as usize].as_ref().map_or(0, RowSet::len);
            self.substitution.short.push(Short { node, wanted, got });
        }
        self.release_reserves(steps, node);
        self.release_fallback(steps, node);
        self.announce(steps, node);
    }

    /// Takes the fallback of a node that failed.
    pub(crate) fn fall_back(
        &mut self,
        steps: &Steps,
        node: NodeIx,
        (reason, fallback): (Reason, Substitute),
        error: RunError,
        now: Instant,
    ) {
        let after = self.after(node, now);
        let of = &mut self.substitution;
        let degraded =
            Degraded { node, reason, code: Some(error.code), fallback: StandIn::Substitute(fallback), after };
        of.take(Shortcoming { degraded, error: Some(error) });
        of.given_up[node as usize] = true;
        of.hollow[node as usize] = of.substitutes.as_ref().is_some_and(|of| of.of_node(node).fallback.is_none());
        self.act(steps, vec![Action::Substitute(node, fallback)]);
    }

    /// A node that has ended wants so many rows and has fewer. What becomes of that is decided when it is settled.
    #[cold]
    #[inline(never)]
    pub(crate) fn wants(&mut self, node: NodeIx, rows: usize) {
        self.substitution.wanting = Some((node, rows));
    }

    /// Takes back the rows of a node that has reserves left, and asks for the next of them. False where there is none left.
    fn ask(&mut self, steps: &Steps, node: NodeIx) -> bool {
        let at = node as usize;
        let Some(asked) = self.substitution.asked.get_mut(at) else { return false };
        let Some(&reserve) = steps.step(node).reserves().get(*asked) else { return false };
        *asked += 1;
        self.slots[at] = None;
        self.left += 1;
        // It has been called, so it waits for nothing; now it waits for the reserve.
        self.waiting[at] = 1;
        self.substitution.asking.push((node, reserve));
        match self.slots[reserve as usize].is_some() {
            true => self.give_reserve(reserve),
            false => self.act(steps, vec![Action::Wake(reserve)]),
        }
        true
    }

    /// Tells the nodes that have asked for this one that it has rows.
    fn give_reserve(&mut self, reserve: NodeIx) {
        let of = &mut self.substitution;
        while let Some(at) = of.asking.iter().position(|(_, asked)| *asked == reserve) {
            let (node, _) = of.asking.remove(at);
            of.news.push_back(NodeNews::Woken(node));
        }
    }

    /// A node that asks has ended: it reads its inputs no more, and those that it has not asked for are not needed by it.
    fn release_reserves(&mut self, steps: &Steps, node: NodeIx) {
        let Some(asked) = self.substitution.asked.get(node as usize).copied() else { return };
        let step = steps.step(node);
        if step.reserves().is_empty() {
            return;
        }
        self.release_inputs(step);
        step.reserves().iter().skip(asked).for_each(|reserve| self.drop_user(steps, *reserve));
    }

    /// The inputs of a node that asks, as far as they are there: its rows, and the reserves that it has asked for. It may be called again, so they
    /// stay where they are.
    pub(super) fn asked_inputs(&self, node: NodeIx, step: &Step) -> Result<Vec<RowSet>, NodeFailure> {
        let asked = self.substitution.asked.get(node as usize).copied().unwrap_or(0);
        let inputs = step.awaited().iter().chain(step.reserves().iter().take(asked));
        inputs.map(|input| self.slots[*input as usize].clone().ok_or(NodeFailure::InputMissing(*input))).collect()
    }

    /// Whether a node that could start has no rows, because what feeds a reserve was struck. It then has none without being called.
    pub(crate) fn is_hollow(&mut self, steps: &Steps, node: NodeIx) -> bool {
        let of = &mut self.substitution;
        let feeds_reserves = of.substitutes.as_ref().is_some_and(|of| of.of_node(node).feeds_reserves);
        let is_hollow = |input: &NodeIx| of.hollow[*input as usize];
        if !feeds_reserves || !steps.step(node).awaited().iter().any(is_hollow) {
            return false;
        }
        (of.hollow[node as usize], of.given_up[node as usize]) = (true, true);
        self.release_inputs(steps.step(node));
        self.act(steps, vec![Action::Substitute(node, Substitute::NoRows)]);
        true
    }

    /// An anytime node has handed over what it had.
    #[cold]
    #[inline(never)]
    pub(crate) fn hand_over(&mut self, node: NodeIx, fallback: StandIn, now: Instant) {
        let after = self.after(node, now);
        let degraded = Degraded { node, reason: Reason::NoTime, code: None, fallback, after };
        self.substitution.take(Shortcoming { degraded, error: None });
    }

    /// Lets go of the rows of a step that will not be called.
    pub(crate) fn release_inputs(&mut self, step: &Step) {
        step.inputs.iter().for_each(|input| self.release_read(*input));
    }

    pub(super) fn began_at(&self) -> Option<Instant> {
        self.substitution.began
    }

    /// What struck the nodes of this run.
    pub(crate) fn weather(&self, plan: &Linked) -> Weather {
        let id = |node: NodeIx| plan.node(node).id.to_string();
        let failed =
            |error: &RunError, reason| Ending::Failed { code: error.code, message: error.message.clone(), reason };
        let taken = self.substitution.taken.iter().map(|Shortcoming { degraded, error }| {
            let how = match (error, degraded.fallback) {
                (Some(error), _) => failed(error, Some(degraded.reason)),
                (None, StandIn::Prefix(picked) | StandIn::Finished(picked)) => Ending::Cut { picked },
                (None, StandIn::Substitute(_)) => Ending::Cut { picked: 0 },
            };
            NodeEnd { node: id(degraded.node), how, after: degraded.after }
        });
        let last = self.last.as_deref();
        let last =
            last.map(|(node, error, after)| NodeEnd { node: id(*node), how: failed(error, None), after: *after });
        let ended_run = last.is_some();
        let short = self.substitution.short.iter().map(|short| id(short.node)).collect();
        Weather { ends: taken.chain(last).collect(), ended_run, short }
    }

    /// The fallbacks that were taken and the nodes that were cut short, and the nodes that are short of rows, each in order of time.
    pub(crate) fn take_shortcomings(&mut self) -> (Vec<Degraded>, Vec<Short>) {
        if let Some((struck, _)) = &self.struck {
            self.substitution.short.sort_by_key(|short| struck.short_place(short.node));
        }
        let of = &mut self.substitution;
        // Most runs have neither.
        if of.taken.is_empty() && of.short.is_empty() {
            return (Vec::new(), Vec::new());
        }
        (of.taken.drain(..).map(|taken| taken.degraded).collect(), std::mem::take(&mut of.short))
    }

    /// The error of the first fallback that was taken.
    pub(super) fn first_error(&self) -> Option<&RunError> {
        self.substitution.taken.iter().find_map(|taken| taken.error.as_ref())
    }

    /// The error of a run that ends because this node failed. Where it stood in for another, that one failed first.
    pub(crate) fn blame(&self, plan: &Linked, node: NodeIx, error: RunError) -> RunError {
        let of = &self.substitution;
        let stands_in_for =
            |node: NodeIx| of.waiting.iter().find(|waiting| waiting.source == node).map(|waiting| waiting.node);
        let others = std::iter::successors(stands_in_for(node), |node| stands_in_for(*node));
        let taken = others.filter_map(|other| of.taken.iter().find(|taken| taken.degraded.node == other));
        let Some(first) = taken.filter_map(|taken| taken.error.clone()).last() else { return error };
        let message =
            format!("{}; its fallback, node {}, failed with {}", first.message, plan.node(node).id, error.code);
        RunError { message, ..first }
    }

    /// Puts what stands in for skipped nodes in their place, and keeps what then feeds nobody from running.
    fn skip(&mut self, steps: &Steps, outputs: &[NodeIx], skipped: &[NodeIx]) {
        let Some(substitutes) = self.substitution.substitutes.clone() else { return };
        // Nodes that nothing can ever need have no part in this.
        for node in steps.order.iter().filter(|node| skipped.contains(node)) {
            self.substitution.skipped[*node as usize] = true;
        }
        let otherwise =
            |node: NodeIx| substitutes.of_node(node).condition.as_ref().map(|condition| condition.otherwise);
        let fallback = |node: NodeIx| source(substitutes.of_node(node).fallback?, &steps.step(node).inputs);
        let stand_in = |node: NodeIx| source(otherwise(node)?, &steps.step(node).inputs);
        let is_skipped = self.substitution.skipped.clone();
        let mut is_wanted = vec![false; steps.node_count()];
        let mut open = outputs.to_vec();
        while let Some(node) = open.pop() {
            if std::mem::replace(&mut is_wanted[node as usize], true) {
                continue;
            }
            match is_skipped[node as usize] {
                true => open.extend(stand_in(node)),
                false => open.extend(steps.step(node).awaited()),
            }
        }
        for &node in &steps.order {
            let at = node as usize;
            if !is_wanted[at] && !self.substitution.asleep[at] {
                self.substitution.asleep[at] = true;
                self.waiting[at] += 1;
                self.left -= 1;
            }
        }
        for &node in &steps.order {
            if is_skipped[node as usize] {
                // It does not read its inputs, nor has it anything to fall back from.
                steps
                    .step(node)
                    .inputs
                    .iter()
                    .chain(&fallback(node))
                    .for_each(|input| self.reads_left[*input as usize] -= 1);
                stand_in(node).iter().for_each(|source| self.reads_left[*source as usize] += 1);
            }
        }
        let asleep = &self.substitution.asleep;
        let mut users = vec![0; steps.node_count()];
        for &node in &steps.order {
            let is_asleep = asleep[node as usize];
            let mut count = |of: NodeIx| users[of as usize] += u32::from(asleep[of as usize]);
            match is_skipped[node as usize] {
                true => stand_in(node).filter(|_| is_asleep).into_iter().for_each(&mut count),
                false => {
                    let step = steps.step(node);
                    distinct(step.awaited()).filter(|_| is_asleep).for_each(&mut count);
                    fallback(node).into_iter().chain(step.reserves().iter().copied()).for_each(&mut count);
                }
            }
        }
        self.substitution.users_left = users;
        for &node in &steps.order {
            let at = node as usize;
            if let Some(otherwise) = otherwise(node).filter(|_| is_skipped[at] && !self.substitution.asleep[at]) {
                // Its inputs do not start it.
                self.waiting[at] += 1;
                self.act(steps, vec![Action::Substitute(node, otherwise)]);
            }
        }
        let of = &self.substitution;
        let is_unused = |node: &&NodeIx| of.asleep[**node as usize] && of.users_left[**node as usize] == 0;
        let unused: Vec<NodeIx> = steps.order.iter().filter(is_unused).copied().collect();
        unused.into_iter().for_each(|node| self.discard(steps, node));
    }

    fn act(&mut self, steps: &Steps, mut open: Vec<Action>) {
        let Some(substitutes) = self.substitution.substitutes.clone() else { return };
        while let Some(action) = open.pop() {
            match action {
                Action::Wake(node) => {
                    if !std::mem::replace(&mut self.substitution.asleep[node as usize], false) {
                        continue;
                    }
                    self.left += 1;
                    let condition = substitutes.of_node(node).condition.as_ref();
                    match condition.filter(|_| self.substitution.skipped[node as usize]) {
                        Some(condition) => open.push(Action::Substitute(node, condition.otherwise)),
                        None => {
                            self.substitution.news.push_back(NodeNews::Woken(node));
                            open.extend(steps.step(node).awaited().iter().map(|input| Action::Wake(*input)));
                        }
                    }
                }
                Action::Substitute(node, substitute) => {
                    let Some(source) = source(substitute, &steps.step(node).inputs) else {
                        open.push(Action::Give(node, substitutes.of_node(node).no_rows()));
                        continue;
                    };
                    self.substitution.waiting.push(PendingSubstitute { node, source, substitute });
                    match self.slots[source as usize].is_some() {
                        true => open.extend(self.stand_in(source)),
                        false => open.push(Action::Wake(source)),
                    }
                }
                Action::Give(node, rows) => {
                    // What is given is there already, and shared.
                    if !self.finish(node, rows) {
                        self.holds_too_much();
                    }
                    self.substitution.news.push_back(NodeNews::HasRows(node));
                    self.give_reserve(node);
                    open.extend(self.stand_in(node));
                }
            }
        }
    }

    /// Tells those that wait for a node's rows that they are there.
    fn announce(&mut self, steps: &Steps, node: NodeIx) {
        self.substitution.news.push_back(NodeNews::HasRows(node));
        self.give_reserve(node);
        let actions: Vec<Action> = self.stand_in(node).collect();
        self.act(steps, actions);
    }

    /// The rows of a node, in place of those that wait for them.
    fn stand_in(&mut self, source: NodeIx) -> std::vec::IntoIter<Action> {
        let Some(substitutes) = self.substitution.substitutes.clone() else { return Vec::new().into_iter() };
        let mut actions = Vec::new();
        while let Some(at) = self.substitution.waiting.iter().position(|waiting| waiting.source == source) {
            let PendingSubstitute { node, substitute, .. } = self.substitution.waiting.remove(at);
            let Some(rows) = self.read(source) else { continue };
            let rows = match substitute {
                Substitute::FirstInput => substitutes.of_node(node).with_defaults(rows),
                Substitute::NoRows | Substitute::Node(_) => rows,
            };
            actions.push(Action::Give(node, rows));
        }
        actions.into_iter()
    }

    /// A node will not take its fallback.
    fn release_fallback(&mut self, steps: &Steps, node: NodeIx) {
        let Some(substitutes) = &self.substitution.substitutes else { return };
        let fallback = substitutes.of_node(node).fallback.and_then(|of| source(of, &steps.step(node).inputs));
        if let Some(source) = fallback.filter(|_| !self.substitution.given_up[node as usize]) {
            self.release_read(source);
            self.drop_user(steps, source);
        }
    }

    fn release_read(&mut self, node: NodeIx) {
        // Reading it is the same as letting it go.
        drop(self.read(node));
    }

    /// One of those that may need a node does not.
    fn drop_user(&mut self, steps: &Steps, node: NodeIx) {
        let (of, at) = (&mut self.substitution, node as usize);
        if of.asleep[at] {
            of.users_left[at] = of.users_left[at].saturating_sub(1);
            if of.users_left[at] == 0 {
                self.discard(steps, node);
            }
        }
    }

    /// Nothing can need a node any more: what it would have read is let go, and so is what only it could have needed.
    fn discard(&mut self, steps: &Steps, node: NodeIx) {
        let Some(substitutes) = self.substitution.substitutes.clone() else { return };
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            let (inputs, of_node) = (&steps.step(node).inputs, substitutes.of_node(node));
            let skipped = self.substitution.skipped[node as usize];
            let mut needs: Vec<NodeIx> = Vec::new();
            if skipped {
                needs.extend(of_node.condition.as_ref().and_then(|condition| source(condition.otherwise, inputs)));
                needs.iter().for_each(|input| self.release_read(*input));
            } else {
                let fallback = of_node.fallback.and_then(|of| source(of, inputs));
                inputs.iter().chain(&fallback).for_each(|input| self.release_read(*input));
                let step = steps.step(node);
                needs.extend(distinct(step.awaited()).chain(step.reserves().iter().copied()).chain(fallback));
            }
            for input in needs {
                let (of, at) = (&mut self.substitution, input as usize);
                if of.asleep[at] && of.users_left[at] > 0 {
                    of.users_left[at] -= 1;
                    if of.users_left[at] == 0 {
                        open.push(input);
                    }
                }
            }
        }
    }
}

/// Each of these once. Nodes have few inputs.
fn distinct(inputs: &[NodeIx]) -> impl Iterator<Item = NodeIx> + '_ {
    inputs.iter().enumerate().filter(|(at, input)| !inputs[..*at].contains(input)).map(|(_, input)| *input)
}
