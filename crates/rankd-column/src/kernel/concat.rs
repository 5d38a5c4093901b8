//! Two row sets end to end.
//!
//! Columns are the union of both sides. Dictionaries merge the same way every time: the left's entries in order, then the
//! right's that the left does not have; equal dictionaries are reused as they are. The elements of lists and vectors are shared
//! where both sides have the same ones, or only one side has any; otherwise those of the viewed rows are copied.

use crate::batch::{Batch, Key};
use crate::column::{Cells, Column};
use crate::dictionary::{Dictionary, DictionaryBuilder};
use crate::flat::{Elements, Span, Vectors};
use crate::id_texts::IdTexts;
use crate::kernel::gather::gather_all;
use crate::rowset::{RowSet, Rows};
use crate::stop::{ROWS_A_LOOK, Stop, Stopped};
use std::sync::Arc;

/// The rows of `left`, then those of `right`.
pub fn concat(left: &RowSet, right: &RowSet, stop: Stop<'_>) -> Result<RowSet, Stopped> {
    let (l, r) = (left.batch(), right.batch());
    let rows = (left.rows(), right.rows());
    let mut ids = Vec::with_capacity(left.len() + right.len());
    gather_all(l.ids(), rows.0, &mut ids, stop)?;
    gather_all(r.ids(), rows.1, &mut ids, stop)?;
    let mut keys: Vec<Key> = l.columns().iter().chain(r.columns()).map(|(key, _)| *key).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut batch = Batch::with_ids(ids, id_texts(l, r));
    for key in keys {
        let column = join(l.column(key).map(|c| &**c), r.column(key).map(|c| &**c), rows, stop)?;
        batch = batch.with(key, Arc::new(column));
    }
    Ok(RowSet::new(batch))
}

/// What the ids of both are codes of. The ids of a run are codes of the same texts; only an empty batch may know of none.
fn id_texts(left: &Batch, right: &Batch) -> Option<Arc<IdTexts>> {
    let (left, right) = (left.id_texts(), right.id_texts());
    debug_assert!(left.zip(right).is_none_or(|(left, right)| Arc::ptr_eq(left, right)), "ids of two runs");
    left.or(right).cloned()
}

#[expect(clippy::panic, reason = "a key with two types cannot come from input: the registry types every column")]
fn disagree(left: &Column, right: &Column) -> ! {
    panic!("a key has type {} on one side and {} on the other", left.type_of(), right.type_of())
}

