//! Why a server cannot be started.

use std::error::Error;
use std::path::PathBuf;
use std::{fmt, io};

/// Why a server, or a part of it, cannot be started.
#[expect(missing_docs, reason = "the line of a variant says what its fields are")]
#[derive(Debug)]
pub enum StartError {
    /// None was given, or the first has no address.
    NoListener,
    /// A log file cannot be opened.
    LogFile { path: PathBuf, error: io::Error },
    /// A thread cannot be started: what it is for.
    Thread { purpose: &'static str, error: io::Error },
    /// There is no runtime to wait on.
    Runtime(io::Error),
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StartError::NoListener => None,
            StartError::LogFile { error, .. } | StartError::Thread { error, .. } | StartError::Runtime(error) => {
                Some(error)
            }
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::NoListener => f.write_str("there is no listener"),
            StartError::LogFile { path, error } => write!(f, "{}: {error}", path.display()),
            StartError::Thread { purpose, error } => write!(f, "cannot start a thread for {purpose}: {error}"),
            StartError::Runtime(error) => write!(f, "cannot start a runtime: {error}"),
        }
    }
}
