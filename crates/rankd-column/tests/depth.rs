//! Trees of a million nodes, as deep or as wide as they come, on a stack that no recursion over them would fit.
#![expect(clippy::unwrap_used, reason = "what tests call fails the test, as an assertion would")]

use rankd_column::expr::tree::Ix;
use rankd_column::expr::{
    Binary, Compare, Op, Pattern, Program, RunValues, Schema, Scratch, Stop, Tree, Unary, Want, compute, select,
};
use rankd_column::{Batch, Cells, Column, DictionaryBuilder, Key, RowSet, Type, Value};
use std::sync::Arc;

const NODES: usize = 1_000_000;
const STACK_BYTES: usize = 256 * 1024;

struct Registry;

impl Schema for Registry {
    fn key_type(&self, key: Key) -> Type {
        match key {
            Key(2) => Type::Str,
            _ => Type::Int,
        }
    }

    fn param_type(&self, _: u32) -> Type {
        Type::Int
    }
}

const ROWS: [i64; 3] = [5, -3, 0];

/// Three rows with ints under key 1, and strings under key 2.
fn rows() -> RowSet {
    let mut builder = DictionaryBuilder::default();
    let codes = ["a", "b", "a"].map(|text| builder.code(text)).to_vec();
    let batch = Batch::new(vec![1, 2, 3])
        .with(Key(1), Arc::new(Column::Int(Cells::full(ROWS.to_vec()))))
        .with(Key(2), Arc::new(Column::Str(Cells::full(codes), Arc::new(builder.finish()))));
    RowSet::new(batch)
}

fn on_a_small_stack(test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, test).unwrap();
        thread.join().unwrap();
    });
}

/// Compiles a clone, drops both trees, and computes an int for each row.
fn ints(tree: Tree) -> Vec<Value> {
    let program = Program::compile(&tree.clone(), &Registry, Want::Column(Type::Int)).unwrap();
    drop(tree);
    let column = compute(&program, &rows(), RunValues::default(), &mut Scratch::default(), Stop::default()).unwrap();
    (0..3).map(|row| column.value(row)).collect()
}

fn key(tree: &mut Tree) -> Ix {
    tree.push(Op::Key(Key(1)), None)
}

fn negated_key(tree: &mut Tree) -> Ix {
    let x = key(tree);
    tree.push(Op::Unary(Unary::Neg, x), None)
}

#[test]
fn a_chain_of_a_million_signs_is_computed() {
    on_a_small_stack(|| {
        let mut tree = Tree::new();
        let mut x = key(&mut tree);
        for _ in 0..NODES {
            x = tree.push(Op::Unary(Unary::Neg, x), None);
        }
        assert_eq!(ints(tree), ROWS.map(Value::Int));
    });
}

#[test]
fn a_sum_that_leans_left_is_computed() {
    on_a_small_stack(|| {
        let mut tree = Tree::new();
        let mut sum = key(&mut tree);
        for _ in 0..NODES / 2 {
            let x = key(&mut tree);
            sum = tree.push(Op::Binary(Binary::Add, sum, x), None);
        }
        assert_eq!(ints(tree), ROWS.map(|x| Value::Int(x * (NODES as i64 / 2 + 1))));
    });
}

#[test]
fn a_sum_that_leans_right_is_computed() {
    on_a_small_stack(|| {
        // Left operands that are computed, all of them before the innermost sum: were they computed in the order in which they
        // are written, a third of a million values would wait.
        let mut tree = Tree::new();
        let lefts: Vec<Ix> = (0..NODES / 3).map(|_| negated_key(&mut tree)).collect();
        let mut sum = negated_key(&mut tree);
        for left in lefts.into_iter().rev() {
            sum = tree.push(Op::Binary(Binary::Add, left, sum), None);
        }
        assert_eq!(ints(tree), ROWS.map(|x| Value::Int(-x * (NODES as i64 / 3 + 1))));
    });
}

#[test]
fn a_balanced_sum_is_computed() {
    on_a_small_stack(|| {
        let mut tree = Tree::new();
        let mut sums: Vec<Ix> = (0..1 << 18).map(|_| negated_key(&mut tree)).collect();
        while sums.len() > 1 {
            sums = sums.chunks(2).map(|pair| tree.push(Op::Binary(Binary::Add, pair[0], pair[1]), None)).collect();
        }
        assert_eq!(ints(tree), ROWS.map(|x| Value::Int(-x << 18)));
    });
}

#[test]
fn a_choice_within_a_choice_is_computed() {
    on_a_small_stack(|| {
        let mut tree = Tree::new();
        let mut value = key(&mut tree);
        for at in 0..NODES / 5 {
            let (a, b) = (key(&mut tree), tree.push(Op::Const(Value::Int(at as i64)), None));
            let cond = tree.push(Op::Compare(Compare::Lt, a, b), None);
            let then = key(&mut tree);
            value = tree.push(Op::If { cond, then, other: value }, None);
        }
        assert_eq!(ints(tree), ROWS.map(Value::Int));
    });
}

#[test]
fn a_fault_at_the_bottom_of_a_million_nodes_is_found() {
    on_a_small_stack(|| {
        let mut tree = Tree::new();
        let a = key(&mut tree);
        let most = tree.push(Op::Const(Value::Int(i64::MAX)), None);
        let culprit = tree.push(Op::Binary(Binary::Add, a, most), None);
        let mut x = culprit;
        for _ in 0..NODES {
            x = tree.push(Op::Unary(Unary::Neg, x), None);
        }
        let program = Program::compile(&tree, &Registry, Want::Column(Type::Int)).unwrap();
        let error =
            compute(&program, &rows(), RunValues::default(), &mut Scratch::default(), Stop::default()).unwrap_err();
        assert_eq!((error.id, error.node), (Some(1.into()), Some(culprit)));
    });
}

#[test]
fn a_predicate_with_more_string_tests_than_16_bits_can_number_selects() {
    on_a_small_stack(|| {
        let mut tree = Tree::new();
        let mut any = tree.push(Op::Truth(false), None);
        for at in 0..70_000 {
            let text = tree.push(Op::Key(Key(2)), None);
            let test = tree.push(Op::In(text, vec![Value::str(if at == 69_999 { "b" } else { "x" })]), None);
            any = tree.push(Op::Or(any, test), None);
        }
        let pattern = Pattern::Literal("^b".into());
        let matched = tree.push(Op::Match { key: Key(2), pattern, ignore_case: false }, None);
        tree.push(Op::And(any, matched), None);
        let program = Program::compile(&tree, &Registry, Want::Predicate).unwrap();
        assert_eq!(
            select(&program, &rows(), RunValues::default(), &mut Scratch::default(), Stop::default()),
            Ok(vec![1])
        );
    });
}
