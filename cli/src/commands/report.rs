//! `omptrace report`: answers as a page to hand on, or as Markdown.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::DateTime;
use clap::Args;
use omptrace_analysis::answers::Overview;
use omptrace_analysis::compare::{self, Run};
use omptrace_analysis::{Info, Options, Stats};
use omptrace_report::{Report as Page, SourceFile};
use omptrace_symbols::Table;

use crate::input::input_choice::{MAX_REPLAYED, ReadFrom, SourceOptions, Sources, Wanted};
use crate::input::source_files::Roots;
use crate::input::{compared_runs, inputs};
use crate::options::shared::DebugDirs;
use crate::output::failure::{Failure, Outcome, Result};
use crate::output::gaps::report_gaps;
use crate::output::output_path::Target;
use crate::output::quoted_path::typed;
use crate::output::{message, progress};

/// Source files that are read.
const MAX_FILES: usize = 24;
/// Traces of which the page says where they come from, each.
const MAX_INFOS: usize = 16;

/// `omptrace report`.
#[derive(Args, Debug)]
#[command(
    override_usage = "omptrace report [OPTIONS] <TRACE>...\n       omptrace report [OPTIONS] <BEFORE>... -- <AFTER>...",
    after_help = "\
The report is a single file of at most 1 MB that can be opened without a network. It shows where the time went, the findings, a timeline of all threads, the regions and the sources. Its numbers are those of `omptrace stats`.

With --, the report also shows how the runs after -- differ from the runs before --, as `omptrace diff` does. If the numbers of threads differ, the report also shows how the program scales. All other sections of the report are about the first run after --. Each run is given as a trace, as a directory with all traces of the run or, before --, as a file with the output of `omptrace stats --json`. Traces of several ranks of one MPI job count as one run.

Examples:
  omptrace report app.omptrace -o report.html
  omptrace report -o report.html old.*.omptrace -- new.*.omptrace
  omptrace report app.omptrace --md >> $GITHUB_STEP_SUMMARY"
)]
pub(crate) struct Report {
    /// Traces of one run, or directories of traces. With --, the runs before -- are compared with the runs after --
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Runs after the change
    #[arg(last = true, value_name = "AFTER")]
    pub(crate) after: Vec<PathBuf>,
    /// Output file; `-` means stdout [default: report.html, or stdout with --md]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write Markdown of at most 64 KiB, for tickets and CI job summaries
    #[arg(long)]
    pub(crate) md: bool,
    /// Directory with source files that the report may quote, even if the program was built elsewhere. Can be repeated.
    /// Hidden files are never quoted. Files that match the checksum in Clang's debug information are quoted from any
    /// directory [default: the current directory, or the version-control checkout that contains it]
    #[arg(long = "source", value_name = "DIR")]
    pub(crate) source_dirs: Vec<PathBuf>,
    /// Do not quote the program's sources
    #[arg(long, conflicts_with = "source_dirs")]
    pub(crate) no_source: bool,
    /// Where to look for names that the traces do not bring along.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// Where numbers come from.
    #[command(flatten)]
    pub(crate) source: SourceOptions,
}

/// Writes the page.
///
/// # Errors
/// An input cannot be read, or the page not be written.
pub(crate) fn run(arguments: &Report) -> Result<Outcome> {
    compared_runs::refuse_options(&arguments.after)?;
    let default = if arguments.md { "-" } else { "report.html" };
    let output = arguments.output.clone().unwrap_or_else(|| default.into());
    let shown = match &arguments.after[..] {
        [] => &arguments.inputs[..],
        [first, ..] => std::slice::from_ref(first),
    };
    let traces = inputs::traces(shown)?;
    let from = arguments.source.from;
    let has_picture = match from {
        ReadFrom::Auto => traces.len() <= MAX_REPLAYED || arguments.debug_dirs.is_any(),
        ReadFrom::Events => true,
        ReadFrom::Summaries => false,
    };
    let wanted = match has_picture {
        true => Wanted::Events,
        false => Wanted::Sums,
    };
    let opened = Sources::open(&traces, from, wanted)?;
    let inputs = arguments.inputs.iter().chain(&arguments.after);
    let inputs: Vec<&Path> = inputs.map(PathBuf::as_path).collect();
    let target = Target::open(&output, &inputs)?;
    let symbols = arguments.debug_dirs.symbols();
    let (stats, overview, gaps) = match has_picture {
        true => {
            let options = Options { symbols, ..Options::default() };
            progress::while_analysing(&opened.readers(), || Stats::with_overview(&opened.readers(), &options))
        }
        false => {
            let (stats, gaps) = Stats::of_inputs(&opened.inputs(), &symbols)
                .map_err(|error| Failure::new(error.to_string()))?;
            (stats, Overview::default(), gaps)
        }
    };
    report_gaps(&gaps);
    let shows_sources = !(arguments.no_source || arguments.md);
    let mut infos = Vec::new();
    let mut tables = Vec::new();
    for trace in traces.iter().take(MAX_INFOS) {
        let reader = inputs::open(trace)?;
        infos.push(Info::of(&reader));
        if shows_sources {
            tables.push(Table::stored(&reader));
        }
    }

    let compared = compared(arguments, &stats)?;
    let names: Vec<String> = shown.iter().map(|input| typed(input)).collect();
    let names = names.join(" ");
    let sources = match shows_sources {
        true => Some(sources(&arguments.source_dirs, &stats, &overview, (&infos, &tables))?),
        false => None,
    };
    let page = Page {
        title: title(&infos, traces.len()),
        view: format!("omptrace view {names}"),
        stats_command: format!("omptrace stats {names}"),
        stats: &stats,
        overview: &overview,
        infos: &infos,
        sources: sources.as_deref(),
        diff: compared.as_ref().map(|compared| &compared.diff),
        scaling: compared.as_ref().and_then(|compared| compared.scaling.as_ref()),
    };
    let text = match arguments.md {
        true => page.markdown(),
        false => page.page(),
    };
    let written = target.writer().and_then(|mut writer| {
        writer.write_all(text.as_bytes())?;
        writer.flush()
    });
    let written = written.and_then(|()| target.finish());
    let size =
        written.map_err(|error| Failure::because(format!("cannot write {}", output.display()), &error))?;
    if let Some(size) = size {
        message::note(&format!("{}: {}", output.display(), message::bytes(size)));
    }
    Ok(Outcome::Success)
}

