//! The cells of a record batch, and the texts of dictionaries. Every length is checked against the bytes that bear it out.

use super::damaged;
use super::metadata::FlatTable;
use super::schema::{ArrowColumn, ArrowType, Schema};
use crate::table_file::builder::{TableBuilder, Target};
use crate::table_file::columnar::{Entries, FlatTexts, Lists, Piece, PieceValues, half_float};
use crate::table_file::problem::TableProblem;
use std::collections::HashMap;

/// A record batch, with its body.
pub(crate) struct RecordBatch<'a> {
    body: &'a [u8],
    rows: usize,
    /// By field: how many values, how many of them null.
    nodes: Vec<[i64; 2]>,
    /// Offset and length.
    buffers: Vec<[i64; 2]>,
    /// How many buffers more each field has that says so.
    variadic: Vec<i64>,
}

impl<'a> RecordBatch<'a> {
    pub(super) fn new(header: FlatTable<'a>, body: &'a [u8]) -> Result<RecordBatch<'a>, TableProblem> {
        if header.table(3).is_some() {
            let message = "its batches are compressed; write it without compression, or as Parquet";
            return Err(TableProblem::broken(None, message));
        }
        let parts = || {
            let rows = usize::try_from(header.long(0).unwrap_or(0)).ok()?;
            Some(RecordBatch {
                body,
                rows,
                nodes: header.pairs(1)?,
                buffers: header.pairs(2)?,
                variadic: header.long_list(4)?,
            })
        };
        parts().ok_or_else(|| damaged("a record batch cannot be read"))
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// From its first field on.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        Cursor { batch: self, node: 0, buffer: 0, variadic: 0 }
    }

    /// Where the fields and buffers of each column begin.
    pub(super) fn starts(&self, schema: &Schema) -> Result<Vec<Cursor<'_>>, TableProblem> {
        let mut cursor = self.cursor();
        let mut start = |column: &ArrowColumn| {
            let start = cursor;
            column.types.iter().try_for_each(|type_of| cursor.skip(*type_of))?;
            Some(start)
        };
        let starts = schema.columns.iter().map(&mut start).collect::<Option<_>>();
        starts.ok_or_else(|| damaged("a record batch cannot be read"))
    }
}

/// The fields and buffers of a batch, in order.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'b> {
    batch: &'b RecordBatch<'b>,
    node: usize,
    buffer: usize,
    variadic: usize,
}

impl<'b> Cursor<'b> {
    /// Adds the cells of the column that begins here to what they are for.
    pub(super) fn fill(
        mut self,
        column: &ArrowColumn,
        dictionaries: &'b Dictionaries,
        table: &mut TableBuilder<'_>,
        target: Target,
    ) -> Result<(), TableProblem> {
        let broken = || damaged(&format!("the column {:?} cannot be read", column.name));
        let entries = match column.dictionary {
            Some(number) => match dictionaries.by_number.get(&number) {
                Some(texts) => Some(Entries::Flat(texts)),
                None => return Err(damaged(&format!("the column {:?} has no dictionary", column.name))),
            },
            None => None,
        };
        let piece = self.piece(&column.types, self.batch.rows, entries).ok_or_else(broken)?;
        piece.fill(table, target, 0)
    }

    /// So many ints, each perhaps null.
    pub(crate) fn optional_ints(&mut self, count: usize) -> Option<Vec<Option<i64>>> {
        let valid = self.valid(count)?;
        let values = ints(self.buffer()?, count, 8, true)?.into_iter().enumerate();
        Some(values.map(|(at, value)| valid.as_ref().is_none_or(|valid| valid[at]).then_some(value)).collect())
    }

