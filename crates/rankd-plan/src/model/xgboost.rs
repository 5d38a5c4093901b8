//! Models as XGBoost saves them, as JSON or UBJSON: what stands around the trees.
//!
//! The trees come first in a file, and what they need to be read comes behind them, so the file is walked once with the trees passed over,
//! and then the trees are read.

use super::problem::{ModelProblem, Read};
use super::pull::{Kind, Number, Pull};
use super::xgboost_objective::{Objective, objective};
use super::xgboost_tree::{TreeScratch, read_tree};
use rankd_column::model::{Builder, Categories, Dialect, FEATURES_MAX, Feature, FeatureKind, Model, OUTPUTS_MAX};

/// Reads either form: JSON begins with a bracket and then space, a quote or a bracket, UBJSON with a bracket and a length.
pub(super) fn read(bytes: &[u8]) -> Read<Model> {
    let is_json = match bytes {
        [b'{', second, ..] => matches!(second, b'"' | b' ' | b'\t' | b'\r' | b'\n' | b'}'),
        _ => true,
    };
    if !is_json {
        return read_pull(Pull::binary(bytes));
    }
    super::text(bytes, |text| read_pull(Pull::json(text)))
}

fn read_pull(mut pull: Pull<'_>) -> Read<Model> {
    let mut file = XgBoostFile::default();
    file.read(&mut pull)?;
    file.build(&pull)
}

/// What a file says around its trees.
#[derive(Default)]
struct XgBoostFile<'a> {
    names: Vec<String>,
    types: Vec<String>,
    booster: Option<String>,
    weights: Vec<f32>,
    tree_outputs: Vec<i32>,
    round_ends: Vec<i32>,
    parallel_trees: Option<usize>,
    categories: Vec<Option<Categories>>,
    trees: Option<Pull<'a>>,
    base_scores: Vec<f32>,
    features: Option<usize>,
    classes: usize,
    targets: usize,
    objective: Option<(String, usize)>,
}

