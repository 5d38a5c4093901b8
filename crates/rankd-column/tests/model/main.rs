//! Property tests of expressions, predicates, sorting and joining against a naive model that works row by row.
//!
//! Reading order: `oracle` (what every operation means), `table` (rows as the model sees them), `generate` (random trees,
//! tables and views), then the tests: `scalars` (the functions of numbers and what their rows say of them), `expressions`, `order`,
//! `concat`, `join`, `faults`, `passes`, `strings`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what tests call fails the test, as an assertion would")]

mod concat;
mod expressions;
mod faults;
mod generate;
mod join;
mod oracle;
mod order;
mod passes;
mod scalars;
mod strings;
mod table;
