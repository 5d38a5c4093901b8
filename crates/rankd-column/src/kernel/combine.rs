//! One value for each group, made of the values of its rows.
//!
//! Null is skipped, and a group that has nothing else gets null. Sums are taken in the order of the view.

use crate::column::{Cells, Column};
use crate::kernel::groups::{Groups, NO_GROUP};
use crate::rowset::RowSet;
use crate::stop::{Stop, Stopped};
use crate::{Elements, Key, Span};
use std::sync::Arc;

/// What is made of the values of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The first that is not null.
    First,
    /// Of numbers.
    Max,
    Min,
    Sum,
    /// Of lists: all elements, each once, in the order in which they come.
    Union,
}

/// Why values cannot be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CombineError {
    Stopped,
    /// The sum of the group of this row, a position of the view, is too large.
    Overflow {
        position: usize,
    },
}

impl From<Stopped> for CombineError {
    fn from(Stopped: Stopped) -> CombineError {
        CombineError::Stopped
    }
}

/// The combined values of a key as a column by stored row: each row has the value of its group, and one that is in no group keeps its own.
/// `None` where there is no such column.
pub fn combined(
    rows: &RowSet,
    groups: &Groups,
    key: Key,
    how: Combine,
    stop: Stop<'_>,
) -> Result<Option<Column>, CombineError> {
    let Some(column) = rows.batch().column(key) else { return Ok(None) };
    Ok(Some(match (&**column, how) {
        (Column::Int(cells), Combine::Max) => Column::Int(fold(rows, groups, cells, |a, b| Some(a.max(b)), stop)?),
        (Column::Int(cells), Combine::Min) => Column::Int(fold(rows, groups, cells, |a, b| Some(a.min(b)), stop)?),
        (Column::Int(cells), Combine::Sum) => Column::Int(fold(rows, groups, cells, i64::checked_add, stop)?),
        (Column::Float(cells), Combine::Max) => {
            // Of 0.0 and -0.0 the first stays.
            let max = |a: f64, b: f64| Some(if b > a { b } else { a });
            Column::Float(fold(rows, groups, cells, max, stop)?)
        }
        (Column::Float(cells), Combine::Min) => {
            let min = |a: f64, b: f64| Some(if b < a { b } else { a });
            Column::Float(fold(rows, groups, cells, min, stop)?)
        }
        (Column::Float(cells), Combine::Sum) => {
            let sum = |a: f64, b: f64| Some(a + b).filter(|sum| sum.is_finite());
            Column::Float(fold(rows, groups, cells, sum, stop)?)
        }
        (Column::List(cells, elements), Combine::Union) => union(rows, groups, cells, elements, stop)?,
        (Column::Int(cells), Combine::First) => Column::Int(fold(rows, groups, cells, first, stop)?),
        (Column::Float(cells), Combine::First) => Column::Float(fold(rows, groups, cells, first, stop)?),
        (Column::Bool(cells), Combine::First) => Column::Bool(fold(rows, groups, cells, first, stop)?),
        (Column::Str(cells, texts), Combine::First) => {
            Column::Str(fold(rows, groups, cells, first, stop)?, texts.clone())
        }
        (Column::List(cells, elements), Combine::First) => {
            Column::List(fold(rows, groups, cells, first, stop)?, elements.clone())
        }
        (Column::Vector(cells, vectors), Combine::First) => {
            Column::Vector(fold(rows, groups, cells, first, stop)?, vectors.clone())
        }
        // The checks refuse other pairs.
        (Column::Bool(_) | Column::Str(..) | Column::Vector(..), Combine::Max | Combine::Min | Combine::Sum)
        | (Column::List(..), Combine::Max | Combine::Min | Combine::Sum)
        | (
            Column::Int(_) | Column::Float(_) | Column::Bool(_) | Column::Str(..) | Column::Vector(..),
            Combine::Union,
        ) => return Ok(None),
    }))
}

fn first<T>(a: T, _: T) -> Option<T> {
    Some(a)
}

