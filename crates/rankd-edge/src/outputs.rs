//! The outputs of a plan, written down as the plan has them: the ids of nodes, as a list or by name.

use rankd_plan::json::Writer;

/// Writes `["n2","n7"]`, or where outputs have names, `{"main":"n2","ads":"n7"}`.
pub fn write_outputs<'a>(names: Option<&[String]>, nodes: impl Iterator<Item = &'a str>, w: &mut Writer) {
    match names {
        None => w.array(|w| {
            for node in nodes {
                w.string(node);
            }
        }),
        Some(names) => w.object(|w| {
            for (name, node) in names.iter().zip(nodes) {
                w.field(name).string(node);
            }
        }),
    };
}
