//! Compares what rankd makes of rows with what the libraries made of them, for each line of a list: format, model file, `.rows` file, with tabs
//! between them. `tests/models/make_golden.py check` writes such a list.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a program of its own, run by hand"
)]

#[path = "../tests/models/rows.rs"]
mod rows;

use rankd_plan::model::{Format, read};
use rows::{Golden, RESPONSE_LIMIT, contribution_limit};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let list = std::env::args().nth(1).expect("a file that lists models");
    let (mut scores, mut wrong, mut failed) = (0, 0, false);
    println!(
        "| model | trees | scores | wrong bits | largest difference of a response, ulp | largest difference of a contribution | load ms a MB |"
    );
    println!("|---|---|---|---|---|---|---|");
    for line in std::fs::read_to_string(list).unwrap().lines() {
        let [format, model, rows] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let format = Format::named(format).unwrap();
        let name = std::path::Path::new(model).file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(model).unwrap();
        let start = Instant::now();
        let model = read(format, &bytes, None);
        let took = start.elapsed().as_secs_f64() * 1e3 / (bytes.len() as f64 / 1e6);
        let model = match model {
            Ok(model) => model,
            Err(problem) => {
                println!("| {name} | {problem} |");
                failed = true;
                continue;
            }
        };
        let golden = Golden::read(&std::fs::read(rows).unwrap());
        let found = golden.compare(format, &model);
        let error = found.contribution_error.map_or("none".to_owned(), |error| format!("{error:.1e}"));
        println!(
            "| {name} | {} | {} | {} | {} | {error} | {took:.1} |",
            model.trees().unwrap_or_default(),
            golden.raw.len(),
            found.wrong_raw,
            found.response_units
        );
        (scores, wrong) = (scores + golden.raw.len(), wrong + found.wrong_raw);
        failed |= found.wrong_raw > 0 || found.response_units > RESPONSE_LIMIT;
        failed |= found.contribution_error.is_some_and(|error| error > contribution_limit(format));
    }
    println!("\n{scores} scores, {wrong} with wrong bits.");
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
