//! The settings of the tracer, which are the `OMPTRACE_*` variables: **one row per setting** in [`SETTINGS`].
//!
//! A row gives the variable, its default, its meaning, and the `record` and `env` option that sets it. The type of its
//! field in [`Settings`] parses and checks the value ([`value`]). The tracer reads the variables with
//! [`Settings::from_values`]. The rows also define the program's options, the manual's table and the settings in the
//! trace's metadata.
#![forbid(unsafe_code)]

pub mod counters;
mod setting;
mod table;
pub mod value;

pub use setting::{CommandLineOption, REGISTRY, Setting};
pub use table::{SETTINGS, Settings};
