//! Add columns read from what is stored for each row.
//!
//! With `prefix`, the fields `keys` of the hash `{prefix}:{id}`. With `key`, a template that is filled in for each row, what is stored
//! under that key: the `fields` of a hash or of a JSON document, or one value for `out_key`: a string, a vector as raw numbers, or a
//! list, a set or a sorted set as a list. Sets are ordered by their elements, sorted sets by score. Each distinct key is read
//! once. What is missing is the key's default, or null; a list, a set or a sorted set that is missing is the empty list. So is
//! nothing read where something in the template is null. A value that is not of its key's type, or a key that holds something
//! else than `from` says, is null and counted; with `prefix`, the latter fails the node. From a table, the `fields` of the row whose id
//! is that of the row, or its key `on`. Empty input: no reads. Cost: one read for each key, all in one round trip.
//!
//! ```text
//! with {"endpoint": "redis_default", "key": "movie:{id}", "from": "hash", "fields": {"nation": "country", "years": "age"}}
//! store {"key": "movie:1", "hash": {"nation": "DE", "years": "x"}}
//! store {"key": "movie:2", "hash": {"years": 30}}
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
//!
//! ```text
//! with {"endpoint": "example_table", "fields": {"title": "title", "likes": "views"}}
//! table
//! | id | title | likes |
//! | 7 | Alpha | 3 |
//! | 3 | | 9 |
//! given
//! | id |
//! | 3 |
//! | 8 |
//! | 7 |
//! gives
//! | id | title | views |
//! | 3 | | 9 |
//! | 8 | | |
//! | 7 | Alpha | 3 |
//! ```

use crate::cells::{push_list, sorted};
use crate::data_endpoint::DataEndpoint;
use crate::json_fields::{JsonFields, push_json};
use crate::misread::Misreads;
use crate::row_keys::{NO_KEY, RowKeys, fill};
use crate::stored::ScoreOrder;
use crate::table_hydrate::TableHydrate;
use crate::table_rows;
use rankd_column::column::ColumnBuilder;
use rankd_column::value::ELEMENTS_MAX;
use rankd_column::{Key, RowSet, Stop, Stopped, Type};
use rankd_engine::decode::{push_text, push_vector_f32};
use rankd_engine::error::TaskError;
use rankd_engine::store::{KeyedEndpoint, KeyedRead, Replies};
use rankd_engine::task::{
    self, Decide, Decoding, Fetch, FetchContext, Field, Inspect, KeyPattern, LinkContext, Load, StoredLayout, Unread,
};
use rankd_plan::signature::typed::{KeyMap, PlainText, TemplateText};
use rankd_plan::signature::*;
use rankd_plan::template::Template;
use rankd_plan::{Registry, choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[Params::on],
    writes: Writes::Params(&[Params::keys, Params::fields, Params::out_key]),
    params: Params::PARAMS,
    cost: Cost::Unknown,
};

choices! {
    /// What is stored under a key.
    pub(crate) enum From -> Stored {
        "hash" => Stored::Hash,
        "json" => Stored::Json,
        "string" => Stored::Text,
        "vector_f32" => Stored::VectorF32,
        "list" => Stored::List,
        "set" => Stored::Set,
        "zset" => Stored::SortedSet,
    }
}

choices! {
    /// How vectors are written in hash fields: whether as raw numbers.
    pub(crate) enum Vectors -> bool { "json" => false, "f32" => true }
}

params! {
    pub(crate) struct Params {
        /// Where the data is
        endpoint: DataEndpoint,
        /// What stands before the id in the hash's name, such as user or media
        #[needed(endpoint: "redis", from: "")]
        prefix: Option<PlainText>,
        /// The fields to read, each named as its key
        #[needed(endpoint: "redis", from: "")]
        keys: Option<Vec<Key>>,
        /// The key that is read for a row, such as movie:{id}
        #[needed(endpoint: "redis", from: "hash" | "json" | "string" | "vector_f32" | "list" | "set" | "zset")]
        key: Option<TemplateText>,
        /// What is stored under the key
        #[only(endpoint: "redis")]
        from: Option<From>,
        /// The keys to write, by the hash field, the JSON member or pointer, or the table's column that they come from
        #[needed(from: "hash" | "json")]
        #[needed(endpoint: "table")]
        fields: Option<KeyMap>,
        /// The key to write the one value to
        #[needed(from: "string")]
        #[needed(from: "vector_f32"; Vectors)]
        #[needed(from: "list" | "set" | "zset"; Lists)]
        out_key: Option<Key>,
        /// How vectors are written in the hash: as JSON arrays, or as raw little-endian f32
        #[only(endpoint: "redis", from: "" | "hash")]
        vectors: Option<Vectors>,
        /// From which end of the scores the sorted set is read; asc when not given
        #[only(from: "zset")]
        order: Option<ScoreOrder>,
        /// The key of the row that is matched with the table's id; id when not given
        #[only(endpoint: "table")]
        on: Option<Key>,
    }
}

