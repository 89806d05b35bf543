//! Callbacks of the tools interface, as LLVM's runtime makes them; `write` puts them into traces.

use crate::program::{Access, CallClass, Code, MutexKind, Ns};

/// An id of a region or a task.
pub type Id = u64;

/// Whether something begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Scope {
    Begin,
    End,
}

/// The region and the task of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// `None` is a null pointer, as at the end of a region.
    pub parallel: Option<Id>,
    /// The implicit or explicit task.
    pub task: Id,
}

/// What a thread waits at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "OMPT's kinds")]
pub enum Sync {
    ExplicitBarrier,
    WorksharingBarrier,
    ParallelBarrier,
    Taskwait,
    Taskgroup,
}

/// What a worksharing event is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "OMPT's kinds")]
pub enum Work {
    LoopStatic,
    LoopDynamic,
    LoopGuided,
    Sections,
    SingleExecutor,
    SingleOther,
    Taskloop,
}

/// How a task gives its thread away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "OMPT's values")]
pub enum Status {
    Switch,
    Yield,
    Complete,
    Cancel,
    Detach,
    EarlyFulfill,
    LateFulfill,
    TaskwaitComplete,
}

/// The flags of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "OMPT's flags")]
pub struct TaskFlags {
    pub undeferred: bool,
    pub untied: bool,
    pub is_final: bool,
    pub mergeable: bool,
    pub is_taskwait: bool,
    pub is_target: bool,
}

/// One callback with its arguments.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "OMPT's callbacks and arguments")]
pub enum Callback {
    ThreadBegin {
        is_initial: bool,
    },
    ThreadEnd,
    InitialTask(Scope),
    ParallelBegin {
        parallel: Id,
        task: Id,
        asked: usize,
        code: Code,
    },
    ParallelEnd {
        parallel: Id,
        task: Id,
        code: Code,
    },
    ImplicitTask {
        scope: Scope,
        parallel: Option<Id>,
        task: Id,
        size: usize,
        index: usize,
    },
    Work {
        kind: Work,
        scope: Scope,
        of: Context,
        count: usize,
        code: Code,
    },
    Chunk {
        of: Context,
        instance: Code,
        start: usize,
        iterations: usize,
    },
    /// The iteration that a task of a taskloop executes.
    TaskloopChunk {
        of: Context,
        iteration: usize,
    },
    Section {
        of: Context,
        instance: Code,
    },
    Masked {
        scope: Scope,
        of: Context,
        code: Code,
    },
    SyncRegion {
        kind: Sync,
        scope: Scope,
        of: Context,
        code: Code,
    },
    SyncWait {
        kind: Sync,
        scope: Scope,
        of: Context,
        code: Code,
    },
    Reduction {
        scope: Scope,
        of: Context,
        code: Code,
    },
    MutexAcquire {
        kind: MutexKind,
        mutex: Id,
        code: Code,
    },
    MutexAcquired {
        kind: MutexKind,
        mutex: Id,
        code: Code,
    },
    MutexReleased {
        kind: MutexKind,
        mutex: Id,
        code: Code,
    },
    NestLock {
        scope: Scope,
        mutex: Id,
        code: Code,
    },
    TaskCreate {
        task: Id,
        new: Id,
        flags: TaskFlags,
        has_dependences: bool,
        code: Code,
    },
    TaskSchedule {
        prior: Id,
        status: Status,
        next: Option<Id>,
    },
    Dependences {
        task: Id,
        list: Vec<(Access, u64)>,
    },
    Doacross {
        task: Id,
        is_source: bool,
        iteration: usize,
    },
    TaskDependence {
        before: Id,
        after: Id,
    },
    CancelTaskgroup {
        task: Id,
        code: Code,
    },
    Target {
        scope: Scope,
        task: Id,
        target: Id,
        code: Code,
    },
    TargetSubmit {
        scope: Scope,
        target: Id,
        operation: Id,
    },
    /// An MPI call, which the adapter records.
    Call {
        scope: Scope,
        class: CallClass,
        code: Code,
    },
    /// A phase of this name begins or ends.
    Phase {
        scope: Scope,
        name: &'static str,
    },
    /// Recording stops and starts again.
    Pause {
        stops: bool,
    },
    /// Events of the thread are lost: their number, and since when.
    Lost {
        since: Ns,
        events: u64,
    },
}
