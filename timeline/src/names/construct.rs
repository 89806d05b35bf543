//! The constructs and events of regions and instants, with their names and categories.
//!
//! The names are Score-P's, which Scalasca and Vampir users know: `!$omp parallel @jacobi.c:41`.

use std::hash::{Hash, Hasher};
use std::mem::discriminant;

use ompt_sys as ompt;
use omptrace_trace_format::field::{AnnotationKind, CallClass, WaitKind};

/// The category of a region. Viewers filter and colour by it.
// 32 bits, the size in which it is read: storing a byte and then reading more bytes stalls the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Category {
    /// Parallel and teams regions.
    Parallel,
    /// Initial and implicit tasks: membership in a team.
    ImplicitTask,
    /// Worksharing, single, masked, taskloop, distribute.
    Work,
    /// Explicit tasks and their events.
    Task,
    /// Barriers, taskwait, taskgroup, reductions.
    Sync,
    /// Waiting for another thread.
    Wait,
    /// Locks, critical, ordered and atomic regions.
    Mutex,
    /// Target regions, data operations, kernels, devices.
    Target,
    /// MPI calls.
    Mpi,
    /// The user's phases and marks.
    User,
    /// The tracer's work: flushes, pauses, losses.
    Omptrace,
}

impl Category {
    /// The category's name in exports.
    pub fn name(self) -> &'static str {
        match self {
            Category::Parallel => "parallel",
            Category::ImplicitTask => "implicit_task",
            Category::Work => "work",
            Category::Task => "task",
            Category::Sync => "sync",
            Category::Wait => "wait",
            Category::Mutex => "mutex",
            Category::Target => "target",
            Category::Mpi => "mpi",
            Category::User => "user",
            Category::Omptrace => "omptrace",
        }
    }
}

/// The kind of a region or instant, without its place. Unknown numbers of OMPT enumerations are preserved.
// The tag has 32 bits, like the kind inside. A smaller tag would be copied together with padding and a part of the
// kind, and a load of the kind soon after would have to wait for both stores.
#[derive(Clone, Copy, Debug, Eq)]
#[repr(u32)]
pub enum Construct {
    /// The initial task of the process, or of a team of a league.
    InitialTask,
    /// A member's part of a parallel region.
    ImplicitTask,
    /// A parallel region, on the thread that encounters it.
    Parallel,
    /// From the start of a parallel region to the start of a member's implicit task.
    ParallelWakeUp,
    /// A teams region, on the thread that encounters it.
    Teams,
    /// Like [`Construct::ParallelWakeUp`], for a league.
    TeamsWakeUp,
    /// A thread outside of teams waits for work.
    Idle,
    /// A worksharing region.
    Work(ompt::ompt_work_t),
    /// A barrier, taskwait or taskgroup.
    SyncRegion(ompt::ompt_sync_region_t),
    /// The wait in a barrier, taskwait or taskgroup.
    SyncRegionWait(ompt::ompt_sync_region_t),
    /// A reduction.
    Reduction,
    /// A masked region.
    Masked,
    /// An explicit task.
    Task,
    /// An explicit task that is untied.
    UntiedTask,
    /// A target task.
    TargetTask,
    /// The task of a taskwait with dependences.
    TaskwaitTask,
    /// The event of a detachable task was fulfilled.
    TaskFulfill,
    /// A task was created in a runtime that does not report when tasks run.
    TaskCreated,
    /// A task was completed in a runtime that does not report when tasks run.
    TaskCompleted,
    /// Waiting for a lock, critical, atomic or ordered region.
    MutexWait(ompt::ompt_mutex_t),
    /// An external wait (outside of OpenMP).
    ExternalWait(WaitKind),
    /// An MPI call, by the function's number in `omptrace-mpi-api`.
    MpiCall(MpiFunction),
    /// The part of an MPI call during which it waits until another process has started what it needs.
    MpiWait(MpiFunction),
    /// Execution of a critical, atomic or ordered region.
    MutexHold(ompt::ompt_mutex_t),
    /// A mutex was released whose acquisition was not reported.
    MutexReleased(ompt::ompt_mutex_t),
    /// A lock is created.
    MutexInit(ompt::ompt_mutex_t),
    /// A lock is destroyed.
    MutexDestroy(ompt::ompt_mutex_t),
    /// A nested lock is set again, or unset but still held.
    NestLockAgain(ompt::ompt_scope_endpoint_t),
    /// A target region or directive.
    Target(ompt::ompt_target_t),
    /// A data operation of a device.
    TargetDataOp(ompt::ompt_target_data_op_t),
    /// A kernel is submitted.
    TargetSubmit,
    /// Data is mapped.
    TargetMap,
    /// An event of a device.
    Device(DeviceEvent),
    /// Iterations, a section or a task are handed out.
    Dispatch(ompt::ompt_dispatch_t),
    /// A chunk of iterations, from when a thread receives it to when it receives the next one.
    Chunk,
    /// A dependence of a doacross loop.
    Doacross,
    /// The thread's state at this moment.
    ThreadState(ompt::ompt_state_t),
    /// An event that only one runtime has.
    CollectorEvent,
    /// A flush.
    Flush,
    /// A cancellation.
    Cancel,
    /// A command of the user to the tool.
    ControlTool,
    /// An error directive.
    Error,
    /// A phase that the user named by `omp_control_tool`.
    Phase,
    /// A range that the program named through another interface.
    Annotation(AnnotationKind),
    /// A mark, or data about a range.
    Mark,
    /// The thread wrote its own events to the trace.
    BufferFlush,
    /// The thread was ready to run while another thread had its CPU.
    Preempted,
    /// Events were lost.
    Lost,
    /// An event of a newer tracer.
    Unknown,
}