impl<'a> XgBoostFile<'a> {
    fn read(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                "version" => version(pull)?,
                "learner" => self.learner(pull)?,
                name => return unknown(pull, name, "a model"),
            }
        }
        pull.end()
    }

    fn learner(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                // What users have noted down.
                "attributes" => pull.skip()?,
                "feature_names" => self.names = texts(pull)?,
                "feature_types" => self.types = texts(pull)?,
                "gradient_booster" => self.gradient_booster(pull)?,
                "learner_model_param" => self.learner_param(pull)?,
                "objective" => self.read_objective(pull)?,
                name => return unknown(pull, name, "a learner"),
            }
        }
        Ok(())
    }

    fn gradient_booster(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                "name" => {
                    let name = pull.string()?.into_owned();
                    if !matches!(&*name, "gbtree" | "dart") {
                        return pull.fail(format!("the booster `{name}` is not read; `gbtree` and `dart` are"));
                    }
                    self.booster = Some(name);
                }
                "model" => self.model(pull)?,
                "weight_drop" => pull.floats(&mut self.weights)?,
                // Of a dart, whose trees are a booster of their own.
                "gbtree" => {
                    let mut fields = pull.open_object()?;
                    while let Some(name) = pull.field(&mut fields)? {
                        match &*name {
                            "name" => pull.skip()?,
                            "model" => self.model(pull)?,
                            name => return unknown(pull, name, "a booster"),
                        }
                    }
                }
                name => return unknown(pull, name, "a booster"),
            }
        }
        Ok(())
    }

    fn model(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        if self.trees.is_some() {
            return pull.fail("a second model");
        }
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                "cats" => self.cats(pull)?,
                "gbtree_model_param" => {
                    let mut fields = pull.open_object()?;
                    while let Some(name) = pull.field(&mut fields)? {
                        match &*name {
                            "num_parallel_tree" => self.parallel_trees = Some(written(pull)?),
                            "num_trees" | "size_leaf_vector" => pull.skip()?,
                            name => return unknown(pull, name, "a model's parameters"),
                        }
                    }
                }
                "iteration_indptr" => pull.ints(&mut self.round_ends)?,
                "tree_info" => pull.ints(&mut self.tree_outputs)?,
                "trees" => {
                    self.trees = Some(pull.clone());
                    pull.skip()?;
                }
                name => return unknown(pull, name, "a model"),
            }
        }
        Ok(())
    }

    /// The categories of each feature: texts as bytes one behind the other with their ends, or ints.
    fn cats(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                "enc" => {
                    let mut items = pull.open_array()?;
                    while pull.item(&mut items)? {
                        let list = category_list(pull)?;
                        self.categories.push(list);
                    }
                }
                "feature_segments" | "sorted_idx" => pull.skip()?,
                name => return unknown(pull, name, "categories"),
            }
        }
        Ok(())
    }

    fn learner_param(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                "base_score" => {
                    let text = pull.string()?;
                    // One number, or since 3.1 a list in brackets.
                    let numbers = text.trim().trim_start_matches('[').trim_end_matches(']').split(',');
                    let scores: Option<Vec<f32>> = numbers
                        .take(OUTPUTS_MAX + 1)
                        .map(|number| number.trim().parse().ok().filter(|number: &f32| number.is_finite()))
                        .collect();
                    let Some(scores) = scores else { return pull.fail("a base score that is not a finite number") };
                    self.base_scores = scores;
                }
                "num_feature" => self.features = Some(written(pull)?),
                "num_class" => self.classes = written(pull)?,
                "num_target" => self.targets = written(pull)?,
                "boost_from_average" => pull.skip()?,
                name => return unknown(pull, name, "a learner's parameters"),
            }
        }
        Ok(())
    }

    fn read_objective(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                "name" => {
                    let at = pull.at();
                    self.objective = Some((pull.string()?.into_owned(), at));
                }
                // How it was trained.
                name if name.ends_with("_param") => pull.skip()?,
                name => return unknown(pull, name, "an objective"),
            }
        }
        Ok(())
    }

    fn build(mut self, pull: &Pull<'a>) -> Read<Model> {
        let missing = |name: &str| pull.fail(format!("the file has no `{name}`"));
        let Some(mut trees) = self.trees.take() else { return missing("trees") };
        let (Some(features), Some((name, at))) = (self.features, self.objective.take()) else {
            return missing("num_feature` or `objective");
        };
        let outputs = self.classes.max(self.targets).max(1);
        if features > FEATURES_MAX || outputs > OUTPUTS_MAX {
            return pull.fail(format!("more than {FEATURES_MAX} features or {OUTPUTS_MAX} outputs"));
        }
        let features = self.features(features, pull)?;
        let Some(Objective { response, margin }) = objective(&name) else {
            return Err(ModelProblem::new(at, format!("the objective `{name}` is not read")));
        };
        let mut builder = Builder::new(Dialect::XgBoost, features, outputs);
        let start: Vec<f64> = match &*self.base_scores {
            [] => return missing("base_score"),
            [one] => vec![f64::from(margin(*one)); outputs],
            all if all.len() == outputs => all.iter().map(|score| f64::from(margin(*score))).collect(),
            all => return pull.fail(format!("{} base scores for {outputs} outputs", all.len())),
        };
        if start.iter().any(|start| !start.is_finite()) {
            return pull.fail(format!("a base score that the objective `{name}` cannot have"));
        }
        builder.start_at(start);
        let mut scratch = TreeScratch::default();
        let mut items = trees.open_array()?;
        while trees.item(&mut items)? {
            let at = builder.trees();
            let output = self.tree_outputs.get(at).copied();
            let Some(output) = output.and_then(|output| u32::try_from(output).ok()) else {
                return trees.fail(format!("tree {at} has no output in `tree_info`"));
            };
            let weight = match self.booster.as_deref() {
                Some("dart") => self.weights.get(at).copied(),
                _ => Some(1.0),
            };
            let Some(weight) = weight else { return trees.fail(format!("tree {at} has no weight in `weight_drop`")) };
            let iteration = self.round_of(at, outputs, &trees)?;
            read_tree(&mut trees, output, iteration, weight, &mut builder, &mut scratch)?;
        }
        if builder.trees() != self.tree_outputs.len() {
            return trees.fail(format!("{} trees, but `tree_info` has {}", builder.trees(), self.tree_outputs.len()));
        }
        Ok(builder.finish(name, response))
    }

    /// The boosting round of a tree. Before version 2 a file did not say where rounds end.
    fn round_of(&self, tree: usize, outputs: usize, pull: &Pull<'a>) -> Read<u32> {
        if self.round_ends.is_empty() {
            let trees = self.parallel_trees.unwrap_or(1).max(1).saturating_mul(outputs);
            return Ok((tree / trees) as u32);
        }
        let is_in_order = self.round_ends.is_sorted() && self.round_ends.first() == Some(&0);
        let round = self.round_ends.partition_point(|end| i64::from(*end) <= tree as i64);
        match is_in_order && round < self.round_ends.len() {
            true => Ok(round as u32 - 1),
            false => pull.fail(format!("tree {tree} is in no round of `iteration_indptr`")),
        }
    }

    fn features(&mut self, count: usize, pull: &Pull<'a>) -> Read<Vec<Feature>> {
        for (len, what) in
            [(self.names.len(), "feature_names"), (self.types.len(), "feature_types"), (self.categories.len(), "cats")]
        {
            if len != 0 && len != count {
                return pull.fail(format!("`{what}` has {len} entries for {count} features"));
            }
        }
        if let Some(kind) = self.types.iter().find(|kind| !matches!(&***kind, "float" | "int" | "i" | "q" | "c")) {
            return pull.fail(format!("the feature type `{kind}` is not known"));
        }
        let mut names = std::mem::take(&mut self.names).into_iter();
        let mut categories = std::mem::take(&mut self.categories).into_iter();
        let feature = |_| Feature {
            name: names.next().unwrap_or_default(),
            kind: categories.next().flatten().map_or(FeatureKind::Number, FeatureKind::Category),
        };
        Ok((0..count).map(feature).collect())
    }
}

