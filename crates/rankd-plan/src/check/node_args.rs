//! Parameters that name several nodes: those that are asked for when rows are short, and those whose rows have places of their own.

use crate::check::args::{Reading, int};
use crate::codes::Code;
use crate::diagnostic::Diagnostics;
use crate::json::{Fault, Kind};
use crate::limits::{FILLS_MAX, PLACES_MAX, RESERVES_MAX, RULE_ROWS_MAX};
use crate::plan::Fill;
use crate::signature::{Param, ParamKind};
use crate::wire::cursor::Cursor;
use rankd_column::kernel::slots::SlotPlaces;

/// The id of a node, and where it is written.
pub(super) struct NamedNode {
    id: String,
    pointer: String,
}

/// Rows of a node that get places, as the plan writes them.
pub(super) struct NamedFill {
    rows: NamedNode,
    places: SlotPlaces,
    max: usize,
}

impl Reading<'_, '_, '_, '_> {
    /// Makes these nodes the last inputs, which are read when the task asks for them; how many there are.
    pub(super) fn reserve(&mut self, nodes: &[NamedNode], found: &mut Diagnostics) -> usize {
        nodes.iter().for_each(|node| self.input(node, found));
        self.draft.reserves = nodes.len();
        nodes.len()
    }

    /// Makes the nodes of fills inputs.
    pub(super) fn fill(&mut self, fills: Vec<NamedFill>, found: &mut Diagnostics) -> Vec<Fill> {
        let fill = |NamedFill { rows, places, max }| {
            self.input(&rows, found);
            Fill { input: self.draft.inputs.len() - 1, places, max }
        };
        fills.into_iter().map(fill).collect()
    }

    fn input(&mut self, node: &NamedNode, found: &mut Diagnostics) {
        let node = self.checker.node(&node.id, || node.pointer.clone(), found);
        self.draft.inputs.push(node);
    }
}

/// `["n9", "n14"]`
pub(super) fn reserves(cursor: &mut Cursor<'_, '_>, param: &Param) -> Result<Option<Vec<NamedNode>>, Fault> {
    let (before, mut nodes) = (cursor.errors(), Vec::new());
    cursor.array(|cursor, _| {
        nodes.extend(node(cursor)?);
        Ok(())
    })?;
    report_count(cursor, before, param.name, nodes.len(), RESERVES_MAX, "node");
    Ok((cursor.errors() == before).then_some(nodes))
}

/// `[{"rows": "n4", "at": [3, 10]}, {"rows": "n5", "every": 5, "max": 2}]`
pub(super) fn fills(cursor: &mut Cursor<'_, '_>, param: &'static Param) -> Result<Option<Vec<NamedFill>>, Fault> {
    let (before, mut fills) = (cursor.errors(), Vec::new());
    cursor.array(|cursor, _| {
        if !cursor.expect(Kind::Object)? {
            return Ok(());
        }
        let before = cursor.errors();
        let (mut rows, mut at, mut every, mut max) = (None, None, None, None);
        cursor.object(&["rows", "at", "every", "max"], |cursor, field| {
            match field {
                "rows" => rows = node(cursor)?,
                "at" => at = places(cursor, param)?,
                "every" => every = count(cursor, param, 1)?,
                _ => max = count(cursor, param, 1)?,
            }
            Ok(())
        })?;
        let max = max.unwrap_or(usize::MAX);
        match (rows, at, every) {
            _ if cursor.errors() > before => {}
            (Some(rows), Some(at), None) => fills.push(NamedFill { rows, places: SlotPlaces::At(at), max }),
            (Some(rows), None, Some(every)) => fills.push(NamedFill { rows, places: SlotPlaces::Every(every), max }),
            _ => cursor.report(Code::MissingField, "a fill has rows, and either at or every; and perhaps max"),
        }
        Ok(())
    })?;
    report_count(cursor, before, param.name, fills.len(), FILLS_MAX, "fill");
    Ok((cursor.errors() == before).then_some(fills))
}

fn node(cursor: &mut Cursor<'_, '_>) -> Result<Option<NamedNode>, Fault> {
    let pointer = cursor.pointer();
    Ok(cursor.text()?.map(|id| NamedNode { id: id.into_owned(), pointer }))
}

fn count(cursor: &mut Cursor<'_, '_>, param: &Param, least: i64) -> Result<Option<usize>, Fault> {
    if !cursor.expect(Kind::Number)? {
        return Ok(None);
    }
    let kind = ParamKind::Int { min: least, max: RULE_ROWS_MAX };
    let count = int(cursor, &Param { kind, ..*param }, least, RULE_ROWS_MAX)?;
    Ok(count.and_then(|count| usize::try_from(count).ok()))
}

/// SlotPlaces of rows, each after the one before.
fn places(cursor: &mut Cursor<'_, '_>, param: &Param) -> Result<Option<Vec<usize>>, Fault> {
    if !cursor.expect(Kind::Array)? {
        return Ok(None);
    }
    let (before, mut places): (_, Vec<usize>) = (cursor.errors(), Vec::new());
    cursor.array(|cursor, _| {
        let Some(place) = count(cursor, param, 0)? else { return Ok(()) };
        if places.last().is_some_and(|last| *last >= place) {
            cursor.report(Code::ParamOutOfRange, "the places of a fill are in ascending order, each once");
        }
        places.push(place);
        Ok(())
    })?;
    report_count(cursor, before, "at", places.len(), PLACES_MAX, "place");
    Ok((cursor.errors() == before).then_some(places))
}

/// Reports a list that is empty or too long, unless something about it was reported already.
fn report_count(cursor: &mut Cursor<'_, '_>, before: usize, name: &str, count: usize, most: usize, what: &str) {
    if cursor.errors() == before && !(1..=most).contains(&count) {
        cursor.report(Code::ParamOutOfRange, format!("{name} has 1 to {most} {what}s, not {count}"));
    }
}
