//! The product as this workspace builds it, and what the demo and the pictures do with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{cargo, command, root, run, target};
use crate::result::Result;
use crate::setup::tools::{openmp_flags, tools};

/// The folder that the release build of the program and, beside it, of the library lie in.
pub(crate) fn release() -> PathBuf {
    target().join("release")
}

/// The folder of the build for a first try: see `profile.quick` in the workspace's Cargo.toml.
pub(crate) fn quick() -> PathBuf {
    target().join("quick")
}

/// What users get.
const PRODUCT: [&str; 7] = [
    "--package=omptrace-tracer",
    "--package=omptrace-cli",
    "--package=omptrace-libgomp-adapter",
    "--package=omptrace-waits",
    "--package=omptrace-mpi",
    "--package=omptrace-mpi4",
    "--package=omptrace-mpi-large-count",
];

/// Builds the program and the libraries for release, and the conformance tool.
///
/// # Errors
/// They do not compile.
pub(crate) fn build() -> Result<()> {
    run(cargo(["build", "--release", "--package=ompt-conformance"]).args(PRODUCT))
}

/// Builds the program and the libraries for a first try.
///
/// # Errors
/// They do not compile.
pub(crate) fn build_quickly() -> Result<()> {
    run(cargo(["build", "--profile=quick"]).args(PRODUCT))
}

/// `omptrace`, as [`build`] made it.
pub(crate) fn omptrace(words: &[&str]) -> Command {
    omptrace_in(&release(), words)
}

/// `omptrace` in the folder `product`.
pub(crate) fn omptrace_in(product: &Path, words: &[&str]) -> Command {
    command(product.join("omptrace"), words)
}

/// A traced run of an example.
#[derive(Debug)]
pub(crate) struct Traced {
    /// The trace itself.
    pub(crate) trace: PathBuf,
    /// The trace in Perfetto's format.
    pub(crate) timeline: PathBuf,
}

/// Compiles `examples/NAME`, in C or Fortran, traces a run of it with `arguments` by the `omptrace` of the folder `product`, and
/// converts the trace, all in `folder`.
///
/// # Errors
/// One of the steps failed; it has said why.
pub(crate) fn trace_example(
    product: &Path,
    source: &str,
    arguments: &[&str],
    folder: &Path,
) -> Result<Traced> {
    fs::create_dir_all(folder)?;
    let (name, compiler, openmp) = match source.rsplit_once('.') {
        Some((name, "f90")) => (name, "gfortran", vec!["-fopenmp".to_owned()]),
        Some((name, _)) => (name, "clang-22", openmp_flags()),
        None => (source, "clang-22", openmp_flags()),
    };
    // A device that is there on every machine: the host's own cores.
    let flags: &[&str] = match name {
        "offload" => &["-fopenmp-targets=x86_64-pc-linux-gnu"],
        _ => &[],
    };
    let program = folder.join(name);
    let traced = Traced {
        trace: folder.join(format!("{name}.omptrace")),
        timeline: folder.join(format!("{name}.pftrace")),
    };
    // A name that is taken makes `record` choose another: an earlier run's file must go.
    if traced.trace.exists() {
        fs::remove_file(&traced.trace)?;
    }
    run(command(compiler, ["-g", "-O2"])
        .args(openmp)
        .arg("-o")
        .arg(&program)
        .arg(root().join("examples").join(source))
        .args(flags)
        .arg("-lm"))?;
    let mut record = omptrace_in(product, &["record", "-o"]);
    record.arg(&traced.trace).arg("--").arg(&program).args(arguments);
    if name == "offload" {
        // libomptarget opens the runtime once more, by a name and at a place where another may lie.
        record.env("LD_LIBRARY_PATH", tools().join("runtimes/llvm-19"));
    }
    run(&mut record)?;
    run(omptrace_in(product, &["convert"])
        .arg(&traced.trace)
        .args(["--to", "perfetto", "-o"])
        .arg(&traced.timeline))?;
    Ok(traced)
}
