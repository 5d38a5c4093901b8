//! One tree of a LightGBM file.

use super::lightgbm::{Line, ModelLines};
use super::problem::{ModelProblem, Read};
use rankd_column::model::{Branch, Builder, LEAVES_MAX, LinearLeaf, Missing, Split, SplitTest, TreeSource};

/// The fields of one tree as they are written; kept for the next one.
#[derive(Default)]
struct TreeFields<'a> {
    num_leaves: Option<Line<'a>>,
    num_cat: Option<Line<'a>>,
    is_linear: Option<Line<'a>>,
    split_feature: Option<Line<'a>>,
    threshold: Option<Line<'a>>,
    decision_type: Option<Line<'a>>,
    left_child: Option<Line<'a>>,
    right_child: Option<Line<'a>>,
    leaf_value: Option<Line<'a>>,
    leaf_count: Option<Line<'a>>,
    internal_count: Option<Line<'a>>,
    cat_boundaries: Option<Line<'a>>,
    cat_threshold: Option<Line<'a>>,
    leaf_const: Option<Line<'a>>,
    num_features: Option<Line<'a>>,
    leaf_features: Option<Line<'a>>,
    leaf_coeff: Option<Line<'a>>,
}

/// Room for the numbers of one tree.
#[derive(Default)]
pub(super) struct Scratch {
    features: Vec<u32>,
    thresholds: Vec<f64>,
    decisions: Vec<u8>,
    left: Vec<i32>,
    right: Vec<i32>,
    counts: Vec<f64>,
    leaves: Vec<f64>,
    leaf_counts: Vec<f64>,
    boundaries: Vec<u32>,
    words: Vec<u32>,
    is_set_used: Vec<bool>,
    splits: Vec<Split>,
    categories: Vec<u32>,
    linear: Vec<LinearLeaf>,
}

/// Reads a tree, whose first line was read already. The line behind it.
pub(super) fn read_tree<'a>(
    lines: &mut ModelLines<'a>,
    at: usize,
    outputs: usize,
    builder: &mut Builder,
    scratch: &mut Scratch,
) -> Read<Line<'a>> {
    let (fields, next) = TreeFields::read(lines)?;
    let tree = builder.trees();
    let missing = |name: &str| ModelProblem::new(at, format!("tree {tree} has no `{name}`"));
    let leaf_count: usize = fields.num_leaves.ok_or_else(|| missing("num_leaves"))?.parsed("a number of leaves")?;
    if leaf_count == 0 || leaf_count > LEAVES_MAX {
        return Err(ModelProblem::new(at, format!("tree {tree} does not have 1 to {LEAVES_MAX} leaves")));
    }
    let split_count = leaf_count - 1;
    let s = scratch;
    let required = |line: Option<Line<'a>>, name: &str| match line {
        // A tree of one leaf may leave out what splits have.
        None if split_count == 0 && name != "leaf_value" => Ok(Line { at, text: "" }),
        line => line.ok_or_else(|| missing(name)),
    };
    numbers(required(fields.split_feature, "split_feature")?, split_count, "a feature", &mut s.features)?;
    numbers(required(fields.threshold, "threshold")?, split_count, "a threshold", &mut s.thresholds)?;
    numbers(required(fields.decision_type, "decision_type")?, split_count, "a decision type", &mut s.decisions)?;
    numbers(required(fields.left_child, "left_child")?, split_count, "a child", &mut s.left)?;
    numbers(required(fields.right_child, "right_child")?, split_count, "a child", &mut s.right)?;
    numbers(required(fields.leaf_value, "leaf_value")?, leaf_count, "a leaf value", &mut s.leaves)?;
    // Without these, only contributions are lost.
    optional(fields.internal_count, split_count, &mut s.counts)?;
    optional(fields.leaf_count, leaf_count, &mut s.leaf_counts)?;
    s.read_categories(&fields)?;
    s.splits.clear();
    for at in 0..split_count {
        let line = required(fields.decision_type, "decision_type")?;
        let test = s.test(at, tree, line, builder)?;
        s.splits.push(Split {
            feature: s.features[at],
            test,
            left: branch(s.left[at]),
            right: branch(s.right[at]),
            cover: s.counts.get(at).copied().unwrap_or(f64::NAN),
        });
    }
    s.read_linear(&fields, leaf_count, builder.feature_count())?;
    let source = TreeSource {
        iteration: (tree / outputs) as u32,
        output: (tree % outputs) as u32,
        splits: &s.splits,
        leaves: &s.leaves,
        leaf_covers: &s.leaf_counts,
        linear: &s.linear,
    };
    builder.tree(source).map_err(|fault| ModelProblem::tree(at, tree, fault))?;
    Ok(next)
}

