//! The lists of a chunk, put together from the levels of its values.
//!
//! A value whose repetition is 0 begins a row. Its level says how much is there: nothing (the list is null), an empty list, a list
//! whose element is null, or an element.

use super::footer::{Meaning, Stored};
use super::page::DataPage;
use crate::table_file::columnar::{Lists, Piece, PieceValues};
use std::mem::take;
use std::ops::Range;

/// What a chunk has had so far.
pub(super) struct ListChunk {
    stored: Stored,
    /// Where the elements of each row begin; the last one's are still coming.
    offsets: Vec<usize>,
    valid: Vec<bool>,
    with_nulls: Vec<usize>,
    elements: Elements,
}

/// The elements so far.
enum Elements {
    None,
    Int(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    /// Texts side by side, and where each is; nothing for those that are not UTF-8.
    Text(String, Vec<Option<Range<usize>>>),
}

impl ListChunk {
    pub(super) fn new(stored: Stored) -> ListChunk {
        ListChunk { stored, offsets: Vec::new(), valid: Vec::new(), with_nulls: Vec::new(), elements: Elements::None }
    }

    /// Adds a page; `None` where its levels make no sense.
    pub(super) fn add(&mut self, page: &DataPage<'_>, values: PieceValues<'_>) -> Option<()> {
        let (empty, full) = (u32::from(self.stored.is_optional), self.stored.level_max());
        let mut len = self.elements.len();
        for (level, repetition) in page.levels.as_ref()?.iter().zip(page.repetitions.as_ref()?) {
            match repetition {
                0 => {
                    self.offsets.push(len);
                    self.valid.push(*level >= empty);
                }
                // What goes on must have begun, with an element.
                _ if self.offsets.is_empty() || *level <= empty => return None,
                _ => {}
            }
            if *level == full {
                len += 1;
            } else if *level > full {
                return None;
            } else if *level > empty {
                let row = self.offsets.len() - 1;
                if self.with_nulls.last() != Some(&row) {
                    self.with_nulls.push(row);
                }
            }
        }
        self.elements.extend(values)?;
        (self.elements.len() == len).then_some(())
    }

    /// The cells, which must be of so many rows.
    pub(super) fn piece(&mut self, rows: usize) -> Option<Piece<'_>> {
        if self.valid.len() != rows {
            return None;
        }
        self.offsets.push(self.elements.len());
        let mut misfits = Vec::new();
        let values = match &mut self.elements {
            Elements::None => PieceValues::Int(Vec::new()),
            Elements::Int(values) => {
                if self.stored.meaning == Meaning::Unsigned {
                    misfits.extend(values.iter().enumerate().filter(|(_, value)| **value < 0).map(|(at, _)| at));
                }
                PieceValues::Int(take(values))
            }
            Elements::Float(values) => PieceValues::Float(take(values)),
            Elements::Bool(values) => PieceValues::Bool(take(values)),
            Elements::Text(text, ranges) => {
                PieceValues::Text(ranges.iter().map(|range| text.get(range.clone()?)).collect())
            }
        };
        let lists = Some(Lists { offsets: take(&mut self.offsets), with_nulls: take(&mut self.with_nulls) });
        let valid = Some(take(&mut self.valid));
        Some(Piece { rows, valid, values, is_dense: false, misfits, lists })
    }
}

impl Elements {
    fn len(&self) -> usize {
        match self {
            Elements::None => 0,
            Elements::Int(values) => values.len(),
            Elements::Float(values) => values.len(),
            Elements::Bool(values) => values.len(),
            Elements::Text(_, ranges) => ranges.len(),
        }
    }

    /// Adds values; `None` where they are of another type than those before.
    fn extend(&mut self, values: PieceValues<'_>) -> Option<()> {
        match (self, values) {
            (Elements::Int(all), PieceValues::Int(values)) => all.extend(values),
            (Elements::Float(all), PieceValues::Float(values)) => all.extend(values),
            (Elements::Bool(all), PieceValues::Bool(values)) => all.extend(values),
            (Elements::Text(text, ranges), PieceValues::Text(values)) => add_texts(text, ranges, values.into_iter()),
            (Elements::Text(text, ranges), PieceValues::Coded(codes, entries)) => {
                add_texts(text, ranges, codes.into_iter().map(|code| entries.get(code)));
            }
            (all @ Elements::None, values) => {
                *all = match values {
                    PieceValues::Int(values) => Elements::Int(values),
                    PieceValues::Float(values) => Elements::Float(values),
                    PieceValues::Bool(values) if values.is_empty() => Elements::None,
                    PieceValues::Bool(values) => Elements::Bool(values),
                    texts @ (PieceValues::Text(_) | PieceValues::Coded(..)) => {
                        *all = Elements::Text(String::new(), Vec::new());
                        return all.extend(texts);
                    }
                };
            }
            // A page without any values.
            (_, PieceValues::Bool(values)) if values.is_empty() => {}
            _ => return None,
        }
        Some(())
    }
}

fn add_texts<'t>(
    text: &mut String,
    ranges: &mut Vec<Option<Range<usize>>>,
    texts: impl Iterator<Item = Option<&'t str>>,
) {
    for one in texts {
        let start = text.len();
        text.push_str(one.unwrap_or_default());
        ranges.push(one.map(|_| start..text.len()));
    }
}
