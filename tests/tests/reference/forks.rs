//! Forks under each generation of the interface. The parent's trace has all that the parent played and nothing else.
//! A child that uses the runtime has a trace of its own, and one that does not has none.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ompt_reference_runtime::argument::*;
use ompt_reference_runtime::player::PlayedThread;
use ompt_reference_runtime::tr2::Entry;
use ompt_reference_runtime::{Call, ChildEnd, Collect, Dialect, Fork, Report, Round, Script, Step, Tr2};
use ompt_sys::collector::*;
use ompt_sys::tr2::*;
use ompt_sys::*;
use omptrace_tests::env;
use omptrace_tests::trace::{info, omptrace};

use crate::{play, reference_runtime, steps, tracer};

/// How a generation is played.
#[derive(Clone, Copy, Debug)]
enum Generation {
    Ompt(Dialect),
    Tr2(Entry),
    Collector,
}

const GENERATIONS: [Generation; 6] = [
    Generation::Ompt(Dialect::V5),
    Generation::Ompt(Dialect::Tr6),
    Generation::Ompt(Dialect::Tr4),
    Generation::Tr2(Entry::Initialize),
    Generation::Tr2(Entry::Tool),
    Generation::Collector,
];

impl Generation {
    fn script(self, threads: Vec<Vec<Step>>) -> Script {
        let mut script = Script { rounds: vec![Round::new(threads)], ..Script::default() };
        match self {
            Generation::Ompt(dialect) => script.dialect = dialect,
            Generation::Tr2(entry) => script.tr2 = Some(entry),
            Generation::Collector => {}
        }
        script
    }

    /// The events of a runtime on a thread that begins: in children, whether or not they use it.
    fn announcement(self, thread: u32) -> Vec<Step> {
        match self {
            Generation::Ompt(dialect) => steps([thread_begin(thread), initial_task(thread, dialect)]),
            Generation::Tr2(_) => vec![
                tr2(ompt_event_thread_begin, &[1, thread.into()]),
                tr2(ompt_event_initial_task_begin, &[u64::from(thread) + 1]),
            ],
            Generation::Collector => Vec::new(),
        }
    }

    /// The events of such a thread's end, and of its own.
    fn farewell(self, thread: u32) -> Vec<Step> {
        let thread_data = thread_data(thread);
        match self {
            Generation::Ompt(Dialect::V5) => {
                steps([end_of_initial_task(thread), Call::ThreadEnd { thread_data }])
            }
            Generation::Ompt(_) => steps([Call::ThreadEnd { thread_data }]),
            Generation::Tr2(_) => vec![
                tr2(ompt_event_initial_task_end, &[u64::from(thread) + 1]),
                tr2(ompt_event_thread_end, &[1, thread.into()]),
                tr2(ompt_event_runtime_shutdown, &[]),
            ],
            Generation::Collector => Vec::new(),
        }
    }

    /// Parallel regions of a thread.
    fn work(self, thread: u32) -> Step {
        let number = u64::from(thread);
        let (region, initial, implicit) = (100 + number, 1 + number, 200 + number);
        let steps = match self {
            Generation::Ompt(_) => steps([parallel_begin(thread), parallel_end(thread)]),
            Generation::Tr2(_) => vec![
                tr2(ompt_event_parallel_begin, &[initial, 1, region, 2, 0x40_1000]),
                tr2(ompt_event_implicit_task_begin, &[region, implicit]),
                tr2(ompt_event_implicit_task_end, &[region, implicit]),
                tr2(ompt_event_parallel_end, &[region, initial]),
            ],
            Generation::Collector => vec![
                collect(OMP_EVENT_FORK, THR_OVHD_STATE, region),
                collect(OMP_EVENT_JOIN, THR_WORK_STATE, region),
            ],
        };
        Step::Repeat { times: TIMES, steps }
    }
}

fn thread_data(thread: u32) -> Data {
    Data::Slot(thread)
}

fn initial(thread: u32) -> Data {
    Data::Slot(10 + thread)
}

fn region(thread: u32) -> Data {
    Data::Slot(20 + thread)
}

