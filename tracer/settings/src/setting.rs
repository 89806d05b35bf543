//! What a row of the table says of a setting.

use std::ffi::OsStr;

use crate::value::Kind;

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
    pub(crate) check: fn(&OsStr) -> bool,
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
    /// Whether the value is allowed.
    pub fn allows(&self, value: &OsStr) -> bool {
        (self.check)(value)
    }

    /// The message where `value` is not allowed.
    pub fn refusal(&self, value: &OsStr) -> String {
        format!(
            "{}={} is not allowed; using \"{}\" instead. Allowed: {}",
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
