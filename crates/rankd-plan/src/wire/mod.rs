//! The artifact as it is written: fields in their types, names still names.
//!
//! Decoding goes on after a mistake and reports all of them; only text that is no JSON ends it. Parameters and expressions
//! stay as text here: what they must be is known only when their task and the registry are.

pub(crate) mod cursor;
pub(crate) mod expression;
mod substitute;

pub use substitute::WireSubstitute;

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, SourceSpan, quoted};
use crate::json::{Fault, Kind};
use crate::limits::{
    INPUTS_MAX, NAME_BYTES_MAX, NODES_MAX, OUTPUTS_MAX, SOURCE_FILES_MAX, SOURCE_PATH_BYTES_MAX, SOURCE_SPANS_MAX,
    TABLE_ENTRIES_MAX,
};
use cursor::Cursor;
use std::borrow::Cow;
use std::sync::Arc;

/// The version of the format that this build reads and writes.
pub const SCHEMA_VERSION: i64 = 1;

#[derive(Debug, Default)]
pub struct WirePlan<'a> {
    pub plan_name: Cow<'a, str>,
    pub nodes: Vec<WireNode<'a>>,
    pub outputs: Vec<Cow<'a, str>>,
    /// By output: its name. Nothing where the plan lists them without names.
    pub output_names: Option<Vec<Cow<'a, str>>>,
    /// Table id and the text of its expression.
    pub exprs: Vec<(Cow<'a, str>, &'a str)>,
    pub preds: Vec<(Cow<'a, str>, &'a str)>,
    pub sources: Sources,
}

#[derive(Debug, Default)]
pub struct WireNode<'a> {
    pub node_id: Cow<'a, str>,
    /// `None` where it is missing, which has been reported.
    pub op: Option<Cow<'a, str>>,
    pub inputs: Vec<Cow<'a, str>>,
    /// Name and text of each parameter.
    pub params: Vec<(Cow<'a, str>, &'a str)>,
    pub scheduling: Scheduling,
    pub timeout_ms: Option<u32>,
    pub fallback: Option<WireSubstitute<'a>>,
    pub fail_open: Option<Cow<'a, str>>,
    /// The id of a predicate.
    pub when: Option<Cow<'a, str>>,
    pub otherwise: Option<WireSubstitute<'a>>,
    /// The text of the keys that it logs.
    pub log: Option<&'a str>,
    pub source: Option<u32>,
}

/// What the author knows about a node's cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// `Some(false)` keeps the node off the event loop.
    pub inline: Option<bool>,
    pub cost_estimate_us: Option<u32>,
}

/// Where the plan's author wrote things.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Arc<[(String, String)]>,
    spans: Arc<[[u32; 5]]>,
}

impl Sources {
    /// The path and the SHA-256 of each file that the plan was made of, its own first.
    pub fn files(&self) -> &[(String, String)] {
        &self.files
    }

    /// The place numbered `at`; `None` when the table does not have it.
    pub fn span(&self, at: u32) -> Option<SourceSpan> {
        let [file, line, column, end_line, end_column] = *self.spans.get(at as usize)?;
        let (path, sha256) = self.files.get(file as usize)?.clone();
        Some(SourceSpan { path, sha256, line, column, end_line, end_column })
    }
}

const PLAN_FIELDS: &[&str] =
    &["schema_version", "plan_name", "nodes", "outputs", "expr_table", "pred_table", "sources", "built_by"];
const NODE_FIELDS: &[&str] = &[
    "node_id",
    "op",
    "inputs",
    "params",
    "scheduling",
    "timeout_ms",
    "fallback",
    "fail_open",
    "when",
    "otherwise",
    "log",
    "source",
];
/// The longest time-out that a plan can ask for: a day.
const TIMEOUT_MS_MAX: i64 = 86_400_000;

