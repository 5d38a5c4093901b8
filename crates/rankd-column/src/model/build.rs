//! Takes trees one by one and compiles them when all are there, because a threshold's rank depends on all others of its feature.
//!
//! What it keeps is a fixed multiple of what it is handed, so of the file that was read.

use super::derive::{NumberColumn, RANKS_MAX, SetColumn, UsedFeature};
use super::forest::{CompiledTree, Forest, Group, Leaves, Level, Shape, TreeNode, WINDOW};
use super::members::Members;
use super::program::{self, MASK_LEAVES_MAX};
use super::ranks::Ranks;
use super::source::{Branch, Dialect, LinearLeaf, Missing, SplitTest, TreeFault, TreeSource};
use super::{Body, Feature, FeatureKind, LEAVES_MAX, Model, Response, TREES_MAX};
use hashbrown::HashMap;

/// A model in the making.
pub struct Builder {
    dialect: Dialect,
    features: Vec<Feature>,
    outputs: usize,
    /// In `column`, nodes and levels have the number of their test until it is known which column it has become.
    nodes: Vec<TreeNode>,
    levels: Vec<Level>,
    /// Thresholds of nodes and of levels, where they have one.
    node_thresholds: Vec<f64>,
    level_thresholds: Vec<f64>,
    tests: Vec<TestKey>,
    numbers: HashMap<(u32, Missing), u32>,
    sets: HashMap<MemberKey, u32>,
    trees: Vec<(std::ops::Range<usize>, CompiledTree)>,
    values: Vec<f64>,
    linear: Vec<LinearLeaf>,
    node_covers: Vec<f64>,
    leaf_covers: Vec<f64>,
    start: Vec<f64>,
    scale: f64,
    bias: Vec<f64>,
}

/// What a byte column is made of.
enum TestKey {
    Number { feature: u32, missing: Missing },
    Set { feature: u32, members: Members },
}

#[derive(PartialEq, Eq, Hash)]
struct MemberKey {
    feature: u32,
    inside_right: bool,
    missing_right: bool,
    categories: Box<[u32]>,
}

impl Builder {
    /// For a model with these features and so many outputs, both of which the caller has bounded.
    pub fn new(dialect: Dialect, features: Vec<Feature>, outputs: usize) -> Builder {
        Builder {
            dialect,
            features,
            outputs,
            nodes: Vec::new(),
            levels: Vec::new(),
            node_thresholds: Vec::new(),
            level_thresholds: Vec::new(),
            tests: Vec::new(),
            numbers: HashMap::new(),
            sets: HashMap::new(),
            trees: Vec::new(),
            values: Vec::new(),
            linear: Vec::new(),
            node_covers: Vec::new(),
            leaf_covers: Vec::new(),
            start: vec![0.0; outputs],
            scale: 1.0,
            bias: Vec::new(),
        }
    }

    /// Where the sum of each output starts. Panics where there is not one number for each: that is a bug in the caller.
    pub fn start_at(&mut self, start: Vec<f64>) {
        assert_eq!(start.len(), self.outputs, "one start for each output");
        self.start = start;
    }

    /// What sums are multiplied by, and what is then added to each. Panics as above.
    pub fn scale_and_add(&mut self, scale: f64, bias: Vec<f64>) {
        assert_eq!(bias.len(), self.outputs, "one bias for each output");
        (self.scale, self.bias) = (scale, bias);
    }

    /// A test whether a feature's value is one of these categories, which are ascending and each given once. Members go right or left, all
    /// others to the other side; a missing value goes where it is sent.
    pub fn members(&mut self, feature: u32, categories: &[u32], inside_right: bool, missing_right: bool) -> SplitTest {
        let key = MemberKey { feature, inside_right, missing_right, categories: categories.into() };
        let next = self.tests.len() as u32;
        let set = *self.sets.entry(key).or_insert(next);
        if set == next {
            let members = Members::new(categories, inside_right, missing_right);
            self.tests.push(TestKey::Set { feature, members });
        }
        SplitTest::Members(set)
    }

    pub fn trees(&self) -> usize {
        self.trees.len()
    }

    pub fn feature_count(&self) -> usize {
        self.features.len()
    }

    /// For files that tell the kind of a feature behind the trees. Panics where there is no such feature.
    pub fn set_kind(&mut self, feature: usize, kind: FeatureKind) {
        self.features[feature].kind = kind;
    }

