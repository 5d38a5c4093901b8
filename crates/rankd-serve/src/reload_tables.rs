//! Takes changed files of tables into use, on the thread that looks after the plans.
//!
//! A file is read beside the version that is in use and then swapped in. One that cannot be used, or that lacks a column which a
//! served plan reads, leaves the last good version where it is, and that is said in the log, by `/readyz` and in the metrics.

use crate::app::App;
use crate::catalog::Catalog;
use crate::watched_tables::WatchedTables;
use rankd_column::Key;
use rankd_edge::tables::{LoadedTable, TableError, TableFiles, TableSource};
use std::collections::BTreeMap;

/// By table: why its file is not what is in use.
#[derive(Default)]
pub(crate) struct TableProblems(BTreeMap<String, String>);

impl TableProblems {
    /// All of them in a sentence; `None` where every file is in use.
    pub(crate) fn message(&self) -> Option<String> {
        let all: Vec<String> = self.0.iter().map(|(table, why)| format!("table {table}: {why}")).collect();
        (!all.is_empty()).then(|| format!("the last good version stays in use: {}", all.join("; ")))
    }
}

/// Reads these tables anew and takes into use what is good.
pub(crate) fn reload(tables: &WatchedTables, due: &[usize], app: &App, problems: &mut TableProblems) {
    let files = tables.files();
    for source in due.iter().filter_map(|at| files.sources().get(*at)) {
        let note = &mut |note: String| app.log.event("info", &note);
        let result = source.load(note).and_then(|loaded| {
            // Until it is in use, no plan may come that reads more columns.
            let _changing = app.change_catalog();
            let catalog = app.catalog.load_full();
            must_have_columns(files, source, &loaded, &catalog)?;
            files.put(source, loaded, &catalog.registry)
        });
        source.count_reload(result.is_ok());
        match result {
            Ok(()) => {
                let rows = files.current(source).map_or(0, |table| table.batch().len());
                app.log.event("info", &format!("table {}: {rows} rows are in use", source.name()));
                problems.0.remove(source.name());
            }
            Err(why) => {
                problems.0.insert(source.name().to_owned(), why.to_string());
            }
        }
    }
}

/// Refuses a file without a column that a served plan reads, where the version in use has it.
fn must_have_columns(
    files: &TableFiles,
    source: &TableSource,
    loaded: &LoadedTable,
    catalog: &Catalog,
) -> Result<(), TableError> {
    let Some(current) = files.current(source) else { return Ok(()) };
    let keys = loaded.keys();
    let is_lost = |key: &&Key| !keys.contains(key) && current.batch().column(**key).is_some();
    for plan in catalog.list() {
        let read = plan.good.iter().flat_map(|good| good.linked.tables());
        let read = read.filter(|(endpoint, _)| *endpoint == source.endpoint()).flat_map(|(_, keys)| keys);
        let lost: Vec<String> = read.filter(is_lost).map(|key| catalog.registry.key(*key).name.clone()).collect();
        if !lost.is_empty() {
            let (path, plan) = (source.path().to_owned(), plan.name.clone());
            return Err(TableError::NoColumns { path, keys: lost, plan });
        }
    }
    Ok(())
}
