//! A file as the formats see it: bytes in order, in blocks that end where a line may end, with a word now and then on how far it is.

use super::Progress;
use super::problem::{Place, TableProblem};
use crate::files;
use rankd_plan::digest;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Files of more bytes report their progress.
const LARGE: u64 = 50_000_000;
/// How often, by the size of the file.
const STEPS: u64 = 20;
/// What is read at once. Small enough for what is found in it to stay in the processor's cache.
const BLOCK: usize = 256 << 10;
/// The longest row of a text. A quote that nobody closes would otherwise make a row of the whole file.
pub(super) const ROW_BYTES_MAX: usize = 16 << 20;

pub(super) struct Source<'p> {
    file: File,
    bytes: u64,
    /// Where it is read next.
    at: u64,
    /// How much was read.
    done: u64,
    /// Where progress is reported next.
    next: u64,
    progress: &'p mut dyn FnMut(Progress),
    hash: Option<FileHash>,
}

/// The hash of the file so far: of all bytes before `at`.
struct FileHash {
    hasher: Sha256,
    at: u64,
}

impl FileHash {
    /// Takes in bytes that were read at this place, as far as they come next.
    fn add(&mut self, at: u64, bytes: &[u8]) {
        let new = self.at.checked_sub(at).and_then(|known| bytes.get(usize::try_from(known).ok()?..));
        if let Some(new) = new {
            self.hasher.update(new);
            self.at += new.len() as u64;
        }
    }
}

impl<'p> Source<'p> {
    pub(super) fn open(path: &Path, progress: &'p mut dyn FnMut(Progress)) -> Result<Source<'p>, TableProblem> {
        let (file, bytes) = files::open(path)?;
        let next = if bytes > LARGE { bytes / STEPS } else { u64::MAX };
        Ok(Source { file, bytes, at: 0, done: 0, next, progress, hash: None })
    }

    /// The same, hashed while it is read: what is read in order is not read again for it.
    pub(super) fn hashed(self) -> Source<'p> {
        Source { hash: Some(FileHash { hasher: Sha256::new(), at: 0 }), ..self }
    }

    /// The SHA-256 of the file, if it was hashed. What nobody has read in order is read now.
    pub(super) fn finish_hash(&mut self) -> Result<Option<String>, TableProblem> {
        let mut rest = Vec::new();
        while let Some(at) = self.hash.as_ref().map(|hash| hash.at).filter(|at| *at < self.bytes) {
            rest.clear();
            self.seek(at)?;
            self.read(&mut rest, BLOCK)?;
        }
        let hash = self.hash.take();
        Ok(hash.map(|hash| digest::in_hexadecimal(&hash.hasher.finalize())))
    }

    /// How many bytes the file has.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds at most so many bytes to the buffer; fewer only at the end of the file. Gives how many they are.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>, most: usize) -> Result<usize, TableProblem> {
        // Never past what the file had when it was opened: what is written to it meanwhile is for the next time.
        let most = (self.bytes - self.at).min(most as u64);
        buffer.reserve_exact(most as usize);
        let added = (&mut self.file).take(most).read_to_end(buffer)?;
        if (added as u64) < most {
            return Err(TableProblem::broken(None, "the file became shorter while it was read"));
        }
        if let Some(hash) = &mut self.hash {
            hash.add(self.at, &buffer[buffer.len() - added..]);
        }
        self.at += added as u64;
        self.done += added as u64;
        if self.done >= self.next {
            self.next = self.done + self.bytes / STEPS;
            (self.progress)(Progress { bytes: self.done, of: self.bytes });
        }
        Ok(added)
    }
}

/// What formats need that do not go through a file from its start to its end.
impl Source<'_> {
    /// How many bytes were not read.
    pub(super) fn remaining(&self) -> usize {
        (self.bytes - self.at) as usize
    }

    /// Goes back to the start.
    pub(super) fn rewind(&mut self) -> Result<(), TableProblem> {
        self.seek(0)
    }

    /// Goes to a place.
    pub(super) fn seek(&mut self, at: u64) -> Result<(), TableProblem> {
        if at > self.bytes {
            return Err(TableProblem::broken(None, "the file is shorter than it should be"));
        }
        self.at = self.file.seek(SeekFrom::Start(at))?;
        Ok(())
    }

    /// Adds so many bytes from a place on to the buffer. Fails where the file has not got them.
    pub(super) fn read_at(&mut self, at: u64, bytes: usize, buffer: &mut Vec<u8>) -> Result<(), TableProblem> {
        if at > self.bytes || bytes as u64 > self.bytes - at {
            return Err(TableProblem::broken(None, "the file is shorter than it should be"));
        }
        self.at = self.file.seek(SeekFrom::Start(at))?;
        self.read(buffer, bytes).map(drop)
    }
}

/// The text of a source, block by block. What a reader leaves of a block comes again at the start of the next.
pub(super) struct Blocks<'s, 'p> {
    source: &'s mut Source<'p>,
    buffer: Vec<u8>,
    /// What the reader has done with.
    used: usize,
    ended: bool,
}

impl<'s, 'p> Blocks<'s, 'p> {
    /// From the start of the text, behind a byte-order mark.
    pub(super) fn new(source: &'s mut Source<'p>) -> Result<Blocks<'s, 'p>, TableProblem> {
        let mut blocks = Blocks { source, buffer: Vec::new(), used: 0, ended: false };
        blocks.fill(BLOCK)?;
        if blocks.buffer.starts_with(b"\xef\xbb\xbf") {
            blocks.used = 3;
        }
        if blocks.buffer.starts_with(b"\xff\xfe") || blocks.buffer.starts_with(b"\xfe\xff") {
            return Err(TableProblem::broken(Place::Line(1), "the text is UTF-16; write it as UTF-8"));
        }
        Ok(blocks)
    }

    /// The block; at the end of the file its last line ends like any other.
    pub(super) fn block(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Goes on to the next block, which begins behind the first `used` bytes of this one. False at the end of the file. Fails
    /// where a row is too long.
    pub(super) fn advance(&mut self, used: usize, place: Place) -> Result<bool, TableProblem> {
        if self.ended {
            return Ok(false);
        }
        self.buffer.drain(..self.used + used);
        self.used = 0;
        let rest = self.buffer.len();
        if rest > ROW_BYTES_MAX {
            let message = format!("a row is longer than {} MiB; is a quote not closed?", ROW_BYTES_MAX >> 20);
            return Err(TableProblem::too_much(place, message));
        }
        // As much again as is left, so that a long row is not looked at many times.
        self.fill(BLOCK.max(rest))?;
        Ok(true)
    }

    /// Goes on in the same block, behind its first `used` bytes.
    pub(super) fn skip(&mut self, used: usize) {
        self.used += used;
    }

    fn fill(&mut self, bytes: usize) -> Result<(), TableProblem> {
        self.ended = self.source.read(&mut self.buffer, bytes)? < bytes;
        if self.ended && self.buffer.last().is_some_and(|last| *last != b'\n') {
            self.buffer.push(b'\n');
        }
        Ok(())
    }

    /// How many bytes the file has.
    pub(super) fn file_bytes(&self) -> u64 {
        self.source.bytes()
    }
}
