//! Row sets end to end, compared with the rows of both tables listed one after the other.

use crate::generate::{few, look, many, recipe};
use crate::table::{KEY_TYPES, Registry, Table};
use proptest::prelude::*;
use rankd_column::expr::{Op, Program, RunValues, Scratch, Stop, Tree, Want, compute};
use rankd_column::{Column, Elements, Key, RowSet, Value};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn joined_rows_are_the_left_ones_then_the_right_ones(
        left in recipe(few()), right in recipe(prop_oneof![9 => few().boxed(), 1 => many().boxed()]),
        looks in (look(), look()), dropped in any::<(u32, u32)>(),
    ) {
        let (left, right) = (with_fewer(left.table(), dropped.0), with_fewer(right.table(), dropped.1));
        let (l, r) = (looks.0.at(&RowSet::new(left.batch())), looks.1.at(&RowSet::new(right.batch())));
        let joined = l.concat(&r, Stop::default()).unwrap();

        prop_assert_eq!(joined.len(), l.len() + r.len());
        let keys: Vec<Key> = joined.batch().columns().iter().map(|(key, _)| *key).collect();
        let union: Vec<Key> =
            (1..KEY_TYPES.len() as u32).map(Key).filter(|key| left.columns.contains_key(key) || right.columns.contains_key(key)).collect();
        prop_assert_eq!(keys, union);
        for key in (0..KEY_TYPES.len() as u32).map(Key) {
            let expected: Vec<Value> = l.rows().iter().map(|row| left.value(key, row))
                .chain(r.rows().iter().map(|row| right.value(key, row)))
                .collect();
            let found: Vec<Value> = (0..joined.len()).map(|at| joined.value(key, at)).collect();
            prop_assert_eq!(found, expected);
            check_dictionary(&l, &r, &joined, key);
        }
    }

    #[test]
    fn joined_rows_are_rows_like_any_other(left in recipe(few()), right in recipe(few())) {
        let (left, right) = (left.table(), right.table());
        let joined = RowSet::new(left.batch()).concat(&RowSet::new(right.batch()), Stop::default()).unwrap();
        // Reads every string cell through an expression, which trusts codes and validity.
        let mut tree = Tree::new();
        let a = tree.push(Op::Key(Key(7)), None);
        let b = tree.push(Op::Key(Key(8)), None);
        tree.push(Op::Coalesce(a, b), None);
        let program = Program::compile(&tree, &Registry, Want::Value).unwrap();
        let column = compute(&program, &joined, RunValues::default(), &mut Scratch::default(), Stop::default()).unwrap();
        for row in 0..joined.len() {
            let first = joined.value(Key(7), row);
            let expected = if first == Value::Null { joined.value(Key(8), row) } else { first };
            prop_assert_eq!(column.value(row), expected);
        }
    }
}

/// The entries of the left, then those of the right that the left has not.
fn check_dictionary(left: &RowSet, right: &RowSet, joined: &RowSet, key: Key) {
    let mut expected = entries(left, key);
    for entry in entries(right, key) {
        if !expected.contains(&entry) {
            expected.push(entry);
        }
    }
    assert_eq!(entries(joined, key), expected);
}

fn entries(rows: &RowSet, key: Key) -> Vec<String> {
    match rows.batch().column(key).map(|column| &**column) {
        Some(Column::Str(_, dictionary)) => dictionary.iter().map(str::to_owned).collect(),
        Some(Column::List(_, elements)) => match &**elements {
            Elements::Str(_, dictionary) => dictionary.iter().map(str::to_owned).collect(),
            Elements::Int(_) | Elements::Float(_) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Without the columns whose bit is set.
fn with_fewer(mut table: Table, dropped: u32) -> Table {
    table.columns.retain(|key, _| dropped >> key.0 & 1 == 0);
    table
}
