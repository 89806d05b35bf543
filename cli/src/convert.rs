//! `omptrace convert`: one timeline of all inputs, in a format of choice.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::PossibleValue;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use omptrace_symbols::parallel::limit_threads;
use omptrace_timeline::filter::{Selection, threads};
use omptrace_timeline::sink::Ns;
use omptrace_timeline::{Report, why_no_samples};
use omptrace_trace_format::{Reader, Severity};
use omptrace_viewer_export::FORMATS;
use omptrace_viewer_export::{
    ConvertOptions, FolderParts, Format, convert, convert_split, convert_to_folder,
};
use parking_lot::Mutex;

use crate::arguments::{DebugDirs, Part};
use crate::failure::{Failure, Outcome, Result};
use crate::format_flags::FormatFlags;
use crate::highlights;
use crate::inputs;
use crate::message;
use crate::output_path::Target;
use crate::progress;
use crate::replace_folder::Folder;
use crate::units;
use crate::windows::hint_at_checkpoints;

/// `omptrace convert`.
#[derive(Args, Debug)]
#[command(after_help = "\
Several inputs make one timeline: processes ordered by MPI rank, then by start, aligned by the clocks of their hosts.

Examples:
  omptrace convert app.omptrace -o app.pftrace    (open it at https://ui.perfetto.dev)
  omptrace convert traces/ --to chrome -o job.json.gz
  omptrace convert app.omptrace --to otf2 -o app.otf2    (a folder; its anchor is app.otf2/traces.otf2)
  omptrace convert traces/ --to parquet -o job.tables    (tables for SQL, see docs/columns.md)
  omptrace convert app.omptrace --to text -o - | less
  omptrace convert app.omptrace --to perfetto --window 2.0s..2.5s --min-duration 10us
  omptrace convert app.omptrace --to perfetto --critical-path")]
pub(crate) struct Convert {
    /// Traces, or folders of them
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// The format [default: the one that OUT's name ends with, as in app.pftrace or app.json.gz]
    #[arg(long, value_name = "FORMAT", value_parser = format_names())]
    pub(crate) to: Option<&'static Format>,
    /// The file to write, compressed where its name ends with .gz; `-` is stdout. For otf2 and parquet, the folder [default: the first
    /// input's name with the format's extension]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Where to look for names that the traces do not bring along.
    #[command(flatten)]
    pub(crate) debug_dirs: DebugDirs,
    /// For chrome and perfetto: several files in the order of time, each complete by itself and of about this size, as in
    /// 500M. The size is that before compression. OUT gets -001, -002 and so on before its extension
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) split: Option<u64>,
    /// For parquet: only part I of N, every N-th process, or a part of a large one where N is more than there are. Parts
    /// join what is in the folder. Several machines may write one data set so, each with all inputs and a part of its own
    #[arg(long = "part", value_name = "I/N", value_parser = units::part)]
    pub(crate) part_of: Option<(NonZero<usize>, NonZero<usize>)>,
    /// Also each chunk that a thread gets of a loop that is not static: as many slices as the program has chunks
    #[arg(long)]
    pub(crate) chunks: bool,
    /// Also the critical path of each process: the longest chain of work, as a track, with arrows from thread to thread
    #[arg(long)]
    pub(crate) critical_path: bool,
    /// How many threads may work at once; the export is the same [default: as many as there are processors]
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
        selection.extra_tracks = highlights::critical_paths(&inputs, &symbols);
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
            return Err(Failure::new(format!("{} is a folder and cannot be split", format.name)).hint(
                match format.is_tables() {
                    true => "--part 1/4 exports a part of the rows",
                    false => "--window 2.0s..2.5s exports a part of the time",
                },
            ));
        }
        (Some(_), None) if !format.can_be_split() => {
            let can = FORMATS.iter().filter(|format| format.can_be_split());
            let can: Vec<&str> = can.map(|format| format.name).collect();
            return Err(Failure::new(format!("{} is one file and cannot be split", format.name)).hint(
                format!(
                    "--split is for {}; --window 2.0s..2.5s exports a part of the time",
                    can.join(" and ")
                ),
            ));
        }
        (Some(limit_bytes), None) => conversion.to_series(&output, limit_bytes, &readers)?,
        (None, None) => conversion.to_one(&output, &readers)?,
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
        Some(output) => format!("the name {} names no format", output.display()),
        None => "neither --to nor a name of the output names the format".to_owned(),
    };
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    Err(Failure::new(problem).hint(format!("--to takes {}", names.join(", "))))
}

