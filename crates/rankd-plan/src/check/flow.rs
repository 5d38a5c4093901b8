//! Which keys can be present after each node, and so which reads nothing can satisfy, and where a value may be missing.

use crate::check::keys::Keys;
use crate::check::{Draft, models, table_fields};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::plan::{Arg, ColumnData, Generator, NodeIx};
use crate::registry::{Absent, Entry, Registry};
use crate::signature::{Param, ParamKind, ParamRef, RowEffect, Signature, Writes};
use crate::wire::WirePlan;
use rankd_column::{Key, Value};

/// Reports reads that nothing can satisfy and values that may be missing. Gives the keys that can be present after each node.
pub(super) fn check(
    wire: &WirePlan<'_>,
    drafts: &[Draft],
    order: &[NodeIx],
    registry: &Registry,
    found: &mut Diagnostics,
) -> Vec<Keys> {
    let mut after: Vec<Option<Keys>> = vec![None; drafts.len()];
    for &at in order {
        let draft = &drafts[at as usize];
        let known: Option<Vec<&Keys>> =
            draft.inputs.iter().map(|input| input.and_then(|input| after[input as usize].as_ref())).collect();
        let mut keys = Keys::none(registry);
        // What is not known for certain, for want of a known task or input, might hold anything.
        let anything = draft.signature.is_none() || known.is_none();
        if let Some(signature) = draft.signature {
            let inputs = known.unwrap_or_default();
            // The rows of node-valued parameters come last. Only a task that appends them has their columns afterwards.
            let appended = signature.contract.rows == RowEffect::Appended;
            inputs.iter().take(if appended { inputs.len() } else { 1 }).for_each(|input| keys.add_all(input));
            if !anything {
                report_reads(wire, at, draft, signature, &keys, registry, found);
                report_right_reads(wire, at, draft, signature, &inputs, registry, found);
                report_one_sided(wire, at, draft, signature, &inputs, registry, found);
            }
            report_gaps(wire, at, draft, signature, registry, found);
            let before = found.list().len();
            table_fields::check(at, draft, registry, found);
            models::check(at, draft, registry, found);
            found.place_since(before, draft.source.as_ref());
            if draft.rows().is_some_and(|rows| !rows.keeps_columns()) {
                keys = Keys::none(registry);
            }
            write(&mut keys, draft, signature, registry, Keys::everything);
        }
        if anything {
            keys.everything();
        }
        after[at as usize] = Some(keys);
    }
    // The order has every node.
    after.into_iter().flatten().collect()
}

/// Adds the keys that a node writes; where they are not known, `unknown` says what is added.
pub(super) fn write(keys: &mut Keys, draft: &Draft, signature: Signature, registry: &Registry, unknown: fn(&mut Keys)) {
    // New rows of a table have its columns, unless the node names those that it wants.
    let names_them = draft.args.iter().flatten().any(|arg| matches!(arg, Arg::KeyMap(_)));
    if signature.contract.rows == RowEffect::FanOut && !names_them {
        match table_fields::columns(draft, registry) {
            Some(Some(columns)) => columns.iter().for_each(|key| keys.add(*key)),
            Some(None) => unknown(keys),
            None => {}
        }
    }
    // What rows are grouped by comes along.
    if draft.rows() == Some(RowEffect::Grouped) {
        let by = signature.contract.reads.iter().filter_map(|param| arg(draft, signature, *param));
        by.flat_map(Arg::keys).for_each(|key| keys.add(key));
    }
    let (names, params): (&[&str], &[ParamRef]) = match signature.contract.writes {
        Writes::Nothing => return,
        Writes::AnyKey => return unknown(keys),
        Writes::Table(table) => {
            let columns =
                arg(draft, signature, table).and_then(Arg::endpoint).and_then(|at| registry.known_columns(at));
            return match columns {
                Some(columns) => columns.iter().for_each(|key| keys.add(*key)),
                // Nobody has looked at the file.
                None => unknown(keys),
            };
        }
        Writes::Params(params) => (&[], params),
        // What is of the input row is there only with an input.
        Writes::Named(names, params) => (if draft.inputs.is_empty() { &[] } else { names }, params),
    };
    names.iter().filter_map(|name| registry.keys.named(name)).for_each(|key| keys.add(Key(key)));
    params.iter().for_each(|param| match arg(draft, signature, *param) {
        Some(arg) => arg.keys().into_iter().for_each(|key| keys.add(key)),
        None => unknown(keys),
    });
}

/// The keys that a node reads of the rows at hand, with the parameter that names them.
pub(super) fn reads(draft: &Draft, signature: Signature) -> impl Iterator<Item = (&'static Param, Vec<Key>)> {
    signature.contract.params.iter().zip(&draft.args).filter_map(move |(param, value)| {
        let arg = value.as_ref()?;
        let mut keys = arg.own_reads();
        if signature.contract.reads_from(param) {
            keys.extend(arg.keys());
        }
        (!keys.is_empty()).then_some((param, keys))
    })
}

/// The keys that a node reads of the rows of a node-valued parameter, with the parameter that names them.
pub(super) fn right_reads(draft: &Draft, signature: Signature) -> impl Iterator<Item = (&'static Param, Vec<Key>)> {
    let args = signature.contract.params.iter().zip(&draft.args);
    args.map(|(param, value)| (param, value.as_ref().map(Arg::right_keys).unwrap_or_default()))
}

/// The parameter that is a node, and the position of its rows among the inputs.
pub(super) fn right_input(draft: &Draft, signature: Signature) -> Option<(&'static Param, usize)> {
    signature.contract.params.iter().zip(&draft.args).find_map(|(param, value)| match value {
        Some(Arg::Node(input)) => Some((param, *input)),
        _ => None,
    })
}