/// A key has one type everywhere, so both sides agree where both are there; a disagreement is a bug and panics.
#[expect(clippy::panic, reason = "a key of neither side cannot come from input: the caller lists the keys of both")]
fn join(
    left: Option<&Column>,
    right: Option<&Column>,
    rows: (Rows<'_>, Rows<'_>),
    stop: Stop<'_>,
) -> Result<Column, Stopped> {
    Ok(match (left, right) {
        (Some(Column::Int(l)), Some(Column::Int(r))) => Column::Int(join_cells(Some(l), Some(r), rows, stop)?),
        (Some(Column::Int(l)), None) => Column::Int(join_cells(Some(l), None, rows, stop)?),
        (None, Some(Column::Int(r))) => Column::Int(join_cells(None, Some(r), rows, stop)?),
        (Some(Column::Float(l)), Some(Column::Float(r))) => Column::Float(join_cells(Some(l), Some(r), rows, stop)?),
        (Some(Column::Float(l)), None) => Column::Float(join_cells(Some(l), None, rows, stop)?),
        (None, Some(Column::Float(r))) => Column::Float(join_cells(None, Some(r), rows, stop)?),
        (Some(Column::Bool(l)), Some(Column::Bool(r))) => Column::Bool(join_cells(Some(l), Some(r), rows, stop)?),
        (Some(Column::Bool(l)), None) => Column::Bool(join_cells(Some(l), None, rows, stop)?),
        (None, Some(Column::Bool(r))) => Column::Bool(join_cells(None, Some(r), rows, stop)?),
        (Some(Column::Str(l, dictionary)), None) => {
            Column::Str(join_cells(Some(l), None, rows, stop)?, dictionary.clone())
        }
        (None, Some(Column::Str(r, dictionary))) => {
            Column::Str(join_cells(None, Some(r), rows, stop)?, dictionary.clone())
        }
        (Some(Column::Str(l, ld)), Some(Column::Str(r, rd))) => {
            if Arc::ptr_eq(ld, rd) || ld == rd {
                return Ok(Column::Str(join_cells(Some(l), Some(r), rows, stop)?, ld.clone()));
            }
            let (merged, codes) = merge(ld, rd, stop)?;
            let mut recoded = Vec::with_capacity(r.len());
            for some in stop.slices(r.values()) {
                recoded.extend(some?.iter().map(|&code| codes.get(code as usize).copied().unwrap_or(0)));
            }
            let r = Cells::new(recoded, r.valid().map(<[bool]>::to_vec));
            Column::Str(join_cells(Some(l), Some(&r), rows, stop)?, Arc::new(merged))
        }
        (Some(Column::List(l, elements)), None) => {
            Column::List(join_cells(Some(l), None, rows, stop)?, elements.clone())
        }
        (None, Some(Column::List(r, elements))) => {
            Column::List(join_cells(None, Some(r), rows, stop)?, elements.clone())
        }
        (Some(Column::List(l, le)), Some(Column::List(r, re))) if Arc::ptr_eq(le, re) => {
            Column::List(join_cells(Some(l), Some(r), rows, stop)?, le.clone())
        }
        (Some(left @ Column::List(l, le)), Some(right @ Column::List(r, re))) => {
            join_lists((l, le), (r, re), rows, stop)?.unwrap_or_else(|| disagree(left, right))
        }
        (Some(Column::Vector(l, vectors)), None) => {
            Column::Vector(join_cells(Some(l), None, rows, stop)?, vectors.clone())
        }
        (None, Some(Column::Vector(r, vectors))) => {
            Column::Vector(join_cells(None, Some(r), rows, stop)?, vectors.clone())
        }
        (Some(Column::Vector(l, lv)), Some(Column::Vector(r, rv))) if Arc::ptr_eq(lv, rv) => {
            Column::Vector(join_cells(Some(l), Some(r), rows, stop)?, lv.clone())
        }
        (Some(Column::Vector(l, lv)), Some(Column::Vector(r, rv))) if lv.dimension() == rv.dimension() => {
            let mut values = Vec::new();
            let mut cells = Cells::with_capacity(rows.0.len() + rows.1.len());
            move_cells(l, rows.0, &mut cells, stop, |at| copy_vector(lv, at, &mut values))?;
            move_cells(r, rows.1, &mut cells, stop, |at| copy_vector(rv, at, &mut values))?;
            Column::Vector(cells, Arc::new(Vectors::new(lv.dimension(), values)))
        }
        (Some(l), Some(r)) => disagree(l, r),
        (None, None) => panic!("a key of neither side"),
    })
}

/// The viewed lists of both sides over elements of their own; `None` when they are not of one type.
fn join_lists(
    (l, le): (&Cells<Span>, &Elements),
    (r, re): (&Cells<Span>, &Elements),
    rows: (Rows<'_>, Rows<'_>),
    stop: Stop<'_>,
) -> Result<Option<Column>, Stopped> {
    let (cells, elements) = match (le, re) {
        (Elements::Str(left, ld), Elements::Str(right, rd)) => {
            let (cells, mut codes, first) = join_elements((l, left), (r, right), rows, stop)?;
            if Arc::ptr_eq(ld, rd) || ld == rd {
                (cells, Elements::Str(codes, ld.clone()))
            } else {
                let (merged, recoded) = merge(ld, rd, stop)?;
                codes[first..].iter_mut().for_each(|code| *code = recoded[*code as usize]);
                (cells, Elements::Str(codes, Arc::new(merged)))
            }
        }
        (Elements::Int(left), Elements::Int(right)) => {
            let (cells, values, _) = join_elements((l, left), (r, right), rows, stop)?;
            (cells, Elements::Int(values))
        }
        (Elements::Float(left), Elements::Float(right)) => {
            let (cells, values, _) = join_elements((l, left), (r, right), rows, stop)?;
            (cells, Elements::Float(values))
        }
        (Elements::Int(_) | Elements::Float(_) | Elements::Str(..), _) => return Ok(None),
    };
    Ok(Some(Column::List(cells, Arc::new(elements))))
}

