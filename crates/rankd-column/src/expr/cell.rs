//! Every operation on one row: the meaning that the vector kernels must keep.
//!
//! Null in, null out, except `coalesce` and `if`. Int overflow is a value of its own that travels up to where the row is
//! decided: in the branch not taken, or behind a false `and`, it harms nobody; where it arrives at the root, the row is an
//! error. Non-finite floats flow freely; only writing one is an error.

use crate::expr::tree::{Binary, Compare, Unary};
use std::cmp::Ordering;

/// The value of one node on one row. Strings are symbols of the evaluation at hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    Null,
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(u32),
    Overflow,
}

impl Cell {
    /// The number as a float; `None` for everything else.
    pub fn as_float(self) -> Option<f64> {
        match self {
            Cell::Int(v) => Some(v as f64),
            Cell::Float(v) => Some(v),
            _ => None,
        }
    }

    pub fn unary(op: Unary, x: Cell) -> Cell {
        match x {
            Cell::Int(v) if matches!(op, Unary::Neg | Unary::Abs) => int(int_unary(op, v)),
            Cell::Int(v) => Cell::Float(float_unary(op, v as f64)),
            Cell::Float(v) => Cell::Float(float_unary(op, v)),
            other => other,
        }
    }

    pub fn binary(op: Binary, a: Cell, b: Cell) -> Cell {
        match (a, b) {
            (Cell::Overflow, _) | (_, Cell::Overflow) => Cell::Overflow,
            (Cell::Int(a), Cell::Int(b)) if keeps_ints(op) => int(int_binary(op, a, b)),
            (a, b) => match (a.as_float(), b.as_float()) {
                (Some(a), Some(b)) => Cell::Float(float_binary(op, a, b)),
                _ => Cell::Null,
            },
        }
    }

    pub fn coalesce(a: Cell, b: Cell) -> Cell {
        if a == Cell::Null { b } else { a }
    }

    /// Picks a branch. A condition is never null.
    pub fn choose(cond: Cell, then: Cell, other: Cell) -> Cell {
        match cond {
            Cell::Bool(true) => then,
            Cell::Overflow => Cell::Overflow,
            _ => other,
        }
    }

    pub fn and(a: Cell, b: Cell) -> Cell {
        if a == Cell::Bool(true) { b } else { a }
    }

    pub fn or(a: Cell, b: Cell) -> Cell {
        if a == Cell::Bool(false) { b } else { a }
    }

    /// Compares two cells; `text` orders the strings behind two symbols.
    pub fn compare(op: Compare, a: Cell, b: Cell, text: impl Fn(u32, u32) -> Ordering) -> Cell {
        let ordering = match (a, b) {
            (Cell::Overflow, _) | (_, Cell::Overflow) => return Cell::Overflow,
            (Cell::Null, _) | (_, Cell::Null) => return Cell::Bool(false),
            (Cell::Int(a), Cell::Int(b)) => Some(a.cmp(&b)),
            (Cell::Float(a), Cell::Float(b)) => a.partial_cmp(&b),
            (Cell::Int(a), Cell::Float(b)) => order_int_float(a, b),
            (Cell::Float(a), Cell::Int(b)) => order_int_float(b, a).map(Ordering::reverse),
            (Cell::Bool(a), Cell::Bool(b)) => Some(a.cmp(&b)),
            (Cell::Str(a), Cell::Str(b)) => Some(text(a, b)),
            _ => None,
        };
        Cell::Bool(holds(op, ordering))
    }
}

fn int((value, overflowed): (i64, bool)) -> Cell {
    if overflowed { Cell::Overflow } else { Cell::Int(value) }
}

/// Whether ints stay ints under this operation.
fn keeps_ints(op: Binary) -> bool {
    matches!(op, Binary::Add | Binary::Sub | Binary::Mul | Binary::Min | Binary::Max)
}

