//! A large model as LightGBM writes one, without training it: trees of 256 leaves that look like trained ones.

use std::fmt::Write;

const FEATURES: usize = 100;
const LEAVES: usize = 256;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        ((self.0 >> 33) % limit as u64) as usize
    }

    /// From -1 to 1, with as many digits as numbers of a training have.
    fn number(&mut self) -> f64 {
        self.below(1 << 30) as f64 / 3.0 / f64::from(1 << 28) - 1.0
    }
}

/// The text of a model of at least so many bytes.
pub fn text(bytes: usize) -> String {
    let random = &mut Random(1);
    let names: Vec<String> = (0..FEATURES).map(|at| format!("f{at}")).collect();
    let infos = vec!["[-1:1]"; FEATURES].join(" ");
    let (last, names) = (FEATURES - 1, names.join(" "));
    let mut text = String::with_capacity(bytes + 100_000);
    let _ = write!(
        text,
        "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx={last}\nobjective=regression\nfeature_names={names}\nfeature_infos={infos}\ntree_sizes=1\n\n"
    );
    let mut trees = 0;
    while text.len() < bytes {
        tree(trees, random, &mut text);
        trees += 1;
    }
    text + "end of trees\n\nparameters:\n[boosting: gbdt]\nend of parameters\n\npandas_categorical:null\n"
}

/// A tree in which all leaves are equally deep.
fn tree(number: usize, random: &mut Random, text: &mut String) {
    let splits = LEAVES - 1;
    let mut line = |name: &str, count: usize, value: &mut dyn FnMut(usize) -> String| {
        let values: Vec<String> = (0..count).map(value).collect();
        let _ = writeln!(text, "{name}={}", values.join(" "));
    };
    let child = |at: usize| if at < splits { at as i64 } else { -((at - splits) as i64) - 1 };
    line("Tree", 1, &mut |_| number.to_string());
    line("num_leaves", 1, &mut |_| LEAVES.to_string());
    line("num_cat", 1, &mut |_| "0".to_owned());
    line("split_feature", splits, &mut |_| random.below(FEATURES).to_string());
    line("split_gain", splits, &mut |_| (random.number() * 100.0).abs().to_string());
    line("threshold", splits, &mut |_| random.number().to_string());
    line("decision_type", splits, &mut |_| ["2", "8", "10"][random.below(3)].to_owned());
    line("left_child", splits, &mut |at| child(2 * at + 1).to_string());
    line("right_child", splits, &mut |at| child(2 * at + 2).to_string());
    line("leaf_value", LEAVES, &mut |_| random.number().to_string());
    line("leaf_weight", LEAVES, &mut |_| "20".to_owned());
    line("leaf_count", LEAVES, &mut |_| "20".to_owned());
    line("internal_value", splits, &mut |_| random.number().to_string());
    line("internal_weight", splits, &mut |_| "40".to_owned());
    line("internal_count", splits, &mut |_| "40".to_owned());
    text.push_str("is_linear=0\nshrinkage=0.1\n\n\n");
}
