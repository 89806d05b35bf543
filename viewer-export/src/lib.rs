//! Exports of traces: a timeline as Chrome JSON, Perfetto, OTF2, text or tables, and raw events.
//!
//! ```no_run
//! use omptrace_trace_format::Reader;
//! use omptrace_viewer_export::{ConvertOptions, Format, convert};
//!
//! let trace = Reader::open("stencil.4242.omptrace".as_ref())?;
//! let chrome = Format::by_name("chrome").expect("a format");
//! let out = Box::new(std::fs::File::create("stencil.json")?);
//! convert(&[&trace], chrome, &ConvertOptions::default(), out, &mut |_events| {})?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Exporters see only [items](omptrace_timeline::sink::Item), interpretation sees only events. Nothing here prints.
#![forbid(unsafe_code)]

mod buffers;
mod chrome;
mod digits;
mod dump;
mod firefox;
mod folded;
mod format;
mod format_options;
mod json;
mod otf2;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod perfetto;
mod pprof;
mod protobuf;
mod rotate;
mod sections;
mod segments;
mod share;
mod system_ids;
mod text;
mod text_cache;
mod turns;

use std::io::{self, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::Ordering;

use omptrace_symbols::parallel::processors;
use omptrace_symbols::{self as symbols, Table};
use omptrace_timeline::filter::Selection;
use omptrace_timeline::{self as timeline, KeptArguments, Report, Timeline, handed_over};
use omptrace_trace_format::Reader;
use parking_lot::Mutex;

use buffers::Writer;
use omptrace_timeline::sink::Sink;
use output::{ByteCount, Output};
use rotate::Split;
use share::{Share, shares_for};
use turns::Turns;

pub use dump::{dump_json, dump_text};
pub use format::{FORMATS, Format};
pub use format_options::{FolderParts, FormatOption, FormatOptions};
#[cfg(feature = "parquet")]
pub use omptrace_columns::{JobPart, splits};
pub use rotate::NextFile;

/// How to convert.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// Compress the output with gzip.
    pub gzip: bool,
    /// Where to look for names of code: for traces that bring none along, and for all where folders are given.
    pub symbols: symbols::Options,
    /// Show each chunk that a thread gets of a loop that is not static.
    pub chunks: bool,
    /// The part of the timeline that is exported.
    pub selection: Selection,
    /// Options that only one format has.
    pub format: FormatOptions,
    /// Of a format that is tables, only this part, from 1, of that number of parts `n`: every `n`-th process.
    pub part: Option<(NonZero<usize>, NonZero<usize>)>,
    /// How many threads may work at once, as many as there are processors where it is `None`. The export is the same.
    pub threads: Option<NonZero<usize>>,
    /// Events of a segment, at least, where a file is written in segments;
    /// [`MIN_SEGMENT_EVENTS`](omptrace_timeline::MIN_SEGMENT_EVENTS) where it is `None`.
    pub min_segment_events: Option<u64>,
}

impl ConvertOptions {
    fn threads(&self) -> usize {
        self.threads.map_or_else(processors, NonZero::get)
    }

    /// Whether others decode ahead and write behind.
    fn is_parallel(&self) -> bool {
        self.threads() > 1
    }

    /// Compresses what is written into `out` where that is wanted.
    fn compressed(&self, out: Writer) -> Writer {
        if self.gzip { output::gzip(out) } else { out }
    }

    /// The output of a format, which writes into `out`.
    fn output(&self, out: Writer) -> Output {
        if self.is_parallel() { Output::behind(out) } else { Output::new(out) }
    }
}

/// Converts `inputs` to one timeline in `format`. `progress` gets the number of events that are done now and then.
///
/// # Errors
/// The first error of writing to `out`. A damaged input is no error: the report says what was wrong with it.
pub fn convert(
    inputs: &[&Reader],
    format: &Format,
    options: &ConvertOptions,
    out: Box<dyn Write + Send>,
    progress: &mut (dyn FnMut(u64) + Send),
) -> io::Result<Report> {
    let mut out = options.compressed(out);
    let shares = match format.has_shares() {
        true => shares_for(inputs.iter().map(|reader| reader.streams().len())),
        false => 1,
    };
    if shares > 1 {
        let shares = Share::several(shares);
        out = match side_by_side(inputs, format, options, shares, out, progress) {
            Ok(report) => return report,
            Err(out) => out,
        };
    }
    let segments = segments::of(inputs, format, options);
    if let Some(segments) = &segments
        && let workers @ 2.. = segments::workers(inputs, options)
    {
        return segments::side_by_side(inputs, segments, workers, (format, options), out, progress);
    }
    let out = options.output(out);
    let bytes = out.bytes();
    let report = match &segments {
        Some(segments) => {
            let sink = format.sink(out, Share::in_segments())?;
            segments::in_one_go(inputs, segments, (format, options), sink, progress)?
        }
        None => {
            let sink = format.sink(out, Share::whole())?;
            replay_all(inputs, format, options, sink, progress)?
        }
    };
    Ok(Report { exported_bytes: bytes.count(), ..report })
}

