//! Plays a script and prints what was played: see [`ompt_reference_runtime`].

use std::process::ExitCode;

fn main() -> ExitCode {
    ompt_reference_runtime::program::run()
}
