//! `rankd explain`: a plan as written and as it runs; with `--analyze`, what one run of it was like.

use crate::cli::command_error::CommandError;
use crate::cli::plan_engine::{PlanEngine, RunArgs};
use crate::cli::{DONE, FAILED, WRONG, say};
use clap::Args;
use rankd_edge::explain::Explanation;
use rankd_edge::input::REQUEST_BYTES_MAX;
use rankd_edge::library::{Library, PlanFile};
use rankd_edge::prepare::{ANY_USER, Tracing};
use rankd_engine::{Linked, Request};
use std::io::{BufRead, IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

#[derive(Args, Clone, Debug)]
pub(crate) struct ExplainArgs {
    /// Name or file of the plan
    #[arg(value_name = "PLAN", required_unless_present_any = ["plan_name", "plan"], conflicts_with_all = ["plan_name", "plan"])]
    target: Option<String>,
    /// Run the plan for the request on stdin, or for user 1, and show rows, times and where each node ran
    #[arg(long)]
    analyze: bool,
    /// Print as JSON
    #[arg(long, conflicts_with_all = ["dot", "mermaid", "svg", "html"])]
    json: bool,
    /// Print a graph for Graphviz
    #[arg(long, conflicts_with_all = ["mermaid", "svg", "html"])]
    dot: bool,
    /// Print a graph for Mermaid
    #[arg(long, conflicts_with_all = ["svg", "html"])]
    mermaid: bool,
    /// Print a picture: rankd explain PLAN --svg > plan.svg
    #[arg(long, conflicts_with_all = ["html"])]
    svg: bool,
    /// Print a page with the picture that opens offline, to zoom, search and see the parameters of nodes
    #[arg(long)]
    html: bool,
    #[command(flatten)]
    run: RunArgs,
}

pub(crate) fn run(args: &ExplainArgs, library: &Library) -> u8 {
    let Some(running) = PlanEngine::start(&args.run.with_plan(args.target.as_deref()), library) else { return WRONG };
    let engine = &running.engine;
    let (plan, file, outcome) = match args.analyze.then(|| request(&running)).transpose() {
        Ok(None) => (&running.plan, &running.file, None),
        Ok(Some((request, plan, file))) => (plan, file, Some(engine.run(plan, request))),
        Err(error) => {
            error.report();
            return FAILED;
        }
    };
    // What was linked was checked.
    let Some(checked) = &file.checked.plan else { return WRONG };
    let (settings, registry) = (engine.settings(), &running.loaded.registry);
    let explanation = Explanation {
        plan,
        scheduler: settings.scheduler,
        policy: &settings.policy,
        limits_nodes: settings.node_timeout.is_some(),
        analyzed: outcome.as_ref(),
        // Where another plan answers, they are not its own.
        experiments: running.experiments().filter(|_| Arc::ptr_eq(plan, &running.plan)).map(|of| (of, registry)),
    };
    match args {
        ExplainArgs { svg: true, .. } => say::to_programs(&explanation.to_svg(checked, registry)),
        ExplainArgs { html: true, .. } => say::to_programs(&explanation.to_html(checked, registry)),
        ExplainArgs { json: true, .. } => say::to_programs(&explanation.to_json()),
        ExplainArgs { dot: true, .. } => say::to_programs(&explanation.to_dot()),
        ExplainArgs { mermaid: true, .. } => say::to_programs(&explanation.to_mermaid()),
        _ => say::to_people(&explanation.to_tree()),
    }
    engine.stop(Duration::from_secs(5));
    match outcome {
        Some(outcome) if outcome.result.is_err() => FAILED,
        _ => DONE,
    }
}

/// The request on stdin, its first line where stdin is not a terminal and has one, and the plan that answers it, with its file.
fn request(running: &PlanEngine) -> Result<(Request, &Arc<Linked>, &PlanFile), CommandError> {
    let mut line = Vec::new();
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        let mut bounded = stdin.lock().take(REQUEST_BYTES_MAX as u64 + 1);
        bounded.read_until(b'\n', &mut line).map_err(CommandError::with("stdin"))?;
    }
    if line.iter().all(u8::is_ascii_whitespace) {
        line = ANY_USER.into();
    }
    let prepared = running.prepare(&line, Tracing::Recorded);
    let prepared = prepared.map(|(prepared, plan, file)| (prepared.request, plan, file));
    prepared.map_err(|refused| CommandError::Caused(refused.error))
}
