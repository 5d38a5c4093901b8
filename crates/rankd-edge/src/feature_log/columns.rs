//! Logged rows as the record batches of an Arrow stream. A row is a row of a node, with what is known of its request.

use super::stream::{COLUMNS, LogField};
use super::{LoggedPlan, LoggedRun};
use crate::arrow::{ArrowField, Body, OptionalTexts, Table, TooLong, batch_message, field, schema_message};
use crate::pii::Salt;
use rankd_column::{Column, Elements, Id, Key, RowSet, Type};
use rankd_plan::json::Writer;
use std::io;

/// What a row takes besides its keys, more or less: ids, names and digests.
const ROW_BYTES: usize = 192;

/// Some rows of a run: how many of the rows of their node come before them.
pub(super) struct RowPiece<'r> {
    pub(super) run: &'r LoggedRun,
    pub(super) first: usize,
    pub(super) rows: RowSet,
}

/// What a file begins with.
pub(super) fn schema(plan: &LoggedPlan, node: &str, ids: Type, fields: &[LogField<'_>]) -> Vec<u8> {
    let of_all = COLUMNS.iter().map(|name| match *name {
        "user_id" | "id" => field(name, ids, false),
        "at_ms" | "position" => field(name, Type::Int, false),
        "arms" => field(name, Type::Str, true),
        name => field(name, Type::Str, false),
    });
    let of_keys = fields.iter().map(|of| field(of.name, of.type_of, true));
    let all: Vec<Table<'_>> = of_all.chain(of_keys).collect();
    let about = [
        ("rankd", "feature_log"),
        ("version", "1"),
        ("plan", &*plan.name),
        ("plan_sha256", &*plan.sha256),
        ("node", node),
    ];
    schema_message(all, &about)
}

/// The message of a batch of rows of one node.
pub(super) fn batch(node: &str, ids: Type, fields: &[LogField<'_>], pieces: &[RowPiece<'_>]) -> io::Result<Vec<u8>> {
    let mut body = Body::default();
    let row_sets: Vec<RowSet> = pieces.iter().map(|piece| piece.rows.clone()).collect();
    let texts = |of: &dyn Fn(&LoggedRun) -> Option<String>| {
        let mut texts = OptionalTexts::default();
        for piece in pieces {
            let text = of(piece.run);
            (0..piece.rows.len()).for_each(|_| texts.push(text.as_ref().map(String::as_bytes)));
        }
        texts
    };
    let ints = |of: &dyn Fn(&RowPiece<'_>, usize) -> i64| -> Vec<i64> {
        pieces.iter().flat_map(|piece| (0..piece.rows.len()).map(|at| of(piece, at))).collect()
    };
    let mut fits = body.texts(texts(&|run| Some(run.request_id.clone())));
    match ids {
        Type::Str => fits &= body.texts(texts(&|run| Some(user_text(&run.user_id)))),
        _ => body.ints(&ints(&|piece, _| if let Id::Int(id) = piece.run.user_id { id } else { 0 })),
    }
    body.ints(&ints(&|piece, _| piece.run.at_ms));
    fits &= body.texts(texts(&|run| Some(run.plan.name.to_string())));
    fits &= body.texts(texts(&|run| Some(run.plan.sha256.to_string())));
    fits &= body.texts(texts(&arms));
    fits &= body.texts(texts(&|_| Some(node.to_owned())));
    body.ints(&ints(&|piece, at| (piece.first + at) as i64));
    match ids {
        Type::Str => body.text_ids(&row_sets).map_err(io::Error::other)?,
        _ => body.ids(&row_sets),
    }
    for LogField { key, name, type_of, salt } in fields {
        match salt {
            None => {
                body.add(&ArrowField { key: *key, name, type_of: *type_of }, &row_sets).map_err(io::Error::other)?
            }
            Some(salt) => fits &= body.texts(hashes(salt, *key, &row_sets)),
        }
    }
    if !fits {
        return Err(io::Error::other(TooLong { key: COLUMNS[0].to_owned() }));
    }
    let rows = row_sets.iter().map(|rows| rows.len() as i64).sum();
    let mut out = Vec::with_capacity(body.bytes() + 2048);
    batch_message(&mut out, rows, body);
    Ok(out)
}

/// The values of a key, hashed.
fn hashes(salt: &Salt, key: Key, row_sets: &[RowSet]) -> OptionalTexts {
    let mut texts = OptionalTexts::default();
    for rows in row_sets {
        for at in 0..rows.len() {
            texts.push(salt.hash_value(&rows.value(key, at)).as_ref().map(String::as_bytes));
        }
    }
    texts
}

/// Where ids are texts, an int is the id that its digits are.
fn user_text(id: &Id) -> String {
    match id {
        Id::Int(id) => id.to_string(),
        Id::Text(text) => text.to_string(),
    }
}

/// As answers have them; `None` where the request is in no experiment.
fn arms(run: &LoggedRun) -> Option<String> {
    let arms = run.arms.as_ref().filter(|arms| !arms.is_empty())?;
    let mut writer = Writer::new();
    writer.object(|w| {
        for (experiment, arm) in arms.names() {
            w.field(experiment).string(arm);
        }
    });
    Some(writer.finish())
}

/// Where to end, so that the rows from `from` on take about `bytes`, but at least one; and what they take.
pub(super) fn fitting(rows: &RowSet, from: usize, bytes: usize, fields: &[LogField<'_>]) -> (usize, usize) {
    let columns: Vec<&Column> =
        fields.iter().filter_map(|of| rows.batch().column(of.key).map(|column| &**column)).collect();
    let mut taken = 0;
    for at in from..rows.len() {
        let row = rows.rows().at(at);
        taken += ROW_BYTES + columns.iter().map(|column| cell_bytes(column, row)).sum::<usize>();
        if taken >= bytes {
            return (at + 1, taken);
        }
    }
    (rows.len(), taken)
}

fn cell_bytes(column: &Column, row: usize) -> usize {
    match column {
        Column::Int(_) | Column::Float(_) => 8,
        Column::Bool(_) => 1,
        Column::Str(cells, dictionary) => cells.get(row).map_or(4, |code| 4 + dictionary.get(code).len()),
        Column::Vector(cells, vectors) => cells.get(row).map_or(4, |at| size_of_val(vectors.get(at))),
        Column::List(cells, elements) => cells.get(row).map_or(4, |span| match &**elements {
            Elements::Int(_) | Elements::Float(_) => 4 + 8 * span.len as usize,
            Elements::Str(codes, dictionary) => {
                codes[span.range()].iter().map(|code| 4 + dictionary.get(*code).len()).sum::<usize>() + 4
            }
        }),
    }
}
