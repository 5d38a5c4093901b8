//! What is wrong with a model file, and where.

use crate::json::{Fault, line_column};
use rankd_column::model::TreeFault;
use std::fmt;

/// Why a file was refused. The message is one short sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelProblem {
    pub message: String,
    pub place: ModelPlace,
    /// What to do, where that is not clear.
    pub help: Option<String>,
}

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelPlace {
    /// Counted from 0.
    Byte(usize),
    /// Both from 1, the column in characters.
    Line { line: usize, column: usize },
    /// Somewhere in the file, or in all of it.
    File,
    /// Not in the file: in the library that would score rows with it.
    Runtime,
}

impl std::error::Error for ModelProblem {}

impl fmt::Display for ModelProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            ModelPlace::Byte(at) => write!(f, "byte {at}: {}", self.message),
            ModelPlace::Line { line, column } => write!(f, "{line}:{column}: {}", self.message),
            ModelPlace::File | ModelPlace::Runtime => f.write_str(&self.message),
        }?;
        self.help.iter().try_for_each(|help| write!(f, " ({help})"))
    }
}

/// What readers return.
pub(super) type Read<T> = std::result::Result<T, ModelProblem>;

impl ModelProblem {
    /// Of the file as a whole.
    pub fn of_file(message: impl Into<String>) -> ModelProblem {
        ModelProblem { message: message.into(), place: ModelPlace::File, help: None }
    }

    /// Of the library that would score rows, with what to do.
    pub fn of_runtime(message: impl Into<String>, help: impl Into<String>) -> ModelProblem {
        ModelProblem { message: message.into(), place: ModelPlace::Runtime, help: Some(help.into()) }
    }

    /// At a byte of the file.
    pub(super) fn new(at: usize, message: impl Into<String>) -> ModelProblem {
        ModelProblem { message: message.into(), place: ModelPlace::Byte(at), help: None }
    }

    /// Of a tree that is none.
    pub(super) fn tree(at: usize, tree: usize, fault: TreeFault) -> ModelProblem {
        ModelProblem::new(at, format!("tree {tree}: {fault}"))
    }

    pub(super) fn in_binary(self) -> ModelProblem {
        self
    }

    /// With the line of the byte.
    pub(super) fn in_text(self, text: &str) -> ModelProblem {
        let ModelPlace::Byte(at) = self.place else { return self };
        let (line, column) = line_column(text, at);
        ModelProblem { place: ModelPlace::Line { line, column }, ..self }
    }
}

impl From<Fault> for ModelProblem {
    fn from(fault: Fault) -> ModelProblem {
        ModelProblem::new(fault.at, fault.message)
    }
}
