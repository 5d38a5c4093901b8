//! The two channels: JSON for programs on stdout, everything for people on stderr.

use std::io::{IsTerminal, Write};

/// Writes a line for programs. A reader that has gone away ends the output, not the program.
pub(crate) fn to_programs(json: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{json}");
}

/// Writes text for people.
pub(crate) fn to_people(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "{}", text.trim_end());
}

/// Whether people see colours.
pub(crate) fn in_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// A line on a terminal that says how far something has come; nothing where nobody watches.
pub(crate) struct Progress {
    what: String,
    total: usize,
    shown: bool,
}

impl Progress {
    pub(crate) fn new(what: &str, total: usize) -> Progress {
        Progress { what: what.to_owned(), total, shown: std::io::stderr().is_terminal() }
    }

    pub(crate) fn at(&mut self, done: usize) {
        if !self.shown {
            return;
        }
        const WIDTH: usize = 30;
        let filled = done * WIDTH / self.total.max(1);
        let bar = "█".repeat(filled) + &"·".repeat(WIDTH - filled.min(WIDTH));
        let end = if done >= self.total { "\n" } else { "" };
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "\r{} {bar} {done}/{}{end}", self.what, self.total);
        let _ = err.flush();
    }
}
