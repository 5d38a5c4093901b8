//! What a node writes of a model's numbers: a key for each.
//!
//! That rows can have the keys which its features are is the flow's business, as with all keys that are read.

use crate::check::Draft;
use crate::check::keys::Keys;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::plan::{Arg, NodeIx};
use crate::registry::{ModelEntry, Registry};
use rankd_column::model::ModelOutput;

pub(super) fn check(at: NodeIx, draft: &Draft, registry: &Registry, found: &mut Diagnostics) {
    let Some(signature) = draft.signature else { return };
    let Some(model) = draft.args.iter().flatten().find_map(Arg::model) else { return };
    check_trees_only(at, draft, registry.models.get(model.model), found);
    // A key that is wrong was reported, and then their number means nothing.
    let Some(known) = registry.known_model(model.model).filter(|_| draft.args.iter().all(Option::is_some)) else {
        return;
    };
    let is_raw = draft.args.iter().flatten().any(|arg| matches!(arg, Arg::Text(word) if &**word == "raw"));
    let output = if is_raw { ModelOutput::Raw } else { ModelOutput::Response };
    let written = signature.contract.params.iter().zip(draft.args.iter().flatten());
    let (mut param, mut keys) = ("", 0);
    for (of, arg) in written.filter(|(of, arg)| signature.contract.writes_to(of) && !matches!(arg, Arg::Absent)) {
        param = of.name;
        keys += arg.keys().len();
    }
    let outputs = known.model().outputs(output);
    if keys > 0 && keys != outputs {
        let name = quoted(&registry.models.get(model.model).name);
        let message = format!("the model {name} gives a row {}, not {keys}", counted(outputs));
        let help = match outputs {
            1 => "write it to out_key".to_owned(),
            outputs => format!("write them to out_keys, {outputs} keys in the order of the classes"),
        };
        found.push(Diagnostic::new(Code::WrongOutputs, format!("/nodes/{at}/params/{param}"), message).help(help));
    }
}

/// Boosting rounds and raw sums are of trees.
fn check_trees_only(at: NodeIx, draft: &Draft, model: &ModelEntry, found: &mut Diagnostics) {
    let Some(signature) = draft.signature.filter(|_| !model.format.is_trees()) else { return };
    for (param, arg) in signature.contract.params.iter().zip(&draft.args) {
        let has_none = match (param.name, arg) {
            ("iterations", Some(arg)) if !matches!(arg, Arg::Absent) => "boosting rounds",
            ("output", Some(Arg::Text(word))) if &**word == "raw" => "raw scores",
            (_, Some(_) | None) => continue,
        };
        let message = format!("the model {} is an ONNX model, which has no {has_none}", quoted(&model.name));
        let help = format!("remove {}", param.name);
        found.push(Diagnostic::new(Code::NoTrees, format!("/nodes/{at}/params/{}", param.name), message).help(help));
    }
}

/// Takes note, for each model, of the keys that the rows which it scores can have. `after` has those that there can be after each node.
pub(super) fn note_present(drafts: &mut [Draft], after: &[Keys], registry: &Registry) {
    for draft in drafts {
        let Some(input) = draft.inputs.first().copied().flatten() else { continue };
        let Some(present) = after.get(input as usize) else { continue };
        for arg in draft.args.iter_mut().flatten() {
            if let Arg::Model(model) = arg {
                model.present = present.list(registry).collect();
            }
        }
    }
}

fn counted(numbers: usize) -> String {
    if numbers == 1 { "1 number".to_owned() } else { format!("{numbers} numbers") }
}
