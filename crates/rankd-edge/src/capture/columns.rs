//! Captured requests as the record batches of an Arrow stream, and back. A row is a request; its reads are a list, with an element for each key.

use super::facts::{code_named, weather_from_json, weather_to_json};
use super::{CapturedRequest, RunState};
use crate::arrow::{
    Body, ITEM, OptionalTexts, Table, batch_message, binary_field, field, list_field, schema_message, struct_field,
};
use crate::table_file::BatchCursor;
use bytes::Bytes;
use rankd_column::Type;
use rankd_engine::recorded::{RecordedCall, RecordedFault, RecordedKeys, RecordedRead, RunRecord};
use rankd_engine::store::{CallMethod, KeyBuffer, MemberOf, Replies};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The columns, each with its types as [`crate::table_file::read_stream`] takes them.
pub(super) const COLUMNS: &[(&str, &[&str])] = &[
    ("request_id", &["utf8"]),
    ("at_ms", &["int64"]),
    ("plan", &["utf8"]),
    ("plan_sha256", &["utf8"]),
    ("registry_sha256", &["utf8"]),
    ("engine_version", &["utf8"]),
    ("request", &["utf8"]),
    ("answer", &["binary"]),
    ("run", &["utf8"]),
    ("weather", &["utf8"]),
    (
        "reads",
        &["list", "struct", "utf8", "utf8", "utf8", "list", "utf8", "int64", "utf8", "list", "int64", "list", "binary"],
    ),
];

/// What a file begins with.
pub(super) fn schema() -> Vec<u8> {
    let text = |name| field(name, Type::Str, false);
    let read: Vec<Table<'_>> = vec![
        text("endpoint"),
        text("read"),
        text("key"),
        list_field("fields", text(ITEM)),
        field("limit", Type::Int, true),
        text("status"),
        list_field("ids", field(ITEM, Type::Int, false)),
        list_field("values", binary_field(ITEM, true)),
    ];
    let fields = COLUMNS.iter().map(|(name, types)| match types {
        ["int64"] => field(name, Type::Int, false),
        ["binary"] => binary_field(name, false),
        ["utf8"] => field(name, Type::Str, false),
        _ => list_field(name, struct_field(ITEM, Vec::new())),
    });
    let mut fields: Vec<Table<'_>> = fields.take(COLUMNS.len() - 1).collect();
    fields.push(list_field("reads", struct_field(ITEM, read)));
    schema_message(fields, &[("rankd", "capture"), ("version", "1")])
}

/// Why a request cannot be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unwritable {
    /// A key or a field is not UTF-8.
    NotText,
    /// Columns have more bytes or elements than Arrow can count.
    TooMuch,
}

/// The reads of all requests of a batch.
#[derive(Default)]
struct ReadColumns {
    count: usize,
    endpoints: OptionalTexts,
    reads: OptionalTexts,
    keys: OptionalTexts,
    field_ends: Vec<usize>,
    field_count: usize,
    fields: OptionalTexts,
    limits: Vec<Option<i64>>,
    statuses: OptionalTexts,
    id_ends: Vec<usize>,
    ids: Vec<i64>,
    value_ends: Vec<usize>,
    value_count: usize,
    values: OptionalTexts,
}

