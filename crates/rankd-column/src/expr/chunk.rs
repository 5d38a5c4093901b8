//! The steps of a program over one chunk of rows.

use crate::expr::arrays::{ListRef, VectorRef};
use crate::expr::cell::{self, Cell};
use crate::expr::compile::float_bits;
use crate::expr::eval::CHUNK;
use crate::expr::frame::{Bound, Frame, Slice};
use crate::expr::operation::{WithBinary, WithUnary};
use crate::expr::output::Made;
use crate::expr::scratch::{Known, Scratch};
use crate::expr::step::{Operand, Placed, Step, Test};
use crate::expr::tree::Compare;
use crate::expr::vector::{self, Product, Register, Source, Valid, Values};
use crate::kernel::gather::gather;
use crate::rowset::Rows;
use crate::stop::Stop;
use crate::value::Type;
use std::mem::{swap, take};

/// Up to this many texts, looking each up in the dictionary takes less than looking each distinct string up among them.
const LOOKED_UP_MAX: usize = 4;

/// One chunk of a row set under evaluation.
pub(super) struct Chunk<'a> {
    pub(super) frame: &'a Frame<'a>,
    made: &'a [Made],
    rows: Rows<'a>,
    pub(super) n: usize,
    pub(super) stop: Stop<'a>,
    pub(super) scratch: &'a mut Scratch,
    /// The register that is being written holds the rows of earlier chunks, which stay.
    appending: bool,
}

/// A type that columns and registers hold. For strings that is the symbol.
pub(super) trait Lane: Copy + Default {
    fn of(cell: Cell) -> Option<Self>;
    fn register(scratch: &mut Scratch, at: u32) -> &mut Register<Self>;
    fn source<'c>(chunk: &'c Chunk<'_>, operand: Operand) -> Source<'c, Self>;
}

/// What `Lane::source` is for a type: its registers, its column slots, its row-independent values.
macro_rules! lane {
    ($type:ty, $registers:ident, $bound:pat => $slice:ident, $cell:expr) => {
        impl Lane for $type {
            fn of(cell: Cell) -> Option<$type> {
                $cell(cell)
            }

            fn register(scratch: &mut Scratch, at: u32) -> &mut Register<$type> {
                &mut scratch.$registers[at as usize]
            }

            #[inline(always)]
            fn source<'c>(chunk: &'c Chunk<'_>, operand: Operand) -> Source<'c, $type> {
                match operand {
                    Operand::Register(at) => chunk.scratch.$registers[at as usize].source(),
                    Operand::Column(slot) => match chunk.frame.columns[slot as usize].so_far(chunk.made) {
                        $bound => chunk.side_by_side($slice, &chunk.scratch.loaded[slot as usize].$registers),
                        _ => Source::null(),
                    },
                    Operand::Uniform(ix) => match Self::of(chunk.frame.uniforms[ix as usize]) {
                        Some(value) => Source { values: Values::All(value), valid: Valid::All },
                        None => Source::null(),
                    },
                }
            }
        }
    };
}

lane!(i64, ints, Bound::Ints(slice) => slice, |cell| if let Cell::Int(v) = cell { Some(v) } else { None });
lane!(f64, floats, Bound::Floats(slice) => slice, Cell::as_float);
lane!(bool, bools, Bound::Bools(slice) => slice, |cell| if let Cell::Bool(v) = cell { Some(v) } else { None });
lane!(u32, symbols, Bound::Codes(slice, _) => slice, |cell| if let Cell::Str(v) = cell { Some(v) } else { None });

/// The same for what columns hold in another form, so that it is always loaded.
macro_rules! loaded_lane {
    ($type:ty, $registers:ident, $cell:ident, $bound:pat) => {
        impl Lane for $type {
            fn of(cell: Cell) -> Option<$type> {
                if let Cell::$cell(it) = cell { Some(it) } else { None }
            }

            fn register(scratch: &mut Scratch, at: u32) -> &mut Register<$type> {
                &mut scratch.$registers[at as usize]
            }

            fn source<'c>(chunk: &'c Chunk<'_>, operand: Operand) -> Source<'c, $type> {
                match operand {
                    Operand::Register(at) => chunk.scratch.$registers[at as usize].source(),
                    Operand::Column(slot) => match chunk.frame.columns[slot as usize] {
                        $bound => chunk.scratch.loaded[slot as usize].$registers.source(),
                        _ => Source::null(),
                    },
                    Operand::Uniform(ix) => match Self::of(chunk.frame.uniforms[ix as usize]) {
                        Some(value) => Source { values: Values::All(value), valid: Valid::All },
                        None => Source::null(),
                    },
                }
            }
        }
    };
}

