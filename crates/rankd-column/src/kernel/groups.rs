//! Which rows have equal keys: groups, numbered in the order of their first rows.
//!
//! Null equals nothing, so a row that lacks one of the keys is in no group. Floats are equal by value: 0.0 and -0.0 are. How keys are
//! hashed makes no difference to any result.

use crate::batch::Key;
use crate::column::{Cells, Column};
use crate::rowset::{RowSet, Rows};
use crate::stop::{Stop, Stopped};
use hashbrown::HashMap;
use std::hash::Hash;

/// In place of a group, for a row that is in none.
pub const NO_GROUP: u32 = u32::MAX;

/// The groups of the rows of a view.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The group of each row, in the order of the view, or [`NO_GROUP`].
    pub of_rows: Vec<u32>,
    pub count: usize,
}

/// Rows are in the same group if all of these keys are equal. Without keys, all rows are in one.
pub fn groups(rows: &RowSet, keys: &[Key], stop: Stop<'_>) -> Result<Groups, Stopped> {
    let Some((first, rest)) = keys.split_first() else {
        return Ok(Groups { of_rows: vec![0; rows.len()], count: usize::from(!rows.is_empty()) });
    };
    let mut groups = by_key(rows, *first, stop)?;
    for key in rest {
        groups = groups.and(&by_key(rows, *key, stop)?, stop)?;
    }
    Ok(groups)
}

/// The same, where null equals null: each row is in a group, and those that lack a key are with the others that lack it and have the same
/// other keys.
pub fn groups_with_nulls(rows: &RowSet, keys: &[Key], stop: Stop<'_>) -> Result<Groups, Stopped> {
    let mut groups: Option<Groups> = None;
    for key in keys {
        let by_key = by_key(rows, *key, stop)?.with_one_for_nulls();
        groups = Some(match groups {
            None => by_key,
            Some(groups) => groups.and(&by_key, stop)?,
        });
    }
    groups.map_or_else(|| self::groups(rows, &[], stop), Ok)
}

impl Groups {
    /// The positions of rows that are the first of their group, or in none.
    pub fn firsts(&self) -> impl Iterator<Item = usize> {
        let mut seen = 0;
        let is_first = move |group: u32| match group {
            NO_GROUP => true,
            group if group == seen => {
                seen += 1;
                true
            }
            _ => false,
        };
        self.of_rows.iter().copied().map(is_first).enumerate().filter(|(_, first)| *first).map(|(at, _)| at)
    }

    /// How many rows are in none.
    pub fn lacking(&self) -> usize {
        self.of_rows.iter().filter(|group| **group == NO_GROUP).count()
    }

    /// The same as [`Groups::firsts`], with the row of the highest score in place of the first of each group. Of equal scores the first counts, and no score is
    /// the lowest.
    pub fn bests(&self, scores: &[Option<f64>], stop: Stop<'_>) -> Result<Vec<usize>, Stopped> {
        let (mut bests, mut at): (Vec<Option<usize>>, usize) = (vec![None; self.count], 0);
        for chunk in stop.slices(&self.of_rows) {
            for group in chunk? {
                if let Some(best) = bests.get_mut(*group as usize)
                    && best.is_none_or(|before| scores[at] > scores[before])
                {
                    *best = Some(at);
                }
                at += 1;
            }
        }
        let best = |first: usize| bests.get(self.of_rows[first] as usize).copied().flatten().unwrap_or(first);
        Ok(self.firsts().map(best).collect())
    }

    /// The same with all rows that are in none in a group of their own, if there are any.
    pub fn with_one_for_nulls(mut self) -> Groups {
        let mut numbers = vec![NO_GROUP; self.count + 1];
        let mut count = 0;
        for group in &mut self.of_rows {
            let number = &mut numbers[if *group == NO_GROUP { self.count } else { *group as usize }];
            if *number == NO_GROUP {
                *number = count;
                count += 1;
            }
            *group = *number;
        }
        Groups { of_rows: self.of_rows, count: count as usize }
    }

