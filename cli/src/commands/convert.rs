//! `omptrace convert`: one timeline of all inputs, in a format of choice.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValue;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use omptrace_symbols::parallel::limit_threads;
use omptrace_timeline::why_no_samples;
use omptrace_trace_format::{Reader, copy_changed};
use omptrace_viewer_export::{ConvertOptions, FORMATS, Format};

use crate::input::inputs;
use crate::input::selection::selection;
use crate::options::format_flags::FormatFlags;
use crate::options::shared::{DebugDirs, Part};
use crate::options::units;
use crate::output::conversion::Conversion;
use crate::output::failure::{Failure, Outcome, Result};
use crate::output::output_path::{Target, cannot_write};
use crate::output::progress::Work;
use crate::output::{message, view_annotations};
use crate::seal::anonymise::Anonymiser;
use crate::seal::summaries;

/// `omptrace convert`.
#[derive(Args, Debug)]
#[command(after_help = "\
Several inputs are merged into one timeline. The times of the inputs are aligned by means of the clocks of their hosts. Processes are sorted by MPI rank, then by start time; the Perfetto UI instead shows processes with more slices first.

Examples:
  omptrace convert app.omptrace -o app.pftrace    (open it at https://ui.perfetto.dev)
  omptrace convert traces/ --to chrome -o job.json.gz
  omptrace convert app.omptrace --to otf2 -o app.otf2    (a directory; its anchor is app.otf2/traces.otf2)
  omptrace convert traces/ --to parquet -o job.tables    (tables for SQL, see docs/columns.md)
  omptrace convert app.omptrace --to text -o - | less
  omptrace convert app.omptrace --to perfetto --window 2.0s..2.5s --min-duration 10us
  omptrace convert app.omptrace --to perfetto --critical-path
  omptrace convert app.omptrace --anonymise -o shared.omptrace")]
pub(crate) struct Convert {
    /// Traces or directories of traces
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Output format [default: derived from the extension of OUT, as in app.pftrace or app.json.gz]
    #[arg(long, value_name = "FORMAT", value_parser = format_names())]
    pub(crate) to: Option<&'static Format>,
    /// Output file, compressed if its name ends in .gz; `-` means stdout. For otf2 and parquet, OUT is a directory
    /// [default: the first input's name with the format's extension]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Where to look for names that the traces do not bring along.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// Divide the timeline into several files, each of about SIZE before compression, for example 500M (chrome and
    /// perfetto only). Each file can be opened on its own. The files are named OUT with -001, -002 and so on before the
    /// extension
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) split: Option<u64>,
    /// Write only part I of N (parquet only). The part contains every N-th process, starting with the I-th. If there
    /// are fewer than N processes, large processes are divided among several parts. Parts that are already in the
    /// directory are kept. Several machines can therefore write one data set: run the command on each machine with all
    /// inputs and a different I
    #[arg(long = "part", value_name = "I/N", value_parser = units::part)]
    pub(crate) part_of: Option<(NonZero<usize>, NonZero<usize>)>,
    /// Also export each chunk of dynamic and guided loops (one slice per chunk)
    #[arg(long)]
    pub(crate) chunks: bool,
    /// Also export the critical path of each process as a track, with arrows where the path moves to another thread
    #[arg(long)]
    pub(crate) critical_path: bool,
    /// Instead of converting, write a copy of each trace for sharing with others. The copy does not contain the
    /// program's arguments, host names or directories. Names of functions, files and OpenMP variables are kept. With
    /// several inputs, OUT is a directory
    #[arg(long, requires = "output", conflicts_with_all = ["to", "split", "part_of", "chunks", "critical_path", "window", "threads", "min_duration"])]
    pub(crate) anonymise: bool,
    /// Number of threads to use; does not affect the output [default: the number of CPUs]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZero<usize>>,
    /// What only one format has.
    #[command(flatten)]
    pub(crate) format: FormatFlags,
    /// The selected part of the timeline.
    #[command(flatten)]
    pub(crate) part: Part,
}

/// The formats by their names.
fn format_names() -> impl TypedValueParser<Value = &'static Format> {
    let names = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.description));
    PossibleValuesParser::new(names)
        .map(|name| Format::by_name(&name).expect("only names of formats are possible values"))
}

