//! Give rows with the ids from 1 on, or with those that the plan lists, and columns as the plan says.
//!
//! For plans that read nothing. Where ids are strings they are "1", "2" and so on. A column is a list of values, one a row, or made by a generator: `sequence`, `hash` or `cycle`.
//!
//! ```text
//! with {"row_count": 3, "columns": {"score": [0.5, null, 1], "country": {"cycle": ["US", "DE"]}, "likes": {"sequence": {"start": 10, "step": 5}}}}
//! gives
//! | id | score | country | likes |
//! | 1 | 0.5 | US | 10 |
//! | 2 | | DE | 15 |
//! | 3 | 1.0 | US | 20 |
//! ```

use rankd_column::column::ColumnBuilder;
use rankd_column::kernel::gather::gather_column;
use rankd_column::rowset::Rows;
use rankd_column::{Batch, Column, Id, RowSet, Stop, Stopped, Type, Value};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Fetch, FetchContext, LinkContext, Make, RowSource, code_id};
use rankd_plan::params;
use rankd_plan::plan::{ColumnData, Generator};
use rankd_plan::signature::typed::{Columns, Count, IdList};
use rankd_plan::signature::*;
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::Params(&[Params::columns]),
    params: Params::PARAMS,
    cost: Cost::Trivial,
};

params! {
    pub(crate) struct Params {
        /// How many rows to give
        #[range(0..=10_000_000)]
        row_count: Count = 1,
        /// The ids of the rows; row_count follows from them
        #[rows(row_count)]
        ids: Option<IdList>,
        /// Values by key
        #[rows(row_count)]
        columns: Option<Columns>,
    }
}

pub(crate) struct Task {
    /// Made once: the rows are the same for every request, but for codes of ids.
    rows: RowSet,
    /// Where the plan lists them and they are texts.
    ids: Option<Vec<Id>>,
}

impl Make for Task {
    type Params = Params;

    fn make(Params { row_count: count, ids, columns }: Params, cx: &LinkContext<'_>) -> Task {
        let number = |(at, id): (usize, &Id)| if let Id::Int(id) = id { *id } else { at as i64 + 1 };
        let mut batch = Batch::new(match &ids {
            None => (1..=count as i64).collect(),
            Some(ids) => ids.iter().enumerate().map(number).collect(),
        });
        for (key, data) in columns.iter().flatten() {
            batch = batch.with(*key, Arc::new(column(data, count, cx.registry.key(*key).type_of)));
        }
        Task { rows: RowSet::new(batch.into_kept()), ids: ids.filter(|_| cx.registry.has_text_ids()) }
    }
}

impl Fetch for Task {
    async fn run(&self, _: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let Some(texts) = cx.id_texts() else { return Ok(self.rows.clone()) };
        let numbers = self.rows.batch().ids();
        let codes = cx.code_ids(numbers.len(), |coder, at| match &self.ids {
            Some(ids) => code_id(coder, &ids[at]),
            None => code_id(coder, &Id::Int(numbers[at])),
        });
        Ok(self.rows.renamed(codes.await?, texts.clone()))
    }

    fn row_source(&self) -> RowSource<'_> {
        RowSource::Plan
    }
}

fn column(data: &ColumnData, count: usize, type_of: Type) -> Column {
    match data {
        ColumnData::Values(values) => filled(values.iter().cloned(), type_of, count),
        // Rows with the same list share its elements.
        ColumnData::Generated(Generator::Cycle { values }) => {
            let once = filled(values.iter().cloned(), type_of, values.len());
            let rows: Vec<u32> = (0..count).map(|at| (at % values.len()) as u32).collect();
            let repeated = gather_column(&once, Rows::Listed(&rows), Stop::default());
            repeated.unwrap_or_else(|Stopped| unreachable!("nothing stops the linking of a plan"))
        }
        ColumnData::Generated(Generator::Sequence { start, step }) => {
            let value = |at: usize| Value::Int(start.saturating_add(step.saturating_mul(at as i64)));
            filled((0..count).map(value), type_of, count)
        }
        ColumnData::Generated(Generator::Hash { seed, modulus }) => {
            let value = |at: usize| {
                let mixed = mix(*seed ^ (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
                match type_of {
                    Type::Int => Value::Int((mixed >> 1) as i64 % modulus),
                    _ => Value::Float((mixed >> 11) as f64 / (1u64 << 53) as f64),
                }
            };
            filled((0..count).map(value), type_of, count)
        }
    }
}

fn filled(values: impl Iterator<Item = Value>, type_of: Type, count: usize) -> Column {
    let mut column = ColumnBuilder::new(type_of, count);
    for value in values {
        // The checks have typed every value, so one that does not fit cannot be here; it would be null.
        if !column.push(&value) {
            column.push_null();
        }
    }
    column.finish()
}

/// Spreads every bit of the input over all bits of the result.
fn mix(mut x: u64) -> u64 {
    for (shift, factor) in [(30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB)] {
        x = (x ^ (x >> shift)).wrapping_mul(factor);
    }
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hashed_column_is_spread_and_the_same_every_time() {
        let data = ColumnData::Generated(Generator::Hash { seed: 7, modulus: 10 });
        let values = || {
            let column = column(&data, 1000, Type::Int);
            (0..1000).map(|row| column.value(row)).collect::<Vec<Value>>()
        };
        assert_eq!(values(), values());
        let values = values();
        for digit in 0..10 {
            let count = values.iter().filter(|value| **value == Value::Int(digit)).count();
            assert!((60..140).contains(&count), "{digit} comes {count} times");
        }
    }
}
