//! One process, converted in [segments](omptrace_timeline::Segments): each thread reads, interprets and encodes some.

use std::io;

use omptrace_symbols::Table;
use omptrace_timeline::sink::Sink;
use omptrace_timeline::{
    FromSegment, KeptArguments, MIN_SEGMENT_EVENTS, Manner, Report, Segments, Timeline, handed_over,
};
use omptrace_trace_format::Reader;
use parking_lot::Mutex;

use crate::output::{ByteCount, Output, Writer};
use crate::shard::{MAX_SHARES, MAX_STREAMS, Share, Turns};
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

/// How many threads write segments at once. Each reads all streams, and keeps what it has written until its turn.
fn workers(inputs: &[&Reader], options: &ConvertOptions) -> usize {
    let streams = inputs.iter().map(|reader| reader.streams().len()).sum();
    let fitting = MAX_STREAMS / usize::max(streams, 1);
    options.threads().min(MAX_SHARES).min(fitting).max(1)
}

/// All segments, one after the other: others decode, encode and write where there may be further threads.
fn in_one_go(
    format: &Format,
    options: &ConvertOptions,
    out: Writer,
    interpret: &mut dyn FnMut(&mut dyn Sink) -> Report,
) -> io::Result<Report> {
    let out = options.output(out);
    let bytes = out.bytes();
    let mut sink = format.sink(out, Share::in_segments())?;
    let report = handed_over(
        vec![&mut *sink],
        usize::from(options.threads() > 2),
        KeptArguments::All,
        interpret,
    );
    sink.finish()?;
    Ok(Report {
        exported_bytes: bytes.count(),
        ..report
    })
}

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
    let workers = workers(inputs, options);
    if workers == 1 {
        return in_one_go(format, options, out, &mut |sink| {
            let all = 0..segments.count();
            let manner = Manner {
                ahead: options.is_parallel(),
                ..manner
            };
            timeline.replay_segments(segments, all, &symbols, manner, sink, progress)
        });
    }
    let goes = segments.goes(workers, MAX_EVENTS_IN_ONE_GO);
    let workers = workers.min(goes.len());
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
