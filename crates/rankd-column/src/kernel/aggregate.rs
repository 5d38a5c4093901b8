//! What is known of each group as a whole: sums, means, extremes, counts, first and last values.
//!
//! Null is skipped, and a group that has nothing else gets null, but for counts, which are 0. Sums of floats are taken in the order of the
//! view; those of ints are exact, and are too large only where the sum itself is.

use crate::batch::Key;
use crate::column::{Cells, Column};
use crate::kernel::combine::CombineError;
use crate::kernel::gather::NO_ROW;
use crate::kernel::groups::{Groups, NO_GROUP};
use crate::kernel::join::by_stored_row;
use crate::rowset::RowSet;
use crate::stop::{Stop, Stopped};

/// What is made of the values of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// Of numbers, and of their type.
    Sum,
    /// Of numbers, a float.
    Mean,
    /// Of what can be compared; of equal ones the first.
    Min,
    Max,
    /// How many there are: of values, or of rows where no key is given.
    Count,
    /// The first or last value of any type.
    First,
    Last,
}

/// A column with a cell for each group. `None` where there is no such column to make it of, or none of a type that goes with it.
pub fn aggregated(
    rows: &RowSet,
    groups: &Groups,
    key: Option<Key>,
    how: Aggregate,
    stop: Stop<'_>,
) -> Result<Option<Column>, CombineError> {
    let Some(key) = key else { return Ok(Some(Column::Int(counts(rows, groups, |_| true, stop)?))) };
    let ids;
    let column = match rows.batch().column(key) {
        Some(column) => &**column,
        None if key == Key::ID => match rows.batch().id_column(stop)? {
            Some(column) => column,
            None => {
                ids = Column::Int(Cells::full(rows.batch().ids().to_vec()));
                &ids
            }
        },
        None if how == Aggregate::Count => return Ok(Some(Column::Int(Cells::full(vec![0; groups.count])))),
        None => return Ok(None),
    };
    let valid = column.valid();
    let is_there = |row: usize| valid.is_none_or(|valid| valid[row]);
    let chosen = match (how, column) {
        (Aggregate::Count, _) => return Ok(Some(Column::Int(counts(rows, groups, is_there, stop)?))),
        (Aggregate::Sum, Column::Int(cells)) => return Ok(Some(Column::Int(int_sums(rows, groups, cells, stop)?))),
        (Aggregate::Sum, Column::Float(cells)) => {
            let sums = float_sums(rows, groups, cells, stop)?.into_iter();
            return Ok(Some(Column::Float(sums.map(|(sum, count)| (count > 0).then_some(sum)).collect())));
        }
        (Aggregate::Mean, Column::Int(cells)) => {
            return Ok(Some(Column::Float(int_means(rows, groups, cells, stop)?)));
        }
        (Aggregate::Mean, Column::Float(cells)) => {
            let sums = float_sums(rows, groups, cells, stop)?.into_iter();
            let mean = |(sum, count): (f64, u64)| (count > 0).then(|| sum / count as f64);
            return Ok(Some(Column::Float(sums.map(mean).collect())));
        }
        (Aggregate::First, _) => chosen(rows, groups, is_there, |_, _| false, stop)?,
        (Aggregate::Last, _) => chosen(rows, groups, is_there, |_, _| true, stop)?,
        (Aggregate::Min, Column::Int(cells)) => {
            let values = cells.values();
            chosen(rows, groups, is_there, |new, old| values[new] < values[old], stop)?
        }
        (Aggregate::Max, Column::Int(cells)) => {
            let values = cells.values();
            chosen(rows, groups, is_there, |new, old| values[new] > values[old], stop)?
        }
        (Aggregate::Min, Column::Float(cells)) => {
            let values = cells.values();
            chosen(rows, groups, is_there, |new, old| values[new] < values[old], stop)?
        }
        (Aggregate::Max, Column::Float(cells)) => {
            let values = cells.values();
            chosen(rows, groups, is_there, |new, old| values[new] > values[old], stop)?
        }
        (Aggregate::Min, Column::Bool(cells)) => {
            let values = cells.values();
            chosen(rows, groups, is_there, |new, old| !values[new] & values[old], stop)?
        }
        (Aggregate::Max, Column::Bool(cells)) => {
            let values = cells.values();
            chosen(rows, groups, is_there, |new, old| values[new] & !values[old], stop)?
        }
        (Aggregate::Min, Column::Str(cells, texts)) => {
            let text = |row: usize| texts.get(cells.values()[row]);
            chosen(rows, groups, is_there, |new, old| text(new) < text(old), stop)?
        }
        (Aggregate::Max, Column::Str(cells, texts)) => {
            let text = |row: usize| texts.get(cells.values()[row]);
            chosen(rows, groups, is_there, |new, old| text(new) > text(old), stop)?
        }
        // The checks refuse other pairs.
        (
            Aggregate::Sum | Aggregate::Mean,
            Column::Bool(_) | Column::Str(..) | Column::List(..) | Column::Vector(..),
        )
        | (Aggregate::Min | Aggregate::Max, Column::List(..) | Column::Vector(..)) => return Ok(None),
    };
    let all = !chosen.contains(&NO_ROW);
    Ok(Some(column.pick(&chosen, all, stop)?))
}

