//! Add columns of another node's rows.
//!
//! Each row gets the cells of at most one row of `rhs`: without `on` of the one row that `rhs` has, with `on` of the first row, in the order of
//! `rhs`, whose key is equal. Null equals nothing. `keys` says which key of `rhs` is written to which key here. A row without a match
//! gets the key's default, or null; with `how` "inner" it is left out. There are never more rows than before. Empty input: no rows.
//! Cost: linear in the rows of both sides.
//!
//! ```text
//! with {"rhs": 1, "keys": {"country": "title"}, "on": "parent_id"}
//! given
//! | id | parent_id |
//! | 1 | 20 |
//! | 2 | 30 |
//! | 3 | 20 |
//! given
//! | id | country |
//! | 20 | DE |
//! | 40 | US |
//! gives
//! | id | parent_id | title |
//! | 1 | 20 | DE |
//! | 2 | 30 | |
//! | 3 | 20 | DE |
//! ```

use rankd_column::kernel::gather::NO_ROW;
use rankd_column::kernel::join::{by_stored_row, matches, pick};
use rankd_column::{Column, Key, RowSet, Stop, Stopped, Type};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, InputRows, LinkContext, Lost, LostRow, Make};
use rankd_plan::plan::KeyPair;
use rankd_plan::signature::typed::{Input, KeyPairs, On};
use rankd_plan::signature::*;
use rankd_plan::{choices, params};
use std::sync::Arc;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::FewerWhere(When { param: Params::how, words: &["inner"] }),
    reads: &[Params::on],
    writes: Writes::Params(&[Params::keys]),
    params: Params::PARAMS,
    cost: Cost::About { fixed_ns: 600.0, per_row_ns: 15.0 },
};

choices! {
    /// What becomes of a row without a match.
    pub(crate) enum How -> Unmatched { "left" => Unmatched::Kept, "inner" => Unmatched::Dropped }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmatched {
    Kept,
    Dropped,
}

params! {
    pub(crate) struct Params {
        /// The node whose columns to add
        rhs: Input,
        /// The keys to write, each by the key of rhs that its values come from
        keys: KeyPairs,
        /// The key to match with the id of rhs, or the left and the right key; without it rhs has one row
        on: Option<On>,
        /// Whether rows without a match are kept ("left") or left out ("inner")
        how: How = "left",
    }
}

pub(crate) struct Task {
    rhs: usize,
    on: Option<KeyPair>,
    unmatched: Unmatched,
    columns: Vec<AddedColumn>,
}

struct AddedColumn {
    from: Key,
    into: Key,
    type_of: Type,
}

impl Make for Task {
    type Params = Params;

    fn make(Params { rhs, keys, on, how }: Params, cx: &LinkContext<'_>) -> Task {
        let column =
            |pair: &KeyPair| AddedColumn { from: pair.right, into: pair.left, type_of: cx.field(pair.left).type_of };
        Task { rhs, on, unmatched: how, columns: keys.iter().map(column).collect() }
    }
}

impl Compute for Task {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        let (left, right, stop) = (&inputs[0], &inputs[self.rhs], cx.stop());
        let found = match self.on {
            Some(on) => matches(left, on.left, right, on.right, stop)?,
            None => vec![only_row(right)?; left.len()],
        };
        cx.count_aside(right.len());
        cx.count(|| (0, found.iter().filter(|other| **other == NO_ROW).count()));
        let mut rows = match self.unmatched {
            Unmatched::Kept => left.clone(),
            Unmatched::Dropped => left.looking_at(matched(left, &found, stop)?),
        };
        let found = by_stored_row(left, found, stop)?;
        for AddedColumn { from, into, type_of } in &self.columns {
            let column = pick(right.batch(), *from, &found, stop)?;
            rows = rows.with(*into, Arc::new(column.unwrap_or_else(|| Column::nulls(*type_of, found.len()))));
        }
        Ok(rows)
    }

    fn why_lost(&self, _: &LostRow<'_>) -> Lost {
        Lost::NoMatch { on: self.on.map(|on| (on.left, on.right)), input: self.rhs }
    }
}

/// The rows of a view that have a match.
fn matched(rows: &RowSet, found: &[u32], stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
    let (mut kept, mut found) = (Vec::new(), found.iter());
    for chunk in stop.chunks(rows.rows()) {
        let matched = chunk?.iter().zip(&mut found).filter(|(_, other)| **other != NO_ROW);
        kept.extend(matched.map(|(row, _)| row as u32));
    }
    Ok(kept)
}

/// The one row of a set, or none.
fn only_row(rows: &RowSet) -> Result<u32, TaskError> {
    match rows.len() {
        0 => Ok(NO_ROW),
        1 => Ok(rows.rows().at(0) as u32),
        several => {
            let message = format!("rhs has {several} rows: without `on`, join takes the columns of one row");
            Err(TaskError::new(codes::SEVERAL_ROWS, message))
        }
    }
}
