//! Where vertices are from left to right. The order and the room between neighbours are given; each layer in turn is put as near as
//! it can be to the medians of the layers beside it, which is an isotonic regression and solved exactly.

use super::GAP;
use super::net::Net;

/// Room beside a bend.
const BEND_GAP: f64 = 14.0;

/// Rounds go on for so many visits of pieces.
const VISITS: usize = 1_000_000;
const ROUNDS: std::ops::RangeInclusive<usize> = 2..=12;

/// The centre of each vertex. The leftmost edge of a box is at [`GAP`].
pub(super) fn centres(net: &Net, layers: &[Vec<u32>]) -> Vec<f64> {
    let mut centres = vec![0.0; net.layer.len()];
    let mut fit = Fit::default();
    for layer in layers {
        fit.pack(net, layer, &mut centres);
    }
    let rounds = (VISITS / (net.pieces() + net.layer.len())).clamp(*ROUNDS.start(), *ROUNDS.end());
    for round in 0..rounds {
        for layer in layers.iter().skip(1) {
            fit.layer(net, layer, Sides { up: true, down: false }, &mut centres);
        }
        for layer in layers.iter().rev().skip(1) {
            fit.layer(net, layer, Sides { up: false, down: true }, &mut centres);
        }
        // Towards the end both sides count, so that what hangs between two layers comes to rest between them.
        if round * 2 >= rounds {
            for layer in layers {
                fit.layer(net, layer, Sides { up: true, down: true }, &mut centres);
            }
        }
    }
    for _ in 0..2 {
        for layer in layers.iter().rev().skip(1) {
            fit.straighten(net, layer, &mut centres, |vertex| follower(net, vertex));
        }
        for layer in layers.iter().skip(1) {
            fit.straighten(net, layer, &mut centres, |vertex| leader(net, vertex));
        }
    }
    let left = (0..net.layer.len()).map(|at| centres[at] - net.width[at] / 2.0).fold(f64::INFINITY, f64::min);
    centres.iter_mut().for_each(|x| *x = (*x - left + GAP).round());
    centres
}

/// The vertex above that this one should be exactly below: they have nobody else, or are bends of one line.
fn leader(net: &Net, vertex: u32) -> Option<u32> {
    let [above] = net.up.of(vertex) else { return None };
    let goes_on = net.is_bend(*above) && net.is_bend(vertex);
    (goes_on || net.down.of(*above).len() == 1).then_some(*above)
}

/// The same the other way round.
fn follower(net: &Net, vertex: u32) -> Option<u32> {
    let below = net.down.of(vertex);
    let bend = below.iter().find(|below| net.is_bend(**below)).filter(|_| net.is_bend(vertex));
    let only = if let [only] = below { Some(only) } else { None };
    bend.or(only).copied().filter(|below| net.up.of(*below).len() == 1)
}

#[derive(Clone, Copy)]
struct Sides {
    up: bool,
    down: bool,
}

/// Working memory.
#[derive(Default)]
struct Fit {
    /// Neighbours' centres with their weights.
    ends: Vec<(f64, f64)>,
    /// Vertices that touch: the sum of weights, the weighted sum of where they want to be, and how many they are.
    blocks: Vec<(f64, f64, usize)>,
    offsets: Vec<f64>,
}

impl Fit {
    /// All as far left as they can be, around 0.
    fn pack(&mut self, net: &Net, layer: &[u32], centres: &mut [f64]) {
        let width = self.measure(net, layer);
        for (vertex, offset) in layer.iter().zip(&self.offsets) {
            centres[*vertex as usize] = offset - width / 2.0;
        }
    }

    /// The least distance of each vertex from the first; the last of them.
    fn measure(&mut self, net: &Net, layer: &[u32]) -> f64 {
        self.offsets.clear();
        let (mut offset, mut before): (f64, Option<u32>) = (0.0, None);
        for vertex in layer {
            if let Some(before) = before {
                let gap = if net.is_bend(before) || net.is_bend(*vertex) { BEND_GAP } else { GAP };
                // Rounding takes at most one of it.
                offset += (net.width[before as usize] + net.width[*vertex as usize]) / 2.0 + gap + 1.0;
            }
            self.offsets.push(offset);
            before = Some(*vertex);
        }
        offset
    }

