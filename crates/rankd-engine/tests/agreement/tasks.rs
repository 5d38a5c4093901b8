//! Small tasks whose rows follow from their inputs, parameters and request alone: whichever thread calls them, and when.

use rankd_column::kernel::sort::Order;
use rankd_column::{Batch, Cells, Column, Key, RowSet, Stop, Value};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, Definition, Fetch, FetchContext, InputRows, Maker};
use rankd_plan::params;
use rankd_plan::signature::typed::Input;
use rankd_plan::signature::*;
use std::sync::Arc;

const X: Key = Key(1);
const Y: Key = Key(2);

/// No node gives more rows, so that plans stay small however often rows are doubled.
const ROWS_MAX: usize = 64;

fn cell(rows: &RowSet, key: Key, row: usize) -> Option<i64> {
    match rows.batch().value(key, row) {
        Value::Int(value) => Some(value),
        _ => None,
    }
}

/// Rows with both columns, and nulls in one of them.
fn first_rows(count: usize, start: i64) -> RowSet {
    let ids: Vec<i64> = (start..).take(count).collect();
    let x = ids.iter().map(|id| (id % 5 != 0).then_some(id * 7 % 11)).collect();
    let y = ids.iter().map(|id| 1.0 / (1 + id) as f64).collect();
    let batch = Batch::new(ids).with(X, Arc::new(Column::Int(x))).with(Y, Arc::new(Column::Float(Cells::full(y))));
    RowSet::new(batch)
}

fn add(rows: &RowSet, amount: i64) -> RowSet {
    let stored = 0..rows.batch().len();
    let x = stored.clone().map(|row| cell(rows, X, row).map(|x| x.wrapping_mul(3).wrapping_add(amount))).collect();
    let y = stored.map(|row| match rows.batch().value(Y, row) {
        Value::Float(y) => Some(y * 1.1 + amount as f64),
        _ => None,
    });
    rows.with(X, Arc::new(Column::Int(x))).with(Y, Arc::new(Column::Float(y.collect())))
}

/// Every nth row.
fn thin(rows: &RowSet, nth: usize) -> RowSet {
    rows.looking_at(rows.rows().iter().step_by(nth).map(|row| row as u32).collect())
}

struct Computing {
    amount: i64,
    run: fn(i64, &[RowSet]) -> RowSet,
}

impl Compute for Computing {
    fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let inputs: Vec<RowSet> = inputs.iter().cloned().collect();
        Ok((self.run)(self.amount, &inputs).take(ROWS_MAX))
    }
}

struct Fetching {
    amount: i64,
    run: fn(i64, i64, &[RowSet]) -> RowSet,
}

impl Fetch for Fetching {
    async fn run(&self, inputs: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        // The rows come in a later turn of the loop, so that others come in between.
        tokio::task::yield_now().await;
        Ok((self.run)(self.amount, cx.user_id()?, inputs).take(ROWS_MAX))
    }
}

struct Failing;

impl Compute for Failing {
    fn run(&self, _: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Err(TaskError::new(codes::INJECTED_FAILURE, "as the plan says"))
    }
}

macro_rules! compute {
    ($run:expr) => {
        Maker::Compute(|cx| Arc::new(Computing { amount: cx.params::<Amount>().amount, run: $run }))
    };
}

macro_rules! fetch {
    ($run:expr) => {
        Maker::Fetch(|cx| Arc::new(Fetching { amount: cx.params::<Amount>().amount, run: $run }))
    };
}

params! {
    struct Amount {
        /// A number, for whatever the task does with one
        #[range(1..=1000)]
        amount: i64,
    }
}

params! {
    struct AmountAndRows {
        /// A number, for whatever the task does with one
        #[range(1..=1000)]
        amount: i64,
        /// More rows
        rhs: Input,
    }
}

const fn contract(inputs: Inputs, rows: RowEffect, params: &'static [Param], cost: Cost) -> Contract {
    Contract { inputs, rows, reads: &[], writes: Writes::Named(&["x", "y"], &[]), params, cost }.checked()
}

const CHEAP: Cost = Cost::About { fixed_ns: 500.0, per_row_ns: 3.0 };

static SOURCE: Contract = contract(Inputs::None, RowEffect::Source, Amount::PARAMS, Cost::Unknown);
static MADE: Contract = contract(Inputs::None, RowEffect::Source, Amount::PARAMS, CHEAP);
static SAME: Contract = contract(Inputs::One, RowEffect::Same, Amount::PARAMS, CHEAP);
static FEWER: Contract = contract(Inputs::One, RowEffect::Fewer, Amount::PARAMS, Cost::Trivial);
static REORDERED: Contract = contract(Inputs::One, RowEffect::Reordered, Amount::PARAMS, Cost::Unknown);
static FANNED: Contract = contract(Inputs::One, RowEffect::FanOut, Amount::PARAMS, Cost::Unknown);
static ASKED: Contract = contract(Inputs::One, RowEffect::Same, Amount::PARAMS, Cost::Unknown);
static APPENDED: Contract = contract(Inputs::One, RowEffect::Appended, AmountAndRows::PARAMS, CHEAP);

const fn definition(op: &'static str, contract: &'static Contract, maker: Maker) -> Definition {
    Definition { signature: Signature { op, summary: "", contract }, maker }
}

pub(crate) static DEFINITIONS: [Definition; 10] = [
    definition("source", &SOURCE, fetch!(|amount, user, _| first_rows(amount as usize % 9, amount + user))),
    definition("made", &MADE, compute!(|amount, _| first_rows(amount as usize % 9, amount))),
    definition("add", &SAME, compute!(|amount, inputs| add(&inputs[0], amount))),
    definition("take", &FEWER, compute!(|amount, inputs| inputs[0].take(amount as usize % 20))),
    definition("thin", &FEWER, compute!(|amount, inputs| thin(&inputs[0], 1 + amount as usize % 3))),
    definition("sort", &REORDERED, compute!(|_, inputs| inputs[0].sort(X, Order::Desc, Stop::default()).unwrap())),
    definition(
        "fan",
        &FANNED,
        fetch!(|amount, _, inputs| {
            let ids = inputs[0].ids().flat_map(|id| [id, id + amount]).collect();
            RowSet::new(Batch::new(ids))
        }),
    ),
    definition("ask", &ASKED, fetch!(|amount, user, inputs| add(&inputs[0], amount ^ user))),
    definition("concat", &APPENDED, compute!(|_, inputs| inputs[0].concat(&inputs[1], Stop::default()).unwrap())),
    definition("fail", &SAME, Maker::Compute(|_| Arc::new(Failing))),
];

/// The ops that need no rows, and those that need some.
pub(crate) const FIRST: [&str; 2] = ["source", "made"];
pub(crate) const NEXT: [&str; 8] = ["add", "add", "take", "thin", "sort", "fan", "ask", "concat"];
