//! What a trace's metadata say of its process: name, command line, CPUs, and when it lived.

use omptrace_trace_format::Reader;
use omptrace_trace_format::metadata::{Metadata, Process, Record};

use crate::model::{Lifetime, Ns};

/// The processors that the process may run on: those that the kernel lists for it (`0-3,8`), or more where its runtime knows more, or
/// else all of its machine.
pub fn processors(metadata: &Metadata) -> Option<u32> {
    let ranges = metadata.process.as_ref().and_then(Process::cpus);
    let allowed = ranges.and_then(|ranges| {
        let mut counts = ranges.iter().map(|range| (range.end() - range.start()).checked_add(1));
        counts.try_fold(0_u32, |sum, count| sum.checked_add(count?))
    });
    let online = metadata.machine.as_ref().map(|machine| machine.cpus);
    // GCC's runtime binds the initial thread before the tracer asks, and knows how many there were.
    let of_runtime =
        metadata.processors.as_ref().and_then(|processors| u32::try_from(processors.num_procs).ok());
    let allowed = allowed.map(|allowed| allowed.max(of_runtime.unwrap_or(0)));
    allowed.or(online.filter(|cpus| *cpus > 0))
}

/// In which Linux counts when a process started: `USER_HZ` is 100 for all processors of today.
const TICK: Ns = 10_000_000;

/// When the process lived, on a timeline on which its session starts at `start`.
pub fn lifetime(reader: &Reader, start: Ns) -> Lifetime {
    let metadata = reader.metadata();
    let zero = i64::try_from(reader.clock().start_raw_ns()).unwrap_or(0);
    let on_timeline = |raw_ns: i64| raw_ns.saturating_sub(zero).saturating_add(start);
    let reading = |raw_ns: Option<u64>| i64::try_from(raw_ns?).ok().map(on_timeline);
    // Older versions of `record` did not know where the process had another clock, as in a time namespace. By that, tracing
    // began before the process did.
    let is_by_this_clock = |record: &&Record| reading(record.started_raw_ns).is_none_or(|it| it <= start);
    let record = metadata.record.as_ref().filter(is_by_this_clock);
    let seen = record.and_then(|record| reading(record.started_raw_ns));
    let reported = metadata.process.as_ref();
    let reported = reported.and_then(|process| process.started_raw_ns.map(on_timeline));
    // The tracer was there after it.
    let is_possible = |started: &Ns| *started <= start && zero > 0;
    let started = match seen {
        // Neither is after the true start, so the later is the better.
        Some(_) => seen.max(reported).filter(is_possible),
        // The latest moment of the tick: of processes that run one after the other, none begins before the one before has ended.
        None => reported.filter(is_possible).map(|reported| reported.saturating_add(TICK).min(start)),
    };
    // A session without an end was killed, and what its threads did then is not known.
    let end = metadata.end.as_ref().filter(|_| metadata.failure.is_none());
    let ended = end.and_then(|end| {
        let tracer = reading(end.raw_ns);
        let process = record.and_then(|record| reading(record.ended_raw_ns));
        tracer.max(process).filter(|_| zero > 0)
    });
    let tracer_ended = end.and_then(|end| {
        let times = reading(end.began_raw_ns).zip(reading(end.raw_ns));
        times.filter(|(begin, end)| begin <= end && zero > 0)
    });
    Lifetime { traced_from: start, started, ended, tracer_ended }
}

pub(super) fn command_line(reader: &Reader) -> Vec<String> {
    let process = reader.metadata().process.as_ref();
    process.map_or(Vec::new(), |process| process.command_line.clone())
}

/// The program, its rank where it has one, and its process id.
pub fn process_name(reader: &Reader) -> String {
    let pid = reader.header().pid;
    let Some(process) = &reader.metadata().process else {
        return format!("process {pid}");
    };
    let program = process.executable.rsplit('/').next().unwrap_or_default();
    match reader.metadata().rank() {
        Some(rank) => format!("rank {rank}: {program} ({pid})"),
        None => format!("{program} ({pid})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_of_a_process_are_those_that_it_may_use() {
        let processors = |affinity: &str, cpus: u32| {
            let metadata = serde_json::json!({
                "process": { "affinity": affinity },
                "machine": { "cpus": cpus },
            });
            processors(&serde_json::from_value(metadata).expect("metadata"))
        };
        assert_eq!(processors("0-3,8", 64), Some(5));
        assert_eq!(processors("7", 64), Some(1));
        let bound: serde_json::Value =
            serde_json::json!({"process": {"affinity": "0"}, "processors": {"num_procs": 2}});
        assert_eq!(super::processors(&serde_json::from_value(bound).expect("metadata")), Some(2));
        for unknown in ["", "3-1", "a", "0-", "0-4294967295", "-"] {
            assert_eq!(processors(unknown, 64), Some(64), "{unknown}");
            assert_eq!(processors(unknown, 0), None, "{unknown}");
        }
    }
}
