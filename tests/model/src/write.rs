//! Writes the callbacks of a run as the text of a trace, as one runtime or another would have reported them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::callback::{Callback, Context, Id, Scope, Status, Sync, TaskFlags, Work};
use crate::collector;
use crate::program::{Access, Code, MutexKind, Ns};
use crate::run::Run;
use crate::simulate::HELPERS;

/// Which runtime's traces are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// LLVM's, as of today.
    Llvm,
    /// GCC's libgomp with the adapter: static loops, masked regions and reductions are not seen.
    Libgomp,
    /// LLVM's runtime 9.0, of OpenMP 5.0. All loops are of one kind, and so are all implicit barriers. Chunks, sections, reductions and
    /// devices are not seen.
    Llvm9,
    /// LLVM's runtime 6.0, of TR6, a draft of OpenMP 5.0. Its kinds have other numbers, all barriers are of one kind, and the initial task
    /// is created. Chunks, sections, reductions, taskloops, doacross dependences and devices are not seen.
    Llvm6,
    /// The branch `tr4-stable` of 2017. As LLVM 6, and types of tasks are numbers; regions and what threads wait at have no place.
    Tr4,
    /// A runtime with the Collector API of 2007, as its document says. Neither members nor loops nor tasks are seen, nor any place.
    Collector,
}

/// Callbacks that `tr4-stable` grants, as it was recorded.
const CALLBACKS_OF_TR4: [&str; 21] = [
    "thread_begin",
    "thread_end",
    "parallel_begin",
    "parallel_end",
    "task_create",
    "task_schedule",
    "implicit_task",
    "control_tool",
    "sync_region_wait",
    "mutex_released",
    "dependences",
    "task_dependence",
    "work",
    "masked",
    "sync_region",
    "lock_init",
    "lock_destroy",
    "mutex_acquire",
    "mutex_acquired",
    "nest_lock",
    "cancel",
];

impl Dialect {
    /// Whether the runtime reports this.
    fn reports(self, callback: &Callback, ordered: &BTreeSet<Code>) -> bool {
        let is_hidden = match self {
            Dialect::Llvm => false,
            Dialect::Libgomp => match callback {
                Callback::Work { kind: Work::LoopStatic, code, .. } => {
                    // GCC calls the runtime for ordered loops.
                    !ordered.contains(code) && !ordered.contains(&(code - 1))
                }
                Callback::Masked { .. } | Callback::Reduction { .. } => true,
                Callback::TaskDependence { .. } => true,
                _ => false,
            },
            Dialect::Llvm9 => matches!(
                callback,
                Callback::Chunk { .. }
                    | Callback::TaskloopChunk { .. }
                    | Callback::Section { .. }
                    | Callback::Reduction { .. }
                    | Callback::Target { .. }
                    | Callback::TargetSubmit { .. }
            ),
            // `collector` has the events that there are.
            Dialect::Collector => false,
            Dialect::Llvm6 | Dialect::Tr4 => matches!(
                callback,
                Callback::Work { kind: Work::Taskloop, .. }
                    | Callback::InitialTask(Scope::End)
                    | Callback::Chunk { .. }
                    | Callback::TaskloopChunk { .. }
                    | Callback::Section { .. }
                    | Callback::Reduction { .. }
                    | Callback::Doacross { .. }
                    | Callback::Target { .. }
                    | Callback::TargetSubmit { .. }
            ),
        };
        !is_hidden
    }

