//! The compiled form of all trees. Made by [`build`](super::build), only read afterwards.

use super::derive::UsedFeature;
use super::program::{MaskOp, Run};
use super::source::{Dialect, LinearLeaf};

/// How many rows are scored together. Their bytes for a hundred columns stay in the nearest cache.
pub(super) const BLOCK: usize = 256;
/// How many of them one step of a loop looks at: one or two of the widest vectors.
pub(super) const STRIP: usize = 64;
pub(super) const STRIPS: usize = BLOCK / STRIP;

/// One byte for each row of a block.
pub(super) type ByteLane = [[u8; STRIP]; STRIPS];
pub(super) const NO_LANE: ByteLane = [[0; STRIP]; STRIPS];

/// A table of leaf values is read through a window of this size, so that a byte is always inside.
pub(super) const WINDOW: usize = 256;

#[derive(Debug)]
pub(super) struct Forest {
    pub(super) dialect: Dialect,
    pub(super) outputs: usize,
    pub(super) iterations: usize,
    /// In the order of the features.
    pub(super) used: Vec<UsedFeature>,
    /// How many byte columns the used features become.
    pub(super) columns: usize,
    pub(super) groups: Vec<Group>,
    /// Group by group, in the order of the file in each.
    pub(super) trees: Vec<CompiledTree>,
    pub(super) nodes: Vec<TreeNode>,
    pub(super) runs: Vec<Run>,
    pub(super) ops: Vec<MaskOp>,
    /// Tests of oblivious trees, one a level.
    pub(super) levels: Vec<Level>,
    pub(super) leaves: Leaves,
    /// One for each leaf, or none.
    pub(super) linear: Vec<LinearLeaf>,
    /// Of splits and of leaves, for contributions. Empty where a file does not have them.
    pub(super) node_covers: Vec<f64>,
    pub(super) leaf_covers: Vec<f64>,
    /// Where each output's sum starts.
    pub(super) start: Vec<f64>,
    /// What a sum is multiplied by at the end, and what is then added to each output.
    pub(super) scale: f64,
    pub(super) bias: Vec<f64>,
}

/// Trees that add to the same outputs.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) outputs: std::ops::Range<usize>,
    pub(super) trees: std::ops::Range<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CompiledTree {
    pub(super) iteration: u32,
    pub(super) shape: Shape,
    pub(super) nodes: u32,
    /// How many splits; an oblivious tree has none of its own.
    pub(super) splits: u32,
    /// Where its leaves are; those of further outputs follow, `leaf_count` each.
    pub(super) leaves: usize,
    pub(super) leaf_count: u32,
    /// Where the covers of its leaves are.
    pub(super) first_leaf: u32,
}

/// How the leaf of a row is found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// There is only one.
    Leaf,
    /// All splits, bottom-up, for many rows at once.
    Masks { runs: u32, run_count: u32, root: u8 },
    /// One test a level.
    Oblivious { levels: u32, level_count: u8 },
    /// From the root, row by row: too many leaves for a byte.
    Walk,
}

/// A split: the rows whose byte in the column is above the rank go right.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeNode {
    pub(super) column: u32,
    pub(super) rank: u8,
    /// The number of a split, or of a leaf with all bits flipped; counted from the tree's first.
    pub(super) left: i32,
    pub(super) right: i32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) column: u32,
    pub(super) rank: u8,
}

/// Leaf values in the numbers in which they are added, with a window's room behind the last.
#[derive(Debug)]
pub(super) enum Leaves {
    Double(Vec<f64>),
    Single(Vec<f32>),
}

impl Forest {
    /// The trees of a group that belong to the first iterations.
    pub(super) fn trees_of(&self, group: &Group, iterations: usize) -> &[CompiledTree] {
        let trees = &self.trees[group.trees.clone()];
        &trees[..trees.partition_point(|tree| (tree.iteration as usize) < iterations)]
    }

    pub(super) fn nodes_of(&self, tree: &CompiledTree) -> &[TreeNode] {
        &self.nodes[tree.nodes as usize..][..tree.splits as usize]
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        let leaves = match &self.leaves {
            Leaves::Double(values) => size_of_val(&**values),
            Leaves::Single(values) => size_of_val(&**values),
        };
        let terms: usize = self.linear.iter().map(|leaf| size_of::<LinearLeaf>() + size_of_val(&*leaf.terms)).sum();
        size_of_val(&*self.trees)
            + size_of_val(&*self.nodes)
            + size_of_val(&*self.runs)
            + size_of_val(&*self.ops)
            + size_of_val(&*self.levels)
            + size_of_val(&*self.node_covers)
            + size_of_val(&*self.leaf_covers)
            + self.used.iter().map(UsedFeature::bytes).sum::<usize>()
            + leaves
            + terms
    }
}

impl Leaves {
    /// The value of a leaf, whatever it is added in.
    pub(super) fn value(&self, at: usize) -> f64 {
        match self {
            Leaves::Double(values) => values[at],
            Leaves::Single(values) => f64::from(values[at]),
        }
    }
}
