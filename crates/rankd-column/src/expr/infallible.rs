//! Which programs cannot fail on any row: those may be skipped for rows whose result is not needed.

use crate::expr::compile::Program;
use crate::expr::operation::{Finite, Overflow};
use crate::expr::tree::Op;
use crate::expr::types::Kind;
use crate::value::{Type, Value};

impl Program {
    /// Whether an evaluation cannot fail on any row: no operation on ints can overflow, none makes texts, and what is written is finite, because the
    /// values of columns are and every operation above them keeps them so. Both are true only of operations whose row of the table
    /// says so. An operation that is fallible in general but not here counts as fallible.
    pub fn is_infallible(&self) -> bool {
        if self.required.is_some() {
            return false;
        }
        let mut finite: Vec<bool> = Vec::with_capacity(self.kinds.len());
        for (node, kind) in self.tree.nodes().iter().zip(&self.kinds) {
            let operation = node.op.operation();
            if operation.overflow != Overflow::Never && matches!(kind, Kind::Value(Type::Int | Type::Str)) {
                return false;
            }
            finite.push(match &node.op {
                Op::Const(Value::Float(v)) => v.is_finite(),
                Op::Const(_) | Op::Key(_) => true,
                // A request may bring any float.
                Op::Param(_) => !matches!(kind, Kind::Value(Type::Float)),
                // A predicate is true or false whatever it looks at.
                op if op.is_predicate() => true,
                op => operation.finite == Finite::Kept && op.children().all(|child| finite[child as usize]),
            });
        }
        finite.last().is_none_or(|finite| *finite)
    }
}