    /// How `info` names the generation of its interface.
    fn generation(self) -> &'static str {
        match self {
            Dialect::Llvm | Dialect::Libgomp | Dialect::Llvm9 => "5.x",
            Dialect::Llvm6 => "TR6",
            Dialect::Tr4 => "TR4",
            Dialect::Collector => "Collector API",
        }
    }

    fn version(self) -> &'static str {
        match self {
            Dialect::Llvm => "LLVM OMP version: 5.0.20140926",
            Dialect::Libgomp => "libgomp of GCC 12 through libomptgomp",
            Dialect::Llvm9 | Dialect::Llvm6 | Dialect::Tr4 => "Intel(R) OMP version: 5.0.20140926",
            Dialect::Collector => "libopenmp.so.1",
        }
    }

    /// How cases name the runtime.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dialect::Llvm => "LLVM's runtime",
            Dialect::Libgomp => "libgomp",
            Dialect::Llvm9 => "LLVM 9",
            Dialect::Llvm6 => "LLVM 6",
            Dialect::Tr4 => "LLVM's branch of TR4",
            Dialect::Collector => "a runtime with the Collector API",
        }
    }

    /// What the runtime answers to registrations, where that decides what is known.
    fn callbacks(self) -> Vec<String> {
        let row = |name: &str, result: u32, meaning: &str| {
            format!(r#""{name}": {{"number": 1, "result": {result}, "meaning": "{meaning}"}}"#)
        };
        match self {
            Dialect::Tr4 => {
                let granted = CALLBACKS_OF_TR4.iter().map(|name| row(name, 4, "always"));
                granted.chain([row("idle", 0, "error")]).collect()
            }
            Dialect::Collector => collector::EVENTS.iter().map(|name| row(name, 0, "OK")).collect(),
            _ => vec![],
        }
    }
}

/// How the recording of a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With the process.
    Complete,
    /// The process was killed; what came after this time is missing.
    Killed(Ns),
}

/// One process in a trace.
#[derive(Clone, Copy, Debug)]
pub struct Process<'r> {
    /// Its process id.
    pub pid: u32,
    /// When it starts, since the first one.
    pub start: Ns,
    /// What it did.
    pub run: &'r Run,
    /// How its recording ended.
    pub ending: Ending,
}

/// The system's clock at the start of the session.
const START_NS: Ns = 1_000_000;