/// Checks that tables are asked for where parts are, and that of tables nothing is selected: engines do that.
///
/// # Errors
/// Options do not go together.
fn check_tables(arguments: &Convert, format: &Format) -> Result<()> {
    let name = format.name;
    if !format.is_tables() {
        return match arguments.part_of {
            Some(_) => Err(Failure::new(format!("--part is for parquet, not for {name}"))
                .hint("--window 2.0s..2.5s exports a part of the time, --split 500M several files")),
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
        Some((option, _)) => {
            Err(Failure::new(format!("{option} is not for {name}: tables have whole processes"))
                .hint("select rows by SQL, as in WHERE begin_ns < 2.5e9"))
        }
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
        false => failure.hint("omptrace record --sample records them"),
    })
}

/// The selected part of the timeline.
///
/// # Errors
/// No thread is called as one that is wanted.
pub(crate) fn selection(part: &Part, readers: &[Reader]) -> Result<Selection> {
    let all: Vec<&Reader> = readers.iter().collect();
    check_threads(&part.threads, &all)?;
    hint_at_checkpoints(part.window, &all);
    Ok(Selection {
        arguments: part.arguments,
        window: part.window,
        threads: part.threads.clone(),
        min_duration_ns: part.min_duration.unwrap_or(0),
        extra_tracks: Vec::new(),
    })
}

/// Checks that threads are there that are wanted.
///
/// # Errors
/// No thread is called as one that is wanted.
pub(crate) fn check_threads(wanted: &[String], readers: &[&Reader]) -> Result<()> {
    for wanted in wanted {
        let mut known = readers.iter().copied().flat_map(threads);
        if !known.any(|thread| thread.is_meant_by(wanted)) {
            let known = readers.iter().copied().flat_map(threads);
            let names: BTreeSet<String> = known.map(|thread| thread.name).collect();
            let names: Vec<String> = names.into_iter().collect();
            return Err(Failure::new(format!("no thread is called {wanted}"))
                .hint(format!("there are {}", names.join(", "))));
        }
    }
    Ok(())
}

/// A conversion that is about to be made.
pub(crate) struct Conversion<'r> {
    pub(crate) inputs: Vec<&'r Reader>,
    pub(crate) format: &'static Format,
    pub(crate) options: ConvertOptions,
}

