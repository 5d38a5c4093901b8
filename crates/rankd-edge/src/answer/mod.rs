//! An outcome as the response's JSON, or its rows as an Arrow stream. The rows themselves are written in [`rows`], what is missing in
//! [`degraded`]; for people, [`table`] and [`pretty`](mod@pretty).

mod degraded;
mod pretty;
mod rows;
mod shown_text;
mod table;

/// Writes what random choices followed from, where the plan makes any: as the request gave it.
pub fn write_seed(outcome: &Outcome, w: &mut Writer) {
    match &outcome.seed {
        None => {}
        Some(Seed::Int(number)) => {
            w.field("seed").int(*number);
        }
        Some(Seed::Text(text)) => {
            w.field("seed").string(text);
        }
    }
}

/// Writes the arms of experiments that a request was in, where it was in any, and whether it chose them.
pub fn write_arms(arms: Option<&Arms>, w: &mut Writer) {
    let Some(arms) = arms else { return };
    if !arms.is_empty() {
        w.field("arms").object(|w| {
            for (experiment, arm) in arms.names() {
                w.field(experiment).string(arm);
            }
        });
    }
    if arms.is_forced {
        w.field("forced").bool(true);
    }
}

/// The tables that a plan names, each with the SHA-256 of its file where it has one.
pub(crate) fn table_digests<'a>(
    plan: &'a Linked,
    registry: &'a Registry,
    versions: &'a TableVersions,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    plan.tables()
        .iter()
        .filter_map(|(table, _)| Some((&*registry.endpoints.get(table.0).name, &**versions.get(*table)?.sha256()?)))
}

/// Writes what became of the rows of a node: a field for each count that is not 0.
pub fn write_row_counts(node: &NodeTrace, w: &mut Writer) {
    for (name, rows) in node.noted_rows() {
        w.field(name).int(rows as i64);
    }
}

#[cfg(test)]
mod tests;

pub(crate) use degraded::{degraded_lines, short_lines};
pub use degraded::{taken, write_degraded, write_fallback, write_short};
pub use pretty::pretty;
pub(crate) use shown_text::shown_text;
pub use table::ROWS_SHOWN;

use crate::arrow::{self, ArrowField, TooLong};
use rankd_column::{Key, RowSet};
use rankd_engine::arms::Arms;
use rankd_engine::degraded::StandIn;
use rankd_engine::seed::Seed;
use rankd_engine::store::TableVersions;
use rankd_engine::trace::NodeTrace;
use rankd_engine::{Linked, Outcome, RunError};
use rankd_plan::Registry;
use rankd_plan::json::Writer;

/// About what an answer takes besides its rows.
const AROUND_ROWS: usize = 256;

/// What a response is made of, besides its outcome.
pub struct Answer<'a> {
    /// The id that the answer repeats.
    pub request_id: &'a str,
    /// The plan that ran.
    pub plan: &'a Linked,
    /// The registry that names the keys.
    pub registry: &'a Registry,
    /// The keys that were asked for; `None` for every key that the output has.
    pub output_keys: Option<&'a [Key]>,
    /// Whether the caller asked how the answer came about.
    pub with_trace: bool,
}

