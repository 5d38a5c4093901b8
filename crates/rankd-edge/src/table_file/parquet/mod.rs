//! Parquet files, read column by column of each group of rows: one chunk of a column is in memory at a time.
//!
//! By hand: what a table needs of the format is a few pages, the crate for it most of a minute of building. Not read: encrypted
//! files, columns that nest deeper than lists, and a few codecs. Reading order: this file (chunks and their pages), [`footer`] (the
//! schema), [`thrift`] (the format of metadata), [`levels`] and [`values`] (encodings), [`codec`] (compression).

mod codec;
mod footer;
mod levels;
mod lists;
mod page;
mod thrift;
mod values;

use super::builder::{TableBuilder, Target};
use super::columnar::{self, Described, Entries, Piece, PieceValues};
use super::inspect::Proposed;
use super::problem::TableProblem;
use super::source::Source;
use codec::Codec;
use footer::{Chunk, Footer, Meaning, ParquetColumn, Stored};
use lists::ListChunk;
use page::{DataPage, PageHeader, PageKind};
use values::Decoded;

/// What a file begins and ends with.
const MAGIC: &[u8] = b"PAR1";
const ENCRYPTED: &[u8] = b"PARE";
/// How much larger than the file columns may become: a value that repeats takes next to no bytes in the file.
const EXPANSION_MAX: u64 = 256;
const EXPANSION_FREE: u64 = 64 << 20;

pub(super) fn read(source: &mut Source<'_>, table: &mut TableBuilder<'_>) -> Result<(), TableProblem> {
    let footer = read_footer(source)?;
    let targets = columnar::match_columns(table, &described(&footer))?;
    let rows: usize = footer.groups.iter().map(|group| group.rows).sum();
    // Lists may have more values than rows.
    let chunks = footer.groups.iter().flat_map(|group| {
        let values = |(column, _): &(usize, Target)| {
            group.chunks.get(footer.columns[*column].leaf).map_or(0, |chunk| chunk.values)
        };
        targets.iter().map(move |target| values(target).max(group.rows))
    });
    let bytes = chunks.fold(0, |sum: u64, values| sum.saturating_add((values as u64).saturating_mul(8)));
    if bytes > source.bytes().saturating_mul(EXPANSION_MAX).saturating_add(EXPANSION_FREE) {
        let message = format!("what it holds would be more than {EXPANSION_MAX} times larger than the file");
        return Err(TableProblem::too_much(None, message));
    }
    table.expect_rows(rows);
    let mut chunk_bytes = Vec::new();
    for group in &footer.groups {
        for (column, target) in &targets {
            let column = &footer.columns[*column];
            let chunk = group.chunks.get(column.leaf).ok_or_else(|| damaged("a column of a row group is missing"))?;
            read_chunk(source, &mut chunk_bytes, column, chunk)?;
            let codec = Codec::new(chunk.codec).map_err(|codec| {
                let message = format!("the column {:?} is compressed with {codec}, which is not read", column.name);
                TableProblem::broken(None, message)
            })?;
            let reader = ChunkReader { bytes: &chunk_bytes, codec, stored: column.stored, values: chunk.values };
            let broken = || damaged(&format!("the column {:?} cannot be read", column.name));
            match column.stored.is_list {
                false => reader.fill(table, *target, group.rows, &broken)?,
                true => reader.fill_lists(table, *target, group.rows, &broken)?,
            }
        }
        table.add_rows(group.rows)?;
    }
    Ok(())
}

pub(super) fn propose(source: &mut Source<'_>) -> Result<Vec<Proposed>, TableProblem> {
    let footer = read_footer(source)?;
    Ok(described(&footer).iter().map(Described::propose).collect())
}

fn described(footer: &Footer) -> Vec<Described<'_>> {
    fn describe(column: &ParquetColumn) -> Described<'_> {
        Described { name: &column.name, holds: column.holds, type_name: &column.type_name }
    }
    footer.columns.iter().map(describe).collect()
}

fn damaged(message: &str) -> TableProblem {
    TableProblem::broken(None, format!("not a Parquet file, or damaged: {message}"))
}