/// The text of the trace of `process`, as [`omptrace_trace_builder`] reads it.
pub fn text(process: &Process<'_>, dialect: Dialect) -> String {
    let mut out = format!("process app pid={} start={}\n", process.pid, process.start);
    let (version, generation) = (dialect.version(), dialect.generation());
    let _ = writeln!(out, r#"metadata {{"runtime": {{"version": "{version}", "dialect": "{generation}"}}}}"#);
    let callbacks = dialect.callbacks();
    if !callbacks.is_empty() {
        let _ = writeln!(out, r#"metadata {{"callbacks": {{{}}}}}"#, callbacks.join(", "));
    }
    let ordered = ordered_loops(process.run);
    let explicit = barriers_of_gcc(process.run);
    let counts = counts(process.run);
    let last = match process.ending {
        Ending::Complete => {
            if dialect == Dialect::Collector {
                // No event says that the process has ended: `omptrace record` saw it.
                let ended = START_NS + process.run.end;
                let record = format!(r#"{{"started_raw_ns": {START_NS}, "ended_raw_ns": {ended}}}"#);
                let _ = writeln!(out, r#"metadata {{"record": {record}}}"#);
            }
            Ns::MAX
        }
        Ending::Killed(last) => {
            out.push_str("metadata {\"end\": null}\n");
            last
        }
    };
    let regions = regions_of_members(process.run);
    let threads = process.run.spans.len();
    if !process.run.helpers.is_empty() {
        // By it, helpers are known: they begin a region from code of the runtime.
        let _ = writeln!(out, "0 1 module path=/usr/lib/libomp.so.5 load={RUNTIME:#x}");
    }
    let has_helpers = process.run.callbacks.iter().any(|(.., callback)| is_target_task(callback));
    let threads = if has_helpers { threads } else { process.run.helpers.start };
    for thread in 0..threads {
        let _ =
            writeln!(out, "0 {} thread_info os_tid={} name=app", thread + 1, process.pid as usize + thread);
        let own = process.run.callbacks.iter().filter(|(time, of, _)| *of == thread && *time <= last);
        let mut own: Vec<&(Ns, usize, Callback)> =
            own.filter(|(.., callback)| dialect.reports(callback, &ordered)).collect();
        own.sort_by_key(|(time, ..)| *time);
        if thread >= process.run.helpers.start {
            for (time, text) in helper(process.run, thread, &own, last) {
                let _ = writeln!(out, "{time} {} {text}", thread + 1);
            }
            continue;
        }
        if dialect == Dialect::Collector {
            for (time, text) in collector::lines(&own) {
                let _ = writeln!(out, "{time} {} {text}", thread + 1);
            }
            continue;
        }
        let mut singles = Singles::default();
        for (time, _, callback) in own {
            let texts = match dialect {
                Dialect::Llvm | Dialect::Collector => vec![line(callback)],
                Dialect::Libgomp => lines_of_gcc(callback, &explicit, &counts, &mut singles),
                Dialect::Llvm9 => vec![line_of_llvm_9(callback)],
                Dialect::Llvm6 => vec![line_of_draft(callback)],
                Dialect::Tr4 => vec![line_of_tr4(callback, &regions)],
            };
            for text in texts {
                let _ = writeln!(out, "{time} {} {text}", thread + 1);
            }
        }
    }
    out
}

fn is_target_task(callback: &Callback) -> bool {
    matches!(callback, Callback::TaskCreate { flags: TaskFlags { is_target: true, .. }, .. })
}

/// Where the runtime is in the process.
const RUNTIME: Code = 0x7_0000;

/// The lines of a hidden helper of LLVM's, as they were recorded. The first one begins a region of its own, whose other members run target
/// tasks while they wait at its end.
fn helper(run: &Run, thread: usize, own: &[&(Ns, usize, Callback)], last: Ns) -> Vec<(Ns, String)> {
    let first =
        run.callbacks.iter().filter(|(.., callback)| is_target_task(callback)).map(|(time, ..)| *time).min();
    let Some(begin) = first.filter(|begin| *begin <= last) else {
        return vec![];
    };
    let (region, initial, implicit) = (HELPERS, HELPERS + 1, HELPERS + 2 + thread as Id);
    let (size, index) = (run.helpers.len(), thread - run.helpers.start);
    let is_first = index == 0;
    let code = RUNTIME + 0x10;
    let mut lines = vec![];
    if is_first {
        lines.push("thread_begin type=initial".to_owned());
        lines.push(format!("implicit_task begin parallel=? task={initial} team=1 index=1 flags=1"));
        lines.push(format!("parallel_begin parallel={region} task={initial} team={size} code={code}"));
    } else {
        lines.push("thread_begin type=worker".to_owned());
    }
    let of = format!("parallel={region} task={implicit}");
    lines.push(format!("implicit_task begin {of} team={size} index={index} flags=2"));
    let waits = format!("kind=barrier_implicit_parallel {of} code={}", if is_first { code } else { 0 });
    if is_first {
        lines.push(format!("masked begin {of} code={code}"));
    } else {
        lines.extend([format!("sync_region begin {waits}"), format!("sync_region_wait begin {waits}")]);
    }
    let mut lines: Vec<(Ns, String)> = lines.into_iter().map(|text| (begin, text)).collect();
    lines.extend(own.iter().map(|(time, _, callback)| (*time, line(callback))));
    let mut ends = vec![];
    if is_first {
        ends.extend([format!("sync_region begin {waits}"), format!("sync_region_wait begin {waits}")]);
    }
    let waits = waits.replace(&format!("parallel={region}"), "parallel=-");
    ends.extend([format!("sync_region_wait end {waits}"), format!("sync_region end {waits}")]);
    let size = if is_first { size } else { 0 };
    ends.push(format!("implicit_task end parallel=- task={implicit} team={size} index={index} flags=2"));
    if is_first {
        ends.push(format!("parallel_end parallel={region} task={initial} code={code}"));
        ends.push(format!("implicit_task end parallel=? task={initial} team=0 index=1 flags=1"));
        ends.push("thread_end".to_owned());
    }
    if run.end <= last {
        lines.extend(ends.into_iter().map(|text| (run.end, text)));
    }
    lines
}

/// The loops of which turns are taken.
fn ordered_loops(run: &Run) -> BTreeSet<Code> {
    let of = |callback: &Callback| match callback {
        Callback::MutexAcquire { kind: MutexKind::Ordered, code, .. } => Some(code - 5),
        _ => None,
    };
    run.callbacks.iter().filter_map(|(.., callback)| of(callback)).collect()
}

/// Iterations and sections, by the place of their construct.
fn counts(run: &Run) -> BTreeMap<Code, usize> {
    let of = |callback: &Callback| match callback {
        Callback::Work { scope: Scope::Begin, code, count, .. } => Some((*code, *count)),
        _ => None,
    };
    run.callbacks.iter().filter_map(|(.., callback)| of(callback)).collect()
}

/// The barriers of static loops, for which GCC calls the runtime as for explicit ones.
fn barriers_of_gcc(run: &Run) -> BTreeSet<Code> {
    let ordered = ordered_loops(run);
    let of = |callback: &Callback| match callback {
        Callback::Work { kind: Work::LoopStatic, scope: Scope::Begin, code, .. } => Some(*code),
        _ => None,
    };
    let places = run.callbacks.iter().filter_map(|(.., callback)| of(callback));
    places.filter(|place| !ordered.contains(place)).map(|place| place + 3).collect()
}

/// What GCC's code does not say of a thread's tasks, and the adapter keeps.
#[derive(Default)]
struct Singles {
    /// Ends of single regions that are not reported yet, by task.
    open: BTreeMap<Id, Callback>,
    /// Tasks whose last construct was a single region.
    last: BTreeSet<Id>,
    /// Barriers that are taken for those of single regions.
    barriers: BTreeSet<(Id, Code)>,
}

/// The lines of a callback as the adapter makes it. GCC's code says how many iterations there are. It calls the runtime alike for explicit
/// barriers and for those of static loops and of single regions. One that follows a single region is taken for its own. The end of a
/// single region comes with the next construct.
fn lines_of_gcc(
    callback: &Callback,
    explicit: &BTreeSet<Code>,
    counts: &BTreeMap<Code, usize>,
    singles: &mut Singles,
) -> Vec<String> {
    let mut of_gcc = callback.clone();
    let mut ended = None;
    match &mut of_gcc {
        Callback::Work { kind: Work::SingleExecutor, scope: Scope::End, of, .. } => {
            singles.open.insert(of.task, callback.clone());
            return vec![];
        }
        Callback::Work { kind, scope, of, code, count } => {
            ended = singles.open.remove(&of.task);
            if matches!(kind, Work::SingleExecutor | Work::SingleOther) {
                singles.last.insert(of.task);
            } else if *scope == Scope::Begin {
                singles.last.remove(&of.task);
            }
            if *scope == Scope::End {
                let known = counts.get(code).or(counts.get(&(*code - 1)));
                *count = known.copied().unwrap_or(*count);
            }
        }
        Callback::SyncRegion { kind, scope: at, of, code }
        | Callback::SyncWait { kind, scope: at, of, code } => {
            let is_barrier = !matches!(kind, Sync::Taskwait | Sync::Taskgroup);
            if is_barrier && *at == Scope::Begin {
                ended = singles.open.remove(&of.task);
            }
            let is_explicit = *kind == Sync::ExplicitBarrier || explicit.contains(code);
            if is_barrier && is_explicit {
                // The first event of four that each barrier has, and the last.
                let is_region = matches!(callback, Callback::SyncRegion { .. });
                if is_region && *at == Scope::Begin && singles.last.remove(&of.task) {
                    singles.barriers.insert((of.task, *code));
                }
                let is_of_single = singles.barriers.contains(&(of.task, *code));
                if is_of_single && is_region && *at == Scope::End {
                    singles.barriers.remove(&(of.task, *code));
                }
                let text = line(callback);
                let (begin, end) = text.split_once("kind=").unwrap_or((&text, ""));
                let (_, end) = end.split_once(' ').unwrap_or(("", end));
                let number = if is_of_single { 8 } else { 1 };
                let own = format!("{begin}kind={number} {end}");
                return ended.iter().map(line).chain([own]).collect();
            }
            if is_barrier && *at == Scope::Begin {
                singles.last.remove(&of.task);
            }
        }
        _ => {}
    }
    ended.iter().chain([&of_gcc]).map(line).collect()
}

/// The region of each implicit task.
fn regions_of_members(run: &Run) -> BTreeMap<Id, Id> {
    let of = |callback: &Callback| match callback {
        Callback::ImplicitTask { scope: Scope::Begin, parallel: Some(parallel), task, .. } => {
            Some((*task, *parallel))
        }
        _ => None,
    };
    run.callbacks.iter().filter_map(|(.., callback)| of(callback)).collect()
}

/// The line of a callback as LLVM 9.0 makes it.
fn line_of_llvm_9(callback: &Callback) -> String {
    let text = line(callback);
    let kind = |from: &str, to: u32| text.replacen(&format!("kind={from} "), &format!("kind={to} "), 1);
    match callback {
        Callback::ParallelBegin { .. } | Callback::ParallelEnd { .. } => format!("{text} flags=2"),
        Callback::Work { kind: of @ (Work::LoopStatic | Work::LoopDynamic | Work::LoopGuided), .. } => {
            kind(work(*of), 1)
        }
        Callback::SyncRegion { kind: of @ (Sync::WorksharingBarrier | Sync::ParallelBarrier), .. }
        | Callback::SyncWait { kind: of @ (Sync::WorksharingBarrier | Sync::ParallelBarrier), .. } => {
            kind(sync(*of), 2)
        }
        _ => text,
    }
}

/// The line of a callback in the form in which `tr4-stable` was recorded.
fn line_of_tr4(callback: &Callback, regions: &BTreeMap<Id, Id>) -> String {
    let text = line_of_draft(callback);
    let without_place = || text.split(" code=").next().unwrap_or_default().to_owned();
    match callback {
        Callback::ParallelBegin { .. } | Callback::ParallelEnd { .. } => {
            format!("{} flags=1", without_place())
        }
        // The end of the thread that encountered the region names it.
        Callback::ImplicitTask { scope: Scope::End, task, index: 0, .. } => {
            let region = regions.get(task).map_or("-".to_owned(), Id::to_string);
            text.replace("parallel=-", &format!("parallel={region}"))
        }
        Callback::SyncRegion { .. } | Callback::SyncWait { .. } => without_place(),
        Callback::TaskCreate { flags: bits, .. } => {
            text.replace(&format!("flags={}", flags(*bits)), "flags=3")
        }
        _ => text,
    }
}

/// The line of a callback with the numbers of TR6, in the form in which LLVM 6.0 was recorded.
fn line_of_draft(callback: &Callback) -> String {
    let text = line(callback);
    let kind = |from: &str, to: u32| text.replacen(&format!("kind={from} "), &format!("kind={to} "), 1);
    match callback {
        Callback::InitialTask(_) => "task_create task=- new=1 flags=1".to_owned(),
        Callback::ParallelBegin { .. } | Callback::ParallelEnd { .. } => format!("{text} flags=2"),
        Callback::ImplicitTask { .. } => text.replace(" flags=2", " flags=0"),
        Callback::Work { kind: of @ (Work::LoopStatic | Work::LoopDynamic | Work::LoopGuided), .. } => {
            kind(work(*of), 1)
        }
        Callback::SyncRegion { kind: of, .. } | Callback::SyncWait { kind: of, .. } => {
            let number = match of {
                Sync::ExplicitBarrier | Sync::WorksharingBarrier | Sync::ParallelBarrier => 1,
                Sync::Taskwait => 2,
                Sync::Taskgroup => 3,
            };
            kind(sync(*of), number)
        }
        Callback::MutexAcquire { kind: of, .. }
        | Callback::MutexAcquired { kind: of, .. }
        | Callback::MutexReleased { kind: of, .. } => {
            let number = match of {
                MutexKind::Lock => 0x11,
                MutexKind::NestLock => 0x12,
                MutexKind::Critical => 0x13,
                MutexKind::Ordered => 0x20,
            };
            kind(mutex(*of), number)
        }
        Callback::TaskSchedule { status: Status::Switch, .. } => text.replace("status=switch", "status=4"),
        Callback::Dependences { task, list } => {
            // The numbers of `in` and `out` are exchanged.
            let exchanged = |access| match access {
                Access::In => Access::Out,
                Access::Out => Access::In,
                other => other,
            };
            let list = list.iter().map(|(access, variable)| (exchanged(*access), *variable)).collect();
            line(&Callback::Dependences { task: *task, list })
        }
        _ => text,
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Begin => "begin",
        Scope::End => "end",
    }
}

fn context(of: Context) -> String {
    let parallel = of.parallel.map_or("-".to_owned(), |id| match id {
        0 => "?".to_owned(),
        id => id.to_string(),
    });
    format!("parallel={parallel} task={}", of.task)
}

fn work(kind: Work) -> &'static str {
    match kind {
        Work::LoopStatic => "loop_static",
        Work::LoopDynamic => "loop_dynamic",
        Work::LoopGuided => "loop_guided",
        Work::Sections => "sections",
        Work::SingleExecutor => "single_executor",
        Work::SingleOther => "single_other",
        Work::Taskloop => "taskloop",
    }
}

fn sync(kind: Sync) -> &'static str {
    match kind {
        Sync::ExplicitBarrier => "barrier_explicit",
        Sync::WorksharingBarrier => "barrier_implicit_workshare",
        Sync::ParallelBarrier => "barrier_implicit_parallel",
        Sync::Taskwait => "taskwait",
        Sync::Taskgroup => "taskgroup",
    }
}

fn mutex(kind: MutexKind) -> &'static str {
    match kind {
        MutexKind::Critical => "critical",
        MutexKind::Lock => "lock",
        MutexKind::NestLock => "nest_lock",
        MutexKind::Ordered => "ordered",
    }
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Switch => "switch",
        Status::Yield => "yield",
        Status::Complete => "complete",
        Status::Cancel => "cancel",
        Status::Detach => "detach",
        Status::EarlyFulfill => "early_fulfill",
        Status::LateFulfill => "late_fulfill",
        Status::TaskwaitComplete => "taskwait_complete",
    }
}

