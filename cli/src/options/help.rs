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
/// nothing is named, or the first name is that of a command. Prose is folded at `width` columns, if that is known.
///
/// # Errors
/// There is no page of a name.
pub(crate) fn of_pages(
    names: &[OsString],
    commands: &[String],
    width: Option<usize>,
) -> Option<Result<String>> {
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
    let shown = |page: &'static str| width.map_or(page.to_owned(), |width| with_folded_prose(page, width));
    let pages = pages.map(|page| page.map(shown));
    Some(pages.collect::<Result<Vec<String>>>().map(|pages| pages.join("\n")))
}

/// A page whose paragraphs and list items are at most `width` columns wide. Code and tables are unchanged.
fn with_folded_prose(page: &str, width: usize) -> String {
    // The lines, those of a paragraph joined; and whether they are prose.
    let mut lines: Vec<(String, bool)> = Vec::new();
    let mut is_fenced = false;
    for line in page.lines() {
        let text = line.trim_start();
        let is_fence = text.starts_with("```");
        let is_item = hang(line) > line.len() - text.len();
        let follows_prose = lines.last().is_some_and(|(_, is_prose)| *is_prose);
        let is_code = is_fenced || is_fence || !follows_prose && line.starts_with("    ");
        let is_prose = !text.is_empty() && !is_code && !text.starts_with(['|', '#']);
        is_fenced ^= is_fence;
        match lines.last_mut() {
            Some((paragraph, _)) if is_prose && follows_prose && !is_item => {
                paragraph.push(' ');
                paragraph.push_str(text);
            }
            _ => lines.push((line.to_owned(), is_prose)),
        }
    }
    let mut folded = String::new();
    for (line, is_prose) in lines {
        folded += &message::folded(&line, is_prose.then_some(width), Some(hang(&line)));
        folded.push('\n');
    }
    folded
}

/// The indentation of further lines of a paragraph or a list item.
fn hang(line: &str) -> usize {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let digits = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    match text {
        _ if text.starts_with("* ") || text.starts_with("- ") => indent + 2,
        _ if digits.len() < text.len() && digits.starts_with(". ") => indent + text.len() - digits.len() + 2,
        _ => indent,
    }
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
            of_pages(&names.iter().map(OsString::from).collect::<Vec<_>>(), &["record".to_owned()], None)
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

    #[test]
    fn prose_is_folded_but_neither_code_nor_tables() {
        let verbatim = "    code is never folded, however long\n\n| a table | is never folded |\n\n```c\nfor (;;)   /* nothing */\n    work();\n```\n";
        let page = format!(
            "# A title that is longer than a line\n\nA paragraph on\ntwo lines.\n\n* One item that\n  continues\n* another\n\n{verbatim}"
        );
        let folded = format!(
            "# A title that is longer than a line\n\nA paragraph on two\nlines.\n\n* One item that\n  continues\n* another\n\n{verbatim}"
        );
        assert_eq!(with_folded_prose(&page, 18), folded);
        for page in RULES.iter().map(Rule::page).chain(GUIDES.iter().map(|guide| guide.text)) {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let narrow = with_folded_prose(page, 80);
            assert_eq!(words(&narrow), words(page));
            let is_kept = |line: &str| line.starts_with(['|', '#']) || line.starts_with("```");
            assert!(page.lines().filter(|line| is_kept(line)).all(|line| narrow.contains(line)), "{narrow}");
        }
    }
}
