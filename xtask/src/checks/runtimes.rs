//! Runtimes that no registry has, given by who has them.

use std::fs::canonicalize;
use std::path::PathBuf;

use crate::omptrace::{build, release};
use crate::process::{cargo, run};
use crate::result::Result;
use crate::setup;
use crate::setup::requirement::Purpose;

/// Tests whether older or newer runtimes that you have are traced as they should be.
#[derive(Debug, clap::Args)]
pub(crate) struct Runtimes {
    /// Holds a folder for each runtime, called as in docs/dialects.md (`llvm-9`), with its `libomp.so.5`
    folder: PathBuf,
}

/// The tests that each of the `FURTHER_RUNTIMES` passes, on those of the folder.
///
/// # Errors
/// Something differs from what tests/src/env.rs says of the runtime, or it is not named there.
pub(crate) fn try_all(arguments: &Runtimes, install: bool) -> Result<()> {
    let folder = canonicalize(&arguments.folder)
        .map_err(|error| format!("{}: {error}", arguments.folder.display()))?;
    setup::ensure(Purpose::Tests, install)?;
    build()?;
    let tests = ["counts", "timeline", "record"].map(|name| format!("--test={name}"));
    run(cargo(["test", "--package=omptrace-tests", "--no-fail-fast"])
        .args(tests)
        .arg("further_runtimes")
        .env("OMPTRACE_TEST_BIN_DIR", release())
        .env("OMPTRACE_TEST_RUNTIMES", folder))
}
