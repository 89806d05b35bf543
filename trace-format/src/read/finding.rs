//! A finding of a check of a file.

use std::fmt;

use serde::Serialize;

use crate::read::diagnostic::Severity;

/// Something that the reader of a trace, or of an archive, should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A note leaves the trace sound; a warning or an error does not.
    #[serde(serialize_with = "severity_name")]
    pub severity: Severity,
    /// Its name for programs.
    pub name: &'static str,
    /// Its text for people, with its place.
    pub text: String,
}

fn severity_name<S: serde::Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity.name())
}

/// `warning: events were lost while tracing (3)`
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity.name(), self.text)
    }
}
