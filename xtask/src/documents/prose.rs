//! Plain English: words that the project does not use, and sentences that are too long.

use std::fs;
use std::path::Path;

use crate::process::{command, output, root};
use crate::result::Result;

/// A forbidden word, its other forms, and what to write instead. A form that ends in `_` is how a constant's name begins.
const WORDS: [(&[&str], &str); 14] = [
    (&["bear", "bears", "bore", "borne", "bearing"], "accept, tolerate"),
    (&["tell", "tells", "told", "untold", "telling"], "report, say, name; told apart: distinguished"),
    (&["mend", "mends", "mended", "mending"], "repair"),
    (
        &[
            "stands",
            "stood",
            "standing",
            "stand for",
            "stand in",
            "stand before",
            "stand behind",
            "stand between",
            "stand still",
        ],
        "be, come, mean, replace, play",
    ),
    (&["judge", "judges", "judged", "judging", "judgement", "judgment"], "check"),
    (&["so many"], "the number that the sentence means, or: this many"),
    (&["so long"], "as long, this long"),
    (&["of theirs", "of hers", "of his"], "their own; name the owner"),
    (&["nobody's"], "name what has no owner"),
    (&["by nature"], "say why"),
    (&["is none of"], "is not one of"),
    (&["none any more"], "no longer exists"),
    (&["MOST_", "LONGEST_", "LARGEST_", "BIGGEST_"], "MAX_"),
    (&["FEWEST_", "LEAST_", "SHORTEST_", "SMALLEST_"], "MIN_"),
];

const MAX_WORDS: usize = 25;
/// Holds the forbidden words themselves.
const THIS_FILE: &str = "xtask/src/documents/prose.rs";

/// `cargo xtask prose`.
#[derive(Debug, clap::Args)]
pub(crate) struct Prose {
    /// Check only these files and folders
    paths: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    line: usize,
    /// What was found, and what to write instead.
    text: String,
}

/// # Errors
/// Something is not plain English, or a file cannot be read.
pub(crate) fn check(arguments: &Prose) -> Result<()> {
    let is_asked_for = |finding: &Finding| {
        let mut paths = arguments.paths.iter();
        arguments.paths.is_empty() || paths.any(|at| Path::new(&finding.path).starts_with(at))
    };
    let findings = tracked_findings()?;
    let findings: Vec<_> = findings.iter().filter(|one| is_asked_for(one)).collect();
    for Finding { path, line, text } in &findings {
        println!("{path}:{line}: {text}");
    }
    match findings.len() {
        0 => Ok(()),
        count => Err(format!("write these {count} in plain English, see {THIS_FILE}").into()),
    }
}

fn tracked_findings() -> Result<Vec<Finding>> {
    let listed = output(&mut command("git", ["ls-files", "-z", "--", "*.rs", "*.md"]))?;
    let mut findings = Vec::new();
    for path in String::from_utf8(listed)?.split_terminator('\0') {
        // A file that was removed, and is still in the index, has no text.
        if let (true, Ok(text)) = (path != THIS_FILE, fs::read_to_string(root().join(path))) {
            findings.extend(findings_of(path, &text));
        }
    }
    Ok(findings)
}

fn findings_of(path: &str, text: &str) -> Vec<Finding> {
    let finding = |line, text| Finding { path: path.to_owned(), line, text };
    let mut findings = Vec::new();
    for (line, words) in (1..).zip(text.lines()) {
        for (forms, better) in WORDS {
            let found = forms.iter().map(|form| (occurrences(words, form), form));
            for (times, form) in found {
                let text = format!("{form:?}, better: {better}");
                findings.extend((0..times).map(|_| finding(line, text.clone())));
            }
        }
    }
    for (line, words) in sentences(text, path.ends_with(".rs")) {
        if words > MAX_WORDS {
            let text = format!("a sentence of {words} words, at most {MAX_WORDS}");
            findings.push(finding(line, text));
        }
    }
    findings
}

/// How often a line has `form`: as whole words in text or between a name's underscores, or as the begin of a constant.
fn occurrences(line: &str, form: &str) -> usize {
    let is_constant = form.ends_with('_');
    let line = if is_constant { line.to_owned() } else { line.to_lowercase() };
    let is_outside = |letter: Option<char>, joins: bool| {
        letter.is_none_or(|letter| !(letter.is_alphanumeric() || joins && letter == '_'))
    };
    let is_word = |(at, _): &(usize, &str)| {
        let (before, behind) = (&line[..*at], &line[at + form.len()..]);
        is_outside(before.chars().next_back(), is_constant)
            && (is_constant || is_outside(behind.chars().next(), false))
    };
    line.match_indices(form).filter(is_word).count()
}

