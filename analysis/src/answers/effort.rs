//! How much processor time a process had, and what recording took of it.
//!
//! Events do not show whether a thread had a processor, and a thread that waits may spin. So only bounds are known, and each rule takes
//! the bound that is certain.

use omptrace_timeline::{ProcessReport, waits_are_short_where_oversubscribed};
use omptrace_trace_format::Metadata;

use crate::constructs::sums::ProcessSums;
use crate::model::effort::{Cpu, Effort};
use crate::model::stats::ThreadStats;
use crate::model::sum::{Sum, sum};

/// That of a process of which all was analysed, with this many threads at the busiest time, and processors.
pub(crate) fn of_process(
    metadata: &Metadata,
    report: &ProcessReport,
    process: &ProcessSums,
    (busiest, processors): (u64, Option<u32>),
) -> Effort {
    let is_oversubscribed = processors.is_some_and(|processors| busiest > processors.into());
    let counts_all = is_oversubscribed && waits_are_short_where_oversubscribed(metadata);
    // Who delivers records of devices is no thread of the program's.
    let has_others = report.threads.iter().any(|thread| thread.device_num.is_some());
    let events = report.events.saturating_sub(report.samples.samples);
    let event_ps = process.stats.event_cost_ns.map(|ns| (ns * 1e3) as u64);
    let recording_ns = event_ps.filter(|_| !has_others);
    let recording_ns = recording_ns.map(|ps| (u128::from(ps) * u128::from(events) / 1000) as u64);
    let delay_ns = metadata.cpu_time.as_ref().and_then(|times| times.delay_ns);
    Effort {
        cpu: cpu(&process.threads, delay_ns, counts_all),
        recording_ns,
        event_ps,
        has_external_waits: metadata.external_waits,
    }
}

fn cpu(threads: &[ThreadStats], delay_ns: Option<u64>, counts_all: bool) -> Option<Cpu> {
    let known = |thread: &&ThreadStats| thread.cpu_ns.is_some() && thread.role != "helper";
    let known: Vec<&ThreadStats> = threads.iter().filter(known).collect();
    let mut cpu = Cpu { delay_ns, ..Cpu::default() };
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
