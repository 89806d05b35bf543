//! The rule about hosts whose CPUs have too much to do.

use std::collections::{BTreeMap, BTreeSet};

use omptrace_timeline::processors;
use omptrace_trace_format::{Metadata, Reader};

use super::finding;
use super::rule_table::MIN_GAIN;
use crate::model::answers::{Answers, Finding};
use crate::model::place::Place;
use crate::model::process_stats::ProcessStats;
use crate::model::sum::Sum as _;

/// The processes of a job on one host.
#[derive(Debug, Default)]
struct Host {
    name: String,
    processes: u64,
    threads: u64,
    /// The CPUs that are online, and those that some process of the job may use.
    online: u64,
    allowed: BTreeSet<u32>,
    /// The time that threads waited for a CPU.
    delay_ns: u64,
}

/// That the processes of a job may use only some of a host's CPUs, and have more threads than that. If they used the others,
/// no thread would wait for a CPU of another one: each saves the mean of these waits. Where they use all CPUs, it is not known
/// how much fewer threads would save.
pub(crate) fn oversubscribed_host<'r>(
    readers: impl Iterator<Item = Option<&'r Reader>>,
    processes: &[ProcessStats],
    answers: &Answers,
) -> Option<Finding> {
    let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
    for (reader, process) in readers.zip(processes) {
        let metadata = reader?.metadata();
        let machine = metadata.machine.as_ref()?;
        let key = if machine.boot.is_empty() { &machine.host } else { &machine.boot };
        let host = hosts.entry(key.clone()).or_default();
        host.name.clone_from(&machine.host);
        host.processes += 1;
        host.threads += u64::from(process.threads.max(1));
        host.online = machine.cpus.into();
        host.allowed.extend(cpus(metadata)?);
        host.delay_ns.grow_by(metadata.cpu_time.as_ref()?.delay_ns?);
    }
    let gain = |host: &Host| {
        let allowed = host.allowed.len() as u64;
        let has_more = host.online > allowed && host.threads > allowed;
        // Threads that share the host's other CPUs would still wait.
        let share = host.threads.min(host.online).saturating_sub(allowed) as f64
            / host.threads.saturating_sub(allowed).max(1) as f64;
        let ns = (host.delay_ns / host.threads.max(1)) as f64 * share;
        if has_more { ns as u64 } else { 0 }
    };
    let host = hosts.values().max_by_key(|host| gain(host))?;
    let gain_ns = gain(host);
    if (gain_ns as f64) < MIN_GAIN * answers.duration_ns as f64 {
        return None;
    }
    let allowed = host.allowed.len() as u64;
    let text = format!(
        "{} threads of {} processes share {allowed} of the {} CPUs of host {}, and wait for {:.2} s for a CPU: let each process use CPUs of its own (mpirun --bind-to and --map-by, OMP_PLACES)",
        host.threads,
        host.processes,
        host.online,
        host.name,
        host.delay_ns as f64 / 1e9
    );
    let figures = [
        ("threads", host.threads),
        ("processes", host.processes),
        ("allowed_cpus", allowed),
        ("cpus", host.online),
        ("delay_ns", host.delay_ns),
    ];
    Some(finding("oversubscribed_host", Place::new("program"), gain_ns, text, &figures))
}

/// The CPUs that the process may use; `None` if they are not known. GCC's runtime may have bound the initial thread before
/// the tracer asked: then the runtime knows more CPUs than the kernel lists.
fn cpus(metadata: &Metadata) -> Option<Vec<u32>> {
    /// More CPUs than any machine has.
    const MOST: u32 = 1 << 16;

    let ranges = metadata.process.as_ref()?.cpus()?;
    let is_sane = ranges.iter().all(|range| *range.end() < MOST);
    let all: Vec<u32> = ranges.into_iter().filter(|_| is_sane).flatten().collect();
    (!all.is_empty() && processors(metadata)? as usize == all.len()).then_some(all)
}

#[cfg(test)]
mod tests {
    use omptrace_trace_format::metadata::{Process, Processors};

    use super::*;

    #[test]
    fn a_process_whose_runtime_knows_more_cpus_than_the_kernel_lists_is_bound() {
        let known = |affinity: &str, num_procs: i32| {
            let process = Process { affinity: affinity.to_owned(), ..Process::default() };
            let processors = Processors { num_procs, ..Processors::default() };
            cpus(&Metadata { process: Some(process), processors: Some(processors), ..Metadata::default() })
        };
        assert_eq!(known("0-2,8", 4), Some(vec![0, 1, 2, 8]));
        assert_eq!(known("0", 4), None);
        for wrong in ["", "x", "1-", "3-1", "0-4294967295"] {
            assert_eq!(known(wrong, 1), None, "{wrong:?}");
        }
    }
}
