//! A folder of Arrow streams: files that are rotated by size and age, of which the oldest are removed. Several streams may be open at a time, each with a
//! schema of its own. Only the owner can read what is written here.

use crate::{arrow, date, files};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How the files end.
const SUFFIX: &str = ".arrows";
/// So many streams are open at a time. The one that was not written to for longest makes room for another.
const OPEN_MAX: usize = 32;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// A file of more bytes is closed.
    pub file_bytes: u64,
    /// A file that is older is closed.
    pub file_ms: u64,
    /// The oldest files are removed when all of them have more bytes.
    pub folder_bytes: u64,
}

impl Default for StreamLimits {
    fn default() -> StreamLimits {
        StreamLimits { file_bytes: 64 << 20, file_ms: 3_600_000, folder_bytes: 1 << 30 }
    }
}

/// Why a folder cannot be written to.
#[derive(Debug)]
pub struct StreamFolderError {
    /// What was to be written.
    pub what: &'static str,
    /// The folder, or a file in it.
    pub path: PathBuf,
    /// What the system says.
    pub error: io::Error,
}

impl std::error::Error for StreamFolderError {}

impl std::fmt::Display for StreamFolderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write {} to {}: {}", self.what, self.path.display(), self.error)
    }
}

/// A folder that is written to. Streams are told apart by `K`.
pub(crate) struct StreamFolder<K> {
    folder: PathBuf,
    /// What the names of the files begin with: other files of the folder are left alone.
    prefix: &'static str,
    limits: StreamLimits,
    /// The one that was written to last comes last.
    open: Vec<OpenStream<K>>,
    /// The time and the number in the name of the newest file.
    newest: (u64, u32),
}

struct OpenStream<K> {
    stream: K,
    file: File,
    path: PathBuf,
    /// Of the schema, and of all that was written whole.
    schema_bytes: u64,
    bytes: u64,
    since_ms: u64,
}

impl<K> OpenStream<K> {
    /// Writes a batch whole, or takes back what was written of it: a file ends with a batch, and one without any is not kept.
    fn write(&mut self, batch: &[u8]) -> io::Result<()> {
        match self.file.write_all(batch) {
            Ok(()) => {
                self.bytes += batch.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Where this fails, too, readers pass over a batch that is cut off.
                let _ = match self.bytes == self.schema_bytes {
                    true => std::fs::remove_file(&self.path),
                    false => self.file.set_len(self.bytes),
                };
                Err(error)
            }
        }
    }

    fn end(mut self) -> io::Result<()> {
        self.file.write_all(&arrow::END)
    }
}

impl<K: PartialEq> StreamFolder<K> {
    /// Makes the folder where it is not there.
    pub(crate) fn open(
        what: &'static str,
        folder: &Path,
        prefix: &'static str,
        limits: StreamLimits,
    ) -> Result<StreamFolder<K>, StreamFolderError> {
        let failed = |error| StreamFolderError { what, path: folder.to_owned(), error };
        files::create_private_folder(folder).map_err(failed)?;
        Ok(StreamFolder { folder: folder.to_owned(), prefix, limits, open: Vec::new(), newest: (0, 0) })
    }

    /// Writes a batch at the end of its stream's file, which is closed where it is large enough. A new file begins with `schema`, and its name ends
    /// with `label`.
    pub(crate) fn write(
        &mut self,
        stream: K,
        label: &str,
        schema: impl FnOnce() -> Vec<u8>,
        batch: &[u8],
    ) -> io::Result<()> {
        let mut open = match self.open.iter().position(|open| open.stream == stream) {
            Some(at) => self.open.remove(at),
            None => {
                if self.open.len() >= OPEN_MAX {
                    self.open.remove(0).end()?;
                }
                self.start(stream, label, &schema())?
            }
        };
        open.write(batch)?;
        if open.bytes >= self.limits.file_bytes {
            open.end()?;
            return self.remove_oldest();
        }
        self.open.push(open);
        Ok(())
    }

    /// Closes the files that are old enough.
    pub(crate) fn close_old(&mut self) -> io::Result<()> {
        let (now, file_ms) = (date::millis(), self.limits.file_ms);
        self.close_some(|open| now.saturating_sub(open.since_ms) >= file_ms)
    }

    /// Closes the files of streams that are over.
    pub(crate) fn close_streams(&mut self, is_over: impl Fn(&K) -> bool) -> io::Result<()> {
        self.close_some(|open| is_over(&open.stream))
    }

