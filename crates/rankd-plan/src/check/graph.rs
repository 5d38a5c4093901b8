//! The order in which nodes can run, and which of them matter. Linear in nodes and edges, whatever the number of paths.

use crate::check::Draft;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::plan::NodeIx;
use crate::wire::WirePlan;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Every node after its inputs, as near to the artifact's order as that allows. `None` where nodes wait for each other.
pub(super) fn order(wire: &WirePlan<'_>, drafts: &[Draft], found: &mut Diagnostics) -> Option<Vec<NodeIx>> {
    let mut waiting: Vec<usize> = drafts.iter().map(|draft| draft.inputs.iter().flatten().count()).collect();
    let mut readers: Vec<Vec<NodeIx>> = vec![Vec::new(); drafts.len()];
    for (at, draft) in drafts.iter().enumerate() {
        for input in draft.inputs.iter().flatten() {
            readers[*input as usize].push(at as NodeIx);
        }
    }
    let mut ready: BinaryHeap<Reverse<NodeIx>> =
        (0..drafts.len() as NodeIx).filter(|at| waiting[*at as usize] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(drafts.len());
    while let Some(Reverse(at)) = ready.pop() {
        order.push(at);
        for &reader in &readers[at as usize] {
            waiting[reader as usize] -= 1;
            if waiting[reader as usize] == 0 {
                ready.push(Reverse(reader));
            }
        }
    }
    if order.len() == drafts.len() {
        return Some(order);
    }
    report_cycles(wire, drafts, &waiting, found);
    None
}

/// Names one cycle for each group of nodes that wait for each other.
fn report_cycles(wire: &WirePlan<'_>, drafts: &[Draft], waiting: &[usize], found: &mut Diagnostics) {
    let mut visited = vec![false; drafts.len()];
    for start in (0..drafts.len()).filter(|at| waiting[*at] > 0) {
        // Every stuck node waits for a stuck node: walking from one to the next must come back on itself.
        let mut path = Vec::new();
        let mut at = start;
        while !visited[at] {
            visited[at] = true;
            path.push(at);
            let next = drafts[at].inputs.iter().flatten().find(|input| waiting[**input as usize] > 0);
            match next {
                Some(next) => at = *next as usize,
                None => break,
            }
        }
        let Some(first) = path.iter().position(|&seen| seen == at) else { continue };
        let cycle = &path[first..];
        let shown: Vec<&str> = cycle.iter().rev().take(10).map(|at| &*wire.nodes[*at].node_id).collect();
        let more = if cycle.len() > 10 { " → …" } else { "" };
        let message = format!("{}{more} → {} wait for each other", shown.join(" → "), shown[0]);
        let pointer = format!("/nodes/{}/inputs", cycle[cycle.len() - 1]);
        let source = drafts[cycle[cycle.len() - 1]].source.clone();
        found.push(Diagnostic::new(Code::Cycle, pointer, message).source(source));
    }
}

/// Which nodes some output needs; the others are warned of.
pub(super) fn needed(wire: &WirePlan<'_>, drafts: &[Draft], outputs: &[NodeIx], found: &mut Diagnostics) -> Vec<bool> {
    let mut needed = vec![false; drafts.len()];
    let mut open: Vec<NodeIx> = outputs.to_vec();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut needed[at as usize], true) {
            open.extend(drafts[at as usize].inputs.iter().flatten());
        }
    }
    // Without outputs nothing is needed, and that has been reported.
    for at in (0..drafts.len()).filter(|at| !needed[*at] && !outputs.is_empty()) {
        let message = format!("no output needs the node {}", quoted(&wire.nodes[at].node_id));
        let unreachable = Diagnostic::new(Code::Unreachable, format!("/nodes/{at}"), message);
        found.push(unreachable.source(drafts[at].source.clone()));
    }
    needed
}
