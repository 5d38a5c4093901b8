//! Models that are refused when they are read, each by name, and one that fails later.

use crate::model_file::{FLOAT, INT64, ModelFile, layers};
use crate::wheel::Wheel;
use crate::{random_rows, read, score};
use rankd_column::model::{ScoreError, ScoreScratch};
use rankd_column::stop::Picking;
use rankd_plan::model::ModelPlace;

/// A graph that gives back what it gets.
fn identity(input: (u64, &[Option<u64>]), output: (u64, &[Option<u64>])) -> Vec<u8> {
    let file = ModelFile::default().input("x", input.0, input.1).node("Identity", &["x"], &["y"]);
    file.output("y", output.0, output.1).finish()
}

#[test]
fn what_cannot_be_read_or_given_is_refused_by_name() {
    let Some(wheel) = Wheel::get("ONNX models that are refused") else { return };
    let (n, two) = (None, Some(2));
    let twice = |second: &[Option<u64>]| {
        let file = ModelFile::default().input("a", FLOAT, &[n, two]).input("b", FLOAT, second);
        file.node("Add", &["a", "b"], &["y"]).output("y", FLOAT, &[n, two]).finish()
    };
    let summed = || {
        let file = ModelFile::default().input("x", FLOAT, &[n, two]).node("ReduceSum", &["x"], &["y"]);
        file.output("y", FLOAT, &[n, n]).finish()
    };
    // What it declares is right, what it gives is not.
    let cut_up = || {
        let file = ModelFile::default().input("x", FLOAT, &[n, two]).ints("shape", &[2], &[-1, 1]);
        file.node("Reshape", &["x", "shape"], &["y"]).output("y", FLOAT, &[n, Some(1)]).finish()
    };
    for (model, why) in [
        (identity((INT64, &[n, two]), (INT64, &[n, two])), "the input \"x\" is a tensor of i64"),
        (identity((FLOAT, &[Some(1), two]), (FLOAT, &[Some(1), two])), "the input \"x\" has the fixed shape [1, 2]"),
        (identity((FLOAT, &[n, n]), (FLOAT, &[n, n])), "the input \"x\" leaves open how many features"),
        (identity((FLOAT, &[n, two, two]), (FLOAT, &[n, two, two])), "the input \"x\" has 3 dimensions"),
        (twice(&[n, two]), "the input \"a\" is one of several"),
        (summed(), "the output \"y\" has the fixed shape [1, 1]"),
        (cut_up(), "the output \"y\" has the shape [6, 1] for 3 rows"),
        (b"no model".to_vec(), "protobuf"),
        (Vec::new(), ""),
        (layers(&[4, 8, 1])[..200].to_vec(), ""),
    ] {
        let problem = read(&wheel.library, &model).expect_err(why);
        assert!(problem.message.to_lowercase().contains(&why.to_lowercase()), "{why}: {problem}");
        assert_eq!(problem.place, ModelPlace::File, "{problem}");
    }
}

#[test]
fn a_model_that_fails_on_some_rows_says_so_and_goes_on_with_others() {
    let Some(wheel) = Wheel::get("ONNX models that fail") else { return };
    // A table of three numbers, looked up by the first feature.
    let file = ModelFile::default().weights("table", &[3, 1], &[5.0, 6.0, 7.0]);
    let file = file.input("x", FLOAT, &[None]).node("Floor", &["x"], &["whole"]);
    let model = file.cast_to_int("whole", "at").node("Gather", &["table", "at"], &["y"]);
    let model = read(&wheel.library, &model.output("y", FLOAT, &[None, Some(1)]).finish()).unwrap();
    let mut scratch = ScoreScratch::default();
    let mut score = |rows: &[f32]| score(&model, 1, rows, &mut scratch, Picking::default());
    assert_eq!(score(&[2.0, 0.0]), Ok(vec![7.0, 5.0]));
    let failed = score(&[2.0, 9.0]);
    assert!(matches!(&failed, Err(ScoreError::Failed(fault)) if fault.0.contains("out of data bounds")), "{failed:?}");
    assert_eq!(score(&[1.0]), Ok(vec![6.0]));
}

#[test]
fn damaged_models_are_refused_or_score_rows() {
    let Some(wheel) = Wheel::get("damaged ONNX models") else { return };
    let whole = layers(&[4, 8, 1]);
    let (mut seed, rows, mut good) = (3_u64, random_rows(10, 4), 0);
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..300 {
        let mut model = whole.clone();
        (0..1 + random(3)).for_each(|_| {
            let at = random(model.len());
            model[at] = random(256) as u8;
        });
        if let Ok(model) = read(&wheel.library, &model) {
            good += 1;
            // It need not give the same numbers, and may fail.
            let _ = model.features().len() == 4
                && score(&model, 4, &rows, &mut ScoreScratch::default(), Picking::default()).is_ok();
        }
    }
    assert!((1..300).contains(&good), "{good} of 300 were read: damage to weights is not seen, damage to the graph is");
}
