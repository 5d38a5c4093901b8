//! All checks of a plan. Each pass goes as far as it can and reports everything; only a plan without errors comes out.
//!
//! Reading order: [`names`], [`tables`] (expressions), [`args`] (task parameters), `literals` (data in them), `template` and [`uses`] (which of them go together), `substitutes` (rows in place of a node's own), [`logs`] (keys of the feature log), [`graph`] (order and reach), [`flow`] (which
//! keys are where), `substitute_flow` and `doubled` (the same for rows in place of a node's own).

mod args;
mod doubled;
mod flow;
mod graph;
mod key_args;
mod keys;
mod literals;
mod logs;
mod models;
pub(crate) mod names;
mod node_args;
mod paging;
mod substitute_flow;
mod substitutes;
mod table_fields;
mod tables;
mod template;
mod uses;

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, SourceSpan, quoted};
use crate::digest::sha256;
use crate::json::{Fault, segment};
use crate::limits::FILE_BYTES_MAX;
use crate::plan::{Arg, Node, NodeIx, Plan, PlanDial};
use crate::registry::Registry;
use crate::signature::{RowEffect, Signature};
use crate::signatures::Signatures;
use crate::wire::{self, WirePlan};
use graph::Reach;
use names::Names;
use rankd_column::Key;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use substitutes::Substitutes;
use tables::Tables;

/// The outcome of checking one text: a plan if nothing is wrong with it, and what there is to say about it.
#[derive(Debug)]
pub struct Checked {
    pub plan: Option<Plan>,
    pub diagnostics: Diagnostics,
}

impl Checked {
    /// The outcome for a file that could not even be decoded.
    pub fn refused(diagnostic: Diagnostic) -> Checked {
        let mut diagnostics = Diagnostics::default();
        diagnostics.push(diagnostic);
        Checked { plan: None, diagnostics }
    }
}

impl Checked {
    /// Refuses a plan whose file has another name: it is found by the one and answers by the other.
    pub fn must_be_named_after(&mut self, file: Option<&str>) {
        let Some((plan, file)) = self.plan.as_ref().zip(file).filter(|(plan, file)| plan.name != *file) else { return };
        let message = format!("the file is named {file:?}, but the plan in it {:?}", plan.name);
        let wrong = Diagnostic::new(Code::WrongFileName, "/plan_name", message);
        self.diagnostics.push(wrong.help("a plan must have the same name as its file: rename one of them"));
        self.plan = None;
    }
}

/// Checks the bytes of a plan file.
pub fn check(bytes: &[u8], registry: &Registry, tasks: &Signatures) -> Checked {
    if bytes.len() > FILE_BYTES_MAX {
        return Checked::refused(too_large(bytes.len() as u64));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("byte {} is not UTF-8", error.valid_up_to());
            return Checked::refused(Diagnostic::new(Code::NotUtf8, "", message));
        }
    };
    let mut found = Diagnostics::default();
    let wire = match wire::decode(text, &mut found) {
        Ok(wire) => wire,
        Err(fault) => {
            if fault != Fault::REPORTED {
                found.push(Diagnostic::new(Code::Syntax, "", fault.message).bytes(fault.at..fault.at + 1));
            }
            return Checked { plan: None, diagnostics: found };
        }
    };
    let plan = Checker::new(text, &wire, registry, tasks).run(&mut found);
    Checked { plan: plan.filter(|_| !found.has_errors()), diagnostics: found }
}

/// What to say of a file that is too large; it need not be read to say so.
pub fn too_large(bytes: u64) -> Diagnostic {
    let message = format!("{bytes} bytes are more than the limit of {FILE_BYTES_MAX}");
    Diagnostic::new(Code::FileTooLarge, "", message)
}

/// What the passes know of each node by the time they have run.
struct Draft {
    signature: Option<Signature>,
    /// Data inputs, then node-valued parameters; `None` where the name is unknown.
    inputs: Vec<Option<NodeIx>>,
    /// How many of the last of them are reserves.
    reserves: usize,
    /// In the signature's order; `None` where the value is wrong.
    args: Vec<Option<Arg>>,
    label: Option<String>,
    substitutes: Substitutes,
    /// The keys that it logs.
    log: Option<Vec<Key>>,
    source: Option<SourceSpan>,
}

