//! What a node says of the rows that its readers get in place of its own: `fallback`, `fail_open`, `when` and `otherwise`, with
//! names turned into positions. Whether the keys fit is the flow's business.

use crate::check::tables::Tables;
use crate::check::{Checker, Draft};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::plan::{Condition, NodeIx, Substitute};
use crate::signature::RowEffect;
use crate::wire::WireSubstitute;

/// The fields of a node that name a substitute, as plans write them.
pub(super) const FALLBACK: &str = "fallback";
pub(super) const OTHERWISE: &str = "otherwise";

/// What a node says of the rows in place of its own. What was reported is not there.
#[derive(Default)]
pub(super) struct Substitutes {
    pub(super) fallback: Option<Substitute>,
    pub(super) condition: Option<Condition>,
}

impl Substitutes {
    /// Each with the field that names it.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'static str, Substitute)> {
        let otherwise = self.condition.as_ref().map(|condition| (OTHERWISE, condition.otherwise));
        self.fallback.map(|fallback| (FALLBACK, fallback)).into_iter().chain(otherwise)
    }

    /// The nodes whose rows may be needed, each with the field that names it.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (&'static str, NodeIx)> {
        self.each().filter_map(|(field, substitute)| match substitute {
            Substitute::Node(node) => Some((field, node)),
            Substitute::NoRows | Substitute::FirstInput => None,
        })
    }
}

/// Reads what node `at` says. Its inputs are in the draft already.
pub(super) fn read(
    checker: &Checker<'_>,
    at: usize,
    draft: &Draft,
    tables: &mut Tables<'_>,
    found: &mut Diagnostics,
) -> Substitutes {
    let wire = &checker.wire.nodes[at];
    let resolve = |field: &str, substitute: &WireSubstitute<'_>, found: &mut Diagnostics| match substitute {
        WireSubstitute::NoRows => Some(Substitute::NoRows),
        WireSubstitute::FirstInput => Some(Substitute::FirstInput),
        WireSubstitute::Node(id) => {
            checker.node(id, || format!("/nodes/{at}/{field}/node"), found).map(Substitute::Node)
        }
    };
    let fallback = wire.fallback.as_ref().and_then(|fallback| resolve(FALLBACK, fallback, found));
    let makes_rows = draft.rows().map(|rows| makes_rows(rows, !wire.inputs.is_empty()));
    let otherwise = match &wire.otherwise {
        Some(otherwise) => resolve(OTHERWISE, otherwise, found),
        None => makes_rows.map(|makes_rows| if makes_rows { Substitute::NoRows } else { Substitute::FirstInput }),
    };
    let pred = wire.when.as_ref().and_then(|id| {
        let pointer = format!("/nodes/{at}/when");
        let pred = tables.pred(id, &pointer, found)?;
        for key in pred.keys() {
            let name = &checker.names.registry.key(key).name;
            let message = format!("when reads the key {}, and it is decided before there are rows", quoted(name));
            found.push(Diagnostic::new(Code::KeyInWhen, pointer.clone(), message));
        }
        pred.keys().is_empty().then_some(pred)
    });
    let condition = pred.zip(otherwise).map(|(pred, otherwise)| Condition { pred, otherwise });
    let substitutes = Substitutes { fallback, condition };
    if let Some(makes_rows) = makes_rows {
        report_misfits(checker, at, draft, &substitutes, makes_rows, found);
    }
    substitutes
}

/// Whether the rows of a node are new ones: those of a source or a fan-out, or one for each group.
fn makes_rows(rows: RowEffect, has_input: bool) -> bool {
    match rows {
        RowEffect::Source | RowEffect::FanOut | RowEffect::Grouped => true,
        RowEffect::Same
        | RowEffect::Fewer
        | RowEffect::FewerWhere(_)
        | RowEffect::Reordered
        | RowEffect::Appended
        | RowEffect::GroupedWhere(_) => {
            // Without an input it is a source.
            !has_input
        }
    }
}

/// Reports substitutes that do not fit what the task does to rows.
fn report_misfits(
    checker: &Checker<'_>,
    at: usize,
    draft: &Draft,
    substitutes: &Substitutes,
    makes_rows: bool,
    found: &mut Diagnostics,
) {
    let wire = &checker.wire.nodes[at];
    let node = format!("{} {}", wire.op.as_deref().unwrap_or_default(), quoted(&wire.node_id));
    for (field, substitute) in substitutes.each() {
        let wrong = match substitute {
            Substitute::NoRows if !makes_rows => Some((
                Code::NoRowsOfInput,
                format!("{node} works on rows, which the {field} \"none\" would lose"),
                "\"input\" gives its readers the rows of its input",
            )),
            Substitute::FirstInput if makes_rows => Some((
                Code::InputOfSource,
                format!("{node} makes rows of its own, which the {field} \"input\" cannot stand for"),
                "\"none\" gives its readers no rows, {\"node\": id} those of another node",
            )),
            // A condition is what the author wants; a fallback is what happens to them.
            Substitute::FirstInput if field == FALLBACK && drops(draft) && wire.fail_open.is_none() => Some((
                Code::FailsOpen,
                format!("{node} drops rows, and with the {field} \"input\" all of them pass"),
                "write in fail_open why that is right",
            )),
            Substitute::NoRows | Substitute::FirstInput | Substitute::Node(_) => None,
        };
        if let Some((code, message, help)) = wrong {
            found.push(Diagnostic::new(code, format!("/nodes/{at}/{field}"), message).help(help));
        }
    }
}

/// Whether a node leaves out rows of its input.
fn drops(draft: &Draft) -> bool {
    draft.rows() == Some(RowEffect::Fewer)
}