/// Takes the values of each group together, two at a time.
fn fold<T: Copy + Default>(
    rows: &RowSet,
    groups: &Groups,
    cells: &Cells<T>,
    both: impl Fn(T, T) -> Option<T>,
    stop: Stop<'_>,
) -> Result<Cells<T>, CombineError> {
    let (mut of_groups, mut position): (Vec<Option<T>>, usize) = (vec![None; groups.count], 0);
    for chunk in stop.chunks(rows.rows()) {
        for row in chunk?.iter() {
            let of_group = of_groups.get_mut(groups.of_rows[position] as usize);
            if let Some((so_far, value)) = of_group.zip(cells.get(row)) {
                *so_far = Some(match *so_far {
                    None => value,
                    Some(before) => both(before, value).ok_or(CombineError::Overflow { position })?,
                });
            }
            position += 1;
        }
    }
    Ok(given_back(rows, groups, cells, &of_groups, stop)?)
}

/// Gives each row of a view the value of its group.
fn given_back<T: Copy + Default>(
    rows: &RowSet,
    groups: &Groups,
    cells: &Cells<T>,
    of_groups: &[Option<T>],
    stop: Stop<'_>,
) -> Result<Cells<T>, Stopped> {
    let stored = rows.batch().len();
    let (mut values, mut valid) = (vec![T::default(); stored], vec![false; stored]);
    let mut of_rows = groups.of_rows.iter();
    for chunk in stop.chunks(rows.rows()) {
        for (row, group) in chunk?.iter().zip(&mut of_rows) {
            let value = if *group == NO_GROUP { cells.get(row) } else { of_groups[*group as usize] };
            (values[row], valid[row]) = (value.unwrap_or_default(), value.is_some());
        }
    }
    let is_full = valid.iter().all(|there| *there);
    Ok(Cells::new(values, (!is_full).then_some(valid)))
}

