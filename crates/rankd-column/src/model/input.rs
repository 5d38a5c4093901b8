//! Where a model's values come from: any source that can fill a block, and columns as row sets have them.

use super::Model;
use super::feature::{Categories, FeatureKind};
use crate::column::{Cells, Column};
use crate::dictionary::Dictionary;
use crate::rowset::Rows;
use std::sync::{Arc, Weak};

/// Values for a model, feature by feature, a block of rows at a time. A value that is not there is NaN.
pub trait Inputs {
    /// Fills `values` with those of the rows from `from` on.
    fn read(&mut self, feature: usize, from: usize, values: &mut [f64]);
}

/// A closure is a source, too.
impl<F: FnMut(usize, usize, &mut [f64])> Inputs for F {
    fn read(&mut self, feature: usize, from: usize, values: &mut [f64]) {
        self(feature, from, values);
    }
}

/// What the texts of dictionaries are to a model: kept from one scoring to the next, so that a text is looked up once.
#[derive(Default)]
pub struct Lookups {
    /// By feature.
    known: Vec<Option<KnownTexts>>,
}

struct KnownTexts {
    /// Weak, so that a table that is gone is not kept. While it is here, no other dictionary has its address.
    dictionary: Weak<Dictionary>,
    positions: Vec<f64>,
}

/// Not looked up yet: a NaN that no lookup gives.
const UNKNOWN: u64 = 0x7ff8_dead_beef_0000;

/// The columns of a row set as a model's features. A feature without a column is missing in every row.
pub struct ColumnInputs<'a> {
    model: &'a Model,
    columns: &'a [Option<&'a Column>],
    rows: Rows<'a>,
    lookups: &'a mut Lookups,
}

impl<'a> ColumnInputs<'a> {
    /// With a column for each feature. A column of a type that a feature does not [take](super::Feature::takes) is missing in every row: the
    /// caller has checked types before.
    pub fn new(
        model: &'a Model,
        columns: &'a [Option<&'a Column>],
        rows: Rows<'a>,
        lookups: &'a mut Lookups,
    ) -> ColumnInputs<'a> {
        ColumnInputs { model, columns, rows, lookups }
    }
}

impl Inputs for ColumnInputs<'_> {
    fn read(&mut self, feature: usize, from: usize, values: &mut [f64]) {
        let rows = self.rows.slice(from, values.len());
        let kind = self.model.features.get(feature).map(|feature| &feature.kind);
        match (self.columns.get(feature).copied().flatten(), kind) {
            (Some(Column::Float(cells)), Some(FeatureKind::Number)) => fill(cells, rows, values, |value| value),
            (Some(Column::Int(cells)), Some(FeatureKind::Number)) => fill(cells, rows, values, |value| value as f64),
            (Some(Column::Bool(cells)), Some(FeatureKind::Number)) => {
                fill(cells, rows, values, |value| f64::from(u8::from(value)));
            }
            (Some(Column::Int(cells)), Some(FeatureKind::Category(list))) => {
                fill(cells, rows, values, |value| list.of_int(value));
            }
            (Some(Column::Bool(cells)), Some(FeatureKind::Category(list))) => {
                fill(cells, rows, values, |value| list.of_bool(value));
            }
            (Some(Column::Str(cells, dictionary)), Some(FeatureKind::Category(list))) => {
                let positions = self.lookups.of(feature, dictionary);
                fill(cells, rows, values, |code| position(positions, dictionary, list, code));
            }
            (
                Some(Column::Float(_) | Column::Str(..) | Column::List(..) | Column::Vector(..)) | None,
                Some(FeatureKind::Number | FeatureKind::Category(_)) | None,
            )
            | (Some(Column::Int(_) | Column::Bool(_)), None) => values.fill(f64::NAN),
        }
    }
}

impl Lookups {
    /// The positions that are known of a dictionary's texts.
    fn of(&mut self, feature: usize, dictionary: &Arc<Dictionary>) -> &mut [f64] {
        if self.known.len() <= feature {
            self.known.resize_with(feature + 1, || None);
        }
        let known =
            self.known[feature].get_or_insert_with(|| KnownTexts { dictionary: Weak::new(), positions: Vec::new() });
        if !std::ptr::eq(known.dictionary.as_ptr(), Arc::as_ptr(dictionary)) {
            known.dictionary = Arc::downgrade(dictionary);
            known.positions.clear();
            known.positions.resize(dictionary.len(), f64::from_bits(UNKNOWN));
        }
        &mut known.positions
    }
}

fn position(positions: &mut [f64], dictionary: &Dictionary, list: &Categories, code: u32) -> f64 {
    let known = &mut positions[code as usize];
    if known.to_bits() == UNKNOWN {
        *known = list.of_text(dictionary.get(code));
    }
    *known
}

fn fill<T: Copy + Default>(cells: &Cells<T>, rows: Rows<'_>, values: &mut [f64], mut number: impl FnMut(T) -> f64) {
    match (rows, cells.valid()) {
        (Rows::Range { start, len }, None) => {
            let cells = &cells.values()[start..start + len];
            values.iter_mut().zip(cells).for_each(|(value, cell)| *value = number(*cell));
        }
        (Rows::Range { start, len }, Some(valid)) => {
            let cells = cells.values()[start..start + len].iter().zip(&valid[start..start + len]);
            values.iter_mut().zip(cells).for_each(|(value, (cell, there))| {
                *value = if *there { number(*cell) } else { f64::NAN };
            });
        }
        (Rows::Listed(rows), _) => {
            values.iter_mut().zip(rows).for_each(|(value, row)| {
                *value = cells.get(*row as usize).map_or(f64::NAN, &mut number);
            });
        }
    }
}
