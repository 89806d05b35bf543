//! Tests that take hours: the same as always, many times over.

use crate::checks::aarch64;
use crate::checks::fuzz;
use crate::checks::fuzz::Fuzz;
use crate::dist;
use crate::omptrace::{build, release};
use crate::process::{cargo, run};
use crate::result::Result;
use crate::setup;
use crate::setup::requirement::Purpose;

/// Kills, runs random programs, fuzzes and runs the tests of what is rare for hours; also makes packages for aarch64 in dist/, and checks
/// them.
#[derive(Debug, clap::Args)]
pub(crate) struct Soak {
    /// Number of programs that are killed at a random moment
    #[arg(long, default_value_t = 1000)]
    kills: u32,
    /// Number of random programs per compiler that are compared with their traces; a tenth as many are run for aarch64
    #[arg(long, default_value_t = 500)]
    programs: u32,
    /// Number of random MPI programs per library that are compared with their traces
    #[arg(long, default_value_t = 200)]
    mpi_programs: u32,
    /// Number of programs in virtual time that check the results of `stats`. A fifth as many MPI jobs are tried. Omptrace
    /// for aarch64 reads the traces of a hundredth of the programs, a thousandth is played under the tracer, and a
    /// five-thousandth are long programs whose shares are estimated from random windows
    #[arg(long, default_value_t = 100_000)]
    model_programs: u32,
    /// Seed: a different number gives different moments and programs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of times that the tests of crashes, child processes, signals and limits are run
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Number of sampling signals sent to each program that does what signals might disturb
    #[arg(long, default_value_t = 1_000_000)]
    signals: u64,
    /// Time for which each of the five targets is fuzzed
    #[arg(long, default_value_t = 36)]
    fuzz_minutes: u32,
}

/// Runs all of it; ends with what fails first.
///
/// # Errors
/// Something failed; it has said what.
pub(crate) fn run_all(arguments: &Soak, install: bool) -> Result<()> {
    setup::ensure(Purpose::Tests, install)?;
    build()?;
    let test = |name: &str| {
        let mut command = cargo(["test", "--workspace", "--test", name]);
        command.env("OMPTRACE_TEST_BIN_DIR", release());
        command
    };
    run(test("kills")
        .env("OMPTRACE_TEST_KILLS", arguments.kills.to_string())
        .env("OMPTRACE_TEST_SEED", arguments.seed.to_string()))?;
    // Those below are what `cargo xtask test` runs.
    let first = arguments.seed.saturating_mul(1_000_000);
    run(test("random_programs")
        .env("OMPTRACE_TEST_PROGRAMS", arguments.programs.to_string())
        .env("OMPTRACE_TEST_SEED", first.to_string()))?;
    run(test("mpi_random")
        .env("OMPTRACE_TEST_PROGRAMS", arguments.mpi_programs.to_string())
        .env("OMPTRACE_TEST_SEED", first.to_string()))?;
    run(test("mpi_faults").env("OMPTRACE_TEST_FAULTS", "all"))?;
    let built = aarch64::build()?;
    aarch64::random_programs(&built, arguments.programs / 10, first)?;
    aarch64::compare_model(&built, arguments.model_programs / 100)?;
    for name in ["model", "parts"] {
        run(test(name)
            .env("OMPTRACE_TEST_PROGRAMS", arguments.model_programs.to_string())
            .env("OMPTRACE_TEST_SEED", first.to_string()))?;
    }
    run(test("jobs")
        .env("OMPTRACE_TEST_PROGRAMS", (arguments.model_programs / 5).to_string())
        .env("OMPTRACE_TEST_SEED", first.to_string()))?;
    run(test("played")
        .env("OMPTRACE_TEST_PROGRAMS", (arguments.model_programs / 1000).to_string())
        .env("OMPTRACE_TEST_SEED", first.to_string()))?;
    run(test("sampled")
        .env("OMPTRACE_TEST_PROGRAMS", (arguments.model_programs / 5000).to_string())
        .env("OMPTRACE_TEST_SEED", first.to_string()))?;
    run(test("samples").env("OMPTRACE_TEST_SIGNALS", arguments.signals.to_string()))?;
    for _ in 0..arguments.rounds {
        for name in ["reliability", "processes", "counts"] {
            run(&mut test(name))?;
        }
    }
    dist::make_for_aarch64(install)?;
    if arguments.fuzz_minutes > 0 {
        fuzz::run_targets(&Fuzz::all(arguments.fuzz_minutes))?;
    }
    Ok(())
}
