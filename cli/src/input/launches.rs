//! Groups traces by launches of a program. Processes of one launch belong together; processes of two launches are two
//! runs, and the time in between belongs to neither.

use std::collections::BTreeSet;

use omptrace_timeline::lifetime;
use omptrace_trace_format::{Ending, Reader};

/// With more traces, launches are not determined, because each trace is compared with each other.
const MAX_TRACES: usize = 1 << 10;

/// The facts about a process by which launches are told apart.
#[derive(Clone, Debug, Default)]
struct Facts {
    /// The directory of the `record` command that started the process; unique to this command.
    registry: Option<String>,
    /// The scope of process ids: the boot, or if unknown, the host; and the pid namespace.
    ids_of: (String, u64),
    pid: u32,
    started: u64,
    parent_pid: u32,
    rank: Option<u32>,
    /// The lifetime, in nanoseconds since 1970; without an end while the process runs.
    begin_ns: i128,
    end_ns: Option<i128>,
}

impl Facts {
    /// The facts about a trace's process; `None` if the trace does not contain them.
    fn of(reader: &Reader) -> Option<Facts> {
        let metadata = reader.metadata();
        let process = metadata.process.as_ref()?;
        let machine = metadata.machine.clone().unwrap_or_default();
        let session_ns = i128::from(reader.clock().start_realtime_ns());
        if session_ns == 0 {
            return None;
        }
        let life = lifetime(reader, 0);
        let on_clock = |ns: i64| session_ns + i128::from(ns);
        let end_ns = life.ended.or_else(|| end_of_killed(reader));
        Some(Facts {
            registry: metadata.environment.get("OMPTRACE_REGISTRY").cloned(),
            ids_of: (
                if machine.boot.is_empty() { machine.host } else { machine.boot },
                process.pid_namespace,
            ),
            pid: process.pid,
            started: process.started,
            parent_pid: process.parent_pid,
            rank: metadata.rank(),
            begin_ns: on_clock(life.started.unwrap_or(0)),
            end_ns: end_ns.map(on_clock),
        })
    }

    /// Whether both processes belong to one launch, as far as can be seen.
    fn belongs_to(&self, other: &Facts) -> bool {
        let is_before = |one: &Facts, other: &Facts| one.end_ns.is_some_and(|end| end < other.begin_ns);
        if !is_before(self, other) && !is_before(other, self) {
            return true;
        }
        if let (Some(own), Some(others)) = (&self.registry, &other.registry) {
            return own == others;
        }
        // Related processes: one that executed another program, or parent and child. Two children of the same shell may
        // be two attempts.
        let is_related = (self.pid, self.started) == (other.pid, other.started)
            || self.parent_pid == other.pid
            || other.parent_pid == self.pid;
        self.ids_of == other.ids_of && is_related
    }
}

/// When a process ended whose tracer recorded no end: when `record` observed it, otherwise the time of the last event.
/// `None` if the process still runs.
fn end_of_killed(reader: &Reader) -> Option<i64> {
    if reader.ending() == Ending::Running {
        return None;
    }
    let since_start = |raw_ns: u64| i64::try_from(raw_ns.checked_sub(reader.clock().start_raw_ns())?).ok();
    let record = reader.metadata().record.as_ref();
    let observed = record.and_then(|record| since_start(record.ended_raw_ns?));
    Some(observed.unwrap_or_else(|| reader.clock().ns(reader.last_ticks()).max(0)))
}

/// The launches to which these traces belong, in the order of their starts, each as the indexes of its traces. If this
/// is unknown, all traces count as one launch.
pub(crate) fn of(readers: &[&Reader]) -> Vec<Vec<usize>> {
    let facts: Option<Vec<Facts>> = readers.iter().map(|reader| Facts::of(reader)).collect();
    match facts.filter(|facts| facts.len() <= MAX_TRACES) {
        Some(facts) => groups(&facts),
        None => vec![(0..readers.len()).collect()],
    }
}

fn groups(facts: &[Facts]) -> Vec<Vec<usize>> {
    // If the ranks are all different, the traces are of one launch. Their hosts' clocks may disagree.
    let ranks: Option<BTreeSet<u32>> = facts.iter().map(|facts| facts.rank).collect();
    if ranks.is_some_and(|ranks| ranks.len() == facts.len()) {
        return vec![(0..facts.len()).collect()];
    }
    let mut launches: Vec<Vec<usize>> = Vec::new();
    for (number, own) in facts.iter().enumerate() {
        let belongs = |launch: &Vec<usize>| launch.iter().any(|other| own.belongs_to(&facts[*other]));
        let (ours, others): (Vec<_>, Vec<_>) = launches.into_iter().partition(belongs);
        let mut launch = ours.concat();
        launch.push(number);
        launch.sort_unstable();
        launches = others;
        launches.push(launch);
    }
    let begin = |launch: &Vec<usize>| launch.iter().map(|number| (facts[*number].begin_ns, *number)).min();
    launches.sort_by_key(begin);
    launches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lived(pid: u32, begin_ns: i128, end_ns: i128) -> Facts {
        let ids_of = ("boot".to_owned(), 1);
        Facts { ids_of, pid, parent_pid: pid + 1000, begin_ns, end_ns: Some(end_ns), ..Facts::default() }
    }

    fn by(record: &str, facts: Facts) -> Facts {
        Facts { registry: Some(record.to_owned()), ..facts }
    }

    #[test]
    fn what_does_not_overlap_is_another_launch() {
        let late = lived(1, 900, 1000);
        assert_eq!(groups(&[late.clone(), lived(2, 0, 100), lived(3, 50, 200)]), [vec![1, 2], vec![0]]);
        let running = Facts { end_ns: None, ..lived(2, 0, 0) };
        assert_eq!(groups(&[late, running]), [[0, 1]]);
        // The third process overlaps both.
        assert_eq!(groups(&[lived(1, 0, 10), lived(2, 20, 30), lived(3, 5, 25)]), [[0, 1, 2]]);
    }

    #[test]
    fn processes_of_a_record_or_a_parent_are_one_launch() {
        let (first, second) = (lived(1, 0, 10), lived(2, 20, 30));
        assert_eq!(groups(&[by("a", first.clone()), by("a", second.clone())]), [[0, 1]]);
        assert_eq!(groups(&[by("a", first.clone()), by("b", second.clone())]), [[0], [1]]);
        // Two processes that a shell starts one after another are two attempts of its user.
        let of_shell = |facts: &Facts| Facts { parent_pid: 7, ..facts.clone() };
        assert_eq!(groups(&[of_shell(&first), of_shell(&second)]), [[0], [1]]);
        let child = Facts { parent_pid: 1, ..second.clone() };
        assert_eq!(groups(&[first.clone(), child.clone()]), [[0, 1]]);
        // On another host, the same ids mean other processes.
        let elsewhere = Facts { ids_of: ("other".to_owned(), 1), ..child };
        assert_eq!(groups(&[first, elsewhere]), [[0], [1]]);
    }

    #[test]
    fn ranks_are_one_launch_unless_one_is_there_twice() {
        let rank = |rank, begin| Facts { rank: Some(rank), ..lived(rank, begin, begin + 10) };
        assert_eq!(groups(&[rank(0, 0), rank(1, 50)]), [[0, 1]]);
        let other = |facts: Facts| Facts { ids_of: ("other".to_owned(), 1), ..facts };
        let again = [other(rank(0, 50)), other(rank(1, 55))];
        assert_eq!(groups(&[&[rank(0, 0), rank(1, 5)][..], &again].concat()), [[0, 1], [2, 3]]);
    }
}
