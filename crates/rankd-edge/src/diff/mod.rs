//! Two plans beside each other, for the same requests: what their answers have in common, and what each costs.
//!
//! Reading order: [`lists`] (how much two lists agree), [`labels`] (how good they are, where somebody has said so), this file (what is
//! counted over all requests), `worst` (the requests that differ most), `figures` (the numbers that a change is judged by), `text`, `json` and `html` (the
//! report). Nothing here runs a plan.
//!
//! Lists are compared by id, each output by itself. A request that one of the plans failed has no lists to compare; it is counted as an error
//! of that plan.

mod figures;
mod html;
mod json;
pub mod labels;
pub mod lists;
mod text;
mod worst;

pub use figures::{Figure, FigureUnit};

use labels::{Labels, Qualities};
use lists::{Paired, RBO_P, RankedRow};
use rankd_column::Id;
use std::collections::BTreeMap;
use worst::{SHOWN_IDS, SHOWN_MAX, Shown};

/// Bars of the picture of overlaps.
const BARS: usize = 20;
/// How many reasons for which requests are not compared are counted by themselves, and what the others are called.
const REASONS_MAX: usize = 100;
const OTHER_REASONS: &str = "other reasons";
/// How many groups are counted by themselves.
const GROUPS_MAX: usize = 1_000;

/// One plan's answer to one request.
pub struct Answered {
    /// The rows of each output, or the code of the error.
    pub outputs: Result<Vec<Vec<RankedRow>>, &'static str>,
    /// Whether a fallback was taken.
    pub is_degraded: bool,
}

/// What is the same for all requests.
pub struct Asked {
    /// What the two plans are called: as a command takes them.
    pub plans: [String; 2],
    /// How far down lists are compared.
    pub k: usize,
    /// What outputs are called, of whichever plan has more.
    pub outputs: Vec<String>,
    /// The key whose values drift, and the key that rows are grouped by.
    pub score: Option<String>,
    /// The key that rows which entered or left are grouped by.
    pub group: Option<String>,
    /// What items are worth, where that is known.
    pub labels: Option<Labels>,
    /// Where the requests were captured: the files, as a command takes them. Nothing where plans read from stores.
    pub captures: Option<Vec<String>>,
}

/// A request that both plans were asked.
#[derive(Clone, Copy, Debug)]
pub struct ComparedRequest<'a> {
    /// Whom it was for.
    pub user: &'a Id,
    /// As it was sent.
    pub text: &'a str,
    /// Its id, where it was captured.
    pub captured_id: Option<&'a str>,
}

/// Why a captured request is not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCompared {
    /// Plans read what was not captured: by plan.
    Missing([bool; 2]),
    /// It does not fit the registry of today, or the like.
    NotComparable(String),
    /// It was captured for another plan.
    OtherPlan,
}

/// Everything that was counted.
pub struct PlanDiff {
    asked: Asked,
    requests: u64,
    differing: u64,
    outputs: Vec<OutputDiff>,
    sides: [SideCounts; 2],
    qualities: Qualities,
    left_out: NotComparedCounts,
    /// The requests that differ most, the worst first.
    shown: Vec<Shown>,
}

/// The captured requests that were not compared.
#[derive(Default)]
struct NotComparedCounts {
    /// By plan: those for which it read what was not captured; and how many there are in all.
    missing: [u64; 2],
    missing_any: u64,
    /// By the reason.
    not_comparable: BTreeMap<String, u64>,
    other_plan: u64,
}

/// What one plan did.
#[derive(Default)]
struct SideCounts {
    rows: u64,
    /// By code.
    errors: BTreeMap<&'static str, u64>,
    degraded: u64,
    cost: Cost,
}

/// What some requests cost a plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// How many requests.
    pub requests: u64,
    /// Processor time of the whole process meanwhile.
    pub cpu_seconds: f64,
    /// Commands to stores.
    pub commands: u64,
}

/// How one output of the plans agrees.
#[derive(Default)]
struct OutputDiff {
    /// Requests that both answered.
    requests: u64,
    overlap: f64,
    rbo: f64,
    /// How far rows moved on average, and in how many requests there was a row that both have.
    displacement: f64,
    with_kept: u64,
    /// By overlap, from none to all.
    bars: [u64; BARS + 1],
    entered: u64,
    left: u64,
    /// By the value of a key, and by the node that brought them in.
    groups: RowGroups,
    sources: RowGroups,
    drift: Drift,
}

/// Rows that entered and that left, by what they have in common.
type RowGroups = BTreeMap<String, [u64; 2]>;

/// How much the score of rows that both have differs.
#[derive(Default)]
struct Drift {
    rows: u64,
    sum: f64,
    most: f64,
}

impl PlanDiff {
    /// Nothing is counted yet.
    pub fn new(asked: Asked) -> PlanDiff {
        let outputs = asked.outputs.iter().map(|_| OutputDiff::default()).collect();
        PlanDiff {
            asked,
            requests: 0,
            differing: 0,
            outputs,
            sides: Default::default(),
            qualities: Qualities::default(),
            left_out: NotComparedCounts::default(),
            shown: Vec::new(),
        }
    }