fn version(pull: &mut Pull<'_>) -> Read<()> {
    let mut numbers = Vec::new();
    pull.ints(&mut numbers)?;
    match numbers.first() {
        Some(1..=3) => Ok(()),
        _ => pull.fail("a version that is not known; 1, 2 and 3 are"),
    }
}

pub(super) fn unknown<T>(pull: &Pull<'_>, name: &str, of: &str) -> Read<T> {
    pull.fail(format!("a field `{name}` that is not known in {of}"))
}

/// A number that is written as a text.
pub(super) fn written(pull: &mut Pull<'_>) -> Read<usize> {
    let text = pull.string()?;
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => pull.fail(format!("expected a number, found {text:?}")),
    }
}

fn texts(pull: &mut Pull<'_>) -> Read<Vec<String>> {
    let mut found = Vec::new();
    let mut items = pull.open_array()?;
    while pull.item(&mut items)? {
        if found.len() == FEATURES_MAX {
            return pull.fail(format!("more than {FEATURES_MAX} features"));
        }
        found.push(pull.string()?.into_owned());
    }
    Ok(found)
}

fn category_list(pull: &mut Pull<'_>) -> Read<Option<Categories>> {
    let (mut offsets, mut values, mut has_offsets) = (Vec::new(), Vec::new(), false);
    let mut fields = pull.open_object()?;
    while let Some(name) = pull.field(&mut fields)? {
        match &*name {
            "offsets" => {
                has_offsets = true;
                pull.ints(&mut offsets)?;
            }
            "values" => {
                let mut items = pull.open_array()?;
                while pull.item(&mut items)? {
                    match (pull.peek()?, pull.number()?) {
                        (Kind::Number, Number::Int(value)) => values.push(value),
                        _ => return pull.fail("categories that are neither texts nor ints"),
                    }
                }
            }
            "type" => pull.skip()?,
            name => return unknown(pull, name, "a list of categories"),
        }
    }
    let list = match has_offsets {
        _ if values.is_empty() && offsets.len() <= 1 => return Ok(None),
        false => Categories::of_ints(values),
        true => {
            let bytes: Vec<u8> = values.iter().map(|byte| *byte as u8).collect();
            let Ok(text) = std::str::from_utf8(&bytes) else { return pull.fail("categories that are not UTF-8") };
            let parts: Option<Vec<&str>> = offsets
                .windows(2)
                .map(|ends| text.get(usize::try_from(ends[0]).ok()?..usize::try_from(ends[1]).ok()?))
                .collect();
            let Some(parts) = parts else { return pull.fail("categories whose ends are not in order") };
            Categories::of_texts(parts)
        }
    };
    match list {
        Some(list) => Ok(Some(list)),
        None => pull.fail("a list of categories that has one of them twice"),
    }
}