impl ReadColumns {
    fn begin(&mut self, endpoint: &str, read: &str, key: &[u8], limit: Option<usize>) {
        self.count += 1;
        self.endpoints.push(Some(endpoint.as_bytes()));
        self.reads.push(Some(read.as_bytes()));
        self.keys.push(Some(key));
        self.limits.push(limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)));
    }

    fn field(&mut self, text: &[u8]) {
        self.fields.push(Some(text));
        self.field_count += 1;
    }

    fn value(&mut self, value: Option<&[u8]>) {
        self.values.push(value);
        self.value_count += 1;
    }

    fn end(&mut self, status: &str) {
        self.statuses.push(Some(status.as_bytes()));
        self.field_ends.push(self.field_count);
        self.id_ends.push(self.ids.len());
        self.value_ends.push(self.value_count);
    }

    fn add_keys(&mut self, batch: &RecordedKeys) {
        let (name, limit) = name_of(&batch.read);
        for at in 0..batch.keys.len() {
            self.begin(&batch.endpoint, name, batch.keys.get(at), limit);
            match &batch.read {
                RecordedRead::HashFields(fields) => fields.iter().for_each(|field| self.field(field.as_bytes())),
                RecordedRead::Members { members, .. } => {
                    (0..members.len()).for_each(|at| self.field(members.get(at)));
                }
                RecordedRead::Position { element, .. } => self.field(element),
                RecordedRead::HashAll
                | RecordedRead::ListHead(_)
                | RecordedRead::List(_)
                | RecordedRead::Set
                | RecordedRead::SortedSet { .. }
                | RecordedRead::Text => {}
            }
            match &batch.given {
                Err(fault) => self.fail(fault),
                Ok(given) if given.is_wrong_type(at) => self.end(WRONG_TYPE),
                Ok(given) => {
                    let (before, mut is_there) = (self.ids.len(), false);
                    if let RecordedRead::ListHead(_) = batch.read {
                        self.ids.extend_from_slice(given.ids(at));
                        is_there = self.ids.len() > before;
                    } else {
                        for item in given.items(at) {
                            is_there |= item.is_some();
                            self.value(item);
                        }
                    }
                    let is_partial = matches!(batch.read, RecordedRead::ListHead(_)) && given.skipped() > 0;
                    self.end(if is_partial {
                        PARTIAL
                    } else if is_there {
                        OK
                    } else {
                        MISSING
                    });
                }
            }
        }
    }

    fn fail(&mut self, fault: &RecordedFault) {
        self.value(Some(fault.message.as_bytes()));
        self.end(fault.code.id);
    }

    fn add_call(&mut self, call: &RecordedCall) {
        let name = match call.method {
            CallMethod::Get => GET,
            CallMethod::Post => POST,
        };
        self.begin(&call.endpoint, name, call.path.as_bytes(), None);
        call.body.iter().for_each(|body| self.field(body));
        match &call.given {
            Err(fault) => self.fail(fault),
            Ok(None) => self.end(MISSING),
            Ok(Some(body)) => {
                self.value(Some(body));
                self.end(OK);
            }
        }
    }

    fn write(self, body: &mut Body) -> bool {
        body.structs(self.count);
        let texts = body.texts(self.endpoints) && body.texts(self.reads) && body.texts(self.keys);
        let fields = texts && body.list_ends(&self.field_ends) && body.texts(self.fields);
        body.optional_ints(&self.limits);
        let ids = fields && body.texts(self.statuses) && body.list_ends(&self.id_ends);
        body.ints(&self.ids);
        ids && body.list_ends(&self.value_ends) && body.texts(self.values)
    }
}

const OK: &str = "ok";
/// Nothing is stored under the key, or the service has nothing under the path.
const MISSING: &str = "missing";
/// Elements that are no ids were left out, of this key or another that was read with it.
const PARTIAL: &str = "partial";
const WRONG_TYPE: &str = "wrong_type";
const GET: &str = "get";
const POST: &str = "post";

/// What a kind of read is called, and its limit.
fn name_of(read: &RecordedRead) -> (&'static str, Option<usize>) {
    match read {
        RecordedRead::HashAll => ("hash", None),
        RecordedRead::HashFields(_) => ("hash_fields", None),
        RecordedRead::ListHead(count) => ("ids", Some(*count)),
        RecordedRead::List(count) => ("list", Some(*count)),
        RecordedRead::Set => ("set", None),
        RecordedRead::SortedSet { count, descending: false } => ("sorted_set", Some(*count)),
        RecordedRead::SortedSet { count, descending: true } => ("sorted_set_descending", Some(*count)),
        RecordedRead::Text => ("text", None),
        RecordedRead::Position { .. } => ("position", None),
        RecordedRead::Members { of: MemberOf::Set, .. } => ("in_set", None),
        RecordedRead::Members { of: MemberOf::SortedSet, .. } => ("in_sorted_set", None),
        RecordedRead::Members { of: MemberOf::Filter, .. } => ("in_filter", None),
    }
}

/// Whether all that is text in a capture is text in this request.
fn is_text(request: &CapturedRequest) -> bool {
    let are_texts = |keys: &KeyBuffer| (0..keys.len()).all(|at| std::str::from_utf8(keys.get(at)).is_ok());
    let is_read = |batch: &RecordedKeys| {
        are_texts(&batch.keys)
            && match &batch.read {
                RecordedRead::Members { members, .. } => are_texts(members),
                // Only questions about a run read this, and they are not captured.
                RecordedRead::Position { .. } => false,
                RecordedRead::HashAll
                | RecordedRead::HashFields(_)
                | RecordedRead::ListHead(_)
                | RecordedRead::List(_)
                | RecordedRead::Set
                | RecordedRead::SortedSet { .. }
                | RecordedRead::Text => true,
            }
    };
    let is_call = |call: &RecordedCall| call.body.as_ref().is_none_or(|body| std::str::from_utf8(body).is_ok());
    std::str::from_utf8(&request.request).is_ok()
        && request.record.reads.iter().all(is_read)
        && request.record.calls.iter().all(is_call)
}

/// Whether a request can be written down.
pub(super) fn check(request: &CapturedRequest) -> Result<(), Unwritable> {
    if is_text(request) { Ok(()) } else { Err(Unwritable::NotText) }
}

