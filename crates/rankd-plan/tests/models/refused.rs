//! What is refused, by name and with its place.

use crate::{bytes, models};
use rankd_plan::model::{Format, read};

/// A golden model with some text in place of another: what is said of it.
fn problem(name: &str, from: &str, to: &str) -> String {
    let models = models();
    let (format, path) = models.iter().find(|(_, path)| path.file_name().is_some_and(|found| found == name)).unwrap();
    let text = String::from_utf8(bytes(path)).unwrap();
    assert!(text.contains(from), "{name} has no {from:?}");
    match read(*format, text.replacen(from, to, 1).as_bytes(), None) {
        Ok(_) => panic!("{name} is read with {to:?}"),
        Err(problem) => problem.to_string(),
    }
}

#[test]
fn what_is_not_known_is_refused_by_name_with_its_place() {
    for (name, from, to, expected) in [
        ("lgb_regression.txt", "version=v4", "version=v9", "2:9: version \"v9\" is not known; v3 and v4 are"),
        ("lgb_regression.txt", "objective=regression", "objective=mine", "7:11: objective `mine` is not known"),
        ("lgb_regression.txt", "label_index=0", "new_field=0", "5:1: a field `new_field` that is not known here"),
        ("lgb_regression.txt", "shrinkage=1", "gravity=1", "28:1: a field `gravity` that trees do not have"),
        ("lgb_regression.txt", "num_leaves=7", "num_leaves=70000", "tree 0 does not have 1 to 65536 leaves"),
        ("lgb_regression.txt", "num_leaves=7", "num_leaves=8", ": 6 numbers where there must be 7"),
        ("lgb_regression.txt", "end of trees", "", "expected a tree or `end of trees`"),
        ("lgb_regression.txt", "Tree=1", "Tree=3", "expected tree 1"),
        (
            "lgb_categories.txt",
            "pandas_categorical:[",
            "pandas_categorical:[[],",
            "`pandas_categorical` has 4 lists, but 3 features are categorical, so which list is whose is not known",
        ),
        (
            "xgb_regression.json",
            "\"gbtree\"}",
            "\"gblinear\"}",
            "the booster `gblinear` is not read; `gbtree` and `dart` are",
        ),
        ("xgb_regression.json", "reg:squarederror", "reg:mine", "the objective `reg:mine` is not read"),
        ("xgb_regression.json", "\"version\":[3", "\"version\":[9", "a version that is not known; 1, 2 and 3 are"),
        (
            "xgb_regression.json",
            "\"size_leaf_vector\":\"1\"",
            "\"size_leaf_vector\":\"3\"",
            "(`multi_output_tree`) are not read",
        ),
        (
            "xgb_regression.json",
            "\"loss_changes\"",
            "\"leaf_weights\"",
            "a field `leaf_weights` that is not known in a tree",
        ),
        ("xgb_regression.json", "\"left_children\":[1,", "\"left_children\":[0,", "reached twice"),
        ("xgb_regression.json", "\"left_children\":[1,", "\"left_children\":[99,", "does not exist"),
        (
            "cb_rmse.json",
            "\"split_type\":\"FloatFeature\"",
            "\"split_type\":\"OnlineCtr\"",
            "a split of the type `OnlineCtr` is not read",
        ),
        (
            "cb_rmse.json",
            "\"float_features\"",
            "\"categorical_features\"",
            "`categorical_features` are not read; only a model of numbers is",
        ),
        ("cb_rmse.json", "\"AsFalse\"", "\"AsUsual\"", "`nan_value_treatment` \"AsUsual\" is not known"),
        ("cb_rmse.json", "\"type\":\"RMSE\"", "\"type\":\"Focal\"", "the loss `Focal` is not read"),
        ("cb_rmse.json", "\"oblivious_trees\"", "\"ctr_data\"", "a field `ctr_data` that is not known in a model"),
    ] {
        let found = problem(name, from, to);
        assert!(found.contains(expected), "{name}: {found}");
        let (line, rest) = found.split_once(':').unwrap();
        assert!(line.parse::<usize>().is_ok() && rest.split_once(':').is_some(), "{found}");
    }
}

#[test]
fn what_is_no_model_is_refused() {
    for format in Format::ALL {
        assert_eq!(Format::named(format.name()), Some(format));
        for bytes in [&b""[..], b"\xff\xfe", b"{", b"[]", b"tree\n", b"{}", b"{L\0\0\0\0\0\0\0\x01a"] {
            assert!(read(format, bytes, None).is_err(), "{format:?} {bytes:?}");
        }
    }
    assert_eq!(Format::named("pickle"), None);
}

#[test]
fn nesting_and_long_claims_end() {
    // A thousand splits in each other, and far more.
    let nested = |depth: usize| {
        let leaf = "{\"value\":1,\"weight\":1}";
        let split =
            "\"split\":{\"border\":1,\"float_feature_index\":0,\"split_index\":0,\"split_type\":\"FloatFeature\"}";
        let open = "{\"left\":".repeat(depth);
        let close = format!(",\"right\":{leaf},{split}}}").repeat(depth);
        format!(
            "{{\"features_info\":{{\"float_features\":[{{\"borders\":[1],\"feature_id\":\"\",\"feature_index\":0,\"flat_feature_index\":0,\
             \"has_nans\":false,\"nan_value_treatment\":\"AsIs\"}}]}},\"scale_and_bias\":[1,[0]],\"trees\":[{open}{leaf}{close}]}}"
        )
    };
    let model = read(Format::CatBoost, nested(1_000).as_bytes(), None).unwrap();
    assert_eq!((model.trees(), model.iterations()), (Some(1), Some(1)));
    let problem = read(Format::CatBoost, nested(100_000).as_bytes(), None).unwrap_err();
    assert_eq!(problem.message, "nested too deeply");
    // An array of a quintillion numbers, of which none is there.
    let mut claim = b"{L\0\0\0\0\0\0\0\x07version[$l#L".to_vec();
    claim.extend((1_i64 << 60).to_be_bytes());
    assert_eq!(
        read(Format::XgBoost, &claim, None).unwrap_err().to_string(),
        format!("byte {}: the file ends inside a number", claim.len())
    );
}
