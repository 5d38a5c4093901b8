//! The operators of feeds, each as its task with its parameters, beside one stable sort of the same rows; `mmr` and `dpp` beside the
//! multiply-adds that they cannot do without.
//!
//! Arguments: numbers of rows, 1000 and 10000 by default. Polars and numpy take part where `PYTHON`, or else `python3`, has them.

use rankd_bench::data::Random;
use rankd_bench::floor::multiply_adds::Blocks;
use rankd_bench::harness::{Contender, Time, part, race};
use rankd_bench::python::{Python, introduce};
use rankd_column::{Batch, Cells, Column, Key, RowSet, Stop, Vectors};
use rankd_engine::task::Task;
use rankd_engine::{Linked, Request, Tasks};
use rankd_plan::registry::Text;
use rankd_plan::{Registry, check};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const KEYS: &str = r#"
key = [
    { key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
    { key_id = 2, name = "author", type = "int", nullable = true },
    { key_id = 3, name = "score", type = "float", nullable = true },
    { key_id = 4, name = "vector", type = "vector<64>", nullable = true },
    { key_id = 5, name = "out", type = "float", nullable = true },
    { key_id = 6, name = "place", type = "int", nullable = true },
]
"#;

const DIMENSION: usize = 64;
const PICKS: usize = 50;
/// An operator may take so many times as long as a stable sort.
const SORTS_GOAL: f64 = 3.0;
/// And one that compares vectors so many times as long as its multiply-adds.
const FLOOR_GOAL: f64 = 3.0;
const NUMPY_GOAL: f64 = 30.0;

/// What is measured: a name, the op and its parameters.
const OPERATORS: &[(&str, &str, &str)] = &[
    ("sort", "sort", r#"{"key":"score","order":"desc"}"#),
    ("dedup by author", "dedup", r#"{"by":["author"]}"#),
    ("dedup by author, the best", "dedup", r#"{"by":["author"],"keep":"best","score":"score"}"#),
    ("exclude rows", "exclude", r#"{"rows":"other"}"#),
    ("cap 2 an author", "cap", r#"{"by":"author","max":2}"#),
    ("cap 2 in 10", "cap", r#"{"by":"author","max":2,"window":10}"#),
    ("diversify, gap 2", "diversify", r#"{"rules":[{"by":"author","gap":2}]}"#),
    ("diversify, two rules", "diversify", r#"{"rules":[{"by":"author","max":3,"window":0},{"by":"author","gap":2}]}"#),
    ("fuse, rrf", "fuse", r#"{"how":"rrf","out_key":"out"}"#),
    ("normalize, minmax", "normalize", r#"{"key":"score","out_key":"out","how":"minmax"}"#),
    ("normalize, quantile", "normalize", r#"{"key":"score","out_key":"out","how":"quantile"}"#),
    ("group, sum", "group", r#"{"by":["author"],"aggregate":{"out":["sum","score"]},"as":"rows"}"#),
    ("join", "join", r#"{"rhs":"other","keys":{"score":"out"},"on":"id","how":"inner"}"#),
    ("damp", "damp", r#"{"by":"author","score":"score","factor":0.5,"out_key":"out"}"#),
    ("rank", "rank", r#"{"rank_key":"place"}"#),
    ("sample 100", "sample", r#"{"count":100}"#),
    ("explore 50, softmax", "explore", r#"{"score":"score","how":"softmax","tau":0.5,"k":50,"propensity_key":"out"}"#),
    (
        "explore 50, epsilon",
        "explore",
        r#"{"score":"score","how":"epsilon","epsilon":0.1,"k":50,"propensity_key":"out"}"#,
    ),
    ("merge, round robin", "merge", r#"{"how":"round_robin"}"#),
];

const PEERS: &str = r#"
import timeit
np, pl = there.get("numpy"), there.get("polars")
def times(run, number):
    found = sorted(time / number * 1e6 for time in timeit.repeat(run, number=number, repeat=15))
    return f"{found[0]} {found[len(found) // 2]}"
def frame(rows):
    at = np.arange(rows)
    return pl.DataFrame({"id": at, "author": at * 7919 % 104729 % (rows // 4), "score": (at * 7919 % 104729) / 104729.0})
def operator(name, rows):
    rows = int(rows)
    rows_of, other = frame(rows), frame(rows).filter(pl.col("id") % 2 == 0)
    number = max(1, 200_000 // rows)
    runs = {
        "sort": lambda: rows_of.sort("score", descending=True, maintain_order=True),
        "dedup": lambda: rows_of.unique("author", keep="first", maintain_order=True),
        "exclude": lambda: rows_of.join(other, on="id", how="anti", maintain_order="left"),
        "join": lambda: rows_of.join(other, on="id", how="inner", maintain_order="left"),
        "group": lambda: rows_of.group_by("author", maintain_order=True).agg(pl.col("score").sum()),
        "normalize": lambda: rows_of.with_columns(((pl.col("score") - pl.col("score").min()) / (pl.col("score").max() - pl.col("score").min())).alias("out")),
    }
    return times(runs[name], number)
def slate(name, rows, picks, dimension):
    rows, picks, dimension = int(rows), int(picks), int(dimension)
    random = np.random.default_rng(7)
    vectors = random.standard_normal((rows, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = random.random(rows)
    def mmr():
        left, chosen, most = np.ones(rows, bool), [], np.full(rows, -np.inf)
        for _ in range(picks):
            penalty = most if chosen else 0.0
            worth = np.where(left, 0.7 * scores - 0.3 * penalty, -np.inf)
            best = int(np.argmax(worth))
            chosen.append(best)
            left[best] = False
            most = np.maximum(most, vectors @ vectors[best])
        return chosen
    # The textbook form: the whole kernel first, then greedy picks by incremental Cholesky factors.
    def dpp():
        quality = np.exp(scores)
        kernel = quality[:, None] * (vectors @ vectors.T + 0.01 * np.eye(rows)) * quality[None, :]
        factors, gains, chosen = np.zeros((picks, rows)), np.copy(np.diag(kernel)), []
        best = int(np.argmax(gains))
        chosen.append(best)
        while len(chosen) < picks:
            at = len(chosen) - 1
            column, root = factors[:at, best], np.sqrt(gains[best])
            row = (kernel[best, :] - column @ factors[:at, :]) / root
            factors[at, :] = row
            gains -= np.square(row)
            gains[best] = -np.inf
            best = int(np.argmax(gains))
            chosen.append(best)
        return chosen
    return times({"mmr": mmr, "dpp": dpp}[name], 3)
def respond(kind, *words):
    return operator(*words) if kind == "operator" else slate(*words)
answer(respond)
"#;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000, 10_000] } else { sizes };
    let mut python = Python::start(&["polars", "numpy"], PEERS, &[]);
    println!(
        "Each operator as a task, called on one thread with rows at hand: a quarter as many authors as rows, one score in ten null. Microseconds a call. \
         The goals are {SORTS_GOAL} times one stable sort of the same rows: `sort` is rankd's own, `std` is `slice::sort_by` of row numbers.\n"
    );
    introduce(python.as_ref(), &["polars", "numpy"]);
    let bench = Operators::new();
    for rows in sizes {
        bench.operators(rows, python.as_mut());
    }
    bench.slates(1_000, python.as_mut());
}

struct Operators {
    registry: Registry,
    tasks: Tasks,
}

impl Operators {
    fn new() -> Operators {
        let text = |file, text| Text { file, text };
        let (registry, problems) = Registry::parse(text("keys.toml", KEYS), text("", ""), text("", ""));
        assert!(problems.is_empty(), "the keys are good");
        Operators { registry, tasks: rankd_tasks::tasks() }
    }

    /// The task of an operator, linked as in a plan. Operators of several rows read two sources.
    fn task(&self, op: &str, params: &str) -> Task {
        let columns = r#"{"author":[1],"score":[1],"vector":[null]}"#;
        let source = |id: &str| {
            format!(
                r#"{{"node_id":"{id}","op":"fixed_source","inputs":[],"params":{{"row_count":1,"columns":{columns}}}}}"#
            )
        };
        let inputs = match op {
            "fuse" | "merge" => r#""rows","other""#,
            _ => r#""rows""#,
        };
        let uses_other = inputs.contains("other") || params.contains("other");
        let node = format!(r#"{{"node_id":"n","op":"{op}","inputs":[{inputs}],"params":{params}}}"#);
        let nodes: Vec<String> =
            [Some(source("rows")), uses_other.then(|| source("other")), Some(node)].into_iter().flatten().collect();
        let plan = format!(
            r#"{{"schema_version":1,"plan_name":"bench","nodes":[{}],"outputs":["n"],"expr_table":{{}},"pred_table":{{}}}}"#,
            nodes.join(",")
        );
        let checked = check(plan.as_bytes(), &self.registry, self.tasks.signatures());
        let plan = checked.plan.unwrap_or_else(|| panic!("{op}: {:?}", checked.diagnostics.list()));
        let linked = Linked::link(&plan, &self.tasks, &self.registry).expect("a checked plan can be linked");
        linked.written.step(nodes.len() as u32 - 1).task.clone()
    }

    /// So many rows; the second of these has every other id.
    fn rows(&self, rows: usize, step: usize) -> RowSet {
        let mut random = Random(0x5EED_0000_0000_0001);
        let ids: Vec<i64> = (0..rows as i64).map(|row| 1_000_003 + 7 * row * step as i64).collect();
        let authors: Vec<i64> = ids.iter().map(|_| (random.unit() * rows as f64 / 4.0) as i64).collect();
        let scores: Vec<f64> = ids.iter().map(|_| random.unit()).collect();
        let has_score: Vec<bool> = ids.iter().map(|_| random.unit() >= 0.1).collect();
        let numbers: Vec<f32> = (0..rows * DIMENSION).map(|_| (random.unit() * 2.0 - 1.0) as f32).collect();
        let mut scored = Cells::with_capacity(rows);
        scores.iter().zip(&has_score).for_each(|(score, has)| scored.push(has.then_some(*score)));
        let vectors =
            Column::Vector(Cells::full((0..rows as u32).collect()), Arc::new(Vectors::new(DIMENSION as u16, numbers)));
        let columns =
            [("author", Column::Int(Cells::full(authors))), ("score", Column::Float(scored)), ("vector", vectors)];
        let batch = columns.into_iter().fold(Batch::new(ids), |batch, (name, column)| {
            batch.with(Key(self.registry.keys.named(name).expect("a key")), Arc::new(column))
        });
        RowSet::new(batch)
    }

    fn operators(&self, count: usize, mut python: Option<&mut Python>) {
        let (rows, other, request) = (self.rows(count, 1), self.rows(count / 2, 2), Request::new(&self.registry));
        let tasks: Vec<Task> = OPERATORS.iter().map(|(_, op, params)| self.task(op, params)).collect();
        let score = Key(self.registry.keys.named("score").expect("a key"));
        let scores: Vec<Option<f64>> = match rows.batch().column(score).map(|column| &**column) {
            Some(Column::Float(cells)) => (0..count).map(|row| cells.get(row)).collect(),
            _ => Vec::new(),
        };
        let mut contenders: Vec<(&'static str, Box<dyn Contender + '_>)> = vec![("std", part(|| stable_sort(&scores)))];
        for ((name, op, params), task) in OPERATORS.iter().zip(&tasks) {
            let takes_other = matches!(*op, "fuse" | "merge") || params.contains("other");
            let (rows, other, request) = (&rows, &other, &request);
            let run = move || {
                let inputs = if takes_other { vec![rows.clone(), other.clone()] } else { vec![rows.clone()] };
                let done = task.compute(inputs, request, Stop::default()).expect("it computes");
                done.unwrap_or_else(|error| panic!("{error:?}"))
            };
            contenders.push((name, part(run)));
        }
        let times = race(&mut contenders);
        let [std, sort] = [times[0].1.min, times[1].1.min];
        println!(
            "## {count} rows\n\n| | min | median | ÷ sort | ÷ std | goal | met | Polars ÷ it |\n|---|---|---|---|---|---|---|---|"
        );
        for (at, (name, Time { min, median })) in times.iter().enumerate() {
            let op = at.checked_sub(1).map(|at| OPERATORS[at].1);
            let goal = op.filter(|op| HAS_GOAL.contains(op));
            let (goal, met) = match goal {
                Some(_) if min / sort <= SORTS_GOAL => (format!("≤ {SORTS_GOAL} × sort"), "yes"),
                Some(_) if min / std <= SORTS_GOAL => (format!("≤ {SORTS_GOAL} × sort"), "by std"),
                Some(_) => (format!("≤ {SORTS_GOAL} × sort"), "**no**"),
                None => Default::default(),
            };
            let peer = op.filter(|op| POLARS.contains(op)).and_then(|op| {
                let python = python.as_mut().filter(|python| python.has("polars") && python.has("numpy"))?;
                python.ask(&format!("operator {op} {count}"))?.first().map(|polars| format!("{:.1}", polars / min))
            });
            let peer = peer.unwrap_or_default();
            println!(
                "| {name} | {min:.1} | {median:.1} | {:.2} | {:.2} | {goal} | {met} | {peer} |",
                min / sort,
                min / std
            );
        }
        println!();
    }

    fn slates(&self, count: usize, mut python: Option<&mut Python>) {
        let (rows, request) = (self.rows(count, 1), Request::new(&self.registry));
        let mmr = self.task("mmr", &format!(r#"{{"score":"score","vector":"vector","k":{PICKS},"lambda":0.7}}"#));
        let dpp = self.task("dpp", &format!(r#"{{"score":"score","vector":"vector","k":{PICKS},"alpha":1}}"#));
        let compute = |task: &Task| {
            task.compute(vec![rows.clone()], &request, Stop::default()).expect("it computes").expect("it succeeds")
        };
        let [mut mmr_floor, mut dpp_floor] = [false, true].map(|factors| Blocks::new(count, DIMENSION, PICKS, factors));
        let mut contenders: Vec<(&'static str, Box<dyn Contender + '_>)> = vec![
            ("floor: multiply-adds of mmr", part(|| mmr_floor.run())),
            ("mmr", part(|| compute(&mmr))),
            ("floor: multiply-adds of dpp", part(|| dpp_floor.run())),
            ("dpp", part(|| compute(&dpp))),
        ];
        let times = race(&mut contenders);
        println!(
            "## {PICKS} of {count} rows by vectors of {DIMENSION} numbers\n\nThe floors do n·k·d single-precision multiply-adds, and for `dpp` n·k²/2 more, on blocks of 32 rows. \
             numpy picks by the same rules; for `dpp` it makes its kernel of n × n first.\n\n\
             | | min | median | ÷ floor | goal | met | numpy ÷ it | goal | met |\n|---|---|---|---|---|---|---|---|---|"
        );
        let word = |met: bool| if met { "yes" } else { "**no**" };
        for pair in times.chunks_exact(2) {
            let [(floor_name, floor), (name, time)] = pair else { continue };
            println!("| {floor_name} | {:.1} | {:.1} | | | | | | |", floor.min, floor.median);
            let ratio = time.min / floor.min;
            let python = python.as_mut().filter(|python| python.has("numpy"));
            let numpy = python.and_then(|python| python.ask(&format!("slate {name} {count} {PICKS} {DIMENSION}")));
            let numpy = numpy.and_then(|times| times.first().map(|numpy| numpy / time.min));
            let (shown, goal, met) = match (numpy, *name) {
                (Some(numpy), "dpp") => (format!("{numpy:.1}"), format!("≥ {NUMPY_GOAL}"), word(numpy >= NUMPY_GOAL)),
                (Some(numpy), _) => (format!("{numpy:.1}"), String::new(), ""),
                (None, _) => Default::default(),
            };
            println!(
                "| {name} | {:.1} | {:.1} | {ratio:.2} | ≤ {FLOOR_GOAL} | {} | {shown} | {goal} | {met} |",
                time.min,
                time.median,
                word(ratio <= FLOOR_GOAL)
            );
        }
    }
}

/// The operators that are to cost no more than a few sorts, and those that Polars has.
const HAS_GOAL: &[&str] = &["dedup", "exclude", "cap", "diversify", "fuse", "normalize", "group", "join"];
const POLARS: &[&str] = &["sort", "dedup", "exclude", "group", "join", "normalize"];

/// Row numbers by score, the highest first and nulls last, as anyone would write it.
fn stable_sort(scores: &[Option<f64>]) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..scores.len() as u32).collect();
    let score = |row: &u32| scores[*row as usize].unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|a, b| score(b).total_cmp(&score(a)));
    rows
}
