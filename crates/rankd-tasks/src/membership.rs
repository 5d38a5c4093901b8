//! What `exclude` and `only` have in common: which rows are named by other rows.

use rankd_column::kernel::gather::NO_ROW;
use rankd_column::kernel::join::matches;
use rankd_column::{Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::task::{ComputeContext, InputRows};
use rankd_plan::params;
use rankd_plan::signature::typed::{Input, KeysLikeIds};
use rankd_plan::signature::*;

pub(crate) const CONTRACT: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Fewer,
    reads: &[Params::by],
    writes: Writes::Nothing,
    params: Params::PARAMS,
    cost: Cost::About { fixed_ns: 500.0, per_row_ns: 20.0 },
};

params! {
    pub(crate) struct Params {
        /// The node whose ids are looked for
        rows: Input,
        /// The keys in which they are looked for; the row's own id when not given
        by: Option<KeysLikeIds>,
    }
}

impl Params {
    /// The rows for which one of the keys is an id of the other rows, or those for which none is. Null is no id.
    pub(crate) fn keep(
        &self,
        inputs: &InputRows<'_>,
        named: bool,
        cx: &ComputeContext<'_>,
    ) -> Result<RowSet, TaskError> {
        let (rows, others, stop) = (&inputs[0], &inputs[self.rows], cx.stop());
        let mut is_named = vec![false; rows.len()];
        for key in self.by.as_deref().unwrap_or(&[Key::ID]) {
            let found = matches(rows, *key, others, Key::ID, stop)?;
            is_named.iter_mut().zip(found).for_each(|(is_named, other)| *is_named |= other != NO_ROW);
        }
        let kept = is_named.iter().enumerate().filter(|(_, is_named)| **is_named == named);
        Ok(rows.positions(kept.map(|(at, _)| at)))
    }
}
