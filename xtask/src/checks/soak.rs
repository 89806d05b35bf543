//! Tests that take hours: the same as always, many times over.

use crate::checks::fuzz;
use crate::checks::fuzz::Fuzz;
use crate::omptrace::{build, release};
use crate::process::{cargo, run};
use crate::result::Result;
use crate::setup;
use crate::setup::requirements::Purpose;

/// Kills, runs random programs, fuzzes and runs the tests of what is rare for hours.
#[derive(Debug, clap::Args)]
pub(crate) struct Soak {
    /// How many programs are killed at a random moment
    #[arg(long, default_value_t = 1000)]
    kills: u32,
    /// How many random programs of each compiler are compared with their traces
    #[arg(long, default_value_t = 500)]
    programs: u32,
    /// How many programs in virtual time check the answers of `stats`
    #[arg(long, default_value_t = 100_000)]
    model_programs: u32,
    /// Another number gives other moments, and other programs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How often the tests of crashes, children, signals and limits run
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// How many signals of samples each program gets that does what signals may harm
    #[arg(long, default_value_t = 1_000_000)]
    signals: u64,
    /// How long each target is fuzzed; there are five
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
    for name in ["model", "parts"] {
        run(test(name)
            .env("OMPTRACE_TEST_PROGRAMS", arguments.model_programs.to_string())
            .env("OMPTRACE_TEST_SEED", first.to_string()))?;
    }
    run(test("samples").env("OMPTRACE_TEST_SIGNALS", arguments.signals.to_string()))?;
    for _ in 0..arguments.rounds {
        for name in ["reliability", "processes", "counts"] {
            run(&mut test(name))?;
        }
    }
    if arguments.fuzz_minutes > 0 {
        fuzz::run_targets(&Fuzz::all(arguments.fuzz_minutes))?;
    }
    Ok(())
}
