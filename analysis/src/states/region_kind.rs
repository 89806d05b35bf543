//! The kinds of regions that the accounting distinguishes.

use ompt_sys as ompt;
use omptrace_timeline::Reports;
use omptrace_timeline::model::Construct;
use omptrace_trace_format::field::CallClass;

use crate::model::cause::Cause;

/// The kind of a region, for the accounting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A parallel or teams region, on the thread that encounters it.
    Parallel,
    /// The time from a region's start to a member's implicit task.
    WakeUp,
    /// A member's implicit task.
    Member,
    /// An initial task.
    Initial,
    /// A barrier, or the wait in it. `is_last`: the barrier at a region's end, if the runtime distinguishes it.
    Barrier { is_last: bool },
    /// A taskwait, or another place where a thread waits for tasks. `is_wait`: the wait itself, rather than the region
    /// around it.
    TaskSync { is_wait: bool },
    /// A taskgroup, in which the program's code runs.
    TaskGroup,
    /// The wait at the end of a taskgroup.
    GroupWait,
    /// A taskwait with dependences.
    DependWait,
    /// Waiting for a mutex.
    MutexWait(Cause),
    /// Holding a critical, atomic or ordered region.
    MutexHold,
    /// An external wait (outside of OpenMP), which interrupts work.
    ExternalWait,
    /// A region whose time is attributed to one cause regardless of the regions around it.
    Charged(Cause),
    /// The submission of a kernel, a part of the target construct around it.
    Submit,
    /// An explicit task.
    Task,
    /// A loop, sections, or another part of the program.
    Work,
    /// A static loop.
    StaticLoop,
    /// A sections construct.
    Sections,
    /// A chunk of a dynamic or guided loop: ignored by the accounting, like [`Kind::Transparent`].
    Chunk,
    /// A region that one thread of a team executes: `single` or `masked`.
    Alone,
    /// A thread outside of teams waits for work.
    Idle,
    /// Ignored by the accounting: the region around it decides what the thread does.
    Transparent,
}

impl Kind {
    pub(crate) fn of(construct: Construct) -> Kind {
        match construct {
            Construct::Parallel | Construct::Teams => Kind::Parallel,
            Construct::ParallelWakeUp | Construct::TeamsWakeUp => Kind::WakeUp,
            Construct::ImplicitTask => Kind::Member,
            Construct::InitialTask => Kind::Initial,
            Construct::SyncRegion(ompt::ompt_sync_region_taskwait) => Kind::TaskSync { is_wait: false },
            Construct::SyncRegionWait(ompt::ompt_sync_region_taskwait) => Kind::TaskSync { is_wait: true },
            Construct::SyncRegionWait(ompt::ompt_sync_region_taskgroup) => Kind::GroupWait,
            Construct::SyncRegion(ompt::ompt_sync_region_taskgroup) => Kind::TaskGroup,
            Construct::Reduction
            | Construct::SyncRegion(ompt::ompt_sync_region_reduction)
            | Construct::SyncRegionWait(ompt::ompt_sync_region_reduction) => Kind::Charged(Cause::Reduction),
            Construct::SyncRegion(kind) | Construct::SyncRegionWait(kind) => {
                Kind::Barrier { is_last: kind == ompt::ompt_sync_region_barrier_implicit_parallel }
            }
            // Testing a lock is not waiting for it.
            Construct::MutexWait(ompt::ompt_mutex_test_lock | ompt::ompt_mutex_test_nest_lock) => {
                Kind::Transparent
            }
            Construct::MutexWait(kind) => Kind::MutexWait(mutex(kind)),
            Construct::ExternalWait(_) => Kind::ExternalWait,
            Construct::MpiCall(function) => Kind::Charged(match function.class() {
                CallClass::management | CallClass::file | CallClass::other => Cause::MpiOther,
                _ if function.waits_are_known() => Cause::MpiTransfer,
                _ => Cause::Mpi,
            }),
            Construct::MpiWait(_) => Kind::Charged(Cause::MpiWait),
            Construct::MutexHold(_) => Kind::MutexHold,
            Construct::TargetSubmit => Kind::Submit,
            Construct::Target(_) | Construct::TargetDataOp(_) => Kind::Charged(Cause::Target),
            Construct::Task | Construct::UntiedTask | Construct::TargetTask | Construct::TaskwaitTask => {
                Kind::Task
            }
            // On a timeline, all threads that come to a single region enter the same region. Its construct is that of
            // the first of them: executor or other.
            Construct::Work(ompt::ompt_work_single_executor | ompt::ompt_work_single_other)
            | Construct::Masked => Kind::Alone,
            Construct::BufferFlush => Kind::Charged(Cause::Tracer),
            Construct::Preempted => Kind::Charged(Cause::Preempted),
            Construct::Lost => Kind::Charged(Cause::Unobserved),
            Construct::Idle => Kind::Idle,
            Construct::Work(ompt::ompt_work_loop_static) => Kind::StaticLoop,
            Construct::Work(ompt::ompt_work_sections) => Kind::Sections,
            Construct::Phase | Construct::Annotation(_) => Kind::Transparent,
            Construct::Chunk => Kind::Chunk,
            _ => Kind::Work,
        }
    }

    /// Whether the thread may meet threads that are not of its own team in this region.
    pub(crate) fn meets_others(self) -> bool {
        matches!(
            self,
            Kind::Task
                | Kind::TaskSync { .. }
                | Kind::GroupWait
                | Kind::DependWait
                | Kind::MutexWait(_)
                | Kind::MutexHold
        )
    }

