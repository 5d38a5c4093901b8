//! Random rows with a column of each type, as values, and the ways to ask for them and to compare.

use rankd_column::value::List;
use rankd_column::{Element, Key, Type, Value};
use rankd_edge::table_file::{self, BadCells, TableColumns, TableFileError, TableIds, Wanted, WantedColumn};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The columns besides `id`.
pub(crate) const COLUMNS: [(&str, Type); 9] = [
    ("n", Type::Int),
    ("x", Type::Float),
    ("b", Type::Bool),
    ("s", Type::Str),
    ("t", Type::Int),
    ("li", Type::List(Element::Int)),
    ("lf", Type::List(Element::Float)),
    ("ls", Type::List(Element::Str)),
    ("v", Type::Vector(3)),
];

pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) cells: Vec<Value>,
}

/// Numbers that are as good as random.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 16) as usize % limit
    }

    fn int(&mut self) -> i64 {
        let shift = self.below(64);
        (self.next() as i64) >> shift
    }

    fn float(&mut self) -> f64 {
        match self.below(3) {
            0 => self.below(1000) as f64 / 8.0,
            1 => -(self.below(100_000) as f64) / 100.0,
            _ => Some(f64::from_bits(self.next())).filter(|value| value.is_finite()).unwrap_or(0.1),
        }
    }

    fn text(&mut self) -> String {
        const WORDS: [&str; 8] =
            ["", "a", "é", "comma, \"quote\"", "two\nlines", "\r\n\t", "🦀", "a longer one, which does not fit a view"];
        let more = if self.below(4) == 0 { self.below(1000).to_string() } else { String::new() };
        WORDS[self.below(WORDS.len())].to_owned() + &more
    }
}

pub(crate) fn random_rows(random: &mut Random, count: usize) -> Vec<Row> {
    let mut ids: Vec<i64> = (0..count as i64).map(|id| id * 3 - 5).collect();
    (1..count).rev().for_each(|at| ids.swap(at, random.below(at + 1)));
    ids.into_iter()
        .map(|id| Row { id, cells: COLUMNS.iter().map(|(_, type_of)| cell(random, *type_of)).collect() })
        .collect()
}

fn cell(random: &mut Random, type_of: Type) -> Value {
    if random.below(5) == 0 {
        return Value::Null;
    }
    match type_of {
        // The column `t` is milliseconds: they must be a time.
        Type::Int => Value::Int(random.int() >> 12),
        Type::Float => Value::Float(random.float()),
        Type::Bool => Value::Bool(random.below(2) == 0),
        Type::Str => Value::str(&random.text()),
        Type::List(element) => {
            let count = random.below(4);
            Value::List(Arc::new(match element {
                Element::Int => List::Int((0..count).map(|_| random.int()).collect()),
                Element::Float => List::Float((0..count).map(|_| random.float()).collect()),
                Element::Str => List::Str((0..count).map(|_| random.text().into()).collect()),
            }))
        }
        Type::Vector(dimension) => {
            Value::Vector((0..dimension).map(|_| random.below(1000) as f32 / 8.0 - 50.0).collect())
        }
    }
}

pub(crate) fn wanted() -> Wanted {
    let columns = COLUMNS.iter().enumerate().map(|(at, (name, type_of))| WantedColumn {
        name: (*name).to_owned(),
        key: Key(at as u32 + 1),
        type_of: *type_of,
    });
    Wanted { id: Some("id".to_owned()), id_type: Type::Int, columns: columns.collect(), bad_cells: BadCells::Refuse }
}

pub(crate) fn read(path: &Path) -> Result<TableColumns, TableFileError> {
    table_file::read(path, &wanted(), &mut |_| {})
}

/// Fails unless the table has exactly these rows.
pub(crate) fn compare(table: &TableColumns, rows: &[Row], name: &str) {
    let ids: &[i64] = if let Some(TableIds::Ints(ids)) = &table.ids { ids } else { &[] };
    assert_eq!(ids, rows.iter().map(|row| row.id).collect::<Vec<_>>(), "{name}");
    assert_eq!(table.columns.len(), COLUMNS.len(), "{name}");
    for (key, column) in &table.columns {
        let at = key.0 as usize - 1;
        assert_eq!(column.len(), rows.len());
        for (number, row) in rows.iter().enumerate() {
            let (found, expected) = (column.value(number), &row.cells[at]);
            assert_eq!(found.to_string(), expected.to_string(), "{name}: row {number}, column {}", COLUMNS[at].0);
        }
    }
}

/// A row as JSON, with nulls or without the fields that are null.
pub(crate) fn json(row: &Row, with_nulls: bool) -> String {
    let cells = COLUMNS.iter().zip(&row.cells).filter(|(_, cell)| with_nulls || **cell != Value::Null);
    let cells: String = cells.map(|((name, _), cell)| format!(",\"{name}\":{}", json_value(cell))).collect();
    format!("{{\"id\":{}{cells}}}", row.id)
}

pub(crate) fn json_value(value: &Value) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(","));
    match value {
        Value::Null => "null".to_owned(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Bool(value) => value.to_string(),
        Value::Str(text) => json_text(text),
        Value::List(values) => list(match &**values {
            List::Int(values) => values.iter().map(i64::to_string).collect(),
            List::Float(values) => values.iter().map(|value| format!("{value:?}")).collect(),
            List::Str(values) => values.iter().map(|text| json_text(text)).collect(),
        }),
        Value::Vector(values) => list(values.iter().map(|value| format!("{value:?}")).collect()),
    }
}

fn json_text(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if u32::from(c) < 0x20 => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

/// The rows as CSV, by somebody who only knows RFC 4180.
pub(crate) fn csv(rows: &[Row], delimiter: &str, newline: &str) -> String {
    let quote = |text: &str| match text.is_empty() || text.contains([',', '\t', '"', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::Str(text) => quote(text),
        value => quote(&json_value(value)),
    };
    let header: Vec<&str> = std::iter::once("id").chain(COLUMNS.iter().map(|(name, _)| *name)).collect();
    let mut text = header.join(delimiter) + newline;
    for row in rows {
        let cells: Vec<String> = std::iter::once(row.id.to_string()).chain(row.cells.iter().map(cell)).collect();
        text += &(cells.join(delimiter) + newline);
    }
    text
}

/// A folder of this test, removed when it is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("rankd-table-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    #[expect(clippy::disallowed_methods, reason = "a test writes the files that it reads")]
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}