fn thread_begin(thread: u32) -> Call {
    Call::ThreadBegin { thread_type: Enum::new(ompt_thread_initial.0), thread_data: New(thread_data(thread)) }
}

/// The drafts create the initial task, and do not end it.
fn initial_task(thread: u32, dialect: Dialect) -> Call {
    match dialect {
        Dialect::V5 => Call::ImplicitTask {
            endpoint: Enum::new(ompt_scope_begin.0),
            parallel_data: Data::Null,
            task_data: New(initial(thread)),
            actual_parallelism: 1,
            index: 1,
            flags: Enum::new(ompt_task_initial.0),
        },
        _ => Call::TaskCreate {
            encountering_task_data: Data::Null,
            encountering_task_frame: Frame(None),
            new_task_data: New(initial(thread)),
            flags: Enum::new(ompt_task_initial.0),
            has_dependences: 0,
            codeptr_ra: Address(0),
        },
    }
}

fn end_of_initial_task(thread: u32) -> Call {
    Call::ImplicitTask {
        endpoint: Enum::new(ompt_scope_end.0),
        parallel_data: Data::Null,
        task_data: New(initial(thread)),
        actual_parallelism: 0,
        index: 1,
        flags: Enum::new(ompt_task_initial.0),
    }
}

fn parallel_begin(thread: u32) -> Call {
    Call::ParallelBegin {
        encountering_task_data: initial(thread),
        encountering_task_frame: Frame(None),
        parallel_data: New(region(thread)),
        requested_parallelism: 2,
        flags: Enum::new(2),
        codeptr_ra: Address(0x40_1000),
    }
}

fn parallel_end(thread: u32) -> Call {
    Call::ParallelEnd {
        parallel_data: region(thread),
        encountering_task_data: initial(thread),
        flags: Enum::new(2),
        codeptr_ra: Address(0x40_1000),
    }
}

fn tr2(event: ompt_event_t, words: &[u64]) -> Step {
    Step::from(Tr2 { event: event.0, words: words.into() })
}

fn collect(event: OMP_COLLECTORAPI_EVENT, state: OMP_COLLECTOR_API_THR_STATE, region: u64) -> Step {
    Step::from(Collect { event: event.0, state: state.0, wait_id: 0, region, parent: Some(0) })
}

/// How often a thread works at a time.
const TIMES: u32 = 50;

struct Traced {
    generation: Generation,
    folder: tempfile::TempDir,
    report: Report,
}

impl Generation {
    /// Plays a thread that works, forks `children`, and works again, while another one works; the Collector API has
    /// these deviations.
    fn trace(self, children: Vec<Fork>, deviations: &str) -> Traced {
        let begun = |thread| {
            let mut steps = self.announcement(thread);
            steps.extend([Step::Sync(0), self.work(thread)]);
            steps
        };
        let (mut first, mut second) = (begun(0), begun(1));
        for child in children {
            first.extend([Step::from(child), self.work(0)]);
        }
        // It is at work when the other one forks.
        second.push(Step::Repeat { times: 40, steps: vec![self.work(1)] });

        let folder = tempfile::tempdir().expect("a temporary folder");
        let (variable, deviations) = match self {
            Generation::Ompt(_) => ("OMP_TOOL_LIBRARIES", ""),
            Generation::Tr2(_) => ("LD_PRELOAD", "refuses-start"),
            Generation::Collector => ("LD_PRELOAD", deviations),
        };
        let (report, output) = play(
            &self.script(vec![first, second]),
            reference_runtime()
                .env(variable, env::tool_library())
                .env("REFERENCE_COLLECTOR", deviations)
                .env("OMPTRACE_OUTPUT", folder.path().join("t.omptrace"))
                .env("OMPTRACE_EVENTS", "all"),
        );
        assert!(output.status.success(), "{self:?}: {output:?}");
        let words = String::from_utf8_lossy(&output.stderr);
        let mut unexpected = words.lines().filter(|line| !line.contains("Collector API"));
        assert_eq!(unexpected.next(), None, "{self:?}");
        Traced { generation: self, folder, report }
    }
}

