//! The program `reference-runtime`, under a name of this package: cargo gives tests the paths of their own package's
//! programs only.

use std::process::ExitCode;

fn main() -> ExitCode {
    ompt_reference_runtime::program::run()
}
