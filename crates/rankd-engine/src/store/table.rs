//! The protocol of tables: columns that are held in the process, and that runs look at where they lie.
//!
//! A [`Table`] is one version of one endpoint's table and never changes. [`Tables`] has the versions that are in use now and swaps in
//! new ones: a run takes [`TableVersions`] once, when it starts, and sees nothing of a swap. A plan that names no table takes none.
//! Where the columns come from is not known here. What a task sees is in [`crate::task`].

use crate::link::Linked;
use crate::store::{Open, Opened};
use arc_swap::ArcSwap;
use rankd_column::index::{GroupIndex, IdIndex};
use rankd_column::kernel::vector_copy::{CopyKind, VectorCopy};
use rankd_column::{Batch, Cells, Column, Dictionary, IdDictionary, IdFault, IdTexts, Key, RowSet};
use rankd_plan::plan::Arg;
use rankd_plan::signature::ParamKind;
use rankd_plan::signature::typed::ParamType;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The kind of the registry's endpoints that are tables.
pub const KIND: &str = "table";

/// An endpoint that is a table: a parameter of a task, and its position in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableEndpoint(pub u32);

impl ParamType for TableEndpoint {
    type Value = TableEndpoint;
    const KIND: ParamKind = ParamKind::Endpoint(&[KIND]);

    fn read(arg: &Arg) -> Option<TableEndpoint> {
        match arg {
            Arg::Endpoint(at) => Some(TableEndpoint(*at)),
            _ => None,
        }
    }
}

/// What is loaded for a table: ids, which are distinct, and the columns of as many rows.
#[derive(Clone, Debug)]
pub struct TableData {
    pub ids: TableIds,
    pub columns: Vec<(Key, Arc<Column>)>,
    /// The SHA-256 of the file that it was read from, where there is one.
    pub sha256: Option<Arc<str>>,
}

/// The ids of a table.
#[derive(Clone, Debug)]
pub enum TableIds {
    Ints(Vec<i64>),
    /// Texts: the code of each is the number of its row.
    Texts(Dictionary),
}

/// Copies of the vectors of a table's columns, by position of the column in the batch: one of each kind, where it was asked for.
type VectorCopies = [[OnceLock<Option<VectorCopy>>; CopyKind::ALL.len()]];

/// One version of a table.
#[derive(Debug)]
pub struct Table {
    rows: RowSet,
    /// The ids as a column, where they are texts. Those of the rows are codes of the dictionary of all tables.
    id_texts: Option<Arc<Column>>,
    ids: OnceLock<IdIndex>,
    /// By position of the column in the batch.
    groups: Box<[OnceLock<Option<GroupIndex>>]>,
    copies: Arc<VectorCopies>,
    bytes: usize,
    sha256: Option<Arc<str>>,
}

impl Table {
    /// Text ids become codes of `known`, to which they are added.
    fn new(data: TableData, known: &mut IdDictionary) -> Result<Table, IdFault> {
        let TableData { ids, columns, sha256 } = data;
        let (ids, id_texts) = match ids {
            TableIds::Ints(ids) => (ids, None),
            TableIds::Texts(texts) => {
                let codes = texts.iter().map(|text| known.add(text)).collect::<Result<Vec<_>, _>>()?;
                let rows = (0..texts.len() as u32).collect();
                (codes, Some(Arc::new(Column::Str(Cells::full(rows), Arc::new(texts)))))
            }
        };
        let batch = columns.into_iter().fold(Batch::new(ids), |batch, (key, column)| batch.with(key, column));
        let copies = batch.columns().iter().map(|_| Default::default()).collect();
        Ok(Table { sha256, ..Table::of(batch, id_texts, copies) })
    }

    fn of(batch: Batch, id_texts: Option<Arc<Column>>, copies: Arc<VectorCopies>) -> Table {
        let bytes = batch.made_parts().map(|(_, bytes)| bytes).sum::<usize>();
        let bytes = bytes + id_texts.as_ref().map_or(0, |column| column.bytes());
        let groups = batch.columns().iter().map(|_| OnceLock::new()).collect();
        let rows = RowSet::new(batch.into_kept());
        Table { rows, id_texts, ids: OnceLock::new(), groups, copies, bytes, sha256: None }
    }

    /// The same table with codes of another dictionary, to which its texts are added.
    fn recoded(&self, known: &mut IdDictionary) -> Result<Table, IdFault> {
        let Some(Column::Str(_, texts)) = self.id_texts.as_deref() else {
            return Ok(self.with_ids(self.batch().ids().to_vec()));
        };
        let codes = texts.iter().map(|text| known.add(text)).collect::<Result<Vec<_>, _>>()?;
        Ok(self.with_ids(codes))
    }

    fn with_ids(&self, ids: Vec<i64>) -> Table {
        let columns = self.batch().columns().iter().cloned();
        let batch = columns.fold(Batch::new(ids), |batch, (key, column)| batch.with(key, column));
        Table { sha256: self.sha256.clone(), ..Table::of(batch, self.id_texts.clone(), self.copies.clone()) }
    }

