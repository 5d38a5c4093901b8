//! An explanation for a terminal: trees that begin with the outputs.
//!
//! A step's first input stands below it, so that a line of steps is a list; further inputs branch off. A step that several
//! read is shown once. The walk keeps a stack of its own: a plan may be ten thousand steps deep.

use super::remarks;
use crate::answer::{degraded_lines, short_lines};
use crate::explain::{Explanation, micros, millis};
use crate::listing::Listing;
use rankd_engine::steps::Step;
use rankd_plan::plan::NodeIx;

/// Branches deeper than this are not indented further.
const INDENT_MAX: usize = 12;

impl Explanation<'_> {
    /// The plan as written, the plan as it runs and, where there was one, the run.
    pub fn to_tree(&self) -> String {
        let (plan, steps) = (self.plan, self.steps());
        let mut out = format!(
            "plan {}: {}, {}{}; scheduler {}\n\nas written\n",
            plan.name,
            counted(plan.nodes.len(), "node"),
            counted(plan.outputs.len(), "output"),
            self.named_outputs(),
            self.scheduler.name()
        );
        // Most plans have neither fallbacks nor conditions.
        let has_more = plan.nodes.iter().any(|node| node.fallback.is_some() || node.has_condition);
        let more: &[&str] = if has_more { &["fallback", "runs"] } else { &[] };
        let logs: &[&str] = if plan.logging.is_empty() { &[] } else { &["logs"] };
        let mut written = Listing::new(&[&["node", "label"], more, logs, &["at"]].concat());
        self.walk(
            |ix| &plan.node(ix).inputs,
            |ix, tree| {
                let node = plan.node(ix);
                let mut row = vec![tree, node.label.clone().unwrap_or_default()];
                if has_more {
                    row.extend([self.fallback(ix).unwrap_or_default(), self.runs(ix).unwrap_or_default().to_owned()]);
                }
                if !logs.is_empty() {
                    row.push(self.logs(ix).unwrap_or_default());
                }
                row.push(node.at().unwrap_or_default().to_owned());
                written.row(row);
            },
        );
        out.push_str(&written.render());
        for ix in self.unneeded() {
            out.push_str(&format!("{} never runs: no output needs it\n", self.title(ix)));
        }
        out.push_str(&format!("\nas it runs: {}\n", counted(steps.order.len(), "step")));
        let mut runs = Listing::new(match self.analyzed {
            Some(_) => &["step", "how", "expected", "predicted", "rows", "took", "on", ""],
            None => &["step", "how", "expected", "predicted"],
        });
        self.walk(
            |ix| &steps.step(ix).inputs,
            |ix, tree| {
                let step = steps.step(ix);
                let mut row = vec![tree, self.how(step), self.expected(step), self.predicted(step)];
                row.extend(self.analyzed.is_some().then(|| self.ran(step)).into_iter().flatten());
                runs.row(row);
            },
        );
        out.push_str(&runs.render());
        out.push_str(&self.experiments_table());
        out.push_str(&self.summary());
        out
    }

    /// Calls `line` for each step that the outputs need or may need, with its place in the tree.
    fn walk<'s>(&self, inputs: impl Fn(NodeIx) -> &'s [NodeIx], mut line: impl FnMut(NodeIx, String)) {
        let mut shown = vec![false; self.plan.nodes.len()];
        // Steps still to be shown, the next one last: its number of branches and whether it begins one.
        let mut open: Vec<(NodeIx, usize, bool)> = self.roots().into_iter().rev().map(|ix| (ix, 0, false)).collect();
        while let Some((ix, depth, branches)) = open.pop() {
            let bars = "│  ".repeat(depth.saturating_sub(usize::from(branches)).min(INDENT_MAX));
            let fork = if branches { "├─ " } else { "" };
            let seen = std::mem::replace(&mut shown[ix as usize], true);
            let again = if seen { " (as above)" } else { "" };
            line(ix, format!("{bars}{fork}{}{again}", self.title(ix)));
            if seen {
                continue;
            }
            let inputs = inputs(ix);
            open.extend(inputs.first().map(|first| (*first, depth, false)));
            open.extend(inputs.iter().skip(1).rev().map(|other| (*other, depth + 1, true)));
        }
    }

    /// Which node gives which output, where outputs have names.
    fn named_outputs(&self) -> String {
        let Some(names) = &self.plan.output_names else { return String::new() };
        let nodes = self.plan.outputs.iter().map(|node| self.name(*node));
        let named: Vec<String> = names.iter().zip(nodes).map(|(name, node)| format!("{name} {node}")).collect();
        format!(" ({})", named.join(", "))
    }

    fn how(&self, step: &Step) -> String {
        let mut how = self.ways(step).join(", ");
        if let Some((_, others)) = step.nodes.split_last().filter(|(_, others)| !others.is_empty()) {
            let others: Vec<String> = others.iter().map(|ix| self.title(*ix)).collect();
            how = format!("with {}: {how}", others.join(", "));
        }
        how
    }

    fn ran(&self, step: &Step) -> Vec<String> {
        let records: Vec<_> = step.nodes.iter().filter_map(|ix| self.record(*ix)).collect();
        let taken = step.nodes.iter().find_map(|ix| self.shortcoming(*ix));
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            return vec!["".into(), "".into(), "did not start".into(), taken.unwrap_or_default()];
        };
        let critical = last.critical.then(|| "critical".to_owned());
        let remarks: Vec<String> = critical.into_iter().chain(remarks(last)).chain(taken).collect();
        vec![
            format!("{} → {}", first.rows_in, last.rows_out),
            format!("{:.1} µs", micros(last.end_ns - last.start_ns)),
            last.on.name(),
            remarks.join(", "),
        ]
    }

    /// What came of the run.
    fn summary(&self) -> String {
        let Some(outcome) = self.analyzed else { return String::new() };
        let path: Vec<&str> = self.critical_path().into_iter().map(|ix| self.name(ix)).collect();
        let result = match &outcome.result {
            Ok(outputs) => counted(outputs.iter().map(|rows| rows.len()).sum(), "row"),
            Err(error) => error.to_string(),
        };
        let took = outcome.took.as_secs_f64() * 1e6;
        let degraded = degraded_lines(self.plan, self.degraded(), false) + &short_lines(self.plan, &outcome.short);
        format!("\n{result} after {took:.1} µs; critical path {}\n{degraded}", path.join(" → "))
    }

    /// What a step is predicted to cost; in a plan with fallbacks also how long it usually takes, and what is kept back for what follows.
    fn predicted(&self, step: &Step) -> String {
        let cost = step.cost.line();
        let cost = match cost.fixed_ns.is_finite() && !step.trivial {
            true => format!("{:.1} µs + {:.1} ns a row", cost.fixed_ns / 1e3, cost.per_row_ns),
            false => String::new(),
        };
        let Some(times) = self.usual_times(step) else { return cost };
        let [p50, p95, reserve] = [times.p50, times.p95, times.reserve].map(millis);
        let comma = if cost.is_empty() { "" } else { ", " };
        format!("{cost}{comma}usually {p50} ms, at most {p95} ms; {reserve} ms kept back")
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
