//! All messages and help texts in one file, `xtask/texts.md`, to be read in one go and to be checked as English.
//!
//! They are collected from the sources: the help that tests of the program have reviewed, and string literals of four words or
//! more. After a change: `OMPTRACE_BLESS=1 cargo test -p xtask texts`, then read the diff.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::root;

/// Where the texts lie that are collected.
const COLLECTED: &str = "xtask/texts.md";

/// The reviewed output of each command's `--help`.
const HELP: &str = "cli/tests/cli/help";

/// Folders with sources whose texts people read.
const SOURCES: [&str; 12] = [
    "adapters/libgomp/src",
    "analysis/report/src",
    "analysis/src",
    "cli/src",
    "device/src",
    "ompt/conformance/src",
    "ompt/known-runtimes/src",
    "timeline/src",
    "trace-format/src",
    "tracer/settings/src",
    "tracer/src",
    "viewer-export/src",
];

/// A literal with fewer words is a name or a label.
const MIN_WORDS: usize = 4;

/// Literals behind these are for developers: they say why something cannot happen.
const FOR_DEVELOPERS: [&str; 7] =
    ["expect(", "assert!(", "assert_eq!(", "panic!(", "unreachable!(", "note =", "reason ="];

/// Files that only tests have.
const FILES_OF_TESTS: [&str; 3] = ["tests.rs", "simulated.rs", "schema.rs"];

/// The files of a folder with this extension, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    let of = |path: PathBuf| match path.is_dir() {
        true => files(&path, extension),
        false if path.extension().is_some_and(|end| end == extension) => vec![path],
        false => Vec::new(),
    };
    entries.into_iter().flat_map(of).collect()
}

/// The string literals of Rust code before its tests.
fn literals(code: &str) -> Vec<String> {
    let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(character) = code[at..].chars().next() {
        let rest = &code[at..];
        at += match character {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            'r' if rest.starts_with("r\"") || rest.starts_with("r#") => raw_literal(rest).unwrap_or(1),
            '\'' => character_literal(rest),
            '"' => {
                let length = 1 + end_of_literal(&rest[1..]);
                let before = code[..at].trim_end();
                if !FOR_DEVELOPERS.iter().any(|word| before.ends_with(word.trim_end())) {
                    found.push(unescaped(&rest[1..length]));
                }
                length + 1
            }
            _ => character.len_utf8(),
        };
        at = at.min(code.len());
    }
    found
}

/// The length of a raw literal, which holds code of another language; `None` for a raw identifier.
fn raw_literal(code: &str) -> Option<usize> {
    let hashes = code[1..].bytes().take_while(|byte| *byte == b'#').count();
    let begin = 1 + hashes + 1;
    if code.as_bytes().get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    Some(begin + code[begin..].find(&end)? + end.len())
}

/// The length of `'a'`, `'\n'`, or of the mark of a lifetime.
fn character_literal(code: &str) -> usize {
    let mut inside = code[1..].char_indices();
    match inside.next() {
        Some((_, '\\')) => code[3..].find('\'').map_or(1, |end| 3 + end + 1),
        Some((_, character)) if code[1 + character.len_utf8()..].starts_with('\'') => {
            2 + character.len_utf8()
        }
        _ => 1,
    }
}

/// Where the quotation mark is that ends a literal.
fn end_of_literal(code: &str) -> usize {
    let mut is_escaped = false;
    let end = code.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.unwrap_or(code.len())
}

/// The text of a literal on one line, with its placeholders as code.
fn unescaped(literal: &str) -> String {
    let mut text = String::new();
    let mut characters = literal.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some('\n')) => while characters.next_if(|next| next.is_whitespace()).is_some() {},
            ('\\', Some('n' | 't')) => {
                characters.next();
                text.push(' ');
            }
            ('\\', Some('u')) => {
                let code: String = characters.by_ref().skip(2).take_while(|next| *next != '}').collect();
                text.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
            }
            ('\\', _) => text.extend(characters.next()),
            ('{', Some('{')) | ('}', Some('}')) => text.extend(characters.next()),
            ('{', _) => {
                let name: String = characters.by_ref().take_while(|next| *next != '}').collect();
                let name = name.split(':').next().unwrap_or_default().trim();
                write!(text, "`{}`", if name.is_empty() { "…" } else { name }).expect("a string");
            }
            _ => text.push(character),
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether people read it: not code, a pattern or markup.
fn is_prose(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic));
    let is_code = [
        "</",
        "=\"",
        "SELECT",
        "#[",
        "();",
        "fn ",
        "0x",
        "ptr ",
        "[sp",
        "mov ",
        "cfi_",
        "adrp ",
        "add `",
        "ldr ",
        "-src ",
        "Examples:",
        "!\"",
        "[OPTIONS]",
    ]
    .iter()
    .any(|mark| text.contains(mark));
    words.count() >= MIN_WORDS && !is_code
}