fn report_reads(
    wire: &WirePlan<'_>,
    at: NodeIx,
    draft: &Draft,
    signature: Signature,
    present: &Keys,
    registry: &Registry,
    found: &mut Diagnostics,
) {
    for (param, keys) in reads(draft, signature) {
        for key in keys.into_iter().filter(|key| !present.has(*key)) {
            let what = format!("{:?}, which nothing before it can have written", registry.key(key).name);
            found.push(unwritten(wire, at, draft, signature, param.name, &what).help(present.listed(registry)));
        }
    }
}

/// The same for keys of the rows that a node-valued parameter gives.
fn report_right_reads(
    wire: &WirePlan<'_>,
    at: NodeIx,
    draft: &Draft,
    signature: Signature,
    inputs: &[&Keys],
    registry: &Registry,
    found: &mut Diagnostics,
) {
    let Some((rows, right)) = right_input(draft, signature).and_then(|(rows, at)| Some((rows, inputs.get(at)?))) else {
        return;
    };
    for (param, keys) in right_reads(draft, signature) {
        for key in keys.into_iter().filter(|key| !right.has(*key)) {
            let what = format!("{:?} of {}, whose rows cannot have it", registry.key(key).name, rows.name);
            found.push(unwritten(wire, at, draft, signature, param.name, &what).help(right.listed(registry)));
        }
    }
}

/// A read that nothing can satisfy: what a parameter of a node reads, and why it is not there.
fn unwritten(
    wire: &WirePlan<'_>,
    at: NodeIx,
    draft: &Draft,
    signature: Signature,
    param: &str,
    what: &str,
) -> Diagnostic {
    let message = format!("{} {} reads {what}", signature.op, quoted(&wire.nodes[at as usize].node_id));
    Diagnostic::new(Code::NeverWritten, format!("/nodes/{at}/params/{param}"), message).source(draft.source.clone())
}

/// Warns of writes that may have no value for a row where the key has to have one: fields read from a store, and literal nulls.
fn report_gaps(
    wire: &WirePlan<'_>,
    at: NodeIx,
    draft: &Draft,
    signature: Signature,
    registry: &Registry,
    found: &mut Diagnostics,
) {
    let contract = signature.contract;
    let (Writes::Params(params) | Writes::Named(_, params)) = contract.writes else { return };
    // A table has a value for every row, or it is not loaded.
    let is_store = |kind| matches!(kind, ParamKind::Endpoint(kinds) if kinds != ["table"]);
    let reads_a_store = contract.params.iter().any(|param| is_store(param.kind));
    for param in params {
        for (key, gap) in gaps(arg(draft, signature, *param), reads_a_store) {
            warn_of_gap(wire, at, draft, signature, registry.key(key), gap, param.name(), found);
        }
    }
}

/// The keys of an argument that may have no value for a row, and for which row.
fn gaps(arg: Option<&Arg>, reads_a_store: bool) -> Vec<(Key, &'static str)> {
    match arg {
        Some(arg @ (Arg::Key(_) | Arg::Keys(_) | Arg::KeyMap(_))) if reads_a_store => {
            arg.keys().into_iter().map(|key| (key, "a row without the field")).collect()
        }
        Some(Arg::Columns(columns)) => {
            let has_null = |data: &ColumnData| match data {
                ColumnData::Values(values) | ColumnData::Generated(Generator::Cycle { values }) => {
                    values.contains(&Value::Null)
                }
                ColumnData::Generated(Generator::Sequence { .. } | Generator::Hash { .. }) => false,
            };
            let with_null = columns.iter().filter(|(_, data)| has_null(data));
            with_null.map(|(key, _)| (*key, "a row whose value is null")).collect()
        }
        _ => Vec::new(),
    }
}

/// Warns of rows with a column joined to rows without it, where the key has to have a value.
fn report_one_sided(
    wire: &WirePlan<'_>,
    at: NodeIx,
    draft: &Draft,
    signature: Signature,
    inputs: &[&Keys],
    registry: &Registry,
    found: &mut Diagnostics,
) {
    if signature.contract.rows != RowEffect::Appended {
        return;
    }
    for key in (1..registry.keys.list().len() as u32).map(Key) {
        let sides = inputs.iter().filter(|keys| keys.has(key)).count();
        if sides > 0 && sides < inputs.len() {
            let gap = "every row of the side that does not have the key";
            warn_of_gap(wire, at, draft, signature, registry.key(key), gap, "", found);
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "the place and the words of one warning, spelled out")]
fn warn_of_gap(
    wire: &WirePlan<'_>,
    at: NodeIx,
    draft: &Draft,
    signature: Signature,
    entry: &Entry,
    gap: &str,
    param: &str,
    found: &mut Diagnostics,
) {
    if entry.absent() != Absent::Refused {
        return;
    }
    let (id, name) = (&wire.nodes[at as usize].node_id, &entry.name);
    let message = format!("{} {id:?} fails on {gap}: {name:?} is not nullable and has no default", signature.op);
    let pointer = if param.is_empty() { format!("/nodes/{at}") } else { format!("/nodes/{at}/params/{param}") };
    let warning = Diagnostic::new(Code::MayLackValue, pointer, message).source(draft.source.clone());
    found.push(warning.help("give the key a default in the registry, or make it nullable"));
}

fn arg(draft: &Draft, signature: Signature, param: ParamRef) -> Option<&Arg> {
    let (at, _) = signature.contract.param(param)?;
    draft.args.get(at)?.as_ref()
}