impl Draft {
    /// What becomes of the rows, given the node's parameters: never "where".
    fn rows(&self) -> Option<RowEffect> {
        let contract = self.signature?.contract;
        Some(contract.rows_with(|param| match self.args.get(contract.param(param)?.0)?.as_ref()? {
            Arg::Text(word) => Some(&**word),
            _ => None,
        }))
    }

    /// The inputs that it works on in every run.
    fn awaited(&self) -> impl Iterator<Item = NodeIx> {
        self.inputs.iter().take(self.inputs.len() - self.reserves).flatten().copied()
    }

    /// The nodes that come before it in every order: its inputs, and those whose rows it names in place of its own. Each with the
    /// field that names it.
    fn waits_for(&self) -> impl Iterator<Item = (&'static str, NodeIx)> {
        let inputs = self.inputs.iter().flatten().map(|input| ("inputs", *input));
        inputs.chain(self.substitutes.nodes())
    }
}

struct Checker<'a> {
    /// The artifact.
    text: &'a str,
    wire: &'a WirePlan<'a>,
    names: Names<'a>,
    tasks: &'a Signatures,
    by_id: HashMap<&'a str, NodeIx>,
    /// How much data the plan contains, so far.
    data: Cell<Data>,
    /// The numbers that follow the load, so far.
    dials: RefCell<Vec<PlanDial>>,
}

/// How much data is in a plan.
#[derive(Clone, Copy, Default)]
struct Data {
    /// Values written out.
    values: usize,
    /// Cells of the rows that it makes, ids included.
    cells: usize,
}

