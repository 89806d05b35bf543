//! Options of single formats. Each format declares its own, and the command line turns them into flags.

/// An option of a format.
#[derive(Clone, Copy, Debug)]
pub struct FormatOption {
    /// The name; with `--` in front, the flag.
    pub name: &'static str,
    /// The name of the value in the help; empty for a switch.
    pub value_name: &'static str,
    /// The possible values, each with its help; empty for a switch, and for an option that takes any text.
    pub values: &'static [(&'static str, &'static str)],
    /// The default value; empty for a switch.
    pub default: &'static str,
    /// The help text.
    pub help: &'static str,
}

/// The value of a switch that is on.
pub(crate) const ON: &str = "on";

/// The given options of formats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatOptions(Vec<(&'static str, String)>);

impl FormatOptions {
    /// Sets an option to one of its values.
    pub fn set(&mut self, option: &FormatOption, value: &str) {
        self.0.retain(|(name, _)| *name != option.name);
        self.0.push((option.name, value.to_owned()));
    }

    /// Switches a switch on.
    pub fn switch_on(&mut self, option: &FormatOption) {
        self.set(option, ON);
    }

    /// The value of an option, or its default.
    pub(crate) fn get<'a>(&'a self, option: &'a FormatOption) -> &'a str {
        self.given(option).unwrap_or(option.default)
    }

    /// The value that was given.
    pub(crate) fn given(&self, option: &FormatOption) -> Option<&str> {
        let given = self.0.iter().find(|(name, _)| *name == option.name);
        given.map(|(_, value)| &**value)
    }
}

/// The files of a directory format. An export replaces only these.
#[derive(Clone, Copy, Debug)]
pub struct FolderParts {
    /// The file that identifies a directory with this format. It is written last.
    pub anchor: &'static str,
    /// The other files next to it.
    pub files: &'static [&'static str],
    /// The directories next to it, each with the extensions of all its files. A name that ends with `=` stands for all
    /// directories that start with it; these may contain directories named `NAME=VALUE`.
    pub folders: &'static [(&'static str, &'static [&'static str])],
}