    /// Adds a tree after checking that it is one.
    pub fn tree(&mut self, tree: TreeSource<'_>) -> Result<(), TreeFault> {
        let leaf_count = tree.splits.len() + 1;
        let outputs = self.check(&tree, leaf_count)?;
        let nodes = self.nodes.len() as u32;
        for (split, at) in tree.splits.iter().zip(0..) {
            let (column, threshold) = self.test(split.feature, split.test, at)?;
            let (left, right) = (number(split.left), number(split.right));
            self.nodes.push(TreeNode { column, rank: 0, left, right });
            self.node_thresholds.push(threshold);
            self.node_covers.push(split.cover);
        }
        // Which way rows go is only known when all trees are there.
        let shape = if tree.splits.is_empty() { Shape::Leaf } else { Shape::Walk };
        self.push(
            tree,
            outputs,
            CompiledTree {
                iteration: tree.iteration,
                shape,
                nodes,
                splits: tree.splits.len() as u32,
                leaves: self.values.len(),
                leaf_count: leaf_count as u32,
                first_leaf: self.leaf_covers.len() as u32,
            },
        );
        Ok(())
    }

    /// Adds a tree with the same test at each split of a level; a leaf's number has a bit for each level, the lowest for the first.
    /// Of `splits`, only features and tests count.
    pub fn oblivious_tree(&mut self, tree: TreeSource<'_>) -> Result<(), TreeFault> {
        if tree.splits.len() > LEAVES_MAX.ilog2() as usize {
            return Err(TreeFault::TooManyLeaves);
        }
        let leaf_count = 1 << tree.splits.len();
        let outputs = self.check_leaves(&tree, leaf_count)?;
        let levels = self.levels.len() as u32;
        for (split, at) in tree.splits.iter().zip(0..) {
            let (column, threshold) = self.test(split.feature, split.test, at)?;
            self.levels.push(Level { column, rank: 0 });
            self.level_thresholds.push(threshold);
        }
        let shape = match tree.splits.is_empty() {
            true => Shape::Leaf,
            false => Shape::Oblivious { levels, level_count: tree.splits.len() as u8 },
        };
        self.push(
            tree,
            outputs,
            CompiledTree {
                iteration: tree.iteration,
                shape,
                nodes: self.nodes.len() as u32,
                splits: 0,
                leaves: self.values.len(),
                leaf_count: leaf_count as u32,
                first_leaf: self.leaf_covers.len() as u32,
            },
        );
        Ok(())
    }

    fn push(&mut self, source: TreeSource<'_>, outputs: std::ops::Range<usize>, tree: CompiledTree) {
        // One output after the other, so that each has a table of its own.
        for output in 0..outputs.len() {
            self.values.extend(source.leaves.iter().skip(output).step_by(outputs.len()));
        }
        self.leaf_covers
            .extend((0..tree.leaf_count as usize).map(|at| source.leaf_covers.get(at).unwrap_or(&f64::NAN)));
        if !source.linear.is_empty() {
            self.fill_formulas(tree.leaves);
            self.linear.extend_from_slice(source.linear);
        }
        self.trees.push((outputs, tree));
    }

    /// Leaves without a formula, up to this one, get one that is their value.
    fn fill_formulas(&mut self, leaves: usize) {
        let plain = self.values[self.linear.len()..leaves].iter();
        self.linear.extend(plain.map(|value| LinearLeaf { constant: *value, terms: Vec::new() }));
    }

    /// The number of a test, and its threshold.
    fn test(&mut self, feature: u32, test: SplitTest, split: u32) -> Result<(u32, f64), TreeFault> {
        if feature as usize >= self.features.len() {
            return Err(TreeFault::UnknownFeature { split });
        }
        match test {
            SplitTest::Above { threshold, .. } if !threshold.is_finite() => Err(TreeFault::NotFinite { split }),
            SplitTest::Above { threshold, missing } => {
                let next = self.tests.len() as u32;
                let key = *self.numbers.entry((feature, missing)).or_insert(next);
                if key == next {
                    self.tests.push(TestKey::Number { feature, missing });
                }
                Ok((key, threshold))
            }
            SplitTest::Members(set) => match self.tests.get(set as usize) {
                Some(TestKey::Set { feature: of, .. }) if *of == feature => Ok((set, 0.0)),
                _ => Err(TreeFault::UnknownFeature { split }),
            },
        }
    }

