//! Loops over one chunk of rows: operands in, a register out.
//!
//! Plain safe loops over slices, shaped so that the compiler vectorises them, each run under [`wide`] by itself: asking
//! the processor costs a nanosecond a loop, and only the loops are compiled for several widths, not what picks among them.
//! Values are appended, validity is replaced. Values of null cells are computed like all others and mean nothing.

use crate::kernel::wide::wide;
use crate::math::NEAR_MAX;

/// The values of an operand: one a row, or one for all.
#[derive(Clone, Copy)]
pub(super) enum Values<'a, T> {
    Each(&'a [T]),
    All(T),
}

/// Which rows of an operand are there.
#[derive(Clone, Copy)]
pub(super) enum Valid<'a> {
    All,
    Nothing,
    Each(&'a [bool]),
}

impl<'a> Valid<'a> {
    pub(super) fn as_values(self) -> Values<'a, bool> {
        match self {
            Valid::All => Values::All(true),
            Valid::Nothing => Values::All(false),
            Valid::Each(valid) => Values::Each(valid),
        }
    }
}

impl<T: Copy> Values<'_, T> {
    #[inline(always)]
    pub(super) fn at(&self, row: usize) -> T {
        match self {
            Values::Each(values) => values[row],
            Values::All(value) => *value,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Source<'a, T> {
    pub(super) values: Values<'a, T>,
    pub(super) valid: Valid<'a>,
}

impl<T: Default> Source<'_, T> {
    pub(super) fn null() -> Self {
        Source { values: Values::All(T::default()), valid: Valid::Nothing }
    }
}

/// A chunk of values of one type. Only as long as the chunk at hand; `nulls` says whether `valid` is in use.
#[derive(Default)]
pub(super) struct Register<T> {
    pub(super) values: Vec<T>,
    pub(super) valid: Vec<bool>,
    pub(super) nulls: bool,
}

impl<T: Copy + Default> Register<T> {
    pub(super) fn from_cells(cells: impl Iterator<Item = Option<T>>) -> Register<T> {
        let (values, valid) = cells.map(|cell| (cell.unwrap_or_default(), cell.is_some())).unzip();
        Register { values, valid, nulls: true }
    }

    pub(super) fn source(&self) -> Source<'_, T> {
        let valid = if self.nulls { Valid::Each(&self.valid) } else { Valid::All };
        Source { values: Values::Each(&self.values), valid }
    }
}

/// Appends `f(x[i])`.
#[inline(always)]
pub(super) fn map<A: Copy, T: Copy>(x: Values<'_, A>, n: usize, out: &mut Vec<T>, f: impl Fn(A) -> T) {
    match x {
        Values::Each(x) => extend(out, x[..n].iter().map(|&x| f(x))),
        Values::All(x) => out.resize(out.len() + n, f(x)),
    }
}

/// Appends what a loop over slices gives, with wide vectors.
#[inline(always)]
fn extend<T>(out: &mut Vec<T>, cells: impl ExactSizeIterator<Item = T>) {
    wide(
        #[inline(always)]
        || out.extend(cells),
    );
}

/// Appends `f(a[i], b[i])`.
#[inline(always)]
pub(super) fn zip<A: Copy, B: Copy, T: Copy>(
    a: Values<'_, A>,
    b: Values<'_, B>,
    n: usize,
    out: &mut Vec<T>,
    f: impl Fn(A, B) -> T,
) {
    match (a, b) {
        (Values::Each(a), Values::Each(b)) => extend(out, a[..n].iter().zip(&b[..n]).map(|(&a, &b)| f(a, b))),
        (Values::Each(a), Values::All(b)) => extend(out, a[..n].iter().map(|&a| f(a, b))),
        (Values::All(a), Values::Each(b)) => extend(out, b[..n].iter().map(|&b| f(a, b))),
        (Values::All(a), Values::All(b)) => out.resize(out.len() + n, f(a, b)),
    }
}

