//! Functions of values of any type: on one row, and over a chunk, where a text is looked at once however many rows have it.
//!
//! What a function gives is in the table of operations; here is only how its operands reach it.

use crate::expr::cell::{Bad, Cell};
use crate::expr::chunk::{Chunk, Lane};
use crate::expr::eval::CHUNK;
use crate::expr::frame::Frame;
use crate::expr::hash::Salted;
use crate::expr::operation::{CallResult, Gives, Meaning};
use crate::expr::operations::Call;
use crate::expr::step::{CallOf, Operand};
use crate::expr::symbols::TEXT_BYTES_MAX;
use crate::expr::tree::{Ix, Op};
use crate::expr::vector::{self, Register, Values};
use crate::value::Type;
use hashbrown::HashMap;
use std::mem::take;

/// Up to this many symbols, the room for what is known of them is kept from evaluation to evaluation.
const KEPT_MAX: usize = 1 << 16;

/// What a function of one text gives, by symbol.
#[derive(Default)]
pub(super) struct TextMemo {
    /// There are more symbols than rows, by far.
    sparse: bool,
    list: Vec<Option<Cell>>,
    map: HashMap<u32, Cell>,
}

impl TextMemo {
    pub(super) fn clear(&mut self, symbols: usize, rows: usize) {
        self.sparse = symbols > rows.max(CHUNK).saturating_mul(4);
        // What one large evaluation needed is not kept for all those after it.
        if self.list.capacity() > KEPT_MAX {
            self.list = Vec::new();
        }
        self.list.clear();
        self.map.clear();
    }

    fn get(&mut self, symbol: u32, make: impl FnOnce() -> Cell) -> Cell {
        if self.sparse {
            return *self.map.entry(symbol).or_insert_with(make);
        }
        let at = symbol as usize;
        if at >= self.list.len() {
            self.list.resize(at + 1, None);
        }
        *self.list[at].get_or_insert_with(make)
    }
}

impl Frame<'_> {
    /// One call on the cells of its operands. What has no value is passed on before null is.
    pub(super) fn call(&self, call: Call, a: Cell, b: Option<Cell>, salt: Option<&str>) -> Cell {
        match (a, b) {
            (bad @ Cell::Bad(_), _) | (_, Some(bad @ Cell::Bad(_))) => return bad,
            (Cell::Null, _) | (_, Some(Cell::Null)) if call.gives() == Gives::Truth => return Cell::Bool(false),
            (Cell::Null, _) | (_, Some(Cell::Null)) => return Cell::Null,
            _ => {}
        }
        let text = |symbol| self.symbols.get(symbol);
        match (call.meaning(), a, b) {
            (Meaning::Text(f) | Meaning::Scalar { text: f, .. }, Cell::Str(x), None) => self.made(f(text(x))),
            (Meaning::Scalar { int: f, .. }, Cell::Int(x), None) => self.made(f(x)),
            (Meaning::Scalar { float: f, .. }, Cell::Float(x), None) => self.made(f(x)),
            (Meaning::Append, Cell::Str(a), Some(Cell::Str(b))) => self.append(text(a), text(b)),
            (Meaning::Test(f) | Meaning::Contains(f), Cell::Str(a), Some(Cell::Str(b))) => {
                Cell::Bool(f(text(a), text(b)))
            }
            (Meaning::Salted(f), Cell::Str(x), None) => self.made(f(salted(salt).with_text(text(x)))),
            (Meaning::Salted(f), Cell::Int(x), None) => self.made(f(salted(salt).with_int(x))),
            (Meaning::Vectors(similarity), Cell::Vector(a), Some(Cell::Vector(b))) => self.of_vectors(similarity, a, b),
            (meaning, Cell::List(list), b) => self.of_list(meaning, list, b),
            // The checks refuse operands of other types.
            _ => Cell::Null,
        }
    }

    pub(super) fn made(&self, made: CallResult) -> Cell {
        match made {
            CallResult::Null => Cell::Null,
            CallResult::Int(value) => Cell::Int(value),
            CallResult::Float(value) => Cell::Float(value),
            CallResult::Text(text) => self.symbols.make(&text),
            CallResult::Overflow => Cell::Bad(Bad::Overflow),
        }
    }

    fn append(&self, a: &str, b: &str) -> Cell {
        if a.len() + b.len() > TEXT_BYTES_MAX {
            return Cell::Bad(Bad::TooLong);
        }
        self.symbols.make(&[a, b].concat())
    }

    /// The text of a node that is the same on all rows; nothing where it is null.
    fn text_of(&self, node: Ix) -> Option<&str> {
        match self.uniforms[node as usize] {
            Cell::Str(symbol) => Some(self.symbols.get(symbol)),
            _ => None,
        }
    }

    /// The call of a node, and its salt.
    pub(super) fn call_at(&self, node: Ix) -> Option<(Meaning, Option<&str>)> {
        match self.program.tree.op(node) {
            Op::Call { call, salt, .. } => Some((call.meaning(), salt.as_deref())),
            _ => None,
        }
    }
}

