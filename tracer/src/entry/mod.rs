//! How the tracer enters a process and leaves it.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`start`] | `ompt_start_tool`, initialize, finalize, the library's destructor |
//! | [`preload`] | finds a runtime that looks for no tool, where the library is preloaded |
//! | [`isolated`] | notes libraries that do not see what is preloaded |
//! | [`libgomp_threads`] | GCC's runtime beside the one that took its place |

mod isolated;
pub(crate) mod libgomp_threads;
pub(crate) mod preload;
pub(crate) mod start;
