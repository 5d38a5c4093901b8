//! Lines about what happens, written by a thread of their own: a request never waits for a disk or a terminal.
//!
//! Three kinds, each a JSON object a line: events of the process (always, to stderr), requests (`--access_log`) and their nodes
//! (`--audit_log`). When the writer cannot keep up, lines are dropped and counted. When they cannot be written, because the disk is
//! full, they are lost and counted, and stderr says when that begins and when it is over.

use crate::start_error::StartError;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use rankd_edge::date;
use rankd_edge::files;
use rankd_plan::json::Writer;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// So many lines may wait to be written.
const LINES_MAX: usize = 16_384;
/// How long the last lines may take when the process ends.
const LAST_LINES: Duration = Duration::from_millis(500);
/// So many bytes are gathered, at most, before they are written.
const GATHERED_MAX: usize = 64 << 10;

/// Where one kind of line goes; `-` is stderr.
#[derive(Clone, Debug)]
pub enum LogTarget {
    /// The error output of the process.
    Stderr,
    /// A file, which is appended to.
    File(PathBuf),
}

impl LogTarget {
    /// `-` is stderr; anything else is a path.
    pub fn parse(text: &str) -> LogTarget {
        if text == "-" { LogTarget::Stderr } else { LogTarget::File(text.into()) }
    }
}

enum Line {
    Event(String),
    Access(String),
    Audit(String),
    /// Files are reopened, because they were moved away.
    Reopen,
    End,
}

/// Takes lines and writes them by a thread of its own.
pub struct Log {
    lines: Sender<Line>,
    ended: Receiver<()>,
    pub(crate) access: bool,
    pub(crate) audit: bool,
    dropped: AtomicU64,
    lost: Arc<AtomicU64>,
}

impl Log {
    /// Opens the files and starts the writer.
    pub fn start(access: Option<&LogTarget>, audit: Option<&LogTarget>) -> Result<Log, StartError> {
        let (lines, inbox) = bounded(LINES_MAX);
        let (end, ended) = bounded(1);
        let lost = Arc::new(AtomicU64::new(0));
        let mut writer = LineWriter {
            events: Sink::new(LogTarget::Stderr)?,
            access: access.cloned().map(Sink::new).transpose()?,
            audit: audit.cloned().map(Sink::new).transpose()?,
            lost: lost.clone(),
        };
        std::thread::Builder::new()
            .name("rankd-log".to_owned())
            .spawn(move || {
                writer.write_all(&inbox);
                // Whoever waits for the end may have stopped waiting.
                let _ = end.send(());
            })
            .map_err(|error| StartError::Thread { purpose: "the log", error })?;
        Ok(Log { lines, ended, access: access.is_some(), audit: audit.is_some(), dropped: AtomicU64::new(0), lost })
    }

    /// Tells people what happened to the process.
    pub(crate) fn event(&self, level: &str, message: &str) {
        self.send(Line::Event(event(level, message)));
    }

    /// Tells people of errors elsewhere, as events.
    pub fn errors(&self) -> impl FnMut(String) + Send + use<> {
        let lines = self.lines.clone();
        // What does not fit is told by metrics, too.
        move |message| drop(lines.try_send(Line::Event(event("error", &message))))
    }

    pub(crate) fn request(&self, line: String) {
        self.send(Line::Access(line));
    }

    pub(crate) fn nodes(&self, line: String) {
        self.send(Line::Audit(line));
    }

    pub(crate) fn reopen(&self) {
        self.send(Line::Reopen);
    }

    /// Lines that did not fit the queue.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Lines that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes what is still waiting, for as long as the last lines may take.
    pub(crate) fn end(&self) {
        if self.lines.send_timeout(Line::End, LAST_LINES).is_ok() {
            // A writer that is stuck has lost its lines.
            let _ = self.ended.recv_timeout(LAST_LINES);
        }
    }

    fn send(&self, line: Line) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.lines.try_send(line) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// An event as it is written.
fn event(level: &str, message: &str) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("at").string(&date::now());
        w.field("level").string(level);
        w.field("message").string(message);
    });
    writer.finish()
}

/// Where lines of one kind are written, and what has become of them.
struct Sink {
    target: LogTarget,
    /// `None` for stderr.
    file: Option<File>,
    /// Lines that are not yet written, each with its end.
    gathered: Vec<u8>,
    /// Lines lost since the last one that could be written.
    lost: u64,
    /// The last write stopped in the middle of a line, which needs an end.
    broken_off: bool,
}

impl Sink {
    fn new(target: LogTarget) -> Result<Sink, StartError> {
        let file = match &target {
            LogTarget::Stderr => None,
            LogTarget::File(path) => {
                let opened = files::append(path);
                Some(opened.map_err(|error| StartError::LogFile { path: path.clone(), error })?)
            }
        };
        Ok(Sink { target, file, gathered: Vec::new(), lost: 0, broken_off: false })
    }

    fn name(&self) -> String {
        match &self.target {
            LogTarget::Stderr => "stderr".to_owned(),
            LogTarget::File(path) => path.display().to_string(),
        }
    }

    fn add(&mut self, line: &str) {
        self.gathered.extend_from_slice(line.as_bytes());
        self.gathered.push(b'\n');
    }