loaded_lane!(ListRef, lists, List, Bound::Lists(..));
loaded_lane!(VectorRef, vectors, Vector, Bound::Vectors(..));

impl<'a> Chunk<'a> {
    pub(super) fn new(
        frame: &'a Frame<'a>,
        made: &'a [Made],
        rows: Rows<'a>,
        stop: Stop<'a>,
        scratch: &'a mut Scratch,
    ) -> Chunk<'a> {
        Chunk { frame, made, rows, n: rows.len(), stop, scratch, appending: false }
    }

    /// Runs every step. True when an int operation overflowed on some row, whether that row counts or not.
    pub(super) fn run(&mut self) -> bool {
        self.run_steps(&self.frame.program.steps)
    }

    /// The same for a program whose root is a register of this type; the root's values go straight to the end of `out`.
    pub(super) fn run_onto<T: Lane>(&mut self, out: &mut Vec<T>) -> bool {
        let Some((last, steps)) = self.frame.program.steps.split_last() else { return false };
        let overflowed = self.run_steps(steps);
        swap(&mut T::register(self.scratch, last.register).values, out);
        self.appending = true;
        let last_overflowed = self.step(last);
        self.appending = false;
        swap(&mut T::register(self.scratch, last.register).values, out);
        overflowed | last_overflowed
    }

    fn run_steps(&mut self, steps: &[Placed]) -> bool {
        self.load();
        steps.iter().fold(false, |overflowed, placed| overflowed | self.step(placed))
    }

    #[inline(always)]
    fn side_by_side<'c, T: Copy + Default>(&'c self, slice: Slice<'c, T>, loaded: &'c Register<T>) -> Source<'c, T> {
        match self.rows {
            // Loaded all the same where codes had to be turned into symbols.
            Rows::Range { start, len } if loaded.values.is_empty() => Source {
                values: Values::Each(&slice.values[start..start + len]),
                valid: slice.valid.map_or(Valid::All, |valid| Valid::Each(&valid[start..start + len])),
            },
            _ => loaded.source(),
        }
    }

    /// Brings the cells of scattered rows side by side, and codes into the symbols of this evaluation.
    #[inline(always)]
    fn load(&mut self) {
        let scattered = matches!(self.rows, Rows::Listed(_));
        for (bound, loaded) in self.frame.columns.iter().zip(&mut self.scratch.loaded) {
            match bound.so_far(self.made) {
                Bound::Ints(slice) => load(&slice, scattered, self.rows, &mut loaded.ints),
                Bound::Floats(slice) => load(&slice, scattered, self.rows, &mut loaded.floats),
                Bound::Bools(slice) => load(&slice, scattered, self.rows, &mut loaded.bools),
                Bound::Codes(slice, base) => {
                    load(&slice, scattered || base > 0, self.rows, &mut loaded.symbols);
                    // The code of a null cell may be any number.
                    loaded.symbols.values.iter_mut().for_each(|symbol| *symbol = symbol.wrapping_add(base));
                }
                Bound::Lists(slice, pool) => {
                    load_as(&slice, self.rows, &mut loaded.lists, |span| ListRef::new(pool, span));
                }
                Bound::Vectors(slice, pool) => {
                    load_as(&slice, self.rows, &mut loaded.vectors, |at| VectorRef::new(pool, at));
                }
                Bound::Missing | Bound::Made(_) => {}
            }
        }
    }

    /// The truth of a predicate operand.
    #[inline(always)]
    pub(super) fn mask(&self, operand: Operand) -> Values<'_, bool> {
        match operand {
            Operand::Register(at) => Values::Each(&self.scratch.masks[at as usize]),
            Operand::Column(_) => Values::All(false),
            Operand::Uniform(ix) => Values::All(self.frame.uniforms[ix as usize] == Cell::Bool(true)),
        }
    }

    #[inline(always)]
    fn step(&mut self, placed: &Placed) -> bool {
        let (at, n) = (placed.register, self.n);
        match &placed.step {
            Step::Widen(x) => self.write(at, |chunk, out: &mut Register<f64>| {
                let x = i64::source(chunk, *x);
                vector::map(x.values, n, &mut out.values, |x| x as f64);
                vector::both(x.valid, Valid::All, n, out);
                false
            }),
            Step::IntUnary(op, x) => self.write(at, |chunk, out: &mut Register<i64>| {
                let x = i64::source(chunk, *x);
                vector::both(x.valid, Valid::All, n, out);
                op.with_ints(MapChecked { x: x.values, n, out: &mut out.values })
            }),
            Step::IntBinary(op, a, b) => self.write(at, |chunk, out: &mut Register<i64>| {
                let (a, b) = (i64::source(chunk, *a), i64::source(chunk, *b));
                vector::both(a.valid, b.valid, n, out);
                op.with_ints(ZipChecked { a: a.values, b: b.values, n, out: &mut out.values })
            }),
            Step::FloatUnary(op, x) => self.write(at, |chunk, out: &mut Register<f64>| {
                let x = f64::source(chunk, *x);
                vector::both(x.valid, Valid::All, n, out);
                let start = out.values.len();
                op.with_floats(Map { x: x.values, n, out: &mut out.values });
                if let Some(far) = op.far() {
                    vector::map_far(x.values, &mut out.values[start..], far);
                }
                false
            }),
            Step::FloatBinary(op, a, b) => self.write(at, |chunk, out: &mut Register<f64>| {
                let (a, b) = (f64::source(chunk, *a), f64::source(chunk, *b));
                vector::both(a.valid, b.valid, n, out);
                op.with_floats(Zip { a: a.values, b: b.values, n, out: &mut out.values });
                false
            }),
            Step::FloatProducts(a, b, c, d) => self.write(at, |chunk, out: &mut Register<f64>| {
                let [a, b, c] = [a, b, c].map(|&operand| f64::source(chunk, operand));
                let one = Source { values: Values::All(1.0), valid: Valid::All };
                let d = d.map_or(one, |d| f64::source(chunk, d));
                vector::all_of([a, b, c, d].map(|source| source.valid), n, out);
                let (ab, cd) = (Product::of(a.values, b.values), Product::of(c.values, d.values));
                vector::add_products(ab, cd, n, &mut out.values);
                false
            }),
            Step::FloatBlend { a, b, x, default, by } => self.write(at, |chunk, out: &mut Register<f64>| {
                let [a, x, default, by] = [a, x, default, by].map(|&operand| f64::source(chunk, operand));
                let one = Source { values: Values::All(1.0), valid: Valid::All };
                let b = b.map_or(one, |b| f64::source(chunk, b));
                let (blended, there) = Product::defaulted(x, default, by.values);
                vector::all_of([a.valid, b.valid, by.valid, there], n, out);
                vector::add_products(Product::of(a.values, b.values), blended, n, &mut out.values);
                false
            }),
            Step::Coalesce(type_of, a, b) => match type_of {
                Type::Int => self.coalesce::<i64>(at, *a, *b),
                Type::Float => self.coalesce::<f64>(at, *a, *b),
                Type::Bool => self.coalesce::<bool>(at, *a, *b),
                Type::Str => self.coalesce::<u32>(at, *a, *b),
                Type::List(_) => self.coalesce::<ListRef>(at, *a, *b),
                Type::Vector(_) => self.coalesce::<VectorRef>(at, *a, *b),
            },
            Step::If(type_of, cond, a, b) => match type_of {
                Type::Int => self.choose::<i64>(at, *cond, *a, *b),
                Type::Float => self.choose::<f64>(at, *cond, *a, *b),
                Type::Bool => self.choose::<bool>(at, *cond, *a, *b),
                Type::Str => self.choose::<u32>(at, *cond, *a, *b),
                Type::List(_) => self.choose::<ListRef>(at, *cond, *a, *b),
                Type::Vector(_) => self.choose::<VectorRef>(at, *cond, *a, *b),
            },
            Step::Call { gives, node, of } => self.call(at, *gives, *node, *of),
            Step::Test(test) => {
                self.test(at, test);
                false
            }
        }
    }

    /// The steps whose result is true or false.
    #[inline(always)]
    fn test(&mut self, at: u32, test: &Test) {
        let n = self.n;
        let mut out = take(&mut self.scratch.masks[at as usize]);
        out.clear();
        match test {
            Test::And(a, b) => vector::zip(self.mask(*a), self.mask(*b), n, &mut out, |a, b| a & b),
            Test::Or(a, b) => vector::zip(self.mask(*a), self.mask(*b), n, &mut out, |a, b| a | b),
            Test::Not(x) => vector::map(self.mask(*x), n, &mut out, |x| !x),
            Test::CompareInts(op, a, b) => {
                compare(*op, i64::source(self, *a), i64::source(self, *b), n, &mut out);
            }
            Test::CompareFloats(op, a, b) => {
                compare(*op, f64::source(self, *a), f64::source(self, *b), n, &mut out);
            }
            Test::CompareBools(op, a, b) => {
                compare(*op, bool::source(self, *a), bool::source(self, *b), n, &mut out);
            }
            Test::CompareIntFloat(op, a, b) => {
                let (a, b) = (i64::source(self, *a), f64::source(self, *b));
                vector::zip(a.values, b.values, n, &mut out, |a, b| cell::holds(*op, cell::order_int_float(a, b)));
                vector::keep_valid(&mut out, a.valid);
                vector::keep_valid(&mut out, b.valid);
            }
            Test::CompareStrings(op, a, b) => self.compare_strings(*op, *a, *b, &mut out),
            Test::CompareText { compare, x, text, memo } => match self.frame.uniforms[*text as usize] {
                Cell::Str(text) => {
                    let text = self.frame.symbols.get(text);
                    let equal = matches!(compare, Compare::Eq | Compare::Ne);
                    if equal && self.look_up(*x, *memo, 1, [text]) {
                        self.among(*x, *memo, *compare == Compare::Ne, &mut out);
                    } else {
                        self.by_symbol(*x, *memo, &mut out, |x| cell::holds(*compare, Some(x.cmp(text))));
                    }
                }
                _ => vector::map(Values::All(false), n, &mut out, |x| x),
            },
            Test::InInts(x, set) => {
                let x = i64::source(self, *x);
                vector::map(x.values, n, &mut out, |x| set.contains(&x));
                vector::keep_valid(&mut out, x.valid);
            }
            Test::InFloats(x, set) => {
                let x = f64::source(self, *x);
                vector::map(x.values, n, &mut out, |x| set.contains(&float_bits(x)));
                vector::keep_valid(&mut out, x.valid);
            }
            Test::InBools(x, holds) => {
                let x = bool::source(self, *x);
                vector::map(x.values, n, &mut out, |x| holds[usize::from(x)]);
                vector::keep_valid(&mut out, x.valid);
            }
            Test::InStrings { x, set, memo } => {
                if self.look_up(*x, *memo, set.len(), set.iter().map(|text| &**text)) {
                    self.among(*x, *memo, false, &mut out);
                } else {
                    self.by_symbol(*x, *memo, &mut out, |x| set.contains(x));
                }
            }
            Test::Match { x, node, memo } => match self.frame.regex(*node) {
                // Once stopped, the rest is not matched; the evaluation checks the flag before it uses the result.
                Some(regex) => {
                    let stop = self.stop;
                    self.by_symbol(*x, *memo, &mut out, |x| !stop.is_flagged() && regex.is_match(x));
                }
                None => vector::map(Values::All(false), n, &mut out, |x| x),
            },
            Test::Texts { node, a, b, memo } => self.test_texts(*node, *a, *b, *memo, &mut out),
            Test::Member { list, element, x, of } => self.test_member(*list, *x, *of, *element, &mut out),
            Test::IsNull(type_of, x, negated) => {
                let valid = match type_of {
                    Type::Int => i64::source(self, *x).valid,
                    Type::Float => f64::source(self, *x).valid,
                    Type::Bool => bool::source(self, *x).valid,
                    Type::Str => u32::source(self, *x).valid,
                    Type::List(_) => ListRef::source(self, *x).valid,
                    Type::Vector(_) => VectorRef::source(self, *x).valid,
                };
                vector::map(valid.as_values(), n, &mut out, |valid| valid == *negated);
            }
        }
        self.scratch.masks[at as usize] = out;
    }

    /// Takes a register out, has it written, and puts it back. Operands are never the register written.
    #[inline(always)]
    pub(super) fn write<T: Lane>(&mut self, at: u32, fill: impl FnOnce(&Self, &mut Register<T>) -> bool) -> bool {
        let mut out = take(T::register(self.scratch, at));
        if !self.appending {
            out.values.clear();
        }
        let overflowed = fill(self, &mut out);
        *T::register(self.scratch, at) = out;
        overflowed
    }

    #[inline(always)]
    fn coalesce<T: Lane>(&mut self, at: u32, a: Operand, b: Operand) -> bool {
        self.write(at, |chunk, out| {
            vector::coalesce(T::source(chunk, a), T::source(chunk, b), chunk.n, out);
            false
        })
    }

    #[inline(always)]
    fn choose<T: Lane>(&mut self, at: u32, cond: Operand, a: Operand, b: Operand) -> bool {
        self.write(at, |chunk, out| {
            vector::choose(chunk.mask(cond), T::source(chunk, a), T::source(chunk, b), chunk.n, out);
            false
        })
    }

    /// Looks the symbols of some texts up, once an evaluation. False where testing each distinct string takes less: the operand
    /// is no column of the batch, its dictionary is large for the rows that are looked at, or the texts are many.
    fn look_up<'t>(&mut self, x: Operand, memo: u32, count: usize, texts: impl IntoIterator<Item = &'t str>) -> bool {
        let Operand::Column(slot) = x else { return false };
        let Bound::Codes(_, base) = self.frame.columns[slot as usize] else { return false };
        let Some(dictionary) = self.frame.symbols.dictionary(base) else { return false };
        if count > LOOKED_UP_MAX || dictionary.len() > self.frame.rows.max(CHUNK) {
            return false;
        }
        let wanted = &mut self.scratch.wanted[(self.frame.first_memo.tests + memo) as usize];
        if !wanted.looked_up {
            wanted.looked_up = true;
            let codes = texts.into_iter().filter_map(|text| dictionary.find(text));
            wanted.symbols.extend(codes.map(|code| base + code));
        }
        true
    }

    /// Whether a string is one of those that were looked up, or with `negated` whether it is none.
    fn among(&self, x: Operand, memo: u32, negated: bool, out: &mut Vec<bool>) {
        let wanted = &self.scratch.wanted[(self.frame.first_memo.tests + memo) as usize].symbols[..];
        let (x, n) = (u32::source(self, x), self.n);
        match *wanted {
            [] => vector::map(x.values, n, out, |_| negated),
            [a] => vector::map(x.values, n, out, |x| (x == a) != negated),
            [a, b] => vector::map(x.values, n, out, |x| ((x == a) | (x == b)) != negated),
            _ => vector::map(x.values, n, out, |x| wanted.iter().fold(false, |any, &a| any | (x == a)) != negated),
        }
        vector::keep_valid(out, x.valid);
    }

    /// A test of strings, made once per distinct string of the evaluation.
    #[inline(always)]
    pub(super) fn by_symbol(&mut self, x: Operand, memo: u32, out: &mut Vec<bool>, test: impl Fn(&str) -> bool) {
        let memo = (self.frame.first_memo.tests + memo) as usize;
        let mut known = take(&mut self.scratch.memos[memo]);
        let x = u32::source(self, x);
        let valid = x.valid.as_values();
        vector::zip(x.values, valid, self.n, out, |_, valid| valid);
        if let Values::Each(symbols) = x.values {
            for (holds, &symbol) in out.iter_mut().zip(symbols).filter(|(valid, _)| **valid) {
                // A text that the evaluation made since it began.
                if symbol as usize >= known.len() {
                    known.resize(symbol as usize + 1, Known::Nothing);
                }
                let slot = &mut known[symbol as usize];
                *holds = match *slot {
                    Known::Holds(holds) => holds,
                    Known::Nothing => {
                        let holds = test(self.frame.symbols.get(symbol));
                        *slot = Known::Holds(holds);
                        holds
                    }
                };
            }
        }
        self.scratch.memos[memo] = known;
    }

    #[inline(always)]
    fn compare_strings(&self, op: Compare, a: Operand, b: Operand, out: &mut Vec<bool>) {
        let (a, b) = (u32::source(self, a), u32::source(self, b));
        vector::valid_mask(a.valid, self.n, out);
        vector::keep_valid(out, b.valid);
        let (Values::Each(xs), Values::Each(ys)) = (a.values, b.values) else {
            // A missing column: its rows are null and the mask is already all false.
            return;
        };
        let symbols = &self.frame.symbols;
        for ((holds, &x), &y) in out.iter_mut().zip(xs).zip(ys).filter(|((valid, _), _)| **valid) {
            *holds = cell::holds(
                op,
                Some(if x == y { std::cmp::Ordering::Equal } else { symbols.get(x).cmp(symbols.get(y)) }),
            );
        }
    }
}

