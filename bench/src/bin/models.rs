//! Trained models on the columns of a run, beside the libraries that trained them, other engines for them, and a floor of intrinsics.
//!
//! The libraries are asked in Python, on one thread, with the same rows as an array of their own kind. `PYTHON` names the interpreter. Without
//! LightGBM there is no model to measure.

use rankd_bench::floor::trees::Trees;
use rankd_bench::harness::{Contender, Time, part, race};
use rankd_bench::large_model;
use rankd_bench::python::{Python, introduce};
use rankd_column::model::{ColumnInputs, Lookups, Model, ModelOutput, ScoreScratch, Scoring};
use rankd_column::rowset::Rows;
use rankd_column::stop::Picking;
use rankd_column::{Cells, Column};
use rankd_plan::model::{Format, read};
use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PEERS: [&str; 7] = ["lightgbm", "xgboost", "catboost", "onnxruntime", "onnxmltools", "lleaves", "numpy"];
const FEATURES: usize = 100;

/// `train NAME` writes a model, its rows and its raw scores. `time PEER NAME ROWS` answers with the least and the median of microseconds a call.
const SCRIPT: &str = r#"
import os, time
import numpy as np
folder = sys.argv[2]
path = lambda name: os.path.join(folder, name)
loaded = {}
def data(rows, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 100))
    X[random.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, :30]) @ random.normal(size=30) + np.sin(3 * np.nan_to_num(X[:, 30:60])).sum(axis=1) + random.normal(size=rows)
    return X, y
def train(name):
    X, y = data(20000, 1)
    rows, _ = data(1000, 2)
    rows.tofile(path("rows.bin"))
    if name.startswith("lgb"):
        lgb = there["lightgbm"]
        leaves = int(name.split("_")[1].split(".")[0])
        model = lgb.train({"num_leaves": leaves, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1, "learning_rate": 0.1}, lgb.Dataset(X, y), 100)
        model.save_model(path(name))
        model = lgb.Booster(model_file=path(name))
        model.predict(rows, raw_score=True).tofile(path(name + ".scores"))
        loaded["lightgbm", name] = lambda part: model.predict(part, raw_score=True, num_threads=1)
        if "lleaves" in there:
            compiled = there["lleaves"].Model(model_file=path(name))
            try:
                compiled.compile()
                loaded["lleaves", name] = lambda part: compiled.predict(part, n_jobs=1)
            except AttributeError as error:
                # It needs a version of llvmlite before 0.45.
                print(f"lleaves: {error!r}", file=sys.stderr)
        if "onnxruntime" in there and "onnxmltools" in there:
            from onnxmltools.convert import convert_lightgbm
            from onnxmltools.convert.common.data_types import FloatTensorType
            ort = there["onnxruntime"]
            text = convert_lightgbm(model, initial_types=[("x", FloatTensorType([None, 100]))]).SerializeToString()
            options = ort.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            session = ort.InferenceSession(text, options, providers=["CPUExecutionProvider"])
            loaded["onnxruntime", name] = lambda part: session.run(None, {"x": part})
    elif name.startswith("xgb"):
        xgb = there["xgboost"]
        model = xgb.train({"max_depth": 6, "nthread": 1, "eta": 0.1}, xgb.DMatrix(X, y), 100)
        model.save_model(path(name))
        model.set_param({"nthread": 1})
        model.predict(xgb.DMatrix(rows), output_margin=True).astype(np.float64).tofile(path(name + ".scores"))
        loaded["xgboost", name] = lambda part: model.inplace_predict(part, predict_type="margin")
    else:
        cb = there["catboost"]
        model = cb.CatBoost({"iterations": 100, "depth": 6, "thread_count": 1, "logging_level": "Silent", "allow_writing_files": False})
        model.fit(X.astype(np.float32), y)
        model.save_model(path(name), format="json")
        model.predict(rows.astype(np.float32), prediction_type="RawFormulaVal").tofile(path(name + ".scores"))
        loaded["catboost", name] = lambda part: model.predict(part, prediction_type="RawFormulaVal", thread_count=1)
    return ""
def times(peer, name, rows):
    part = data(1000, 2)[0][: int(rows)]
    if peer in ("onnxruntime", "xgboost", "catboost"):
        part = part.astype(np.float32)
    if peer == "catboost":
        # What it takes fastest: made before the time begins.
        part = there["catboost"].Pool(part)
    call = loaded[peer, name]
    call(part)
    found = []
    for _ in range(15):
        calls, start = 0, time.perf_counter()
        while time.perf_counter() - start < 0.025:
            call(part)
            calls += 1
        found.append((time.perf_counter() - start) / calls * 1e6)
    found.sort()
    return f"{found[0]} {found[len(found) // 2]}"
