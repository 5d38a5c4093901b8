//! Columns of other rows beside the rows at hand.
//!
//! Each row gets the cells of at most one other row, so there are never more rows than before. Nothing is known here of where the
//! other rows come from.

use crate::batch::{Batch, Key};
use crate::column::{Cells, Column};
use crate::dictionary::Dictionary;
use crate::kernel::gather::{NO_ROW, pick_cells};
use crate::rowset::RowSet;
use crate::stop::{Stop, Stopped};
use crate::value::List;
use hashbrown::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// For each row of `left`, in its order, the first row of `right` whose key is equal: a stored row, or [`NO_ROW`]. Null equals nothing, and
/// neither does a column that is not there.
pub fn matches(
    left: &RowSet,
    left_key: Key,
    right: &RowSet,
    right_key: Key,
    stop: Stop<'_>,
) -> Result<Vec<u32>, Stopped> {
    if let (Key::ID, Key::ID, Some(l), Some(r)) =
        (left_key, right_key, left.batch().id_texts(), right.batch().id_texts())
        && Arc::ptr_eq(l, r)
    {
        // One text, one code.
        let (l, r) = (left.batch().ids(), right.batch().ids());
        return first_equal(left, |row| Some(l[row]), right, |row| Some(r[row]), stop);
    }
    match (keys(left, left_key, stop)?, keys(right, right_key, stop)?) {
        (Some(Keys::Ints(l)), Some(Keys::Ints(r))) => {
            first_equal(left, |row| l.get(row), right, |row| r.get(row), stop)
        }
        (Some(Keys::Texts(l)), Some(Keys::Texts(r))) => {
            first_equal(left, |row| l.get(row), right, |row| r.get(row), stop)
        }
        // A key that is missing on a side, or keys of two types, which the checks of plans refuse.
        _ => Ok(vec![NO_ROW; left.len()]),
    }
}

/// What rows are matched by.
enum Keys<'a> {
    Ints(Ints<'a>),
    Texts(Texts<'a>),
}

struct Ints<'a> {
    values: &'a [i64],
    valid: Option<&'a [bool]>,
}

impl Ints<'_> {
    fn get(&self, row: usize) -> Option<i64> {
        self.valid.is_none_or(|valid| valid[row]).then(|| self.values[row])
    }
}

struct Texts<'a> {
    codes: &'a Cells<u32>,
    dictionary: &'a Dictionary,
}

impl<'a> Texts<'a> {
    fn get(&self, row: usize) -> Option<&'a str> {
        self.codes.get(row).map(|code| self.dictionary.get(code))
    }
}

fn keys<'a>(rows: &'a RowSet, key: Key, stop: Stop<'_>) -> Result<Option<Keys<'a>>, Stopped> {
    let batch = rows.batch();
    let column = match key {
        Key::ID => match batch.id_column(stop)? {
            Some(texts) => texts,
            None => return Ok(Some(Keys::Ints(Ints { values: batch.ids(), valid: None }))),
        },
        key => match batch.column(key) {
            Some(column) => column,
            None => return Ok(None),
        },
    };
    Ok(match column {
        Column::Int(cells) => Some(Keys::Ints(Ints { values: cells.values(), valid: cells.valid() })),
        Column::Str(codes, dictionary) => Some(Keys::Texts(Texts { codes, dictionary })),
        Column::Float(_) | Column::Bool(_) | Column::List(..) | Column::Vector(..) => None,
    })
}

fn first_equal<K: Eq + Hash>(
    left: &RowSet,
    left_key: impl Fn(usize) -> Option<K>,
    right: &RowSet,
    right_key: impl Fn(usize) -> Option<K>,
    stop: Stop<'_>,
) -> Result<Vec<u32>, Stopped> {
    let mut first = HashMap::with_capacity(right.len());
    for chunk in stop.chunks(right.rows()) {
        for row in chunk?.iter() {
            if let Some(key) = right_key(row) {
                first.entry(key).or_insert(row as u32);
            }
        }
    }
    let mut found = Vec::with_capacity(left.len());
    let match_of = |row| left_key(row).and_then(|key| first.get(&key).copied()).unwrap_or(NO_ROW);
    for chunk in stop.chunks(left.rows()) {
        found.extend(chunk?.iter().map(match_of));
    }
    Ok(found)
}

