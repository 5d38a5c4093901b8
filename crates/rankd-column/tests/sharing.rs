//! Row sets share their columns: what only looks at other rows, or adds a column, copies none of the data.

use rankd_column::expr::{Binary, Op, Program, RunValues, Schema, Scratch, Stop, Tree, Want, compute, select};
use rankd_column::kernel::sort::Order;
use rankd_column::{Batch, Cells, Column, DictionaryBuilder, Key, RowSet, Type, Value};
use std::sync::Arc;

const KEYS: [(Key, Type); 4] = [(Key(1), Type::Int), (Key(2), Type::Float), (Key(3), Type::Bool), (Key(4), Type::Str)];

struct Registry;

impl Schema for Registry {
    fn key_type(&self, key: Key) -> Type {
        KEYS.iter().find(|(known, _)| *known == key).map_or(Type::Int, |(_, type_of)| *type_of)
    }

    fn param_type(&self, _: u32) -> Type {
        Type::Int
    }
}

/// Rows with a column of each type.
fn rows(n: usize) -> RowSet {
    let mut builder = DictionaryBuilder::default();
    let codes = (0..n).map(|row| (row % 3 != 0).then(|| builder.code(["b", "a", "c"][row % 3]))).collect();
    let strings = Column::Str(codes, Arc::new(builder.finish()));
    let batch = Batch::new((0..n as i64).collect())
        .with(Key(1), Arc::new(Column::Int(Cells::full((0..n as i64).map(|row| row * 7 % 11).collect()))))
        .with(Key(2), Arc::new(Column::Float((0..n).map(|row| (row % 4 > 0).then_some(row as f64)).collect())))
        .with(Key(3), Arc::new(Column::Bool(Cells::full((0..n).map(|row| row % 2 == 0).collect()))))
        .with(Key(4), Arc::new(strings));
    RowSet::new(batch)
}

fn assert_same_data(before: &RowSet, after: &RowSet, what: &str) {
    assert_eq!(before.batch().ids().as_ptr(), after.batch().ids().as_ptr(), "ids after {what}");
    for (key, column) in before.batch().columns() {
        let after = after.batch().column(*key);
        assert!(after.is_some_and(|after| Arc::ptr_eq(column, after)), "{key:?} after {what}");
    }
}

#[test]
fn a_sorted_taken_or_filtered_set_has_the_very_same_columns() {
    let all = rows(2000);
    let mut tree = Tree::new();
    let key = tree.push(Op::Key(Key(2)), None);
    tree.push(Op::Null { x: key, negated: true }, None);
    let program = Program::compile(&tree, &Registry, Want::Predicate).unwrap();
    let kept = select(&program, &all, RunValues::default(), &mut Scratch::default(), Stop::default()).unwrap();
    let filtered = all.looking_at(kept);
    assert_same_data(&all, &filtered, "filter");
    assert_eq!(filtered.len(), 1500);
    for (key, _) in KEYS {
        for order in [Order::Asc, Order::Desc] {
            assert_same_data(&all, &filtered.sort(key, order, Stop::default()).unwrap(), "sort");
            assert_same_data(&all, &filtered.sort(key, order, Stop::default()).unwrap().take(10), "sort and take");
            assert_same_data(&all, &filtered.top(key, order, 10, Stop::default()).unwrap(), "top");
        }
    }
    assert_same_data(&all, &all.take(10), "take");
}

#[test]
fn a_taken_list_shares_the_list() {
    let sorted = rows(2000).sort(Key(1), Order::Asc, Stop::default()).unwrap();
    let (rankd_column::rowset::Rows::Listed(all), taken) = (sorted.rows(), sorted.take(7)) else { unreachable!() };
    let rankd_column::rowset::Rows::Listed(first) = taken.rows() else { unreachable!() };
    assert_eq!((first.as_ptr(), first.len()), (all.as_ptr(), 7));
}

#[test]
fn a_new_column_leaves_all_others_as_they_are() {
    let all = rows(50);
    let view = all.sort(Key(1), Order::Desc, Stop::default()).unwrap().take(20);
    let mut tree = Tree::new();
    let (a, b) = (tree.push(Op::Key(Key(1)), None), tree.push(Op::Key(Key(2)), None));
    tree.push(Op::Binary(Binary::Mul, a, b), None);
    let program = Program::compile(&tree, &Registry, Want::Column(Type::Float)).unwrap();
    let column = compute(&program, &view, RunValues::default(), &mut Scratch::default(), Stop::default()).unwrap();
    let scored = view.with(Key(9), Arc::new(column));
    assert_same_data(&all, &scored, "a new column");
    assert_eq!(view.batch().column(Key(9)).map(|column| column.len()), None);
    assert_eq!(scored.ids().collect::<Vec<_>>(), view.ids().collect::<Vec<_>>());
}

#[test]
fn a_replaced_column_is_replaced_only_in_the_new_set() {
    let all = rows(3);
    let replaced = all.with(Key(1), Arc::new(Column::Int(Cells::full(vec![7, 8, 9]))));
    assert_eq!(replaced.value(Key(1), 2), Value::Int(9));
    assert_eq!(all.value(Key(1), 2), Value::Int(3));
    for (key, _) in &KEYS[1..] {
        assert!(Arc::ptr_eq(all.batch().column(*key).unwrap(), replaced.batch().column(*key).unwrap()));
    }
}
