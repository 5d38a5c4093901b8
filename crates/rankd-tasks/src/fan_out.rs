//! What `follow`, `recommendation` and `media` have in common: for each row a list of ids, which become new rows.

use rankd_column::kernel::join::pick;
use rankd_column::{Batch, Cells, Column, Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::store::{KeyedEndpoint, Keys};
use rankd_engine::task::{FetchContext, LinkContext};
use rankd_plan::params;
use rankd_plan::signature::typed::Count;
use rankd_plan::signature::*;
use std::sync::Arc;

/// The key that remembers which row a new one came from.
const PARENT_ID: &str = "parent_id";

/// What all three declare.
pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::FanOut,
    reads: &[Params::carry],
    writes: Writes::Named(&[PARENT_ID], &[Params::carry]),
    params: Params::PARAMS,
    cost: Cost::Unknown,
};

params! {
    pub(crate) struct Params {
        /// Where the lists are
        endpoint: KeyedEndpoint,
        /// How many ids to read for each input row
        #[range(1..=10_000)]
        fanout: Count = 100,
        /// The keys of the input row that each new row gets, too
        carry: Option<Vec<Key>>,
    }
}

pub(crate) struct FanOut {
    params: Params,
    prefix: &'static str,
    /// `None` where the registry has no such key; then nobody can ask for it.
    parent_id: Option<Key>,
}

impl FanOut {
    pub(crate) fn make(params: Params, prefix: &'static str, cx: &LinkContext<'_>) -> FanOut {
        FanOut { params, prefix, parent_id: cx.key(PARENT_ID) }
    }

    /// Reads the lists of all rows in one step.
    pub(crate) async fn read(&self, rows: &RowSet, cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let parents: Vec<i64> = rows.ids().collect();
        if parents.is_empty() {
            return Ok(RowSet::empty());
        }
        let Params { endpoint, fanout, carry } = &self.params;
        let keys = Keys::Numbered { prefix: self.prefix, ids: &parents };
        let replies = cx.keyed(*endpoint).list_head(keys, *fanout).await?;
        cx.count_skipped(replies.skipped());
        let lists = parents.iter().enumerate().map(|(at, parent)| (replies.ids(at).len(), *parent));
        let parent_ids = lists.flat_map(|(count, parent)| std::iter::repeat_n(parent, count)).collect();
        let came_from = carry.as_ref().map(|_| {
            let parents = rows.rows().iter().enumerate();
            parents.flat_map(|(at, row)| std::iter::repeat_n(row as u32, replies.ids(at).len())).collect::<Vec<u32>>()
        });
        let batch = Batch::new(replies.into_ids());
        let batch = match self.parent_id {
            Some(key) => batch.with(key, Arc::new(Column::Int(Cells::full(parent_ids)))),
            None => batch,
        };
        Ok(RowSet::new(match carry.as_ref().zip(came_from) {
            Some((keys, came_from)) => with_carried(batch, rows, &came_from, keys),
            None => batch,
        }))
    }
}

/// New rows with columns of the rows that they came from: `came_from` has a stored row of `parents` for each.
pub(crate) fn with_carried(batch: Batch, parents: &RowSet, came_from: &[u32], keys: &[Key]) -> Batch {
    keys.iter().fold(batch, |batch, key| match pick(parents.batch(), *key, came_from) {
        Some(column) => batch.with(*key, Arc::new(column)),
        // No input has the column in this run: it is null here as there.
        None => batch,
    })
}
