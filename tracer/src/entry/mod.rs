//! How the tracer enters a process and leaves it.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`start`] | `ompt_start_tool`, initialize, finalize, the library's destructor |
//! | [`preload`] | finds a runtime that does not look for tools, if the library is preloaded |
//! | [`isolated`] | detects libraries that do not see preloaded libraries |
//! | [`libgomp_threads`] | GCC's libgomp in a process in which another runtime replaces it |

mod isolated;
pub(crate) mod libgomp_threads;
pub(crate) mod preload;
pub(crate) mod start;
