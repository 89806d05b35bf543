//! Finds out which commit the program is built from, for `omptrace --version`.

#![expect(clippy::disallowed_macros, reason = "cargo reads what is printed")]

use std::env;
use std::fs;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=OMPTRACE_COMMIT");
    let commit = env::var("OMPTRACE_COMMIT").ok().or_else(of_package);
    // A debug build would be compiled anew after each commit.
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = commit.or_else(|| is_release.then(of_checkout).flatten());
    let commit = commit.filter(|commit| !commit.is_empty());
    let unknown = if is_release { "commit unknown" } else { "debug build" };
    let commit = commit.unwrap_or_else(|| unknown.to_owned());
    println!("cargo::rustc-env=OMPTRACE_COMMIT={commit}");
}

/// The commit that `cargo publish` has noted in a package.
fn of_package() -> Option<String> {
    let noted = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = noted.split_once("\"sha1\"")?;
    rest.split('"').nth(1).map(shortened)
}

/// The commit that is checked out; none where the sources lie in another project's repository.
fn of_checkout() -> Option<String> {
    if !fs::exists("../.git").ok()? {
        return None;
    }
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "HEAD"]).map(|commit| shortened(&commit))
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn shortened(commit: &str) -> String {
    commit.chars().take(10).collect()
}
