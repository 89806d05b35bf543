//! The tasks that a newcomer and CI run.
//!
//! ```text
//! cargo xtask demo      trace an example, print its answer, make its report
//! cargo xtask test      install what is missing, run every check and every test; --core: install nothing
//! cargo xtask bench     measure what tracing costs
//! ```
//!
//! The other commands are steps of these two, or what a packager and the documentation need.
//! `compare`, `fuzz`, `growth` and `install` need no more than compilers. All others install what they need
//! first ([`setup`]); `--no-install` only says what is missing.

mod bench;
mod checks;
mod dist;
mod documents;
mod emulated;
mod omptrace;
mod process;
mod result;
mod setup;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use checks::{aarch64, compare, fuzz, growth, language, runtimes, sanitize, soak, test};
use documents::{assets, screenshots, site};
use setup::requirement::Purpose;
use setup::{demo, install};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The tasks that newcomers and CI run", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
    /// Only report what is missing, and fail if anything is
    #[arg(long, global = true)]
    no_install: bool,
}

#[derive(Subcommand)]
enum Task {
    /// Trace an example program, print where its time went, and make its report
    Demo,
    /// Run every check and every test; the last line counts them
    Test(test::Test),
    /// Install what the demo and the tests need
    Setup,
    /// Install the program, the library, the man page and the shell completions in a directory
    Install {
        /// The directory, for example /usr/local or ~/.local
        #[arg(long)]
        prefix: PathBuf,
    },
    /// Build the artefacts of a release in dist/, for glibc 2.17 and later, with checksums
    Dist(dist::Dist),
    /// Measure what tracing costs, compared with the minimum that it could cost
    Bench(bench::Bench),
    /// Add one of each kind (callback, setting etc.) in a copy of the sources, which must compile with as many edited
    /// files as ARCHITECTURE.md says
    Growth,
    /// Check the English of documents, messages and help texts
    Language,
    /// Fuzz all code that reads files written by others
    Fuzz(fuzz::Fuzz),
    /// Look for races and memory faults in the tracer and the libgomp adapter with ThreadSanitizer and memcheck
    Sanitize,
    /// Build for aarch64, and record and analyse programs on it under qemu
    Aarch64,
    /// Run the tests of counts and timelines on runtimes that no package registry provides
    Runtimes(runtimes::Runtimes),
    /// Compare the GCC programs in a directory on libgomp alone and under the adapter: output, exit status,
    /// conformance
    Compare(compare::Compare),
    /// Run stress tests for hours: kills, random programs, fuzzers
    Soak(soak::Soak),
    /// Fetch the npm files that the page of `omptrace report` includes, in the versions that its lock file pins
    Assets,
    /// Build the documentation site in target/site/book, and check its links
    Site,
    /// Make the images in docs/images from the examples, in the real Perfetto UI
    Screenshots,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let install = !arguments.no_install;
    let outcome = match arguments.task {
        Task::Demo => demo::run(install),
        Task::Test(arguments) => test::run(&arguments, install),
        Task::Setup => setup::ensure(Purpose::Tests, install),
        Task::Install { prefix } => install::run(&prefix),
        Task::Dist(arguments) => dist::make(&arguments, install),
        Task::Bench(arguments) => bench::run(&arguments, install),
        Task::Growth => growth::check(),
        Task::Language => language::check(install),
        Task::Fuzz(arguments) => fuzz::run_targets(&arguments),
        Task::Sanitize => sanitize::check(install),
        Task::Aarch64 => aarch64::check(install),
        Task::Runtimes(arguments) => runtimes::try_all(&arguments, install),
        Task::Compare(arguments) => compare::run(&arguments),
        Task::Soak(arguments) => soak::run_all(&arguments, install),
        Task::Assets => assets::fetch(install),
        Task::Site => site::build(install),
        Task::Screenshots => screenshots::run(install),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
