//! Columns computed and rows selected, compared with the oracle cell by cell and fault by fault.

use crate::generate::{Level, Look, Recipe, WILD_FLOATS, WILD_INTS, few, look, many, params, recipe};
use crate::oracle::{Overflow, Term};
use crate::table::{KEY_TYPES, Registry, World, values};
use proptest::prelude::*;
use rankd_column::expr::operation::{Gives, Takes};
use rankd_column::expr::{
    Binary, Call, Compare, EvalError, Fault, Program, Scratch, Stop, Unary, Want, compute, select,
};
use rankd_column::{List, RowSet, Type, Value};
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// Kept over all cases of a test, so that what one program leaves behind is there for the next.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

fn few_rows() -> ProptestConfig {
    ProptestConfig::with_cases(4000)
}

fn many_rows() -> ProptestConfig {
    ProptestConfig::with_cases(150)
}

proptest! {
    #![proptest_config(few_rows())]

    #[test]
    fn a_number_is_what_its_terms_say(
        term in Level::deep(4).number, recipe in recipe(few()), look in look(), params in params(),
    ) {
        check_column(&term, recipe, look, params);
    }

    #[test]
    fn an_int_is_what_its_terms_say(
        term in Level::deep(4).int, recipe in recipe(few()), look in look(), params in params(),
    ) {
        check_column(&term, recipe, look, params);
    }

    #[test]
    fn a_string_or_bool_is_what_its_terms_say(
        term in prop_oneof![Level::deep(4).str, Level::deep(4).bool],
        recipe in recipe(few()), look in look(), params in params(),
    ) {
        check_column(&term, recipe, look, params);
    }

    #[test]
    fn a_predicate_keeps_the_rows_that_its_terms_say(
        term in Level::deep(4).predicate, recipe in recipe(few()), look in look(), params in params(),
    ) {
        check_rows(&term, recipe, look, params);
    }
}

proptest! {
    #![proptest_config(many_rows())]

    #[test]
    fn a_column_over_several_chunks_is_what_its_terms_say(
        term in prop_oneof![3 => Level::deep(3).number, 1 => Level::deep(3).int, 1 => Level::deep(3).str],
        recipe in recipe(many()), look in look(), params in params(),
    ) {
        check_column(&term, recipe, look, params);
    }

    #[test]
    fn a_predicate_over_several_chunks_keeps_the_rows_that_its_terms_say(
        term in Level::deep(3).predicate, recipe in recipe(many()), look in look(), params in params(),
    ) {
        check_rows(&term, recipe, look, params);
    }
}

