//! What plans may name: keys, parameters, endpoints and models, read from TOML at start.
//!
//! Positions in these lists are what the rest of the program uses; names and numeric ids are looked up once, at load.

mod endpoint;
mod entry;
mod experiments;
mod fix;
mod ids;
mod model;
mod surroundings;
mod table;

pub use endpoint::{
    Backend, BadCells, Endpoint, EndpointSettings, Http, HttpPolicy, Inject, Policy, Redis, Secret, TABLE_EXTENSIONS,
    TableFile,
};
pub use entry::{Absent, Entry, Status, is_identifier};
pub use experiments::{Arm, BUCKETS, BucketOwner, Experiment, Experiments, Holdout, Layer, Unit, listed_ranges};
pub use fix::{EndpointIds, Fixed, fix_keys, fix_params};
pub(crate) use model::why_not;
pub use model::{FeatureKeys, ModelEntry};
pub use surroundings::{AsWritten, NoValue, Reference, Surroundings};

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::digest::sha256;
use crate::json::Writer;
use crate::model::{Models, UsedModel};
use entry::EntryKind;
use rankd_column::expr::Schema;
use rankd_column::{Key, Type};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The text of one registry file, and the name it is called by in messages.
pub struct Text<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

/// A named list with look-up by name and by id.
#[derive(Debug)]
pub struct Named<T> {
    list: Vec<T>,
    by_name: HashMap<String, u32>,
    by_id: HashMap<String, u32>,
    /// By entry: what to point at in its file.
    places: Vec<Range<usize>>,
}

/// Why an entry cannot be added.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    Name(String),
    Id(String),
}

impl std::error::Error for Taken {}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Taken::Name(name) => write!(f, "the name {name:?} is used twice"),
            Taken::Id(id) => write!(f, "the id {id} is used twice"),
        }
    }
}

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named { list: Vec::new(), by_name: HashMap::new(), by_id: HashMap::new(), places: Vec::new() }
    }
}

impl<T> Named<T> {
    /// Adds an entry, unless its name or id is taken.
    fn add(&mut self, name: String, id: String, entry: T, place: Range<usize>) -> Result<(), Taken> {
        let at = self.list.len() as u32;
        if self.by_name.contains_key(&name) {
            return Err(Taken::Name(name));
        }
        if self.by_id.contains_key(&id) {
            return Err(Taken::Id(id));
        }
        self.by_name.insert(name, at);
        self.by_id.insert(id, at);
        self.list.push(entry);
        self.places.push(place);
        Ok(())
    }

    pub fn list(&self) -> &[T] {
        &self.list
    }

    pub fn get(&self, at: u32) -> &T {
        &self.list[at as usize]
    }

    /// Where an entry, or what matters most of it, stands in its file, in bytes.
    pub fn place(&self, at: u32) -> Range<usize> {
        self.places[at as usize].clone()
    }

    pub fn named(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub fn numbered(&self, id: &str) -> Option<u32> {
        self.by_id.get(id).copied()
    }
}

/// All that plans may name.
#[derive(Debug, Default)]
pub struct Registry {
    /// `id` first, then the others in the order of the file.
    pub keys: Named<Entry>,
    pub params: Named<Entry>,
    pub endpoints: Named<Endpoint>,
    pub models: Named<ModelEntry>,
    id: RegistryId,
    sha256: Arc<str>,
    /// By the position of an endpoint that is a table: the keys that it has columns for, as far as somebody has looked.
    table_columns: Mutex<BTreeMap<u32, Arc<[Key]>>>,
    /// The models that were read and handed in, by position. Registries with the same models may share them.
    models_in_use: Arc<Models>,
}

/// Which registry something was made with: equal for registries whose keys, parameters, endpoints and models are the same, in the
/// same order. Where an endpoint is does not matter, nor what a model's file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistryId(u64);

/// Which endpoints positions are of: equal for the same names in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointsId(u64);

impl EndpointsId {
    pub fn of<'n>(names: impl Iterator<Item = &'n str>) -> EndpointsId {
        let mut hasher = DefaultHasher::new();
        names.for_each(|name| name.hash(&mut hasher));
        EndpointsId(hasher.finish())
    }
}

