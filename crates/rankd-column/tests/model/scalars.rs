//! The functions of numbers, defined a second time, and what the rows of the table say of them.
//!
//! A function that has no second definition here is held by the examples of its row.

use crate::generate::{Level, WILD_FLOATS, WILD_INTS};
use crate::oracle::Term;
use crate::table::{KEY_TYPES, Registry, values};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rankd_column::expr::operation::{Finite, Nulls, Overflow, Takes};
use rankd_column::expr::{
    Binary, Compare, Form, IntBinary, IntUnary, OPERATIONS, Operation, Pattern, Program, Scratch, Special, Stop, Unary,
    Want, compute, select,
};
use rankd_column::{Batch, RowSet, Type, Value};
use std::cmp::{max_by, min_by};

/// What a function gives where it has three operands at most.
fn float(operation: &Operation, x: &[f64]) -> Option<f64> {
    match operation.form {
        Form::Unary(op) => Some(op.float(x[0])),
        Form::Binary(op) => Some(op.float(x[0], x[1])),
        Form::Call(_) => None,
        Form::Special(Special::Clamp) => Some(Binary::Min.float(Binary::Max.float(x[0], x[1]), x[2])),
        Form::Special(_) => None,
    }
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn floats() -> Vec<f64> {
    let more = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5, 0.5, 1.0, -1.0, -2.5, 3.5, 700.0, -700.0];
    WILD_FLOATS.into_iter().chain(more).collect()
}

#[test]
fn every_function_of_numbers_gives_what_its_examples_say() {
    for operation in OPERATIONS {
        for (x, expected) in operation.examples {
            let found = float(operation, x).unwrap();
            assert!(same(found, *expected), "{} of {x:?} is {found}, not {expected}", operation.name);
        }
        let has_numbers = match operation.form {
            Form::Unary(_) | Form::Binary(_) => true,
            Form::Call(_) => false,
            Form::Special(special) => special == Special::Clamp,
        };
        assert!(!has_numbers || operation.examples.len() >= 2, "{} needs examples", operation.name);
    }
}

#[test]
fn every_function_of_ints_is_exact_or_overflows() {
    let exact = |value: i128| (value as i64, i64::try_from(value).is_err());
    for &x in &WILD_INTS {
        let wide = i128::from(x);
        assert_eq!(IntUnary::Neg.int(x), exact(-wide), "-({x})");
        assert_eq!(IntUnary::Abs.int(x), exact(wide.abs()), "|{x}|");
        for &y in &WILD_INTS {
            let b = i128::from(y);
            assert_eq!(IntBinary::Add.int(x, y), exact(wide + b), "{x} + {y}");
            assert_eq!(IntBinary::Sub.int(x, y), exact(wide - b), "{x} - {y}");
            assert_eq!(IntBinary::Mul.int(x, y), exact(wide * b), "{x} * {y}");
            assert_eq!(IntBinary::Min.int(x, y), exact(wide.min(b)), "min({x}, {y})");
            assert_eq!(IntBinary::Max.int(x, y), exact(wide.max(b)), "max({x}, {y})");
        }
    }
}

#[test]
fn a_function_of_ints_and_floats_agrees_with_itself() {
    let small = -20..=20i64;
    for &op in Unary::ALL {
        let Some(on_ints) = op.on_ints() else { continue };
        assert!(small.clone().all(|x| on_ints.int(x) == (op.float(x as f64) as i64, false)), "{op:?}");
    }
    for &op in Binary::ALL {
        let Some(on_ints) = op.on_ints() else { continue };
        let all = small.clone().flat_map(|a| small.clone().map(move |b| (a, b)));
        assert!(
            all.into_iter().all(|(a, b)| on_ints.int(a, b) == (op.float(a as f64, b as f64) as i64, false)),
            "{op:?}"
        );
    }
}

