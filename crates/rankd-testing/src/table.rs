//! Tables as they stand in headers, `| id | score |`, and rows. An empty cell is null; a list or vector is a JSON array.

use rankd_column::column::ColumnBuilder;
use rankd_column::{Batch, Key, RowSet, Value};
use rankd_engine::decode;
use rankd_plan::Registry;
use std::sync::Arc;

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

fn key(name: &str, registry: &Registry) -> Key {
    Key(registry.keys.named(name).unwrap_or_else(|| panic!("there is no key {name}")))
}

/// A table as rows. The first column is `id`.
pub(crate) fn read(table: &[String], registry: &Registry) -> RowSet {
    let ids = table[1..].iter().map(|line| cells(line)[0].parse().expect("the first cell is an id")).collect();
    let mut batch = Batch::new(ids);
    for (at, name) in cells(&table[0]).iter().enumerate().skip(1) {
        let key = key(name, registry);
        let mut column = ColumnBuilder::new(registry.key(key).type_of, 0);
        for line in &table[1..] {
            match cells(line).get(at) {
                Some(&"") => column.push_null(),
                Some(text) => {
                    assert!(decode::push_text(&mut column, text.as_bytes()), "{text} is not a value of {name}")
                }
                None => panic!("{line} has fewer cells than {}", table[0]),
            }
        }
        batch = batch.with(key, Arc::new(column.finish()));
    }
    RowSet::new(batch)
}

/// Rows as a table with the columns of `head`.
pub(crate) fn write(rows: &RowSet, head: &str, registry: &Registry) -> Vec<String> {
    let line = |cells: Vec<String>| {
        let padded = cells.into_iter().map(|cell| if cell.is_empty() { " ".into() } else { format!(" {cell} ") });
        format!("|{}|", padded.collect::<Vec<String>>().join("|"))
    };
    let keys: Vec<Key> = cells(head).iter().map(|name| key(name, registry)).collect();
    let mut lines = vec![line(cells(head).iter().map(|name| (*name).to_owned()).collect())];
    for position in 0..rows.len() {
        let cell = |key: &Key| match rows.value(*key, position) {
            Value::Null => String::new(),
            Value::Str(text) => text.to_string(),
            Value::Float(value) => format!("{value:?}"),
            other => other.to_string(),
        };
        lines.push(line(keys.iter().map(cell).collect()));
    }
    lines
}
