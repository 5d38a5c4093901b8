//! Every operation on one row: the meaning that the loops over chunks must keep.
//!
//! Null in, null out, except `coalesce` and `if`. An overflow of ints, or a text that is too long, is a value of its own that is
//! passed on: it does no harm in a branch that is not taken or behind a false `and`, and where it reaches the root, the row is an error. Floats that are not
//! finite are values like any other; only writing one is an error. The functions of numbers are in the table of operations.

use crate::expr::arrays::{ListRef, VectorRef};
use crate::expr::operations::{Binary, Unary};
use crate::expr::tree::Compare;
use std::cmp::Ordering;

/// The value of one node on one row. Strings are symbols of the evaluation at hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    Null,
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(u32),
    List(ListRef),
    Vector(VectorRef),
    Bad(Bad),
}

/// Why a row has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// An int left the range of 64 bits.
    Overflow,
    /// A text is longer than texts may be.
    TooLong,
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
        match (x, op.on_ints()) {
            (Cell::Int(x), Some(op)) => int(op.int(x)),
            (Cell::Int(x), None) => Cell::Float(op.float(x as f64)),
            (Cell::Float(x), _) => Cell::Float(op.float(x)),
            (
                other @ (Cell::Null | Cell::Bool(_) | Cell::Str(_) | Cell::List(_) | Cell::Vector(_) | Cell::Bad(_)),
                _,
            ) => other,
        }
    }

    pub fn binary(op: Binary, a: Cell, b: Cell) -> Cell {
        match (a, b, op.on_ints()) {
            (bad @ Cell::Bad(_), ..) | (_, bad @ Cell::Bad(_), _) => bad,
            (Cell::Int(a), Cell::Int(b), Some(op)) => int(op.int(a, b)),
            (a, b, _) => match (a.as_float(), b.as_float()) {
                (Some(a), Some(b)) => Cell::Float(op.float(a, b)),
                (None, _) | (_, None) => Cell::Null,
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
            bad @ Cell::Bad(_) => bad,
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
            (bad @ Cell::Bad(_), _) | (_, bad @ Cell::Bad(_)) => return bad,
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
    if overflowed { Cell::Bad(Bad::Overflow) } else { Cell::Int(value) }
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
}
