//! Read rows, or columns for rows, from an HTTP service.
//!
//! Without an input, the rows of the answer in its order. With one, the rows of the input with the columns of `fields`, joined by id:
//! `body` sends their ids, or the rows with some keys, in one call for each `batch_max` rows, all at the same time. A row without an
//! answer, and a value that is not there, is the key's default, or null; so is a value that is not of its key's type, which is counted.
//! An item of the answer without an id is left out and counted. Where the path names a null, there is no call. Empty input: no call.
//! Cost: a round trip, and the reading of the answer.
//!
//! ```text
//! with {"endpoint": "service", "path": "/users/{user_id}/items", "rows": "/items", "fields": {"title": "title", "/stats/likes": "likes"}}
//! answer /users/1/items {"items": [{"id": 3, "title": "A", "stats": {"likes": 7}}, {"id": 2, "title": "B"}]}
//! gives
//! | id | title | likes |
//! | 3 | A | 7 |
//! | 2 | B | |
//! ```

use crate::json_rows::{JsonRows, NoRows};
use crate::service_call::{DotSegment, Path, write_ids, write_rows};
use bytes::Bytes;
use rankd_column::kernel::join::{by_stored_row, matches, pick};
use rankd_column::{Column, IdFault, IdTexts, Key, RowSet, Stop, Stopped};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::store::{Call, CallMethod, CallsEndpoint};
use rankd_engine::task::{Decoding, Fetch, FetchContext, Field, LinkContext, Load, Make, RowSource, Unread};
use rankd_plan::signature::typed::{Count, KeyMap, PathTemplate, Pointer};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::Optional,
    rows: RowEffect::Same,
    reads: &[Params::keys],
    writes: Writes::Params(&[Params::fields]),
    params: Params::PARAMS,
    cost: Cost::Unknown,
};

choices! {
    /// How to ask.
    pub(crate) enum Method -> CallMethod { "GET" => CallMethod::Get, "POST" => CallMethod::Post }
}

choices! {
    /// What to send along.
    pub(crate) enum Body -> Sent { "none" => Sent::Nothing, "ids" => Sent::Ids, "rows" => Sent::Rows }
}

#[derive(Clone, Copy)]
pub(crate) enum Sent {
    Nothing,
    Ids,
    Rows,
}

params! {
    pub(crate) struct Params {
        /// The service
        endpoint: CallsEndpoint,
        /// What follows the endpoint's url, such as /users/{user_id}/items?limit=50
        path: PathTemplate,
        /// How to ask
        method: Method = "GET",
        /// What a POST sends along: nothing, the ids of the input as {"ids":[…]}, or its rows as {"rows":[{"id":…},…]}
        #[only(method: "POST", input: "given")]
        body: Body = "none",
        /// The keys that rows are sent with
        #[needed(body: "rows")]
        keys: Option<Vec<Key>>,
        /// Where the rows are in the answer, as a member or JSON pointer; the answer itself by default
        rows: Option<Pointer>,
        /// Where the id is in each of them, as a member or JSON pointer; "id" by default
        id: Option<Pointer>,
        /// The keys to write, by the place of their value in a row of the answer: a member or a JSON pointer
        #[needed(input: "given")]
        #[only(input: "")]
        fields: Option<KeyMap>,
        /// The most rows that are sent in one call
        #[range(1..=10_000)]
        #[only(body: "ids" | "rows")]
        batch_max: Count = 1000,
    }
}

/// Calls of one step. A path that differs by row can make one for each.
const CALLS_MAX: usize = 1_000;

pub(crate) struct Task {
    endpoint: CallsEndpoint,
    path: Path,
    method: CallMethod,
    body: Sent,
    keys: Vec<Field>,
    batch_max: usize,
    answer: Arc<Answer>,
    decoding: Decoding,
}

/// What is known of the answer.
struct Answer {
    /// What the registry calls the endpoint.
    endpoint: String,
    /// Where the rows are.
    place: Arc<str>,
    rows: JsonRows,
    fields: Vec<Field>,
    /// What the registry calls the id.
    id: Arc<str>,
}

impl Make for Task {
    type Params = Params;

    fn make(params: Params, cx: &LinkContext<'_>) -> Task {
        let Params { endpoint, path, method, body, keys, rows, id, fields, batch_max } = params;
        let (place, named) = (rows.unwrap_or_default(), fields.unwrap_or_default());
        let fields: Vec<Field> = named.iter().map(|(_, key)| cx.field(*key)).collect();
        let places = named.iter().zip(&fields).map(|((place, _), field)| (&**place, field.key, field.type_of));
        let answer = Answer {
            endpoint: cx.registry.endpoints.get(endpoint.0).name.clone(),
            rows: JsonRows::new(&place, id.as_deref().unwrap_or("id"), places),
            place,
            fields,
            id: cx.field(Key::ID).name,
        };
        // A row has its id in every body.
        let keys = keys.unwrap_or_default().into_iter().filter(|key| *key != Key::ID);
        Task {
            endpoint,
            path: Path(path),
            method,
            body,
            keys: keys.map(|key| cx.field(key)).collect(),
            batch_max,
            answer: Arc::new(answer),
            decoding: cx.decoding(Cost::About { fixed_ns: 500.0, per_row_ns: 30.0 }),
        }
    }
}

