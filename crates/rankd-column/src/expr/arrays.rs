//! Lists and vectors in an evaluation: cells say where elements are, which stay where they are; and what functions make of them.
//!
//! What no cell points at is never looked at, and a reference that means nothing, as that of a null cell, leads to no elements.

use crate::expr::cell::{Bad, Cell};
use crate::expr::chunk::{Chunk, Lane};
use crate::expr::compile::{exact_float, exact_int, float_bits};
use crate::expr::frame::Frame;
use crate::expr::operation::{CallResult, Meaning};
use crate::expr::step::Operand;
use crate::expr::symbols::Symbols;
use crate::expr::vector::{self, Register, Source, Valid, Values};
use crate::flat::{Elements, Span, Vectors};
use crate::kernel::similarity::{Similarity, square};
use crate::kernel::wide::wide;
use crate::value::{Element, List, Type, Value};
use hashbrown::{HashMap, HashSet};
use std::hash::Hash;

/// A list of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ListRef {
    pool: u32,
    span: Span,
}

/// A vector of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VectorRef {
    pool: u32,
    at: u32,
}

/// The elements of a column's lists, or of one list that is the same on all rows.
enum ElementPool<'a> {
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    /// Codes, and what turns a code into a symbol.
    Codes(&'a [u32], u32),
    Symbols(Vec<u32>),
}

/// Vectors of one dimension, one after the other.
struct VectorPool<'a> {
    dimension: usize,
    values: &'a [f32],
}

/// Everything that the lists and vectors of an evaluation can lie in.
#[derive(Default)]
pub(super) struct Arrays<'a> {
    lists: Vec<ElementPool<'a>>,
    vectors: Vec<VectorPool<'a>>,
}

impl<'a> Arrays<'a> {
    /// The number of a column's elements.
    pub(super) fn add_elements(&mut self, elements: &'a Elements, symbols: &mut Symbols<'a>) -> u32 {
        self.lists.push(match elements {
            Elements::Int(values) => ElementPool::Ints(values),
            Elements::Float(values) => ElementPool::Floats(values),
            Elements::Str(codes, dictionary) => ElementPool::Codes(codes, symbols.add_dictionary(dictionary)),
        });
        self.lists.len() as u32 - 1
    }

    /// The number of a column's vectors.
    pub(super) fn add_vectors(&mut self, vectors: &'a Vectors) -> u32 {
        self.vectors.push(VectorPool { dimension: vectors.dimension().into(), values: vectors.values() });
        self.vectors.len() as u32 - 1
    }

    /// A list that is the same on all rows.
    pub(super) fn add_list(&mut self, list: &'a List, symbols: &mut Symbols<'a>) -> ListRef {
        self.lists.push(match list {
            List::Int(values) => ElementPool::Ints(values),
            List::Float(values) => ElementPool::Floats(values),
            List::Str(texts) => ElementPool::Symbols(texts.iter().map(|text| symbols.add_text(text)).collect()),
        });
        ListRef { pool: self.lists.len() as u32 - 1, span: Span { start: 0, len: list.len() as u32 } }
    }

    /// A vector that is the same on all rows.
    pub(super) fn add_vector(&mut self, vector: &'a [f32]) -> VectorRef {
        self.vectors.push(VectorPool { dimension: vector.len(), values: vector });
        VectorRef { pool: self.vectors.len() as u32 - 1, at: 0 }
    }

    fn ints(&self, list: ListRef) -> &[i64] {
        match self.lists.get(list.pool as usize) {
            Some(ElementPool::Ints(values)) => values.get(list.span.range()).unwrap_or_default(),
            _ => &[],
        }
    }

