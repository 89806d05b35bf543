//! The words of `--help` are reviewed as files. After a change: `OMPTRACE_BLESS=1 cargo test -p omptrace-cli`.

use std::fs;
use std::path::Path;

use crate::support::{folder, omptrace, run};

const COMMANDS: &[&str] = &[
    "",
    "record",
    "env",
    "recover",
    "symbolize",
    "convert",
    "view",
    "stats",
    "info",
    "dump",
    "check",
    "doctor",
];

#[test]
fn help_is_as_reviewed() {
    let folder = folder("help_is_as_reviewed");
    for command in COMMANDS {
        let mut omptrace = omptrace(&folder);
        omptrace.args(command.split_whitespace()).arg("--help");
        let said = run(&mut omptrace);
        assert_eq!(said.status, Some(0));
        let name = if command.is_empty() {
            "omptrace"
        } else {
            command
        };
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
fn the_man_page_names_every_command_and_option() {
    let folder = folder("the_man_page_names_every_command_and_option");
    let said = run(omptrace(&folder).arg("man"));
    assert_eq!(said.status, Some(0));
    for command in &COMMANDS[1..] {
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
fn a_closed_pipe_is_success() {
    let folder = folder("a_closed_pipe_is_success");
    let mut child = omptrace(&folder)
        .args(["completions", "bash"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
