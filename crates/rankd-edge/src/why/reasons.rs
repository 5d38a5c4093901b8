//! Why a row was dropped, in a sentence.

use super::WhyAnswer;
use super::text::{shown, values};
use crate::answer::shown_text;
use rankd_engine::degraded::fallback_name;
use rankd_engine::why::{DropReason, Dropped, Named, OtherRow};
use rankd_plan::plan::NodeIx;

impl WhyAnswer<'_> {
    /// Without a full stop. What a predicate is made of follows it.
    pub(super) fn reason(&self, dropped: &Dropped) -> String {
        match &dropped.reason {
            DropReason::Unsaid => "it did not come out of the node, whose task does not say why".to_owned(),
            DropReason::Predicate(_) => "the predicate does not hold".to_owned(),
            DropReason::Cut { from, to, score } => {
                let cut = match (dropped.position < *from, score) {
                    (true, _) => {
                        format!("it stands at position {}, and the first {from} are left out", dropped.position)
                    }
                    (false, _) => format!("it stands at position {}, and the cut is at {to}", dropped.position),
                };
                match score {
                    Some((key, own, at_cut)) => {
                        let key = shown_text(self.key(*key));
                        format!("{cut}: its {key} is {}, the last row before the cut has {}", shown(own), shown(at_cut))
                    }
                    None => cut,
                }
            }
            DropReason::Same { by, kept } => {
                let by = values(self, by);
                match kept {
                    Some(row) => format!("{} has the same {by}", this_row(row)),
                    None => format!("another row has the same {by}"),
                }
            }
            DropReason::Full { by, value, max, window, kept } => {
                let key = shown_text(self.key(*by));
                let among = if *window == 0 { String::new() } else { format!(" among {window} neighbours") };
                let kept: Vec<String> = kept.iter().map(|row| row.id.to_string()).collect();
                let of = if kept.is_empty() { String::new() } else { format!(": {}", shown_text(&kept.join(", "))) };
                format!("{max} with {key} {} were kept before it{among}{of}", shown(value))
            }
            DropReason::Named { by, among } => format!("{} is {}", values(self, by), self.among(among)),
            DropReason::NotNamed { by, among } => format!("{} is not {}", values(self, by), self.among(among)),
            DropReason::NoMatch { on: Some((left, right, value)), node } => {
                let (left, right) = (shown_text(self.key(*left)), shown_text(self.key(*right)));
                format!("no row of {} has its {left} {} as {right}", self.node(*node), shown(value))
            }
            DropReason::NoMatch { on: None, node } => format!("{} has no row", self.node(*node)),
            DropReason::Served => "it was served on an earlier page".to_owned(),
            DropReason::Enough(count) => format!("there were {count} rows before it"),
            DropReason::Chance(count) => format!("chance took {count} others"),
            DropReason::NoPlace => "no place was left for it".to_owned(),
            DropReason::Fallback(degraded) => {
                let code = degraded.code.map(|code| format!(", {}", code.id)).unwrap_or_default();
                let fallback = shown_text(&fallback_name(self.plan, degraded.fallback).to_string());
                format!(
                    "the node was degraded ({}{code}), and its fallback, {fallback}, does not have it",
                    degraded.reason.name()
                )
            }
            DropReason::Condition => {
                "the condition of the node does not hold, and what stands in for it does not have it".to_owned()
            }
            DropReason::NotAsked => "the node had enough rows without these".to_owned(),
        }
    }

    fn among(&self, among: &Named) -> String {
        match among {
            Named::Node(node) => format!("an id of {}", self.node(*node)),
            Named::Param(name) => format!("in the parameter {}", shown_text(name)),
            Named::Stored { endpoint, key } => format!("in {} of {}", shown_text(key), shown_text(endpoint)),
        }
    }

    /// A node as people find it: `filter n18`.
    pub(super) fn node(&self, node: NodeIx) -> String {
        let linked = self.plan.node(node);
        format!("{} {}", linked.op, shown_text(&linked.id))
    }

    /// The same with its place in the plan's source.
    pub(super) fn node_at(&self, node: NodeIx) -> String {
        let at = self.plan.node(node).at().map(|at| format!(" at {}", shown_text(at))).unwrap_or_default();
        format!("{}{at}", self.node(node))
    }
}

fn this_row(row: &OtherRow) -> String {
    format!("the row of {} at position {}", row.id, row.position)
}
