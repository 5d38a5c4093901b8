//! Leave out the rows that other rows, a list or a store name.
//!
//! A row is left out if one of the keys of `by` is one of the ids: those of `rows`; those of the parameter `list` of the request, which may be
//! null and then has none; or the members of what an `endpoint` has under `key`, a template, where `from` is "set", "zset", or "bf" for a
//! Bloom filter. Exactly one of the three is given. Null is no id. The others stay in their order. A store is asked for the members by name, each once, and never
//! read whole; a missing key has no members, with a null in the template no row is left out for it, and a key that holds something else than `from` says is an error. The
//! embedded store answers "bf" from a set. Empty input: no rows, no reads. Cost: linear in the rows of both; columns are not copied. With an endpoint, one command for each
//! key and 5,000 members, all in one round trip.
//!
//! ```text
//! with {"rows": 1, "by": ["id", "parent_id"]}
//! given
//! | id | parent_id |
//! | 1 | 20 |
//! | 2 | 30 |
//! | 3 | |
//! | 4 | 40 |
//! given
//! | id |
//! | 30 |
//! | 4 |
//! gives
//! | id | parent_id |
//! | 1 | 20 |
//! | 3 | |
//! ```
//!
//! ```text
//! with {"endpoint": "redis_default", "key": "seen:{user_id}", "from": "zset", "by": ["id", "parent_id"]}
//! store {"key": "seen:1", "zset": [["30", 5], ["3", 0], ["50", 1]]}
//! given
//! | id | parent_id |
//! | 1 | 20 |
//! | 2 | 30 |
//! | 3 | |
//! | 4 | 40 |
//! gives
//! | id | parent_id |
//! | 1 | 20 |
//! | 4 | 40 |
//! ```

pub(crate) use crate::membership::CONTRACT;

use crate::membership::{self, Named, Params};
use rankd_engine::task::{self, Decide, LinkContext};

pub(crate) enum Task {}

impl Decide for Task {
    type Params = Params;

    fn decide(params: Params, cx: &LinkContext<'_>) -> task::Task {
        membership::decide(params, Named::Dropped, cx)
    }
}
