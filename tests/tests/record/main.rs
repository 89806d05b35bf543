//! `omptrace record` on real programs as users have them: built by GCC, in Python, in scripts; and what it says.

mod clocks;
mod libgomp;
mod limits;
mod old_runtimes;
mod processes;
mod python;
mod reasons;
mod traces;

use std::ffi::OsStr;
use std::process::{Command, Output};

use omptrace_tests::env::{omptrace_program, runtime};
use omptrace_tests::trace::Traces;

/// Runs `omptrace record` with `arguments`; the traces appear in `traces`.
fn record<A: AsRef<OsStr>>(traces: &Traces, arguments: impl IntoIterator<Item = A>) -> Output {
    ended_well(&mut recording(traces, arguments))
}

/// The command that does so.
fn recording<A: AsRef<OsStr>>(traces: &Traces, arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(omptrace_program());
    command
        .arg("record")
        .args(["--libomp".as_ref(), runtime("llvm-19").join("libomp.so.5").as_os_str()])
        .args(arguments)
        .env("OMPTRACE_OUTPUT", "")
        .current_dir(traces.path());
    command
}

fn ended_well(command: &mut Command) -> Output {
    let output = command.output().expect("omptrace can be run");
    assert!(output.status.success(), "{output:?}");
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
