//! The expression and predicate tables: decoded, type-checked and compiled for the places that use them.

use crate::check::names::Names;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::json::segment;
use crate::limits::{PLAN_EXPRESSION_NODES_MAX, PLAN_TEXT_BYTES_MAX};
use crate::registry::{Absent, Registry};
use crate::wire::expression::{self, Decoded, Size, Sort};
use crate::wire::{Sources, WirePlan};
use rankd_column::Key;
use rankd_column::expr::pattern::Literals;
use rankd_column::expr::{Ix, Op, Program, Tree, TypeError, TypeFault, Want};
use std::collections::HashMap;
use std::sync::Arc;

struct TableEntry {
    /// `None` where something in it was reported, so that what uses it is not judged, and for a predicate.
    decoded: Option<Decoded>,
    used: bool,
    /// By what the places wanted; most expressions have one use.
    programs: Vec<(Use, Arc<Program>)>,
}

/// What a place does with an expression or predicate.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Use {
    want: Want,
    /// The key that it is written to, where that key says what becomes of a null.
    settled: Option<Key>,
}

pub(super) struct Tables<'r> {
    registry: &'r Registry,
    /// The regular expressions of all tables.
    literals: Literals,
    /// In the artifact's order, so that reports are too.
    exprs: Vec<(String, TableEntry)>,
    preds: Vec<(String, TableEntry)>,
    expr_at: HashMap<String, usize>,
    pred_at: HashMap<String, usize>,
}

impl<'r> Tables<'r> {
    pub(super) fn decode(wire: &WirePlan<'_>, names: &Names<'r>, found: &mut Diagnostics) -> Tables<'r> {
        let (mut size, mut literals) = (Size::default(), Literals::default());
        let too_large = |size: &Size| size.nodes > PLAN_EXPRESSION_NODES_MAX || size.text > PLAN_TEXT_BYTES_MAX;
        let mut read = |field: &str, entries: &[(std::borrow::Cow<'_, str>, &str)], sort: Sort| {
            let mut tables = Vec::with_capacity(entries.len());
            for (id, text) in entries {
                let pointer = format!("/{field}/{}", segment(id));
                let mut table = TableEntry { decoded: None, used: false, programs: Vec::new() };
                if !too_large(&size) {
                    let decoded =
                        decode_one(text, pointer, sort, names, &wire.sources, &mut literals, &mut size, found);
                    match (decoded, sort) {
                        // A predicate has no other use, so its tree is no longer needed.
                        (Some((_, want, program)), Sort::Predicate) => {
                            table.programs.push((Use { want, settled: None }, Arc::new(program)));
                        }
                        // The places of an expression say what they want of it.
                        (Some((decoded, ..)), Sort::Value) => table.decoded = Some(decoded),
                        (None, _) => {}
                    }
                }
                tables.push((id.to_string(), table));
            }
            tables
        };
        let exprs = read("expr_table", &wire.exprs, Sort::Value);
        let preds = read("pred_table", &wire.preds, Sort::Predicate);
        if too_large(&size) {
            let message = match size.nodes > PLAN_EXPRESSION_NODES_MAX {
                true => format!("all expressions together are larger than the limit of {PLAN_EXPRESSION_NODES_MAX}"),
                false => {
                    format!("the texts in all expressions have more bytes than the limit of {PLAN_TEXT_BYTES_MAX}")
                }
            };
            found.push(Diagnostic::new(Code::ExpressionTooLarge, "/expr_table", message));
        }
        let index = |tables: &[(String, TableEntry)]| {
            tables.iter().enumerate().map(|(at, (id, _))| (id.clone(), at)).collect::<HashMap<_, _>>()
        };
        let (expr_at, pred_at) = (index(&exprs), index(&preds));
        Tables { registry: names.registry, literals, exprs, preds, expr_at, pred_at }
    }

    /// The program of expression `id` for the column of a key. `None` where something about it was reported.
    pub(super) fn expr(
        &mut self,
        id: &str,
        into: Option<Key>,
        pointer: &str,
        found: &mut Diagnostics,
    ) -> Option<Arc<Program>> {
        let at = self.expr_at.get(id).copied();
        let entry = into.map(|key| (key, self.registry.key(key)));
        let use_of = Use {
            want: entry.map_or(Want::Value, |(_, entry)| Want::Column(entry.type_of)),
            settled: entry.filter(|(_, entry)| entry.absent() != Absent::Null).map(|(key, _)| key),
        };
        self.program(Sort::Value, at, id, use_of, pointer, found)
    }

    pub(super) fn pred(&mut self, id: &str, pointer: &str, found: &mut Diagnostics) -> Option<Arc<Program>> {
        let at = self.pred_at.get(id).copied();
        self.program(Sort::Predicate, at, id, Use { want: Want::Predicate, settled: None }, pointer, found)
    }

    fn program(
        &mut self,
        sort: Sort,
        at: Option<usize>,
        id: &str,
        use_of: Use,
        pointer: &str,
        found: &mut Diagnostics,
    ) -> Option<Arc<Program>> {
        let (tables, what) = match sort {
            Sort::Value => (&mut self.exprs, "expression"),
            Sort::Predicate => (&mut self.preds, "predicate"),
        };
        let Some(at) = at else {
            let unknown = Diagnostic::new(Code::UnknownTable, pointer, format!("there is no {what} {}", quoted(id)));
            found.push(unknown.nearest(id, tables.iter().map(|(id, _)| id.as_str())));
            return None;
        };
        let table = &mut tables[at].1;
        table.used = true;
        if let Some((_, program)) = table.programs.iter().find(|(known, _)| *known == use_of) {
            return Some(program.clone());
        }
        match compile(&table.decoded.as_ref()?.tree, self.registry, use_of, &mut self.literals) {
            Ok(program) => {
                let program = Arc::new(program);
                table.programs.push((use_of, program.clone()));
                Some(program)
            }
            Err(errors) => {
                // Each error inside was reported with the table; what is left is that the result does not fit here.
                for error in errors {
                    found.push(Diagnostic::new(code(&error.fault), pointer, error.fault.to_string()));
                }
                None
            }
        }
    }

