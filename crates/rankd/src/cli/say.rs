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