/// `map` for a function of many steps. What an iterator calls is inlined only if it is short: a function that is not would stay at
/// the baseline width. So the room comes first, and a plain loop writes to it.
#[inline(always)]
pub(super) fn map_long(x: Values<'_, f64>, n: usize, out: &mut Vec<f64>, f: impl Fn(f64) -> f64) {
    match x {
        Values::Each(x) => {
            let (x, out) = (&x[..n], room(out, n));
            wide(
                #[inline(always)]
                || {
                    for row in 0..x.len().min(out.len()) {
                        out[row] = f(x[row]);
                    }
                },
            );
        }
        Values::All(x) => out.resize(out.len() + n, f(x)),
    }
}

/// `zip` for a function of many steps.
#[inline(always)]
pub(super) fn zip_long(
    a: Values<'_, f64>,
    b: Values<'_, f64>,
    n: usize,
    out: &mut Vec<f64>,
    f: impl Fn(f64, f64) -> f64,
) {
    match (a, b) {
        (Values::Each(a), Values::Each(b)) => {
            let (a, b, out) = (&a[..n], &b[..n], room(out, n));
            wide(
                #[inline(always)]
                || {
                    for row in 0..a.len().min(b.len()).min(out.len()) {
                        out[row] = f(a[row], b[row]);
                    }
                },
            );
        }
        (x, Values::All(b)) => map_long(
            x,
            n,
            out,
            #[inline(always)]
            |a| f(a, b),
        ),
        (Values::All(a), x) => map_long(
            x,
            n,
            out,
            #[inline(always)]
            |b| f(a, b),
        ),
    }
}

/// As many more cells.
fn room(out: &mut Vec<f64>, n: usize) -> &mut [f64] {
    let start = out.len();
    out.resize(start + n, 0.0);
    &mut out[start..]
}

/// Replaces what stands for arguments that are greater than [`NEAR_MAX`] in size.
pub(super) fn map_far(x: Values<'_, f64>, out: &mut [f64], f: fn(f64) -> f64) {
    match x {
        Values::Each(x) => {
            for (cell, &x) in out.iter_mut().zip(x).filter(|(_, x)| x.abs() > NEAR_MAX) {
                *cell = f(x);
            }
        }
        Values::All(x) if x.abs() > NEAR_MAX => out.fill(f(x)),
        Values::All(_) => {}
    }
}

/// The product of two operands; it is the same whichever comes first.
#[derive(Clone, Copy)]
pub(super) enum Product<'a> {
    Each(&'a [f64], &'a [f64]),
    Scaled(&'a [f64], f64),
    All(f64),
    /// Scaled, with a value for the cells that are not there.
    Defaulted {
        x: &'a [f64],
        there: &'a [bool],
        default: f64,
        by: f64,
    },
}

impl<'a> Product<'a> {
    pub(super) fn of(a: Values<'a, f64>, b: Values<'a, f64>) -> Product<'a> {
        match (a, b) {
            (Values::Each(a), Values::Each(b)) => Product::Each(a, b),
            (Values::Each(x), Values::All(by)) | (Values::All(by), Values::Each(x)) => Product::Scaled(x, by),
            (Values::All(a), Values::All(b)) => Product::All(a * b),
        }
    }

    /// `coalesce(x, default) * by`, and where it is there.
    pub(super) fn defaulted(x: Source<'a, f64>, default: Source<'a, f64>, by: Values<'a, f64>) -> (Self, Valid<'a>) {
        match (x, default, by) {
            (
                Source { values: Values::Each(x), valid: Valid::Each(there) },
                Source { values: Values::All(default), valid: Valid::All },
                Values::All(by),
            ) => (Product::Defaulted { x, there, default, by }, Valid::All),
            (Source { valid: Valid::Nothing, .. }, default, by) => (Product::of(default.values, by), default.valid),
            (x, _, by) => (Product::of(x.values, by), x.valid),
        }
    }
}

