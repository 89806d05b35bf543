//! A module as it was loaded at some time.

use omptrace_trace_format::event::Module;
use serde::{Deserialize, Serialize};

/// A program or shared library, identified by its build and the address at which the tracer saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Instance {
    /// The path of its file.
    pub path: String,
    /// Its build id in hex; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub build_id: String,
    /// The difference between addresses in memory and in the file; 0 for programs that are not position-independent.
    pub load_address: u64,
    /// The file's size in bytes; 0 if unknown.
    pub file_size: u64,
    /// The file's modification time in nanoseconds since 1970; 0 if unknown.
    pub modified_ns: u64,
}

impl Instance {
    /// The module that an event names.
    pub fn of(module: &Module<'_>) -> Instance {
        Instance {
            path: module.path.lossy().into_owned(),
            build_id: module.build_id.lossy().into_owned(),
            load_address: module.load_address.0,
            file_size: module.file_size,
            modified_ns: module.modified_ns,
        }
    }

    /// The last part of the path.
    pub fn file_name(&self) -> &str {
        file_name(&self.path)
    }
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
