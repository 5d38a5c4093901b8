//! The conformance cases under `cases/*.md`, run by one loop through the real program.
//!
//! A case is a `##` heading with prose and fenced blocks; a block's first word is its language, its second what it is for.
//! `UPDATE=1` rewrites what the blocks expect with what the program says.

#![expect(clippy::panic, clippy::disallowed_methods, reason = "a test lays out files and says what is wrong with them")]

#[path = "cases/diagnostics.rs"]
mod diagnostics;
#[path = "cases/markdown.rs"]
mod markdown;
#[path = "redis/nodes.rs"]
mod nodes;
#[path = "cases/runs.rs"]
mod runs;
#[path = "redis/server.rs"]
mod server;
#[path = "../../rankd-engine/tests/calls/service.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "other tests use more of it; what it starts must start")]
mod service;
#[path = "cases/text_ids.rs"]
mod text_ids;
#[path = "cases/workspace.rs"]
mod workspace;

use markdown::{Case, Document};
use runs::Servers;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

fn documents() -> Vec<Document> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(repository().join("cases"))
        .expect("cases/ is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    paths.sort();
    paths.iter().map(|path| Document::read(path)).collect()
}

#[test]
fn every_case_gives_what_it_says() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    let mut ran = 0;
    let servers = Servers::start();
    for mut document in documents() {
        for at in 0..document.cases.len() {
            let case = &document.cases[at];
            let Some(outcome) = run(case, &servers) else {
                wrong.push(format!("{}: it has no block that says what it gives", case.place()));
                continue;
            };
            ran += 1;
            let expected = case.block(outcome.role).unwrap_or_default();
            if expected.trim() == outcome.text.trim() {
                continue;
            }
            if update {
                document.replace(at, outcome.role, &outcome.text);
            } else {
                let place = document.cases[at].place();
                wrong.push(format!("{place}\n--- expected\n{}\n--- got\n{}", expected.trim(), outcome.text.trim()));
            }
        }
        document.save_if_changed();
    }
    assert!(wrong.is_empty(), "{} cases differ (UPDATE=1 rewrites them):\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(ran > 0, "there are cases");
}

/// What tasks do does not depend on what ids look like. Left out is what computes with ids: numbers are not texts there.
#[test]
fn every_case_of_a_task_gives_the_same_with_ids_that_are_strings() {
    let servers = Servers::start();
    let (mut wrong, mut ran, mut left_out) = (Vec::new(), 0, Vec::new());
    let documents = documents();
    let cases = documents
        .iter()
        .filter(|document| document.is("tasks.md") || document.is("stored.md"))
        .flat_map(|document| &document.cases);
    for case in cases.filter(|case| case.block("diagnostics").is_none()) {
        let Some(case) = text_ids::mapped(case) else {
            left_out.push(case.place());
            continue;
        };
        let Some(outcome) = run(&case, &servers) else { continue };
        ran += 1;
        let expected = case.block(outcome.role).unwrap_or_default();
        if expected.trim() != outcome.text.trim() {
            wrong.push(format!(
                "{}\n--- expected\n{}\n--- got\n{}",
                case.place(),
                expected.trim(),
                outcome.text.trim()
            ));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(ran > 20 && left_out.len() * 4 < ran, "{ran} cases ran; left out: {left_out:#?}");
}

/// What a case gave, in the form of the block that expects it.
struct Outcome {
    role: &'static str,
    text: String,
}

fn run(case: &Case, servers: &Servers) -> Option<Outcome> {
    if case.block("diagnostics").is_some() {
        return Some(Outcome { role: "diagnostics", text: diagnostics::run(case) });
    }
    let role = ["gives", "error"].into_iter().find(|role| case.block(role).is_some())?;
    Some(Outcome { role, text: runs::run(case, servers) })
}

#[test]
fn every_task_has_a_case_that_runs_it() {
    let documents = documents();
    let running = documents.iter().flat_map(|document| &document.cases).filter(|case| case.block("gives").is_some());
    let plans: Vec<&str> = running.filter_map(|case| case.block("plan")).collect();
    let is_run = |op: &str| plans.iter().any(|plan| plan.contains(&format!("\"op\": \"{op}\"")));
    let tasks = rankd_tasks::tasks();
    let missing: Vec<&str> = tasks.signatures().iter().map(|task| task.op).filter(|op| !is_run(op)).collect();
    assert!(missing.is_empty(), "tasks without a case: {missing:?}");
}

#[test]
fn every_diagnostic_code_has_a_case() {
    let mut covered: Vec<String> = Vec::new();
    for document in documents() {
        for case in &document.cases {
            let lines = case.block("diagnostics").unwrap_or_default().lines();
            covered.extend(lines.filter_map(|line| line.split(' ').next()).map(str::to_owned));
        }
    }
    let missing: Vec<&str> = rankd_plan::Code::ALL
        .iter()
        .map(|code| code.id())
        .filter(|id| !covered.iter().any(|seen| seen == id))
        .collect();
    assert!(missing.is_empty(), "codes without a case: {missing:?}");
}