    /// Counts both answers to a request.
    pub fn add(&mut self, request: ComparedRequest<'_>, answers: [&Answered; 2]) {
        let (user, number) = (request.user, self.requests);
        self.requests += 1;
        for (side, answer) in self.sides.iter_mut().zip(answers) {
            side.add(answer);
        }
        let mut shown = Shown::new(number, request);
        let differs = match (&answers[0].outputs, &answers[1].outputs) {
            (Err(a), Err(b)) => a != b,
            (Err(code), Ok(_)) => shown.fail(code, false),
            (Ok(_), Err(code)) => shown.fail(code, true),
            (Ok(a), Ok(b)) => {
                let (none, k) = (Vec::new(), self.asked.k);
                let mut differs = false;
                for (at, output) in self.outputs.iter_mut().enumerate() {
                    let (a, b) = (a.get(at).unwrap_or(&none), b.get(at).unwrap_or(&none));
                    differs |= output.add((a, b), k, &mut shown);
                }
                if let Some(labels) = &self.asked.labels {
                    let quality = |rows: &Vec<Vec<RankedRow>>| labels.quality(user, rows.first().unwrap_or(&none), k);
                    self.qualities.add(user, quality(a).zip(quality(b)).map(|(a, b)| [a, b]));
                }
                differs
            }
        };
        if differs {
            self.differing += 1;
            // Of equal ones the first stays.
            let after = self.shown.partition_point(|other| (other.overlap, other.rbo) <= (shown.overlap, shown.rbo));
            self.shown.insert(after, shown);
            self.shown.truncate(SHOWN_MAX);
        }
    }

    /// Counts a captured request that is not compared.
    pub fn leave_out(&mut self, why: NotCompared) {
        let counts = &mut self.left_out;
        match why {
            NotCompared::Missing(of) => {
                counts.missing.iter_mut().zip(of).for_each(|(count, is_missing)| *count += u64::from(is_missing));
                counts.missing_any += 1;
            }
            NotCompared::NotComparable(why) => {
                let is_told = counts.not_comparable.len() < REASONS_MAX || counts.not_comparable.contains_key(&why);
                let why = if is_told { why } else { OTHER_REASONS.to_owned() };
                *counts.not_comparable.entry(why).or_default() += 1;
            }
            NotCompared::OtherPlan => counts.other_plan += 1,
        }
    }

    /// What is to be said about captured requests that were not compared.
    fn left_out_lines(&self) -> Vec<String> {
        let NotComparedCounts { missing, not_comparable, other_plan, .. } = &self.left_out;
        let missing = missing.iter().zip(&self.asked.plans).filter(|(count, _)| **count > 0);
        let missing = missing
            .map(|(count, plan)| format!("left out: {count} requests, because {plan} reads what was not captured"));
        let not = not_comparable.iter().map(|(why, count)| format!("left out: {count} requests: {why}"));
        let other = (*other_plan > 0).then(|| format!("passed over: {other_plan} requests, captured for other plans"));
        missing.chain(not).chain(other).collect()
    }

    /// Adds what some requests cost one of the plans.
    pub fn add_cost(&mut self, side: usize, more: Cost) {
        if let Some(SideCounts { cost, .. }) = self.sides.get_mut(side) {
            cost.requests += more.requests;
            cost.cpu_seconds += more.cpu_seconds;
            cost.commands += more.commands;
        }
    }
}

impl SideCounts {
    fn add(&mut self, answer: &Answered) {
        match &answer.outputs {
            Ok(outputs) => self.rows += outputs.iter().map(|rows| rows.len() as u64).sum::<u64>(),
            Err(code) => *self.errors.entry(code).or_default() += 1,
        }
        self.degraded += u64::from(answer.is_degraded);
    }

    fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

impl OutputDiff {
    /// Whether the lists differ.
    fn add(&mut self, (a, b): (&[RankedRow], &[RankedRow]), k: usize, shown: &mut Shown) -> bool {
        let paired = Paired::new(a, b);
        let (overlap, rbo) = (paired.overlap(k), paired.rbo(RBO_P));
        self.requests += 1;
        self.overlap += overlap;
        self.rbo += rbo;
        // An overlap is from 0 to 1.
        self.bars[((overlap * BARS as f64) as usize).min(BARS)] += 1;
        if let Some(displacement) = paired.displacement() {
            self.displacement += displacement;
            self.with_kept += 1;
        }
        for (rows, at, which) in paired.entered().map(|at| (b, at, 0)).chain(paired.left().map(|at| (a, at, 1))) {
            *[&mut self.entered, &mut self.left][which] += 1;
            let RankedRow { group, source, .. } = &rows[at];
            for (groups, group) in [(&mut self.groups, group), (&mut self.sources, source)] {
                if let Some(group) = group.as_ref().filter(|of| groups.len() < GROUPS_MAX || groups.contains_key(*of)) {
                    groups.entry(group.clone()).or_default()[which] += 1;
                }
            }
        }
        for (at_a, at_b) in paired.kept() {
            if let (Some(a), Some(b)) = (a[at_a].score, b[at_b].score) {
                let drift = (b - a).abs();
                self.drift.rows += 1;
                self.drift.sum += drift;
                self.drift.most = self.drift.most.max(drift);
            }
        }
        let differs = !paired.is_same();
        // Of several outputs, the one that differs most.
        if differs && (overlap, rbo) <= (shown.overlap, shown.rbo) {
            (shown.overlap, shown.rbo) = (overlap, rbo);
            let ids = |rows: &[RankedRow], at: &mut dyn Iterator<Item = usize>| {
                at.take(SHOWN_IDS).map(|at| rows[at].id.clone()).collect()
            };
            shown.left = ids(a, &mut paired.left());
            shown.entered = ids(b, &mut paired.entered());
        }
        differs
    }
}

#[cfg(test)]
mod tests;
