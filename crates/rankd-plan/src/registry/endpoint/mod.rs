//! Endpoints: where a task's reads go in one environment. Each kind has its own fields, in a file of its own.

mod http;
mod redis;
mod table;

pub use http::{Http, HttpPolicy, Secret};
pub use redis::{Backend, Inject, Policy, Redis};
pub use table::{BadCells, TABLE_EXTENSIONS, TableFile};

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, nearest, quoted};
use crate::registry::entry::is_identifier;
use crate::registry::ids::Ids;
use crate::registry::surroundings::Surroundings;
use crate::registry::table::{Table, bad, each_entry};
use crate::registry::{Entry, Named};
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub endpoint_id: String,
    pub name: String,
    /// What tasks can ask of it. A task refuses an endpoint of a kind that it has no use for.
    pub kind: String,
    pub settings: EndpointSettings,
}

/// What an endpoint has by its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointSettings {
    Redis(Redis),
    Http(Http),
    Table(TableFile),
}

/// One kind of endpoint.
struct EndpointKind {
    name: &'static str,
    /// What it has besides `endpoint_id`, `name` and `kind`.
    fields: &'static [&'static str],
    read: fn(&Table<'_, '_>, &Named<Entry>, &mut Diagnostics) -> Option<EndpointSettings>,
}

/// Every kind.
const KINDS: &[EndpointKind] = &[
    EndpointKind {
        name: "redis",
        fields: redis::FIELDS,
        read: |table, _, found| redis::read(table, found).map(EndpointSettings::Redis),
    },
    EndpointKind {
        name: "http",
        fields: http::FIELDS,
        read: |table, _, found| http::read(table, found).map(EndpointSettings::Http),
    },
    EndpointKind {
        name: "table",
        fields: table::FIELDS,
        read: |table, keys, found| table::read(table, keys, found).map(EndpointSettings::Table),
    },
];

const FIELDS: &[&str] = &["endpoint_id", "name", "kind"];

fn kind_of(table: &Table<'_, '_>) -> Option<&'static EndpointKind> {
    // What is wrong with the field itself is said where it is read.
    let name = table.text("kind", &mut Diagnostics::default());
    KINDS.iter().find(|kind| name == Some(kind.name))
}

/// `keys` are those that an endpoint's own columns can be.
pub(super) fn parse(
    text: &str,
    keys: &Named<Entry>,
    around: &dyn Surroundings,
    found: &mut Diagnostics,
) -> Named<Endpoint> {
    let mut read: Vec<(Endpoint, Range<usize>, Range<usize>)> = Vec::new();
    let mut ids = Ids::new("endpoint_id");
    each_entry(
        text,
        &["endpoint"],
        around,
        |table| fields_of(table),
        found,
        |table, found| {
            ids.note(&table);
            let place = table.place(if table.has("url") { "url" } else { "cluster" });
            read.extend(endpoint(&table, keys, found).map(|endpoint| (endpoint, place, table.span())));
        },
    );
    let are_new = ids.are_new(found);
    let mut named = Named::default();
    for (number, (mut endpoint, place, span)) in (1..).zip(read) {
        if are_new {
            endpoint.endpoint_id = numbered(number);
        }
        if let Err(taken) = named.add(endpoint.name.clone(), endpoint.endpoint_id.clone(), endpoint, place) {
            found.push(Diagnostic::new(Code::DuplicateEntry, "", taken.to_string()).bytes(span));
        }
    }
    named
}

/// The fields that an entry may have; where its kind is not known, those of any kind.
fn fields_of(table: &Table<'_, '_>) -> Vec<&'static str> {
    let of_kinds: Vec<&EndpointKind> = match kind_of(table) {
        Some(kind) => vec![kind],
        None => KINDS.iter().collect(),
    };
    let mut fields = FIELDS.to_vec();
    for field in of_kinds.iter().flat_map(|kind| kind.fields) {
        if !fields.contains(field) {
            fields.push(field);
        }
    }
    fields
}

/// The id of an endpoint by its number.
pub(super) fn numbered(number: u32) -> String {
    format!("ep_{number:04}")
}

fn endpoint(table: &Table<'_, '_>, keys: &Named<Entry>, found: &mut Diagnostics) -> Option<Endpoint> {
    table.require(&["name", "kind"], &fields_of(table), found);
    let has_id = table.has("endpoint_id");
    let endpoint_id = table.text("endpoint_id", found).filter(|id| {
        let good = id.starts_with("ep_") && is_identifier(id);
        if !good {
            found.push(bad(table.place("endpoint_id"), "an endpoint_id is ep_ and then letters, digits or _"));
        }
        good
    });
    let name = table.text("name", found).filter(|name| {
        let good = is_identifier(name) && !name.starts_with("ep_");
        if !good {
            let message = "a name is made of letters, digits and _, starts with a letter and not with ep_";
            found.push(bad(table.place("name"), message));
        }
        good
    });
    let kind = table.text("kind", found);
    if let (Some(unknown), None) = (kind, kind_of(table)) {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let near = nearest(unknown, names.iter().copied()).map(|near| format!("did you mean {near:?}? "));
        let help = format!("{}known kinds: {}", near.unwrap_or_default(), names.join(", "));
        let message = format!("there is no kind of endpoint {}", quoted(unknown));
        found.push(Diagnostic::new(Code::UnknownKind, "", message).bytes(table.place("kind")).help(help));
    }
    let settings = kind_of(table).and_then(|kind| (kind.read)(table, keys, found));
    let (name, kind) = (name?.to_owned(), kind?.to_owned());
    // Where no entry of the file has an id, each gets one by its position.
    let endpoint_id = if has_id { endpoint_id?.to_owned() } else { String::new() };
    Some(Endpoint { endpoint_id, name, kind, settings: settings? })
}