fn read_footer(source: &mut Source<'_>) -> Result<Footer, TableProblem> {
    let mut bytes = Vec::new();
    source.read(&mut bytes, MAGIC.len())?;
    if bytes != MAGIC && bytes != ENCRYPTED {
        return Err(damaged("it does not begin as one"));
    }
    let size = source.bytes();
    let mut tail = Vec::new();
    source.read_at(size.saturating_sub(8).max(4), 8, &mut tail)?;
    let Some((length, magic)) = tail.split_first_chunk::<4>() else { return Err(damaged("it is too short")) };
    if magic == ENCRYPTED || bytes == ENCRYPTED {
        return Err(TableProblem::broken(None, "it is encrypted"));
    }
    if magic != MAGIC {
        return Err(damaged("the mark at its end is missing; is it still being written?"));
    }
    let length = u64::from(u32::from_le_bytes(*length));
    let start = size.checked_sub(8 + length).filter(|start| *start >= 4);
    let start = start.ok_or_else(|| damaged("its metadata would be larger than the file"))?;
    bytes.clear();
    source.read_at(start, length as usize, &mut bytes)?;
    Footer::read(&bytes).ok_or_else(|| damaged("its metadata cannot be read"))
}

fn read_chunk(
    source: &mut Source<'_>,
    bytes: &mut Vec<u8>,
    column: &ParquetColumn,
    chunk: &Chunk,
) -> Result<(), TableProblem> {
    if chunk.is_elsewhere {
        return Err(TableProblem::broken(None, format!("the column {:?} is in another file", column.name)));
    }
    let (start, end) = (chunk.start() as u64, (chunk.start() as u64).saturating_add(chunk.bytes as u64));
    if end > source.bytes() {
        return Err(damaged(&format!("the column {:?} would be behind its end", column.name)));
    }
    bytes.clear();
    source.read_at(start, chunk.bytes, bytes)?;
    Ok(())
}

/// The pages of a column in one group of rows.
struct ChunkReader<'c> {
    bytes: &'c [u8],
    codec: Codec,
    stored: Stored,
    /// How many values it has, with nulls.
    values: usize,
}

/// The values that others point at.
enum Lookup<'d> {
    None,
    Int(Vec<i64>),
    Float(Vec<f64>),
    Text(Vec<Option<&'d str>>),
}

