//! `omptrace`: records OpenMP programs, completes, converts and examines their traces.

use std::process::ExitCode;

fn main() -> ExitCode {
    omptrace_cli::main()
}
