//! Arrow IPC files and streams, read message by message: one record batch is in memory at a time.
//!
//! A stream is read from its start to its end. A file has an index at its end, which says where its messages are: what else is in it is
//! the business of who wrote it. Bodies must not be compressed.
//! Reading order: this file (messages), [`metadata`] (the format of their headers), [`schema`] (columns and types), [`batch`] (cells).

mod batch;
mod metadata;
mod schema;

use super::builder::TableBuilder;
use super::columnar::{self, Described};
use super::inspect::Proposed;
use super::problem::TableProblem;
use super::source::Source;
pub(crate) use batch::Cursor;
use batch::{Dictionaries, RecordBatch};
use metadata::{Block, FlatTable};
use schema::{ArrowColumn, Schema};

/// What a file begins and ends with; a stream does not.
const MAGIC: &[u8] = b"ARROW1";
/// Stands before the length of every message.
const CONTINUES: [u8; 4] = [0xff; 4];
/// Message headers.
const SCHEMA: u8 = 1;
const DICTIONARY_BATCH: u8 = 2;
const RECORD_BATCH: u8 = 3;
/// Metadata of version 4 and 5 is read alike, but for unions, which nothing here reads.
const VERSION_4: i16 = 3;
const VERSION_5: i16 = 4;

pub(super) fn read(source: &mut Source<'_>, table: &mut TableBuilder<'_>) -> Result<(), TableProblem> {
    let mut stream = Stream::open(source)?;
    let schema = stream.schema()?;
    let targets = columnar::match_columns(table, &described(&schema))?;
    let mut dictionaries = Dictionaries::default();
    let (mut metadata, mut body) = (Vec::new(), Vec::new());
    while let Some(message) = stream.next(&mut metadata, &mut body)? {
        match message.kind {
            DICTIONARY_BATCH => dictionaries.read(&schema, message.header, &body)?,
            RECORD_BATCH => {
                let batch = RecordBatch::new(message.header, &body)?;
                if table.rows() == 0 {
                    table.expect_rows(batch.rows());
                }
                let starts = batch.starts(&schema)?;
                for (column, target) in &targets {
                    starts[*column].fill(&schema.columns[*column], &dictionaries, table, *target)?;
                }
                table.add_rows(batch.rows())?;
            }
            kind => return Err(damaged(&format!("a message of the kind {kind} is not expected here"))),
        }
    }
    stream.end()
}

pub(super) fn propose(source: &mut Source<'_>) -> Result<Vec<Proposed>, TableProblem> {
    let schema = Stream::open(source)?.schema()?;
    Ok(described(&schema).iter().map(Described::propose).collect())
}

/// Hands the record batches of a stream to `with`, for columns that are exactly these: the name of each, and its types, each before what is inside it.
/// A last batch that is cut off is passed over. Gives whether there was one.
pub(in crate::table_file) fn read_exactly(
    source: &mut Source<'_>,
    columns: &[(&str, &[&str])],
    mut with: impl FnMut(usize, Cursor<'_>) -> Option<()>,
) -> Result<bool, TableProblem> {
    let mut stream = Stream::open(source)?;
    let schema = stream.schema()?;
    let is_it = |(column, (name, types)): (&ArrowColumn, &(&str, &[&str]))| {
        column.name == *name && column.types.iter().map(|type_of| type_of.name()).eq(types.iter().copied())
    };
    if schema.columns.len() != columns.len() || !schema.columns.iter().zip(columns).all(is_it) {
        return Err(TableProblem::broken(None, "its columns are not those of this version"));
    }
    let (mut metadata, mut body) = (Vec::new(), Vec::new());
    loop {
        let message = match stream.next(&mut metadata, &mut body) {
            Ok(Some(message)) => message,
            Ok(None) => return stream.end().map(|()| false),
            // Whoever wrote it was stopped in the middle, or is not done.
            Err(_) if stream.index.is_none() && stream.source.remaining() == 0 => return Ok(true),
            Err(error) => return Err(error),
        };
        if message.kind != RECORD_BATCH {
            return Err(damaged(&format!("a message of the kind {} is not expected here", message.kind)));
        }
        let batch = RecordBatch::new(message.header, &body)?;
        with(batch.rows(), batch.cursor()).ok_or_else(|| damaged("a record batch cannot be read"))?;
    }
}

fn described(schema: &Schema) -> Vec<Described<'_>> {
    fn describe(column: &ArrowColumn) -> Described<'_> {
        Described { name: &column.name, holds: column.holds, type_name: &column.type_name }
    }
    schema.columns.iter().map(describe).collect()
}

fn damaged(message: &str) -> TableProblem {
    TableProblem::broken(None, format!("not an Arrow IPC file or stream, or damaged: {message}"))
}