impl ChunkReader<'_> {
    /// Fills a column of plain values, page by page.
    fn fill(
        &self,
        table: &mut TableBuilder<'_>,
        target: Target,
        rows: usize,
        broken: &dyn Fn() -> TableProblem,
    ) -> Result<(), TableProblem> {
        if self.values != rows {
            return Err(broken());
        }
        let (mut dictionary_bytes, mut page_bytes, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        let (lookup, mut at) = self.dictionary(&mut dictionary_bytes).ok_or_else(broken)?;
        let mut done = 0;
        while done < rows {
            let Some(page) = self.next(&mut at, rows - done, &mut page_bytes).ok_or_else(broken)? else { continue };
            let values = self.values(&page, &lookup, &mut texts).ok_or_else(broken)?;
            let valid = page.levels.as_ref().map(|levels| levels.iter().map(|level| *level == 1).collect());
            let misfits = misfits(&values, self.stored);
            let piece = Piece { rows: page.values, valid, values, is_dense: true, misfits, lists: None };
            piece.fill(table, target, done)?;
            done += page.values;
        }
        Ok(())
    }

    /// Fills a column of lists, all pages together: a list may go on in the next page.
    fn fill_lists(
        &self,
        table: &mut TableBuilder<'_>,
        target: Target,
        rows: usize,
        broken: &dyn Fn() -> TableProblem,
    ) -> Result<(), TableProblem> {
        let (mut dictionary_bytes, mut page_bytes, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        let (lookup, mut at) = self.dictionary(&mut dictionary_bytes).ok_or_else(broken)?;
        let (mut chunk, mut done) = (ListChunk::new(self.stored), 0);
        while done < self.values {
            let page = self.next(&mut at, self.values - done, &mut page_bytes).ok_or_else(broken)?;
            let Some(page) = page else { continue };
            let values = self.values(&page, &lookup, &mut texts).ok_or_else(broken)?;
            chunk.add(&page, values).ok_or_else(broken)?;
            done += page.values;
        }
        let piece = chunk.piece(rows).ok_or_else(broken)?;
        piece.fill(table, target, 0)
    }

    /// The dictionary, which comes first where there is one, and where the pages behind it begin.
    fn dictionary<'d>(&self, out: &'d mut Vec<u8>) -> Option<(Lookup<'d>, usize)> {
        if self.values == 0 {
            return Some((Lookup::None, 0));
        }
        let (header, used) = PageHeader::read(self.bytes)?;
        let PageKind::Dictionary { values } = header.kind else { return Some((Lookup::None, 0)) };
        let end = used.checked_add(header.compressed)?;
        self.codec.decompress(self.bytes.get(used..end)?, header.uncompressed, out)?;
        let lookup = match values::plain(self.stored, out, values)? {
            Decoded::Int(values) => Lookup::Int(values),
            Decoded::Float(values) => Lookup::Float(values),
            Decoded::Text(texts) => Lookup::Text(texts),
            Decoded::Bool(_) | Decoded::Codes(_) => return None,
        };
        Some((lookup, end))
    }

    /// The next page of at most `most` values; nothing for one without values.
    fn next<'p>(&self, at: &mut usize, most: usize, out: &'p mut Vec<u8>) -> Option<Option<DataPage<'p>>> {
        let (header, used) = PageHeader::read(self.bytes.get(*at..)?)?;
        let start = at.checked_add(used)?;
        let end = start.checked_add(header.compressed)?;
        let bytes = self.bytes.get(start..end)?;
        *at = end;
        out.clear();
        match header.kind {
            PageKind::Index => Some(None),
            PageKind::Dictionary { .. } => None,
            PageKind::Data { values, .. } | PageKind::DataV2 { values, .. } if values > most => None,
            PageKind::Data { .. } | PageKind::DataV2 { .. } => {
                DataPage::read(&header, bytes, self.codec, self.stored, out).map(Some)
            }
        }
    }

    /// The values of a page that are there. `texts` is for those that do not stand in the page as they are.
    fn values<'p>(
        &self,
        page: &DataPage<'p>,
        lookup: &'p Lookup<'p>,
        texts: &'p mut Vec<u8>,
    ) -> Option<PieceValues<'p>> {
        let count = match &page.levels {
            Some(levels) => levels.iter().filter(|level| **level == self.stored.level_max()).count(),
            None => page.values,
        };
        fn look_up<T: Copy>(codes: Vec<u32>, values: &[T]) -> Option<Vec<T>> {
            codes.into_iter().map(|code| values.get(code as usize).copied()).collect()
        }
        Some(match (values::decode(self.stored, page.encoding, page.bytes, count, texts)?, lookup) {
            (Decoded::Int(values), _) => PieceValues::Int(values),
            (Decoded::Float(values), _) => PieceValues::Float(values),
            (Decoded::Bool(values), _) => PieceValues::Bool(values),
            (Decoded::Text(texts), _) => PieceValues::Text(texts),
            (Decoded::Codes(codes), Lookup::Int(values)) => PieceValues::Int(look_up(codes, values)?),
            (Decoded::Codes(codes), Lookup::Float(values)) => PieceValues::Float(look_up(codes, values)?),
            (Decoded::Codes(codes), Lookup::Text(entries)) => {
                let are_known = codes.iter().all(|code| (*code as usize) < entries.len());
                are_known.then_some(PieceValues::Coded(codes, Entries::List(entries)))?
            }
            (Decoded::Codes(codes), Lookup::None) => codes.is_empty().then_some(PieceValues::Bool(Vec::new()))?,
        })
    }
}

/// Positions of ints that do not fit: unsigned ones of 64 bits that are too large.
fn misfits(values: &PieceValues<'_>, stored: Stored) -> Vec<usize> {
    match values {
        PieceValues::Int(values) if stored.meaning == Meaning::Unsigned => {
            values.iter().enumerate().filter(|(_, value)| **value < 0).map(|(at, _)| at).collect()
        }
        _ => Vec::new(),
    }
}
