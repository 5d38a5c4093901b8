//! CSV as RFC 4180 has it, with a header, and TSV, which is the same with tabs.
//!
//! A block is first cut into cells, then each column is filled from the cells of the whole block. Cutting looks at eight bytes at a
//! time and makes nothing but positions, so that a row that is cut off at the end of a block can be looked at again with the next.

use super::builder::{BadCellCount, FilledColumn, IdBuilder, Places, RefusedId, TableBuilder, Target, null_id, shown};
use super::guess::Guess;
use super::inspect::Proposed;
use super::problem::{Place, TableProblem};
use super::source::{Blocks, Source};
use super::{ndjson, number};
use rankd_column::column::ColumnBuilder;
use rankd_column::{IdFault, Type};
use std::borrow::Cow;

pub(super) fn read_csv(source: &mut Source<'_>, table: &mut TableBuilder<'_>) -> Result<(), TableProblem> {
    read(source, b',', table)
}

pub(super) fn read_tsv(source: &mut Source<'_>, table: &mut TableBuilder<'_>) -> Result<(), TableProblem> {
    read(source, b'\t', table)
}

pub(super) fn propose_csv(source: &mut Source<'_>) -> Result<Vec<Proposed>, TableProblem> {
    propose(source, b',')
}

pub(super) fn propose_tsv(source: &mut Source<'_>) -> Result<Vec<Proposed>, TableProblem> {
    propose(source, b'\t')
}

fn propose(source: &mut Source<'_>, delimiter: u8) -> Result<Vec<Proposed>, TableProblem> {
    let mut columns: Vec<(String, Guess)> = Vec::new();
    walk(source, delimiter, |event| {
        match event {
            Event::Header(names) => columns.extend(names.into_iter().map(|name| (name, Guess::ANY))),
            Event::Rows(rows) => {
                for (at, (_, guess)) in columns.iter_mut().enumerate() {
                    for cell in (0..rows.len()).filter_map(|row| rows.bytes_of(rows.cell(row, at))) {
                        *guess = guess.narrow_text(&cell);
                    }
                }
            }
        }
        Ok(())
    })?;
    let no_type = || "text of several kinds".to_owned();
    let propose = |(name, guess): (String, Guess)| Proposed { name, type_of: guess.narrowest().ok_or_else(no_type) };
    Ok(columns.into_iter().map(propose).collect())
}

fn read(source: &mut Source<'_>, delimiter: u8, table: &mut TableBuilder<'_>) -> Result<(), TableProblem> {
    let mut targets = Vec::new();
    walk(source, delimiter, |event| match event {
        Event::Header(names) => {
            targets = table.match_columns(&names)?;
            Ok(())
        }
        Event::Rows(rows) => {
            if table.rows() == 0 {
                let share = rows.bytes.len().max(1) as f64 / rows.file_bytes.max(1) as f64;
                table.expect_rows((rows.len() as f64 / share * 1.02) as usize);
            }
            fill(table, &targets, &rows)
        }
    })
}

/// Fills all columns from the rows of a block.
fn fill(table: &mut TableBuilder<'_>, targets: &[(usize, Target)], rows: &RowBlock<'_>) -> Result<(), TableProblem> {
    let first = table.rows();
    for (row, line) in rows.lines.iter().enumerate() {
        table.places.set_line(first + row, *line);
    }
    let id_name = table.id_name();
    for (column, target) in targets {
        let (places, bad) = (&table.places, &mut table.bad);
        match target {
            Target::Id => {
                if let Some(ids) = &mut table.ids {
                    fill_ids(ids, id_name, rows, *column, first, places)?;
                }
            }
            Target::Column(at) => fill_column(&mut table.columns[*at], rows, *column, first, places, bad)?,
        }
    }
    table.add_rows(rows.len())
}

fn fill_ids(
    ids: &mut IdBuilder,
    name: &str,
    rows: &RowBlock<'_>,
    column: usize,
    first: usize,
    places: &Places,
) -> Result<(), TableProblem> {
    for row in 0..rows.len() {
        let cell = rows.cell(row, column);
        if let (IdBuilder::Ints(ids), Some(id)) = (&mut *ids, number::int(rows.raw(cell))) {
            ids.push(id);
            continue;
        }
        let Some(text) = rows.bytes_of(cell) else { return Err(null_id(name, first + row, places)) };
        let pushed = match std::str::from_utf8(&text) {
            Ok(text) => ids.push_text(first + row, text),
            Err(_) => Err(RefusedId::Text(IdFault::NotUtf8)),
        };
        pushed.map_err(|fault| fault.problem(name, &String::from_utf8_lossy(&text), first + row, places))?;
    }
    Ok(())
}

