//! The tables of a registry: their files read into columns, checked, and put in the place of earlier versions.
//!
//! A file is read beside the version that is in use, on the thread that asks for it. What is wrong with it leaves that version where
//! it is. How the bytes of a file become columns is in [`crate::table_file`].

use crate::date;
use crate::files::{self, Stamp};
use crate::table_file::{self, BadCell, LeftOut, TableColumns, TableFileError, TableProblem, Wanted, WantedColumn};
use rankd_column::{Column, IdFault, Key, Stop, Value};
use rankd_engine::store::table::{OpenTable, TableData, TableIds};
use rankd_engine::store::{Open, Table, TableEndpoint, Tables};
use rankd_plan::Registry;
use rankd_plan::registry::{Absent, BadCells, EndpointSettings, TableFile};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{error::Error, fmt};

/// A file of more bytes tells how far its reading has come, so many times.
const TELLS: u64 = 4;

/// The tables of a registry, and where each comes from.
pub struct TableFiles {
    tables: Arc<Tables>,
    sources: Vec<Arc<TableSource>>,
}

/// Where a table comes from, and what became of reading it so far.
pub struct TableSource {
    endpoint: TableEndpoint,
    name: String,
    path: PathBuf,
    wanted: Wanted,
    /// What a cell is where the file has no value: a default, or nothing that is allowed.
    rules: Vec<(Key, String, Option<Value>)>,
    loaded_ms: AtomicU64,
    reloads: AtomicU64,
    failed: AtomicU64,
}

/// A file that was read and can be used.
#[derive(Debug)]
pub struct LoadedTable {
    data: TableData,
    /// Columns of the file that no key has.
    pub left_out: Vec<LeftOut>,
    /// How many cells could not be read and are null, and the first of them.
    pub bad_cells: (u64, Vec<BadCell>),
}

/// Why a file cannot be used.
#[expect(missing_docs, reason = "the line of a variant says what its fields are")]
#[derive(Debug)]
pub enum TableError {
    /// It cannot be read as a table.
    File(TableFileError),
    /// A row, counted from 1, has no value for a key that has to have one.
    NoValue { path: PathBuf, key: String, row: usize },
    /// It lacks columns that plans read, which the version in use has.
    NoColumns { path: PathBuf, keys: Vec<String>, plan: String },
    /// A text cannot be an id.
    Id { path: PathBuf, fault: IdFault },
}

impl TableError {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, TableError::File(TableFileError { problem: TableProblem::File(error), .. })
            if error.kind() == io::ErrorKind::NotFound)
    }
}

impl Error for TableError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TableError::File(error) => Some(error),
            TableError::Id { fault, .. } => Some(fault),
            TableError::NoValue { .. } | TableError::NoColumns { .. } => None,
        }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::File(error) => error.fmt(f),
            TableError::NoValue { path, key, row } => write!(
                f,
                "{}: row {row} has no value for the key {key:?}, which is not nullable and has no default",
                path.display()
            ),
            TableError::NoColumns { path, keys, plan } => {
                write!(f, "{}: no column for {}, which plan {plan} reads", path.display(), keys.join(", "))
            }
            TableError::Id { path, fault } => write!(f, "{}: {fault}", path.display()),
        }
    }
}

impl TableFiles {
    /// The tables of a registry, none of which is loaded; `None` where it has no table.
    pub fn new(registry: &Registry) -> Option<TableFiles> {
        let sources: Vec<Arc<TableSource>> = (0..)
            .zip(registry.endpoints.list())
            .filter_map(|(at, endpoint)| match &endpoint.settings {
                EndpointSettings::Table(file) => Some(Arc::new(TableSource::new(at, &endpoint.name, file, registry))),
                EndpointSettings::Redis(_) | EndpointSettings::Http(_) => None,
            })
            .collect();
        (!sources.is_empty()).then(|| TableFiles { tables: Arc::default(), sources })
    }

    /// In registry order.
    pub fn sources(&self) -> &[Arc<TableSource>] {
        &self.sources
    }

    /// The table of an endpoint as the engine opens it.
    pub fn endpoint(&self, name: &str) -> Arc<dyn Open> {
        Arc::new(OpenTable::new(name, self.tables.clone()))
    }

    /// Reads every file and takes it into use. What is only worth knowing goes to `note`.
    pub fn load_all(&self, registry: &Registry, note: &mut dyn FnMut(String)) -> Result<(), TableError> {
        for source in &self.sources {
            let loaded = source.load(note)?;
            self.put(source, loaded, registry)?;
        }
        Ok(())
    }

    /// Takes a file into use, and tells the registry which columns there are.
    pub fn put(&self, source: &TableSource, loaded: LoadedTable, registry: &Registry) -> Result<(), TableError> {
        let keys = loaded.keys();
        let path = || source.path.clone();
        self.tables.swap(source.endpoint, loaded.data).map_err(|fault| TableError::Id { path: path(), fault })?;
        source.loaded_ms.store(date::millis(), Ordering::Relaxed);
        registry.know_columns(source.endpoint.0, keys);
        Ok(())
    }