impl Answer<'_> {
    /// The answer as one line of JSON: rows, or why there are none.
    pub fn render(&self, outcome: &Outcome) -> Vec<u8> {
        match &outcome.result {
            Ok(outputs) => self.response(outputs, outcome, true).into_bytes(),
            Err(error) => failure(self.request_id, Some(&self.plan.name), error, |w| {
                write_arms(outcome.arms.as_deref(), w);
                self.trace(outcome, w);
            }),
        }
    }

    /// How much there is to write, counted in cells.
    pub fn weight(&self, outcome: &Outcome) -> usize {
        const CELLS_A_NODE: usize = 32;
        const CELLS_A_FALLBACK: usize = 8;
        let nodes = outcome.trace.as_ref().filter(|_| self.with_trace).map_or(0, |trace| trace.nodes.len());
        let around = CELLS_A_NODE * nodes + CELLS_A_FALLBACK * outcome.degraded.len();
        around + outcome.result.as_ref().map_or(0, |outputs| rows::weight(outputs))
    }

    /// The rows of a run as an Arrow stream. What the response says besides them goes with the schema, as JSON; what is missing also by
    /// itself, so that it is found without reading the rest.
    pub fn arrow(&self, outputs: &[RowSet], outcome: &Outcome) -> Result<Vec<u8>, TooLong> {
        let response = self.response(outputs, outcome, false).finish();
        let mut degraded = Writer::new();
        write_degraded(self.plan, &outcome.degraded, &mut degraded);
        let (degraded, is_degraded) = (degraded.finish(), !outcome.degraded.is_empty());
        let about = [("response", &*response), ("degraded", &*degraded)];
        let about = if is_degraded { &about[..] } else { &about[..1] };
        let names = self.plan.output_names.as_deref();
        arrow::stream(self.registry.key(Key::ID).type_of, names, &self.fields(outputs), outputs, about)
    }

    /// The keys that were asked for, or those that any output has, in registry order.
    fn fields(&self, outputs: &[RowSet]) -> Vec<ArrowField<'_>> {
        let mut keys: Vec<Key> = match self.output_keys {
            Some(keys) => keys.to_vec(),
            None => outputs.iter().flat_map(|output| output.batch().columns()).map(|(key, _)| *key).collect(),
        };
        keys.sort_unstable();
        keys.dedup();
        let entries = keys.into_iter().filter(|key| *key != Key::ID).map(|key| (key, self.registry.key(key)));
        entries.map(|(key, entry)| ArrowField { key, name: &entry.name, type_of: entry.type_of }).collect()
    }

    /// With the rows themselves, or with everything but them.
    fn response(&self, outputs: &[RowSet], outcome: &Outcome, with_rows: bool) -> Writer {
        let mut writer = Writer::with_capacity(AROUND_ROWS + if with_rows { rows::bytes_about(outputs) } else { 0 });
        writer.object(|w| {
            w.field("request_id").string(self.request_id);
            w.field("plan").string(&self.plan.name);
            let names = self.plan.output_names.as_deref();
            match names.filter(|_| with_rows) {
                Some(names) => {
                    w.field("outputs").object(|w| {
                        for (name, rows) in names.iter().zip(outputs) {
                            self.rows(std::slice::from_ref(rows), w.field(name));
                        }
                    });
                }
                None => {
                    if with_rows {
                        self.rows(outputs, w.field("candidates"));
                    }
                    if outputs.len() > 1 || names.is_some() {
                        self.counts(outputs, names, w);
                    }
                }
            }
            if !outcome.degraded.is_empty() {
                write_degraded(self.plan, &outcome.degraded, w.field("degraded"));
            }
            if !outcome.short.is_empty() {
                write_short(self.plan, &outcome.short, w.field("short"));
            }
            let turned = self.plan.dials.iter().zip(&outcome.dials).filter(|(dial, value)| dial.first != **value);
            let mut turned = turned.peekable();
            if turned.peek().is_some() {
                w.field("dials").object(|w| {
                    for (dial, value) in turned {
                        w.field(&dial.name).int(*value);
                    }
                });
            }
            if let Some(cursor) = &outcome.cursor {
                w.field("cursor").string(&cursor.text);
            }
            write_arms(outcome.arms.as_deref(), w);
            write_seed(outcome, w);
            self.trace(outcome, w);
        });
        writer
    }

    /// The rows of outputs, one after the other, as one array.
    fn rows(&self, outputs: &[RowSet], w: &mut Writer) {
        w.pushed(|out| {
            out.push(b'[');
            for output in outputs {
                rows::push_rows(out, output, self.registry, self.output_keys);
            }
            out.push(b']');
        });
    }

    /// How many rows are of which output, where they stand one after the other.
    fn counts(&self, outputs: &[RowSet], names: Option<&[String]>, w: &mut Writer) {
        w.field("outputs").array(|w| {
            for (at, (output, rows)) in self.plan.outputs.iter().zip(outputs).enumerate() {
                w.object(|w| {
                    if let Some(name) = names.and_then(|names| names.get(at)) {
                        w.field("name").string(name);
                    }
                    w.field("node").string(&self.plan.node(*output).id);
                    w.field("rows").int(rows.len() as i64);
                });
            }
        });
    }

    /// The trace, where it was asked for.
    fn trace(&self, outcome: &Outcome, w: &mut Writer) {
        let Some(trace) = outcome.trace.as_ref().filter(|_| self.with_trace) else { return };
        let taken = taken(&outcome.degraded);
        w.field("trace").object(|w| {
            w.field("total_us").float(micros(trace.total_ns));
            w.field("plan_sha256").string(&self.plan.sha256);
            w.field("registry_sha256").string(self.registry.sha256());
            write_arms(outcome.arms.as_deref(), w);
            write_seed(outcome, w);
            if let Some(cursor) = outcome.cursor.as_ref().filter(|cursor| cursor.forgotten > 0) {
                w.field("cursor_forgets").int(cursor.forgotten as i64);
            }
            if let Some(versions) = &outcome.models {
                w.field("models").object(|w| {
                    let mut uses: Vec<_> = self.plan.models().uses().iter().map(|of| (&of.name, of.model)).collect();
                    uses.sort_unstable();
                    uses.dedup();
                    for (name, version) in uses.into_iter().filter_map(|(name, at)| Some((name, versions.get(at)?))) {
                        w.field(name).string(version.sha256());
                    }
                });
            }
            if let Some(versions) = &outcome.tables {
                w.field("tables").object(|w| {
                    for (name, sha256) in table_digests(self.plan, self.registry, versions) {
                        w.field(name).string(sha256);
                    }
                });
            }
            w.field("nodes").array(|w| {
                for node in &trace.nodes {
                    w.object(|w| self.node(node, taken.get(&node.node), w));
                }
            });
            w.field("schema_deltas").array(|w| {
                for node in &trace.nodes {
                    w.object(|w| self.schema_delta(node, w));
                }
            });
        });
    }

    fn node(&self, node: &NodeTrace, taken: Option<&StandIn>, w: &mut Writer) {
        let linked = self.plan.node(node.node);
        w.field("node").string(&linked.id);
        w.field("op").string(linked.op);
        if let Some(label) = &linked.label {
            w.field("label").string(label);
        }
        w.field("where").string(&node.on.name());
        w.field("outcome").string(node.end.name());
        if let Some(fallback) = taken {
            write_fallback(self.plan, *fallback, w.field("fallback"));
        }
        w.field("ready_us").float(micros(node.ready_ns));
        w.field("start_us").float(micros(node.start_ns));
        w.field("end_us").float(micros(node.end_ns));
        if let Some(queue_ns) = node.queue_ns() {
            w.field("queue_us").float(micros(queue_ns));
        }
        if let Some(inlined) = node.inlined {
            w.field("inline_depth").int(inlined.depth.into());
            if let Some(parent) = inlined.parent {
                w.field("inline_parent").string(&self.plan.node(parent).id);
            }
        }
        if let Some(after) = node.chained_after {
            w.field("chained_after").string(&self.plan.node(after).id);
        }
        if let Some(into) = node.fused_into {
            w.field("fused_into").string(&self.plan.node(into).id);
        }
        for (name, value) in [("rows_in", node.rows_in), ("rows_out", node.rows_out)] {
            w.field(name).int(value as i64);
        }
        for (name, value) in [("commands", node.commands), ("bytes", node.bytes), ("skipped", node.skipped)] {
            if value > 0 {
                w.field(name).int(value as i64);
            }
        }
        write_row_counts(node, w);
        if let Some(detail) = &node.detail {
            w.field("detail").string(detail);
        }
        w.field("critical").bool(node.critical);
    }

    fn schema_delta(&self, node: &NodeTrace, w: &mut Writer) {
        let mut list = |name: &str, keys: &mut dyn Iterator<Item = &Key>| {
            w.field(name).array(|w| {
                for key in keys {
                    w.string(&self.registry.key(*key).name);
                }
            });
        };
        let (before, after) = (&node.keys_in, &node.keys_out);
        list("in_keys", &mut before.iter());
        list("out_keys", &mut after.iter());
        list("new_keys", &mut after.iter().filter(|key| !before.contains(key)));
        list("removed_keys", &mut before.iter().filter(|key| !after.contains(key)));
        w.field("node").string(&self.plan.node(node.node).id);
    }
}

/// A response that says why there are no rows.
pub fn failure(request_id: &str, plan: Option<&str>, error: &RunError, more: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("request_id").string(request_id);
        if let Some(plan) = plan {
            w.field("plan").string(plan);
        }
        write_error(error, w.field("error"));
        more(w);
    });
    writer.into_bytes()
}

/// Writes why there are no rows, as an object.
pub fn write_error(error: &RunError, w: &mut Writer) {
    w.object(|w| {
        w.field("code").string(error.code.id);
        w.field("kind").string(error.code.kind.name());
        w.field("retry").bool(error.code.retry);
        w.field("message").string(&error.message);
        if let Some(node) = &error.node {
            w.field("node").string(&node.id);
            w.field("op").string(node.op);
            if let Some(at) = &node.at {
                w.field("at").string(at);
            }
        }
    });
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}