fn fill_column(
    column: &mut FilledColumn,
    rows: &RowBlock<'_>,
    at: usize,
    first: usize,
    places: &Places,
    bad: &mut BadCellCount,
) -> Result<(), TableProblem> {
    // A loop for each type: what a cell is, is not asked for each cell.
    let FilledColumn { name, type_of, cells, .. } = column;
    let mut each = |push: fn(&mut ColumnBuilder, &RowBlock<'_>, Cell) -> bool| -> Result<(), TableProblem> {
        for row in 0..rows.len() {
            let cell = rows.cell(row, at);
            if cell.is_null() {
                cells.push_null();
            } else if !push(cells, rows, cell) {
                cells.push_null();
                let text = rows.bytes_of(cell).unwrap_or_default();
                let message = bad_text(*type_of, &text);
                bad.add(places.of(first + row), name, message)?;
            }
        }
        Ok(())
    };
    match *type_of {
        Type::Int => each(|cells, rows, cell| number::int(rows.raw(cell)).is_some_and(|value| cells.push_int(value))),
        Type::Float => {
            each(|cells, rows, cell| number::float(rows.raw(cell)).is_some_and(|value| cells.push_float(value)))
        }
        Type::Bool => {
            each(|cells, rows, cell| number::bool(rows.raw(cell)).is_some_and(|value| cells.push_bool(value)))
        }
        Type::Str => each(|cells, rows, cell| rows.with_str(cell, |text| cells.push_str(text))),
        Type::List(_) | Type::Vector(_) => {
            each(|cells, rows, cell| rows.with_str(cell, |text| ndjson::push_array(cells, text)))
        }
    }
}

/// Why a text is not of a type.
pub(super) fn bad_text(type_of: Type, text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) => format!("{} is not of type {type_of}", shown(text)),
        Err(_) => format!("{} is not UTF-8", shown(&String::from_utf8_lossy(text))),
    }
}

/// What is found in a text, in order.
pub(super) enum Event<'b> {
    Header(Vec<String>),
    Rows(RowBlock<'b>),
}

/// Where a cell is in its block.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    start: u32,
    end: u32,
    quotes: Quotes,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Around,
    /// Around it, and doubled ones inside.
    Inside,
}

impl Cell {
    pub(super) fn is_null(self) -> bool {
        self.start == self.end && self.quotes == Quotes::None
    }
}

/// The whole rows of a block.
pub(super) struct RowBlock<'b> {
    bytes: &'b [u8],
    /// The same, where all of it is UTF-8.
    text: Option<&'b str>,
    cells: &'b [Cell],
    width: usize,
    /// The line in which each row begins.
    lines: &'b [u64],
    file_bytes: u64,
}

impl<'b> RowBlock<'b> {
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn cell(&self, row: usize, column: usize) -> Cell {
        self.cells[row * self.width + column]
    }

    /// The bytes between the quotes, doubled ones as they are: enough for what has no quotes in it.
    pub(super) fn raw(&self, cell: Cell) -> &'b [u8] {
        &self.bytes[cell.start as usize..cell.end as usize]
    }

    /// What the cell says; nothing where it is null.
    pub(super) fn bytes_of(&self, cell: Cell) -> Option<Cow<'b, [u8]>> {
        match cell.quotes {
            Quotes::None if cell.start == cell.end => None,
            Quotes::None | Quotes::Around => Some(Cow::Borrowed(self.raw(cell))),
            Quotes::Inside => {
                let mut text = Vec::with_capacity(self.raw(cell).len());
                let mut quoted = false;
                for byte in self.raw(cell) {
                    // The second one of a pair is left out.
                    quoted = *byte == b'"' && !quoted;
                    if *byte != b'"' || quoted {
                        text.push(*byte);
                    }
                }
                Some(Cow::Owned(text))
            }
        }
    }

    /// Hands on what a cell says; false where that is not UTF-8, or the other says so.
    pub(super) fn with_str(&self, cell: Cell, use_it: impl FnOnce(&str) -> bool) -> bool {
        if let (Some(text), Quotes::None | Quotes::Around) = (self.text, cell.quotes) {
            // Both ends are beside ASCII, so the text is never cut inside a character.
            return text.get(cell.start as usize..cell.end as usize).is_some_and(use_it);
        }
        let bytes = self.bytes_of(cell).unwrap_or_default();
        std::str::from_utf8(&bytes).is_ok_and(use_it)
    }
}