fn union(
    rows: &RowSet,
    groups: &Groups,
    cells: &Cells<Span>,
    elements: &Arc<Elements>,
    stop: Stop<'_>,
) -> Result<Column, Stopped> {
    // The lists of each group, in the order of the view.
    let mut lists: Vec<Vec<Span>> = vec![Vec::new(); groups.count];
    let mut of_rows = groups.of_rows.iter();
    for chunk in stop.chunks(rows.rows()) {
        for (row, group) in chunk?.iter().zip(&mut of_rows) {
            if let Some((lists, span)) = lists.get_mut(*group as usize).zip(cells.get(row)) {
                lists.push(span);
            }
        }
    }
    let (mut made, mut of_groups, mut looks) = ((**elements).clone(), Vec::with_capacity(groups.count), stop.looks());
    for lists in &lists {
        looks.before(1 + lists.iter().map(|span| span.len as usize).sum::<usize>())?;
        of_groups.push(match lists[..] {
            [] => None,
            // What is alone stays as it is.
            [one] => Some(one),
            _ => Some(made.push_union(lists)),
        });
    }
    Ok(Column::List(given_back(rows, groups, cells, &of_groups, stop)?, Arc::new(made)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::column::ColumnBuilder;
    use crate::value::{Element, List, Type, Value};
    use proptest::prelude::*;

    const KEY: Key = Key(1);
    const ALL: [Combine; 5] = [Combine::First, Combine::Max, Combine::Min, Combine::Sum, Combine::Union];

    fn rows(values: &[Value], type_of: Type) -> RowSet {
        let mut column = ColumnBuilder::new(type_of, values.len());
        values.iter().for_each(|value| assert!(column.push(value)));
        let batch = Batch::new((0..values.len() as i64).collect());
        RowSet::new(batch.with(KEY, Arc::new(column.finish())))
    }

    /// By the words of each; `None` where a sum is too large.
    fn naive(values: &[Value], how: Combine) -> Option<Value> {
        let mut there = values.iter().filter(|value| !matches!(value, Value::Null)).cloned();
        let first = there.next().unwrap_or(Value::Null);
        there.try_fold(first, |so_far, value| {
            Some(match (how, so_far, value) {
                (Combine::Max, Value::Int(a), Value::Int(b)) => Value::Int(a.max(b)),
                (Combine::Min, Value::Int(a), Value::Int(b)) => Value::Int(a.min(b)),
                (Combine::Sum, Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(b)?),
                (Combine::Max, Value::Float(a), Value::Float(b)) => Value::Float(if b > a { b } else { a }),
                (Combine::Min, Value::Float(a), Value::Float(b)) => Value::Float(if b < a { b } else { a }),
                (Combine::Sum, Value::Float(a), Value::Float(b)) => {
                    Value::Float(Some(a + b).filter(|x| x.is_finite())?)
                }
                (Combine::Union, Value::List(a), Value::List(b)) => {
                    let (List::Int(a), List::Int(b)) = (&*a, &*b) else { unreachable!("lists of ints") };
                    let mut all = a.clone();
                    all.extend(b);
                    Value::List(Arc::new(List::Int(once(&all))))
                }
                (_, so_far, _) => so_far,
            })
        })
    }

    fn once(values: &[i64]) -> Vec<i64> {
        let mut out = Vec::new();
        values.iter().for_each(|value| {
            if !out.contains(value) {
                out.push(*value);
            }
        });
        out
    }

    fn value(seed: u8, type_of: Type) -> Value {
        let n = i64::from(seed / 4 % 8);
        match (seed % 4, type_of) {
            (0, _) => Value::Null,
            (1, Type::Int) if n > 5 => Value::Int(i64::MAX),
            (_, Type::Int) => Value::Int(n - 3),
            (1, Type::Float) if n > 5 => Value::Float(f64::MAX),
            (_, Type::Float) => Value::Float(n as f64 / 2.0 - 1.0),
            // Each once, as the lists of a group that is alone stay as they are.
            (k, _) => Value::List(Arc::new(List::Int((0..i64::from(k)).map(|at| (n + at) % 5).collect()))),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn a_group_has_what_is_made_of_its_values(
            cells in proptest::collection::vec((any::<u8>(), prop_oneof![4 => 0..3u32, 1 => Just(NO_GROUP)]), 0..20),
            how in 0..5usize,
            which in 0..3usize,
        ) {
            let (how, type_of) = (ALL[how], [Type::Int, Type::Float, Type::List(Element::Int)][which]);
            let values: Vec<Value> = cells.iter().map(|(seed, _)| value(*seed, type_of)).collect();
            let rows = rows(&values, type_of);
            // The numbers need not be in the order of the first rows here.
            let groups = Groups { of_rows: cells.iter().map(|(_, group)| *group).collect(), count: 3 };
            let of = |group: u32| -> Vec<Value> {
                values.iter().zip(&groups.of_rows).filter(|(_, of)| **of == group).map(|(value, _)| value.clone()).collect()
            };
            let is_for_lists = how == Combine::Union;
            let is_list = matches!(type_of, Type::List(_));
            let found = combined(&rows, &groups, KEY, how, Stop::default());
            if how != Combine::First && is_for_lists != is_list {
                prop_assert!(found.unwrap().is_none());
                return Ok(());
            }
            let expected: Vec<Option<Value>> = (0..3).map(|group| naive(&of(group), how)).collect();
            match found {
                Err(CombineError::Overflow { position }) => {
                    prop_assert!(expected[groups.of_rows[position] as usize].is_none());
                }
                Err(CombineError::Stopped) => prop_assert!(false, "nobody stopped it"),
                Ok(column) => {
                    let made = rows.with(KEY, Arc::new(column.unwrap()));
                    for (at, group) in groups.of_rows.iter().enumerate() {
                        let wanted = if *group == NO_GROUP { Some(values[at].clone()) } else { expected[*group as usize].clone() };
                        prop_assert_eq!(Some(made.value(KEY, at)), wanted, "{} {:?}", at, how);
                    }
                }
            }
        }
    }
}
