//! Read a collection and make rows of its elements.
//!
//! `key` is a template, filled in for each input row, or once where there is no input: then the task is a source. What is stored
//! under the key is a `list` of ids, in its order; a `set`, in the order of the ids; a `zset`, in the order of the scores, which
//! `score_key` gets; a `hash` whose fields are ids, in their order, and whose values `value_key` gets; or a `json` document with an array
//! `rows`, whose elements have an `id` and `fields`. At most `fanout` elements of each are read. With an input, each new row
//! remembers in `parent_id` which row it came from, and gets the keys that `carry` names; other columns do not come along. Each distinct key is read once. A missing key, a
//! null in the template, or a key that holds something else than `from` says, gives no rows; the latter is counted, and so is an element
//! that is no id, which is left out, and a value that is not of its key's type, which is null. From a table, the `rows` whose key
//! matches. Empty input: no rows, no reads. Cost: one read for each key, all in one round trip.
//!
//! ```text
//! with {"endpoint": "redis_default", "key": "user:{user_id}:history", "from": "zset", "order": "desc", "score_key": "score", "fanout": 3}
//! store {"key": "user:1:history", "zset": [["11", 5], ["x", 4], ["12", 1.5], ["13", 1]]}
//! gives
//! | id | score |
//! | 11 | 5.0 |
//! | 12 | 1.5 |
//! ```
//!
//! ```text
//! with {"endpoint": "example_table", "from": "rows", "on": {"left": "likes", "right": "likes"}, "fields": {"title": "title"}, "carry": ["likes"], "fanout": 1}
//! table
//! | id | title | likes |
//! | 7 | Alpha | 3 |
//! | 3 | Beta | 9 |
//! | 4 | Gamma | 9 |
//! given
//! | id | likes |
//! | 1 | 9 |
//! | 2 | |
//! gives
//! | id | title | likes | parent_id |
//! | 3 | Beta | 9 | 1 |
//! ```

use crate::data_endpoint::DataEndpoint;
use crate::fan_out::{PARENT_ID, parent_column, with_carried};
use crate::json_fields::{JsonFields, elements, push_json};
use crate::misread::{Misreads, id_field, texts};
use crate::row_keys::{NO_KEY, RowKeys, fill};
use crate::stored::{IdReader, ScoreOrder, push_score};
use crate::table_expand::TableExpand;
use crate::table_rows;
use rankd_column::column::ColumnBuilder;
use rankd_column::{Batch, IdTexts, Key, RowSet, Stop};
use rankd_engine::decode::push_text;
use rankd_engine::error::TaskError;
use rankd_engine::store::{KeyedEndpoint, KeyedRead, Replies};
use rankd_engine::task::{
    self, Decide, Decoding, ElementKey, Elements, Fetch, FetchContext, Field, Inspect, KeyPattern, LinkContext, Load,
    RowSource, StoredElements, StoredLayout, Unread,
};
use rankd_plan::signature::typed::{Dial, KeyMap, On, Pointer, TemplateText};
use rankd_plan::signature::*;
use rankd_plan::template::Template;
use rankd_plan::{Registry, choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::Optional,
    rows: RowEffect::FanOut,
    reads: &[Params::on, Params::carry],
    writes: Writes::Named(&[PARENT_ID], &[Params::score_key, Params::value_key, Params::fields, Params::carry]),
    params: Params::PARAMS,
    cost: Cost::Unknown,
};

choices! {
    /// What is stored under a key.
    pub(crate) enum From -> Collection {
        "list" => Collection::List,
        "set" => Collection::Set,
        "zset" => Collection::SortedSet,
        "hash" => Collection::Hash,
        "json" => Collection::Json,
        "rows" => Collection::Rows,
    }
}

params! {
    pub(crate) struct Params {
        /// Where the data is
        endpoint: DataEndpoint,
        /// What is read: what is stored under the key, or rows of a table
        #[only(endpoint: "redis", from: "list" | "set" | "zset" | "hash" | "json")]
        #[only(endpoint: "table", from: "rows")]
        from: From,
        /// The key that is read, such as user:{user_id}:history
        #[needed(from: "list" | "set" | "zset" | "hash" | "json")]
        key: Option<TemplateText>,
        /// How many elements to read for each input row
        #[range(1..=10_000)]
        fanout: Dial = 100,
        /// From which end of the scores the sorted set is read; asc when not given
        #[only(from: "zset")]
        order: Option<ScoreOrder>,
        /// The key that gets the scores
        #[only(from: "zset"; Numbers)]
        score_key: Option<Key>,
        /// The key that gets the values of the hash
        #[only(from: "hash")]
        value_key: Option<Key>,
        /// Where in the document the array is: a member or a JSON pointer; the document itself when not given
        #[only(from: "json")]
        rows: Option<Pointer>,
        /// Where in an element of the array its id is: a member or a JSON pointer; id when not given
        #[only(from: "json")]
        id: Option<Pointer>,
        /// The keys to write, by the member or JSON pointer, or the table's column, that they come from
        #[only(from: "json" | "rows")]
        fields: Option<KeyMap>,
        /// The key of the input row and the key of the table's rows that are matched
        #[needed(from: "rows")]
        on: Option<On>,
        /// The keys of the input row that each new row gets, too
        carry: Option<Vec<Key>>,
    }
}