    fn floats(&self, list: ListRef) -> &[f64] {
        match self.lists.get(list.pool as usize) {
            Some(ElementPool::Floats(values)) => values.get(list.span.range()).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Codes of texts, and what turns a code into a symbol.
    fn codes(&self, list: ListRef) -> (&[u32], u32) {
        let (codes, base) = match self.lists.get(list.pool as usize) {
            Some(ElementPool::Codes(codes, base)) => (*codes, *base),
            Some(ElementPool::Symbols(symbols)) => (&symbols[..], 0),
            _ => return (&[], 0),
        };
        (codes.get(list.span.range()).unwrap_or_default(), base)
    }

    /// The dimension and the numbers of vectors that lie one after the other, as those of a whole column do.
    fn side_by_side(&self, vectors: &[VectorRef]) -> Option<(usize, &[f32])> {
        let first = *vectors.first()?;
        // Where a null cell says that it is may be anywhere. All are looked at, because a loop that can end early is not vectorised.
        let strays = wide(
            #[inline(always)]
            || {
                vectors.iter().enumerate().fold(0, |strays, (after, vector)| {
                    strays | (vector.pool ^ first.pool) | (vector.at ^ first.at.wrapping_add(after as u32))
                })
            },
        );
        if strays != 0 {
            return None;
        }
        let VectorPool { dimension, values } =
            self.vectors.get(first.pool as usize).filter(|pool| pool.dimension > 0)?;
        let start = first.at as usize * dimension;
        Some((*dimension, values.get(start..start + vectors.len() * dimension)?))
    }

    #[inline(always)]
    fn vector(&self, vector: VectorRef) -> &[f32] {
        let Some(VectorPool { dimension, values }) = self.vectors.get(vector.pool as usize) else { return &[] };
        let start = vector.at as usize * dimension;
        values.get(start..start + dimension).unwrap_or_default()
    }
}

impl ListRef {
    pub(super) fn new(pool: u32, span: Span) -> ListRef {
        ListRef { pool, span }
    }
}

impl VectorRef {
    pub(super) fn new(pool: u32, at: u32) -> VectorRef {
        VectorRef { pool, at }
    }
}

/// A scalar as an element of a list could equal it.
fn as_int(x: Cell) -> Option<i64> {
    match x {
        Cell::Int(x) => Some(x),
        Cell::Float(x) => exact_int(&Value::Float(x)),
        _ => None,
    }
}

fn as_float_bits(x: Cell) -> Option<u64> {
    let x = match x {
        Cell::Int(x) => exact_float(&Value::Int(x)),
        Cell::Float(x) => exact_float(&Value::Float(x)),
        _ => None,
    };
    x.map(float_bits)
}

/// One operation on lists or vectors, by what its row of the table says.
impl Frame<'_> {
    /// A call whose first operand is a list.
    pub(super) fn of_list(&self, meaning: Meaning, list: ListRef, b: Option<Cell>) -> Cell {
        match (meaning, b) {
            (Meaning::Size, None) => Cell::Int(i64::from(list.span.len)),
            (Meaning::Numbers { ints, floats }, None) => {
                let made = match self.arrays.lists.get(list.pool as usize) {
                    Some(ElementPool::Floats(_)) => floats(self.arrays.floats(list)),
                    _ => ints(self.arrays.ints(list)),
                };
                self.made(made)
            }
            (Meaning::At, Some(Cell::Int(at))) => self.element(list, at),
            (Meaning::Overlap, Some(Cell::List(other))) => Cell::Int(self.overlap(list, other)),
            (Meaning::Contains(_), Some(x)) => Cell::Bool(self.is_member(list, x)),
            // The checks refuse operands of other types.
            _ => Cell::Null,
        }
    }

    fn element(&self, list: ListRef, at: i64) -> Cell {
        let Ok(at) = usize::try_from(at) else { return Cell::Null };
        match self.arrays.lists.get(list.pool as usize) {
            Some(ElementPool::Ints(_)) => self.arrays.ints(list).get(at).map_or(Cell::Null, |value| Cell::Int(*value)),
            Some(ElementPool::Floats(_)) => {
                self.arrays.floats(list).get(at).map_or(Cell::Null, |value| Cell::Float(*value))
            }
            Some(ElementPool::Codes(..) | ElementPool::Symbols(_)) => {
                let (codes, base) = self.arrays.codes(list);
                codes.get(at).map_or(Cell::Null, |code| Cell::Str(base + code))
            }
            None => Cell::Null,
        }
    }

    fn is_member(&self, list: ListRef, x: Cell) -> bool {
        match self.arrays.lists.get(list.pool as usize) {
            Some(ElementPool::Ints(_)) => as_int(x).is_some_and(|x| self.arrays.ints(list).contains(&x)),
            Some(ElementPool::Floats(_)) => {
                let values = self.arrays.floats(list);
                as_float_bits(x).is_some_and(|x| values.iter().any(|value| float_bits(*value) == x))
            }
            Some(ElementPool::Codes(..) | ElementPool::Symbols(_)) => match x {
                Cell::Str(x) => self.has_text(list, self.symbols.get(x)),
                _ => false,
            },
            None => false,
        }
    }

    fn has_text(&self, list: ListRef, text: &str) -> bool {
        let (codes, base) = self.arrays.codes(list);
        codes.iter().any(|code| self.symbols.get(base + code) == text)
    }

    /// How many distinct elements of a list are in another.
    fn overlap(&self, a: ListRef, b: ListRef) -> i64 {
        match self.arrays.lists.get(a.pool as usize) {
            Some(ElementPool::Ints(_)) => common(self.arrays.ints(a), self.arrays.ints(b), |x| *x),
            Some(ElementPool::Floats(_)) => common(self.arrays.floats(a), self.arrays.floats(b), |x| float_bits(*x)),
            Some(ElementPool::Codes(..) | ElementPool::Symbols(_)) => {
                let ((a, first), (b, second)) = (self.arrays.codes(a), self.arrays.codes(b));
                let a: Vec<&str> = a.iter().map(|code| self.symbols.get(first + code)).collect();
                let b: Vec<&str> = b.iter().map(|code| self.symbols.get(second + code)).collect();
                common(&a, &b, |x| *x)
            }
            None => 0,
        }
    }

    /// A call of two vectors.
    pub(super) fn of_vectors(&self, similarity: Similarity, a: VectorRef, b: VectorRef) -> Cell {
        Cell::Float(similarity.of(self.arrays.vector(a), self.arrays.vector(b)))
    }
}

/// Up to this many pairs of elements, comparing each with each takes less than a table of them.
const PAIRS_MAX: usize = 256;

/// How many distinct keys of `a` are keys of `b`. Takes time by the sum of both lengths.
fn common<E, K: Eq + Hash>(a: &[E], b: &[E], key: impl Fn(&E) -> K) -> i64 {
    if a.len() * (a.len() + b.len()) <= PAIRS_MAX {
        let is_new = |at: usize| a[..at].iter().all(|before| key(before) != key(&a[at]));
        let counts = |at: &usize| b.iter().any(|other| key(other) == key(&a[*at])) && is_new(*at);
        return (0..a.len()).filter(counts).count() as i64;
    }
    let mut counted: HashMap<K, bool> = b.iter().map(|other| (key(other), false)).collect();
    let mut count = 0;
    for x in a {
        if let Some(seen @ false) = counted.get_mut(&key(x)) {
            *seen = true;
            count += 1;
        }
    }
    count
}

impl<'a> Chunk<'a> {
    /// A call whose first operand is a list. True when a sum of ints overflowed on some row.
    pub(super) fn call_on_lists<T: Lane>(&mut self, at: u32, meaning: Meaning, a: Operand, b: Option<Operand>) -> bool {
        let (frame, stop): (&'a Frame<'a>, _) = (self.frame, self.stop);
        self.write(at, |chunk, out: &mut Register<T>| {
            let (lists, mut overflowed) = (ListRef::source(chunk, a), false);
            let mut put = |there: Valid<'_>, b: &dyn Fn(usize) -> Option<Option<Cell>>| {
                vector::fill(there, chunk.n, out, |row| {
                    // Once stopped, the rest is not looked at; the evaluation checks the flag before it uses the result.
                    let b = if stop.is_flagged() { None } else { b(row) }?;
                    let cell = frame.of_list(meaning, lists.values.at(row), b);
                    overflowed |= cell == Cell::Bad(Bad::Overflow);
                    T::of(cell)
                });
            };
            match (meaning, b) {
                (_, None) => put(lists.valid, &|_| Some(None)),
                (Meaning::Overlap, Some(b)) => {
                    let other = ListRef::source(chunk, b);
                    let there = other.valid.as_values();
                    put(lists.valid, &|row| there.at(row).then(|| Some(Cell::List(other.values.at(row)))));
                }
                (_, Some(b)) => {
                    let index = i64::source(chunk, b);
                    let there = index.valid.as_values();
                    put(lists.valid, &|row| there.at(row).then(|| Some(Cell::Int(index.values.at(row)))));
                }
            }
            overflowed
        })
    }

