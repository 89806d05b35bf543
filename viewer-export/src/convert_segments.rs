//! Converts one process in [segments](omptrace_timeline::Segments): each thread reads, interprets and encodes some of
//! them.

use std::io;

use omptrace_symbols::Table;
use omptrace_timeline::model::Sink;
use omptrace_timeline::{FromSegment, MAX_STREAMS, MIN_SEGMENT_EVENTS, Report, Segments, Timeline};
use omptrace_trace_format::Reader;
use parking_lot::Mutex;

use crate::format::Format;
use crate::format::convert_options::ConvertOptions;
use crate::replay::replay;
use crate::writer::buffers::Writer;
use crate::writer::output::{ByteCount, Output};
use crate::writer::progress::of_part;
use crate::writer::share::{MAX_SHARES, Share};
use crate::writer::turns::Turns;

/// The segments in which a file can be written, if it contains a single, complete process, and the format supports
/// segments.
pub(crate) fn of(inputs: &[&Reader], format: &Format, options: &ConvertOptions) -> Option<Segments> {
    let [reader] = inputs else {
        return None;
    };
    if !format.has_segments() || !options.selection.is_all() {
        return None;
    }
    let min_events = options.min_segment_events.unwrap_or(MIN_SEGMENT_EVENTS);
    Segments::of(reader, min_events)
}

/// Approximate number of events that one thread writes at a time. What it has written waits until everything before it
/// has been written.
const MAX_EVENTS_IN_ONE_GO: u64 = 1 << 19;

/// Number of threads that write segments at once. Each thread reads all streams, and keeps its output until its turn.
pub(crate) fn workers(inputs: &[&Reader], options: &ConvertOptions) -> usize {
    let streams = inputs.iter().map(|reader| reader.streams().len()).sum();
    let fitting = MAX_STREAMS / usize::max(streams, 1);
    options.threads().min(MAX_SHARES).min(fitting).max(1)
}

/// Interprets all segments into `sink`, one after another, and finishes the sink.
pub(crate) fn in_one_go(
    inputs: &[&Reader],
    segments: &Segments,
    (format, options): (&Format, &ConvertOptions),
    sink: Box<dyn Sink>,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Report> {
    let (timeline, all) = (Timeline::of(inputs).with_messages(), 0..segments.count());
    replay(format, options, 1, sink, &mut |symbols, manner, sink| {
        timeline.replay_segments(segments, all.clone(), symbols, manner, sink, progress)
    })
}

/// [`convert`](fn@crate::convert) for one process in segments, which `workers` threads write in parallel.
pub(crate) fn side_by_side(
    inputs: &[&Reader],
    segments: &Segments,
    workers: usize,
    (format, options): (&Format, &ConvertOptions),
    out: Writer,
    progress: &mut (dyn FnMut(u64) + Send),
) -> io::Result<Report> {
    let timeline = Timeline::of(inputs).with_messages();
    // Looking names up in debug information takes long, so it is done once.
    let names: Vec<Table> = inputs.iter().map(|reader| Table::of(reader, &options.symbols)).collect();
    let names = |_: &Reader| names.first().cloned().unwrap_or_default();
    let share = Share::in_segments();
    let goes = segments.goes(workers, MAX_EVENTS_IN_ONE_GO);
    let turns = Turns::in_order(out, goes.len(), workers);
    let bytes = ByteCount::default();
    let progress = Mutex::new((0, progress));
    let reports = turns.take_in_order(workers, &|number| {
        let go = &goes[number as usize];
        let out = Output::in_turns(turns.clone(), number, bytes.clone());
        let sink = format.sink(out, share.beginning_at(go.start as u32), &options.format)?;
        // Includes the events of earlier segments.
        let mut progress = of_part(&progress, None);
        // Each worker decodes events itself.
        let all = options.threads();
        replay(format, options, all, sink, &mut |_, manner, sink| {
            let mut sink = FromSegment::of(go.start, sink);
            timeline.replay_segments(segments, go.clone(), &names, manner, &mut sink, &mut progress)
        })
    });
    let end = format.end(&share);
    bytes.add(end.len());
    turns.finish(&end)?;
    // The report of the last segment covers all events.
    let mut reports = reports.into_iter().collect::<io::Result<Vec<_>>>()?;
    Ok(Report { exported_bytes: bytes.count(), ..reports.pop().unwrap_or_default() })
}
