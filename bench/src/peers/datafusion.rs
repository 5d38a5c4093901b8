//! The pipeline as DataFusion physical expressions over a record batch; filter and sort as its operators do them.

use crate::data::{C_DEFAULT, Table};
use crate::peers::arrow;
use arrow_array::{ArrayRef, RecordBatch, cast::AsArray};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::filter::filter;
use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{BinaryExpr, Column, case, is_not_null, lit};
use std::sync::Arc;

type Expr = Arc<dyn PhysicalExpr>;

pub struct DataFusion {
    batch: RecordBatch,
    score: Expr,
    passes: Expr,
    take: usize,
}

impl DataFusion {
    pub fn new(table: &Table) -> DataFusion {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("a", DataType::Float64, false),
            Field::new("b", DataType::Float64, false),
            Field::new("c", DataType::Float64, true),
        ]);
        let batch = RecordBatch::try_new(Arc::new(schema), arrow::arrays(table).to_vec()).expect("columns fit");
        let column = |name: &str, at| -> Expr { Arc::new(Column::new(name, at)) };
        let binary = |l, op, r| -> Expr { Arc::new(BinaryExpr::new(l, op, r)) };
        let c = column("c", 3);
        // What its planner makes of coalesce.
        let there = is_not_null(c.clone()).expect("any column has nulls");
        let c = case(None, vec![(there, c)], Some(lit(C_DEFAULT))).expect("both are floats");
        let ab = binary(column("a", 1), Operator::Multiply, column("b", 2));
        let score = binary(ab, Operator::Plus, binary(c, Operator::Multiply, lit(table.w)));
        let passes = binary(column("score", 1), Operator::GtEq, lit(table.x));
        DataFusion { batch, score, passes, take: table.take }
    }

    pub fn run(&self) -> Vec<i64> {
        let rows = self.batch.num_rows();
        let evaluate = |expr: &Expr, batch: &RecordBatch| -> ArrayRef {
            expr.evaluate(batch).and_then(|value| value.into_array(rows)).expect("well typed")
        };
        let scores = evaluate(&self.score, &self.batch);
        let ids = self.batch.column(0);
        let schema =
            Schema::new(vec![Field::new("id", DataType::Int64, false), Field::new("score", DataType::Float64, true)]);
        let scored = RecordBatch::try_new(Arc::new(schema), vec![ids.clone(), scores.clone()]).expect("columns fit");
        let passes = evaluate(&self.passes, &scored);
        let scores = filter(&scores, passes.as_boolean()).expect("one mask bit a row");
        let ids = filter(ids, passes.as_boolean()).expect("one mask bit a row");
        arrow::best(scores, &ids, Some(self.take), self.take)
    }
}