    fn check(&self, tree: &TreeSource<'_>, leaf_count: usize) -> Result<std::ops::Range<usize>, TreeFault> {
        let outputs = self.check_leaves(tree, leaf_count)?;
        let splits = tree.splits.len();
        let mut seen = vec![false; splits + leaf_count];
        let mut next = vec![Branch::Split(0)];
        if splits == 0 {
            return Ok(outputs);
        }
        seen[0] = true;
        while let Some(Branch::Split(at)) = next.pop() {
            for child in [tree.splits[at as usize].left, tree.splits[at as usize].right] {
                let place = match child {
                    Branch::Split(split) if (split as usize) < splits => split as usize,
                    Branch::Leaf(leaf) if (leaf as usize) < leaf_count => splits + leaf as usize,
                    Branch::Split(_) | Branch::Leaf(_) => return Err(TreeFault::OutOfRange { split: at }),
                };
                if std::mem::replace(&mut seen[place], true) {
                    return Err(TreeFault::Shared { split: at });
                }
                if let Branch::Split(_) = child {
                    next.push(child);
                }
            }
        }
        match seen.iter().position(|seen| !seen) {
            None => Ok(outputs),
            Some(at) if at < splits => Err(TreeFault::Unreached { branch: Branch::Split(at as u32) }),
            Some(at) => Err(TreeFault::Unreached { branch: Branch::Leaf((at - splits) as u32) }),
        }
    }

    /// The outputs that the leaves are for.
    fn check_leaves(&self, tree: &TreeSource<'_>, leaf_count: usize) -> Result<std::ops::Range<usize>, TreeFault> {
        if self.trees.len() == TREES_MAX {
            return Err(TreeFault::TooManyTrees);
        }
        if leaf_count > LEAVES_MAX {
            return Err(TreeFault::TooManyLeaves);
        }
        if let Some(leaf) = tree.leaves.iter().position(|value| !value.is_finite()) {
            return Err(TreeFault::LeafNotFinite { leaf: leaf as u32 });
        }
        let (output, outputs) = (tree.output as usize, self.outputs);
        match tree.leaves.len() {
            0 => Err(TreeFault::NoLeaf),
            all if all == leaf_count && output < outputs => Ok(output..output + 1),
            all if all == leaf_count * outputs && output == 0 => Ok(0..outputs),
            _ => Err(TreeFault::UnknownOutput),
        }
    }

    /// Compiles all trees.
    pub fn finish(mut self, objective: String, response: Response) -> Model {
        if !self.linear.is_empty() {
            self.fill_formulas(self.values.len());
        }
        let (used, places, columns) = self.derive();
        let spot = |test: u32, threshold: f64| match &places[test as usize] {
            Place::Number { used: at, number } => {
                let number: &NumberColumn = &used[*at].numbers[*number];
                let rank = number.ranks.position(threshold);
                ((number.column + rank / RANKS_MAX) as u32, (rank % RANKS_MAX) as u8)
            }
            Place::Set { column } => (*column as u32, 0),
        };
        for (node, threshold) in self.nodes.iter_mut().zip(&self.node_thresholds) {
            (node.column, node.rank) = spot(node.column, *threshold);
        }
        for (level, threshold) in self.levels.iter_mut().zip(&self.level_thresholds) {
            (level.column, level.rank) = spot(level.column, *threshold);
        }
        (self.node_thresholds, self.level_thresholds) = (Vec::new(), Vec::new());
        let iterations = self.trees.iter().map(|(_, tree)| tree.iteration as usize + 1).max().unwrap_or(0);
        // Trees of one output together; the sort keeps the order of the file among them.
        self.trees.sort_by_key(|(outputs, tree)| (outputs.start, tree.iteration));
        let groups = groups(&self.trees);
        let mut trees: Vec<CompiledTree> = self.trees.into_iter().map(|(_, tree)| tree).collect();
        let (mut ops, mut runs) = (Vec::new(), Vec::new());
        for tree in &mut trees {
            if let Shape::Walk = tree.shape
                && tree.leaf_count as usize <= MASK_LEAVES_MAX
            {
                let nodes = &self.nodes[tree.nodes as usize..][..tree.splits as usize];
                let first = runs.len();
                let root = program::schedule(nodes, &mut ops, &mut runs);
                tree.shape = Shape::Masks { runs: first as u32, run_count: (runs.len() - first) as u32, root };
            }
        }
        let known = self.node_covers.iter().chain(&self.leaf_covers).all(|cover| cover.is_finite() && *cover >= 0.0);
        if !known {
            (self.node_covers, self.leaf_covers) = (Vec::new(), Vec::new());
        }
        self.values.resize(self.values.len() + WINDOW, 0.0);
        let leaves = match self.dialect {
            Dialect::LightGbm | Dialect::CatBoost => Leaves::Double(self.values),
            Dialect::XgBoost => Leaves::Single(self.values.iter().map(|value| *value as f32).collect()),
        };
        let forest = Forest {
            dialect: self.dialect,
            outputs: self.outputs,
            iterations,
            used,
            columns,
            groups,
            trees,
            nodes: self.nodes,
            runs,
            ops,
            levels: self.levels,
            leaves,
            linear: self.linear,
            node_covers: self.node_covers,
            leaf_covers: self.leaf_covers,
            start: self.start,
            scale: self.scale,
            bias: self.bias,
        };
        Model { features: self.features, objective, body: Body::Trees { forest: Box::new(forest), response } }
    }

