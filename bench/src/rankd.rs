//! The pipeline through rankd's own columns, expressions and row sets, as a plan's nodes call them.

use crate::data::{C_DEFAULT, Table};
use rankd_column::expr::pass::{Part, Pass};
use rankd_column::expr::{Binary, Compare, Op, Program, RunValues, Schema, Scratch, Stop, Tree, Want, compute, select};
use rankd_column::kernel::sort::Order;
use rankd_column::{Batch, Cells, Column, Key, RowSet, Type, Value};
use std::sync::Arc;

const A: Key = Key(1);
const B: Key = Key(2);
const C: Key = Key(3);
const SCORE: Key = Key(4);
const W: u32 = 0;
const X: u32 = 1;

struct Floats;

impl Schema for Floats {
    fn key_type(&self, _: Key) -> Type {
        Type::Float
    }

    fn param_type(&self, _: u32) -> Type {
        Type::Float
    }
}

/// Rows, linked programs and buffers: everything that exists before a request's nodes run.
pub struct Rankd {
    rows: RowSet,
    params: Vec<Value>,
    score: Arc<Program>,
    passes: Arc<Program>,
    /// The four nodes as one pass, and the same without the take.
    pass: Pass,
    scratch: Scratch,
    take: usize,
}

impl Rankd {
    pub fn new(table: &Table) -> Rankd {
        let (score, passes) = programs();
        let (score, passes) = (Arc::new(score), Arc::new(passes));
        let parts = vec![
            Part::Compute { key: SCORE, program: score.clone(), siblings: 0 },
            Part::Filter { program: passes.clone() },
            Part::Sort { key: SCORE, order: Order::Desc },
            Part::Take { count: table.take },
        ];
        let pass = Pass::new(parts).expect("these parts make a pass");
        let params = vec![Value::Float(table.w), Value::Float(table.x)];
        Rankd { rows: rows(table), params, score, passes, pass, scratch: Scratch::default(), take: table.take }
    }

    pub fn vm(&mut self) -> Column {
        let column = compute(&self.score, &self.rows, RunValues::of(&self.params), &mut self.scratch, Stop::default());
        column.expect("scores are finite")
    }

    fn filtered(&mut self) -> RowSet {
        let scores = self.vm();
        let scored = self.rows.with(SCORE, Arc::new(scores));
        let kept = select(&self.passes, &scored, RunValues::of(&self.params), &mut self.scratch, Stop::default());
        scored.looking_at(kept.expect("a comparison cannot fail"))
    }

    pub fn fused(&mut self) -> RowSet {
        let Rankd { pass, rows, params, scratch, .. } = self;
        pass.run(rows, RunValues::of(params), scratch, Stop::default()).expect("scores are finite")
    }

    pub fn top(&mut self) -> RowSet {
        self.filtered().top(SCORE, Order::Desc, self.take, Stop::default()).expect("nothing stops it")
    }

    pub fn sort(&mut self) -> RowSet {
        self.filtered().sort(SCORE, Order::Desc, Stop::default()).expect("nothing stops it").take(self.take)
    }
}

/// The table as rows; its columns are the keys from 1 on.
pub(crate) fn rows(table: &Table) -> RowSet {
    let full = |values: &[f64]| Arc::new(Column::Float(Cells::full(values.to_vec())));
    let c = Cells::new(table.c.clone(), Some(table.c_valid.clone()));
    let batch = Batch::new(table.ids.clone()).with(A, full(&table.a)).with(B, full(&table.b));
    RowSet::new(batch.with(C, Arc::new(Column::Float(c))))
}

fn programs() -> (Program, Program) {
    let mut tree = Tree::new();
    let mut push = |op| tree.push(op, None);
    let (a, b, c, w) = (push(Op::Key(A)), push(Op::Key(B)), push(Op::Key(C)), push(Op::Param(W)));
    let default = push(Op::Const(Value::Float(C_DEFAULT)));
    let ab = push(Op::Binary(Binary::Mul, a, b));
    let c = push(Op::Coalesce(c, default));
    let cw = push(Op::Binary(Binary::Mul, c, w));
    push(Op::Binary(Binary::Add, ab, cw));
    let score = Program::compile(&tree, &Floats, Want::Column(Type::Float)).expect("the score is well typed");

    let mut tree = Tree::new();
    let (score_key, x) = (tree.push(Op::Key(SCORE), None), tree.push(Op::Param(X), None));
    tree.push(Op::Compare(Compare::Ge, score_key, x), None);
    let passes = Program::compile(&tree, &Floats, Want::Predicate).expect("the predicate is well typed");
    (score, passes)
}
