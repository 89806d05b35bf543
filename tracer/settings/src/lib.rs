//! The settings of the tracer, which are the `OMPTRACE_*` variables: **one row per setting** in [`SETTINGS`].
//!
//! A row gives the variable, its default, its meaning, and the option by which `record` and `env` set it. The type of the
//! field in [`Settings`] checks and reads the value ([`value`]). The tracer reads the variables by
//! [`Settings::from_values`]. The program makes its options of the rows. The manual's table and the trace's metadata come
//! from them, too.
#![forbid(unsafe_code)]

pub mod counters;
mod table;
pub mod value;

use std::ffi::OsStr;

pub use table::{SETTINGS, Settings};
use value::Kind;

/// The variable by which `omptrace record` names the folder where sessions note their traces.
pub const REGISTRY: &str = "OMPTRACE_REGISTRY";

/// A setting, whatever its value is.
#[derive(Clone, Copy)]
pub struct Setting {
    /// The variable's name.
    pub variable: &'static str,
    /// Its value where it is not set, as a user would write it; empty for none.
    pub default: &'static str,
    /// Its effect.
    pub meaning: &'static str,
    /// The option that sets it.
    pub option: Option<CommandLineOption>,
    /// The kind of its value.
    pub kind: Kind,
    /// The allowed values, in words.
    pub allowed: fn() -> String,
    check: fn(&OsStr) -> bool,
}

/// An option of the command line that sets a variable.
#[derive(Clone, Copy, Debug)]
pub struct CommandLineOption {
    /// Its name behind `--`.
    pub long: &'static str,
    /// Its letter behind `-`.
    pub short: Option<char>,
    /// The name of its value in the help.
    pub value_name: &'static str,
    /// The value of the option alone. Where there is one, `=` comes before any other.
    pub bare: Option<&'static str>,
    /// Its help. Default and variable are added.
    pub help: &'static str,
}

impl Setting {
    /// The setting of that variable.
    pub fn of(variable: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.variable == variable)
    }

    /// Whether the value is allowed.
    pub fn allows(&self, value: &OsStr) -> bool {
        (self.check)(value)
    }

    /// The message where `value` is not allowed.
    pub fn refusal(&self, value: &OsStr) -> String {
        format!(
            "{}={}: not allowed; using \"{}\". Allowed: {}",
            self.variable,
            value.to_string_lossy(),
            self.default,
            (self.allowed)()
        )
    }
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setting")
            .field("variable", &self.variable)
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}
