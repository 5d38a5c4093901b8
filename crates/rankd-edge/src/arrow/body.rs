//! The body of a record batch: the cells of each field, gathered through the views of the outputs, as Arrow's buffers.

use crate::arrow::{ArrowField, TooMuchText};
use rankd_column::{Column, Key, RowSet, Type};

/// Buffers one after the other, each from a multiple of eight on, and where they are.
#[derive(Default)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// By field: how many rows, how many of them null.
    pub(super) nodes: Vec<[i64; 2]>,
    /// Offset and length.
    pub(super) buffers: Vec<[i64; 2]>,
}

impl Body {
    pub(super) fn ids(&mut self, outputs: &[RowSet]) {
        let (mut valid, mut values) = (Bits::default(), Vec::new());
        for id in outputs.iter().flat_map(|output| output.rows().iter().map(|row| output.batch().ids()[row])) {
            valid.push(true);
            values.extend(id.to_le_bytes());
        }
        self.field(&valid, &[&values]);
    }

    pub(super) fn add(&mut self, field: &ArrowField<'_>, outputs: &[RowSet]) -> Result<(), TooMuchText> {
        let mut valid = Bits::default();
        match field.type_of {
            Type::Int => {
                let mut values = Vec::new();
                each(outputs, field.key, |column, row| {
                    let cell = if let Some(Column::Int(cells)) = column { cells.get(row) } else { None };
                    valid.push(cell.is_some());
                    values.extend(cell.unwrap_or_default().to_le_bytes());
                });
                self.field(&valid, &[&values]);
            }
            Type::Float => {
                let mut values = Vec::new();
                each(outputs, field.key, |column, row| {
                    let cell = if let Some(Column::Float(cells)) = column { cells.get(row) } else { None };
                    valid.push(cell.is_some());
                    values.extend(cell.unwrap_or_default().to_le_bytes());
                });
                self.field(&valid, &[&values]);
            }
            Type::Bool => {
                let mut values = Bits::default();
                each(outputs, field.key, |column, row| {
                    let cell = if let Some(Column::Bool(cells)) = column { cells.get(row) } else { None };
                    valid.push(cell.is_some());
                    values.push(cell.unwrap_or_default());
                });
                self.field(&valid, &[&values.bytes]);
            }
            Type::Str => {
                let (mut ends, mut text) = (vec![0; 4], Vec::new());
                let mut fits = true;
                each(outputs, field.key, |column, row| {
                    let cell = if let Some(Column::Str(cells, dictionary)) = column {
                        cells.get(row).map(|code| dictionary.get(code))
                    } else {
                        None
                    };
                    valid.push(cell.is_some());
                    let cell = cell.unwrap_or_default().as_bytes();
                    match offset(text.len() + cell.len()) {
                        Some(end) if fits => {
                            text.extend(cell);
                            ends.extend(end.to_le_bytes());
                        }
                        _ => fits = false,
                    }
                });
                if !fits {
                    return Err(TooMuchText { key: field.name.to_owned() });
                }
                self.field(&valid, &[&ends, &text]);
            }
        }
        Ok(())
    }

    /// A field without nulls needs no bits that say so.
    fn field(&mut self, valid: &Bits, buffers: &[&[u8]]) {
        self.nodes.push([valid.len as i64, valid.unset as i64]);
        self.buffer(if valid.unset == 0 { &[] } else { &valid.bytes });
        buffers.iter().for_each(|bytes| self.buffer(bytes));
    }

    fn buffer(&mut self, bytes: &[u8]) {
        self.buffers.push([self.bytes.len() as i64, bytes.len() as i64]);
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }
}

/// Visits the rows of all outputs in order, each with the column of the key in its output, if that has one.
fn each(outputs: &[RowSet], key: Key, mut visit: impl FnMut(Option<&Column>, usize)) {
    for output in outputs {
        let column = output.batch().column(key).map(|column| &**column);
        output.rows().iter().for_each(|row| visit(column, row));
    }
}

/// Where a text ends, if Arrow's 32 bits can say it.
fn offset(end: usize) -> Option<i32> {
    i32::try_from(end).ok()
}

/// A bit a row, the lowest bit first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    len: usize,
    unset: usize,
}

impl Bits {
    fn push(&mut self, set: bool) {
        let bit = self.len % 8;
        if bit == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(set) << bit;
        }
        self.len += 1;
        self.unset += usize::from(!set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_where_thirty_two_bits_end() {
        assert_eq!(offset(i32::MAX as usize), Some(i32::MAX));
        assert_eq!(offset(i32::MAX as usize + 1), None);
    }
}
