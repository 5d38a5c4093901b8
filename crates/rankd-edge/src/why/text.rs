//! The answer for people.

use super::WhyAnswer;
use super::personal::without_pii;
use crate::answer::shown_text;
use rankd_column::{Key, Value};
use rankd_engine::why::{AskedItem, DropReason, Part, PartKind, PathStep, RowStory, StoryEnd, Verdict};
use std::fmt::Write;

/// The most lines of one value's parts.
const LINES_MAX: usize = 200;
/// How far in the parts of a row stand.
const INDENT: &str = "           ";

/// Marks, and how they look in colour.
struct Style {
    colour: bool,
}

impl Style {
    fn of(&self, code: &str, text: &str) -> String {
        match self.colour {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }

    fn bold(&self, text: &str) -> String {
        self.of("1", text)
    }

    fn bad(&self, text: &str) -> String {
        self.of("31", text)
    }

    fn good(&self, text: &str) -> String {
        self.of("32", text)
    }

    fn dim(&self, text: &str) -> String {
        self.of("2", text)
    }
}

impl WhyAnswer<'_> {
    /// All of it as lines for a terminal.
    pub fn to_text(&self, colour: bool) -> String {
        let (style, mut out) = (Style { colour }, String::new());
        if let Err(error) = &self.outcome.result {
            let _ = writeln!(out, "{}", style.bad(&format!("the run failed: {error}")));
        }
        if let Some(arms) = self.outcome.arms.as_ref().filter(|arms| !arms.is_empty()) {
            let names = arms.names().map(|(experiment, arm)| format!("{experiment} {arm}"));
            let chosen = if arms.is_forced { ", as chosen" } else { "" };
            let _ = writeln!(out, "in the arms of experiments: {}{chosen}", names.collect::<Vec<_>>().join(", "));
        }
        for (at, item) in without_pii(self.items, self.registry).iter().enumerate() {
            if at > 0 || !out.is_empty() {
                out.push('\n');
            }
            self.item_text(item, &style, &mut out);
        }
        out
    }

    fn item_text(&self, item: &AskedItem, style: &Style, out: &mut String) {
        let headline = match (item.verdict, item.rows.first().map(|row| &row.end)) {
            (Verdict::Answered, Some(StoryEnd::Answered { output, position })) => {
                let output = match self.plan.outputs.len() {
                    1 => String::new(),
                    _ => format!(" of output {}", shown_text(&self.output(*output))),
                };
                style.good(&format!("answered, at position {position}{output}"))
            }
            (Verdict::Dropped, Some(StoryEnd::Dropped(dropped))) => {
                format!("{} {}", style.bad("dropped by"), style.bold(&self.node_at(dropped.by)))
            }
            (Verdict::Expanded, Some(StoryEnd::Expanded { by, .. })) => format!("expanded by {}", self.node_at(*by)),
            (Verdict::Grouped, Some(StoryEnd::Grouped { by })) => format!("grouped by {}", self.node_at(*by)),
            (Verdict::Never, _) => style.bad("never there: no source gave it"),
            (verdict, _) => verdict.name().to_owned(),
        };
        let _ = writeln!(out, "{}: {headline}", style.bold(&shown_text(&item.id.to_string())));
        if !item.never.is_empty() {
            out.push('\n');
        }
        for never in &item.never {
            let _ = writeln!(out, "  not from {}: {}", self.node_at(never.node), self.absence(&never.why));
        }
        for (at, row) in item.rows.iter().enumerate() {
            out.push('\n');
            if item.row_count > 1 {
                let end = end_name(&row.end);
                let _ = writeln!(out, "  {}", style.dim(&format!("row {} of {}: {end}", at + 1, item.row_count)));
            }
            self.row_text(row, style, out);
        }
        if let Some(change) = &item.change {
            let _ = writeln!(out, "\n  change   {}", self.change(change));
        }
        if item.row_count > item.rows.len() {
            let _ = writeln!(out, "\n  {} more rows are not shown", item.row_count - item.rows.len());
        }
    }

    fn row_text(&self, row: &RowStory, style: &Style, out: &mut String) {
        let source = &row.source;
        let label = self.plan.node(source.node).label.as_ref();
        let label = label.map(|label| format!(" ({})", shown_text(label))).unwrap_or_default();
        let parent =
            source.parent.as_ref().map(|parent| format!(", made of row {}", shown(parent))).unwrap_or_default();
        let from = self.node_at(source.node);
        let _ = writeln!(out, "  from     {from}{label}, position {}{parent}", source.position);
        if !source.columns.is_empty() {
            let _ = writeln!(out, "{INDENT}{}", style.dim(&values(self, &source.columns)));
        }
        if !row.path.is_empty() {
            self.path_text(&row.path, &row.end, style, out);
        }
        match &row.end {
            StoryEnd::Dropped(dropped) => {
                let _ = writeln!(out, "  dropped  {}", self.reason(dropped));
                if let DropReason::Predicate(parts) = &dropped.reason {
                    self.parts_text(parts, style, out);
                }
            }
            StoryEnd::Expanded { by, children } => {
                let children = match children {
                    Some(1) => "1 row".to_owned(),
                    Some(children) => format!("{children} rows"),
                    None => "new rows".to_owned(),
                };
                let _ = writeln!(out, "  expanded {} made {children} of it", self.node(*by));
            }
            StoryEnd::Grouped { by } => {
                let _ = writeln!(out, "  grouped  {} made one row of its group", self.node(*by));
            }
            StoryEnd::Aside { by: Some(by) } => {
                let _ = writeln!(out, "  aside    {} only looked at it", self.node(*by));
            }
            StoryEnd::Aside { by: None } => {
                let _ = writeln!(out, "  aside    nothing that ran has read it");
            }
            StoryEnd::Answered { .. } | StoryEnd::Failed => {}
        }
        if let Some((root, below)) = row.score.split_first() {
            let value = root.value.as_ref().map_or_else(|| "no value".to_owned(), shown);
            let by = self.given_by(root);
            let _ = writeln!(out, "  score    {} = {}{}", shown_text(&root.text), style.bold(&value), style.dim(&by));
            self.parts_text(below, style, out);
        }
    }

