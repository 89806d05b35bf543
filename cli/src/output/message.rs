//! Words for people: lines on stderr, numbers and units, commands that can be typed again.

use std::env;
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use omptrace_report::{Layout, Lines, Look, Style};
use omptrace_symbols::printable::{is_unprintable, printable};
use omptrace_trace_format::Severity;

use crate::output::streams;

/// A plain line of ours among the program's own.
pub(crate) fn note(text: &str) {
    if !is_silent() {
        say("omptrace", text);
    }
}

/// Something that makes the trace less than it could be.
pub(crate) fn warning(text: &str) {
    say(&paint("warning", "1;33"), text);
}

/// Why a command could not do its work.
pub(crate) fn error(text: &str) {
    say(&paint("error", "1;31"), text);
}

/// Prints what to do next.
pub(crate) fn hint(text: &str) {
    if !is_silent() {
        say(&paint("hint", "1;36"), text);
    }
}

/// The text of a diagnostic without its severity, for a message that begins with one.
pub(crate) fn without_severity(severity: Severity, text: &str) -> &str {
    text.strip_prefix(severity.name()).and_then(|text| text.strip_prefix(": ")).unwrap_or(text)
}

/// The letters of a line: as `COLUMNS` says, else as many as the terminal has; `None` where neither says, as in a pipe.
pub(crate) fn columns(out: &impl AsFd) -> Option<usize> {
    let given = env::var("COLUMNS").ok();
    let given = given.and_then(|columns| columns.parse().ok());
    let of_terminal = || terminal_size::terminal_size_of(out).map(|(width, _)| width.0.into());
    given.or_else(of_terminal).filter(|width| *width > 0)
}

/// How lines with colours and bars look there: without either in a pipe or a file, and without colours where the user refuses
/// them (<https://no-color.org>).
pub(crate) fn look(out: &(impl AsFd + IsTerminal)) -> Look {
    /// Longer lines are no easier to read.
    const MAX_WIDTH: usize = 100;

    let is_utf8 = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| {
        let value = env::var(name).ok().filter(|value| !value.is_empty())?;
        Some(value.to_ascii_lowercase().replace('-', "").contains("utf8"))
    });
    Look {
        width: columns(out).unwrap_or(Look::PLAIN.width).min(MAX_WIDTH),
        colours: wants_colours(out),
        blocks: out.is_terminal() && is_utf8 == Some(true),
    }
}

/// Prints lines on stderr, in one piece. Where that cannot be, the work goes on all the same.
pub(crate) fn block(lines: &Lines, look: Look) {
    let _unheard = streams::stderr().write_all(lines.text(look).as_bytes());
}

/// How tables for stdout are laid out: as wide as it is, or in Markdown.
pub(crate) fn layout(top: Option<usize>, md: bool) -> Layout {
    /// The letters of a line where the width is unknown, as in a pipe or a file.
    const USUAL_COLUMNS: usize = 80;

    let width = columns(&streams::stdout()).unwrap_or(USUAL_COLUMNS);
    Layout {
        // Paragraphs of Markdown are as wide as their page.
        width: (!md).then_some(width),
        top,
        is_short: false,
        style: if md { Style::Markdown } else { Style::Text },
    }
}

/// Folds the lines, each into as many as it takes. What goes on has `hang` blanks in front, or as many as its line and two.
/// A word that is longer than a line stays whole: it is a path or an address, and people copy it.
pub(crate) fn folded(text: &str, width: Option<usize>, hang: Option<usize>) -> String {
    let letters = |text: &str| text.chars().count();
    let Some(width) = width else {
        return text.to_owned();
    };
    let mut folded = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if letters(line.trim_end()) <= width {
            folded += line;
            continue;
        }
        let indent = letters(line) - letters(line.trim_start());
        let hang = hang.unwrap_or(indent + 2).min(width / 2);
        // The blanks in front and between columns stay.
        let mut column = 0;
        for part in line.split_inclusive(' ') {
            let end = column + letters(part.trim_end());
            if column > hang && end > width && !part.trim_end().is_empty() {
                folded.truncate(folded.trim_end_matches(' ').len());
                folded += "\n";
                folded.extend(std::iter::repeat_n(' ', hang));
                column = hang;
            }
            folded += part;
            column += letters(part);
        }
    }
    folded
}

/// Says a line that begins with what it is. Names in the text neither break the line nor drive the terminal. Where it cannot be written - a terminal that is gone, a full disk - the work goes on all the same. Its
/// result and its status are what count.
fn say(kind: &str, text: &str) {
    let rank = RANK.get().map(|rank| format!("rank {rank}: ")).unwrap_or_default();
    let mut line = format!("{kind}: {rank}{}", printable(text));
    // A command is to be copied in one piece.
    if !line.contains("omptrace ") {
        line = folded(&line, columns(&streams::stderr()), Some(10));
    }
    line.push('\n');
    // In one piece: other ranks write lines, too.
    let _unheard = streams::stderr().write_all(line.as_bytes());
}

