//! The words of `--help` are reviewed as files. After a change: `OMPTRACE_BLESS=1 cargo test -p omptrace-cli`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{folder, omptrace, run};

/// The commands that `omptrace --help` lists.
pub(crate) fn commands(folder: &Path) -> Vec<String> {
    let help = run(omptrace(folder).arg("--help")).stdout;
    let list = help.split("Commands:\n").nth(1).unwrap();
    let lines = list.lines().take_while(|line| !line.is_empty());
    // A description that takes several lines is indented more.
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn help_is_as_reviewed() {
    let folder = folder("help_is_as_reviewed");
    let commands = commands(&folder);
    assert!(commands.len() > 10, "{commands:?}");
    for command in std::iter::once(String::new()).chain(commands) {
        let mut omptrace = omptrace(&folder);
        omptrace.args(command.split_whitespace()).arg("--help");
        let said = run(&mut omptrace);
        assert_eq!(said.status, Some(0));
        let name = if command.is_empty() { "omptrace" } else { &command };
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cli/help/{name}.txt"));
        if std::env::var_os("OMPTRACE_BLESS").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &said.stdout).unwrap();
        }
        let reviewed = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(said.stdout, reviewed, "{}", file.display());
    }
}

#[test]
fn the_short_help_fits_a_screen_and_names_the_long_one() {
    let folder = folder("the_short_help_fits_a_screen");
    for command in commands(&folder) {
        let said = run(omptrace(&folder).args([&command, "-h"]));
        assert_eq!(said.status, Some(0), "{command}");
        let lines = said.stdout.lines().count();
        assert!(lines <= 46, "{command}: {lines} lines\n{}", said.stdout);
        let more = format!("All options, with examples: omptrace {command} --help");
        assert!(said.stdout.contains(&more), "{}", said.stdout);
        let long = run(omptrace(&folder).args([&command, "--help"]));
        assert!(
            long.stdout.contains("Examples:") || long.stdout.contains("Example"),
            "{command}\n{}",
            long.stdout
        );
    }
}

#[test]
fn findings_are_explained_without_network() {
    let folder = folder("findings_are_explained_without_network");
    let said = run(omptrace(&folder).args(["help", "load_imbalance"]));
    assert_eq!((said.status, said.stderr.as_str()), (Some(0), ""));
    assert!(said.stdout.starts_with("# Load imbalance\n"), "{}", said.stdout);
    let all = run(omptrace(&folder).args(["help", "findings"]));
    assert!(all.stdout.contains("  load_imbalance "), "{}", all.stdout);
    let command = run(omptrace(&folder).args(["help", "record"]));
    assert!(command.stdout.contains("Usage: omptrace record"), "{}", command.stdout);
    assert_eq!(run(omptrace(&folder).args(["help", "nonsense"])).status, Some(2));
}

#[test]
fn the_man_page_names_every_command_and_option() {
    let folder = folder("the_man_page_names_every_command_and_option");
    let said = run(omptrace(&folder).arg("man"));
    assert_eq!(said.status, Some(0));
    for command in commands(&folder) {
        let heading = format!(".SH \"OMPTRACE {}\"", command.to_uppercase());
        assert!(said.stdout.contains(&heading), "{heading}");
    }
    for option in ["\\-\\-events", "\\-\\-libgomp", "\\-\\-to", "\\-\\-json"] {
        assert!(said.stdout.contains(option), "{option}");
    }
    assert!(!said.stdout.contains("doctor-probe") && !said.stdout.contains("doctor\\-probe"));
}

#[test]
fn every_shell_gets_completions() {
    let folder = folder("every_shell_gets_completions");
    for shell in ["bash", "zsh", "fish"] {
        let said = run(omptrace(&folder).args(["completions", shell]));
        assert_eq!(said.status, Some(0));
        assert!(said.stdout.contains("recover"), "{shell}");
    }
}

#[test]
fn bash_completes_files_and_each_event_of_a_list() {
    let folder = folder("bash_completes_files_and_each_event_of_a_list");
    let said = run(omptrace(&folder).args(["completions", "bash"]));
    fs::write(folder.join("completions"), said.stdout).unwrap();
    fs::write(folder.join("app.omptrace"), "").unwrap();
    // As bash does it: the function's answers, else those of `-o default`, which are files.
    let complete = |words: &[&str]| {
        let script = format!(
            ". ./completions; COMP_WORDS=(omptrace {}); COMP_CWORD={}; COMPREPLY=(); \
             _omptrace omptrace \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; \
             echo \"${{COMPREPLY[@]}}\"; complete -p omptrace",
            words.join(" "),
            words.len()
        );
        let said = run(Command::new("bash").args(["-c", &script]).current_dir(&folder));
        assert_eq!(said.stderr, "", "{words:?}");
        said.stdout
    };
    let events = complete(&["record", "--events", "default,-mutex,task_c"]);
    assert!(events.starts_with("default,-mutex,task_create\n"), "{events}");
    let first = complete(&["record", "--events", "fl"]);
    assert!(first.starts_with("flush\n"), "{first}");
    let files = complete(&["stats", "app."]);
    assert!(files.starts_with('\n') && files.contains("-o default"), "{files}");
}

#[test]
fn without_a_command_four_lines_say_what_to_do() {
    let folder = folder("without_a_command_four_lines_say_what_to_do");
    let said = run(&mut omptrace(&folder));
    assert_eq!((said.status, said.stdout.as_str()), (Some(2), ""));
    assert_eq!(said.stderr.lines().count(), 4, "{}", said.stderr);
    for command in ["record ./app", "stats FILE", "--help", "doctor ./app"] {
        assert!(said.stderr.contains(command), "{}", said.stderr);
    }
    assert!(said.stderr.lines().all(|line| line.len() <= 80));
}

#[test]
fn the_version_has_a_commit_and_the_format_of_traces() {
    let folder = folder("the_version_has_a_commit_and_the_format_of_traces");
    let said = run(omptrace(&folder).arg("--version"));
    let version = concat!("omptrace ", env!("CARGO_PKG_VERSION"), " (");
    assert!(said.stdout.starts_with(version), "{}", said.stdout);
    assert!(said.stdout.ends_with(", trace format 1)\n"), "{}", said.stdout);
}

#[test]
fn a_closed_pipe_is_success() {
    let folder = folder("a_closed_pipe_is_success");
    let mut child =
        omptrace(&folder).args(["completions", "bash"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Who forgets `record` wants to run a program.
#[test]
fn a_program_in_place_of_a_command_is_one_to_record() {
    let folder = folder("a_program_in_place_of_a_command");
    fs::write(folder.join("mandel"), "").unwrap();
    let said = run(omptrace(&folder).arg("./mandel"));
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("omptrace record ./mandel\n"), "{}", said.stderr);
}

#[test]
fn only_names_that_are_shown_and_similar_are_suggested() {
    let folder = folder("only_names_that_are_shown_and_similar");
    for (words, suggested) in [
        (&["mandel"][..], None),
        (&["stast"], Some("'stats'")),
        (&["record", "--foo", "./mandel"], None),
        (&["record", "--ouput", "x", "./mandel"], Some("'--output'")),
    ] {
        let said = run(omptrace(&folder).args(words));
        assert_eq!(said.status, Some(2));
        let tip = said.stderr.lines().find(|line| line.contains("tip:"));
        assert_eq!(tip.and_then(|tip| tip.split(": ").last()), suggested, "{}", said.stderr);
    }
}
