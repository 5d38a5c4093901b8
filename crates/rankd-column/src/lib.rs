//! Values: typed columns, the row sets made of them, and the expressions computed over them.
//!
//! This crate makes sense with no plan: it knows no JSON, no registry, no task and nothing that waits.
//! Reading order: [`value`], [`dictionary`], [`flat`], [`mod@column`], [`id`], [`id_texts`], [`batch`], [`rowset`], [`index`], [`stop`], then
//! [`math`] (functions of numbers that are the same everywhere), [`kernel`] (the loops over rows), [`expr`] (tree → types → program →
//! evaluation) and [`model`] (trained trees).

pub mod batch;
pub mod column;
pub mod dictionary;
pub mod expr;
pub mod flat;
pub mod id;
pub mod id_texts;
pub mod index;
pub mod kernel;
pub mod math;
pub mod model;
pub mod rowset;
pub mod stop;
pub mod value;

pub use batch::{Batch, Key};
pub use column::{Cells, Column};
pub use dictionary::{Dictionary, DictionaryBuilder};
pub use flat::{Elements, Span, Vectors};
pub use id::{Id, IdFault};
pub use id_texts::{IdDictionary, IdTexts};
pub use rowset::RowSet;
pub use stop::{Stop, Stopped};
pub use value::{Element, List, Type, Value};