/// The lists of both sides, their elements, and where those of the right begin.
fn join_elements<T: Copy>(
    (l, left): (&Cells<Span>, &[T]),
    (r, right): (&Cells<Span>, &[T]),
    rows: (Rows<'_>, Rows<'_>),
    stop: Stop<'_>,
) -> Result<(Cells<Span>, Vec<T>, usize), Stopped> {
    let (mut cells, mut values) = (Cells::with_capacity(rows.0.len() + rows.1.len()), Vec::new());
    move_cells(l, rows.0, &mut cells, stop, |span| copy_list(left, span, &mut values))?;
    let first = values.len();
    move_cells(r, rows.1, &mut cells, stop, |span| copy_list(right, span, &mut values))?;
    Ok((cells, values, first))
}

/// Appends the viewed cells, each as `copy` makes it. Neighbours that share their elements still do.
fn move_cells<T: Copy + Default + PartialEq>(
    cells: &Cells<T>,
    rows: Rows<'_>,
    out: &mut Cells<T>,
    stop: Stop<'_>,
    mut copy: impl FnMut(T) -> T,
) -> Result<(), Stopped> {
    let mut last = None;
    let mut moved = |cell: T| match last {
        Some((old, new)) if old == cell => new,
        _ => {
            let new = copy(cell);
            last = Some((cell, new));
            new
        }
    };
    for chunk in stop.chunks(rows) {
        chunk?.iter().for_each(|row| out.push(cells.get(row).map(&mut moved)));
    }
    Ok(())
}

fn copy_list<T: Copy>(values: &[T], span: Span, out: &mut Vec<T>) -> Span {
    let start = out.len();
    out.extend_from_slice(&values[span.range()]);
    Span::new(start, out.len() - start)
}

fn copy_vector(vectors: &Vectors, at: u32, out: &mut Vec<f32>) -> u32 {
    let copied = out.len() / usize::from(vectors.dimension());
    out.extend_from_slice(vectors.get(at));
    copied as u32
}

/// Left entries, then unseen right ones; and the new code of each right entry.
fn merge(left: &Dictionary, right: &Dictionary, stop: Stop<'_>) -> Result<(Dictionary, Vec<u32>), Stopped> {
    let mut builder = DictionaryBuilder::extending(left, stop)?;
    let (mut codes, mut looks) = (Vec::with_capacity(right.len()), stop.looks());
    for entry in right.iter() {
        looks.before(1)?;
        codes.push(builder.code(entry));
    }
    Ok((builder.finish(), codes))
}

fn join_cells<T: Copy + Default>(
    left: Option<&Cells<T>>,
    right: Option<&Cells<T>>,
    rows: (Rows<'_>, Rows<'_>),
    stop: Stop<'_>,
) -> Result<Cells<T>, Stopped> {
    let len = rows.0.len() + rows.1.len();
    let sides = [(left, rows.0), (right, rows.1)];
    let mut values = Vec::with_capacity(len);
    for (cells, rows) in sides {
        match cells {
            Some(cells) => gather_all(cells.values(), rows, &mut values, stop)?,
            None => fill(T::default(), rows.len(), &mut values, stop)?,
        }
    }
    let has_nulls = sides.iter().any(|(cells, rows)| match cells {
        Some(cells) => cells.valid().is_some(),
        None => !rows.is_empty(),
    });
    if !has_nulls {
        return Ok(Cells::full(values));
    }
    let mut valid = Vec::with_capacity(len);
    for (cells, rows) in sides {
        match cells.map(Cells::valid) {
            Some(Some(mask)) => gather_all(mask, rows, &mut valid, stop)?,
            Some(None) => fill(true, rows.len(), &mut valid, stop)?,
            None => fill(false, rows.len(), &mut valid, stop)?,
        }
    }
    Ok(Cells::new(values, Some(valid)))
}

