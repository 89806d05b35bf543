//! `omptrace`: records OpenMP programs, completes, converts and examines their traces.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
