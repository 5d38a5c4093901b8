//! `GET /api/source/{plan}`: the lines in which the author wrote `node`, a position in the plan, if the file is still what was compiled.

use super::OF_A_PLAN;
use crate::audience::Audience;
use crate::reply::Reply;
use crate::request_scope::RequestScope;
use crate::route::{About, Call, Page};
use hyper::Method;
use rankd_edge::library::source_beside;
use rankd_plan::diagnostic::SourceSpan;
use rankd_plan::json::Writer;
use std::path::PathBuf;

pub(crate) struct SourcePage;

impl Page for SourcePage {
    const ABOUT: About = About {
        method: Method::GET,
        path: "/api/source/{plan}",
        audience: Audience::Console,
        operation: "ConsoleSource",
        summary: "The lines of a plan's source in which a node was written",
        schema: OF_A_PLAN,
    };

    async fn answer(scope: &mut RequestScope, call: &mut Call) -> Reply {
        let loop_state = scope.loop_state.clone();
        let catalog = loop_state.app.catalog.load_full();
        let found = loop_state.app.find_plan(&catalog, call.name()).and_then(|plan| Ok((plan, plan.version()?)));
        let (plan, good) = match found {
            Ok(found) => found,
            Err(error) => return Reply::error(scope.id(), Some(call.name()), &error),
        };
        let node = call.query("node").and_then(|text| text.parse::<usize>().ok());
        let span = node.and_then(|at| good.plan.nodes.get(at)?.source.clone());
        let Some(span) = span else { return Reply::json("{}") };
        let file = PathBuf::from(&plan.file);
        // Files are not read on a loop.
        match loop_state.loop_handle.offload(None, move || lines(&file, &span)).await {
            Ok(lines) => Reply::json(lines),
            Err(error) => Reply::error(scope.id(), Some(call.name()), &error),
        }
    }
}

/// Lines around those of the node, and of them at most so many with so many characters.
const AROUND: usize = 3;
const LINES_MAX: usize = 40;
const CHARS_MAX: usize = 400;

fn lines(file: &std::path::Path, span: &SourceSpan) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("file")
            .string(&span.path)
            .field("line")
            .int(span.line.into())
            .field("end_line")
            .int(span.end_line.into());
        // Where the file has changed, its lines would mislead.
        let Some(text) = source_beside(file, span) else { return };
        let first = (span.line as usize).saturating_sub(AROUND).max(1);
        let last = (span.end_line as usize).saturating_add(AROUND).min(first + LINES_MAX - 1);
        w.field("first").int(first as i64);
        w.field("lines").array(|w| {
            for line in text.lines().skip(first - 1).take((last + 1).saturating_sub(first)) {
                w.string(&line.chars().take(CHARS_MAX).collect::<String>());
            }
        });
    });
    writer.finish()
}