/// An MPI function, the class of the call, and whether its waits are known, in one 32-bit number, like the kinds of
/// other constructs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MpiFunction(u32);

impl MpiFunction {
    const CLASS_SHIFT: u32 = 8;
    const NUMBER_SHIFT: u32 = 16;

    /// The function with this number, called with `class`. Numbers without a function are preserved, as far as they
    /// fit.
    pub fn new(number: u32, class: CallClass) -> MpiFunction {
        let number = number.min(u16::MAX.into());
        let class = class.0.min(u8::MAX.into());
        MpiFunction(number << MpiFunction::NUMBER_SHIFT | class << MpiFunction::CLASS_SHIFT)
    }

    /// The same function, called in a process whose waits for other ranks are known.
    pub(crate) fn with_known_waits(self, waits_are_known: bool) -> MpiFunction {
        MpiFunction(self.0 & !1 | u32::from(waits_are_known))
    }

    /// Whether waits are known, so that a call waits only during a [`Construct::MpiWait`] inside it. Otherwise, it is
    /// unknown which part of a call is a wait.
    pub fn waits_are_known(self) -> bool {
        self.0 & 1 != 0
    }

    /// The class of the call.
    pub fn class(self) -> CallClass {
        CallClass(self.0 >> MpiFunction::CLASS_SHIFT & u32::from(u8::MAX))
    }

    /// The function's name in C.
    pub fn name(self) -> String {
        let number = self.0 >> MpiFunction::NUMBER_SHIFT;
        match omptrace_mpi_api::function(number) {
            Some(function) => function.name.to_owned(),
            None => format!("MPI function {number}"),
        }
    }
}

/// An event of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum DeviceEvent {
    /// The device was initialized.
    Initialize,
    /// The device is no longer used.
    Finalize,
    /// Code was loaded.
    Load,
    /// Code was unloaded.
    Unload,
}

// Comparison and hashing occur for each event, and the derived implementations are too large to be inlined.
impl PartialEq for Construct {
    #[inline(always)]
    fn eq(&self, other: &Construct) -> bool {
        discriminant(self) == discriminant(other) && self.kind() == other.kind()
    }
}

impl Hash for Construct {
    #[inline(always)]
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        state.write_u32(self.kind());
    }
}