#[inline(always)]
fn load<T: Copy + Default>(slice: &Slice<'_, T>, needed: bool, rows: Rows<'_>, out: &mut Register<T>) {
    out.values.clear();
    out.valid.clear();
    if !needed {
        return;
    }
    gather(slice.values, rows, &mut out.values);
    out.nulls = slice.valid.is_some();
    if let Some(valid) = slice.valid {
        gather(valid, rows, &mut out.valid);
    }
}

/// The same for cells that registers hold in another form.
fn load_as<A: Copy, T: Copy>(slice: &Slice<'_, A>, rows: Rows<'_>, out: &mut Register<T>, make: impl Fn(A) -> T) {
    out.values.clear();
    out.valid.clear();
    match rows {
        Rows::Range { start, len } => {
            out.values.extend(slice.values[start..start + len].iter().map(|cell| make(*cell)))
        }
        Rows::Listed(rows) => out.values.extend(rows.iter().map(|row| make(slice.values[*row as usize]))),
    }
    out.nulls = slice.valid.is_some();
    if let Some(valid) = slice.valid {
        gather(valid, rows, &mut out.valid);
    }
}

/// Appends the function of one float for each row: one loop for each function.
struct Map<'a> {
    x: Values<'a, f64>,
    n: usize,
    out: &'a mut Vec<f64>,
}

