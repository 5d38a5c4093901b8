//! Sorted, best and first rows, compared with a stable sort of row numbers by the standard library.

use crate::generate::{Look, Recipe, few, look, many, recipe};
use crate::table::{FIRST_ARRAY, KEY_TYPES, Table};
use proptest::prelude::*;
use proptest::sample::select;
use rankd_column::kernel::gather::gather_column;
use rankd_column::kernel::sort::Order;
use rankd_column::{Key, RowSet, Stop, Value};
use std::cmp::Ordering;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sorting_keeps_ties_in_order_and_puts_nulls_last(
        recipe in recipe(prop_oneof![3 => few().boxed(), 1 => many().boxed()]),
        look in look(), key in any_key(), order in any_order(),
    ) {
        let (table, rows) = tabled(recipe, look);
        let sorted = rows.sort(key, order, Stop::default()).unwrap();
        prop_assert_eq!(listed(&sorted), expected(&table, &rows, key, order));
    }

    #[test]
    fn the_best_rows_are_the_first_of_the_sorted_ones(
        recipe in recipe(few()), look in look(), key in any_key(), order in any_order(),
    ) {
        let (_, rows) = tabled(recipe, look);
        for count in 0..=rows.len() + 1 {
            check_top(&rows, key, order, count);
        }
    }

    #[test]
    fn rows_keep_their_cells_when_they_are_sorted_and_taken(
        recipe in recipe(few()), look in look(), key in any_key(), order in any_order(), count in 0..60usize,
    ) {
        let (table, rows) = tabled(recipe, look);
        let best = rows.sort(key, order, Stop::default()).unwrap().take(count);
        let expected: Vec<usize> = expected(&table, &rows, key, order).into_iter().take(count).collect();
        for key in (0..KEY_TYPES.len() as u32).map(Key) {
            let column = best.batch().column(key).map(|column| gather_column(column, best.rows(), Stop::default()).unwrap());
            for (at, row) in expected.iter().enumerate() {
                prop_assert_eq!(best.value(key, at), table.value(key, *row));
                prop_assert!(column.as_ref().is_none_or(|column| column.value(at) == table.value(key, *row)));
            }
        }
    }

    #[test]
    fn taking_gives_the_first_rows(recipe in recipe(few()), look in look(), count in 0..60usize) {
        let (_, rows) = tabled(recipe, look);
        let all = listed(&rows);
        prop_assert_eq!(listed(&rows.take(count)), all[..count.min(all.len())].to_vec());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_best_of_some_hundred_rows_are_the_first_of_the_sorted_ones_for_every_count(
        recipe in recipe(150..400usize), look in look(), key in any_key(), order in any_order(),
    ) {
        let (_, rows) = tabled(recipe, look);
        for count in 0..=rows.len() + 1 {
            check_top(&rows, key, order, count);
        }
    }

    #[test]
    fn the_best_of_many_rows_are_the_first_of_the_sorted_ones(
        recipe in recipe(many()), look in look(), key in any_key(), order in any_order(),
    ) {
        let (_, rows) = tabled(recipe, look);
        let n = rows.len();
        for count in [0, 1, 2, 63, 64, 65, n / 4, (n / 2).saturating_sub(1), n / 2, n / 2 + 1, n.saturating_sub(1), n, n + 1] {
            check_top(&rows, key, order, count);
        }
    }
}

#[test]
fn rows_that_come_worst_first_or_best_first_are_still_picked_right() {
    for rising in [true, false] {
        let ids: Vec<i64> = if rising { (0..3000).collect() } else { (0..3000).rev().collect() };
        let rows = RowSet::new(Table { ids, ..Table::default() }.batch());
        for order in [Order::Asc, Order::Desc] {
            for count in [0, 1, 10, 64, 100, 1000] {
                check_top(&rows, Key::ID, order, count);
            }
        }
    }
}

#[test]
fn both_zeros_tie() {
    let zeros = [0.0, -0.0, 1.0, -0.0, 0.0].map(Value::Float).to_vec();
    let table = Table { ids: vec![1, 2, 3, 4, 5], columns: [(Key(3), zeros)].into(), spare_strings: vec![] };
    let rows = RowSet::new(table.batch());
    assert_eq!(rows.sort(Key(3), Order::Asc, Stop::default()).unwrap().ids().collect::<Vec<_>>(), [1, 2, 4, 5, 3]);
    assert_eq!(rows.sort(Key(3), Order::Desc, Stop::default()).unwrap().ids().collect::<Vec<_>>(), [3, 1, 2, 4, 5]);
}

#[test]
fn neighbours_in_the_last_bit_are_told_apart() {
    // Their ranks agree in all the bits that one pass of the sort looks at.
    let mut values: Vec<Value> = (0..1000).map(|at| Value::Int(((at * 7919) % 1000) | 1 << 50)).collect();
    values.push(Value::Int(i64::MIN));
    let table = Table { ids: (0..1001).collect(), columns: [(Key(1), values)].into(), spare_strings: vec![] };
    let rows = RowSet::new(table.batch());
    for order in [Order::Asc, Order::Desc] {
        assert_eq!(listed(&rows.sort(Key(1), order, Stop::default()).unwrap()), expected(&table, &rows, Key(1), order));
    }
}

fn any_key() -> impl Strategy<Value = Key> {
    (0..FIRST_ARRAY).prop_map(Key)
}

fn any_order() -> impl Strategy<Value = Order> {
    select(vec![Order::Asc, Order::Desc])
}

fn tabled(recipe: Recipe, look: Look) -> (Table, RowSet) {
    let table = recipe.table();
    let rows = look.at(&RowSet::new(table.batch()));
    (table, rows)
}

fn listed(rows: &RowSet) -> Vec<usize> {
    rows.rows().iter().collect()
}

fn check_top(rows: &RowSet, key: Key, order: Order, count: usize) {
    assert_eq!(
        listed(&rows.top(key, order, count, Stop::default()).unwrap()),
        listed(&rows.sort(key, order, Stop::default()).unwrap().take(count)),
        "count {count}"
    );
}

fn expected(table: &Table, rows: &RowSet, key: Key, order: Order) -> Vec<usize> {
    let mut keyed: Vec<(Value, usize)> = rows.rows().iter().map(|row| (table.value(key, row), row)).collect();
    keyed.sort_by(|(a, _), (b, _)| match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (a, b) if order == Order::Asc => in_order(a, b),
        (a, b) => in_order(b, a),
    });
    keyed.into_iter().map(|(_, row)| row).collect()
}

fn in_order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).unwrap(),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Str(a), Value::Str(b)) => a.as_bytes().cmp(b.as_bytes()),
        _ => panic!("{a} is sorted with {b}"),
    }
}