    /// So many texts or byte strings, each perhaps null.
    pub(crate) fn optional_bytes(&mut self, count: usize) -> Option<Vec<Option<&'b [u8]>>> {
        let valid = self.valid(count)?;
        let offsets = offsets(self.buffer()?, count, false)?;
        let data = self.buffer()?;
        let item = |(at, ends): (usize, &[usize])| {
            let bytes = data.get(ends[0]..ends[1])?;
            Some(valid.as_ref().is_none_or(|valid| valid[at]).then_some(bytes))
        };
        offsets.windows(2).enumerate().map(item).collect()
    }

    /// Where so many lists begin, and where the last one ends: as many elements come next.
    pub(crate) fn list_offsets(&mut self, count: usize) -> Option<Vec<usize>> {
        self.valid(count)?;
        let offsets = offsets(self.buffer()?, count, false)?;
        let elements = usize::try_from(*self.batch.nodes.get(self.node)?.first()?).ok()?;
        (*offsets.last()? == elements).then_some(offsets)
    }

    /// So many structs, whose fields come next.
    pub(crate) fn structs(&mut self, count: usize) -> Option<()> {
        self.valid(count).map(drop)
    }

    fn skip(&mut self, type_of: ArrowType) -> Option<()> {
        self.node += 1;
        self.buffer += type_of.buffers();
        if type_of.has_variadic() {
            self.buffer = self.buffer.checked_add(self.more_buffers()?)?;
        }
        Some(())
    }

    fn more_buffers(&mut self) -> Option<usize> {
        self.variadic += 1;
        usize::try_from(*self.batch.variadic.get(self.variadic - 1)?).ok()
    }

    fn buffer(&mut self) -> Option<&'b [u8]> {
        let [offset, length] = *self.batch.buffers.get(self.buffer)?;
        self.buffer += 1;
        let start = usize::try_from(offset).ok()?;
        self.batch.body.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    }

    /// The next field's validity; it must have so many values.
    fn valid(&mut self, values: usize) -> Option<Option<Vec<bool>>> {
        let [length, nulls] = *self.batch.nodes.get(self.node)?;
        self.node += 1;
        if usize::try_from(length) != Ok(values) {
            return None;
        }
        let bits = self.buffer()?;
        if bits.is_empty() {
            return (nulls == 0).then_some(None);
        }
        Some(Some(read_bits(bits, values)?))
    }

    /// The cells of a column.
    fn piece(&mut self, types: &[ArrowType], rows: usize, entries: Option<Entries<'b>>) -> Option<Piece<'b>> {
        match types {
            [one] => {
                let valid = self.valid(rows)?;
                let (values, misfits) = match entries {
                    Some(entries) => (self.codes(*one, rows, valid.as_deref(), entries)?, Vec::new()),
                    None => self.values(*one, rows, valid.as_deref())?,
                };
                Some(Piece { rows, valid, values, is_dense: false, misfits, lists: None })
            }
            [list, element] => {
                let valid = self.valid(rows)?;
                let offsets = match list {
                    ArrowType::List { is_large } => offsets(self.buffer()?, rows, *is_large)?,
                    ArrowType::FixedSizeList { length } => {
                        // Without values there is nothing that bears out how many lists there are.
                        let count = *self.batch.nodes.get(self.node)?.first()?;
                        let needed = rows.checked_mul(*length)?;
                        if usize::try_from(count) != Ok(needed) {
                            return None;
                        }
                        (0..=rows).map(|row| row * length).collect()
                    }
                    _ => return None,
                };
                let count = usize::try_from(*self.batch.nodes.get(self.node)?.first()?).ok()?;
                if *offsets.last()? > count {
                    return None;
                }
                let valid_elements = self.valid(count)?;
                let (values, misfits) = self.values(*element, count, valid_elements.as_deref())?;
                let has_null = |row: &usize| {
                    let elements = offsets[*row]..offsets[*row + 1];
                    valid_elements.as_ref().is_some_and(|valid| valid[elements].contains(&false))
                };
                let with_nulls = (0..rows).filter(has_null).collect();
                let lists = Some(Lists { offsets, with_nulls });
                Some(Piece { rows, valid, values, is_dense: false, misfits, lists })
            }
            _ => None,
        }
    }

    /// The values of a field of a plain type, and the positions of those that do not fit.
    fn values(
        &mut self,
        type_of: ArrowType,
        count: usize,
        valid: Option<&[bool]>,
    ) -> Option<(PieceValues<'b>, Vec<usize>)> {
        let is_valid = |at: usize| valid.is_none_or(|valid| valid[at]);
        let mut misfits = Vec::new();
        let values = match type_of {
            ArrowType::Int { bytes, is_signed } => {
                let values = ints(self.buffer()?, count, bytes, is_signed)?;
                if !is_signed && bytes == 8 {
                    misfits.extend((0..count).filter(|at| values[*at] < 0 && is_valid(*at)));
                }
                PieceValues::Int(values)
            }
            ArrowType::Timestamp { times, by } => {
                let mut values = ints(self.buffer()?, count, 8, true)?;
                for (at, value) in values.iter_mut().enumerate() {
                    match value.checked_mul(times) {
                        Some(product) => *value = product.div_euclid(by),
                        None if is_valid(at) => misfits.push(at),
                        None => {}
                    }
                }
                PieceValues::Int(values)
            }
            ArrowType::Float { bytes } => PieceValues::Float(floats(self.buffer()?, count, bytes)?),
            ArrowType::Bool => PieceValues::Bool(read_bits(self.buffer()?, count)?),
            ArrowType::Utf8 { is_large } => {
                let offsets = offsets(self.buffer()?, count, is_large)?;
                let data = self.buffer()?;
                let text = |ends: &[usize]| Some(std::str::from_utf8(data.get(ends[0]..ends[1])?).ok());
                PieceValues::Text(offsets.windows(2).map(text).collect::<Option<_>>()?)
            }
            ArrowType::Utf8View => {
                let views = self.buffer()?;
                let data = (0..self.more_buffers()?).map(|_| self.buffer()).collect::<Option<Vec<_>>>()?;
                let (views, _) = views.as_chunks::<16>();
                let text = |(at, view): (usize, &'b [u8; 16])| {
                    // The view of a null may be anything.
                    if is_valid(at) { Some(std::str::from_utf8(viewed(view, &data)?).ok()) } else { Some(None) }
                };
                PieceValues::Text(views.get(..count)?.iter().enumerate().map(text).collect::<Option<_>>()?)
            }
            ArrowType::Null
            | ArrowType::List { .. }
            | ArrowType::FixedSizeList { .. }
            | ArrowType::Other { .. }
            | ArrowType::OtherView => return None,
        };
        Some((values, misfits))
    }

    /// Numbers of entries of a dictionary.
    fn codes(
        &mut self,
        index: ArrowType,
        count: usize,
        valid: Option<&[bool]>,
        entries: Entries<'b>,
    ) -> Option<PieceValues<'b>> {
        let ArrowType::Int { bytes, is_signed } = index else { return None };
        let codes = ints(self.buffer()?, count, bytes, is_signed)?;
        let code = |(at, code): (usize, i64)| match usize::try_from(code) {
            Ok(known) if known < entries.len() => u32::try_from(known).ok(),
            // The number of a null may be anything.
            _ if valid.is_some_and(|valid| !valid[at]) => Some(0),
            _ => None,
        };
        Some(PieceValues::Coded(codes.into_iter().enumerate().map(code).collect::<Option<_>>()?, entries))
    }
}

