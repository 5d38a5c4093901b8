//! Strict JSON: a pull reader for what others write, a writer for what we print.
//!
//! Ours because a plan's problems must all be reported at once, each with its place; because a field given twice, a lone surrogate
//! or a number that does not fit is refused, not repaired; and because nothing may recurse or grow with hostile input.

mod array;
mod locate;
mod plain;
mod put;
mod read;
mod write;

pub use array::{Misfit, read_array};
pub use locate::{line_column, locate, segment};
pub use plain::is_plain;
pub use put::{NUMBER_ROOM, put, put_float, put_int, put_single};
pub use read::{Fault, FieldName, Fields, Items, Kind, Number, Reader};
pub use write::{Writer, push_float, push_int, push_single, push_string};