/// Leaves are negative.
fn branch(child: i32) -> Branch {
    match u32::try_from(child) {
        Ok(split) => Branch::Split(split),
        Err(_) => Branch::Leaf(!child as u32),
    }
}

impl<'a> TreeFields<'a> {
    fn read(lines: &mut ModelLines<'a>) -> Read<(TreeFields<'a>, Line<'a>)> {
        let mut fields = TreeFields::default();
        loop {
            let Some(line) = lines.next_full() else { return lines.ended("inside a tree") };
            let Some((name, value)) = line.field() else { return Ok((fields, line)) };
            let field = match name {
                "Tree" => return Ok((fields, line)),
                "num_leaves" => &mut fields.num_leaves,
                "num_cat" => &mut fields.num_cat,
                "is_linear" => &mut fields.is_linear,
                "split_feature" => &mut fields.split_feature,
                "threshold" => &mut fields.threshold,
                "decision_type" => &mut fields.decision_type,
                "left_child" => &mut fields.left_child,
                "right_child" => &mut fields.right_child,
                "leaf_value" => &mut fields.leaf_value,
                "leaf_count" => &mut fields.leaf_count,
                "internal_count" => &mut fields.internal_count,
                "cat_boundaries" => &mut fields.cat_boundaries,
                "cat_threshold" => &mut fields.cat_threshold,
                "leaf_const" => &mut fields.leaf_const,
                "num_features" => &mut fields.num_features,
                "leaf_features" => &mut fields.leaf_features,
                "leaf_coeff" => &mut fields.leaf_coeff,
                // What training noted down; the leaves have the shrinkage in them.
                "split_gain" | "leaf_weight" | "internal_value" | "internal_weight" | "shrinkage" => continue,
                name => return line.fail(format!("a field `{name}` that trees do not have")),
            };
            if field.replace(value).is_some() {
                return line.fail("a field that was given before");
            }
        }
    }
}

impl Scratch {
    fn read_categories(&mut self, fields: &TreeFields<'_>) -> Read<()> {
        let sets = match fields.num_cat {
            Some(line) => line.parsed::<usize>("a number of sets")?,
            None => 0,
        };
        (self.boundaries, self.words) = (Vec::new(), Vec::new());
        if sets == 0 {
            return Ok(());
        }
        let (Some(boundaries), Some(words)) = (fields.cat_boundaries, fields.cat_threshold) else {
            return match fields.num_cat {
                Some(line) => line.fail("sets of categories without `cat_boundaries` or `cat_threshold`"),
                None => Ok(()),
            };
        };
        let Some(count) = sets.checked_add(1) else { return boundaries.fail("too many sets of categories") };
        numbers(boundaries, count, "a boundary", &mut self.boundaries)?;
        if !self.boundaries.is_sorted() || self.boundaries.first() != Some(&0) {
            return boundaries.fail("boundaries that do not ascend from 0");
        }
        self.is_set_used.clear();
        self.is_set_used.resize(sets, false);
        numbers(words, self.boundaries[sets] as usize, "a word of a set", &mut self.words)
    }