impl Construct {
    /// The kind within the construct; 0 if it has only one.
    // All kinds are at the same offset, so this is a single read.
    #[inline(always)]
    fn kind(self) -> u32 {
        match self {
            Construct::Work(kind) => kind.0,
            Construct::SyncRegion(kind) | Construct::SyncRegionWait(kind) => kind.0,
            Construct::MutexWait(kind)
            | Construct::MutexHold(kind)
            | Construct::MutexReleased(kind)
            | Construct::MutexInit(kind)
            | Construct::MutexDestroy(kind) => kind.0,
            Construct::ExternalWait(kind) => kind.0,
            Construct::MpiCall(function) | Construct::MpiWait(function) => function.0,
            Construct::NestLockAgain(endpoint) => endpoint.0,
            Construct::Target(kind) => kind.0,
            Construct::TargetDataOp(kind) => kind.0,
            Construct::Device(event) => event as u32,
            Construct::Dispatch(kind) => kind.0,
            Construct::ThreadState(state) => state.0,
            Construct::Annotation(kind) => kind.0,
            Construct::InitialTask
            | Construct::ImplicitTask
            | Construct::Parallel
            | Construct::ParallelWakeUp
            | Construct::Teams
            | Construct::TeamsWakeUp
            | Construct::Idle
            | Construct::Reduction
            | Construct::Masked
            | Construct::Task
            | Construct::UntiedTask
            | Construct::TargetTask
            | Construct::TaskwaitTask
            | Construct::TaskFulfill
            | Construct::TaskCreated
            | Construct::TaskCompleted
            | Construct::TargetSubmit
            | Construct::TargetMap
            | Construct::Chunk
            | Construct::Doacross
            | Construct::CollectorEvent
            | Construct::Flush
            | Construct::Cancel
            | Construct::ControlTool
            | Construct::Error
            | Construct::Phase
            | Construct::Mark
            | Construct::BufferFlush
            | Construct::Preempted
            | Construct::Lost
            | Construct::Unknown => 0,
        }
    }

    /// Whether the program named the region. Such a region may end inside another region than it started in.
    #[inline(always)]
    pub fn is_phase(self) -> bool {
        matches!(self, Construct::Phase | Construct::Annotation(_))
    }

    /// Whether the region is a chunk of a loop.
    pub fn is_chunk(self) -> bool {
        matches!(
            self,
            Construct::Dispatch(
                ompt::ompt_dispatch_ws_loop_chunk
                    | ompt::ompt_dispatch_taskloop_chunk
                    | ompt::ompt_dispatch_distribute_chunk
            )
        )
    }

    /// A construct's name and category. Enumerators missing in the specification appear as numbers.
    pub(crate) fn describe(self) -> (String, Category) {
        use Category as C;
        let fixed = |name: &str, category| (name.to_owned(), category);
        match self {
            Construct::InitialTask => fixed("initial task", C::ImplicitTask),
            Construct::ImplicitTask => fixed("!$omp implicit task", C::ImplicitTask),
            Construct::Parallel => fixed("!$omp parallel", C::Parallel),
            Construct::ParallelWakeUp => fixed("!$omp parallel (wake-up)", C::Wait),
            Construct::Teams => fixed("!$omp teams", C::Parallel),
            Construct::TeamsWakeUp => fixed("!$omp teams (wake-up)", C::Wait),
            Construct::Idle => fixed("idle", C::Wait),
            Construct::Work(kind) => (work_name(kind), C::Work),
            Construct::SyncRegion(kind) => (sync_region_name(kind), C::Sync),
            Construct::SyncRegionWait(kind) => (sync_region_name(kind) + " wait", C::Wait),
            Construct::Reduction => fixed("!$omp reduction", C::Sync),
            Construct::Masked => fixed("!$omp masked", C::Work),
            Construct::Task => fixed("!$omp task", C::Task),
            Construct::UntiedTask => fixed("!$omp task untied", C::Task),
            Construct::TargetTask => fixed("!$omp target task", C::Task),
            Construct::TaskwaitTask => fixed("!$omp taskwait depend", C::Task),
            Construct::TaskFulfill => fixed("task fulfilled", C::Task),
            // Testing a lock is not waiting for it.
            Construct::MutexWait(kind @ (ompt::ompt_mutex_test_lock | ompt::ompt_mutex_test_nest_lock)) => {
                (mutex_wait_name(kind), C::Mutex)
            }
            Construct::TaskCreated => fixed("task created", C::Task),
            Construct::TaskCompleted => fixed("task completed", C::Task),
            Construct::MutexWait(kind) => (mutex_wait_name(kind), C::Wait),
            Construct::ExternalWait(kind) => (external_wait_name(kind), C::Wait),
            Construct::MpiCall(function) => (function.name(), C::Mpi),
            Construct::MpiWait(function) => (function.name() + " wait", C::Wait),
            Construct::MutexHold(kind) => (mutex_hold_name(kind), C::Mutex),
            Construct::MutexReleased(kind) => (mutex_released_name(kind), C::Mutex),
            Construct::MutexInit(kind) => (lock_routine("omp_init", kind), C::Mutex),
            Construct::MutexDestroy(kind) => (lock_routine("omp_destroy", kind), C::Mutex),
            Construct::NestLockAgain(ompt::ompt_scope_end) => fixed("omp_unset_nest_lock (inner)", C::Mutex),
            Construct::NestLockAgain(_) => fixed("omp_set_nest_lock (inner)", C::Mutex),
            Construct::Target(kind) => (target_name(kind), C::Target),
            Construct::TargetDataOp(kind) => (data_op_name(kind), C::Target),
            Construct::TargetSubmit => fixed("!$omp target submit", C::Target),
            Construct::TargetMap => fixed("!$omp target map", C::Target),
            Construct::Device(DeviceEvent::Initialize) => fixed("device initialize", C::Target),
            Construct::Device(DeviceEvent::Finalize) => fixed("device finalize", C::Target),
            Construct::Device(DeviceEvent::Load) => fixed("device load", C::Target),
            Construct::Device(DeviceEvent::Unload) => fixed("device unload", C::Target),
            Construct::Dispatch(kind) => (format!("dispatch {}", spelled(kind.name(), kind.0)), C::Work),
            Construct::Chunk => fixed("!$omp for chunk", C::Work),
            Construct::Doacross => fixed("!$omp ordered doacross", C::Sync),
            Construct::ThreadState(state) => (state_name(state), C::Omptrace),
            Construct::CollectorEvent => fixed("runtime-specific event", C::Omptrace),
            Construct::Flush => fixed("!$omp flush", C::Sync),
            Construct::Cancel => fixed("!$omp cancel", C::Sync),
            Construct::ControlTool => fixed("omp_control_tool", C::User),
            Construct::Error => fixed("!$omp error", C::User),
            Construct::Phase => fixed("phase", C::User),
            Construct::Annotation(kind) => (spelled(kind.name(), kind.0), C::User),
            Construct::Mark => fixed("mark", C::User),
            Construct::BufferFlush => fixed("omptrace buffer flush", C::Omptrace),
            Construct::Preempted => fixed("preempted", C::Omptrace),
            Construct::Lost => fixed("omptrace lost events", C::Omptrace),
            Construct::Unknown => fixed("unknown event", C::Omptrace),
        }
    }
}

