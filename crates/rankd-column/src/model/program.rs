//! The order in which the splits of a tree are worked out, bottom-up, so that each knows the leaves of its children.
//!
//! A split's result is a byte for each row: the leaf below it that the row would come to. It takes the place of a child's result. Splits of
//! one kind follow each other as far as they can, because a processor guesses wrong when kinds alternate.

use super::forest::TreeNode;

/// Trees with more leaves are walked row by row instead.
pub(super) const MASK_LEAVES_MAX: usize = 256;

/// What the children of a split are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpKind {
    /// Both leaves: `a` and `b` are their numbers, and the result's place is `to`.
    Leaves,
    /// Left a leaf, `a`; right a result, at `b`, whose place is taken.
    LeafLeft,
    /// Left a result, at `a`, whose place is taken; right a leaf, `b`.
    LeafRight,
    /// Two results; the left one's place is taken.
    Results,
}

const KINDS: [OpKind; 4] = [OpKind::Leaves, OpKind::LeafLeft, OpKind::LeafRight, OpKind::Results];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MaskOp {
    pub(super) column: u32,
    pub(super) rank: u8,
    pub(super) a: u8,
    pub(super) b: u8,
    pub(super) to: u8,
}

/// Operations of one kind, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) kind: OpKind,
    pub(super) ops: u32,
    pub(super) op_count: u32,
}

/// Appends the operations of a tree of at most [`MASK_LEAVES_MAX`] leaves. The place of the root's result.
pub(super) fn schedule(nodes: &[TreeNode], ops: &mut Vec<MaskOp>, runs: &mut Vec<Run>) -> u8 {
    let mut parents = vec![usize::MAX; nodes.len()];
    let mut waiting = vec![0; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        for child in [node.left, node.right] {
            if let Ok(child) = usize::try_from(child) {
                parents[child] = at;
                waiting[at] += 1;
            }
        }
    }
    let kind = |node: &TreeNode| match (node.left < 0, node.right < 0) {
        (true, true) => OpKind::Leaves,
        (true, false) => OpKind::LeafLeft,
        (false, true) => OpKind::LeafRight,
        (false, false) => OpKind::Results,
    };
    let mut ready: [Vec<usize>; 4] = Default::default();
    let queue = |ready: &mut [Vec<usize>; 4], at: usize| ready[kind(&nodes[at]) as usize].push(at);
    (0..nodes.len()).filter(|at| waiting[*at] == 0).for_each(|at| queue(&mut ready, at));
    let (mut places, mut free, mut next) = (vec![0u8; nodes.len()], Vec::new(), 0u8);
    // The kind with most to do comes next, and goes on with what it has made ready.
    while let Some(kind) = KINDS.into_iter().max_by_key(|kind| ready[*kind as usize].len()) {
        if ready[kind as usize].is_empty() {
            break;
        }
        let first = ops.len();
        while let Some(at) = ready[kind as usize].pop() {
            let node = &nodes[at];
            let operand = |child: i32| if child < 0 { !child as u8 } else { places[child as usize] };
            let (a, b) = (operand(node.left), operand(node.right));
            let to = match kind {
                OpKind::Leaves => free.pop().unwrap_or_else(|| {
                    next += 1;
                    next - 1
                }),
                OpKind::LeafLeft => b,
                OpKind::LeafRight => a,
                OpKind::Results => {
                    free.push(b);
                    a
                }
            };
            places[at] = to;
            ops.push(MaskOp { column: node.column, rank: node.rank, a, b, to });
            if let Some(left) = waiting.get_mut(parents[at]) {
                *left -= 1;
                if *left == 0 {
                    queue(&mut ready, parents[at]);
                }
            }
        }
        runs.push(Run { kind, ops: first as u32, op_count: (ops.len() - first) as u32 });
    }
    places.first().copied().unwrap_or(0)
}