    fn test(&mut self, at: usize, tree: usize, line: Line<'_>, builder: &mut Builder) -> Read<SplitTest> {
        const CATEGORICAL: u8 = 1;
        const LEFT: u8 = 2;
        let (decision, threshold) = (self.decisions[at], self.thresholds[at]);
        let right = decision & LEFT == 0;
        let missing = match decision >> 2 {
            0 => Missing::IsZero,
            1 => Missing::GoesWithZero { right },
            2 => Missing::Goes { right },
            _ => {
                return line
                    .fail(format!("tree {tree}: split {at} has the decision type {decision}, which is not known"));
            }
        };
        if decision & CATEGORICAL == 0 {
            // A split of what is missing from all else: no number is above it.
            let threshold = if threshold == f64::INFINITY { f64::MAX } else { threshold };
            return Ok(SplitTest::Above { threshold, missing });
        }
        let set = threshold as usize;
        let bounds = (self.boundaries.get(set), self.boundaries.get(set + 1));
        let (true, (Some(&from), Some(&to))) = (threshold >= 0.0 && threshold.fract() == 0.0, bounds) else {
            return line.fail(format!("tree {tree}: split {at} has a set of categories that does not exist"));
        };
        if std::mem::replace(&mut self.is_set_used[set], true) {
            return line.fail(format!("tree {tree}: split {at} has a set of categories that another split has"));
        }
        self.categories.clear();
        for (word, first) in self.words[from as usize..to as usize].iter().zip((0u32..).step_by(32)) {
            self.categories.extend((0..32).filter(|bit| word >> bit & 1 == 1).map(|bit| first + bit));
        }
        // What is missing goes right, whatever the other bits say.
        Ok(builder.members(self.features[at], &self.categories, false, true))
    }

    fn read_linear(&mut self, fields: &TreeFields<'_>, leaf_count: usize, features: usize) -> Read<()> {
        self.linear.clear();
        match fields.is_linear {
            None => return Ok(()),
            Some(line) => match line.text.trim() {
                "0" => return Ok(()),
                "1" => {}
                _ => return line.fail("expected 0 or 1"),
            },
        }
        let (Some(constants), Some(counts), Some(names), Some(factors)) =
            (fields.leaf_const, fields.num_features, fields.leaf_features, fields.leaf_coeff)
        else {
            return match fields.is_linear {
                Some(line) => {
                    line.fail("a linear tree without `leaf_const`, `num_features`, `leaf_features` or `leaf_coeff`")
                }
                None => Ok(()),
            };
        };
        let (mut values, mut terms) = (Vec::new(), Vec::new());
        numbers(constants, leaf_count, "a constant", &mut values)?;
        numbers(counts, leaf_count, "a number of features", &mut terms)?;
        let (mut names, mut factors) = (names.words(), factors.words());
        for (constant, count) in values.into_iter().zip(terms) {
            let mut leaf = LinearLeaf { constant, terms: Vec::new() };
            for _ in 0u32..count {
                let (Some(name), Some(factor)) = (names.next(), factors.next()) else {
                    return counts.fail("fewer features or factors in linear leaves than `num_features` says");
                };
                let (feature, factor) = (name.parsed::<u32>("a feature")?, finite(factor)?);
                if feature as usize >= features {
                    return name.fail("a feature that does not exist");
                }
                leaf.terms.push((feature, factor));
            }
            if !leaf.constant.is_finite() {
                return constants.fail("a constant that is not a finite number");
            }
            self.linear.push(leaf);
        }
        if names.next().is_some() || factors.next().is_some() {
            return counts.fail("more features or factors in linear leaves than `num_features` says");
        }
        Ok(())
    }
}

fn finite(word: Line<'_>) -> Read<f64> {
    match word.parsed::<f64>("a number")? {
        value if value.is_finite() => Ok(value),
        _ => word.fail("a number that is not finite"),
    }
}

/// Exactly so many numbers.
fn numbers<T: std::str::FromStr>(line: Line<'_>, count: usize, what: &str, into: &mut Vec<T>) -> Read<()> {
    into.clear();
    for word in line.words() {
        if into.len() == count {
            return word.fail(format!("more than {count} numbers"));
        }
        into.push(word.parsed(what)?);
    }
    match into.len() == count {
        true => Ok(()),
        false => line.fail(format!("{} numbers where there must be {count}", into.len())),
    }
}

/// The same, or none where there is no such line.
fn optional(line: Option<Line<'_>>, count: usize, into: &mut Vec<f64>) -> Read<()> {
    match line {
        Some(line) if !line.text.trim().is_empty() => numbers(line, count, "a count", into),
        Some(_) | None => {
            into.clear();
            Ok(())
        }
    }
}