/// The message of a batch of requests, each of which passed [`check`].
pub(super) fn batch(requests: &[CapturedRequest]) -> Result<Vec<u8>, Unwritable> {
    let mut body = Body::default();
    let mut fits = true;
    let column = |of: fn(&CapturedRequest) -> Cow<'_, [u8]>| {
        let mut texts = OptionalTexts::default();
        requests.iter().for_each(|request| texts.push(Some(&of(request))));
        texts
    };
    fits &= body.texts(column(|request| request.request_id.as_bytes().into()));
    body.ints(&requests.iter().map(|request| request.at_ms).collect::<Vec<_>>());
    fits &= body.texts(column(|request| request.plan.as_bytes().into()));
    fits &= body.texts(column(|request| request.plan_sha256.as_bytes().into()));
    fits &= body.texts(column(|request| request.registry_sha256.as_bytes().into()));
    fits &= body.texts(column(|request| request.engine_version.as_bytes().into()));
    fits &= body.texts(column(|request| (&*request.request).into()));
    fits &= body.texts(column(|request| (&*request.answer).into()));
    fits &= body.texts(column(|request| request.run.to_json().into_bytes().into()));
    fits &= body.texts(column(|request| weather_to_json(request.weather()).into_bytes().into()));
    let (mut reads, mut ends) = (ReadColumns::default(), Vec::new());
    for request in requests {
        request.record.reads.iter().for_each(|batch| reads.add_keys(batch));
        request.record.calls.iter().for_each(|call| reads.add_call(call));
        ends.push(reads.count);
    }
    fits &= body.list_ends(&ends) && reads.write(&mut body);
    if !fits {
        return Err(Unwritable::TooMuch);
    }
    let mut out = Vec::new();
    batch_message(&mut out, requests.len() as i64, body);
    Ok(out)
}

/// One element of `reads`.
struct ReadRow<'a> {
    endpoint: &'a str,
    read: &'a str,
    key: &'a [u8],
    fields: &'a [Option<&'a [u8]>],
    limit: Option<i64>,
    status: &'a str,
    ids: &'a [Option<i64>],
    values: &'a [Option<&'a [u8]>],
}

/// The requests of a batch; `None` where they cannot be read.
pub(super) fn read_batch(
    rows: usize,
    mut cursor: BatchCursor<'_>,
    mut with: impl FnMut(CapturedRequest),
) -> Option<()> {
    let ids = texts(&mut cursor, rows)?;
    let times = cursor.optional_ints(rows)?;
    let [plans, plan_digests, registry_digests, versions, requests] = [(); 5].map(|()| texts(&mut cursor, rows));
    let answers = cursor.optional_bytes(rows)?;
    let (runs, weathers) = (texts(&mut cursor, rows)?, texts(&mut cursor, rows)?);
    let ends = cursor.list_offsets(rows)?;
    let count = *ends.last()?;
    cursor.structs(count)?;
    let (endpoints, reads, keys) = (texts(&mut cursor, count)?, texts(&mut cursor, count)?, texts(&mut cursor, count)?);
    let field_ends = cursor.list_offsets(count)?;
    let fields = cursor.optional_bytes(*field_ends.last()?)?;
    let limits = cursor.optional_ints(count)?;
    let statuses = texts(&mut cursor, count)?;
    let id_ends = cursor.list_offsets(count)?;
    let id_values = cursor.optional_ints(*id_ends.last()?)?;
    let value_ends = cursor.list_offsets(count)?;
    let values = cursor.optional_bytes(*value_ends.last()?)?;
    let within = |ends: &[usize], at: usize| -> Option<Range<usize>> { Some(*ends.get(at)?..*ends.get(at + 1)?) };
    let row = |at: usize| {
        Some(ReadRow {
            endpoint: endpoints.get(at)?,
            read: reads.get(at)?,
            key: keys.get(at)?.as_bytes(),
            fields: fields.get(within(&field_ends, at)?)?,
            limit: *limits.get(at)?,
            status: statuses.get(at)?,
            ids: id_values.get(within(&id_ends, at)?)?,
            values: values.get(within(&value_ends, at)?)?,
        })
    };
    let [plans, plan_digests, registry_digests, versions, requests] =
        [plans?, plan_digests?, registry_digests?, versions?, requests?];
    for at in 0..rows {
        let read_rows = within(&ends, at)?.map(row).collect::<Option<Vec<_>>>()?;
        let mut record = read_record(&read_rows)?;
        record.weather = weather_from_json(weathers.get(at)?)?;
        with(CapturedRequest {
            request_id: (*ids.get(at)?).to_owned(),
            at_ms: (*times.get(at)?)?,
            plan: (*plans.get(at)?).to_owned(),
            plan_sha256: (*plan_digests.get(at)?).into(),
            registry_sha256: (*registry_digests.get(at)?).into(),
            engine_version: (*versions.get(at)?).to_owned(),
            request: requests.get(at)?.as_bytes().to_vec(),
            answer: Bytes::copy_from_slice((*answers.get(at)?)?),
            run: RunState::from_json(runs.get(at)?)?,
            record,
        });
    }
    Some(())
}