/// Messages one after the other.
struct Stream<'s, 'p> {
    source: &'s mut Source<'p>,
    /// Where the messages of a file are; a stream has them one behind the other.
    index: Option<FileIndex>,
}

/// What the end of a file says: the schema, and where the other messages are, the next one last.
struct FileIndex {
    footer: Vec<u8>,
    blocks: Vec<Block>,
}

/// The metadata of a message; its body is beside it.
struct Message<'a> {
    kind: u8,
    header: FlatTable<'a>,
}

impl<'s, 'p> Stream<'s, 'p> {
    fn open(source: &'s mut Source<'p>) -> Result<Stream<'s, 'p>, TableProblem> {
        let mut start = Vec::new();
        source.read(&mut start, MAGIC.len())?;
        let index = if start == MAGIC { Some(FileIndex::read(source)?) } else { None };
        if index.is_none() {
            source.rewind()?;
        }
        Ok(Stream { source, index })
    }

    fn schema(&mut self) -> Result<Schema, TableProblem> {
        let broken = || damaged("the schema cannot be read");
        if let Some(index) = &self.index {
            let schema = FlatTable::root(&index.footer).and_then(|footer| footer.table(1)).ok_or_else(broken)?;
            return Schema::read(schema).ok_or_else(broken)?;
        }
        let (mut metadata, mut body) = (Vec::new(), Vec::new());
        match self.next(&mut metadata, &mut body)? {
            Some(Message { kind: SCHEMA, header }) => Schema::read(header).ok_or_else(broken)?,
            _ => Err(damaged("the schema does not come first")),
        }
    }

    /// The next message; nothing at the end.
    fn next<'a>(&mut self, metadata: &'a mut Vec<u8>, body: &mut Vec<u8>) -> Result<Option<Message<'a>>, TableProblem> {
        if let Some(index) = &mut self.index {
            let Some(block) = index.blocks.pop() else { return Ok(None) };
            self.source.seek(block.offset)?;
        }
        let cut = || damaged("it ends in the middle; is it still being written?");
        metadata.clear();
        self.source.read(metadata, 8)?;
        let Some((start, length)) = metadata.split_first_chunk::<4>() else { return Err(cut()) };
        if *start != CONTINUES {
            return Err(damaged("a message does not begin where it should"));
        }
        let length = length.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize).ok_or_else(cut)?;
        if length == 0 {
            return if self.index.is_none() { Ok(None) } else { Err(cut()) };
        }
        metadata.clear();
        if self.source.read(metadata, length)? < length {
            return Err(cut());
        }
        let broken = || damaged("the metadata of a message cannot be read");
        let message = FlatTable::root(metadata).ok_or_else(broken)?;
        if !matches!(message.short(0), Some(VERSION_4 | VERSION_5)) {
            return Err(damaged("its metadata is not of version 4 or 5"));
        }
        let (kind, header) = (message.byte(1), message.table(2));
        let bytes = usize::try_from(message.long(3).unwrap_or(0)).map_err(|_| broken())?;
        body.clear();
        if self.source.read(body, bytes)? < bytes {
            return Err(cut());
        }
        Ok(Some(Message { kind: kind.ok_or_else(broken)?, header: header.ok_or_else(broken)? }))
    }

    /// Checks that nothing follows the end of a stream.
    fn end(self) -> Result<(), TableProblem> {
        match self.index.is_none() && self.source.remaining() > 0 {
            true => Err(damaged("bytes follow the end of the stream")),
            false => Ok(()),
        }
    }
}

impl FileIndex {
    fn read(source: &mut Source<'_>) -> Result<FileIndex, TableProblem> {
        let unmarked = || damaged("the mark at its end is missing; is it still being written?");
        let size = source.bytes();
        let mut tail = Vec::new();
        let start = size.checked_sub(10).ok_or_else(unmarked)?;
        source.read_at(start, 10, &mut tail)?;
        let Some((length, magic)) = tail.split_first_chunk::<4>() else { return Err(unmarked()) };
        if magic != MAGIC {
            return Err(unmarked());
        }
        let length = u64::from(u32::from_le_bytes(*length));
        let start = start.checked_sub(length).ok_or_else(|| damaged("its index would be larger than the file"))?;
        let mut footer = Vec::new();
        source.read_at(start, length as usize, &mut footer)?;
        let blocks = || {
            let table = FlatTable::root(&footer)?;
            let (mut blocks, batches) = (table.blocks(2)?, table.blocks(3)?);
            // Dictionaries first, and the next one last.
            blocks.extend(batches);
            blocks.reverse();
            Some(blocks)
        };
        let blocks = blocks().ok_or_else(|| damaged("its index cannot be read"))?;
        Ok(FileIndex { footer, blocks })
    }
}
