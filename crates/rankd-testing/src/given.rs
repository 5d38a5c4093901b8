//! The task that gives the rows of an example's tables.

use rankd_column::RowSet;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, Definition, InputRows, LinkContext, Make};
use rankd_plan::params;
use rankd_plan::signature::typed::Count;
use rankd_plan::signature::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The tables of all examples so far: a task is made from parameters alone, so it is told which of these is its own.
static TABLES: Mutex<Vec<RowSet>> = Mutex::new(Vec::new());

/// Keeps tables for plans to give. Where they are.
pub(crate) fn keep(tables: &[RowSet]) -> Range<usize> {
    let mut kept = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let start = kept.len();
    kept.extend_from_slice(tables);
    start..kept.len()
}

pub(crate) const OP: &str = "given_table";

pub(crate) const GIVEN: Definition = Definition::of::<Given, _>(OP, "Give the rows of a table.", &CONTRACT);

const CONTRACT: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::AnyKey,
    params: Params::PARAMS,
    cost: Cost::Trivial,
};

params! {
    struct Params {
        /// Where the table is
        table: Count,
    }
}

struct Given(RowSet);

impl Make for Given {
    type Params = Params;

    fn make(params: Params, _: &LinkContext<'_>) -> Given {
        Given(TABLES.lock().unwrap_or_else(PoisonError::into_inner)[params.table].clone())
    }
}

impl Compute for Given {
    fn run(&self, _: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(self.0.clone())
    }
}
