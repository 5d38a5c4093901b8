//! ONNX models: what a program hands in to read them, and what is said where it was built without. ONNX Runtime itself is not known here.

use crate::model::ModelProblem;
use rankd_column::model::Model;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads ONNX models.
pub trait OnnxReader: Send + Sync {
    /// Reads a model. What is wrong with ONNX Runtime instead is a problem at [`ModelPlace::Runtime`](super::ModelPlace::Runtime).
    fn read(&self, bytes: &[u8]) -> Result<Model, ModelProblem>;
}

/// Makes a reader that uses this shared library of ONNX Runtime, where the user has named one. Nothing is loaded before the first model.
pub type OpenOnnx = fn(library: Option<PathBuf>) -> Arc<dyn OnnxReader>;

/// What is said of a model where there is no reader.
pub(super) fn built_without() -> ModelProblem {
    let help = "build it with: cargo build --release --features onnx";
    ModelProblem::of_runtime("this program was built without the feature onnx", help)
}
