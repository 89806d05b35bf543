//! The states of threads, where they are asked for.

use std::path::Path;

use ompt_reference_runtime::argument::*;
use ompt_reference_runtime::{Call, Dialect, Round, Script};
use ompt_sys::*;
use omptrace_tests::trace::{dump, info, omptrace};

use crate::tracer::trace_with;
use crate::{reference_runtime, steps};

/// A region with one member, which waits for a lock.
fn waiting() -> Vec<Call> {
    let (region, task, nowhere) = (Data::Slot(0), Data::Slot(1), Address(0));
    let implicit_task = |endpoint: ompt_scope_endpoint_t| Call::ImplicitTask {
        endpoint: Enum::new(endpoint.0),
        parallel_data: region,
        task_data: New(task),
        actual_parallelism: 1,
        index: 0,
        flags: Enum::new(ompt_task_implicit.0),
    };
    let (kind, wait_id) = (Enum::new(ompt_mutex_lock.0), Address(0x77));
    vec![
        Call::ThreadBegin { thread_type: Enum::new(ompt_thread_initial.0), thread_data: New(Data::Slot(2)) },
        Call::ParallelBegin {
            encountering_task_data: Data::Null,
            encountering_task_frame: Frame(None),
            parallel_data: New(region),
            requested_parallelism: 1,
            flags: Enum::new(ompt_parallel_team.0),
            codeptr_ra: nowhere,
        },
        implicit_task(ompt_scope_begin),
        Call::MutexAcquire { kind, hint: 0, r#impl: 0, wait_id, codeptr_ra: nowhere },
        Call::MutexAcquired { kind, wait_id, codeptr_ra: nowhere },
        Call::MutexReleased { kind, wait_id, codeptr_ra: nowhere },
        implicit_task(ompt_scope_end),
        Call::ParallelEnd {
            parallel_data: region,
            encountering_task_data: Data::Null,
            flags: Enum::new(ompt_parallel_team.0),
            codeptr_ra: nowhere,
        },
    ]
}

/// The kinds of mutexes have other numbers in the drafts.
fn in_dialect(mut call: Call, dialect: Dialect) -> Call {
    const LOCK_OF_DRAFTS: u32 = 0x11;

    if let Call::MutexAcquire { kind, .. }
    | Call::MutexAcquired { kind, .. }
    | Call::MutexReleased { kind, .. } = &mut call
        && dialect != Dialect::V5
    {
        *kind = Enum::new(LOCK_OF_DRAFTS);
    }
    call
}

/// The states that are recorded while `calls` are played, with what is waited for, each behind the event that it follows.
fn states(dialect: Dialect, events: &str) -> Vec<String> {
    let calls = waiting().into_iter().map(|call| in_dialect(call, dialect));
    let script = Script { dialect, rounds: vec![Round::new(vec![steps(calls)])], ..Script::default() };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("t.omptrace");
    let mut runtime = reference_runtime();
    let runtime = runtime
        .env("OMP_TOOL_LIBRARIES", omptrace_tests::env::tool_library())
        .env("OMPTRACE_OUTPUT", &file)
        .env("OMPTRACE_EVENTS", events);
    crate::play(&script, runtime);
    let check = omptrace([Path::new("check"), &file]);
    assert!(check.status.success(), "{check:?}");
    let mut before = String::new();
    let mut states = Vec::new();
    for event in dump(&file) {
        let name = event["event"].as_str().expect("a name");
        if name == "omptrace_thread_state" {
            let (state, wait_id) = (&event["state"], &event["wait_id"]);
            let [state, wait_id] = [state, wait_id].map(|text| text.as_str().expect("a text"));
            states.push(format!("{before}: {state} {wait_id}"));
        } else if !name.starts_with("omptrace_") {
            before = name.to_owned();
        }
    }
    states
}

#[test]
fn are_recorded_around_tasks_and_waits() {
    for dialect in [Dialect::V5, Dialect::Tr6, Dialect::Tr4] {
        assert_eq!(
            states(dialect, "default,state"),
            [
                "implicit_task: work_parallel 0x0",
                "mutex_acquire: wait_mutex 0x77",
                "mutex_acquired: wait_mutex 0x77",
                "implicit_task: work_parallel 0x0",
            ],
            "{dialect:?}"
        );
        assert_eq!(states(dialect, "default"), [""; 0], "{dialect:?}");
        assert_eq!(states(dialect, "default,state,-state"), [""; 0], "{dialect:?}");
    }
}

#[test]
fn that_a_runtime_enumerates_are_in_the_metadata() {
    for (dialect, prefix) in [(Dialect::V5, "ompt_state_"), (Dialect::Tr4, "omp_state_")] {
        let script = Script { dialect, rounds: vec![Round::default()], ..Script::default() };
        let traced = trace_with(&script, &mut reference_runtime());
        let states = info(&traced.file("t.omptrace"))["runtime"]["states"].clone();
        let states: Vec<_> = states.as_object().expect("states").values().collect();
        for (state, name) in states.iter().zip(["work_serial", "work_parallel", "wait_mutex"]) {
            assert_eq!(**state, format!("{prefix}{name}"));
        }
        assert_eq!(states.len(), 3);
    }
}
