//! Lines about what happens, written by a thread of their own: a request never waits for a disk or a terminal.
//!
//! Three kinds, each a JSON object a line: events of the process (always, to stderr), requests (`--access_log`) and their nodes
//! (`--audit_log`). When the writer cannot keep up, lines are dropped and counted.

use crate::files;
use crate::serve::date;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use rankd_plan::json::Writer;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// So many lines may wait to be written.
const LINES_MAX: usize = 16_384;
/// How long the last lines may take when the process ends.
const LAST_LINES: Duration = Duration::from_millis(500);

/// Where one kind of line goes; `-` is stderr.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Stderr,
    File(PathBuf),
}

impl Target {
    pub(crate) fn parse(text: &str) -> Target {
        if text == "-" { Target::Stderr } else { Target::File(text.into()) }
    }
}

enum Line {
    Event(String),
    Access(String),
    Audit(String),
    /// Files are opened anew, because somebody has moved them away.
    Reopen,
    End,
}

pub(crate) struct Log {
    lines: Sender<Line>,
    ended: Receiver<()>,
    pub(crate) access: bool,
    pub(crate) audit: bool,
    dropped: AtomicU64,
}

impl Log {
    /// Opens the files and starts the writer.
    pub(crate) fn start(access: Option<&Target>, audit: Option<&Target>) -> Result<Log, String> {
        let (lines, inbox) = bounded(LINES_MAX);
        let (end, ended) = bounded(1);
        let [access_sink, audit_sink] = [Sink::open(access)?, Sink::open(audit)?];
        let mut writer = LineWriter { access: access_sink, audit: audit_sink };
        std::thread::Builder::new()
            .name("rankd-log".to_owned())
            .spawn(move || {
                writer.write_all(&inbox);
                // Whoever waits for the end may have stopped waiting.
                let _ = end.send(());
            })
            .map_err(|error| format!("no thread for the log: {error}"))?;
        Ok(Log { lines, ended, access: access.is_some(), audit: audit.is_some(), dropped: AtomicU64::new(0) })
    }

    /// Tells people what happened to the process.
    pub(crate) fn event(&self, level: &str, message: &str) {
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("at").string(&date::now());
            w.field("level").string(level);
            w.field("message").string(message);
        });
        self.send(Line::Event(writer.finish()));
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

    /// Lines that nobody will read.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
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

enum Sink {
    Nowhere,
    Stderr,
    File(PathBuf, BufWriter<File>),
}

impl Sink {
    fn open(target: Option<&Target>) -> Result<Sink, String> {
        match target {
            None => Ok(Sink::Nowhere),
            Some(Target::Stderr) => Ok(Sink::Stderr),
            Some(Target::File(path)) => match append(path) {
                Ok(file) => Ok(Sink::File(path.clone(), file)),
                Err(error) => Err(format!("{}: {error}", path.display())),
            },
        }
    }

    /// A line that cannot be written is lost: there is nobody left to tell.
    fn write(&mut self, line: &str) {
        let _ = match self {
            Sink::Nowhere => Ok(()),
            Sink::Stderr => writeln!(io::stderr().lock(), "{line}"),
            Sink::File(_, file) => writeln!(file, "{line}"),
        };
    }

    fn flush(&mut self) {
        if let Sink::File(_, file) = self {
            let _ = file.flush();
        }
    }

    fn reopen(&mut self) {
        self.flush();
        if let Sink::File(path, file) = self
            && let Ok(new) = append(path)
        {
            *file = new;
        }
    }
}

fn append(path: &Path) -> io::Result<BufWriter<File>> {
    Ok(BufWriter::new(files::append(path)?))
}

struct LineWriter {
    access: Sink,
    audit: Sink,
}

impl LineWriter {
    fn write_all(&mut self, inbox: &Receiver<Line>) {
        while let Ok(line) = inbox.recv() {
            match line {
                Line::Event(text) => Sink::Stderr.write(&text),
                Line::Access(text) => self.access.write(&text),
                Line::Audit(text) => self.audit.write(&text),
                Line::Reopen => [&mut self.access, &mut self.audit].into_iter().for_each(Sink::reopen),
                Line::End => break,
            }
            if inbox.is_empty() {
                [&mut self.access, &mut self.audit].into_iter().for_each(Sink::flush);
            }
        }
        [&mut self.access, &mut self.audit].into_iter().for_each(Sink::flush);
    }
}
