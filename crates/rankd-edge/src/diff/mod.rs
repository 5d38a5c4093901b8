//! Two plans beside each other, for the same requests: what their answers have in common, and what each costs.
//!
//! Reading order: [`lists`] (how much two lists agree), [`labels`] (how good they are, where somebody has said so), this file (what is
//! counted over all requests), `figures` (the numbers that a change is judged by), `text`, `json` and `html` (the report). Nothing here runs a plan.
//!
//! Lists are compared by id, each output by itself. A request that one of the plans failed has no lists to compare; it is counted as an error
//! of that plan.

mod figures;
mod html;
mod json;
pub mod labels;
pub mod lists;
mod text;

pub use figures::{Figure, FigureUnit};

use labels::{Labels, Qualities};
use lists::{Paired, RBO_P, RankedRow};
use rankd_column::Id;
use std::collections::BTreeMap;

/// How many of the requests that differ most are shown.
const SHOWN_MAX: usize = 10;
/// How many ids of such a request are shown that entered or left.
const SHOWN_IDS: usize = 5;
/// Bars of the picture of overlaps.
const BARS: usize = 20;
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
}

/// Everything that was counted.
pub struct PlanDiff {
    asked: Asked,
    requests: u64,
    differing: u64,
    outputs: Vec<OutputDiff>,
    sides: [SideCounts; 2],
    qualities: Qualities,
    /// The requests that differ most, the worst first.
    shown: Vec<Shown>,
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
    /// By the value of a key: rows that entered and that left.
    groups: BTreeMap<String, [u64; 2]>,
    drift: Drift,
}

/// How much the score of rows that both have differs.
#[derive(Default)]
struct Drift {
    rows: u64,
    sum: f64,
    most: f64,
}

/// A request whose answers differ.
struct Shown {
    /// Which one it was, from 0 on, and as it was sent.
    number: u64,
    request: String,
    overlap: f64,
    rbo: f64,
    /// The code of an error that only one of the plans gave, and whether that was the second.
    failed: Option<(&'static str, bool)>,
    left: Vec<Id>,
    entered: Vec<Id>,
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
            shown: Vec::new(),
        }
    }

    /// Counts both answers to a request.
    pub fn add(&mut self, user: &Id, request: &str, answers: [&Answered; 2]) {
        let number = self.requests;
        self.requests += 1;
        for (side, answer) in self.sides.iter_mut().zip(answers) {
            side.add(answer);
        }
        let mut shown = Shown {
            number,
            request: request.to_owned(),
            overlap: 1.0,
            rbo: 1.0,
            failed: None,
            left: Vec::new(),
            entered: Vec::new(),
        };
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
            if let Some(group) = &rows[at].group
                && (self.groups.len() < GROUPS_MAX || self.groups.contains_key(group))
            {
                self.groups.entry(group.clone()).or_default()[which] += 1;
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

impl Shown {
    fn fail(&mut self, code: &'static str, is_second: bool) -> bool {
        (self.overlap, self.rbo, self.failed) = (0.0, 0.0, Some((code, is_second)));
        true
    }

    /// A command that says why an item is missing from one of the plans, or where it came from.
    fn why(&self, plans: &[String; 2]) -> Option<String> {
        let (plan, id) = match (self.left.first(), self.entered.first()) {
            (Some(id), _) => (&plans[1], id),
            (None, Some(id)) => (&plans[0], id),
            (None, None) => return None,
        };
        let id = match id {
            Id::Int(id) => id.to_string(),
            Id::Text(text) => quoted(text),
        };
        Some(format!("echo {} | rankd why {} --item {id}", quoted(&self.request), quoted(plan)))
    }
}

/// A word of a shell.
fn quoted(text: &str) -> String {
    match !text.is_empty() && text.chars().all(|at| at.is_ascii_alphanumeric() || "_-./".contains(at)) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests;
