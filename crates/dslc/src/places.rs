//! Where things stand in the sources: the numbers that rewritten code carries, and the lines and columns that people read.

use oxc::span::Span;
use rankd_plan::diagnostic::SourceSpan;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// A source that was read, under its path inside the plan's folder.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) sha256: String,
    /// The byte at which each line begins.
    line_starts: Vec<u32>,
}

impl SourceFile {
    pub(crate) fn new(path: String, text: String) -> SourceFile {
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at as u32 + 1)).collect::<Vec<_>>();
        let sha256 = hex(&Sha256::digest(text.as_bytes()));
        SourceFile { path, text, sha256, line_starts }
    }

    /// The line and column, from 1, of a byte; columns count characters.
    fn line_column(&self, at: u32) -> (u32, u32) {
        let line = self.line_starts.partition_point(|start| *start <= at).max(1);
        let start = self.line_starts[line - 1] as usize;
        let column = self.text.get(start..at as usize).map_or(0, |before| before.chars().count());
        (line as u32, column as u32 + 1)
    }

    pub(crate) fn span(&self, start: u32, end: u32) -> SourceSpan {
        let len = self.text.len() as u32;
        let (line, column) = self.line_column(start.min(len));
        let (end_line, end_column) = self.line_column(end.clamp(start, len.max(start)).min(len));
        SourceSpan { path: self.path.clone(), sha256: self.sha256.clone(), line, column, end_line, end_column }
    }

    /// The word or sign that begins at a line and column as a JavaScript engine counts them, both from 0.
    pub(crate) fn word_at(&self, line: u32, utf16_column: u32) -> (u32, u32) {
        let start = self.line_starts.get(line as usize).copied().unwrap_or(self.text.len() as u32);
        let rest = &self.text[start as usize..];
        let mut units = 0;
        let before: usize = rest
            .chars()
            .take_while(|c| {
                let taken = units < utf16_column;
                units += c.len_utf16() as u32;
                taken
            })
            .map(char::len_utf8)
            .sum();
        let rest = &rest[before..];
        let word: usize =
            rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$')).map(char::len_utf8).sum();
        let word = if word == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { word };
        (start + before as u32, start + (before + word) as u32)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Where an option of a call was written: its name and its value.
#[derive(Clone, Debug)]
pub(crate) struct OptionPlace {
    pub(crate) name: String,
    pub(crate) name_span: Span,
    pub(crate) value_span: Span,
}

/// Every place that rewritten code can speak of.
#[derive(Default)]
pub(crate) struct Places {
    /// File and bytes by number.
    list: Vec<(u32, Span)>,
    /// The options of a call, by the call's number.
    options: HashMap<u32, Vec<OptionPlace>>,
}

impl Places {
    /// Numbers a place and, right after it, its parts.
    pub(crate) fn add(&mut self, file: u32, span: Span, parts: impl IntoIterator<Item = Span>) -> u32 {
        let number = self.list.len() as u32;
        self.list.push((file, span));
        self.list.extend(parts.into_iter().map(|part| (file, part)));
        number
    }

    pub(crate) fn add_options(&mut self, call: u32, options: Vec<OptionPlace>) {
        if !options.is_empty() {
            self.options.insert(call, options);
        }
    }

    pub(crate) fn get(&self, number: i64) -> Option<(u32, Span)> {
        self.list.get(usize::try_from(number).ok()?).copied()
    }

    /// The value, or the name, of a call's option; the call where the option was not written in it.
    pub(crate) fn option(&self, call: i64, option: &str, on_name: bool) -> Option<(u32, Span)> {
        let (file, span) = self.get(call)?;
        let options = u32::try_from(call).ok().and_then(|call| self.options.get(&call));
        let found = options.and_then(|options| options.iter().find(|known| known.name == option));
        let span = found.map_or(span, |found| if on_name { found.name_span } else { found.value_span });
        Some((file, span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_words_are_found_by_utf16() {
        let file = SourceFile::new("a.ts".into(), "é\n𝄞 = nämlich;\n".into());
        let (start, end) = file.word_at(1, 5);
        assert_eq!(&file.text[start as usize..end as usize], "nämlich");
        let span = file.span(start, end);
        assert_eq!((span.line, span.column, span.end_line, span.end_column), (2, 5, 2, 12));
        assert_eq!(file.word_at(9, 9), (file.text.len() as u32, file.text.len() as u32));
    }
}
