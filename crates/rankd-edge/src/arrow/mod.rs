//! Rows as an Arrow IPC stream: a schema, one record batch, the end. Only written, never read, and only what rows and captures need:
//! int64, float64, bool, utf8, binary, lists, structs and fixed-size lists of float32, little endian, no compression, metadata version 5.
//!
//! By hand, because `arrow-ipc` and what it needs is close to a minute of building for these few pages.
//! Reading order: this file (messages), [`flat`] (the format of their metadata), [`body`] (cells).

mod body;
mod flat;
#[cfg(test)]
mod tests;

pub(crate) use body::{Body, OptionalTexts};
pub(crate) use flat::{Slot, Table};
use rankd_column::{Element, Key, RowSet, Type};

/// The media type of a stream.
pub const MEDIA_TYPE: &str = "application/vnd.apache.arrow.stream";

/// A column besides `id`. All of them may have nulls.
pub struct ArrowField<'a> {
    /// The key of the column.
    pub key: Key,
    /// Its name in the registry.
    pub name: &'a str,
    /// Its type.
    pub type_of: Type,
}

/// A column of strings or lists is longer than the format can count: 2 GiB of text, or as many elements.
#[derive(Debug)]
pub struct TooLong {
    /// The key whose values are too much for one column.
    pub key: String,
}

impl std::error::Error for TooLong {}

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} has more text or elements than an Arrow stream can hold", self.key)
    }
}

const VERSION_5: i16 = 4;
/// Message headers.
const SCHEMA: u8 = 1;
const RECORD_BATCH: u8 = 3;
/// Stands before the length of every message.
const CONTINUES: [u8; 4] = [0xff; 4];
const SINGLE: i16 = 1;
const DOUBLE: i16 = 2;
/// The column that says which output a row is of.
const OUTPUT: &str = "output";
/// What readers expect the elements of a list to be called.
pub(crate) const ITEM: &str = "item";

/// The rows of all outputs, one after the other, as one table: `id`, which is of type `ids`, then `output` where outputs have names, then
/// these fields. `about` goes with the schema as metadata, by name.
pub fn stream(
    ids: Type,
    names: Option<&[String]>,
    fields: &[ArrowField<'_>],
    outputs: &[RowSet],
    about: &[(&str, &str)],
) -> Result<Vec<u8>, TooLong> {
    let mut body = Body::default();
    match ids {
        Type::Str => body.text_ids(outputs)?,
        _ => body.ids(outputs),
    }
    if let Some(names) = names {
        body.names(names, outputs)?;
    }
    for field in fields {
        body.add(field, outputs)?;
    }
    let rows = outputs.iter().map(|output| output.rows().len() as i64).sum();
    let mut out = Vec::with_capacity(body.bytes.len() + 1024 + 256 * fields.len());
    message(&mut out, SCHEMA, schema(ids, names.is_some(), fields, about), &[]);
    batch_message(&mut out, rows, body);
    out.extend(END);
    Ok(out)
}

/// What a stream ends with.
pub(crate) const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The message that a stream begins with: these fields, and `about` by name.
pub(crate) fn schema_message<'a>(fields: Vec<Table<'a>>, about: &[(&'a str, &'a str)]) -> Vec<u8> {
    let mut out = Vec::new();
    message(&mut out, SCHEMA, schema_of(fields, about), &[]);
    out
}

/// Adds the message of a record batch.
pub(crate) fn batch_message(out: &mut Vec<u8>, rows: i64, body: Body) {
    let Body { bytes, nodes, buffers } = body;
    let batch = Table(vec![Slot::Long(rows), Slot::Pairs(nodes), Slot::Pairs(buffers)]);
    message(out, RECORD_BATCH, batch, &bytes);
}

/// A field of bytes.
pub(crate) fn binary_field(name: &str, nullable: bool) -> Table<'_> {
    plain_field(name, 4, vec![], nullable)
}

/// A field of structs.
pub(crate) fn struct_field<'a>(name: &'a str, fields: Vec<Table<'a>>) -> Table<'a> {
    nested_field(name, 13, vec![], false, fields)
}

/// A field of lists; the item has the name [`ITEM`].
pub(crate) fn list_field<'a>(name: &'a str, item: Table<'a>) -> Table<'a> {
    nested_field(name, 12, vec![], false, vec![item])
}

fn message(out: &mut Vec<u8>, kind: u8, header: Table<'_>, body: &[u8]) {
    let length = Slot::Long(body.len() as i64);
    let metadata = flat::buffer(&Table(vec![Slot::Short(VERSION_5), Slot::Byte(kind), Slot::Table(header), length]));
    let padded = metadata.len().next_multiple_of(8);
    out.extend(CONTINUES);
    out.extend((padded as i32).to_le_bytes());
    out.extend(&metadata);
    out.resize(out.len() + padded - metadata.len(), 0);
    out.extend(body);
}

fn schema<'a>(ids: Type, has_names: bool, fields: &[ArrowField<'a>], about: &[(&'a str, &'a str)]) -> Table<'a> {
    let mut all = vec![field("id", ids, false)];
    all.extend(has_names.then(|| field(OUTPUT, Type::Str, false)));
    all.extend(fields.iter().map(|one| field(one.name, one.type_of, true)));
    schema_of(all, about)
}

fn schema_of<'a>(all: Vec<Table<'a>>, about: &[(&'a str, &'a str)]) -> Table<'a> {
    let metadata = about.iter().map(|(name, value)| Table(vec![Slot::Text(name), Slot::Text(value)])).collect();
    // The first is the byte order, little by default.
    Table(vec![Slot::Absent, Slot::Tables(all), Slot::Tables(metadata)])
}

pub(crate) fn field(name: &str, type_of: Type, nullable: bool) -> Table<'_> {
    match type_of {
        Type::Int => plain_field(name, 2, vec![Slot::Int(64), Slot::Byte(1)], nullable),
        Type::Float => float_field(name, DOUBLE, nullable),
        Type::Str => plain_field(name, 5, vec![], nullable),
        Type::Bool => plain_field(name, 6, vec![], nullable),
        // Elements are never null, but readers compare types, and by default they may be.
        Type::List(element) => {
            let item = match element {
                Element::Int => field(ITEM, Type::Int, true),
                Element::Float => field(ITEM, Type::Float, true),
                Element::Str => field(ITEM, Type::Str, true),
            };
            nested_field(name, 12, vec![], nullable, vec![item])
        }
        Type::Vector(dimension) => {
            let item = float_field(ITEM, SINGLE, true);
            nested_field(name, 16, vec![Slot::Int(dimension.into())], nullable, vec![item])
        }
    }
}

fn float_field(name: &str, precision: i16, nullable: bool) -> Table<'_> {
    plain_field(name, 3, vec![Slot::Short(precision)], nullable)
}

/// Without children, which some readers want to see as an empty list.
fn plain_field<'a>(name: &'a str, kind: u8, details: Vec<Slot<'a>>, nullable: bool) -> Table<'a> {
    nested_field(name, kind, details, nullable, vec![])
}

fn nested_field<'a>(
    name: &'a str,
    kind: u8,
    details: Vec<Slot<'a>>,
    nullable: bool,
    children: Vec<Table<'a>>,
) -> Table<'a> {
    let details = Slot::Table(Table(details));
    let nullable = if nullable { Slot::Byte(1) } else { Slot::Absent };
    // No dictionary.
    Table(vec![Slot::Text(name), nullable, Slot::Byte(kind), details, Slot::Absent, Slot::Tables(children)])
}
