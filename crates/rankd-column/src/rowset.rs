//! A row set: a batch and the ordered rows of it that are looked at.
//!
//! `filter`, `sort` and `take` make a new view (at most four bytes a row) and never copy or move column data.
//! What a batch holds at rows outside the view means nothing and may be anything.

use crate::batch::{Batch, Key};
use crate::column::Column;
use crate::id::Id;
use crate::id_texts::IdTexts;
use crate::kernel::sort::{Order, SortKey};
use crate::kernel::{concat, sort, top};
use crate::stop::{Stop, Stopped};
use crate::value::Value;
use hashbrown::HashSet;
use std::sync::Arc;

/// A view of less than this part of its batch is narrow, where the batch is not so small that it does not matter.
const NARROW_PART: usize = 8;
const NARROW_OF: usize = 4096;

/// Ordered rows of a shared batch. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RowSet {
    batch: Arc<Batch>,
    view: View,
}

#[derive(Clone, Debug)]
enum View {
    /// Stored rows `start..start + len`, in order.
    Range { start: usize, len: usize },
    /// The first `len` of the listed rows.
    Listed { rows: Arc<Vec<u32>>, len: usize },
}

/// The rows of a view as a caller iterates them: a run of neighbours, or a list.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    Range { start: usize, len: usize },
    Listed(&'a [u32]),
}

impl<'a> Rows<'a> {
    pub fn len(self) -> usize {
        match self {
            Rows::Range { len, .. } => len,
            Rows::Listed(rows) => rows.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether these are all rows of a batch of this length, in its order.
    pub fn is_whole(self, stored: usize) -> bool {
        matches!(self, Rows::Range { start: 0, len } if len == stored)
    }

    /// The stored row at `position` of the view.
    pub fn at(self, position: usize) -> usize {
        match self {
            Rows::Range { start, .. } => start + position,
            Rows::Listed(rows) => rows[position] as usize,
        }
    }

    /// The part of the view from `start`, `len` rows long.
    pub fn slice(self, start: usize, len: usize) -> Rows<'a> {
        match self {
            Rows::Range { start: first, .. } => Rows::Range { start: first + start, len },
            Rows::Listed(rows) => Rows::Listed(&rows[start..start + len]),
        }
    }

    pub fn iter(self) -> impl Iterator<Item = usize> + 'a {
        (0..self.len()).map(move |position| self.at(position))
    }
}

impl RowSet {
    /// All rows of `batch`. Rows are numbered with 32 bits; a larger batch is a bug in the caller, which bounds its reads.
    pub fn new(batch: Batch) -> RowSet {
        assert!(u32::try_from(batch.len()).is_ok(), "more rows than a view can number");
        let len = batch.len();
        RowSet { batch: Arc::new(batch), view: View::Range { start: 0, len } }
    }

