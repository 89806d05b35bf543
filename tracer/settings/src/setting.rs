//! The description of a setting, given by a row of the table.

use std::ffi::OsStr;

use crate::value::Kind;

/// The variable with which `omptrace record` passes the directory where sessions register their traces.
pub const REGISTRY: &str = "OMPTRACE_REGISTRY";

/// A setting, independent of its value.
#[derive(Clone, Copy)]
pub struct Setting {
    /// The variable's name.
    pub variable: &'static str,
    /// The default value, as a user would write it; empty for none.
    pub default: &'static str,
    /// Its effect.
    pub meaning: &'static str,
    /// The option that sets it.
    pub option: Option<CommandLineOption>,
    /// The kind of its value.
    pub kind: Kind,
    /// The allowed values, in words.
    pub allowed: fn() -> String,
    pub(crate) check: fn(&OsStr) -> bool,
}

/// An option of the command line that sets a variable.
#[derive(Clone, Copy, Debug)]
pub struct CommandLineOption {
    /// The option's name without `--`.
    pub long: &'static str,
    /// The option's letter without `-`.
    pub short: Option<char>,
    /// The name of its value in the help.
    pub value_name: &'static str,
    /// The value if the option is given without one. If `bare` is set, other values need `=`.
    pub bare: Option<&'static str>,
    /// The option's help. The default and the variable are appended.
    pub help: &'static str,
}

impl Setting {
    /// Whether the value is allowed.
    pub fn allows(&self, value: &OsStr) -> bool {
        (self.check)(value)
    }

    /// The message for a `value` that is not allowed.
    pub fn refusal(&self, value: &OsStr) -> String {
        format!(
            "{}={} is not allowed; using \"{}\" instead. Allowed values: {}",
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
