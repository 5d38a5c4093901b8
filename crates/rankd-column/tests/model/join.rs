//! Columns of other rows beside the rows at hand, compared with a search through the other rows, row by row.

use crate::generate::{few, look, many, recipe};
use crate::table::KEY_TYPES;
use proptest::prelude::*;
use rankd_column::kernel::gather::NO_ROW;
use rankd_column::kernel::join::{by_stored_row, matches, pick};
use rankd_column::{Key, RowSet, Stop, Value};
use std::sync::Arc;

/// Keys that rows can be matched by: the id, ints and texts.
const INTS: [u32; 3] = [0, 1, 2];
const TEXTS: [u32; 2] = [7, 8];

fn pair() -> impl Strategy<Value = (Key, Key)> {
    let pick = |keys: &'static [u32]| proptest::sample::select(keys).prop_map(Key);
    prop_oneof![(pick(&INTS), pick(&INTS)), (pick(&TEXTS), pick(&TEXTS))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_row_gets_the_cells_of_the_first_row_with_an_equal_key(
        left in recipe(few()), right in recipe(prop_oneof![9 => few().boxed(), 1 => many().boxed()]),
        looks in (look(), look()), on in pair(), wanted in 0..KEY_TYPES.len() as u32,
    ) {
        let (left, right) = (left.table(), right.table());
        let (l, r) = (looks.0.at(&RowSet::new(left.batch())), looks.1.at(&RowSet::new(right.batch())));
        let found = matches(&l, on.0, &r, on.1, Stop::default()).unwrap();

        let expected: Vec<Option<usize>> = l.rows().iter().map(|row| {
            let key = left.value(on.0, row);
            r.rows().iter().find(|other| key != Value::Null && right.value(on.1, *other) == key)
        }).collect();
        let as_rows: Vec<Option<usize>> = found.iter().map(|&row| (row != NO_ROW).then_some(row as usize)).collect();
        prop_assert_eq!(&as_rows, &expected);

        // A key that neither side writes to stands for the one that a task would.
        let into = Key(KEY_TYPES.len() as u32);
        let found = by_stored_row(&l, found, Stop::default()).unwrap();
        let Some(column) = pick(r.batch(), Key(wanted), &found, Stop::default()).unwrap() else {
            prop_assert!(!right.columns.contains_key(&Key(wanted)));
            return Ok(());
        };
        let joined = l.with(into, Arc::new(column));
        for (at, other) in expected.into_iter().enumerate() {
            let value = other.map_or(Value::Null, |row| right.value(Key(wanted), row));
            prop_assert_eq!(joined.value(into, at), value);
        }
    }
}
