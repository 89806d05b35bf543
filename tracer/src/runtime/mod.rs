//! The OpenMP runtime, as it is asked.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`lookup`] | a runtime's entry points, states, processors and places |
//! | [`entry_point`] | a function of the runtime's that is kept |
//! | [`metadata`] | what the trace says of the runtime |
//! | [`replaced_libgomp`] | GCC's runtime whose place another one took |

pub(crate) mod entry_point;
pub(crate) mod lookup;
pub(crate) mod metadata;
pub(crate) mod replaced_libgomp;
