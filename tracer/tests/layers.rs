//! Checks the layers of the tracer's modules, as drawn in `src/lib.rs`: each uses only those below it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The layers in the drawing (the first text block), from top to bottom. Two spaces separate a layer from its
/// explanation.
fn layers(lib: &str) -> Vec<Vec<&str>> {
    let drawing = lib.split("```").nth(1).expect("a drawing");
    let lines =
        drawing.lines().skip(1).filter_map(|line| line.strip_prefix("//! ")).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let names = line.split("  ").next().expect("a first part");
            names.split(", ").collect()
        })
        .collect()
}

/// The crate's modules, as declared in `lib.rs`.
fn modules(lib: &str) -> BTreeSet<&str> {
    let lines = lib.lines();
    lines.filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')).collect()
}

/// The modules whose names follow `crate::`, except in test code.
fn used(text: &str) -> BTreeSet<&str> {
    let mut used = BTreeSet::new();
    let mut of_tests = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = &line[..line.len() - line.trim_start().len()];
        if line.trim() == "#[cfg(test)]" && lines.peek().is_some_and(|next| next.ends_with('{')) {
            of_tests = Some(format!("{indent}}}"));
        }
        if let Some(end) = &of_tests {
            if line == end {
                of_tests = None;
            }
            continue;
        }
        let code = line.split("//").next().unwrap_or_default();
        for path in code.split("crate::").skip(1) {
            used.extend(path.split(|c: char| !(c.is_alphanumeric() || c == '_')).next());
        }
    }
    used
}

/// The modules that this module uses although they are not below it.
fn upward(layers: &[Vec<&str>], module: &str, text: &str) -> Vec<String> {
    let height: BTreeMap<&str, usize> = layers
        .iter()
        .rev()
        .enumerate()
        .flat_map(|(height, names)| names.iter().map(move |name| (*name, height)))
        .collect();
    let is_below = |name: &&str| name == &module || height.get(name) < height.get(module);
    used(text).into_iter().filter(|name| !is_below(name)).map(|name| format!("{module} -> {name}")).collect()
}

fn files(path: &Path, into: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), into);
        }
    } else {
        into.push(path.to_path_buf());
    }
}

#[test]
fn each_module_uses_only_those_below_it() {
    let lib = fs::read_to_string(source().join("lib.rs")).unwrap();
    let layers = layers(&lib);
    let (mut all, mut found) = (Vec::new(), Vec::new());
    files(&source(), &mut all);
    for file in all {
        let place = file.strip_prefix(source()).unwrap().with_extension("");
        let module = place.iter().next().unwrap().to_str().unwrap();
        // Replaces the module without the prefix on some CPU architectures.
        let module = module.trim_start_matches("no_");
        if module != "lib" {
            let text = fs::read_to_string(&file).unwrap();
            found.extend(
                upward(&layers, module, &text).into_iter().map(|way| format!("{}: {way}", file.display())),
            );
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn the_drawing_has_each_module_once() {
    let lib = fs::read_to_string(source().join("lib.rs")).unwrap();
    let mut drawn: Vec<&str> = layers(&lib).concat();
    drawn.sort_unstable();
    assert_eq!(drawn, modules(&lib).into_iter().collect::<Vec<_>>());
}

#[test]
fn a_use_upward_is_found() {
    let layers = [vec!["entry"], vec!["chain", "callbacks"], vec!["session"]];
    let of_session = |text| upward(&layers, "session", text);
    assert_eq!(of_session("use crate::session::hooks;"), [""; 0]);
    assert_eq!(of_session("fn f() {\n    crate::entry::start::begin();\n}"), ["session -> entry"]);
    assert_eq!(upward(&layers, "entry", "use crate::session::hooks;\nuse crate::chain;"), [""; 0]);
    // Modules of the same layer do not use each other.
    assert_eq!(upward(&layers, "chain", "use crate::callbacks;"), ["chain -> callbacks"]);
    let tests =
        "use crate::chain;\n#[cfg(test)]\nmod tests {\n    use crate::entry;\n}\nuse crate::callbacks;";
    assert_eq!(of_session(tests), ["session -> callbacks", "session -> chain"]);
    assert_eq!(of_session("//! See [`crate::entry`].\n"), [""; 0]);
}
