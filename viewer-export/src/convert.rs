//! Conversion: to one file (with several processes or segments in parallel), to a directory, or to a series of files.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use omptrace_timeline::{Report, Timeline};
use omptrace_trace_format::Reader;
use parking_lot::Mutex;

use crate::convert_segments;
use crate::format::Format;
use crate::format::convert_options::ConvertOptions;
#[cfg(feature = "parquet")]
use crate::parquet;
use crate::replay::{replay, replay_all};
use crate::writer::buffers::Writer;
use crate::writer::output::{ByteCount, Output};
use crate::writer::progress::of_part;
use crate::writer::share::{Share, shares_for};
use crate::writer::split_output::{NextFile, Split};
use crate::writer::turns::Turns;

/// Converts `inputs` to one timeline in `format`. Occasionally calls `progress` with the number of events processed so
/// far.
///
/// # Errors
/// The first error of writing to `out`. A damaged input is not an error: the report describes its problems.
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
    let segments = convert_segments::of(inputs, format, options);
    if let Some(segments) = &segments
        && let workers @ 2.. = convert_segments::workers(inputs, options)
    {
        return convert_segments::side_by_side(inputs, segments, workers, (format, options), out, progress);
    }
    let out = options.output(out);
    let bytes = out.bytes();
    let report = match &segments {
        Some(segments) => {
            let sink = format.sink(out, Share::in_segments(), &options.format)?;
            convert_segments::in_one_go(inputs, segments, (format, options), sink, progress)?
        }
        None => {
            let sink = format.sink(out, Share::whole(), &options.format)?;
            replay_all(inputs, format, options, sink, progress)?
        }
    };
    Ok(Report { exported_bytes: bytes.count(), ..report })
}

/// [`convert`] for several processes in parallel, which `shares` divides among threads. Returns `out` if not enough
/// threads can be created.
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
    let timeline = Timeline::of(inputs).with_messages();
    let bytes = ByteCount::default();
    let progress = Mutex::new((0, progress));

    let reports = turns.take(&|number| {
        let out = Output::in_turns(turns.clone(), number, bytes.clone());
        let sink = format.sink(out, shares[number as usize].clone(), &options.format)?;
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

/// [`convert`] to a format that [is a folder](Format::is_folder). `folder` must exist and be empty. The archive is
/// complete when this function returns; until then, no reader takes the directory for an archive.
///
/// # Errors
/// The first write error.
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

/// Maximum number of files in a series that have a writing thread. All files stay open.
const MAX_WRITING_THREADS: usize = 32;

/// [`convert`] to a series of files in chronological order, each of which is complete by itself and has about
/// `limit_bytes` before compression.
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
    // Processes are written one after another, each from the first file to the last.
    let limit_bytes = limit_bytes / inputs.len().max(1) as u64;
    let split = Split::new(format, options.format.clone(), Box::new(next_output), limit_bytes);
    let cut_arrows = split.cut_arrows();
    let report = replay_all(inputs, format, options, Box::new(split), progress)?;
    Ok(Report {
        // Relaxed: the threads that counted have ended.
        cut_arrows: cut_arrows.load(Ordering::Relaxed),
        ..report
    })
}
