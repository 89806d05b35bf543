//! The cost of tracing, measured beside the least that it could cost.
//!
//! ```text
//! tests/benches/programs/*.c  --+                       +-- rounds: time, memory (every tool in turn, several times)
//!                         +--> case x tool runs --+-- instructions: callgrind, two sizes of the same run
//! tests/benches/tools/*.c     --+                       +-- disk: bytes of the sealed trace
//! libomptrace.so        --+                                        |
//!                                                    report: table, JSON, verdicts
//! ```
//!
//! With `--convert`, the traces' conversions are measured instead: [`mod@convert`]. With `--gcc`, constructs of GCC's programs are:
//! [`mod@gcc`].
//!
//! Costs are differences to a tool that registers all callbacks and does nothing ([`tools::EMPTY`]), divided by the
//! number of events. The tests' counting tool knows that number. The measure of a tracer is its ratio to
//! [`tools::FLOOR`], on the same machine in the same minutes.

mod baseline;
mod case;
mod convert;
mod folder;
mod instructions;
mod machine;
mod programs;
mod report;
mod rounds;
mod runs;
mod spread;
mod tools;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::bench::machine::disk;
use crate::bench::tools::gcc;
use crate::omptrace::build;
use crate::process::{self, cargo};
use crate::result::Result;
use crate::setup;
use crate::setup::requirement::Purpose;

use baseline::Cases;
use case::Case;
use folder::folder;
use programs::Programs;
use report::{CaseReport, Report};
use tools::{MissingTool, Tools};

/// `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct Bench {
    /// Only count instructions, and fail if there are more than in tests/benches/baseline.json
    #[arg(long)]
    short: bool,
    /// Measure the conversion and analysis of the programs' traces instead
    #[arg(long, conflicts_with = "short")]
    convert: bool,
    /// Convert traces of at least this many million events
    #[arg(long, value_name = "N", requires = "convert")]
    millions: Option<u64>,
    /// Measure constructs of GCC programs instead: on libgomp, with the adapter, and on LLVM's runtime
    #[arg(long, conflicts_with_all = ["short", "convert", "json", "filter"])]
    gcc: bool,
    /// Also write the results to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Number of measured runs of each tool, after one run to warm up
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Run only the cases whose name contains this. A name such as `tasks/2` is a program and its number of threads
    #[arg(long, value_name = "NAME", default_value = "")]
    filter: String,
}

/// Measures, prints, and compares.
///
/// # Errors
/// Something cannot be built or run; with `--short`, events cost more instructions than they did.
pub(crate) fn run(bench: &Bench, install: bool) -> Result<()> {
    setup::ensure(Purpose::Demo, install)?;
    if bench.short {
        build_tracer()?;
    } else {
        build()?;
    }
    std::fs::create_dir_all(folder())?;
    let programs = Programs::build(&folder())?;
    let (tools, left_out) = Tools::build(&folder())?;
    for MissingTool { name, why } in &left_out {
        println!("left out: {name} ({why})");
    }
    if bench.short {
        return short(bench, &programs, &tools);
    }
    let load = machine::load_average();
    machine::warn_if_busy(load);
    if bench.gcc {
        return gcc::measure(&folder(), &tools, bench.rounds, &[1, 2]);
    }
    if bench.convert {
        return convert(bench, &programs, &tools);
    }
    let mut report = Report::new(bench.rounds, load, left_out);
    for case in programs.cases(&bench.filter, &tools)? {
        report.cases.push(measure(&case, &tools, bench.rounds)?);
    }
    report.finish();
    print!("{report}");
    machine::warn_if_busy(machine::load_average());
    match &bench.json {
        Some(path) => write_json(path, &report),
        None => Ok(()),
    }
}

/// Counting instructions needs no more than the library.
fn build_tracer() -> Result<()> {
    process::run(&mut cargo(["build", "--release", "--package=omptrace-tracer"]))
}

/// All figures of one case.
fn measure(case: &Case<'_>, tools: &Tools, rounds: u32) -> Result<CaseReport> {
    eprintln!("{}: {} events", case.name(), case.events);
    let mut rows = rounds::run(case, tools, rounds)?;
    // Before the next runs, which leave other files.
    for (row, tool) in rows.iter_mut().zip(tools.iter()) {
        row.bytes_per_event = disk::bytes_per_event(case, tool)?;
    }
    let instructions = instructions::per_event(case, tools, |tool| tool.countable)?;
    for row in &mut rows {
        row.instructions = instructions.get(row.tool).copied();
    }
    Ok(CaseReport::new(case, rows))
}

/// Measures the conversions of all cases' traces.
fn convert(bench: &Bench, programs: &Programs, tools: &Tools) -> Result<()> {
    let mut reports = Vec::new();
    let cases = programs.cases(&bench.filter, tools)?;
    // The realistic program has too few events to show anything but what the start takes.
    for case in cases.iter().filter(|case| case.program.fine) {
        let events = bench.millions.map(|millions| millions * 1_000_000);
        let report = convert::measure(case, tools, bench.rounds, events)?;
        print!("{report}");
        reports.push(report);
    }
    match &bench.json {
        Some(path) => write_json(path, &reports),
        None => Ok(()),
    }
}

/// Instructions per event, compared with those that were written down.
fn short(bench: &Bench, programs: &Programs, tools: &Tools) -> Result<()> {
    let mut counted = baseline::Baseline::default();
    for case in programs.cases(&bench.filter, tools)? {
        let of_case = instructions::per_event(&case, tools, |tool| tools::SHORT.contains(&tool.name))?;
        counted.add(&case, &of_case);
    }
    if let Some(case) = programs.annotations(&bench.filter) {
        let is_wanted = |tool: &tools::Tool| tools::SHORT.contains(&tool.name) && tool.name != tools::FLOOR;
        let of_case = instructions::per_event(&case, tools, is_wanted)?;
        counted.add(&case, &of_case);
    }
    if let Some(path) = &bench.json {
        write_json(path, &counted)?;
    }
    if !bench.filter.is_empty() {
        return baseline::compare(&counted, Cases::Some);
    }
    baseline::compare(&counted, Cases::All)?;
    parts()
}

/// Instructions of the parts that events go through after the hot path; their limits are beside them.
fn parts() -> Result<()> {
    let packages = ["--package=omptrace-trace-format", "--package=omptrace-viewer-export"];
    process::run(cargo(["bench", "--quiet", "--bench=instructions"]).args(packages))
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
}
