//! How many rows lack keys, for traces.

use rankd_column::{Key, RowSet};

/// Rows that lack at least one of the keys.
pub(crate) fn lacking_one(rows: &RowSet, keys: &[Key]) -> usize {
    count(rows, |row| keys.iter().any(|key| lacks(rows, *key, row)))
}

/// Rows that lack all of the keys.
pub(crate) fn lacking_all(rows: &RowSet, keys: &[Key]) -> usize {
    count(rows, |row| keys.iter().all(|key| lacks(rows, *key, row)))
}

fn count(rows: &RowSet, is: impl Fn(usize) -> bool) -> usize {
    rows.rows().iter().filter(|row| is(*row)).count()
}

/// A column that is not there has no value.
fn lacks(rows: &RowSet, key: Key, row: usize) -> bool {
    let column = rows.batch().column(key).map(|column| column.valid());
    key != Key::ID && column.is_none_or(|valid| valid.is_some_and(|valid| !valid[row]))
}
