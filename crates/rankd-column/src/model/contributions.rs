//! How much each feature adds to the raw score of one row: SHAP values by the paths of the trees, with what training saw as weights.
//!
//! Published as "Consistent Individualized Feature Attribution for Tree Ensembles" (Lundberg, Erion, Lee), algorithm 2. The contributions of a
//! row and what the model expects of any row add up to its raw score. Takes about leaves × depth² steps a tree, so it is for one row
//! that somebody asks about. No recursion: the paths are on a list.

use super::forest::{ByteLane, CompiledTree, Forest, Shape, TreeNode};
use super::input::Inputs;
use super::score::ScoreScratch;
use super::{Body, Model};
use crate::stop::{Looks, Stop, Stopped};
use std::fmt;
use std::ops::Range;

/// Deeper trees are not explained: the work grows with the square of the depth.
const DEPTH_MAX: usize = 512;

/// What one row's raw scores are made of, for each output.
#[derive(Clone, Debug, PartialEq)]
pub struct Contributions {
    /// What the model expects of any row.
    pub expected: f64,
    /// One for each feature.
    pub features: Vec<f64>,
}

/// Why there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoContributions {
    /// The model is no trees.
    NoTrees,
    /// Leaves have formulas.
    Linear,
    /// The file does not say how many rows of the training came to each leaf.
    NoCovers,
    TooDeep,
    Stopped,
}

impl std::error::Error for NoContributions {}

impl fmt::Display for NoContributions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoContributions::NoTrees => "only models of trees have contributions",
            NoContributions::Linear => "trees with linear leaves have no contributions",
            NoContributions::NoCovers => "the model file does not say how many rows came to each leaf in training",
            NoContributions::TooDeep => "a tree is too deep for contributions",
            NoContributions::Stopped => "there was no time for contributions",
        })
    }
}

impl From<Stopped> for NoContributions {
    fn from(Stopped: Stopped) -> NoContributions {
        NoContributions::Stopped
    }
}

impl Model {
    /// The contributions to the raw scores of row `row` of the inputs, for each of these outputs.
    pub fn contributions(
        &self,
        inputs: &mut dyn Inputs,
        row: usize,
        outputs: Range<usize>,
        iterations: usize,
        scratch: &mut ScoreScratch,
        stop: Stop<'_>,
    ) -> Result<Vec<Contributions>, NoContributions> {
        let Body::Trees { forest, .. } = &self.body else { return Err(NoContributions::NoTrees) };
        if !forest.linear.is_empty() {
            return Err(NoContributions::Linear);
        }
        if forest.leaf_covers.is_empty() && !forest.trees.is_empty() {
            return Err(NoContributions::NoCovers);
        }
        scratch.fit_columns(forest);
        scratch.read(forest, inputs, row, 1);
        let outputs = outputs.start..outputs.end.min(forest.outputs);
        let start = forest
            .start
            .get(outputs.clone())
            .unwrap_or_default()
            .iter()
            .map(|start| Contributions { expected: *start, features: vec![0.0; self.features.len()] });
        let mut all: Vec<Contributions> = start.collect();
        let features = column_features(forest);
        let (mut walk, mut looks) = (PathWalk::default(), stop.looks());
        for group in &forest.groups {
            let asked = group.outputs.start.max(outputs.start)..group.outputs.end.min(outputs.end);
            if asked.is_empty() {
                continue;
            }
            for tree in forest.trees_of(group, iterations) {
                stop.check()?;
                let plain = PlainTree::new(forest, tree);
                for output in asked.clone() {
                    let into = &mut all[output - outputs.start];
                    let values = tree.leaves + (output - group.outputs.start) * tree.leaf_count as usize;
                    let value = |leaf: usize| forest.leaves.value(values + leaf);
                    into.expected += plain.expected(value);
                    walk.explain(&plain, &features, scratch.columns(), value, into, &mut looks)?;
                }
            }
        }
        for (of, bias) in all.iter_mut().zip(&forest.bias[outputs.start.min(forest.bias.len())..]) {
            of.features.iter_mut().for_each(|part| *part *= forest.scale);
            of.expected = of.expected * forest.scale + bias;
        }
        Ok(all)
    }
}