    /// Whether the thread waits for tasks in this region, except while it runs some.
    pub(crate) fn is_wait_for_tasks(self) -> bool {
        matches!(self, Kind::TaskSync { is_wait: true } | Kind::GroupWait | Kind::DependWait)
    }

    /// Whether the region is an MPI call, made by the program's own code.
    pub(crate) fn is_mpi_call(self) -> bool {
        matches!(self, Kind::Charged(cause) if cause.is_mpi_call())
    }

    /// Whether a thread in this region takes part in the program.
    pub(crate) fn shows_activity(self) -> bool {
        !self.is_mpi_call()
            && !matches!(
                self,
                Kind::Idle
                    | Kind::Transparent
                    | Kind::TaskGroup
                    | Kind::Chunk
                    | Kind::ExternalWait
                    | Kind::Charged(Cause::Preempted | Cause::Tracer | Cause::Unobserved)
            )
    }
}

fn mutex(kind: ompt::ompt_mutex_t) -> Cause {
    match kind {
        ompt::ompt_mutex_critical => Cause::Critical,
        ompt::ompt_mutex_ordered => Cause::Ordered,
        ompt::ompt_mutex_atomic => Cause::Atomic,
        _ => Cause::Lock,
    }
}

/// The causes that a runtime does not report, and the causes in which their time is included. `has_doacross`:
/// iterations waited for others by `ordered depend(sink)` (OpenMP 5.2, 15.9.5).
pub(crate) fn not_seen(reports: &Reports, has_doacross: bool) -> impl Iterator<Item = (Cause, String)> {
    let barriers = reports.barriers || reports.barrier_waits;
    let wants = reports.requested;
    let wants_barriers = Some(wants.barriers || wants.barrier_waits);
    let wants_taskwaits = Some(wants.taskwaits || wants.taskwait_waits || wants.taskgroup_waits);
    let members =
        "which threads belong to a team, so the causes of the threads' time in regions are not known";
    // Whether the cause is not seen; whether the user wants its events, if that is the reason; the cause; and the reason,
    // or what is not reported.
    let rows = [
        (
            !reports.preemptions,
            None,
            Cause::Preempted,
            "the trace was recorded without --cpu-time, so time lost to preemption counts as useful time",
        ),
        (!reports.members, Some(wants.members), Cause::Fork, members),
        (!reports.members, Some(wants.members), Cause::Join, members),
        (
            !barriers || !reports.members,
            wants_barriers,
            Cause::Imbalance,
            "barriers and their teams, so waits at barriers count as useful time or as barrier time",
        ),
        (!barriers, wants_barriers, Cause::Barrier, "barriers, so waits at barriers count as useful time"),
        (
            !barriers || !reports.tasks,
            Some(wants_barriers == Some(true) && wants.tasks),
            Cause::TaskStarvation,
            "barriers or the times at which tasks run, so time in which threads have no task counts as barrier time or as useful time",
        ),
        (
            !reports.taskwaits && !reports.taskwait_waits && !reports.taskgroup_waits,
            wants_taskwaits,
            Cause::TaskWait,
            "taskwaits, so waits in taskwaits count as useful time",
        ),
        (
            !reports.inlined,
            None,
            Cause::Atomic,
            "GCC inlines most atomic updates, so waits for atomic updates count as useful time",
        ),
        (
            !reports.inlined,
            None,
            Cause::Reduction,
            "GCC inlines reductions, so the time of reductions counts as useful time",
        ),
        (
            !reports.lock_waits,
            Some(wants.lock_waits),
            Cause::Lock,
            "waits for locks, so these waits count as useful time",
        ),
        (
            has_doacross,
            None,
            Cause::Ordered,
            "runtimes report a dependence of a doacross loop only after the wait for this dependence, so these waits count as useful time",
        ),
        (
            !reports.critical_waits,
            Some(wants.critical_waits),
            Cause::Critical,
            "waits for critical regions, so these waits count as useful time",
        ),
    ];
    let unseen = rows.into_iter().filter(|(is_unseen, ..)| *is_unseen);
    unseen.map(|(_, wanted, cause, text)| {
        let reason = match wanted {
            None => text.to_owned(),
            Some(true) => format!("the runtime does not report {text}"),
            Some(false) => format!("the recorded types of events (--events) do not show {text}"),
        };
        (cause, reason)
    })
}

#[cfg(test)]
mod tests {
    use omptrace_trace_format::Metadata;
    use omptrace_trace_format::metadata::Registration;

    use super::*;

    #[test]
    fn the_reason_tells_what_the_user_left_out_from_what_the_runtime_does_not_report() {
        let reason = |events: &str| {
            let mut metadata = Metadata::default();
            metadata.settings.insert("OMPTRACE_EVENTS".to_owned(), events.to_owned());
            metadata.callbacks.insert("implicit_task".to_owned(), Registration::default());
            let reports = Reports::of(&metadata);
            let mut unseen = not_seen(&reports, false);
            unseen.find(|(cause, _)| *cause == Cause::Critical).expect("it is not seen").1
        };
        assert!(
            reason("implicit_task").starts_with("the recorded types of events (--events) do not show waits")
        );
        assert!(reason("mutex_acquire").starts_with("the runtime does not report waits"));
    }
}