/// [`convert`] of several processes, of which each of `shares` takes some. Gives `out` back where there cannot be as many
/// threads as that takes.
fn side_by_side(
    inputs: &[&Reader],
    format: &Format,
    options: &ConvertOptions,
    shares: Vec<Share>,
    out: Writer,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<io::Result<Report>, Writer> {
    let workers = options.threads().min(shares.len());
    let turns = Turns::new(out, shares.len(), workers);
    let timeline = Timeline::of(inputs);
    let bytes = ByteCount::default();
    let progress = Mutex::new((0, progress));

    let reports = turns.take(&|number| {
        let out = Output::in_turns(turns.clone(), number, bytes.clone());
        let sink = format.sink(out, shares[number as usize].clone())?;
        let mut progress = of_part(&progress, Some(0));
        let (first, step) = (number as usize, shares.len());
        let options =
            ConvertOptions { selection: options.selection.of_processes(first, step), ..options.clone() };
        replay(format, &options, workers, sink, &mut |symbols, manner, sink| {
            timeline.replay(first, step, symbols, manner, sink, &mut progress)
        })
    })?;
    let end = format.end(&shares[0]);
    bytes.add(end.len());
    let complete = turns.finish(&end).and_then(|()| {
        Ok(Report {
            uncertainty_ns: timeline.uncertainty_ns,
            exported_bytes: bytes.count(),
            ..Report::of_shares(reports.into_iter().collect::<io::Result<Vec<_>>>()?)
        })
    });
    Ok(complete)
}

/// The events that all parts have done, and who wants to know: under one lock, or that one would see the sum go back.
type Progress<'p> = Mutex<(u64, &'p mut (dyn FnMut(u64) + Send))>;

/// The progress of a part that counts from `reported` on; where that is `None`, from what it reports first.
fn of_part<'p>(progress: &'p Progress<'_>, mut reported: Option<u64>) -> impl FnMut(u64) + 'p {
    move |events| {
        let more = events - reported.replace(events).unwrap_or(events);
        let (done, progress) = &mut *progress.lock();
        *done += more;
        progress(*done);
    }
}

/// [`convert`] to a format that [is a folder](Format::is_folder): `folder` is there and empty. It is complete when this
/// returns: before, nobody takes it for an archive.
///
/// # Errors
/// The first error of writing.
pub fn convert_to_folder(
    inputs: &[&Reader],
    format: &Format,
    options: &ConvertOptions,
    folder: &Path,
    progress: &mut (dyn FnMut(u64) + Send),
) -> io::Result<Report> {
    #[cfg(feature = "parquet")]
    if format.is_tables() {
        return parquet::export(inputs, options, folder, progress);
    }
    let locations = inputs.iter().map(|reader| reader.streams().len()).sum();
    let sink = format.folder_sink(folder, &options.format, locations)?;
    replay_all(inputs, format, options, sink, progress)
}

/// Files of a series that have a thread which writes: all stay open.
const MAX_WRITING_THREADS: usize = 32;

/// [`convert`] to a series of files in the order of time, each complete by itself, of about `limit_bytes` each before
/// compression.
///
/// # Errors
/// The first error of `next_file`, or of writing to a file.
pub fn convert_split(
    inputs: &[&Reader],
    format: &'static Format,
    options: &ConvertOptions,
    limit_bytes: u64,
    mut next_file: NextFile,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Report> {
    let target = options.clone();
    let next_output = move |number| {
        let out = target.compressed(next_file(number)?);
        Ok(match number {
            ..=MAX_WRITING_THREADS => target.output(out),
            _ => Output::new(out),
        })
    };
    // Processes are written one after the other, each from the first file to the last.
    let limit_bytes = limit_bytes / inputs.len().max(1) as u64;
    let split = Split::new(format, Box::new(next_output), limit_bytes);
    let cut_arrows = split.cut_arrows();
    let report = replay_all(inputs, format, options, Box::new(split), progress)?;
    Ok(Report {
        // Relaxed: what counted has ended.
        cut_arrows: cut_arrows.load(Ordering::Relaxed),
        ..report
    })
}

/// Interprets all processes, one after the other, into `sink`, and finishes that.
fn replay_all(
    inputs: &[&Reader],
    format: &Format,
    options: &ConvertOptions,
    sink: Box<dyn Sink>,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Report> {
    replay(format, options, 1, sink, &mut |symbols, manner, sink| {
        timeline::replay_with(inputs, symbols, manner, sink, progress)
    })
}

/// How to interpret, with these names of code, into this sink.
type Interpret<'a> = dyn FnMut(&dyn Fn(&Reader) -> Table, timeline::Manner, &mut dyn Sink) -> Report + 'a;

/// Interprets what `options` select into `sink`, which is of `format`, and finishes that: the work of one of `workers`.
fn replay(
    format: &Format,
    options: &ConvertOptions,
    workers: usize,
    sink: Box<dyn Sink>,
    interpret: &mut Interpret<'_>,
) -> io::Result<Report> {
    let mut sink = options.selection.of(sink);
    let threads = options.threads() / workers;
    let manner = timeline::Manner {
        chunks: options.chunks,
        max_depth: format.max_depth,
        ahead: threads > 1,
        window: options.selection.window,
        ..timeline::Manner::default()
    };
    let symbols = |reader: &Reader| Table::of(reader, &options.symbols);
    // On two processors those who decode and write leave nothing for one who encodes.
    let report = handed_over(vec![&mut *sink], usize::from(threads > 2), KeptArguments::All, |sink| {
        interpret(&symbols, manner, sink)
    });
    sink.finish()?;
    Ok(report)
}
