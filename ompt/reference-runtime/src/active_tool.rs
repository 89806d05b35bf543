//! The tool that is active, and its end (OpenMP 5.2, 19.3).

use std::path::PathBuf;
use std::sync::Mutex;

use libloading::os::unix::Library;
use ompt_sys::*;
use serde::{Deserialize, Serialize};

use super::dialect::Dialect;

/// Where a tool was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the process itself: linked to the program, or preloaded.
    AddressSpace,
    /// In a library of `OMP_TOOL_LIBRARIES`.
    Library(PathBuf),
}

/// The active tool.
pub(super) static ACTIVE: Mutex<Option<Tool>> = Mutex::new(None);

/// A tool that wants to be used.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) place: Place,
    pub(super) library: Library,
    pub(super) result: *mut ompt_start_tool_result_t,
}

// SAFETY: the result belongs to the tool, and the specification wants it to be usable from any thread. The mutex around
// the only instance lets one thread finalize.
unsafe impl Send for Tool {}

/// The library of a tool that was finalized: dropping it closes the library, so no callback may follow.
#[derive(Debug)]
pub struct Finalized {
    _library: Library,
}

/// Finalizes the active tool, once.
pub fn finalize() -> Option<Finalized> {
    // Out of the lock first: the tool may ask to be finalized while it is.
    let tool = ACTIVE.lock().expect("no thread panics with it").take()?;
    // SAFETY: as in `initialize`, which saw that it is not NULL.
    if let Some(finalize) = unsafe { (*tool.result).finalize } {
        // SAFETY: the tool's own function, and its result.
        unsafe { Dialect::current().finalize(finalize, tool.result) };
    }
    Some(Finalized { _library: tool.library })
}
