//! ONNX models against PyPI's `onnxruntime`: the same scores, no threads, flat memory; and files that are not models, or not the library.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test writes files and measures time")]

mod c_library;
#[path = "../../../rankd/tests/downloads/mod.rs"]
mod downloads;
mod model_file;
mod refused;
mod wheel;
mod wrong_library;

use crate::model_file::{FLOAT, ModelFile, layers, unit};
use crate::wheel::Wheel;
use rankd_column::model::{Model, ModelOutput, ScoreError, ScoreScratch, Scoring};
use rankd_column::stop::{Picking, Stop};
use rankd_plan::model::ModelProblem;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("onnx-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn read(library: &Path, model: &[u8]) -> Result<Model, ModelProblem> {
    rankd_onnx::open(Some(library.to_owned()), None).read(model)
}

fn random_rows(rows: usize, columns: usize) -> Vec<f32> {
    let mut seed = 11;
    (0..rows * columns).map(|_| unit(&mut seed) * 4.0).collect()
}

/// The scores of rows, row by row.
fn score(
    model: &Model,
    columns: usize,
    rows: &[f32],
    scratch: &mut ScoreScratch,
    picking: Picking<'_>,
) -> Result<Vec<f32>, ScoreError> {
    let count = rows.len() / columns;
    let mut inputs = |feature: usize, from: usize, values: &mut [f64]| {
        let of_row = |row: usize| f64::from(rows[(from + row) * columns + feature]);
        values.iter_mut().enumerate().for_each(|(row, value)| *value = of_row(row));
    };
    let outputs = model.outputs(ModelOutput::Response);
    let mut scores = vec![vec![0.0; count]; outputs];
    let mut out: Vec<&mut [f64]> = scores.iter_mut().map(Vec::as_mut_slice).collect();
    let scoring = Scoring { output: ModelOutput::Response, iterations: usize::MAX };
    assert_eq!(model.score(&mut inputs, count, scoring, &mut out, scratch, picking)?, count);
    Ok((0..count).flat_map(|row| scores.iter().map(move |of| of[row] as f32)).collect())
}

fn agree(ours: &[f32], theirs: &[f32]) {
    assert_eq!(ours.len(), theirs.len());
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert!((ours - theirs).abs() <= 1e-5 * theirs.abs().max(1.0), "number {at}: {ours} and {theirs}");
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// The memory of the process that is in use, in KiB.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn scores_are_those_of_python() {
    let Some(wheel) = Wheel::get("scores of ONNX models") else { return };
    let folder = folder("scores");
    let two_heads = || {
        let file = ModelFile::default().input("quality", FLOAT, &[None, Some(1)]).input("age", FLOAT, &[None, Some(1)]);
        let file = file.node("Add", &["quality", "age"], &["sum"]).node("Sigmoid", &["sum"], &["p"]);
        file.output("p", FLOAT, &[None, Some(1)]).output("sum", FLOAT, &[None, None]).finish()
    };
    for (name, model, columns, outputs) in [
        ("a network", layers(&[64, 256, 128, 1]), 64, 1),
        ("classes", layers(&[7, 33, 5]), 7, 5),
        ("one feature", layers(&[1, 4, 1]), 1, 1),
        ("an input for each feature, two outputs", two_heads(), 2, 2),
    ] {
        let used = read(&wheel.library, &model).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!((used.features().len(), used.outputs(ModelOutput::Raw)), (columns, outputs), "{name}");
        // Less than a block, a block, and blocks with a rest.
        for count in [1, 256, 700] {
            let rows = random_rows(count, columns);
            let ours = score(&used, columns, &rows, &mut ScoreScratch::default(), Picking::default()).unwrap();
            agree(&ours, &wheel.score(&folder, &model, columns, &rows));
        }
    }
    let named = read(&wheel.library, &two_heads()).unwrap();
    let names: Vec<&str> = named.features().iter().map(|feature| feature.name.as_str()).collect();
    assert_eq!(names, ["quality", "age"], "inputs are features");
}

#[test]
fn a_thousand_scorings_take_no_thread_and_no_memory() {
    let Some(wheel) = Wheel::get("threads and memory of ONNX models") else { return };
    // In a process of its own, because other tests have threads, too.
    const ALONE: &str = "RANKD_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut test = std::process::Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", "a_thousand_scorings_take_no_thread_and_no_memory", "--test-threads=1"]).env(ALONE, "1");
        let output = test.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let before = threads();
    let model = read(&wheel.library, &layers(&[64, 256, 128, 1])).unwrap();
    let (rows, mut scratch) = (random_rows(500, 64), ScoreScratch::default());
    let mut score = || score(&model, 64, &rows, &mut scratch, Picking::default()).unwrap();
    let first = score();
    (0..100).for_each(|_| assert_eq!(score(), first));
    // ONNX Runtime has one thread for the process, which sleeps; Python's has it after the import as well. Models add none.
    assert!(threads() <= before + 1, "{} threads, before {before}", threads());
    let resident = resident_kib();
    (0..1_000).for_each(|_| drop(score()));
    let grown = resident_kib().saturating_sub(resident);
    assert!(grown < 2_048, "grown by {grown} KiB");
}

#[test]
fn scorings_at_once_do_not_disturb_each_other() {
    let Some(wheel) = Wheel::get("scorings of ONNX models at once") else { return };
    let model = Arc::new(read(&wheel.library, &layers(&[16, 64, 1])).unwrap());
    let rows = random_rows(600, 16);
    let alone = score(&model, 16, &rows, &mut ScoreScratch::default(), Picking::default()).unwrap();
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut scratch = ScoreScratch::default();
                start.wait();
                (0..50).for_each(|_| {
                    assert_eq!(score(&model, 16, &rows, &mut scratch, Picking::default()), Ok(alone.clone()));
                });
            });
        }
    });
}

#[test]
fn what_nobody_waits_for_is_not_scored() {
    let Some(wheel) = Wheel::get("stopping of ONNX models") else { return };
    let model = read(&wheel.library, &layers(&[4, 8, 1])).unwrap();
    let (rows, set) = (random_rows(600, 4), AtomicBool::new(true));
    let picking = Picking { stop: Stop::when(&set), ..Picking::default() };
    let stopped = score(&model, 4, &rows, &mut ScoreScratch::default(), picking);
    assert_eq!(stopped, Err(ScoreError::Stopped));
}
