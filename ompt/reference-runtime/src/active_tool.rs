//! The active tool, and its finalization (OpenMP 5.2, 19.3).

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
    /// In the process: linked with the program, or preloaded.
    AddressSpace,
    /// In a library of `OMP_TOOL_LIBRARIES`.
    Library(PathBuf),
}

/// The active tool.
pub(super) static ACTIVE: Mutex<Option<Tool>> = Mutex::new(None);

/// A tool that wants to be active.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) place: Place,
    pub(super) library: Library,
    pub(super) result: *mut ompt_start_tool_result_t,
}

// SAFETY: the result belongs to the tool, and the specification requires that it can be used on any thread. The mutex
// around the only instance lets only one thread finalize it.
unsafe impl Send for Tool {}

/// The library of a finalized tool: dropping it closes the library, so no callback may follow.
#[derive(Debug)]
pub struct Finalized {
    _library: Library,
}

/// Finalizes the active tool, once.
pub fn finalize() -> Option<Finalized> {
    // Remove it from the lock first: the tool may request its finalization during this.
    let tool = ACTIVE.lock().expect("no thread panics with it").take()?;
    // SAFETY: as in `initialize`, which checked that it is not NULL.
    if let Some(finalize) = unsafe { (*tool.result).finalize } {
        // SAFETY: the tool's own function, and its result.
        unsafe { Dialect::current().finalize(finalize, tool.result) };
    }
    Some(Finalized { _library: tool.library })
}