impl WithUnary<f64, f64> for Map<'_> {
    type Output = ();

    #[inline(always)]
    fn with(self, f: impl Fn(f64) -> f64) {
        vector::map(self.x, self.n, self.out, f);
    }

    #[inline(always)]
    fn with_long(self, f: impl Fn(f64) -> f64) {
        vector::map_long(self.x, self.n, self.out, f);
    }
}

struct Zip<'a> {
    a: Values<'a, f64>,
    b: Values<'a, f64>,
    n: usize,
    out: &'a mut Vec<f64>,
}

impl WithBinary<f64, f64> for Zip<'_> {
    type Output = ();

    #[inline(always)]
    fn with(self, f: impl Fn(f64, f64) -> f64) {
        vector::zip(self.a, self.b, self.n, self.out, f);
    }

    #[inline(always)]
    fn with_long(self, f: impl Fn(f64, f64) -> f64) {
        vector::zip_long(self.a, self.b, self.n, self.out, f);
    }
}

/// The same for ints; true when one overflowed.
struct MapChecked<'a> {
    x: Values<'a, i64>,
    n: usize,
    out: &'a mut Vec<i64>,
}

impl WithUnary<i64, (i64, bool)> for MapChecked<'_> {
    type Output = bool;

    #[inline(always)]
    fn with(self, f: impl Fn(i64) -> (i64, bool)) -> bool {
        // With a first operand that is not used, one checked loop serves functions of one and of two operands.
        vector::zip_checked(Values::All(0), self.x, self.n, self.out, |_, x| f(x))
    }
}

