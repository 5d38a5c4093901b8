//! One tree of an XGBoost file: arrays with an entry for each node, split or leaf.

use super::problem::{ModelProblem, Read};
use super::pull::Pull;
use super::xgboost::{unknown, written};
use rankd_column::model::{Branch, Builder, LEAVES_MAX, Missing, Split, SplitTest, TreeSource};

/// The arrays of one tree; their room is kept for the next one.
#[derive(Default)]
pub(super) struct TreeScratch {
    left: Vec<i32>,
    right: Vec<i32>,
    features: Vec<i32>,
    conditions: Vec<f32>,
    default_left: Vec<i32>,
    kinds: Vec<i32>,
    covers: Vec<f32>,
    set_nodes: Vec<i32>,
    set_starts: Vec<i32>,
    set_sizes: Vec<i32>,
    categories: Vec<i32>,
    /// Which branch a node has become.
    branches: Vec<Option<Branch>>,
    stack: Vec<usize>,
    order: Vec<usize>,
    splits: Vec<Split>,
    leaves: Vec<f64>,
    leaf_covers: Vec<f64>,
    members: Vec<u32>,
}

/// Nodes of a tree, deleted ones included, are at most so many.
const NODES_MAX: usize = 4 * LEAVES_MAX;

pub(super) fn read_tree(
    pull: &mut Pull<'_>,
    output: u32,
    iteration: u32,
    weight: f32,
    builder: &mut Builder,
    s: &mut TreeScratch,
) -> Read<()> {
    let (at, tree) = (pull.at(), builder.trees());
    s.read(pull)?;
    let fail = |message: String| Err(ModelProblem::new(at, format!("tree {tree}: {message}")));
    let nodes = s.left.len();
    if nodes == 0 || nodes > NODES_MAX {
        return fail(format!("a number of nodes that is not from 1 to {NODES_MAX}"));
    }
    for (len, name) in [
        (s.right.len(), "right_children"),
        (s.features.len(), "split_indices"),
        (s.conditions.len(), "split_conditions"),
        (s.default_left.len(), "default_left"),
    ] {
        if len != nodes {
            return fail(format!("`{name}` has {len} entries for {nodes} nodes"));
        }
    }
    s.number(nodes).or_else(|node| fail(format!("node {node} has a child that does not exist or is reached twice")))?;
    s.splits.clear();
    s.leaves.clear();
    s.leaf_covers.clear();
    for place in 0..s.order.len() {
        let node = s.order[place];
        let cover = s.covers.get(node).map_or(f64::NAN, |cover| f64::from(*cover));
        if s.left[node] < 0 {
            s.leaves.push(f64::from(s.conditions[node] * weight));
            s.leaf_covers.push(cover);
            continue;
        }
        let Ok(feature) = u32::try_from(s.features[node]) else {
            return fail(format!("node {node} is on a feature that does not exist"));
        };
        let right = s.default_left[node] == 0;
        let test = match s.kinds.get(node) {
            None | Some(0) => SplitTest::at_least(f64::from(s.conditions[node]), Missing::Goes { right }),
            Some(1) => match s.members(node) {
                true if feature as usize >= builder.feature_count() => {
                    return fail(format!("node {node} is on a feature that does not exist"));
                }
                true => builder.members(feature, &s.members, true, right),
                false => return fail(format!("node {node} has categories that are not there")),
            },
            Some(kind) => return fail(format!("node {node} has the split type {kind}, which is not known")),
        };
        let branch = |child: i32| s.branches[child as usize].unwrap_or(Branch::Leaf(u32::MAX));
        s.splits.push(Split { feature, test, left: branch(s.left[node]), right: branch(s.right[node]), cover });
    }
    let source = TreeSource {
        iteration,
        output,
        splits: &s.splits,
        leaves: &s.leaves,
        leaf_covers: &s.leaf_covers,
        linear: &[],
    };
    builder.tree(source).map_err(|fault| ModelProblem::tree(at, tree, fault))
}

