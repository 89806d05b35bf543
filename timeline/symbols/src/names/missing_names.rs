//! Why names are missing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a module's addresses have no source lines, or not even function names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Problem {
    /// The file no longer exists.
    Missing,
    /// The file is not the traced one: the program was rebuilt.
    Changed,
    /// The tracer could not identify the file, so it cannot be verified.
    Unverifiable,
    /// The file cannot be read, or is not an ELF file.
    Unreadable,
    /// A debug file exists, but belongs to another build.
    DebugFileDiffers,
    /// Neither the module nor a separate file has debug information.
    NoDebugInfo,
    /// A reason from a newer version.
    #[serde(other)]
    Unknown,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Problem::Missing => "the file is gone, so its addresses have no names",
            Problem::Changed => {
                "the file is not the one that was traced (rebuilt since?), so its addresses have no names"
            }
            Problem::Unverifiable => {
                "nothing shows whether the file is the one that was traced, so its addresses have no names"
            }
            Problem::Unreadable => "the file cannot be read as ELF, so its addresses have no names",
            Problem::DebugFileDiffers => {
                "its debug file belongs to another build, so its addresses have no source lines"
            }
            Problem::NoDebugInfo => {
                "no debug information (compile with -g), so addresses there have no source lines"
            }
            Problem::Unknown => "its addresses may have no source lines",
        })
    }
}
