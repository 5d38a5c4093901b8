//! The pipeline as calls of arrow-rs kernels.

use crate::data::{C_DEFAULT, Table};
use arrow_arith::boolean::is_not_null;
use arrow_arith::numeric::{add, mul};
use arrow_array::{ArrayRef, Float64Array, Int64Array, Scalar, cast::AsArray, types::Int64Type};
use arrow_buffer::NullBuffer;
use arrow_ord::cmp::gt_eq;
use arrow_ord::sort::{SortColumn, lexsort_to_indices};
use arrow_schema::SortOptions;
use arrow_select::filter::filter;
use arrow_select::take::take;
use arrow_select::zip::zip;
use std::sync::Arc;

pub struct Arrow {
    ids: ArrayRef,
    a: ArrayRef,
    b: ArrayRef,
    c: ArrayRef,
    default: Scalar<Float64Array>,
    w: Scalar<Float64Array>,
    x: Scalar<Float64Array>,
    take: usize,
}

/// The input columns as Arrow arrays: ids, a, b, c.
pub fn arrays(table: &Table) -> [ArrayRef; 4] {
    let nulls = NullBuffer::from(table.c_valid.clone());
    [
        Arc::new(Int64Array::from(table.ids.clone())),
        Arc::new(Float64Array::from(table.a.clone())),
        Arc::new(Float64Array::from(table.b.clone())),
        Arc::new(Float64Array::new(table.c.clone().into(), Some(nulls))),
    ]
}

impl Arrow {
    pub fn new(table: &Table) -> Arrow {
        let [ids, a, b, c] = arrays(table);
        let [default, w, x] = [C_DEFAULT, table.w, table.x].map(Float64Array::new_scalar);
        Arrow { ids, a, b, c, default, w, x, take: table.take }
    }

    pub fn vm(&self) -> ArrayRef {
        let ab = mul(&self.a, &self.b).expect("floats multiply");
        let there = is_not_null(&self.c).expect("any array has nulls");
        let c = zip(&there, &self.c, &self.default).expect("both are floats");
        add(&ab, &mul(&c, &self.w).expect("floats multiply")).expect("floats add")
    }

    /// Sorts all rows that pass, then takes.
    pub fn sort(&self) -> Vec<i64> {
        self.ranked(None)
    }

    /// Tells the sort how many rows are wanted.
    pub fn top(&self) -> Vec<i64> {
        self.ranked(Some(self.take))
    }

    fn ranked(&self, limit: Option<usize>) -> Vec<i64> {
        let scores = self.vm();
        let passes = gt_eq(&scores, &self.x).expect("both are floats");
        let scores = filter(&scores, &passes).expect("one mask bit a row");
        let ids = filter(&self.ids, &passes).expect("one mask bit a row");
        best(scores, &ids, limit, self.take)
    }
}

/// The ids of the best rows: by score, ties by id.
pub fn best(scores: ArrayRef, ids: &ArrayRef, limit: Option<usize>, wanted: usize) -> Vec<i64> {
    let descending = SortOptions { descending: true, nulls_first: false };
    let keys = [
        SortColumn { values: scores, options: Some(descending) },
        SortColumn { values: ids.clone(), options: Some(SortOptions::default()) },
    ];
    let order = lexsort_to_indices(&keys, limit).expect("both keys sort");
    let first = order.slice(0, wanted.min(order.len()));
    let ids = take(ids, &first, None).expect("the order is of these ids");
    ids.as_primitive::<Int64Type>().values().to_vec()
}