/// The name of a thread's state.
pub(crate) fn state_name(state: ompt::ompt_state_t) -> String {
    format!("state: {}", spelled(state.name(), state.0))
}

/// The OMPT name of an enumerator, or its number if it has none.
fn spelled(name: Option<&str>, number: u32) -> String {
    name.map_or_else(|| format!("{number:#x}"), |name| name.replace('_', " "))
}

fn work_name(kind: ompt::ompt_work_t) -> String {
    let name = match kind {
        ompt::ompt_work_loop
        | ompt::ompt_work_loop_static
        | ompt::ompt_work_loop_dynamic
        | ompt::ompt_work_loop_guided
        | ompt::ompt_work_loop_other => "for",
        ompt::ompt_work_single_executor | ompt::ompt_work_single_other => "single",
        _ => return format!("!$omp {}", spelled(kind.name(), kind.0)),
    };
    format!("!$omp {name}")
}

fn sync_region_name(kind: ompt::ompt_sync_region_t) -> String {
    let name = match kind {
        ompt::ompt_sync_region_barrier | ompt::ompt_sync_region_barrier_explicit => "barrier",
        ompt::ompt_sync_region_barrier_implicit
        | ompt::ompt_sync_region_barrier_implicit_workshare
        | ompt::ompt_sync_region_barrier_implicit_parallel => "implicit barrier",
        ompt::ompt_sync_region_barrier_implementation => "implementation barrier",
        ompt::ompt_sync_region_barrier_teams => "implicit barrier (teams)",
        _ => return format!("!$omp {}", spelled(kind.name(), kind.0)),
    };
    format!("!$omp {name}")
}

fn mutex_hold_name(kind: ompt::ompt_mutex_t) -> String {
    format!("!$omp {}", spelled(kind.name(), kind.0))
}

fn mutex_released_name(kind: ompt::ompt_mutex_t) -> String {
    match kind {
        ompt::ompt_mutex_lock | ompt::ompt_mutex_nest_lock => lock_routine("omp_unset", kind),
        _ => mutex_hold_name(kind) + " released",
    }
}

