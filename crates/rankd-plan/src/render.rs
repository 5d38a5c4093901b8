//! Diagnostics for people, with the line shown and underlined, and for programs, as JSON.

use crate::codes::Severity;
use crate::diagnostic::{Diagnostic, Diagnostics, SourceSpan};
use crate::json::{Writer, line_column, locate};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::collections::HashMap;
use std::ops::Range;

/// A checked text under the name that it is known by, and what was found in it.
pub struct Report<'a> {
    pub file: &'a str,
    /// `None` where it was not read, or is not text.
    pub text: Option<&'a str>,
    pub found: &'a Diagnostics,
}

/// Gives the text of a source file if it is still the one that was compiled.
pub type SourceLookup<'a> = &'a dyn Fn(&SourceSpan) -> Option<String>;

impl Report<'_> {
    /// For a terminal: one block for each diagnostic.
    pub fn for_people(&self, colour: bool, source_text: SourceLookup<'_>) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let places = self.places();
        let mut out = String::new();
        for diagnostic in self.found.list() {
            let shown = match &diagnostic.source {
                Some(span) => source_text(span).map(|text| (span.path.clone(), bytes_of(&text, span), text)),
                None => None,
            };
            let shown = shown.or_else(|| {
                let bytes = self.bytes_of(diagnostic, &places)?;
                Some((self.file.to_owned(), bytes, self.text?.to_owned()))
            });
            out.push_str(&block(&renderer, diagnostic, shown, &self.at(diagnostic, &places)));
            out.push_str("\n\n");
        }
        if let Some(left_out) = self.found.left_out() {
            out.push_str(&format!("… {left_out}\n"));
        }
        out
    }

    /// For programs: the fields of each diagnostic, appended to an open array.
    pub fn for_programs(&self, writer: &mut Writer) {
        let places = self.places();
        for diagnostic in self.found.list() {
            writer.object(|w| {
                w.field("code").string(diagnostic.code.id());
                w.field("severity").string(diagnostic.code.severity().name());
                w.field("message").string(&diagnostic.message);
                w.field("pointer").string(&diagnostic.pointer);
                w.field("at").string(&self.at(diagnostic, &places));
                match &diagnostic.help {
                    Some(help) => w.field("help").string(help),
                    None => w.field("help").null(),
                };
            });
        }
    }

    /// The first error in one line, with its place: `keys.toml:3:1: P301 …`. `None` where there is none.
    pub fn first_error(&self) -> Option<String> {
        let first = self.found.list().iter().find(|found| found.code.severity() == Severity::Error)?;
        Some(format!("{}: {} {}", self.at(first, &self.places()), first.code.id(), first.message))
    }

    /// Where it is: in the author's source if that is known, else in the file itself.
    fn at(&self, diagnostic: &Diagnostic, places: &HashMap<&str, Range<usize>>) -> String {
        if let Some(source) = &diagnostic.source {
            return source.at();
        }
        match (self.bytes_of(diagnostic, places), self.text) {
            (Some(bytes), Some(text)) => {
                let (line, column) = line_column(text, bytes.start);
                format!("{}:{line}:{column}", self.file)
            }
            _ => self.file.to_owned(),
        }
    }

    fn places(&self) -> HashMap<&str, Range<usize>> {
        let pointers = self.found.list().iter().filter(|d| d.bytes.is_none() && d.source.is_none());
        self.text.map_or_else(HashMap::new, |text| locate(text, pointers.map(|d| d.pointer.as_str())))
    }

    fn bytes_of(&self, diagnostic: &Diagnostic, places: &HashMap<&str, Range<usize>>) -> Option<Range<usize>> {
        diagnostic.bytes.clone().or_else(|| places.get(diagnostic.pointer.as_str()).cloned())
    }
}

/// A message of a run, with the place in the sources that it is about.
pub fn excerpt(title: &str, span: &SourceSpan, text: &str, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let lines = Lines::around(text, bytes_of(text, span));
    let snippet = Snippet::source(lines.text.as_str()).path(span.path.as_str()).line_start(lines.first_line);
    let snippet = snippet.annotation(AnnotationKind::Primary.span(lines.bytes.clone()));
    renderer.render(&[Level::ERROR.primary_title(title).element(snippet)])
}

/// A warning of a run in one line.
pub fn warning(code: &str, message: &str, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[Group::with_title(Level::WARNING.primary_title(message).id(code))])
}

fn block(
    renderer: &Renderer,
    diagnostic: &Diagnostic,
    shown: Option<(String, Range<usize>, String)>,
    at: &str,
) -> String {
    let level = match diagnostic.code.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.id());
    let lines;
    let mut group = match shown {
        Some((path, bytes, text)) => {
            lines = Lines::around(&text, bytes);
            let snippet = Snippet::source(lines.text.as_str()).path(path).line_start(lines.first_line);
            title.element(snippet.annotation(AnnotationKind::Primary.span(lines.bytes.clone())))
        }
        None => Group::with_title(title).element(Level::NOTE.message(format!("in {at}"))),
    };
    if !diagnostic.pointer.is_empty() {
        group = group.element(Level::NOTE.message(format!("at {}", diagnostic.pointer)));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

/// The line that a place is on. One that is too long to be read is cut; the renderer fits the rest to the terminal.
struct Lines {
    text: String,
    bytes: Range<usize>,
    first_line: usize,
}

impl Lines {
    fn around(text: &str, bytes: Range<usize>) -> Lines {
        const SHOWN_MAX: usize = 4096;
        let floor = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (start, end) = (floor(bytes.start), floor(bytes.end));
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let from = floor(line_start.max(start.saturating_sub(SHOWN_MAX / 2)));
        let to = floor(line_end.min(start + SHOWN_MAX));
        let end = end.clamp(start, to);
        let shown = text[from..to].to_owned();
        Lines { text: shown, bytes: start - from..end - from, first_line: line_column(text, start).0 }
    }
}

/// The bytes between a span's lines and columns, as far as the text has them.
fn bytes_of(text: &str, span: &SourceSpan) -> Range<usize> {
    let offset = |line: u32, column: u32| {
        let line_start = match line {
            0 | 1 => 0,
            line => text.match_indices('\n').nth(line as usize - 2).map_or(text.len(), |(at, _)| at + 1),
        };
        let line_text = text[line_start..].split('\n').next().unwrap_or_default();
        line_start + line_text.char_indices().nth(column.max(1) as usize - 1).map_or(line_text.len(), |(at, _)| at)
    };
    let start = offset(span.line, span.column);
    start..offset(span.end_line, span.end_column).max(start)
}
