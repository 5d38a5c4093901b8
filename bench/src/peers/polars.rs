//! The pipeline as eager Polars: arithmetic on chunked arrays, filter, stable sort of positions, take.

use crate::data::{C_DEFAULT, Table};
use polars::prelude::*;

pub struct Polars {
    ids: Int64Chunked,
    a: Float64Chunked,
    b: Float64Chunked,
    c: Float64Chunked,
    w: f64,
    x: f64,
    take: usize,
}

impl Polars {
    pub fn new(table: &Table) -> Polars {
        let c = table.c.iter().zip(&table.c_valid).map(|(&value, &valid)| valid.then_some(value));
        Polars {
            ids: Int64Chunked::from_slice("id".into(), &table.ids),
            a: Float64Chunked::from_slice("score".into(), &table.a),
            b: Float64Chunked::from_slice("b".into(), &table.b),
            c: Float64Chunked::from_iter_options("c".into(), c),
            w: table.w,
            x: table.x,
            take: table.take,
        }
    }

    pub fn run(&self) -> Vec<i64> {
        let c = self.c.fill_null_with_values(C_DEFAULT).expect("a float column");
        let scores = &(&self.a * &self.b) + &(&c * self.w);
        let passes = scores.gt_eq(self.x);
        let scores = scores.filter(&passes).expect("one mask bit a row");
        let ids = self.ids.filter(&passes).expect("one mask bit a row");
        let options =
            SortOptions { descending: true, nulls_last: true, multithreaded: false, maintain_order: true, limit: None };
        let order = scores.arg_sort(options).slice(0, self.take);
        let ids = ids.take(&order).expect("the order is of these ids");
        ids.into_no_null_iter().collect()
    }
}
