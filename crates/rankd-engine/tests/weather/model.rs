//! What must come of a run, by the script and by which nodes fell back; and the checks that hold a run to it.

use crate::Counts;
use crate::script::{NodeScript, Script, StandIn};
use crate::tasks::{self, Fate};
use rankd_column::{Cells, Column, Key, RowSet};
use rankd_engine::degraded::{Degraded, Reason};
use rankd_engine::trace::{End, NodeTrace, Trace};
use rankd_engine::{ErrorKind, Outcome, RunError};
use std::sync::Arc;

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
        let values: Vec<_> = (0..rows.len()).map(|at| rows.value(Key(1), at)).collect();
        text += &format!("{:?}{values:?}", rows.ids().collect::<Vec<i64>>());
    }
    text
}

/// By node: no output needs it, and what needs it asks for it or is such a node itself.
fn feeds_reserves(script: &Script) -> Vec<bool> {
    let count = script.nodes.len();
    let mut is_eager = vec![false; count];
    let mut open: Vec<usize> = script.linked.outputs.iter().map(|output| *output as usize).collect();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut is_eager[at], true) {
            open.extend(&script.nodes[at].inputs);
        }
    }
    let mut feeds: Vec<bool> = is_eager.iter().map(|is_eager| !is_eager).collect();
    // Nodes come after all that they name.
    for at in (0..count).rev().filter(|at| script.linked.nodes[*at].needed) {
        let node = &script.nodes[at];
        let others = [node.fallback, node.when.map(|when| when.otherwise.unwrap_or(StandIn::Nothing))];
        let others = others.into_iter().filter_map(|of| match of {
            Some(StandIn::Node(other)) => Some(other),
            Some(StandIn::Nothing | StandIn::Input) | None => None,
        });
        if !feeds[at] {
            node.inputs.iter().copied().chain(others).for_each(|of| feeds[of] = false);
        }
    }
    feeds
}

pub(crate) struct Model<'a> {
    script: &'a Script,
    number: usize,
    outcome: &'a Outcome,
    /// By node: whether its condition does not hold, and how it fell back.
    skipped: Vec<bool>,
    degraded: Vec<Option<&'a Degraded>>,
    /// By node: whether it is there for nodes that ask, and for nothing else.
    feeds_reserves: Vec<bool>,
}

/// What a model knows of a node once it was asked for it.
#[derive(Clone, Default)]
struct Needed {
    rows: Vec<Option<RowSet>>,
    /// Asked for by a node that then fell back: it is not known how far that had come.
    perhaps: Vec<bool>,
    /// What they are made of was struck.
    hollow: Vec<bool>,
    /// How many nodes it has asked.
    asked: Vec<usize>,
    /// Those that have too few rows, with how many they have.
    short: Vec<(usize, usize)>,
}