fn flags(flags: TaskFlags) -> u64 {
    let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
    let kind = match flags {
        TaskFlags { is_taskwait: true, .. } => 0x10,
        TaskFlags { is_target: true, .. } => 8,
        _ => 4,
    };
    kind | bit(flags.undeferred, 0x0800_0000)
        | bit(flags.untied, 0x1000_0000)
        | bit(flags.is_final, 0x2000_0000)
        | bit(flags.mergeable, 0x4000_0000)
}

fn line(callback: &Callback) -> String {
    match callback {
        Callback::ThreadBegin { is_initial } => {
            format!("thread_begin type={}", if *is_initial { "initial" } else { "worker" })
        }
        Callback::ThreadEnd => "thread_end".to_owned(),
        Callback::InitialTask(Scope::Begin) => {
            "implicit_task begin parallel=? task=1 team=1 index=1 flags=1".to_owned()
        }
        Callback::InitialTask(Scope::End) => {
            "implicit_task end parallel=? task=1 team=0 index=1 flags=1".to_owned()
        }
        Callback::ParallelBegin { parallel, task, asked, code } => {
            format!("parallel_begin parallel={parallel} task={task} team={asked} code={code}")
        }
        Callback::ParallelEnd { parallel, task, code } => {
            format!("parallel_end parallel={parallel} task={task} code={code}")
        }
        Callback::ImplicitTask { scope: at, parallel, task, size, index } => {
            let parallel = parallel.map_or("-".to_owned(), |id| id.to_string());
            let at = scope(*at);
            format!("implicit_task {at} parallel={parallel} task={task} team={size} index={index} flags=2")
        }
        Callback::Work { kind, scope: at, of, count, code } => {
            let (kind, at, of) = (work(*kind), scope(*at), context(*of));
            format!("work {at} kind={kind} count={count} {of} code={code}")
        }
        Callback::Chunk { of, instance, start, iterations } => {
            let of = context(*of);
            format!(
                "dispatch kind=ws_loop_chunk {of} instance={instance:#x} start={start} iterations={iterations}"
            )
        }
        Callback::TaskloopChunk { of, iteration } => {
            let of = context(*of);
            format!("dispatch kind=taskloop_chunk {of} instance=0x7fff start={iteration} iterations=1")
        }
        Callback::Section { of, instance } => {
            format!("dispatch kind=section {} instance={instance}", context(*of))
        }
        Callback::Masked { scope: at, of, code } => {
            format!("masked {} {} code={code}", scope(*at), context(*of))
        }
        Callback::SyncRegion { kind, scope: at, of, code } => {
            format!("sync_region {} kind={} {} code={code}", scope(*at), sync(*kind), context(*of))
        }
        Callback::SyncWait { kind, scope: at, of, code } => {
            format!("sync_region_wait {} kind={} {} code={code}", scope(*at), sync(*kind), context(*of))
        }
        Callback::Reduction { scope: at, of, code } => {
            format!("reduction {} kind=reduction {} code={code}", scope(*at), context(*of))
        }
        Callback::MutexAcquire { kind, mutex: id, code } => {
            format!("mutex_acquire kind={} wait_id={id} code={code}", mutex(*kind))
        }
        Callback::MutexAcquired { kind, mutex: id, code } => {
            format!("mutex_acquired kind={} wait_id={id} code={code}", mutex(*kind))
        }
        Callback::MutexReleased { kind, mutex: id, code } => {
            format!("mutex_released kind={} wait_id={id} code={code}", mutex(*kind))
        }
        Callback::NestLock { scope: at, mutex: id, code } => {
            format!("nest_lock {} wait_id={id} code={code}", scope(*at))
        }
        Callback::TaskCreate { task, new, flags: bits, has_dependences, code } => {
            let (bits, has) = (flags(*bits), u8::from(*has_dependences));
            format!("task_create task={task} new={new} flags={bits} has_dependences={has} code={code}")
        }
        Callback::TaskSchedule { prior, status: how, next } => {
            let none = if *how == Status::TaskwaitComplete { "?" } else { "-" };
            let next = next.map_or(none.to_owned(), |id| id.to_string());
            format!("task_schedule prior={prior} status={} next={next}", status(*how))
        }
        Callback::Dependences { task, list } => {
            let list: Vec<String> = list
                .iter()
                .map(|(access, variable)| format!("{}={:#x}", access.name(), 0x100 + variable * 8))
                .collect();
            format!("dependences task={task} {}", list.join(" "))
        }
        Callback::Doacross { task, is_source, iteration } => {
            let kind = if *is_source { "source" } else { "sink" };
            format!("dependences task={task} {kind}={iteration}")
        }
        Callback::TaskDependence { before, after } => {
            format!("task_dependence src={before} sink={after}")
        }
        Callback::CancelTaskgroup { task, code } => {
            format!("cancel task={task} flags=24 code={code}")
        }
        Callback::Target { scope: at, task, target, code } => {
            format!(
                "target {} device=0 task={task} target_task_data=? target={target} code={code}",
                scope(*at)
            )
        }
        Callback::TargetSubmit { scope: at, target, operation } => {
            format!("target_submit {} target={target} op={operation} teams=1", scope(*at))
        }
        Callback::Phase { scope: Scope::Begin, name } => format!("control_tool command=64 text={name}"),
        Callback::Phase { scope: Scope::End, name } => format!("control_tool command=65 text={name}"),
        Callback::Pause { stops } => format!("monitoring change={}", if *stops { 2 } else { 3 }),
        Callback::Lost { since, events } => format!("lost begin={since} events={events}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Kind, Program, Statement};
    use crate::simulate::{Machine, simulate};

    /// A region of `threads` with this body, on as many threads.
    fn run_of(threads: usize, body: Vec<Statement>) -> Run {
        let region = Statement { code: 0x1000, kind: Kind::Parallel { threads, body } };
        let machine = Machine {
            seed: 1,
            threads,
            max_wake_up: 0,
            is_first_come: true,
            reports_ends_late: false,
            helpers: 0,
            shares_sections: true,
        };
        simulate(&Program { body: vec![region] }, &machine).expect("it ends")
    }

    /// The lines of the stream of a thread.
    fn lines_of(run: &Run, dialect: Dialect, stream: usize) -> Vec<String> {
        let text = text(&Process { pid: 10, start: 0, run, ending: Ending::Complete }, dialect);
        let own = text.lines().filter(|line| line.split(' ').nth(1) == Some(&stream.to_string()));
        own.map(str::to_owned).collect()
    }

    /// OpenUH was recorded to do so, but for the begin of the first idle time.
    #[test]
    fn with_the_collector_api_a_worker_is_idle_outside_of_regions() {
        let run = run_of(2, vec![Statement { code: 0x1010, kind: Kind::Work(vec![1000, 2000]) }]);
        let lines = lines_of(&run, Dialect::Collector, 2);
        let events: Vec<&String> = lines.iter().filter(|line| !line.contains("thread_state")).collect();
        assert_eq!(
            events,
            [
                "0 2 thread_info os_tid=11 name=app",
                "0 2 idle begin",
                "1 2 idle end",
                "2001 2 sync_region_wait begin kind=barrier_implicit parallel=2 task=-",
                "2001 2 sync_region_wait end kind=barrier_implicit parallel=2 task=-",
                "2001 2 idle begin",
            ]
        );
        let answers = lines.iter().filter(|line| line.contains("thread_state")).count();
        assert_eq!(answers, events.len() - 1, "{lines:?}");
    }

    /// `viewer-export/tests/historic/ompt_tools_tr4_stable_task` shows it so.
    #[test]
    fn the_branch_of_tr4_has_types_by_number_and_places_of_tasks_only() {
        let task = Kind::Task(crate::program::Task {
            body: vec![Statement { code: 0x1030, kind: Kind::Work(vec![10]) }],
            ..crate::program::Task::default()
        });
        let run = run_of(1, vec![Statement { code: 0x1020, kind: task }]);
        let lines = lines_of(&run, Dialect::Tr4, 1);
        let has = |text: &str| assert!(lines.iter().any(|line| line.ends_with(text)), "{text}: {lines:?}");
        has("parallel_begin parallel=2 task=1 team=1 flags=1");
        has("task_create task=3 new=4 flags=3 has_dependences=0 code=4128");
        has("task_schedule prior=3 status=4 next=4");
        has("sync_region begin kind=1 parallel=2 task=3");
        has("implicit_task end parallel=2 task=3 team=1 index=0 flags=0");
    }

    /// GCC 12 and the adapter were recorded to do so.
    #[test]
    fn a_barrier_behind_a_single_region_is_taken_for_its_own_and_shows_its_end() {
        let statement = |code, kind| Statement { code, kind };
        let work = || statement(0x1100, Kind::Work(vec![1000]));
        let body = vec![
            statement(0x1010, Kind::Single { body: vec![work()], nowait: true }),
            work(),
            statement(0x1020, Kind::Barrier),
            statement(0x1030, Kind::Barrier),
        ];
        let run = run_of(1, body);
        let process = Process { pid: 10, start: 0, run: &run, ending: Ending::Complete };
        let text = text(&process, Dialect::Libgomp);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.contains(" work ") || line.contains("sync_region begin"))
            .map(|line| line.split(" parallel=").next().unwrap_or_default())
            .collect();
        assert_eq!(
            lines,
            [
                "0 1 work begin kind=single_executor count=1",
                "2000 1 work end kind=single_executor count=1",
                "2000 1 sync_region begin kind=8",
                "2000 1 sync_region begin kind=1",
                "2000 1 sync_region begin kind=barrier_implicit_parallel",
            ]
        );
    }
}
