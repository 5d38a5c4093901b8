//! The picture as SVG. Styles are classes, so that a page or a dark screen can change them; there is no script and nothing to load.

use super::cards::{self, Card};
use super::markup::{escaped, push_length, push_text};
use super::{CAPTION, FRAME, FRAME_GAP, HEADING, Line, Picture};
use crate::layout::{EdgeKind, Point};
use rankd_plan::plan::NodeIx;
use std::fmt::Write;

/// How things look, in light and in dark.
pub(super) const STYLE: &str = include_str!("picture.css");

/// The size of the arrow at the end of a line.
const ARROW: f64 = 4.5;

impl Picture<'_> {
    /// A file of its own.
    pub(super) fn to_svg(&self) -> String {
        let mut out = self.open_svg(true);
        let _ = write!(out, "<style>{STYLE}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n");
        self.push_drawing(&mut out);
        out.push_str("</svg>");
        out
    }

    /// The first tag, and what the picture is called.
    pub(super) fn open_svg(&self, has_size: bool) -> String {
        let (size, (name, about)) = (self.size(), self.heading());
        let (width, height) = (size.width.ceil(), size.height.ceil());
        let mut out = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\"");
        if has_size {
            let _ = write!(out, " width=\"{width}\" height=\"{height}\"");
        }
        let name = escaped(&format!("Plan {name}: {about}"));
        let _ = write!(out, " class=\"plan\" role=\"img\" aria-label=\"{name}\">\n<title>{name}</title>\n");
        out
    }

    pub(super) fn push_drawing(&self, out: &mut String) {
        let (name, about) = self.heading();
        let (name, about) = (escaped(&name), escaped(&about));
        let _ = writeln!(
            out,
            "<text class=\"name\" x=\"28\" y=\"34\">{name}<tspan class=\"about\" dx=\"12\">{about}</tspan></text>"
        );
        out.push_str("<g class=\"lines\">\n");
        self.push_lines(out);
        out.push_str("</g>\n");
        for (group, place) in self.groups.iter().zip(&self.layout.boxes) {
            if let Some(caption) = &group.caption {
                let corner = Point { x: place.corner.x, y: place.corner.y + HEADING };
                out.push_str("<g class=\"pass\">");
                push_rect(out, "frame", corner, group.size.width, group.size.height, 12.0);
                push_line_of_text(out, "caption", Point { x: corner.x + FRAME, y: corner.y + CAPTION }, caption);
                for ix in group.nodes.iter().skip(1) {
                    self.push_link(out, *ix);
                }
                out.push_str("</g>\n");
            }
        }
        for (ix, card) in (0..).zip(&self.cards) {
            self.push_card(out, ix, card);
        }
    }

    /// The lines, each a path. Those that are led around nothing are one path for each kind: there may be very many.
    fn push_lines(&self, out: &mut String) {
        let mut direct = [String::new(), String::new(), String::new()];
        for line in self.lines().filter(|line| !line.points.is_empty()) {
            if line.is_direct {
                let path = &mut direct[line.kind as usize];
                push_path(path, &line);
                push_arrow(path, &line);
                continue;
            }
            let idle = if line.is_idle { " never" } else { "" };
            let _ = write!(out, "<path class=\"line {}{idle}\" data-from=\"{}\"", class(line.kind), line.from);
            if let Some(to) = line.to {
                let _ = write!(out, " data-to=\"{to}\"");
            }
            out.push_str(" d=\"");
            push_path(out, &line);
            out.push_str("\"/>");
            if line.to.is_some() {
                let _ = write!(out, "<path class=\"arrow {}{idle}\" d=\"", class(line.kind));
                push_arrow(out, &line);
                out.push_str("\"/>");
            }
            out.push('\n');
        }
        for (kind, path) in [EdgeKind::Input, EdgeKind::Fallback, EdgeKind::Lazy].into_iter().zip(direct) {
            if !path.is_empty() {
                let _ = writeln!(out, "<path class=\"line direct {}\" d=\"{path}\"/>", class(kind));
            }
        }
    }

    /// The line to a node from the one above it in a pass.
    fn push_link(&self, out: &mut String, ix: NodeIx) {
        let (corner, card) = (self.corners[ix as usize], &self.cards[ix as usize]);
        let x = corner.x + card.size.width / 2.0;
        let points = [Point { x, y: corner.y - FRAME_GAP }, Point { x, y: corner.y }].map(|point| {
            // The heading is added to all lines.
            Point { y: point.y - HEADING, ..point }
        });
        let line =
            Line { kind: EdgeKind::Input, from: ix, to: Some(ix), points: &points, is_direct: false, is_idle: false };
        out.push_str("<path class=\"line\" d=\"");
        push_path(out, &line);
        out.push_str("\"/><path class=\"arrow\" d=\"");
        push_arrow(out, &line);
        out.push_str("\"/>");
    }

    fn push_card(&self, out: &mut String, ix: NodeIx, card: &Card) {
        let (node, corner) = (self.told.plan.node(ix), self.corners[ix as usize]);
        let heat = match card.share {
            Some(share) => format!(" critical heat{}", (share * 5.0).ceil().clamp(1.0, 5.0)),
            None => String::new(),
        };
        let _ = write!(out, "<g class=\"node {}{heat}\" data-node=\"{ix}\"><title>", card.classes.join(" "));
        let gist = self.arguments.gist(&self.arguments.plan.nodes[ix as usize]);
        push_text(out, &format!("{} {}: {gist}", node.id, node.op));
        out.push_str("</title>");
        let (width, height) = (card.size.width, card.size.height);
        push_rect(out, "card", corner, width, height, 7.0);
        push_rect(out, "stripe", Point { x: corner.x, y: corner.y + 7.0 }, 4.0, height - 14.0, 2.0);
        if let Some(share) = card.share.filter(|share| *share >= 0.01) {
            let at = Point { x: corner.x + 7.0, y: corner.y + height - 5.0 };
            push_rect(out, "share", at, ((width - 14.0) * share).max(1.0), 3.0, 1.5);
        }
        let mut at = Point { x: corner.x + cards::PADDING, y: corner.y + cards::TITLE_HEIGHT + 1.0 };
        push_line_of_text(out, "op", at, node.op);
        let right = Point { x: corner.x + width - 10.0, y: at.y };
        push_line_of_text(out, "id", right, &cards::cut(&node.id, 16));
        at.y += 1.0;
        for (look, line) in &card.lines {
            at.y += cards::LINE_HEIGHT;
            push_line_of_text(out, look.class(), at, line);
        }
        out.push_str("</g>\n");
    }
}

