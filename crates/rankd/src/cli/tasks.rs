//! `rankd tasks`: the tasks that plans are made of, from their own declarations.

use crate::cli::{DONE, WRONG, say};
use clap::Args;
use rankd_edge::library::Library;
use rankd_edge::listing::Listing;
use rankd_edge::task_list;
use rankd_engine::task::Definition;
use rankd_plan::diagnostic::{nearest, quoted};
use rankd_plan::signature::Signature;

#[derive(Args)]
pub(crate) struct TasksArgs {
    /// Show this task with all its parameters
    task: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TasksArgs, library: &Library) -> u8 {
    let tasks = library.tasks();
    let shown: Vec<&Definition> = match &args.task {
        None => tasks.iter().collect(),
        Some(op) => match tasks.get(op) {
            Some(task) => vec![task],
            None => {
                let near = nearest(op, tasks.signatures().iter().map(|task| task.op));
                let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                say::to_people(&format!("error: there is no task {}{hint}", quoted(op)));
                return WRONG;
            }
        },
    };
    if args.json {
        say::to_programs(&task_list::to_json(&shown));
    } else if args.task.is_some() {
        shown.iter().for_each(|task| say::to_people(&task_list::in_full(&task.signature)));
    } else {
        let mut listing = Listing::new(&["task", "runs on", "rows", "does"]);
        for task in shown {
            let Signature { op, summary, contract } = task.signature;
            let runs = task.maker.runs_on().to_owned();
            listing.row(vec![op.to_owned(), runs, contract.rows.name().to_owned(), summary.to_owned()]);
        }
        say::to_people(&listing.render());
    }
    DONE
}
