//! Samples of what threads did, in the user's model: see the module `samples` of this crate.

use crate::model::ids::FunctionId;
use crate::model::point::Point;

/// A function that samples were taken in, an activity of the runtime, or a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its number.
    pub id: FunctionId,
    /// Its name as the programmer wrote it, without parameters; `module+0x1234` where it has none.
    pub name: String,
    /// The file of the module that it is in; empty of what is no code of the program.
    pub module: String,
    /// The source file, with its directory, where that is known.
    pub file: Option<String>,
    /// What it is.
    pub kind: FunctionKind,
}

/// What a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FunctionKind {
    /// The program's, or that of a library which it calls.
    Code,
    /// The part of a function that a compiler made a function of its own, since a team or a task executes it.
    Outlined,
    /// What the runtime does in the program's place.
    Runtime(RuntimeActivity),
    /// A phase that the program names, outside of its code.
    Phase,
    /// Frames are missing here.
    Truncated,
}

/// What the runtime does in the program's place. Names are those of the Collector API's paper (2007), where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuntimeActivity {
    /// A thread of no team waits for work.
    Idle,
    /// A barrier that a construct implies.
    ImplicitBarrier,
    /// A barrier that the program asks for.
    ExplicitBarrier,
    /// A barrier of which the runtime does not say more.
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
    /// A mutex of which the runtime does not say more.
    MutexWait,
    /// A device.
    TargetWait,
    /// A reduction, which is work.
    Reduction,
    /// A flush, which makes memory the same for all threads.
    Flush,
    /// A test whether a lock is free.
    LockTest,
    /// Anything else.
    Overhead,
}

impl RuntimeActivity {
    /// The name of its frame in a stack.
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

    /// Whether it counts as OpenMP Work (Collector API's paper, section 6); all else is OpenMP Wait.
    pub fn is_work(self) -> bool {
        self == RuntimeActivity::Reduction
    }

    /// Whether a program does it again and again where it waits in a loop of its own.
    pub fn is_of_spinning(self) -> bool {
        matches!(self, RuntimeActivity::Flush | RuntimeActivity::LockTest)
    }
}

/// A part of a thread's CPU time, and where it was spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The thread, and the end of the time that the sample represents.
    pub at: Point,
    /// That much CPU time.
    pub weight_ns: u64,
    /// What the runtime did; `None` where the thread executed code of the program.
    pub activity: Option<RuntimeActivity>,
    /// The stack in the user's model, the outermost frame first.
    pub stack: &'a [StackFrame],
}

impl Sample<'_> {
    /// Whether it is OpenMP Work, else it is OpenMP Wait.
    pub fn is_work(&self) -> bool {
        self.activity.is_none_or(RuntimeActivity::is_work)
    }

    /// How many periods of the sampling clock it represents, at least one; one where the clock is not known (0).
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
    /// The line in the function's file, where that is known: of a call, or of the innermost frame's code.
    pub line: Option<u32>,
}