    /// Tells another registry, with the same keys, which columns the tables have.
    pub fn tell(&self, registry: &Registry) {
        let versions = self.tables.versions();
        for source in &self.sources {
            if let Some(table) = versions.get(source.endpoint) {
                let keys = table.batch().columns().iter().map(|(key, _)| *key).collect();
                registry.know_columns(source.endpoint.0, keys);
            }
        }
    }

    /// The version of a table that is in use.
    pub fn current(&self, source: &TableSource) -> Option<Arc<Table>> {
        self.tables.versions().get(source.endpoint).cloned()
    }
}

impl TableSource {
    fn new(at: u32, name: &str, file: &TableFile, registry: &Registry) -> TableSource {
        let keys = || (0..registry.keys.list().len() as u32).map(Key);
        let columns = keys().filter_map(|key| {
            let entry = registry.key(key);
            let name = file.column_of(key, entry)?.to_owned();
            Some(WantedColumn { name, key, type_of: entry.type_of })
        });
        let rules = keys().filter_map(|key| {
            let entry = registry.key(key);
            match entry.absent() {
                Absent::Null => None,
                Absent::Default(value) => Some((key, entry.name.clone(), Some(value.clone()))),
                Absent::Refused => Some((key, entry.name.clone(), None)),
            }
        });
        let wanted = Wanted {
            id: Some(file.id.clone()),
            id_type: registry.key(Key::ID).type_of,
            columns: columns.collect(),
            bad_cells: match file.bad_cells {
                BadCells::Refuse => table_file::BadCells::Refuse,
                BadCells::Null => table_file::BadCells::Null,
            },
        };
        TableSource {
            endpoint: TableEndpoint(at),
            name: name.to_owned(),
            path: file.path.clone().into(),
            wanted,
            rules: rules.collect(),
            loaded_ms: AtomicU64::new(0),
            reloads: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// The endpoint's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The endpoint's position in the registry.
    pub fn endpoint(&self) -> TableEndpoint {
        self.endpoint
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file looks like from outside; `None` where it is not there.
    pub fn stamp(&self) -> Option<Stamp> {
        files::stamp(&self.path)
    }

    /// When the version in use was taken into use, in milliseconds since 1970; 0 while there is none.
    pub fn loaded_ms(&self) -> u64 {
        self.loaded_ms.load(Ordering::Relaxed)
    }

    /// How often a changed file was taken into use, and how often one was refused.
    pub fn reloads(&self) -> (u64, u64) {
        (self.reloads.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    /// Counts a file that has changed, and whether it was taken into use.
    pub fn count_reload(&self, is_good: bool) {
        let count = if is_good { &self.reloads } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads the file. How far a large one has come, and cells that could not be read, go to `note`.
    pub fn load(&self, note: &mut dyn FnMut(String)) -> Result<LoadedTable, TableError> {
        let mut told = 0;
        let mut progress = |progress: table_file::Progress| {
            let part = progress.bytes * TELLS / progress.of.max(1);
            if part > told {
                told = part;
                let (bytes, of) = (progress.bytes >> 20, progress.of >> 20);
                note(format!("{}: {bytes} of {of} MiB read", self.path.display()));
            }
        };
        let read = table_file::read(&self.path, &self.wanted, &mut progress).map_err(TableError::File)?;
        let TableColumns { ids, mut columns, left_out, bad_cells, first_bad_cells, sha256, .. } = read;
        for (key, column) in &mut columns {
            self.keep_rule(*key, column)?;
        }
        if let Some(first) = first_bad_cells.first() {
            note(format!("{}: {bad_cells} cells cannot be read and are null; {first}", self.path.display()));
        }
        let ids = match ids {
            Some(table_file::TableIds::Ints(ids)) => TableIds::Ints(ids),
            Some(table_file::TableIds::Texts(texts)) => TableIds::Texts(texts),
            // It was asked for.
            None => TableIds::Ints(Vec::new()),
        };
        let data = TableData { ids, columns, sha256: sha256.map(Into::into) };
        Ok(LoadedTable { data, left_out, bad_cells: (bad_cells, first_bad_cells) })
    }

    /// What rows without a value get, once for all runs.
    fn keep_rule(&self, key: Key, column: &mut Arc<Column>) -> Result<(), TableError> {
        let Some((_, name, default)) = self.rules.iter().find(|(of, ..)| *of == key) else { return Ok(()) };
        let Some(row) = column.valid().and_then(|valid| valid.iter().position(|there| !there)) else { return Ok(()) };
        // Nothing stops it.
        match default.as_ref().and_then(|value| column.filled(value, Stop::default()).ok().flatten()) {
            Some(filled) => {
                *column = Arc::new(filled);
                Ok(())
            }
            None => Err(TableError::NoValue { path: self.path.clone(), key: name.clone(), row: row + 1 }),
        }
    }
}

impl LoadedTable {
    /// What of the file was not read, in words; `None` where all was.
    pub fn unread(&self) -> Option<String> {
        let columns = self.left_out.iter().map(|LeftOut { name, why }| format!("column {name:?}: {why}"));
        let (count, first) = &self.bad_cells;
        let cells =
            first.first().map(|first| format!("{count} cells cannot be read and are null, the first at {first}"));
        let parts: Vec<String> = columns.chain(cells).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The keys that it has columns for.
    pub fn keys(&self) -> Vec<Key> {
        self.data.columns.iter().map(|(key, _)| *key).collect()
    }
}
