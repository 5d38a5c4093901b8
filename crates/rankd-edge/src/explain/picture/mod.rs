//! An explanation as a picture of its own, without any other program: what is on it, and where.
//!
//! Reading order: this file (the picture), `cards` (what is said of each node), `arguments` (parameters as text), `svg` and `html` (how it is
//! written), `markup` (text inside them), `scene` (the picture as data). The nodes of a pass stand below each other in one frame, so that to the layout a pass is a box like any
//! other: its nodes are a line that nothing else joins or leaves. Times, where there are any, are those of one run.

mod arguments;
mod cards;
mod html;
mod markup;
mod scene;
mod svg;

use crate::explain::Explanation;
use crate::layout::{BoxSize, Edge, EdgeKind, Graph, Layout, Point, lay_out};
use arguments::Arguments;
use cards::Card;
use rankd_engine::degraded::{Degraded, StandIn};
use rankd_engine::trace::NodeTrace;
use rankd_plan::Registry;
use rankd_plan::plan::{NodeIx, Plan, Substitute};
use std::collections::HashMap;

/// Room inside the frame of a pass: around its nodes, between them, and for its caption.
const FRAME: f64 = 10.0;
const FRAME_GAP: f64 = 14.0;
const CAPTION: f64 = 18.0;

/// Room above the picture for the name of the plan.
const HEADING: f64 = 46.0;

/// Which of a plan's pictures is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Every node by itself, as its author wrote it.
    Written,
    /// The nodes of a pass in one frame, as it runs.
    Running,
}

/// The least width of a card that has room for figures, and how high the line for them is.
const FIGURES_WIDTH: f64 = 196.0;

/// Nodes that are one box of the layout: those of a pass, or one by itself.
struct Group {
    nodes: Vec<NodeIx>,
    /// What is written above a pass.
    caption: Option<String>,
    size: BoxSize,
}

/// A line of the picture.
struct Line<'a> {
    kind: EdgeKind,
    /// The nodes that it leads from and to. A trunk leads to several.
    from: NodeIx,
    to: Option<NodeIx>,
    points: &'a [Point],
    is_direct: bool,
    /// Whether rows never pass along it.
    is_idle: bool,
}

/// Everything that is drawn, with its place.
struct Picture<'a> {
    told: &'a Explanation<'a>,
    arguments: Arguments<'a>,
    /// By node.
    cards: Vec<Card>,
    corners: Vec<Point>,
    groups: Vec<Group>,
    edges: Vec<(NodeIx, NodeIx, EdgeKind)>,
    layout: Layout,
}

/// What one run of the plan was like, by node.
#[derive(Default)]
struct Ran<'a> {
    records: HashMap<NodeIx, &'a NodeTrace>,
    taken: HashMap<NodeIx, StandIn>,
    /// The time of all nodes that the answer waited for.
    critical_ns: u64,
}

impl Explanation<'_> {
    /// The plan as it runs, as a picture. The plan is the checked one that this was linked from, with its registry.
    pub fn to_svg(&self, plan: &Plan, registry: &Registry) -> String {
        Picture::new(self, plan, registry, Form::Running, false).to_svg()
    }

    /// The same as a page that needs nothing else, to look around in.
    pub fn to_html(&self, plan: &Plan, registry: &Registry) -> String {
        Picture::new(self, plan, registry, Form::Running, false).to_html()
    }
}

