//! What tasks declare, as JSON for programs and in words for people. Which tasks there are is the caller's business.

use crate::listing::Listing;
use rankd_column::Value;
use rankd_engine::task::Definition;
use rankd_plan::json::Writer;
use rankd_plan::signature::{Contract, Cost, Inputs, Need, Param, ParamUse, Signature, Writes};

/// One task with all its parameters.
pub fn in_full(task: &Signature) -> String {
    let mut listing = Listing::new(&["parameter", "takes", "default", ""]);
    for param in task.contract.params {
        listing.row(vec![param.name.to_owned(), param.kind.name(), default(param), about(param, task.contract)]);
    }
    let params = if task.contract.params.is_empty() { String::new() } else { format!("\n{}", listing.render()) };
    format!("{}: {}\n{params}", task.op, task.summary)
}

/// What a parameter is for, and where it goes.
fn about(param: &Param, contract: &Contract) -> String {
    let needed = contract.uses_in_words(param, |of| of.needed).map(|uses| format!("; needed where {uses}"));
    let only = contract.uses_in_words(param, |of| !of.needed).map(|uses| format!("; only where {uses}"));
    [Some(param.doc.to_owned()), needed, only].into_iter().flatten().collect()
}

fn default(param: &Param) -> String {
    match &param.need {
        Need::Required => "required".into(),
        Need::Optional => "none".into(),
        Need::Default(literal) => match literal.value() {
            Value::Str(text) => text.to_string(),
            other => other.to_string(),
        },
    }
}

/// Tasks with their parameters, as a JSON array.
pub fn to_json(tasks: &[&Definition]) -> String {
    let mut writer = Writer::new();
    writer.array(|w| {
        for task in tasks {
            let Signature { op, summary, contract } = task.signature;
            w.object(|w| {
                w.field("op").string(op);
                w.field("summary").string(summary);
                w.field("inputs").int(*contract.inputs.range().end() as i64);
                if contract.inputs == Inputs::Optional {
                    w.field("inputs_optional").bool(true);
                }
                w.field("rows").string(contract.rows.name());
                w.field("runs").string(task.maker.runs_on());
                w.field("trivial").bool(contract.cost == Cost::Trivial);
                w.field("writes").string(&match contract.writes {
                    Writes::Nothing => "nothing".to_owned(),
                    Writes::AnyKey => "any key".to_owned(),
                    Writes::Table(_) => "the columns of a table".to_owned(),
                    Writes::Params(params) => params.iter().map(|param| param.name()).collect::<Vec<_>>().join(", "),
                    Writes::Named(..) => "named".to_owned(),
                });
                w.field("params").array(|w| {
                    for param in contract.params {
                        w.object(|w| param_to_json(param, w));
                    }
                });
            });
        }
    });
    writer.finish()
}

fn param_to_json(param: &Param, w: &mut Writer) {
    w.field("name").string(param.name);
    w.field("kind").string(&param.kind.name());
    w.field("required").bool(matches!(param.need, Need::Required));
    if let Need::Default(literal) = &param.need {
        w.field("default");
        match literal.value() {
            Value::Int(value) => w.int(value),
            Value::Float(value) => w.float(value),
            Value::Bool(value) => w.bool(value),
            Value::Str(value) => w.string(&value),
            // No literal of a declaration is one of these.
            Value::Null | Value::List(_) | Value::Vector(_) => w.null(),
        };
    }
    if !param.uses.is_empty() {
        w.field("uses").array(|w| param.uses.iter().for_each(|of| use_to_json(of, w)));
    }
    w.field("doc").string(param.doc);
}

/// What a parameter goes together with: words of other parameters, and the empty text where one is not given.
fn use_to_json(of: &ParamUse, w: &mut Writer) {
    w.object(|w| {
        w.field("needed").bool(of.needed);
        w.field("when").object(|w| {
            for when in of.when {
                w.field(when.param.name()).array(|w| {
                    for word in when.words {
                        w.string(word);
                    }
                });
            }
        });
    });
}
