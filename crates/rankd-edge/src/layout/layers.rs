//! Which layer each box is in: below all that it reads, by the longest path.

use super::{Graph, Neighbours};

/// The layer of each box, counted from the top.
pub(super) fn layers(graph: &Graph) -> Vec<u32> {
    let count = graph.boxes.len();
    let readers = Neighbours::new(count, graph.lines().map(|(_, edge)| (edge.from, edge.to)));
    let inputs = Neighbours::new(count, graph.lines().map(|(_, edge)| (edge.to, edge.from)));
    let order = topological(count, &inputs, &readers);
    let mut layer = vec![0u32; count];
    let mut is_settled = vec![false; count];
    for &at in &order {
        let above = inputs.of(at).iter().filter(|input| is_settled[**input as usize]);
        layer[at as usize] = above.map(|input| layer[*input as usize] + 1).max().unwrap_or(0);
        is_settled[at as usize] = true;
    }
    // What leads from a source to a single reader moves down to it: a source of a late step is not at the top of the picture.
    let mut is_loose = vec![false; count];
    for &at in &order {
        is_loose[at as usize] = match inputs.of(at) {
            [] => true,
            [input] => is_loose[*input as usize] && readers.of(*input).len() == 1,
            _ => false,
        };
    }
    for &at in order.iter().rev().filter(|at| is_loose[**at as usize]) {
        let below = readers.of(at).iter().map(|reader| layer[*reader as usize]).min();
        layer[at as usize] = below.map_or(layer[at as usize], |below| below.saturating_sub(1).max(layer[at as usize]));
    }
    layer
}

/// The boxes, each after its inputs. Where they form a circle, the first box of it goes before its inputs.
fn topological(count: usize, inputs: &Neighbours, readers: &Neighbours) -> Vec<u32> {
    let mut waits: Vec<usize> = (0..count as u32).map(|at| inputs.of(at).len()).collect();
    let mut is_taken = vec![false; count];
    let mut order: Vec<u32> = Vec::with_capacity(count);
    let mut seen = 0;
    // First what waits for nothing, in the order of the graph, then what that made ready; a box of a circle only where nothing else is left.
    for first in (0..count).filter(|at| inputs.of(*at as u32).is_empty()).chain(0..count).collect::<Vec<_>>() {
        if std::mem::replace(&mut is_taken[first], true) {
            continue;
        }
        order.push(first as u32);
        while let Some(&at) = order.get(seen) {
            seen += 1;
            for &reader in readers.of(at) {
                let waiting = &mut waits[reader as usize];
                *waiting = waiting.saturating_sub(1);
                if *waiting == 0 && !std::mem::replace(&mut is_taken[reader as usize], true) {
                    order.push(reader);
                }
            }
        }
    }
    order
}