answer(lambda what, *rest: train(*rest) if what == "train" else times(*rest))
"#;

/// A model, the peers that are asked, and by how many times as long each must take at least at so many rows.
struct Subject {
    name: &'static str,
    format: Format,
    about: &'static str,
    rows: usize,
    goals: &'static [(&'static str, f64)],
    has_floor: bool,
}

const SUBJECTS: [Subject; 5] = [
    Subject {
        name: "lgb_31.txt",
        format: Format::LightGbm,
        about: "LightGBM, 100 trees of 31 leaves",
        rows: 1_000,
        goals: &[("lightgbm", 20.0), ("onnxruntime", 10.0), ("lleaves", 5.0)],
        has_floor: true,
    },
    Subject {
        name: "lgb_31.txt",
        format: Format::LightGbm,
        about: "LightGBM, 100 trees of 31 leaves",
        rows: 100,
        goals: &[("lightgbm", 15.0), ("onnxruntime", 0.0), ("lleaves", 0.0)],
        has_floor: true,
    },
    Subject {
        name: "lgb_255.txt",
        format: Format::LightGbm,
        about: "LightGBM, 100 trees of 255 leaves",
        rows: 1_000,
        goals: &[("lightgbm", 6.0), ("onnxruntime", 0.0), ("lleaves", 0.0)],
        // More thresholds of a feature than its bytes can count.
        has_floor: false,
    },
    Subject {
        name: "xgb.json",
        format: Format::XgBoost,
        about: "XGBoost, 100 trees of depth 6",
        rows: 1_000,
        goals: &[("xgboost", 0.0)],
        has_floor: false,
    },
    Subject {
        name: "cb.json",
        format: Format::CatBoost,
        about: "CatBoost, 100 oblivious trees of depth 6",
        rows: 1_000,
        goals: &[("catboost", 1.5)],
        has_floor: false,
    },
];

/// The floor's time, times this, is what we may take at 1,000 rows.
const FLOOR_MAX: f64 = 1.4;
const LOAD_MS_A_MB_MAX: f64 = 10.0;

fn main() {
    large();
    let folder = std::env::temp_dir().join(format!("rankd-bench-models-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the models");
    let mut python = Python::start(&PEERS, SCRIPT, &[&folder.to_string_lossy()]);
    println!("{FEATURES} features, one in twenty values missing, one thread. Microseconds a call for all rows.\n");
    introduce(python.as_ref(), &PEERS);
    let mut trained: Vec<&str> = Vec::new();
    for subject in &SUBJECTS {
        let Some(python) = python.as_mut() else { continue };
        if !python.has(subject.goals[0].0) {
            continue;
        }
        if !trained.contains(&subject.name) {
            python.ask(&format!("train {}", subject.name)).expect("a library can train a model");
            trained.push(subject.name);
        }
        subject.measure(&folder, python);
    }
    std::fs::remove_dir_all(&folder).expect("the folder was made above");
}

/// How long reading a large file takes, and how much memory.
fn large() {
    let file = large_model::text(200_000_000);
    let megabytes = file.len() as f64 / 1e6;
    let before = most_resident();
    let start = Instant::now();
    let model = read(Format::LightGbm, file.as_bytes(), None).expect("a model that we read");
    let a_megabyte = start.elapsed().as_secs_f64() * 1e3 / megabytes;
    println!(
        "## A file of {megabytes:.0} MB\n\n{} trees of 256 leaves, read once at {a_megabyte:.1} ms a MB (goal ≤ {LOAD_MS_A_MB_MAX}: {}). {:.0} MB in memory; while it was \
         read, the process had at most {:.0} MB more than with the file alone.\n",
        model.trees().unwrap_or_default(),
        met(a_megabyte <= LOAD_MS_A_MB_MAX),
        model.bytes() as f64 / 1e6,
        most_resident() - before
    );
}

/// Whether a goal was met.
fn met(is: bool) -> &'static str {
    if is { "yes" } else { "**no**" }
}

/// The most memory that this process has had, in MB.
fn most_resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says how much memory a process has");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the most that it had");
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
    kibibytes * 1024.0 / 1e6
}

