//! The keys that a template gives for rows: each distinct one once, and which row reads which; and what rows ask of them as members.

use rankd_column::id::ID_BYTES_MAX;
use rankd_column::{Cells, Column, Dictionary, Id, IdTexts, Key, RowSet, Value};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::store::{DistinctKeys, KeyBuffer};
use rankd_engine::task::{AskedMembers, FetchContext};
use rankd_plan::template::{Template, TemplatePart};

/// The longest key that is read.
const KEY_BYTES_MAX: usize = 1024;

/// The most that the keys of all rows of a step have together: they are written before the first is sent.
const ALL_BYTES_MAX: usize = 1 << 30;

/// Stands for the key of a row for which something in the template is null.
pub(crate) const NO_KEY: u32 = u32::MAX;

/// The keys of a step.
pub(crate) struct RowKeys {
    pub(crate) keys: KeyBuffer,
    /// For each row, in order, the place of its key, or [`NO_KEY`].
    pub(crate) of_row: Vec<u32>,
}

/// A part of a template, as this step fills it in.
enum Filling<'a> {
    Text(&'a [u8]),
    Owned(String),
    Ints(&'a [i64]),
    TextIds(&'a [i64], &'a IdTexts),
    IntCells(&'a Cells<i64>),
    StrCells(&'a Cells<u32>, &'a Dictionary),
    Null,
}

impl Filling<'_> {
    fn is_null(&self, row: usize) -> bool {
        match self {
            Filling::IntCells(cells) => cells.get(row).is_none(),
            Filling::StrCells(cells, _) => cells.get(row).is_none(),
            Filling::Null => true,
            Filling::Text(_) | Filling::Owned(_) | Filling::Ints(_) | Filling::TextIds(..) => false,
        }
    }

    /// How many bytes its text has; 0 where it is no text.
    fn text_bytes(&self, row: usize) -> usize {
        match self {
            Filling::StrCells(cells, texts) => cells.get(row).map_or(0, |code| texts.get(code).len()),
            Filling::TextIds(ids, texts) => texts.text(ids[row]).len(),
            Filling::Text(text) => text.len(),
            Filling::Owned(text) => text.len(),
            Filling::Ints(_) | Filling::IntCells(_) | Filling::Null => 0,
        }
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        let int = |out: &mut Vec<u8>, value: i64| out.extend_from_slice(value.to_string().as_bytes());
        match self {
            Filling::Text(text) => out.extend_from_slice(text),
            Filling::Owned(text) => out.extend_from_slice(text.as_bytes()),
            Filling::Ints(ids) => int(out, ids[row]),
            Filling::TextIds(ids, texts) => out.extend_from_slice(texts.text(ids[row]).as_bytes()),
            Filling::IntCells(cells) => cells.get(row).into_iter().for_each(|value| int(out, value)),
            Filling::StrCells(cells, texts) => {
                cells.get(row).into_iter().for_each(|code| out.extend_from_slice(texts.get(code).as_bytes()));
            }
            Filling::Null => {}
        }
    }
}

/// Fills a template in for each row of the view; once where there are no rows to be of.
pub(crate) fn fill(template: &Template, rows: Option<&RowSet>, cx: &FetchContext<'_>) -> Result<RowKeys, TaskError> {
    let fillings: Vec<Filling<'_>> = template.parts().iter().map(|part| filling(part, rows, cx)).collect();
    let (mut keys, mut all_bytes) = (DistinctKeys::default(), 0usize);
    let mut add = |row: usize| {
        if fillings.iter().any(|filling| filling.is_null(row)) {
            return Ok(NO_KEY);
        }
        let mut bytes = 0;
        let place = keys.add(|out| {
            let start = out.len();
            fillings.iter().for_each(|filling| filling.write(row, out));
            bytes = out.len() - start;
        });
        all_bytes += bytes;
        match bytes > KEY_BYTES_MAX {
            true => Err(too_long(rows, row, bytes)),
            false if all_bytes > ALL_BYTES_MAX => Err(too_many_bytes()),
            false => Ok(place),
        }
    };
    let of_row = match rows {
        None => vec![add(0)?],
        Some(rows) if !template.differs_by_row() => {
            let key = if rows.is_empty() { NO_KEY } else { add(0)? };
            vec![key; rows.len()]
        }
        Some(rows) => rows.rows().iter().map(&mut add).collect::<Result<_, _>>()?,
    };
    Ok(RowKeys { keys: keys.into_keys(), of_row })
}

fn filling<'a>(part: &'a TemplatePart, rows: Option<&'a RowSet>, cx: &FetchContext<'_>) -> Filling<'a> {
    match part {
        TemplatePart::Text(text) => Filling::Text(text.as_bytes()),
        TemplatePart::UserId => match &cx.request.user_id {
            Id::Int(id) => Filling::Owned(id.to_string()),
            Id::Text(text) => Filling::Owned(text.to_string()),
        },
        TemplatePart::Param(at) => match cx.request.params.get(*at as usize) {
            Some(Value::Int(value)) => Filling::Owned(value.to_string()),
            Some(Value::Str(text)) => Filling::Owned(text.to_string()),
            // The checks allow no other type.
            _ => Filling::Null,
        },
        TemplatePart::Id => rows.map_or(Filling::Null, |rows| values(Key::ID, rows)),
        TemplatePart::Key(key) => rows.map_or(Filling::Null, |rows| values(*key, rows)),
    }
}