impl<'a> Model<'a> {
    pub(crate) fn new(script: &'a Script, number: usize, outcome: &'a Outcome) -> Model<'a> {
        let skipped = script.nodes.iter().map(|node| node.when.is_some_and(|when| !when.holds(number))).collect();
        let mut degraded = vec![None; script.nodes.len()];
        outcome.degraded.iter().for_each(|entry| degraded[entry.node as usize] = Some(entry));
        Model { script, number, outcome, skipped, degraded, feeds_reserves: feeds_reserves(script) }
    }

    fn node(&self, at: usize) -> &NodeScript {
        &self.script.nodes[at]
    }

    fn trace(&self) -> Result<&Trace, String> {
        self.outcome.trace.as_ref().ok_or_else(|| "no trace".to_owned())
    }

    fn record(&self, at: usize) -> Option<&NodeTrace> {
        self.outcome.trace.as_ref()?.nodes.iter().find(|record| record.node as usize == at)
    }

    /// What a node gives its readers. Nodes come after all that they name, so this ends.
    fn rows(&self, at: usize, needed: &mut Needed) -> RowSet {
        if let Some(rows) = &needed.rows[at] {
            return rows.clone();
        }
        let node = self.node(at);
        let stands_in = |of: StandIn, needed: &mut Needed| match of {
            StandIn::Nothing => {
                let column = Column::Int(Cells::full(Vec::new()));
                RowSet::empty().with(Key(1), Arc::new(column))
            }
            StandIn::Input => self.rows(node.inputs[0], needed),
            StandIn::Node(other) => self.rows(other, needed),
        };
        let default = if node.inputs.is_empty() { StandIn::Nothing } else { StandIn::Input };
        let rows = match (self.skipped[at], node.when, self.degraded[at], node.fallback) {
            (true, Some(when), _, _) => stands_in(when.otherwise.unwrap_or(default), needed),
            (_, _, Some(_), None) if self.feeds_reserves[at] => {
                node.inputs.iter().for_each(|input| drop(self.rows(*input, needed)));
                self.perhaps_asked(node, needed);
                needed.hollow[at] = true;
                stands_in(StandIn::Nothing, needed)
            }
            (_, _, Some(_), Some(fallback)) => {
                // It ran, or was about to: its inputs did.
                node.inputs.iter().for_each(|input| drop(self.rows(*input, needed)));
                self.perhaps_asked(node, needed);
                stands_in(fallback, needed)
            }
            _ => {
                let mut inputs: Vec<RowSet> = node.inputs.iter().map(|input| self.rows(*input, needed)).collect();
                if self.feeds_reserves[at] && node.inputs.iter().any(|input| needed.hollow[*input]) {
                    needed.hollow[at] = true;
                    stands_in(StandIn::Nothing, needed)
                } else {
                    let mut rows = tasks::rows(at, &inputs);
                    if !node.reserves.is_empty() {
                        for reserve in &node.reserves {
                            if rows.len() >= node.wanted {
                                break;
                            }
                            inputs.push(self.rows(*reserve, needed));
                            needed.asked[at] += 1;
                            rows = tasks::rows(at, &inputs);
                        }
                        if rows.len() < node.wanted {
                            needed.short.push((at, rows.len()));
                        }
                    }
                    rows
                }
            }
        };
        needed.rows[at] = Some(rows.clone());
        rows
    }

    /// A node that fell back may have asked for any number of its reserves before.
    fn perhaps_asked(&self, node: &NodeScript, needed: &mut Needed) {
        let mut with_reserves = needed.clone();
        node.reserves.iter().for_each(|reserve| drop(self.rows(*reserve, &mut with_reserves)));
        for (at, rows) in with_reserves.rows.iter().enumerate().filter(|(at, _)| needed.rows[*at].is_none()) {
            with_reserves.perhaps[at] |= rows.is_some();
        }
        // Others may ask for them for certain.
        with_reserves.short.clone_from(&needed.short);
        *needed = with_reserves;
    }

    pub(crate) fn check(&self, counts: &mut Counts) -> Result<(), String> {
        let mut count = |what: &str| *counts.entry(what.to_owned()).or_default() += 1;
        let run = &self.script.runs[self.number];
        if run.strict {
            count("strict");
            ensure!(self.outcome.degraded.is_empty(), "a strict run fell back");
        }
        if let Some(deadline) = run.deadline {
            ensure!(self.outcome.took <= deadline, "the answer left after the deadline");
        }
        let nodes = self.script.nodes.len();
        let (rows, hollow, perhaps, asked) =
            (vec![None; nodes], vec![false; nodes], vec![false; nodes], vec![0; nodes]);
        let mut needed = Needed { rows, perhaps, hollow, asked, short: Vec::new() };
        let linked = &self.script.linked;
        let rows: Vec<RowSet> = linked.outputs.iter().map(|output| self.rows(*output as usize, &mut needed)).collect();
        self.entries(&mut count)?;
        self.starts(&needed, &mut count)?;
        self.mistakes()?;
        match &self.outcome.result {
            Ok(given) => {
                count("rows");
                let (given, expected) = (cells(given), cells(&rows));
                ensure!(given == expected, "other rows than the plan says:\n{given}\n{expected}");
                self.all_that_is_needed_ran(&needed)?;
                self.short(&mut needed, &mut count)?;
                let nothing = self.outcome.degraded.first().filter(|_| rows.iter().all(RowSet::is_empty));
                ensure!(nothing.is_none(), "an answer without rows, and something is missing");
            }
            Err(error) => {
                count(error.code.id);
                self.error(error, &mut count)?;
            }
        }
        Ok(())
    }

    /// Every entry of `degraded` is of a node that has a fallback and was struck by weather, once, in order of time.
    fn entries(&self, count: &mut impl FnMut(&str)) -> Result<(), String> {
        let degraded = &self.outcome.degraded;
        ensure!(degraded.is_sorted_by_key(|entry| entry.after), "not in order of time");
        ensure!(degraded.iter().all(|entry| entry.after <= self.outcome.took), "after the answer");
        for (place, entry) in degraded.iter().enumerate() {
            let at = entry.node as usize;
            ensure!(degraded[..place].iter().all(|other| other.node != entry.node), "n{at} fell back twice");
            ensure!(!self.skipped[at], "n{at} was skipped and fell back");
            ensure!(self.can_fall_back(at), "n{at} has no fallback");
            count(match self.node(at).fallback {
                None => "reserve struck",
                Some(StandIn::Nothing) => "fallback none",
                Some(StandIn::Input) => "fallback input",
                Some(StandIn::Node(_)) => "fallback node",
            });
            count(&format!("degraded {}", entry.reason.name()));
            if entry.code.is_some_and(|code| code.id == "E304") && entry.reason == Reason::Timeout {
                count("cut at a learned limit");
            }
            let (record, fate) = (self.record(at), self.node(at).fate);
            let failed = record.is_some_and(|record| record.end == End::Failed);
            match entry.reason {
                Reason::Upstream => {
                    ensure!(
                        failed && fate == Fate::Upstream && self.node(at).reads,
                        "n{at} was not struck: {record:?}"
                    );
                }
                Reason::Timeout => ensure!(failed, "n{at} was not cut: {record:?}"),
                Reason::NoTime => ensure!(record.is_none(), "n{at} did start"),
            }
        }
        Ok(())
    }

    /// A node starts once, after all its inputs have rows; a lazy one, or one behind a skipped one, only when it is needed.
    fn starts(&self, needed: &Needed, count: &mut impl FnMut(&str)) -> Result<(), String> {
        let mut started = vec![false; self.script.nodes.len()];
        for record in &self.trace()?.nodes {
            let at = record.node as usize;
            ensure!(!std::mem::replace(&mut started[at], true), "n{at} started twice");
            ensure!(needed.rows[at].is_some(), "n{at} started, and nothing needed it");
            if record.end == End::Skipped {
                ensure!(self.skipped[at], "the condition of n{at} holds");
                count("skipped");
                continue;
            }
            ensure!(!self.skipped[at], "n{at} started, and its condition does not hold");
            ensure!(
                !needed.hollow[at] || self.degraded[at].is_some(),
                "n{at} started, and there was nothing to make it of"
            );
            let asked = self.node(at).reserves.iter().take(needed.asked[at]);
            let inputs = self.node(at).inputs.iter().chain(asked);
            let rows_in = inputs.filter_map(|input| needed.rows[*input].as_ref()).map(RowSet::len);
            // What was given to the next of a chain that was abandoned is not known, nor how far a node had come that asks.
            let has_ended = self.outcome.result.is_ok() && self.degraded[at].is_none();
            let is_whole = has_ended || self.node(at).reserves.is_empty();
            let known = is_whole && (record.end != End::Abandoned || record.chained_after.is_none());
            ensure!(
                !known || record.rows_in as usize == rows_in.sum::<usize>(),
                "n{at} was given other rows: {record:?}"
            );
        }
        for (at, node) in self.script.linked.nodes.iter().enumerate() {
            match (node.lazy, started[at], node.needed) {
                (true, true, _) => count("lazy woken"),
                (true, false, _) => count("lazy asleep"),
                (false, false, true) if needed.rows[at].is_none() => count("not run for a skipped node"),
                _ => {}
            }
        }
        Ok(())
    }

    /// No fallback covers a mistake: whoever made one ends the run.
    fn mistakes(&self) -> Result<(), String> {
        for record in self.trace()?.nodes.iter().filter(|record| record.end == End::Failed) {
            let node = self.node(record.node as usize);
            let is_mistake = match node.fate {
                Fate::Fails | Fate::WrongType | Fate::Panics | Fate::PanicsAtOnce => true,
                Fate::Upstream => !node.reads,
                Fate::Well | Fate::Brittle => false,
            };
            let covered = self.degraded[record.node as usize].is_some_and(|entry| entry.reason != Reason::Timeout);
            ensure!(!(is_mistake && covered), "the mistake of n{} was covered", record.node);
            ensure!(
                !is_mistake || covered || self.outcome.result.is_err() || self.degraded[record.node as usize].is_some(),
                "the mistake of n{} was passed over",
                record.node
            );
        }
        Ok(())
    }

    fn can_fall_back(&self, at: usize) -> bool {
        self.node(at).fallback.is_some() || self.feeds_reserves[at]
    }

    /// The answer names the nodes that have too few rows, and no others.
    fn short(&self, needed: &mut Needed, count: &mut impl FnMut(&str)) -> Result<(), String> {
        let mut found: Vec<(usize, usize)> =
            self.outcome.short.iter().map(|short| (short.node as usize, short.got)).collect();
        found.retain(|(at, _)| !needed.perhaps[*at]);
        needed.short.retain(|(at, _)| !needed.perhaps[*at]);
        found.sort_unstable();
        needed.short.sort_unstable();
        ensure!(found == needed.short, "short are {found:?}, not {:?}", needed.short);
        for (at, node) in self.script.nodes.iter().enumerate().filter(|(at, _)| needed.rows[*at].is_some()) {
            match (node.reserves.len(), needed.asked[at]) {
                (0, _) => {}
                (_, 0) => count("none asked"),
                (all, asked) if asked < all => count("some asked"),
                _ => count("all asked"),
            }
        }
        found.iter().for_each(|_| count("short"));
        Ok(())
    }

    fn all_that_is_needed_ran(&self, needed: &Needed) -> Result<(), String> {
        for at in (0..self.script.nodes.len()).filter(|at| needed.rows[*at].is_some() && !needed.perhaps[*at]) {
            let not_started = self.degraded[at].is_some_and(|entry| entry.reason == Reason::NoTime);
            let end = self.record(at).map(|record| record.end);
            let ended = match (self.skipped[at], self.degraded[at].is_some()) {
                (false, false) if needed.hollow[at] => end.is_none(),
                (true, _) => end.is_none_or(|end| end == End::Skipped),
                (false, true) => not_started || end == Some(End::Failed),
                (false, false) => end == Some(End::Done),
            };
            ensure!(ended, "n{at} is needed and is {end:?}");
        }
        Ok(())
    }

    /// An error names a node that failed and could not fall back, or is that for which the first fallback was taken.
    fn error(&self, error: &RunError, count: &mut impl FnMut(&str)) -> Result<(), String> {
        let named = error.node.as_ref().and_then(|node| node.id.strip_prefix('n')?.parse::<usize>().ok());
        if error.code.id == "E301" || error.code.id == "E303" {
            return Ok(());
        }
        let Some(at) = named else { return Err(format!("{error} names no node")) };
        let covers = match error.code.kind {
            ErrorKind::Upstream => error.code.id != "E402",
            kind => kind == ErrorKind::Timeout,
        };
        let can_fall_back = covers && self.can_fall_back(at) && !self.script.runs[self.number].strict;
        if !can_fall_back {
            return Ok(());
        }
        ensure!(self.degraded[at].is_some(), "{error}, but n{at} has a fallback, which was not taken");
        if error.message.contains("its fallback, node ") {
            count("fallback failed");
        } else {
            count("nothing left");
            let first = self.outcome.degraded.first().map(|entry| entry.node as usize);
            ensure!(first == Some(at), "{error} was not the first");
        }
        Ok(())
    }
}
