//! The libgomps of the process, and which of them serves a caller.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `functions` | a libgomp, with its functions |
//! | `serving` | the libgomp that serves a caller |
//! | `passed_on` | functions of OpenMP's own that go on in another runtime |
//! | `real_dlclose` | the loader's `dlclose`, behind that of this library |

#[macro_use]
pub(crate) mod functions;
pub(crate) mod audit;
pub(crate) mod loaded_libraries;
pub(crate) mod old_locks;
pub(crate) mod passed_on;
pub(crate) mod real_dlclose;
pub(crate) mod release;
pub(crate) mod serving;
pub(crate) mod unload;
