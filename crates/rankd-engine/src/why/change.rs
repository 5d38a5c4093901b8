//! One number whose change alone brings an item into the answer: a parameter of the request, a constant of an expression, or a number of a
//! node on the item's way.
//!
//! Each number that is tried is tried by a run on what the first run has read ([`super::changed_runs`]), so what is told has been seen to work. It is not
//! proven to be the smallest change. Where the node that dropped the row says by how much it was missed, that is tried; numbers inside
//! expressions are searched for ([`search`]).

use super::changed_runs::ChangedRuns;
use super::trail::{Drop, RowAt, Trail, TrailEnd, Walked, positions_of};
use crate::clock::{self, Instant};
use crate::recorded::Replay;
use crate::request::Request;
use crate::task::Lost;
use crate::tasks::Tasks;
use rankd_column::expr::{Compare, Op, Program, row};
use rankd_column::{Id, Value};
use rankd_plan::Registry;
use rankd_plan::plan::{Arg, NodeIx, Plan};
use rankd_plan::signature::ParamKind;
use std::sync::Arc;
use std::time::Duration;

/// So many runs are tried for a question.
const TRIES_MAX: usize = 64;
/// So long they may take together.
const CHANGES_TIME_MAX: Duration = Duration::from_millis(500);
/// So many rows of an item are looked at, and so many numbers of their expressions.
const TRAILS_MAX: usize = 4;
const NUMBERS_MAX: usize = 8;

/// A number that was changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub place: ChangePlace,
    pub from: Value,
    pub to: Value,
}

/// Where a number is.
#[derive(Clone, Debug, PartialEq)]
pub enum ChangePlace {
    /// A parameter of a node, such as `count`.
    Arg { node: NodeIx, param: &'static str },
    /// A constant in an expression of a node: its place in the expression's tree, and where it was written.
    Constant { node: NodeIx, param: &'static str, of: Option<usize>, ix: u32, at: Option<String> },
    /// A parameter of the request.
    Param(u32),
}

/// Why no change is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChange {
    /// A number would bring the row past the node that dropped it, and another node drops it then.
    TwoDrops,
    NotFound,
    OutOfTime,
    /// Only what the run has not read could tell.
    NotRead,
}

impl NoChange {
    pub fn name(self) -> &'static str {
        match self {
            NoChange::TwoDrops => "two_drops",
            NoChange::NotFound => "not_found",
            NoChange::OutOfTime => "out_of_time",
            NoChange::NotRead => "not_read",
        }
    }
}

/// A number as it is.
#[derive(Clone, Debug)]
struct KnownNumber {
    place: ChangePlace,
    value: Value,
    /// What it may be.
    range: (f64, f64),
}

impl KnownNumber {
    fn current(&self) -> f64 {
        number(&self.value).unwrap_or(0.0)
    }

    /// The same number with another value, if it may have that.
    fn with(&self, to: f64) -> Option<Change> {
        let to = match self.value {
            Value::Int(_) if to.fract() == 0.0 && to.abs() < 9e15 => Value::Int(to as i64),
            Value::Float(_) if to.is_finite() => Value::Float(to),
            _ => return None,
        };
        let is_allowed = number(&to).is_some_and(|to| self.range.0 <= to && to <= self.range.1);
        (is_allowed && to != self.value).then(|| Change { place: self.place.clone(), from: self.value.clone(), to })
    }
}

impl Change {
    /// By how much it differs, as a part of what it was; of 1 where it was 0.
    pub fn relative(&self) -> f64 {
        match (number(&self.from), number(&self.to)) {
            (Some(from), Some(to)) => relative(from, to),
            _ => f64::INFINITY,
        }
    }
}

fn relative(from: f64, to: f64) -> f64 {
    (to - from).abs() / if from == 0.0 { 1.0 } else { from.abs() }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::Null | Value::Bool(_) | Value::Str(_) | Value::List(_) | Value::Vector(_) => None,
    }
}

/// The number nearest to what it is now for which `other` compares with it as wanted; whole where it has to be.
fn threshold(other: f64, compare: Compare, whole: bool) -> f64 {
    match (compare, whole) {
        (Compare::Ge, true) => other.floor(),
        (Compare::Le, true) => other.ceil(),
        (Compare::Gt, true) => other.ceil() - 1.0,
        (Compare::Lt, true) => other.floor() + 1.0,
        (Compare::Ne, true) => other + 1.0,
        (Compare::Ge | Compare::Le | Compare::Eq, _) => other,
        (Compare::Gt, false) => other.next_down(),
        (Compare::Lt | Compare::Ne, false) => other.next_up(),
    }
}