    pub fn empty() -> RowSet {
        RowSet::new(Batch::new(Vec::new()))
    }

    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    pub fn rows(&self) -> Rows<'_> {
        match &self.view {
            View::Range { start, len } => Rows::Range { start: *start, len: *len },
            View::Listed { rows, len } => Rows::Listed(&rows[..*len]),
        }
    }

    pub fn len(&self) -> usize {
        match self.view {
            View::Range { len, .. } | View::Listed { len, .. } => len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids, or their codes: see [`Batch::ids`].
    pub fn ids(&self) -> impl Iterator<Item = i64> + '_ {
        let ids = self.batch.ids();
        self.rows().iter().map(move |row| ids[row])
    }

    /// The first id that an earlier row has, too.
    pub fn repeated_id(&self) -> Option<Id> {
        // Ids in ascending order need no set.
        if self.ids().is_sorted_by(|a, b| a < b) {
            return None;
        }
        let mut seen = HashSet::with_capacity(self.len());
        let repeated = self.ids().position(|id| !seen.insert(id))?;
        Some(self.batch.id(self.rows().at(repeated)))
    }

    /// The cell at `position` of the view.
    pub fn value(&self, key: Key, position: usize) -> Value {
        self.batch.value(key, self.rows().at(position))
    }

    /// The same batch seen through `rows`: stored row numbers, in the order wanted.
    pub fn looking_at(&self, rows: Vec<u32>) -> RowSet {
        debug_assert!(rows.iter().all(|&row| (row as usize) < self.batch.len()));
        let len = rows.len();
        RowSet { batch: self.batch.clone(), view: View::Listed { rows: Arc::new(rows), len } }
    }

    /// The rows at these positions of the view, in the order wanted.
    pub fn positions(&self, positions: impl IntoIterator<Item = usize>) -> RowSet {
        let rows = self.rows();
        self.looking_at(positions.into_iter().map(|position| rows.at(position) as u32).collect())
    }

    /// Whether so little of a large batch is looked at that a column for all of its rows would be mostly waste.
    #[inline]
    pub fn is_narrow(&self) -> bool {
        let stored = self.batch.len();
        stored >= NARROW_OF && self.len() < stored / NARROW_PART
    }

    /// The rows that are looked at as a batch of their own, with the columns that `keep` wants.
    pub fn gathered(&self, keep: impl Fn(Key) -> bool, stop: Stop<'_>) -> Result<RowSet, Stopped> {
        Ok(RowSet::new(self.batch.gather(self.rows(), keep, stop)?))
    }

    /// The same view with one more column, or another in its place; every other column is shared.
    pub fn with(&self, key: Key, column: Arc<Column>) -> RowSet {
        self.with_batch(self.batch.with(key, column))
    }

    /// The same rows under other ids: see [`Batch::renamed`].
    pub fn renamed(&self, ids: Vec<i64>, texts: Arc<IdTexts>) -> RowSet {
        self.with_batch(self.batch.renamed(ids, texts))
    }

    /// The same view of another batch, which has as many rows.
    pub fn with_batch(&self, batch: Batch) -> RowSet {
        assert_eq!(batch.len(), self.batch.len(), "a batch of other rows");
        RowSet { batch: Arc::new(batch), view: self.view.clone() }
    }

    /// The first `count` rows.
    pub fn take(&self, count: usize) -> RowSet {
        let mut taken = self.clone();
        match &mut taken.view {
            View::Range { len, .. } | View::Listed { len, .. } => *len = (*len).min(count),
        }
        taken
    }

    /// Stable sort by `key`, nulls last in both orders.
    pub fn sort(&self, key: Key, order: Order, stop: Stop<'_>) -> Result<RowSet, Stopped> {
        Ok(self.looking_at(sort::sorted(&self.batch, self.rows(), key, order, stop)?))
    }

    /// The same by several keys, the most important first, nulls where each says.
    pub fn sort_by(&self, by: &[SortKey], stop: Stop<'_>) -> Result<RowSet, Stopped> {
        Ok(self.looking_at(sort::sorted_by(&self.batch, self.rows(), by, stop)?))
    }

    /// What `sort` and then `take(count)` give, without sorting the rest.
    pub fn top(&self, key: Key, order: Order, count: usize, stop: Stop<'_>) -> Result<RowSet, Stopped> {
        Ok(self.looking_at(top::top(&self.batch, self.rows(), key, order, count, stop)?))
    }

    /// The rows of `self`, then those of `right`, with the columns of both; missing cells are null.
    pub fn concat(&self, right: &RowSet, stop: Stop<'_>) -> Result<RowSet, Stopped> {
        concat::concat(self, right, stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_there_twice_is_found_in_any_order() {
        let repeated = |ids: &[i64]| RowSet::new(Batch::new(ids.to_vec())).repeated_id();
        for ids in [&[][..], &[1], &[1, 2, 3], &[3, 1, 2], &[i64::MIN, 0, i64::MAX]] {
            assert_eq!(repeated(ids), None, "{ids:?}");
        }
        assert_eq!(repeated(&[1, 1]), Some(Id::Int(1)));
        assert_eq!(repeated(&[5, 3, 4, 3, 5]), Some(Id::Int(3)));
        assert_eq!(RowSet::new(Batch::new(vec![7, 8, 7])).take(2).repeated_id(), None, "only what is looked at counts");
    }
}
