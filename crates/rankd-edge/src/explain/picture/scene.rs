//! The picture as data, for a page that draws it by itself: boxes with their texts, frames and lines, in whole numbers. Lines that are led around
//! nothing are pairs of nodes, since there may be hundreds of thousands of them.

use super::{Form, HEADING, Picture};
use crate::explain::Explanation;
use crate::layout::EdgeKind;
use rankd_plan::Registry;
use rankd_plan::json::Writer;
use rankd_plan::plan::{NodeIx, Plan};

impl Explanation<'_> {
    /// One of the plan's pictures as a JSON object, with room on each card for a line of figures. The plan is the checked one that this
    /// was linked from, with its registry.
    pub fn to_scene(&self, plan: &Plan, registry: &Registry, form: Form) -> String {
        Picture::new(self, plan, registry, form, true).to_scene()
    }
}

impl Picture<'_> {
    fn to_scene(&self) -> String {
        let mut writer = Writer::new();
        writer.object(|w| {
            put_length(w.field("width"), self.layout.width);
            put_length(w.field("height"), self.layout.height);
            w.field("nodes").array(|w| {
                for ix in 0..self.cards.len() as NodeIx {
                    w.object(|w| self.node_of_scene(ix, w));
                }
            });
            w.field("frames").array(|w| self.put_frames(w));
            self.put_lines(w);
        });
        writer.finish()
    }

    fn node_of_scene(&self, ix: NodeIx, w: &mut Writer) {
        let (node, card, corner) = (self.told.plan.node(ix), &self.cards[ix as usize], self.corners[ix as usize]);
        w.field("id").string(&node.id).field("op").string(node.op);
        w.field("box").array(|w| {
            for length in [corner.x, corner.y - HEADING, card.size.width, card.size.height] {
                put_length(w, length);
            }
        });
        w.field("is").array(|w| {
            for class in &card.classes {
                w.string(class);
            }
        });
        w.field("text").array(|w| {
            for (look, line) in &card.lines {
                w.array(|w| {
                    w.string(look.class()).string(line);
                });
            }
        });
        self.put_details(ix, w);
    }

    /// What the pages show of a node beside its place: what it reads, its parameters, and what is known of it.
    pub(super) fn put_details(&self, ix: NodeIx, w: &mut Writer) {
        let (node, card) = (self.told.plan.node(ix), &self.cards[ix as usize]);
        w.field("inputs").array(|w| {
            for input in &node.inputs {
                w.int(i64::from(*input));
            }
        });
        let params = self.arguments.all(&self.arguments.plan.nodes[ix as usize]);
        for (field, pairs) in [("params", &params), ("facts", &card.facts)] {
            w.field(field).array(|w| {
                for (name, value) in pairs {
                    w.array(|w| {
                        w.string(name).string(value);
                    });
                }
            });
        }
    }

    /// The frames of passes, each with its nodes from top to bottom.
    fn put_frames(&self, w: &mut Writer) {
        for (group, place) in self.groups.iter().zip(&self.layout.boxes) {
            let Some(caption) = &group.caption else { continue };
            w.object(|w| {
                w.field("box").array(|w| {
                    for length in [place.corner.x, place.corner.y, group.size.width, group.size.height] {
                        put_length(w, length);
                    }
                });
                w.field("caption").string(caption);
                w.field("nodes").array(|w| {
                    for ix in &group.nodes {
                        w.int(i64::from(*ix));
                    }
                });
            });
        }
    }

    /// The lines: their kind, where they come from and lead to (-1 for a trunk), whether rows never pass, and their points. Then the
    /// direct ones.
    fn put_lines(&self, w: &mut Writer) {
        let kind = |kind| match kind {
            EdgeKind::Input => 0,
            EdgeKind::Fallback => 1,
            EdgeKind::Lazy => 2,
        };
        w.field("lines").array(|w| {
            for line in self.lines().filter(|line| !line.is_direct && !line.points.is_empty()) {
                w.array(|w| {
                    w.int(kind(line.kind)).int(i64::from(line.from)).int(line.to.map_or(-1, i64::from));
                    w.int(i64::from(line.is_idle));
                    for point in line.points {
                        put_length(w, point.x);
                        put_length(w, point.y);
                    }
                });
            }
        });
        w.field("direct").array(|w| {
            for line in self.lines().filter(|line| line.is_direct) {
                let Some(to) = line.to else { continue };
                w.int(i64::from(line.from)).int(i64::from(to));
            }
        });
    }
}

fn put_length(w: &mut Writer, length: f64) {
    w.int(length.round() as i64);
}