/// What is read, as a plan says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collection {
    List,
    Set,
    SortedSet,
    Hash,
    Json,
    Rows,
}

/// Reading a value takes about as long as so many rows take where they are columns.
const AS_ROWS: usize = 16;

pub(crate) enum Task {}

impl Decide for Task {
    type Params = Params;

    fn decide(params: Params, cx: &LinkContext<'_>) -> task::Task {
        if let (Some(table), Some(on)) = (params.endpoint.table(cx), params.on) {
            let fields = params.fields.map(|fields| table_rows::columns(&fields, cx));
            let expand = TableExpand::make(table, on, params.fanout, fields, params.carry, cx);
            return task::Task::Compute(Arc::new(expand));
        }
        task::Task::Fetch(Arc::new(Expand::make(params, cx)))
    }
}

struct Expand {
    endpoint: KeyedEndpoint,
    template: Arc<Template>,
    decoder: Arc<Decoder>,
    decoding: Decoding,
}

/// Makes rows of what was read.
struct Decoder {
    what: What,
    fanout: Dial,
    /// The keys that are written besides, in the order of an element's cells.
    fields: Vec<Field>,
    /// `None` where the registry has no such key; then nobody can ask for it.
    parent_id: Option<Key>,
    /// The keys of the input row that come along.
    carry: Vec<Key>,
    /// What the registry calls the id.
    id: Arc<str>,
}

enum What {
    List,
    Set,
    SortedSet {
        descending: bool,
    },
    Hash,
    /// The array, and in each element the id and then the fields.
    Json {
        rows: JsonFields,
        of_row: JsonFields,
    },
}

impl Expand {
    fn make(params: Params, cx: &LinkContext<'_>) -> Expand {
        let Params {
            endpoint: DataEndpoint(endpoint),
            from,
            key,
            fanout,
            order,
            score_key,
            value_key,
            rows,
            id,
            fields,
            carry,
            ..
        } = params;
        let template = key.unwrap_or_else(|| unreachable!("the checks want a key where there is no table"));
        let fields = fields.unwrap_or_default();
        let what = match from {
            Collection::List | Collection::Rows => What::List,
            Collection::Set => What::Set,
            Collection::SortedSet => What::SortedSet { descending: order == Some(true) },
            Collection::Hash => What::Hash,
            Collection::Json => What::Json {
                rows: JsonFields::new([rows.as_deref().unwrap_or("")]),
                of_row: JsonFields::new(
                    std::iter::once(id.as_deref().unwrap_or("id")).chain(fields.iter().map(|(path, _)| &**path)),
                ),
            },
        };
        let written = score_key.into_iter().chain(value_key).chain(fields.iter().map(|(_, key)| *key));
        let per_row_ns = if from == Collection::Json { 60.0 } else { 25.0 };
        let decoder = Decoder {
            what,
            fanout,
            fields: written.map(|key| cx.field(key)).collect(),
            parent_id: cx.key(PARENT_ID),
            carry: cx.carried(carry).unwrap_or_default(),
            id: cx.field(Key::ID).name,
        };
        let decoding = cx.decoding(Cost::About { fixed_ns: 300.0, per_row_ns });
        Expand { endpoint: KeyedEndpoint(endpoint), template, decoder: Arc::new(decoder), decoding }
    }
}