/// The comparison that holds where this one does not.
fn opposite(compare: Compare) -> Compare {
    match compare {
        Compare::Eq => Compare::Ne,
        Compare::Ne => Compare::Eq,
        Compare::Lt => Compare::Ge,
        Compare::Ge => Compare::Lt,
        Compare::Gt => Compare::Le,
        Compare::Le => Compare::Gt,
    }
}

/// The same comparison with its sides exchanged.
fn mirrored(compare: Compare) -> Compare {
    match compare {
        Compare::Eq => Compare::Eq,
        Compare::Ne => Compare::Ne,
        Compare::Lt => Compare::Gt,
        Compare::Gt => Compare::Lt,
        Compare::Le => Compare::Ge,
        Compare::Ge => Compare::Le,
    }
}

/// How far a number is moved, as parts of what it is, before it is narrowed down; and how often that is halved.
const STEPS: [f64; 7] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
const HALVINGS: usize = 5;

/// The smallest move of a number for which something holds, up or down, by less than `most` parts of it. `holds` says nothing once it is not to be
/// asked any more.
fn search(current: f64, whole: bool, most: f64, mut holds: impl FnMut(f64) -> Option<bool>) -> Option<f64> {
    let unit = if current == 0.0 { 1.0 } else { current.abs() };
    let moved = |part: f64| match whole {
        true => (current + part * unit).round(),
        false => current + part * unit,
    };
    let mut tried = vec![current];
    for (at, step) in STEPS.iter().enumerate() {
        for part in [*step, -*step] {
            let to = moved(part);
            if *step >= most || tried.contains(&to) {
                continue;
            }
            tried.push(to);
            if !holds(to)? {
                continue;
            }
            // It holds here and did not one step before.
            let (mut good, mut bad) = (part, part.signum() * if at == 0 { 0.0 } else { STEPS[at - 1] });
            for _ in 0..HALVINGS {
                let half = (good + bad) / 2.0;
                if moved(half) == moved(good) || moved(half) == moved(bad) {
                    break;
                }
                match holds(moved(half)) {
                    Some(true) => good = half,
                    Some(false) => bad = half,
                    None => break,
                }
            }
            return Some(moved(good));
        }
    }
    None
}

/// Looks for changes for the items of one question.
pub(super) struct ChangeFinder<'a> {
    walked: &'a Walked<'a>,
    registry: &'a Registry,
    runs: ChangedRuns<'a>,
    tries_left: usize,
    until: Instant,
}

/// What was seen while one item's number was looked for.
#[derive(Default)]
struct Sightings {
    passed: bool,
    missing: bool,
    out_of_time: bool,
}