/// Decodes a plan text.
pub fn decode<'a>(text: &'a str, found: &mut Diagnostics) -> Result<WirePlan<'a>, Fault> {
    let mut cursor = Cursor::new(text, String::new(), found);
    let mut plan = WirePlan::default();
    let (mut version, mut has_name, mut has_nodes, mut has_outputs) = (None, false, false, false);
    cursor.object(PLAN_FIELDS, |cursor, field| {
        match field {
            "schema_version" => version = Some(cursor.int(0, i64::MAX)?),
            "plan_name" => {
                has_name = true;
                plan.plan_name = cursor.text()?.unwrap_or_default();
                check_name(cursor, &plan.plan_name, |c| c.is_ascii_alphanumeric() || c == '_');
            }
            "nodes" => {
                has_nodes = true;
                plan.nodes = nodes(cursor)?;
            }
            "outputs" => {
                has_outputs = true;
                (plan.outputs, plan.output_names) = outputs(cursor)?;
                if plan.outputs.is_empty() {
                    cursor.report(Code::NoOutputs, "a plan needs at least one output");
                }
            }
            "expr_table" => plan.exprs = table(cursor)?,
            "pred_table" => plan.preds = table(cursor)?,
            "sources" => plan.sources = sources(cursor)?,
            "built_by" => {
                cursor.object(&["tool", "version", "registry", "content"], |cursor, _| cursor.text().map(drop))?
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    cursor.end()?;
    match version {
        None => cursor.missing("schema_version"),
        Some(Some(SCHEMA_VERSION)) | Some(None) => {}
        Some(Some(other)) => cursor.report_at(
            Diagnostic::new(
                Code::UnsupportedVersion,
                "/schema_version",
                format!("schema_version {other} is not known"),
            )
            .help(format!("this build reads version {SCHEMA_VERSION}")),
        ),
    }
    for (has, field) in [(has_name, "plan_name"), (has_nodes, "nodes"), (has_outputs, "outputs")] {
        if !has {
            cursor.missing(field);
        }
    }
    Ok(plan)
}

/// Looks whether there are too many nodes before reading any. Without its nodes, everything else would look wrong.
fn nodes<'a>(cursor: &mut Cursor<'a, '_>) -> Result<Vec<WireNode<'a>>, Fault> {
    let mut nodes = Vec::new();
    if !cursor.expect(Kind::Array)? {
        return Ok(nodes);
    }
    if cursor.has_more_than(NODES_MAX)? {
        cursor.report(Code::TooManyNodes, format!("there are more nodes than the limit of {NODES_MAX}"));
        return Err(Fault::REPORTED);
    }
    cursor.array(|cursor, _| {
        nodes.push(node(cursor)?);
        Ok(())
    })?;
    Ok(nodes)
}

fn node<'a>(cursor: &mut Cursor<'a, '_>) -> Result<WireNode<'a>, Fault> {
    let mut node = WireNode::default();
    let (mut has_id, mut has_fallback, mut has_when) = (false, false, false);
    cursor.object(NODE_FIELDS, |cursor, field| {
        match field {
            "node_id" => {
                has_id = true;
                node.node_id = cursor.text()?.unwrap_or_default();
                check_name(cursor, &node.node_id, |c| !c.is_control());
            }
            "op" => node.op = cursor.text()?,
            "inputs" => node.inputs = texts(cursor, INPUTS_MAX, "inputs")?,
            "params" => {
                let mut params = Vec::new();
                cursor.each_field(|cursor, name| {
                    params.push((name, cursor.raw()?));
                    Ok(())
                })?;
                node.params = params;
            }
            "scheduling" => cursor.object(&["inline", "cost_estimate_us"], |cursor, field| {
                match field {
                    "inline" => node.scheduling.inline = cursor.bool()?,
                    "cost_estimate_us" => {
                        node.scheduling.cost_estimate_us = cursor.int(0, u32::MAX.into())?.map(|us| us as u32);
                    }
                    _ => return Ok(false),
                }
                Ok(true)
            })?,
            "timeout_ms" => node.timeout_ms = cursor.int(1, TIMEOUT_MS_MAX)?.map(|ms| ms as u32),
            "fallback" => {
                has_fallback = true;
                node.fallback = substitute::read(cursor)?;
            }
            "fail_open" => node.fail_open = substitute::read_reason(cursor)?,
            "when" => {
                has_when = true;
                node.when = cursor.text()?;
            }
            "otherwise" => node.otherwise = substitute::read(cursor)?,
            "log" => node.log = Some(cursor.raw()?),
            "source" => node.source = cursor.int(0, u32::MAX.into())?.map(|at| at as u32),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if !has_id {
        cursor.missing("node_id");
    }
    if node.op.is_none() && !cursor.reported_below("op") {
        cursor.missing("op");
    }
    if node.otherwise.is_some() && !has_when {
        let message = "otherwise is what readers get where when is false, and there is no when";
        substitute::nothing_to_replace(cursor, "otherwise", message);
    }
    if node.fail_open.is_some() && !has_fallback && !has_when {
        substitute::nothing_to_replace(
            cursor,
            "fail_open",
            "fail_open goes with a fallback or a when, and there is none",
        );
    }
    Ok(node)
}

/// A list of nodes, or nodes by the names that the answer gives them.
#[expect(clippy::type_complexity, reason = "nodes and their names")]
fn outputs<'a>(cursor: &mut Cursor<'a, '_>) -> Result<(Vec<Cow<'a, str>>, Option<Vec<Cow<'a, str>>>), Fault> {
    if cursor.peek()? != Kind::Object {
        return Ok((texts(cursor, OUTPUTS_MAX, "outputs")?, None));
    }
    let (mut nodes, mut names, mut count) = (Vec::new(), Vec::new(), 0);
    cursor.each_field(|cursor, name| {
        count += 1;
        if count > OUTPUTS_MAX {
            return cursor.skip();
        }
        check_output_name(cursor, &name);
        nodes.push(cursor.text()?.unwrap_or_default());
        names.push(name);
        Ok(())
    })?;
    if count > OUTPUTS_MAX {
        let message = format!("{count} outputs are more than the limit of {OUTPUTS_MAX}");
        cursor.report(Code::TooManyInputs, message);
    }
    Ok((nodes, Some(names)))
}

/// Callers write these names in their programs.
fn check_output_name(cursor: &mut Cursor<'_, '_>, name: &str) {
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !starts || !is_plain || name.len() > NAME_BYTES_MAX {
        let message = format!("{} cannot be the name of an output", quoted(name));
        let help = format!("a small letter, then small letters, digits and _; at most {NAME_BYTES_MAX} bytes");
        let wrong = Diagnostic::new(Code::BadName, cursor.pointer(), message).help(help);
        cursor.report_at(wrong);
    }
}

fn texts<'a>(cursor: &mut Cursor<'a, '_>, max: usize, what: &str) -> Result<Vec<Cow<'a, str>>, Fault> {
    let mut texts = Vec::new();
    let mut count = 0;
    cursor.array(|cursor, _| {
        count += 1;
        if count > max {
            return cursor.skip();
        }
        texts.push(cursor.text()?.unwrap_or_default());
        Ok(())
    })?;
    if count > max {
        cursor.report(Code::TooManyInputs, format!("{count} {what} are more than the limit of {max}"));
    }
    Ok(texts)
}

fn table<'a>(cursor: &mut Cursor<'a, '_>) -> Result<Vec<(Cow<'a, str>, &'a str)>, Fault> {
    let (mut table, mut count) = (Vec::new(), 0);
    cursor.each_field(|cursor, name| {
        count += 1;
        if count > TABLE_ENTRIES_MAX {
            return cursor.skip();
        }
        check_name(cursor, &name, |c| !c.is_control());
        table.push((name, cursor.raw()?));
        Ok(())
    })?;
    if count > TABLE_ENTRIES_MAX {
        let message = format!("{count} entries are more than the limit of {TABLE_ENTRIES_MAX}");
        cursor.report(Code::ExpressionTooLarge, message);
    }
    Ok(table)
}

fn sources(cursor: &mut Cursor<'_, '_>) -> Result<Sources, Fault> {
    let (mut files, mut spans) = (Vec::new(), Vec::new());
    cursor.object(&["files", "spans"], |cursor, field| {
        match field {
            "files" => cursor.array(|cursor, at| {
                if at >= SOURCE_FILES_MAX {
                    return one_too_many(cursor, at, SOURCE_FILES_MAX, "files");
                }
                let (mut path, mut sha256) = (None, None);
                cursor.object(&["path", "sha256"], |cursor, field| {
                    match field {
                        "path" => path = cursor.text()?,
                        "sha256" => sha256 = cursor.text()?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                if path.is_none() && !cursor.reported_below("path") {
                    cursor.missing("path");
                }
                // Each node has a copy of them.
                let lengths = [&path, &sha256].map(|text| text.as_ref().map_or(0, |text| text.len()));
                if lengths[0] > SOURCE_PATH_BYTES_MAX || lengths[1] > 64 {
                    let message =
                        format!("the path has at most {SOURCE_PATH_BYTES_MAX} bytes, the digest 64, not {lengths:?}");
                    cursor.report(Code::BadSource, message);
                    return Ok(());
                }
                let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned).unwrap_or_default();
                files.push((owned(path), owned(sha256)));
                Ok(())
            })?,
            "spans" => cursor.array(|cursor, at| {
                if at >= SOURCE_SPANS_MAX {
                    return one_too_many(cursor, at, SOURCE_SPANS_MAX, "spans");
                }
                let mut span = [0; 5];
                let mut count = 0;
                cursor.array(|cursor, at| {
                    count += 1;
                    let number = cursor.int(0, u32::MAX.into())?.unwrap_or(0) as u32;
                    if let Some(slot) = span.get_mut(at) {
                        *slot = number;
                    }
                    Ok(())
                })?;
                if count != 5 {
                    cursor.report(Code::BadSource, "a span is [file, line, column, end line, end column]");
                }
                spans.push(span);
                Ok(())
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(Sources { files: files.into(), spans: spans.into() })
}

/// Skips what is over a limit, and says so once.
fn one_too_many(cursor: &mut Cursor<'_, '_>, at: usize, limit: usize, what: &str) -> Result<(), Fault> {
    if at == limit {
        cursor.report(Code::BadSource, format!("the sources table has more than the limit of {limit} {what}"));
    }
    cursor.skip()
}

fn check_name(cursor: &mut Cursor<'_, '_>, name: &str, allowed: impl Fn(char) -> bool) {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(allowed) {
        // An empty name may stand for one that was no string at all, which has been reported.
        if name.is_empty() && cursor.reported_here() {
            return;
        }
        let message = format!("{} cannot be a name", quoted(name));
        let help = format!("1 to {NAME_BYTES_MAX} bytes; plan names have letters, digits and _ only");
        let wrong = Diagnostic::new(Code::BadName, cursor.pointer(), message).help(help);
        cursor.report_at(wrong);
    }
}