/// The feature behind each byte column.
fn column_features(forest: &Forest) -> Vec<usize> {
    let mut features = vec![0; forest.columns];
    for used in &forest.used {
        let numbers = used.numbers.iter().map(|number| number.column..number.column + number.columns());
        let sets = used.sets.iter().map(|set| set.column..set.column + 1);
        numbers.chain(sets).flatten().for_each(|column| features[column] = used.feature as usize);
    }
    features
}

/// A tree with all its splits, and covers.
struct PlainTree<'a> {
    nodes: std::borrow::Cow<'a, [TreeNode]>,
    node_covers: std::borrow::Cow<'a, [f64]>,
    leaf_covers: &'a [f64],
}

impl<'a> PlainTree<'a> {
    fn new(forest: &'a Forest, tree: &CompiledTree) -> PlainTree<'a> {
        let leaf_covers = &forest.leaf_covers[tree.first_leaf as usize..][..tree.leaf_count as usize];
        match tree.shape {
            Shape::Oblivious { levels, level_count } => {
                let depth = usize::from(level_count);
                let levels = &forest.levels[levels as usize..][..depth];
                // Splits of a level one after the other, the highest bit of a leaf's number first.
                let mut nodes = Vec::with_capacity(leaf_covers.len());
                for level in 0..depth {
                    let Some(test) = levels.get(depth - 1 - level) else { continue };
                    let (first, next) = ((1 << level) - 1, (2 << level) - 1);
                    for at in 0..1i32 << level {
                        let child =
                            |side: i32| if level + 1 == depth { !(2 * at + side) } else { next + 2 * at + side };
                        debug_assert_eq!(nodes.len() as i32, first + at);
                        nodes.push(TreeNode { column: test.column, rank: test.rank, left: child(0), right: child(1) });
                    }
                }
                let mut covers = vec![0.0; nodes.len()];
                for at in (0..nodes.len()).rev() {
                    let cover =
                        |child: i32| if child < 0 { leaf_covers[!child as usize] } else { covers[child as usize] };
                    covers[at] = cover(nodes[at].left) + cover(nodes[at].right);
                }
                PlainTree { nodes: nodes.into(), node_covers: covers.into(), leaf_covers }
            }
            Shape::Leaf | Shape::Masks { .. } | Shape::Walk => PlainTree {
                nodes: forest.nodes_of(tree).into(),
                node_covers: forest.node_covers[tree.nodes as usize..][..tree.splits as usize].into(),
                leaf_covers,
            },
        }
    }

    fn cover(&self, child: i32) -> f64 {
        if child < 0 { self.leaf_covers[!child as usize] } else { self.node_covers[child as usize] }
    }

    /// What the tree gives on average over the rows of the training.
    fn expected(&self, value: impl Fn(usize) -> f64) -> f64 {
        let all: f64 = self.leaf_covers.iter().sum();
        match all > 0.0 {
            true => self.leaf_covers.iter().enumerate().map(|(leaf, cover)| cover / all * value(leaf)).sum(),
            // Without weight all leaves are alike.
            false => (0..self.leaf_covers.len()).map(value).sum::<f64>() / self.leaf_covers.len() as f64,
        }
    }
}

/// A feature on the way to a leaf: which share of rows goes on here without it, and with it, and the weight of the ways so far.
#[derive(Clone, Copy)]
struct PathStep {
    feature: usize,
    without: f64,
    with: f64,
    weight: f64,
}

/// A branch to go to, from the path of its parent.
struct Visit {
    child: i32,
    start: usize,
    len: usize,
    step: PathStep,
    depth: usize,
}

#[derive(Default)]
struct PathWalk {
    visits: Vec<Visit>,
    /// Paths from the root to what is visited, one behind the other; each is a copy of its parent's with one step more.
    paths: Vec<PathStep>,
}

impl PathWalk {
    fn explain(
        &mut self,
        tree: &PlainTree<'_>,
        features: &[usize],
        columns: &[ByteLane],
        value: impl Fn(usize) -> f64,
        into: &mut Contributions,
        looks: &mut Looks<'_>,
    ) -> Result<(), NoContributions> {
        /// No feature, for the root.
        const NONE: usize = usize::MAX;
        if tree.nodes.is_empty() {
            return Ok(());
        }
        let step = PathStep { feature: NONE, without: 1.0, with: 1.0, weight: 1.0 };
        self.visits.clear();
        self.visits.push(Visit { child: 0, start: 0, len: 0, step, depth: 0 });
        while let Some(visit) = self.visits.pop() {
            if visit.depth > DEPTH_MAX {
                return Err(NoContributions::TooDeep);
            }
            looks.before(1 + visit.len * visit.len)?;
            let start = visit.start + visit.len;
            self.paths.truncate(start);
            self.paths.extend_from_within(visit.start..);
            let mut len = extend(&mut self.paths, start, visit.step);
            let Ok(at) = usize::try_from(visit.child) else {
                let value = value(!visit.child as usize);
                let path = &self.paths[start..];
                for (at, step) in path.iter().enumerate().skip(1) {
                    let weight = unwound_weight(path, at);
                    into.features[step.feature] += weight * (step.with - step.without) * value;
                }
                continue;
            };
            let node = &tree.nodes[at];
            let right = columns[node.column as usize].as_flattened()[0] > node.rank;
            let (taken, other) = if right { (node.right, node.left) } else { (node.left, node.right) };
            let feature = features[node.column as usize];
            let (mut without, mut with) = (1.0, 1.0);
            // A feature counts once on a path: an earlier step on it is taken back.
            if let Some(before) = self.paths[start..].iter().position(|step| step.feature == feature) {
                (without, with) = (self.paths[start + before].without, self.paths[start + before].with);
                len = unwind(&mut self.paths, start, before);
            }
            let all = tree.node_covers[at];
            let share = |child: i32| if all > 0.0 { tree.cover(child) / all } else { 0.5 };
            for (child, with) in [(other, 0.0), (taken, with)] {
                let step = PathStep { feature, without: without * share(child), with, weight: 0.0 };
                // Nothing comes of a way that no row of the training took, unless this row takes it.
                if step.without != 0.0 || step.with != 0.0 {
                    self.visits.push(Visit { child, start, len, step, depth: visit.depth + 1 });
                }
            }
        }
        Ok(())
    }
}

/// Adds a step to the path that begins at `start`; its length then.
fn extend(paths: &mut Vec<PathStep>, start: usize, step: PathStep) -> usize {
    let before = paths.len() - start;
    let weight = if before == 0 { 1.0 } else { 0.0 };
    paths.push(PathStep { weight, ..step });
    let (path, all) = (&mut paths[start..], (before + 1) as f64);
    for at in (0..before).rev() {
        path[at + 1].weight += step.with * path[at].weight * (at + 1) as f64 / all;
        path[at].weight = step.without * path[at].weight * (before - at) as f64 / all;
    }
    before + 1
}

/// Takes a step back out of the path that begins at `start`; its length then.
fn unwind(paths: &mut Vec<PathStep>, start: usize, taken: usize) -> usize {
    let path = &mut paths[start..];
    let last = path.len() - 1;
    let (with, without, all) = (path[taken].with, path[taken].without, path.len() as f64);
    let mut next = path[last].weight;
    for at in (0..last).rev() {
        if with != 0.0 {
            let weight = path[at].weight;
            path[at].weight = next * all / ((at + 1) as f64 * with);
            next = weight - path[at].weight * without * (last - at) as f64 / all;
        } else {
            path[at].weight = path[at].weight * all / (without * (last - at) as f64);
        }
    }
    for at in taken..last {
        let next = path[at + 1];
        path[at] = PathStep { weight: path[at].weight, ..next };
    }
    paths.pop();
    last
}

/// The sum of the weights of a path without one of its steps.
fn unwound_weight(path: &[PathStep], taken: usize) -> f64 {
    let last = path.len() - 1;
    let (with, without, all) = (path[taken].with, path[taken].without, path.len() as f64);
    let (mut next, mut total) = (path[last].weight, 0.0);
    for at in (0..last).rev() {
        if with != 0.0 {
            let weight = next * all / ((at + 1) as f64 * with);
            total += weight;
            next = path[at].weight - weight * without * (last - at) as f64 / all;
        } else if without != 0.0 {
            total += path[at].weight * all / (without * (last - at) as f64);
        }
    }
    total
}
