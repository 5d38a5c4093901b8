//! Read the requesting user's profile, as one row.
//!
//! The hash `user:{user_id}`: one row whose id is the user's, with a column for each field that is a registered key, typed by the
//! registry. A value that is not of its key's type is null and counted; an unregistered field is passed over. A missing hash still
//! gives the one row. Cost: one read.
//!
//! ```text
//! with {"endpoint": "redis_default"}
//! store {"key": "user:1", "hash": {"country": "DE", "age": "old", "shoe_size": 44}}
//! gives
//! | id | country | age |
//! | 1 | DE | |
//! ```

use crate::misread::Misreads;
use rankd_column::column::ColumnBuilder;
use rankd_column::{RowSet, Stop};
use rankd_engine::decode;
use rankd_engine::error::TaskError;
use rankd_engine::store::{KeyedEndpoint, KeyedRead};
use rankd_engine::task::{
    Decoding, Fetch, FetchContext, Field, Inspect, KeyPattern, LinkContext, Load, Make, RowSource, StoredLayout, Unread,
};
use rankd_plan::signature::*;
use rankd_plan::{Registry, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::AnyKey,
    params: Params::PARAMS,
    cost: Cost::Unknown,
};

/// What stands before the user's id in the hash's name.
const PREFIX: &str = "user";

params! {
    pub(crate) struct Params {
        /// Where the profiles are
        endpoint: KeyedEndpoint,
    }
}

pub(crate) struct Task {
    endpoint: KeyedEndpoint,
    fields: Arc<[Field]>,
    decoding: Decoding,
}

impl Make for Task {
    type Params = Params;

    fn make(params: Params, cx: &LinkContext<'_>) -> Task {
        let decoding = cx.decoding(Cost::About { fixed_ns: 300.0, per_row_ns: 25.0 });
        Task { endpoint: params.endpoint, fields: cx.stored_fields().into(), decoding }
    }
}

impl Fetch for Task {
    async fn run(&self, _: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let user = [cx.user_id()?];
        let keys = cx.keys(PREFIX, &user)?;
        let replies = cx.keyed(self.endpoint).hash_all(keys.keys()).await?;
        let (mut batch, fields) = (cx.batch(user.to_vec()), self.fields.clone());
        let load = Load { rows: replies.items(0).len(), bytes: replies.byte_count() };
        let work = move |unread: &mut Unread, _: Stop<'_>| {
            let mut items = replies.items(0);
            while let (Some(name), Some(value)) = (items.next(), items.next()) {
                let (Some(name), Some(value)) = (name, value) else { continue };
                let Some(field) = fields.iter().find(|field| field.name.as_bytes() == name) else { continue };
                let mut column = ColumnBuilder::new(field.type_of, 1);
                unread.count(&field.name, u64::from(!decode::push_text(&mut column, value)));
                batch = batch.with(field.key, Arc::new(column.finish()));
            }
            Ok(RowSet::new(batch))
        };
        cx.decode(&self.decoding, self.endpoint.0, load, work).await
    }

    fn layout(&self, registry: &Registry) -> Option<StoredLayout<'_>> {
        let inspect: Inspect<'_> = Box::new(|replies, at, found| {
            let mut items = replies.items(at);
            while let (Some(name), Some(value)) = (items.next(), items.next()) {
                let field = self.fields.iter().find(|field| name == Some(field.name.as_bytes()));
                field.into_iter().for_each(|field| Misreads(found).value(field, value, decode::push_text));
            }
        });
        let keys = KeyPattern::of_prefix(PREFIX, registry);
        Some(StoredLayout { endpoint: self.endpoint.0, keys, read: KeyedRead::HashAll, inspect })
    }

    fn row_source(&self) -> RowSource<'_> {
        RowSource::User
    }
}