/// So many texts, none of which is null.
fn texts<'b>(cursor: &mut BatchCursor<'b>, count: usize) -> Option<Vec<&'b str>> {
    cursor.optional_bytes(count)?.into_iter().map(|text| std::str::from_utf8(text?).ok()).collect()
}

/// The reads of one request. Keys that were read in the same way one after the other are one batch again.
fn read_record(rows: &[ReadRow<'_>]) -> Option<RunRecord> {
    let mut record = RunRecord::default();
    for rows in rows.chunk_by(|a, b| {
        (a.endpoint, a.read, a.fields, a.limit) == (b.endpoint, b.read, b.fields, b.limit) && is_like(a, b)
    }) {
        let first = rows.first()?;
        let endpoint: Arc<str> = first.endpoint.into();
        let method = match first.read {
            GET => Some(CallMethod::Get),
            POST => Some(CallMethod::Post),
            _ => None,
        };
        if let Some(method) = method {
            for row in rows {
                let bytes = |value: &Option<&[u8]>| value.map(Bytes::copy_from_slice);
                let given = match row.status {
                    OK => Ok(Some(row.values.first().and_then(bytes)?)),
                    MISSING => Ok(None),
                    _ => Err(fault(row)?),
                };
                let (path, body) = (String::from_utf8(row.key.to_vec()).ok()?, row.fields.first().and_then(bytes));
                record.calls.push(RecordedCall { endpoint: endpoint.clone(), method, path, body, given });
            }
            continue;
        }
        let read = read_kind(first)?;
        let mut keys = KeyBuffer::default();
        rows.iter().for_each(|row| keys.push(|out| out.extend_from_slice(row.key)));
        let given = match first.status {
            OK | MISSING | WRONG_TYPE | PARTIAL => Ok(replies(rows, matches!(read, RecordedRead::ListHead(_)))?),
            _ => Err(fault(first)?),
        };
        record.reads.push(RecordedKeys { endpoint, read, keys, given });
    }
    Some(record)
}

/// Whether two keys can have been answered together.
fn is_like(a: &ReadRow<'_>, b: &ReadRow<'_>) -> bool {
    let is_answered = |row: &ReadRow<'_>| matches!(row.status, OK | MISSING | WRONG_TYPE);
    match is_answered(a) && is_answered(b) {
        true => true,
        false => a.status == b.status && (a.status == PARTIAL || a.values == b.values),
    }
}

fn replies(rows: &[ReadRow<'_>], are_ids: bool) -> Option<Replies> {
    let mut replies = Replies::default();
    for row in rows {
        if row.status == WRONG_TYPE {
            replies.end_wrong_type();
            continue;
        }
        match are_ids {
            true => row.ids.iter().try_for_each(|id| (*id).map(|id| replies.push_id(id)))?,
            false => row.values.iter().for_each(|value| replies.push_item(*value)),
        }
        replies.end_reply();
    }
    if rows.iter().any(|row| row.status == PARTIAL) {
        replies.skip_element();
    }
    Some(replies)
}

fn fault(row: &ReadRow<'_>) -> Option<RecordedFault> {
    let message = std::str::from_utf8((*row.values.first()?)?).ok()?.to_owned();
    Some(RecordedFault { code: code_named(row.status)?, message })
}

fn read_kind(row: &ReadRow<'_>) -> Option<RecordedRead> {
    let count = || usize::try_from(row.limit?).ok();
    let members = |of: MemberOf| {
        let mut members = KeyBuffer::default();
        for field in row.fields {
            let member = (*field)?;
            members.push(|out| out.extend_from_slice(member));
        }
        Some(RecordedRead::Members { of, members })
    };
    Some(match row.read {
        "hash" => RecordedRead::HashAll,
        "hash_fields" => {
            let field = |field: &Option<&[u8]>| std::str::from_utf8((*field)?).ok().map(Arc::from);
            RecordedRead::HashFields(row.fields.iter().map(field).collect::<Option<_>>()?)
        }
        "ids" => RecordedRead::ListHead(count()?),
        "list" => RecordedRead::List(count()?),
        "set" => RecordedRead::Set,
        "sorted_set" => RecordedRead::SortedSet { count: count()?, descending: false },
        "sorted_set_descending" => RecordedRead::SortedSet { count: count()?, descending: true },
        "text" => RecordedRead::Text,
        "in_set" => members(MemberOf::Set)?,
        "in_sorted_set" => members(MemberOf::SortedSet)?,
        "in_filter" => members(MemberOf::Filter)?,
        _ => return None,
    })
}