    fn path_text(&self, path: &[PathStep], end: &StoryEnd, style: &Style, out: &mut String) {
        let names: Vec<String> = path.iter().map(|step| self.node(step.node)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for (at, (step, name)) in path.iter().zip(&names).enumerate() {
            let head = if at == 0 { "  path     " } else { INDENT };
            let before = step.before.map(|position| position.to_string()).unwrap_or_default();
            let after = match step.after {
                Some(position) => position.to_string(),
                None => style.bad(if matches!(end, StoryEnd::Dropped(_)) { "✗" } else { "•" }),
            };
            let pad = " ".repeat(width - name.chars().count());
            let written = match step.written.is_empty() {
                true => String::new(),
                false => format!("   {}", style.dim(&values(self, &step.written))),
            };
            let _ = writeln!(out, "{head}{name}{pad}  {before:>5} → {after}{written}");
        }
    }

    /// A part a line, with its value. What the text of the part above says already is left out.
    fn parts_text(&self, parts: &[Part], style: &Style, out: &mut String) {
        let least = parts.first().map_or(0, |part| part.depth);
        let shown_parts = parts.iter().filter(|part| part.kind != PartKind::Literal);
        for (at, part) in shown_parts.enumerate() {
            if at == LINES_MAX || part.kind == PartKind::More {
                let _ = writeln!(out, "{INDENT}…");
                break;
            }
            let mark = if part.is_culprit { "✗ " } else { "  " };
            let text = format!("{}{mark}{}", "  ".repeat(part.depth - least), shown_line(&part.text));
            let value = part.value.as_ref().map_or_else(|| "no value".to_owned(), shown);
            let line = match &part.kind {
                PartKind::Feature { name, contribution, .. } => {
                    let sign = if *contribution < 0.0 { '-' } else { '+' };
                    let feature =
                        if *name == part.text { String::new() } else { format!(", feature {}", shown_line(name)) };
                    format!("{text} = {value}{feature}: {sign} {:?}", contribution.abs())
                }
                PartKind::Key { .. }
                | PartKind::Param(_)
                | PartKind::Literal
                | PartKind::Operation(_)
                | PartKind::RawScore { .. }
                | PartKind::Expected
                | PartKind::More => format!("{text} = {value}"),
            };
            let line = if part.is_culprit { style.bad(&line) } else { line };
            let _ = writeln!(out, "{INDENT}{line}{}", style.dim(&self.given_by(part)));
        }
    }

    fn given_by(&self, part: &Part) -> String {
        match &part.kind {
            PartKind::Key { by: Some(by), .. } | PartKind::Feature { by: Some(by), .. } => {
                format!("   {}", self.node(*by))
            }
            PartKind::Param(_) => "   request".to_owned(),
            PartKind::RawScore { why_not: Some(why_not), .. } => format!("   {}", shown_line(why_not)),
            PartKind::Key { by: None, .. }
            | PartKind::Feature { by: None, .. }
            | PartKind::RawScore { why_not: None, .. }
            | PartKind::Expected
            | PartKind::Literal
            | PartKind::Operation(_)
            | PartKind::More => String::new(),
        }
    }
}

fn end_name(end: &StoryEnd) -> &'static str {
    match end {
        StoryEnd::Answered { .. } => "answered",
        StoryEnd::Dropped(_) => "dropped",
        StoryEnd::Expanded { .. } => "expanded",
        StoryEnd::Grouped { .. } => "grouped",
        StoryEnd::Aside { .. } => "aside",
        StoryEnd::Failed => "failed",
    }
}

/// A value on one line.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Float(value) => format!("{value:?}"),
        Value::Null | Value::Int(_) | Value::Bool(_) | Value::Str(_) | Value::List(_) | Value::Vector(_) => {
            shown_text(&value.to_string())
        }
    }
}

/// Keys with their values: `country "DE", likes 3`.
pub(super) fn values(answer: &WhyAnswer<'_>, values: &[(Key, Value)]) -> String {
    let one = |(key, value): &(Key, Value)| format!("{} {}", shown_text(answer.key(*key)), shown(value));
    values.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// An expression on one line.
fn shown_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '·' } else { char }).collect()
}
