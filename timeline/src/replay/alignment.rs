//! Aligns the clocks of processes: those of one host exactly, those of different hosts by the time of day.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use omptrace_trace_format::Reader;

use crate::model::Ns;

/// A process's place on a timeline, by which processes are ordered: by rank, then start.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    has_no_rank: bool,
    rank: Option<u32>,
    realtime_ns: u64,
    pid: u32,
    path: PathBuf,
    uncertainty_ns: u64,
    host: Option<OnHost>,
}

/// A time on the clock that all processes of a host share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OnHost {
    /// The number of the host's boot.
    boot: String,
    /// `CLOCK_MONOTONIC_RAW`.
    raw_ns: u64,
}

/// The most nanoseconds between the begins of two processes: 36 years.
const MAX_OFFSET_NS: Ns = 1 << 60;

impl Start {
    /// The start of a trace's process.
    pub fn of(reader: &Reader) -> Start {
        let boot = reader.metadata().machine.as_ref().map_or("", |machine| &machine.boot);
        Start::new(
            reader.metadata().rank(),
            reader.header().pid,
            reader.path(),
            reader.clock().start_realtime_ns(),
            reader.clock().realtime_uncertainty_ns(),
        )
        .on_host(boot, reader.clock().start_raw_ns())
    }

    /// The start of the process whose trace is at `path`. `realtime_ns` is its [`ClockMap::start_realtime_ns`], and
    /// `uncertainty_ns` its [`ClockMap::realtime_uncertainty_ns`].
    ///
    /// [`ClockMap::start_realtime_ns`]: omptrace_trace_format::ClockMap::start_realtime_ns
    /// [`ClockMap::realtime_uncertainty_ns`]: omptrace_trace_format::ClockMap::realtime_uncertainty_ns
    pub fn new(rank: Option<u32>, pid: u32, path: &Path, realtime_ns: u64, uncertainty_ns: u64) -> Start {
        let path = path.to_owned();
        Start { has_no_rank: rank.is_none(), rank, realtime_ns, pid, path, uncertainty_ns, host: None }
    }

    /// The same start, of a process on the host with this boot id; `raw_ns` is its [`ClockMap::start_raw_ns`]. Both may be unknown.
    ///
    /// [`ClockMap::start_raw_ns`]: omptrace_trace_format::ClockMap::start_raw_ns
    pub fn on_host(self, boot: &str, raw_ns: u64) -> Start {
        let is_known = !boot.is_empty() && raw_ns > 0;
        Start { host: is_known.then(|| OnHost { boot: boot.to_owned(), raw_ns }), ..self }
    }

    /// The path of the trace.
    pub fn into_path(self) -> PathBuf {
        self.path
    }

    /// When the session began on a timeline that starts at `origin`; 0 where the trace does not say, or says more than
    /// [`MAX_OFFSET_NS`].
    pub fn offset(&self, origin: u64) -> Ns {
        let offset = i64::try_from(self.realtime_ns.saturating_sub(origin)).ok();
        offset.filter(|ns| *ns <= MAX_OFFSET_NS).unwrap_or(0)
    }
}

/// The hosts of some processes. Those of one host are aligned exactly, by the clock that they share.
pub(super) struct HostClocks<'s> {
    /// Of each boot, the first start.
    first: BTreeMap<&'s str, (u64, u64)>,
}

impl<'s> HostClocks<'s> {
    pub(super) fn of(starts: &'s [Start]) -> HostClocks<'s> {
        let mut first: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for start in starts.iter().filter(|start| start.realtime_ns > 0) {
            if let Some(host) = &start.host {
                let own = (host.raw_ns, start.realtime_ns);
                let first = first.entry(&host.boot).or_insert(own);
                *first = own.min(*first);
            }
        }
        HostClocks { first }
    }

    /// The real time of a start, as the host's first process would have read it.
    pub(super) fn realtime_ns(&self, start: &Start) -> u64 {
        let Some(host) = &start.host else { return start.realtime_ns };
        match self.first.get(&host.boot[..]) {
            Some((raw_ns, realtime_ns)) => realtime_ns.saturating_add(host.raw_ns.saturating_sub(*raw_ns)),
            None => start.realtime_ns,
        }
    }

    pub(super) fn aligned(&self, start: Start) -> Start {
        Start { realtime_ns: self.realtime_ns(&start), ..start }
    }

    pub(super) fn origin(&self, starts: &[Start]) -> u64 {
        let known = starts.iter().map(|start| self.realtime_ns(start));
        known.filter(|start| *start > 0).min().unwrap_or(0)
    }
}

/// Aligns processes of the same host exactly.
pub fn align(starts: &mut [Start]) {
    let aligned: Vec<Start> = {
        let clocks = HostClocks::of(starts);
        starts.iter().map(|start| clocks.aligned(start.clone())).collect()
    };
    starts.clone_from_slice(&aligned);
}

/// The start of the timeline of these processes, in nanoseconds since 1970; 0 where nobody knows it.
pub fn origin(starts: &[Start]) -> u64 {
    HostClocks::of(starts).origin(starts)
}

/// Words about how far clocks of processes may be apart; `None` where they are one.
pub fn alignment_note(uncertainty_ns: u64) -> Option<String> {
    (uncertainty_ns > 0).then(|| {
        format!(
            "the clocks of the processes were aligned by the hosts' time of day; the alignment may be wrong by up to {uncertainty_ns} ns, and by more if the hosts' clocks are not synchronised"
        )
    })
}

/// How far clocks of these processes may be apart: the two least certain hosts may err in opposite directions.
pub fn uncertainty(starts: &[Start]) -> u64 {
    let mut hosts = BTreeMap::new();
    let mut each = Vec::new();
    for start in starts {
        match &start.host {
            Some(host) => {
                let of_host: &mut u64 = hosts.entry(&host.boot).or_default();
                *of_host = start.uncertainty_ns.max(*of_host);
            }
            None => each.push(start.uncertainty_ns),
        }
    }
    each.extend(hosts.into_values());
    each.sort_unstable_by(|a, b| b.cmp(a));
    match each[..] {
        [first, second, ..] => first.saturating_add(second),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_makes_no_sense_is_that_of_the_timeline() {
        let start = |realtime_ns| Start::new(None, 1, Path::new("trace"), realtime_ns, 0);
        let now = 1_800_000_000_000_000_000;
        assert_eq!(start(now + 5).offset(now), 5);
        assert_eq!(start(0).offset(now), 0);
        assert_eq!(start(u64::MAX).offset(now), 0);
    }
}
