//! Trees of a CatBoost file: oblivious ones, and others, whose splits are nested in each other.

use super::catboost::{double, doubles, unknown};
use super::problem::{ModelProblem, Read};
use super::pull::{Kind, Number, Pull, PullFields};
use rankd_column::model::{Branch, Builder, LEAVES_MAX, Missing, Split, SplitTest, TreeSource};

/// A float feature as splits number them.
pub(super) struct FloatFeature {
    pub(super) feature: u32,
    pub(super) missing: Missing,
}

/// Reads trees one after the other, in the same room.
pub(super) struct TreeReader<'f> {
    floats: &'f [FloatFeature],
    outputs: usize,
    splits: Vec<Split>,
    leaves: Vec<f64>,
    covers: Vec<f64>,
}

/// A node whose fields are being read.
struct OpenNode {
    fields: PullFields,
    /// Where it goes in its parent.
    is_right: bool,
    split: Option<u32>,
    leaf: Option<u32>,
    test: Option<(u32, SplitTest)>,
    left: Option<Branch>,
    right: Option<Branch>,
    cover: f64,
}

impl<'f> TreeReader<'f> {
    pub(super) fn new(floats: &'f [FloatFeature], outputs: usize) -> TreeReader<'f> {
        TreeReader { floats, outputs, splits: Vec::new(), leaves: Vec::new(), covers: Vec::new() }
    }

    fn clear(&mut self) {
        self.splits.clear();
        self.leaves.clear();
        self.covers.clear();
    }

    pub(super) fn oblivious(&mut self, pull: &mut Pull<'_>, builder: &mut Builder) -> Read<()> {
        let at = pull.at();
        self.clear();
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match (&*name, pull.peek()?) {
                ("leaf_values", _) => doubles(pull, &mut self.leaves)?,
                ("leaf_weights", Kind::Array) => doubles(pull, &mut self.covers)?,
                // A tree without a split.
                ("leaf_weights" | "splits", Kind::Null) => pull.skip()?,
                ("splits", _) => {
                    let mut items = pull.open_array()?;
                    while pull.item(&mut items)? {
                        let (feature, test) = self.test(pull)?;
                        let leaf = Branch::Leaf(0);
                        self.splits.push(Split { feature, test, left: leaf, right: leaf, cover: f64::NAN });
                    }
                }
                (name, _) => return unknown(pull, name, "a tree"),
            }
        }
        let tree = builder.trees();
        builder.oblivious_tree(self.source(tree)).map_err(|fault| ModelProblem::tree(at, tree, fault))
    }

    fn source(&self, tree: usize) -> TreeSource<'_> {
        TreeSource {
            iteration: tree as u32,
            output: 0,
            splits: &self.splits,
            leaves: &self.leaves,
            leaf_covers: &self.covers,
            linear: &[],
        }
    }

    fn test(&self, pull: &mut Pull<'_>) -> Read<(u32, SplitTest)> {
        let (mut border, mut float) = (None, None);
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                "border" => border = Some(double(pull)?),
                "float_feature_index" => match pull.number()? {
                    Number::Int(index) => float = usize::try_from(index).ok().and_then(|at| self.floats.get(at)),
                    Number::Float(_) | Number::OutOfRange => {}
                },
                "split_type" => match &*pull.string()? {
                    "FloatFeature" => {}
                    other => return pull.fail(format!("a split of the type `{other}` is not read")),
                },
                "split_index" => pull.skip()?,
                name => return unknown(pull, name, "a split"),
            }
        }
        let (Some(threshold), Some(float)) = (border, float) else {
            return pull.fail("a split without a border, or on a feature that does not exist");
        };
        Ok((float.feature, SplitTest::Above { threshold, missing: float.missing }))
    }

    /// A tree whose splits are nested: with a list of what is open in place of recursion.
    pub(super) fn tree(&mut self, pull: &mut Pull<'_>, builder: &mut Builder) -> Read<()> {
        let at = pull.at();
        self.clear();
        let mut open = vec![OpenNode::new(pull, false)?];
        while let Some(node) = open.last_mut() {
            let Some(name) = pull.field(&mut node.fields)? else {
                let (branch, is_right) = self.close(node, pull)?;
                open.pop();
                if let Some(parent) = open.last_mut() {
                    *(if is_right { &mut parent.right } else { &mut parent.left }) = Some(branch);
                }
                continue;
            };
            match &*name {
                "left" | "right" | "split" => {
                    // The root is numbered first, because its first field comes first.
                    if node.split.is_none() {
                        node.split = Some(self.splits.len() as u32);
                        let (leaf, test) = (Branch::Leaf(u32::MAX), SplitTest::Members(u32::MAX));
                        self.splits.push(Split { feature: 0, test, left: leaf, right: leaf, cover: f64::NAN });
                    }
                    match &*name {
                        "split" => node.test = Some(self.test(pull)?),
                        side => open.push(OpenNode::new(pull, side == "right")?),
                    }
                }
                "value" => {
                    node.leaf = Some((self.leaves.len() / self.outputs) as u32);
                    match pull.peek()? {
                        Kind::Array => {
                            let mut values = Vec::new();
                            doubles(pull, &mut values)?;
                            if values.len() != self.outputs {
                                return pull.fail(format!(
                                    "{} values in a leaf for {} outputs",
                                    values.len(),
                                    self.outputs
                                ));
                            }
                            self.leaves.extend(values);
                        }
                        _ if self.outputs == 1 => self.leaves.push(double(pull)?),
                        _ => return pull.fail("expected a value for each output"),
                    }
                    self.covers.push(f64::NAN);
                    if self.covers.len() > LEAVES_MAX {
                        return pull.fail(format!("more than {LEAVES_MAX} leaves"));
                    }
                }
                "weight" => node.cover = double(pull)?,
                name => return unknown(pull, name, "a tree"),
            }
        }
        self.add_covers();
        let tree = builder.trees();
        builder.tree(self.source(tree)).map_err(|fault| ModelProblem::tree(at, tree, fault))
    }

    fn close(&mut self, node: &OpenNode, pull: &Pull<'_>) -> Read<(Branch, bool)> {
        let branch = match (node.split, node.leaf, node.test, node.left, node.right) {
            (Some(at), None, Some((feature, test)), Some(left), Some(right)) => {
                self.splits[at as usize] = Split { feature, test, left, right, cover: f64::NAN };
                Branch::Split(at)
            }
            (None, Some(leaf), None, None, None) => {
                self.covers[leaf as usize] = node.cover;
                Branch::Leaf(leaf)
            }
            _ => return pull.fail("a node that is neither a whole split nor a leaf"),
        };
        Ok((branch, node.is_right))
    }

    /// Splits have what their leaves have together. Each comes before its children.
    fn add_covers(&mut self) {
        for at in (0..self.splits.len()).rev() {
            let cover = |branch: Branch| match branch {
                Branch::Split(split) => self.splits.get(split as usize).map_or(f64::NAN, |split| split.cover),
                Branch::Leaf(leaf) => self.covers.get(leaf as usize).copied().unwrap_or(f64::NAN),
            };
            self.splits[at].cover = cover(self.splits[at].left) + cover(self.splits[at].right);
        }
    }
}

impl OpenNode {
    fn new(pull: &mut Pull<'_>, is_right: bool) -> Read<OpenNode> {
        let fields = pull.open_object()?;
        Ok(OpenNode { fields, is_right, split: None, leaf: None, test: None, left: None, right: None, cover: f64::NAN })
    }
}
