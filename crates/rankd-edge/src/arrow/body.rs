//! The body of a record batch: the cells of each field, gathered through the views of the outputs, as Arrow's buffers.

use crate::arrow::{ArrowField, OUTPUT, TooLong};
use rankd_column::{Column, Element, Elements, Key, RowSet, Type};

/// Buffers one after the other, each from a multiple of eight on, and where they are.
#[derive(Default)]
pub(crate) struct Body {
    pub(super) bytes: Vec<u8>,
    /// By field: how many rows, how many of them null.
    pub(super) nodes: Vec<[i64; 2]>,
    /// Offset and length.
    pub(super) buffers: Vec<[i64; 2]>,
}

impl Body {
    pub(crate) fn ids(&mut self, outputs: &[RowSet]) {
        let (mut valid, mut values) = (Bits::default(), Vec::new());
        for id in outputs.iter().flat_map(|output| output.rows().iter().map(|row| output.batch().ids()[row])) {
            valid.push(true);
            values.extend(id.to_le_bytes());
        }
        self.field(&valid, &[&values]);
    }

    /// The same for ids that are texts.
    pub(crate) fn text_ids(&mut self, outputs: &[RowSet]) -> Result<(), TooLong> {
        let (mut valid, mut texts) = (Bits::default(), Texts::default());
        for output in outputs {
            // Only an output without rows may have ids of no texts.
            let Some(of) = output.batch().id_texts() else { continue };
            output.ids().for_each(|id| {
                valid.push(true);
                texts.push(of.text(id));
            });
        }
        let (ends, text) = texts.finish().ok_or_else(|| TooLong { key: "id".to_owned() })?;
        self.field(&valid, &[&ends, &text]);
        Ok(())
    }

    /// The name of each row's output.
    pub(super) fn names(&mut self, names: &[String], outputs: &[RowSet]) -> Result<(), TooLong> {
        let (mut valid, mut texts) = (Bits::default(), Texts::default());
        for (name, output) in names.iter().zip(outputs) {
            for _ in 0..output.len() {
                valid.push(true);
                texts.push(name);
            }
        }
        let (ends, text) = texts.finish().ok_or_else(|| TooLong { key: OUTPUT.to_owned() })?;
        self.field(&valid, &[&ends, &text]);
        Ok(())
    }

