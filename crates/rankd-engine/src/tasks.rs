//! The tasks of a program, as a value that its `main` puts together and hands down. No room below it knows a list of tasks.

use crate::task::Definition;
use rankd_plan::signatures::{DuplicateOp, Signatures};
use std::sync::Arc;

/// Every task by its op: what it declares and how it is made. Cheap to clone.
#[derive(Clone)]
pub struct Tasks {
    /// In the order of the signatures.
    definitions: Arc<[Definition]>,
    signatures: Signatures,
}

impl Tasks {
    /// The definitions in any order; each op must be there once.
    pub fn new(definitions: impl IntoIterator<Item = Definition>) -> Result<Tasks, DuplicateOp> {
        let mut definitions: Vec<Definition> = definitions.into_iter().collect();
        definitions.sort_by_key(|definition| definition.signature.op);
        let signatures = Signatures::new(definitions.iter().map(|definition| definition.signature))?;
        Ok(Tasks { definitions: definitions.into(), signatures })
    }

    /// What the tasks declare.
    pub fn signatures(&self) -> &Signatures {
        &self.signatures
    }

    /// All of them, by op.
    pub fn iter(&self) -> impl Iterator<Item = &Definition> {
        self.definitions.iter()
    }

    /// The task of an op.
    pub fn get(&self, op: &str) -> Option<&Definition> {
        self.signatures.position(op).map(|at| &self.definitions[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Maker;
    use rankd_plan::signature::{Contract, Cost, Inputs, RowEffect, Signature, Writes};

    static CONTRACT: Contract = Contract {
        inputs: Inputs::None,
        rows: RowEffect::Source,
        reads: &[],
        writes: Writes::Nothing,
        params: &[],
        cost: Cost::Trivial,
    };

    #[test]
    fn an_op_is_found_by_its_name_and_must_be_there_once() {
        let named = |op| Definition {
            signature: Signature { op, summary: "", contract: &CONTRACT },
            maker: Maker::Compute(|_| unreachable!("no task is made here")),
        };
        let tasks = Tasks::new([named("b"), named("a")]).unwrap();
        assert_eq!(tasks.signatures().iter().map(|task| task.op).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(tasks.get("b").map(|task| task.signature.op), Some("b"));
        assert!(tasks.get("c").is_none());
        assert_eq!(Tasks::new([named("b"), named("a"), named("b")]).err(), Some(DuplicateOp("b")));
    }
}