/// The problems of one registry file.
pub struct FileProblems {
    pub file: String,
    pub diagnostics: Diagnostics,
}

impl Registry {
    /// Reads the three files that every registry has, with paths and references as they are written: enough to judge plans.
    pub fn parse(keys: Text<'_>, params: Text<'_>, endpoints: Text<'_>) -> (Registry, Vec<FileProblems>) {
        Registry::parse_files(&AsWritten, [keys, params, endpoints, Text { file: "", text: "" }])
    }

    /// Reads all files: keys, parameters, endpoints and models. What could be read is in the registry even where there are problems.
    pub fn parse_files(
        around: &dyn Surroundings,
        [keys, params, endpoints, models]: [Text<'_>; 4],
    ) -> (Registry, Vec<FileProblems>) {
        let mut registry = Registry::default();
        let mut problems = Vec::new();
        let mut keep = |file: &str, diagnostics: Diagnostics| {
            if !diagnostics.list().is_empty() {
                problems.push(FileProblems { file: file.to_owned(), diagnostics });
            }
        };
        let mut found = Diagnostics::default();
        registry.keys = entry::parse(keys.text, EntryKind::Key, &mut found);
        if found.list().iter().all(|diagnostic| diagnostic.code != Code::BadToml) {
            check_id_key(&registry.keys, &mut found);
        }
        keep(keys.file, found);
        let mut found = Diagnostics::default();
        registry.params = entry::parse(params.text, EntryKind::Param, &mut found);
        keep(params.file, found);
        let mut found = Diagnostics::default();
        registry.endpoints = endpoint::parse(endpoints.text, &registry.keys, around, &mut found);
        keep(endpoints.file, found);
        let mut found = Diagnostics::default();
        registry.models = model::parse(models.text, &registry.keys, around, &mut found);
        keep(models.file, found);
        registry.id = registry.identify();
        registry.sha256 = digest_of([keys, params, endpoints, models].map(|file| file.text)).into();
        (registry, problems)
    }

    /// What plans and requests that were made with this registry carry: positions mean nothing with another one.
    pub fn id(&self) -> RegistryId {
        self.id
    }

    /// The SHA-256 of what its files say, as a JSON array of their texts: keys, parameters, endpoints, models.
    pub fn sha256(&self) -> &Arc<str> {
        &self.sha256
    }

    /// What engines that were started with this registry's endpoints have as well.
    pub fn endpoints_id(&self) -> EndpointsId {
        EndpointsId::of(self.endpoints.list().iter().map(|endpoint| endpoint.name.as_str()))
    }

    fn identify(&self) -> RegistryId {
        let mut hasher = DefaultHasher::new();
        for entry in self.keys.list().iter().chain(self.params.list()) {
            format!("{entry:?}").hash(&mut hasher);
        }
        (self.keys.list().len(), self.params.list().len()).hash(&mut hasher);
        for Endpoint { name, kind, .. } in self.endpoints.list() {
            (name, kind).hash(&mut hasher);
        }
        for ModelEntry { name, .. } in self.models.list() {
            name.hash(&mut hasher);
        }
        RegistryId(hasher.finish())
    }

    /// Takes note of the keys that a table has columns for: plans are checked against them from now on.
    pub fn know_columns(&self, endpoint: u32, mut keys: Vec<Key>) {
        keys.sort_unstable();
        self.table_columns.lock().unwrap_or_else(PoisonError::into_inner).insert(endpoint, keys.into());
    }

    /// The keys that a table has columns for, in their order; `None` where nobody has looked.
    pub fn known_columns(&self, endpoint: u32) -> Option<Arc<[Key]>> {
        self.table_columns.lock().unwrap_or_else(PoisonError::into_inner).get(&endpoint).cloned()
    }

    /// The models that are in use. Plans are checked against them, and their runs score rows with them.
    pub fn models_in_use(&self) -> &Arc<Models> {
        &self.models_in_use
    }

    /// Takes over the models of another registry, which has the same.
    pub fn share_models(&mut self, models: &Arc<Models>) {
        self.models_in_use = models.clone();
    }

    /// The model at a position, as it is in use; `None` where nobody has read its file.
    pub fn known_model(&self, model: u32) -> Option<Arc<UsedModel>> {
        self.models_in_use.versions().get(model).cloned()
    }

    pub fn key(&self, key: Key) -> &Entry {
        self.keys.get(key.0)
    }

    /// Whether ids are strings, those of users as well.
    pub fn has_text_ids(&self) -> bool {
        self.keys.list().first().is_some_and(|id| id.type_of == Type::Str)
    }

    /// How the endpoints of this environment and of another differ, in one sentence; plans must mean the same in both.
    pub fn difference(&self, here: &str, other: &Registry, there: &str) -> Option<String> {
        let mut parts = Vec::new();
        for (ours, theirs, of) in [(self, other, here), (other, self, there)] {
            let names = ours.endpoints.list().iter().map(|endpoint| endpoint.name.as_str());
            let mut only: Vec<&str> = names.filter(|name| theirs.endpoints.named(name).is_none()).collect();
            only.sort_unstable();
            if !only.is_empty() {
                parts.push(format!("only in {of}: {}", listed(&only)));
            }
        }
        for ours in self.endpoints.list() {
            let Some(theirs) = other.endpoints.named(&ours.name).map(|at| other.endpoints.get(at)) else { continue };
            let (a, b) = ((&ours.endpoint_id, &ours.kind), (&theirs.endpoint_id, &theirs.kind));
            if a != b {
                let difference = format!("{} of kind {} in {here} and {} of kind {} in {there}", a.0, a.1, b.0, b.1);
                parts.push(format!("{} is {difference}", ours.name));
            }
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// A list of names, no longer than is easy to read.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    match names.len() {
        many @ 13.. => format!("{} and {} more", names[..SHOWN].join(", "), many - SHOWN),
        _ => names.join(", "),
    }
}

fn digest_of(texts: [&str; 4]) -> String {
    let mut writer = Writer::new();
    writer.array(|w| {
        for text in texts {
            w.string(text);
        }
    });
    sha256(&writer.finish())
}

impl Schema for Registry {
    fn key_type(&self, key: Key) -> Type {
        self.key(key).type_of
    }

    fn param_type(&self, param: u32) -> Type {
        self.params.get(param).type_of
    }
}

/// `id` is key 1, an int or a string, never null and never written: rows are built on it. What names another row has its type.
fn check_id_key(keys: &Named<Entry>, found: &mut Diagnostics) {
    let wrong = match keys.list().first().filter(|key| key.name == "id") {
        None => Some("the registry has no key named id"),
        Some(id) if id.id != 1 => Some("the key id must have key_id 1"),
        Some(id) if !matches!(id.type_of, Type::Int | Type::Str) || id.nullable => {
            Some("the key id must be an int or a string and not nullable")
        }
        Some(id) if id.default.is_some() => Some("the key id has no default: every row has an id"),
        Some(id) if id.allow_write || !id.allow_read || id.status != Status::Active => {
            Some("the key id must be active and readable, with allow_write = false")
        }
        Some(_) => None,
    };
    if let Some(wrong) = wrong {
        let entry = "key_id = 1, name = \"id\", type = \"int\" or \"string\", nullable = false, allow_write = false";
        found.push(Diagnostic::new(Code::BadIdKey, "", wrong).help(format!("it must be: {entry}")));
    }
    if keys.list().first().is_some_and(|key| key.name == "id" && key.pii) {
        let message = "the key id cannot be personal: rows are told apart by it";
        found.push(Diagnostic::new(Code::PrivateId, "", message).bytes(keys.place(0)));
    }
    let (id, parent) = (keys.list().first(), keys.named("parent_id"));
    if let (Some(id), Some(at)) = (id.filter(|id| id.name == "id"), parent)
        && keys.get(at).type_of != id.type_of
    {
        let message =
            format!("the key parent_id is of type {}, but id is of type {}", keys.get(at).type_of, id.type_of);
        let help = format!("it names a row, so write: type = {:?}", id.type_of.to_string());
        found.push(Diagnostic::new(Code::BadIdKey, "", message).bytes(keys.place(at)).help(help));
    }
}
