//! The functions of numbers beside those of the C library: a column through an expression, and calls one by one; and how far off they are.
//!
//! Before anything is timed, a column must have the bits of single calls. The errors are measured on so many arguments of each function,
//! a million unless an argument says otherwise, against the reference of the tests of `rankd-column`.

#[path = "../../../crates/rankd-column/tests/math/functions.rs"]
mod functions;
#[path = "../../../crates/rankd-column/tests/math/reference.rs"]
mod reference;

use functions::{FUNCTIONS, worst};
use rankd_bench::harness::{Contender, part, race};
use rankd_column::expr::{Binary, Op, Program, RunValues, Schema, Scratch, Stop, Tree, Unary, Want, compute};
use rankd_column::{Batch, Cells, Column, Key, RowSet, Type};
use std::hint::black_box;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Columns stay in the cache, so that the functions are timed and not the memory.
const ROWS: usize = 8192;

struct Floats;

impl Schema for Floats {
    fn key_type(&self, key: Key) -> Type {
        if key == Key::ID { Type::Int } else { Type::Float }
    }

    fn param_type(&self, _: u32) -> Type {
        Type::Float
    }
}

/// What is timed: the operation, the library's function and the arguments.
struct Race {
    name: &'static str,
    op: fn(&mut Tree),
    ours: fn(f64, f64) -> f64,
    library: fn(f64, f64) -> f64,
    of_library: fn(&[f64], &[f64]) -> Vec<f64>,
    between: (f64, f64),
}

macro_rules! unary {
    ($name:literal, $op:ident, $library:expr, $between:expr) => {
        Race {
            name: $name,
            op: |tree| {
                let x = tree.push(Op::Key(Key(1)), None);
                tree.push(Op::Unary(Unary::$op, x), None);
            },
            ours: |x, _| Unary::$op.float(x),
            library: |x, _| $library(x),
            of_library: |x, _| x.iter().map(|&x| $library(x)).collect(),
            between: $between,
        }
    };
}

macro_rules! binary {
    ($name:literal, $op:ident, $library:expr, $between:expr) => {
        Race {
            name: $name,
            op: |tree| {
                let (a, b) = (tree.push(Op::Key(Key(1)), None), tree.push(Op::Key(Key(2)), None));
                tree.push(Op::Binary(Binary::$op, a, b), None);
            },
            ours: |a, b| Binary::$op.float(a, b),
            library: |a, b| $library(a, b),
            of_library: |a, b| a.iter().zip(b).map(|(&a, &b)| $library(a, b)).collect(),
            between: $between,
        }
    };
}

const RACES: &[Race] = &[
    unary!("exp", Exp, f64::exp, (-20.0, 20.0)),
    unary!("log", Log, f64::ln, (1e-3, 1000.0)),
    unary!("log1p", Log1p, f64::ln_1p, (0.0, 1000.0)),
    unary!("log2", Log2, f64::log2, (1e-3, 1000.0)),
    unary!("log10", Log10, f64::log10, (1e-3, 1000.0)),
    binary!("pow", Pow, f64::powf, (1e-3, 1000.0)),
    binary!("decay", Decay, |a: f64, b: f64| 0.5f64.powf(a / b), (0.0, 20.0)),
    unary!("sigmoid", Sigmoid, |x: f64| 1.0 / (1.0 + (-x).exp()), (-10.0, 10.0)),
    unary!("tanh", Tanh, f64::tanh, (-5.0, 5.0)),
    unary!("sin", Sin, f64::sin, (-100.0, 100.0)),
    unary!("cos", Cos, f64::cos, (-100.0, 100.0)),
];

fn main() {
    let turns = std::env::args().nth(1).and_then(|turns| turns.parse().ok()).unwrap_or(1_000_000);
    println!(
        "{ROWS} rows, one thread. Nanoseconds a value, the min of 15 rounds. `library` is what Rust's standard library calls.\n"
    );
    println!(
        "| | column | library | library ÷ column | goal | met | single call | library | max error (ulp) | bound |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for of in RACES {
        let x: Vec<f64> = spread(of.between.0, of.between.1);
        let y: Vec<f64> = spread(0.5, 2.5);
        let column = |values: &[f64]| Arc::new(Column::Float(Cells::full(values.to_vec())));
        let batch = Batch::new((1..=ROWS as i64).collect()).with(Key(1), column(&x)).with(Key(2), column(&y));
        let table = RowSet::new(batch);
        let mut tree = Tree::new();
        (of.op)(&mut tree);
        let program = Program::compile(&tree, &Floats, Want::Column(Type::Float)).expect("the types are right");
        let mut scratch = Scratch::default();
        let mut run = || compute(&program, &table, RunValues::of(&[]), &mut scratch, Stop::default()).expect("finite");
        let Column::Float(cells) = run() else { panic!("a column of floats") };
        for (row, found) in cells.values().iter().enumerate() {
            let single = (of.ours)(x[row], y[row]);
            assert_eq!(found.to_bits(), single.to_bits(), "{} of {} and {}", of.name, x[row], y[row]);
        }
        let (x, y) = (&x, &y);
        let one_by_one = |f: fn(f64, f64) -> f64| {
            move || {
                for (&x, &y) in x.iter().zip(y) {
                    black_box(f(black_box(x), black_box(y)));
                }
            }
        };
        let mut contenders: Vec<(&'static str, Box<dyn Contender + '_>)> = vec![
            ("column", part(run)),
            ("library", part(|| (of.of_library)(black_box(x), black_box(y)))),
            ("single call", part(one_by_one(of.ours))),
            ("library's", part(one_by_one(of.library))),
        ];
        let times: Vec<f64> =
            race(&mut contenders).into_iter().map(|(_, time)| time.min * 1000.0 / ROWS as f64).collect();
        let function = FUNCTIONS.iter().find(|function| function.name == of.name).expect("a function of the tests");
        let (off, _) = worst(function, 5, turns);
        assert!(off <= function.ulps_max, "{} is off by {off} ulp", of.name);
        println!(
            "| {} | {:.2} | {:.2} | {:.2} | > 1 | {} | {:.2} | {:.2} | {off:.3} | {} |",
            of.name,
            times[0],
            times[1],
            times[1] / times[0],
            if times[1] > times[0] { "yes" } else { "**no**" },
            times[2],
            times[3],
            function.ulps_max,
        );
    }
    println!("\nErrors over {turns} arguments each: ends of ranges, all exponents, around 0, 1 and multiples of π/2.");
}

/// Numbers all over a range, in no order.
fn spread(low: f64, high: f64) -> Vec<f64> {
    (0..ROWS).map(|row| low + (high - low) * (row as f64 * 0.618_033_988_749_894_9).fract()).collect()
}
