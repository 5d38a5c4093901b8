//! What the files of a registry refer to outside of themselves: paths, environment variables, files with secrets.
//!
//! Nothing here reads the environment or a file. Whoever reads the registry's files hands in the values.

use std::fmt;

/// A value that stands somewhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference<'t> {
    /// `env:NAME`: an environment variable.
    Variable(&'t str),
    /// `file:PATH`: what is in a file, without the line end that closes it.
    File(&'t str),
}

impl<'t> Reference<'t> {
    /// Reads `env:NAME` or `file:PATH`; nothing where the text is neither.
    pub fn parse(text: &'t str) -> Option<Reference<'t>> {
        match text.split_once(':') {
            Some(("env", name)) => Some(Reference::Variable(name)),
            Some(("file", path)) => Some(Reference::File(path)),
            _ => None,
        }
    }
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Variable(name) => write!(f, "env:{name}"),
            Reference::File(path) => write!(f, "file:{path}"),
        }
    }
}

/// Why there is no value where a reference points.
#[derive(Debug, PartialEq, Eq)]
pub enum NoValue {
    /// The variable is not set.
    NotSet,
    /// The variable or the file is not UTF-8 text, or is empty.
    NotText,
    /// The file cannot be read, and why.
    Unreadable(String),
}

impl std::error::Error for NoValue {}

/// Continues a sentence that names the reference.
impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoValue::NotSet => f.write_str("and this environment variable is not set"),
            NoValue::NotText => f.write_str("which is empty or not UTF-8"),
            NoValue::Unreadable(why) => write!(f, "which cannot be read: {why}"),
        }
    }
}

/// Knows what references mean.
pub trait Surroundings {
    /// Where in the file system a path is that stands in a registry, relative to the project.
    fn path(&self, path: &str) -> String;

    /// The value of a reference; `None` where it does not matter to whoever reads the registry.
    fn value_of(&self, reference: Reference<'_>) -> Result<Option<String>, NoValue>;
}

/// Takes every path and every reference as it is written: enough to judge plans, but not to open endpoints.
pub struct AsWritten;

impl Surroundings for AsWritten {
    fn path(&self, path: &str) -> String {
        path.to_owned()
    }

    fn value_of(&self, _: Reference<'_>) -> Result<Option<String>, NoValue> {
        Ok(None)
    }
}
