//! The layers of the tracer's modules, as the drawing in `src/lib.rs` shows them: which part uses which.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each part of the crate, and the other parts that it uses.
const USES: &[(&str, &[&str])] = &[
    ("sync", &[]),
    ("lockfree", &["sync"]),
    ("os", &[]),
    ("config", &["dialects", "os"]),
    // Session and hot path meet in the recorder. A fork resets each part that has state.
    ("session", &["config", "counters", "devices", "dialects", "hot", "lockfree", "os", "quirks", "samples"]),
    // Who drains writes streams of the session; signal handlers use the rest.
    ("samples", &["dialects", "hot", "lockfree", "os", "session"]),
    // Its callbacks are called in the place of the usual ones.
    ("counters", &["config", "dialects", "hot", "os", "session"]),
    // The slow path starts the session of a forked child.
    ("hot", &["counters", "devices", "entry", "lockfree", "os", "quirks", "samples", "session"]),
    ("quirks", &["dialects", "hot", "os", "session"]),
    ("devices", &["hot", "os", "session"]),
    ("chain", &["dialects", "os", "quirks"]),
    ("dialects", &["counters", "entry", "hot", "os", "quirks", "samples", "session"]),
    ("entry", &["chain", "config", "counters", "devices", "dialects", "os", "quirks", "samples", "session"]),
];

fn sources(path: &Path, into: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            sources(&entry.unwrap().path(), into);
        }
    } else {
        into.push(path.to_path_buf());
    }
}

/// The parts whose names follow `crate::` outside comments.
fn used(part: &str) -> BTreeSet<String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folder = src.join(part);
    let mut files = Vec::new();
    let path = if folder.is_dir() { folder } else { src.join(format!("{part}.rs")) };
    sources(&path, &mut files);
    let mut used = BTreeSet::new();
    for file in files {
        for line in fs::read_to_string(file).unwrap().lines() {
            let code = line.split("//").next().unwrap();
            for path in code.split("crate::").skip(1) {
                let name = path.split(|c: char| !(c.is_alphanumeric() || c == '_')).next();
                used.insert(name.unwrap().to_owned());
            }
        }
    }
    used.remove(part);
    used
}

#[test]
fn each_part_uses_only_those_of_its_row() {
    for (part, uses) in USES {
        let uses: BTreeSet<String> = uses.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(used(part), uses, "of `{part}`");
    }
}

#[test]
fn each_module_of_the_crate_has_a_row() {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let modules: BTreeSet<&str> = lib
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    assert_eq!(modules, USES.iter().map(|(part, _)| *part).collect());
}
