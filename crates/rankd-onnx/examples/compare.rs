//! How long ONNX models take here and in Python, on one thread, and whether many scorings take memory.
//!
//! `cargo run --release -p rankd-onnx --example compare -- LIBRARY [RUNS]`, with the shared library of the `onnxruntime` that `PYTHON` has.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it measures, asks Python, and prints what it found"
)]

#[path = "../tests/onnx/model_file.rs"]
mod model_file;

use crate::model_file::{layers, unit};
use rankd_column::model::{Model, ModelOutput, ScoreScratch, Scoring};
use rankd_column::stop::Picking;
use std::process::Command;
use std::time::Instant;

const SIZES: [usize; 4] = [64, 256, 128, 1];
const ROWS: usize = 500;
/// Times are the least of so many rounds, ours and Python's in turns, so that both have the same machine.
const ROUNDS: usize = 15;

const SCRIPT: &str = r#"
import sys, time, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
x = numpy.random.default_rng(1).normal(size=(500, 64)).astype(numpy.float32)
best = 1e9
for _ in range(200):
    start = time.perf_counter()
    session.run(None, {"x": x})
    best = min(best, time.perf_counter() - start)
print(best * 1e6)
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let library = args.next().ok_or("which shared library of ONNX Runtime?")?;
    let runs: usize = args.next().map_or(Ok(100_000), |runs| runs.parse())?;
    let bytes = layers(&SIZES);
    let file = std::env::temp_dir().join(format!("rankd-onnx-compare-{}.onnx", std::process::id()));
    std::fs::write(&file, &bytes)?;
    let model = rankd_onnx::open(Some(library.into()), None).read(&bytes)?;
    let mut seed = 5;
    let rows: Vec<f64> = (0..ROWS * SIZES[0]).map(|_| f64::from(unit(&mut seed) * 4.0)).collect();
    let (mut scores, mut scratch) = (vec![0.0; ROWS], ScoreScratch::default());
    let mut once = || score(&model, &rows, &mut scores, &mut scratch);
    let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        for _ in 0..200 {
            let start = Instant::now();
            once()?;
            ours = ours.min(start.elapsed().as_secs_f64() * 1e6);
        }
        let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        let output = Command::new(python).args(["-c", SCRIPT]).arg(&file).output()?;
        theirs = theirs.min(String::from_utf8(output.stdout)?.trim().parse()?);
    }
    std::fs::remove_file(file)?;
    println!("64-256-128-1, {ROWS} rows, one thread: {ours:.0} µs, Python {theirs:.0} µs, {:.2} of it", ours / theirs);
    let (threads, before) = (threads()?, resident_kib()?);
    for _ in 0..runs {
        once()?;
    }
    println!("{runs} runs: {before} KiB before, {} KiB after; {threads} threads", resident_kib()?);
    Ok(())
}

fn score(
    model: &Model,
    rows: &[f64],
    scores: &mut [f64],
    scratch: &mut ScoreScratch,
) -> Result<(), Box<dyn std::error::Error>> {
    // Columns, as plans have them; Python's rows are a matrix, as it wants them.
    let mut inputs = |feature: usize, from: usize, values: &mut [f64]| {
        values.copy_from_slice(&rows[feature * ROWS + from..][..values.len()]);
    };
    let scoring = Scoring { output: ModelOutput::Response, iterations: usize::MAX };
    model.score(&mut inputs, ROWS, scoring, &mut [scores], scratch, Picking::default())?;
    Ok(())
}

fn threads() -> std::io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

fn resident_kib() -> Result<usize, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
