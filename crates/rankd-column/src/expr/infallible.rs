//! Which programs no row can bring to an error: what may be skipped for rows that nobody asks for.

use crate::expr::compile::Program;
use crate::expr::tree::{Binary, Op, Unary};
use crate::expr::types::Kind;
use crate::value::{Type, Value};

impl Program {
    /// Whether no row can bring an evaluation to an error: no int operation can overflow, and what is written is finite
    /// because nothing that could make it otherwise happens to a column's values, which are. Errs on the careful side.
    pub fn is_infallible(&self) -> bool {
        if self.required.is_some() {
            return false;
        }
        let mut finite: Vec<bool> = Vec::with_capacity(self.kinds.len());
        for (node, kind) in self.tree.nodes().iter().zip(&self.kinds) {
            let overflows = match node.op {
                Op::Unary(Unary::Neg | Unary::Abs, _) => true,
                Op::Binary(op, ..) => !matches!(op, Binary::Min | Binary::Max),
                _ => false,
            };
            if overflows && *kind == Kind::Value(Type::Int) {
                return false;
            }
            finite.push(match &node.op {
                Op::Const(Value::Float(v)) => v.is_finite(),
                Op::Const(_) | Op::Key(_) => true,
                Op::Unary(Unary::Sqrt | Unary::Log | Unary::Log1p | Unary::Exp, _) => false,
                Op::Binary(op, ..) if !matches!(op, Binary::Min | Binary::Max) => false,
                // What a request brings was checked elsewhere.
                Op::Param(_) => !matches!(kind, Kind::Value(Type::Float)),
                // A predicate is true or false whatever it looks at.
                op => op.is_predicate() || op.children().all(|child| finite[child as usize]),
            });
        }
        finite.last().is_none_or(|finite| *finite)
    }
}
