//! A model whose file changes a hundred times under load, every other time to one that cannot be used: cut off, or with a feature that the plan does not
//! write. No request may fail, no answer may be of two versions, and the last good version stays.

use crate::faults::load::{Answer, Load, Step, post};
use crate::faults::stage::{Folder, metric, node, noted, plan, table, told};
use crate::faults::tally::Tally;
use crate::http::server::{Server, repository};
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const NAME: &str = "scored";
const TREES: usize = 500;
const SWAPS: usize = 100;
const RATE: f64 = 500.0;
const ROWS: usize = 1_000;
/// Rows that an answer has.
const SHOWN: usize = 20;

/// A version of the model, whose score of every row is its number: each tree has four leaves with the same value. Powers of two, so that sums are exact.
fn version(number: usize) -> String {
    let leaf = number as f64 / 512.0;
    let mut text = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=0\nobjective=regression\nfeature_names=quality\nfeature_infos=[0:1]\ntree_sizes=1\n\n".to_owned();
    for tree in 0..TREES {
        let at = 0.9 * (tree + 1) as f64 / TREES as f64;
        let thresholds = format!("{at} {} {}", at / 2.0, at + 0.05);
        let _ = write!(
            text,
            "Tree={tree}\nnum_leaves=4\nnum_cat=0\nsplit_feature=0 0 0\nsplit_gain=1 1 1\nthreshold={thresholds}\ndecision_type=10 10 10\nleft_child=1 -1 -3\nright_child=2 -2 -4\nleaf_value={leaf} {leaf} {leaf} {leaf}\nleaf_weight=1 1 1 1\nleaf_count=1 1 1 1\ninternal_value=0 0 0\ninternal_weight=4 2 2\ninternal_count=4 2 2\nis_linear=0\nshrinkage=1\n\n\n"
        );
    }
    text + "end of trees\n\nparameters:\n[boosting: gbdt]\nend of parameters\n\npandas_categorical:null\n"
}

/// The score of every row of a version.
fn score(number: usize) -> f64 {
    TREES as f64 * (number as f64 / 512.0)
}

fn write(path: &Path, text: &[u8]) {
    let aside = path.with_extension("aside");
    std::fs::write(&aside, text).expect("a model can be written");
    std::fs::rename(aside, path).expect("a file can be renamed");
}

fn registry(folder: &Folder, file: &Path) {
    for name in ["keys.toml", "params.toml"] {
        std::fs::copy(repository().join("registry").join(name), folder.path().join(name)).expect("a copy");
    }
    let model = format!("[[model]]\nname = \"ctr\"\nfile = \"{}\"\nformat = \"lightgbm\"\n", file.display());
    for (name, text) in [("models.toml", &*model), ("endpoints.local.toml", "")] {
        std::fs::write(folder.path().join(name), text).expect("a registry can be written");
    }
}

fn reloads(server: &Server) -> [f64; 2] {
    ["ok", "failed"]
        .map(|outcome| metric(server, &format!("rankd_model_reloads_total{{model=\"ctr\",outcome=\"{outcome}\"}}")))
}

pub fn run() {
    println!("\n## A model of {TREES} trees is swapped\n");
    table();
    let (plans, files) = (Folder::new(), Folder::new());
    let path = files.path().join("ctr.txt");
    registry(&files, &path);
    write(&path, version(1).as_bytes());
    let rows = format!("\"row_count\":{ROWS},\"columns\":{{\"quality\":{{\"cycle\":[0.1,0.9,0.4,0.7]}}}}");
    // Scored twice, with a pause between: both must be of one version.
    let nodes = [
        node("n0", "fixed_source", &[], &rows),
        node("n1", "model", &["n0"], "\"model\":\"ctr\",\"out_key\":\"score\""),
        node("n2", "sleep", &["n1"], "\"duration_ms\":2"),
        node("n3", "model", &["n2"], "\"model\":\"ctr\",\"out_key\":\"final_score\""),
        node("n4", "take", &["n3"], &format!("\"count\":{SHOWN}")),
    ];
    plans.plan(NAME, &plan(NAME, &nodes, "n4"));
    let registry = files.path().to_str().expect("a path in words");
    let server = Server::rankd(plans.path(), &["--deadline-ms", "100", "--watch-ms", "5", "--registry", registry]);
    let body = r#"{"user_id":1,"output_keys":["score","final_score"]}"#;
    server.send(&post(NAME, body)).expect("it answers");
    let before = server.resident();
    let highest = AtomicUsize::new(1);
    let right = |_: usize, answer: &str| is_one_version(answer, highest.load(Ordering::Relaxed));
    let began = Instant::now();
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let change = scope.spawn(|| {
            for swap in 0..SWAPS {
                let number = swap + 2;
                let text = version(number);
                match swap % 4 {
                    0 => write(&path, &text.as_bytes()[..text.len() / 2]),
                    2 => write(&path, text.replace("feature_names=quality", "feature_names=rank_hint").as_bytes()),
                    _ => {
                        highest.store(number, Ordering::Relaxed);
                        write(&path, text.as_bytes());
                    }
                }
                while reloads(&server).iter().sum::<f64>() < (swap + 1) as f64 {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        let mut answers = Vec::new();
        while !change.is_finished() {
            let (requests, steps) = ([post(NAME, body)], [Step { rate: RATE, time: Duration::from_secs(1) }]);
            let address = &server.address;
            let load = Load { address, connections: 64, requests: &requests, steps: &steps, retries: 0, right: &right };
            answers.extend(load.drive());
        }
        change.join().expect("the file changes");
        answers
    });
    let took = began.elapsed().as_secs_f64();
    let last = server.send(&post(NAME, body)).expect("it answers");
    let [taken, refused] = reloads(&server);
    noted("versions taken, refused", &format!("{taken:.0}, {refused:.0} in {took:.1} s"));
    let tally = Tally::of(&answers);
    assert_eq!((tally.unanswered(), tally.wrong()), (0, 0), "unanswered, and mixed or never good");
    let (all, failed) = (tally.all(), tally.all() - tally.with(200));
    told(&format!("failed of {all} requests"), &failed.to_string(), "0", failed == 0);
    told("mixed, or of a version that was never good", "0", "0", true);
    // The last of the changes is a good one.
    let is_last = scores(&last).first() == Some(&score(SWAPS + 1));
    told("the last good version is in use", if is_last { "yes" } else { "no" }, "yes", is_last);
    noted("p50 and p99, ms", &format!("{:.2}, {:.1}", tally.good_ms(50.0), tally.good_ms(99.0)));
    noted("memory before, at most, MB", &format!("{before:.0}, {:.0}", server.most_resident()));
}

/// All scores of an answer, whichever key they have.
fn scores(answer: &str) -> Vec<f64> {
    let values = answer.split("score\":").skip(1).filter_map(|rest| rest.split([',', '}']).next()?.parse().ok());
    values.collect()
}

/// Whether all rows have one score twice, of a version that was good.
fn is_one_version(answer: &str, highest: usize) -> bool {
    let scores = scores(answer);
    let known = (1..=highest).any(|number| Some(&score(number)) == scores.first());
    known && scores.len() == 2 * SHOWN && scores.iter().all(|score| *score == scores[0])
}