impl Subject {
    fn measure(&self, folder: &Path, python: &mut Python) {
        let bytes = std::fs::read(folder.join(self.name)).expect("the model was written");
        let (model, load) = load(self.format, &bytes);
        let values = doubles(&folder.join("rows.bin"));
        let columns: Vec<Vec<f64>> = (0..FEATURES)
            .map(|feature| values.iter().skip(feature).step_by(FEATURES).copied().take(self.rows).collect())
            .collect();
        let expected = &doubles(&folder.join(format!("{}.scores", self.name)))[..self.rows];
        let slices: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let cells: Vec<Column> = columns.iter().map(|values| column(values)).collect();
        let cells: Vec<Option<&Column>> = cells.iter().map(Some).collect();
        let (scratch, lookups) = (RefCell::new(ScoreScratch::default()), RefCell::new(Lookups::default()));
        let out = RefCell::new(vec![0.0; self.rows]);
        let ours = || {
            let (mut lookups, mut out) = (lookups.borrow_mut(), out.borrow_mut());
            let rows = Rows::Range { start: 0, len: self.rows };
            let mut inputs = ColumnInputs::new(&model, &cells, rows, &mut lookups);
            let scoring = Scoring { output: ModelOutput::Raw, iterations: usize::MAX };
            let mut outs = [out.as_mut_slice()];
            let done =
                model.score(&mut inputs, self.rows, scoring, &mut outs, &mut scratch.borrow_mut(), Picking::default());
            assert_eq!(done, Ok(self.rows));
        };
        ours();
        assert_same(&out.borrow(), expected, "rankd");
        let mut floor = self.has_floor.then(|| Trees::read(std::str::from_utf8(&bytes).expect("text")));
        let mut floor_out = vec![0.0; self.rows];
        let mut contenders: Vec<(&'static str, Box<dyn Contender + '_>)> = vec![("rankd", part(ours))];
        if let Some(floor) = &mut floor {
            floor.score(&slices, &mut floor_out);
            assert_same(&floor_out, expected, "the floor");
            contenders.push(("floor: AVX2 intrinsics", part(|| floor.score(&slices, &mut floor_out))));
        }
        let times = race(&mut contenders);
        self.report(&model, &bytes, load, &times, python);
    }

    fn report(&self, model: &Model, bytes: &[u8], load: f64, times: &[(&str, Time)], python: &mut Python) {
        println!("\n## {}, {} rows\n", self.about, self.rows);
        println!(
            "{:.2} MB, {:.2} MB in memory, read at {load:.1} ms a MB (goal ≤ {LOAD_MS_A_MB_MAX}: {}). Raw scores have the library's bits.\n",
            bytes.len() as f64 / 1e6,
            model.bytes() as f64 / 1e6,
            met(load <= LOAD_MS_A_MB_MAX)
        );
        println!("| | min | median | ÷ rankd | goal | met |\n|---|---|---|---|---|---|");
        let ours = times[0].1;
        println!("| rankd | {:.1} | {:.1} | 1 | | |", ours.min, ours.median);
        for (name, time) in &times[1..] {
            let (goal, is_met) = match self.rows {
                1_000 => (format!("≥ {:.2}", 1.0 / FLOOR_MAX), met(ours.min <= FLOOR_MAX * time.min)),
                _ => Default::default(),
            };
            println!(
                "| {name} | {:.1} | {:.1} | {:.2} | {goal} | {is_met} |",
                time.min,
                time.median,
                time.min / ours.min
            );
        }
        for (peer, goal) in self.goals {
            let answer = python.ask(&format!("time {peer} {} {}", self.name, self.rows));
            let Some([min, median]) = answer.as_deref() else {
                println!("| {peer} | not measured | | | | |");
                continue;
            };
            let ratio = min / ours.min;
            let (goal, is_met) = match *goal > 0.0 {
                true => (format!("≥ {goal}"), met(ratio >= *goal)),
                false => Default::default(),
            };
            println!("| {peer} | {min:.1} | {median:.1} | {ratio:.1} | {goal} | {is_met} |");
        }
    }
}

/// The model, and milliseconds a megabyte: the best of several times.
fn load(format: Format, bytes: &[u8]) -> (Model, f64) {
    let once = || {
        let start = Instant::now();
        let model = read(format, bytes, None).expect("a model that we read");
        (model, start.elapsed().as_secs_f64() * 1e3 / (bytes.len() as f64 / 1e6))
    };
    (0..5).map(|_| once()).min_by(|a, b| a.1.total_cmp(&b.1)).expect("several times")
}

fn doubles(path: &Path) -> Vec<f64> {
    let bytes = std::fs::read(path).expect("a file that was written");
    bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

fn column(values: &[f64]) -> Column {
    Column::Float(values.iter().map(|value| (!value.is_nan()).then_some(*value)).collect::<Cells<f64>>())
}

fn assert_same(found: &[f64], expected: &[f64], who: &str) {
    let wrong = found.iter().zip(expected).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    assert_eq!(wrong, 0, "{who}: scores without the library's bits");
}
