//! Plain English: words that the project does not use, and sentences that are too long.
//!
//! The counts of `xtask/prose.json`, per rule and top-level folder, may only sink.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Result;
use crate::process::{command, output, root};

/// A forbidden word, its other forms, and what to write instead. A form that ends in `_` is how a constant's name begins.
const WORDS: [(&[&str], &str); 13] = [
    (
        &["bear", "bears", "bore", "borne", "bearing"],
        "accept, tolerate",
    ),
    (
        &["tell", "tells", "told", "untold", "telling"],
        "report, say, name; told apart: distinguished",
    ),
    (&["mend", "mends", "mended", "mending"], "repair"),
    (
        &[
            "judge",
            "judges",
            "judged",
            "judging",
            "judgement",
            "judgment",
        ],
        "check",
    ),
    (
        &["so many"],
        "the number that the sentence means, or: this many",
    ),
    (&["so long"], "as long, this long"),
    (
        &["of theirs", "of hers", "of his"],
        "their own; name the owner",
    ),
    (&["nobody's"], "name what has no owner"),
    (&["by nature"], "say why"),
    (&["is none of"], "is not one of"),
    (&["none any more"], "no longer exists"),
    (&["MOST_", "LONGEST_", "LARGEST_", "BIGGEST_"], "MAX_"),
    (&["FEWEST_", "LEAST_", "SHORTEST_", "SMALLEST_"], "MIN_"),
];

/// The rule for sentences of `.md` files and doc comments.
const SENTENCES: &str = "long sentence";
const MAX_WORDS: usize = 25;
/// Holds the forbidden words themselves.
const THIS_FILE: &str = "xtask/src/prose.rs";
const COUNTS: &str = "xtask/prose.json";

/// Findings per rule and top-level folder; files beside the folders count for `.`.
type Counts = BTreeMap<String, BTreeMap<String, usize>>;

/// `cargo xtask prose`.
#[derive(Debug, clap::Args)]
pub(crate) struct Prose {
    /// List all findings below these files and folders, and check nothing
    paths: Vec<String>,
    /// Write the counts that have sunk, or moved to another folder, to xtask/prose.json
    #[arg(long)]
    lower: bool,
}

struct Finding {
    rule: &'static str,
    path: String,
    line: usize,
    /// What was found, and what to write instead.
    text: String,
}

/// # Errors
/// A count rose; or a file cannot be read or written.
pub(crate) fn check(arguments: &Prose) -> Result<()> {
    let findings = tracked_findings()?;
    if !arguments.paths.is_empty() {
        let is_below = |path: &str| {
            arguments
                .paths
                .iter()
                .any(|at| Path::new(path).starts_with(at))
        };
        print(findings.iter().filter(|finding| is_below(&finding.path)));
        return Ok(());
    }
    let counted = count(&findings);
    let file = root().join(COUNTS);
    let allowed: Counts = match fs::read(&file) {
        Ok(json) => serde_json::from_slice(&json)?,
        Err(error) => return Err(format!("{COUNTS}: {error}").into()),
    };
    if arguments.lower {
        if let Some(rule) = counted
            .keys()
            .find(|rule| total(&counted, rule) > total(&allowed, rule))
        {
            return Err(format!("{rule:?} is found more often than {COUNTS} allows").into());
        }
        return Ok(fs::write(
            &file,
            serde_json::to_string_pretty(&counted)? + "\n",
        )?);
    }
    let risen = differences(&counted, &allowed);
    for (rule, folder, now, before) in &risen {
        println!("{rule:?} in {folder}: {now} findings, {before} are allowed");
        print(
            findings
                .iter()
                .filter(|one| one.rule == *rule && top_folder(&one.path) == *folder),
        );
    }
    for (rule, folder, before, now) in differences(&allowed, &counted) {
        println!("{rule:?} in {folder}: {before} sank to {now}; run cargo xtask prose --lower");
    }
    match risen.len() {
        0 => Ok(()),
        _ => Err("write these in plain English, see xtask/src/prose.rs".into()),
    }
}

fn print<'a>(findings: impl Iterator<Item = &'a Finding>) {
    for Finding {
        path, line, text, ..
    } in findings
    {
        println!("{path}:{line}: {text}");
    }
}

fn tracked_findings() -> Result<Vec<Finding>> {
    let listed = output(&mut command(
        "git",
        ["ls-files", "-z", "--", "*.rs", "*.md"],
    ))?;
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
    let finding = |rule, line, text| Finding {
        rule,
        path: path.to_owned(),
        line,
        text,
    };
    let mut findings = Vec::new();
    for (line, words) in (1..).zip(text.lines()) {
        for (forms, better) in WORDS {
            let found = forms.iter().map(|form| (occurrences(words, form), form));
            for (times, form) in found {
                let text = format!("{form:?}, better: {better}");
                findings.extend((0..times).map(|_| finding(forms[0], line, text.clone())));
            }
        }
    }
    for (line, words) in sentences(text, path.ends_with(".rs")) {
        if words > MAX_WORDS {
            let text = format!("a sentence of {words} words, at most {MAX_WORDS}");
            findings.push(finding(SENTENCES, line, text));
        }
    }
    findings
}

