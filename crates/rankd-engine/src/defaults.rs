//! What a node writes for a row that it has no value for: the key's default, else null, else the node fails.
//!
//! Decided once, when a plan is linked: a task that can write a key with such a rule is wrapped, every other one is called as
//! before. A null that an expression gives is no business of this file: the program itself gives the default or fails, so that
//! it does so in a pass over the rows as well. A column that is not there stays absent; where rows with a column are joined to rows
//! without it, the cells of the latter count as written.

use crate::error::TaskError;
use crate::task::{
    AnyFetch, Compute, ComputeContext, FetchContext, Fetching, InputRows, Lost, LostRow, ModelScore, RowSource,
    StoredLayout, Task,
};
use rankd_column::{Column, Key, RowSet, Stop, Value};
use rankd_plan::Registry;
use rankd_plan::plan::Node;
use rankd_plan::registry::Absent;
use rankd_plan::signature::{ParamKind, ParamRef, RowEffect, Writes};
use std::sync::Arc;

/// The task of a node, which keeps the rules of the keys that it writes.
pub(crate) fn with_defaults(task: Task, node: &Node, registry: &Registry) -> Task {
    let rules = Rules::of(node, registry);
    match task {
        task if rules.0.is_empty() => task,
        Task::Compute(task) => Task::Compute(Arc::new(WithDefaults { task, rules })),
        Task::Fetch(task) => Task::Fetch(Arc::new(WithDefaults { task, rules })),
    }
}

/// A key for which null is not simply kept where there is no value.
struct Rule {
    key: Key,
    name: Box<str>,
    /// Without one, the key takes no null.
    default: Option<Value>,
}

/// In the order of their keys.
struct Rules(Vec<Rule>);

/// The keys that parameters name, but for those that an expression is written to.
fn uncomputed(node: &Node, params: &'static [ParamRef]) -> impl Iterator<Item = Key> {
    let is_computed = |param: &ParamRef| {
        let into_it = ParamKind::Expr { into: Some(*param) };
        let mut params = node.signature.contract.params.iter();
        params.any(|of| of.kind == into_it || (of.kind == ParamKind::Exprs && of.name == param.name()))
    };
    params.iter().filter(move |param| !is_computed(param)).flat_map(|param| node.arg(*param).keys())
}

impl Rules {
    fn of(node: &Node, registry: &Registry) -> Rules {
        let all = || (1..registry.keys.list().len() as u32).map(Key).collect();
        let contract = node.signature.contract;
        let written = || match contract.writes {
            Writes::Nothing => Vec::new(),
            Writes::AnyKey => all(),
            // A table keeps the rules when it is loaded.
            Writes::Table(_) => Vec::new(),
            Writes::Named(names, params) => {
                let named = names.iter().filter_map(|name| registry.keys.named(name)).map(Key);
                named.chain(uncomputed(node, params)).collect()
            }
            Writes::Params(params) => uncomputed(node, params).collect(),
        };
        // Any column may be missing on one of several sides.
        let mut keys: Vec<Key> = if contract.rows == RowEffect::Appended { all() } else { written() };
        keys.sort_unstable();
        let rule = |key: &Key| {
            let entry = registry.key(*key);
            let default = match entry.absent() {
                Absent::Null => return None,
                Absent::Default(value) => Some(value.clone()),
                Absent::Refused => None,
            };
            Some(Rule { key: *key, name: entry.name.as_str().into(), default })
        };
        Rules(keys.iter().filter_map(rule).collect())
    }

    fn apply(&self, rows: RowSet, stop: Stop<'_>) -> Result<RowSet, TaskError> {
        let mut filled: Option<RowSet> = None;
        for (key, column) in rows.batch().columns().iter().filter(|(_, column)| column.valid().is_some()) {
            let Ok(at) = self.0.binary_search_by_key(key, |rule| rule.key) else { continue };
            match &self.0[at].default {
                // The registry has typed it, so it fits.
                Some(value) => {
                    if let Some(column) = column.filled(value, stop)? {
                        filled = Some(filled.as_ref().unwrap_or(&rows).with(*key, Arc::new(column)));
                    }
                }
                None => self.0[at].refuse_nulls(&rows, column, stop)?,
            }
        }
        Ok(filled.unwrap_or(rows))
    }
}

impl Rule {
    /// Rows outside the view do not count, whatever the column holds there.
    fn refuse_nulls(&self, rows: &RowSet, column: &Column, stop: Stop<'_>) -> Result<(), TaskError> {
        let Some(valid) = column.valid() else { return Ok(()) };
        for chunk in stop.chunks(rows.rows()) {
            if let Some(row) = chunk?.iter().find(|row| !valid[*row]) {
                return Err(TaskError::no_value(&self.name, &rows.batch().id(row)));
            }
        }
        Ok(())
    }
}

/// A task and the rules of the keys that it writes.
struct WithDefaults<T> {
    task: T,
    rules: Rules,
}

impl Compute for WithDefaults<Arc<dyn Compute>> {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        self.rules.apply(self.task.run(inputs, cx)?, cx.stop())
    }

    fn is_anytime(&self) -> bool {
        self.task.is_anytime()
    }

    fn is_approximate(&self) -> bool {
        self.task.is_approximate()
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        self.task.why_lost(row)
    }

    fn orders_by(&self) -> Vec<Key> {
        self.task.orders_by()
    }

    fn scored_by(&self, key: Key, dials: &[i64]) -> Option<ModelScore> {
        self.task.scored_by(key, dials)
    }

    fn row_source(&self) -> RowSource<'_> {
        self.task.row_source()
    }
}

impl AnyFetch for WithDefaults<Arc<dyn AnyFetch>> {
    fn start<'a>(&'a self, inputs: &'a [RowSet], cx: &'a FetchContext<'a>) -> Fetching<'a> {
        let fetching = self.task.start(inputs, cx);
        Box::pin(async move { self.rules.apply(fetching.await?, Stop::default()) })
    }

    fn layout(&self, registry: &Registry) -> Option<StoredLayout<'_>> {
        self.task.layout(registry)
    }

    fn why_lost(&self, row: &LostRow<'_>) -> Lost {
        self.task.why_lost(row)
    }

    fn row_source(&self) -> RowSource<'_> {
        self.task.row_source()
    }
}
