//! Runs a program over a row set, a chunk of rows at a time.
//!
//! Each step is one loop over the chunk, so dispatch is paid once per step and chunk, never per row. A chunk in which some
//! int operation overflowed is computed again row by row: the overflow may be in a branch that the row does not take.
//! Buffers live in a [`Scratch`] that the caller keeps; a run allocates its result and a handful of small lists.

use crate::column::{Cells, Column};
use crate::dictionary::DictionaryBuilder;
use crate::expr::cell::Cell;
use crate::expr::chunk::{Chunk, Lane};
use crate::expr::compile::{Operand, Program};
use crate::expr::frame::Frame;
use crate::expr::tree::{Ix, Op};
use crate::expr::vector::{Register, Source, Valid, Values};
use crate::kernel::compact::compact;
use crate::kernel::wide::wide;
use crate::rowset::{RowSet, Rows};
use crate::value::{Type, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::expr::chunk::Scratch;

/// Rows per chunk: a register of floats is 8 KiB, so the few in use stay in the first-level cache.
pub const CHUNK: usize = 1024;

/// Why an evaluation ended without a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// An int operation left the range of 64 bits.
    Overflow,
    /// The value to be written is NaN or infinite.
    NotFinite(f64),
    /// A pattern that came from a parameter cannot be used.
    BadRegex { why: String },
    /// The caller asked to stop.
    Stopped,
}

/// A fault and, where it is a row's, the row's id and the operation that brought it in.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalError {
    pub fault: Fault,
    pub id: Option<i64>,
    pub node: Option<Ix>,
}

impl From<Fault> for EvalError {
    fn from(fault: Fault) -> EvalError {
        EvalError { fault, id: None, node: None }
    }
}

/// A flag that is looked at between chunks.
#[derive(Clone, Copy, Default)]
pub struct Stop<'a>(pub Option<&'a AtomicBool>);

impl Stop<'_> {
    fn check(self) -> Result<(), EvalError> {
        match self.0 {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(Fault::Stopped.into()),
            _ => Ok(()),
        }
    }
}

/// Computes one column for the rows of the view.
///
/// The column is as long as the batch; outside the view it holds nothing of meaning.
pub fn compute(
    program: &Program,
    rows: &RowSet,
    params: &[Value],
    scratch: &mut Scratch,
    stop: Stop<'_>,
) -> Result<Column, EvalError> {
    let frame = Frame::bind(program, rows.batch(), params)?;
    scratch.prepare(program, frame.symbols.len());
    let evaluation = Evaluation { frame: &frame, rows, stop };
    match program.result {
        Some(Type::Int) => evaluation.column(scratch, |_| None).map(Column::Int),
        Some(Type::Bool) => evaluation.column(scratch, |_| None).map(Column::Bool),
        Some(Type::Str) => evaluation.column(scratch, |_| None).map(|symbols| restring(&frame, &symbols)),
        Some(Type::Float) | None => evaluation.column(scratch, first_non_finite).map(Column::Float),
    }
}

/// The stored rows of the view for which a predicate holds, in view order.
pub fn select(
    program: &Program,
    rows: &RowSet,
    params: &[Value],
    scratch: &mut Scratch,
    stop: Stop<'_>,
) -> Result<Vec<u32>, EvalError> {
    let frame = Frame::bind(program, rows.batch(), params)?;
    scratch.prepare(program, frame.symbols.len());
    let evaluation = Evaluation { frame: &frame, rows, stop };
    let mut kept = Kept { rows: Vec::with_capacity(rows.len()), root: program.root };
    evaluation.run(scratch, &mut kept)?;
    Ok(kept.rows)
}

/// The root's values on the rows of a chunk: in its registers, or a cell a row where the chunk was done row by row.
enum Root<'c> {
    Chunk(&'c Chunk<'c>),
    Rows(&'c [Cell]),
}

/// What becomes of the chunks of an evaluation, in turn.
trait Sink {
    /// Runs the steps of a chunk. True when an int operation overflowed on some row.
    fn run(&mut self, chunk: &mut Chunk<'_>) -> bool {
        chunk.run()
    }

    /// Takes the root on, with the stored rows that it is for.
    fn put(&mut self, rows: Rows<'_>, root: Root<'_>) -> Result<(), (usize, Fault)>;
}

struct Evaluation<'a> {
    frame: &'a Frame<'a>,
    rows: &'a RowSet,
    stop: Stop<'a>,
}

