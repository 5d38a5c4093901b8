//! Whether one node stands in for several whose rows meet again: where all of those fail, its rows would be there twice.

use crate::check::Draft;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::plan::{NodeIx, Substitute};
use crate::signature::RowEffect;
use crate::wire::WirePlan;

/// A way by which the rows of a node get to others: in place of another node's, or, where both are the same, as its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    rows_of: NodeIx,
    by: NodeIx,
}

/// Warns of nodes that append rows to the same rows.
pub(super) fn check(wire: &WirePlan<'_>, drafts: &[Draft], order: &[NodeIx], found: &mut Diagnostics) {
    let mut ways: Vec<Way> = Vec::new();
    for (at, draft) in drafts.iter().enumerate() {
        for (_, node) in draft.substitutes.nodes() {
            ways.extend([Way { rows_of: node, by: at as NodeIx }, Way { rows_of: node, by: node }]);
        }
    }
    if ways.is_empty() {
        return;
    }
    ways.sort_unstable();
    ways.dedup();
    // By which ways rows may have come to each node, as its readers see it.
    let mut come: Vec<Bits> = vec![Bits::default(); drafts.len()];
    let mut warned = vec![false; drafts.len()];
    for &at in order {
        let draft = &drafts[at as usize];
        let mut bits = Bits(vec![0; ways.len().div_ceil(64)]);
        for input in draft.inputs.iter().take(inputs_passed_on(draft)).flatten() {
            let more = &come[*input as usize];
            // Few nodes append, and most of these append rows that come by no such way.
            if !bits.is_empty() && !more.is_empty() {
                for [one, other] in meeting(&ways, &bits, more) {
                    if !std::mem::replace(&mut warned[one.rows_of as usize], true) {
                        found.push(doubled(wire, at, one, other, draft));
                    }
                }
            }
            bits.add_all(more);
        }
        for (_, substitute) in draft.substitutes.each() {
            match substitute {
                Substitute::NoRows => {}
                Substitute::FirstInput => {
                    draft.inputs.first().copied().flatten().into_iter().for_each(|at| bits.add_all(&come[at as usize]));
                }
                Substitute::Node(node) => {
                    let mut more = come[node as usize].clone();
                    // They come in place of this node's rows.
                    more.remove(&ways, Way { rows_of: node, by: node });
                    more.add(&ways, Way { rows_of: node, by: at });
                    bits.add_all(&more);
                }
            }
        }
        bits.add(&ways, Way { rows_of: at, by: at });
        come[at as usize] = bits;
    }
}

/// Of how many inputs the rows, or what was made of them, are among the node's own.
fn inputs_passed_on(draft: &Draft) -> usize {
    match draft.rows() {
        Some(RowEffect::Appended) => draft.inputs.len(),
        Some(RowEffect::Source) | None => 0,
        Some(
            RowEffect::FanOut
            | RowEffect::Same
            | RowEffect::Fewer
            | RowEffect::FewerWhere(_)
            | RowEffect::Reordered
            | RowEffect::Grouped
            | RowEffect::GroupedWhere(_),
        ) => 1,
    }
}

/// A set of ways, a bit each by their position in the sorted list.
#[derive(Clone, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    fn add_all(&mut self, other: &Bits) {
        self.0.iter_mut().zip(&other.0).for_each(|(ours, theirs)| *ours |= theirs);
    }

    /// Adds a way, if it is one.
    fn add(&mut self, ways: &[Way], way: Way) {
        if let Ok(at) = ways.binary_search(&way) {
            self.0[at / 64] |= 1 << (at % 64);
        }
    }

    fn remove(&mut self, ways: &[Way], way: Way) {
        if let Ok(at) = ways.binary_search(&way) {
            self.0[at / 64] &= !(1 << (at % 64));
        }
    }
}

/// Nodes whose rows come to both sides by different ways: one way of each side.
fn meeting(ways: &[Way], one: &Bits, other: &Bits) -> Vec<[Way; 2]> {
    let mut meeting = Vec::new();
    let mut start = 0;
    for group in ways.chunk_by(|a, b| a.rows_of == b.rows_of) {
        let range = start..start + group.len();
        start = range.end;
        let lefts = || range.clone().filter(|at| one.has(*at));
        let rights = || range.clone().filter(|at| other.has(*at));
        // Where a side has several, any two that differ will do.
        let first = lefts().next().zip(rights().next());
        let second = || lefts().nth(1).zip(rights().next()).or_else(|| lefts().next().zip(rights().nth(1)));
        let pair = first.filter(|(left, right)| left != right).or_else(second);
        meeting.extend(pair.map(|(left, right)| [ways[left], ways[right]]));
    }
    meeting
}

fn doubled(wire: &WirePlan<'_>, at: NodeIx, one: Way, other: Way, draft: &Draft) -> Diagnostic {
    let id = |at: NodeIx| quoted(&wire.nodes[at as usize].node_id).to_string();
    let way = |way: Way| match way.rows_of == way.by {
        true => "as they are".to_owned(),
        false => format!("in place of {}", id(way.by)),
    };
    let op = wire.nodes[at as usize].op.as_deref().unwrap_or_default();
    let message =
        format!("{op} {} may get the rows of {} twice: {} and {}", id(at), id(one.rows_of), way(one), way(other));
    let warning = Diagnostic::new(Code::DoubledRows, format!("/nodes/{at}"), message);
    warning.help("give one of them another fallback, or \"none\"").source(draft.source.clone())
}