impl<'a> ChangeFinder<'a> {
    /// Nothing where no run can be tried. `replay` is what the run has read.
    pub(super) fn new(
        walked: &'a Walked<'a>,
        registry: &'a Registry,
        tasks: &'a Tasks,
        replay: &'a Arc<Replay>,
    ) -> Option<ChangeFinder<'a>> {
        // Where a runtime cannot be made, the question is answered without this part.
        let runs = ChangedRuns::new(tasks, registry, replay, &walked.taken).ok()?;
        Some(ChangeFinder { walked, registry, runs, tries_left: TRIES_MAX, until: clock::now() + CHANGES_TIME_MAX })
    }

    /// A change for an item whose rows were all dropped, given their ways.
    pub(super) fn find(&mut self, id: &Id, trails: &[Trail]) -> Result<Change, NoChange> {
        let dropped = trails.iter().filter_map(|trail| match &trail.end {
            TrailEnd::Dropped { by, input, why: Drop::Task(lost) } => {
                Some((trail.places.as_slice(), *by, *input, lost))
            }
            _ => None,
        });
        let dropped: Vec<_> = dropped.take(TRAILS_MAX).collect();
        let mut seen = Sightings::default();
        let mut proposed: Vec<(NodeIx, Change)> = Vec::new();
        for (places, by, input, lost) in &dropped {
            proposed.extend(self.proposals(places, (*by, *input), lost).into_iter().map(|change| (*by, change)));
        }
        // The order of the plan decides between equal ones.
        proposed.sort_by(|(_, a), (_, b)| a.relative().total_cmp(&b.relative()));
        let mut best: Option<Change> = None;
        for (by, change) in proposed {
            match self.try_change(id, by, &change, &mut seen) {
                Some(true) => {
                    best = Some(change);
                    break;
                }
                Some(false) => {}
                None => break,
            }
        }
        for (places, by, _, lost) in &dropped {
            for number in self.numbers(places, *by, lost) {
                let most = best.as_ref().map_or(f64::INFINITY, Change::relative);
                let whole = matches!(number.value, Value::Int(_));
                let found = search(number.current(), whole, most, |to| {
                    let Some(change) = number.with(to) else { return Some(false) };
                    self.try_change(id, *by, &change, &mut seen)
                });
                let change = found.and_then(|to| number.with(to));
                best = change.filter(|change| change.relative() < most).or(best);
            }
        }
        best.ok_or(match seen {
            // Then it is not known whether there is a number.
            Sightings { out_of_time: true, .. } => NoChange::OutOfTime,
            Sightings { passed: true, .. } => NoChange::TwoDrops,
            Sightings { missing: true, .. } => NoChange::NotRead,
            Sightings { .. } => NoChange::NotFound,
        })
    }

    /// Whether the item is in the answer of a run with this change; nothing where nothing may be tried any more.
    fn try_change(&mut self, id: &Id, by: NodeIx, change: &Change, seen: &mut Sightings) -> Option<bool> {
        if self.tries_left == 0 || clock::now() >= self.until {
            seen.out_of_time = true;
            return None;
        }
        self.tries_left -= 1;
        let (plan, request) = match changed(self.walked.plan, self.walked.request, self.registry, change) {
            Some(changed) => changed,
            None => return Some(false),
        };
        let Some(ran) = self.runs.run(&plan, &request, self.until) else { return Some(false) };
        seen.missing |= ran.is_missing;
        let has = |rows: &rankd_column::RowSet| positions_of(rows, id).next().is_some();
        seen.passed |= ran.calls.get(&by).and_then(|call| call.given.as_ref()).is_some_and(has);
        Some(!ran.is_missing && ran.outcome.result.is_ok_and(|outputs| outputs.iter().any(has)))
    }

    /// The changes of which the node that dropped a row says that they are just enough.
    fn proposals(&self, places: &[RowAt], (by, input): (NodeIx, usize), lost: &Lost) -> Vec<Change> {
        let position = places.last().map_or(0, |at| at.position);
        let Some(rows) = self.walked.call(by).and_then(|call| call.inputs.get(input)) else { return Vec::new() };
        let more = |param: &str, by_how_many: usize| {
            let number = self.arg(by, param)?;
            number.with(number.current() + by_how_many as f64)
        };
        match lost {
            Lost::Cut(kept) if position >= kept.end => more("count", position + 1 - kept.end).into_iter().collect(),
            Lost::Cut(_) => {
                self.arg(by, "offset").and_then(|offset| offset.with(position as f64)).into_iter().collect()
            }
            Lost::Full { by: key, max, .. } => {
                let value = rows.value(*key, position);
                let before = (0..position).filter(|at| rows.value(*key, *at) == value).count();
                let steps = (0..4).map(|step| 1 << step).chain([(before + 1).saturating_sub(*max)]);
                let mut steps: Vec<usize> = steps.filter(|step| *step > 0 && step + max <= before + 1).collect();
                steps.sort_unstable();
                steps.dedup();
                steps.into_iter().filter_map(|step| more("max", step)).collect()
            }
            Lost::Enough(_) => [1, 2, 4, 8, 16].into_iter().filter_map(|step| more("count", step)).collect(),
            Lost::Predicate(program) => self.of_predicate(program, (rows, position), by),
            Lost::Unsaid
            | Lost::Same(_)
            | Lost::Named { .. }
            | Lost::NotNamed { .. }
            | Lost::NoMatch { .. }
            | Lost::Served
            | Lost::Chance(_)
            | Lost::NoPlace => Vec::new(),
        }
    }

    /// The numbers that comparisons which make a predicate false would need.
    fn of_predicate(
        &self,
        program: &Arc<Program>,
        (rows, position): (&rankd_column::RowSet, usize),
        by: NodeIx,
    ) -> Vec<Change> {
        let Ok(values) = row::values(program, rows, position, self.walked.request.values()) else { return Vec::new() };
        let (tree, mut found) = (program.tree(), Vec::new());
        for ix in row::culprits(tree, &values) {
            let Op::Compare(compare, a, b) = *tree.op(ix) else { continue };
            let wanted = match &values[ix as usize] {
                Some(Value::Bool(true)) => opposite(compare),
                _ => compare,
            };
            for (side, other, wanted) in [(b, a, wanted), (a, b, mirrored(wanted))] {
                let Some(other) = values[other as usize].as_ref().and_then(number) else { continue };
                let Some(number) = self.of_tree(by, program, side) else { continue };
                let whole = matches!(number.value, Value::Int(_));
                found.extend(number.with(threshold(other, wanted, whole)));
            }
        }
        found
    }

    /// The numbers of expressions that have to do with why a row was dropped, each once.
    fn numbers(&self, places: &[RowAt], by: NodeIx, lost: &Lost) -> Vec<KnownNumber> {
        let mut numbers: Vec<KnownNumber> = Vec::new();
        let mut add = |node: NodeIx, program: &Arc<Program>| {
            for ix in 0..program.tree().nodes().len() as u32 {
                let number = self.of_tree(node, program, ix);
                numbers.extend(number.filter(|new| !numbers.iter().any(|known| known.place == new.place)));
            }
        };
        match lost {
            Lost::Predicate(program) => add(by, program),
            Lost::Cut(_) | Lost::Enough(_) | Lost::NoPlace => {
                for at in places.iter().skip(1) {
                    for arg in &self.walked.node(at.node).args {
                        match arg {
                            Arg::Expr(program) => add(at.node, program),
                            Arg::Exprs(list) => list.iter().for_each(|(_, program)| add(at.node, program)),
                            _ => {}
                        }
                    }
                }
            }
            Lost::Unsaid
            | Lost::Same(_)
            | Lost::Full { .. }
            | Lost::Named { .. }
            | Lost::NotNamed { .. }
            | Lost::NoMatch { .. }
            | Lost::Served
            | Lost::Chance(_) => {}
        }
        numbers.truncate(NUMBERS_MAX);
        numbers
    }

    /// A number of a node, as the run had it.
    fn arg(&self, node: NodeIx, name: &str) -> Option<KnownNumber> {
        let of_plan = self.walked.node(node);
        let params = of_plan.signature.contract.params.iter().zip(&of_plan.args);
        let (param, arg) = params.into_iter().find(|(param, _)| param.name == name)?;
        let value = match arg {
            Arg::Int(value) => *value,
            Arg::Dial(dial) => dial.at(&self.walked.request.dials),
            _ => return None,
        };
        let range = match param.kind {
            ParamKind::Int { min, max } | ParamKind::Dial { min, max } => (min as f64, max as f64),
            _ => return None,
        };
        Some(KnownNumber { place: ChangePlace::Arg { node, param: param.name }, value: Value::Int(value), range })
    }

    /// A constant or a parameter of the request, where it is a number.
    fn of_tree(&self, node: NodeIx, program: &Arc<Program>, ix: u32) -> Option<KnownNumber> {
        let everything = (f64::MIN, f64::MAX);
        match program.tree().op(ix) {
            Op::Const(value @ (Value::Int(_) | Value::Float(_))) if !is_default(program, ix) => {
                let (param, of) = self.place_of(node, program)?;
                let at = program.source(ix).and_then(|at| self.walked.plan.sources.span(at)).map(|span| span.at());
                let place = ChangePlace::Constant { node, param, of, ix, at };
                Some(KnownNumber { place, value: value.clone(), range: everything })
            }
            Op::Param(param) => {
                let value = self.walked.request.params.get(*param as usize)?.clone();
                number(&value)?;
                Some(KnownNumber { place: ChangePlace::Param(*param), value, range: everything })
            }
            _ => None,
        }
    }

    /// The parameter of a node that a program is, and which of several.
    fn place_of(&self, node: NodeIx, program: &Arc<Program>) -> Option<(&'static str, Option<usize>)> {
        let of_plan = self.walked.node(node);
        of_plan.signature.contract.params.iter().zip(&of_plan.args).find_map(|(param, arg)| match arg {
            Arg::Expr(own) | Arg::Pred(own) if Arc::ptr_eq(own, program) => Some((param.name, None)),
            Arg::Exprs(list) => {
                let of = list.iter().position(|(_, own)| Arc::ptr_eq(own, program))?;
                Some((param.name, Some(of)))
            }
            _ => None,
        })
    }
}

