//! From byte columns to the leaf of each row, by the shape of a tree.
//!
//! Everything here is inlined into a caller that runs with wide vectors. Choices are written as masks: a loop with an `if` on
//! arrays stays narrow.

use super::forest::{BLOCK, ByteLane, CompiledTree, Forest, Level, STRIP, Shape, TreeNode};
use super::program::{MASK_LEAVES_MAX, MaskOp, OpKind};

/// Results of splits that are waiting for their parents: never more than half of the leaves.
pub(super) const PLACES: usize = MASK_LEAVES_MAX / 2;

/// The leaf of each row in a tree of at most [`MASK_LEAVES_MAX`] leaves, where there is more than one. Only so many strips count.
#[inline(always)]
pub(super) fn leaves(
    forest: &Forest,
    tree: &CompiledTree,
    columns: &[ByteLane],
    strips: usize,
    places: &mut [ByteLane; PLACES],
    out: &mut ByteLane,
) {
    match tree.shape {
        Shape::Masks { runs, run_count, root } => {
            for run in &forest.runs[runs as usize..][..run_count as usize] {
                let ops = &forest.ops[run.ops as usize..][..run.op_count as usize];
                match run.kind {
                    OpKind::Leaves => ops.iter().for_each(|op| both_leaves(op, columns, strips, places)),
                    OpKind::LeafLeft => ops.iter().for_each(|op| leaf_left(op, columns, strips, places)),
                    OpKind::LeafRight => ops.iter().for_each(|op| leaf_right(op, columns, strips, places)),
                    OpKind::Results => ops.iter().for_each(|op| both_results(op, columns, strips, places)),
                }
            }
            *out = places[usize::from(root) % PLACES];
        }
        Shape::Oblivious { levels, level_count } => {
            let levels = &forest.levels[levels as usize..][..usize::from(level_count)];
            oblivious(levels, columns, strips, out);
        }
        Shape::Leaf | Shape::Walk => {}
    }
}

/// All bits where the row goes right.
#[inline(always)]
fn mask(byte: u8, rank: u8) -> u8 {
    0u8.wrapping_sub(u8::from(byte > rank))
}

#[inline(always)]
fn both_leaves(op: &MaskOp, columns: &[ByteLane], strips: usize, places: &mut [ByteLane; PLACES]) {
    let (bytes, place) = (&columns[op.column as usize], &mut places[usize::from(op.to) % PLACES]);
    // Where the mask is set, what differs is flipped.
    let differ = op.a ^ op.b;
    for (place, bytes) in place.iter_mut().zip(bytes).take(strips) {
        for at in 0..STRIP {
            place[at] = op.a ^ (differ & mask(bytes[at], op.rank));
        }
    }
}

#[inline(always)]
fn leaf_left(op: &MaskOp, columns: &[ByteLane], strips: usize, places: &mut [ByteLane; PLACES]) {
    let (bytes, place) = (&columns[op.column as usize], &mut places[usize::from(op.to) % PLACES]);
    for (place, bytes) in place.iter_mut().zip(bytes).take(strips) {
        for at in 0..STRIP {
            let right = mask(bytes[at], op.rank);
            place[at] = (place[at] & right) | (op.a & !right);
        }
    }
}

#[inline(always)]
fn leaf_right(op: &MaskOp, columns: &[ByteLane], strips: usize, places: &mut [ByteLane; PLACES]) {
    let (bytes, place) = (&columns[op.column as usize], &mut places[usize::from(op.to) % PLACES]);
    for (place, bytes) in place.iter_mut().zip(bytes).take(strips) {
        for at in 0..STRIP {
            let right = mask(bytes[at], op.rank);
            place[at] = (op.b & right) | (place[at] & !right);
        }
    }
}

#[inline(always)]
fn both_results(op: &MaskOp, columns: &[ByteLane], strips: usize, places: &mut [ByteLane; PLACES]) {
    let bytes = &columns[op.column as usize];
    // Two results never have one place.
    let Ok([place, other]) = places.get_disjoint_mut([usize::from(op.a), usize::from(op.b)]) else { return };
    for ((place, other), bytes) in place.iter_mut().zip(other).zip(bytes).take(strips) {
        for at in 0..STRIP {
            let right = mask(bytes[at], op.rank);
            place[at] = (other[at] & right) | (place[at] & !right);
        }
    }
}

#[inline(always)]
fn oblivious(levels: &[Level], columns: &[ByteLane], strips: usize, out: &mut ByteLane) {
    for (at, out) in out.iter_mut().enumerate().take(strips) {
        *out = [0; STRIP];
        for (bit, level) in levels.iter().enumerate() {
            let bytes = &columns[level.column as usize][at];
            for row in 0..STRIP {
                out[row] |= mask(bytes[row], level.rank) & (1 << (bit % 8)) as u8;
            }
        }
    }
}

/// The leaf of each row in a tree of any number of leaves.
#[inline(always)]
pub(super) fn many_leaves(
    forest: &Forest,
    tree: &CompiledTree,
    columns: &[ByteLane],
    len: usize,
    out: &mut [u32; BLOCK],
) {
    match tree.shape {
        Shape::Oblivious { levels, level_count } => {
            let levels = &forest.levels[levels as usize..][..usize::from(level_count)];
            let (mut low, mut high) = (super::forest::NO_LANE, super::forest::NO_LANE);
            let (first, rest) = levels.split_at(levels.len().min(8));
            oblivious(first, columns, len.div_ceil(STRIP), &mut low);
            oblivious(rest, columns, len.div_ceil(STRIP), &mut high);
            let bytes = low.as_flattened().iter().zip(high.as_flattened());
            out.iter_mut().zip(bytes).for_each(|(out, (low, high))| *out = u32::from(*low) | u32::from(*high) << 8);
        }
        Shape::Walk | Shape::Masks { .. } | Shape::Leaf => {
            let nodes = forest.nodes_of(tree);
            for (row, out) in out.iter_mut().enumerate().take(len) {
                *out = leaf_of(nodes, |column| columns[column as usize].as_flattened()[row]);
            }
        }
    }
}

/// The leaf that one row comes to. The builder has checked that there is no way back.
#[inline(always)]
pub(super) fn leaf_of(nodes: &[TreeNode], byte: impl Fn(u32) -> u8) -> u32 {
    let mut at = if nodes.is_empty() { !0 } else { 0 };
    while at >= 0 {
        let node = &nodes[at as usize];
        at = if byte(node.column) > node.rank { node.right } else { node.left };
    }
    !at as u32
}