impl Fetch for Task {
    fn row_source(&self) -> RowSource<'_> {
        RowSource::Service(self.endpoint.0)
    }

    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let rows = inputs.first();
        if let Some(rows) = rows.filter(|rows| rows.is_empty()) {
            return Ok(rows.clone());
        }
        let calls = match rows {
            Some(rows) => self.calls(rows, cx)?,
            None => self.fill(None, cx)?.map(|path| self.call(path, None)).into_iter().collect(),
        };
        let bodies = cx.calls(self.endpoint).call_all(calls).await?;
        let bytes = bodies.iter().flatten().map(Bytes::len).sum();
        let load = Load { rows: rows.map_or(0, RowSet::len), bytes };
        let (answer, rows, texts) = (self.answer.clone(), rows.cloned(), cx.id_texts().cloned());
        let work = move |unread: &mut Unread, stop: Stop<'_>| {
            let found = answer.read(&bodies, texts.as_ref(), unread, stop)?;
            Ok(match &rows {
                Some(rows) => answer.join(rows, &found, stop)?,
                None => found,
            })
        };
        cx.decode(&self.decoding, self.endpoint.0, load, work).await
    }
}

impl Task {
    fn call(&self, path: String, body: Option<Vec<u8>>) -> Call {
        Call { method: self.method, path, body: body.map(Bytes::from) }
    }

    fn fill(&self, row: Option<(&RowSet, usize)>, cx: &FetchContext<'_>) -> Result<Option<String>, TaskError> {
        let bad = |dots: DotSegment| {
            TaskError::new(codes::BAD_CALL_PATH, format!("the endpoint {:?}: {dots}", self.answer.endpoint))
        };
        self.path.fill(row, cx).map_err(bad)
    }

    /// The calls for rows, each id once.
    fn calls(&self, rows: &RowSet, cx: &FetchContext<'_>) -> Result<Vec<Call>, TaskError> {
        let mut calls = Vec::new();
        for (path, positions) in self.paths(rows, cx)? {
            match self.body {
                Sent::Nothing => calls.push(self.call(path, None)),
                Sent::Ids => calls.extend(
                    positions.chunks(self.batch_max).map(|of| self.call(path.clone(), Some(write_ids(rows, of)))),
                ),
                Sent::Rows => calls.extend(
                    positions
                        .chunks(self.batch_max)
                        .map(|of| self.call(path.clone(), Some(write_rows(rows, of, &self.keys)))),
                ),
            }
            if calls.len() > CALLS_MAX {
                let message =
                    format!("the rows need more than {CALLS_MAX} calls of the endpoint {:?}", self.answer.endpoint);
                return Err(TaskError::new(codes::TOO_MANY_CALLS, message));
            }
        }
        Ok(calls)
    }

    /// Every path, and the rows that it is for, in their order; rows with a null in their path are left out.
    fn paths(&self, rows: &RowSet, cx: &FetchContext<'_>) -> Result<Vec<(String, Vec<usize>)>, TaskError> {
        let mut seen = HashSet::with_capacity(rows.len());
        let first = rows.ids().enumerate().filter(|(_, id)| seen.insert(*id)).map(|(position, _)| position);
        if !self.path.differs_by_row() {
            return Ok(self.fill(None, cx)?.map(|path| (path, first.collect())).into_iter().collect());
        }
        let (mut paths, mut known) = (Vec::<(String, Vec<usize>)>::new(), HashMap::new());
        for position in first {
            let Some(path) = self.fill(Some((rows, position)), cx)? else { continue };
            let at = *known.entry(path).or_insert_with_key(|path: &String| {
                paths.push((path.clone(), Vec::new()));
                paths.len() - 1
            });
            paths[at].1.push(position);
        }
        Ok(paths)
    }
}

impl Answer {
    /// The rows of all bodies.
    fn read(
        &self,
        bodies: &[Option<Bytes>],
        texts: Option<&Arc<IdTexts>>,
        unread: &mut Unread,
        stop: Stop<'_>,
    ) -> Result<RowSet, TaskError> {
        let mut read = self.rows.begin(texts);
        for body in bodies.iter().flatten() {
            self.rows.read(body, &mut read, stop).map_err(|why| self.wrong(&why))?;
        }
        unread.count(&self.id, read.nameless());
        self.fields.iter().zip(read.misfits()).for_each(|(field, misfits)| unread.count(&field.name, *misfits));
        Ok(self.rows.finish(read))
    }

    /// The rows of the input with the columns of those that were found.
    fn join(&self, rows: &RowSet, found: &RowSet, stop: Stop<'_>) -> Result<RowSet, Stopped> {
        let matched = by_stored_row(rows, matches(rows, Key::ID, found, Key::ID, stop)?, stop)?;
        let mut joined = rows.clone();
        for Field { key, type_of, .. } in &self.fields {
            let column = pick(found.batch(), *key, &matched, stop)?;
            joined = joined.with(*key, Arc::new(column.unwrap_or_else(|| Column::nulls(*type_of, matched.len()))));
        }
        Ok(joined)
    }

    fn wrong(&self, why: &NoRows) -> TaskError {
        let answer = format!("the answer of the endpoint {:?}", self.endpoint);
        match why {
            NoRows::NotUtf8 | NoRows::NotJson(_) => {
                TaskError::new(codes::ANSWER_NOT_JSON, format!("{answer} is not JSON: {why}"))
            }
            NoRows::NotThere => {
                TaskError::new(codes::WRONG_ANSWER, format!("{answer} has no array at {:?}", self.place))
            }
            NoRows::TooMany => TaskError::new(codes::ANSWER_TOO_LARGE, format!("{answer} is too large: {why}")),
            NoRows::TooManyIds => TaskError::id(IdFault::TooMany),
            NoRows::Stopped => TaskError::stopped(),
        }
    }
}