    /// Rows that are together in both.
    fn and(&self, other: &Groups, stop: Stop<'_>) -> Result<Groups, Stopped> {
        let mut numbered = Numbered::with_capacity(self.of_rows.len());
        let mut others = other.of_rows.iter();
        for chunk in stop.slices(&self.of_rows) {
            for (a, b) in chunk?.iter().zip(&mut others) {
                let is_in_both = *a != NO_GROUP && *b != NO_GROUP;
                numbered.add(is_in_both.then(|| u64::from(*a) << 32 | u64::from(*b)));
            }
        }
        Ok(numbered.groups)
    }
}

/// Groups while they are being numbered.
struct Numbered<K> {
    numbers: HashMap<K, u32>,
    groups: Groups,
}

impl<K: Eq + Hash> Numbered<K> {
    fn with_capacity(rows: usize) -> Numbered<K> {
        let groups = Groups { of_rows: Vec::with_capacity(rows), count: 0 };
        Numbered { numbers: HashMap::with_capacity(rows), groups }
    }

    #[inline(always)]
    fn add(&mut self, key: Option<K>) {
        let group = match key {
            None => NO_GROUP,
            Some(key) => *self.numbers.entry(key).or_insert_with(|| {
                self.groups.count += 1;
                self.groups.count as u32 - 1
            }),
        };
        self.groups.of_rows.push(group);
    }
}

fn by_key(rows: &RowSet, key: Key, stop: Stop<'_>) -> Result<Groups, Stopped> {
    let (batch, view) = (rows.batch(), rows.rows());
    if key == Key::ID {
        // One text, one code.
        let ids = batch.ids();
        return by_hash(view, |row| Some(ids[row]), stop);
    }
    match batch.column(key).map(|column| &**column) {
        Some(Column::Int(cells)) => by_hash(view, |row| cells.get(row), stop),
        Some(Column::Float(cells)) => by_hash(view, |row| cells.get(row).map(|value| (value + 0.0).to_bits()), stop),
        Some(Column::Bool(cells)) => by_code(view, 2, |row| cells.get(row).map(u32::from), stop),
        Some(Column::Str(cells, dictionary)) => by_text(view, cells, dictionary.len(), stop),
        // A key that is not there, or one that cannot be compared, which the checks of plans refuse.
        None | Some(Column::List(..) | Column::Vector(..)) => {
            Ok(Groups { of_rows: vec![NO_GROUP; rows.len()], count: 0 })
        }
    }
}

/// The entries of a dictionary are distinct, so codes can be compared in place of texts.
fn by_text(view: Rows<'_>, cells: &Cells<u32>, entries: usize, stop: Stop<'_>) -> Result<Groups, Stopped> {
    // A table of all entries does not pay where the view uses few of them.
    match entries / 8 <= view.len() {
        true => by_code(view, entries, |row| cells.get(row), stop),
        false => by_hash(view, |row| cells.get(row), stop),
    }
}

fn by_hash<K: Eq + Hash>(view: Rows<'_>, key: impl Fn(usize) -> Option<K>, stop: Stop<'_>) -> Result<Groups, Stopped> {
    let mut numbered = Numbered::with_capacity(view.len());
    for chunk in stop.chunks(view) {
        chunk?.iter().for_each(|row| numbered.add(key(row)));
    }
    Ok(numbered.groups)
}

