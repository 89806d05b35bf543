//! The program `omptrace`, which is the command line around the libraries.
//!
//! ```text
//! commands   the table of the commands; a file for each, with its options. None uses another
//! options    options that several commands have, the tracer's settings, units, man page and completions
//! input      traces, folders of them, runs to compare, the program's sources: what commands read
//! output     what they write: text and messages for people, JSON, exports, files that replace others
//! record     a traced run: the tracer's place in the program, what is known of the program before, what is left after
//! seal       completes traces: names of code, summaries
//! system     this machine: its runtimes, libraries, devices, limits
//! serve      the server of `view`
//! top        what a running program does now, from its trace and spool
//! ```
//!
//! stdout carries data, stderr carries words. Exit status: 0 all is well, 1 findings, 2 failure; `record` passes on that
//! of its program.

mod commands;
mod input;
mod options;
mod output;
mod record;
mod seal;
pub mod serve;
mod system;
mod top;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use commands::Arguments;
use output::{failure, message, streams, temp_files};

/// What is said where nothing was asked for.
const FIRST_STEPS: &str = "\
omptrace record ./app   run a program and see where its time goes
omptrace stats FILE     see in more detail where the time of a recorded run went
omptrace doctor ./app   check whether a program can be traced
omptrace --help         see all commands
";

/// Parses the command line, runs the command, reports what went wrong. Without a command it says what can be done. The exit
/// status is as in the module's documentation.
pub fn main() -> ExitCode {
    if std::env::args_os().len() <= 1 {
        // A closed stderr is no failure.
        let _ = streams::stderr().write_all(FIRST_STEPS.as_bytes());
        return ExitCode::from(failure::FAILURE);
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    if let [_, help, names @ ..] = &words[..]
        && help == "help"
        && let Some(text) =
            options::help::of_pages(names, &commands::names(), message::columns(&streams::stdout()))
    {
        let text = match text {
            Ok(text) => text,
            Err(failure) => return ExitCode::from(failure.report()),
        };
        // A closed pipe is no failure.
        let mut stdout = streams::text();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        return ExitCode::SUCCESS;
    }
    let result = Arguments::of_this_process().command.run();
    temp_files::settle();
    let status = match result {
        Ok(outcome) => outcome.status(),
        Err(failure) => failure.report(),
    };
    ExitCode::from(status)
}
