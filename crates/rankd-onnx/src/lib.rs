//! ONNX models, scored by ONNX Runtime, whose shared library the user names. A program that hands [`open`] to `rankd::App` can use them.
//!
//! Knows no registry and no plan. Nothing is loaded before the first ONNX model is read. Reading order: `elf` (is a file the library at all),
//! `trial` (does it start at all), `runtime` (the library, started once a process), `graph` (what a model reads and gives), `session` (a model that scores blocks of rows).

mod elf;
mod graph;
mod runtime;
mod session;
mod trial;

use crate::graph::Graph;
use crate::session::SessionSource;
use rankd_column::model::Model;
use rankd_plan::model::{ModelProblem, OnnxReader, OnnxTrial};
use std::path::PathBuf;
use std::sync::Arc;

/// A reader of ONNX models that uses this shared library, once it has passed the trial.
pub fn open(library: Option<PathBuf>, trial: Option<OnnxTrial>) -> Arc<dyn OnnxReader> {
    Arc::new(LibraryReader { library, trial })
}

struct LibraryReader {
    library: Option<PathBuf>,
    trial: Option<OnnxTrial>,
}

impl LibraryReader {
    fn library(&self) -> Result<&PathBuf, ModelProblem> {
        self.library.as_ref().ok_or_else(|| {
            let help = format!("name it with --onnxruntime FILE or RANKD_ONNXRUNTIME: {}", runtime::WHERE);
            ModelProblem::of_runtime("no shared library is named", help)
        })
    }
}

impl OnnxReader for LibraryReader {
    fn load(&self) -> Result<(), ModelProblem> {
        runtime::load(self.library()?).map(drop).map_err(|why| ModelProblem::of_runtime(why, runtime::WHERE))
    }

    fn read(&self, bytes: &[u8]) -> Result<Model, ModelProblem> {
        let environment = runtime::start(self.library()?, self.trial)?;
        let source = SessionSource::new(environment, bytes);
        let mut session = source.session().map_err(|error| ModelProblem::of_file(session::in_words(&error)))?;
        let mut graph = Graph::of(&session).map_err(ModelProblem::of_file)?;
        // What a graph declares need not be what it gives.
        session::measure(&mut session, &mut graph).map_err(|fault| ModelProblem::of_file(fault.0))?;
        let features = graph.features();
        Ok(Model::of_evaluator(features, String::new(), Arc::new(source.evaluator(graph, session))))
    }
}
