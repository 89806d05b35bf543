//! A finding from checking a file.

use std::fmt;

use serde::Serialize;

use crate::read::diagnostic::Severity;

/// A finding about a trace or an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A note does not affect the trace's soundness; warnings and errors do.
    #[serde(serialize_with = "severity_name")]
    pub severity: Severity,
    /// The finding's machine-readable name.
    pub name: &'static str,
    /// The message for display, with its place.
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