impl TreeScratch {
    fn read(&mut self, pull: &mut Pull<'_>) -> Read<()> {
        self.left.clear();
        self.right.clear();
        self.features.clear();
        self.conditions.clear();
        self.default_left.clear();
        self.kinds.clear();
        self.covers.clear();
        self.set_nodes.clear();
        self.set_starts.clear();
        self.set_sizes.clear();
        self.categories.clear();
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                "left_children" => pull.ints(&mut self.left)?,
                "right_children" => pull.ints(&mut self.right)?,
                "split_indices" => pull.ints(&mut self.features)?,
                "split_conditions" => pull.floats(&mut self.conditions)?,
                "default_left" => pull.ints(&mut self.default_left)?,
                "split_type" => pull.ints(&mut self.kinds)?,
                "sum_hessian" => pull.floats(&mut self.covers)?,
                "categories_nodes" => pull.ints(&mut self.set_nodes)?,
                "categories_segments" => pull.ints(&mut self.set_starts)?,
                "categories_sizes" => pull.ints(&mut self.set_sizes)?,
                "categories" => pull.ints(&mut self.categories)?,
                // What training noted down, and what the children say already.
                "base_weights" | "loss_changes" | "parents" | "id" => pull.skip()?,
                "tree_param" => tree_param(pull)?,
                name => return unknown(pull, name, "a tree"),
            }
        }
        Ok(())
    }

    /// Numbers the splits and leaves that the root leads to; pruning leaves nodes behind that nothing leads to. The node whose child is
    /// wrong otherwise.
    fn number(&mut self, nodes: usize) -> std::result::Result<(), usize> {
        self.branches.clear();
        self.branches.resize(nodes, None);
        self.order.clear();
        self.stack.clear();
        self.stack.push(0);
        let (mut splits, mut leaves) = (0, 0);
        while let Some(node) = self.stack.pop() {
            if self.branches[node].is_some() {
                return Err(node);
            }
            self.order.push(node);
            if self.left[node] < 0 {
                if self.right[node] >= 0 {
                    return Err(node);
                }
                self.branches[node] = Some(Branch::Leaf(leaves));
                leaves += 1;
                continue;
            }
            self.branches[node] = Some(Branch::Split(splits));
            splits += 1;
            for child in [self.right[node], self.left[node]] {
                match usize::try_from(child) {
                    // Nothing leads back to the root.
                    Ok(child) if child < nodes && child > 0 => self.stack.push(child),
                    _ => return Err(node),
                }
            }
        }
        Ok(())
    }

    /// The categories of a node, ascending. False where they are not there.
    fn members(&mut self, node: usize) -> bool {
        let Ok(at) = self.set_nodes.binary_search(&(node as i32)) else { return false };
        let (Some(&start), Some(&size)) = (self.set_starts.get(at), self.set_sizes.get(at)) else { return false };
        // Each set begins where the one before it ends, so no category is in two of them.
        let begins = match at.checked_sub(1) {
            Some(before) => self.set_starts[before].checked_add(self.set_sizes[before]),
            None => Some(0),
        };
        if begins != Some(start) {
            return false;
        }
        let range = usize::try_from(start).ok().zip(usize::try_from(size).ok());
        let some = range.and_then(|(start, size)| self.categories.get(start..)?.get(..size));
        let Some(some) = some.filter(|some| some.iter().all(|category| *category >= 0)) else { return false };
        self.members.clear();
        self.members.extend(some.iter().map(|category| *category as u32));
        self.members.sort_unstable();
        self.members.dedup();
        true
    }
}

fn tree_param(pull: &mut Pull<'_>) -> Read<()> {
    let mut fields = pull.open_object()?;
    while let Some(name) = pull.field(&mut fields)? {
        match &*name {
            "size_leaf_vector" => {
                if written(pull)? > 1 {
                    return pull.fail("leaves with a value for each output (`multi_output_tree`) are not read");
                }
            }
            "num_deleted" | "num_feature" | "num_nodes" | "num_roots" => pull.skip()?,
            name => return unknown(pull, name, "a tree's parameters"),
        }
    }
    Ok(())
}