/// The runs before and after, beside each other.
struct Compared {
    diff: compare::Diff,
    scaling: Option<compare::Scaling>,
}

fn compared(arguments: &Report, stats: &Stats) -> Result<Option<Compared>> {
    let [first, others @ ..] = &arguments.after[..] else {
        return Ok(None);
    };
    let from = arguments.source.from;
    let before = compared_runs::read(&arguments.inputs, &arguments.debug_dirs, from)?;
    if stats.answers.accounting.total() == 0 {
        return Err(Failure::new(format!(
            "the recorded time in {} is zero, so there is nothing to compare",
            first.display()
        )));
    }
    // The first one has been read for the rest of the page.
    let mut new = vec![Run::of(first.display().to_string(), stats.clone())];
    new.extend(compared_runs::read(others, &arguments.debug_dirs, from)?);
    let diff = compare::Diff::of(&before, &new, &compare::Options::default());
    let all: Vec<Run> = before.into_iter().chain(new).collect();
    let threads = |run: &Run| (run.answers.threads, run.processes);
    let is_scaling = all.iter().any(|run| threads(run) != threads(&all[0]));
    let scaling = is_scaling.then(|| compare::Scaling::of(&all, false));
    Ok(Some(Compared { diff, scaling }))
}

/// The program, or how many processes there are.
fn title(infos: &[Info], traces: usize) -> String {
    let name = infos.first().map(|info| info.program.name.clone());
    let name = name.filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "an OpenMP program".to_owned());
    match traces {
        0 | 1 => name,
        count => format!("{name} and {}", message::counted(count as u64 - 1, "more trace")),
    }
}

/// The program's sources, as far as they may be shown and are where they were when it was built.
///
/// # Errors
/// A directory that the user named is not there.
fn sources(
    named: &[PathBuf],
    stats: &Stats,
    overview: &Overview,
    (infos, tables): (&[Info], &[Table]),
) -> Result<Vec<SourceFile>> {
    let roots = Roots::new(named)
        .map_err(|error| Failure::because("cannot find a directory given with --source", &error))?;
    let directories: Vec<&Path> = infos.iter().map(|info| Path::new(&info.program.directory)).collect();
    let mut files = Vec::new();
    let mut outside = None;
    for path in Page::files(stats, overview).into_iter().take(MAX_FILES) {
        let checksums: Vec<&str> = tables.iter().flat_map(|table| table.checksums(&path)).collect();
        let Some(found) = roots.find(Path::new(&path), &directories, &checksums) else {
            outside = outside.or_else(|| roots.missing(Path::new(&path), &directories));
            continue;
        };
        let mut began = infos.iter().filter_map(|info| DateTime::parse_from_rfc3339(&info.start).ok());
        let is_newer = match found.is_same {
            Some(is_same) => !is_same,
            None => began.any(|began| found.changed > SystemTime::from(began)),
        };
        files.push(SourceFile {
            path,
            found: found.path.display().to_string(),
            lines: found.text.lines().map(str::to_owned).collect(),
            is_newer,
        });
    }
    if !files.is_empty() {
        let names: Vec<&str> = files.iter().map(|file| &*file.found).collect();
        message::note(&format!(
            "the report contains source lines of {}; to omit them, use --no-source",
            names.join(", ")
        ));
    }
    if let Some(directory) = outside {
        message::hint(&format!(
            "the report does not quote source files in {}, because you may share the report with others; to quote these files, use --source {}",
            directory.display(),
            message::shell_word(directory.as_os_str())
        ));
    }
    Ok(files)
}