#[test]
fn every_function_of_floats_is_what_it_is_called() {
    let round = |x: f64| {
        let whole = x.trunc();
        let rounded = if (x - whole).abs() >= 0.5 { whole + 1f64.copysign(x) } else { whole };
        rounded.copysign(x)
    };
    // The total order agrees with the numbers' order and puts -0.0 before 0.0.
    let of_both =
        |a: f64, b: f64, pick: fn(f64, f64) -> f64| if a.is_nan() || b.is_nan() { f64::NAN } else { pick(a, b) };
    for x in floats() {
        let expected = [
            (Unary::Neg, -x),
            (Unary::Abs, x.abs()),
            (Unary::Floor, x.floor()),
            (Unary::Ceil, x.ceil()),
            (Unary::Round, round(x)),
            (Unary::Sqrt, x.sqrt()),
            (
                Unary::Sign,
                if x > 0.0 {
                    1.0
                } else if x < 0.0 {
                    -1.0
                } else {
                    x
                },
            ),
            (Unary::Trunc, if x < 0.0 { x.ceil() } else { x.floor() }),
        ];
        for (op, expected) in expected {
            assert!(same(op.float(x), expected), "{op:?} of {x}: {} {expected}", op.float(x));
        }
        for y in floats() {
            let expected = [
                (Binary::Add, x + y),
                (Binary::Sub, x - y),
                (Binary::Mul, x * y),
                (Binary::Div, x / y),
                (Binary::Mod, x % y),
                (Binary::Min, of_both(x, y, |a, b| min_by(a, b, f64::total_cmp))),
                (Binary::Max, of_both(x, y, |a, b| max_by(a, b, f64::total_cmp))),
            ];
            for (op, expected) in expected {
                assert!(same(op.float(x, y), expected), "{op:?} of {x} and {y}: {} {expected}", op.float(x, y));
            }
        }
    }
}

/// The library's functions are another definition, which may be off by as much as ours: the bounds are those of `tests/math`.
#[test]
#[expect(clippy::disallowed_methods, reason = "another definition of the functions")]
fn every_function_of_many_steps_is_what_it_is_called() {
    let near = |a: f64, b: f64| same(a, b) || ((a - b) / b).abs() < 1e-15 || (a - b).abs() <= f64::MIN_POSITIVE;
    for x in floats() {
        let expected = [
            (Unary::Log, x.ln()),
            (Unary::Log1p, x.ln_1p()),
            (Unary::Log2, x.log2()),
            (Unary::Log10, x.log10()),
            (Unary::Exp, x.exp()),
            (Unary::Sigmoid, 1.0 / (1.0 + (-x).exp())),
            (Unary::Tanh, x.tanh()),
            (Unary::Sin, x.sin()),
            (Unary::Cos, x.cos()),
        ];
        for (op, expected) in expected {
            assert!(near(op.float(x), expected), "{op:?} of {x}: {} {expected}", op.float(x));
        }
        for y in floats() {
            for (op, expected) in [(Binary::Pow, x.powf(y)), (Binary::Decay, 0.5f64.powf(x / y))] {
                assert!(near(op.float(x, y), expected), "{op:?} of {x} and {y}: {} {expected}", op.float(x, y));
            }
        }
    }
}

/// A row that promises too much would let an evaluation skip its errors.
#[test]
fn what_rows_promise_about_errors_holds() {
    let floats: Vec<f64> = floats().into_iter().filter(|x| x.is_finite()).collect();
    for operation in OPERATIONS.iter().filter(|operation| operation.finite == Finite::Kept) {
        for &a in &floats {
            for &b in &floats {
                let found = float(operation, &[a, b, a]);
                assert!(found.is_none_or(f64::is_finite), "{} of {a} and {b} is {found:?}", operation.name);
            }
        }
    }
    for &op in Unary::ALL {
        let Some(ints) = op.on_ints().filter(|_| op.operation().overflow == Overflow::Never) else { continue };
        assert!(WILD_INTS.iter().all(|&x| !ints.int(x).1), "{op:?} overflows");
    }
    for &op in Binary::ALL {
        let Some(ints) = op.on_ints().filter(|_| op.operation().overflow == Overflow::Never) else { continue };
        assert!(WILD_INTS.iter().all(|&a| WILD_INTS.iter().all(|&b| !ints.int(a, b).1)), "{op:?} overflows");
    }
}

