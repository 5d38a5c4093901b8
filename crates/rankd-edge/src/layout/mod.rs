//! A layered layout of a directed acyclic graph: where boxes go, and how the lines between them run.
//!
//! Reading order: this file (what goes in and what comes out), `layers` (which layer a box is in), `net` (long edges cut into pieces),
//! `order` (few crossings), `place` (short and straight lines), `route` (lines). Pure functions of the graph: no plan, no text, no
//! clock, so that the same graph always has the same layout. No recursion, and work and memory that grow with boxes and edges only:
//! edges between distant layers share a trunk, and those that would still need too many pieces are drawn as one straight line
//! ([`Route::is_direct`]).

mod layers;
mod net;
mod order;
mod place;
mod route;
#[cfg(test)]
mod tests;

use net::Net;

/// Room between boxes, and around the picture.
pub const GAP: f64 = 28.0;

/// How large a box is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoxSize {
    /// From left to right.
    pub width: f64,
    /// From top to bottom.
    pub height: f64,
}

/// What an edge stands for. Edges of different kinds share no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// Rows that are always read.
    Input,
    /// Rows that are read in place of others.
    Fallback,
    /// Rows that are read when they are asked for.
    Lazy,
}

/// From one box to another, by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where it begins.
    pub from: u32,
    /// Where it ends: further down.
    pub to: u32,
    /// What it stands for.
    pub kind: EdgeKind,
}

/// What is to be laid out.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Their sizes. What is not a size counts as 0.
    pub boxes: Vec<BoxSize>,
    /// An edge from or to a box that is not there, or from a box to itself, gets no line. An edge that closes a circle goes up.
    pub edges: Vec<Edge>,
}

/// A place in the picture; y grows downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// From the left.
    pub x: f64,
    /// From the top.
    pub y: f64,
}

/// Where a box is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoxPlace {
    /// Its corner at the top left.
    pub corner: Point,
    /// Its layer, counted from the top.
    pub layer: u32,
}

/// The line of an edge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// From its beginning, or from where it leaves its trunk, to its end. Empty for an edge without a line.
    pub points: Vec<Point>,
    /// The trunk that it leaves.
    pub trunk: Option<u32>,
    /// Whether it may cross boxes: it is too long to be led around them.
    pub is_direct: bool,
}

/// The line that several edges from one box have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Trunk {
    /// The box.
    pub from: u32,
    /// The kind of these edges.
    pub kind: EdgeKind,
    /// From the box down.
    pub points: Vec<Point>,
}

/// A graph laid out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// By box.
    pub boxes: Vec<BoxPlace>,
    /// By edge.
    pub edges: Vec<Route>,
    /// What edges refer to.
    pub trunks: Vec<Trunk>,
    /// The size of the whole picture.
    pub width: f64,
    /// The size of the whole picture.
    pub height: f64,
    /// How many crossings of lines there are, and how many there were before the order of the layers was improved.
    pub crossings: u64,
    /// See `crossings`.
    pub crossings_before: u64,
}

/// Lays a graph out from top to bottom.
pub fn lay_out(graph: &Graph) -> Layout {
    if graph.boxes.is_empty() {
        return Layout::default();
    }
    let mut net = Net::new(graph, &layers::layers(graph));
    let ordered = order::order(&mut net);
    let centres = place::centres(&net, &ordered.layers);
    let layout = route::routed(graph, &net, &ordered.layers, &centres);
    Layout { crossings: ordered.crossings, crossings_before: ordered.crossings_before, ..layout }
}

impl Graph {
    /// The edges that get lines, with their positions.
    fn lines(&self) -> impl Iterator<Item = (usize, &Edge)> + Clone {
        let count = self.boxes.len();
        let is_there = move |edge: &Edge| (edge.from as usize) < count && (edge.to as usize) < count;
        self.edges.iter().enumerate().filter(move |(_, edge)| is_there(edge) && edge.from != edge.to)
    }
}

/// A length that can be reckoned with.
fn sane(length: f64) -> f64 {
    if length.is_finite() { length.max(0.0) } else { 0.0 }
}

/// Lists of neighbours, one after the other.
#[derive(Debug, Default)]
struct Neighbours {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Neighbours {
    /// Lists of what comes second, by what comes first, which is less than `count`.
    fn new(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Neighbours {
        let mut starts = vec![0u32; count + 1];
        pairs.clone().for_each(|(of, _)| starts[of as usize + 1] += 1);
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut items = vec![0; starts[count] as usize];
        for (of, item) in pairs {
            items[next[of as usize] as usize] = item;
            next[of as usize] += 1;
        }
        Neighbours { starts, items }
    }

    fn of(&self, at: u32) -> &[u32] {
        &self.items[self.starts[at as usize] as usize..self.starts[at as usize + 1] as usize]
    }

    fn of_mut(&mut self, at: u32) -> &mut [u32] {
        &mut self.items[self.starts[at as usize] as usize..self.starts[at as usize + 1] as usize]
    }
}
