//! Reads files, never more of them than is allowed.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What came of reading a file.
pub(crate) enum Contents {
    Bytes(Vec<u8>),
    /// The file is larger than the limit; it was not read.
    TooLarge(u64),
}

/// Reads a file of at most `max` bytes. A larger one is told by its size without being read.
#[expect(clippy::disallowed_methods, reason = "this is the room that reads files")]
pub(crate) fn read(path: &Path, max: usize) -> io::Result<Contents> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    if meta.len() > max as u64 {
        return Ok(Contents::TooLarge(meta.len()));
    }
    // A pipe has no size beforehand, so the limit is kept while reading, too.
    let mut bytes = Vec::with_capacity(meta.len() as usize);
    file.take(max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(if bytes.len() > max { Contents::TooLarge(bytes.len() as u64) } else { Contents::Bytes(bytes) })
}

/// Reads a text file of at most `max` bytes.
pub(crate) fn read_text(path: &Path, max: usize) -> io::Result<String> {
    match read(path, max)? {
        Contents::Bytes(bytes) => {
            String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
        }
        Contents::TooLarge(bytes) => {
            Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{bytes} bytes are more than {max}")))
        }
    }
}

/// The paths in a folder, in order.
#[expect(clippy::disallowed_methods, reason = "this is the room that lists folders")]
pub(crate) fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Writes a file, new or in place of an old one.
#[expect(clippy::disallowed_methods, reason = "this is the room that writes files")]
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    std::fs::write(path, text)
}

/// Writes a file of a build unless it has this text already; says whether it did. A folder that is not there is made.
pub(crate) fn write_if_changed(path: &Path, text: &str) -> io::Result<bool> {
    if let Ok(Contents::Bytes(bytes)) = read(path, text.len())
        && bytes == text.as_bytes()
    {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    write(path, text).map(|()| true)
}

/// Opens a file to write at its end; makes it if it is not there.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// When a file was last changed, if that is known.
pub(crate) fn changed(path: &Path) -> Option<std::time::SystemTime> {
    path.metadata().and_then(|meta| meta.modified()).ok()
}

/// What a file looks like from outside: when it was changed, its size, and which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    changed: std::time::SystemTime,
    bytes: u64,
    inode: (u64, u64),
}

/// The stamp of a file, or of what a link leads to; nothing where there is none.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let meta = path.metadata().ok()?;
    Some(Stamp { changed: meta.modified().ok()?, bytes: meta.len(), inode: (meta.dev(), meta.ino()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_is_made_for_what_is_built() {
        let folder = std::env::temp_dir().join(format!("rankd-files-{}", std::process::id()));
        let path = folder.join("a/b.json");
        assert!(write_if_changed(&path, "{}").unwrap());
        assert!(!write_if_changed(&path, "{}").unwrap());
        assert_eq!(read_text(&path, 10).unwrap(), "{}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