/// Appends `p[i] + q[i]`; multiplied by 1.0, a number stays what it is.
#[inline(always)]
pub(super) fn add_products(p: Product<'_>, q: Product<'_>, n: usize, out: &mut Vec<f64>) {
    match (p, q) {
        (Product::Each(a, b), Product::Each(c, d)) => {
            let (ab, cd) = (a[..n].iter().zip(&b[..n]), c[..n].iter().zip(&d[..n]));
            extend(out, ab.zip(cd).map(|((a, b), (c, d))| a * b + c * d));
        }
        (Product::Each(a, b), Product::Scaled(c, d)) | (Product::Scaled(c, d), Product::Each(a, b)) => {
            extend(out, a[..n].iter().zip(&b[..n]).zip(&c[..n]).map(move |((a, b), c)| a * b + c * d));
        }
        (Product::Scaled(a, b), Product::Scaled(c, d)) => {
            extend(out, a[..n].iter().zip(&c[..n]).map(move |(a, c)| a * b + c * d));
        }
        (Product::Each(a, b), Product::All(c)) | (Product::All(c), Product::Each(a, b)) => {
            extend(out, a[..n].iter().zip(&b[..n]).map(move |(a, b)| a * b + c));
        }
        (Product::Scaled(a, b), Product::All(c)) | (Product::All(c), Product::Scaled(a, b)) => {
            extend(out, a[..n].iter().map(move |a| a * b + c));
        }
        (Product::All(a), Product::All(b)) => out.resize(out.len() + n, a + b),
        (p, Product::Defaulted { x, there, default, by }) | (Product::Defaulted { x, there, default, by }, p) => {
            let x = x[..n].iter().zip(&there[..n]).map(move |(&x, &there)| pick(there, x, default) * by);
            match p {
                Product::Each(a, b) => {
                    extend(out, a[..n].iter().zip(&b[..n]).zip(x).map(|((a, b), x)| a * b + x));
                }
                Product::Scaled(a, b) => extend(out, a[..n].iter().zip(x).map(move |(a, x)| a * b + x)),
                Product::All(a) => extend(out, x.map(move |x| a + x)),
                // A step has one of these at most.
                Product::Defaulted { .. } => extend(out, x),
            }
        }
    }
}

/// Appends what `cell` gives for the rows that are there, in turn; the others are null, and so is a row for which it gives nothing.
#[inline(always)]
pub(super) fn fill<T: Copy + Default>(
    there: Valid<'_>,
    n: usize,
    out: &mut Register<T>,
    mut cell: impl FnMut(usize) -> Option<T>,
) {
    let there = there.as_values();
    out.valid.clear();
    for row in 0..n {
        let cell = if there.at(row) { cell(row) } else { None };
        out.values.push(cell.unwrap_or_default());
        out.valid.push(cell.is_some());
    }
    out.nulls = out.valid.contains(&false);
}

/// Like `zip`, for operations that can overflow; true when one did.
#[inline(always)]
pub(super) fn zip_checked(
    a: Values<'_, i64>,
    b: Values<'_, i64>,
    n: usize,
    out: &mut Vec<i64>,
    f: impl Fn(i64, i64) -> (i64, bool),
) -> bool {
    let overflowed = std::cell::Cell::new(false);
    zip(
        a,
        b,
        n,
        out,
        #[inline(always)]
        |a, b| {
            let (value, over) = f(a, b);
            overflowed.set(overflowed.get() | over);
            value
        },
    );
    overflowed.get()
}

/// Sets a register's validity to the rows where both operands are there.
#[inline(always)]
pub(super) fn both<T>(a: Valid<'_>, b: Valid<'_>, n: usize, out: &mut Register<T>) {
    out.nulls = true;
    out.valid.clear();
    match (a, b) {
        (Valid::All, Valid::All) => out.nulls = false,
        (Valid::Nothing, _) | (_, Valid::Nothing) => out.valid.resize(n, false),
        (Valid::Each(x), Valid::All) | (Valid::All, Valid::Each(x)) => out.valid.extend_from_slice(&x[..n]),
        (Valid::Each(a), Valid::Each(b)) => extend(&mut out.valid, a[..n].iter().zip(&b[..n]).map(|(&a, &b)| a & b)),
    }
}

