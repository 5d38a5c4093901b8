//! The order of the vertices in each layer: sweeps down and up put each vertex at the mean of its neighbours, then neighbours change
//! places where that removes crossings. The order with the fewest crossings is kept, so it is never worse than the first one.

use super::net::Net;

/// Sweeps over the net and exchanges of neighbours go on for so many visits of pieces, so that large graphs take few rounds.
const SWEEP_VISITS: usize = 1_000_000;
const SWEEPS: std::ops::RangeInclusive<usize> = 2..=24;
const EXCHANGE_VISITS: usize = 300_000;
const EXCHANGES_MAX: usize = 10;

/// Sweeps end when so many in a row brought nothing.
const PATIENCE: usize = 4;

/// The vertices of each layer, from left to right.
pub(super) struct Ordered {
    pub(super) layers: Vec<Vec<u32>>,
    pub(super) crossings: u64,
    pub(super) crossings_before: u64,
}

/// Orders the layers, and the net's lists of neighbours from left to right.
pub(super) fn order(net: &mut Net) -> Ordered {
    let mut sweep = Sweep::new(net);
    let before = sweep.crossings(net);
    let (mut best, mut fewest, mut in_vain) = (sweep.layers.clone(), before, 0);
    let rounds = (SWEEP_VISITS / (net.pieces() + net.layer.len())).clamp(*SWEEPS.start(), *SWEEPS.end());
    for _ in 0..rounds {
        if fewest == 0 || in_vain == PATIENCE {
            break;
        }
        sweep.down(net);
        sweep.up(net);
        let crossings = sweep.crossings(net);
        in_vain += 1;
        if crossings < fewest {
            (best, fewest, in_vain) = (sweep.layers.clone(), crossings, 0);
        }
    }
    sweep.set(best);
    sweep.sort_neighbours(net);
    if fewest > 0 {
        for _ in 0..(EXCHANGE_VISITS / (net.pieces() + 1)).min(EXCHANGES_MAX) {
            if !sweep.exchange(net) {
                break;
            }
        }
        fewest = sweep.crossings(net);
        sweep.sort_neighbours(net);
    }
    Ordered { layers: sweep.layers, crossings: fewest, crossings_before: before }
}

struct Sweep {
    layers: Vec<Vec<u32>>,
    /// By vertex: its position in its layer.
    position: Vec<u32>,
    /// Working memory.
    means: Vec<(f64, u32)>,
    slots: Vec<usize>,
    tree: Vec<u32>,
    ends: Vec<u32>,
}

impl Sweep {
    /// As a walk in depth from the first box finds them: what belongs together is beside each other.
    fn new(net: &Net) -> Sweep {
        let count = net.layer.len();
        let depth = net.layer.iter().max().map_or(0, |deepest| *deepest as usize + 1);
        let mut layers = vec![Vec::new(); depth];
        let mut is_seen = vec![false; count];
        let mut open: Vec<u32> = Vec::new();
        let roots = (0..count as u32).filter(|at| net.up.of(*at).is_empty());
        for root in roots.chain(0..count as u32) {
            open.push(root);
            while let Some(at) = open.pop() {
                if std::mem::replace(&mut is_seen[at as usize], true) {
                    continue;
                }
                layers[net.layer[at as usize] as usize].push(at);
                open.extend(net.down.of(at).iter().rev().filter(|below| !is_seen[**below as usize]));
            }
        }
        let (position, widest) = (vec![0; count], layers.iter().map(Vec::len).max().unwrap_or(0));
        let (means, slots, ends) = (Vec::new(), Vec::new(), Vec::new());
        let mut sweep = Sweep { layers, position, means, slots, tree: vec![0; widest + 1], ends };
        (0..depth).for_each(|layer| sweep.number(layer));
        sweep
    }

    fn set(&mut self, layers: Vec<Vec<u32>>) {
        self.layers = layers;
        (0..self.layers.len()).for_each(|layer| self.number(layer));
    }

    fn number(&mut self, layer: usize) {
        for (at, vertex) in self.layers[layer].iter().enumerate() {
            self.position[*vertex as usize] = at as u32;
        }
    }

