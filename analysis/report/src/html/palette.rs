//! The colours: causes of lost time in a few groups that every reader can distinguish, also one who is colour-blind.

use omptrace_analysis::answers::{Accounting, Cause};

/// Causes that share a colour.
#[derive(Debug)]
pub struct Group {
    /// Its name in the page's code.
    pub key: &'static str,
    /// Its name for readers.
    pub label: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// The colour, on light and on dark ground: of Okabe and Ito, who chose them for all kinds of colour vision.
    pub colour: &'static str,
    /// Its causes.
    pub causes: &'static [Cause],
}

/// The groups in the order in which they are stacked: useful work first.
pub const GROUPS: [Group; 12] = [
    Group {
        key: "useful",
        label: "useful work",
        meaning: "The thread runs the program's code.",
        colour: "#0072b2",
        causes: &[Cause::Useful],
    },
    Group {
        key: "imbalance",
        label: "waits for slower threads",
        meaning: "The thread waits at a barrier while other threads are still working.",
        colour: "#e69f00",
        causes: &[Cause::Imbalance],
    },
    Group {
        key: "locks",
        label: "waits for locks",
        meaning: "The thread waits for a lock or for a critical, ordered or atomic region.",
        colour: "#d55e00",
        causes: &[Cause::Lock, Cause::Critical, Cause::Ordered, Cause::Atomic],
    },
    Group {
        key: "tasks",
        label: "waits for tasks",
        meaning: "The thread waits for tasks that other threads run.",
        colour: "#cc79a7",
        causes: &[Cause::TaskWait, Cause::TaskStarvation],
    },
    Group {
        key: "overhead",
        label: "starts, joins, barriers",
        meaning: "The thread starts or ends a parallel region, or passes a barrier.",
        colour: "#f0e442",
        causes: &[Cause::Fork, Cause::Join, Cause::Barrier],
    },
    Group {
        key: "runtime",
        label: "runtime, devices, other waits",
        meaning: "The thread waits for a device or for something outside OpenMP, combines the results of a reduction, or is in the OpenMP runtime for any other reason.",
        colour: "#56b4e9",
        causes: &[Cause::Reduction, Cause::Target, Cause::Runtime, Cause::ExternalWait],
    },
    Group {
        key: "mpi-wait",
        label: "waits for other ranks",
        meaning: "The thread is in an MPI call, and waits until another rank starts the operation on which the call depends.",
        colour: "#882255",
        causes: &[Cause::MpiWait],
    },
    Group {
        key: "mpi",
        label: "MPI calls",
        meaning: "The thread is in an MPI call and transfers data, or the trace does not show whether the thread waits for other ranks.",
        colour: "#d9a5b8",
        causes: &[Cause::Mpi, Cause::MpiTransfer, Cause::MpiOther],
    },
    Group {
        key: "preempted",
        label: "preempted",
        meaning: "The thread was ready to run, but another thread was using its CPU.",
        colour: "#a65628",
        causes: &[Cause::Preempted],
    },
    Group {
        key: "tracer",
        label: "the tracer itself",
        meaning: "The thread writes its event buffer to the trace.",
        colour: "#009e73",
        causes: &[Cause::Tracer],
    },
    Group {
        key: "unobserved",
        label: "not recorded",
        meaning: "The trace does not show what the thread did.",
        colour: "#7f7f7f",
        causes: &[Cause::Unobserved],
    },
    Group {
        key: "idle",
        label: "nothing to do",
        meaning: "The thread is idle, because the program runs serial code, runs a region that does not use all threads, or waits in an MPI call.",
        colour: "#c9ced6",
        causes: &[Cause::Serial, Cause::IdleInMpi, Cause::NarrowTeam],
    },
];

/// The group with the time of threads that have nothing to do.
pub(crate) const IDLE: usize = GROUPS.len() - 1;

/// The group of a cause.
pub(crate) fn of(cause: Cause) -> &'static Group {
    let has = |group: &&Group| group.causes.contains(&cause);
    GROUPS.iter().find(has).unwrap_or(&GROUPS[IDLE])
}

/// Sums by group.
pub(crate) fn sums(accounting: &Accounting) -> [u64; GROUPS.len()] {
    GROUPS.each_ref().map(|group| group.causes.iter().map(|cause| accounting[*cause]).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_in_one_group() {
        for cause in Cause::ALL {
            let groups = GROUPS.iter().filter(|group| group.causes.contains(cause));
            assert_eq!(groups.count(), 1, "{}", cause.name());
        }
    }
}
