//! A program bound to one row set and one set of parameters: columns found, patterns built, row-independent values computed.
//!
//! It also evaluates single rows by the definitions of [`crate::expr::cell`].

use crate::batch::{Batch, Key};
use crate::column::{Cells, Column};
use crate::expr::arrays::{Arrays, ListRef, VectorRef};
use crate::expr::cell::{self, Cell};
use crate::expr::compile::{Program, exact_float, exact_int, float_bits};
use crate::expr::eval::{EvalError, Fault};
use crate::expr::operations::Binary;
use crate::expr::output::Made;
use crate::expr::pattern::Kept;
use crate::expr::run_values::RunValues;
use crate::expr::step::Memos;
use crate::expr::symbols::Symbols;
use crate::expr::tree::{Ix, Op, Pattern};
use crate::expr::types::Kind;
use crate::flat::Span;
use crate::id::Id;
use crate::rowset::RowSet;
use crate::stop::{Stop, Stopped};
use crate::value::{List, Type, Value};
use regex::Regex;
use std::sync::Arc;

/// A column slot of the program, found in the batch.
#[derive(Clone, Copy)]
pub(super) enum Bound<'a> {
    Missing,
    Ints(Slice<'a, i64>),
    Floats(Slice<'a, f64>),
    Bools(Slice<'a, bool>),
    /// Codes, and what turns a code into a symbol of this evaluation.
    Codes(Slice<'a, u32>, u32),
    /// Lists, and the number of what their elements lie in.
    Lists(Slice<'a, Span>, u32),
    /// Vectors, and the number of what they lie in.
    Vectors(Slice<'a, u32>, u32),
    /// A column that the pass at hand is making: its position among those.
    Made(usize),
}

impl<'a> Bound<'a> {
    pub(super) fn of(
        batch: &'a Batch,
        key: Key,
        symbols: &mut Symbols<'a>,
        arrays: &mut Arrays<'a>,
        stop: Stop<'_>,
    ) -> Result<Bound<'a>, Stopped> {
        let column = match key {
            Key::ID => batch.id_column(stop)?,
            key => batch.column(key).map(|column| &**column),
        };
        Ok(match column {
            None if key == Key::ID => Bound::Ints(Slice { values: batch.ids(), valid: None }),
            None => Bound::Missing,
            Some(Column::Int(cells)) => Bound::Ints(cells.into()),
            Some(Column::Float(cells)) => Bound::Floats(cells.into()),
            Some(Column::Bool(cells)) => Bound::Bools(cells.into()),
            Some(Column::Str(cells, dictionary)) => Bound::Codes(cells.into(), symbols.add_dictionary(dictionary)),
            Some(Column::List(cells, elements)) => Bound::Lists(cells.into(), arrays.add_elements(elements, symbols)),
            Some(Column::Vector(cells, vectors)) => Bound::Vectors(cells.into(), arrays.add_vectors(vectors)),
        })
    }

    /// The cells that are there now, where the column is still being made.
    #[inline(always)]
    pub(super) fn so_far<'m>(self, made: &'m [Made]) -> Bound<'m>
    where
        'a: 'm,
    {
        match self {
            Bound::Made(at) => made.get(at).map_or(Bound::Missing, Made::so_far),
            bound => bound,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Slice<'a, T> {
    pub(super) values: &'a [T],
    pub(super) valid: Option<&'a [bool]>,
}

impl<'a, T: Copy + Default> From<&'a Cells<T>> for Slice<'a, T> {
    fn from(cells: &'a Cells<T>) -> Slice<'a, T> {
        Slice { values: cells.values(), valid: cells.valid() }
    }
}

impl<T: Copy> Slice<'_, T> {
    fn get(&self, row: usize) -> Option<T> {
        self.valid.is_none_or(|valid| valid[row]).then(|| self.values[row])
    }
}

/// How many texts a node brings that is the same on all rows; at most.
fn texts_of(op: &Op, params: &[Value]) -> usize {
    let value = match op {
        Op::Const(value) => Some(value),
        Op::Param(param) => params.get(*param as usize),
        _ => None,
    };
    match value {
        Some(Value::List(list)) => match &**list {
            List::Str(texts) => texts.len(),
            List::Int(_) | List::Float(_) => 0,
        },
        _ => 1,
    }
}

pub(super) struct Frame<'a> {
    pub(super) program: &'a Program,
    /// How many rows there are to evaluate.
    pub(super) rows: usize,
    pub(super) columns: Vec<Bound<'a>>,
    pub(super) symbols: Symbols<'a>,
    pub(super) arrays: Arrays<'a>,
    /// By node; meaningful where the program says that the node is uniform.
    pub(super) uniforms: Vec<Cell>,
    /// Patterns that came from parameters, by node; `None` where the parameter is null.
    param_regexes: Vec<(Ix, Option<Arc<Regex>>)>,
    /// The first of the memos that are this program's, where several programs run side by side.
    pub(super) first_memo: Memos,
    /// Whether some row-independent part overflowed or is too long. Then every row must be looked at by itself.
    pub(super) uniform_overflow: bool,
}

impl<'a> Frame<'a> {
    /// `made` are the keys that the pass at hand makes before.
    pub(super) fn bind(
        program: &'a Program,
        rows: &'a RowSet,
        made: &[Key],
        run: RunValues<'a>,
        stop: Stop<'_>,
    ) -> Result<Frame<'a>, EvalError> {
        let (mut symbols, mut arrays) = (Symbols::default(), Arrays::default());
        let columns = program.columns.iter().map(|&key| match made.iter().rposition(|made| *made == key) {
            Some(at) => Ok(Bound::Made(at)),
            None => Bound::of(rows.batch(), key, &mut symbols, &mut arrays, stop),
        });
        let columns = columns.collect::<Result<_, _>>()?;
        let params = run.params;
        symbols.expect_texts(program.per_run.iter().map(|ix| texts_of(program.tree.op(*ix), params)).sum());
        let uniforms = vec![Cell::Null; program.tree.nodes().len()];
        let (rows, param_regexes) = (rows.len(), Vec::new());
        let (first_memo, uniform_overflow) = Default::default();
        let mut frame =
            Frame { program, rows, columns, symbols, arrays, uniforms, param_regexes, first_memo, uniform_overflow };
        for &ix in &program.per_run {
            let cell = match program.tree.op(ix) {
                Op::Const(value) => frame.cell_of(value),
                Op::Param(param) => params.get(*param as usize).map_or(Cell::Null, |value| frame.cell_of(value)),
                Op::NowMs => Cell::Int(run.now_ms),
                Op::UserId => match run.user_id {
                    Id::Int(id) => Cell::Int(*id),
                    Id::Text(id) => Cell::Str(frame.symbols.add_text(id)),
                },
                Op::Match { pattern: Pattern::Param(param), ignore_case, .. } => {
                    let regex = match params.get(*param as usize) {
                        Some(Value::Str(pattern)) => {
                            let fault = |why| EvalError { fault: Fault::BadRegex { why }, id: None, node: Some(ix) };
                            Some(Kept::shared().get(pattern, *ignore_case).map_err(fault)?)
                        }
                        _ => None,
                    };
                    frame.param_regexes.push((ix, regex));
                    continue;
                }
                op => frame.apply(ix, op, &frame.uniforms),
            };
            let cell = frame.settled(ix as usize, cell);
            frame.uniform_overflow |= matches!(cell, Cell::Bad(_));
            frame.uniforms[ix as usize] = cell;
        }
        Ok(frame)
    }

    pub(super) fn regex(&self, node: Ix) -> Option<&Regex> {
        let literal = self.program.regexes.iter().find(|(ix, _)| *ix == node).map(|(_, regex)| &**regex);
        literal.or_else(|| self.param_regexes.iter().find(|(ix, _)| *ix == node)?.1.as_deref())
    }

    /// The value of every node on one stored row; the root's is last.
    pub(super) fn row(&self, row: usize, made: &[Made], cells: &mut Vec<Cell>) {
        cells.clear();
        for (ix, node) in self.program.tree.nodes().iter().enumerate() {
            let cell = match &node.op {
                _ if self.program.uniform[ix] => self.uniforms[ix],
                Op::Key(key) => self.column_cell(*key, row, made),
                Op::Match { key, .. } => match (self.column_cell(*key, row, made), self.regex(ix as Ix)) {
                    (Cell::Str(symbol), Some(regex)) => Cell::Bool(regex.is_match(self.symbols.get(symbol))),
                    _ => Cell::Bool(false),
                },
                op => self.apply(ix as Ix, op, cells),
            };
            cells.push(self.settled(ix, cell));
        }
    }

    /// A cell as the kind of its node: an int branch beside a float one is a float, and what can only be null is null.
    fn settled(&self, ix: usize, cell: Cell) -> Cell {
        match (self.program.kinds[ix], cell) {
            (Kind::Value(Type::Float), Cell::Int(v)) => Cell::Float(v as f64),
            (Kind::Null, _) => Cell::Null,
            (_, cell) => cell,
        }
    }

    fn column_cell(&self, key: Key, row: usize, made: &[Made]) -> Cell {
        let slot = self.program.columns.iter().position(|&known| known == key);
        match slot.map_or(Bound::Missing, |slot| self.columns[slot].so_far(made)) {
            Bound::Missing | Bound::Made(_) => Cell::Null,
            Bound::Ints(slice) => slice.get(row).map_or(Cell::Null, Cell::Int),
            Bound::Floats(slice) => slice.get(row).map_or(Cell::Null, Cell::Float),
            Bound::Bools(slice) => slice.get(row).map_or(Cell::Null, Cell::Bool),
            Bound::Codes(slice, base) => slice.get(row).map_or(Cell::Null, |code| Cell::Str(base + code)),
            Bound::Lists(slice, pool) => slice.get(row).map_or(Cell::Null, |span| Cell::List(ListRef::new(pool, span))),
            Bound::Vectors(slice, pool) => {
                slice.get(row).map_or(Cell::Null, |at| Cell::Vector(VectorRef::new(pool, at)))
            }
        }
    }

    fn cell_of(&mut self, value: &'a Value) -> Cell {
        match value {
            Value::Null => Cell::Null,
            Value::Int(v) => Cell::Int(*v),
            Value::Float(v) => Cell::Float(*v),
            Value::Bool(v) => Cell::Bool(*v),
            Value::Str(text) => Cell::Str(self.symbols.add_text(text)),
            Value::List(list) => Cell::List(self.arrays.add_list(list, &mut self.symbols)),
            Value::Vector(vector) => Cell::Vector(self.arrays.add_vector(vector)),
        }
    }

    /// One operation on the cells of its children.
    fn apply(&self, ix: Ix, op: &Op, cells: &[Cell]) -> Cell {
        let at = |ix: &Ix| cells[*ix as usize];
        match op {
            // Handled by the callers, which know the row.
            Op::Const(_) | Op::Key(_) | Op::Param(_) | Op::NowMs | Op::UserId | Op::Match { .. } => {
                self.uniforms[ix as usize]
            }
            Op::Call { call, a, b, salt } => self.call(*call, at(a), b.as_ref().map(at), salt.as_deref()),
            Op::Unary(op, x) => Cell::unary(*op, at(x)),
            Op::Binary(op, a, b) => Cell::binary(*op, at(a), at(b)),
            Op::Clamp { x, lo, hi } => Cell::binary(Binary::Min, Cell::binary(Binary::Max, at(x), at(lo)), at(hi)),
            Op::Coalesce(a, b) => Cell::coalesce(at(a), at(b)),
            Op::If { cond, then, other } => Cell::choose(at(cond), at(then), at(other)),
            Op::Truth(value) => Cell::Bool(*value),
            Op::And(a, b) => Cell::and(at(a), at(b)),
            Op::Or(a, b) => Cell::or(at(a), at(b)),
            Op::Not(x) => match at(x) {
                Cell::Bool(value) => Cell::Bool(!value),
                other => other,
            },
            Op::Compare(compare, a, b) => {
                cell::Cell::compare(*compare, at(a), at(b), |a, b| self.symbols.get(a).cmp(self.symbols.get(b)))
            }
            Op::In(x, list) => match at(x) {
                bad @ Cell::Bad(_) => bad,
                Cell::Null => Cell::Bool(false),
                x => Cell::Bool(list.iter().any(|item| self.equals(x, item))),
            },
            Op::Null { x, negated } => match at(x) {
                bad @ Cell::Bad(_) => bad,
                x => Cell::Bool((x == Cell::Null) != *negated),
            },
        }
    }

    fn equals(&self, cell: Cell, item: &Value) -> bool {
        match (cell, item) {
            (Cell::Int(x), item) => exact_int(item) == Some(x),
            (Cell::Float(x), item) => exact_float(item).is_some_and(|item| float_bits(item) == float_bits(x)),
            (Cell::Bool(x), Value::Bool(item)) => x == *item,
            (Cell::Str(x), Value::Str(item)) => self.symbols.get(x) == &**item,
            _ => false,
        }
    }
}
