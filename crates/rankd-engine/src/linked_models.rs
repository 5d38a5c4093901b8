//! The models that a linked plan names: what it asks of each, and the versions that its runs take.

use rankd_column::Key;
use rankd_column::model::ModelOutput;
use rankd_plan::Registry;
use rankd_plan::model::{ModelVersions, Models, UsedModel};
use rankd_plan::plan::{Arg, Node, Plan};
use std::fmt;
use std::sync::Arc;

/// The models of a plan.
#[derive(Default)]
pub struct LinkedModels {
    uses: Vec<ModelUse>,
    /// Where the versions come from; nothing where the plan names no model.
    models: Option<Arc<Models>>,
}

/// A node that scores rows.
pub struct ModelUse {
    /// The model's position in the registry.
    pub model: u32,
    /// The model's name.
    pub name: String,
    node: Arc<str>,
    /// The keys that its rows can have.
    present: Vec<Key>,
    output: ModelOutput,
    /// How many keys it writes.
    keys: usize,
}

/// Why a version of a model does not fit a node.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Its rows cannot have a key that the version reads.
    NoKey { node: Arc<str>, key: String },
    /// It writes another number of keys than the version gives numbers.
    Outputs { node: Arc<str>, keys: usize, outputs: usize },
}

impl std::error::Error for Unfit {}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::NoKey { node, key } => {
                write!(f, "it reads {key:?}, which nothing before the node {node:?} can have written")
            }
            Unfit::Outputs { node, keys, outputs } => {
                write!(f, "it gives a row {outputs} numbers, and the node {node:?} writes {keys}")
            }
        }
    }
}

impl LinkedModels {
    pub(crate) fn of(plan: &Plan, registry: &Registry) -> LinkedModels {
        let uses: Vec<ModelUse> =
            plan.nodes.iter().filter(|node| node.needed).filter_map(|node| ModelUse::of(node, registry)).collect();
        let models = (!uses.is_empty()).then(|| registry.models_in_use().clone());
        LinkedModels { uses, models }
    }

    pub fn versions(&self) -> Option<Arc<ModelVersions>> {
        self.models.as_ref().map(|models| models.versions())
    }

    pub fn uses(&self) -> &[ModelUse] {
        &self.uses
    }
}

impl ModelUse {
    fn of(node: &Node, registry: &Registry) -> Option<ModelUse> {
        let model = node.args.iter().find_map(Arg::model)?;
        let is_raw = node.args.iter().any(|arg| matches!(arg, Arg::Text(word) if &**word == "raw"));
        let contract = node.signature.contract;
        let written = contract.params.iter().zip(&node.args).filter(|(param, _)| contract.writes_to(param));
        Some(ModelUse {
            model: model.model,
            name: registry.models.get(model.model).name.clone(),
            node: node.id.clone(),
            present: model.present.clone(),
            output: if is_raw { ModelOutput::Raw } else { ModelOutput::Response },
            keys: written.map(|(_, arg)| arg.keys().len()).sum(),
        })
    }

    /// Whether the node can go on with another version of its model. The registry is the one that the plan was linked with.
    pub fn fits(&self, version: &UsedModel, registry: &Registry) -> Result<(), Unfit> {
        if let Some(lost) = version.reads().into_iter().find(|key| self.present.binary_search(key).is_err()) {
            return Err(Unfit::NoKey { node: self.node.clone(), key: registry.key(lost).name.clone() });
        }
        let outputs = version.model().outputs(self.output);
        if outputs != self.keys {
            return Err(Unfit::Outputs { node: self.node.clone(), keys: self.keys, outputs });
        }
        Ok(())
    }
}
