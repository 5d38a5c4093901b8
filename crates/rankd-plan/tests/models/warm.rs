//! A model that was scored with once, before anybody asks: the first request finds all memory in place.

use crate::damage::CALLS;
use crate::rows::Golden;
use crate::{bytes, models};
use rankd_column::model::{ColumnInputs, ModelOutput, Scoring};
use rankd_column::rowset::Rows;
use rankd_column::stop::Picking;
use rankd_column::{Column, Type};
use rankd_plan::Registry;
use rankd_plan::model::{Format, UsedModel, read};
use rankd_plan::registry::{AsWritten, Text};

/// A registry with a model whose features are keys of these types.
fn registry(format: Format, types: &[Type]) -> Registry {
    let mut keys = String::from("[[key]]\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n");
    let mut features = Vec::new();
    for (at, type_of) in types.iter().enumerate() {
        keys += &format!("[[key]]\nname = \"f{at}\"\ntype = \"{type_of}\"\nnullable = true\n");
        features.push(format!("f{at}"));
    }
    let format = format.name();
    let models = format!("[[model]]\nname = \"m\"\nfile = \"m\"\nformat = \"{format}\"\nfeatures = {features:?}\n");
    let texts = [keys.as_str(), "", "", models.as_str()].map(|text| Text { file: "", text });
    let (registry, problems) = Registry::parse_files(&AsWritten, texts);
    assert!(problems.is_empty(), "the registry is good");
    registry
}

#[test]
fn the_first_scorings_of_a_warm_model_allocate_nothing() {
    let mut tried = 0;
    for (format, path) in models() {
        let golden = Golden::read(&bytes(&path.with_extension("rows")));
        // What texts are to a model is learned with the first that come along.
        if !golden.columns.iter().all(|column| matches!(column, Column::Float(_))) {
            continue;
        }
        let registry = registry(format, &vec![Type::Float; golden.columns.len()]);
        let bind = || UsedModel::bind(0, read(format, &bytes(&path), None).unwrap(), String::new(), &registry).unwrap();
        let columns: Vec<Option<&Column>> = golden.columns.iter().map(Some).collect();
        let rows = Rows::Range { start: 0, len: golden.rows };
        let scoring = Scoring { output: ModelOutput::Response, iterations: usize::MAX };
        let score = |used: &UsedModel, out: &mut [&mut [f64]], inner: &mut dyn FnMut(&mut [&mut [f64]])| {
            used.score(|memory| {
                let mut inputs = ColumnInputs::new(used.model(), &columns, rows, &mut memory.lookups);
                let picking = Picking::default();
                let done = used.model().score(&mut inputs, golden.rows, scoring, out, &mut memory.scratch, picking);
                inner(out);
                done
            })
        };
        let (first, second) = (bind(), bind());
        first.warm(None);
        let outputs = first.model().outputs(scoring.output);
        let mut scores = vec![vec![0.0; golden.rows]; 2 * outputs];
        let mut out: Vec<&mut [f64]> = scores.iter_mut().map(Vec::as_mut_slice).collect();
        let (one, other) = out.split_at_mut(outputs);
        let before = CALLS.get();
        assert_eq!(score(&first, one, &mut |_| {}), Ok(golden.rows));
        assert_eq!(CALLS.get(), before, "{}", path.display());
        // Two at once: the version after it is ready for as many.
        let mut nested = None;
        let done = score(&first, one, &mut |_| nested = Some(score(&first, other, &mut |_| {})));
        assert_eq!((done, nested), (Ok(golden.rows), Some(Ok(golden.rows))));
        second.warm(Some(&first));
        let (before, mut nested) = (CALLS.get(), None);
        let done = score(&second, one, &mut |_| nested = Some(score(&second, other, &mut |_| {})));
        assert_eq!(CALLS.get(), before, "{}", path.display());
        assert_eq!((done, nested), (Ok(golden.rows), Some(Ok(golden.rows))));
        assert_eq!(
            (first.rows(), second.rows()),
            (3 * golden.rows as u64, 2 * golden.rows as u64),
            "warming counts nothing"
        );
        tried += 1;
    }
    assert!(tried > 20, "{tried} models");
}
