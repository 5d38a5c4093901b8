//! ONNX models: what a program hands in to read them, and what is said where it was built without. ONNX Runtime itself is not known here.

use crate::model::ModelProblem;
use rankd_column::model::Model;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Reads ONNX models.
pub trait OnnxReader: Send + Sync {
    /// Reads a model. What is wrong with ONNX Runtime instead is a problem at [`ModelPlace::Runtime`](super::ModelPlace::Runtime).
    fn read(&self, bytes: &[u8]) -> Result<Model, ModelProblem>;

    /// Loads ONNX Runtime on this thread, and does nothing else. May hang or crash: it is what an [`OnnxTrial`] does.
    fn load(&self) -> Result<(), ModelProblem>;
}

/// The command that calls [`OnnxReader::load`] for a shared library in a process of its own.
pub type OnnxTrial = fn(library: &Path) -> Command;

/// Makes a reader that uses this shared library of ONNX Runtime, where the user has named one. Nothing is loaded before the first model, and
/// where there is a trial, not before the library has passed it.
pub type OpenOnnx = fn(library: Option<PathBuf>, trial: Option<OnnxTrial>) -> Arc<dyn OnnxReader>;

/// What is said of a model where there is no reader.
pub(super) fn built_without() -> ModelProblem {
    let help = "build it with: cargo build --release --features onnx";
    ModelProblem::of_runtime("this program was built without the feature onnx", help)
}
