//! Some of what endpoints hold, read as plans read it: which values cannot be used, and what they are.

use crate::endpoints::{self, EndpointError};
use rankd_column::Type;
use rankd_engine::Linked;
use rankd_engine::store::memory::MemoryEndpoint;
use rankd_engine::store::redis::{RedisEndpoint, SetUpError};
use rankd_engine::store::{KeyedRead, MemberOf, Open, PositionIn, Replies, StoreError, read_each};
use rankd_engine::task::{KeyPattern, Misread, StoredLayout};
use rankd_plan::Registry;
use rankd_plan::registry::{Backend, Endpoint, EndpointSettings, Redis};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// So many values are kept; all are counted.
const KEPT_MAX: usize = 1_000;
/// So many characters of a value are kept.
const VALUE_CHARS_MAX: usize = 200;
/// So many bytes of a value that is no text are shown.
const SHOWN_BYTES_MAX: usize = 16;

/// What reading some keys of an endpoint gave.
#[derive(Debug, Default)]
pub struct Sample {
    /// Nodes of plans that read keys of the endpoint.
    pub readers: usize,
    /// Different keys that were read.
    pub keys: usize,
    /// How many values cannot be used.
    pub unreadable: usize,
    /// The first of them.
    pub kept: Vec<Unreadable>,
}

/// What a plan cannot use of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unreadable {
    /// The key in the store.
    pub store_key: String,
    /// What is wrong with it.
    pub cause: Cause,
}

/// Why something cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A value would be null, or left out, because it is not of the type of the registry's key that it is for.
    Value {
        /// What the registry calls the key.
        field: String,
        /// The key's type.
        type_of: Type,
        /// The value, or its beginning.
        value: String,
    },
    /// What is stored is not what the plan reads, in a few words.
    Stored(String),
}

/// Reads at most `count` keys of an endpoint for each node of a plan that reads from it; nothing where nodes do not read by key from its kind.
pub fn read(
    at: u32,
    endpoint: &Endpoint,
    plans: &[Linked],
    registry: &Registry,
    count: usize,
) -> Result<Option<Sample>, EndpointError> {
    let EndpointSettings::Redis(settings) = &endpoint.settings else { return Ok(None) };
    let source = SampledStore::open(endpoint, settings)?;
    let (mut sample, mut keys, mut seen) = (Sample::default(), HashSet::new(), HashSet::new());
    let layouts = plans.iter().flat_map(|plan| plan.layouts(registry)).filter(|layout| layout.endpoint == at);
    for layout in layouts {
        sample.readers += 1;
        let found = source.find_keys(&layout.keys, count)?;
        let mut failed = None;
        let read = read_each(source.store(), layout.read, found.iter().map(Vec::as_slice), |key, replies| {
            if let Err(error) = inspect(&layout, key, replies, &mut |unreadable| {
                if sample.kept.len() < KEPT_MAX && seen.insert(unreadable.clone()) {
                    sample.kept.push(unreadable);
                }
                sample.unreadable += 1;
            }) {
                failed.get_or_insert(error);
            }
        });
        read.map_err(|error| EndpointError::Servers(SetUpError::Runtime(error)))?;
        if let Some(error) = failed {
            return Err(EndpointError::Read(error));
        }
        keys.extend(found);
    }
    sample.keys = keys.len();
    Ok(Some(sample))
}

/// Where keys are found and read.
enum SampledStore {
    Memory(MemoryEndpoint),
    Servers(RedisEndpoint),
}

impl SampledStore {
    fn open(endpoint: &Endpoint, settings: &Redis) -> Result<SampledStore, EndpointError> {
        Ok(match &settings.backend {
            Backend::Memory { path } => {
                let data = Arc::new(endpoints::read(Path::new(path))?);
                // Faults that are injected are about runs.
                SampledStore::Memory(MemoryEndpoint::new(&endpoint.name, data, Vec::new()))
            }
            Backend::Server { .. } | Backend::Cluster { .. } => {
                SampledStore::Servers(endpoints::redis(endpoint, settings)?)
            }
        })
    }

    fn store(&self) -> &dyn Open {
        match self {
            SampledStore::Memory(endpoint) => endpoint,
            SampledStore::Servers(endpoint) => endpoint,
        }
    }

    fn find_keys(&self, pattern: &KeyPattern, count: usize) -> Result<Vec<Vec<u8>>, EndpointError> {
        let data = match self {
            SampledStore::Servers(endpoint) => {
                return endpoint.find_keys(pattern, count).map_err(EndpointError::Servers);
            }
            SampledStore::Memory(endpoint) => &endpoint.data,
        };
        let mut keys: Vec<&str> =
            data.iter().map(|(key, _)| key).filter(|key| pattern.matches(key.as_bytes())).collect();
        keys.sort_unstable();
        // From all over the file: what lies together was often written together.
        let step = keys.len().div_ceil(count.max(1)).max(1);
        Ok(keys.into_iter().step_by(step).map(|key| key.as_bytes().to_vec()).collect())
    }
}

/// Names what a node cannot use of a key. That the endpoint does not answer is an error.
fn inspect(
    layout: &StoredLayout<'_>,
    key: &[u8],
    replies: Result<Replies, StoreError>,
    found: &mut dyn FnMut(Unreadable),
) -> Result<(), StoreError> {
    let mut found = |cause| found(Unreadable { store_key: shown(key), cause });
    match replies {
        Ok(replies) if replies.is_wrong_type(0) => found(Cause::Stored(format!("it is not {}", wanted(layout.read)))),
        Ok(replies) => (layout.inspect)(&replies, 0, &mut |Misread { key, type_of, value }| {
            found(Cause::Value { field: key.to_owned(), type_of, value: shown(value) });
        }),
        Err(StoreError::WrongType { .. }) => found(Cause::Stored(format!("it is not {}", wanted(layout.read)))),
        Err(error @ StoreError::TooLarge { .. }) => found(Cause::Stored(error.to_string())),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// What Redis calls that which is read.
fn wanted(read: KeyedRead<'_>) -> &'static str {
    match read {
        KeyedRead::HashAll | KeyedRead::HashFields(_) => "a hash",
        KeyedRead::ListHead(_) | KeyedRead::List(_) => "a list",
        KeyedRead::Set => "a set",
        KeyedRead::SortedSet { .. } => "a sorted set",
        KeyedRead::Text => "a string",
        KeyedRead::Members { of: MemberOf::Set, .. } => "a set",
        KeyedRead::Members { of: MemberOf::SortedSet, .. } => "a sorted set",
        KeyedRead::Position { of: PositionIn::List, .. } => "a list",
        KeyedRead::Position { of: PositionIn::SortedSet { .. }, .. } => "a sorted set",
        KeyedRead::Members { of: MemberOf::Filter, .. } => "a Bloom filter",
    }
}

/// The beginning of a value; of one that is no text, its size and first bytes.
fn shown(value: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(value) else {
        let bytes: String = value.iter().take(SHOWN_BYTES_MAX).map(|byte| format!("{byte:02x}")).collect();
        let more = if value.len() > SHOWN_BYTES_MAX { "…" } else { "" };
        return format!("{} bytes: {bytes}{more}", value.len());
    };
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shown_short() {
        assert_eq!(shown(b"n/a"), "n/a");
        assert_eq!(shown(&[0, 255, 16]), "3 bytes: 00ff10");
        assert_eq!(shown(&[255; 40]), format!("40 bytes: {}…", "ff".repeat(16)));
        assert_eq!(shown("é".repeat(300).as_bytes()), "é".repeat(200) + "…");
    }
}