/// The bytes of a view: in itself, or where it points.
fn viewed<'b>(view: &'b [u8; 16], data: &[&'b [u8]]) -> Option<&'b [u8]> {
    let number = |at: usize| Some(u32::from_le_bytes(*view.get(at..)?.first_chunk()?) as usize);
    let length = number(0)?;
    if length <= 12 {
        return view.get(4..4 + length);
    }
    let start = number(12)?;
    data.get(number(8)?)?.get(start..start.checked_add(length)?)
}

fn read_bits(bits: &[u8], count: usize) -> Option<Vec<bool>> {
    let bits = bits.get(..count.div_ceil(8))?;
    Some((0..count).map(|at| bits[at / 8] >> (at % 8) & 1 == 1).collect())
}

fn ints(bytes: &[u8], count: usize, size: usize, is_signed: bool) -> Option<Vec<i64>> {
    let bytes = bytes.get(..count.checked_mul(size)?)?;
    fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> i64) -> Vec<i64> {
        bytes.as_chunks().0.iter().map(|chunk| read(*chunk)).collect()
    }
    Some(match (size, is_signed) {
        (1, true) => each(bytes, |bytes| i8::from_le_bytes(bytes).into()),
        (1, false) => each(bytes, |bytes| u8::from_le_bytes(bytes).into()),
        (2, true) => each(bytes, |bytes| i16::from_le_bytes(bytes).into()),
        (2, false) => each(bytes, |bytes| u16::from_le_bytes(bytes).into()),
        (4, true) => each(bytes, |bytes| i32::from_le_bytes(bytes).into()),
        (4, false) => each(bytes, |bytes| u32::from_le_bytes(bytes).into()),
        (8, _) => each(bytes, i64::from_le_bytes),
        _ => return None,
    })
}