/// Appends a value so many times.
fn fill<T: Copy>(value: T, count: usize, out: &mut Vec<T>, stop: Stop<'_>) -> Result<(), Stopped> {
    for start in stop.starts(count) {
        out.resize(out.len() + ROWS_A_LOOK.min(count - start?), value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::ColumnBuilder;
    use crate::value::{Element, List, Type, Value};

    fn concat(left: &RowSet, right: &RowSet) -> RowSet {
        left.concat(right, Stop::default()).unwrap()
    }

    fn strings(entries: &[&str]) -> (Column, Arc<Dictionary>) {
        let mut builder = DictionaryBuilder::default();
        let codes = entries.iter().map(|entry| builder.code(entry)).collect();
        let dictionary = Arc::new(builder.finish());
        (Column::Str(Cells::full(codes), dictionary.clone()), dictionary)
    }

    fn rows(entries: &[&str]) -> RowSet {
        let ids = (0..entries.len() as i64).collect();
        RowSet::new(Batch::new(ids).with(Key(1), Arc::new(strings(entries).0)))
    }

    #[test]
    fn dictionaries_merge_left_first() {
        let joined = concat(&rows(&["b", "a"]), &rows(&["c", "a", "d"]));
        let Column::Str(_, dictionary) = &**joined.batch().column(Key(1)).unwrap() else { unreachable!() };
        assert_eq!(dictionary.iter().collect::<Vec<_>>(), ["b", "a", "c", "d"]);
        assert_eq!((0..5).map(|at| joined.value(Key(1), at).to_string()).collect::<String>(), r#""b""a""c""a""d""#);
    }

    #[test]
    fn an_equal_dictionary_is_reused() {
        let (left, right) = (rows(&["a", "b"]), rows(&["a", "b"]));
        let joined = concat(&left, &right);
        let (Column::Str(_, before), Column::Str(_, after)) =
            (&**left.batch().column(Key(1)).unwrap(), &**joined.batch().column(Key(1)).unwrap())
        else {
            unreachable!()
        };
        assert!(Arc::ptr_eq(before, after));
    }

    /// Rows with a list of texts each; `None` is null.
    fn lists(cells: &[Option<&[&str]>]) -> RowSet {
        let mut builder = ColumnBuilder::new(Type::List(Element::Str), cells.len());
        for cell in cells {
            let list = cell.map(|texts| List::Str(texts.iter().map(|text| (*text).into()).collect()));
            assert!(builder.push(&list.map_or(Value::Null, |list| Value::List(Arc::new(list)))));
        }
        RowSet::new(Batch::new((0..cells.len() as i64).collect()).with(Key(1), Arc::new(builder.finish())))
    }

    fn elements(rows: &RowSet) -> &Arc<Elements> {
        let Column::List(_, elements) = &**rows.batch().column(Key(1)).unwrap() else { unreachable!() };
        elements
    }

    #[test]
    fn lists_of_one_column_share_their_elements() {
        let rows = lists(&[Some(&["a", "b"]), None, Some(&["c"])]);
        let joined = concat(&rows.looking_at(vec![2, 0]), &rows.take(2));
        assert!(Arc::ptr_eq(elements(&rows), elements(&joined)));
        let alone = concat(&rows, &RowSet::new(Batch::new(vec![9])));
        assert!(Arc::ptr_eq(elements(&rows), elements(&alone)));
        assert_eq!((alone.len(), alone.value(Key(1), 3)), (4, Value::Null));
    }

    #[test]
    fn a_list_that_many_rows_have_is_copied_once() {
        let left = lists(&[Some(&["a", "b", "c"])]).looking_at(vec![0, 0, 0]);
        let joined = concat(&left, &lists(&[Some(&["d"]), None, Some(&[])]));
        assert_eq!(elements(&joined).len(), 4);
        let shown: Vec<String> = (0..6).map(|at| joined.value(Key(1), at).to_string()).collect();
        let all = r#"["a", "b", "c"]"#;
        assert_eq!(shown, [all, all, all, r#"["d"]"#, "null", "[]"]);
    }
}