impl Conversion<'_> {
    fn to_one(&self, output: &Path, readers: &[Reader]) -> Result<()> {
        let target = Target::open(output, &paths(readers))?;
        let report = self
            .with_progress(|progress| {
                let writer = target.writer()?;
                convert(&self.inputs, self.format, &self.options, writer, progress)
            })
            .map_err(cannot_write(output))?;
        print_written(output, target)?;
        self.print_size(report.exported_bytes);
        self.print_window(report.end);
        report_gaps(&report);
        Ok(())
    }

    fn to_folder(&self, output: &Path, parts: &FolderParts, readers: &[Reader]) -> Result<()> {
        let is_part = self.options.part.is_some();
        let folder = Folder::open(output, *parts, is_part, readers)?;
        let report = self
            .with_progress(|progress| {
                convert_to_folder(&self.inputs, self.format, &self.options, folder.path(), progress)
            })
            .map_err(cannot_write(output))?;
        let bytes = folder.finish().map_err(cannot_write(output))?;
        message::note(&format!("{}: {}", output.display(), message::bytes(bytes)));
        self.print_window(report.end);
        report_gaps(&report);
        Ok(())
    }

    fn to_series(&self, output: &Path, limit_bytes: u64, readers: &[Reader]) -> Result<()> {
        if output == Path::new("-") {
            return Err(Failure::new("a series of files cannot go to stdout").hint("name a file with -o"));
        }
        // Said before anything is written: whether the first can be.
        let first = numbered(output, 1);
        let targets = Arc::new(Mutex::new(vec![(first.clone(), Target::open(&first, &paths(readers))?)]));
        let series = Arc::clone(&targets);
        let output = output.to_owned();
        let next_file = move |number: usize| {
            let mut series = series.lock();
            if number > series.len() {
                let path = numbered(&output, number);
                let target =
                    Target::open(&path, &[]).map_err(|failure| io::Error::other(failure.to_string()))?;
                series.push((path, target));
            }
            series[number - 1].1.writer()
        };
        let report = self
            .with_progress(|progress| {
                let next_file = Box::new(next_file);
                convert_split(&self.inputs, self.format, &self.options, limit_bytes, next_file, progress)
            })
            .map_err(cannot_write(&first))?;
        for (path, target) in std::mem::take(&mut *targets.lock()) {
            print_written(&path, target)?;
        }
        if report.cut_arrows > 0 {
            let arrows = message::number(report.cut_arrows);
            message::note(&format!("arrows from one file to another are in neither: {arrows}"));
        }
        self.print_window(report.end);
        report_gaps(&report);
        Ok(())
    }

    /// Converts into a file without a name.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn to_file(&self, file: &File) -> io::Result<Report> {
        let report = self.with_progress(|progress| {
            let writer = Box::new(file.try_clone()?);
            convert(&self.inputs, self.format, &self.options, writer, progress)
        })?;
        self.print_size(report.exported_bytes);
        self.print_window(report.end);
        report_gaps(&report);
        Ok(report)
    }

    fn with_progress(
        &self,
        convert: impl FnOnce(&mut (dyn FnMut(u64) + Send)) -> io::Result<Report>,
    ) -> io::Result<Report> {
        let bar = progress::events("converting", about_events(&self.inputs));
        let report = convert(&mut |events| bar.set_position(events));
        bar.finish_and_clear();
        report
    }

    /// Warns that nothing is in the window, for the timeline ends before it.
    fn print_window(&self, end: Ns) {
        if let Some((begin, _)) = self.options.selection.window
            && begin > end
        {
            message::warning(&format!(
                "nothing is within the window: the timeline ends at {}s",
                end as f64 / 1e9
            ));
        }
    }

    /// Warns that a file is more than viewers can open.
    fn print_size(&self, bytes: u64) {
        if self.format.viewer_bytes.is_some_and(|most| bytes > most) {
            message::warning(&format!(
                "{} of {} is more than viewers can open",
                message::bytes(bytes),
                self.format.name
            ));
            message::hint(
                "--window 2.0s..2.5s, --min-duration 10us, --thread NAME and --args none make it less, --split 500M several files",
            );
        }
    }
}

fn paths(readers: &[Reader]) -> Vec<&Path> {
    readers.iter().map(Reader::path).collect()
}

/// The file of that number in a series: `app-001.json.gz`.
fn numbered(output: &Path, number: usize) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let (stem, extensions) = match name.trim_start_matches('.').find('.') {
        Some(_) if name.ends_with(".gz") => {
            let inner = name.trim_end_matches(".gz");
            name.split_at(inner.rfind('.').unwrap_or(inner.len()))
        }
        Some(_) => name.split_at(name.rfind('.').unwrap_or(name.len())),
        None => (&name[..], ""),
    };
    output.with_file_name(format!("{stem}-{number:03}{extensions}"))
}

/// The failure where the output cannot be written.
pub(crate) fn cannot_write(output: &Path) -> impl Fn(io::Error) -> Failure {
    let doing = format!("cannot write {}", output.display());
    move |error| Failure::because(&doing, &error)
}

/// The target is complete: says where it is.
fn print_written(path: &Path, target: Target) -> Result<()> {
    if let Some(bytes) = target.finish().map_err(cannot_write(path))? {
        message::note(&format!("{}: {}", path.display(), message::bytes(bytes)));
    }
    Ok(())
}

/// How many events there are: the files give bytes, and most events take eight to ten.
pub(crate) fn about_events(readers: &[&Reader]) -> u64 {
    const USUAL_BYTES: u64 = 9;

    readers.iter().map(|reader| reader.summary().event_bytes / USUAL_BYTES).sum()
}

/// Prints what is missing in the timeline. The export itself notes repaired quirks of runtimes.
pub(crate) fn report_gaps(report: &Report) {
    for process in &report.processes {
        for (severity, note) in process.notes() {
            if severity > Severity::Note {
                message::warning(&format!("{}: {note}", process.name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_series_keep_their_extensions() {
        let name = |path: &str| numbered(Path::new(path), 7).display().to_string();
        assert_eq!(name("out/app.4242.json.gz"), "out/app.4242-007.json.gz");
        assert_eq!(name("app.pftrace"), "app-007.pftrace");
        assert_eq!(name("app"), "app-007");
        assert_eq!(name("v1.0/app"), "v1.0/app-007");
    }
}