    /// Moves a layer towards its neighbours.
    fn layer(&mut self, net: &Net, layer: &[u32], sides: Sides, centres: &mut [f64]) {
        self.measure(net, layer);
        self.blocks.clear();
        for (vertex, offset) in layer.iter().zip(&self.offsets) {
            let (wanted, weight) = Fit::wanted(&mut self.ends, net, *vertex, sides, centres);
            let mut block = (weight, weight * (wanted - offset), 1);
            // A block that would lie left of the one before joins it.
            while let Some(before) = self.blocks.last().copied() {
                if before.1 / before.0 <= block.1 / block.0 {
                    break;
                }
                block = (block.0 + before.0, block.1 + before.1, block.2 + before.2);
                self.blocks.pop();
            }
            self.blocks.push(block);
        }
        let places = self.blocks.iter().flat_map(|(weight, sum, count)| std::iter::repeat_n(sum / weight, *count));
        for ((vertex, offset), place) in layer.iter().zip(&self.offsets).zip(places) {
            centres[*vertex as usize] = place + offset;
        }
    }

    /// Moves vertices exactly below or above others, as far as there is room between their neighbours: those that go left from left to right,
    /// then the others from right to left.
    fn straighten(&mut self, net: &Net, layer: &[u32], centres: &mut [f64], other: impl Fn(u32) -> Option<u32>) {
        self.measure(net, layer);
        let goal = |at: usize, centres: &[f64]| other(layer[at]).map(|other| centres[other as usize]);
        for at in 0..layer.len() {
            let (now, least) =
                (centres[layer[at] as usize], at.checked_sub(1).map(|before| self.beside(layer, before, at, centres)));
            if let Some(goal) = goal(at, centres).filter(|goal| *goal < now) {
                centres[layer[at] as usize] = least.map_or(goal, |least| goal.max(least.min(now)));
            }
        }
        for at in (0..layer.len()).rev() {
            let now = centres[layer[at] as usize];
            let most = (at + 1 < layer.len()).then(|| self.beside(layer, at + 1, at, centres));
            if let Some(goal) = goal(at, centres).filter(|goal| *goal > now) {
                centres[layer[at] as usize] = most.map_or(goal, |most| goal.min(most.max(now)));
            }
        }
    }

    /// Where a vertex is that is as near as can be to a neighbour.
    fn beside(&self, layer: &[u32], neighbour: usize, at: usize, centres: &[f64]) -> f64 {
        centres[layer[neighbour] as usize] + self.offsets[at] - self.offsets[neighbour]
    }

    /// Where a vertex wants to be, and how much.
    fn wanted(ends: &mut Vec<(f64, f64)>, net: &Net, vertex: u32, sides: Sides, centres: &[f64]) -> (f64, f64) {
        ends.clear();
        let (up, down) =
            (if sides.up { net.up.of(vertex) } else { &[] }, if sides.down { net.down.of(vertex) } else { &[] });
        for other in up.iter().chain(down) {
            ends.push((centres[*other as usize], weight(net, vertex, *other)));
        }
        if ends.is_empty() {
            // It stays, as far as others let it.
            return (centres[vertex as usize], 0.05);
        }
        // Each side is sorted already.
        if !up.is_empty() && !down.is_empty() {
            ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let all: f64 = ends.iter().map(|(_, weight)| weight).sum();
        let mut below = 0.0;
        for (at, (x, weight)) in ends.iter().enumerate() {
            below += weight;
            if below * 2.0 > all {
                return (*x, all);
            }
            if below * 2.0 == all {
                let next = ends.get(at + 1).map_or(*x, |(next, _)| *next);
                return ((x + next) / 2.0, all);
            }
        }
        (centres[vertex as usize], all)
    }
}

/// Long lines are to be straight before short ones.
fn weight(net: &Net, a: u32, b: u32) -> f64 {
    match (net.is_bend(a), net.is_bend(b)) {
        (true, true) => 8.0,
        (true, false) | (false, true) => 2.0,
        (false, false) => 1.0,
    }
}
