//! The program `omptrace`, which is the command line around the libraries.
//!
//! ```text
//! arguments   the command line's definition; man makes the man page and the completions of it
//! record      runs a program (process) with the tracer (find_tracer), finds its traces (recorded_traces, unnoted),
//!             completes them (sealing) with names of code, also of files that are gone (module_files); reports what was not
//!             traced (apart)
//! preload     what the loader loads into programs before their own libraries
//! env         the same variables for job scripts
//! libgomp     whether LLVM's runtime takes the place of GCC's: only where it has all that is called (entries)
//! doctor      what can be traced here; asks each runtime (probe)
//! diagnosis   whether a program can be traced, from its file (program, elf), its libraries (loader) and their
//!             runtimes (runtime)
//! convert     makes an export (output_path, or replace_folder), less of it where asked for (units); view hands one to
//!             Perfetto's UI (serve)
//! message     texts for people: width, folding, quoting
//! temp_files  what goes away when a signal ends the program (signals)
//! recover, symbolize, stats, info, dump, check
//!             one library call each
//! ```
//!
//! stdout carries data, stderr carries words. Exit status: 0 all is well, 1 findings, 2 failure; `record` passes on that
//! of its program.

mod apart;
mod arguments;
mod check;
mod convert;
mod descriptors;
mod diagnosis;
mod disk;
mod doctor;
mod dump;
mod elf;
mod entries;
mod env;
mod failure;
mod find_tracer;
mod info;
mod inputs;
mod killed;
mod libgomp;
mod loader;
mod man;
mod message;
mod module_files;
mod output_path;
mod packages;
mod preload;
mod probe;
mod process;
mod program;
mod progress;
mod record;
mod recorded_traces;
mod recover;
mod replace_folder;
mod replaced;
mod runtime;
mod sealing;
pub mod serve;
mod signals;
mod stats;
mod symbolize;
mod temp_files;
mod units;
mod unnoted;
mod view;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use failure::{Outcome, Result};

/// Parses the command line, runs the command, reports what went wrong. The exit status is as in the module's documentation.
pub fn main() -> ExitCode {
    let result = run(Arguments::parse().command);
    temp_files::settle();
    let status = match result {
        Ok(outcome) => outcome.status(),
        Err(failure) => failure.report(),
    };
    ExitCode::from(status)
}

fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Record(arguments) => record::run(&arguments),
        Command::Env(arguments) => env::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Symbolize(arguments) => symbolize::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::View(arguments) => view::run(&arguments),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Man => man::page(),
        Command::Completions { shell } => man::completions(shell),
        Command::DoctorProbe { runtime } => probe::start(&runtime),
    }
}
