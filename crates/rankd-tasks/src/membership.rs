//! What `exclude` and `only` have in common: which rows are named by other rows, by a list of the request, or by what a store has.
//!
//! With rows or a list it is a computation, with an endpoint a read.

use crate::lacking::lacking_all;
use crate::row_keys::{NO_KEY, RowKeys, RowMembers, fill, members};
use rankd_column::kernel::gather::NO_ROW;
use rankd_column::kernel::join::{is_among, matches};
use rankd_column::{Key, RowSet, Stop, Stopped, Value};
use rankd_engine::error::TaskError;
use rankd_engine::store::{KeyedEndpoint, MemberOf};
use rankd_engine::task::{
    self, Compute, ComputeContext, Decoding, Fetch, FetchContext, InputRows, LinkContext, Load, Lost, LostRow,
};
use rankd_plan::signature::typed::{IdsParam, Input, KeysLikeIds, TemplateText};
use rankd_plan::signature::*;
use rankd_plan::template::Template;
use rankd_plan::{choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[Params::by],
    writes: Writes::Nothing,
    params: Params::PARAMS,
    cost: Cost::About { fixed_ns: 500.0, per_row_ns: 20.0 },
};

choices! {
    /// What is stored under the key.
    pub(crate) enum From -> MemberOf { "set" => MemberOf::Set, "zset" => MemberOf::SortedSet, "bf" => MemberOf::Filter }
}

params! {
    pub(crate) struct Params {
        /// The node whose ids are looked for: this, a list or an endpoint
        #[needed(list: "", endpoint: "")]
        rows: Option<Input>,
        /// The parameter of the request that has the ids
        #[only(rows: "", endpoint: "")]
        list: Option<IdsParam>,
        /// Where what has the ids is stored
        #[only(rows: "", list: "")]
        endpoint: Option<KeyedEndpoint>,
        /// The key that is asked, such as seen:{user_id}
        #[needed(endpoint: "redis")]
        key: Option<TemplateText>,
        /// What is stored there: a set, a sorted set or a Bloom filter
        #[needed(endpoint: "redis")]
        from: Option<From>,
        /// The keys in which the ids are looked for; the row's own id when not given
        by: Option<KeysLikeIds>,
    }
}

/// What becomes of the rows that are named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Kept,
    Dropped,
}

impl Named {
    fn lost(self, by: Vec<Key>, among: task::Among) -> Lost {
        match self {
            Named::Kept => Lost::NotNamed { by, among },
            Named::Dropped => Lost::Named { by, among },
        }
    }
}

/// The task for a node, by what it is given.
pub(crate) fn decide(params: Params, named: Named, cx: &LinkContext<'_>) -> task::Task {
    let Params { rows, list, endpoint, key, from, by } = params;
    let by = by.unwrap_or_else(|| vec![Key::ID]);
    if let (Some(endpoint), Some(template), Some(of)) = (endpoint, key, from) {
        let decoding = cx.decoding(Cost::About { fixed_ns: 300.0, per_row_ns: 3.0 });
        return task::Task::Fetch(Arc::new(Asked { endpoint, template, of, by, named, decoding }));
    }
    let among = match (rows, list) {
        (Some(rows), _) => Among::Rows(rows),
        (None, Some(list)) => Among::List(list),
        (None, None) => unreachable!("the checks want rows, a list or an endpoint"),
    };
    task::Task::Compute(Arc::new(Compared { among, by, named }))
}

/// Where the ids come from that need not be read.
enum Among {
    /// An input, by its position.
    Rows(usize),
    /// A parameter of the request.
    List(u32),
}

struct Compared {
    among: Among,
    by: Vec<Key>,
    named: Named,
}

impl Compute for Compared {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (rows, stop) = (&inputs[0], cx.stop());
        cx.count(|| (0, lacking_all(rows, &self.by)));
        let mut is_named = vec![false; rows.len()];
        for key in &self.by {
            let found: Vec<bool> = match self.among {
                Among::Rows(others) => {
                    cx.count_aside(inputs[others].len());
                    let found = matches(rows, *key, &inputs[others], Key::ID, stop)?;
                    found.into_iter().map(|other| other != NO_ROW).collect()
                }
                Among::List(list) => match cx.values.params.get(list as usize) {
                    Some(Value::List(list)) => is_among(rows, *key, list, stop)?,
                    // A list that is null has no ids.
                    _ => vec![false; rows.len()],
                },
            };
            is_named.iter_mut().zip(found).for_each(|(is_named, found)| *is_named |= found);
        }
        Ok(kept(rows, &is_named, self.named, stop)?)
    }

    fn why_lost(&self, _: &LostRow<'_>) -> Lost {
        let (by, among) = (
            self.by.clone(),
            match self.among {
                Among::Rows(rows) => task::Among::Input(rows),
                Among::List(list) => task::Among::Param(list),
            },
        );
        self.named.lost(by, among)
    }
}

fn kept(rows: &RowSet, is_named: &[bool], named: Named, stop: Stop<'_>) -> Result<RowSet, Stopped> {
    let mut positions = Vec::with_capacity(is_named.len());
    let mut start = 0;
    for chunk in stop.slices(is_named) {
        let chunk = chunk?;
        let kept = chunk.iter().enumerate().filter(|(_, is_named)| **is_named == (named == Named::Kept));
        positions.extend(kept.map(|(at, _)| start + at));
        start += chunk.len();
    }
    Ok(rows.positions(positions))
}

/// Asks a store.
struct Asked {
    endpoint: KeyedEndpoint,
    template: Arc<Template>,
    of: MemberOf,
    by: Vec<Key>,
    named: Named,
    decoding: Decoding,
}

impl Fetch for Asked {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let rows = &inputs[0];
        if rows.is_empty() {
            return Ok(rows.clone());
        }
        cx.count_lacking(|| lacking_all(rows, &self.by));
        let RowKeys { keys, of_row } = fill(&self.template, Some(rows), cx)?;
        let RowMembers { asked, of_cell } = members(rows, &self.by, &of_row)?;
        let is_there = cx.keyed(self.endpoint).members(self.of, &keys, asked).await?;
        let (rows, keys, named) = (rows.clone(), self.by.len(), self.named);
        let load = Load { rows: of_cell.len(), bytes: 0 };
        let work = move |_: &mut task::Unread, stop: Stop<'_>| {
            let is_named = |cells: &[u32]| cells.iter().any(|cell| *cell != NO_KEY && is_there[*cell as usize]);
            let is_named: Vec<bool> = of_cell.chunks(keys).map(is_named).collect();
            Ok(kept(&rows, &is_named, named, stop)?)
        };
        cx.decode(&self.decoding, self.endpoint.0, load, work).await
    }

    fn why_lost(&self, _: &LostRow<'_>) -> Lost {
        let stored = task::Among::Stored { endpoint: self.endpoint.0, key: self.template.clone() };
        self.named.lost(self.by.clone(), stored)
    }
}