    /// Whether a value is an element of a list.
    pub(super) fn test_member(&mut self, list: Operand, x: Operand, of: Type, element: Element, out: &mut Vec<bool>) {
        let (frame, lists): (&'a Frame<'a>, _) = (self.frame, ListRef::source(self, list));
        let arrays = &frame.arrays;
        match (element, of) {
            (Element::Int, Type::Int) => {
                let x = i64::source(self, x);
                let keys = |list| arrays.ints(list).iter().copied();
                self.members(lists, x.valid, |row| Some(x.values.at(row)), keys, out);
            }
            (Element::Int, _) => {
                let x = f64::source(self, x);
                let keys = |list| arrays.ints(list).iter().copied();
                self.members(lists, x.valid, |row| as_int(Cell::Float(x.values.at(row))), keys, out);
            }
            (Element::Float, Type::Int) => {
                let x = i64::source(self, x);
                let keys = |list| arrays.floats(list).iter().map(|value| float_bits(*value));
                self.members(lists, x.valid, |row| as_float_bits(Cell::Int(x.values.at(row))), keys, out);
            }
            (Element::Float, _) => {
                let x = f64::source(self, x);
                let keys = |list| arrays.floats(list).iter().map(|value| float_bits(*value));
                self.members(lists, x.valid, |row| as_float_bits(Cell::Float(x.values.at(row))), keys, out);
            }
            (Element::Str, _) => {
                let x = u32::source(self, x);
                let keys = |list| {
                    let (codes, base) = arrays.codes(list);
                    codes.iter().map(move |code| frame.symbols.get(base + code))
                };
                self.members(lists, x.valid, |row| Some(frame.symbols.get(x.values.at(row))), keys, out);
            }
        }
    }

