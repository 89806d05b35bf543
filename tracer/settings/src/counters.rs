//! The per-thread counters that users can request: **one row per counter** in [`COUNTERS`].

/// A per-thread counter.
#[derive(Debug, PartialEq, Eq)]
pub struct Counter {
    /// The counter's name, as in `perf`.
    pub name: &'static str,
    /// What the counter counts.
    pub meaning: &'static str,
    /// Where the count comes from.
    pub source: Source,
}

/// Where a count comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The kernel; always available.
    Kernel(Usage),
    /// The CPU: the event's number for `perf_event_open` (`PERF_TYPE_HARDWARE`).
    Processor(u64),
}

/// A count that the kernel keeps per thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// CPU time in nanoseconds (`CLOCK_THREAD_CPUTIME_ID`).
    TaskClock,
    /// Context switches (`ru_nvcsw` and `ru_nivcsw`).
    ContextSwitches,
    /// Involuntary context switches (`ru_nivcsw`).
    Preemptions,
    /// Page faults (`ru_minflt` and `ru_majflt`).
    PageFaults,
}

/// All counters, those of the kernel first.
pub const COUNTERS: &[Counter] = &[
    Counter {
        name: "task-clock",
        meaning: "CPU time in nanoseconds",
        source: Source::Kernel(Usage::TaskClock),
    },
    Counter {
        name: "context-switches",
        meaning: "how often the thread left its CPU",
        source: Source::Kernel(Usage::ContextSwitches),
    },
    Counter {
        name: "preemptions",
        meaning: "how often the thread left its CPU although it could have continued to run",
        source: Source::Kernel(Usage::Preemptions),
    },
    Counter {
        name: "page-faults",
        meaning: "accesses to pages that were not mapped",
        source: Source::Kernel(Usage::PageFaults),
    },
    Counter { name: "cycles", meaning: "CPU cycles", source: Source::Processor(0) },
    Counter { name: "instructions", meaning: "instructions", source: Source::Processor(1) },
    Counter {
        name: "cache-references",
        meaning: "accesses to the last-level cache",
        source: Source::Processor(2),
    },
    Counter {
        name: "cache-misses",
        meaning: "accesses that missed the last-level cache",
        source: Source::Processor(3),
    },
    Counter { name: "branches", meaning: "branches", source: Source::Processor(4) },
    Counter { name: "branch-misses", meaning: "mispredicted branches", source: Source::Processor(5) },
    Counter {
        name: "stalled-cycles-frontend",
        meaning: "cycles in which no instruction could be issued because of the CPU's front end",
        source: Source::Processor(7),
    },
    Counter {
        name: "stalled-cycles-backend",
        meaning: "cycles in which no instruction could be issued because of the CPU's back end",
        source: Source::Processor(8),
    },
];

/// The counters that distinguish useful time from time in which another thread had the CPU.
const OF_CPU_TIME: [Usage; 3] = [Usage::TaskClock, Usage::ContextSwitches, Usage::Preemptions];

/// Maximum number of counters in a session.
pub const MAX_COUNTERS: usize = 8;

impl Counter {
    /// The counter with this name.
    pub fn of(name: &str) -> Option<&'static Counter> {
        COUNTERS.iter().find(|counter| counter.name == name)
    }

    /// The counters that `--cpu-time` needs.
    pub fn of_cpu_time() -> impl Iterator<Item = &'static Counter> {
        let is_one = |counter: &&Counter| match counter.source {
            Source::Kernel(usage) => OF_CPU_TIME.contains(&usage),
            Source::Processor(_) => false,
        };
        COUNTERS.iter().filter(is_one)
    }
}
