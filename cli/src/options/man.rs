//! Man page and completions, from the definition of the command line.

use std::io::{self, Write};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man as Page;

use crate::options::settings;
use crate::output::failure::{Outcome, Result};
use crate::output::streams;

/// `omptrace man`.
#[derive(Args, Debug)]
pub(crate) struct Man {}

/// `omptrace completions`.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Prints one page for all commands of the definition, as `man` reads it.
///
/// # Errors
/// stdout cannot be written to.
pub(crate) fn page(definition: Command) -> Result<Outcome> {
    let program = definition.disable_help_subcommand(true);
    let mut page = Vec::new();
    let man = Page::new(program.clone()).manual("User Commands");
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_extra_section(&mut page)?;
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        page.extend(section(command)?);
    }
    man.render_version_section(&mut page)?;
    write(&page)?;
    Ok(Outcome::Success)
}

fn write(text: &[u8]) -> io::Result<()> {
    let mut stdout = streams::data();
    stdout.write_all(text)?;
    stdout.flush()
}

/// A command's sections, each one level below a section of its own.
fn section(command: &Command) -> io::Result<Vec<u8>> {
    let name = format!("omptrace {}", command.get_name());
    let man = Page::new(command.clone().bin_name(name.clone()));
    let mut text = Vec::new();
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    man.render_extra_section(&mut text)?;
    let text = String::from_utf8_lossy(&text).replace("\n.SH ", "\n.SS ").replace(".SS EXTRA", ".SS NOTES");
    let text = text.strip_prefix(".SH ").map_or(text.clone(), |rest| format!(".SS {rest}"));
    Ok(format!(".SH \"{}\"\n{text}", name.to_uppercase()).into_bytes())
}

/// Prints what makes a shell complete our command lines.
///
/// # Errors
/// stdout cannot be written to.
pub(crate) fn completions(arguments: &Completions, mut definition: Command) -> Result<Outcome> {
    // clap_complete panics where it cannot write.
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut definition, "omptrace", &mut text);
    if arguments.shell == Shell::Bash {
        text = with_lists(&String::from_utf8_lossy(&text)).into_bytes();
    }
    write(&text)?;
    Ok(Outcome::Success)
}

/// The completions of bash, with each item of a list of events completed, not only the first.
fn with_lists(script: &str) -> String {
    let names: Vec<&str> = settings::event_names().collect();
    let words = format!("-W \"{}\" --", names.join(" "));
    let first = format!("compgen {words} \"${{cur}}\"");
    let item = format!("compgen -P \"${{cur%\"${{cur##*,}}\"}}\" {words} \"${{cur##*,}}\"");
    script.replace(&first, &item)
}
