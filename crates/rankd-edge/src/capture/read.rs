//! Captures in: the files that are named, or those of a folder, request by request. Nothing in them is believed that their bytes do not bear out.

use super::{CapturedRequest, columns, folder};
use crate::registry_files::RegistryTexts;
use crate::table_file::{TableFileError, read_stream};
use std::io;
use std::path::{Path, PathBuf};

/// A capture that cannot be read.
#[derive(Debug)]
pub enum CaptureFileError {
    /// It cannot be listed or found.
    Folder {
        /// Which it is.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is damaged, or is something else.
    File(Box<TableFileError>),
}

impl std::error::Error for CaptureFileError {}

impl std::fmt::Display for CaptureFileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CaptureFileError::Folder { path, error } => write!(f, "{}: {error}", path.display()),
            CaptureFileError::File(error) => write!(f, "{}: it is no capture: {}", error.path.display(), error.problem),
        }
    }
}

/// What was seen besides the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureSeen {
    /// How many files there were.
    pub files: usize,
    /// How many of them end in the middle of a batch, which was passed over.
    pub cut: usize,
}

/// Files of captures.
#[derive(Debug)]
pub struct CaptureFiles {
    paths: Vec<PathBuf>,
}

impl CaptureFiles {
    /// These files, and those of the folders among them, in order.
    pub fn find(named: &[PathBuf]) -> Result<CaptureFiles, CaptureFileError> {
        let mut paths = Vec::new();
        for path in named {
            if path.is_dir() {
                let listed = folder::list(path);
                paths.extend(listed.map_err(|error| CaptureFileError::Folder { path: path.clone(), error })?);
            } else {
                paths.push(path.clone());
            }
        }
        Ok(CaptureFiles { paths })
    }

    /// Each of the files by itself.
    pub fn one_by_one(self) -> Vec<CaptureFiles> {
        self.paths.into_iter().map(|path| CaptureFiles { paths: vec![path] }).collect()
    }

    /// Hands each request to `with`, together with the folder that its plan and registry lie in.
    pub fn each(&self, mut with: impl FnMut(&Path, CapturedRequest)) -> Result<CaptureSeen, CaptureFileError> {
        let mut seen = CaptureSeen::default();
        for path in &self.paths {
            let folder = path.parent().unwrap_or(Path::new("."));
            let read = read_stream(path, columns::COLUMNS, |rows, cursor| {
                columns::read_batch(rows, cursor, |request| with(folder, request))
            });
            let is_cut = read.map_err(|error| CaptureFileError::File(Box::new(error)))?;
            seen.files += 1;
            seen.cut += usize::from(is_cut);
        }
        Ok(seen)
    }
}

/// The artifact of a plan that lies beside captures.
pub(super) fn plan(folder: &Path, sha256: &str) -> io::Result<String> {
    folder::read_plan(folder, sha256)
}

/// The file of experiments that lies beside captures.
pub(super) fn experiments(folder: &Path, sha256: &str) -> io::Result<String> {
    folder::read_experiments(folder, sha256)
}

/// The registry that lies beside captures.
pub(super) fn registry(folder: &Path, sha256: &str) -> io::Result<RegistryTexts> {
    folder::read_registry(folder, sha256)
}
