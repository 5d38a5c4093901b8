//! The picture as a page: one file that opens offline. What may run and be loaded is the script and the styles of this file, by their
//! hashes, and nothing else; the data is JSON in an element that no browser runs.

use super::Picture;
use super::markup::{embedded_json, escaped};
use super::svg::STYLE;
use rankd_engine::base64;
use rankd_plan::json::Writer;
use rankd_plan::plan::NodeIx;
use sha2::{Digest, Sha256};

const SCRIPT: &str = include_str!("page.js");
const PAGE_STYLE: &str = include_str!("page.css");

/// What the colours and lines mean.
const LEGEND: [(&str, &str); 7] = [
    ("<rect class=\"stripe\" width=\"4\" height=\"12\"/>", "computes"),
    ("<g class=\"reads\"><rect class=\"stripe\" width=\"4\" height=\"12\"/></g>", "reads a store"),
    (
        "<g class=\"lazy\"><rect class=\"card\" x=\"1\" y=\"1\" width=\"28\" height=\"10\" rx=\"3\"/></g>",
        "runs when it is needed",
    ),
    (
        "<g class=\"conditional\"><rect class=\"card\" x=\"1\" y=\"1\" width=\"28\" height=\"10\" rx=\"3\"/></g>",
        "runs on a condition",
    ),
    ("<g class=\"is-output\"><rect class=\"card\" x=\"1\" y=\"1\" width=\"28\" height=\"10\" rx=\"3\"/></g>", "output"),
    ("<path class=\"line stand-in\" d=\"M0 6H30\"/>", "stands in"),
    ("<path class=\"line reserve\" d=\"M0 6H30\"/>", "read when asked for"),
];

/// The same for a run.
const LEGEND_OF_RUN: [(&str, &str); 2] = [
    (
        "<g class=\"heat4\"><rect class=\"card\" x=\"1\" y=\"1\" width=\"28\" height=\"10\" rx=\"3\"/></g>",
        "on the critical path",
    ),
    (
        "<g class=\"degraded\"><rect class=\"card\" x=\"1\" y=\"1\" width=\"28\" height=\"10\" rx=\"3\"/></g>",
        "failed or degraded",
    ),
];

impl Picture<'_> {
    pub(super) fn to_html(&self) -> String {
        let style = format!("{STYLE}{PAGE_STYLE}");
        let (name, about) = self.heading();
        let (name, about) = (escaped(&name), escaped(&about));
        let mut drawing = self.open_svg(false);
        self.push_drawing(&mut drawing);
        let of_run: &[_] = if self.told.analyzed.is_some() { &LEGEND_OF_RUN } else { &[] };
        let legend = LEGEND
            .iter()
            .chain(of_run)
            .map(|(mark, text)| format!("<li><svg viewBox=\"0 0 30 12\">{mark}</svg>{text}</li>"));
        let legend: String = legend.collect();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{name}</title>\n<style>{style}</style>\n</head>\n<body>\n\
             <main>\n{drawing}</svg>\n<div class=\"tools\"><button data-act=\"+\" aria-label=\"Zoom in\">+</button>\
             <button data-act=\"-\" aria-label=\"Zoom out\">−</button><button data-act=\"0\">Fit</button></div>\n\
             <ul class=\"legend\">{legend}</ul>\n</main>\n\
             <aside>\n<header><h1>{name}</h1><p>{about}</p>\
             <input id=\"search\" type=\"search\" placeholder=\"Search nodes\" aria-label=\"Search nodes\" autocomplete=\"off\"></header>\n\
             <div id=\"shown\" aria-live=\"polite\"></div>\n</aside>\n\
             <script type=\"application/json\" id=\"data\">{}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>",
            policy(&style),
            embedded_json(&self.data()),
        )
    }

    /// What the script knows of the nodes.
    fn data(&self) -> String {
        let (mut writer, size) = (Writer::new(), self.size());
        writer.object(|w| {
            w.field("width").float(size.width).field("height").float(size.height);
            w.field("nodes").array(|w| {
                for ix in 0..self.cards.len() as NodeIx {
                    w.object(|w| self.node_data(ix, w));
                }
            });
        });
        writer.finish()
    }

    fn node_data(&self, ix: NodeIx, w: &mut Writer) {
        let (node, card) = (self.told.plan.node(ix), &self.cards[ix as usize]);
        let corner = self.corners[ix as usize];
        w.field("id").string(&node.id).field("op").string(node.op);
        w.field("x").float(corner.x).field("y").float(corner.y);
        w.field("width").float(card.size.width).field("height").float(card.size.height);
        self.put_details(ix, w);
    }
}

/// What the page may do: run its own script. It may load nothing and send nothing.
fn policy(style: &str) -> String {
    let hash = |text: &str| base64::encode(&Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
        hash(SCRIPT),
        hash(style)
    )
}