impl Fetch for Expand {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let parents = inputs.first();
        if parents.is_some_and(RowSet::is_empty) {
            return Ok(cx.no_rows());
        }
        let RowKeys { keys, of_row } = fill(&self.template, parents, cx)?;
        let fanout = self.decoder.fanout.count(cx.dials());
        let replies = cx.keyed(self.endpoint).read(self.decoder.read(fanout), keys.keys()).await?;
        let load = Load { rows: of_row.len(), bytes: replies.byte_count() };
        let (decoder, parents, texts) = (self.decoder.clone(), parents.cloned(), cx.id_texts().cloned());
        let work = move |unread: &mut Unread, stop: Stop<'_>| {
            decoder.rows((&replies, fanout), &of_row, parents.as_ref(), texts, unread, stop)
        };
        cx.decode(&self.decoding, self.endpoint.0, load, work).await
    }

    fn layout(&self, registry: &Registry) -> Option<StoredLayout<'_>> {
        let (id, keys) = (id_field(registry), KeyPattern::of(&self.template, registry));
        let inspect: Inspect<'_> =
            Box::new(move |replies, _, found| self.decoder.inspect(replies, &id, Misreads(found)));
        Some(StoredLayout {
            endpoint: self.endpoint.0,
            keys,
            read: self.decoder.read(self.decoder.fanout.count(&[])),
            inspect,
        })
    }

    fn row_source(&self) -> RowSource<'_> {
        RowSource::Stored(StoredElements {
            endpoint: self.endpoint.0,
            key: ElementKey::Template(&self.template),
            elements: match self.decoder.what {
                What::List => Elements::List,
                What::Set => Elements::Set,
                What::SortedSet { descending } => Elements::SortedSet { descending },
                What::Hash => Elements::HashFields,
                What::Json { .. } => Elements::Document,
            },
            fanout: self.decoder.fanout,
        })
    }
}

/// An element of a collection.
struct Member<'r> {
    id: i64,
    /// What is stored, for the order of those with the same id.
    bytes: &'r [u8],
    /// Where its cells begin.
    cells: usize,
}

/// The elements of all collections, each once, however many rows read it.
#[derive(Default)]
struct Members<'r> {
    members: Vec<Member<'r>>,
    /// Where the elements of each collection end.
    ends: Vec<usize>,
    /// The cells of an element side by side: as they are stored, or as JSON.
    cells: Vec<Option<&'r [u8]>>,
    /// Elements that are no ids, and documents that cannot be read.
    bad: Vec<&'r [u8]>,
}

impl<'r> Members<'r> {
    fn of(&self, key: usize) -> &[Member<'r>] {
        let start = if key == 0 { 0 } else { self.ends[key - 1] };
        &self.members[start..self.ends[key]]
    }

    fn push(&mut self, id: Option<i64>, bytes: &'r [u8], cells: impl IntoIterator<Item = Option<&'r [u8]>>) {
        match id {
            Some(id) => {
                self.members.push(Member { id, bytes, cells: self.cells.len() });
                self.cells.extend(cells);
            }
            None => self.bad.push(bytes),
        }
    }
}