/// Converts the inputs.
///
/// # Errors
/// An input cannot be read, or the output not be written.
pub(crate) fn run(arguments: &Convert) -> Result<Outcome> {
    if let Some(jobs) = arguments.jobs {
        limit_threads(jobs);
    }
    if let (true, Some(output)) = (arguments.anonymise, &arguments.output) {
        return anonymise(arguments, output);
    }
    let format = format_of(arguments)?;
    check_tables(arguments, format)?;
    let readers = inputs::open_all(&arguments.inputs)?;
    check_samples(format, &readers)?;
    let output = match &arguments.output {
        Some(path) => path.clone(),
        None => arguments.inputs[0].with_extension(format.extension),
    };
    let symbols = arguments.debug_dirs.symbols();
    let mut selection = selection(&arguments.part, &readers)?;
    let inputs: Vec<&Reader> = readers.iter().collect();
    if arguments.critical_path {
        selection.extra_tracks = view_annotations::critical_paths(&inputs, &symbols);
    }
    let conversion = Conversion {
        inputs,
        format,
        options: ConvertOptions {
            gzip: output.extension().is_some_and(|extension| extension == "gz"),
            chunks: arguments.chunks,
            part: arguments.part_of,
            threads: arguments.jobs,
            selection,
            symbols,
            format: arguments.format.0.clone(),
            ..ConvertOptions::default()
        },
    };
    match (arguments.split, format.folder_parts()) {
        (None, Some(parts)) => conversion.to_folder(&output, parts, &readers)?,
        (Some(_), Some(_)) => {
            return Err(Failure::new(format!(
                "--split does not work with {}, whose output is a directory",
                format.name
            ))
            .hint(match format.is_tables() {
                true => "to export only a quarter of the processes, use --part 1/4",
                false => "to export a time window, use --window 2.0s..2.5s",
            }));
        }
        (Some(_), None) if !format.can_be_split() => {
            let can = FORMATS.iter().filter(|format| format.can_be_split());
            let can: Vec<&str> = can.map(|format| format.name).collect();
            return Err(Failure::new(format!(
                "--split does not work with {}, whose output is always one file",
                format.name
            ))
            .hint(format!(
                "--split works with {}; to export a time window, use --window 2.0s..2.5s",
                can.join(" and ")
            )));
        }
        (Some(limit_bytes), None) => conversion.to_series(&output, limit_bytes, &readers)?,
        (None, None) => conversion.to_one(&output, &readers)?,
    }
    Ok(Outcome::Success)
}

/// Writes copies without what identifies people and machines.
///
/// # Errors
/// An input cannot be read, or a copy not be written.
fn anonymise(arguments: &Convert, output: &Path) -> Result<Outcome> {
    let readers = inputs::open_all(&arguments.inputs)?;
    let paths: Vec<&Path> = readers.iter().map(Reader::path).collect();
    let copies: Vec<PathBuf> = match paths.len() {
        1 => vec![output.to_owned()],
        // The names of traces may be those of programs and hosts.
        number => (1..=number).map(|number| output.join(format!("{number}.omptrace"))).collect(),
    };
    if paths.len() > 1 {
        fs::create_dir_all(output).map_err(cannot_write(output))?;
    }
    let symbols = arguments.debug_dirs.symbols();
    let mut anonymiser = Anonymiser::default();
    let work = Work::first_step("copying", 20);
    for (reader, copy) in readers.iter().zip(&copies) {
        let target = Target::open(copy, &paths)?;
        let metadata = anonymiser.metadata(reader, &symbols);
        let writer = target.writer().map_err(cannot_write(copy))?;
        let change = &mut |event: &mut _| anonymiser.event(event);
        copy_changed(reader, metadata, change, writer, &mut work.of_file(copies.len()))
            .map_err(|error| Failure::because(format!("cannot copy {}", reader.path().display()), &error))?;
        target.finish().map_err(cannot_write(copy))?;
    }
    summaries::add(&copies, None, false, work.next_step("analysing"));
    for copy in &copies {
        let bytes = fs::metadata(copy).map_err(cannot_write(copy))?.len();
        message::note(&format!("{}: {}", copy.display(), message::bytes(bytes)));
    }
    Ok(Outcome::Success)
}

/// The format that is asked for, or else that of the output's name.
///
/// # Errors
/// Neither names one.
fn format_of(arguments: &Convert) -> Result<&'static Format> {
    let of_name = || Format::by_extension(arguments.output.as_deref()?);
    if let Some(format) = arguments.to.or_else(of_name) {
        return Ok(format);
    }
    let problem = match &arguments.output {
        Some(output) => format!("the name {} does not determine the output format", output.display()),
        None => "no output format was given".to_owned(),
    };
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    Err(Failure::new(problem).hint(format!("choose one with --to: {}", names.join(", "))))
}

/// Checks that tables are asked for where parts are, and that of tables nothing is selected: engines do that.
///
/// # Errors
/// Options do not go together.
fn check_tables(arguments: &Convert, format: &Format) -> Result<()> {
    let name = format.name;
    if !format.is_tables() {
        return match arguments.part_of {
            Some(_) => Err(Failure::new(format!("--part works only with parquet, not with {name}")).hint(
                "to export a time window, use --window 2.0s..2.5s; to write several files, use --split 500M",
            )),
            None => Ok(()),
        };
    }
    let part = &arguments.part;
    let refused = [
        ("--window", part.window.is_some()),
        ("--thread", !part.threads.is_empty()),
        ("--min-duration", part.min_duration.is_some()),
        ("--critical-path", arguments.critical_path),
    ];
    match refused.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::new(format!(
            "{option} does not work with {name}, whose tables always contain whole processes"
        ))
        .hint("select rows in SQL, for example with WHERE begin_ns < 2.5e9")),
        None => Ok(()),
    }
}

/// Checks that there are samples where a format has nothing else.
///
/// # Errors
/// No trace has samples.
fn check_samples(format: &Format, readers: &[Reader]) -> Result<()> {
    if !format.needs_samples {
        return Ok(());
    }
    let mut reasons = Vec::new();
    for reader in readers {
        match why_no_samples(reader) {
            None => return Ok(()),
            Some(reason) => reasons.push((reader.path(), reason)),
        }
    }
    let Some((path, reason)) = reasons.first() else {
        return Ok(());
    };
    let problem = format!("{} has no samples: {reason}", path.display());
    let failure = Failure::new(problem);
    // Who asked for samples knows the option.
    let asked = readers.iter().any(|reader| reader.metadata().sampling.is_some());
    Err(match asked {
        true => failure,
        false => failure.hint("to record samples, use omptrace record --sample"),
    })
}