/// Whether a constant is the default of the key that an expression is written to, which the checks have put behind it.
fn is_default(program: &Program, ix: u32) -> bool {
    let nodes = program.tree().nodes();
    let is_last = ix as usize + 2 == nodes.len();
    is_last
        && nodes.last().is_some_and(|root| {
            matches!(root.op, Op::Coalesce(_, b) if b == ix) && root.source == nodes[ix as usize].source
        })
}

/// The plan and the request with one number changed.
pub(super) fn changed(plan: &Plan, request: &Request, registry: &Registry, change: &Change) -> Option<(Plan, Request)> {
    let (mut plan, mut request) = (plan.clone(), request.clone());
    match &change.place {
        ChangePlace::Param(param) => *request.params.get_mut(*param as usize)? = change.to.clone(),
        ChangePlace::Arg { node, param } => {
            let Value::Int(to) = change.to else { return None };
            *arg_of(&mut plan, *node, param)? = Arg::Int(to);
        }
        ChangePlace::Constant { node, param, of, ix, .. } => {
            let with = |program: &Program| program.with_number(*ix, change.to.clone(), registry).map(Arc::new);
            match (arg_of(&mut plan, *node, param)?, of) {
                (Arg::Expr(program) | Arg::Pred(program), None) => *program = with(program)?,
                (Arg::Exprs(list), Some(of)) => {
                    let (_, program) = list.get_mut(*of)?;
                    *program = with(program)?;
                }
                _ => return None,
            }
        }
    }
    Some((plan, request))
}

