//! What `follow`, `recommendation` and `media` have in common: for each row a list of ids, which become new rows.

use crate::misread::{Misreads, id_field};
use rankd_column::kernel::join::pick;
use rankd_column::{Batch, Cells, Column, DictionaryBuilder, IdTexts, Key, RowSet, Stop, Stopped};
use rankd_engine::error::TaskError;
use rankd_engine::store::{KeyedEndpoint, KeyedRead};
use rankd_engine::task::{
    ElementKey, Elements, FetchContext, KeyPattern, LinkContext, RowSource, StoredElements, StoredLayout,
};
use rankd_plan::signature::typed::Dial;
use rankd_plan::signature::*;
use rankd_plan::{Registry, params};
use std::sync::Arc;

/// The key that remembers which row a new one came from.
pub(crate) const PARENT_ID: &str = "parent_id";

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
        fanout: Dial = 100,
        /// The keys of the input row that each new row gets, too
        carry: Option<Vec<Key>>,
    }
}

pub(crate) struct FanOut {
    params: Params,
    prefix: &'static str,
    /// `None` where the registry has no such key; then nobody can ask for it.
    parent_id: Option<Key>,
    /// What the registry calls the id.
    id: Arc<str>,
}

impl FanOut {
    pub(crate) fn make(params: Params, prefix: &'static str, cx: &LinkContext<'_>) -> FanOut {
        let params = Params { carry: cx.carried(params.carry), ..params };
        FanOut { params, prefix, parent_id: cx.key(PARENT_ID), id: cx.field(Key::ID).name }
    }

    /// The lists that it reads.
    pub(crate) fn layout(&self, registry: &Registry) -> StoredLayout<'_> {
        let id = id_field(registry);
        StoredLayout {
            endpoint: self.params.endpoint.0,
            keys: KeyPattern::of_prefix(self.prefix, registry),
            read: KeyedRead::List(self.params.fanout.count(&[])),
            inspect: Box::new(move |replies, at, found| Misreads(found).ids(&id, replies.items(at).flatten())),
        }
    }

    /// Where its rows come from.
    pub(crate) fn row_source(&self) -> RowSource<'_> {
        RowSource::Stored(StoredElements {
            endpoint: self.params.endpoint.0,
            key: ElementKey::Prefix(self.prefix),
            elements: Elements::List,
            fanout: self.params.fanout,
        })
    }

    /// Reads the lists of all rows in one step.
    pub(crate) async fn read(&self, rows: &RowSet, cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let parents: Vec<i64> = rows.ids().collect();
        if parents.is_empty() {
            return Ok(cx.no_rows());
        }
        let Params { endpoint, fanout, carry } = &self.params;
        let keys = cx.keys(self.prefix, &parents)?;
        let replies = cx.keyed(*endpoint).list_head(keys.keys(), fanout.count(cx.dials())).await?;
        cx.keyed(*endpoint).count_unread(&self.id, replies.skipped());
        let counts = (0..parents.len()).map(|at| replies.ids(at).len());
        let column = self.parent_id.map(|key| (key, parent_column(&parents, counts, cx.id_texts())));
        let came_from = carry.as_ref().map(|_| {
            let parents = rows.rows().iter().enumerate();
            parents.flat_map(|(at, row)| std::iter::repeat_n(row as u32, replies.ids(at).len())).collect::<Vec<u32>>()
        });
        let batch = cx.batch(replies.into_ids());
        let batch = match column {
            Some((key, column)) => batch.with(key, Arc::new(column)),
            None => batch,
        };
        Ok(RowSet::new(match carry.as_ref().zip(came_from) {
            Some((keys, came_from)) => with_carried(batch, rows, &came_from, keys, Stop::default())?,
            None => batch,
        }))
    }
}

/// New rows with columns of the rows that they came from: `came_from` has a stored row of `parents` for each.
pub(crate) fn with_carried(
    mut batch: Batch,
    parents: &RowSet,
    came_from: &[u32],
    keys: &[Key],
    stop: Stop<'_>,
) -> Result<Batch, Stopped> {
    for key in keys {
        // Where no input has the column in this run, it is null here as there.
        if let Some(column) = pick(parents.batch(), *key, came_from, stop)? {
            batch = batch.with(*key, Arc::new(column));
        }
    }
    Ok(batch)
}

/// Each parent as often as it has rows.
pub(crate) fn parent_column(
    parents: &[i64],
    counts: impl Iterator<Item = usize>,
    texts: Option<&Arc<IdTexts>>,
) -> Column {
    let Some(texts) = texts else {
        let ids = parents.iter().zip(counts).flat_map(|(parent, count)| std::iter::repeat_n(*parent, count));
        return Column::Int(Cells::full(ids.collect()));
    };
    let mut names = DictionaryBuilder::default();
    let codes = parents.iter().zip(counts).flat_map(|(parent, count)| {
        let code = if count > 0 { names.code(texts.text(*parent)) } else { 0 };
        std::iter::repeat_n(code, count)
    });
    let codes = Cells::full(codes.collect());
    Column::Str(codes, Arc::new(names.finish()))
}