fn by_code(
    view: Rows<'_>,
    codes: usize,
    code: impl Fn(usize) -> Option<u32>,
    stop: Stop<'_>,
) -> Result<Groups, Stopped> {
    let mut numbers = vec![NO_GROUP; codes];
    let mut groups = Groups { of_rows: Vec::with_capacity(view.len()), count: 0 };
    for chunk in stop.chunks(view) {
        for row in chunk?.iter() {
            let group = code(row).map_or(NO_GROUP, |code| {
                let number = &mut numbers[code as usize];
                if *number == NO_GROUP {
                    *number = groups.count as u32;
                    groups.count += 1;
                }
                *number
            });
            groups.of_rows.push(group);
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::column::ColumnBuilder;
    use crate::value::{Type, Value};
    use proptest::prelude::*;
    use std::sync::Arc;

    const KEYS: [(Key, Type); 4] =
        [(Key(1), Type::Int), (Key(2), Type::Str), (Key(3), Type::Float), (Key(4), Type::Bool)];

    fn value(type_of: Type, seed: u8) -> Value {
        match (seed % 4, type_of) {
            (0, _) => Value::Null,
            (n, Type::Int) => Value::Int(i64::from(n)),
            (n, Type::Str) => Value::str(["a", "b", "c"][n as usize - 1]),
            (n, Type::Float) => Value::Float([0.0, -0.0, 1.5][n as usize - 1]),
            (n, _) => Value::Bool(n == 1),
        }
    }

    /// Rows with few distinct keys, seen through a view.
    fn rows(cells: &[[u8; 4]], view: Vec<u32>) -> RowSet {
        let mut batch = Batch::new((0..cells.len() as i64).map(|id| id % 5).collect());
        for (at, (key, type_of)) in KEYS.into_iter().enumerate() {
            let mut column = ColumnBuilder::new(type_of, cells.len());
            cells.iter().for_each(|row| assert!(column.push(&value(type_of, row[at]))));
            batch = batch.with(key, Arc::new(column.finish()));
        }
        RowSet::new(batch).looking_at(view)
    }

    /// The same by comparing each row with those before it.
    fn naive(rows: &RowSet, keys: &[Key]) -> Groups {
        let mut groups = Groups::default();
        let equal = |a: &Value, b: &Value| match (a, b) {
            (Value::Null, _) | (_, Value::Null) => false,
            (Value::Float(a), Value::Float(b)) => a == b,
            (a, b) => a == b,
        };
        for at in 0..rows.len() {
            let is_same = |before: usize, at: usize| {
                keys.iter().all(|key| equal(&rows.value(*key, before), &rows.value(*key, at)))
            };
            let group = match (0..at).find(|before| is_same(*before, at)) {
                _ if !is_same(at, at) => NO_GROUP,
                Some(before) => groups.of_rows[before],
                None => {
                    groups.count += 1;
                    groups.count as u32 - 1
                }
            };
            groups.of_rows.push(group);
        }
        groups
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn rows_are_grouped_as_by_comparing_each_with_each(
            cells in proptest::collection::vec(any::<[u8; 4]>(), 0..30),
            order in any::<u64>(),
            keys in proptest::collection::vec(0..=4u32, 0..4),
        ) {
            let mut view: Vec<u32> = (0..cells.len() as u32).collect();
            view.rotate_left(order as usize % (cells.len() + 1));
            view.truncate(cells.len() - (order >> 32) as usize % (cells.len() + 1));
            let (rows, keys) = (rows(&cells, view), keys.into_iter().map(Key).collect::<Vec<Key>>());
            let found = groups(&rows, &keys, Stop::default()).unwrap();
            let expected = naive(&rows, &keys);
            prop_assert_eq!(&found, &expected);
            let firsts: Vec<usize> = found.firsts().collect();
            let is_first = |at: &usize| {
                let group = expected.of_rows[*at];
                group == NO_GROUP || !expected.of_rows[..*at].contains(&group)
            };
            prop_assert_eq!(firsts, (0..rows.len()).filter(is_first).collect::<Vec<usize>>());
            // Any numbers, some of them missing.
            let scores: Vec<Option<f64>> =
                (0..rows.len()).map(|at| Some((at * 7 + order as usize % 5) % 4).filter(|n| *n > 0).map(|n| n as f64)).collect();
            let best = |first: usize| {
                let group = expected.of_rows[first];
                let others = (0..rows.len()).filter(|at| *at == first || (group != NO_GROUP && expected.of_rows[*at] == group));
                others.fold(first, |best, at| if scores[at] > scores[best] { at } else { best })
            };
            let bests: Vec<usize> = found.firsts().map(best).collect();
            prop_assert_eq!(found.bests(&scores, Stop::default()).unwrap(), bests);
            let whole = found.with_one_for_nulls();
            prop_assert!(whole.of_rows.iter().all(|group| (*group as usize) < whole.count));
            for (a, b) in expected.of_rows.iter().zip(&whole.of_rows) {
                let same = expected.of_rows.iter().zip(&whole.of_rows).all(|(c, d)| (a == c) == (b == d));
                prop_assert!(same);
            }
        }
    }
}