impl Traced {
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder is there");
        let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        // Where a preloaded tracer waits for the runtime's end, and that does not come, the spool stays: a part of its trace.
        if matches!(self.generation, Generation::Tr2(_)) {
            files.retain(|path| path.extension().is_some_and(|end| end == "omptrace"));
        }
        files.sort();
        files
    }

    fn children(&self) -> &[PlayedThread] {
        &self.report.rounds[0].threads[0].children
    }

    /// Asserts that the parent's trace is whole, and that there is one of each of these children, and nothing else.
    fn check(&self, with_traces: &[PlayedThread]) {
        let (name, files) = (format!("{:?}", self.generation), self.files());
        assert_eq!(files.len(), 1 + with_traces.len(), "{name}: {files:?}");
        let mut children = BTreeMap::new();
        for file in files {
            let checked = omptrace([Path::new("check"), &file]);
            assert!(checked.status.success(), "{name}: {checked:?}");
            // Some runtimes do not end the tool.
            let ending = info(&file)["ending"].clone();
            let has_ended = ending.as_str().is_some_and(|how| how.starts_with("ended"));
            assert!(has_ended, "{name}: {ending}");
            if file.ends_with("t.omptrace") {
                tracer::check_threads(&self.report.rounds[0], tracer::dump(&file));
            } else {
                children.extend(tracer::dump(&file));
            }
        }
        for child in with_traces {
            let recorded = children.remove(&child.os_tid).expect("a trace of its own");
            assert!(child.played.len() >= 2 * TIMES as usize, "{name}");
            assert_eq!(recorded, child.played, "{name}");
        }
        children.retain(|_, events| !events.is_empty());
        assert!(children.is_empty(), "{name}: {children:?}");
    }
}

#[test]
fn children_that_do_not_use_the_runtime_leave_no_trace_and_do_no_harm() {
    for generation in GENERATIONS {
        let announced = [generation.announcement(0), generation.farewell(0)].concat();
        let children = [
            (Vec::new(), ChildEnd::Exit),
            (Vec::new(), ChildEnd::QuickExit),
            (generation.announcement(0), ChildEnd::QuickExit),
            (announced, ChildEnd::Exit),
        ]
        .map(|(steps, end)| Fork { steps, end, ..Fork::default() });
        let traced = generation.trace(children.into(), "is-locked-in-children");
        assert_eq!(traced.children().len(), 4, "{generation:?}");
        traced.check(&[]);
    }
}

#[test]
fn children_that_use_the_runtime_have_traces_of_their_own() {
    for generation in GENERATIONS {
        // Some runtimes announce a child's thread, others go on with the parent's.
        let silent = vec![generation.work(0)];
        let announced = [generation.announcement(0), vec![generation.work(0)], generation.farewell(0)];
        let children = [silent, announced.concat()].map(|steps| Fork { steps, ..Fork::default() });
        let traced = generation.trace(children.into(), "");
        traced.check(traced.children());
    }
}

#[test]
fn children_that_execute_a_program_are_traced_as_that() {
    for generation in GENERATIONS {
        let script = generation.script(vec![vec![generation.work(0)]]);
        let child =
            Fork { steps: generation.announcement(0), end: ChildEnd::Exec(script.into()), ..Fork::default() };
        let traced = generation.trace(vec![child], "");
        assert_eq!(traced.children().len(), 1, "{generation:?}");
        traced.check(traced.children());
    }
}

/// TR2, 6.1.1: the runtime of a child that initializes OpenMP again calls `ompt_initialize` as in any process.
#[test]
fn children_whose_runtime_starts_again_have_traces_of_their_own() {
    for entry in [Entry::Initialize, Entry::Tool] {
        let generation = Generation::Tr2(entry);
        let steps = [generation.announcement(0), vec![generation.work(0)], generation.farewell(0)];
        let child = Fork { searches_again: Some(entry), steps: steps.concat(), end: ChildEnd::Exit };
        let traced = generation.trace(vec![child.clone(), child], "");
        assert_eq!(traced.children().len(), 2, "{generation:?}");
        traced.check(traced.children());
    }
}
