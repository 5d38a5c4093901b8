//! `rankd tasks`: the tasks that plans are made of, from their own declarations.

use crate::cli::listing::Listing;
use crate::cli::{DONE, WRONG, say};
use clap::Args;
use rankd_column::Value;
use rankd_plan::diagnostic::{nearest, quoted};
use rankd_plan::json::Writer;
use rankd_plan::signature::{Cost, Need, Param, Signature, Writes};
use rankd_tasks::SIGNATURES;

#[derive(Args)]
pub(crate) struct TasksArgs {
    /// Show this task with all its parameters
    task: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TasksArgs) -> u8 {
    let shown: Vec<&Signature> = match &args.task {
        None => SIGNATURES.iter().collect(),
        Some(op) => match SIGNATURES.iter().find(|task| task.op == op) {
            Some(task) => vec![task],
            None => {
                let near = nearest(op, SIGNATURES.iter().map(|task| task.op));
                let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                say::to_people(&format!("error: there is no task {}{hint}", quoted(op)));
                return WRONG;
            }
        },
    };
    if args.json {
        say::to_programs(&to_json(&shown));
    } else if args.task.is_some() {
        shown.iter().for_each(|task| say::to_people(&in_full(task)));
    } else {
        let mut listing = Listing::new(&["task", "runs on", "rows", "does"]);
        for task in shown {
            let Signature { op, summary, contract } = task;
            let runs = contract.runs.name().to_owned();
            listing.row(vec![(*op).to_owned(), runs, contract.rows.name().to_owned(), (*summary).to_owned()]);
        }
        say::to_people(&listing.render());
    }
    DONE
}

fn in_full(task: &Signature) -> String {
    let mut listing = Listing::new(&["parameter", "takes", "default", ""]);
    for param in task.contract.params {
        listing.row(vec![param.name.to_owned(), param.kind.name(), default(param), param.doc.to_owned()]);
    }
    let params = if task.contract.params.is_empty() { String::new() } else { format!("\n{}", listing.render()) };
    format!("{}: {}\n{params}", task.op, task.summary)
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

pub(crate) fn to_json(tasks: &[&Signature]) -> String {
    let mut writer = Writer::new();
    writer.array(|w| {
        for Signature { op, summary, contract } in tasks {
            w.object(|w| {
                w.field("op").string(op);
                w.field("summary").string(summary);
                w.field("inputs").int(contract.inputs.count() as i64);
                w.field("rows").string(contract.rows.name());
                w.field("runs").string(contract.runs.name());
                w.field("trivial").bool(contract.cost == Cost::Trivial);
                w.field("writes").string(match contract.writes {
                    Writes::Nothing => "nothing",
                    Writes::AnyKey => "any key",
                    Writes::Param(param) => param,
                    Writes::Named(_) => "named",
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
            Value::Bool(value) => w.bool(value),
            Value::Str(value) => w.string(&value),
            _ => w.null(),
        };
    }
    w.field("doc").string(param.doc);
}
