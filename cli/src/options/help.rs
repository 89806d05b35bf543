//! Help: short with `-h`, whole with `--help`, and the pages of the documentation.

use std::ffi::OsString;
use std::fmt::Write;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use omptrace_analysis::answers::{RULES, Rule};

use super::guides::{GUIDES, Guide};
use crate::output::failure::{Failure, Result};
use crate::output::message;

/// The options of `record` that `-h` shows: what the first hour needs.
const OF_RECORD: &[&str] =
    &["output", "events", "sample", "counters", "cpu-time", "libgomp", "quiet", "live", "program", "help"];

/// The definition of the command line, with two lengths of help. `-h` has a line for each option; `--help` has all that there is to know
/// about it, and examples.
pub(crate) fn definition(command: Command) -> Command {
    let command = command.mut_args(with_short_help);
    command.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        let examples = command.get_after_help().cloned();
        let more = format!("All options, with examples: omptrace {name} --help");
        let command = match examples {
            Some(examples) => command.after_long_help(examples).after_help(more),
            None => command.after_help(more),
        };
        command.mut_args(|arg| {
            let is_rare =
                name == "record" && !OF_RECORD.contains(&arg.get_long().unwrap_or(arg.get_id().as_str()));
            with_short_help(arg).hide_short_help(is_rare)
        })
    })
}

/// With the first sentence of its help in `-h`.
fn with_short_help(arg: Arg) -> Arg {
    let (Some(help), None) = (arg.get_help().map(StyledStr::to_string), arg.get_long_help()) else {
        return arg;
    };
    let short = first_sentence(&help).to_owned();
    if short == help { arg } else { arg.help(short).long_help(help) }
}

/// The words up to the first stop, colon or bracket.
fn first_sentence(help: &str) -> &str {
    let ends = [". ", ": ", "; ", " ["];
    let end = ends.iter().filter_map(|end| help.find(end)).min();
    end.map_or(help, |end| &help[..end])
}

/// The pages with these names: those of findings and of `docs`; the list of all for `pages`, that of findings for `findings`. `None` if
/// nothing is named, or the first name is that of a command.
///
/// # Errors
/// There is no page of a name.
pub(crate) fn of_pages(names: &[OsString], commands: &[String]) -> Option<Result<String>> {
    let names: Vec<&str> = names.iter().map(|name| name.to_str()).collect::<Option<_>>()?;
    match names[..] {
        ["findings"] => return Some(Ok(list_of_findings())),
        ["pages"] => return Some(Ok(list_of_guides() + "\n" + &list_of_findings())),
        _ => {}
    }
    let first = *names.first()?;
    if commands.iter().any(|command| command == first) || first.starts_with('-') {
        return None;
    }
    let pages = names.iter().map(|name| page(name).ok_or_else(|| no_page(name, commands)));
    Some(pages.collect::<Result<Vec<&str>>>().map(|pages| pages.join("\n")))
}

fn page(name: &str) -> Option<&'static str> {
    Rule::by_id(name).map(Rule::page).or_else(|| Guide::of(name).map(|guide| guide.text))
}

fn no_page(name: &str, commands: &[String]) -> Failure {
    let pages = RULES.iter().map(|rule| rule.id).chain(GUIDES.iter().map(|guide| guide.name));
    let names = pages.chain(commands.iter().map(String::as_str));
    let likeness = |known: &&str| strsim::normalized_damerau_levenshtein(name, known);
    let nearest = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let meant = nearest.filter(|known| likeness(known) > 0.6);
    let meant = meant.map_or(String::new(), |known| format!("did you mean {known}? "));
    Failure::new(format!("no command, finding or page is called {}", message::shell_word(name.as_ref())))
        .hint(format!("{meant}`omptrace help pages` lists all pages"))
}

fn list_of_findings() -> String {
    list("Findings", RULES.iter().map(|rule| (rule.id, rule.title)))
}

fn list_of_guides() -> String {
    list("Documentation", GUIDES.iter().map(|guide| (guide.name, guide.title())))
}

fn list(kind: &str, names_and_titles: impl Iterator<Item = (&'static str, &'static str)> + Clone) -> String {
    let width = names_and_titles.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = format!("{kind}; `omptrace help NAME` prints the page called NAME:\n");
    for (name, title) in names_and_titles {
        let _ = writeln!(text, "  {name:<width$}  {title}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_ends_before_details() {
        for (help, short) in [
            ("Print JSON", "Print JSON"),
            ("Number of threads; does not affect it [default: 2]", "Number of threads"),
            ("Do it. Or not", "Do it"),
            ("Places [default: here]", "Places"),
        ] {
            assert_eq!(first_sentence(help), short);
        }
    }

    #[test]
    fn findings_and_guides_are_printed_by_name() {
        let of = |names: &[&str]| {
            of_pages(&names.iter().map(OsString::from).collect::<Vec<_>>(), &["record".to_owned()])
        };
        let text = |names: &[&str]| of(names).and_then(Result::ok).unwrap_or_default();
        assert!(text(&["load_imbalance"]).starts_with("# Load imbalance\n"));
        assert!(text(&["load_imbalance", "serial_part"]).contains("\n# Serial code\n"));
        assert!(text(&["findings"]).contains("late_wake_up"));
        assert!(text(&["mpi"]).starts_with("# MPI"));
        assert!(text(&["pages"]).contains("  tutorial") && text(&["pages"]).contains("late_wake_up"));
        assert!(GUIDES.iter().all(|guide| guide.text.starts_with("# ")), "a page without a title");
        assert!(of(&["record"]).is_none() && of(&[]).is_none());
        assert!(of(&["load_imbalance", "nonsense"]).is_some_and(|text| text.is_err()));
        let mistyped = of(&["load_imbalence"]).and_then(Result::err).map(|failure| format!("{failure:?}"));
        assert!(of(&["recrod"]).is_some_and(|text| text.is_err()), "a mistyped command");
        assert!(mistyped.is_some_and(|text| text.contains("did you mean load_imbalance?")), "not suggested");
    }
}
