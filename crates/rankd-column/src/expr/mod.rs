//! Expressions and predicates: how a score or a condition is computed for many rows at once.
//!
//! Trees and programs are flat lists, so building, cloning, checking, running and dropping one never recurses. Reading order:
//!
//! | file | what |
//! |---|---|
//! | [`operations`], [`operation`], [`call`] | the table of operations, and what a row of it says |
//! | [`tree`] | an expression as its author wrote it |
//! | [`types`] | the type of every node, or what is wrong with it |
//! | [`compile`], `step`, `schedule`, `products` | the tree flattened into steps over chunks of rows, in the order that needs the fewest buffers |
//! | [`run_values`], `symbols`, `hash` | what is the same on all rows of a run, the strings of an evaluation, the two hashes |
//! | [`eval`], `scratch`, `chunk`, `calls`, [`arrays`], `vector`, `output` | a program run over a row set, chunk by chunk |
//! | [`pass`] | several programs side by side |
//! | [`cell`], `frame`, [`row`] | one row by itself: for what is the same on all rows, for the rare rows that need care, and for whoever asks about a row |
//! | `infallible` | which programs cannot fail |
//! | [`pattern`], `estimate` | regular expressions, and what it costs to compile one |

pub mod arrays;
pub mod call;
mod calls;
pub mod cell;
mod chunk;
pub mod compile;
mod estimate;
pub mod eval;
mod frame;
pub(crate) mod hash;
mod infallible;
pub mod operation;
pub mod operations;
mod output;
pub mod pass;
pub mod pattern;
mod products;
pub mod row;
pub mod run_values;
mod schedule;
mod scratch;
mod step;
pub mod symbols;
pub mod tree;
pub mod types;
mod vector;

pub use crate::stop::Stop;
pub use compile::{Program, Want};
pub use eval::{EvalError, Fault, Scratch, compute, select};
pub use hash::salted_unit_hash;
pub use operation::{Form, Operation};
pub use operations::{Binary, Call, IntBinary, IntUnary, OPERATIONS, Special, Unary};
pub use run_values::RunValues;
pub use tree::{Compare, Ix, Node, Op, Pattern, Tree};
pub use types::{Schema, TypeError, TypeFault};