/// The operation on cells that are null; `None` where there are none, or where it has rules of its own.
fn of_nulls(operation: &Operation) -> Option<Term> {
    // No table has these.
    let (float, text) = (Term::Key(10), 12);
    let pair = Box::new((float.clone(), float.clone()));
    Some(match operation.form {
        Form::Unary(op) => Term::Unary(op, Box::new(float)),
        Form::Binary(op) => Term::Binary(op, pair),
        Form::Call(call) => {
            // One that fits and goes with the one before it; rows without columns have none of them.
            let mut before = None;
            let operand = |takes: &Takes| {
                let fits =
                    |type_of: &Type| takes.fits(*type_of) && before.is_none_or(|before| takes.agrees(before, *type_of));
                let key = KEY_TYPES.iter().skip(1).position(fits).unwrap() + 1;
                before = Some(KEY_TYPES[key]);
                Term::Key(key as u32)
            };
            Term::Call(call, call.takes().iter().map(operand).collect(), Some(""))
        }
        Form::Special(special) => match special {
            Special::Clamp => Term::Clamp(Box::new((float.clone(), float.clone(), float))),
            Special::Cmp => Term::Compare(Compare::Ne, pair),
            Special::In => Term::In(Box::new(float), vec![Value::Float(0.0)]),
            Special::Regex => Term::Match { key: text, pattern: Pattern::Literal(String::new()), ignore_case: false },
            Special::ConstNumber | Special::ConstString | Special::ConstBool | Special::ConstNull => return None,
            Special::NowMs | Special::UserId => return None,
            Special::KeyRef | Special::ParamRef | Special::Coalesce | Special::If => return None,
            Special::And | Special::Or | Special::Not | Special::IsNull | Special::NotNull => return None,
        },
    })
}

#[test]
fn what_rows_say_about_null_holds() {
    let rows = RowSet::new(Batch::new(vec![1, 2]));
    let (mut scratch, stop) = (Scratch::default(), Stop::default());
    for operation in OPERATIONS {
        let name = operation.name;
        let Some(term) = of_nulls(operation) else {
            assert!(matches!(operation.nulls, Nulls::Own | Nulls::Never), "{name}");
            continue;
        };
        let program = |want| Program::compile(&term.flatten().0, &Registry, want).unwrap();
        match operation.nulls {
            Nulls::Pass => {
                let column = compute(&program(Want::Value), &rows, values(&[]), &mut scratch, stop).unwrap();
                assert!((0..2).all(|row| column.value(row) == Value::Null), "{name}");
            }
            Nulls::False => {
                let kept = select(&program(Want::Predicate), &rows, values(&[]), &mut scratch, stop).unwrap();
                assert!(kept.is_empty(), "{name}");
            }
            Nulls::Own | Nulls::Never => panic!("{name} does something with null"),
        }
    }
}

/// The oracle and the generators know every operation of the table.
#[test]
fn every_operation_is_generated() {
    let level = Level::deep(3);
    let kinds = [level.int, level.number, level.bool, level.str, level.predicate];
    let mut runner = TestRunner::deterministic();
    let mut missing: Vec<&str> = OPERATIONS.iter().map(|operation| operation.name).collect();
    for _ in 0..400 {
        for kind in &kinds {
            let term = kind.new_tree(&mut runner).unwrap().current();
            let (tree, _) = term.flatten();
            missing.retain(|name| tree.nodes().iter().all(|node| node.op.operation().name != *name));
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
