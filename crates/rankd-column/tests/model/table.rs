//! Rows as the model sees them: a value a cell. And the same rows as the crate's batch.

use rankd_column::column::ColumnBuilder;
use rankd_column::expr::{RunValues, Schema};
use rankd_column::{Batch, Cells, Column, DictionaryBuilder, Element, Id, Key, List, Span, Type, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The type of each key. Of those with a single value, the last four are in no table; of lists and vectors, the last is.
pub(crate) const KEY_TYPES: [Type; 18] = [
    Type::Int,
    Type::Int,
    Type::Int,
    Type::Float,
    Type::Float,
    Type::Bool,
    Type::Bool,
    Type::Str,
    Type::Str,
    Type::Int,
    Type::Float,
    Type::Bool,
    Type::Str,
    Type::List(Element::Int),
    Type::List(Element::Float),
    Type::List(Element::Str),
    Type::Vector(3),
    Type::List(Element::Str),
];

/// Keys below this one are in a full table.
pub(crate) const FIRST_MISSING: u32 = 9;
/// From this one on, keys are lists and vectors, which have no order.
pub(crate) const FIRST_ARRAY: u32 = 13;
/// So are those of these that are below this one.
pub(crate) const FIRST_MISSING_ARRAY: u32 = 17;

/// The type of each parameter. The last is only ever a pattern.
pub(crate) const PARAM_TYPES: [Type; 11] = [
    Type::Int,
    Type::Int,
    Type::Float,
    Type::Float,
    Type::Bool,
    Type::Str,
    Type::List(Element::Int),
    Type::List(Element::Float),
    Type::List(Element::Str),
    Type::Vector(3),
    Type::Str,
];

pub(crate) const PATTERN_PARAM: u32 = 10;

/// The time and the user of every run.
pub(crate) const NOW_MS: i64 = 1_700_000_000_123;
pub(crate) const USER_ID: i64 = 77;

/// A run with these parameters.
pub(crate) fn values(params: &[Value]) -> RunValues<'_> {
    RunValues { params, now_ms: NOW_MS, user_id: &Id::Int(USER_ID) }
}

/// The types behind the numbers above.
pub(crate) struct Registry;

impl Schema for Registry {
    fn key_type(&self, key: Key) -> Type {
        KEY_TYPES[key.0 as usize]
    }

    fn param_type(&self, param: u32) -> Type {
        PARAM_TYPES[param as usize]
    }
}

/// All that a term can look at.
pub(crate) struct World {
    pub(crate) table: Table,
    /// May be shorter than the registry: the missing ones are null.
    pub(crate) params: Vec<Value>,
}

impl World {
    pub(crate) fn param(&self, param: u32) -> Value {
        self.params.get(param as usize).cloned().unwrap_or(Value::Null)
    }
}

/// Rows and the columns that they have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) ids: Vec<i64>,
    pub(crate) columns: BTreeMap<Key, Vec<Value>>,
    /// Entries that stand in every dictionary before those of the cells.
    pub(crate) spare_strings: Vec<&'static str>,
}

impl Table {
    pub(crate) fn value(&self, key: Key, row: usize) -> Value {
        match key {
            Key::ID => Value::Int(self.ids[row]),
            key => self.columns.get(&key).map_or(Value::Null, |column| column[row].clone()),
        }
    }

    pub(crate) fn batch(&self) -> Batch {
        self.columns.iter().fold(Batch::new(self.ids.clone()), |batch, (key, values)| {
            batch.with(*key, Arc::new(column(KEY_TYPES[key.0 as usize], values, &self.spare_strings)))
        })
    }
}

/// A column whose null cells hold the worst that could stand there, since what they hold means nothing.
pub(crate) fn column(type_of: Type, values: &[Value], spare_strings: &[&str]) -> Column {
    match type_of {
        Type::Int => Column::Int(cells(values, i64::MIN, |value| match value {
            Value::Int(v) => Some(*v),
            _ => None,
        })),
        Type::Float => Column::Float(cells(values, f64::NAN, |value| match value {
            Value::Float(v) => Some(*v),
            _ => None,
        })),
        Type::Bool => Column::Bool(cells(values, true, |value| match value {
            Value::Bool(v) => Some(*v),
            _ => None,
        })),
        Type::Str => {
            let mut builder = DictionaryBuilder::default();
            spare_strings.iter().for_each(|text| {
                builder.code(text);
            });
            let cells = cells(values, u32::MAX, |value| match value {
                Value::Str(text) => Some(builder.code(text)),
                _ => None,
            });
            Column::Str(cells, Arc::new(builder.finish()))
        }
        Type::List(element) => {
            let mut builder = ColumnBuilder::new(type_of, 0);
            if element == Element::Str && !spare_strings.is_empty() {
                // No cell points at these.
                let spare = spare_strings.iter().map(|text| (*text).into()).collect();
                assert!(builder.push_list(&List::Str(spare)));
            }
            let unused = builder.len();
            values.iter().for_each(|value| assert!(builder.push(value)));
            let Column::List(spans, elements) = builder.finish() else { unreachable!() };
            let mut row = unused;
            let nowhere = Span { start: u32::MAX, len: u32::MAX };
            let cells = cells(values, nowhere, |_| {
                row += 1;
                spans.get(row - 1)
            });
            Column::List(cells, elements)
        }
        Type::Vector(_) => {
            let mut builder = ColumnBuilder::new(type_of, 0);
            values.iter().for_each(|value| assert!(builder.push(value)));
            let Column::Vector(numbers, vectors) = builder.finish() else { unreachable!() };
            let mut row = 0;
            let cells = cells(values, u32::MAX, |_| {
                row += 1;
                numbers.get(row - 1)
            });
            Column::Vector(cells, vectors)
        }
    }
}

fn cells<T: Copy + Default>(values: &[Value], null: T, mut get: impl FnMut(&Value) -> Option<T>) -> Cells<T> {
    let cells: Vec<Option<T>> = values.iter().map(&mut get).collect();
    let valid: Vec<bool> = cells.iter().map(Option::is_some).collect();
    let values = cells.into_iter().map(|cell| cell.unwrap_or(null)).collect();
    // A column without nulls has no validity, except where its length says so: both forms must work.
    let keep = valid.contains(&false) || valid.len() % 5 == 4;
    Cells::new(values, keep.then_some(valid))
}
