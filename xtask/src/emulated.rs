//! Programs for aarch64: how they are made and run here.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{command, root};
use crate::setup::tools::tools;

/// As Rust and its tools name it.
pub(crate) const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Where the cross compiler's libraries lie.
pub(crate) const SYSROOT: &str = "/usr/aarch64-linux-gnu";

/// GCC, with the libgomp of its own.
pub(crate) fn gcc(source: &str, flags: &[&str], program: &Path) -> Vec<Command> {
    let mut gcc = command("aarch64-linux-gnu-gcc", ["-g", "-fopenmp", "-o"]);
    gcc.arg(program).args(flags).arg(root().join(source));
    vec![gcc]
}

/// Clang, with the runtime in [`llvm`].
pub(crate) fn clang(source: &str, flags: &[&str], program: &Path) -> Vec<Command> {
    let object = program.with_extension("o");
    let mut clang = command("clang-22", ["-g", "-fopenmp", "--target=aarch64-linux-gnu", "-c", "-isystem"]);
    clang.arg(tools().join("headers/llvm-19")).arg("-o").arg(&object).args(flags).arg(root().join(source));
    clang.arg(format!("--sysroot={SYSROOT}")).arg("-isystem").arg(format!("{SYSROOT}/include"));
    let mut link = command("aarch64-linux-gnu-gcc", ["-o"]);
    link.args([program, &object]).arg("-L").arg(llvm()).arg("-lomp");
    vec![clang, link]
}

/// The folder of LLVM 19's runtime.
pub(crate) fn llvm() -> PathBuf {
    tools().join("runtimes/aarch64-llvm-19")
}

/// Runs a program with variables that are its own and not qemu's. The caller adds its arguments.
pub(crate) fn on_aarch64(program: &Path, variables: &[(&str, String)]) -> Command {
    let mut qemu = command("qemu-aarch64-static", ["-L", SYSROOT]);
    for (name, value) in variables {
        qemu.arg("-E").arg(format!("{name}={value}"));
    }
    qemu.arg(program);
    qemu
}
