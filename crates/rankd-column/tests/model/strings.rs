//! Columns of many distinct strings: sorted, picked and compared with constants, whichever way the size of the view makes best.

use crate::table::{Registry, Table};
use rankd_column::expr::{Compare, Op, Program, RunValues, Scratch, Stop, Tree, Want, select};
use rankd_column::kernel::sort::Order;
use rankd_column::{Key, RowSet, Value};

const TITLE: Key = Key(7);
const OTHER: Key = Key(8);

/// Strings that begin alike, some with what others end with, some null; few of them equal.
fn titles(rows: usize) -> Vec<Value> {
    let tails = ["", "\0", "x", " and a tail that is long", "\u{10ffff}"];
    let title = |at: usize| match at % 11 {
        10 => Value::Null,
        _ => Value::str(&format!("item_{:04}{}", at * 7919 % (rows - rows / 8), tails[at % tails.len()])),
    };
    (0..rows).map(title).collect()
}

fn table(rows: usize) -> (Vec<Value>, RowSet) {
    let values = titles(rows);
    let columns = [(TITLE, values.clone()), (OTHER, values.iter().rev().cloned().collect())];
    let table = Table { ids: (0..rows as i64).collect(), columns: columns.into(), spare_strings: vec!["spare", ""] };
    (values, RowSet::new(table.batch()))
}

#[test]
fn the_best_of_many_strings_are_the_first_of_the_sorted_ones() {
    let (values, all) = table(3_000);
    let text = |row: usize| match &values[row] {
        Value::Str(text) => Some(text.as_bytes()),
        _ => None,
    };
    let every_third = all.looking_at((0..3_000).filter(|row| row % 3 == 0).rev().collect());
    for rows in [&all, &every_third] {
        for order in [Order::Asc, Order::Desc] {
            let mut wanted: Vec<usize> = rows.rows().iter().filter(|row| text(*row).is_some()).collect();
            match order {
                Order::Asc => wanted.sort_by(|a, b| text(*a).cmp(&text(*b))),
                Order::Desc => wanted.sort_by(|a, b| text(*b).cmp(&text(*a))),
            }
            wanted.extend(rows.rows().iter().filter(|row| text(*row).is_none()));
            assert_eq!(rows.sort(TITLE, order, Stop::default()).unwrap().rows().iter().collect::<Vec<_>>(), wanted);
            for count in [1, 2, 50, 200, rows.len() / 2 - 1, rows.len()] {
                let top: Vec<usize> = rows.top(TITLE, order, count, Stop::default()).unwrap().rows().iter().collect();
                assert_eq!(top, wanted[..count], "{count} {order:?}");
            }
        }
    }
}

/// Few rows of a large dictionary, and many: the constant is looked up, or each string tested.
#[test]
fn strings_equal_a_constant_whatever_part_of_the_dictionary_is_looked_at() {
    let (values, all) = table(3_000);
    let few = all.looking_at(vec![2_999, 5, 10, 7, 5]);
    let present = (0..3_000).filter(|row| row % 11 != 10).step_by(611).map(|row| values[row].clone());
    let constants: Vec<Value> = present.chain(["", "spare", "item_", "nowhere"].map(Value::str)).collect();
    // The second column's symbols come after those of the first.
    for first in [None, Some(OTHER)] {
        for rows in [&all, &few, &all.take(3), &all.take(0)] {
            for (at, constant) in constants.iter().enumerate() {
                let several: Vec<Value> = constants.iter().cycle().skip(at).take(1 + at % 6).cloned().collect();
                for (op, holds) in [
                    (Compare::Eq, &(|value: &Value| value == constant) as &dyn Fn(&Value) -> bool),
                    (Compare::Ne, &|value: &Value| value != constant),
                    (Compare::Lt, &|value: &Value| several.contains(value)),
                ] {
                    let mut tree = Tree::new();
                    let key = tree.push(Op::Key(TITLE), None);
                    let test = match op {
                        // The order stands for a list here.
                        Compare::Lt => Op::In(key, several.clone()),
                        op => Op::Compare(op, key, tree.push(Op::Const(constant.clone()), None)),
                    };
                    let test = tree.push(test, None);
                    if let Some(other) = first {
                        let other = tree.push(Op::Key(other), None);
                        let there = tree.push(Op::Compare(Compare::Ge, other, other), None);
                        let there_or_not = tree.push(Op::Not(there), None);
                        let always = tree.push(Op::Or(there, there_or_not), None);
                        tree.push(Op::And(always, test), None);
                    }
                    let program = Program::compile(&tree, &Registry, Want::Predicate).unwrap();
                    let kept =
                        select(&program, rows, RunValues::default(), &mut Scratch::default(), Stop::default()).unwrap();
                    let there = |row: &usize| values[*row] != Value::Null && holds(&values[*row]);
                    let wanted: Vec<u32> = rows.rows().iter().filter(there).map(|row| row as u32).collect();
                    assert_eq!(kept, wanted, "{op:?} {constant} on {} rows", rows.len());
                }
            }
        }
    }
}
