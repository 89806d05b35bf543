//! CPU time that a process used, and the share of it that recording took.
//!
//! Events do not show whether a thread was on a CPU, and a waiting thread may spin. So only bounds of the program's own
//! work are known, and each rule uses the bound that is certain.

use omptrace_timeline::{EventCounts, ProcessReport, waits_are_short_where_oversubscribed};
use omptrace_trace_format::Metadata;
use omptrace_trace_format::metadata::CpuTime;

use crate::constructs::sums::ProcessSums;
use crate::model::effort::{Cpu, Effort};
use crate::model::stats::ThreadStats;
use crate::model::sum::{Sum, sum};

/// The loader and the runtime take 5 to 50 ms of a CPU to start.
const LOADER_NS: u64 = 50_000_000;

/// Programs that run scripts, without their versions.
const INTERPRETERS: [&str; 10] =
    ["python", "pypy", "julia", "R", "ruby", "perl", "node", "java", "octave-cli", "MATLAB"];

/// The effort of a process that was analysed completely. `busiest`: the peak number of threads; `processors`: the
/// number of CPUs.
pub(crate) fn of_process(
    metadata: &Metadata,
    report: &ProcessReport,
    process: &ProcessSums,
    (busiest, processors): (u64, Option<u32>),
) -> Effort {
    let is_oversubscribed = processors.is_some_and(|processors| busiest > processors.into());
    let counts_all = is_oversubscribed && waits_are_short_where_oversubscribed(metadata);
    // Device records are delivered by threads that are not the program's.
    let has_others = report.threads.iter().any(|thread| thread.device_num.is_some());
    let events = report.events.saturating_sub(report.samples.samples);
    let event_ps = process.stats.event_cost_ns.map(|ns| (ns * 1e3) as u64);
    let recording_ns = event_ps.filter(|_| !has_others);
    let recording_ns = recording_ns.map(|ps| (u128::from(ps) * u128::from(events) / 1000) as u64);
    let counters_ns = reading_ns(report, metadata);
    Effort {
        cpu: cpu(&process.threads, metadata.cpu_time.as_ref(), counts_all),
        recording_ns: recording_ns.map(|ns| ns.saturating_add(counters_ns)),
        counters_ns,
        event_ps,
        start_ns: start_ns(metadata, process),
        has_external_waits: metadata.external_waits,
    }
}

/// Upper bound of the time from a process's start until the program itself ran: the CPU time that the loader and the
/// runtime need at most, plus the time before tracing during which the process was not on a CPU. For an interpreter,
/// the whole time until the script calls OpenMP.
fn start_ns(metadata: &Metadata, process: &ProcessSums) -> Option<u64> {
    let before_ns = process.stats.before_tracing_ns.unwrap_or(0);
    let executable = metadata.process.as_ref().map_or("", |process| &process.executable);
    let worked_ns = match is_interpreter(executable) {
        true => 0,
        false => metadata.cpu_time.as_ref()?.process_begin_ns?,
    };
    Some(LOADER_NS + before_ns.saturating_sub(worked_ns))
}

/// Whether the program at this path is a script interpreter.
fn is_interpreter(executable: &str) -> bool {
    let name = executable.rsplit('/').next().unwrap_or_default();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    INTERPRETERS.contains(&name)
}

/// The time in which the process's threads read counters.
fn reading_ns(report: &ProcessReport, metadata: &Metadata) -> u64 {
    let names = report.counts.iter().flat_map(EventCounts::by_name);
    let readings = sum(names.filter(|(name, _)| *name == "omptrace_counters").map(|(_, count)| count));
    (readings as f64 * metadata.reading_cost_ns().unwrap_or(0.0)) as u64
}

fn cpu(threads: &[ThreadStats], times: Option<&CpuTime>, counts_all: bool) -> Option<Cpu> {
    let known = |thread: &&ThreadStats| thread.cpu_ns.is_some() && thread.role != "helper";
    let known: Vec<&ThreadStats> = threads.iter().filter(known).collect();
    let mut cpu = Cpu {
        delay_ns: times.and_then(|times| times.delay_ns),
        tracer_ns: times.and_then(tracer_ns),
        ..Cpu::default()
    };
    for thread in &known {
        let all = thread.cpu_ns.unwrap_or(0).min(thread.duration_ns);
        let outside = sum([thread.working_ns.unwrap_or(0), thread.serial_ns]);
        let waits = thread.duration_ns.saturating_sub(outside);
        cpu.all_ns.grow_by(all);
        cpu.work_ns.grow_by(match counts_all {
            true => all,
            false => all.saturating_sub(waits),
        });
    }
    (!known.is_empty()).then_some(cpu)
}

/// The CPU time of a process that none of its own threads used.
fn tracer_ns(times: &CpuTime) -> Option<u64> {
    let of_process = times.process_end_ns?.checked_sub(times.process_begin_ns?)?;
    let of_threads = sum(times.threads.iter().map(|thread| thread.end_ns.saturating_sub(thread.begin_ns)));
    (times.unknown_threads == 0).then(|| of_process.saturating_sub(of_threads))
}

#[cfg(test)]
mod tests {
    use omptrace_trace_format::metadata::{Process, ThreadCpuTime};

    use super::*;

    const MS: u64 = 1_000_000;

    /// The start of a process whose tracing began after 240 ms.
    fn start_of(executable: &str, worked_ns: Option<u64>) -> Option<u64> {
        let process = Process { executable: executable.to_owned(), ..Process::default() };
        let cpu_time = CpuTime { process_begin_ns: worked_ns, ..CpuTime::default() };
        let metadata = Metadata { process: Some(process), cpu_time: Some(cpu_time), ..Metadata::default() };
        let mut sums = ProcessSums::default();
        sums.stats.before_tracing_ns = Some(240 * MS);
        start_ns(&metadata, &sums)
    }

    #[test]
    fn what_the_process_worked_before_tracing_is_no_start() {
        assert_eq!(start_of("/home/a/solve", Some(230 * MS)), Some(60 * MS));
        assert_eq!(start_of("/home/a/solve", Some(20 * MS)), Some(270 * MS));
        assert_eq!(start_of("/home/a/solve", None), None);
    }

    #[test]
    fn the_tracers_time_is_that_of_no_thread_if_all_are_known() {
        let thread = |begin_ns, end_ns| ThreadCpuTime { stream: 1, begin_ns, end_ns };
        let mut times = CpuTime {
            process_begin_ns: Some(10 * MS),
            process_end_ns: Some(110 * MS),
            threads: vec![thread(10 * MS, 50 * MS), thread(0, 35 * MS)],
            ..CpuTime::default()
        };
        assert_eq!(tracer_ns(&times), Some(25 * MS));
        times.unknown_threads = 1;
        assert_eq!(tracer_ns(&times), None);
    }

    #[test]
    fn interpreters_start_until_tracing_begins() {
        for name in ["/usr/bin/python3.11", "/opt/pypy3", "/usr/lib/R/bin/exec/R", "julia"] {
            assert_eq!(start_of(name, Some(230 * MS)), Some(290 * MS), "{name}");
        }
        for name in ["/usr/bin/pythonic", "Rivet", ""] {
            assert_eq!(start_of(name, Some(230 * MS)), Some(60 * MS), "{name}");
        }
    }
}
