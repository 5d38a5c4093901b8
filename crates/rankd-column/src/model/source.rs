//! Trees as a reader hands them over: splits in words, children by number, nothing compiled yet.

use std::fmt;

/// What all trees of a model have in common: how values are read, and in which numbers is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Values of 64 bits, what is within 1e-35 of zero being zero; sums of 64 bits.
    LightGbm,
    /// Values and sums of 32 bits.
    XgBoost,
    /// Values of 32 bits, sums of 64.
    CatBoost,
}

/// Where a split leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    Split(u32),
    Leaf(u32),
}

/// What a value that is not there counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Missing {
    /// It goes to one side.
    Goes { right: bool },
    /// It is 0.
    IsZero,
    /// It goes to one side, and so does 0.
    GoesWithZero { right: bool },
}

/// Which rows go right.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SplitTest {
    /// Those with a value above the threshold.
    Above { threshold: f64, missing: Missing },
    /// Those that this set of categories sends there: see [`Builder::members`](super::Builder::members).
    Members(u32),
}

impl SplitTest {
    /// Those with a value of at least the threshold.
    pub fn at_least(threshold: f64, missing: Missing) -> SplitTest {
        // No float is between the two.
        SplitTest::Above { threshold: threshold.next_down(), missing }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// Of a set of categories, this is the set's.
    pub feature: u32,
    pub test: SplitTest,
    pub left: Branch,
    pub right: Branch,
    /// How many rows, or how much weight, came here in training; NaN where the file does not tell.
    pub cover: f64,
}

/// A leaf with a formula: `constant` and the products, added in their order. Where a value is missing, the leaf's plain value counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinearLeaf {
    pub constant: f64,
    pub terms: Vec<(u32, f64)>,
}

/// One tree, whose root is the first split, or its only leaf.
#[derive(Clone, Copy, Debug)]
pub struct TreeSource<'a> {
    /// The boosting round that it belongs to; rounds come in order.
    pub iteration: u32,
    /// The output that its leaves add to; all outputs where a leaf has one value for each.
    pub output: u32,
    pub splits: &'a [Split],
    /// The values of each leaf: one, or one for each output.
    pub leaves: &'a [f64],
    /// The cover of each leaf, as of splits.
    pub leaf_covers: &'a [f64],
    /// Empty, or one formula for each leaf.
    pub linear: &'a [LinearLeaf],
}

/// Why some splits and leaves are no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeFault {
    TooManyTrees,
    TooManyLeaves,
    NoLeaf,
    /// A split leads to a split or leaf that does not exist.
    OutOfRange {
        split: u32,
    },
    /// A split leads to something that another split leads to, too, or back to where it came from.
    Shared {
        split: u32,
    },
    /// No split leads here.
    Unreached {
        branch: Branch,
    },
    /// A feature or a set of categories that does not exist.
    UnknownFeature {
        split: u32,
    },
    /// A threshold that is not a finite number.
    NotFinite {
        split: u32,
    },
    /// A leaf value that is not a finite number.
    LeafNotFinite {
        leaf: u32,
    },
    UnknownOutput,
}

impl std::error::Error for TreeFault {}

impl fmt::Display for TreeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeFault::TooManyTrees => write!(f, "more than {} trees", super::TREES_MAX),
            TreeFault::TooManyLeaves => write!(f, "more than {} leaves", super::LEAVES_MAX),
            TreeFault::NoLeaf => f.write_str("a tree without a leaf"),
            TreeFault::OutOfRange { split } => write!(f, "split {split} has a child that does not exist"),
            TreeFault::Shared { split } => write!(f, "split {split} has a child that is reached in another way"),
            TreeFault::Unreached { branch: Branch::Split(split) } => write!(f, "nothing leads to split {split}"),
            TreeFault::Unreached { branch: Branch::Leaf(leaf) } => write!(f, "nothing leads to leaf {leaf}"),
            TreeFault::UnknownFeature { split } => write!(f, "split {split} is on a feature that does not exist"),
            TreeFault::NotFinite { split } => write!(f, "split {split} has a threshold that is not a finite number"),
            TreeFault::LeafNotFinite { leaf } => write!(f, "leaf {leaf} has a value that is not a finite number"),
            TreeFault::UnknownOutput => f.write_str("a tree for an output that does not exist"),
        }
    }
}