/// What is stored under a key, as a plan says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Hash,
    Json,
    Text,
    VectorF32,
    List,
    Set,
    SortedSet,
}

/// Reading a value takes about as long as so many rows take where they are columns.
const AS_ROWS: usize = 16;

pub(crate) enum Task {}

impl Decide for Task {
    type Params = Params;

    fn decide(params: Params, cx: &LinkContext<'_>) -> task::Task {
        if let Some(table) = params.endpoint.table(cx) {
            let fields = table_rows::columns(&params.fields.unwrap_or_default(), cx);
            return task::Task::Compute(Arc::new(TableHydrate::make(table, params.on, fields, cx)));
        }
        task::Task::Fetch(Arc::new(Hydrate::make(params, cx)))
    }
}

struct Hydrate {
    endpoint: KeyedEndpoint,
    keys: KeysFrom,
    decoder: Arc<Decoder>,
    decoding: Decoding,
}

enum KeysFrom {
    Prefix(Arc<str>),
    Template(Arc<Template>),
}

/// Makes columns of what was read.
struct Decoder {
    what: What,
    /// The keys that are written, in the order of what is read.
    fields: Vec<Field>,
}

enum What {
    Hash { names: Vec<Arc<str>>, vectors_f32: bool },
    Json(JsonFields),
    Text,
    VectorF32,
    List,
    Set,
    SortedSet { descending: bool },
}

impl Hydrate {
    fn make(params: Params, cx: &LinkContext<'_>) -> Hydrate {
        let Params {
            endpoint: DataEndpoint(endpoint), prefix, keys, key, from, fields, out_key, vectors, order, ..
        } = params;
        let vectors_f32 = vectors == Some(true);
        let field = |key: &Key| cx.field(*key);
        let (names, keys): (Vec<Arc<str>>, Vec<Field>) = match (fields, keys, out_key) {
            (Some(fields), ..) => fields.iter().map(|(name, key)| (name.clone(), field(key))).unzip(),
            (None, Some(keys), _) => keys.iter().map(|key| (field(key).name, field(key))).unzip(),
            (None, None, key) => (Vec::new(), key.iter().map(field).collect()),
        };
        let what = match from {
            None | Some(Stored::Hash) => What::Hash { names, vectors_f32 },
            Some(Stored::Json) => What::Json(JsonFields::new(names.iter().map(|name| &**name))),
            Some(Stored::Text) => What::Text,
            Some(Stored::VectorF32) => What::VectorF32,
            Some(Stored::List) => What::List,
            Some(Stored::Set) => What::Set,
            Some(Stored::SortedSet) => What::SortedSet { descending: order == Some(true) },
        };
        let per_row_ns = if matches!(what, What::Json(_)) { 60.0 } else { 25.0 };
        Hydrate {
            endpoint: KeyedEndpoint(endpoint),
            // The checks see to it that one of them is there.
            keys: match key {
                Some(template) => KeysFrom::Template(template),
                None => KeysFrom::Prefix(prefix.unwrap_or_default()),
            },
            decoder: Arc::new(Decoder { what, fields: keys }),
            decoding: cx.decoding(Cost::About { fixed_ns: 300.0, per_row_ns }),
        }
    }
}

