//! What the tests share.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number that the user sets in a variable.
pub(crate) fn number(variable: &str) -> Option<u64> {
    let value = env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is no number: {value}")))
}

/// The program `omptrace`, built where nobody says where it is.
pub(crate) fn omptrace() -> PathBuf {
    if let Some(folder) = env::var_os("OMPTRACE_TEST_BIN_DIR") {
        return Path::new(&folder).join("omptrace");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package=omptrace-cli"]).current_dir(&root);
    assert!(build.status().expect("cargo runs").success(), "{build:?}");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    target.join("debug/omptrace")
}