    pub(super) fn report_unused(&self, found: &mut Diagnostics) {
        for (field, tables) in [("expr_table", &self.exprs), ("pred_table", &self.preds)] {
            for (id, _) in tables.iter().filter(|(_, table)| !table.used) {
                let pointer = format!("/{field}/{}", segment(id));
                found.push(Diagnostic::new(Code::UnusedTable, pointer, format!("no node uses {}", quoted(id))));
            }
        }
    }
}

/// The program of a tree for a place. What the key says of a null is part of it, so that it holds however the program is run.
fn compile(tree: &Tree, registry: &Registry, use_of: Use, literals: &mut Literals) -> Result<Program, Vec<TypeError>> {
    let mut compile = |tree: &Tree| Program::compile_with(tree, registry, use_of.want, literals);
    let Some(entry) = use_of.settled.map(|key| registry.key(key)) else {
        return compile(tree);
    };
    match entry.absent() {
        Absent::Null => compile(tree),
        Absent::Refused => compile(tree).map(|program| program.requiring(&entry.name)),
        Absent::Default(value) => {
            // The result must fit the key by itself: the default would hide that, say, an int was to be a string.
            compile(tree)?;
            let mut tree = tree.clone();
            let (root, source) =
                ((tree.nodes().len() as Ix).saturating_sub(1), tree.nodes().last().and_then(|n| n.source));
            let default = tree.push(Op::Const(value.clone()), source);
            tree.push(Op::Coalesce(root, default), source);
            compile(&tree)
        }
    }
}

/// A table entry and its program for any place; `None` where something about it was reported.
#[expect(clippy::too_many_arguments, reason = "what the tables have in common, spelled out once")]
fn decode_one(
    text: &str,
    pointer: String,
    sort: Sort,
    names: &Names<'_>,
    sources: &Sources,
    literals: &mut Literals,
    size: &mut Size,
    found: &mut Diagnostics,
) -> Option<(Decoded, Want, Program)> {
    let decoded = match expression::decode(text, pointer, sort, names, sources, found) {
        Ok((decoded, more)) => {
            *size = Size { nodes: size.nodes + more.nodes, text: size.text + more.text };
            decoded
        }
        // The whole text was read once already, so this does not happen; if it did, the report is the right one.
        Err(fault) => {
            found.push(Diagnostic::new(Code::Syntax, "", fault.message));
            return None;
        }
    };
    let want = match sort {
        Sort::Value => Want::Value,
        Sort::Predicate => Want::Predicate,
    };
    match Program::compile_with(&decoded.tree, names.registry, want, literals) {
        Ok(_) if decoded.broken => None,
        Ok(program) => {
            report_constants(&decoded, sources, found);
            Some((decoded, want, program))
        }
        Err(errors) => {
            for TypeError { node, fault } in &errors {
                let source = decoded.tree.nodes()[*node as usize].source.and_then(|at| sources.span(at));
                found.push(Diagnostic::new(code(fault), decoded.pointer(*node), fault.to_string()).source(source));
            }
            None
        }
    }
}

/// Warns of predicates that read neither a key nor a parameter: the table's own, or the condition of an `if`.
fn report_constants(decoded: &Decoded, sources: &Sources, found: &mut Diagnostics) {
    let nodes = decoded.tree.nodes();
    // Operands come before what reads them.
    let mut constant: Vec<bool> = Vec::with_capacity(nodes.len());
    let mut asked = Vec::new();
    for node in nodes {
        let of = |ix: &u32| constant.get(*ix as usize).copied().unwrap_or(false);
        let is = |ix: u32, truth: bool| matches!(nodes[ix as usize].op, Op::Truth(it) if it == truth);
        constant.push(match &node.op {
            Op::Key(_) | Op::Param(_) | Op::NowMs | Op::UserId | Op::Match { .. } => false,
            Op::And(a, b) if is(*a, false) || is(*b, false) => true,
            Op::Or(a, b) if is(*a, true) || is(*b, true) => true,
            op => op.children().all(|child| of(&child)),
        });
        if let Op::If { cond, .. } = node.op {
            asked.push(cond);
        }
    }
    let root = (nodes.len() as u32).checked_sub(1).filter(|root| nodes[*root as usize].op.is_predicate());
    for ix in asked.into_iter().chain(root).filter(|ix| constant.get(*ix as usize) == Some(&true)) {
        let source = nodes[ix as usize].source.and_then(|at| sources.span(at));
        let message = "this predicate is the same for every row and every request";
        let warning = Diagnostic::new(Code::ConstantPredicate, decoded.pointer(ix), message);
        found.push(warning.help("compare a key or a parameter, or leave it out").source(source));
    }
}

fn code(fault: &TypeFault) -> Code {
    match fault {
        TypeFault::BadList => Code::BadList,
        TypeFault::BadRegex(_) => Code::BadRegex,
        TypeFault::TooManyRegexes => Code::ExpressionTooLarge,
        TypeFault::WrongResult { .. } => Code::WrongResult,
        _ => Code::TypeMismatch,
    }
}