impl Fetch for Hydrate {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let rows = &inputs[0];
        if rows.is_empty() {
            return Ok(rows.clone());
        }
        let store = cx.keyed(self.endpoint);
        let (replies, of_row) = match &self.keys {
            KeysFrom::Prefix(prefix) => {
                let ids: Vec<i64> = rows.ids().collect();
                let keys = cx.keys(prefix, &ids)?;
                (store.read_strictly(self.decoder.what.read(), keys.keys()).await?, None)
            }
            KeysFrom::Template(template) => {
                let RowKeys { keys, of_row } = fill(template, Some(rows), cx)?;
                (store.read(self.decoder.what.read(), keys.keys()).await?, Some(of_row))
            }
        };
        let load = Load { rows: rows.len() * self.decoder.fields.len(), bytes: replies.byte_count() };
        let (decoder, rows) = (self.decoder.clone(), rows.clone());
        let work =
            move |unread: &mut Unread, stop: Stop<'_>| decoder.add(&rows, &replies, of_row.as_deref(), unread, stop);
        cx.decode(&self.decoding, self.endpoint.0, load, work).await
    }

    fn layout(&self, registry: &Registry) -> Option<StoredLayout<'_>> {
        let keys = match &self.keys {
            KeysFrom::Prefix(prefix) => KeyPattern::of_prefix(prefix, registry),
            KeysFrom::Template(template) => KeyPattern::of(template, registry),
        };
        let inspect: Inspect<'_> = Box::new(|replies, at, found| self.decoder.inspect(replies, at, Misreads(found)));
        Some(StoredLayout { endpoint: self.endpoint.0, keys, read: self.decoder.what.read(), inspect })
    }
}

impl What {
    fn read(&self) -> KeyedRead<'_> {
        match self {
            What::Hash { names, .. } => KeyedRead::HashFields(names),
            What::Json(_) | What::Text | What::VectorF32 => KeyedRead::Text,
            // One more than a list may have, so that a longer one is noticed.
            What::List => KeyedRead::List(ELEMENTS_MAX + 1),
            What::Set => KeyedRead::Set,
            What::SortedSet { descending } => KeyedRead::SortedSet { count: ELEMENTS_MAX + 1, descending: *descending },
        }
    }
}

impl Decoder {
    /// The rows with the columns. `of_row` has the place of each row's key; without it, each row has its own, in order.
    fn add(
        &self,
        rows: &RowSet,
        replies: &Replies,
        of_row: Option<&[u32]>,
        unread: &mut Unread,
        stop: Stop<'_>,
    ) -> Result<RowSet, TaskError> {
        // A column is as long as the batch; rows outside the view get nothing.
        let mut places = vec![NO_KEY; rows.batch().len()];
        for (at, row) in rows.rows().iter().enumerate() {
            places[row] = of_row.map_or(at as u32, |of_row| of_row[at]);
        }
        let item = |key: usize, field: usize| replies.items(key).nth(field).flatten();
        let each = |column: &mut ColumnBuilder, push: &mut dyn FnMut(&mut ColumnBuilder, usize) -> bool| {
            let (mut bad, mut looks) = (0, stop.looks());
            for place in &places {
                looks.before(AS_ROWS)?;
                match *place {
                    NO_KEY => column.push_null(),
                    key if replies.is_wrong_type(key as usize) => {
                        column.push_null();
                        bad += 1;
                    }
                    key => bad += u64::from(!push(column, key as usize)),
                }
            }
            Ok::<u64, Stopped>(bad)
        };
        let documents = match &self.what {
            What::Json(fields) => Some(Documents::read(fields, replies, stop)?),
            _ => None,
        };
        let type_of = self.fields.first().filter(|_| matches!(self.what, What::Set)).map(|field| field.type_of);
        let sets = type_of.map(|type_of| sorted_sets(replies, type_of, stop)).transpose()?;
        let mut hydrated = rows.clone();
        for (at, field) in self.fields.iter().enumerate() {
            let mut column = ColumnBuilder::new(field.type_of, places.len());
            let mut skipped = 0;
            let bad = match &self.what {
                What::Hash { vectors_f32, .. } => {
                    let push = push_of(*vectors_f32, field.type_of);
                    each(&mut column, &mut |column, key| push_or_null(column, item(key, at), push))
                }
                What::Json(_) => each(&mut column, &mut |column, key| match &documents {
                    Some(documents) => documents.push(column, key, at),
                    None => false,
                }),
                What::Text => each(&mut column, &mut |column, key| push_or_null(column, item(key, 0), push_text)),
                What::VectorF32 => {
                    each(&mut column, &mut |column, key| push_or_null(column, item(key, 0), push_vector_f32))
                }
                What::List => {
                    each(&mut column, &mut |column, key| push_list(column, replies.items(key).flatten(), &mut skipped))
                }
                What::Set => each(&mut column, &mut |column, key| match &sets {
                    Some(sets) => push_list(column, sets[key].iter().copied(), &mut skipped),
                    None => false,
                }),
                // Members and scores in turn.
                What::SortedSet { .. } => each(&mut column, &mut |column, key| {
                    push_list(column, replies.items(key).step_by(2).flatten(), &mut skipped)
                }),
            }?;
            unread.count(&field.name, bad + skipped);
            hydrated = hydrated.with(field.key, Arc::new(column.finish()));
        }
        Ok(hydrated)
    }
}

