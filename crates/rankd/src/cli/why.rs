//! `rankd why`: what became of items in one run of a plan, and why. The run is made for the question, or is a captured one once more.

use crate::cli::command_error::CommandError;
use crate::cli::plan_engine::{PlanEngine, RunArgs};
use crate::cli::{DONE, FAILED, WRONG, say};
use clap::Args;
use rankd_column::Id;
use rankd_edge::capture::{CaptureFiles, CapturedRequest, CapturedRun, Replays};
use rankd_edge::input::{self, REQUEST_BYTES_MAX};
use rankd_edge::library::Library;
use rankd_edge::prepare::Tracing;
use rankd_edge::why::WhyAnswer;
use rankd_engine::why::{AskedPlan, ITEMS_MAX};
use rankd_engine::{Engine, Request};
use rankd_plan::json::Writer;
use rankd_plan::{Plan, Registry};
use std::io::{BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Args, Clone, Debug)]
pub(crate) struct WhyArgs {
    /// Name or file of the plan; with --capture, another plan than the one that was captured
    #[arg(value_name = "PLAN", required_unless_present_any = ["plan_name", "plan", "capture"], conflicts_with_all = ["plan_name", "plan"])]
    target: Option<String>,
    /// The id of an item to ask about; may be given several times
    #[arg(long = "item", value_name = "ID", required = true, allow_hyphen_values = true)]
    items: Vec<String>,
    /// Ask for this user, instead of reading a request
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Ask about a captured run: files of captures, or folders with them. It reads what was captured, and nothing from stores
    #[arg(long, value_name = "FILES", num_args = 1.., requires = "request_id", conflicts_with_all = ["user", "plan_name", "plan"])]
    capture: Vec<PathBuf>,
    /// The id of the captured request; of several with this id, the last one
    #[arg(long, value_name = "ID", requires = "capture")]
    request_id: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    run: RunArgs,
}

pub(crate) fn run(args: &WhyArgs, library: &Library) -> u8 {
    let answered = match &args.request_id {
        Some(request_id) => ask_captured(args, library, request_id),
        None => {
            let plan = args.run.with_plan(args.target.as_deref()).with_forced_arms();
            let running = PlanEngine::start(&plan, library);
            let Some(running) = running else { return WRONG };
            ask(args, library, &running)
        }
    };
    match answered {
        Ok(code) => code,
        Err(error) => {
            error.report();
            FAILED
        }
    }
}

fn ask(args: &WhyArgs, library: &Library, running: &PlanEngine) -> Result<u8, CommandError> {
    let PlanEngine { loaded, engine, .. } = running;
    let registry = &loaded.registry;
    let line = match &args.user {
        Some(user) => for_user(user),
        None => first_line()?,
    };
    let prepared = running.prepare(&line, Tracing::AsAsked);
    let (prepared, _, file) = prepared.map_err(|refused| CommandError::Caused(refused.error))?;
    // The plan is there, or it would not be running.
    let Some(plan) = file.checked.plan.as_ref() else { return Ok(WRONG) };
    let code = tell(args, library, (plan, registry), engine, prepared.request);
    engine.stop(Duration::from_secs(5));
    code
}

/// The same about a run that was captured.
fn ask_captured(args: &WhyArgs, library: &Library, request_id: &str) -> Result<u8, CommandError> {
    let (folder, captured) = find(&args.capture, request_id)?;
    let mut replays = Replays::new(library, args.run.settings());
    if args.target.is_some() {
        let artifact = args.run.with_plan(args.target.as_deref()).artifact(library);
        replays = replays.with_plan(artifact.ok_or(CommandError::Reported)?);
    }
    let opened = replays.open(&folder, captured);
    let opened = opened.map_err(|why| CommandError::Wrong(format!("the captured run cannot be repeated: {why}")))?;
    let CapturedRun { registry, engine, plan, request, doubts, .. } = opened;
    doubts.iter().for_each(|doubt| say::note(format!("the run may be another than the captured one: {doubt}")));
    let code = tell(args, library, (plan, registry), engine, request);
    engine.stop(Duration::from_secs(5));
    code
}

/// The last request with this id, and the folder that its plan and registry lie in.
fn find(files: &[PathBuf], request_id: &str) -> Result<(PathBuf, CapturedRequest), CommandError> {
    let caused = |error| CommandError::Caused(Box::new(error));
    let mut found = None;
    let each = |folder: &Path, captured: CapturedRequest| {
        if captured.request_id == request_id {
            found = Some((folder.to_owned(), captured));
        }
    };
    CaptureFiles::find(files).and_then(|files| files.each(each)).map_err(caused)?;
    found.ok_or_else(|| CommandError::Wrong(format!("no request with the id {request_id:?} was captured there")))
}

/// Runs the plan for the question, and prints the answer.
fn tell(
    args: &WhyArgs,
    library: &Library,
    (plan, registry): (&Plan, &Registry),
    engine: &Engine,
    request: Request,
) -> Result<u8, CommandError> {
    let items = items(&args.items, registry)?;
    let asked = AskedPlan::link(plan, library.tasks(), registry).map_err(|error| CommandError::Caused(error))?;
    let request = asked.request(request);
    let outcome = engine.run(asked.linked(), request.clone());
    let (mut items, inquiry) = asked.items(plan, registry, &request, &outcome, &items);
    if let Some(inquiry) = inquiry {
        // What came of it is in its answers.
        let _ = engine.run(inquiry.linked(), inquiry.request(&request));
        inquiry.tell(&mut items);
    }
    let answer =
        WhyAnswer { request_id: &request.request_id, plan: asked.linked(), registry, outcome: &outcome, items: &items };
    match args.json {
        true => say::to_programs(&answer.to_json()),
        false => say::to_programs(answer.to_text(say::programs_are_people() && say::allows_colour()).trim_end()),
    }
    Ok(if outcome.result.is_ok() { DONE } else { FAILED })
}

fn items(given: &[String], registry: &Registry) -> Result<Vec<Id>, CommandError> {
    if given.len() > ITEMS_MAX {
        return Err(CommandError::Wrong(format!("at most {ITEMS_MAX} items can be asked about at once")));
    }
    let item = |text: &String| input::item(text, registry).map_err(|error| CommandError::Caused(Box::new(error)));
    given.iter().map(item).collect()
}

fn for_user(user: &str) -> Vec<u8> {
    let mut request = Writer::new();
    request.object(|w| {
        w.field("user_id").string(user);
    });
    request.into_bytes()
}

/// The request on stdin: its first line.
fn first_line() -> Result<Vec<u8>, CommandError> {
    let (mut line, stdin) = (Vec::new(), std::io::stdin());
    if stdin.is_terminal() {
        say::note(
            "reading a request from here, one JSON document on a line, such as {\"user_id\": 7}. --user 7 asks for one user directly"
                .to_owned(),
        );
    }
    let mut bounded = stdin.lock().take(REQUEST_BYTES_MAX as u64 + 1);
    bounded.read_until(b'\n', &mut line).map_err(CommandError::with("stdin"))?;
    Ok(line)
}
