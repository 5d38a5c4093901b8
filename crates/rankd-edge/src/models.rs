//! The models of a registry: their files read, checked, and put in the place of earlier versions.
//!
//! A file is read beside the version that is in use, on the thread that asks for it. What is wrong with it leaves that version where
//! it is. How the bytes of a file become a model is in `rankd_plan::model`.

use crate::date;
use crate::files::{self, Contents, Stamp};
use rankd_plan::diagnostic::Diagnostic;
use rankd_plan::digest;
use rankd_plan::model::{self, Format, MODEL_BYTES_MAX, ModelPlace, ModelProblem, OnnxReader, UsedModel};
use rankd_plan::{Code, Diagnostics, Registry};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{error::Error, fmt};

/// The models of a registry, and where each comes from.
pub struct ModelFiles {
    sources: Vec<Arc<ModelSource>>,
}

/// Where a model comes from, and what became of reading it so far.
pub struct ModelSource {
    /// Its position in the registry.
    at: u32,
    name: String,
    path: PathBuf,
    format: Format,
    sha256: Option<String>,
    /// Reads ONNX models, where the program can.
    onnx: Option<Arc<dyn OnnxReader>>,
    loaded_ms: AtomicU64,
    reloads: AtomicU64,
    failed: AtomicU64,
}

/// Why a file cannot be used.
#[expect(missing_docs, reason = "the line of a variant says what its fields are")]
#[derive(Debug)]
pub enum ModelError {
    /// It cannot be read.
    File { path: PathBuf, error: io::Error },
    /// It has more bytes than a model may have.
    TooLarge { path: PathBuf, bytes: u64 },
    /// Its bytes are others than the registry says.
    Sha256 { path: PathBuf, is: String },
    /// It is no model of its format, or has what is not computed.
    Model { path: PathBuf, format: Format, problem: ModelProblem },
    /// Its features fit no keys.
    Features { path: PathBuf, found: Diagnostics },
    /// Plans that read the version in use could not go on with it: each with the reason.
    Unfit { path: PathBuf, plans: Vec<(String, String)> },
}

impl ModelError {
    /// What to say of it in the registry's file, at the place of the model.
    pub fn diagnostics(self, source: &ModelSource, registry: &Registry) -> Diagnostics {
        match self {
            ModelError::Features { found, .. } => found,
            ModelError::Model { problem: ModelProblem { message, place: ModelPlace::Runtime, help }, .. } => {
                let message = format!("the model {:?} needs ONNX Runtime: {message}", source.name);
                let wrong = Diagnostic::new(Code::NoOnnxRuntime, "", message).bytes(registry.models.place(source.at));
                let mut found = Diagnostics::default();
                found.push(match help {
                    Some(help) => wrong.help(help),
                    None => wrong,
                });
                found
            }
            other => {
                let mut found = Diagnostics::default();
                let message = format!("the file of the model {:?} cannot be used: {other}", source.name);
                found.push(Diagnostic::new(Code::BadModelFile, "", message).bytes(registry.models.place(source.at)));
                found
            }
        }
    }
}

impl Error for ModelError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ModelError::File { error, .. } => Some(error),
            ModelError::Model { problem, .. } => Some(problem),
            ModelError::TooLarge { .. }
            | ModelError::Sha256 { .. }
            | ModelError::Features { .. }
            | ModelError::Unfit { .. } => None,
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelError::File { path, error } => write!(f, "{}: {error}", path.display()),
            ModelError::TooLarge { path, bytes } => {
                write!(f, "{}: {bytes} bytes are more than {MODEL_BYTES_MAX}", path.display())
            }
            ModelError::Sha256 { path, is } => {
                write!(f, "{}: its sha256 is {is}, which is not what the registry says", path.display())
            }
            ModelError::Model { path, format, problem } => {
                let a = if *format == Format::Onnx { "an" } else { "a" };
                write!(f, "{}: as {a} {} model: {problem}", path.display(), format.name())
            }
            ModelError::Features { path, found } => {
                let messages: Vec<&str> = found.list().iter().map(|found| found.message.as_str()).collect();
                write!(f, "{}: {}", path.display(), messages.join("; "))
            }
            ModelError::Unfit { path, plans } => {
                let plans: Vec<String> = plans.iter().map(|(plan, why)| format!("plan {plan}: {why}")).collect();
                write!(f, "{}: {}", path.display(), plans.join("; "))
            }
        }
    }
}