/// A column by stored row, in which each row of the view has the cell of its group.
pub fn spread(of_groups: &Column, rows: &RowSet, groups: &Groups, stop: Stop<'_>) -> Result<Column, Stopped> {
    let group_of = by_stored_row(rows, groups.of_rows.clone(), stop)?;
    let all = !group_of.contains(&NO_ROW);
    of_groups.pick(&group_of, all, stop)
}

/// In place of the group of a row outside the view stands what means "no row", so that its cell is null.
const _: () = assert!(NO_GROUP == NO_ROW);

/// The row of the batch that is the best of each group, of equal ones the first, among those that are there.
fn chosen(
    rows: &RowSet,
    groups: &Groups,
    is_there: impl Fn(usize) -> bool,
    is_better: impl Fn(usize, usize) -> bool,
    stop: Stop<'_>,
) -> Result<Vec<u32>, Stopped> {
    let mut chosen = vec![NO_ROW; groups.count];
    each(rows, groups, stop, |row, group| {
        if is_there(row) && (chosen[group] == NO_ROW || is_better(row, chosen[group] as usize)) {
            chosen[group] = row as u32;
        }
    })?;
    Ok(chosen)
}

fn counts(
    rows: &RowSet,
    groups: &Groups,
    is_there: impl Fn(usize) -> bool,
    stop: Stop<'_>,
) -> Result<Cells<i64>, Stopped> {
    let mut counts = vec![0; groups.count];
    each(rows, groups, stop, |row, group| counts[group] += i64::from(is_there(row)))?;
    Ok(Cells::full(counts))
}

/// The sum of each group's ints, and how many they are.
fn exact_sums(rows: &RowSet, groups: &Groups, cells: &Cells<i64>, stop: Stop<'_>) -> Result<Vec<(i128, u64)>, Stopped> {
    let mut sums = vec![(0_i128, 0_u64); groups.count];
    each(rows, groups, stop, |row, group| {
        if let Some(value) = cells.get(row) {
            // A batch has fewer than 2^32 rows, so this cannot overflow.
            sums[group].0 += i128::from(value);
            sums[group].1 += 1;
        }
    })?;
    Ok(sums)
}

fn int_sums(rows: &RowSet, groups: &Groups, cells: &Cells<i64>, stop: Stop<'_>) -> Result<Cells<i64>, CombineError> {
    let mut sums = Cells::with_capacity(groups.count);
    for (group, (sum, count)) in exact_sums(rows, groups, cells, stop)?.into_iter().enumerate() {
        let sum = i64::try_from(sum).map_err(|_| too_large(groups, group))?;
        sums.push((count > 0).then_some(sum));
    }
    Ok(sums)
}

fn int_means(rows: &RowSet, groups: &Groups, cells: &Cells<i64>, stop: Stop<'_>) -> Result<Cells<f64>, Stopped> {
    let sums = exact_sums(rows, groups, cells, stop)?.into_iter();
    Ok(sums.map(|(sum, count)| (count > 0).then(|| sum as f64 / count as f64)).collect())
}

/// The sum of each group's floats, and how many they are.
fn float_sums(
    rows: &RowSet,
    groups: &Groups,
    cells: &Cells<f64>,
    stop: Stop<'_>,
) -> Result<Vec<(f64, u64)>, CombineError> {
    // Nothing is added to the first value, so that a sum of -0.0 alone is -0.0.
    let mut sums = vec![(-0.0, 0_u64); groups.count];
    each(rows, groups, stop, |row, group| {
        if let Some(value) = cells.get(row) {
            sums[group].0 += value;
            sums[group].1 += 1;
        }
    })?;
    // What is not finite once stays so, whatever is added.
    match sums.iter().position(|(sum, _)| !sum.is_finite()) {
        Some(group) => Err(too_large(groups, group)),
        None => Ok(sums),
    }
}

fn too_large(groups: &Groups, group: usize) -> CombineError {
    let position = groups.of_rows.iter().position(|of| *of as usize == group);
    // A group has a row.
    CombineError::Overflow { position: position.unwrap_or_default() }
}