/// How often a line has `form`: as whole words in text or between a name's underscores, or as the begin of a constant.
fn occurrences(line: &str, form: &str) -> usize {
    let is_constant = form.ends_with('_');
    let line = if is_constant {
        line.to_owned()
    } else {
        line.to_lowercase()
    };
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

/// The line and the number of words of each sentence of a `.md` file, or of doc comments; neither of code nor of tables.
fn sentences(text: &str, is_rust: bool) -> Vec<(usize, usize)> {
    let (mut sentences, mut is_code) = (Vec::new(), false);
    // Of the sentence that goes on: where it begins, and its words so far.
    let (mut begin, mut words) = (0, 0);
    let mut end = |words: &mut usize, begin| {
        let words = std::mem::take(words);
        sentences.extend((words > 0).then_some((begin, words)));
    };
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let prose = match is_rust {
            true => line
                .strip_prefix("///")
                .or_else(|| line.strip_prefix("//!")),
            false => Some(line),
        };
        let prose = prose.unwrap_or("").trim();
        let is_fence = prose.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || prose.is_empty() || prose.starts_with(['|', '#']) {
            end(&mut words, begin);
            continue;
        }
        if prose.starts_with("* ") || prose.starts_with("- ") {
            end(&mut words, begin);
        }
        // What stands between backquotes is one word.
        for (part, text) in prose.split('`').enumerate() {
            if part % 2 == 1 {
                begin = if words == 0 { number } else { begin };
                words += 1;
                continue;
            }
            for word in text.split_whitespace() {
                if word.contains(char::is_alphanumeric) {
                    begin = if words == 0 { number } else { begin };
                    words += 1;
                }
                if word
                    .trim_end_matches(['*', '_', ')', '"'])
                    .ends_with(['.', '?', '!'])
                {
                    end(&mut words, begin);
                }
            }
        }
    }
    end(&mut words, begin);
    sentences
}

fn top_folder(path: &str) -> &str {
    path.split_once('/').map_or(".", |(folder, _)| folder)
}

fn count(findings: &[Finding]) -> Counts {
    let mut counts = Counts::new();
    for finding in findings {
        let folders = counts.entry(finding.rule.to_owned()).or_default();
        *folders
            .entry(top_folder(&finding.path).to_owned())
            .or_default() += 1;
    }
    counts
}

fn total(counts: &Counts, rule: &str) -> usize {
    counts.get(rule).map_or(0, |folders| folders.values().sum())
}

/// Rule, folder and both counts, wherever the first is higher.
fn differences<'a>(more: &'a Counts, less: &Counts) -> Vec<(&'a str, &'a str, usize, usize)> {
    let mut different = Vec::new();
    for (rule, folders) in more {
        for (folder, count) in folders {
            let other = less.get(rule).and_then(|folders| folders.get(folder));
            let other = other.copied().unwrap_or(0);
            if *count > other {
                different.push((rule.as_str(), folder.as_str(), *count, other));
            }
        }
    }
    different
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let found = findings_of(path, text);
        found
            .iter()
            .map(|finding| (finding.rule, finding.line))
            .collect()
    }

    #[test]
    fn finds_words_in_text_and_names() {
        let text = "It Tells.\nfn that_told() {}\nretell, tellurium\nso many, so\nmany";
        assert_eq!(
            lines("a.md", text),
            [("tell", 1), ("tell", 2), ("so many", 4)]
        );
        let constants = "const MOST_PARTS, OUR_MOST_, Most_ of; LEAST_WORDS";
        assert_eq!(lines("a.rs", constants), [("MOST_", 1), ("FEWEST_", 1)]);
    }

    #[test]
    fn counts_the_words_of_sentences() {
        let text = "One two\nthree `four five`. Six\n\n```\nno code\n```\n| no table |\n* seven (eight.) nine";
        assert_eq!(sentences(text, false), [(1, 4), (2, 1), (8, 2), (8, 1)]);
        let rust = "/// One two.\n// not this\nlet a = 1;\n    //! Three\n    //! four";
        assert_eq!(sentences(rust, true), [(1, 2), (4, 2)]);
        let long = "word ".repeat(MAX_WORDS + 1);
        assert_eq!(lines("a.md", &long), [(SENTENCES, 1)]);
        assert_eq!(lines("a.md", &long[5..]), []);
    }

    #[test]
    fn sees_what_rose_and_what_sank() {
        let found = |path| findings_of(path, "tell");
        let two = count(
            &[found("a/x.rs"), found("y.md")]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>(),
        );
        let one = count(&found("a/x.rs"));
        assert_eq!(differences(&two, &one), [("tell", ".", 1, 0)]);
        assert_eq!(differences(&one, &two), []);
        assert_eq!((total(&two, "tell"), total(&one, "tell")), (2, 1));
    }
}