fn mutex_wait_name(kind: ompt::ompt_mutex_t) -> String {
    match kind {
        ompt::ompt_mutex_lock => "omp_set_lock".to_owned(),
        ompt::ompt_mutex_test_lock => "omp_test_lock".to_owned(),
        ompt::ompt_mutex_nest_lock => "omp_set_nest_lock".to_owned(),
        ompt::ompt_mutex_test_nest_lock => "omp_test_nest_lock".to_owned(),
        _ => mutex_hold_name(kind) + " wait",
    }
}

fn external_wait_name(kind: WaitKind) -> String {
    let name = match kind {
        WaitKind::mutex => "pthread mutex",
        WaitKind::rwlock => "pthread rwlock",
        WaitKind::condition => "pthread condition variable",
        WaitKind::join => "pthread join",
        WaitKind::barrier => "pthread barrier",
        WaitKind::receive => "socket receive",
        WaitKind::send => "socket send",
        _ => return format!("wait: {}", spelled(kind.name(), kind.0)),
    };
    format!("wait: {name}")
}

fn lock_routine(verb: &str, kind: ompt::ompt_mutex_t) -> String {
    match kind {
        ompt::ompt_mutex_nest_lock | ompt::ompt_mutex_test_nest_lock => format!("{verb}_nest_lock"),
        _ => format!("{verb}_lock"),
    }
}

fn target_name(kind: ompt::ompt_target_t) -> String {
    match kind {
        ompt::ompt_target => "!$omp target".to_owned(),
        _ => format!("!$omp {}", spelled(kind.name(), kind.0)),
    }
}

fn data_op_name(kind: ompt::ompt_target_data_op_t) -> String {
    format!("!$omp target data {}", spelled(kind.name(), kind.0))
}

/// The prefix of OpenMP constructs in names for Score-P's tools.
const SENTINEL: &str = "!$omp ";

/// The construct's name in results, without the prefix for Score-P's tools; and whether it is an OpenMP directive.
pub fn plain_name(name: &str) -> (&str, bool) {
    match name.strip_prefix(SENTINEL) {
        Some(directive) => (directive, true),
        None => (name, false),
    }
}

/// Splits a region's name into the construct and its place, which starts with ` @`, ` inside @` or ` near @`; the place
/// is empty if unknown.
pub fn split_place(name: &str) -> (&str, &str) {
    let place = [" inside @", " near @", " @"].iter().find_map(|begin| name.find(begin));
    name.split_at(place.unwrap_or(name.len()))
}

/// A region's name without the sentinel, for displays where everything is OpenMP and narrow slices have little room.
pub fn short_name(name: &str) -> &str {
    name.strip_prefix(SENTINEL).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_begin_with_the_construct() {
        assert_eq!(short_name("!$omp parallel @a.c:7"), "parallel @a.c:7");
        assert_eq!(short_name("omp_set_lock @a.c:7"), "omp_set_lock @a.c:7");
    }

    #[test]
    fn enumerators_without_a_name_show_their_number() {
        let name = |construct: Construct| construct.describe().0;
        assert_eq!(name(Construct::Work(ompt::ompt_work_loop_dynamic)), "!$omp for");
        assert_eq!(name(Construct::Work(ompt::ompt_work_scope)), "!$omp scope");
        assert_eq!(name(Construct::Work(ompt::ompt_work_t(77))), "!$omp 0x4d");
        assert_eq!(name(Construct::SyncRegionWait(ompt::ompt_sync_region_taskwait)), "!$omp taskwait wait");
        assert_eq!(name(Construct::MutexWait(ompt::ompt_mutex_critical)), "!$omp critical wait");
        assert_eq!(name(Construct::ExternalWait(WaitKind::mutex)), "wait: pthread mutex");
        assert_eq!(name(Construct::ExternalWait(WaitKind::sleep)), "wait: sleep");
        assert_eq!(name(Construct::ExternalWait(WaitKind(77))), "wait: 0x4d");
        assert_eq!(name(Construct::Target(ompt::ompt_target_enter_data)), "!$omp target enter data");
        assert_eq!(
            name(Construct::TargetDataOp(ompt::ompt_target_data_transfer_to_device)),
            "!$omp target data transfer to device"
        );
    }
}
