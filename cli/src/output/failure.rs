//! How a command ends: its exit status, and what it says when it could not do its work.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io;

use crate::output::message;

/// The exit status of a command that could not do its work, or was not understood.
pub(crate) const FAILURE: u8 = 2;

/// The result of every command.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// How a command that did its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// All is well: exit status 0.
    Success,
    /// The command found something that its user should know: exit status 1.
    Findings,
    /// `record` passes on the status of the program that it ran.
    Program(u8),
}

impl Outcome {
    /// The exit status.
    pub(crate) fn status(self) -> u8 {
        match self {
            Outcome::Success => 0,
            Outcome::Findings => 1,
            Outcome::Program(status) => status,
        }
    }
}

/// A command could not do its work: what happened, and what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    hint: Option<String>,
    status: u8,
    broken_pipe: bool,
}

impl Failure {
    /// A failure with exit status 2.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Failure { what: what.into(), hint: None, status: FAILURE, broken_pipe: false }
    }

    /// A failure of `doing`, with the error and all that caused it.
    pub(crate) fn because(doing: impl Display, error: &(dyn Error + 'static)) -> Self {
        let mut what = format!("{doing}: {error}");
        let mut broken_pipe = false;
        let mut cause = Some(error);
        while let Some(error) = cause {
            // An error that repeats its cause in its own words says it once.
            let words = error.to_string();
            if !what.contains(&words) {
                what = format!("{what}: {words}");
            }
            broken_pipe |= error
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
            cause = error.source();
        }
        Failure { broken_pipe, ..Failure::new(what) }
    }

    /// Returns it with a hint at what to do next.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Failure { hint: Some(hint.into()), ..self }
    }

    /// Returns it with another exit status.
    pub(crate) fn status(self, status: u8) -> Self {
        Failure { status, ..self }
    }

    /// Prints it on stderr and returns the exit status. That the reader of our output went away (`| head`) is no
    /// failure, and nobody reads a message.
    pub(crate) fn report(self) -> u8 {
        if self.broken_pipe {
            return 0;
        }
        message::error(&self.what);
        if let Some(hint) = &self.hint {
            message::hint(hint);
        }
        self.status
    }
}

/// Without the hint.
impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// For `?` on what is written to stdout.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::because("cannot write to stdout", &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_pipe_is_success() {
        assert_eq!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)).report(), 0);
    }

    #[test]
    fn a_cause_is_said_once() {
        let error = io::Error::other("disk full");
        assert_eq!(Failure::because("cannot write x", &error).what, "cannot write x: disk full");
    }
}