impl Evaluation<'_> {
    fn run(&self, scratch: &mut Scratch, sink: &mut impl Sink) -> Result<(), EvalError> {
        let rows = self.rows.rows();
        let row_by_row = self.frame.uniform_overflow();
        let mut cells = Vec::new();
        for start in (0..rows.len()).step_by(CHUNK) {
            self.stop.check()?;
            let rows = rows.slice(start, CHUNK.min(rows.len() - start));
            let mut chunk = Chunk::new(self.frame, rows, scratch);
            let result = if row_by_row || sink.run(&mut chunk) {
                let roots = self.row_by_row(rows, &mut cells);
                sink.put(rows.slice(0, roots.len()), Root::Rows(&roots)).and_then(|()| match roots.len() {
                    // The row after the last good one.
                    good if good < rows.len() => Err((good, Fault::Overflow)),
                    _ => Ok(()),
                })
            } else {
                sink.put(rows, Root::Chunk(&chunk))
            };
            result.map_err(|(position, fault)| self.blame(rows.at(position), fault, &mut cells))?;
        }
        Ok(())
    }

    /// The root on each row, up to the first that overflows.
    fn row_by_row(&self, rows: Rows<'_>, cells: &mut Vec<Cell>) -> Vec<Cell> {
        let mut roots = Vec::with_capacity(rows.len());
        for row in rows.iter() {
            self.frame.row(row, cells);
            match cells.last() {
                Some(Cell::Overflow) => break,
                Some(&root) => roots.push(root),
                None => roots.push(Cell::Null),
            }
        }
        roots
    }

    /// Names the operation that the fault came from: down from the root along the operands that carry it.
    fn blame(&self, row: usize, fault: Fault, cells: &mut Vec<Cell>) -> EvalError {
        self.frame.row(row, cells);
        let carries = |ix: Ix| match cells[ix as usize] {
            Cell::Overflow => fault == Fault::Overflow,
            Cell::Float(v) => !v.is_finite() && fault != Fault::Overflow,
            _ => false,
        };
        let tree = &self.frame.program.tree;
        let mut node = tree.nodes().len() as Ix - 1;
        loop {
            let next = match *tree.op(node) {
                Op::If { cond, then, other } => match cells[cond as usize] {
                    Cell::Overflow => Some(cond),
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
        EvalError { fault, id: Some(self.rows.batch().ids()[row]), node: Some(node) }
    }

    fn column<T: Lane>(&self, scratch: &mut Scratch, fault: FindFault<T>) -> Result<Cells<T>, EvalError> {
        let mut out = Output::new(self.rows, self.frame.program.root, fault);
        self.run(scratch, &mut out)?;
        Ok(Cells::new(out.values, out.nulls.then_some(out.valid)))
    }
}

/// The rows for which a predicate holds.
struct Kept {
    rows: Vec<u32>,
    root: Operand,
}

impl Sink for Kept {
    fn put(&mut self, rows: Rows<'_>, root: Root<'_>) -> Result<(), (usize, Fault)> {
        let holds: Vec<bool> = match root {
            Root::Rows(cells) => cells.iter().map(|&cell| cell == Cell::Bool(true)).collect(),
            Root::Chunk(chunk) => match chunk.mask(self.root) {
                Values::Each(mask) => {
                    compact(mask, rows, &mut self.rows);
                    return Ok(());
                }
                Values::All(holds) => vec![holds; rows.len()],
            },
        };
        compact(&holds, rows, &mut self.rows);
        Ok(())
    }
}

/// The first position whose value may not be written, if there is one, and why.
type FindFault<T> = fn(&Source<'_, T>) -> Option<(usize, Fault)>;

fn first_non_finite(root: &Source<'_, f64>) -> Option<(usize, Fault)> {
    let there = |at: usize| match root.valid {
        Valid::All => true,
        Valid::Nothing => false,
        Valid::Each(valid) => valid[at],
    };
    match root.values {
        Values::Each(values) => {
            // Adding one to an exponent carries into the sign's place only where all its bits are set: NaN and infinity.
            const EXPONENT: u64 = 0x7FF << 52;
            let carries = wide(
                #[inline(always)]
                || values.iter().fold(0, |bits, v| bits | ((v.to_bits() & EXPONENT) + (1 << 52))),
            );
            if carries >> 63 == 0 {
                return None;
            }
            let at = (0..values.len()).find(|&at| !values[at].is_finite() && there(at))?;
            Some((at, Fault::NotFinite(values[at])))
        }
        Values::All(value) => (!value.is_finite() && there(0)).then_some((0, Fault::NotFinite(value))),
    }
}

/// The column under construction.
struct Output<T> {
    values: Vec<T>,
    valid: Vec<bool>,
    nulls: bool,
    /// The view is the whole batch in order, so chunks can be appended; otherwise they go to their rows.
    appending: bool,
    /// How many rows of the view are done.
    done: usize,
    len: usize,
    root: Operand,
    fault: FindFault<T>,
}

impl<T: Lane> Output<T> {
    fn new(rows: &RowSet, root: Operand, fault: FindFault<T>) -> Output<T> {
        let len = rows.batch().len();
        let appending = matches!(rows.rows(), Rows::Range { start: 0, len: viewed } if viewed == len);
        let values = if appending { Vec::with_capacity(len) } else { vec![T::default(); len] };
        Output { values, valid: Vec::new(), nulls: false, appending, done: 0, len, root, fault }
    }

    /// The last step can write where its values stay.
    fn is_direct(&self) -> bool {
        self.appending && matches!(self.root, Operand::Register(_))
    }

    /// Makes room for validity once it is known to be needed; rows before were all there.
    fn expect_nulls(&mut self, valid: Valid<'_>) {
        if !self.nulls && !matches!(valid, Valid::All) {
            self.nulls = true;
            self.valid.reserve_exact(self.len);
            self.valid.resize(if self.appending { self.done } else { self.len }, true);
        }
    }

    fn put_source(&mut self, rows: Rows<'_>, root: Source<'_, T>) -> Result<(), (usize, Fault)> {
        if let Some(fault) = (self.fault)(&root) {
            return Err(fault);
        }
        let n = rows.len();
        self.expect_nulls(root.valid);
        if self.appending {
            self.values.truncate(self.done);
            append(&mut self.values, root.values, n);
            if self.nulls {
                append(&mut self.valid, root.valid.as_values(), n);
            }
        } else {
            scatter(&mut self.values, root.values, rows);
            if self.nulls {
                scatter(&mut self.valid, root.valid.as_values(), rows);
            }
        }
        self.done += n;
        Ok(())
    }

    /// The values are already there.
    fn put_direct(&mut self, n: usize, valid: Valid<'_>) -> Result<(), (usize, Fault)> {
        let written = Source { values: Values::Each(&self.values[self.done..]), valid };
        if let Some(fault) = (self.fault)(&written) {
            return Err(fault);
        }
        self.expect_nulls(valid);
        if self.nulls {
            append(&mut self.valid, valid.as_values(), n);
        }
        self.done += n;
        Ok(())
    }
}

impl<T: Lane> Sink for Output<T> {
    fn run(&mut self, chunk: &mut Chunk<'_>) -> bool {
        if self.is_direct() { chunk.run_onto(&mut self.values) } else { chunk.run() }
    }

    fn put(&mut self, rows: Rows<'_>, root: Root<'_>) -> Result<(), (usize, Fault)> {
        match root {
            Root::Chunk(chunk) if self.is_direct() => self.put_direct(rows.len(), T::source(chunk, self.root).valid),
            Root::Chunk(chunk) => self.put_source(rows, T::source(chunk, self.root)),
            Root::Rows(cells) => {
                let register = Register::from_cells(cells.iter().map(|&cell| T::of(cell)));
                self.put_source(rows, register.source())
            }
        }
    }
}

fn append<T: Copy>(out: &mut Vec<T>, values: Values<'_, T>, n: usize) {
    match values {
        Values::Each(values) => out.extend_from_slice(&values[..n]),
        Values::All(value) => out.resize(out.len() + n, value),
    }
}

fn scatter<T: Copy>(out: &mut [T], values: Values<'_, T>, rows: Rows<'_>) {
    for (position, row) in rows.iter().enumerate() {
        out[row] = match values {
            Values::Each(values) => values[position],
            Values::All(value) => value,
        };
    }
}

/// Symbols of an evaluation as a string column of its own: entries in the order of their first row.
fn restring(frame: &Frame<'_>, symbols: &Cells<u32>) -> Column {
    const NONE: u32 = u32::MAX;
    let mut builder = DictionaryBuilder::default();
    let mut codes = vec![NONE; frame.symbols.len()];
    let cells = (0..symbols.len())
        .map(|row| {
            let symbol = symbols.get(row)?;
            let code = codes.get_mut(symbol as usize)?;
            if *code == NONE {
                *code = builder.code(frame.symbols.get(symbol));
            }
            Some(*code)
        })
        .collect();
    Column::Str(cells, Arc::new(builder.finish()))
}
