//! Expressions and predicates: how a score or a condition is computed for many rows at once.
//!
//! A [`tree`] is what an author wrote. [`types`] gives every node its type or says what is wrong. [`compile`] flattens the
//! tree into a program of steps over whole columns, in the `order` that needs the fewest buffers. [`eval`] runs a program over
//! a row set, one `chunk` after another, with the loops of `vector`, into an `output`; [`pass`] runs several programs side by side;
//! [`cell`] defines each operation on one row, for what is the
//! same on all rows and for the rare rows that need care. [`pattern`] has the regular expressions, and `estimate` what one costs. Trees are flat lists, so building, cloning, checking, running and
//! dropping one never recurses.

pub mod cell;
mod chunk;
pub mod compile;
mod estimate;
pub mod eval;
mod frame;
mod infallible;
pub mod operation;
pub mod operations;
mod order;
mod output;
pub mod pass;
pub mod pattern;
mod products;
mod step;
pub mod tree;
pub mod types;
mod vector;

pub use compile::{Program, Want};
pub use eval::{EvalError, Fault, Scratch, Stop, compute, select};
pub use operation::{Form, Operation};
pub use operations::{Binary, IntBinary, IntUnary, OPERATIONS, Special, Unary};
pub use tree::{Compare, Ix, Node, Op, Pattern, Tree};
pub use types::{Schema, TypeError, TypeFault};