    /// The features that tests or formulas look at, where each test has gone, and how many byte columns there are.
    fn derive(&mut self) -> (Vec<UsedFeature>, Vec<Place>, usize) {
        let mut thresholds: Vec<Vec<f64>> = self.tests.iter().map(|_| Vec::new()).collect();
        let nodes = self.nodes.iter().map(|node| node.column).zip(&self.node_thresholds);
        let levels = self.levels.iter().map(|level| level.column).zip(&self.level_thresholds);
        nodes.chain(levels).for_each(|(test, threshold)| thresholds[test as usize].push(*threshold));
        let formulas = self.linear.iter().flat_map(|leaf| leaf.terms.iter().map(|(feature, _)| *feature));
        let mut kept: Vec<u32> = formulas.collect();
        kept.sort_unstable();
        kept.dedup();
        let mut features: Vec<u32> = self.tests.iter().map(TestKey::feature).chain(kept.iter().copied()).collect();
        features.sort_unstable();
        features.dedup();
        let mut used: Vec<UsedFeature> = features
            .iter()
            .map(|feature| UsedFeature {
                feature: *feature,
                numbers: Vec::new(),
                sets: Vec::new(),
                kept: kept.binary_search(feature).ok().map(|at| at as u32),
            })
            .collect();
        // Where formulas look for values.
        let terms = self.linear.iter_mut().flat_map(|leaf| &mut leaf.terms);
        terms.for_each(|(feature, _)| *feature = kept.partition_point(|other| other < feature) as u32);
        let mut columns = 0;
        let mut places = Vec::with_capacity(self.tests.len());
        for (test, thresholds) in std::mem::take(&mut self.tests).into_iter().zip(thresholds) {
            let at = features.partition_point(|feature| *feature < test.feature());
            match test {
                TestKey::Number { missing, .. } => {
                    let number = NumberColumn { missing, ranks: Ranks::new(thresholds), column: columns };
                    columns += number.columns();
                    places.push(Place::Number { used: at, number: used[at].numbers.len() });
                    used[at].numbers.push(number);
                }
                TestKey::Set { members, .. } => {
                    places.push(Place::Set { column: columns });
                    used[at].sets.push(SetColumn { members, column: columns });
                    columns += 1;
                }
            }
        }
        (used, places, columns)
    }
}

/// Where a test has gone.
enum Place {
    Number { used: usize, number: usize },
    Set { column: usize },
}

impl TestKey {
    fn feature(&self) -> u32 {
        match self {
            TestKey::Number { feature, .. } | TestKey::Set { feature, .. } => *feature,
        }
    }
}

/// A child as a node has it.
fn number(branch: Branch) -> i32 {
    match branch {
        Branch::Split(split) => split as i32,
        Branch::Leaf(leaf) => !(leaf as i32),
    }
}

fn groups(trees: &[(std::ops::Range<usize>, CompiledTree)]) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut first = 0;
    for some in trees.chunk_by(|(a, _), (b, _)| a == b) {
        groups.push(Group { outputs: some[0].0.clone(), trees: first..first + some.len() });
        first += some.len();
    }
    groups
}
