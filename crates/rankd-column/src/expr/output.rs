//! A column under construction: where the chunks of an evaluation go.
//!
//! What it holds at rows that were not evaluated means nothing. A value that may not be written ends the evaluation.

use crate::column::{Cells, Column};
use crate::dictionary::DictionaryBuilder;
use crate::expr::chunk::{Chunk, Lane};
use crate::expr::compile::Program;
use crate::expr::eval::{Fault, Root, Sink};
use crate::expr::frame::{Bound, Slice};
use crate::expr::step::Operand;
use crate::expr::symbols::Symbols;
use crate::expr::vector::{Register, Source, Valid, Values};
use crate::kernel::wide::wide;
use crate::rowset::{RowSet, Rows};
use crate::stop::{Stop, Stopped};
use crate::value::Type;
use std::sync::Arc;

/// The column that a program computes, as far as it has come.
pub(super) enum Made {
    Ints(Output<i64>),
    Floats(Output<f64>),
    Bools(Output<bool>),
    Symbols(Output<u32>),
}

impl Made {
    /// For the rows of a view; `all` of them, or some that only the evaluation will know.
    pub(super) fn new(program: &Program, rows: &RowSet, all: bool) -> Made {
        match program.result {
            Some(Type::Int) => Made::Ints(Output::new(rows, all, program, |_| None)),
            Some(Type::Bool) => Made::Bools(Output::new(rows, all, program, |_| None)),
            Some(Type::Str) => Made::Symbols(Output::new(rows, all, program, |_| None)),
            // The checks refuse an expression that gives a list or vector, and a predicate makes no column.
            Some(Type::Float | Type::List(_) | Type::Vector(_)) | None => {
                Made::Floats(Output::new(rows, all, program, first_non_finite))
            }
        }
    }

    /// What other programs of the same pass can read. Strings are symbols of one evaluation, so they cannot be read.
    #[inline(always)]
    pub(super) fn so_far(&self) -> Bound<'_> {
        match self {
            Made::Ints(output) => Bound::Ints(output.so_far()),
            Made::Floats(output) => Bound::Floats(output.so_far()),
            Made::Bools(output) => Bound::Bools(output.so_far()),
            Made::Symbols(_) => Bound::Missing,
        }
    }

    pub(super) fn finish(self, symbols: &Symbols<'_>, stop: Stop<'_>) -> Result<Column, Stopped> {
        Ok(match self {
            Made::Ints(output) => Column::Int(output.finish()),
            Made::Floats(output) => Column::Float(output.finish()),
            Made::Bools(output) => Column::Bool(output.finish()),
            Made::Symbols(output) => restring(symbols, &output.finish(), stop)?,
        })
    }
}

impl Sink for Made {
    fn run(&mut self, chunk: &mut Chunk<'_>) -> bool {
        match self {
            Made::Ints(output) => output.run(chunk),
            Made::Floats(output) => output.run(chunk),
            Made::Bools(output) => output.run(chunk),
            Made::Symbols(output) => output.run(chunk),
        }
    }

    fn put(&mut self, rows: Rows<'_>, root: Root<'_>) -> Result<(), (usize, Fault)> {
        match self {
            Made::Ints(output) => output.put(rows, root),
            Made::Floats(output) => output.put(rows, root),
            Made::Bools(output) => output.put(rows, root),
            Made::Symbols(output) => output.put(rows, root),
        }
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

/// The first of `n` positions that is null.
fn first_null(valid: Valid<'_>, n: usize) -> Option<usize> {
    match valid {
        Valid::All => None,
        Valid::Nothing => (n > 0).then_some(0),
        Valid::Each(valid) => valid[..n].iter().position(|there| !there),
    }
}

/// The column under construction.
pub(super) struct Output<T> {
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
    /// What the column is called, where it takes no null.
    required: Option<Box<str>>,
}

impl<T: Lane> Output<T> {
    fn new(rows: &RowSet, all: bool, program: &Program, fault: FindFault<T>) -> Output<T> {
        let (root, required) = (program.root, program.required.clone());
        let len = rows.batch().len();
        let appending = all && matches!(rows.rows(), Rows::Range { start: 0, len: viewed } if viewed == len);
        let values = if appending { Vec::with_capacity(len) } else { vec![T::default(); len] };
        Output { values, valid: Vec::new(), nulls: false, appending, done: 0, len, root, fault, required }
    }

    /// The first of `n` rows that may not be written, whatever the reason: which of two faults is reported must not depend on how
    /// the rows were cut into chunks.
    fn first_fault(&self, root: &Source<'_, T>, n: usize) -> Option<(usize, Fault)> {
        let fault = (self.fault)(root);
        let Some(column) = &self.required else { return fault };
        match (first_null(root.valid, n), fault) {
            (Some(null), Some((at, fault))) if at < null => Some((at, fault)),
            (Some(null), _) => Some((null, Fault::Null { column: column.clone() })),
            (None, fault) => fault,
        }
    }

    /// The cells of the rows that are done; those of other rows mean nothing, or are not there yet.
    fn so_far(&self) -> Slice<'_, T> {
        Slice { values: &self.values, valid: self.nulls.then_some(&self.valid) }
    }

    fn finish(mut self) -> Cells<T> {
        // A pass that has enough rows leaves off before the last chunk.
        self.values.resize(self.len, T::default());
        if self.nulls {
            self.valid.resize(self.len, false);
        }
        Cells::new(self.values, self.nulls.then_some(self.valid))
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
        let n = rows.len();
        if let Some(fault) = self.first_fault(&root, n) {
            return Err(fault);
        }
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
        if let Some(fault) = self.first_fault(&written, n) {
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
fn restring(all: &Symbols<'_>, symbols: &Cells<u32>, stop: Stop<'_>) -> Result<Column, Stopped> {
    const NONE: u32 = u32::MAX;
    let mut builder = DictionaryBuilder::default();
    // A few rows of a large dictionary: looking each text up takes less than a list of all symbols.
    let few = all.len() / 4 > symbols.len();
    let mut codes = vec![NONE; if few { 0 } else { all.len() }];
    let mut code_of = |symbol: u32| {
        if few {
            return Some(builder.code(all.get(symbol)));
        }
        let code = codes.get_mut(symbol as usize)?;
        if *code == NONE {
            *code = builder.code(all.get(symbol));
        }
        Some(*code)
    };
    let mut cells = Cells::with_capacity(symbols.len());
    for chunk in stop.chunks(Rows::Range { start: 0, len: symbols.len() }) {
        chunk?.iter().for_each(|row| cells.push(symbols.get(row).and_then(&mut code_of)));
    }
    Ok(Column::Str(cells, Arc::new(builder.finish())))
}