fn floats(bytes: &[u8], count: usize, size: usize) -> Option<Vec<f64>> {
    let bytes = bytes.get(..count.checked_mul(size)?)?;
    Some(match size {
        2 => bytes.as_chunks().0.iter().map(|half| half_float(u16::from_le_bytes(*half))).collect(),
        4 => bytes.as_chunks().0.iter().map(|single| f32::from_le_bytes(*single).into()).collect(),
        8 => bytes.as_chunks().0.iter().map(|double| f64::from_le_bytes(*double)).collect(),
        _ => return None,
    })
}

/// Where values begin, and where the last one ends; they never fall.
fn offsets(bytes: &[u8], count: usize, is_large: bool) -> Option<Vec<usize>> {
    if count == 0 && bytes.is_empty() {
        return Some(vec![0]);
    }
    let offsets = ints(bytes, count.checked_add(1)?, if is_large { 8 } else { 4 }, true)?;
    let offsets = offsets.into_iter().map(|offset| usize::try_from(offset).ok()).collect::<Option<Vec<_>>>()?;
    offsets.is_sorted().then_some(offsets)
}

/// The dictionaries so far, by their numbers.
#[derive(Default)]
pub(super) struct Dictionaries {
    by_number: HashMap<i64, FlatTexts>,
}

impl Dictionaries {
    /// Takes in a dictionary batch: a new dictionary, one in place of another, or more entries.
    pub(super) fn read(&mut self, schema: &Schema, header: FlatTable<'_>, body: &[u8]) -> Result<(), TableProblem> {
        let broken = || damaged("a dictionary cannot be read");
        let number = header.long(0).unwrap_or(0);
        let Some(type_of) = schema.dictionary_type(number) else { return Ok(()) };
        let batch = RecordBatch::new(header.table(1).ok_or_else(broken)?, body)?;
        let mut cursor = Cursor { batch: &batch, node: 0, buffer: 0, variadic: 0 };
        let piece = cursor.piece(&[type_of], batch.rows, None).ok_or_else(broken)?;
        let PieceValues::Text(texts) = &piece.values else { return Err(broken()) };
        let is_more = header.byte(2).unwrap_or(0) != 0;
        let entries = self.by_number.entry(number).or_default();
        if !is_more {
            *entries = FlatTexts::default();
        }
        for (at, text) in texts.iter().enumerate() {
            let is_valid = piece.valid.as_ref().is_none_or(|valid| valid[at]);
            entries.push(text.filter(|_| is_valid));
        }
        Ok(())
    }
}
