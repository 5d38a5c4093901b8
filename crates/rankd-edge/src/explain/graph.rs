//! An explanation as a picture: the text of a DOT or a Mermaid graph. Nodes that run in one go stand in one box.

use super::remarks;
use crate::explain::Explanation;
use rankd_plan::plan::{NodeIx, Substitute};
use std::fmt::Write;

impl Explanation<'_> {
    /// The plan as it runs, for Graphviz.
    pub fn to_dot(&self) -> String {
        let mut out = String::from("digraph plan {\n  rankdir=TB;\n  node [shape=box];\n");
        for (group, nodes) in self.groups() {
            let indent = if group.is_some() { "    " } else { "  " };
            if let Some(group) = group {
                let _ = writeln!(out, "  subgraph cluster_{group} {{\n    label=\"one pass\";");
            }
            for ix in &nodes {
                let _ =
                    writeln!(out, "{indent}{} [label=\"{}\"{}];", id(*ix), dot_text(&self.lines(*ix)), self.style(*ix));
            }
            if group.is_some() {
                out.push_str("  }\n");
            }
        }
        for (from, to) in self.edges() {
            let _ = writeln!(out, "  {} -> {};", id(from), id(to));
        }
        for (from, to) in self.fallback_edges() {
            let _ = writeln!(out, "  {} -> {} [style=dashed, label=\"fallback\"];", id(from), id(to));
        }
        out.push('}');
        out
    }

    /// The plan as it runs, for Mermaid.
    pub fn to_mermaid(&self) -> String {
        let mut out = String::from("flowchart TB\n");
        for (group, nodes) in self.groups() {
            if let Some(group) = group {
                let _ = writeln!(out, "  subgraph pass{group} [\"one pass\"]");
            }
            for ix in &nodes {
                let class = if self.plan.node(*ix).needed { "" } else { ":::never" };
                let _ = writeln!(out, "  {}[\"{}\"]{class}", id(*ix), mermaid_text(&self.lines(*ix)));
            }
            if group.is_some() {
                out.push_str("  end\n");
            }
        }
        for (from, to) in self.edges() {
            let _ = writeln!(out, "  {} --> {}", id(from), id(to));
        }
        for (from, to) in self.fallback_edges() {
            let _ = writeln!(out, "  {} -.->|fallback| {}", id(from), id(to));
        }
        let critical: Vec<String> = self.critical_path().into_iter().map(id).collect();
        if !critical.is_empty() {
            let _ = writeln!(out, "  classDef critical stroke-width:3px\n  class {} critical", critical.join(","));
        }
        out.push_str("  classDef never stroke-dasharray: 4");
        out
    }

    fn edges(&self) -> impl Iterator<Item = (NodeIx, NodeIx)> {
        (0..).zip(&self.plan.nodes).flat_map(|(ix, node)| node.inputs.iter().map(move |input| (*input, ix)))
    }

    /// From nodes to those that they are the fallback of.
    fn fallback_edges(&self) -> impl Iterator<Item = (NodeIx, NodeIx)> {
        (0..).zip(&self.plan.nodes).filter_map(|(ix, node)| match node.fallback? {
            Substitute::Node(fallback) => Some((fallback, ix)),
            Substitute::NoRows | Substitute::FirstInput => None,
        })
    }

    fn lines(&self, ix: NodeIx) -> Vec<String> {
        let mut lines = vec![self.title(ix)];
        lines.extend(self.plan.node(ix).label.clone());
        lines.extend(self.output_name(ix).map(|name| format!("output {name}")));
        lines.extend(self.fallback(ix).map(|fallback| format!("fallback {fallback}")));
        lines.extend(self.logs(ix).map(|keys| format!("logs {keys}")));
        lines.extend(self.runs(ix).map(|runs| format!("runs {runs}")));
        if let Some(record) = self.record(ix) {
            lines.push(format!("{} → {} rows", record.rows_in, record.rows_out));
            lines.extend(remarks(record));
        }
        lines.extend(self.shortcoming(ix));
        lines
    }

    fn style(&self, ix: NodeIx) -> &'static str {
        match self.record(ix) {
            _ if !self.plan.node(ix).needed => ", style=dashed",
            Some(record) if record.critical => ", penwidth=3",
            _ if self.plan.outputs.contains(&ix) => ", peripheries=2",
            _ => "",
        }
    }
}

/// A name that every graph language takes. What the author called the node is its label.
fn id(ix: NodeIx) -> String {
    format!("n{ix}")
}

fn dot_text(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| line.replace('\\', "\\\\").replace('"', "\\\"")).collect();
    lines.join("\\n").replace(['\n', '\r'], " ")
}

fn mermaid_text(lines: &[String]) -> String {
    let escaped = |line: &String| {
        line.chars().fold(String::new(), |mut out, c| {
            match c {
                '"' | '<' | '>' | '&' | '#' | '`' | '\\' | '\n' | '\r' => {
                    let _ = write!(out, "#{};", u32::from(c));
                }
                c => out.push(c),
            }
            out
        })
    };
    lines.iter().map(escaped).collect::<Vec<_>>().join("<br>")
}