/// Sets a register's validity to the rows where all operands are there.
#[inline(always)]
pub(super) fn all_of<T, const N: usize>(operands: [Valid<'_>; N], n: usize, out: &mut Register<T>) {
    out.nulls = operands.iter().any(|valid| !matches!(valid, Valid::All));
    out.valid.clear();
    if out.nulls {
        out.valid.resize(n, true);
        operands.into_iter().for_each(|valid| keep_valid(&mut out.valid, valid));
    }
}

/// Clears the mask where the operand is not there.
#[inline(always)]
pub(super) fn keep_valid(mask: &mut [bool], valid: Valid<'_>) {
    match valid {
        Valid::All => {}
        Valid::Nothing => mask.fill(false),
        Valid::Each(valid) => wide(
            #[inline(always)]
            || mask.iter_mut().zip(valid).for_each(|(mask, &valid)| *mask &= valid),
        ),
    }
}

/// The validity as a mask.
#[inline(always)]
pub(super) fn valid_mask(valid: Valid<'_>, n: usize, out: &mut Vec<bool>) {
    out.clear();
    match valid {
        Valid::All => out.resize(n, true),
        Valid::Nothing => out.resize(n, false),
        Valid::Each(valid) => out.extend_from_slice(&valid[..n]),
    }
}

/// The first operand where it is there, else the second.
#[inline(always)]
pub(super) fn coalesce<T: Copy + Default>(a: Source<'_, T>, b: Source<'_, T>, n: usize, out: &mut Register<T>) {
    match a.valid {
        Valid::All => copy(a, n, out),
        Valid::Nothing => copy(b, n, out),
        Valid::Each(there) => {
            select(Values::Each(there), a.values, b.values, n, &mut out.values);
            out.nulls = !matches!(b.valid, Valid::All);
            match b.valid {
                Valid::All => {}
                Valid::Nothing => copy_into(there, n, &mut out.valid),
                Valid::Each(valid) => {
                    out.valid.clear();
                    extend(&mut out.valid, there[..n].iter().zip(&valid[..n]).map(|(&a, &b)| a | b));
                }
            }
        }
    }
}

/// The first operand where the condition holds, else the second.
#[inline(always)]
pub(super) fn choose<T: Copy + Default>(
    cond: Values<'_, bool>,
    a: Source<'_, T>,
    b: Source<'_, T>,
    n: usize,
    out: &mut Register<T>,
) {
    select(cond, a.values, b.values, n, &mut out.values);
    out.nulls = !matches!((a.valid, b.valid), (Valid::All, Valid::All));
    if out.nulls {
        out.valid.clear();
        select(cond, a.valid.as_values(), b.valid.as_values(), n, &mut out.valid);
    }
}

#[inline(always)]
fn copy<T: Copy>(x: Source<'_, T>, n: usize, out: &mut Register<T>) {
    map(x.values, n, &mut out.values, |x| x);
    both(x.valid, Valid::All, n, out);
}

#[inline(always)]
fn copy_into(x: &[bool], n: usize, out: &mut Vec<bool>) {
    out.clear();
    out.extend_from_slice(&x[..n]);
}

#[inline(always)]
fn select<T: Copy>(cond: Values<'_, bool>, a: Values<'_, T>, b: Values<'_, T>, n: usize, out: &mut Vec<T>) {
    let cond = match cond {
        Values::Each(cond) => &cond[..n],
        Values::All(true) => return map(a, n, out, |x| x),
        Values::All(false) => return map(b, n, out, |x| x),
    };
    match (a, b) {
        (Values::Each(a), Values::Each(b)) => {
            extend(out, cond.iter().zip(&a[..n]).zip(&b[..n]).map(move |((&c, &a), &b)| pick(c, a, b)));
        }
        (Values::Each(a), Values::All(b)) => {
            extend(out, cond.iter().zip(&a[..n]).map(move |(&c, &a)| pick(c, a, b)));
        }
        (Values::All(a), Values::Each(b)) => {
            extend(out, cond.iter().zip(&b[..n]).map(move |(&c, &b)| pick(c, a, b)));
        }
        (Values::All(a), Values::All(b)) => extend(out, cond.iter().map(move |&c| pick(c, a, b))),
    }
}

/// `if c { a } else { b }` with both values at hand: a branch here would be a choice of addresses, which no vector unit has.
#[inline(always)]
fn pick<T>(c: bool, a: T, b: T) -> T {
    std::hint::select_unpredictable(c, a, b)
}
