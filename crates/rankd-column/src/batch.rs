//! A batch: shared columns of equal length and the ids of their rows.
//!
//! Immutable once made. Adding a column makes a new batch that shares all the others.

use crate::column::Column;
use crate::value::Value;
use std::sync::Arc;

/// A key's position in the registry. Rows are printed in this order; position 0 is `id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

impl Key {
    /// The row's own id: every batch has it, it is never null and no column stands for it.
    pub const ID: Key = Key(0);
}

/// Columns by key over the same rows.
#[derive(Clone, Debug)]
pub struct Batch {
    ids: Arc<Vec<i64>>,
    columns: Vec<(Key, Arc<Column>)>,
}

impl Batch {
    pub fn new(ids: Vec<i64>) -> Batch {
        Batch { ids: Arc::new(ids), columns: Vec::new() }
    }

    /// The same rows with `column` under `key`, in place of an earlier one.
    ///
    /// Panics when the length is not the batch's or the key is `id`: both are bugs in the caller.
    pub fn with(&self, key: Key, column: Arc<Column>) -> Batch {
        assert!(key != Key::ID, "the id column is fixed");
        assert_eq!(column.len(), self.len(), "a column of another length");
        let mut columns = Vec::with_capacity(self.columns.len() + 1);
        columns.extend_from_slice(&self.columns);
        match columns.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => columns[at].1 = column,
            Err(at) => columns.insert(at, (key, column)),
        }
        Batch { ids: self.ids.clone(), columns }
    }

    /// How many rows are stored. A row set may look at fewer of them.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub fn ids(&self) -> &[i64] {
        &self.ids
    }

    /// The column of `key`; `None` for `id` (see [`Batch::ids`]) and for keys that are not here.
    pub fn column(&self, key: Key) -> Option<&Arc<Column>> {
        self.columns.binary_search_by_key(&key, |(key, _)| *key).ok().map(|at| &self.columns[at].1)
    }

    /// Keys and columns in key order, without `id`.
    pub fn columns(&self) -> &[(Key, Arc<Column>)] {
        &self.columns
    }

    /// One cell; a missing column is null.
    pub fn value(&self, key: Key, row: usize) -> Value {
        match key {
            Key::ID => Value::Int(self.ids[row]),
            key => self.column(key).map_or(Value::Null, |column| column.value(row)),
        }
    }
}