    /// Closes all files.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.close_some(|_| true)
    }

    /// Closes all that it can; the last error is told.
    fn close_some(&mut self, is_to_close: impl Fn(&OpenStream<K>) -> bool) -> io::Result<()> {
        let closed: Vec<_> = self.open.extract_if(.., |open| is_to_close(open)).collect();
        if closed.is_empty() {
            return Ok(());
        }
        let mut failure = None;
        closed.into_iter().for_each(|open| failure = open.end().err().or(failure.take()));
        failure.map_or_else(|| self.remove_oldest(), Err)
    }

    fn start(&mut self, stream: K, label: &str, schema: &[u8]) -> io::Result<OpenStream<K>> {
        let since_ms = date::millis();
        let path = |number: u32| self.folder.join(format!("{}-{since_ms:013}-{number:03}{label}{SUFFIX}", self.prefix));
        // Names are in order of time, also within a millisecond.
        let mut number = if self.newest.0 == since_ms { self.newest.1 + 1 } else { 0 };
        let (file, path) = loop {
            let path = path(number);
            match files::create_private(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 999 => number += 1,
                created => break (created?, path),
            }
        };
        self.newest = (since_ms, number);
        let mut open = OpenStream { stream, file, path, schema_bytes: 0, bytes: 0, since_ms };
        open.write(schema)?;
        open.schema_bytes = open.bytes;
        Ok(open)
    }

    /// Removes the oldest files until the rest has no more bytes than it may have, but none that is written to. Their names are in order of time.
    fn remove_oldest(&self) -> io::Result<()> {
        let mut left: u64 = self.limits.folder_bytes;
        for path in list(&self.folder, self.prefix)?.iter().rev() {
            let bytes = path.metadata().map_or(0, |meta| meta.len());
            left = left.saturating_sub(bytes);
            if left == 0 && self.open.iter().all(|open| open.path != *path) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// The files of a folder whose names begin so, in order of time.
pub(crate) fn list(folder: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let mut paths = files::list(folder)?;
    let is_ours =
        |name: &str| name.ends_with(SUFFIX) && name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('-'));
    paths.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_ours));
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder(name: &str, limits: StreamLimits) -> StreamFolder<u32> {
        let path = std::env::temp_dir().join(format!("rankd-streams-{name}-{}", std::process::id()));
        // Nothing is left of an earlier process.
        let _ = std::fs::remove_dir_all(&path);
        StreamFolder::open("tests", &path, "test", limits).unwrap()
    }

    fn sizes(folder: &StreamFolder<u32>) -> Vec<u64> {
        let paths = list(&folder.folder, "test").unwrap();
        paths.iter().map(|path| path.metadata().unwrap().len()).collect()
    }

    #[test]
    fn each_stream_has_a_file_with_its_schema_and_only_the_owner_reads_it() {
        let mut streams = folder("schemas", StreamLimits::default());
        for stream in [1, 2, 1, 1] {
            streams.write(stream, "-label", || vec![stream as u8; stream as usize], &[7; 10]).unwrap();
        }
        streams.close().unwrap();
        assert_eq!(sizes(&streams), [1 + 30 + 8, 2 + 10 + 8]);
        let paths = list(&streams.folder, "test").unwrap();
        assert!(paths.iter().all(|path| path.to_str().unwrap().ends_with("-label.arrows")));
        assert_eq!(paths[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(list(&streams.folder, "tes").unwrap().is_empty(), "files of others are not ours");
        std::fs::remove_dir_all(&streams.folder).unwrap();
    }

    #[test]
    fn large_and_old_files_are_closed_and_the_oldest_removed_but_for_those_in_use() {
        let limits = StreamLimits { file_bytes: 25, file_ms: 3_600_000, folder_bytes: 70 };
        let mut streams = folder("rotation", limits);
        streams.write(9, "", Vec::new, &[0; 5]).unwrap();
        for _ in 0..20 {
            streams.write(1, "", Vec::new, &[1; 10]).unwrap();
        }
        let sizes = sizes(&streams);
        assert_eq!(
            (sizes[0], sizes.last()),
            (5, Some(&20)),
            "the one in use is there, and the last one is open: {sizes:?}"
        );
        assert!(sizes.len() <= 4, "{sizes:?}");
        streams.limits.file_ms = 0;
        streams.close_old().unwrap();
        assert!(streams.open.is_empty());
        std::fs::remove_dir_all(&streams.folder).unwrap();
    }

    #[test]
    fn so_many_streams_are_open_at_a_time() {
        let mut streams = folder("many", StreamLimits::default());
        for stream in 0..2 * OPEN_MAX as u32 {
            streams.write(stream, "", Vec::new, &[1]).unwrap();
        }
        assert_eq!(streams.open.len(), OPEN_MAX);
        streams.close_streams(|stream| stream.is_multiple_of(2)).unwrap();
        assert_eq!(streams.open.len(), OPEN_MAX / 2);
        assert_eq!(sizes(&streams).len(), 2 * OPEN_MAX);
        std::fs::remove_dir_all(&streams.folder).unwrap();
    }

    #[test]
    fn what_cannot_be_written_whole_is_taken_back() {
        let mut streams = folder("full", StreamLimits::default());
        streams.write(1, "", || vec![0; 3], &[1; 10]).unwrap();
        let open = streams.open.first_mut().unwrap();
        // Nothing can be written to a file that is open to be read.
        open.file = files::open(&open.path).unwrap().0;
        assert!(streams.write(1, "", Vec::new, &[1; 10]).is_err());
        assert_eq!((sizes(&streams), streams.open.len()), (vec![13], 0));
        streams.write(1, "", || vec![0; 3], &[1; 10]).unwrap();
        assert_eq!(sizes(&streams), [13, 13], "another file goes on");
        std::fs::remove_dir_all(&streams.folder).unwrap();
    }
}
