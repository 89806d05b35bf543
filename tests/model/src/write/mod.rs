//! Writes the callbacks of a run as the text of a trace, as one runtime or another would have reported them.

mod collector;
mod line;
mod other_runtimes;

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::callback::{Callback, Id, Scope, TaskFlags, Work};
use crate::program::{Code, Ns};
use crate::run::Run;
use crate::simulate::HELPERS;
use line::line;
use other_runtimes::{
    Singles, barriers_of_gcc, counts, line_of_draft, line_of_llvm_9, line_of_tr4, lines_of_gcc,
    ordered_loops, regions_of_members,
};

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
    let inside = if has_helpers { threads } else { process.run.helpers.start };
    let has_outsider = process.run.callbacks.iter().any(|(_, of, _)| *of == threads);
    for thread in (0..inside).chain(has_outsider.then_some(threads)) {
        let _ =
            writeln!(out, "0 {} thread_info os_tid={} name=app", thread + 1, process.pid as usize + thread);
        let own = process.run.callbacks.iter().filter(|(time, of, _)| *of == thread && *time <= last);
        let mut own: Vec<&(Ns, usize, Callback)> =
            own.filter(|(.., callback)| dialect.reports(callback, &ordered)).collect();
        own.sort_by_key(|(time, ..)| *time);
        if process.run.helpers.contains(&thread) {
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
            has_outsider: false,
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