/// The rank that lines are of, where several processes write them.
static RANK: OnceLock<u32> = OnceLock::new();

/// This process is one of several that a launcher has started: what it says has its rank, and of all but the first only warnings and
/// errors are said.
pub(crate) fn speak_for_rank(rank: u32) {
    let _ = RANK.set(rank);
}

fn is_silent() -> bool {
    RANK.get().is_some_and(|rank| *rank > 0)
}

/// `text` in an ANSI style, where stderr is a terminal whose user wants colours (<https://no-color.org>).
fn paint(text: &str, style: &str) -> String {
    static COLOURS: OnceLock<bool> = OnceLock::new();
    let colours = *COLOURS.get_or_init(|| wants_colours(&streams::stderr()));
    if colours { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
}

fn wants_colours(out: &impl IsTerminal) -> bool {
    let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
    out.is_terminal() && !refused && !dumb
}

/// A number with its digits in groups of three: `1,234,567`.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number of things: `1 file`, `2 files`.
pub(crate) fn counted(value: u64, thing: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", number(value))
}

/// A size in decimal units: `999 B`, `1.3 MB`.
pub(crate) fn bytes(value: u64) -> String {
    let mut scaled = value as f64;
    let mut units = ["B", "kB", "MB", "GB", "TB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if scaled < 999.5 {
            break;
        }
        scaled /= 1000.0;
        unit = larger;
    }
    if value < 1000 || scaled >= 99.95 {
        format!("{scaled:.0} {unit}")
    } else {
        format!("{scaled:.1} {unit}")
    }
}

/// A word as `sh` reads it: quoted where that is needed, and printable.
pub(crate) fn shell_word(word: &OsStr) -> String {
    let Some(text) = word.to_str().filter(|text| !text.contains(is_unprintable)) else {
        return printed(word.as_encoded_bytes());
    };
    let plain = |character: char| {
        character.is_alphanumeric()
            || matches!(character, '_' | '-' | '.' | '/' | '%' | ':' | '=' | '+' | ',' | '@')
    };
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Bytes that are no text, or cannot be printed, as `sh` makes them: POSIX has no `$'...'`. A command's last line breaks are cut off, so they follow.
fn printed(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|byte| *byte != b'\n');
    let (inside, line_breaks) = bytes.split_at(end.map_or(0, |last| last + 1));
    let octal: String = inside.iter().map(|byte| format!("\\{byte:03o}")).collect();
    let quoted = format!("\"$(printf '{octal}')\"");
    match line_breaks {
        [] => quoted,
        _ => format!("{quoted}'{}'", "\n".repeat(line_breaks.len())),
    }
}

/// A path as one would type it here: relative where it lies below the current folder.
pub(crate) fn near(path: &Path) -> PathBuf {
    let relative = env::current_dir().ok().and_then(|folder| path.strip_prefix(folder).ok());
    match relative {
        Some(relative) if !relative.as_os_str().is_empty() => relative.to_owned(),
        _ => path.to_owned(),
    }
}

/// [`near`], quoted for the shell.
pub(crate) fn shell_path(path: &Path) -> String {
    shell_word(near(path).as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_000), "1,000");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(counted(1, "file"), "1 file");
        assert_eq!(counted(0, "file"), "0 files");
    }

    #[test]
    fn sizes_have_two_to_three_digits() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_000), "1.0 kB");
        assert_eq!(bytes(1_349_999), "1.3 MB");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(bytes(256_000_000), "256 MB");
    }

    #[test]
    fn long_lines_are_folded_between_words() {
        let fold = |text: &str, width| folded(text, Some(width), Some(6));
        assert_eq!(fold("a bcd efg\n", 9), "a bcd efg\n");
        assert_eq!(fold("word  one two three four\n", 14), "word  one two\n      three\n      four\n");
        assert_eq!(fold("  3  ab  x y z\n", 10), "  3  ab  x\n     y z\n");
        assert_eq!(fold("see /a/path/without/end now\n", 12), "see /a/path/without/end\n      now\n");
        assert_eq!(folded("  two blanks more", Some(12), None), "  two blanks\n    more");
        assert_eq!(folded("a long line", None, None), "a long line");
    }

    #[test]
    fn every_word_is_the_same_in_sh() {
        use std::os::unix::ffi::OsStrExt;

        for word in [&b"a b"[..], b"100% \xff\n'", b"\xff\n\n", b"it's", b"", b"\\x41 \xe9$HOME"] {
            let quoted = shell_word(OsStr::from_bytes(word));
            let said = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {quoted}")])
                .output()
                .unwrap();
            assert_eq!(said.stdout, word, "{quoted}");
        }
    }

    #[test]
    fn words_are_quoted_where_needed() {
        assert_eq!(shell_word(OsStr::new("a/b.%p.omptrace")), "a/b.%p.omptrace");
        assert_eq!(shell_word(OsStr::new("a b")), "'a b'");
        assert_eq!(shell_word(OsStr::new("it's")), r"'it'\''s'");
        assert_eq!(shell_word(OsStr::new("")), "''");
    }
}
