//! A folder of captures: files that are rotated by size and age, of which the oldest are removed, and beside them the plans, registries and experiments that
//! they were made with, each once. Only the owner can read what is written here.

use super::counts::CaptureCounts;
use super::{CapturedPlan, columns};
use crate::registry_files::RegistryTexts;
use crate::{arrow, date, files};
use rankd_engine::arms::Arms;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How files of captures end.
pub(super) const SUFFIX: &str = ".arrows";
/// What the files of a registry are called, in the order of [`RegistryTexts`].
const REGISTRY_FILES: [&str; 4] = ["keys.toml", "params.toml", "endpoints.toml", "models.toml"];
/// The largest number of a file that was begun in the same millisecond as others.
const NUMBER_MAX: u32 = 999;
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
    counts: Arc<CaptureCounts>,
    open: Option<OpenFile>,
    /// The time and number in the name of the last file.
    last: (u64, u32),
    /// The plans, registries and files of experiments that are there.
    known: HashSet<Arc<str>>,
}

struct OpenFile {
    path: PathBuf,
    file: File,
    /// What it has of whole messages.
    bytes: u64,
    since_ms: u64,
}

impl OpenFile {
    /// Writes whole messages. What came of them where they are not whole is taken back; false where that is not possible, so that nothing
    /// more may be written: a message that is cut off must be the last.
    fn write(&mut self, messages: &[u8]) -> Result<(), (io::Error, bool)> {
        let Err(error) = self.file.write_all(messages) else {
            self.bytes += messages.len() as u64;
            return Ok(());
        };
        let taken_back = self.file.set_len(self.bytes).and_then(|()| self.file.seek(SeekFrom::Start(self.bytes)));
        Err((error, taken_back.is_ok()))
    }
}

impl CaptureFolder {
    pub(super) fn open(
        folder: &Path,
        limits: CaptureLimits,
        counts: Arc<CaptureCounts>,
    ) -> Result<CaptureFolder, FolderError> {
        let failed = |error| FolderError { path: folder.to_owned(), error };
        files::create_private_folder(folder).map_err(failed)?;
        let (open, last, known) = (None, (0, 0), HashSet::new());
        Ok(CaptureFolder { folder: folder.to_owned(), limits, counts, open, last, known })
    }

    /// Writes a batch at the end of the file at hand.
    pub(super) fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.start()?,
        };
        let written = open.write(batch);
        let can_go_on = written.as_ref().map_or_else(|(_, is_whole)| *is_whole, |()| true);
        self.open = Some(open).filter(|_| can_go_on);
        written.map_err(|(error, _)| error)?;
        self.counts.bytes.fetch_add(batch.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the file at hand is large or old enough to be closed.
    pub(super) fn is_due(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.bytes >= self.limits.file_bytes)
            || self.time_left() == Some(Duration::ZERO)
    }

    /// How long it is until the file at hand is old enough to be closed.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let open = self.open.as_ref()?;
        let age_ms = date::millis().saturating_sub(open.since_ms);
        Some(Duration::from_millis(self.limits.file_ms.saturating_sub(age_ms)))
    }

    /// Closes the file at hand, and removes the oldest where there is too much.
    pub(super) fn close(&mut self) -> io::Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let written = open.write(&arrow::END).map_err(|(error, _)| error);
        written.and(self.remove_oldest(&open))
    }

    /// Begins a file. Names are in the order in which files are begun, also within a millisecond and when the clock is put back.
    fn start(&mut self) -> io::Result<OpenFile> {
        let since_ms = date::millis();
        let mut name = if since_ms > self.last.0 { (since_ms, 0) } else { (self.last.0, self.last.1 + 1) };
        let (path, file) = loop {
            if name.1 > NUMBER_MAX {
                name = (name.0 + 1, 0);
            }
            let path = self.folder.join(format!("capture-{:013}-{:03}{SUFFIX}", name.0, name.1));
            match files::create_private(&path) {
                // Another process has it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => name.1 += 1,
                created => break (path, created?),
            }
        };
        self.last = name;
        let mut open = OpenFile { path, file, bytes: 0, since_ms };
        if let Err((error, _)) = open.write(&columns::schema()) {
            // Otherwise a full disk would get an empty file a second. Where even that fails, the next one tells.
            let _ = std::fs::remove_file(&open.path);
            return Err(error);
        }
        self.counts.bytes.fetch_add(open.bytes, Ordering::Relaxed);
        self.counts.files.fetch_add(1, Ordering::Relaxed);
        Ok(open)
    }

    /// Removes the oldest files until all of them have no more bytes than they may have. Their names are in order of time. The one that was
    /// just closed stays, however large it is and whatever the clock says.
    fn remove_oldest(&self, closed: &OpenFile) -> io::Result<()> {
        let mut bytes = closed.bytes;
        for path in list(&self.folder)?.iter().rev().filter(|path| **path != closed.path) {
            bytes = bytes.saturating_add(path.metadata().map_or(0, |meta| meta.len()));
            if bytes > self.limits.folder_bytes {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Writes down what a request ran with, as far as it is not there: the plan, the registry, and the experiments that it is in arms of.
    pub(super) fn keep_beside(&mut self, plan: &CapturedPlan, arms: Option<&Arms>) -> io::Result<()> {
        if !self.known.contains(&plan.sha256) {
            keep(&plan_path(&self.folder, &plan.sha256), &plan.artifact)?;
            self.known.insert(plan.sha256.clone());
        }
        if !self.known.contains(&plan.registry_sha256) {
            let folder = registry_folder(&self.folder, &plan.registry_sha256);
            for (name, text) in REGISTRY_FILES.iter().zip(&plan.registry.0) {
                keep(&folder.join(name), text)?;
            }
            self.known.insert(plan.registry_sha256.clone());
        }
        if let Some(experiments) = arms.map(Arms::experiments)
            && !self.known.contains(experiments.sha256())
        {
            keep(&experiments_path(&self.folder, experiments.sha256()), experiments.text())?;
            self.known.insert(experiments.sha256().clone());
        }
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
    let kept = files::create_private(&aside)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&aside, path));
    if kept.is_err() {
        // Half of a file is of no use. Where it cannot be removed, the next try says so.
        let _ = std::fs::remove_file(&aside);
    }
    kept
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

fn experiments_path(folder: &Path, sha256: &str) -> PathBuf {
    folder.join("experiments").join(format!("{sha256}.toml"))
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

/// The file of experiments that lies beside captures.
pub(super) fn read_experiments(folder: &Path, sha256: &str) -> io::Result<String> {
    match is_digest(sha256) {
        true => files::read_text(&experiments_path(folder, sha256), TEXT_BYTES_MAX),
        false => Err(no_digest()),
    }
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
