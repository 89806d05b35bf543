//! The libgomps of the process, and the one that serves a caller.
//!
//! | module | contents |
//! | --- | --- |
//! | `functions` | a libgomp with its functions |
//! | `serving` | the libgomp that serves a caller |
//! | `passed_on` | OpenMP API functions that continue in another runtime |
//! | `real_dlclose` | the loader's `dlclose`, which this library replaces |

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
