//! Help: short with `-h`, whole with `--help`, and a page for each finding.

use std::ffi::OsString;
use std::fmt::Write;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use omptrace_analysis::answers::{RULES, Rule};

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

/// What the rules with these ids find, or the list of all for `findings`; `None` where one of the names is none of these.
pub(crate) fn of_findings(names: &[OsString]) -> Option<String> {
    if names.len() == 1 && names[0] == "findings" {
        return Some(list());
    }
    let rules: Option<Vec<&Rule>> = names.iter().map(|name| Rule::by_id(name.to_str()?)).collect();
    let pages: Vec<&str> = rules.filter(|rules| !rules.is_empty())?.iter().map(|rule| rule.page()).collect();
    Some(pages.join("\n"))
}

fn list() -> String {
    let width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
    let mut text = "Findings; `omptrace help NAME` explains one:\n".to_owned();
    for rule in RULES {
        let _ = writeln!(text, "  {:<width$}  {}", rule.id, rule.title);
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
    fn findings_are_explained_by_name() {
        let of = |names: &[&str]| of_findings(&names.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(of(&["load_imbalance"]).unwrap().starts_with("# Load imbalance\n"));
        assert!(of(&["load_imbalance", "serial_part"]).unwrap().contains("\n# Serial code\n"));
        assert!(of(&["findings"]).unwrap().contains("late_wake_up"));
        assert_eq!((of(&["record"]), of(&[]), of(&["load_imbalance", "nonsense"])), (None, None, None));
    }
}