/// Goes through a text: its header, then blocks of rows.
pub(super) fn walk(
    source: &mut Source<'_>,
    delimiter: u8,
    mut each: impl FnMut(Event<'_>) -> Result<(), TableProblem>,
) -> Result<(), TableProblem> {
    let mut blocks = Blocks::new(source)?;
    let mut cutter = Cutter { delimiter, width: None, line: 1, cells: Vec::new(), lines: Vec::new() };
    loop {
        cutter.cells.clear();
        cutter.lines.clear();
        let bytes = blocks.block();
        let has_header = cutter.width.is_some();
        let used = cutter.cut(bytes, blocks.has_ended())?;
        // The header is the only row of its block: what follows is cut when its width is known.
        if let (false, Some(width)) = (has_header, cutter.width) {
            each(Event::Header(header(bytes, &cutter.cells, width)?))?;
        } else if !cutter.lines.is_empty() {
            let text = std::str::from_utf8(&bytes[..used]).ok();
            let Cutter { cells, lines, width, .. } = &cutter;
            let (width, file_bytes) = (width.unwrap_or(1), blocks.file_bytes());
            each(Event::Rows(RowBlock { bytes: &bytes[..used], text, cells, width, lines, file_bytes }))?;
        }
        if has_header || used == 0 {
            if !blocks.advance(used, Place::Line(cutter.line))? {
                break;
            }
        } else {
            blocks.skip(used);
        }
    }
    match cutter.width {
        Some(_) => Ok(()),
        None => {
            Err(TableProblem::broken(None, "the file is empty: a header with the names of the columns comes first"))
        }
    }
}

fn header(bytes: &[u8], cells: &[Cell], width: usize) -> Result<Vec<String>, TableProblem> {
    let rows = RowBlock { bytes, text: None, cells, width, lines: &[], file_bytes: 0 };
    let name = |cell: &Cell| {
        let name = rows.bytes_of(*cell).unwrap_or_default().into_owned();
        String::from_utf8(name).map_err(|_| TableProblem::broken(Place::Line(1), "the header is not UTF-8"))
    };
    cells.iter().map(name).collect()
}

/// Cuts blocks into cells.
struct Cutter {
    delimiter: u8,
    /// How many cells the header has; unknown before it.
    width: Option<usize>,
    /// The line that comes next.
    line: u64,
    cells: Vec<Cell>,
    lines: Vec<u64>,
}

const QUOTE_INSIDE: &str = "a quote inside a cell that has none around it; put them around it and double those in it";
const QUOTE_BEHIND: &str = "text behind the quote that closes a cell; a quote inside a cell is doubled";

/// What is behind a cell in quotes.
enum After {
    Delimiter(usize),
    Newline(usize),
    /// The block ends before it does.
    Cut,
}

impl Cutter {
    /// Finds the cells of all whole rows; of the header only, before that is known. Gives how many bytes they take.
    fn cut(&mut self, bytes: &[u8], last: bool) -> Result<usize, TableProblem> {
        let mut used = 0;
        // Where the cell, the row and the word begin that are looked at.
        let (mut cell, mut row, mut at) = (0, 0, 0);
        let (is_header, mut line) = (self.width.is_none(), self.line);
        'words: while at < bytes.len() {
            let (word, len) = word(bytes, at);
            let mut found = special(word, self.delimiter);
            while found != 0 {
                let here = at + found.trailing_zeros() as usize / 8;
                found &= found - 1;
                let byte = bytes[here];
                if byte == self.delimiter {
                    self.push(cell, here, Quotes::None);
                    cell = here + 1;
                } else if byte == b'\n' {
                    let end = if here > cell && bytes[here - 1] == b'\r' { here - 1 } else { here };
                    self.push(cell, end, Quotes::None);
                    (cell, used) = (here + 1, here + 1);
                    self.end_row(&mut row, &mut line)?;
                    if is_header && self.width.is_some() {
                        return Ok(used);
                    }
                } else if byte == b'"' {
                    if here != cell {
                        return Err(self.broken(line, QUOTE_INSIDE));
                    }
                    (cell, at) = match self.quoted(bytes, here + 1, &mut line, last)? {
                        After::Delimiter(next) => (next, next),
                        After::Newline(next) => {
                            used = next;
                            self.end_row(&mut row, &mut line)?;
                            if is_header && self.width.is_some() {
                                return Ok(used);
                            }
                            (next, next)
                        }
                        After::Cut => break 'words,
                    };
                    continue 'words;
                } else if byte == b'\r' {
                    match bytes.get(here + 1) {
                        Some(b'\n') => {}
                        None if !last => break 'words,
                        _ => return Err(self.broken(line, "a carriage return inside a cell without quotes")),
                    }
                }
                // Any other control character is text.
            }
            at += len;
        }
        self.cells.truncate(row);
        Ok(used)
    }

    fn push(&mut self, start: usize, end: usize, quotes: Quotes) {
        self.cells.push(Cell { start: start as u32, end: end as u32, quotes });
    }

    /// A cell that begins behind a quote. Counts the lines in it.
    fn quoted(&mut self, bytes: &[u8], start: usize, line: &mut u64, last: bool) -> Result<After, TableProblem> {
        let (mut quotes, mut from) = (Quotes::Around, start);
        let end = loop {
            let Some(quote) = bytes[from..].iter().position(|byte| *byte == b'"').map(|at| from + at) else {
                if last {
                    return Err(self.broken(*line, "a quote is not closed"));
                }
                return Ok(After::Cut);
            };
            match bytes.get(quote + 1) {
                Some(b'"') => (quotes, from) = (Quotes::Inside, quote + 2),
                Some(_) => break quote,
                None => return Ok(After::Cut),
            }
        };
        let after = match &bytes[end + 1..] {
            [next, ..] if *next == self.delimiter => After::Delimiter(end + 2),
            [b'\n', ..] => After::Newline(end + 2),
            [b'\r', b'\n', ..] => After::Newline(end + 3),
            [b'\r'] if !last => After::Cut,
            _ => return Err(self.broken(*line, QUOTE_BEHIND)),
        };
        *line += bytes[start..end].iter().filter(|byte| **byte == b'\n').count() as u64;
        self.push(start, end, quotes);
        Ok(after)
    }

    /// The row whose cells begin at `row` has ended, in this line.
    fn end_row(&mut self, row: &mut usize, line: &mut u64) -> Result<(), TableProblem> {
        let began = std::mem::replace(&mut self.line, *line + 1);
        *line += 1;
        let count = self.cells.len() - *row;
        if count == 1 && self.cells[*row].is_null() {
            // An empty line is no row.
            self.cells.truncate(*row);
            return Ok(());
        }
        match self.width {
            None => self.width = Some(count),
            Some(width) if width == count => self.lines.push(began),
            Some(width) => {
                return Err(self.broken(began, &format!("the row has {count} cells and the header {width}")));
            }
        }
        *row = self.cells.len();
        Ok(())
    }

    fn broken(&self, line: u64, message: &str) -> TableProblem {
        TableProblem::broken(Place::Line(line), message)
    }
}

/// Eight bytes from here on, or what there is of them, and how many they are.
#[inline]
fn word(bytes: &[u8], at: usize) -> (u64, usize) {
    match bytes[at..].first_chunk() {
        Some(eight) => (u64::from_le_bytes(*eight), 8),
        None => {
            // Letters are nothing special.
            let mut word = [b'a'; 8];
            let rest = &bytes[at..];
            word[..rest.len()].copy_from_slice(rest);
            (u64::from_le_bytes(word), rest.len())
        }
    }
}

/// The top bit of each byte that is the delimiter, a quote or a control character.
#[inline]
fn special(word: u64, delimiter: u8) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = ONES << 7;
    // Without the top bits, nothing carries from one byte into the next.
    let low = word & !TOPS;
    let control = low + ONES * 0x60;
    let differs = |byte: u8| ((low ^ (ONES * u64::from(byte))) + !TOPS) | word;
    !((control | word) & differs(delimiter) & differs(b'"')) & TOPS
}