    /// `x` is only asked for rows that are there. A list that is the same on all rows and long becomes a set.
    fn members<K: Eq + Hash, I: ExactSizeIterator<Item = K>>(
        &self,
        lists: Source<'_, ListRef>,
        there: Valid<'_>,
        x: impl Fn(usize) -> Option<K>,
        keys: impl Fn(ListRef) -> I,
        out: &mut Vec<bool>,
    ) {
        vector::valid_mask(lists.valid, self.n, out);
        vector::keep_valid(out, there);
        let set: Option<HashSet<K>> = match lists.values {
            Values::All(list) if keys(list).len() > 8 && self.n > 8 => Some(keys(list).collect()),
            Values::All(_) | Values::Each(_) => None,
        };
        for (row, holds) in out.iter_mut().enumerate().filter(|(_, there)| **there) {
            *holds = match (x(row), &set) {
                _ if self.stop.is_flagged() => false,
                (None, _) => false,
                (Some(x), Some(set)) => set.contains(&x),
                (Some(x), None) => keys(lists.values.at(row)).any(|key| key == x),
            };
        }
    }

    /// A call of two vectors: the loop over rows is compiled for each width and each function.
    pub(super) fn call_on_vectors(&mut self, at: u32, similarity: Similarity, a: Operand, b: Operand) -> bool {
        // Which comes first makes no difference to any of them, so that one that is the same on all rows can come last.
        let (a, b) = if matches!(a, Operand::Uniform(_)) { (b, a) } else { (a, b) };
        self.write(at, |chunk, out: &mut Register<f64>| {
            let (a, b, n) = (VectorRef::source(chunk, a), VectorRef::source(chunk, b), chunk.n);
            let arrays = &chunk.frame.arrays;
            vector::both(a.valid, b.valid, n, out);
            let start = out.values.len();
            out.values.resize(start + n, 0.0);
            let slots = &mut out.values[start..];
            match (a.values, b.values) {
                (Values::Each(a), Values::All(b)) => {
                    let b = arrays.vector(b);
                    let with = (b, square(b));
                    match arrays.side_by_side(&a[..n]) {
                        Some((dimension, values)) if dimension == b.len() => {
                            similarity.with_one_side_by_side(slots, values, with);
                        }
                        Some(_) | None => wide(
                            #[inline(always)]
                            || {
                                similarity.with_one(
                                    slots,
                                    #[inline(always)]
                                    |row| arrays.vector(a[row]),
                                    with,
                                );
                            },
                        ),
                    }
                }
                (a, b) => wide(
                    #[inline(always)]
                    || {
                        similarity.of_rows(
                            slots,
                            #[inline(always)]
                            |row| (arrays.vector(a.at(row)), arrays.vector(b.at(row))),
                        );
                    },
                ),
            }
            false
        })
    }
}

/// What functions of lists of numbers make of them.
pub(super) mod numbers {
    use super::CallResult;

    pub(in crate::expr) fn int_sum(values: &[i64]) -> CallResult {
        let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
        i64::try_from(sum).map_or(CallResult::Overflow, CallResult::Int)
    }

    pub(in crate::expr) fn float_sum(values: &[f64]) -> CallResult {
        CallResult::Float(values.iter().fold(0.0, |sum, value| sum + value))
    }

    pub(in crate::expr) fn int_mean(values: &[i64]) -> CallResult {
        let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
        if values.is_empty() { CallResult::Null } else { CallResult::Float(sum as f64 / values.len() as f64) }
    }

    pub(in crate::expr) fn float_mean(values: &[f64]) -> CallResult {
        match float_sum(values) {
            CallResult::Float(sum) if !values.is_empty() => CallResult::Float(sum / values.len() as f64),
            _ => CallResult::Null,
        }
    }
}
