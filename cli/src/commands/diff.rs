//! `omptrace diff`: two sets of runs, compared.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use omptrace_analysis::compare::{self, Conditions, UnknownPlace};
use omptrace_report::{Shown, diff_text};

use crate::input::compared_runs;
use crate::input::input_choice::SourceOptions;
use crate::options::shared::DebugDirs;
use crate::options::units;
use crate::output::failure::{Failure, Outcome, Result};
use crate::output::json_output::AnswerOptions;
use crate::output::{message, streams};

/// `omptrace diff`.
#[derive(Args, Debug)]
#[command(
    mut_arg("all", |all| all.help("Also show differences that are not significant, and do not truncate tables")),
    override_usage = "omptrace diff [OPTIONS] <BEFORE>... -- <AFTER>...\n       omptrace diff [OPTIONS] <BEFORE> <AFTER>",
    after_help = "\
Each run is given as a trace, as a directory with all traces of the run, or as a file with the output of `omptrace stats --json`. Traces of several ranks of one MPI job count as one run. Regions of the two sets are matched by construct, function and line; the lines may have moved. Use at least three runs per set, so that `diff` can determine how much runs of the same program vary; with ten runs per set, small differences can be significant, too. The duration and the parallel efficiency are always shown. Unless --all is given, differences in other values are shown only if they are statistically significant and at least as large as --min-effect. For times, --min-effect is a percentage of the duration before the change; for efficiencies, it is in percentage points.

--fail-on takes a comma-separated list of conditions. NAME is duration, parallel_efficiency, load_balance, communication, serialisation, transfer, or a cause of lost time such as imbalance. Each condition applies to the whole run or, with @FILE:LINE or @FUNCTION, to all parallel regions at that location together. If NAME is a time, N is a percentage of the duration of the run, or of these regions, before the change. If NAME is an efficiency, N is in percentage points.

Exit status: 0 if the runs were compared, 1 if a --fail-on condition was met, 2 on error.

Examples:
  omptrace diff old.*.omptrace -- new.*.omptrace
  omptrace diff --fail-on 'parallel_efficiency<-3%,duration>5%' old/*.json -- new/*.json
  omptrace diff --fail-on 'duration@solve.c:41>5%,imbalance@assemble>2%' old/*.json -- new/*.json
  omptrace diff --md before.omptrace after.omptrace >> $GITHUB_STEP_SUMMARY"
)]
pub(crate) struct Diff {
    /// Runs before the change
    #[arg(required = true, value_name = "BEFORE")]
    pub(crate) before: Vec<PathBuf>,
    /// Runs after the change
    #[arg(last = true, value_name = "AFTER")]
    pub(crate) after: Vec<PathBuf>,
    /// Exit with status 1 if one of these conditions is met, for example
    /// 'parallel_efficiency<-3%,duration@solve.c:41>5%'
    #[arg(long, value_name = "NAME<N%,...")]
    pub(crate) fail_on: Vec<Conditions>,
    /// Do not report differences smaller than PERCENT
    #[arg(long, value_name = "PERCENT", default_value = "2", value_parser = units::percent)]
    pub(crate) min_effect: f64,
    /// Where to look for names that the traces do not bring along.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// Where numbers come from.
    #[command(flatten)]
    pub(crate) source: SourceOptions,
    /// Print Markdown, for tickets and CI job summaries
    #[arg(long, conflicts_with = "json")]
    pub(crate) md: bool,
    /// How much of the answer.
    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// Prints what differs.
///
/// # Errors
/// A run cannot be read, or stdout not be written to.
pub(crate) fn run(arguments: &Diff) -> Result<Outcome> {
    let (before, after) = sides(arguments)?;
    let before = compared_runs::read(before, &arguments.debug_dirs, arguments.source.from)?;
    let after = compared_runs::read(after, &arguments.debug_dirs, arguments.source.from)?;
    let conditions = arguments.fail_on.iter().flat_map(|conditions| &conditions.0);
    let options =
        compare::Options { min_effect: arguments.min_effect, conditions: conditions.cloned().collect() };
    if let Some(unknown) = options.unknown_place(&before, &after) {
        return Err(no_region(&unknown));
    }
    let diff = compare::Diff::of(&before, &after, &options);
    if arguments.answer.is_json() {
        arguments.answer.print(&diff)?;
    } else {
        let mut stdout = streams::text();
        let shown = Shown { all: arguments.answer.wants_all() };
        let layout = message::layout(arguments.answer.rows(), arguments.md);
        write!(stdout, "{}", diff_text(&diff, layout, shown))?;
        stdout.flush()?;
    }
    if let Some(note) = before.iter().chain(&after).find_map(|run| run.answers.mpi_note.as_ref()) {
        message::note(note);
    }
    Ok(match diff.failed[..] {
        [] => Outcome::Success,
        _ => Outcome::Findings,
    })
}

/// The failure where a condition is about a place without regions.
fn no_region(unknown: &UnknownPlace) -> Failure {
    let hint = match &unknown.nearest[..] {
        [] => "the runs have no parallel regions".to_owned(),
        nearest => format!("the nearest are {}", nearest.join(", ")),
    };
    Failure::new(format!("these runs have no parallel region at {}", unknown.name)).hint(hint)
}

/// The runs before and after: those around `--`, or two without it.
fn sides(arguments: &Diff) -> Result<(&[PathBuf], &[PathBuf])> {
    match (&arguments.before[..], &arguments.after[..]) {
        ([before, after], []) => Ok((std::slice::from_ref(before), std::slice::from_ref(after))),
        (_, []) => Err(Failure::new("there is no second set of runs")
            .hint("separate the two sets: omptrace diff BEFORE... -- AFTER...")),
        (before, after) => {
            compared_runs::refuse_options(after)?;
            Ok((before, after))
        }
    }
}