fn class(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::Input => "input",
        EdgeKind::Fallback => "stand-in",
        EdgeKind::Lazy => "reserve",
    }
}

fn push_point(out: &mut String, x: f64, y: f64) {
    push_length(out, x);
    out.push(' ');
    push_length(out, y + HEADING);
}

/// Straight down, and in curves to the side.
fn push_path(out: &mut String, line: &Line<'_>) {
    let mut before: Option<Point> = None;
    for point in line.points {
        match before {
            None => {
                out.push('M');
                push_point(out, point.x, point.y);
            }
            Some(last) if last.x == point.x || line.is_direct => {
                out.push('L');
                push_point(out, point.x, point.y);
            }
            Some(last) => {
                let middle = (last.y + point.y) / 2.0;
                out.push('C');
                push_point(out, last.x, middle);
                out.push(' ');
                push_point(out, point.x, middle);
                out.push(' ');
                push_point(out, point.x, point.y);
            }
        }
        before = Some(*point);
    }
}

fn push_arrow(out: &mut String, line: &Line<'_>) {
    if let Some(end) = line.points.last() {
        out.push('M');
        push_point(out, end.x, end.y);
        let _ = write!(out, "l-{ARROW} -{}h{}z", ARROW * 1.8, ARROW * 2.0);
    }
}

fn push_rect(out: &mut String, class: &str, corner: Point, width: f64, height: f64, round: f64) {
    let _ = write!(out, "<rect class=\"{class}\"");
    for (name, length) in [("x", corner.x), ("y", corner.y), ("width", width), ("height", height), ("rx", round)] {
        let _ = write!(out, " {name}=\"");
        push_length(out, length);
        out.push('"');
    }
    out.push_str("/>");
}

fn push_line_of_text(out: &mut String, class: &str, at: Point, text: &str) {
    let _ = write!(out, "<text class=\"{class}\" x=\"");
    push_length(out, at.x);
    out.push_str("\" y=\"");
    push_length(out, at.y);
    out.push_str("\">");
    push_text(out, text);
    out.push_str("</text>");
}
