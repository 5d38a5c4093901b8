//! One problem with a plan or registry, for its author; and the list in which all of them are gathered.

use crate::codes::{Code, Severity};
use crate::limits::DIAGNOSTICS_MAX;
use std::fmt;
use std::ops::Range;

/// A place in a TypeScript source: lines and columns from 1, the end exclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpan {
    pub path: String,
    /// What the compiler recorded of the file, to find out whether the file at hand is still the same.
    pub sha256: String,
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
}

impl SourceSpan {
    pub fn at(&self) -> String {
        format!("{}:{}:{}", self.path, self.line, self.column)
    }
}

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    pub code: Code,
    /// One terse sentence without a full stop.
    pub message: String,
    /// JSON pointer into the plan; empty for the whole file and for registries.
    pub pointer: String,
    /// Where in the checked text, in bytes; for syntax errors and registries. Otherwise the pointer gives the place.
    pub bytes: Option<Range<usize>>,
    /// Where the author wrote it, when the artifact knows.
    pub source: Option<SourceSpan>,
    /// What to do, with the nearest known name where a name is wrong.
    pub help: Option<String>,
}

impl Diagnostic {
    pub fn new(code: Code, pointer: impl Into<String>, message: impl Into<String>) -> Diagnostic {
        let (pointer, message) = (pointer.into(), message.into());
        Diagnostic { code, message, pointer, bytes: None, source: None, help: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Helps with the nearest of the known names, or with all of them where they are few.
    pub fn nearest<'n>(self, wrong: &str, known: impl Iterator<Item = &'n str> + Clone) -> Diagnostic {
        match nearest(wrong, known.clone()) {
            Some(name) => self.help(format!("did you mean {name:?}?")),
            None => {
                let few: Vec<&str> = known.take(9).collect();
                match few.len() {
                    0 | 9 => self,
                    _ => self.help(format!("known: {}", few.join(", "))),
                }
            }
        }
    }

    pub fn bytes(mut self, bytes: Range<usize>) -> Diagnostic {
        self.bytes = Some(bytes);
        self
    }

    pub fn source(mut self, source: Option<SourceSpan>) -> Diagnostic {
        self.source = source;
        self
    }
}

impl std::error::Error for Diagnostic {}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.source.as_ref().map(SourceSpan::at);
        match at.as_deref().unwrap_or(&self.pointer) {
            "" => {}
            at => write!(f, "{at}: ")?,
        }
        write!(f, "{} {}", self.code, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

/// The known name closest to a wrong one, if one is close enough to be meant.
pub fn nearest<'n>(wrong: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // A name that long was never meant to be one of ours, and the distance takes time by its length.
    if wrong.len() > 64 {
        return None;
    }
    let wrong = wrong.to_lowercase();
    let allowed = 1 + wrong.chars().count() / 4;
    known
        .map(|name| (strsim::damerau_levenshtein(&wrong, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The most characters of a text from outside that a message shows.
const QUOTED_MAX: usize = 80;

/// Text from outside as messages show it: in quotes, escaped, and of a long one only its beginning.
pub struct Quoted<'t>(&'t str);

/// Shows text from outside in a message. Whatever its length, the message stays short.
pub fn quoted(text: &str) -> Quoted<'_> {
    Quoted(text)
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(QUOTED_MAX) {
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

/// All problems found, in the order found, up to the limit.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    dropped: usize,
    errors: usize,
    cut_short: bool,
}

impl Diagnostics {
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.code.severity() == Severity::Error);
        if self.list.len() < DIAGNOSTICS_MAX {
            self.list.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Whether something found keeps the plan from running.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether further ones would only be counted.
    pub fn is_full(&self) -> bool {
        self.list.len() == DIAGNOSTICS_MAX
    }

    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Gives the author's place to those found since `from` that do not have a nearer one.
    pub fn place_since(&mut self, from: usize, source: Option<&SourceSpan>) {
        if let Some(source) = source {
            for diagnostic in self.list.iter_mut().skip(from).filter(|diagnostic| diagnostic.source.is_none()) {
                diagnostic.source = Some(source.clone());
            }
        }
    }

    /// Reports that there were too many problems to look at the rest.
    pub fn cut_short(&mut self) {
        self.cut_short = true;
    }

    /// What was left out, in words.
    pub fn left_out(&self) -> Option<String> {
        match (self.dropped, self.cut_short) {
            (0, false) => None,
            (dropped, false) => Some(format!("{dropped} more were found")),
            (_, true) => Some("there is more: the rest was not checked".to_owned()),
        }
    }

    pub fn errors(&self) -> usize {
        self.errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        assert_eq!(quoted("a\"b\n").to_string(), r#""a\"b\n""#);
        assert_eq!(quoted(&"é".repeat(80)).to_string(), format!("{:?}", "é".repeat(80)));
        assert_eq!(quoted(&"é".repeat(81)).to_string(), format!("{:?}…", "é".repeat(80)));
        assert!(quoted(&"\u{1}".repeat(1 << 20)).to_string().len() < 500);
    }

    #[test]
    fn the_nearest_name_is_close_or_nobody() {
        let known = || ["follow", "filter", "fixed_source"].into_iter();
        assert_eq!(nearest("folow", known()), Some("follow"));
        assert_eq!(nearest("Filter", known()), Some("filter"));
        assert_eq!(nearest("zebra", known()), None);
        assert_eq!(nearest(&"f".repeat(1_000_000), known()), None);
    }
}