    /// All rows, where they lie. `texts` are the run's, where ids are texts.
    pub fn rows(&self, texts: Option<&Arc<IdTexts>>) -> RowSet {
        match (texts, &self.id_texts) {
            (Some(texts), Some(column)) => RowSet::new(self.batch().seen_with(texts.clone(), column.clone())),
            _ => self.rows.clone(),
        }
    }

    /// The SHA-256 of the file that it was read from, where there is one.
    pub fn sha256(&self) -> Option<&Arc<str>> {
        self.sha256.as_ref()
    }

    pub fn batch(&self) -> &Batch {
        self.rows.batch()
    }

    /// How many bytes the columns take, and the indexes and copies that were made so far.
    pub fn bytes(&self) -> usize {
        let groups = self.groups.iter().filter_map(|index| index.get()?.as_ref()).map(GroupIndex::bytes);
        let copies = self.copies.iter().flatten().filter_map(|copy| copy.get()?.as_ref()).map(VectorCopy::bytes);
        self.bytes + self.ids.get().map_or(0, IdIndex::bytes) + groups.sum::<usize>() + copies.sum::<usize>()
    }

    /// The rows by id, made when it is first asked for.
    pub fn id_index(&self) -> &IdIndex {
        self.ids.get_or_init(|| IdIndex::new(self.batch().ids()))
    }

    /// The rows by the values of a column, made when it is first asked for; `None` where the table has no such column, or it is one
    /// whose values are not matched.
    pub fn group_index(&self, key: Key) -> Option<&GroupIndex> {
        let (at, column) = self.column(key)?;
        self.groups[at].get_or_init(|| GroupIndex::new(column)).as_ref()
    }

    /// A copy of the vectors of a column, made when it is first asked for; `None` where the table has no such column, or it is one
    /// without vectors.
    pub fn vector_copy(&self, key: Key, kind: CopyKind) -> Option<&VectorCopy> {
        let (at, column) = self.column(key)?;
        self.copies[at][kind as usize].get_or_init(|| VectorCopy::new(column, kind)).as_ref()
    }

    /// A column and its position.
    fn column(&self, key: Key) -> Option<(usize, &Column)> {
        let at = self.batch().columns().binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some((at, &self.batch().columns()[at].1))
    }

    fn build(&self, part: TablePart) {
        match part {
            TablePart::Index(Key::ID) => drop(self.id_index()),
            TablePart::Index(key) => drop(self.group_index(key)),
            TablePart::Copy(key, kind) => drop(self.vector_copy(key, kind)),
        }
    }
}

/// The version of each table that is in use at one moment.
#[derive(Clone, Debug, Default)]
pub struct TableVersions {
    /// By position of the endpoint; `None` for one that is no table, or is not loaded.
    tables: Vec<Option<Arc<Table>>>,
    /// The ids of all tables, where they are texts.
    ids: Arc<IdDictionary>,
}

impl TableVersions {
    pub fn get(&self, TableEndpoint(endpoint): TableEndpoint) -> Option<&Arc<Table>> {
        self.tables.get(endpoint as usize)?.as_ref()
    }

    /// What the ids of all tables are codes of, where they are texts.
    pub fn ids(&self) -> &Arc<IdDictionary> {
        &self.ids
    }

    /// How many different ids there can be at most.
    fn rows(&self) -> usize {
        self.tables.iter().flatten().map(|table| table.batch().len()).sum()
    }
}

/// A dictionary of this many ids and more is made anew when half of them belong to no table any more.
const RENEWED_FROM: usize = 4096;

/// What is made of the columns of a table, once for each version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TablePart {
    /// An index that rows are looked up in, by this key.
    Index(Key),
    /// A copy of the vectors of a key.
    Copy(Key, CopyKind),
}

/// What a linked plan needs of a table.
pub type TableNeed = (TableEndpoint, TablePart);

/// The tables of a process.
#[derive(Debug, Default)]
pub struct Tables {
    versions: ArcSwap<TableVersions>,
    /// What linked plans need. Held while something is swapped, so that no version is without it.
    needs: Mutex<BTreeSet<(u32, TablePart)>>,
}

impl Tables {
    /// The versions that are in use now.
    pub fn versions(&self) -> Arc<TableVersions> {
        self.versions.load_full()
    }

    /// Builds the indexes and copies that a plan needs, here and in all later versions, so that no run has to.
    pub fn prepare(&self, plan: &Linked) {
        let mut needs = self.needs.lock().unwrap_or_else(PoisonError::into_inner);
        let versions = self.versions();
        for &(endpoint, part) in plan.table_needs() {
            needs.insert((endpoint.0, part));
            if let Some(table) = versions.get(endpoint) {
                table.build(part);
            }
        }
    }