    pub(crate) fn add(&mut self, field: &ArrowField<'_>, outputs: &[RowSet]) -> Result<(), TooLong> {
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
                let mut texts = Texts::default();
                each(outputs, field.key, |column, row| {
                    let cell = if let Some(Column::Str(cells, dictionary)) = column {
                        cells.get(row).map(|code| dictionary.get(code))
                    } else {
                        None
                    };
                    valid.push(cell.is_some());
                    texts.push(cell.unwrap_or_default());
                });
                let (ends, text) = texts.finish().ok_or_else(|| too_long(field))?;
                self.field(&valid, &[&ends, &text]);
            }
            Type::List(element) => self.lists(field, element, outputs)?,
            Type::Vector(dimension) => {
                let mut values = Vec::new();
                let bytes = usize::from(dimension) * size_of::<f32>();
                each(outputs, field.key, |column, row| {
                    let cell = match column {
                        Some(Column::Vector(cells, vectors)) => cells.get(row).map(|at| vectors.get(at)),
                        _ => None,
                    };
                    valid.push(cell.is_some());
                    match cell {
                        Some(vector) => values.extend(vector.iter().flat_map(|value| value.to_le_bytes())),
                        // A null has room for its numbers, too.
                        None => values.resize(values.len() + bytes, 0),
                    }
                });
                self.field(&valid, &[]);
                self.elements(values.len() / size_of::<f32>(), &[&values]);
            }
        }
        Ok(())
    }

    /// Where each list ends, then the elements of all lists as a field of their own.
    fn lists(&mut self, field: &ArrowField<'_>, element: Element, outputs: &[RowSet]) -> Result<(), TooLong> {
        let mut valid = Bits::default();
        let (mut ends, mut count, mut fits) = (vec![0; 4], 0, true);
        let (mut numbers, mut texts) = (Vec::new(), Texts::default());
        each(outputs, field.key, |column, row| {
            let cell = match column {
                Some(Column::List(cells, elements)) => cells.get(row).map(|span| (span, &**elements)),
                _ => None,
            };
            valid.push(cell.is_some());
            count += cell.map_or(0, |(span, _)| span.len as usize);
            match offset(count) {
                Some(end) => ends.extend(end.to_le_bytes()),
                None => fits = false,
            }
            match cell {
                Some((span, Elements::Int(values))) => {
                    numbers.extend(values[span.range()].iter().flat_map(|value| value.to_le_bytes()));
                }
                Some((span, Elements::Float(values))) => {
                    numbers.extend(values[span.range()].iter().flat_map(|value| value.to_le_bytes()));
                }
                Some((span, Elements::Str(codes, dictionary))) => {
                    codes[span.range()].iter().for_each(|code| texts.push(dictionary.get(*code)));
                }
                None => {}
            }
        });
        if !fits {
            return Err(too_long(field));
        }
        self.field(&valid, &[&ends]);
        match element {
            Element::Int | Element::Float => self.elements(count, &[&numbers]),
            Element::Str => {
                let (ends, text) = texts.finish().ok_or_else(|| too_long(field))?;
                self.elements(count, &[&ends, &text]);
            }
        }
        Ok(())
    }

    /// Ints, of which none is null.
    pub(crate) fn ints(&mut self, values: &[i64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.elements(values.len(), &[&bytes]);
    }

    /// Ints, of which some may be null.
    pub(crate) fn optional_ints(&mut self, values: &[Option<i64>]) {
        let mut valid = Bits::default();
        values.iter().for_each(|value| valid.push(value.is_some()));
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.unwrap_or_default().to_le_bytes()).collect();
        self.field(&valid, &[&bytes]);
    }

    /// How many bytes it has so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Texts or bytes, of which some may be null. False where there is too much of it.
    pub(crate) fn texts(&mut self, texts: OptionalTexts) -> bool {
        let OptionalTexts { valid, texts } = texts;
        let Some((ends, text)) = texts.finish() else { return false };
        self.field(&valid, &[&ends, &text]);
        true
    }

    /// Lists that end at these elements; the elements come next. False where they are too many.
    pub(crate) fn list_ends(&mut self, ends: &[usize]) -> bool {
        let mut bytes = vec![0; 4];
        for end in ends {
            let Some(end) = offset(*end) else { return false };
            bytes.extend(end.to_le_bytes());
        }
        self.elements(ends.len(), &[&bytes]);
        true
    }

    /// So many structs, whose fields come next.
    pub(crate) fn structs(&mut self, count: usize) {
        self.elements(count, &[]);
    }

    /// The elements of lists: none of them is null.
    fn elements(&mut self, count: usize, buffers: &[&[u8]]) {
        self.nodes.push([count as i64, 0]);
        self.buffer(&[]);
        buffers.iter().for_each(|bytes| self.buffer(bytes));
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

fn too_long(field: &ArrowField<'_>) -> TooLong {
    TooLong { key: field.name.to_owned() }
}

/// Texts one after the other, and where each ends.
struct Texts {
    ends: Vec<u8>,
    text: Vec<u8>,
    fits: bool,
}

impl Default for Texts {
    fn default() -> Texts {
        Texts { ends: vec![0; 4], text: Vec::new(), fits: true }
    }
}

/// Texts or bytes, of which some may be null.
#[derive(Default)]
pub(crate) struct OptionalTexts {
    valid: Bits,
    texts: Texts,
}

impl OptionalTexts {
    pub(crate) fn push(&mut self, text: Option<&[u8]>) {
        self.valid.push(text.is_some());
        self.texts.push_bytes(text.unwrap_or_default());
    }
}

impl Texts {
    fn push(&mut self, text: &str) {
        self.push_bytes(text.as_bytes());
    }

    fn push_bytes(&mut self, text: &[u8]) {
        match offset(self.text.len() + text.len()) {
            Some(end) if self.fits => {
                self.text.extend(text);
                self.ends.extend(end.to_le_bytes());
            }
            _ => self.fits = false,
        }
    }

    /// The ends and the text; `None` where there is too much of it.
    fn finish(self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.fits.then_some((self.ends, self.text))
    }
}

/// Where a text or list ends, if Arrow's 32 bits can say it.
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