impl Decoder {
    fn read(&self, fanout: usize) -> KeyedRead<'_> {
        match self.what {
            What::List => KeyedRead::List(fanout),
            What::Set => KeyedRead::Set,
            What::SortedSet { descending } => KeyedRead::SortedSet { count: fanout, descending },
            What::Hash => KeyedRead::HashAll,
            What::Json { .. } => KeyedRead::Text,
        }
    }

    fn members<'r>(
        &self,
        (replies, fanout): (&'r Replies, usize),
        ids: &mut IdReader<'_>,
        stop: Stop<'_>,
    ) -> Result<Members<'r>, TaskError> {
        let (mut all, mut looks) = (Members::default(), stop.looks());
        for key in 0..replies.len() {
            looks.before(self.weight(replies, key))?;
            let start = all.members.len();
            let mut items = replies.items(key);
            match &self.what {
                What::List | What::Set => {
                    for item in items {
                        let bytes = item.unwrap_or_default();
                        all.push(ids.read(bytes)?, bytes, None);
                    }
                }
                // A member or field and its score or value in turn.
                What::SortedSet { .. } | What::Hash => {
                    while let (Some(name), Some(value)) = (items.next(), items.next()) {
                        let bytes = name.unwrap_or_default();
                        all.push(ids.read(bytes)?, bytes, self.fields.iter().map(|_| value));
                    }
                }
                What::Json { rows, of_row } => {
                    if let Some(text) = items.next().flatten() {
                        self.push_document((text, fanout), (rows, of_row), ids, &mut all)?;
                    }
                }
            }
            if let What::Set | What::Hash = self.what {
                ids.sort(&mut all.members[start..], |member| (member.id, member.bytes));
                all.members.truncate(start + fanout);
            }
            all.ends.push(all.members.len());
        }
        Ok(all)
    }

    /// How many rows of columns take about as long as reading a collection does.
    fn weight(&self, replies: &Replies, key: usize) -> usize {
        match self.what {
            What::Json { .. } => replies.items(key).flatten().map(<[u8]>::len).sum(),
            What::List | What::Set | What::SortedSet { .. } | What::Hash => AS_ROWS * (1 + replies.items(key).len()),
        }
    }

    /// Adds the elements of the array in a document. One that cannot be read, or has no array there, is counted.
    fn push_document<'r>(
        &self,
        (text, fanout): (&'r [u8], usize),
        (rows, of_row): (&JsonFields, &JsonFields),
        ids: &mut IdReader<'_>,
        all: &mut Members<'r>,
    ) -> Result<(), TaskError> {
        let mut array = [None];
        let read = std::str::from_utf8(text).ok().and_then(|text| rows.read(text, &mut array).ok());
        let list = match array[0].filter(|_| read.is_some()) {
            // Neither is anything there to be read.
            None | Some("null") => {
                all.bad.extend(read.is_none().then_some(text));
                return Ok(());
            }
            Some(array) => elements(array, fanout),
        };
        let Ok(Some(list)) = list else {
            all.bad.push(text);
            return Ok(());
        };
        let mut found = vec![None; of_row.len()];
        for element in list {
            // It is a part of a document that has been read.
            let id = match of_row.read(element, &mut found) {
                Ok(()) => found.first().copied().flatten().map_or(Ok(None), |id| ids.read_json(id))?,
                Err(_) => None,
            };
            all.push(id, element.as_bytes(), found.iter().skip(1).map(|cell| cell.map(str::as_bytes)));
        }
        Ok(())
    }

    /// Adds a cell. A value of another type than the key's becomes null, and the answer is false.
    #[inline]
    fn push(&self, column: &mut ColumnBuilder, field: &Field, cell: &[u8]) -> bool {
        match self.what {
            What::SortedSet { .. } => push_score(column, field.type_of, cell),
            What::Json { .. } => push_json(column, std::str::from_utf8(cell).unwrap_or_default()),
            What::List | What::Set | What::Hash => push_text(column, cell),
        }
    }

    /// Names the elements that are no ids, and the values that become null.
    fn inspect(&self, replies: &Replies, id: &Field, mut found: Misreads<'_>) {
        let texts = texts(id);
        // What fails here, as more ids than a run may meet, fails a run as well.
        let read = (replies, self.fanout.count(&[]));
        let Ok(members) = self.members(read, &mut IdReader::new(texts.as_ref()), Stop::default()) else { return };
        members.bad.iter().for_each(|element| found.add(id, element));
        for member in &members.members {
            for (at, field) in self.fields.iter().enumerate() {
                found.value(field, members.cells[member.cells + at], |column, cell| self.push(column, field, cell));
            }
        }
    }

    /// New rows for each row of `of_row`, which has the place of its key.
    fn rows(
        &self,
        (replies, fanout): (&Replies, usize),
        of_row: &[u32],
        parents: Option<&RowSet>,
        texts: Option<Arc<IdTexts>>,
        unread: &mut Unread,
        stop: Stop<'_>,
    ) -> Result<RowSet, TaskError> {
        let members = self.members((replies, fanout), &mut IdReader::new(texts.as_deref()), stop)?;
        unread.count(&self.id, (members.bad.len() + replies.wrong_types().len()) as u64);
        let of = |key: &u32| if *key == NO_KEY { &[][..] } else { members.of(*key as usize) };
        let count: usize = of_row.iter().map(|key| of(key).len()).sum();
        let mut new_ids = Vec::with_capacity(count);
        of_row.iter().for_each(|key| new_ids.extend(of(key).iter().map(|member| member.id)));
        let mut batch = Batch::with_ids(new_ids, texts.clone());
        for (at, field) in self.fields.iter().enumerate() {
            let mut column = ColumnBuilder::new(field.type_of, count);
            let (mut bad, mut looks) = (0, stop.looks());
            for member in of_row.iter().flat_map(of) {
                looks.before(AS_ROWS)?;
                match members.cells[member.cells + at] {
                    None => column.push_null(),
                    Some(cell) => bad += u64::from(!self.push(&mut column, field, cell)),
                }
            }
            unread.count(&field.name, bad);
            batch = batch.with(field.key, Arc::new(column.finish()));
        }
        if let (Some(parents), Some(key)) = (parents, self.parent_id) {
            let (ids, counts) = (parents.ids().collect::<Vec<i64>>(), of_row.iter().map(|key| of(key).len()));
            batch = batch.with(key, Arc::new(parent_column(&ids, counts, texts.as_ref())));
        }
        if let Some(parents) = parents.filter(|_| !self.carry.is_empty()) {
            let rows = parents.rows().iter().zip(of_row);
            let came_from = rows.flat_map(|(row, key)| std::iter::repeat_n(row as u32, of(key).len()));
            batch = with_carried(batch, parents, &came_from.collect::<Vec<u32>>(), &self.carry, stop)?;
        }
        Ok(RowSet::new(batch))
    }
}
