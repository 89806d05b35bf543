//! The settings of the tracer, which are the `OMPTRACE_*` variables: **one row per setting** in [`SETTINGS`].
//!
//! A row gives the variable, its default, its meaning, and the option by which `record` and `env` set it. The type of the
//! field in [`Settings`] checks and reads the value ([`value`]). The tracer reads the variables by
//! [`Settings::from_values`]. The program makes its options of the rows. The manual's table and the trace's metadata come
//! from them, too.
#![forbid(unsafe_code)]

pub mod counters;
mod setting;
mod table;
pub mod value;

pub use setting::{CommandLineOption, REGISTRY, Setting};
pub use table::{SETTINGS, Settings};
