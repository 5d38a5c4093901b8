//! Some of what an endpoint holds, read as plans would read it: which cells cannot be read, and what is in them.

use crate::endpoints::{self, EndpointError};
use rankd_column::Type;
use rankd_column::column::ColumnBuilder;
use rankd_engine::decode;
use rankd_engine::store::memory::Held;
use rankd_plan::Registry;
use rankd_plan::registry::{Backend, Endpoint, EndpointSettings, Redis, Status};
use std::path::Path;

/// What reading some hashes of an endpoint gave.
#[derive(Debug, Default)]
pub struct Sample {
    /// Hashes that were read.
    pub hashes: usize,
    /// Fields of them that are registered keys.
    pub cells: usize,
    /// Those that are not of their key's type.
    pub unreadable: Vec<UnreadableCell>,
}

/// A cell that would be null, because it is not of its key's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableCell {
    /// The key in the store.
    pub store_key: String,
    /// The field, which is the name of a key of the registry.
    pub field: String,
    /// What the field holds, as far as it is text.
    pub value: String,
    /// What the key's type is.
    pub type_of: Type,
}

/// Reads at most `count` hashes of an endpoint; nothing where it has no hashes by its kind.
pub fn read(endpoint: &Endpoint, registry: &Registry, count: usize) -> Result<Option<Sample>, EndpointError> {
    match &endpoint.settings {
        EndpointSettings::Redis(settings) => read_hashes(endpoint, settings, registry, count).map(Some),
        EndpointSettings::Http(_) | EndpointSettings::Table(_) => Ok(None),
    }
}

fn read_hashes(
    endpoint: &Endpoint,
    settings: &Redis,
    registry: &Registry,
    count: usize,
) -> Result<Sample, EndpointError> {
    let mut sample = Sample::default();
    match &settings.backend {
        Backend::Memory { path } => {
            let data = endpoints::read(Path::new(path))?;
            let mut hashes: Vec<(&str, &Vec<(String, String)>)> = data
                .iter()
                .filter_map(|(key, held)| match held {
                    Held::Hash(fields) => Some((key, fields)),
                    Held::List(_) | Held::Set(_) | Held::SortedSet(_) | Held::Text(_) => None,
                })
                .collect();
            hashes.sort_unstable_by_key(|(key, _)| *key);
            // From all over the file: what lies together was often written together.
            let step = hashes.len().div_ceil(count.max(1)).max(1);
            for (key, fields) in hashes.into_iter().step_by(step).take(count) {
                sample.add(key, fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), registry);
            }
        }
        Backend::Server { .. } | Backend::Cluster { .. } => {
            let redis = endpoints::redis(endpoint, settings)?;
            for (key, fields) in redis.sample(count).map_err(EndpointError::Servers)? {
                sample.add(&key, fields.iter().map(|(name, value)| (&name[..], &value[..])), registry);
            }
        }
    }
    Ok(sample)
}

impl Sample {
    fn add<'f>(&mut self, key: &str, fields: impl Iterator<Item = (&'f [u8], &'f [u8])>, registry: &Registry) {
        self.hashes += 1;
        for (name, value) in fields {
            let Some(field) = std::str::from_utf8(name).ok().filter(|name| *name != "id") else { continue };
            let Some(entry) = registry.keys.named(field).map(|at| registry.keys.get(at)) else { continue };
            if entry.status == Status::Blocked {
                continue;
            }
            self.cells += 1;
            if !decode::push_text(&mut ColumnBuilder::new(entry.type_of, 1), value) {
                self.unreadable.push(UnreadableCell {
                    store_key: key.to_owned(),
                    field: field.to_owned(),
                    value: String::from_utf8_lossy(value).into_owned(),
                    type_of: entry.type_of,
                });
            }
        }
    }
}
