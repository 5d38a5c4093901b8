//! `dot`, `cosine` and `l2` of the vectors of a column with one vector, and the nearest rows of a table, exactly and by copies, beside the time
//! it takes to read the same bytes.
//!
//! Arguments: rows and dimension, 10000 and 64 by default, and the rows of the table, 100000 by default. numpy takes part where `PYTHON`, or else
//! `python3`, has it.

use rankd_bench::harness::{Contender, Time, part, race};
use rankd_bench::python::{Python, introduce};
use rankd_column::expr::{Call, Op, Program, RunValues, Schema, Scratch, Stop, Tree, Want, compute};
use rankd_column::kernel::nearest::nearest;
use rankd_column::kernel::similarity::Similarity;
use rankd_column::kernel::vector_copy::{CopyKind, VectorCopy};
use rankd_column::kernel::wide::wide;
use rankd_column::rowset::Rows;
use rankd_column::{Batch, Cells, Column, Key, RowSet, Type, Value, Vectors};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const READ: &str = "floor: read the same bytes";
const DOT: &str = "rankd dot";
/// `dot` may take so many times as long as reading the same bytes.
const GOAL: f64 = 1.5;
/// An exact search may.
const NEAREST_GOAL: f64 = 1.3;
const NEAREST: &str = "rankd nearest, dot";
const COPIES: [(&str, CopyKind); 2] =
    [("rankd nearest, dot, f16", CopyKind::F16), ("rankd nearest, dot, i8", CopyKind::I8)];
/// Rows that a search finds.
const FOUND: usize = 100;
/// Searches that recall is measured with, by each measure.
const SEARCHES: usize = 20;
const MEASURES: [Similarity; 3] = [Similarity::Dot, Similarity::Cosine, Similarity::L2];
const CALLS: [(&str, Call); 3] = [(DOT, Call::Dot), ("rankd cosine", Call::Cosine), ("rankd l2", Call::L2)];

/// Answers with the least and the median of microseconds a call.
const NUMPY: &str = r#"
import timeit
np = there.get("numpy")
rows, dimension, table, found = (int(arg) for arg in sys.argv[2:6])
def nearest(m, v):
    scores = m @ v
    best = np.argpartition(-scores, found)[:found]
    return best[np.argsort(-scores[best], kind="stable")]
def respond(question):
    count, calls = (rows, 100) if question == "dot" else (table, 5)
    m = (np.arange(count * dimension) * 7919 % 1009 / 504 - 1).astype(np.float32).reshape(count, dimension)
    if question == "nearest":
        m += np.random.default_rng(7).random(m.shape, dtype=np.float32)
    v = np.linspace(-1, 1, dimension, dtype=np.float32)
    act = (lambda: m @ v) if question == "dot" else (lambda: nearest(m, v))
    times = sorted(time / calls * 1e6 for time in timeit.repeat(act, number=calls, repeat=15))
    return f"{times[0]} {times[len(times) // 2]}"
answer(respond)
"#;

/// One key and one parameter, both vectors of this dimension.
struct Types(u16);

impl Schema for Types {
    fn key_type(&self, key: Key) -> Type {
        if key == Key::ID { Type::Int } else { Type::Vector(self.0) }
    }

    fn param_type(&self, _: u32) -> Type {
        Type::Vector(self.0)
    }
}

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|arg| arg.parse::<usize>().ok());
    let (rows, dimension) = (args.next().unwrap_or(10_000), args.next().unwrap_or(64));
    let table_rows = args.next().unwrap_or(100_000).max(FOUND + 1);
    let numbers: Vec<f32> = (0..rows * dimension).map(|at| ((at * 7919 % 1009) as f32 - 504.0) / 504.0).collect();
    let asked: Arc<[f32]> = (0..dimension).map(|at| ((at * 31 % 17) as f32 - 8.0) / 8.0).collect();
    let types = Types(u16::try_from(dimension).expect("a dimension of at most 4096"));
    let column =
        Column::Vector(Cells::full((0..rows as u32).collect()), Arc::new(Vectors::new(types.0, numbers.clone())));
    let batch = Batch::new((1..=rows as i64).collect()).with(Key(1), Arc::new(column));
    let (table, params) = (RowSet::new(batch), [Value::Vector(asked)]);
    let programs = CALLS.map(|(_, call)| program(call, &types));
    let mut scratches = CALLS.map(|_| Scratch::default());

    let mut contenders: Vec<(&'static str, Box<dyn Contender + '_>)> = vec![(READ, part(|| read(&numbers)))];
    for (((name, _), program), scratch) in CALLS.iter().zip(&programs).zip(&mut scratches) {
        let (table, params) = (&table, &params);
        let run = move || compute(program, table, RunValues::of(params), scratch, Stop::default()).expect("finite");
        contenders.push((name, part(run)));
    }
    let sizes = [rows, dimension, table_rows, FOUND].map(|size| size.to_string());
    let mut python = Python::start(&["numpy"], NUMPY, &sizes.each_ref().map(String::as_str));
    let ours = race(&mut contenders);
    println!(
        "{rows} vectors of {dimension} numbers, {} KiB, one thread. Microseconds a call. numpy is `matrix @ vector`.\n",
        rows * dimension * 4 / 1024
    );
    introduce(python.as_ref(), &["numpy"]);
    let numpy = ask(python.as_mut(), "dot");
    println!("| | min | median | ÷ floor | goal | met | numpy ÷ it |\n|---|---|---|---|---|---|---|");
    let floor = ours[0].1.min;
    for (name, time) in &ours {
        let (goal, met) = match *name {
            DOT if time.min / floor <= GOAL => (format!("≤ {GOAL}"), "yes"),
            DOT => (format!("≤ {GOAL}"), "**no**"),
            _ => Default::default(),
        };
        let peer = numpy.filter(|_| *name == DOT).map(|numpy| format!("{:.2}", numpy.min / time.min));
        line(name, *time, floor, &goal, met, &peer.unwrap_or_default());
    }
    if let Some(numpy) = numpy {
        line("numpy", numpy, floor, "", "", "");
    }
    search(table_rows, types.0, python.as_mut());
}

