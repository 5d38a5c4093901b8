//! Whether pages can be told apart: one node at most pages, it is an output, and whoever goes by earlier pages goes by its cursor.

use crate::check::Draft;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::plan::{Arg, NodeIx};
use crate::signature::ParamKind;
use crate::wire::WirePlan;

/// A parameter that is a cursor.
struct CursorUse {
    node: usize,
    name: &'static str,
    pages: bool,
    param: u32,
}

pub(super) fn check(wire: &WirePlan<'_>, drafts: &[Draft], outputs: &[NodeIx], found: &mut Diagnostics) {
    let uses: Vec<CursorUse> = drafts.iter().enumerate().flat_map(uses_of).collect();
    let mut pages = uses.iter().filter(|of| of.pages);
    let first = pages.next();
    let quoted_id = |node: usize| quoted(&wire.nodes[node].node_id);
    let mut report = |code, of: &CursorUse, field: String, message: String| {
        let wrong = Diagnostic::new(code, format!("/nodes/{}{field}", of.node), message);
        found.push(wrong.source(drafts[of.node].source.clone()));
    };
    if let Some(first) = first {
        for other in pages {
            let message = format!("{} pages, and so does {}", quoted_id(other.node), quoted_id(first.node));
            report(Code::WrongPage, other, String::new(), message);
        }
        if !outputs.contains(&(first.node as NodeIx)) {
            let message = format!("{} pages, but it is no output", quoted_id(first.node));
            report(Code::WrongPage, first, String::new(), message);
        }
    }
    for of in uses.iter().filter(|of| !of.pages && first.is_none_or(|first| first.param != of.param)) {
        let message = format!("{} of {} is no cursor: no node pages by it", of.name, quoted_id(of.node));
        report(Code::NoSuchCursor, of, format!("/params/{}", of.name), message);
    }
}

fn uses_of((node, draft): (usize, &Draft)) -> impl Iterator<Item = CursorUse> {
    let params = draft.signature.map_or(&[][..], |signature| signature.contract.params);
    params.iter().zip(&draft.args).filter_map(move |(param, arg)| match (param.kind, arg) {
        (ParamKind::Cursor { pages }, Some(Arg::Param(at))) => {
            Some(CursorUse { node, name: param.name, pages, param: *at })
        }
        _ => None,
    })
}
