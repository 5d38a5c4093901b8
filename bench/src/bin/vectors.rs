//! `dot`, `cosine` and `l2` of the vectors of a column with one vector, beside the time it takes to read the same bytes.
//!
//! Arguments: rows and dimension, 10000 and 64 by default. numpy takes part where `PYTHON`, or else `python3`, has it.

use rankd_bench::harness::{Contender, Time, part, race};
use rankd_bench::python::{Python, introduce};
use rankd_column::expr::{Call, Op, Program, RunValues, Schema, Scratch, Stop, Tree, Want, compute};
use rankd_column::kernel::wide::wide;
use rankd_column::{Batch, Cells, Column, Key, RowSet, Type, Value, Vectors};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const READ: &str = "floor: read the same bytes";
const DOT: &str = "rankd dot";
/// `dot` may take so many times as long as reading the same bytes.
const GOAL: f64 = 1.5;
const CALLS: [(&str, Call); 3] = [(DOT, Call::Dot), ("rankd cosine", Call::Cosine), ("rankd l2", Call::L2)];

/// Answers with the least and the median of microseconds a call.
const NUMPY: &str = r#"
import timeit
np = there.get("numpy")
rows, dimension = int(sys.argv[2]), int(sys.argv[3])
def dot(_):
    m = (np.arange(rows * dimension) * 7919 % 1009 / 504 - 1).astype(np.float32).reshape(rows, dimension)
    v = np.linspace(-1, 1, dimension, dtype=np.float32)
    times = sorted(time / 100 * 1e6 for time in timeit.repeat(lambda: m @ v, number=100, repeat=15))
    return f"{times[0]} {times[len(times) // 2]}"
answer(dot)
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
    let mut python = Python::start(&["numpy"], NUMPY, &[&rows.to_string(), &dimension.to_string()]);
    let ours = race(&mut contenders);
    println!(
        "{rows} vectors of {dimension} numbers, {} KiB, one thread. Microseconds a call. numpy is `matrix @ vector`.\n",
        rows * dimension * 4 / 1024
    );
    introduce(python.as_ref(), &["numpy"]);
    let numpy = python.as_mut().filter(|python| python.has("numpy")).and_then(|python| python.ask("dot"));
    let numpy = numpy.filter(|times| times.len() == 2).map(|times| Time { min: times[0], median: times[1] });
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
