//! The order in which the nodes of a tree are computed, chosen so that few values wait to be read.
//!
//! Where a node reads several others, the one that needs the most registers goes first, while nothing else waits yet. A tree
//! then needs a number of registers that grows with the logarithm of its size, however it leans. Steps have no side effects,
//! so any order with children before parents gives the same values.

use crate::expr::tree::{Ix, Op, Tree};

/// Which nodes are computed, in which order.
pub(super) struct Schedule {
    /// The nodes to compute: those that differ by row and that the root reads, itself last.
    pub(super) nodes: Vec<Ix>,
    /// By node: how many times those nodes read it.
    pub(super) readers: Vec<u32>,
}

impl Schedule {
    pub(super) fn of(tree: &Tree, uniform: &[bool]) -> Schedule {
        let needs = needs(tree, uniform);
        let mut schedule = Schedule { nodes: Vec::with_capacity(needs.len()), readers: vec![0; needs.len()] };
        let mut entered = vec![false; needs.len()];
        let mut done = vec![false; needs.len()];
        let mut open: Vec<Ix> = (0..needs.len() as Ix).last().into_iter().filter(|&ix| !uniform[ix as usize]).collect();
        while let Some(&ix) = open.last() {
            let at = ix as usize;
            if !entered[at] {
                entered[at] = true;
                let first = open.len();
                open.extend(tree.op(ix).children().filter(|&child| !uniform[child as usize]));
                // The last one is opened first.
                open[first..].sort_by_key(|&child| needs[child as usize]);
                for &child in &open[first..] {
                    schedule.readers[child as usize] += 1;
                }
                continue;
            }
            open.pop();
            if !done[at] {
                done[at] = true;
                schedule.nodes.push(ix);
            }
        }
        schedule
    }
}

/// By node: about how many registers it takes to compute it.
fn needs(tree: &Tree, uniform: &[bool]) -> Vec<u32> {
    let mut needs: Vec<u32> = Vec::with_capacity(uniform.len());
    for (node, same) in tree.nodes().iter().zip(uniform) {
        let mut below = [0; 3];
        for (need, child) in below.iter_mut().zip(node.op.children()) {
            *need = needs[child as usize];
        }
        below.sort_unstable_by(|a, b| b.cmp(a));
        let waiting = below.iter().zip(0..).filter(|(need, _)| **need > 0).map(|(need, before)| need + before).max();
        // What is the same on all rows, and what is read from a column, takes no register.
        needs.push(if *same { 0 } else { waiting.unwrap_or(u32::from(!matches!(node.op, Op::Key(_)))) });
    }
    needs
}
