//! What became of items in a run, told to people and programs. Nothing here runs anything or prints.
//!
//! Reading order: this file (what there is to tell), `json`, `text` (for a terminal), `reasons` (why a row was dropped, in words), `absence`
//! (why a source did not give an item, for both), `change`, `personal` (what is left out).

mod absence;
mod change;
mod json;
mod personal;
mod reasons;
mod text;

use rankd_column::value::List;
use rankd_column::{Key, Value};
use rankd_engine::why::AskedItem;
use rankd_engine::{Linked, Outcome};
use rankd_plan::Registry;
use rankd_plan::json::Writer;
use rankd_plan::plan::NodeIx;

/// The answer to a question about items.
pub struct WhyAnswer<'a> {
    /// The id of the request.
    pub request_id: &'a str,
    /// The plan as it ran.
    pub plan: &'a Linked,
    /// The registry that the plan was linked with.
    pub registry: &'a Registry,
    /// What came of the run.
    pub outcome: &'a Outcome,
    /// What became of each item.
    pub items: &'a [AskedItem],
}

impl WhyAnswer<'_> {
    fn key(&self, key: Key) -> &str {
        &self.registry.key(key).name
    }

    /// What people call an output.
    fn output(&self, output: usize) -> String {
        match self.plan.output_names.as_ref().and_then(|names| names.get(output)) {
            Some(name) => name.clone(),
            None => output.to_string(),
        }
    }
}

/// Writes what a node is called: its id, task, label and place, as fields.
fn write_node(plan: &Linked, node: NodeIx, w: &mut Writer) {
    let linked = plan.node(node);
    w.field("node").string(&linked.id).field("op").string(linked.op);
    if let Some(label) = &linked.label {
        w.field("label").string(label);
    }
    if let Some(at) = linked.at() {
        w.field("at").string(at);
    }
}

/// Writes a value. A number that JSON does not have is a text.
pub(crate) fn write_value(value: &Value, w: &mut Writer) {
    let number = |value: f64, w: &mut Writer| {
        match value.is_finite() {
            true => w.float(value),
            false => w.string(&value.to_string()),
        };
    };
    match value {
        Value::Null => {
            w.null();
        }
        Value::Int(value) => {
            w.int(*value);
        }
        Value::Float(value) => number(*value, w),
        Value::Bool(value) => {
            w.bool(*value);
        }
        Value::Str(text) => {
            w.string(text);
        }
        Value::List(list) => {
            w.array(|w| match &**list {
                List::Int(list) => list.iter().for_each(|value| {
                    w.int(*value);
                }),
                List::Float(list) => list.iter().for_each(|value| number(*value, w)),
                List::Str(list) => list.iter().for_each(|value| {
                    w.string(value);
                }),
            });
        }
        Value::Vector(vector) => {
            w.array(|w| vector.iter().for_each(|value| number(f64::from(*value), w)));
        }
    }
}
