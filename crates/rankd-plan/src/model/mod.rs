//! Readers of trained models: the bytes of a file in, a model that can score rows out, or what is wrong with the file and where.
//!
//! One file a format; what a format has that we do not compute bit for bit is refused by name. Nothing recurses over a file, no tree of values
//! is built, and memory is bounded by the size of the file. Reading order: `problem`; `lightgbm`, `lightgbm_tree`, `lightgbm_tail`; `pull` and `ubjson`,
//! then `xgboost`, `xgboost_objective`, `xgboost_tree`; `catboost`, `catboost_tree`; `onnx` (which the program hands in); `used` (with the keys that
//! features are), `explain` (what the score of one row is made of).

mod catboost;
mod catboost_tree;
mod explain;
mod lightgbm;
mod lightgbm_tail;
mod lightgbm_tree;
mod onnx;
mod problem;
mod pull;
mod ubjson;
mod used;
mod xgboost;
mod xgboost_objective;
mod xgboost_tree;

pub use explain::RawScore;
pub use onnx::{OnnxReader, OnnxTrial, OpenOnnx};
pub use problem::{ModelPlace, ModelProblem};
pub use used::{ModelVersions, Models, ScoringMemory, UsedModel};

use rankd_column::model::Model;

/// Larger files are refused.
pub const MODEL_BYTES_MAX: usize = 256 << 20;

/// Who wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    LightGbm,
    XgBoost,
    CatBoost,
    Onnx,
}

impl Format {
    pub const ALL: [Format; 4] = [Format::LightGbm, Format::XgBoost, Format::CatBoost, Format::Onnx];

    /// As a registry names it.
    pub fn name(self) -> &'static str {
        match self {
            Format::LightGbm => "lightgbm",
            Format::XgBoost => "xgboost",
            Format::CatBoost => "catboost",
            Format::Onnx => "onnx",
        }
    }

    /// Whether its models are trees: those have boosting rounds and raw sums.
    pub fn is_trees(self) -> bool {
        match self {
            Format::LightGbm | Format::XgBoost | Format::CatBoost => true,
            Format::Onnx => false,
        }
    }

    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Whether there is something that reads the format.
pub fn must_be_readable(format: Format, onnx: Option<&dyn OnnxReader>) -> Result<(), ModelProblem> {
    if format == Format::Onnx && onnx.is_none() { Err(onnx::built_without()) } else { Ok(()) }
}

/// Reads a model file. ONNX models are read by what the program hands in, if it was built with that.
pub fn read(format: Format, bytes: &[u8], onnx: Option<&dyn OnnxReader>) -> Result<Model, ModelProblem> {
    if bytes.len() > MODEL_BYTES_MAX {
        return Err(ModelProblem::new(0, format!("a model file of more than {MODEL_BYTES_MAX} bytes")).in_binary());
    }
    match format {
        Format::LightGbm => text(bytes, lightgbm::read),
        Format::XgBoost => xgboost::read(bytes),
        Format::CatBoost => text(bytes, catboost::read),
        Format::Onnx => onnx.ok_or_else(onnx::built_without)?.read(bytes),
    }
}

/// Reads what must be text, and finds the line of what is wrong.
fn text(bytes: &[u8], read: impl FnOnce(&str) -> Result<Model, ModelProblem>) -> Result<Model, ModelProblem> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ModelProblem::new(error.valid_up_to(), "a byte that is not UTF-8").in_binary())?;
    read(text).map_err(|problem| problem.in_text(text))
}
