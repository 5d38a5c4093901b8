//! Runs a program over a row set, a chunk of rows at a time.
//!
//! Each step is one loop over the chunk, so dispatch is paid once per step and chunk, never per row. A chunk in which some
//! int operation overflowed is computed again row by row: the overflow may be in a branch that the row does not take.
//! Buffers live in a [`Scratch`] that the caller keeps; a run allocates its result and a handful of small lists.

use crate::batch::Batch;
use crate::column::Column;
use crate::expr::cell::{Bad, Cell};
use crate::expr::chunk::Chunk;
use crate::expr::compile::Program;
use crate::expr::frame::Frame;
use crate::expr::output::Made;
use crate::expr::pattern::BadPattern;
use crate::expr::run_values::RunValues;
use crate::expr::step::Operand;
use crate::expr::symbols::{TEXT_BYTES_MAX, TEXTS_BYTES_MAX};
use crate::expr::tree::{Ix, Op};
use crate::expr::vector::Values;
use crate::id::Id;
use crate::kernel::compact::{compact, give_back, make_room, room_for};
use crate::rowset::{RowSet, Rows};
use crate::stop::{Stop, Stopped};
use std::borrow::Cow;
use std::fmt;

pub use crate::expr::scratch::Scratch;

/// Rows per chunk: a register of floats is 8 KiB, so the few in use stay in the first-level cache.
pub const CHUNK: usize = 1024;

/// Why an evaluation ended without a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// An int operation left the range of 64 bits.
    Overflow,
    /// A text is longer than an operation may make one.
    TextTooLong,
    /// The texts that the evaluation makes are together larger than they may be.
    TextsTooLarge,
    /// The value to be written is NaN or infinite.
    NotFinite(f64),
    /// The value to be written is null, and the column takes none.
    Null { column: Box<str> },
    /// A pattern that came from a parameter cannot be used.
    BadRegex { why: BadPattern },
    /// The caller asked to stop.
    Stopped,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Overflow => f.write_str("an int overflows 64 bits"),
            Fault::TextTooLong => write!(f, "a text is longer than {TEXT_BYTES_MAX} bytes"),
            Fault::TextsTooLarge => {
                write!(f, "the texts that the expression makes are larger than {TEXTS_BYTES_MAX} bytes together")
            }
            Fault::NotFinite(value) => write!(f, "the result is {value}"),
            Fault::Null { column } => write!(f, "the key {column:?} has no value"),
            Fault::BadRegex { why } => write!(f, "the regular expression in a parameter cannot be used: {why}"),
            Fault::Stopped => Stopped.fmt(f),
        }
    }
}

/// A fault and, where it is a row's, the row's id and the operation that brought it in.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalError {
    pub fault: Fault,
    pub id: Option<Id>,
    pub node: Option<Ix>,
}

impl std::error::Error for EvalError {}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "{} at row id {id}", self.fault),
            None => self.fault.fmt(f),
        }
    }
}

impl From<Fault> for EvalError {
    fn from(fault: Fault) -> EvalError {
        EvalError { fault, id: None, node: None }
    }
}

impl From<Stopped> for EvalError {
    fn from(_: Stopped) -> EvalError {
        Fault::Stopped.into()
    }
}

/// Computes one column for the rows of the view.
///
/// The column is as long as the batch; outside the view it holds nothing of meaning.
pub fn compute(
    program: &Program,
    rows: &RowSet,
    run: RunValues<'_>,
    scratch: &mut Scratch,
    stop: Stop<'_>,
) -> Result<Column, EvalError> {
    let frame = Frame::bind(program, rows, &[], run, stop)?;
    scratch.prepare(&frame);
    let mut made = Made::new(program, rows, true);
    let evaluation = Evaluation { frame: &frame, batch: rows.batch(), made: &[], stop };
    evaluation.run(rows.rows(), scratch, &mut made)?;
    Ok(made.finish(&frame.symbols, stop)?)
}

/// The stored rows of the view for which a predicate holds, in view order.
pub fn select(
    program: &Program,
    rows: &RowSet,
    run: RunValues<'_>,
    scratch: &mut Scratch,
    stop: Stop<'_>,
) -> Result<Vec<u32>, EvalError> {
    let frame = Frame::bind(program, rows, &[], run, stop)?;
    scratch.prepare(&frame);
    let (mut kept, mut seen) = (room_for(rows.len()), 0);
    let evaluation = Evaluation { frame: &frame, batch: rows.batch(), made: &[], stop };
    let then = |chunk: Rows<'_>, holds: &[bool]| {
        make_room(&mut kept, chunk.len(), seen, rows.len());
        seen += chunk.len();
        compact(holds, chunk, &mut kept);
    };
    evaluation.run(rows.rows(), scratch, &mut Tested { root: program.root, then })?;
    Ok(give_back(kept))
}

/// The root's values on the rows of a chunk: in its registers, or a cell a row where the chunk was done row by row.
pub(super) enum Root<'c> {
    Chunk(&'c Chunk<'c>),
    Rows(&'c [Cell]),
}