/// Calls with the row of the batch and the group of each row that is in one.
fn each(rows: &RowSet, groups: &Groups, stop: Stop<'_>, mut of: impl FnMut(usize, usize)) -> Result<(), Stopped> {
    let mut of_rows = groups.of_rows.iter();
    for chunk in stop.chunks(rows.rows()) {
        for (row, group) in chunk?.iter().zip(&mut of_rows) {
            if *group != NO_GROUP {
                of(row, *group as usize);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::column::ColumnBuilder;
    use crate::kernel::groups::groups_with_nulls;
    use crate::value::{Element, List, Type, Value};
    use proptest::prelude::*;
    use std::sync::Arc;

    const BY: [Key; 2] = [Key(1), Key(2)];
    const OF: Key = Key(3);
    const ALL: [Aggregate; 7] = [
        Aggregate::Sum,
        Aggregate::Mean,
        Aggregate::Min,
        Aggregate::Max,
        Aggregate::Count,
        Aggregate::First,
        Aggregate::Last,
    ];
    const TYPES: [Type; 6] = [Type::Int, Type::Float, Type::Bool, Type::Str, Type::List(Element::Int), Type::Vector(2)];

    fn value(seed: u8, type_of: Type) -> Value {
        let n = i64::from(seed / 4 % 8);
        match (seed % 4, type_of) {
            (0, _) => Value::Null,
            (1, Type::Int) if n > 5 => Value::Int(if n == 6 { i64::MAX } else { i64::MIN }),
            (_, Type::Int) => Value::Int(n - 3),
            (1, Type::Float) if n > 5 => Value::Float(if n == 6 { f64::MAX } else { -0.0 }),
            (_, Type::Float) => Value::Float(n as f64 / 3.0 - 1.0),
            (_, Type::Bool) => Value::Bool(n % 2 == 0),
            (_, Type::Str) => Value::str(["", "a", "B", "ä", "ab", "b", "c", "aa"][n as usize]),
            (k, Type::List(_)) => Value::List(Arc::new(List::Int(vec![n; usize::from(k) - 1]))),
            (_, Type::Vector(_)) => Value::Vector([n as f32, 1.0].into()),
        }
    }

    fn column(values: impl ExactSizeIterator<Item = Value>, type_of: Type) -> Arc<Column> {
        let mut column = ColumnBuilder::new(type_of, values.len());
        values.for_each(|value| assert!(column.push(&value)));
        Arc::new(column.finish())
    }

    /// By the words of each. `Err` where a sum is too large.
    fn naive(values: &[Value], how: Aggregate) -> Result<Value, ()> {
        let there: Vec<Value> = values.iter().filter(|value| !matches!(value, Value::Null)).cloned().collect();
        let less = |a: &Value, b: &Value| match (a, b) {
            (Value::Int(a), Value::Int(b)) => a < b,
            (Value::Float(a), Value::Float(b)) => a < b,
            (Value::Bool(a), Value::Bool(b)) => a < b,
            (Value::Str(a), Value::Str(b)) => a < b,
            _ => unreachable!("what can be compared, of one type"),
        };
        let best = |is_better: &dyn Fn(&Value, &Value) -> bool| {
            let better = |best: Value, value: &Value| if is_better(value, &best) { value.clone() } else { best };
            there.first().map_or(Value::Null, |first| there.iter().fold(first.clone(), better))
        };
        let count = there.len() as f64;
        Ok(match (how, there.first()) {
            (Aggregate::Count, _) => Value::Int(there.len() as i64),
            (_, None) => Value::Null,
            (Aggregate::First, Some(first)) => first.clone(),
            (Aggregate::Last, Some(_)) => there[there.len() - 1].clone(),
            (Aggregate::Min, _) => best(&|a, b| less(a, b)),
            (Aggregate::Max, _) => best(&|a, b| less(b, a)),
            (Aggregate::Sum | Aggregate::Mean, Some(Value::Int(_))) => {
                let int = |value: &Value| if let Value::Int(int) = value { i128::from(*int) } else { unreachable!() };
                let sum: i128 = there.iter().map(int).sum();
                match how {
                    Aggregate::Mean => Value::Float(sum as f64 / count),
                    _ => Value::Int(i64::try_from(sum).map_err(|_| ())?),
                }
            }
            (Aggregate::Sum | Aggregate::Mean, Some(first)) => {
                let float = |value: &Value| if let Value::Float(float) = value { *float } else { unreachable!() };
                let sum = there[1..].iter().fold(float(first), |sum, value| sum + float(value));
                let sum = Some(sum).filter(|sum| sum.is_finite()).ok_or(())?;
                Value::Float(if how == Aggregate::Mean { sum / count } else { sum })
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn a_group_has_what_is_made_of_its_values(
            cells in proptest::collection::vec(any::<(u8, u8, u8)>(), 0..24),
            turn in any::<(u8, u8)>(),
            keys in 0..3usize,
            how in 0..8usize,
            which in 0..6usize,
        ) {
            let type_of = TYPES[which];
            let batch = Batch::new((100..100 + cells.len() as i64).collect());
            let rows = RowSet::new(
                batch
                    .with(BY[0], column(cells.iter().map(|cell| value(cell.0 % 12, Type::Int)), Type::Int))
                    .with(BY[1], column(cells.iter().map(|cell| value(cell.1 % 12, Type::Str)), Type::Str))
                    .with(OF, column(cells.iter().map(|cell| value(cell.2, type_of)), type_of)),
            );
            let mut view: Vec<u32> = (0..cells.len() as u32).collect();
            view.rotate_left(usize::from(turn.0) % (cells.len() + 1));
            view.truncate(cells.len() - usize::from(turn.1) % (cells.len() + 1));
            let rows = rows.looking_at(view);
            let by = &BY[..keys];
            let groups = groups_with_nulls(&rows, by, Stop::default()).unwrap();
            // A null key is a key like any other.
            let key_of = |at: usize| by.iter().map(|key| format!("{:?}", rows.value(*key, at))).collect::<Vec<_>>();
            let mut distinct: Vec<Vec<String>> = Vec::new();
            for at in 0..rows.len() {
                let known = distinct.iter().position(|key| *key == key_of(at));
                let group = known.unwrap_or(distinct.len());
                if known.is_none() {
                    distinct.push(key_of(at));
                }
                prop_assert_eq!(groups.of_rows[at] as usize, group);
            }
            prop_assert_eq!(groups.count, distinct.len());
            // The eighth is a count of rows.
            let (how, key) = ALL.get(how).map_or((Aggregate::Count, None), |how| (*how, Some(OF)));
            let fits = match how {
                Aggregate::Sum | Aggregate::Mean => type_of.is_number(),
                Aggregate::Min | Aggregate::Max => type_of.is_scalar(),
                Aggregate::Count | Aggregate::First | Aggregate::Last => true,
            };
            let values_of = |group: usize| -> Vec<Value> {
                let value = |at: usize| key.map_or(Value::Bool(true), |key| rows.value(key, at));
                (0..rows.len()).filter(|at| groups.of_rows[*at] as usize == group).map(value).collect()
            };
            let made = match aggregated(&rows, &groups, key, how, Stop::default()) {
                Err(CombineError::Stopped) => return Err(TestCaseError::fail("nobody stopped it")),
                Err(CombineError::Overflow { position }) => {
                    prop_assert!(naive(&values_of(groups.of_rows[position] as usize), how).is_err());
                    return Ok(());
                }
                Ok(made) => made,
            };
            prop_assert_eq!(made.is_some(), fits);
            let Some(made) = made else { return Ok(()) };
            prop_assert_eq!(made.len(), groups.count);
            let expected: Vec<Result<Value, ()>> = (0..groups.count).map(|group| naive(&values_of(group), how)).collect();
            for (group, expected) in expected.iter().enumerate() {
                // By text, in which -0.0 is not 0.0.
                prop_assert_eq!(format!("{:?}", Ok::<Value, ()>(made.value(group))), format!("{expected:?}"), "{:?}", how);
            }
            let spread = spread(&made, &rows, &groups, Stop::default()).unwrap();
            let all = rows.with(Key(9), Arc::new(spread));
            for at in 0..rows.len() {
                let of_group = made.value(groups.of_rows[at] as usize);
                prop_assert_eq!(format!("{:?}", all.value(Key(9), at)), format!("{of_group:?}"));
            }
        }
    }

    #[test]
    fn ids_can_be_aggregated_and_a_key_that_is_not_there_has_no_values() {
        let rows = RowSet::new(Batch::new(vec![7, 5, 9])).looking_at(vec![2, 0]);
        let groups = groups_with_nulls(&rows, &[], Stop::default()).unwrap();
        let of = |key, how| aggregated(&rows, &groups, Some(key), how, Stop::default()).unwrap();
        assert_eq!(of(Key::ID, Aggregate::Min).unwrap().value(0), Value::Int(7));
        assert_eq!(of(Key::ID, Aggregate::First).unwrap().value(0), Value::Int(9));
        assert_eq!(of(OF, Aggregate::Count).unwrap().value(0), Value::Int(0));
        assert!(of(OF, Aggregate::Sum).is_none());
    }
}