    /// Writes what is gathered. What cannot be written is lost: keeping it would fill the memory after the disk.
    fn flush(&mut self) -> Flushed {
        if self.gathered.is_empty() {
            return Flushed::AsBefore;
        }
        let was_losing = self.lost > 0;
        let (written, result) = self.write();
        let rest = &self.gathered[written..];
        let lost = rest.iter().filter(|byte| **byte == b'\n').count() as u64;
        if written > 0 {
            self.broken_off = self.gathered[written - 1] != b'\n';
        }
        self.gathered.clear();
        match result {
            Ok(()) if was_losing => Flushed::Again { lost: std::mem::take(&mut self.lost) },
            Ok(()) => Flushed::AsBefore,
            Err(error) => {
                self.lost += lost;
                Flushed::Lost { lines: lost, first: (!was_losing).then_some(error) }
            }
        }
    }

    /// Writes as much as it can; says how much of what was gathered that is.
    fn write(&mut self) -> (usize, io::Result<()>) {
        let mut out: Box<dyn Write + '_> = match &mut self.file {
            Some(file) => Box::new(file),
            None => Box::new(io::stderr().lock()),
        };
        if self.broken_off
            && let Err(error) = out.write_all(b"\n")
        {
            return (0, Err(error));
        }
        self.broken_off = false;
        let mut written = 0;
        while written < self.gathered.len() {
            match out.write(&self.gathered[written..]) {
                Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }

    /// Opens a file anew. One that cannot be opened leaves the old one in use.
    fn reopen(&mut self) -> io::Result<()> {
        if let LogTarget::File(path) = &self.target {
            self.file = Some(files::append(path)?);
            self.broken_off = false;
        }
        Ok(())
    }
}

/// What became of lines that were to be written.
enum Flushed {
    AsBefore,
    /// So many were lost; the error where they are the first.
    Lost {
        lines: u64,
        first: Option<io::Error>,
    },
    /// They were written, after this many had been lost.
    Again {
        lost: u64,
    },
}

struct LineWriter {
    events: Sink,
    access: Option<Sink>,
    audit: Option<Sink>,
    lost: Arc<AtomicU64>,
}

impl LineWriter {
    fn write_all(&mut self, inbox: &Receiver<Line>) {
        while let Ok(line) = inbox.recv() {
            let (sink, text) = match line {
                Line::Event(text) => (Some(&mut self.events), text),
                Line::Access(text) => (self.access.as_mut(), text),
                Line::Audit(text) => (self.audit.as_mut(), text),
                Line::Reopen => {
                    self.reopen();
                    continue;
                }
                Line::End => break,
            };
            let Some(sink) = sink else { continue };
            sink.add(&text);
            if inbox.is_empty() || sink.gathered.len() >= GATHERED_MAX {
                self.flush();
            }
        }
        self.flush();
    }

    fn sinks(&mut self) -> impl Iterator<Item = &mut Sink> {
        // Events come last, for what has become of the others is one of them.
        self.access.iter_mut().chain(&mut self.audit).chain([&mut self.events])
    }

    fn flush(&mut self) {
        let mut news = Vec::new();
        let mut lost = 0;
        for sink in self.sinks() {
            match sink.flush() {
                Flushed::AsBefore => {}
                Flushed::Lost { lines, first } => {
                    lost += lines;
                    let name = sink.name();
                    news.extend(
                        first.map(|error| event("error", &format!("{name}: {error}; log lines are being lost"))),
                    );
                }
                Flushed::Again { lost } => {
                    news.push(event("info", &format!("{}: written again, after {lost} lines were lost", sink.name())));
                }
            }
        }
        self.lost.fetch_add(lost, Ordering::Relaxed);
        if !news.is_empty() {
            news.iter().for_each(|line| self.events.add(line));
            if let Flushed::Lost { lines, .. } = self.events.flush() {
                self.lost.fetch_add(lines, Ordering::Relaxed);
            }
        }
    }

    fn reopen(&mut self) {
        self.flush();
        let failed: Vec<String> = self
            .sinks()
            .filter_map(|sink| {
                let error = sink.reopen().err()?;
                Some(event(
                    "error",
                    &format!("{}: cannot be reopened: {error}; still writing to the old file", sink.name()),
                ))
            })
            .collect();
        failed.iter().for_each(|line| self.events.add(line));
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_a_full_disk_does_not_take_are_counted_and_the_next_ones_are_whole() {
        let folder = std::env::temp_dir().join(format!("rankd-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("access.log");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let mut sink = Sink::new(LogTarget::File(path.clone())).unwrap();
        ["one", "two"].iter().for_each(|line| sink.add(line));
        assert!(matches!(sink.flush(), Flushed::Lost { lines: 2, first: Some(_) }));
        sink.add("three");
        assert!(matches!(sink.flush(), Flushed::Lost { lines: 1, first: None }), "only the first loss is news");
        std::fs::remove_file(&path).unwrap();
        sink.reopen().unwrap();
        sink.add("four");
        assert!(matches!(sink.flush(), Flushed::Again { lost: 3 }));
        // As if the disk had been full after half of a line.
        sink.file.as_mut().unwrap().write_all(b"{\"ha").unwrap();
        sink.broken_off = true;
        sink.add("five");
        assert!(matches!(sink.flush(), Flushed::AsBefore));
        assert_eq!(files::read_text(&path, 100).unwrap(), "four\n{\"ha\nfive\n");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn lost_lines_are_counted_for_the_metrics() {
        let log = Log::start(Some(&LogTarget::File("/dev/full".into())), None).unwrap();
        (0..5).for_each(|_| log.request("{}".to_owned()));
        log.end();
        assert_eq!((log.lost(), log.dropped()), (5, 0));
    }
}