/// Receives the chunks of an evaluation, in turn.
pub(super) trait Sink {
    /// Runs the steps of a chunk. True when an int operation overflowed on some row.
    fn run(&mut self, chunk: &mut Chunk<'_>) -> bool {
        chunk.run()
    }

    /// Takes the values of the root, with the stored rows that they are for.
    fn put(&mut self, rows: Rows<'_>, root: Root<'_>) -> Result<(), (usize, Fault)>;
}

/// Passes on for which rows of each chunk a predicate holds.
pub(super) struct Tested<F> {
    pub(super) root: Operand,
    pub(super) then: F,
}

impl<F: FnMut(Rows<'_>, &[bool])> Sink for Tested<F> {
    fn put(&mut self, rows: Rows<'_>, root: Root<'_>) -> Result<(), (usize, Fault)> {
        let holds: Cow<'_, [bool]> = match root {
            Root::Rows(cells) => cells.iter().map(|&cell| cell == Cell::Bool(true)).collect(),
            Root::Chunk(chunk) => match chunk.mask(self.root) {
                Values::Each(mask) => mask.into(),
                Values::All(holds) => vec![holds; rows.len()].into(),
            },
        };
        (self.then)(rows, &holds);
        Ok(())
    }
}

/// A program at work on the rows of a batch.
pub(super) struct Evaluation<'a> {
    pub(super) frame: &'a Frame<'a>,
    pub(super) batch: &'a Batch,
    /// The columns that the pass at hand has made so far.
    pub(super) made: &'a [Made],
    pub(super) stop: Stop<'a>,
}

impl Evaluation<'_> {
    fn run(&self, rows: Rows<'_>, scratch: &mut Scratch, sink: &mut impl Sink) -> Result<(), EvalError> {
        let mut looks = self.stop.looks();
        for start in (0..rows.len()).step_by(CHUNK) {
            looks.before(CHUNK)?;
            self.chunk(rows.slice(start, CHUNK.min(rows.len() - start)), scratch, sink)?;
        }
        Ok(())
    }

    /// The rows of one chunk: at most [`CHUNK`] of them.
    pub(super) fn chunk(&self, rows: Rows<'_>, scratch: &mut Scratch, sink: &mut impl Sink) -> Result<(), EvalError> {
        let mut chunk = Chunk::new(self.frame, self.made, rows, self.stop, scratch);
        let by_row = self.frame.uniform_overflow || sink.run(&mut chunk);
        if self.frame.symbols.are_too_large() {
            return Err(Fault::TextsTooLarge.into());
        }
        let (roots, bad) = if by_row { self.row_by_row(rows) } else { (Vec::new(), None) };
        // What was not matched any more is not what the rows give.
        if self.frame.program.may_take_long {
            self.stop.check()?;
        }
        let result = if by_row {
            sink.put(rows.slice(0, roots.len()), Root::Rows(&roots)).and_then(|()| match bad {
                // The row after the last good one.
                Some(bad) => Err((roots.len(), fault_of(bad))),
                None => Ok(()),
            })
        } else {
            sink.put(rows, Root::Chunk(&chunk))
        };
        result.map_err(|(position, fault)| self.blame(rows.at(position), fault))
    }

    /// The root on each row, up to the first that has no value, or to where it is stopped; and why that row has none.
    fn row_by_row(&self, rows: Rows<'_>) -> (Vec<Cell>, Option<Bad>) {
        let (mut roots, mut cells) = (Vec::with_capacity(rows.len()), Vec::new());
        for row in rows.iter() {
            if self.frame.program.may_take_long && self.stop.is_flagged() {
                break;
            }
            self.frame.row(row, self.made, &mut cells);
            match cells.last() {
                Some(&Cell::Bad(bad)) => return (roots, Some(bad)),
                Some(&root) => roots.push(root),
                None => roots.push(Cell::Null),
            }
        }
        (roots, None)
    }

    /// Names the operation that the fault came from: down from the root along the operands that carry it.
    fn blame(&self, row: usize, fault: Fault) -> EvalError {
        let mut cells = Vec::new();
        self.frame.row(row, self.made, &mut cells);
        let carries = |ix: Ix| match cells[ix as usize] {
            Cell::Bad(bad) => fault == fault_of(bad),
            Cell::Float(v) => !v.is_finite() && matches!(fault, Fault::NotFinite(_)),
            _ => false,
        };
        let tree = &self.frame.program.tree;
        let mut node = tree.nodes().len() as Ix - 1;
        loop {
            let next = match *tree.op(node) {
                Op::If { cond, then, other } => match cells[cond as usize] {
                    Cell::Bad(_) => Some(cond),
                    Cell::Bool(true) => Some(then),
                    _ => Some(other),
                },
                Op::Coalesce(a, b) => Some(if cells[a as usize] == Cell::Null { b } else { a }),
                ref op => op.children().find(|&child| carries(child)),
            };
            match next.filter(|&child| carries(child)) {
                Some(child) => node = child,
                None => break,
            }
        }
        EvalError { fault, id: Some(self.batch.id(row)), node: Some(node) }
    }
}

fn fault_of(bad: Bad) -> Fault {
    match bad {
        Bad::Overflow => Fault::Overflow,
        Bad::TooLong => Fault::TextTooLong,
    }
}
