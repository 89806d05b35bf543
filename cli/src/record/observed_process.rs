//! What `record` itself has observed about the process that it started, on the clock of that process's trace.
//!
//! Both processes may read different clocks with the same name, because time namespaces shift `CLOCK_MONOTONIC_RAW`
//! (time_namespaces(7)). If the end came from one clock and the start from the other, a run of a second could seem to
//! take days. So the clocks are compared first.

use std::path::Path;

use omptrace_trace_format::Reader;
use omptrace_trace_format::metadata::Energy;

use crate::record::child_process::{End, Ran};

/// The observations about the process of a trace.
#[derive(Debug)]
pub(crate) struct ObservedProcess {
    /// How the process ended.
    pub(crate) end: End,
    /// Its start and end; `None` if they cannot be converted to the trace's clock.
    pub(crate) life: Option<(u64, u64)>,
    /// The machine's energy in the meantime; empty if the times of readings cannot be converted.
    pub(crate) energy: Vec<Energy>,
}

/// The start of a trace on both of its clocks, in nanoseconds; and the start of its process.
#[derive(Clone, Copy, Debug)]
struct Begin {
    raw_ns: u64,
    realtime_ns: u64,
    started_raw_ns: Option<i64>,
}

impl ObservedProcess {
    /// The observations for this trace, whose process is the one that ran.
    pub(crate) fn of(trace: &Path, ran: Ran, energy: &[Energy]) -> ObservedProcess {
        let begin = Reader::open(trace).ok().map(|reader| Begin {
            raw_ns: reader.clock().start_raw_ns(),
            realtime_ns: reader.clock().start_realtime_ns(),
            started_raw_ns: reader.metadata().process.as_ref().and_then(|it| it.started_raw_ns),
        });
        let ahead = begin.and_then(|begin| ahead(begin, &ran));
        let moved = |raw_ns: u64| raw_ns.checked_add_signed(ahead?);
        let move_readings = |mut energy: Energy| {
            let readings = std::mem::take(&mut energy.readings).into_iter();
            energy.readings =
                readings.map(|(raw_ns, uj)| Some((moved(raw_ns)?, uj))).collect::<Option<_>>()?;
            Some(energy)
        };
        ObservedProcess {
            end: ran.end,
            life: moved(ran.started.raw_ns).zip(moved(ran.ended.raw_ns)),
            energy: energy.iter().cloned().filter_map(move_readings).collect(),
        }
    }
}

/// How far the trace's clock is ahead of this process's clock; `None` if unknown.
///
/// All processes share the wall clock, so if the clocks are the same, they have the same difference from the wall
/// clock. But somebody may have set the wall clock in the meantime. So differences are rejected according to which
/// tracing began before the process started or after it ended.
fn ahead(begin: Begin, ran: &Ran) -> Option<i64> {
    /// Tolerance for the time between two readings, and for corrections of the wall clock in the meantime.
    const SAME_NS: i64 = 5_000_000;
    /// The kernel reports the start of a process in ticks of 10 ms, and starting it takes time, too.
    const START_NS: u64 = 1_000_000_000;

    let between = |raw_ns: u64, realtime_ns: u64| raw_ns.wrapping_sub(realtime_ns).cast_signed();
    let theirs = between(begin.raw_ns, begin.realtime_ns);
    let ours = [ran.started, ran.ended].map(|now| between(now.raw_ns, now.realtime_ns));
    let in_life = |ahead: &i64| {
        let moved = |raw_ns: u64| raw_ns.checked_add_signed(*ahead);
        let life = moved(ran.started.raw_ns).zip(moved(ran.ended.raw_ns));
        life.is_some_and(|(start, end)| (start..=end).contains(&begin.raw_ns))
    };
    let is_same = |ours: i64| ours.wrapping_sub(theirs).unsigned_abs() <= SAME_NS.unsigned_abs();
    let is_between = (ours[0].min(ours[1])..=ours[0].max(ours[1])).contains(&theirs);
    if in_life(&0) && (is_between || ours.into_iter().any(is_same)) {
        return Some(0);
    }
    // The process's start on its own clock, minus the start on ours.
    let by_start = begin.started_raw_ns.map(|started| {
        let ours = i64::try_from(ran.started.raw_ns).unwrap_or(i64::MAX);
        started.saturating_sub(ours)
    });
    // The clocks drift apart by less than a thousandth.
    let drift = begin
        .started_raw_ns
        .map_or(0, |started| begin.raw_ns.saturating_sub(started.max(0).cast_unsigned()) / 1000);
    let agrees =
        |ahead: &i64| by_start.is_none_or(|start| start.abs_diff(*ahead) <= START_NS.saturating_add(drift));
    let by_wall_clock = ours.map(|ours| theirs.wrapping_sub(ours));
    let mut candidates = [0].into_iter().chain(by_wall_clock).chain(by_start);
    candidates.find(|ahead| in_life(ahead) && agrees(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::child_process::Now;

    const S: u64 = 1_000_000_000;
    /// The machine's start on the wall clock.
    const BOOT: u64 = 1_700_000_000 * S;

    fn now(raw_ns: u64) -> Now {
        Now { raw_ns, realtime_ns: BOOT + raw_ns }
    }

    /// The process ran from second 1000 to second 1100.
    fn ran() -> Ran {
        Ran { pid: 1, end: End::Exit(0), cpu_ns: None, started: now(1000 * S), ended: now(1100 * S) }
    }

    /// Tracing began in second 1010, on a clock that is ahead by this much.
    fn begin(ahead_s: i64) -> Begin {
        let raw_ns = (1010 * S).checked_add_signed(ahead_s * S.cast_signed()).unwrap();
        Begin {
            raw_ns,
            realtime_ns: BOOT + 1010 * S,
            started_raw_ns: Some((raw_ns - 10 * S).cast_signed() - 7_000_000),
        }
    }

    #[test]
    fn a_clock_behind_or_ahead_is_seen_also_where_it_is_by_little() {
        for seconds in [0, 5, -5, 90, 200, -200, -900, 100_000_000] {
            assert_eq!(ahead(begin(seconds), &ran()), Some(seconds * S.cast_signed()));
        }
    }

    #[test]
    fn a_wall_clock_that_is_set_meanwhile_is_no_other_clock() {
        let set = |by: i64| Begin {
            realtime_ns: (BOOT + 1010 * S).checked_add_signed(by * S.cast_signed()).unwrap(),
            ..begin(0)
        };
        assert_eq!(ahead(set(3600), &ran()), Some(0));
        assert_eq!(ahead(set(-20), &ran()), Some(0));
    }

    #[test]
    fn what_nothing_agrees_with_is_not_known() {
        let begin =
            Begin { raw_ns: 5 * S, realtime_ns: 0, started_raw_ns: Some(2_000_000 * S.cast_signed()) };
        assert_eq!(ahead(begin, &ran()), None);
    }
}
