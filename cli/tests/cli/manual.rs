//! The manual says what the program does.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use omptrace_settings::SETTINGS;

use crate::help::commands;
use crate::support::folder;

const BEGIN: &str = "<!-- variables: written by the test `the_manual_has_every_variable` -->\n";
const END: &str = "<!-- end of variables -->\n";

/// What was tried on real devices is said alike.
#[test]
fn the_documents_agree_on_devices() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for file in ["README.md", "docs/manual.md", "docs/devices.md"] {
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains("H200"), "{file}");
        assert!(!text.contains("has ever run on"), "{file}");
    }
}

/// `OMPTRACE_BLESS=1` writes the table.
#[test]
fn the_manual_has_every_variable() {
    let mut table = String::from("| variable | default | allowed | meaning |\n| --- | --- | --- | --- |\n");
    for setting in SETTINGS {
        let default = match setting.default {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        writeln!(
            table,
            "| `{}` | {default} | {} | {} |",
            setting.variable,
            (setting.allowed)(),
            setting.meaning
        )
        .unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/manual.md");
    let manual = fs::read_to_string(&path).unwrap();
    let (before, rest) = manual.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("OMPTRACE_BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, table, "OMPTRACE_BLESS=1 brings the manual up to date");
    }
}

#[test]
fn the_manual_has_every_command() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/manual.md");
    let manual = fs::read_to_string(manual).unwrap();
    for command in commands(&folder("the_manual_has_every_command")) {
        let name = format!("omptrace {command}");
        assert!(manual.contains(&name), "the manual has no {name}");
    }
}

#[test]
fn the_readme_names_commands_that_exist() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let known = commands(&folder("the_readme_names_commands_that_exist"));
    let lines = readme.lines().map(|line| line.trim_start_matches([' ', '`']));
    let named = lines.filter_map(|line| line.strip_prefix("omptrace ")?.split(' ').next());
    let named: Vec<&str> = named.filter(|word| word.chars().all(|c| c.is_ascii_lowercase())).collect();
    assert!(named.len() > 4, "{named:?}");
    for name in named {
        assert!(known.iter().any(|command| command == name), "the readme has omptrace {name}");
    }
}
