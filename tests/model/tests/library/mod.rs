//! What the tests share.
#![allow(dead_code, reason = "not every test uses all of it")]

mod number;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use number::number;

/// The program `omptrace`, built where nobody says where it is.
pub(crate) fn omptrace() -> PathBuf {
    built("--bin=omptrace", "omptrace-cli", "omptrace")
}

/// A file of a package, built where nobody says where it is.
pub(crate) fn built(what: &str, package: &str, file: &str) -> PathBuf {
    if let Some(folder) = env::var_os("OMPTRACE_TEST_BIN_DIR") {
        let existing = Path::new(&folder).join(file);
        if existing.exists() {
            return existing;
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", what, "--package", package]).current_dir(&root);
    assert!(build.status().expect("cargo runs").success(), "{build:?}");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    target.join("debug").join(file)
}
