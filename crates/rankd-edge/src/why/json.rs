//! The answer for programs.

use super::personal::without_pii;
use super::{WhyAnswer, write_node, write_value};
use crate::answer::{write_arms, write_degraded, write_error};
use rankd_column::{Key, Value};
use rankd_engine::why::{
    AskedItem, DropReason, Dropped, Named, OtherRow, Part, PartKind, PathStep, RowStory, SourceRow, StoryEnd, Verdict,
};
use rankd_plan::json::Writer;

/// The most bytes that the parts of one value take.
const PARTS_BYTES_MAX: usize = 1 << 20;
/// An answer that has so many bytes gets no further values and parts: each of many rows may have long texts.
const ANSWER_BYTES_MAX: usize = 8 << 20;

impl WhyAnswer<'_> {
    /// All of it as one JSON object.
    pub fn to_json(&self) -> String {
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("request_id").string(self.request_id);
            w.field("plan").string(&self.plan.name);
            if let Err(error) = &self.outcome.result {
                write_error(error, w.field("error"));
            }
            if !self.outcome.degraded.is_empty() {
                write_degraded(self.plan, &self.outcome.degraded, w.field("degraded"));
            }
            write_arms(self.outcome.arms.as_deref(), w);
            let items = without_pii(self.items, self.registry);
            w.field("items").array(|w| items.iter().for_each(|item| self.item(item, w)));
        });
        writer.finish()
    }

    fn item(&self, item: &AskedItem, w: &mut Writer) {
        w.object(|w| {
            write_value(&Value::from(&item.id), w.field("id"));
            w.field("verdict").string(item.verdict.name());
            w.field("rows").array(|w| item.rows.iter().for_each(|row| self.row(row, w)));
            w.field("row_count").int(item.row_count as i64);
            if let Some(change) = &item.change {
                self.write_change(change, w);
            }
            if item.verdict == Verdict::Never {
                w.field("never").array(|w| item.never.iter().for_each(|never| self.not_given(never, w)));
            }
        });
    }

    fn row(&self, row: &RowStory, w: &mut Writer) {
        w.object(|w| {
            self.end(&row.end, w);
            self.source(&row.source, w.field("source"));
            w.field("path").array(|w| row.path.iter().for_each(|step| self.step(step, w)));
            match row.score.is_empty() {
                true => w.field("score").null(),
                false => w.field("score").pushed(|out| out.extend(self.tree(&row.score, out.len()).into_bytes())),
            };
        });
    }

    fn end(&self, end: &StoryEnd, w: &mut Writer) {
        match end {
            StoryEnd::Answered { output, position } => {
                w.field("end").string("answered");
                w.field("answered").object(|w| {
                    w.field("output").string(&self.output(*output)).field("position").int(*position as i64);
                });
            }
            StoryEnd::Dropped(dropped) => {
                w.field("end").string("dropped");
                w.field("dropped").object(|w| self.dropped(dropped, w));
            }
            StoryEnd::Expanded { by, children } => {
                w.field("end").string("expanded");
                w.field("expanded").object(|w| {
                    write_node(self.plan, *by, w);
                    match children {
                        Some(children) => w.field("children").int(*children as i64),
                        None => w.field("children").null(),
                    };
                });
            }
            StoryEnd::Grouped { by } => {
                w.field("end").string("grouped");
                w.field("grouped").object(|w| write_node(self.plan, *by, w));
            }
            StoryEnd::Aside { by } => {
                w.field("end").string("aside");
                if let Some(by) = by {
                    w.field("aside").object(|w| write_node(self.plan, *by, w));
                }
            }
            StoryEnd::Failed => {
                w.field("end").string("failed");
            }
        }
    }

    fn source(&self, source: &SourceRow, w: &mut Writer) {
        w.object(|w| {
            write_node(self.plan, source.node, w);
            w.field("position").int(source.position as i64);
            if let Some(parent) = &source.parent {
                write_value(parent, w.field("parent_id"));
            }
            self.values(&source.columns, w.field("columns"));
        });
    }

    fn step(&self, step: &PathStep, w: &mut Writer) {
        w.object(|w| {
            write_node(self.plan, step.node, w);
            for (name, position) in [("before", step.before), ("after", step.after)] {
                match position {
                    Some(position) => w.field(name).int(position as i64),
                    None => w.field(name).null(),
                };
            }
            if !step.written.is_empty() {
                self.values(&step.written, w.field("written"));
            }
        });
    }

    fn values(&self, values: &[(Key, Value)], w: &mut Writer) {
        w.object(|w| {
            for (key, value) in values {
                if w.byte_count() > ANSWER_BYTES_MAX {
                    w.field("…").bool(true);
                    break;
                }
                write_value(value, w.field(self.key(*key)));
            }
        });
    }

    fn dropped(&self, dropped: &Dropped, w: &mut Writer) {
        write_node(self.plan, dropped.by, w);
        w.field("position").int(dropped.position as i64);
        w.field("why").string(dropped.reason.name());
        match &dropped.reason {
            DropReason::Unsaid
            | DropReason::Served
            | DropReason::NoPlace
            | DropReason::Condition
            | DropReason::NotAsked => {}
            DropReason::Predicate(parts) => {
                w.field("pred").pushed(|out| out.extend(self.tree(parts, out.len()).into_bytes()));
            }
            DropReason::Cut { from, to, score } => {
                w.field("from").int(*from as i64);
                // There may be no end.
                w.field("to").int(i64::try_from(*to).unwrap_or(i64::MAX));
                if let Some((key, own, at_cut)) = score {
                    w.field("score").object(|w| {
                        w.field("key").string(self.key(*key));
                        write_value(own, w.field("value"));
                        write_value(at_cut, w.field("at_cut"));
                    });
                }
            }
            DropReason::Same { by, kept } => {
                self.values(by, w.field("by"));
                match kept {
                    Some(kept) => other(kept, w.field("kept")),
                    None => {
                        w.field("kept").null();
                    }
                }
            }
            DropReason::Full { by, value, max, window, kept } => {
                self.values(&[(*by, value.clone())], w.field("by"));
                w.field("max").int(*max as i64).field("window").int(*window as i64);
                w.field("kept").array(|w| kept.iter().for_each(|row| other(row, w)));
            }
            DropReason::Named { by, among } | DropReason::NotNamed { by, among } => {
                self.values(by, w.field("by"));
                w.field("among").object(|w| match among {
                    Named::Node(node) => write_node(self.plan, *node, w),
                    Named::Param(name) => {
                        w.field("param").string(name);
                    }
                    Named::Stored { endpoint, key } => {
                        w.field("endpoint").string(endpoint).field("key").string(key);
                    }
                });
            }
            DropReason::NoMatch { on, node } => {
                if let Some((left, right, value)) = on {
                    w.field("on").object(|w| {
                        w.field("left").string(self.key(*left)).field("right").string(self.key(*right));
                        write_value(value, w.field("value"));
                    });
                }
                w.field("among").object(|w| write_node(self.plan, *node, w));
            }
            DropReason::Enough(count) | DropReason::Chance(count) => {
                w.field("count").int(*count as i64);
            }
            DropReason::Fallback(degraded) => {
                write_degraded(self.plan, std::slice::from_ref(degraded), w.field("degraded"));
            }
        }
    }

    /// The parts of a value, each with those below it. What does not fit is left out, and its place says so. The answer has so many bytes before it.
    fn tree(&self, parts: &[Part], before: usize) -> String {
        let most = PARTS_BYTES_MAX.min(ANSWER_BYTES_MAX.saturating_sub(before));
        let mut text = String::new();
        let mut depth = 0;
        for (at, part) in parts.iter().enumerate() {
            let is_last = at > 0 && text.len() > most || part.kind == PartKind::More;
            // Close what is not above this part.
            let level = if is_last { 1 } else { part.depth };
            if at > 0 {
                match level > depth {
                    true => text.push_str(",\"of\":["),
                    false => (level..depth).for_each(|_| text.push_str("}]")),
                }
                if level <= depth {
                    text.push_str("},");
                }
            }
            depth = level;
            if is_last {
                text.push_str("{\"text\":\"…\",\"more\":true");
                break;
            }
            let mut writer = Writer::new();
            writer.object(|w| self.part(part, w));
            let written = writer.finish();
            text.push_str(written.strip_suffix('}').unwrap_or(&written));
        }
        (0..depth).for_each(|_| text.push_str("}]"));
        text.push('}');
        text
    }

    fn part(&self, part: &Part, w: &mut Writer) {
        match &part.kind {
            PartKind::Key { key, by } => {
                w.field("key").string(self.key(*key));
                if let Some(by) = by {
                    write_node(self.plan, *by, w);
                }
            }
            PartKind::Param(param) => {
                w.field("param").string(&self.registry.params.get(*param).name);
            }
            PartKind::Operation(name) => {
                w.field("op").string(name).field("text").string(&part.text);
            }
            PartKind::Literal => {
                w.field("op").string("const");
            }
            PartKind::RawScore { model, why_not } => {
                w.field("raw_score_of").string(&self.registry.models.get(*model).name);
                if let Some(why_not) = why_not {
                    w.field("no_contributions").string(why_not);
                }
            }
            PartKind::Expected => {
                w.field("expected").bool(true);
            }
            PartKind::Feature { name, key, by, contribution } => {
                w.field("feature").string(name).field("key").string(self.key(*key));
                if let Some(by) = by {
                    write_node(self.plan, *by, w);
                }
                write_value(&Value::Float(*contribution), w.field("contribution"));
            }
            PartKind::More => {}
        }
        match &part.value {
            Some(value) => write_value(value, w.field("value")),
            None => {
                w.field("value").null();
            }
        }
        if part.is_culprit {
            w.field("culprit").bool(true);
        }
        if let (Some(at), PartKind::Operation(_) | PartKind::Literal | PartKind::Param(_)) = (&part.at, &part.kind) {
            w.field("at").string(at);
        }
    }
}

fn other(row: &OtherRow, w: &mut Writer) {
    w.object(|w| {
        write_value(&Value::from(&row.id), w.field("id"));
        w.field("position").int(row.position as i64);
    });
}