/// The line and the number of words of each sentence of a `.md` file, or of comments that have lines of their own; neither
/// of code nor of tables.
fn sentences(text: &str, is_rust: bool) -> Vec<(usize, usize)> {
    let (mut sentences, mut is_example) = (Vec::new(), false);
    let (mut sentence, mut kind_before) = (Sentence::default(), None);
    for (number, line) in (1..).zip(text.lines()) {
        let (kind, prose) = if is_rust {
            comment(line)
        } else {
            let is_indented = line.starts_with("    ");
            (None, if is_indented { "" } else { line.trim() })
        };
        let is_fence = prose.starts_with("```");
        is_example ^= is_fence;
        let is_none = is_example || is_fence || prose.is_empty() || prose.starts_with(['|', '#']);
        if is_none || kind != kind_before || prose.starts_with("* ") || prose.starts_with("- ") {
            sentences.extend(sentence.end());
            sentence.is_code = false;
        }
        kind_before = kind;
        if !is_none {
            sentence.take_in(prose, number, &mut sentences);
        }
    }
    sentences.extend(sentence.end());
    sentences
}

/// How a line's comment begins, and its text; nothing where the line has code.
fn comment(line: &str) -> (Option<&'static str>, &str) {
    let line = line.trim();
    let mut kinds = ["///", "//!", "//"].into_iter();
    let found = kinds.find_map(|kind| Some((Some(kind), line.strip_prefix(kind)?.trim())));
    found.unwrap_or((None, ""))
}

/// A sentence that may go on in the next line.
#[derive(Default)]
struct Sentence {
    begin: usize,
    words: usize,
    /// Whether it is between backquotes.
    is_code: bool,
}

impl Sentence {
    fn end(&mut self) -> Option<(usize, usize)> {
        let words = std::mem::take(&mut self.words);
        (words > 0).then_some((self.begin, words))
    }

    fn count(&mut self, line: usize) {
        if self.words == 0 {
            self.begin = line;
        }
        self.words += 1;
    }

    /// Adds the words of a line, and its sentences that end to `ended`. All between two backquotes is one word.
    fn take_in(&mut self, prose: &str, line: usize, ended: &mut Vec<(usize, usize)>) {
        for (part, text) in prose.split('`').enumerate() {
            if part > 0 {
                self.is_code = !self.is_code;
                if self.is_code {
                    self.count(line);
                }
            }
            if self.is_code {
                continue;
            }
            for word in text.split_whitespace() {
                if word.contains(char::is_alphanumeric) {
                    self.count(line);
                }
                let word = word.trim_end_matches(['*', '_', ')', '"']);
                if word.ends_with(['.', '?', '!']) {
                    ended.extend(self.end());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of what is found.
    fn lines(path: &str, text: &str) -> Vec<usize> {
        let found = findings_of(path, text);
        found.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn finds_words_in_text_and_names() {
        let text = "It Tells.\nfn that_told() {}\nretell, tellurium\nso many, so\nmany";
        assert_eq!(lines("a.md", text), [1, 2, 4]);
        let constants = "const MOST_PARTS, OUR_MOST_, Most_ of;\nLEAST_WORDS";
        assert_eq!(lines("a.rs", constants), [1, 2]);
    }

    #[test]
    fn counts_the_words_of_sentences() {
        let text = "One two\nthree `four five`. Six\n\n```\nno code\n```\n| no table |\n* seven (eight.) nine\n    no example\n";
        assert_eq!(sentences(text, false), [(1, 4), (2, 1), (8, 2), (8, 1)]);
        let rust =
            "/// One `two\n/// three`.\n// four\n// five\nlet a = 1; // no\n    //! Six\n    //! seven";
        assert_eq!(sentences(rust, true), [(1, 2), (3, 2), (6, 2)]);
        let long = "word ".repeat(MAX_WORDS + 1);
        assert_eq!(lines("a.md", &long), [1]);
        assert!(lines("a.md", &long[5..]).is_empty());
    }
}