impl<'a> Picture<'a> {
    /// With `figures`, every card has an empty line for figures that come later.
    fn new(
        told: &'a Explanation<'a>,
        plan: &'a Plan,
        registry: &'a Registry,
        form: Form,
        figures: bool,
    ) -> Picture<'a> {
        let arguments = Arguments::new(plan, registry);
        let ran = Ran::of(told);
        let mut outputs: HashMap<NodeIx, Vec<&str>> = HashMap::new();
        for (at, ix) in told.plan.outputs.iter().enumerate() {
            let name = told.plan.output_names.as_ref().and_then(|names| names.get(at));
            outputs.entry(*ix).or_default().push(name.map_or("", String::as_str));
        }
        let card = |ix| Card::new(told, &arguments, &ran, outputs.get(&ix).map_or(&[], Vec::as_slice), ix);
        let mut cards: Vec<Card> = (0..told.plan.nodes.len() as NodeIx).map(card).collect();
        if figures {
            cards.iter_mut().for_each(|card| card.make_room(FIGURES_WIDTH));
        }
        let groups = match form {
            Form::Running => told.groups(),
            Form::Written => (0..cards.len() as NodeIx).map(|ix| (None, vec![ix])).collect(),
        };
        let groups: Vec<Group> = groups.into_iter().map(|group| Group::new(told, group, &mut cards)).collect();
        let mut group_of = vec![0u32; cards.len()];
        for (at, group) in groups.iter().enumerate() {
            group.nodes.iter().for_each(|ix| group_of[*ix as usize] = at as u32);
        }
        // A line inside a frame is drawn with the frame.
        let is_inside = |from: NodeIx, to: NodeIx| group_of[from as usize] == group_of[to as usize];
        let edges: Vec<_> = edges(plan).into_iter().filter(|(from, to, _)| !is_inside(*from, *to)).collect();
        let graph = Graph {
            boxes: groups.iter().map(|group| group.size).collect(),
            edges: edges
                .iter()
                .map(|(from, to, kind)| Edge {
                    from: group_of[*from as usize],
                    to: group_of[*to as usize],
                    kind: *kind,
                })
                .collect(),
        };
        let layout = lay_out(&graph);
        let mut corners = vec![Point { x: 0.0, y: 0.0 }; cards.len()];
        for (group, place) in groups.iter().zip(&layout.boxes) {
            group.put(place.corner, &cards, &mut corners);
        }
        Picture { told, arguments, cards, corners, groups, edges, layout }
    }

    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let is_idle = |ix: NodeIx| !self.told.plan.node(ix).needed;
        let trunks = self.layout.trunks.iter().filter_map(move |trunk| {
            let from = *self.groups.get(trunk.from as usize)?.nodes.last()?;
            let (kind, points) = (trunk.kind, &*trunk.points);
            Some(Line { kind, from, to: None, points, is_direct: false, is_idle: is_idle(from) })
        });
        let edges = self.edges.iter().zip(&self.layout.edges).map(move |((from, to, kind), route)| {
            let (points, is_direct) = (&*route.points, route.is_direct);
            Line { kind: *kind, from: *from, to: Some(*to), points, is_direct, is_idle: is_idle(*to) }
        });
        trunks.chain(edges)
    }

    /// What the picture is of, in one line.
    fn heading(&self) -> (String, String) {
        let (plan, steps) = (self.told.plan, self.told.steps());
        let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let mut about = format!("{}, {}", counted(plan.nodes.len(), "node"), counted(steps.order.len(), "step"));
        if let Some(outcome) = self.told.analyzed {
            let result = match &outcome.result {
                Ok(outputs) => counted(outputs.iter().map(|rows| rows.len()).sum(), "row"),
                Err(error) => error.to_string(),
            };
            about = format!("{about}; {result} after {}", cards::duration(outcome.took.as_nanos() as u64));
        }
        (plan.name.clone(), about)
    }

    fn size(&self) -> BoxSize {
        BoxSize { width: self.layout.width.max(320.0), height: self.layout.height + HEADING }
    }
}

/// What rows flow along: inputs, reserves that may be asked for, and what stands in for nodes.
fn edges(plan: &Plan) -> Vec<(NodeIx, NodeIx, EdgeKind)> {
    let mut edges = Vec::new();
    for (ix, node) in (0..).zip(&plan.nodes) {
        let awaited = node.inputs.len().saturating_sub(node.reserves);
        for (at, input) in node.inputs.iter().enumerate() {
            edges.push((*input, ix, if at < awaited { EdgeKind::Input } else { EdgeKind::Lazy }));
        }
        let otherwise = node.condition.as_ref().map(|condition| condition.otherwise);
        let mut stand_ins: Vec<NodeIx> = Vec::new();
        for substitute in node.fallback.into_iter().chain(otherwise) {
            match substitute {
                Substitute::Node(other) => stand_ins.push(other),
                Substitute::NoRows | Substitute::FirstInput => {}
            }
        }
        stand_ins.dedup();
        edges.extend(stand_ins.into_iter().map(|other| (other, ix, EdgeKind::Fallback)));
    }
    edges
}

impl Group {
    fn new(told: &Explanation<'_>, (pass, nodes): (Option<usize>, Vec<NodeIx>), cards: &mut [Card]) -> Group {
        let width = nodes.iter().map(|ix| cards[*ix as usize].size.width).fold(0.0, f64::max);
        let height: f64 = nodes.iter().map(|ix| cards[*ix as usize].size.height).sum();
        let last = nodes.last().filter(|_| pass.is_some());
        let Some(last) = last else { return Group { nodes, caption: None, size: BoxSize { width, height } } };
        let caption = told.ways(told.steps().step(*last)).join(", ");
        let width = width.max(cards::caption_width(&caption));
        nodes.iter().for_each(|ix| cards[*ix as usize].size.width = width);
        let gaps = FRAME_GAP * (nodes.len() as f64 - 1.0);
        let size = BoxSize { width: width + 2.0 * FRAME, height: height + gaps + 2.0 * FRAME + CAPTION };
        Group { nodes, caption: Some(caption), size }
    }

    /// Puts its nodes into their places.
    fn put(&self, corner: Point, cards: &[Card], corners: &mut [Point]) {
        let mut at = match self.caption {
            Some(_) => Point { x: corner.x + FRAME, y: corner.y + FRAME + CAPTION },
            None => corner,
        };
        for ix in &self.nodes {
            corners[*ix as usize] = Point { x: at.x, y: at.y + HEADING };
            at.y += cards[*ix as usize].size.height + FRAME_GAP;
        }
    }
}

impl<'a> Ran<'a> {
    fn of(told: &'a Explanation<'a>) -> Ran<'a> {
        let records = told.analyzed.and_then(|outcome| outcome.trace.as_ref()).map_or(&[][..], |trace| &trace.nodes);
        let critical = records.iter().filter(|record| record.critical);
        let taken = told.degraded().iter().map(|Degraded { node, fallback, .. }| (*node, *fallback));
        Ran {
            records: records.iter().map(|record| (record.node, record)).collect(),
            taken: taken.collect(),
            critical_ns: critical.map(|record| record.end_ns.saturating_sub(record.start_ns)).sum(),
        }
    }
}
