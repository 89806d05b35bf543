//! One process, converted in [segments](omptrace_timeline::Segments): each thread reads, interprets and encodes some.

use std::io;

use omptrace_symbols::Table;
use omptrace_timeline::{FromSegment, MIN_SEGMENT_EVENTS, Manner, Report, Segments, Timeline};
use omptrace_trace_format::Reader;
use parking_lot::Mutex;

use crate::output::{ByteCount, Output, Writer};
use crate::shard::{Share, Turns};
use crate::{ConvertOptions, Format};

/// The segments that a file is written in. It is that of one process, all of it, in a format that has segments.
pub(crate) fn of(
    inputs: &[&Reader],
    format: &Format,
    options: &ConvertOptions,
) -> Option<Segments> {
    let [reader] = inputs else {
        return None;
    };
    if !format.has_segments() || !options.selection.is_all() {
        return None;
    }
    let min_events = options.min_segment_events.unwrap_or(MIN_SEGMENT_EVENTS);
    Segments::of(reader, min_events)
}

/// Events of segments that one thread writes in one go, about: what it writes waits until all before it is written.
const MAX_EVENTS_IN_ONE_GO: u64 = 1 << 19;

/// [`convert`](crate::convert) of one process in segments, as many at once as there may be threads.
pub(crate) fn convert(
    inputs: &[&Reader],
    segments: &Segments,
    format: &Format,
    options: &ConvertOptions,
    out: Writer,
    progress: &mut (dyn FnMut(u64) + Send),
) -> io::Result<Report> {
    let timeline = Timeline::of(inputs);
    // To look names up in debug information takes long: once is enough.
    let names: Vec<Table> = inputs
        .iter()
        .map(|reader| Table::of(reader, &options.symbols))
        .collect();
    let symbols = |_: &Reader| names.first().cloned().unwrap_or_default();
    let manner = Manner {
        chunks: options.chunks,
        max_depth: format.max_depth,
        ahead: false,
        ..Manner::default()
    };
    let share = Share::in_segments();
    if options.threads() == 1 {
        let out = Output::new(out);
        let bytes = out.bytes();
        let mut sink = format.sink(out, share)?;
        let all = 0..segments.count();
        let mut report =
            timeline.replay_segments(segments, all, &symbols, manner, &mut *sink, progress);
        sink.finish()?;
        report.exported_bytes = bytes.count();
        return Ok(report);
    }
    let goes = segments.goes(options.threads(), MAX_EVENTS_IN_ONE_GO);
    let workers = options.threads().min(goes.len());
    let turns = Turns::in_order(out, goes.len(), workers);
    let bytes = ByteCount::default();
    let progress = Mutex::new((0, progress));
    let reports = turns.take_in_order(workers, &|number| {
        let go = goes[number as usize].clone();
        let out = Output::in_turns(turns.clone(), number, bytes.clone());
        let mut sink = format.sink(out, share.beginning_at(go.start as u32))?;
        let mut reported = None;
        let mut progress = |events| {
            // Those of the segments before are counted there.
            let more = events - reported.replace(events).unwrap_or(events);
            let (done, progress) = &mut *progress.lock();
            *done += more;
            progress(*done);
        };
        let mut from_segment = FromSegment::of(go.start, &mut *sink);
        let report = timeline.replay_segments(
            segments,
            go,
            &symbols,
            manner,
            &mut from_segment,
            &mut progress,
        );
        sink.finish()?;
        Ok(report)
    });
    let end = format.end(&share);
    bytes.add(end.len());
    turns.finish(&end)?;
    Ok(Report {
        exported_bytes: bytes.count(),
        ..Report::of_segments(reports.into_iter().collect::<io::Result<Vec<_>>>()?)
    })
}
