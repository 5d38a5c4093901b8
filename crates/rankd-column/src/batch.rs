//! A batch: shared columns of equal length and the ids of their rows.
//!
//! Immutable once made. Adding a column makes a new batch that shares all the others.

use crate::column::{Cells, Column};
use crate::dictionary::Dictionary;
use crate::id::Id;
use crate::id_texts::IdTexts;
use crate::value::Value;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use std::sync::{Arc, OnceLock};

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
    /// Where ids are texts. An empty batch may lack it all the same.
    texts: Option<Arc<TextIds>>,
    columns: Vec<(Key, Arc<Column>)>,
}

/// What the ids of a batch stand for, where they are codes of texts.
#[derive(Debug)]
struct TextIds {
    texts: Arc<IdTexts>,
    /// The ids as a string column, once something needs it.
    column: OnceLock<Arc<Column>>,
}

impl Batch {
    /// Rows with these ids, which are ints.
    pub fn new(ids: Vec<i64>) -> Batch {
        Batch { ids: Arc::new(ids), texts: None, columns: Vec::new() }
    }

    /// Rows with these ids: codes of `texts` where there are some, else ints.
    pub fn with_ids(ids: Vec<i64>, texts: Option<Arc<IdTexts>>) -> Batch {
        let texts = texts.map(|texts| Arc::new(TextIds { texts, column: OnceLock::new() }));
        Batch { ids: Arc::new(ids), texts, columns: Vec::new() }
    }

    /// The same for ids that are kept elsewhere, too: nothing is copied. `column` has their texts, in the same order.
    pub fn with_shared_ids(ids: Arc<Vec<i64>>, texts: Option<(Arc<IdTexts>, Arc<Column>)>) -> Batch {
        let texts = texts.map(|(texts, column)| Arc::new(TextIds { texts, column: column.into() }));
        Batch { ids, texts, columns: Vec::new() }
    }

    /// The same rows under other ids, which are codes of `texts`. Panics when there are not as many: that is a bug in the caller.
    pub fn renamed(&self, ids: Vec<i64>, texts: Arc<IdTexts>) -> Batch {
        assert_eq!(ids.len(), self.len(), "ids of other rows");
        Batch { columns: self.columns.clone(), ..Batch::with_ids(ids, Some(texts)) }
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
        Batch { ids: self.ids.clone(), texts: self.texts.clone(), columns }
    }

    /// How many rows are stored. A row set may look at fewer of them.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The ids; codes of [`Batch::id_texts`] where that is there.
    pub fn ids(&self) -> &[i64] {
        &self.ids
    }

    /// What the ids are codes of; `None` where ids are ints.
    pub fn id_texts(&self) -> Option<&Arc<IdTexts>> {
        self.texts.as_ref().map(|ids| &ids.texts)
    }

    /// The id of a stored row, as users know it.
    pub fn id(&self, row: usize) -> Id {
        match self.id_texts() {
            None => Id::Int(self.ids[row]),
            Some(texts) => Id::from(texts.text(self.ids[row])),
        }
    }

    /// The ids as a string column, made when it is first asked for; `None` where ids are ints.
    pub fn id_column(&self) -> Option<&Column> {
        let TextIds { texts, column } = self.texts.as_deref()?;
        Some(column.get_or_init(|| Arc::new(text_column(&self.ids, texts))))
    }

    /// The column of `key`; `None` for `id` (see [`Batch::ids`] and [`Batch::id_column`]) and for keys that are not here.
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
            Key::ID => Value::from(&self.id(row)),
            key => self.column(key).map_or(Value::Null, |column| column.value(row)),
        }
    }
}

/// One code, one entry: no text is compared with another.
fn text_column(ids: &[i64], texts: &IdTexts) -> Column {
    let (mut dictionary, mut entries) = (Dictionary::default(), HashMap::with_capacity(ids.len()));
    let entry = |id: &i64| match entries.entry(*id) {
        Entry::Occupied(entry) => *entry.get(),
        Entry::Vacant(new) => *new.insert(dictionary.push(texts.text(*id))),
    };
    let cells = Cells::full(ids.iter().map(entry).collect());
    Column::Str(cells, Arc::new(dictionary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id_texts::IdDictionary;

    #[test]
    fn text_ids_are_seen_as_texts() {
        let texts = Arc::new(IdTexts::new(IdDictionary::empty()));
        let ids = ["b", "a", "b"].map(|text| texts.code(text).unwrap()).to_vec();
        let batch = Batch::with_ids(ids, Some(texts));
        assert_eq!([0, 1, 2].map(|row| batch.value(Key::ID, row)), ["b", "a", "b"].map(Value::str));
        assert_eq!((batch.ids()[0], batch.id(1).to_string()), (batch.ids()[2], "\"a\"".to_owned()));
        let Some(Column::Str(_, dictionary)) = batch.id_column() else { unreachable!() };
        assert_eq!(dictionary.iter().collect::<Vec<_>>(), ["b", "a"]);
        let wider = batch.with(Key(1), Arc::new(Column::Int(Cells::full(vec![1, 2, 3]))));
        assert!(std::ptr::eq(wider.id_column().unwrap(), batch.id_column().unwrap()), "made once");
        assert!(Batch::new(vec![1]).id_column().is_none());
    }
}