struct ZipChecked<'a> {
    a: Values<'a, i64>,
    b: Values<'a, i64>,
    n: usize,
    out: &'a mut Vec<i64>,
}

impl WithBinary<i64, (i64, bool)> for ZipChecked<'_> {
    type Output = bool;

    #[inline(always)]
    fn with(self, f: impl Fn(i64, i64) -> (i64, bool)) -> bool {
        vector::zip_checked(self.a, self.b, self.n, self.out, f)
    }
}

#[inline(always)]
fn compare<T: Copy + PartialOrd>(op: Compare, a: Source<'_, T>, b: Source<'_, T>, n: usize, out: &mut Vec<bool>) {
    match op {
        Compare::Eq => vector::zip(a.values, b.values, n, out, |a, b| a == b),
        Compare::Ne => vector::zip(a.values, b.values, n, out, |a, b| a != b),
        Compare::Lt => vector::zip(a.values, b.values, n, out, |a, b| a < b),
        Compare::Le => vector::zip(a.values, b.values, n, out, |a, b| a <= b),
        Compare::Gt => vector::zip(a.values, b.values, n, out, |a, b| a > b),
        Compare::Ge => vector::zip(a.values, b.values, n, out, |a, b| a >= b),
    }
    vector::keep_valid(out, a.valid);
    vector::keep_valid(out, b.valid);
}