/// The paragraphs of a reviewed help text, each on one line; not its usage lines, option names and examples.
fn help_paragraphs(help: &str) -> Vec<String> {
    let mut paragraphs = Vec::new();
    let mut is_example = false;
    // Lines between paragraphs may have blanks.
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    for block in help.join("\n").split("\n\n") {
        is_example |= block.trim_start().starts_with("Example");
        if is_example || block.starts_with("Usage") || block.starts_with("Commands:") {
            continue;
        }
        /// Descriptions are indented by this much, options by less.
        const DESCRIPTION: usize = 10;
        let is_text = |line: &&str| {
            let words = line.trim_start();
            // Notes below the options are not indented, and their lines may begin with an option.
            let is_option = words.starts_with('-') && (1..DESCRIPTION).contains(&(line.len() - words.len()));
            let is_heading = line.ends_with(':') && words == *line || words == "Possible values:";
            !is_option && !words.starts_with('<') && !is_heading
        };
        let mut words: Vec<&str> = Vec::new();
        for line in block.lines().filter(is_text).map(str::trim) {
            match line.strip_prefix("- ").and_then(|value| value.split_once(':')) {
                // A possible value, and what it means.
                Some((_, meaning)) => {
                    paragraphs.push(words.join(" "));
                    words = meaning.split_whitespace().collect();
                }
                None => words.extend(line.split_whitespace()),
            }
        }
        paragraphs.push(words.join(" "));
    }
    paragraphs.retain(|paragraph| is_prose(paragraph));
    paragraphs
}

/// The text with options, names and formats as code, which is no English.
fn with_code(text: &str) -> String {
    const BEFORE: [char; 3] = ['"', '(', '['];
    const AFTER: [char; 7] = ['"', ')', ']', ',', '.', ';', ':'];
    let is_code = |inside: &str| {
        let is_joined = |mark: char| inside.contains(mark) && !inside.contains("://");
        inside == "?"
            || inside.starts_with('-') && inside.len() > 1
            || ['_', '=', '<', '>', '*', '%', '|', '@', ','].into_iter().any(is_joined)
            || inside.contains(['.', ':', '/', '(']) && inside.chars().any(char::is_alphanumeric)
    };
    let marked = |word: &str| {
        let inside = word.trim_start_matches(BEFORE).trim_end_matches(AFTER);
        match inside.is_empty() || !is_code(inside) {
            true => word.to_owned(),
            false => word.replacen(inside, &format!("`{inside}`"), 1),
        }
    };
    // Every second part is code already.
    let parts = text.split('`').enumerate().map(|(number, part)| match number % 2 {
        0 => part.split(' ').map(marked).collect::<Vec<_>>().join(" "),
        _ => format!("`{part}`"),
    });
    parts.collect()
}

/// All of them, by file, each text once.
fn collect() -> String {
    let mut text = String::from(
        "# All messages and help texts\n\n<!-- Collected from the sources: OMPTRACE_BLESS=1 cargo test -p xtask texts -->\n",
    );
    let mut seen = std::collections::HashSet::new();
    let mut add = |path: &Path, texts: Vec<String>| {
        let texts: Vec<String> = texts.into_iter().filter(|text| seen.insert(text.clone())).collect();
        if !texts.is_empty() {
            let name = path.strip_prefix(root()).expect("in the repository").display();
            write!(text, "\n## `{name}`\n\n").expect("a string");
            for line in texts {
                // Links of Markdown are not links here.
                writeln!(text, "- {}", with_code(&line).replace("](", "] (")).expect("a string");
            }
        }
    };
    for path in files(&root().join(HELP), "txt") {
        add(&path, help_paragraphs(&fs::read_to_string(&path).expect("a file")));
    }
    for path in SOURCES.iter().flat_map(|folder| files(&root().join(folder), "rs")) {
        let code = fs::read_to_string(&path).expect("a file");
        let is_test = path.file_name().is_some_and(|name| FILES_OF_TESTS.iter().any(|test| name == *test));
        let texts = literals(&code).into_iter().filter(|text| !is_test && is_prose(text));
        add(&path, texts.collect());
    }
    text
}

#[test]
fn texts_are_as_reviewed() {
    let path = root().join(COLLECTED);
    let collected = collect();
    if std::env::var_os("OMPTRACE_BLESS").is_some() {
        fs::write(&path, &collected).expect("can be written");
    }
    let reviewed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        collected == reviewed,
        "OMPTRACE_BLESS=1 cargo test -p xtask texts; then read the diff of {COLLECTED}"
    );
}

#[test]
fn literals_are_those_of_code() {
    let code = "f(\"cannot run {name:?}: \\\n    {}\"); // \"not this one at all\"\n let c = '\"'; g(r#\"nor this \"one\" here\"#);
x.expect(\"it is there\"); h(\"b\");\n#[cfg(test)]\nmod tests { \"nor this\" }";
    assert_eq!(literals(code), ["cannot run `name`: `…`", "b"]);
}
