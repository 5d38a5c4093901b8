//! What `follow`, `recommendation` and `media` have in common: for each row a list of ids, which become new rows.

use rankd_column::{Batch, Cells, Column, Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::store::{ReadBatch, Verb};
use rankd_engine::task::{Args, FetchContext};
use rankd_plan::signature::*;
use std::sync::Arc;

/// What all three declare.
pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::FanOut,
    reads: &[],
    writes: Writes::Named(&["parent_id"]),
    params: &[
        Param {
            name: "endpoint",
            kind: ParamKind::Endpoint("redis"),
            need: Need::Required,
            doc: "Where the lists are",
        },
        Param {
            name: "fanout",
            kind: ParamKind::Int { min: 1, max: 10_000 },
            need: Need::Default(Literal::Int(100)),
            doc: "How many ids to read for each input row",
        },
    ],
    runs: Runs::Loop,
    cost: Cost::Unknown,
};

pub(crate) struct FanOut {
    endpoint: u32,
    prefix: &'static str,
    fanout: usize,
    /// `None` where the registry has no such key; then nobody can ask for it.
    parent_id: Option<Key>,
}

impl FanOut {
    pub(crate) fn make(args: &Args<'_>, prefix: &'static str) -> FanOut {
        let parent_id = args.registry.keys.named("parent_id").map(Key);
        FanOut { endpoint: args.endpoint("endpoint"), prefix, fanout: args.count("fanout"), parent_id }
    }

    /// Reads the lists of all rows in one step.
    pub(crate) async fn read(&self, rows: &RowSet, cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let parents: Vec<i64> = rows.ids().collect();
        if parents.is_empty() {
            return Ok(RowSet::empty());
        }
        let step = ReadBatch { verb: Verb::ListHead(self.fanout), prefix: self.prefix, ids: &parents };
        let replies = cx.read(self.endpoint, step).await?;
        cx.count_skipped(replies.skipped());
        let lists = parents.iter().enumerate().map(|(at, parent)| (replies.ids(at).len(), *parent));
        let parent_ids = lists.flat_map(|(count, parent)| std::iter::repeat_n(parent, count)).collect();
        let batch = Batch::new(replies.into_ids());
        Ok(RowSet::new(match self.parent_id {
            Some(key) => batch.with(key, Arc::new(Column::Int(Cells::full(parent_ids)))),
            None => batch,
        }))
    }
}
