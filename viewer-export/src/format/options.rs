//! Options that only one format has. A format declares its own; the command line makes its flags of them.

/// An option of a format.
#[derive(Clone, Copy, Debug)]
pub struct FormatOption {
    /// Its name, which is its flag after `--`.
    pub name: &'static str,
    /// The name of its value in the help; empty for an option that is on or off.
    pub value_name: &'static str,
    /// Its values, each with its help; none for an option that is on or off, or takes any text.
    pub values: &'static [(&'static str, &'static str)],
    /// The value where none is given; empty for an option that is on or off.
    pub default: &'static str,
    /// Its help.
    pub help: &'static str,
}

/// The value of an option that is on.
pub(crate) const ON: &str = "on";

/// The settings of the formats' options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatOptions(Vec<(&'static str, String)>);

impl FormatOptions {
    /// Sets an option to one of its values.
    pub fn set(&mut self, option: &FormatOption, value: &str) {
        self.0.retain(|(name, _)| *name != option.name);
        self.0.push((option.name, value.to_owned()));
    }

    /// Switches an option on that is on or off.
    pub fn switch_on(&mut self, option: &FormatOption) {
        self.set(option, ON);
    }

    /// The value of an option.
    pub(crate) fn get<'a>(&'a self, option: &'a FormatOption) -> &'a str {
        self.given(option).unwrap_or(option.default)
    }

    /// The value that was set.
    pub(crate) fn given(&self, option: &FormatOption) -> Option<&str> {
        let given = self.0.iter().find(|(name, _)| *name == option.name);
        given.map(|(_, value)| &**value)
    }
}

/// The files of a format that is a directory: an export replaces these, and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct FolderParts {
    /// The file without which a directory does not have this format. It is written last.
    pub anchor: &'static str,
    /// The other files beside it.
    pub files: &'static [&'static str],
    /// The directories beside it, each with the extensions of all its files. A name that ends with `=` is that of all
    /// directories that begin so; in these, directories called `NAME=VALUE` may lie.
    pub folders: &'static [(&'static str, &'static [&'static str])],
}
