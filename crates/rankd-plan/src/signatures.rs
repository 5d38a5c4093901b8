//! The tasks that a program has, as data: found by op, listed in the order of their ops. A value, so that a program can have tasks of its own.

use crate::signature::Signature;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// What every task declares, sorted by op, each op once. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Signatures(Arc<[Signature]>);

/// Two tasks have the same op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateOp(pub &'static str);

impl fmt::Display for DuplicateOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "two tasks have the op {:?}: rename the file of one of them", self.0)
    }
}

impl std::error::Error for DuplicateOp {}

impl Signatures {
    /// The signatures in any order.
    pub fn new(signatures: impl IntoIterator<Item = Signature>) -> Result<Signatures, DuplicateOp> {
        let mut all: Vec<Signature> = signatures.into_iter().collect();
        all.sort_by_key(|signature| signature.op);
        match all.windows(2).find(|pair| pair[0].op == pair[1].op) {
            Some(pair) => Err(DuplicateOp(pair[0].op)),
            None => Ok(Signatures(all.into())),
        }
    }

    /// The position of an op in the list.
    pub fn position(&self, op: &str) -> Option<usize> {
        self.0.binary_search_by_key(&op, |signature| signature.op).ok()
    }

    /// The signature of an op.
    pub fn get(&self, op: &str) -> Option<&Signature> {
        self.position(op).map(|at| &self.0[at])
    }
}

impl Deref for Signatures {
    type Target = [Signature];

    fn deref(&self) -> &[Signature] {
        &self.0
    }
}
