//! The threads of a process, their names, and their display order.

use std::collections::BTreeSet;

use ompt_sys as ompt;
use omptrace_symbols::parallel::in_parallel;
use omptrace_trace_format::event::Event;
use omptrace_trace_format::reader::Reader;

use crate::model::ThreadRole;
use crate::model::thread_introduction::{FirstRegion, MAIN, Membership, ThreadIntroduction};
use crate::threads::helpers;

/// With fewer bytes of events, starting threads takes longer than unpacking on one thread.
const MIN_BYTES_IN_PARALLEL: u64 = 1 << 20;

/// The threads of all streams, with names, in the order of [`Reader::streams`], which is that of the streams' numbers.
pub(crate) fn introductions(reader: &Reader) -> Vec<ThreadIntroduction> {
    let streams = reader.streams().iter().enumerate();
    // The first chunk of each stream is unpacked completely.
    let mut threads: Vec<ThreadIntroduction> = match reader.summary().event_bytes {
        ..MIN_BYTES_IN_PARALLEL => {
            streams.map(|(index, stream)| introduction(reader, index, stream.number)).collect()
        }
        _ => in_parallel(streams.collect(), |(index, stream)| introduction(reader, index, stream.number)),
    };
    keep_known_sample_streams(&mut threads);
    let main = main_thread(&threads, reader.header().pid);
    helpers::mark(reader, &mut threads, main);
    name(&mut threads, main);
    name_sample_streams(&mut threads);
    threads
}

/// If the thread of a stream of samples has no stream of events, the samples' stream stands for the thread.
fn keep_known_sample_streams(threads: &mut [ThreadIntroduction]) {
    let of_threads = threads.iter().filter(|thread| thread.samples_of.is_none());
    let of_threads: BTreeSet<u32> = of_threads.map(|thread| thread.stream).collect();
    for thread in threads {
        let is_known = |stream: &u32| of_threads.contains(stream);
        thread.samples_of = thread.samples_of.filter(is_known);
    }
}

/// What the first events of a stream, at `index` in the reader, say about its thread.
fn introduction(reader: &Reader, index: usize, stream: u32) -> ThreadIntroduction {
    let mut thread = ThreadIntroduction { stream, ..Default::default() };
    for record in reader.first_records(index) {
        match &record.event {
            Event::ThreadInfo(info) => {
                thread.os_tid = u32::try_from(info.os_tid).unwrap_or(0);
                thread.os_name = info.name.lossy().into_owned();
            }
            Event::SampleStream(samples) => thread.samples_of = Some(samples.thread_stream),
            Event::DeviceStream(device) => thread.device_num = Some(device.device_num),
            Event::ThreadBegin(begin) => thread.thread_type = Some(begin.thread_type),
            Event::ParallelBegin(begin) => {
                thread.first_region.get_or_insert(FirstRegion {
                    id: begin.parallel_data,
                    ticks: record.ticks,
                    codeptr_ra: begin.codeptr_ra,
                });
            }
            Event::ImplicitTaskBegin(begin) if begin.parallel_data.known().is_some() => {
                thread.team.get_or_insert(Membership { region: begin.parallel_data, index: begin.index });
            }
            _ => {}
        }
    }
    thread
}

/// Numbers the threads of each role in display order, so that worker 3 usually is the thread with number 3 in the
/// program.
fn name(threads: &mut [ThreadIntroduction], main: Option<usize>) {
    if let Some(main) = main {
        threads[main].name = MAIN.to_owned();
    }
    let (mut workers, mut initial, mut helpers, mut others) = (0, 1, 0, 0);
    for index in display_order(threads) {
        let thread = &mut threads[index];
        thread.name = match (thread.device_num, thread.role()) {
            _ if Some(index) == main => continue,
            (Some(device_num), _) => format!("device {device_num}"),
            (None, ThreadRole::Worker) => numbered("OpenMP worker", &mut workers),
            (None, ThreadRole::Initial | ThreadRole::Main) => numbered("initial thread", &mut initial),
            (None, ThreadRole::Helper) => numbered("hidden helper", &mut helpers),
            (None, ThreadRole::Other) => numbered("thread", &mut others),
        };
    }
}

/// Names streams of samples after their threads.
fn name_sample_streams(threads: &mut [ThreadIntroduction]) {
    for index in 0..threads.len() {
        let Some(stream) = threads[index].samples_of else {
            continue;
        };
        if let Ok(thread) = threads.binary_search_by_key(&stream, |thread| thread.stream) {
            threads[index].name = format!("samples of {}", threads[thread].name);
            threads[index].os_tid = threads[thread].os_tid;
        }
    }
}

fn numbered(what: &str, count: &mut u32) -> String {
    *count += 1;
    format!("{what} {count}")
}

/// The thread whose id is the process id; if there is none, the first initial thread.
fn main_thread(threads: &[ThreadIntroduction], pid: u32) -> Option<usize> {
    let is_initial = |thread: &ThreadIntroduction| thread.thread_type == Some(ompt::ompt_thread_initial);
    threads
        .iter()
        .position(|thread| thread.os_tid == pid && pid != 0)
        .or_else(|| threads.iter().position(is_initial))
}

/// The indexes of `threads` in display order: main, workers by their numbers in their first team, other initial
/// threads, hidden helpers, the rest. Streams of samples are not threads.
pub fn display_order(threads: &[ThreadIntroduction]) -> Vec<usize> {
    let rank = |thread: &ThreadIntroduction| {
        (thread.device_num.is_some(), thread.role(), thread.team.map(|team| team.index), thread.stream)
    };
    let is_thread = |index: &usize| threads[*index].samples_of.is_none();
    let mut order: Vec<usize> = (0..threads.len()).filter(is_thread).collect();
    order.sort_by_key(|index| rank(&threads[*index]));
    order
}

#[cfg(test)]
mod tests {
    use omptrace_trace_format::field::Id;

    use super::*;

    #[test]
    fn threads_are_named_by_their_role() {
        let thread = |stream, os_tid, thread_type, index| ThreadIntroduction {
            stream,
            os_tid,
            thread_type,
            team: Some(Membership { region: Id(1), index }),
            ..Default::default()
        };
        let mut threads = vec![
            thread(1, 11, Some(ompt::ompt_thread_initial), 0),
            thread(2, 12, Some(ompt::ompt_thread_worker), 2),
            thread(3, 10, Some(ompt::ompt_thread_initial), 0),
            thread(4, 13, None, 0),
            thread(5, 14, Some(ompt::ompt_thread_worker), 1),
        ];
        threads[3].is_helper = true;
        let main = main_thread(&threads, 10);
        name(&mut threads, main);
        let names: Vec<&str> =
            display_order(&threads).into_iter().map(|index| &threads[index].name[..]).collect();
        assert_eq!(
            names,
            ["main", "OpenMP worker 1", "OpenMP worker 2", "initial thread 2", "hidden helper 1"]
        );
        assert_eq!(threads[4].name, "OpenMP worker 1");
    }
}