    fn down(&mut self, net: &Net) {
        (1..self.layers.len()).for_each(|layer| self.arrange(layer, |vertex| net.up.of(vertex)));
    }

    fn up(&mut self, net: &Net) {
        (0..self.layers.len()).rev().for_each(|layer| self.arrange(layer, |vertex| net.down.of(vertex)));
    }

    /// Sorts a layer by the mean position of each vertex's neighbours. A vertex without any stays where it is.
    fn arrange<'n>(&mut self, layer: usize, neighbours: impl Fn(u32) -> &'n [u32]) {
        self.means.clear();
        self.slots.clear();
        for (slot, vertex) in self.layers[layer].iter().enumerate() {
            let neighbours = neighbours(*vertex);
            if !neighbours.is_empty() {
                let sum: u64 = neighbours.iter().map(|other| u64::from(self.position[*other as usize])).sum();
                self.means.push((sum as f64 / neighbours.len() as f64, *vertex));
                self.slots.push(slot);
            }
        }
        self.means.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (slot, (_, vertex)) in self.slots.iter().zip(&self.means) {
            self.layers[layer][*slot] = *vertex;
        }
        self.number(layer);
    }

    /// How many pairs of pieces cross.
    fn crossings(&mut self, net: &Net) -> u64 {
        let mut crossings = 0;
        for pair in self.layers.windows(2) {
            let [upper, lower] = pair else { continue };
            // Pieces from left to right by their upper ends; those before with a lower end further right are crossed. The tree counts lower ends.
            let tree = &mut self.tree[..=lower.len()];
            tree.fill(0);
            let mut count = 0u64;
            for vertex in upper {
                self.ends.clear();
                self.ends.extend(net.down.of(*vertex).iter().map(|below| self.position[*below as usize]));
                self.ends.sort_unstable();
                for end in &self.ends {
                    let (mut at, mut not_right) = (*end as usize + 1, 0u64);
                    while at > 0 {
                        not_right += u64::from(tree[at]);
                        at &= at - 1;
                    }
                    crossings += count - not_right;
                }
                for end in &self.ends {
                    let mut at = *end as usize + 1;
                    while at < tree.len() {
                        tree[at] += 1;
                        at += at & at.wrapping_neg();
                    }
                    count += 1;
                }
            }
        }
        crossings
    }

    /// Exchanges neighbours in all layers where that removes crossings. True where it did.
    fn exchange(&mut self, net: &Net) -> bool {
        let mut has_changed = false;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for layer in 0..self.layers.len() {
            for at in 1..self.layers[layer].len() {
                let (a, b) = (self.layers[layer][at - 1], self.layers[layer][at]);
                let (mut now, mut then) = (0, 0);
                for (of_a, of_b) in [(net.up.of(a), net.up.of(b)), (net.down.of(a), net.down.of(b))] {
                    for (ends, of) in [(&mut left, of_a), (&mut right, of_b)] {
                        ends.clear();
                        ends.extend(of.iter().map(|other| self.position[*other as usize]));
                        ends.sort_unstable();
                    }
                    now += inversions(&left, &right);
                    then += inversions(&right, &left);
                }
                if then < now {
                    self.layers[layer].swap(at - 1, at);
                    (self.position[a as usize], self.position[b as usize]) = (at as u32, at as u32 - 1);
                    has_changed = true;
                }
            }
        }
        has_changed
    }

    fn sort_neighbours(&self, net: &mut Net) {
        for vertex in 0..net.layer.len() as u32 {
            for lists in [&mut net.up, &mut net.down] {
                lists.of_mut(vertex).sort_by_key(|other| self.position[*other as usize]);
            }
        }
    }
}

/// Of two sorted lists: how many pairs have the one of `left` greater than the one of `right`.
fn inversions(left: &[u32], right: &[u32]) -> u64 {
    let (mut pairs, mut smaller) = (0, 0);
    for end in left {
        while right.get(smaller).is_some_and(|other| other < end) {
            smaller += 1;
        }
        pairs += smaller as u64;
    }
    pairs
}
