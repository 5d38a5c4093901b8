//! Large files: what reading them takes is bounded by their size, and what is larger than the limits is refused by the name of the limit.

use crate::damage::{NOW, PEAK};
use crate::{bytes, models};
use rankd_column::model::{LEAVES_MAX, TREES_MAX};
use rankd_plan::model::{Format, MODEL_BYTES_MAX, read};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// A file of about this size is read. One of 200 MB is a matter for the bench.
const LARGE: usize = 24 << 20;
/// Bytes in memory for a byte of the file while it is read, at most.
const MEMORY_MAX: f64 = 1.5;
/// A coarse guard: the goal, for builds with all optimisations, is 10 ms a MB.
const TIME_MAX: Duration = Duration::from_secs(60);

/// A file that has so many trees: those of a golden model, again and again.
fn repeated(name: &str, trees: usize) -> String {
    let models = models();
    let (_, path) = models.iter().find(|(_, path)| path.file_name().is_some_and(|found| found == name)).unwrap();
    let text = String::from_utf8(bytes(path)).unwrap();
    let (header, rest) = text.split_once("Tree=0\n").unwrap();
    let (all, tail) = rest.split_once("end of trees").unwrap();
    // Without the lines that number them.
    let bodies: Vec<String> = all
        .split("Tree=")
        .enumerate()
        .map(|(at, tree)| if at == 0 { tree } else { tree.split_once('\n').unwrap().1 }.to_owned())
        .collect();
    let mut repeated = header.to_owned();
    for tree in 0..trees {
        write!(repeated, "Tree={tree}\n{}", bodies[tree % bodies.len()]).unwrap();
    }
    repeated + "end of trees" + tail
}

#[test]
fn a_large_file_takes_time_and_memory_by_its_size() {
    let one = repeated("lgb_regression.txt", 1_000).len() / 1_000;
    let file = repeated("lgb_regression.txt", LARGE / one);
    assert!(file.len() > LARGE / 2);
    let before = NOW.get();
    PEAK.set(before);
    #[expect(clippy::disallowed_methods, reason = "a coarse guard")]
    let start = Instant::now();
    let model = read(Format::LightGbm, file.as_bytes(), None).unwrap();
    let (took, most) = (start.elapsed(), (PEAK.get() - before) as f64 / file.len() as f64);
    assert_eq!(model.trees(), Some(LARGE / one));
    assert!(most < MEMORY_MAX, "{most} bytes for a byte of the file");
    assert!((model.bytes() as f64) < most * file.len() as f64, "{} bytes", model.bytes());
    assert!(took < TIME_MAX, "{took:?}");
    println!(
        "{} trees, {:.1} MB: {:.1} ms a MB, {most:.2} bytes at most for a byte of the file, {:.2} kept",
        LARGE / one,
        file.len() as f64 / 1e6,
        took.as_secs_f64() * 1e9 / file.len() as f64,
        model.bytes() as f64 / file.len() as f64
    );
}

#[test]
fn what_is_larger_than_a_limit_is_refused_by_its_name() {
    for format in Format::ALL {
        let problem = read(format, &vec![b' '; MODEL_BYTES_MAX + 1], None).unwrap_err().to_string();
        assert!(problem.ends_with("a model file of more than 268435456 bytes"), "{problem}");
    }
    let most = repeated("lgb_stump.txt", TREES_MAX);
    assert_eq!(read(Format::LightGbm, most.as_bytes(), None).unwrap().trees(), Some(TREES_MAX));
    let problem = read(Format::LightGbm, repeated("lgb_stump.txt", TREES_MAX + 1).as_bytes(), None).unwrap_err();
    assert!(problem.message.ends_with("more than 100000 trees"), "{problem}");
    let catboost = |trees: usize| {
        let all = vec!["{\"value\":1,\"weight\":1}"; trees].join(",");
        let feature = "{\"borders\":[1],\"feature_id\":\"\",\"feature_index\":0,\"flat_feature_index\":0,\"has_nans\":false,\"nan_value_treatment\":\"AsIs\"}";
        format!("{{\"features_info\":{{\"float_features\":[{feature}]}},\"scale_and_bias\":[1,[0]],\"trees\":[{all}]}}")
    };
    assert_eq!(read(Format::CatBoost, catboost(TREES_MAX).as_bytes(), None).unwrap().trees(), Some(TREES_MAX));
    let problem = read(Format::CatBoost, catboost(TREES_MAX + 1).as_bytes(), None).unwrap_err();
    assert!(problem.message.ends_with("more than 100000 trees"), "{problem}");
    // Trees whose leaves are all on one side.
    for leaves in [LEAVES_MAX, LEAVES_MAX + 1] {
        let result = read(Format::LightGbm, long_tree(leaves).as_bytes(), None);
        match leaves > LEAVES_MAX {
            true => assert_eq!(result.unwrap_err().message, "tree 0 does not have 1 to 65536 leaves"),
            false => assert_eq!(result.unwrap().trees(), Some(1)),
        }
    }
}

/// A file with one tree, in which each split has a leaf to its left.
fn long_tree(leaves: usize) -> String {
    let list = |of: &dyn Fn(usize) -> String, count: usize| (0..count).map(of).collect::<Vec<_>>().join(" ");
    let splits = leaves - 1;
    let left = list(&|at| (-(at as i64) - 1).to_string(), splits);
    let right =
        list(&|at| if at + 1 == splits { (-(leaves as i64)).to_string() } else { (at + 1).to_string() }, splits);
    let [zeros, ones, tens, counts] = ["0", "1", "10", "2"].map(|one| list(&|_| one.to_owned(), splits));
    let (thresholds, values) = (list(&|at| format!("{at}.5"), splits), list(&|at| at.to_string(), leaves));
    let weights = list(&|_| "1".to_owned(), leaves);
    format!(
        "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=0\nobjective=regression\nfeature_names=a\nfeature_infos=[0:9]\ntree_sizes=1\n\nTree=0\nnum_leaves={leaves}\nnum_cat=0\nsplit_feature={zeros}\nsplit_gain={ones}\nthreshold={thresholds}\ndecision_type={tens}\nleft_child={left}\nright_child={right}\nleaf_value={values}\nleaf_weight={weights}\nleaf_count={weights}\ninternal_value={zeros}\ninternal_weight={counts}\ninternal_count={counts}\nis_linear=0\nshrinkage=1\n\n\nend of trees\n\nparameters:\n[boosting: gbdt]\nend of parameters\n\npandas_categorical:null\n"
    )
}
