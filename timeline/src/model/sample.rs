//! Samples of threads in the user's model: see the module `samples` of this crate.

use crate::model::ids::FunctionId;
use crate::model::point::Point;

/// A function that was sampled, an activity of the runtime, or a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its number.
    pub id: FunctionId,
    /// The name as the programmer wrote it, without parameters; `module+0x1234` if there is none.
    pub name: String,
    /// The file of the module that contains the function; empty if it is not code of the program.
    pub module: String,
    /// The source file with its directory, if known.
    pub file: Option<String>,
    /// The kind of function.
    pub kind: FunctionKind,
}

/// The kind of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FunctionKind {
    /// A function of the program, or of a library that it calls.
    Code,
    /// A part of a function that the compiler turned into a function, because a team or task executes it.
    Outlined,
    /// An activity of the runtime.
    Runtime(RuntimeActivity),
    /// A phase that the program named; not code.
    Phase,
    /// A mark for missing frames.
    Truncated,
}

/// An activity of the runtime. The names are those of the Collector API's paper (2007), if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuntimeActivity {
    /// A thread outside of teams waits for work.
    Idle,
    /// A barrier that a construct implies.
    ImplicitBarrier,
    /// A barrier that the program requests.
    ExplicitBarrier,
    /// A barrier whose kind the runtime does not report.
    Barrier,
    /// A taskwait.
    TaskWait,
    /// The end of a taskgroup.
    TaskgroupWait,
    /// A lock.
    LockWait,
    /// A critical region.
    CriticalWait,
    /// An ordered region.
    OrderedWait,
    /// An atomic region.
    AtomicWait,
    /// A mutex whose kind the runtime does not report.
    MutexWait,
    /// A device.
    TargetWait,
    /// A reduction, which is work.
    Reduction,
    /// A flush, which makes memory consistent for all threads.
    Flush,
    /// A test whether a lock is free.
    LockTest,
    /// Anything else.
    Overhead,
}

impl RuntimeActivity {
    /// The name of the activity's frame in a stack.
    pub fn name(self) -> &'static str {
        match self {
            RuntimeActivity::Idle => "<OMP-idle>",
            RuntimeActivity::ImplicitBarrier => "<OMP-implicit_barrier>",
            RuntimeActivity::ExplicitBarrier => "<OMP-explicit_barrier>",
            RuntimeActivity::Barrier => "<OMP-barrier>",
            RuntimeActivity::TaskWait => "<OMP-task_wait>",
            RuntimeActivity::TaskgroupWait => "<OMP-taskgroup_wait>",
            RuntimeActivity::LockWait => "<OMP-lock_wait>",
            RuntimeActivity::CriticalWait => "<OMP-critical_section_wait>",
            RuntimeActivity::OrderedWait => "<OMP-ordered_section_wait>",
            RuntimeActivity::AtomicWait => "<OMP-atomic_section_wait>",
            RuntimeActivity::MutexWait => "<OMP-mutex_wait>",
            RuntimeActivity::TargetWait => "<OMP-target_wait>",
            RuntimeActivity::Reduction => "<OMP-reduction>",
            RuntimeActivity::Flush => "<OMP-flush>",
            RuntimeActivity::LockTest => "<OMP-lock_test>",
            RuntimeActivity::Overhead => "<OMP-overhead>",
        }
    }

    /// Whether the activity counts as OpenMP Work (Collector API's paper, section 6); otherwise, it is OpenMP Wait.
    pub fn is_work(self) -> bool {
        self == RuntimeActivity::Reduction
    }

    /// Whether a program may repeat the activity while it waits in a loop of its own (spins).
    pub fn is_of_spinning(self) -> bool {
        matches!(self, RuntimeActivity::Flush | RuntimeActivity::LockTest)
    }
}

/// A part of a thread's CPU time, and the code that used it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The thread, and the end of the time that the sample represents.
    pub at: Point,
    /// The CPU time that the sample represents.
    pub weight_ns: u64,
    /// The runtime's activity; `None` if the thread executed code of the program.
    pub activity: Option<RuntimeActivity>,
    /// The stack in the user's model, outermost frame first.
    pub stack: &'a [StackFrame],
}

impl Sample<'_> {
    /// Whether the sample is OpenMP Work; otherwise, it is OpenMP Wait.
    pub fn is_work(&self) -> bool {
        self.activity.is_none_or(RuntimeActivity::is_work)
    }

    /// How many periods of the sampling clock the sample represents: at least one, and one if the clock is unknown (0).
    pub fn periods(&self, period_ns: u64) -> u64 {
        let rounded = self.weight_ns.saturating_add(period_ns / 2);
        rounded.checked_div(period_ns).unwrap_or(1).max(1)
    }
}

/// A frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackFrame {
    /// The function.
    pub function: FunctionId,
    /// The line in the function's file, if known: of a call, or of the innermost frame's code.
    pub line: Option<u32>,
}
