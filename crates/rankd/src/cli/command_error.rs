//! Why a command ends without having done what it was asked for, and what is wrong with an argument.

use crate::cli::say;
use rankd_edge::endpoints::EndpointError;
use rankd_engine::store::redis::SetUpError;
use rankd_serve::StartError;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// It was reported where it was found.
    Reported,
    /// What is wrong and what to do, in a sentence.
    Wrong(String),
    /// What is wrong with a thing: its name, and the cause.
    With { thing: String, cause: Box<dyn Error + Send + Sync> },
    /// What another room says is wrong.
    Caused(Box<dyn Error + Send + Sync>),
}

impl CommandError {
    /// Names the thing that an error is about, such as a file.
    pub(crate) fn with<E: Error + Send + Sync + 'static>(thing: impl fmt::Display) -> impl FnOnce(E) -> CommandError {
        move |cause| CommandError::With { thing: thing.to_string(), cause: Box::new(cause) }
    }

    /// Tells people, unless they know.
    pub(crate) fn report(&self) {
        match self {
            CommandError::Reported => {}
            CommandError::Wrong(_) | CommandError::With { .. } | CommandError::Caused(_) => {
                say::to_people(&format!("error: {self}"));
            }
        }
    }
}

impl Error for CommandError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            CommandError::Reported | CommandError::Wrong(_) => None,
            CommandError::With { cause, .. } | CommandError::Caused(cause) => Some(&**cause),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::Reported => f.write_str("it was reported before"),
            CommandError::Wrong(what) => f.write_str(what),
            CommandError::With { thing, cause } => write!(f, "{thing}: {cause}"),
            CommandError::Caused(cause) => cause.fmt(f),
        }
    }
}

impl From<EndpointError> for CommandError {
    fn from(error: EndpointError) -> CommandError {
        CommandError::Caused(Box::new(error))
    }
}

impl From<SetUpError> for CommandError {
    fn from(error: SetUpError) -> CommandError {
        CommandError::Caused(Box::new(error))
    }
}

impl From<StartError> for CommandError {
    fn from(error: StartError) -> CommandError {
        CommandError::Caused(Box::new(error))
    }
}

impl From<BadArgument> for CommandError {
    fn from(error: BadArgument) -> CommandError {
        CommandError::Caused(Box::new(error))
    }
}

/// What an argument takes, where it was given something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadArgument(pub(crate) Cow<'static, str>);

impl Error for BadArgument {}

impl fmt::Display for BadArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&'static str> for BadArgument {
    fn from(takes: &'static str) -> BadArgument {
        BadArgument(takes.into())
    }
}

impl From<String> for BadArgument {
    fn from(takes: String) -> BadArgument {
        BadArgument(takes.into())
    }
}
