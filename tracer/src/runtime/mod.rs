//! Queries of the OpenMP runtime.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`lookup`] | a runtime's entry points, states, CPUs and places |
//! | [`entry_point`] | a stored entry point of the runtime |
//! | [`metadata`] | metadata about the runtime |
//! | [`replaced_libgomp`] | GCC's libgomp when another runtime replaces it |

pub(crate) mod entry_point;
pub(crate) mod lookup;
pub(crate) mod metadata;
pub(crate) mod replaced_libgomp;
