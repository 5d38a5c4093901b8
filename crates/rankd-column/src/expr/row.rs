//! One row of an expression, looked at closely: what every part of it gives, and which parts make a predicate false.
//!
//! For questions that people ask about a row. Nothing that runs once a row uses it.

use crate::expr::cell::Cell;
use crate::expr::compile::Program;
use crate::expr::eval::EvalError;
use crate::expr::frame::Frame;
use crate::expr::run_values::RunValues;
use crate::expr::tree::{Ix, Node, Op, Tree};
use crate::rowset::RowSet;
use crate::stop::Stop;
use crate::value::Value;

/// The value of every node of a program's tree on the row at a position of the view, in the order of the tree. `None` where there is none: an
/// int left its range, a text is too long, or a list or vector was not stored but chosen.
pub fn values(
    program: &Program,
    rows: &RowSet,
    position: usize,
    run: RunValues<'_>,
) -> Result<Vec<Option<Value>>, EvalError> {
    let frame = Frame::bind(program, rows, &[], run, Stop::default())?;
    let mut cells = Vec::new();
    frame.row(rows.rows().at(position), &[], &mut cells);
    let value = |(node, cell): (&Node, &Cell)| match (*cell, &node.op) {
        (Cell::Null, _) => Some(Value::Null),
        (Cell::Int(value), _) => Some(Value::Int(value)),
        (Cell::Float(value), _) => Some(Value::Float(value)),
        (Cell::Bool(value), _) => Some(Value::Bool(value)),
        (Cell::Str(symbol), _) => Some(Value::str(frame.symbols.get(symbol))),
        (Cell::List(_) | Cell::Vector(_), Op::Key(key)) => Some(rows.value(*key, position)),
        (Cell::List(_) | Cell::Vector(_), Op::Param(param)) => run.params.get(*param as usize).cloned(),
        (Cell::List(_) | Cell::Vector(_), Op::Const(value)) => Some(value.clone()),
        (Cell::List(_) | Cell::Vector(_) | Cell::Bad(_), _) => None,
    };
    Ok(program.tree.nodes().iter().zip(&cells).map(value).collect())
}

/// The parts of a predicate that make it false on a row, given the values of all nodes there: each would, if it were the other way round, take away
/// one reason. Of `and` those that are false, of `or` all; below `not` it is the other way round.
pub fn culprits(tree: &Tree, values: &[Option<Value>]) -> Vec<Ix> {
    let Some(root) = tree.nodes().len().checked_sub(1) else { return Vec::new() };
    let holds = |ix: Ix| values.get(ix as usize) == Some(&Some(Value::Bool(true)));
    let (mut found, mut open) = (Vec::new(), vec![(root as Ix, true)]);
    let mut seen = vec![[false; 2]; tree.nodes().len()];
    while let Some((ix, wanted)) = open.pop() {
        if holds(ix) == wanted || std::mem::replace(&mut seen[ix as usize][usize::from(wanted)], true) {
            continue;
        }
        match *tree.op(ix) {
            Op::And(a, b) | Op::Or(a, b) => open.extend([(b, wanted), (a, wanted)]),
            // An operand without a value gives none to its opposite either: it is to blame itself.
            Op::Not(x) if holds(x) == wanted => open.push((x, !wanted)),
            Op::Not(_)
            | Op::Const(_)
            | Op::Key(_)
            | Op::Param(_)
            | Op::NowMs
            | Op::UserId
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Clamp { .. }
            | Op::Coalesce(..)
            | Op::If { .. }
            | Op::Call { .. }
            | Op::Truth(_)
            | Op::Compare(..)
            | Op::In(..)
            | Op::Null { .. }
            | Op::Match { .. } => found.push(ix),
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, Key};
    use crate::column::{Cells, Column};
    use crate::expr::compile::Want;
    use crate::expr::operations::Binary;
    use crate::expr::tree::Compare;
    use crate::expr::types::Schema;
    use crate::id::Id;
    use crate::value::Type;
    use std::sync::Arc;

    struct Likes;

    impl Schema for Likes {
        fn key_type(&self, _: Key) -> Type {
            Type::Int
        }

        fn param_type(&self, _: u32) -> Type {
            Type::Int
        }
    }

    #[test]
    fn every_part_has_its_value_and_the_false_ones_are_found() {
        let rows = RowSet::new(Batch::new(vec![1, 2]).with(Key(1), Arc::new(Column::Int(Cells::full(vec![3, 9])))));
        let mut tree = Tree::new();
        let likes = tree.push(Op::Key(Key(1)), None);
        let two = tree.push(Op::Const(Value::Int(2)), None);
        let twice = tree.push(Op::Binary(Binary::Mul, likes, two), None);
        let ten = tree.push(Op::Const(Value::Int(10)), None);
        let many = tree.push(Op::Compare(Compare::Gt, twice, ten), None);
        let odd = tree.push(Op::In(likes, vec![Value::Int(9)]), None);
        let not_odd = tree.push(Op::Not(odd), None);
        tree.push(Op::And(many, not_odd), None);
        let program = Program::compile(&tree, &Likes, Want::Predicate).unwrap();
        let run = RunValues { params: &[], now_ms: 0, user_id: &Id::Int(1) };
        let of = |position| values(&program, &rows, position, run).unwrap();
        let shown = |values: &[Option<Value>]| values.iter().map(|v| v.clone().unwrap()).collect::<Vec<_>>();
        let (first, second) = (of(0), of(1));
        assert_eq!(
            shown(&first)[2..],
            [6, 10].map(Value::Int).into_iter().chain([false, false, true, false].map(Value::Bool)).collect::<Vec<_>>()
                [..]
        );
        assert_eq!(culprits(&tree, &first), [many]);
        assert_eq!(culprits(&tree, &second), [odd]);
    }
}