/// Whether a comparison holds for operands in this order; `None` (a NaN) is unequal to everything.
#[inline(always)]
pub(super) fn holds(op: Compare, ordering: Option<Ordering>) -> bool {
    match op {
        Compare::Eq => ordering == Some(Ordering::Equal),
        Compare::Ne => ordering != Some(Ordering::Equal),
        Compare::Lt => ordering == Some(Ordering::Less),
        Compare::Le => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        Compare::Gt => ordering == Some(Ordering::Greater),
        Compare::Ge => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// Orders an int and a float exactly, where a conversion of either would round.
#[inline(always)]
pub(super) fn order_int_float(a: i64, b: f64) -> Option<Ordering> {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if b.is_nan() {
        None
    } else if b >= TWO_TO_63 {
        Some(Ordering::Less)
    } else if b < -TWO_TO_63 {
        Some(Ordering::Greater)
    } else {
        let whole = b.trunc();
        Some(a.cmp(&(whole as i64)).then_with(|| whole.total_cmp(&b)))
    }
}

#[inline(always)]
pub(super) fn int_unary(op: Unary, x: i64) -> (i64, bool) {
    match op {
        Unary::Abs => x.overflowing_abs(),
        _ => x.overflowing_neg(),
    }
}

#[inline(always)]
pub(super) fn int_binary(op: Binary, a: i64, b: i64) -> (i64, bool) {
    match op {
        Binary::Sub => a.overflowing_sub(b),
        Binary::Mul => a.overflowing_mul(b),
        Binary::Min => (a.min(b), false),
        Binary::Max => (a.max(b), false),
        _ => a.overflowing_add(b),
    }
}

#[inline(always)]
pub(super) fn float_unary(op: Unary, x: f64) -> f64 {
    match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round(),
        Unary::Sqrt => x.sqrt(),
        Unary::Log => x.ln(),
        Unary::Log1p => x.ln_1p(),
        Unary::Exp => x.exp(),
        Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
    }
}

#[inline(always)]
pub(super) fn float_binary(op: Binary, a: f64, b: f64) -> f64 {
    match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::Mod => a % b,
        Binary::Pow => a.powf(b),
        Binary::Min => min(a, b),
        Binary::Max => max(a, b),
    }
}

/// The smaller number; NaN if either is, and -0.0 before 0.0, so that the order of operands never shows.
#[inline(always)]
fn min(a: f64, b: f64) -> f64 {
    let smaller = if (a < b) | ((a == b) & a.is_sign_negative()) { a } else { b };
    if a.is_nan() { a } else { smaller }
}

#[inline(always)]
fn max(a: f64, b: f64) -> f64 {
    let larger = if (a > b) | ((a == b) & a.is_sign_positive()) { a } else { b };
    if a.is_nan() { a } else { larger }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_int_and_a_float_are_ordered_exactly() {
        let big = (1i64 << 53) + 1;
        assert_eq!(order_int_float(big, (1i64 << 53) as f64), Some(Ordering::Greater));
        assert_eq!(order_int_float(i64::MAX, i64::MAX as f64), Some(Ordering::Less));
        assert_eq!(order_int_float(i64::MIN, i64::MIN as f64), Some(Ordering::Equal));
        assert_eq!(order_int_float(-1, -0.5), Some(Ordering::Less));
        assert_eq!(order_int_float(0, -0.5), Some(Ordering::Greater));
        assert_eq!(order_int_float(0, -0.0), Some(Ordering::Equal));
        assert_eq!(order_int_float(5, f64::INFINITY), Some(Ordering::Less));
        assert_eq!(order_int_float(5, f64::NAN), None);
    }

    #[test]
    fn min_and_max_do_not_depend_on_operand_order() {
        for (a, b) in [(0.0, -0.0), (f64::NAN, 1.0), (1.0, 2.0), (f64::NEG_INFINITY, 3.0)] {
            assert_eq!(min(a, b).to_bits(), min(b, a).to_bits(), "min {a} {b}");
            assert_eq!(max(a, b).to_bits(), max(b, a).to_bits(), "max {a} {b}");
        }
        assert!(min(-0.0, 0.0).is_sign_negative() && max(-0.0, 0.0).is_sign_positive());
    }
}
