//! Rows as JSON objects, straight from their columns. Most of what a request costs besides its plan is spent here, so the
//! names of fields are written once for all rows and nothing is allocated for a row.

use rankd_column::{Column, Key, RowSet};
use rankd_plan::Registry;
use rankd_plan::json::{push_float, push_int, push_string};

/// How long rows will be: a guess that saves growing step by step.
pub(crate) fn bytes_about(outputs: &[RowSet]) -> usize {
    outputs.iter().map(|output| output.len() * (16 + 24 * output.batch().columns().len())).sum()
}

/// Writes rows as the items of an array. Each row its id first, then its keys in registry order; a null is left out.
pub(crate) fn push_rows(out: &mut Vec<u8>, output: &RowSet, registry: &Registry, wanted: Option<&[Key]>) {
    let batch = output.batch();
    let columns = batch.columns().iter().filter(|(key, _)| wanted.is_none_or(|keys| keys.contains(key)));
    let fields: Vec<Field<'_>> = columns.map(|(key, column)| Field::new(&registry.key(*key).name, column)).collect();
    let ids = batch.ids();
    let mut before: &[u8] = if out.ends_with(b"[") { b"{\"id\":" } else { b",{\"id\":" };
    for row in output.rows().iter() {
        out.extend_from_slice(before);
        before = b",{\"id\":";
        push_int(out, ids[row]);
        for field in &fields {
            field.push(out, row);
        }
        out.push(b'}');
    }
}

/// A column, and what stands before each of its values.
struct Field<'a> {
    start: Start,
    column: &'a Column,
    valid: Option<&'a [bool]>,
}

impl Field<'_> {
    fn new<'a>(name: &str, column: &'a Column) -> Field<'a> {
        Field { start: Start::new(name), column, valid: column.valid() }
    }

    fn push(&self, out: &mut Vec<u8>, row: usize) {
        if self.valid.is_some_and(|valid| !valid[row]) {
            return;
        }
        self.start.push(out);
        match self.column {
            Column::Int(cells) => push_int(out, cells.values()[row]),
            Column::Float(cells) => push_float(out, cells.values()[row]),
            Column::Bool(cells) => out.extend_from_slice(if cells.values()[row] { b"true" } else { b"false" }),
            Column::Str(cells, dictionary) => push_string(out, dictionary.get(cells.values()[row])),
        }
    }
}

/// `,"name":`, filled up to a fixed length where it is short: so many bytes at once are a single move.
enum Start {
    Short([u8; SHORT], usize),
    Long(Vec<u8>),
}

const SHORT: usize = 32;

impl Start {
    fn new(name: &str) -> Start {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let mut text = [0; SHORT];
        let parts: [&[u8]; 3] = [b",\"", name.as_bytes(), b"\":"];
        let mut used = 0;
        for part in parts {
            match text.get_mut(used..used + part.len()) {
                Some(room) if plain => room.copy_from_slice(part),
                _ => return Start::long(name),
            }
            used += part.len();
        }
        Start::Short(text, used)
    }

    fn long(name: &str) -> Start {
        let mut text = vec![b','];
        push_string(&mut text, name);
        text.push(b':');
        Start::Long(text)
    }

    fn push(&self, out: &mut Vec<u8>) {
        match self {
            Start::Short(text, used) => {
                let end = out.len() + used;
                out.extend_from_slice(text);
                out.truncate(end);
            }
            Start::Long(text) => out.extend_from_slice(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_alike_whether_they_are_short_or_not() {
        let longest = "a".repeat(SHORT - 4);
        for name in ["a", "final_score", "a\"b", "héllo", &longest, &format!("{longest}a")] {
            let (mut out, mut expected) = (vec![b'x'], vec![b'x', b',']);
            Start::new(name).push(&mut out);
            push_string(&mut expected, name);
            expected.push(b':');
            assert_eq!(out, expected, "{name}");
        }
    }
}
