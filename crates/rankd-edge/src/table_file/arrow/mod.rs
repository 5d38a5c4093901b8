//! Arrow IPC files and streams, read message by message: one record batch is in memory at a time.
//!
//! A file is a stream between two marks, with an index at its end that nothing here needs. Bodies must not be compressed.
//! Reading order: this file (messages), [`metadata`] (the format of their headers), [`schema`] (columns and types), [`batch`] (cells).

mod batch;
mod metadata;
mod schema;

use super::builder::TableBuilder;
use super::columnar::{self, Described};
use super::inspect::Proposed;
use super::problem::TableProblem;
use super::source::Source;
use batch::{Dictionaries, RecordBatch};
use metadata::FlatTable;
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
    /// Whether the stream is inside a file.
    is_file: bool,
}

/// The metadata of a message; its body is beside it.
struct Message<'a> {
    kind: u8,
    header: FlatTable<'a>,
}

impl<'s, 'p> Stream<'s, 'p> {
    fn open(source: &'s mut Source<'p>) -> Result<Stream<'s, 'p>, TableProblem> {
        let mut start = Vec::new();
        source.read(&mut start, 8)?;
        let is_file = start.starts_with(MAGIC);
        if !is_file {
            source.rewind()?;
        }
        Ok(Stream { source, is_file })
    }

    fn schema(&mut self) -> Result<Schema, TableProblem> {
        let (mut metadata, mut body) = (Vec::new(), Vec::new());
        match self.next(&mut metadata, &mut body)? {
            Some(Message { kind: SCHEMA, header }) => {
                Schema::read(header).ok_or_else(|| damaged("the schema cannot be read"))?
            }
            _ => Err(damaged("the schema does not come first")),
        }
    }

    /// The next message; nothing at the mark that ends a stream.
    fn next<'a>(&mut self, metadata: &'a mut Vec<u8>, body: &mut Vec<u8>) -> Result<Option<Message<'a>>, TableProblem> {
        let cut = || damaged("it ends in the middle; is it still being written?");
        metadata.clear();
        self.source.read(metadata, 8)?;
        let Some((start, length)) = metadata.split_first_chunk::<4>() else { return Err(cut()) };
        if *start != CONTINUES {
            return Err(damaged("a message does not begin where it should"));
        }
        let length = length.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize).ok_or_else(cut)?;
        if length == 0 {
            return Ok(None);
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

    /// Checks that a file is whole: behind the stream are an index and the mark again.
    fn end(self) -> Result<(), TableProblem> {
        let mut rest = Vec::new();
        let remaining = self.source.remaining();
        self.source.read(&mut rest, remaining)?;
        match (self.is_file, rest.ends_with(MAGIC), rest.is_empty()) {
            (true, true, _) | (false, _, true) => Ok(()),
            (true, false, _) => Err(damaged("the mark at its end is missing; is it still being written?")),
            (false, _, false) => Err(damaged("bytes follow the end of the stream")),
        }
    }
}