impl<'a> Checker<'a> {
    fn new(text: &'a str, wire: &'a WirePlan<'a>, registry: &'a Registry, tasks: &'a Signatures) -> Checker<'a> {
        Checker {
            text,
            wire,
            names: Names { registry },
            tasks,
            by_id: HashMap::new(),
            data: Cell::default(),
            dials: RefCell::default(),
        }
    }

    fn run(mut self, found: &mut Diagnostics) -> Option<Plan> {
        self.index_ids(found);
        let mut tables = Tables::decode(self.wire, &self.names, found);
        let mut drafts = Vec::with_capacity(self.wire.nodes.len());
        for at in 0..self.wire.nodes.len() {
            let before = found.list().len();
            let draft = self.draft(at, &mut tables, found);
            found.place_since(before, draft.source.as_ref());
            drafts.push(draft);
        }
        tables.report_unused(found);
        let outputs = self.outputs(found);
        paging::check(self.wire, &drafts, &outputs, found);
        let order = graph::order(self.wire, &drafts, found);
        let reach = graph::reach(self.wire, &drafts, &outputs, found);
        if let Some(order) = &order {
            let after = flow::check(self.wire, &drafts, order, self.names.registry, found);
            substitute_flow::check(self.wire, &drafts, order, &after, self.names.registry, found);
            doubled::check(self.wire, &drafts, order, found);
            logs::check(self.wire, &drafts, &after, &reach, self.names.registry, found);
            models::note_present(&mut drafts, &after, self.names.registry);
        }
        if found.has_errors() {
            return None;
        }
        self.build(drafts, outputs, order?, &reach)
    }

    fn index_ids(&mut self, found: &mut Diagnostics) {
        for (at, node) in self.wire.nodes.iter().enumerate() {
            if node.node_id.is_empty() {
                continue;
            }
            if let Some(first) = self.by_id.insert(&node.node_id, at as NodeIx) {
                let message = format!("the node id {} is taken by /nodes/{first}", quoted(&node.node_id));
                let source = node.source.and_then(|span| self.wire.sources.span(span));
                let diagnostic = Diagnostic::new(Code::DuplicateNode, format!("/nodes/{at}/node_id"), message);
                found.push(diagnostic.source(source));
                self.by_id.insert(&node.node_id, first);
            }
        }
    }

    fn draft(&self, at: usize, tables: &mut Tables<'_>, found: &mut Diagnostics) -> Draft {
        let node = &self.wire.nodes[at];
        let source = node.source.and_then(|span| self.wire.sources.span(span));
        if node.source.is_some() && source.is_none() {
            let message = "the sources table has no such span";
            found.push(Diagnostic::new(Code::BadSource, format!("/nodes/{at}/source"), message));
        }
        let inputs = (node.inputs.iter().enumerate())
            .map(|(input, id)| self.node(id, || format!("/nodes/{at}/inputs/{input}"), found))
            .collect();
        let mut draft = Draft {
            signature: None,
            inputs,
            reserves: 0,
            args: Vec::new(),
            label: None,
            substitutes: Substitutes::default(),
            log: logs::read(self, at, found),
            source,
        };
        self.read_task(at, tables, &mut draft, found);
        draft.substitutes = substitutes::read(self, at, &draft, tables, found);
        draft
    }

    fn read_task(&self, at: usize, tables: &mut Tables<'_>, draft: &mut Draft, found: &mut Diagnostics) {
        let node = &self.wire.nodes[at];
        let Some(op) = &node.op else { return };
        let Some(signature) = self.tasks.get(op) else {
            let unknown =
                Diagnostic::new(Code::UnknownOp, format!("/nodes/{at}/op"), format!("there is no task {}", quoted(op)));
            found.push(unknown.nearest(op, self.tasks.iter().map(|task| task.op)));
            return;
        };
        draft.signature = Some(*signature);
        let wanted = signature.contract.inputs.range();
        if !wanted.contains(&node.inputs.len()) {
            let (least, most) = (*wanted.start(), *wanted.end());
            let count = match (least, most) {
                (0, 1..) => format!("at most {most}"),
                (least, most) if least < most => format!("{least} to {most}"),
                (_, most) => most.to_string(),
            };
            let message = format!("{op} takes {count} {}, not {}", plural(most, "input"), node.inputs.len());
            found.push(Diagnostic::new(Code::WrongInputs, format!("/nodes/{at}/inputs"), message));
        }
        args::read(self, at, *signature, tables, draft, found);
    }

    /// The position of the node with this id.
    fn node(&self, id: &str, pointer: impl Fn() -> String, found: &mut Diagnostics) -> Option<NodeIx> {
        let at = self.by_id.get(id).copied();
        if at.is_none() && !id.is_empty() {
            let unknown = Diagnostic::new(Code::UnknownNode, pointer(), format!("there is no node {}", quoted(id)));
            found.push(unknown.nearest(id, self.wire.nodes.iter().map(|node| &*node.node_id)));
        }
        at
    }

    fn outputs(&self, found: &mut Diagnostics) -> Vec<NodeIx> {
        let mut outputs: Vec<NodeIx> = Vec::new();
        let pointer = |at: usize| match self.wire.output_names.as_ref().and_then(|names| names.get(at)) {
            Some(name) => format!("/outputs/{}", segment(name)),
            None => format!("/outputs/{at}"),
        };
        for (at, id) in self.wire.outputs.iter().enumerate() {
            let Some(node) = self.node(id, || pointer(at), found) else { continue };
            if outputs.contains(&node) {
                let message = format!("the node {} is an output already", quoted(id));
                found.push(Diagnostic::new(Code::DuplicateOutput, pointer(at), message));
            } else {
                outputs.push(node);
            }
        }
        outputs
    }

    /// Puts the plan together. Everything is there, since nothing was reported.
    fn build(&self, drafts: Vec<Draft>, outputs: Vec<NodeIx>, order: Vec<NodeIx>, reach: &Reach) -> Option<Plan> {
        let mut nodes = Vec::with_capacity(drafts.len());
        for (at, draft) in drafts.into_iter().enumerate() {
            let wire = &self.wire.nodes[at];
            nodes.push(Node {
                id: Arc::from(&*wire.node_id),
                signature: draft.signature?,
                inputs: draft.inputs.into_iter().collect::<Option<_>>()?,
                reserves: draft.reserves,
                args: draft.args.into_iter().collect::<Option<_>>()?,
                label: draft.label,
                scheduling: wire.scheduling,
                timeout_ms: wire.timeout_ms,
                source: draft.source,
                fallback: draft.substitutes.fallback,
                fail_open: wire.fail_open.as_deref().map(Arc::from),
                condition: draft.substitutes.condition,
                log: draft.log.map(Arc::from),
                needed: reach.needed[at],
                lazy: reach.needed[at] && !reach.eager[at],
            });
        }
        let (name, sha256) = (self.wire.plan_name.to_string(), sha256(self.text).into());
        let (sources, registry) = (self.wire.sources.clone(), self.names.registry.id());
        let output_names =
            self.wire.output_names.as_ref().map(|names| names.iter().map(|name| name.to_string()).collect());
        Some(Plan { name, sha256, nodes, outputs, output_names, order, dials: self.dials.take(), sources, registry })
    }
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}
