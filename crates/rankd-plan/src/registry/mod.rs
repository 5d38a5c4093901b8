//! What plans may name: keys, parameters and endpoints, read from TOML at start.
//!
//! Positions in these lists are what the rest of the program uses; names and numeric ids are looked up once, at load.

mod endpoint;
mod entry;
mod table;

pub use endpoint::{Backend, Endpoint, Inject, Policy};
pub use entry::{Absent, Entry, Status};

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use entry::Sort;
use rankd_column::expr::Schema;
use rankd_column::{Key, Type};
use std::collections::HashMap;

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
}

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named { list: Vec::new(), by_name: HashMap::new(), by_id: HashMap::new() }
    }
}

impl<T> Named<T> {
    /// Adds an entry; an id or name that is taken already is said in words.
    fn add(&mut self, name: String, id: String, entry: T) -> Result<(), String> {
        let at = self.list.len() as u32;
        if self.by_name.contains_key(&name) {
            return Err(format!("the name {name:?} is used twice"));
        }
        if self.by_id.contains_key(&id) {
            return Err(format!("the id {id} is used twice"));
        }
        self.by_name.insert(name, at);
        self.by_id.insert(id, at);
        self.list.push(entry);
        Ok(())
    }

    pub fn list(&self) -> &[T] {
        &self.list
    }

    pub fn get(&self, at: u32) -> &T {
        &self.list[at as usize]
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
}

/// The problems of one registry file.
pub struct FileProblems {
    pub file: String,
    pub diagnostics: Diagnostics,
}

impl Registry {
    /// Reads the three files. What could be read is in the registry even where there are problems.
    pub fn parse(keys: Text<'_>, params: Text<'_>, endpoints: Text<'_>) -> (Registry, Vec<FileProblems>) {
        let mut registry = Registry::default();
        let mut problems = Vec::new();
        let mut keep = |file: &str, diagnostics: Diagnostics| {
            if !diagnostics.list().is_empty() {
                problems.push(FileProblems { file: file.to_owned(), diagnostics });
            }
        };
        let mut found = Diagnostics::default();
        registry.keys = entry::parse(keys.text, Sort::Key, &mut found);
        if found.list().iter().all(|diagnostic| diagnostic.code != Code::BadToml) {
            check_id_key(&registry.keys, &mut found);
        }
        keep(keys.file, found);
        let mut found = Diagnostics::default();
        registry.params = entry::parse(params.text, Sort::Param, &mut found);
        keep(params.file, found);
        let mut found = Diagnostics::default();
        registry.endpoints = endpoint::parse(endpoints.text, &mut found);
        keep(endpoints.file, found);
        (registry, problems)
    }

    pub fn key(&self, key: Key) -> &Entry {
        self.keys.get(key.0)
    }

    /// What differs between the endpoints of this environment and another's; plans must mean the same in both.
    pub fn differences(&self, other: &Registry) -> Vec<String> {
        let names = |registry: &Registry| -> Vec<(String, String, String)> {
            let mut names: Vec<_> = registry
                .endpoints
                .list()
                .iter()
                .map(|e| (e.name.clone(), e.endpoint_id.clone(), e.kind.clone()))
                .collect();
            names.sort();
            names
        };
        let (ours, theirs) = (names(self), names(other));
        let mut differences = Vec::new();
        for (name, id, kind) in ours.iter().filter(|entry| !theirs.contains(entry)) {
            differences.push(match theirs.iter().find(|(n, ..)| n == name) {
                Some((_, i, k)) => format!("{name} is {id} of kind {kind} here and {i} of kind {k} there"),
                None => format!("{name} is only here"),
            });
        }
        for (name, ..) in theirs.iter().filter(|(name, ..)| ours.iter().all(|(n, ..)| n != name)) {
            differences.push(format!("{name} is only there"));
        }
        differences
    }
}

impl Schema for Registry {
    fn key_type(&self, key: Key) -> Type {
        self.key(key).type_of
    }

    fn param_type(&self, param: u32) -> Type {
        self.params.get(param).type_of
    }
}

/// `id` is key 1, an int, never null and never written: rows are built on it.
fn check_id_key(keys: &Named<Entry>, found: &mut Diagnostics) {
    let wrong = match keys.list().first().filter(|key| key.name == "id") {
        None => Some("the registry has no key named id"),
        Some(id) if id.id != 1 => Some("the key id must have key_id 1"),
        Some(id) if id.type_of != Type::Int || id.nullable => Some("the key id must be an int and not nullable"),
        Some(id) if id.allow_write || !id.allow_read || id.status != Status::Active => {
            Some("the key id must be active and readable, with allow_write = false")
        }
        Some(_) => None,
    };
    if let Some(wrong) = wrong {
        let entry = "key_id = 1, name = \"id\", type = \"int\", nullable = false, allow_write = false";
        found.push(Diagnostic::new(Code::BadIdKey, "", wrong).help(format!("it must be: {entry}")));
    }
}