    /// Puts a version in the place of the one that is in use, if there is one. Runs that have started keep theirs. Nothing changes
    /// where a text cannot be an id.
    pub fn swap(&self, TableEndpoint(endpoint): TableEndpoint, data: TableData) -> Result<(), IdFault> {
        // Held to the end: a plan that is linked meanwhile finds what it needs in what is swapped in.
        let needs = self.needs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut versions = TableVersions::clone(&self.versions.load());
        let has_texts = matches!(data.ids, TableIds::Texts(_));
        let mut ids = if has_texts { IdDictionary::clone(&versions.ids) } else { IdDictionary::default() };
        let table = Table::new(data, &mut ids)?;
        let at = endpoint as usize;
        versions.tables.resize_with(versions.tables.len().max(at + 1), || None);
        versions.tables[at] = Some(Arc::new(table));
        if has_texts {
            if ids.len() >= RENEWED_FROM && ids.len() / 2 > versions.rows() {
                ids = IdDictionary::default();
                for table in versions.tables.iter_mut().flatten() {
                    *table = Arc::new(table.recoded(&mut ids)?);
                }
            }
            versions.ids = Arc::new(ids);
        }
        for (endpoint, part) in needs.iter() {
            if let Some(table) = versions.get(TableEndpoint(*endpoint)) {
                table.build(*part);
            }
        }
        self.versions.store(Arc::new(versions));
        Ok(())
    }
}

/// A table as an endpoint: nothing is opened, because it is in the process.
pub struct OpenTable {
    name: String,
    tables: Arc<Tables>,
}

impl OpenTable {
    /// One of these tables, by the endpoint's name.
    pub fn new(name: &str, tables: Arc<Tables>) -> OpenTable {
        OpenTable { name: name.to_owned(), tables }
    }
}

impl Open for OpenTable {
    fn open(&self) -> Opened {
        Opened::default()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn tables(&self) -> Option<Arc<Tables>> {
        Some(self.tables.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_column::{DictionaryBuilder, Value};

    fn data(ids: TableIds, rows: usize, author: i64) -> TableData {
        let columns = vec![(Key(1), Arc::new(Column::Int(Cells::full(vec![author; rows]))))];
        TableData { ids, columns, sha256: None }
    }

    fn ints(ids: &[i64], author: i64) -> TableData {
        data(TableIds::Ints(ids.to_vec()), ids.len(), author)
    }

    fn texts(texts: impl IntoIterator<Item = String>) -> TableData {
        let mut ids = DictionaryBuilder::default();
        for text in texts {
            ids.code(&text);
        }
        let ids = ids.finish();
        let rows = ids.len();
        data(TableIds::Texts(ids), rows, 7)
    }

    #[test]
    fn a_swap_changes_nothing_of_the_versions_that_were_taken() {
        let (tables, movies) = (Tables::default(), TableEndpoint(2));
        assert!(tables.versions().get(movies).is_none());
        tables.swap(movies, ints(&[1, 2], 7)).unwrap();
        let before = tables.versions();
        tables.swap(movies, ints(&[3], 8)).unwrap();
        assert_eq!(before.get(movies).map(|table| table.batch().ids().to_vec()), Some(vec![1, 2]));
        assert_eq!(tables.versions().get(movies).map(|table| table.batch().len()), Some(1));
        assert!(tables.versions().get(TableEndpoint(0)).is_none());
    }

    #[test]
    fn rows_are_found_by_id_and_by_column() {
        let table = Table::new(ints(&[5, 9], 7), &mut IdDictionary::default()).unwrap();
        assert_eq!((table.id_index().row(9), table.rows(None).batch().made_bytes()), (1, 0));
        let before = table.bytes();
        assert_eq!(table.group_index(Key(1)).map(|index| index.rows_of_int(7)), Some(&[0, 1][..]));
        assert!(table.group_index(Key(2)).is_none() && table.bytes() > before);
    }

    #[test]
    fn text_ids_keep_their_codes_until_most_are_gone() {
        let (tables, movies, users) = (Tables::default(), TableEndpoint(0), TableEndpoint(1));
        let named = |from: usize, to: usize| texts((from..to).map(|at| format!("tt{at}")));
        tables.swap(users, named(0, 10)).unwrap();
        tables.swap(movies, named(5, 3000)).unwrap();
        let code = |versions: &TableVersions, text| versions.ids().code(text);
        let before = tables.versions();
        tables.swap(movies, named(3000, 6000)).unwrap();
        let after = tables.versions();
        assert_eq!((code(&before, "tt5"), after.ids().len()), (code(&after, "tt5"), 6000));
        tables.swap(movies, named(3000, 4000)).unwrap();
        let renewed = tables.versions();
        assert_eq!((renewed.ids().len(), code(&renewed, "tt4000")), (1010, None));
        for (versions, endpoint, row, text) in
            [(&before, movies, 0, "tt5"), (&renewed, users, 3, "tt3"), (&renewed, movies, 999, "tt3999")]
        {
            let run = Arc::new(IdTexts::new(versions.ids().clone()));
            let table = versions.get(endpoint).unwrap();
            let rows = table.rows(Some(&run));
            assert_eq!(rows.value(Key::ID, row), Value::str(text));
            assert_eq!(table.id_index().row(run.code(text).unwrap()), row as u32);
        }
        assert_eq!(tables.swap(movies, texts(["a\nb".to_owned()])), Err(IdFault::ControlCharacter));
        assert_eq!(tables.versions().ids().len(), 1010, "nothing has changed");
    }
}
