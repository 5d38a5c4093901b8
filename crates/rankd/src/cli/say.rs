//! The two channels: JSON for programs on stdout, everything for people on stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether something for programs could not be written.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Writes a line for programs.
pub(crate) fn to_programs(json: &str) {
    let mut out = io::stdout().lock();
    wrote(writeln!(out, "{json}").and_then(|()| out.flush()));
}

/// Heeds what came of writing to stdout; false where there is no use in writing more. A reader that has gone away ends the output, not
/// the program. Anything else, such as a full disk, is a failure: half of an output must not look like all of it.
pub(crate) fn wrote(result: io::Result<()>) -> bool {
    if let Err(error) = &result
        && error.kind() != io::ErrorKind::BrokenPipe
        && !FAILED.swap(true, Ordering::Relaxed)
    {
        to_people(&format!("error: stdout cannot be written: {error}"));
    }
    result.is_ok()
}

/// Whether all that was for programs could be written.
pub(crate) fn all_written() -> bool {
    !FAILED.load(Ordering::Relaxed)
}

/// Writes text for people.
pub(crate) fn to_people(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "{}", text.trim_end());
}

/// Writes something that is worth knowing.
pub(crate) fn note(text: String) {
    to_people(&format!("note: {text}"));
}

/// Whether people see colours.
pub(crate) fn in_colour() -> bool {
    std::io::stderr().is_terminal() && allows_colour()
}

/// Whether there may be colours on a terminal.
pub(crate) fn allows_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none()
}

/// Whether what is for programs would land on somebody's screen.
pub(crate) fn programs_are_people() -> bool {
    std::io::stdout().is_terminal()
}

/// How many cells wide the terminal is that shows what is for programs; `None` where it is none, or does not say.
pub(crate) fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// A line on a terminal that says how far something has come; nothing where nobody watches.
pub(crate) struct Progress {
    what: String,
    total: usize,
    shown: bool,
    /// What was written last: the line is written again only when it looks different.
    filled: Option<usize>,
}

impl Progress {
    pub(crate) fn new(what: &str, total: usize) -> Progress {
        Progress { what: what.to_owned(), total, shown: std::io::stderr().is_terminal(), filled: None }
    }

    pub(crate) fn at(&mut self, done: usize) {
        const WIDTH: usize = 30;
        let filled = (done * WIDTH / self.total.max(1)).min(WIDTH);
        let is_over = done >= self.total;
        if !self.shown || (self.filled == Some(filled) && !is_over) {
            return;
        }
        self.filled = Some(filled);
        let bar = "█".repeat(filled) + &"·".repeat(WIDTH - filled);
        let end = if is_over { "\n" } else { "" };
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "\r{} {bar} {done}/{}{end}", self.what, self.total);
        let _ = err.flush();
    }
}