fn salted(salt: Option<&str>) -> Salted {
    Salted::new(salt.unwrap_or_default())
}

impl<'a> Chunk<'a> {
    /// A call that gives a value. True when a text became too long or a sum overflowed on some row.
    pub(super) fn call(&mut self, at: u32, gives: Type, node: Ix, of: CallOf) -> bool {
        if let (CallOf::Vectors { a, b }, Some((Meaning::Vectors(similarity), _))) = (of, self.frame.call_at(node)) {
            return self.call_on_vectors(at, similarity, a, b);
        }
        match gives {
            Type::Int => self.call_giving::<i64>(at, node, of),
            Type::Float => self.call_giving::<f64>(at, node, of),
            Type::Bool => self.call_giving::<bool>(at, node, of),
            // No call gives a list or vector.
            Type::Str | Type::List(_) | Type::Vector(_) => self.call_giving::<u32>(at, node, of),
        }
    }

    fn call_giving<T: Lane>(&mut self, at: u32, node: Ix, of: CallOf) -> bool {
        let frame: &'a Frame<'a> = self.frame;
        let Some((meaning, salt)) = frame.call_at(node) else { return self.nulls::<T>(at) };
        match (meaning, of) {
            (Meaning::Scalar { int: f, .. }, CallOf::Ints(x)) => self.each::<i64, T>(at, x, f),
            (Meaning::Scalar { float: f, .. }, CallOf::Floats(x)) => self.each::<f64, T>(at, x, f),
            (Meaning::Salted(f), CallOf::Ints(x)) => {
                let mut salted = salted(salt);
                self.each::<i64, T>(at, x, |x| f(salted.with_int(x)))
            }
            (Meaning::Text(f) | Meaning::Scalar { text: f, .. }, CallOf::Texts { a: x, b: None, memo }) => {
                self.by_text::<T>(at, x, memo, |x| frame.made(f(x)))
            }
            (Meaning::Salted(f), CallOf::Texts { a: x, b: None, memo }) => {
                let mut salted = salted(salt);
                self.by_text::<T>(at, x, memo, |x| frame.made(f(salted.with_text(x))))
            }
            (Meaning::Append, CallOf::Texts { a: x, b: Some(Operand::Uniform(end)), memo }) => {
                match frame.text_of(end) {
                    Some(end) => self.by_text::<T>(at, x, memo, |x| frame.append(x, end)),
                    None => self.nulls::<T>(at),
                }
            }
            (Meaning::Append, CallOf::Texts { a: Operand::Uniform(start), b: Some(x), memo }) => {
                match frame.text_of(start) {
                    Some(start) => self.by_text::<T>(at, x, memo, |x| frame.append(start, x)),
                    None => self.nulls::<T>(at),
                }
            }
            (Meaning::Append, CallOf::Texts { a, b: Some(b), .. }) => self.append_each::<T>(at, a, b),
            (meaning, CallOf::Lists { a, b }) => self.call_on_lists::<T>(at, meaning, a, b),
            // The checks refuse operands of other types.
            (_, CallOf::Ints(_) | CallOf::Floats(_) | CallOf::Texts { .. } | CallOf::Vectors { .. }) => {
                self.nulls::<T>(at)
            }
        }
    }

