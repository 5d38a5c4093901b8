//! Find the rows of a table whose vectors are nearest to a vector.
//!
//! `vector` is a parameter of the request: then the task is a source, with one search. Or it is a key of the input: then there is a search for
//! each row, for at most 16 of them, and the rows that each finds follow each other in the order of the input; each new row remembers in
//! `parent_id` which row it was found for, and gets the keys that `carry` names. A search gives the `k` rows whose vectors in the column `key` are
//! nearest, the nearest first: those with the highest `dot` or `cosine`, or the lowest `l2`. Of equal ones the row that comes first in the
//! table is nearer. `where` says which rows of the table are looked at, so that up to `k` rows are found among those. `score_key` gets how near
//! a row is. The new rows have the table's columns. Rows of the table without a vector are left out; a search for null finds no rows. Empty
//! input: no rows. Every row is compared, and the result is exact, unless the table's endpoint has a copy of the column in `vectors`. Cost: linear in
//! the rows of the table and in the numbers of a vector.
//!
//! ```text
//! with {"endpoint": "example_table", "key": "example_vector", "vector": {"param": "example_query"}, "k": 2, "by": "cosine", "score_key": "score", "where": {"op": "cmp", "cmp": ">", "a": {"op": "key_ref", "key": "likes"}, "b": {"op": "const_number", "value": 1}}}
//! table
//! | id | likes | example_vector |
//! | 7 | 1 | [5, 0, 0] |
//! | 3 | 9 | [0, 2, 0] |
//! | 4 | 9 | [2, 0, 0] |
//! | 5 | 9 | |
//! gives
//! | id | likes | score |
//! | 4 | 9 | 1.0 |
//! | 3 | 9 | 0.0 |
//! ```
//!
//! ```text
//! with {"endpoint": "example_table", "key": "example_vector", "vector": "example_vector", "k": 1, "by": "l2", "score_key": "score", "carry": ["country"]}
//! table
//! | id | title | example_vector |
//! | 7 | Alpha | [1, 0, 0] |
//! | 3 | Beta | [0, 3, 4] |
//! given
//! | id | country | example_vector |
//! | 1 | DE | [0, 0, 0] |
//! | 2 | | |
//! | 9 | US | [0, 3, 3] |
//! gives
//! | id | title | score | parent_id | country |
//! | 7 | Alpha | 1.0 | 1 | DE |
//! | 3 | Beta | 1.0 | 9 | US |
//! ```

use crate::fan_out::PARENT_ID;
use crate::table_fan_out::TableFanOut;
use rankd_column::expr::select;
use rankd_column::kernel::nearest::{Near, NearestFault, nearest};
use rankd_column::kernel::similarity::Similarity;
use rankd_column::kernel::vector_copy::CopyKind;
use rankd_column::rowset::Rows;
use rankd_column::{Cells, Column, Key, RowSet, Value};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::store::{Table, TableEndpoint};
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext, Make};
use rankd_plan::signature::typed::{AskedVector, Dial, FloatKey, TablePredicate, TableVectorKey};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::Optional,
    rows: RowEffect::FanOut,
    reads: &[Params::vector, Params::carry],
    writes: Writes::Named(&[PARENT_ID], &[Params::score_key, Params::carry]),
    params: Params::PARAMS,
    cost: Cost::Unknown,
};

choices! {
    /// How vectors are compared.
    pub(crate) enum By -> Similarity {
        "dot" => Similarity::Dot,
        "cosine" => Similarity::Cosine,
        "l2" => Similarity::L2,
    }
}

params! {
    pub(crate) struct Params {
        /// The table
        endpoint: TableEndpoint,
        /// The key of the table's vectors
        key: TableVectorKey,
        /// The vector to search for: a parameter, or a key of the input row
        vector: AskedVector,
        /// How many rows to find for each vector
        #[range(1..=10_000)]
        k: Dial,
        /// How vectors are compared: the highest dot or cosine is nearest, or the lowest l2
        by: By,
        /// The key that gets the dot product, the cosine or the distance
        score_key: Option<FloatKey>,
        /// The condition on the table's rows that are looked at
        r#where: Option<TablePredicate>,
        /// The keys of the input row that each new row gets, too
        #[only(input: "given")]
        carry: Option<Vec<Key>>,
    }
}

/// So many vectors a step searches for at most: all of them are compared with each row of the table.
const SEARCHES_MAX: usize = 16;

pub(crate) struct Task {
    params: Params,
    /// The kind of the copy that is searched in place of the vectors.
    copy: Option<CopyKind>,
    new_rows: TableFanOut,
}