/// Every operation of every type by itself, over values at the borders.
#[test]
fn each_operation_alone_is_what_its_term_says() {
    let recipe = Recipe { rows: 1100, salt: 1, wild: true, nulls: 2, distinct: false };
    let keys = |count: usize| {
        (0..5u32.pow(count as u32)).map(move |mut at| {
            (0..count)
                .map(|_| {
                    let key = at % 5;
                    at /= 5;
                    Term::Key(key)
                })
                .collect::<Vec<_>>()
        })
    };
    for &op in Unary::ALL {
        for x in keys(1) {
            check_column(&Term::Unary(op, Box::new(x[0].clone())), recipe, Look::All, vec![]);
        }
    }
    for &op in Binary::ALL {
        for ab in keys(2) {
            let pair = Box::new((ab[0].clone(), ab[1].clone()));
            check_column(&Term::Binary(op, pair), recipe, Look::All, vec![]);
        }
    }
    // Keys of every type, and each operand in turn the same on all rows.
    let texts: Vec<Arc<str>> = ["a", "aB", "zz", "a"].map(Into::into).into();
    let literals = [
        Value::Int(-7),
        Value::Int(1),
        Value::Float(2.5),
        Value::str("aB"),
        Value::str("12"),
        Value::str(""),
        Value::List(Arc::new(List::Int(vec![1, i64::MAX, -1, 1]))),
        Value::List(Arc::new(List::Float(vec![0.0, 2.5, -0.0]))),
        Value::List(Arc::new(List::Float((0..40).map(|at| f64::from(at) / 2.0).collect()))),
        Value::List(Arc::new(List::Str(texts))),
        Value::Vector([0.5f32, -2.0, 1e30].into()),
        Value::Vector([0f32; 3].into()),
    ];
    let operands = |takes: &Takes| -> Vec<Term> {
        let keys = (1..KEY_TYPES.len() as u32).filter(|key| takes.fits(KEY_TYPES[*key as usize])).map(Term::Key);
        let literals = literals.iter().filter(|value| takes.fits(value.type_of().unwrap()));
        keys.chain(literals.cloned().map(Term::Const)).collect()
    };
    for &call in Call::ALL {
        let salt = call.operation().fields.iter().any(|field| field.name == "salt").then_some("s");
        let all: Vec<Vec<Term>> = call.takes().iter().map(operands).collect();
        for a in &all[0] {
            let of: Vec<Vec<Term>> = match all.get(1) {
                Some(b) => {
                    let agree = |b: &&Term| call.takes()[1].agrees(a.type_of().unwrap(), b.type_of().unwrap());
                    b.iter().filter(agree).map(|b| vec![a.clone(), b.clone()]).collect()
                }
                None => vec![vec![a.clone()]],
            };
            for operands in of {
                let term = Term::Call(call, operands, salt);
                for distinct in [false, true] {
                    let recipe = Recipe { distinct, ..recipe };
                    match call.gives() {
                        Gives::Truth => check_rows(&term, recipe, Look::Kept(5), vec![]),
                        _ => check_column(&term, recipe, Look::Kept(5), vec![]),
                    }
                }
            }
        }
    }
    for abc in keys(3) {
        let parts = Box::new((abc[0].clone(), abc[1].clone(), abc[2].clone()));
        check_column(&Term::Clamp(parts), Recipe { rows: 300, ..recipe }, Look::All, vec![]);
    }
}

/// Ints and floats that a conversion of either would round onto each other.
#[test]
fn an_int_and_a_float_at_the_borders_compare_exactly() {
    let recipe = Recipe { rows: 300, salt: 1, wild: true, nulls: 1, distinct: false };
    let literals = WILD_INTS.map(Value::Int).into_iter().chain(WILD_FLOATS.map(Value::Float));
    for (literal, key) in literals.flat_map(|literal| [(literal.clone(), 1), (literal, 3)]) {
        let (key, constant) = (Term::Key(key), Term::Const(literal.clone()));
        check_rows(&Term::In(Box::new(key.clone()), vec![literal]), recipe, Look::All, vec![]);
        for op in Compare::ALL {
            for pair in [(key.clone(), constant.clone()), (constant.clone(), key.clone())] {
                check_rows(&Term::Compare(op, Box::new(pair)), recipe, Look::All, vec![]);
            }
        }
    }
    for op in Compare::ALL {
        check_rows(&Term::Compare(op, Box::new((Term::Key(1), Term::Key(3)))), recipe, Look::All, vec![]);
    }
}

/// Computes, and compares with the oracle: the cells, or else the fault of the first bad row and then the cells of all
/// rows that have none.
fn check_column(term: &Term, recipe: Recipe, look: Look, params: Vec<Value>) {
    let world = World { table: recipe.table(), params };
    let rows = look.at(&RowSet::new(world.table.batch()));
    let mut wants = vec![Want::Value];
    wants.extend(term.type_of().map(Want::Column));
    if term.type_of() == Some(Type::Int) {
        wants.push(Want::Column(Type::Float));
    }
    let (tree, terms) = term.flatten();
    for want in wants {
        let program = Program::compile(&tree, &Registry, want).unwrap();
        let mut expected: Vec<Result<Value, Overflow>> =
            rows.rows().iter().map(|row| widened(term.on(row, &world), want)).collect();
        if let Some(bad) = expected.iter().position(is_bad) {
            let error = run(&program, &rows, &world.params).unwrap_err();
            let row = rows.rows().at(bad);
            check_fault(&error, &expected[bad], row, &world, &terms);
            assert_eq!(error.node.and_then(|node| program.source(node)), error.node.map(|node| node * 10));
            let (good, values) = rows
                .rows()
                .iter()
                .zip(expected)
                .filter(|(_, value)| !is_bad(value))
                .map(|(row, v)| (row as u32, v))
                .unzip();
            expected = values;
            check_cells(&program, &rows.looking_at(good), &world, &expected);
        } else {
            check_cells(&program, &rows, &world, &expected);
        }
    }
}