/// What numpy takes for a question.
fn ask(python: Option<&mut Python>, question: &str) -> Option<Time> {
    let times = python.filter(|python| python.has("numpy"))?.ask(question)?;
    (times.len() == 2).then(|| Time { min: times[0], median: times[1] })
}

/// The nearest rows of a table whose vectors lie in clusters, as embeddings do.
fn search(rows: usize, dimension: u16, python: Option<&mut Python>) {
    let wide = usize::from(dimension);
    let random = |at: usize| {
        let mixed = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let number = |row: usize, at: usize| random(row % 500 * 5000 + at) + random(70_000_000 + row * wide + at);
    let numbers: Vec<f32> = (0..rows * wide).map(|at| number(at / wide, at % wide)).collect();
    let asked: Vec<Vec<f32>> =
        (0..SEARCHES).map(|search| (0..wide).map(|at| number(rows + search, at)).collect()).collect();
    let vectors = Arc::new(Vectors::new(dimension, numbers.clone()));
    let column = Column::Vector(Cells::full((0..rows as u32).collect()), vectors);
    let copies = COPIES.map(|(_, kind)| VectorCopy::new(&column, kind).expect("a column of vectors"));
    let (all, stop) = (Rows::Range { start: 0, len: rows }, Stop::default());
    let exact = |asked: &[f32], by| nearest(&column, all, &[asked], by, FOUND, stop).expect("finite").remove(0);
    let copied = |copy: &VectorCopy, asked: &[f32], by| {
        copy.nearest(&column, all, &[asked], by, FOUND, stop).expect("finite").remove(0)
    };
    let mut contenders: Vec<(&'static str, Box<dyn Contender + '_>)> = vec![
        (READ, part(|| read(&numbers))),
        (NEAREST, part(|| exact(&asked[0], Similarity::Dot))),
        ("rankd nearest, cosine", part(|| exact(&asked[0], Similarity::Cosine))),
        ("rankd nearest, l2", part(|| exact(&asked[0], Similarity::L2))),
    ];
    for ((name, _), copy) in COPIES.iter().zip(&copies) {
        contenders.push((name, part(|| copied(copy, &asked[0], Similarity::Dot))));
    }
    let ours = race(&mut contenders);
    drop(contenders);
    let numpy = ask(python, "nearest");
    println!(
        "\nThe {FOUND} nearest of {rows} rows, {} KiB, one thread. A copy is to be faster than the vectors by its size. Recall: of {SEARCHES} searches by \
         each measure, the part of the nearest rows that is found. numpy is `matrix @ vector`, `argpartition` and `argsort`, on other numbers.\n",
        rows * wide * 4 / 1024
    );
    println!("| | min | median | ÷ floor | goal | met | numpy ÷ it | recall |\n|---|---|---|---|---|---|---|---|");
    let (floor, by_vectors) = (ours[0].1.min, ours[1].1.min);
    for (name, time) in &ours {
        let of_copy = COPIES.iter().zip(&copies).find(|((of, _), _)| of == name);
        let (goal, is_met) = match of_copy {
            Some(((_, kind), _)) => {
                let part = match kind {
                    CopyKind::F16 => 0.5,
                    CopyKind::I8 => 0.25,
                };
                (format!("≤ {part} × {NEAREST}"), time.min <= part * by_vectors)
            }
            None if *name == NEAREST => (format!("≤ {NEAREST_GOAL}"), time.min / floor <= NEAREST_GOAL),
            None => (String::new(), true),
        };
        let met = match (goal.is_empty(), is_met) {
            (true, _) => "",
            (false, true) => "yes",
            (false, false) => "**no**",
        };
        let recall = of_copy.map(|(_, copy)| {
            let found =
                MEASURES.iter().flat_map(|by| asked.iter().map(move |asked| (*by, asked))).map(|(by, asked)| {
                    let (exact, copied) = (exact(asked, by), copied(copy, asked, by));
                    exact.iter().filter(|near| copied.contains(near)).count()
                });
            format!("{:.5}", found.sum::<usize>() as f64 / (MEASURES.len() * SEARCHES * FOUND) as f64)
        });
        let peer = numpy.filter(|_| *name != READ).map(|numpy| format!("{:.2}", numpy.min / time.min));
        line(name, *time, floor, &goal, met, &format!("{} | {}", peer.unwrap_or_default(), recall.unwrap_or_default()));
    }
    if let Some(numpy) = numpy {
        line("numpy", numpy, floor, "", "", " | ");
    }
}

fn line(name: &str, Time { min, median }: Time, floor: f64, goal: &str, met: &str, peer: &str) {
    println!("| {name} | {min:.1} | {median:.1} | {:.2} | {goal} | {met} | {peer} |", min / floor);
}

fn program(call: Call, types: &Types) -> Program {
    let mut tree = Tree::new();
    let (a, b) = (tree.push(Op::Key(Key(1)), None), tree.push(Op::Param(0), None));
    tree.push(Op::Call { call, a, b: Some(b), salt: None }, None);
    Program::compile(&tree, types, Want::Column(Type::Float)).expect("the types are right")
}

/// The least that a pass over the numbers can cost: their bits added up, as wide as the processor can.
fn read(numbers: &[f32]) -> u32 {
    wide(
        #[inline(always)]
        || numbers.iter().fold(0u32, |sum, number| sum.wrapping_add(number.to_bits())),
    )
}