impl Make for Task {
    type Params = Params;

    fn make(mut params: Params, cx: &LinkContext<'_>) -> Task {
        let copy = cx.need_copy(params.endpoint, params.key);
        let new_rows = TableFanOut::make(params.carry.take(), cx);
        Task { params, copy, new_rows }
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (input, stop) = (inputs.iter().next(), cx.stop());
        let (table, values) = (cx.table(self.params.endpoint)?, cx.values);
        let all = table.rows(cx.id_texts());
        // Each with the stored row that it is of, if it is of one.
        let asked: Vec<(u32, &[f32])> = match (self.params.vector, input) {
            (AskedVector::Param(at), _) => match values.params.get(at as usize) {
                Some(Value::Vector(vector)) => vec![(0, vector)],
                // The request's reader lets no other type through.
                Some(_) | None => Vec::new(),
            },
            (AskedVector::Key(key), Some(input)) => vectors_of(input, key)?,
            // The checks want an input for a key.
            (AskedVector::Key(_), None) => Vec::new(),
        };
        if let (AskedVector::Key(_), Some(input)) = (self.params.vector, input) {
            cx.count(|| (0, input.len() - asked.len()));
        }
        let vectors: Vec<&[f32]> = asked.iter().map(|(_, vector)| *vector).collect();
        let found = self.search(table, &all, &vectors, cx)?;
        let rows: Vec<u32> = found.iter().flatten().map(|near| near.row).collect();
        let mut batch = self.new_rows.gather(all.batch(), Rows::Listed(&rows), stop)?;
        if let Some(key) = self.params.score_key {
            let scores = found.iter().flatten().map(|near| near.score).collect();
            batch = batch.with(key, Arc::new(Column::Float(Cells::full(scores))));
        }
        if let Some(input) = input {
            let of_each = asked.iter().zip(&found);
            let parents: Vec<u32> =
                of_each.flat_map(|((row, _), found)| std::iter::repeat_n(*row, found.len())).collect();
            batch = self.new_rows.with_parents(batch, input, &parents, stop)?;
        }
        Ok(RowSet::new(batch))
    }

    fn is_approximate(&self) -> bool {
        self.copy.is_some()
    }
}

impl Task {
    /// The nearest of a table's rows, of which all are given, for each vector.
    fn search(
        &self,
        table: &Table,
        all: &RowSet,
        asked: &[&[f32]],
        cx: &mut ComputeContext<'_>,
    ) -> Result<Vec<Vec<Near>>, TaskError> {
        let Params { key, by, k, r#where, .. } = &self.params;
        // A table without the column is one without a vector in it.
        let (Some(column), false) = (all.batch().column(*key), asked.is_empty()) else {
            return Ok(vec![Vec::new(); asked.len()]);
        };
        let (stop, k) = (cx.stop(), k.count(cx.dials()));
        let kept = match r#where {
            Some(program) => {
                let kept = select(program, all, cx.values, cx.scratch, stop);
                Some(kept.map_err(|error| TaskError::eval(error, program))?)
            }
            None => None,
        };
        let rows = kept.as_deref().map_or_else(|| all.rows(), Rows::Listed);
        let found = match self.copy.and_then(|kind| table.vector_copy(*key, kind)) {
            Some(copy) => copy.nearest(column, rows, asked, *by, k, stop),
            None => nearest(column, rows, asked, *by, k, stop),
        };
        found.map_err(|fault| match fault {
            NearestFault::Stopped => rankd_column::Stopped.into(),
            NearestFault::NotFinite { row, score } => {
                let id = all.batch().id(row as usize);
                TaskError::new(codes::NOT_FINITE, format!("the score is {score} at row id {id} of the table"))
            }
        })
    }
}

/// The vectors of rows that have one, each with its stored row.
fn vectors_of(rows: &RowSet, key: Key) -> Result<Vec<(u32, &[f32])>, TaskError> {
    if rows.len() > SEARCHES_MAX {
        let message = format!("{} rows are searched for, and a step searches for at most {SEARCHES_MAX}", rows.len());
        return Err(TaskError::new(codes::TOO_MANY_SEARCHES, message));
    }
    let Some(Column::Vector(cells, vectors)) = rows.batch().column(key).map(|column| &**column) else {
        return Ok(Vec::new());
    };
    let vector = |row: usize| Some((row as u32, vectors.get(cells.get(row)?)));
    Ok(rows.rows().iter().filter_map(vector).collect())
}
