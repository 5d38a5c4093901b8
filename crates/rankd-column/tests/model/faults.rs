//! Single expressions that once went wrong, or easily could: faults, branches, shared nodes, stopping.

use crate::oracle::Term;
use crate::table::{PATTERN_PARAM, Registry, Table, values};
use rankd_column::expr::symbols::TEXT_BYTES_MAX;
use rankd_column::expr::{
    Binary, Call, Compare, EvalError, Fault, Op, Pattern, Program, Schema, Scratch, Stop, Tree, TypeError, TypeFault,
    Unary, Want, compute, select,
};
use rankd_column::{Column, Key, List, RowSet, Type, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Rows with ids from 100 on and a column of ints under key 1 and of floats under key 3.
fn rows(ints: &[i64], floats: &[f64]) -> RowSet {
    let ids = (100..).take(ints.len()).collect();
    let columns = [
        (Key(1), ints.iter().map(|v| Value::Int(*v)).collect()),
        (Key(3), floats.iter().map(|v| Value::Float(*v)).collect()),
    ];
    RowSet::new(Table { ids, columns: columns.into(), spare_strings: vec![] }.batch())
}

fn run(term: &Term, rows: &RowSet, params: &[Value], stop: Stop<'_>) -> Result<Column, EvalError> {
    let program = Program::compile(&term.flatten().0, &Registry, Want::Value).unwrap();
    compute(&program, rows, values(params), &mut Scratch::default(), stop)
}

fn binary(op: Binary, a: Term, b: Term) -> Term {
    Term::Binary(op, Box::new((a, b)))
}

fn coalesce(a: Term, b: Term) -> Term {
    Term::Coalesce(Box::new((a, b)))
}

fn float(value: f64) -> Term {
    Term::Const(Value::Float(value))
}

#[test]
fn an_int_parameter_that_stands_in_for_a_float_is_a_float() {
    let term = binary(Binary::Mul, coalesce(Term::Param(0), float(0.5)), Term::Param(1));
    let params = [Value::Int(i64::MAX), Value::Int(2)];
    let column = run(&term, &rows(&[1], &[1.0]), &params, Stop::default()).unwrap();
    assert_eq!(column.value(0), Value::Float(i64::MAX as f64 * 2.0));
}

#[test]
fn a_row_beside_an_overflow_computes_with_the_same_types_as_any_other() {
    // The first operand overflows on row 0 in the branch not taken; the second would, were its left side an int.
    let untaken =
        Term::If(Box::new((Term::Truth(false), binary(Binary::Add, Term::Key(1), Term::Key(1)), Term::Key(1))));
    let widened = binary(Binary::Mul, coalesce(Term::Key(1), Term::Key(3)), Term::Key(1));
    let column = run(&binary(Binary::Sub, untaken, widened), &rows(&[i64::MAX, 2], &[0.5, 0.5]), &[], Stop::default());
    let big = i64::MAX as f64;
    assert_eq!(column.clone().unwrap().value(0), Value::Float(big - big * big));
    assert_eq!(column.unwrap().value(1), Value::Float(-2.0));
}

#[test]
fn the_first_bad_row_is_named_whatever_its_fault() {
    let sum = binary(Binary::Add, Term::Key(1), Term::Const(Value::Int(1)));
    let term = binary(Binary::Div, sum, Term::Key(3));
    let error = |ints: &[i64], floats: &[f64]| run(&term, &rows(ints, floats), &[], Stop::default()).unwrap_err();
    let not_finite = error(&[1, 2, i64::MAX], &[1.0, 0.0, 1.0]);
    assert_eq!(not_finite, EvalError { fault: Fault::NotFinite(f64::INFINITY), id: Some(101.into()), node: Some(4) });
    let overflow = error(&[1, i64::MAX, 2], &[1.0, 1.0, 0.0]);
    assert_eq!(overflow, EvalError { fault: Fault::Overflow, id: Some(101.into()), node: Some(2) });
}

#[test]
fn an_overflow_beside_a_null_is_an_overflow() {
    let product = binary(Binary::Mul, Term::Key(1), Term::Key(1));
    let missing = Term::Key(9);
    for term in [binary(Binary::Add, product.clone(), missing.clone()), binary(Binary::Add, missing, product)] {
        let error = run(&term, &rows(&[1, i64::MAX], &[0.0, 0.0]), &[], Stop::default()).unwrap_err();
        assert_eq!((error.fault, error.id), (Fault::Overflow, Some(101.into())));
    }
}

#[test]
fn a_fault_outside_the_view_harms_nobody() {
    let term = binary(Binary::Div, binary(Binary::Add, Term::Key(1), Term::Key(1)), Term::Key(3));
    let all = rows(&[i64::MAX, 1, 2, 3], &[1.0, 0.0, 4.0, 2.0]);
    let column = run(&term, &all.looking_at(vec![3, 2]), &[], Stop::default()).unwrap();
    assert_eq!([column.value(3), column.value(2)], [Value::Float(3.0), Value::Float(1.0)]);
    assert_eq!(column.len(), 4);
}

#[test]
fn a_condition_that_chooses_between_nulls_is_not_looked_at() {
    let overflows = binary(Binary::Add, Term::Param(0), Term::Const(Value::Int(1)));
    let by_row = binary(Binary::Add, Term::Key(1), Term::Const(Value::Int(1)));
    for sum in [overflows, by_row] {
        let cond = Term::Compare(Compare::Gt, Box::new((sum, float(0.0))));
        let null = || Term::Const(Value::Null);
        let term = coalesce(Term::If(Box::new((cond, null(), null()))), Term::Key(1));
        let column = run(&term, &rows(&[i64::MAX], &[0.0]), &[Value::Int(i64::MAX)], Stop::default()).unwrap();
        assert_eq!(column.value(0), Value::Int(i64::MAX));
    }
}

#[test]
fn several_nodes_may_read_the_same_one() {
    // x = -a; y = x + x; z = (y * x) - (x + y): each value outlives its first reader.
    let mut tree = Tree::new();
    let a = tree.push(Op::Key(Key(1)), None);
    let x = tree.push(Op::Unary(Unary::Neg, a), None);
    let y = tree.push(Op::Binary(Binary::Add, x, x), None);
    let product = tree.push(Op::Binary(Binary::Mul, y, x), None);
    let sum = tree.push(Op::Binary(Binary::Add, x, y), None);
    tree.push(Op::Binary(Binary::Sub, product, sum), None);
    let program = Program::compile(&tree, &Registry, Want::Column(Type::Int)).unwrap();
    let rows = rows(&[1, 5, -3], &[0.0; 3]);
    let column = compute(&program, &rows, values(&[]), &mut Scratch::default(), Stop::default()).unwrap();
    for (row, a) in [1i64, 5, -3].into_iter().enumerate() {
        let (x, y) = (-a, -2 * a);
        assert_eq!(column.value(row), Value::Int(y * x - (x + y)));
    }
}

#[test]
fn a_pattern_parameter_that_is_no_pattern_is_a_fault_of_its_node() {
    let matched = |pattern| Term::Match { key: 7, pattern, ignore_case: false };
    let term = Term::And(Box::new((matched(Pattern::Literal("a".into())), matched(Pattern::Param(PATTERN_PARAM)))));
    let program = Program::compile(&term.flatten().0, &Registry, Want::Predicate).unwrap();
    let mut params = vec![Value::Null; 11];
    params[10] = Value::str("a(");
    let error =
        select(&program, &rows(&[1], &[0.0]), values(&params), &mut Scratch::default(), Stop::default()).unwrap_err();
    assert!(matches!(error, EvalError { fault: Fault::BadRegex { .. }, id: None, node: Some(1) }), "{error:?}");
}

#[test]
fn a_literal_that_is_no_pattern_is_refused_before_any_row() {
    for pattern in ["a(", "(a{1000}){1000}"] {
        let term = Term::Match { key: 7, pattern: Pattern::Literal(pattern.into()), ignore_case: false };
        let errors = Program::compile(&term.flatten().0, &Registry, Want::Predicate).unwrap_err();
        assert!(matches!(&errors[..], [error] if matches!(error.fault, TypeFault::BadRegex(_))), "{errors:?}");
    }
}

#[test]
fn a_set_flag_stops_an_evaluation_before_its_next_chunk() {
    let many = rows(&vec![1; 3000], &vec![1.0; 3000]);
    let stopped = AtomicBool::new(true);
    let going = AtomicBool::new(false);
    let sum = binary(Binary::Add, Term::Key(1), Term::Key(1));
    let stop = EvalError { fault: Fault::Stopped, id: None, node: None };
    assert_eq!(run(&sum, &many, &[], Stop::when(&stopped)).unwrap_err(), stop);
    assert!(run(&sum, &many, &[], Stop::when(&going)).is_ok());
    let positive = Term::Compare(Compare::Gt, Box::new((Term::Key(1), Term::Const(Value::Int(0)))));
    let program = Program::compile(&positive.flatten().0, &Registry, Want::Predicate).unwrap();
    let selected = |flag| select(&program, &many, values(&[]), &mut Scratch::default(), Stop::when(flag));
    assert_eq!(selected(&stopped).unwrap_err(), stop);
    assert_eq!(selected(&going).unwrap().len(), 3000);
}

#[test]
fn nothing_is_wrong_with_no_rows() {
    let none = rows(&[], &[]);
    let division = binary(Binary::Div, float(1.0), float(0.0));
    assert_eq!(run(&division, &none, &[], Stop::default()).unwrap().len(), 0);
    let overflow = binary(Binary::Mul, Term::Const(Value::Int(i64::MAX)), Term::Const(Value::Int(2)));
    assert_eq!(run(&overflow, &none, &[], Stop::default()).unwrap().len(), 0);
}

/// Rows with ids from 100 on and these texts under key 7.
fn texts(texts: &[&str]) -> RowSet {
    let ids = (100..).take(texts.len()).collect();
    let columns = [(Key(7), texts.iter().map(|text| Value::str(text)).collect())];
    RowSet::new(Table { ids, columns: columns.into(), spare_strings: vec![] }.batch())
}

#[test]
fn a_text_that_is_too_long_is_a_fault_of_its_row_and_operation() {
    let (half, most) = ("x".repeat(TEXT_BYTES_MAX / 2), "y".repeat(TEXT_BYTES_MAX / 2 + 1));
    let twice = Term::Call(Call::Append, vec![Term::Key(7), Term::Key(7)], None);
    let rows = texts(&["a", &half, &most, "b"]);
    let error = run(&Term::Call(Call::Upper, vec![twice.clone()], None), &rows, &[], Stop::default()).unwrap_err();
    assert_eq!(error, EvalError { fault: Fault::TextTooLong, id: Some(102.into()), node: Some(2) });
    // A branch that is not taken does no harm.
    let short = Term::Compare(Compare::Lt, Box::new((Term::Key(7), Term::Const(Value::str("y")))));
    let term = Term::If(Box::new((short, twice, Term::Const(Value::str("long")))));
    let column = run(&term, &rows, &[], Stop::default()).unwrap();
    assert_eq!([0, 2, 3].map(|row| column.value(row)), ["aa", "long", "bb"].map(Value::str));
    assert_eq!(column.value(1), Value::str(&half.repeat(2)));
}

#[test]
fn texts_that_are_too_large_together_end_the_evaluation() {
    let long = "x".repeat(TEXT_BYTES_MAX - 8);
    let all: Vec<String> = (0..70).map(|row| format!("{row:08}")).collect();
    let rows = texts(&all.iter().map(String::as_str).collect::<Vec<_>>());
    let appended = Term::Call(Call::Append, vec![Term::Key(7), Term::Param(5)], None);
    let mut params = vec![Value::Null; 6];
    params[5] = Value::str(&long);
    let error = run(&appended, &rows, &params, Stop::default()).unwrap_err();
    assert_eq!(error, EvalError { fault: Fault::TextsTooLarge, id: None, node: None });
    assert!(run(&appended, &rows.take(60), &params, Stop::default()).is_ok());
    // The same text on all rows is one text.
    let first = rows.looking_at(vec![0; 70]);
    assert!(run(&appended, &first, &params, Stop::default()).is_ok());
}

#[test]
fn few_rows_of_a_large_dictionary_are_worked_on_one_by_one() {
    let all: Vec<String> = (0..9000).map(|row| format!("Text {row}")).collect();
    let rows = texts(&all.iter().map(String::as_str).collect::<Vec<_>>()).looking_at(vec![8999, 5, 8999]);
    let lower = |x| Term::Call(Call::Lower, vec![x], None);
    let column = run(&lower(lower(Term::Key(7))), &rows, &[], Stop::default()).unwrap();
    assert_eq!([column.value(8999), column.value(5)], ["text 8999", "text 5"].map(Value::str));
}

#[test]
fn an_operand_that_is_not_taken_is_refused_by_name() {
    for (call, operand, message) in [
        (Call::Lower, Term::Key(1), "lower takes a string, not int"),
        (Call::Hash, Term::Key(3), "hash takes an int or a string, not float"),
        (Call::UnitHash, Term::Key(5), "unit_hash takes an int or a string, not bool"),
        (Call::Int, Term::Key(5), "int takes a number or a string, not bool"),
        (Call::Sum, Term::Key(15), "sum takes a list of numbers, not list<string>"),
        (Call::Size, Term::Key(16), "size takes a list, not vector<3>"),
    ] {
        let tree = Term::Call(call, vec![operand], Some("s")).flatten().0;
        let errors = Program::compile(&tree, &Registry, Want::Value).unwrap_err();
        assert_eq!(errors.iter().map(|error| error.to_string()).collect::<Vec<_>>(), [message]);
    }
}

#[test]
fn operands_that_do_not_go_together_are_refused_by_both_their_types() {
    struct Vectors;
    impl Schema for Vectors {
        fn key_type(&self, key: Key) -> Type {
            Type::Vector(if key.0 == 1 { 64 } else { 32 })
        }

        fn param_type(&self, _: u32) -> Type {
            Type::Int
        }
    }
    let messages = |errors: Vec<TypeError>| errors.iter().map(|error| error.to_string()).collect::<Vec<_>>();
    let dot = Term::Call(Call::Dot, vec![Term::Key(1), Term::Key(2)], None).flatten().0;
    let found = messages(Program::compile(&dot, &Vectors, Want::Value).unwrap_err());
    assert_eq!(found, ["vector<64> and vector<32> cannot be combined"]);
    for (call, a, b, expected) in [
        (Call::Overlap, 13, 15, "list<int> and list<string> cannot be combined"),
        (Call::Contains, 15, 1, "list<string> and int cannot be combined"),
        (Call::Contains, 7, 1, "string and int cannot be combined"),
        (Call::At, 13, 3, "at takes an int, not float"),
    ] {
        let tree = Term::Call(call, vec![Term::Key(a), Term::Key(b)], None).flatten().0;
        let want = if call == Call::Contains { Want::Predicate } else { Want::Value };
        assert_eq!(messages(Program::compile(&tree, &Registry, want).unwrap_err()), [expected]);
    }
}

#[test]
fn a_sum_of_ints_that_overflows_is_a_fault_of_its_row() {
    let lists = [vec![i64::MAX, 1, -5], vec![i64::MAX, 1]];
    let columns = [(Key(13), lists.into_iter().map(|list| Value::List(Arc::new(List::Int(list)))).collect())];
    let rows = RowSet::new(Table { ids: vec![100, 101], columns: columns.into(), spare_strings: vec![] }.batch());
    let sum = Term::Call(Call::Sum, vec![Term::Key(13)], None);
    assert_eq!(run(&sum, &rows.take(1), &[], Stop::default()).unwrap().value(0), Value::Int(i64::MAX - 4));
    let error = run(&sum, &rows, &[], Stop::default()).unwrap_err();
    assert_eq!(error, EvalError { fault: Fault::Overflow, id: Some(101.into()), node: Some(1) });
}