fn check_cells(program: &Program, rows: &RowSet, world: &World, expected: &[Result<Value, Overflow>]) {
    let column = run(program, rows, &world.params).unwrap();
    assert_eq!(Some(column.type_of()), program.result());
    assert_eq!(column.len(), rows.batch().len());
    for (row, value) in rows.rows().iter().zip(expected) {
        assert_eq!(bits(&column.value(row)), bits(value.as_ref().unwrap()), "row {row}");
    }
}

fn check_rows(term: &Term, recipe: Recipe, look: Look, params: Vec<Value>) {
    let world = World { table: recipe.table(), params };
    let rows = look.at(&RowSet::new(world.table.batch()));
    let (tree, terms) = term.flatten();
    let program = Program::compile(&tree, &Registry, Want::Predicate).unwrap();
    assert_eq!(program.result(), None);
    let select = |rows: &RowSet| {
        SCRATCH.with_borrow_mut(|scratch| select(&program, rows, values(&world.params), scratch, Stop::default()))
    };
    let truths: Vec<(usize, Result<bool, Overflow>)> =
        rows.rows().iter().map(|row| (row, term.holds(row, &world))).collect();
    let kept: Vec<u32> = truths.iter().filter(|(_, truth)| *truth == Ok(true)).map(|(row, _)| *row as u32).collect();
    match truths.iter().find(|(_, truth)| truth.is_err()) {
        None => assert_eq!(select(&rows), Ok(kept)),
        Some((row, _)) => {
            check_fault(&select(&rows).unwrap_err(), &Err(Overflow), *row, &world, &terms);
            let good = truths.iter().filter(|(_, truth)| truth.is_ok()).map(|(row, _)| *row as u32).collect();
            assert_eq!(select(&rows.looking_at(good)), Ok(kept));
        }
    }
}

/// The fault is the row's, and its node is where it arose: the node has it and none of its operands does.
fn check_fault(error: &EvalError, expected: &Result<Value, Overflow>, row: usize, world: &World, terms: &[&Term]) {
    assert_eq!(error.id, Some(world.table.ids[row].into()), "{error:?}, expected {expected:?}");
    let culprit = terms[error.node.unwrap() as usize];
    match (&error.fault, expected) {
        (Fault::Overflow, Err(Overflow)) => {
            assert!(culprit.is_arithmetic(), "{culprit:?}");
            assert_eq!(culprit.on(row, world), Err(Overflow), "{culprit:?}");
            for operand in culprit.children() {
                assert!(operand.on(row, world).is_ok(), "{operand:?}");
            }
        }
        (Fault::NotFinite(found), Ok(Value::Float(written))) => {
            assert!(found == written || found.is_nan() && written.is_nan(), "{found} {written}");
            assert!(culprit.is_arithmetic(), "{culprit:?}");
            assert!(is_bad(&culprit.on(row, world)), "{culprit:?}");
            for operand in culprit.children() {
                assert!(!is_bad(&operand.on(row, world)), "{operand:?}");
            }
        }
        (found, expected) => panic!("{found:?}, expected {expected:?}"),
    }
}

fn run(program: &Program, rows: &RowSet, params: &[Value]) -> Result<rankd_column::Column, EvalError> {
    SCRATCH.with_borrow_mut(|scratch| compute(program, rows, values(params), scratch, Stop::default()))
}

fn is_bad(value: &Result<Value, Overflow>) -> bool {
    match value {
        Err(Overflow) => true,
        Ok(Value::Float(v)) => !v.is_finite(),
        Ok(_) => false,
    }
}

fn widened(value: Result<Value, Overflow>, want: Want) -> Result<Value, Overflow> {
    match (value, want) {
        (Ok(Value::Int(v)), Want::Column(Type::Float)) => Ok(Value::Float(v as f64)),
        (value, _) => value,
    }
}

/// Floats by their bits, so that -0.0 is not 0.0.
fn bits(value: &Value) -> (Value, bool) {
    (value.clone(), matches!(value, Value::Float(v) if v.is_sign_negative()))
}
