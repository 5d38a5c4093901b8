//! Collects the cells of many rows at once, for columns that are stored as such. All or none of them are added.

use super::{ColumnBuilder, Growing};
use crate::column::Cells;
use crate::dictionary::DictionaryBuilder;

/// Which rows values are for.
#[derive(Clone, Copy, Debug)]
pub enum There<'v> {
    /// Every row has one, and none is null.
    All,
    /// Every row has one, which means nothing where this says that the row is null.
    Of(&'v [bool]),
    /// Only rows that are not null have one.
    OnlyOf(&'v [bool]),
}

impl ColumnBuilder {
    /// Adds the ints of many rows. False, and nothing added, when the column has another type.
    #[must_use]
    pub fn extend_ints(&mut self, values: &[i64], there: There<'_>) -> bool {
        let Growing::Int(cells) = &mut self.cells else { return false };
        cells.extend(values, there);
        true
    }

    /// Adds the floats of many rows. False, and nothing added, when the column has another type or one of them is not finite.
    #[must_use]
    pub fn extend_floats(&mut self, values: &[f64], there: There<'_>) -> bool {
        let Growing::Float(cells) = &mut self.cells else { return false };
        // No way out at the first one: this is a loop that the compiler makes wide.
        let are_finite = values.iter().fold(true, |all, value| all & value.is_finite());
        if are_finite {
            cells.extend(values, there);
        }
        are_finite
    }

    /// Adds the bools of many rows. False, and nothing added, when the column has another type.
    #[must_use]
    pub fn extend_bools(&mut self, values: &[bool], there: There<'_>) -> bool {
        let Growing::Bool(cells) = &mut self.cells else { return false };
        cells.extend(values, there);
        true
    }

    /// Adds the strings of many rows: `code` gives the code of each that is there. False, and nothing added but to the dictionary, when
    /// the column has another type or a string has no code.
    #[must_use]
    pub fn extend_texts<V>(
        &mut self,
        values: impl ExactSizeIterator<Item = V>,
        there: There<'_>,
        mut code: impl FnMut(V, &mut DictionaryBuilder) -> Option<u32>,
    ) -> bool {
        let Growing::Str(cells, strings) = &mut self.cells else { return false };
        let codes: Option<Vec<u32>> = match there {
            There::All | There::OnlyOf(_) => values.map(|value| code(value, strings)).collect(),
            There::Of(rows) => values
                .zip(rows)
                .map(|(value, is_there)| if *is_there { code(value, strings) } else { Some(0) })
                .collect(),
        };
        codes.inspect(|codes| cells.extend(codes, there)).is_some()
    }
}

impl<T: Copy + Default> Cells<T> {
    /// Adds the cells of many rows.
    fn extend(&mut self, values: &[T], there: There<'_>) {
        let there = match there {
            // Columns that may have nulls often have none, and then need no bytes that say so.
            There::Of(rows) | There::OnlyOf(rows) if !rows.contains(&false) => There::All,
            There::All | There::Of(_) | There::OnlyOf(_) => there,
        };
        match (there, &mut self.valid) {
            (There::All, None) => {}
            (There::All, Some(valid)) => valid.resize(valid.len() + values.len(), true),
            (There::Of(rows) | There::OnlyOf(rows), Some(valid)) => valid.extend_from_slice(rows),
            (There::Of(rows) | There::OnlyOf(rows), none) => {
                let mut valid = Vec::with_capacity(self.values.capacity().max(self.values.len() + rows.len()));
                valid.resize(self.values.len(), true);
                valid.extend_from_slice(rows);
                *none = Some(valid);
            }
        }
        match there {
            There::All => self.values.extend_from_slice(values),
            There::Of(rows) => {
                let cells =
                    values.iter().zip(rows).map(|(value, is_there)| if *is_there { *value } else { T::default() });
                self.values.extend(cells);
            }
            There::OnlyOf(rows) => {
                let mut at = 0;
                self.values.extend(rows.iter().map(|is_there| {
                    let value = if *is_there { values[at] } else { T::default() };
                    at += usize::from(*is_there);
                    value
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use crate::value::Type;

    #[test]
    fn many_rows_at_once_are_as_row_by_row() {
        let rows = [true, false, true, true, false];
        let (ints, texts) = ([7, 8, 9, 10, 11], ["b", "a", "b", "", "c"]);
        let floats = ints.map(|int| int as f64 / 4.0);
        let bools = ints.map(|int| int % 2 == 0);
        let only = |at: &usize| rows[*at];
        for there in [There::All, There::Of(&rows), There::OnlyOf(&rows)] {
            let given: Vec<usize> = match there {
                There::All | There::Of(_) => (0..5).collect(),
                There::OnlyOf(_) => (0..5).filter(only).collect(),
            };
            let is_null = |row: usize| !matches!(there, There::All) && !rows[row];
            let mut slow =
                [Type::Int, Type::Float, Type::Bool, Type::Str].map(|type_of| ColumnBuilder::new(type_of, 0));
            let mut fast =
                [Type::Int, Type::Float, Type::Bool, Type::Str].map(|type_of| ColumnBuilder::new(type_of, 0));
            // Before, with and behind rows that have no nulls.
            for (there, given) in [(There::All, vec![1, 0]), (there, given), (There::All, vec![4])] {
                assert!(fast[0].extend_ints(&given.iter().map(|at| ints[*at]).collect::<Vec<_>>(), there));
                assert!(fast[1].extend_floats(&given.iter().map(|at| floats[*at]).collect::<Vec<_>>(), there));
                assert!(fast[2].extend_bools(&given.iter().map(|at| bools[*at]).collect::<Vec<_>>(), there));
                assert!(fast[3].extend_texts(given.iter(), there, |at, strings| Some(strings.code(texts[*at]))));
                let rows: Vec<usize> = if matches!(there, There::All) { given } else { (0..5).collect() };
                for row in rows {
                    if !matches!(there, There::All) && is_null(row) {
                        slow.iter_mut().for_each(ColumnBuilder::push_null);
                    } else {
                        assert!(slow[0].push_int(ints[row]) && slow[1].push_float(floats[row]));
                        assert!(slow[2].push_bool(bools[row]) && slow[3].push_str(texts[row]));
                    }
                }
            }
            for (slow, fast) in slow.into_iter().zip(fast) {
                let (slow, fast) = (slow.finish(), fast.finish());
                assert_eq!(slow.len(), fast.len());
                (0..slow.len()).for_each(|row| assert_eq!(slow.value(row), fast.value(row), "{there:?} {row}"));
                if let (Column::Str(_, slow), Column::Str(_, fast)) = (&slow, &fast) {
                    assert_eq!(slow, fast, "a null adds nothing to the dictionary");
                }
            }
        }
        let mut full = ColumnBuilder::new(Type::Int, 0);
        assert!(full.extend_ints(&[1, 2], There::Of(&[true; 2])) && full.extend_ints(&[3], There::OnlyOf(&[true])));
        assert!(full.finish().valid().is_none(), "no row is null");
        let mut builder = ColumnBuilder::new(Type::Float, 0);
        assert!(!builder.extend_floats(&[1.0, f64::NAN], There::All) && !builder.extend_ints(&[1], There::All));
        let mut texts = ColumnBuilder::new(Type::Str, 0);
        assert!(!texts.extend_texts(["a", "b"].iter(), There::All, |text, all| (*text == "a").then(|| all.code(text))));
        assert!(builder.is_empty() && texts.is_empty());
    }
}
