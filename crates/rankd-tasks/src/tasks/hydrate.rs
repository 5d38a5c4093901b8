//! Add columns read from a hash of each row.
//!
//! For each row the fields `keys` of the hash `{prefix}:{id}`. A missing hash or field is the key's default, or null; so is a
//! value that is not of its key's type, which is counted, too. Empty input: no reads. Cost: one read a row, all in one round
//! trip.
//!
//! ```text
//! with {"endpoint": "redis_default", "prefix": "user", "keys": ["country", "age"]}
//! store {"key": "user:1", "hash": {"country": "DE", "age": "x"}}
//! store {"key": "user:2", "hash": {"age": 30}}
//! given
//! | id |
//! | 2 |
//! | 1 |
//! | 9 |
//! gives
//! | id | country | age |
//! | 2 | | 30 |
//! | 1 | DE | |
//! | 9 | | |
//! ```

use rankd_column::column::ColumnBuilder;
use rankd_column::{Key, RowSet, Type};
use rankd_engine::decode;
use rankd_engine::error::TaskError;
use rankd_engine::store::{KeyedEndpoint, Keys};
use rankd_engine::task::{Fetch, FetchContext, LinkContext, Make};
use rankd_plan::params;
use rankd_plan::signature::typed::PlainText;
use rankd_plan::signature::*;
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[],
    writes: Writes::Params(&[Params::keys]),
    params: Params::PARAMS,
    cost: Cost::Unknown,
};

params! {
    pub(crate) struct Params {
        /// Where the hashes are
        endpoint: KeyedEndpoint,
        /// What stands before the id in the hash's name, such as user or media
        prefix: PlainText,
        /// The fields to read
        keys: Vec<Key>,
    }
}

pub(crate) struct Task {
    endpoint: KeyedEndpoint,
    prefix: Arc<str>,
    keys: Vec<(Key, Type)>,
    names: Vec<Arc<str>>,
}

impl Make for Task {
    type Params = Params;

    fn make(Params { endpoint, prefix, keys }: Params, cx: &LinkContext<'_>) -> Task {
        let fields = keys.iter().map(|key| cx.field(*key));
        let (keys, names) = fields.map(|field| ((field.key, field.type_of), field.name)).unzip();
        Task { endpoint, prefix, keys, names }
    }
}

impl Fetch for Task {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let rows = &inputs[0];
        let ids: Vec<i64> = rows.ids().collect();
        if ids.is_empty() {
            return Ok(rows.clone());
        }
        let replies = cx
            .keyed(self.endpoint)
            .hash_fields(Keys::Numbered { prefix: &self.prefix, ids: &ids }, &self.names)
            .await?;
        // A column is as long as the batch; rows outside the view get nothing.
        let mut position = vec![None; rows.batch().len()];
        for (at, row) in rows.rows().iter().enumerate() {
            position[row] = Some(at);
        }
        let mut hydrated = rows.clone();
        for (field, (key, type_of)) in self.keys.iter().enumerate() {
            let mut column = ColumnBuilder::new(*type_of, position.len());
            for at in &position {
                match at.and_then(|at| replies.items(at).nth(field).flatten()) {
                    Some(value) if decode::push_text(&mut column, value) => {}
                    Some(_) => cx.count_skipped(1),
                    None => column.push_null(),
                }
            }
            hydrated = hydrated.with(*key, Arc::new(column.finish()));
        }
        Ok(hydrated)
    }
}
