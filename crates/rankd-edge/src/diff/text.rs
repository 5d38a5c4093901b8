//! The report for a terminal.

use super::labels::QUALITIES;
use super::{BARS, PlanDiff, RowGroups};
use crate::answer::shown_text;
use crate::listing::Listing;

/// How many groups are listed.
const GROUPS_SHOWN: usize = 20;
/// How wide the longest bar is.
const BAR_WIDTH: u64 = 40;

impl PlanDiff {
    /// All of it, as lines of text.
    pub fn to_text(&self) -> String {
        let [a, b] = &self.asked.plans;
        let mut out = format!("{} → {}, {} requests\n\n", shown_text(a), shown_text(b), self.requests);
        let mut figures = Listing::new(&["figure", "first plan", "second plan", ""]);
        (1..=2).for_each(|column| figures.align_right(column));
        for figure in self.figures() {
            let first = if figure.of_first.is_some() { figure.shown(figure.of_first) } else { String::new() };
            figures.row(vec![figure.name.clone(), first, figure.shown(figure.value), figure.about.to_owned()]);
        }
        out += &figures.render();
        for (name, of) in QUALITIES {
            if let Some(diff) = self.qualities.diff(of) {
                let (low, high) = diff.interval;
                let (k, gain) = (self.asked.k, diff.b - diff.a);
                out += &format!("{name}@{k} differs by {gain:+.4}, 95 % between {low:+.4} and {high:+.4}\n");
            }
        }
        if self.asked.labels.is_some() {
            let (users, without) = (self.qualities.users(), self.qualities.unlabelled);
            out += &format!("labels: {users} users; {without} requests of users without labels are left out\n");
        }
        for (side, plan) in self.sides.iter().zip(&self.asked.plans) {
            for (code, count) in &side.errors {
                out += &format!("{}: {count} requests failed with {code}\n", shown_text(plan));
            }
        }
        for line in self.left_out_lines() {
            out += &format!("{}\n", line.replace(char::is_control, " "));
        }
        for (at, output) in self.outputs.iter().enumerate().filter(|(_, output)| output.requests > 0) {
            if self.outputs.len() > 1 {
                let mean = output.overlap / output.requests as f64;
                let name = shown_text(&self.asked.outputs[at]);
                out += &format!("\noutput {name}: overlap@{} {:.2} %\n", self.asked.k, 100.0 * mean);
            }
            out += &format!("\noverlap@{} of a request\n", self.asked.k);
            let most = output.bars.iter().copied().max().unwrap_or(1).max(1);
            for (bar, count) in output.bars.iter().enumerate().filter(|(_, count)| **count > 0) {
                let width = (count * BAR_WIDTH).div_ceil(most);
                out += &format!("{:>5} %  {} {count}\n", 100 * bar / BARS, "█".repeat(width as usize));
            }
            out += &grouped("source", &output.sources);
            if let Some(key) = &self.asked.group {
                out += &grouped(key, &output.groups);
            }
        }
        if !self.shown.is_empty() {
            out += "\nThe requests that differ most:\n";
        }
        for shown in &self.shown {
            let what = match shown.failed {
                Some((code, is_second)) => {
                    format!("{} failed with {code}", shown_text(&self.asked.plans[usize::from(is_second)]))
                }
                None => format!("overlap {:.0} %, rbo {:.3}", 100.0 * shown.overlap, shown.rbo),
            };
            let number = shown.number;
            out += &match &shown.captured_id {
                Some(id) => format!("  request {number}, {}: {what}\n", shown_text(id)),
                None => format!("  request {number}: {what}\n"),
            };
            if let Some(why) = shown.why(&self.asked) {
                out += &format!("    {}\n", why.replace(char::is_control, " "));
            }
        }
        out
    }
}

/// Rows that entered and left, the largest groups first; nothing where there are none.
fn grouped(by: &str, groups: &RowGroups) -> String {
    let mut groups: Vec<_> = groups.iter().collect();
    if groups.is_empty() {
        return String::new();
    }
    groups.sort_by_key(|(_, [entered, left])| std::cmp::Reverse(entered + left));
    let mut listing = Listing::new(&[by, "entered", "left"]);
    (1..=2).for_each(|column| listing.align_right(column));
    for (group, [entered, left]) in groups.iter().take(GROUPS_SHOWN) {
        listing.row(vec![shown_text(group), entered.to_string(), left.to_string()]);
    }
    match groups.len().saturating_sub(GROUPS_SHOWN) {
        0 => format!("\n{}", listing.render()),
        more => format!("\n{}and {more} more\n", listing.render()),
    }
}
