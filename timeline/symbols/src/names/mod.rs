//! Names as shown to users, and why some are missing.

pub(crate) mod function;
pub(crate) mod missing_names;
pub mod printable;
pub(crate) mod runtime;
pub(crate) mod source_paths;
