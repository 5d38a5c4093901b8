//! Rows and what a library made of them, as `make_golden.py` writes them, and the comparison with what we make of them.

use rankd_column::column::ColumnBuilder;
use rankd_column::model::{ColumnInputs, Lookups, Model, ModelOutput, NoContributions, ScoreScratch, Scoring};
use rankd_column::rowset::Rows;
use rankd_column::stop::{Picking, Stop};
use rankd_column::{Cells, Column, Type, Value};
use rankd_plan::model::Format;

/// The contents of a `.rows` file.
pub(crate) struct Golden {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Column>,
    /// Row by row.
    pub(crate) raw: Vec<f64>,
    pub(crate) raw_outputs: usize,
    pub(crate) response: Vec<f64>,
    /// Row by row, output by output, the expected value last.
    pub(crate) contributions: Vec<f64>,
    pub(crate) explained_rows: usize,
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn int(&mut self) -> usize {
        u32::from_le_bytes(*self.take(4).first_chunk().unwrap()) as usize
    }

    fn doubles(&mut self, count: usize) -> Vec<f64> {
        self.take(8 * count).as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
    }
}

impl Golden {
    pub(crate) fn read(bytes: &[u8]) -> Golden {
        let mut bytes = Bytes(bytes);
        let [rows, features, raw_outputs, response_outputs, explained_rows] = [(); 5].map(|()| bytes.int());
        let kinds: Vec<(usize, Vec<String>)> = (0..features)
            .map(|_| {
                let kind = bytes.int();
                let count = if kind == 1 { bytes.int() } else { 0 };
                let mut text = || {
                    let len = bytes.int();
                    String::from_utf8(bytes.take(len).to_vec()).unwrap()
                };
                (kind, (0..count).map(|_| text()).collect())
            })
            .collect();
        let values = bytes.doubles(rows * features);
        let raw = bytes.doubles(rows * raw_outputs);
        let response = bytes.doubles(rows * response_outputs);
        let contributions = bytes.doubles(bytes.0.len() / 8);
        let column = |(at, (kind, texts)): (usize, &(usize, Vec<String>))| {
            let cells = values.iter().skip(at).step_by(features).map(|value| (!value.is_nan()).then_some(*value));
            match kind {
                0 => Column::Float(cells.collect::<Cells<f64>>()),
                1 => {
                    let mut column = ColumnBuilder::new(Type::Str, rows);
                    cells.for_each(|cell| {
                        assert!(column.push(&cell.map_or(Value::Null, |at| Value::str(&texts[at as usize]))));
                    });
                    column.finish()
                }
                2 => Column::Int(cells.map(|cell| cell.map(|value| value as i64)).collect()),
                _ => Column::Bool(cells.map(|cell| cell.map(|value| value == 1.0)).collect()),
            }
        };
        let columns = kinds.iter().enumerate().map(column).collect();
        Golden { rows, columns, raw, raw_outputs, response, contributions, explained_rows }
    }

    /// Scores all rows, row by row.
    pub(crate) fn score(&self, model: &Model, output: ModelOutput, scratch: &mut ScoreScratch) -> Vec<f64> {
        let columns: Vec<Option<&Column>> = self.columns.iter().map(Some).collect();
        let mut lookups = Lookups::default();
        let mut inputs = ColumnInputs::new(model, &columns, Rows::Range { start: 0, len: self.rows }, &mut lookups);
        let outputs = model.outputs(output);
        let mut out = vec![vec![0.0; self.rows]; outputs];
        let mut slices: Vec<&mut [f64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
        let scoring = Scoring { output, iterations: usize::MAX };
        let done = model.score(&mut inputs, self.rows, scoring, &mut slices, scratch, Picking::default());
        assert_eq!(done, Ok(self.rows));
        (0..self.rows).flat_map(|row| out.iter().map(move |scores| scores[row])).collect()
    }

    /// How many raw scores differ in any bit, by how many units in the last place a response differs at most, and the largest difference
    /// of a contribution.
    pub(crate) fn compare(&self, format: Format, model: &Model) -> Compared {
        let mut scratch = ScoreScratch::default();
        let raw = self.score(model, ModelOutput::Raw, &mut scratch);
        let response = self.score(model, ModelOutput::Response, &mut scratch);
        assert_eq!((raw.len(), response.len()), (self.raw.len(), self.response.len()), "as many numbers a row");
        let single = matches!(format, Format::XgBoost);
        let apart = response.iter().zip(&self.response).map(|(ours, theirs)| units(*ours, *theirs, single));
        Compared {
            wrong_raw: raw.iter().zip(&self.raw).filter(|(ours, theirs)| ours.to_bits() != theirs.to_bits()).count(),
            response_units: apart.max().unwrap_or(0),
            contribution_error: self.contribution_error(model, &raw, &mut scratch),
        }
    }

    fn contribution_error(&self, model: &Model, raw: &[f64], scratch: &mut ScoreScratch) -> Option<f64> {
        let columns: Vec<Option<&Column>> = self.columns.iter().map(Some).collect();
        let mut lookups = Lookups::default();
        let mut inputs = ColumnInputs::new(model, &columns, Rows::Range { start: 0, len: self.rows }, &mut lookups);
        let mut worst = 0.0_f64;
        let mut theirs = self.contributions.iter();
        for row in 0..self.explained_rows {
            let ours = match model.contributions(
                &mut inputs,
                row,
                0..self.raw_outputs,
                usize::MAX,
                scratch,
                Stop::default(),
            ) {
                Ok(ours) => ours,
                Err(NoContributions::Linear | NoContributions::NoCovers) => return None,
                Err(other) => panic!("{other}"),
            };
            for (output, ours) in ours.iter().enumerate() {
                let sum = ours.features.iter().sum::<f64>() + ours.expected;
                let score = raw[row * self.raw_outputs + output];
                let slack = if score.abs() > 1.0 { score.abs() } else { 1.0 };
                assert!((sum - score).abs() <= 1e-5 * slack, "row {row}: contributions add up to {sum}, not {score}");
                for ours in ours.features.iter().chain([&ours.expected]) {
                    worst = worst.max((ours - theirs.next().unwrap()).abs());
                }
            }
        }
        Some(worst)
    }
}

#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) wrong_raw: usize,
    pub(crate) response_units: u64,
    pub(crate) contribution_error: Option<f64>,
}

/// How far contributions may be from the library's.
pub(crate) fn contribution_limit(format: Format) -> f64 {
    match format {
        Format::LightGbm => 1e-9,
        Format::XgBoost => 1e-5,
        Format::CatBoost => 1e-6,
        Format::Onnx => panic!("only trees have contributions"),
    }
}

/// How many units in the last place a response may be off.
pub(crate) const RESPONSE_LIMIT: u64 = 2;

/// How many floats two numbers are apart.
fn units(a: f64, b: f64, single: bool) -> u64 {
    fn ordered(bits: i64) -> i64 {
        if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits }
    }
    let key = |value: f64| match single {
        true => {
            let bits = (value as f32).to_bits() as i32;
            i64::from(if bits < 0 { i32::MIN.wrapping_sub(bits) } else { bits })
        }
        false => ordered(value.to_bits() as i64),
    };
    key(a).abs_diff(key(b))
}
