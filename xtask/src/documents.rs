//! Paths that the documents name exist.

use std::fs;
use std::path::Path;

use crate::process::root;

/// The documents that lead a reader through the code.
const DOCUMENTS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// What `text` has between backticks that begins with a folder of the repository.
fn paths(text: &str, is_folder: impl Fn(&str) -> bool) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let named = quoted.filter(|path| {
        let mut parts = path.split('/');
        parts.next().is_some_and(&is_folder) && parts.next().is_some() && !path.contains(' ')
    });
    named.flat_map(choices).collect()
}

/// `a/b` and `a/c` of `a/{b,c}`.
fn choices(path: &str) -> Vec<String> {
    let Some((head, (list, tail))) = path
        .split_once('{')
        .and_then(|(head, rest)| Some((head, rest.split_once('}')?)))
    else {
        return vec![path.to_owned()];
    };
    let list = list.split(',');
    list.map(|choice| format!("{head}{choice}{tail}")).collect()
}

fn exists(path: &Path) -> bool {
    // A module may be named without its extension.
    path.exists() || path.with_extension("rs").exists()
}

#[test]
fn paths_in_documents_exist() {
    let is_folder = |name: &str| !name.is_empty() && root().join(name).is_dir();
    let mut seen = 0;
    for document in DOCUMENTS {
        let text = fs::read_to_string(root().join(document)).expect("a document");
        for path in paths(&text, is_folder) {
            seen += 1;
            assert!(exists(&root().join(&path)), "{document} names {path}");
        }
    }
    assert!(seen > 20, "only {seen} paths were found");
}

#[test]
fn choices_in_braces_are_paths_of_their_own() {
    let found = paths("`a/{b,c}.rs` and `d`, `x/y`", |name| {
        name == "a" || name == "d"
    });
    assert_eq!(found, ["a/b.rs", "a/c.rs"]);
}
