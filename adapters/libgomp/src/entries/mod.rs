//! libgomp's functions as the adapter exports them: each reports its construct and calls libgomp's function.

#[macro_use]
pub(crate) mod exported;
pub(crate) mod barrier;
pub(crate) mod call;
pub(crate) mod cancel;
pub(crate) mod control;
pub(crate) mod depend;
pub(crate) mod devices;
pub(crate) mod mutex;
pub(crate) mod parallel;
pub(crate) mod target;
pub(crate) mod task;
pub(crate) mod taskloop;
pub(crate) mod tool_variables;
pub(crate) mod worksharing;