impl Decoder {
    /// Names the values of a reply that become null, or are left out of a list.
    fn inspect(&self, replies: &Replies, key: usize, mut found: Misreads<'_>) {
        let items = || replies.items(key);
        let text = || items().next().flatten();
        let documents = match &self.what {
            // Nothing stops it.
            What::Json(fields) => Documents::read(fields, replies, Stop::default()).ok(),
            _ => None,
        };
        for (at, field) in self.fields.iter().enumerate() {
            match &self.what {
                What::Hash { vectors_f32, .. } => {
                    found.value(field, items().nth(at).flatten(), push_of(*vectors_f32, field.type_of));
                }
                What::Json(_) => match &documents {
                    Some(documents) if !documents.bad[key] => found.json(field, documents.get(key, at)),
                    _ => found.add(field, text().unwrap_or_default()),
                },
                What::Text => found.value(field, text(), push_text),
                What::VectorF32 => found.value(field, text(), push_vector_f32),
                What::List | What::Set => found.elements(field, items().flatten()),
                What::SortedSet { .. } => found.elements(field, items().step_by(2).flatten()),
            }
        }
    }
}

/// How a field of a hash is read.
fn push_of(vectors_f32: bool, type_of: Type) -> fn(&mut ColumnBuilder, &[u8]) -> bool {
    if vectors_f32 && matches!(type_of, Type::Vector(_)) { push_vector_f32 } else { push_text }
}

fn push_or_null(column: &mut ColumnBuilder, value: Option<&[u8]>, push: fn(&mut ColumnBuilder, &[u8]) -> bool) -> bool {
    match value {
        Some(value) => push(column, value),
        None => {
            column.push_null();
            true
        }
    }
}

/// The members of each set, in order.
fn sorted_sets<'r>(replies: &'r Replies, type_of: Type, stop: Stop<'_>) -> Result<Vec<Vec<&'r [u8]>>, Stopped> {
    let (mut sets, mut looks) = (Vec::with_capacity(replies.len()), stop.looks());
    for key in 0..replies.len() {
        looks.before(AS_ROWS * (1 + replies.items(key).len()))?;
        sets.push(sorted(replies.items(key).flatten(), type_of));
    }
    Ok(sets)
}

/// The fields of each document, as JSON texts.
struct Documents<'r> {
    /// A document after the other.
    fields: Vec<Option<&'r str>>,
    count: usize,
    /// What is stored under these keys is not JSON.
    bad: Vec<bool>,
}

impl<'r> Documents<'r> {
    fn read(fields: &JsonFields, replies: &'r Replies, stop: Stop<'_>) -> Result<Documents<'r>, Stopped> {
        let count = fields.len();
        let mut documents =
            Documents { fields: vec![None; count * replies.len()], count, bad: vec![false; replies.len()] };
        let mut looks = stop.looks();
        for key in 0..replies.len() {
            let Some(bytes) = replies.items(key).next().flatten() else { continue };
            looks.before(AS_ROWS.max(bytes.len()))?;
            let found = &mut documents.fields[key * count..(key + 1) * count];
            let read = std::str::from_utf8(bytes).ok().and_then(|text| fields.read(text, found).ok());
            if read.is_none() {
                found.fill(None);
                documents.bad[key] = true;
            }
        }
        Ok(documents)
    }

    fn get(&self, key: usize, field: usize) -> Option<&'r str> {
        self.fields[key * self.count + field]
    }

    fn push(&self, column: &mut ColumnBuilder, key: usize, field: usize) -> bool {
        match self.get(key, field) {
            Some(text) => push_json(column, text),
            None => {
                column.push_null();
                !self.bad[key]
            }
        }
    }
}
