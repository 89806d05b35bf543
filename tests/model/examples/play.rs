//! The reference runtime: plays the script on its input.

use std::process::ExitCode;

fn main() -> ExitCode {
    ompt_reference_runtime::program::run()
}