impl ModelFiles {
    /// The models of a registry, none of which is loaded; `None` where it has no model. `onnx` reads those that are ONNX models.
    pub fn new(registry: &Registry, onnx: Option<Arc<dyn OnnxReader>>) -> Option<ModelFiles> {
        let source = |(at, entry): (u32, &rankd_plan::registry::ModelEntry)| {
            Arc::new(ModelSource {
                at,
                name: entry.name.clone(),
                path: entry.path.clone().into(),
                format: entry.format,
                sha256: entry.sha256.clone(),
                onnx: onnx.clone(),
                loaded_ms: AtomicU64::new(0),
                reloads: AtomicU64::new(0),
                failed: AtomicU64::new(0),
            })
        };
        let sources: Vec<_> = (0..).zip(registry.models.list()).map(source).collect();
        (!sources.is_empty()).then_some(ModelFiles { sources })
    }

    /// In registry order.
    pub fn sources(&self) -> &[Arc<ModelSource>] {
        &self.sources
    }

    /// Reads every file and takes it into use.
    pub fn load_all(&self, registry: &Registry) -> Result<(), ModelError> {
        for source in &self.sources {
            let loaded = source.load(registry)?;
            source.put(loaded, registry);
        }
        Ok(())
    }
}

impl ModelSource {
    /// Its position in the registry.
    pub fn at(&self) -> u32 {
        self.at
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file is written in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What the file looks like from outside; `None` where it is not there.
    pub fn stamp(&self) -> Option<Stamp> {
        files::stamp(&self.path)
    }

    /// When the version in use was taken into use, in milliseconds since 1970; 0 while there is none.
    pub fn loaded_ms(&self) -> u64 {
        self.loaded_ms.load(Ordering::Relaxed)
    }

    /// How often a changed file was taken into use, and how often one was refused.
    pub fn reloads(&self) -> (u64, u64) {
        (self.reloads.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    /// Counts a file that has changed, and whether it was taken into use.
    pub fn count_reload(&self, is_good: bool) {
        let count = if is_good { &self.reloads } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads the file, finds the keys of its features, and scores a few rows, so that the first request pays for nothing of that.
    pub fn load(&self, registry: &Registry) -> Result<UsedModel, ModelError> {
        let path = || self.path.clone();
        let unread = |problem| ModelError::Model { path: path(), format: self.format, problem };
        let onnx = self.onnx.as_deref();
        // First: where nothing reads the format, it does not matter what the file is.
        model::must_be_readable(self.format, onnx).map_err(unread)?;
        let bytes = match files::read(&self.path, MODEL_BYTES_MAX) {
            Err(error) => return Err(ModelError::File { path: path(), error }),
            Ok(Contents::TooLarge(bytes)) => return Err(ModelError::TooLarge { path: path(), bytes }),
            Ok(Contents::Bytes(bytes)) => bytes,
        };
        let is = digest::in_hexadecimal(&Sha256::digest(&bytes));
        if self.sha256.as_ref().is_some_and(|wanted| *wanted != is) {
            return Err(ModelError::Sha256 { path: path(), is });
        }
        let read = model::read(self.format, &bytes, onnx).map_err(unread)?;
        let used = UsedModel::bind(self.at, read, is, registry);
        let used = used.map_err(|found| ModelError::Features { path: path(), found })?;
        used.warm(registry.known_model(self.at).as_deref());
        Ok(used)
    }

    /// Takes a file that was read into use.
    pub fn put(&self, loaded: UsedModel, registry: &Registry) {
        registry.models_in_use().swap(self.at, loaded);
        self.loaded_ms.store(date::millis(), Ordering::Relaxed);
    }
}