    fn nulls<T: Lane>(&mut self, at: u32) -> bool {
        self.write(at, |chunk, out: &mut Register<T>| {
            vector::fill(vector::Valid::Nothing, chunk.n, out, |_| None);
            false
        })
    }

    /// A function of one number. It makes no texts.
    fn each<A: Lane, T: Lane>(&mut self, at: u32, x: Operand, mut f: impl FnMut(A) -> CallResult) -> bool {
        self.write(at, |chunk, out: &mut Register<T>| {
            let x = A::source(chunk, x);
            vector::fill(x.valid, chunk.n, out, |row| T::of(chunk.frame.made(f(x.values.at(row)))));
            false
        })
    }

    /// A function of one text, called once per distinct text of the evaluation.
    fn by_text<T: Lane>(&mut self, at: u32, x: Operand, memo: u32, mut f: impl FnMut(&str) -> Cell) -> bool {
        let memo = (self.frame.first_memo.texts + memo) as usize;
        let mut known = take(&mut self.scratch.texts[memo]);
        let too_long = self.write(at, |chunk, out: &mut Register<T>| {
            let (x, symbols, mut too_long) = (u32::source(chunk, x), &chunk.frame.symbols, false);
            vector::fill(x.valid, chunk.n, out, |row| {
                let symbol = x.values.at(row);
                let cell = known.get(symbol, || f(symbols.get(symbol)));
                too_long |= matches!(cell, Cell::Bad(_));
                T::of(cell)
            });
            too_long
        });
        self.scratch.texts[memo] = known;
        too_long
    }

    fn append_each<T: Lane>(&mut self, at: u32, a: Operand, b: Operand) -> bool {
        self.write(at, |chunk, out: &mut Register<T>| {
            let (a, b, frame) = (u32::source(chunk, a), u32::source(chunk, b), chunk.frame);
            let (there, mut too_long) = (b.valid.as_values(), false);
            vector::fill(a.valid, chunk.n, out, |row| {
                let text = |values: Values<'_, u32>| frame.symbols.get(values.at(row));
                let cell = there.at(row).then(|| frame.append(text(a.values), text(b.values)))?;
                too_long |= matches!(cell, Cell::Bad(_));
                T::of(cell)
            });
            too_long
        })
    }

    /// A test of two texts.
    pub(super) fn test_texts(&mut self, node: Ix, a: Operand, b: Operand, memo: u32, out: &mut Vec<bool>) {
        let frame: &'a Frame<'a> = self.frame;
        let Some((Meaning::Test(f) | Meaning::Contains(f), _)) = frame.call_at(node) else {
            return out.resize(self.n, false);
        };
        match (a, b) {
            (x, Operand::Uniform(text)) => match frame.text_of(text) {
                Some(text) => self.by_symbol(x, memo, out, |x| f(x, text)),
                None => out.resize(self.n, false),
            },
            (Operand::Uniform(text), x) => match frame.text_of(text) {
                Some(text) => self.by_symbol(x, memo, out, |x| f(text, x)),
                None => out.resize(self.n, false),
            },
            (a, b) => {
                let (a, b) = (u32::source(self, a), u32::source(self, b));
                vector::valid_mask(a.valid, self.n, out);
                vector::keep_valid(out, b.valid);
                for (row, holds) in out.iter_mut().enumerate().filter(|(_, there)| **there) {
                    *holds = f(frame.symbols.get(a.values.at(row)), frame.symbols.get(b.values.at(row)));
                }
            }
        }
    }
}
