//! A batch: shared columns of equal length and the ids of their rows.
//!
//! Immutable once made. Adding a column makes a new batch that shares all the others.

use crate::column::{Cells, Column};
use crate::dictionary::Dictionary;
use crate::id::Id;
use crate::id_texts::IdTexts;
use crate::kernel::gather::{gather_all, gather_column};
use crate::rowset::Rows;
use crate::stop::{Stop, Stopped};
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

    /// Where a row came from, in a run that follows its rows: a number for whoever put it there. No registry has this key, and no other run
    /// has such a column. Kernels carry it along like any other.
    pub const ORIGIN: Key = Key(u32::MAX);
}

/// Columns by key over the same rows.
#[derive(Clone, Debug)]
pub struct Batch {
    ids: Arc<Vec<i64>>,
    /// Where ids are texts. An empty batch may lack it all the same.
    texts: Option<Arc<TextIds>>,
    columns: Vec<(Key, Arc<Column>)>,
    /// The memory of the ids and of the columns, without those of `kept`.
    made_bytes: usize,
    /// A batch that is there anyway, and whose ids and columns these are, but for those that were added.
    kept: Option<Arc<Batch>>,
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
        Batch::with_ids(ids, None)
    }

    /// Rows with these ids: codes of `texts` where there are some, else ints.
    pub fn with_ids(ids: Vec<i64>, texts: Option<Arc<IdTexts>>) -> Batch {
        let texts = texts.map(|texts| Arc::new(TextIds { texts, column: OnceLock::new() }));
        let made_bytes = size_of_val(&*ids);
        Batch { ids: Arc::new(ids), texts, columns: Vec::new(), made_bytes, kept: None }
    }

    /// The same batch for a run whose ids are codes of `texts`: nothing is copied. The ids are such codes already, and `column` has
    /// their texts, in the same order.
    pub fn seen_with(&self, texts: Arc<IdTexts>, column: Arc<Column>) -> Batch {
        Batch { texts: Some(Arc::new(TextIds { texts, column: column.into() })), ..self.clone() }
    }

    /// The same rows under other ids, which are codes of `texts`. Panics when there are not as many: that is a bug in the caller.
    pub fn renamed(&self, ids: Vec<i64>, texts: Arc<IdTexts>) -> Batch {
        assert_eq!(ids.len(), self.len(), "ids of other rows");
        let made_bytes = self.made_bytes;
        Batch {
            columns: self.columns.clone(),
            made_bytes,
            kept: self.kept.clone(),
            ..Batch::with_ids(ids, Some(texts))
        }
    }

    /// The same batch as one that is there anyway, for as long as the process, a table or a plan is: what it holds is no memory of
    /// those that look at it.
    pub fn into_kept(self) -> Batch {
        let kept = Batch { made_bytes: 0, kept: None, ..self };
        Batch { kept: Some(Arc::new(kept.clone())), ..kept }
    }

    /// The same rows with `column` under `key`, in place of an earlier one.
    ///
    /// Panics when the length is not the batch's or the key is `id`: both are bugs in the caller.
    pub fn with(&self, key: Key, column: Arc<Column>) -> Batch {
        assert!(key != Key::ID, "the id column is fixed");
        assert_eq!(column.len(), self.len(), "a column of another length");
        let mut columns = Vec::with_capacity(self.columns.len() + 1);
        columns.extend_from_slice(&self.columns);
        // What is replaced stays counted: it may well be held elsewhere, and too much is looked at again.
        let made_bytes = self.made_bytes + column.bytes();
        match columns.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => columns[at].1 = column,
            Err(at) => columns.insert(at, (key, column)),
        }
        Batch { ids: self.ids.clone(), texts: self.texts.clone(), columns, made_bytes, kept: self.kept.clone() }
    }

    /// How many bytes the ids and columns take, or fewer: what is there anyway does not count, and a column that was replaced does.
    #[inline]
    pub fn made_bytes(&self) -> usize {
        self.made_bytes
    }

    /// The parts of the batch that are not there anyway: where each lies, and how many bytes it takes.
    pub fn made_parts(&self) -> impl Iterator<Item = (*const (), usize)> + '_ {
        let kept = self.kept.as_deref();
        let ids = (!kept.is_some_and(|kept| Arc::ptr_eq(&kept.ids, &self.ids)))
            .then(|| (Arc::as_ptr(&self.ids).cast(), size_of_val(&**self.ids)));
        let is_made = move |(key, column): &&(Key, Arc<Column>)| {
            !kept.and_then(|kept| kept.column(*key)).is_some_and(|kept| Arc::ptr_eq(kept, column))
        };
        let columns = self.columns.iter().filter(is_made);
        ids.into_iter().chain(columns.map(|(_, column)| (Arc::as_ptr(column).cast(), column.bytes())))
    }

    /// Whether its rows are there anyway, as those of a table are.
    pub fn is_kept(&self) -> bool {
        self.kept.as_deref().is_some_and(|kept| Arc::ptr_eq(&kept.ids, &self.ids))
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
    pub fn id_column(&self, stop: Stop<'_>) -> Result<Option<&Column>, Stopped> {
        let Some(TextIds { texts, column }) = self.texts.as_deref() else { return Ok(None) };
        if let Some(column) = column.get() {
            return Ok(Some(column));
        }
        // Two threads may both make it; one of them keeps it.
        let made = Arc::new(text_column(&self.ids, texts, stop)?);
        Ok(Some(column.get_or_init(|| made)))
    }

    /// The column of `key`; `None` for `id` (see [`Batch::ids`] and [`Batch::id_column`]) and for keys that are not here.
    pub fn column(&self, key: Key) -> Option<&Arc<Column>> {
        self.columns.binary_search_by_key(&key, |(key, _)| *key).ok().map(|at| &self.columns[at].1)
    }

    /// The listed rows alone, in their order, with the columns that `keep` wants.
    pub fn gather(&self, rows: Rows<'_>, keep: impl Fn(Key) -> bool, stop: Stop<'_>) -> Result<Batch, Stopped> {
        let mut ids = Vec::with_capacity(rows.len());
        gather_all(&self.ids, rows, &mut ids, stop)?;
        let mut gathered = Batch::with_ids(ids, self.id_texts().cloned());
        gathered.columns.reserve_exact(self.columns.len());
        for (key, column) in self.columns.iter().filter(|(key, _)| keep(*key)) {
            let column = gather_column(column, rows, stop)?;
            gathered.made_bytes += column.bytes();
            gathered.columns.push((*key, Arc::new(column)));
        }
        Ok(gathered)
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
fn text_column(ids: &[i64], texts: &IdTexts, stop: Stop<'_>) -> Result<Column, Stopped> {
    let (mut dictionary, mut entries) = (Dictionary::default(), HashMap::with_capacity(ids.len()));
    let mut entry = |id: &i64| match entries.entry(*id) {
        Entry::Occupied(entry) => *entry.get(),
        Entry::Vacant(new) => *new.insert(dictionary.push(texts.text(*id))),
    };
    let mut codes = Vec::with_capacity(ids.len());
    for ids in stop.slices(ids) {
        codes.extend(ids?.iter().map(&mut entry));
    }
    Ok(Column::Str(Cells::full(codes), Arc::new(dictionary)))
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
        fn id_column(batch: &Batch) -> Option<&Column> {
            batch.id_column(Stop::default()).unwrap()
        }
        let Some(Column::Str(_, dictionary)) = id_column(&batch) else { unreachable!() };
        assert_eq!(dictionary.iter().collect::<Vec<_>>(), ["b", "a"]);
        let wider = batch.with(Key(1), Arc::new(Column::Int(Cells::full(vec![1, 2, 3]))));
        assert!(std::ptr::eq(id_column(&wider).unwrap(), id_column(&batch).unwrap()), "made once");
        assert!(id_column(&Batch::new(vec![1])).is_none());
    }

    #[test]
    fn what_is_there_anyway_does_not_count() {
        let column = |rows: usize| Arc::new(Column::Int(Cells::full(vec![7; rows])));
        let table = Batch::new(vec![1, 2, 3]).with(Key(1), column(3)).into_kept();
        assert_eq!((table.made_bytes(), table.made_parts().count()), (0, 0));
        let more = table.with(Key(2), column(3));
        assert_eq!((more.made_bytes(), more.made_parts().map(|(_, bytes)| bytes).sum()), (24, 24));
        let replaced = more.with(Key(2), column(3));
        assert_eq!((replaced.made_bytes(), replaced.made_parts().map(|(_, bytes)| bytes).sum()), (48, 24));
        let gathered = more.gather(Rows::Listed(&[2]), |key| key != Key(2), Stop::default()).unwrap();
        assert_eq!((gathered.made_bytes(), gathered.made_parts().map(|(_, bytes)| bytes).sum()), (16, 16));
        assert_eq!((gathered.ids(), gathered.columns().len()), (&[3][..], 1));
    }
}
