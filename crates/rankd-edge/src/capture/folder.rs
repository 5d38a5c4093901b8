//! A folder of captures: files that are rotated by size and age, of which the oldest are removed, and beside them the plans and registries that they
//! were made with, each once. Only the owner can read what is written here.

use super::columns;
use crate::registry_files::RegistryTexts;
use crate::{arrow, date, files};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How files of captures end.
pub(super) const SUFFIX: &str = ".arrows";
/// What the files of a registry are called, in the order of [`RegistryTexts`].
const REGISTRY_FILES: [&str; 4] = ["keys.toml", "params.toml", "endpoints.toml", "models.toml"];
/// The largest plan or file of a registry that is read.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct CaptureLimits {
    /// A file of more bytes is closed.
    pub file_bytes: u64,
    /// A file that is older is closed.
    pub file_ms: u64,
    /// The oldest files are removed when all of them have more bytes.
    pub folder_bytes: u64,
}

impl Default for CaptureLimits {
    fn default() -> CaptureLimits {
        CaptureLimits { file_bytes: 64 << 20, file_ms: 3_600_000, folder_bytes: 1 << 30 }
    }
}

/// Why a folder cannot be used for captures.
#[derive(Debug)]
pub struct FolderError {
    /// The folder, or a file in it.
    pub path: PathBuf,
    /// What the system says.
    pub error: io::Error,
}

impl std::error::Error for FolderError {}

impl std::fmt::Display for FolderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write captures to {}: {}", self.path.display(), self.error)
    }
}

/// A folder that is written to.
pub(super) struct CaptureFolder {
    folder: PathBuf,
    limits: CaptureLimits,
    open: Option<OpenFile>,
    /// The plans and registries that are there.
    known: HashSet<Arc<str>>,
}

struct OpenFile {
    file: File,
    bytes: u64,
    since_ms: u64,
}

impl CaptureFolder {
    pub(super) fn open(folder: &Path, limits: CaptureLimits) -> Result<CaptureFolder, FolderError> {
        let failed = |error| FolderError { path: folder.to_owned(), error };
        files::create_private_folder(folder).map_err(failed)?;
        Ok(CaptureFolder { folder: folder.to_owned(), limits, open: None, known: HashSet::new() })
    }

    /// Writes a batch at the end of the file at hand, which is closed where it is large or old enough.
    pub(super) fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.start()?,
        };
        // After an error nothing more is written to this file: a batch that is cut off must be its last.
        open.file.write_all(batch)?;
        open.bytes += batch.len() as u64;
        if open.bytes >= self.limits.file_bytes || date::millis().saturating_sub(open.since_ms) >= self.limits.file_ms {
            open.file.write_all(&arrow::END)?;
            return self.remove_oldest();
        }
        self.open = Some(open);
        Ok(())
    }

    /// Closes the file at hand.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.open.take().map_or(Ok(()), |mut open| open.file.write_all(&arrow::END))
    }

    fn start(&self) -> io::Result<OpenFile> {
        let since_ms = date::millis();
        let path = |number: u32| self.folder.join(format!("capture-{since_ms:013}-{number:03}{SUFFIX}"));
        let mut number = 0;
        let mut file = loop {
            match files::create_private(&path(number)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 999 => number += 1,
                created => break created?,
            }
        };
        let schema = columns::schema();
        file.write_all(&schema)?;
        Ok(OpenFile { file, bytes: schema.len() as u64, since_ms })
    }

    /// Removes the oldest files until the rest has no more bytes than it may have. Their names are in order of time.
    fn remove_oldest(&self) -> io::Result<()> {
        let paths = list(&self.folder)?;
        let mut left: u64 = self.limits.folder_bytes;
        for path in paths.iter().rev() {
            let bytes = path.metadata().map_or(0, |meta| meta.len());
            left = left.saturating_sub(bytes);
            if left == 0 {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Writes down a plan, unless it is there.
    pub(super) fn keep_plan(&mut self, sha256: &Arc<str>, artifact: &str) -> io::Result<()> {
        if self.known.contains(sha256) {
            return Ok(());
        }
        keep(&plan_path(&self.folder, sha256), artifact)?;
        self.known.insert(sha256.clone());
        Ok(())
    }

    /// Writes down the files of a registry, unless they are there.
    pub(super) fn keep_registry(&mut self, sha256: &Arc<str>, texts: &RegistryTexts) -> io::Result<()> {
        if self.known.contains(sha256) {
            return Ok(());
        }
        let folder = registry_folder(&self.folder, sha256);
        for (name, text) in REGISTRY_FILES.iter().zip(&texts.0) {
            keep(&folder.join(name), text)?;
        }
        self.known.insert(sha256.clone());
        Ok(())
    }
}

/// Writes a file in one step, unless it is there.
fn keep(path: &Path, text: &str) -> io::Result<()> {
    if path.is_file() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        files::create_private_folder(folder)?;
    }
    let aside = path.with_extension(format!("{}.new", std::process::id()));
    // What a process left that was stopped here is in the way of nobody.
    let _ = std::fs::remove_file(&aside);
    files::create_private(&aside)?.write_all(text.as_bytes())?;
    std::fs::rename(&aside, path)
}

/// The captures of a folder, in order of time.
pub(super) fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = files::list(folder)?;
    paths.retain(|path| path.to_str().is_some_and(|path| path.ends_with(SUFFIX)));
    Ok(paths)
}

fn plan_path(folder: &Path, sha256: &str) -> PathBuf {
    folder.join("plans").join(format!("{sha256}.plan.json"))
}

fn registry_folder(folder: &Path, sha256: &str) -> PathBuf {
    folder.join("registry").join(sha256)
}

/// Whether a text can be the name of a file here: what a capture says is not believed.
fn is_digest(sha256: &str) -> bool {
    sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn no_digest() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the capture names it by something that is no SHA-256")
}

/// The artifact that lies beside captures.
pub(super) fn read_plan(folder: &Path, sha256: &str) -> io::Result<String> {
    if is_digest(sha256) { files::read_text(&plan_path(folder, sha256), TEXT_BYTES_MAX) } else { Err(no_digest()) }
}

/// The registry that lies beside captures.
pub(super) fn read_registry(folder: &Path, sha256: &str) -> io::Result<RegistryTexts> {
    if !is_digest(sha256) {
        return Err(no_digest());
    }
    let folder = registry_folder(folder, sha256);
    let mut texts = RegistryTexts(Default::default());
    for (text, name) in texts.0.iter_mut().zip(REGISTRY_FILES) {
        *text = files::read_text(&folder.join(name), TEXT_BYTES_MAX)?;
    }
    Ok(texts)
}