fn arg_of<'p>(plan: &'p mut Plan, node: NodeIx, name: &str) -> Option<&'p mut Arg> {
    let node = plan.nodes.get_mut(node as usize)?;
    let at = node.signature.contract.params.iter().position(|param| param.name == name)?;
    node.args.get_mut(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_the_nearest_number_that_compares_as_wanted() {
        for (other, compare, whole, wanted) in [
            (3.0, Compare::Ge, true, 3.0),
            (3.0, Compare::Gt, true, 2.0),
            (3.0, Compare::Lt, true, 4.0),
            (2.5, Compare::Ge, true, 2.0),
            (2.5, Compare::Le, true, 3.0),
            (2.5, Compare::Gt, true, 2.0),
            (2.5, Compare::Le, false, 2.5),
            (2.5, Compare::Eq, false, 2.5),
        ] {
            assert_eq!(threshold(other, compare, whole), wanted, "{other} {compare:?} {whole}");
        }
        assert!(threshold(2.5, Compare::Gt, false) < 2.5 && threshold(2.5, Compare::Lt, false) > 2.5);
        for compare in Compare::ALL {
            assert_eq!((opposite(opposite(compare)), mirrored(mirrored(compare))), (compare, compare));
        }
    }

    #[test]
    fn a_search_finds_the_nearer_side_and_narrows_it_down() {
        let found = search(10.0, false, f64::INFINITY, |to| Some(to >= 12.0));
        assert!(found.is_some_and(|to| (12.0..12.2).contains(&to)), "{found:?}");
        let found = search(10.0, false, f64::INFINITY, |to| Some(to <= 9.0 || to >= 20.0));
        assert!(found.is_some_and(|to| (8.9..=9.0).contains(&to)), "{found:?}");
        assert_eq!(search(10.0, true, f64::INFINITY, |to| Some(to >= 12.0)), Some(12.0));
        assert_eq!(search(0.0, true, f64::INFINITY, |to| Some(to >= 2.0)), Some(2.0));
        assert_eq!(search(10.0, true, 0.1, |to| Some(to >= 12.0)), None, "another change is smaller");
        assert_eq!(search(10.0, true, f64::INFINITY, |_| None), None);
        let mut asked = 0;
        assert_eq!(
            search(1.0, false, f64::INFINITY, |_| {
                asked += 1;
                Some(false)
            }),
            None
        );
        assert_eq!(asked, 2 * STEPS.len());
    }
}