/// Whether the key of each row of a view is one of these values: ints or texts, and where the key is a text, an int is the text that its digits
/// are. Null is none of them.
pub fn is_among(rows: &RowSet, key: Key, list: &List, stop: Stop<'_>) -> Result<Vec<bool>, Stopped> {
    fn each(rows: &RowSet, is: impl Fn(usize) -> bool, stop: Stop<'_>) -> Result<Vec<bool>, Stopped> {
        let mut found = Vec::with_capacity(rows.len());
        for chunk in stop.chunks(rows.rows()) {
            found.extend(chunk?.iter().map(&is));
        }
        Ok(found)
    }
    match (keys(rows, key, stop)?, list) {
        (Some(Keys::Ints(ints)), List::Int(list)) => {
            let among: HashSet<i64> = list.iter().copied().collect();
            each(rows, |row| ints.get(row).is_some_and(|value| among.contains(&value)), stop)
        }
        (Some(Keys::Texts(texts)), List::Str(list)) => {
            let among: HashSet<&str> = list.iter().map(|text| &**text).collect();
            each(rows, |row| texts.get(row).is_some_and(|text| among.contains(text)), stop)
        }
        (Some(Keys::Texts(texts)), List::Int(list)) => {
            let among: HashSet<String> = list.iter().map(i64::to_string).collect();
            each(rows, |row| texts.get(row).is_some_and(|text| among.contains(text)), stop)
        }
        // Values of another type equal nothing; the checks refuse them.
        (Some(Keys::Ints(_)), List::Str(_)) | (_, List::Float(_)) | (None, _) => Ok(vec![false; rows.len()]),
    }
}

/// The cells of a key at these rows, null where there is no row; `None` where the batch has no such column.
pub fn pick(batch: &Batch, key: Key, rows: &[u32], stop: Stop<'_>) -> Result<Option<Column>, Stopped> {
    let all = !rows.contains(&NO_ROW);
    Ok(match key {
        Key::ID => Some(match batch.id_column(stop)? {
            Some(texts) => texts.pick(rows, all, stop)?,
            None => Column::Int(pick_cells(batch.ids(), None, rows, all, stop)?),
        }),
        key => batch.column(key).map(|column| column.pick(rows, all, stop)).transpose()?,
    })
}

/// What belongs to each row of a view, as a list by stored row: a column is as long as its batch.
pub fn by_stored_row(rows: &RowSet, of_view: Vec<u32>, stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
    let stored = rows.batch().len();
    if rows.rows().is_whole(stored) {
        return Ok(of_view);
    }
    let (mut all, mut of_view) = (vec![NO_ROW; stored], of_view.into_iter());
    for chunk in stop.chunks(rows.rows()) {
        chunk?.iter().zip(&mut of_view).for_each(|(row, value)| all[row] = value);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::ColumnBuilder;
    use crate::value::{Type, Value};

    #[test]
    fn what_is_among_values_is_found_by_number_or_by_text() {
        let batch = Batch::new(vec![1, 2, 3]);
        let ints = Column::Int([Some(7), None, Some(-8)].into_iter().collect());
        let mut texts = ColumnBuilder::new(Type::Str, 3);
        [Value::str("7"), Value::str("x"), Value::Null].iter().for_each(|value| assert!(texts.push(value)));
        let rows = RowSet::new(batch.with(Key(1), Arc::new(ints)).with(Key(2), Arc::new(texts.finish())));
        let rows = rows.looking_at(vec![2, 0, 1]);
        let among = |key, list: &List| is_among(&rows, key, list, Stop::default()).unwrap();
        let (numbers, words) = (List::Int(vec![7, 3, -8, 7]), List::Str(vec!["x".into(), "3".into()]));
        assert_eq!(among(Key::ID, &numbers), [true, false, false]);
        assert_eq!(among(Key(1), &numbers), [true, true, false]);
        // A number is the text that its digits are, and not the other way round.
        assert_eq!(among(Key(2), &numbers), [false, true, false]);
        assert_eq!(among(Key(2), &words), [false, false, true]);
        assert_eq!(among(Key(1), &words), [false; 3]);
        assert_eq!(among(Key(9), &numbers), [false; 3]);
        assert_eq!(among(Key(1), &List::Int(Vec::new())), [false; 3]);
    }
}
