//! What a node reads of a table by name: the columns must be there, as far as somebody has looked, and of the right type.
//!
//! What a `scan` gives is the flow's business, because later nodes read it.

use crate::check::Draft;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::plan::{Arg, AskedVector, NodeIx};
use crate::registry::{EndpointSettings, Registry};
use crate::signature::Signature;
use rankd_column::Key;
use std::sync::Arc;

pub(super) fn check(at: NodeIx, draft: &Draft, registry: &Registry, found: &mut Diagnostics) {
    let Some(table) = table_of(draft, registry) else { return };
    let Some(signature) = draft.signature else { return };
    for (param, arg) in signature.contract.params.iter().zip(&draft.args) {
        let pointer = format!("/nodes/{at}/params/{}", param.name);
        match arg {
            Some(Arg::KeyMap(fields)) => {
                for (name, into) in fields {
                    let from = registry.keys.named(name).map(Key).filter(|key| table.has(*key));
                    let Some(from) = from else {
                        found.push(table.lacks(name, pointer.clone(), registry));
                        continue;
                    };
                    let (from, into) = (registry.key(from), registry.key(*into));
                    if from.type_of != into.type_of {
                        let message = format!(
                            "{:?} is {}, but {:?} of the table is {}",
                            into.name, into.type_of, from.name, from.type_of
                        );
                        found.push(Diagnostic::new(Code::WrongParamType, pointer.clone(), message));
                    }
                }
            }
            Some(Arg::TableKey(_) | Arg::TablePred(_)) => {
                let keys = arg.iter().flat_map(Arg::right_keys).filter(|key| !table.has(*key));
                keys.for_each(|key| found.push(table.lacks(&registry.key(key).name, pointer.clone(), registry)));
            }
            Some(Arg::AskedVector(asked)) => check_vector(at, draft, *asked, registry, pointer, found),
            Some(Arg::On(_)) if draft.inputs.is_empty() => {
                let message = format!("{} matches rows of the table with rows, and has no input", signature.op);
                found.push(Diagnostic::new(Code::WrongInputs, format!("/nodes/{at}/inputs"), message));
            }
            Some(Arg::On(pair)) if !table.has(pair.right) => {
                found.push(table.lacks(&registry.key(pair.right).name, pointer, registry));
            }
            // The key of a row that is matched with the table's ids.
            Some(Arg::Key(key)) if signature.contract.reads_from(param) => {
                let (key, id) = (registry.key(*key), registry.key(Key::ID));
                if key.type_of != id.type_of {
                    let message =
                        format!("{:?} is {}, but \"id\" is {}: nothing would match", key.name, key.type_of, id.type_of);
                    found.push(Diagnostic::new(Code::WrongParamType, pointer, message));
                }
            }
            _ => {}
        }
    }
}

/// A vector is compared with those of a key of the table, which have as many numbers; and it goes with the node's input, or with none.
fn check_vector(
    at: NodeIx,
    draft: &Draft,
    asked: AskedVector,
    registry: &Registry,
    pointer: String,
    found: &mut Diagnostics,
) {
    let Some(Signature { op, .. }) = draft.signature else { return };
    let (entry, wrong_inputs) = match (asked, draft.inputs.is_empty()) {
        (AskedVector::Key(key), is_source) => {
            let message = format!("{op} searches for the vector of each row, and has no input");
            (registry.key(key), is_source.then_some(message))
        }
        (AskedVector::Param(param), is_source) => {
            let message = format!("{op} searches for a parameter, which is the same for all rows, and takes no input");
            (registry.params.get(param), (!is_source).then_some(message))
        }
    };
    if let Some(message) = wrong_inputs {
        found.push(Diagnostic::new(Code::WrongInputs, format!("/nodes/{at}/inputs"), message));
    }
    let of_table =
        draft.args.iter().flatten().find_map(|arg| if let Arg::TableKey(key) = arg { Some(key) } else { None });
    if let Some(of_table) = of_table.map(|key| registry.key(*key))
        && of_table.type_of != entry.type_of
    {
        let message = format!(
            "{:?} is {}, but {:?} of the table is {}",
            entry.name, entry.type_of, of_table.name, of_table.type_of
        );
        found.push(Diagnostic::new(Code::WrongDimension, pointer, message));
    }
}

/// The columns of the table that a node names, if it names one.
pub(super) fn columns(draft: &Draft, registry: &Registry) -> Option<Option<Arc<[Key]>>> {
    table_of(draft, registry).map(|table| table.columns)
}

struct TableNamed<'r> {
    name: &'r str,
    /// `None` where nobody has looked.
    columns: Option<Arc<[Key]>>,
}

fn table_of<'r>(draft: &Draft, registry: &'r Registry) -> Option<TableNamed<'r>> {
    let at = draft.args.iter().flatten().find_map(Arg::endpoint)?;
    let endpoint = registry.endpoints.get(at);
    let is_table = matches!(endpoint.settings, EndpointSettings::Table(_));
    is_table.then(|| TableNamed { name: &endpoint.name, columns: registry.known_columns(at) })
}

impl TableNamed<'_> {
    fn has(&self, key: Key) -> bool {
        key == Key::ID || self.columns.as_ref().is_none_or(|columns| columns.binary_search(&key).is_ok())
    }

    fn lacks(&self, name: &str, pointer: String, registry: &Registry) -> Diagnostic {
        let message = format!("the table {:?} has no column for the key {}", self.name, quoted(name));
        let lacking = Diagnostic::new(Code::NoColumn, pointer, message);
        let known: Vec<&str> = match &self.columns {
            Some(columns) => columns.iter().map(|key| registry.key(*key).name.as_str()).collect(),
            None => registry.keys.list().iter().map(|entry| entry.name.as_str()).collect(),
        };
        lacking.nearest(name, known.into_iter())
    }
}
