//! The documents are true: paths that they name exist, links lead somewhere, and the code map is that of the crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::documents::links::{anchors, links, resolved};
use crate::process::{cargo, command, output, root};

/// The documents that lead a reader through the code.
const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/internals.md"];

/// The texts between backticks that begin with a folder of the repository.
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
    let Some((head, (list, tail))) =
        path.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?)))
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

/// The crates that each crate of the workspace uses, by their folders; not those that only its tests use.
fn used() -> BTreeMap<String, BTreeSet<String>> {
    let all = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let metadata = output(&mut cargo(all)).expect("cargo knows the workspace");
    let metadata: Value = serde_json::from_slice(&metadata).expect("JSON");
    let list = |of: &Value, name: &str| of[name].as_array().expect("a list").clone();
    let folder = |path: &str| Some(Path::new(path).strip_prefix(root()).ok()?.to_str()?.to_owned());
    let packages = list(&metadata, "packages").into_iter();
    packages
        .map(|package| {
            let path = package["manifest_path"].as_str().expect("a path");
            let path = Path::new(path).parent().and_then(Path::to_str);
            let dependencies = list(&package, "dependencies").into_iter();
            let uses = dependencies.filter(|dependency| dependency["kind"].is_null());
            let uses = uses.filter_map(|dependency| folder(dependency["path"].as_str()?));
            (path.and_then(folder).expect("a folder"), uses.collect())
        })
        .collect()
}

#[test]
fn the_code_map_has_each_crate_and_draws_what_is_used() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("a document");
    assert!(text.len() <= 12 << 10, "ARCHITECTURE.md has {} bytes: more is read by nobody", text.len());
    let used = used();
    for folder in used.keys() {
        assert!(text.contains(&format!("| `{folder}` | ")), "{folder}");
    }
    let (_, map) = text.split_once("## Layers").expect("the drawing");
    let (drawing, _) = map.split_once("An arrow").expect("the drawing");
    let mut arrows = 0;
    for line in drawing.lines() {
        let names = line.split('<').map(|part| part.trim_matches([' ', '-', '+', '|']));
        let names: Vec<&str> = names.collect();
        for pair in names.windows(2) {
            let to = pair[0].split(' ').next_back().and_then(|name| used.get_key_value(name));
            let from = pair[1].split([' ', ',']).next().and_then(|name| used.get(name));
            if let (Some((to, _)), Some(uses)) = (to, from) {
                arrows += 1;
                assert!(uses.contains(to), "{line}");
            }
        }
    }
    assert!(arrows > 5, "only {arrows} arrows were found");
}

/// The members of the workspace go from the lowest layer to the highest, and each uses only those before it.
#[test]
fn no_crate_uses_one_of_a_higher_layer() {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let (_, members) = text.split_once("members = [").expect("members");
    let (members, _) = members.split_once("\n]").expect("members");
    let members = members.lines().filter_map(|line| line.split('"').nth(1));
    let members: Vec<&str> = members.collect();
    let used = used();
    assert_eq!(members.iter().copied().collect::<BTreeSet<_>>(), used.keys().map(String::as_str).collect());
    for (at, member) in members.iter().enumerate() {
        for uses in &used[*member] {
            assert!(members[..at].contains(&uses.as_str()), "{member} uses {uses} of a higher layer");
        }
    }
}

/// The model checks the analysis by means of its own.
#[test]
fn the_model_uses_nothing_that_it_checks() {
    let used = used();
    let mut reached = vec!["tests/model"];
    let mut at = 0;
    while let Some(name) = reached.get(at) {
        let more = used[*name].iter().map(String::as_str);
        let more: Vec<&str> = more.filter(|other| !reached.contains(other)).collect();
        reached.extend(more);
        at += 1;
    }
    reached.sort_unstable();
    assert_eq!(reached, ["ompt/sys", "tests/model", "tests/trace-builder", "trace-format"]);
}

/// What is packaged has the version of the crates.
#[test]
fn recipes_and_packages_have_the_version_of_the_crates() {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        ("python/pyproject.toml", format!("version = \"{VERSION}\"")),
        ("python/omptrace/__init__.py", format!("__version__ = \"{VERSION}\"")),
        ("packaging/conda/recipe.yaml", format!("version: \"{VERSION}\"")),
        ("packaging/debian/changelog", format!("omptrace ({VERSION}-1)")),
        ("CHANGELOG.md", format!("## {VERSION}")),
    ] {
        let text = fs::read_to_string(root().join(file)).expect(file);
        assert!(text.contains(&line), "{file}: no {line:?}");
    }
    let recipe = format!("packaging/easybuild/omptrace-{VERSION}-GCCcore-13.3.0.eb");
    let text = fs::read_to_string(root().join(&recipe)).expect(&recipe);
    assert!(text.contains(&format!("version = '{VERSION}'")), "{recipe}");
    let metadata = output(&mut cargo(["metadata", "--no-deps", "--offline", "--format-version=1"]));
    let metadata: Value = serde_json::from_slice(&metadata.expect("cargo")).expect("JSON");
    for package in metadata["packages"].as_array().expect("a list") {
        let dependencies = package["dependencies"].as_array().expect("a list").iter();
        let published = package["publish"].is_null();
        assert_eq!(package["version"], VERSION, "{}", package["name"]);
        // Of others, the registry wants to know which version.
        for dependency in dependencies.filter(|of| published && of["kind"] != "dev") {
            assert_ne!(dependency["req"], "*", "{}: {}", package["name"], dependency["name"]);
        }
    }
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

/// Links to files of the repository and to their headings; not those to the web.
#[test]
fn links_of_documents_lead_somewhere() {
    let words = ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"];
    let documents = output(&mut command("git", words)).expect("a checkout");
    let documents = String::from_utf8(documents).expect("UTF-8");
    let read = |path: &Path| fs::read_to_string(root().join(path)).unwrap_or_default();
    let mut seen = 0;
    for document in documents.lines().map(Path::new) {
        let text = read(document);
        for link in links(&text) {
            let folder = document.parent().unwrap_or(Path::new(""));
            let Some((path, heading)) = resolved(link.target, folder) else {
                continue;
            };
            let is_itself = link.target.starts_with('#');
            let path = if is_itself { document } else { &path };
            seen += 1;
            let name = format!("{}: {}", document.display(), link.target);
            assert!(root().join(path).exists(), "{name}");
            if let Some(heading) = heading {
                assert!(anchors(&read(path)).iter().any(|name| name == heading), "{name}");
            }
        }
    }
    assert!(seen > 50, "only {seen} links were found");
}

#[test]
fn choices_in_braces_are_paths_of_their_own() {
    let found = paths("`a/{b,c}.rs` and `d`, `x/y`", |name| name == "a" || name == "d");
    assert_eq!(found, ["a/b.rs", "a/c.rs"]);
}
