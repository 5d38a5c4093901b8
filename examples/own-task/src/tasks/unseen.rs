//! Drop the rows that the user has seen.
//!
//! The list `seen:{user_id}` has the ids, the latest first; the first `latest` of them count. The other rows stay in their order. A
//! user without a list has seen nothing. Empty input: no rows, no read. Cost: one read, and linear in rows.
//!
//! ```text
//! with {"endpoint": "main", "latest": 2}
//! store {"key": "seen:1", "list": [12, 14, 11]}
//! given
//! | id | score |
//! | 11 | 0.9 |
//! | 12 | 0.8 |
//! | 13 | 0.7 |
//! | 14 | 0.6 |
//! gives
//! | id | score |
//! | 11 | 0.9 |
//! | 13 | 0.7 |
//! ```

use rankd_column::RowSet;
use rankd_engine::error::TaskError;
use rankd_engine::store::KeyedEndpoint;
use rankd_engine::task::{Fetch, FetchContext};
use rankd_plan::params;
use rankd_plan::signature::typed::Count;
use rankd_plan::signature::*;
use std::collections::HashSet;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[],
    writes: Writes::Nothing,
    params: Task::PARAMS,
    cost: Cost::Unknown,
};

params! {
    pub(crate) struct Task {
        /// Where the lists are
        endpoint: KeyedEndpoint,
        /// How many of the ids that were seen last count
        #[range(1..=10_000)]
        latest: Count = 1000,
    }
}

impl Fetch for Task {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let rows = &inputs[0];
        if rows.is_empty() {
            return Ok(rows.clone());
        }
        let user = [cx.user_id()?];
        let keys = cx.keys("seen", &user)?;
        let replies = cx.keyed(self.endpoint).list_head(keys.keys(), self.latest).await?;
        cx.keyed(self.endpoint).count_unread(&"id".into(), replies.skipped());
        let seen: HashSet<i64> = replies.ids(0).iter().copied().collect();
        let ids = rows.batch().ids();
        let unseen = rows.rows().iter().filter(|row| !seen.contains(&ids[*row]));
        Ok(rows.looking_at(unseen.map(|row| row as u32).collect()))
    }
}