/// The values of a key.
fn values(key: Key, rows: &RowSet) -> Filling<'_> {
    let batch = rows.batch();
    match (batch.column(key).map(|column| &**column), batch.id_texts()) {
        (None, Some(texts)) if key == Key::ID => Filling::TextIds(batch.ids(), texts),
        (None, None) if key == Key::ID => Filling::Ints(batch.ids()),
        (Some(Column::Int(cells)), _) => Filling::IntCells(cells),
        (Some(Column::Str(cells, texts)), _) => Filling::StrCells(cells, texts),
        // A column that is not there is null; the checks allow no other type.
        _ => Filling::Null,
    }
}

/// What is asked for rows, and for each row and each of the keys `by`, in turn, the place of what is asked, or [`NO_KEY`].
pub(crate) struct RowMembers {
    pub(crate) asked: AskedMembers,
    pub(crate) of_cell: Vec<u32>,
}

/// The values of keys as members of what is stored under the row's key. A null, and what is too long for an id, is not asked for.
pub(crate) fn members(rows: &RowSet, by: &[Key], of_row: &[u32]) -> Result<RowMembers, TaskError> {
    let fillings: Vec<Filling<'_>> = by.iter().map(|key| values(*key, rows)).collect();
    let mut asked = AskedMembers::default();
    let mut of_cell = Vec::with_capacity(of_row.len() * by.len());
    for (row, key) in rows.rows().iter().zip(of_row) {
        for filling in &fillings {
            let is_asked = *key != NO_KEY && !filling.is_null(row) && filling.text_bytes(row) <= ID_BYTES_MAX;
            of_cell.push(if is_asked { asked.add(*key, |out| filling.write(row, out)) } else { NO_KEY });
        }
        if asked.byte_count() > ALL_BYTES_MAX {
            return Err(too_many_bytes());
        }
    }
    Ok(RowMembers { asked, of_cell })
}

fn too_long(rows: Option<&RowSet>, row: usize, bytes: usize) -> TaskError {
    let of = match rows {
        Some(rows) => format!(" for row id {}", rows.batch().value(Key::ID, row)),
        None => String::new(),
    };
    let message =
        format!("the key that is read{of} has {bytes} bytes, which is more than the limit of {KEY_BYTES_MAX}");
    TaskError::new(codes::KEY_TOO_LONG, message)
}

fn too_many_bytes() -> TaskError {
    TaskError::new(codes::STORED_TOO_LARGE, format!("the keys of a step have more than {ALL_BYTES_MAX} bytes"))
}
