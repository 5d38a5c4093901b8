//! The rows of an answer as a table for people: the first rows, numbers to the right, long texts and lists cut.
//!
//! What comes from stores goes to somebody's terminal here, so control characters are shown and never sent.

use super::Answer;
use super::degraded::{degraded_lines, short_lines};
use super::shown_text::shown_text;
use crate::arrow::ArrowField;
use crate::listing::Listing;
use rankd_column::{Id, List, RowSet, Type, Value};
use rankd_engine::degraded::{Degraded, Short};
use std::fmt::Display;

/// So many rows are shown of all outputs together.
pub const ROWS_SHOWN: usize = 20;
/// So many elements are shown of a list or a vector.
const ELEMENTS_SHOWN: usize = 3;

impl Answer<'_> {
    /// The first rows of each output as a table, how many there are, and what is missing. Columns that do not fit into `width` cells of a
    /// terminal, where there is one, are only named.
    pub fn table(
        &self,
        outputs: &[RowSet],
        (degraded, short): (&[Degraded], &[Short]),
        width: Option<usize>,
        colour: bool,
    ) -> String {
        let fields = self.fields(outputs);
        let mut text = String::new();
        let mut left = ROWS_SHOWN;
        for (at, rows) in outputs.iter().enumerate() {
            let names = self.plan.output_names.as_deref();
            if outputs.len() > 1 || names.is_some() {
                let node = || self.plan.outputs.get(at).map(|output| &*self.plan.node(*output).id);
                let name = names.map_or_else(node, |names| names.get(at).map(String::as_str));
                text.push_str(&format!("{}{}:\n", if at > 0 { "\n" } else { "" }, name.unwrap_or_default()));
            }
            let shown = rows.len().min(left);
            left -= shown;
            if shown > 0 {
                let mut listing = listing(&fields, rows, shown);
                let left_out = width.map(|width| listing.fit(width)).unwrap_or_default();
                text.push_str(&listing.render());
                if !left_out.is_empty() {
                    text.push_str(&format!("… not shown: {}; --format json shows all\n", left_out.join(", ")));
                }
            }
            let (count, rest) = (counted(rows.len()), rows.len() - shown);
            text.push_str(&match rest {
                0 => format!("{count}\n"),
                rest => format!("… {rest} more of {count}; --format json shows all\n"),
            });
        }
        text + &degraded_lines(self.plan, degraded, colour) + &short_lines(self.plan, short)
    }
}

fn counted(rows: usize) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

fn listing(fields: &[ArrowField<'_>], rows: &RowSet, shown: usize) -> Listing {
    let head: Vec<&str> = ["id"].into_iter().chain(fields.iter().map(|field| field.name)).collect();
    let mut listing = Listing::new(&head);
    if rows.batch().id_texts().is_none() {
        listing.align_right(0);
    }
    for (at, field) in fields.iter().enumerate() {
        if matches!(field.type_of, Type::Int | Type::Float) {
            listing.align_right(at + 1);
        }
    }
    for (position, row) in rows.rows().iter().take(shown).enumerate() {
        let id = match rows.batch().id(row) {
            Id::Int(id) => id.to_string(),
            Id::Text(text) => shown_text(&text),
        };
        let cells = fields.iter().map(|field| cell(&rows.value(field.key, position)));
        listing.row([id].into_iter().chain(cells).collect());
    }
    listing
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => number(*value),
        Value::Bool(value) => value.to_string(),
        Value::Str(text) => shown_text(text),
        Value::List(list) => match &**list {
            List::Int(list) => elements(list.iter().copied(), list.len()),
            List::Float(list) => elements(list.iter().map(|value| number(*value)), list.len()),
            List::Str(list) => elements(list.iter().map(|text| shown_text(text)), list.len()),
        },
        Value::Vector(vector) => elements(vector.iter().map(|value| number(f64::from(*value))), vector.len()),
    }
}

/// A number as it is, unless it has more digits than anybody compares.
fn number(value: f64) -> String {
    const DIGITS_SHOWN: usize = 10;
    let whole = value.to_string();
    match whole.len() <= DIGITS_SHOWN {
        true => whole,
        false if value.abs() >= 1e-4 && value.abs() < 1e9 => {
            let short = format!("{value:.6}");
            short.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        false => format!("{value:.4e}"),
    }
}

fn elements<T: Display>(list: impl Iterator<Item = T>, len: usize) -> String {
    let shown: Vec<String> = list.take(ELEMENTS_SHOWN).map(|element| element.to_string()).collect();
    let more = if len > ELEMENTS_SHOWN { format!(", … {} more", len - ELEMENTS_SHOWN) } else { String::new() };
    format!("[{}{more}]", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_people_compare() {
        for (value, shown) in [
            (0.5, "0.5"),
            (-3.0, "-3"),
            (1.0 / 3.0, "0.333333"),
            (1_234.567_890_123, "1234.56789"),
            (1e-9 / 3.0, "3.3333e-10"),
            (1e300, "1.0000e300"),
        ] {
            assert_eq!(number(value), shown);
        }
    }

    #[test]
    fn lists_are_cut() {
        assert_eq!(elements([1, 2].into_iter(), 2), "[1, 2]");
        assert_eq!(elements(0..64, 64), "[0, 1, 2, … 61 more]");
    }
}
