//! What a node logs: the keys of its rows that go into the feature log. Which of them its rows can have is known once the flow is, and whether it
//! has rows at all once the reach is.

use crate::check::graph::Reach;
use crate::check::keys::Keys;
use crate::check::names::Access;
use crate::check::{Checker, Draft};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::json::Fault;
use crate::registry::Registry;
use crate::wire::WirePlan;
use crate::wire::cursor::Cursor;
use rankd_column::Key;

/// The field of a node that names the keys.
const LOG: &str = "log";

/// The keys that node `at` logs, each once; `None` where it logs none, or where something about them was reported.
pub(super) fn read(checker: &Checker<'_>, at: usize, found: &mut Diagnostics) -> Option<Vec<Key>> {
    let text = checker.wire.nodes[at].log?;
    let mut cursor = Cursor::new(text, format!("/nodes/{at}/{LOG}"), found);
    // The text was read once already, so it cannot fail to be JSON now.
    keys(checker, &mut cursor).ok().flatten()
}

fn keys(checker: &Checker<'_>, cursor: &mut Cursor<'_, '_>) -> Result<Option<Vec<Key>>, Fault> {
    let (before, mut keys) = (cursor.errors(), Vec::new());
    cursor.array(|cursor, _| {
        let Some(key) = checker.names.key(cursor, Access::Read)? else { return Ok(()) };
        if key == Key::ID {
            cursor.report(Code::LoggedTwice, "every row of the log has its id");
        } else if keys.contains(&key) {
            cursor.report(Code::LoggedTwice, "this key is logged already");
        } else {
            keys.push(key);
        }
        Ok(())
    })?;
    Ok((cursor.errors() == before).then_some(keys))
}

/// Reports keys that the rows of a node cannot have, and nodes that have no rows because nothing needs them.
pub(super) fn check(
    wire: &WirePlan<'_>,
    drafts: &[Draft],
    after: &[Keys],
    reach: &Reach,
    registry: &Registry,
    found: &mut Diagnostics,
) {
    let logging = drafts.iter().enumerate().filter_map(|(at, draft)| Some((at, draft, draft.log.as_ref()?)));
    for (at, draft, keys) in logging {
        let node = &wire.nodes[at];
        let name = format!("{} {}", node.op.as_deref().unwrap_or_default(), quoted(&node.node_id));
        if !reach.needed[at] && !wire.outputs.is_empty() {
            let message = format!("{name} logs its rows, but no output needs it, so that it never has any");
            let nothing = Diagnostic::new(Code::LogsNothing, format!("/nodes/{at}/{LOG}"), message);
            found.push(nothing.source(draft.source.clone()));
        }
        let Some(present) = after.get(at) else { continue };
        for (position, key) in keys.iter().enumerate().filter(|(_, key)| !present.has(**key)) {
            let message = format!("{name} logs {:?}, which its rows cannot have", registry.key(*key).name);
            let lacking = Diagnostic::new(Code::LogLacksKey, format!("/nodes/{at}/{LOG}/{position}"), message);
            found.push(lacking.help(present.listed(registry)).source(draft.source.clone()));
        }
    }
}
