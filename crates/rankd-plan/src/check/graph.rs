//! The order in which nodes can run, and which of them matter. Linear in nodes and edges, whatever the number of paths.

use crate::check::Draft;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::plan::NodeIx;
use crate::wire::WirePlan;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Every node after its inputs and after those that it names in place of its own rows, as near to the artifact's order as that allows. `None` where nodes wait for each other.
pub(super) fn order(wire: &WirePlan<'_>, drafts: &[Draft], found: &mut Diagnostics) -> Option<Vec<NodeIx>> {
    let mut waiting: Vec<usize> = drafts.iter().map(|draft| draft.waits_for().count()).collect();
    let mut readers: Vec<Vec<NodeIx>> = vec![Vec::new(); drafts.len()];
    for (at, draft) in drafts.iter().enumerate() {
        for (_, other) in draft.waits_for() {
            readers[other as usize].push(at as NodeIx);
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
            let next = drafts[at].waits_for().find(|(_, other)| waiting[*other as usize] > 0);
            match next {
                Some((_, next)) => at = next as usize,
                None => break,
            }
        }
        let Some(first) = path.iter().position(|&seen| seen == at) else { continue };
        let cycle = &path[first..];
        let shown: Vec<&str> = cycle.iter().rev().take(10).map(|at| &*wire.nodes[*at].node_id).collect();
        let more = if cycle.len() > 10 { " → …" } else { "" };
        let message = format!("{}{more} → {} wait for each other", shown.join(" → "), shown[0]);
        let last = cycle[cycle.len() - 1];
        let field =
            drafts[last].waits_for().find(|(_, other)| *other as usize == at).map_or("inputs", |(field, _)| field);
        let pointer = format!("/nodes/{last}/{field}");
        let source = drafts[last].source.clone();
        found.push(Diagnostic::new(Code::Cycle, pointer, message).source(source));
    }
}

/// Which nodes matter.
pub(super) struct Reach {
    /// Those that some output needs, or may need in place of other nodes.
    pub(super) needed: Vec<bool>,
    /// Those that some output needs by inputs alone.
    pub(super) eager: Vec<bool>,
}

/// Finds which nodes matter, and warns of the others.
pub(super) fn reach(wire: &WirePlan<'_>, drafts: &[Draft], outputs: &[NodeIx], found: &mut Diagnostics) -> Reach {
    let eager = reached(drafts, outputs, |draft, open| open.extend(draft.awaited()));
    let needed = reached(drafts, outputs, |draft, open| open.extend(draft.waits_for().map(|(_, other)| other)));
    // Without outputs nothing is needed, and that has been reported.
    for at in (0..drafts.len()).filter(|at| !needed[*at] && !outputs.is_empty()) {
        let message = format!("no output needs the node {}", quoted(&wire.nodes[at].node_id));
        let unreachable = Diagnostic::new(Code::Unreachable, format!("/nodes/{at}"), message);
        found.push(unreachable.source(drafts[at].source.clone()));
    }
    Reach { needed, eager }
}

/// The nodes that are reached from some; `next` adds those that are one step away.
fn reached(drafts: &[Draft], from: &[NodeIx], next: impl Fn(&Draft, &mut Vec<NodeIx>)) -> Vec<bool> {
    let mut reached = vec![false; drafts.len()];
    let mut open = from.to_vec();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut reached[at as usize], true) {
            next(&drafts[at as usize], &mut open);
        }
    }
    reached
}
