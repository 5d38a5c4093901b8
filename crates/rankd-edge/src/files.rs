//! Reads files, never more of them than is allowed, and none that could keep whoever reads it waiting for ever.

use rustix::fs::OFlags;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What came of reading a file.
pub enum Contents {
    /// What is in the file.
    Bytes(Vec<u8>),
    /// The file is larger than the limit; it was not read.
    TooLarge(u64),
}

/// Reads a regular file of at most `max` bytes. A larger one is reported by its size without being read.
pub fn read(path: &Path, max: usize) -> io::Result<Contents> {
    let (file, bytes) = open(path)?;
    read_open(file, bytes, max)
}

/// Opens a regular file to be read, and says how many bytes it has.
///
/// A pipe that nobody writes to would never end and a device may have no end, so neither is opened.
pub fn open(path: &Path) -> io::Result<(File, u64)> {
    // Without this flag, opening a pipe waits for somebody who writes to it. A regular file does not notice.
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok((file, meta.len()))
}

fn read_open(file: File, bytes: u64, max: usize) -> io::Result<Contents> {
    if bytes > max as u64 {
        return Ok(Contents::TooLarge(bytes));
    }
    // A file may grow, and a pipe and the files of /proc have no size beforehand, so the limit is kept while reading, too.
    let mut contents = Vec::with_capacity(bytes as usize);
    file.take(max as u64 + 1).read_to_end(&mut contents)?;
    Ok(if contents.len() > max { Contents::TooLarge(contents.len() as u64) } else { Contents::Bytes(contents) })
}

/// Reads a regular text file of at most `max` bytes.
pub fn read_text(path: &Path, max: usize) -> io::Result<String> {
    text_of(read(path, max)?, max)
}

/// The same for what a user names on the command line, which may be a pipe: `--request <(generate)`.
#[expect(clippy::disallowed_methods, reason = "this is the room that reads files")]
pub fn read_named_text(path: &Path, max: usize) -> io::Result<String> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    text_of(read_open(file, bytes, max)?, max)
}

fn text_of(contents: Contents, max: usize) -> io::Result<String> {
    match contents {
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
pub fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// The same, with the folders among them, or links to such, apart from the rest.
#[expect(clippy::disallowed_methods, reason = "this is the room that lists folders")]
pub fn list_with_folders(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut rest, mut folders) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        // The listing knows what an entry is; only where a link leads has to be asked.
        let is_folder = kind.is_dir() || kind.is_symlink() && path.is_dir();
        if is_folder { &mut folders } else { &mut rest }.push(path);
    }
    rest.sort();
    folders.sort();
    Ok((rest, folders))
}

/// Writes a file, new or in place of an old one.
#[expect(clippy::disallowed_methods, reason = "this is the room that writes files")]
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    std::fs::write(path, text)
}

/// Writes a file of a build unless it has this text already; says whether it did. A folder that is not there is made.
pub fn write_if_changed(path: &Path, text: &str) -> io::Result<bool> {
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

/// Copies a file, in one step, so that nobody reads half of it. A folder that is not there is made.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut name = to.as_os_str().to_owned();
    name.push(".new");
    std::fs::copy(from, &name)?;
    std::fs::rename(&name, to)
}

/// Makes a file that is not there, for its owner alone.
pub fn create_private(path: &Path) -> io::Result<File> {
    File::options().create_new(true).write(true).mode(0o600).open(path)
}

/// Makes a folder with those above it, where they are not there, for its owner alone.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a file to write at its end; makes it if it is not there.
pub fn append(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// When a file was last changed, if that is known.
pub fn changed(path: &Path) -> Option<std::time::SystemTime> {
    path.metadata().and_then(|meta| meta.modified()).ok()
}

/// What a file looks like from outside: when it was changed, its size, and which file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    changed: std::time::SystemTime,
    bytes: u64,
    inode: (u64, u64),
}

/// The stamp of a file, or of what a link leads to; nothing where there is none.
pub fn stamp(path: &Path) -> Option<Stamp> {
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

    #[test]
    fn what_is_not_a_regular_file_is_refused_without_waiting() {
        let folder = std::env::temp_dir().join(format!("rankd-files-kinds-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink(&pipe, folder.join("link")).unwrap();
        for path in [pipe, folder.join("link"), "/dev/zero".into(), "/dev/full".into()] {
            let refused = read(&path, 10).map(|_| ()).unwrap_err();
            assert_eq!(refused.to_string(), "it is not a regular file", "{}", path.display());
        }
        assert!(read(&folder, 10).is_err());
        assert!(read_text(Path::new("/proc/self/stat"), 1 << 16).is_ok());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
