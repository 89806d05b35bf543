//! A task that goes on on another thread, in an OTF2 archive.

use ompt_reference_runtime::argument::{Address, Data, Enum, Frame, New};
use ompt_reference_runtime::{Call, Step};
use ompt_sys::*;
use omptrace_tests::env::tool_library;
use omptrace_tests::otf2::{assert_sound, events, printed, rows, text};
use omptrace_tests::trace::convert;

use crate::{play, reference_runtime, script};

const REGION: Data = Data::Slot(0);
const TASK: Data = Data::Slot(1);
const CODE: Address = Address(0x40_1000);

/// The implicit task of the member of that number.
fn implicit(member: u32) -> Data {
    Data::Slot(2 + member)
}

fn implicit_task(endpoint: ompt_scope_endpoint_t, member: u32) -> Step {
    Call::ImplicitTask {
        endpoint: Enum::new(endpoint.0),
        parallel_data: REGION,
        task_data: New(implicit(member)),
        actual_parallelism: 2,
        index: member,
        flags: Enum::new(ompt_task_implicit.0),
    }
    .into()
}

fn schedule(prior: Data, status: ompt_task_status_t, next: Data) -> Step {
    Call::TaskSchedule {
        prior_task_data: prior,
        prior_task_status: Enum::new(status.0),
        next_task_data: next,
    }
    .into()
}

fn thread_begin(kind: ompt_thread_t, slot: u32) -> Step {
    Call::ThreadBegin { thread_type: Enum::new(kind.0), thread_data: New(Data::Slot(slot)) }.into()
}

/// Two threads form a team; the first creates an untied task and begins it, the second ends it.
fn threads() -> Vec<Vec<Step>> {
    let (has_team, has_yielded) = (Step::Sync(0), Step::Sync(1));
    let flags = Enum::new((ompt_parallel_invoker_runtime | ompt_parallel_team).0);
    let begin = Call::ParallelBegin {
        encountering_task_data: Data::Null,
        encountering_task_frame: Frame(None),
        parallel_data: New(REGION),
        requested_parallelism: 2,
        flags,
        codeptr_ra: CODE,
    };
    let end = Call::ParallelEnd {
        parallel_data: REGION,
        encountering_task_data: Data::Null,
        flags,
        codeptr_ra: CODE,
    };
    let create = Call::TaskCreate {
        encountering_task_data: implicit(0),
        encountering_task_frame: Frame(None),
        new_task_data: New(TASK),
        flags: Enum::new((ompt_task_explicit | ompt_task_untied).0),
        has_dependences: 0,
        codeptr_ra: CODE,
    };
    let first = vec![
        thread_begin(ompt_thread_initial, 4),
        begin.into(),
        has_team.clone(),
        implicit_task(ompt_scope_begin, 0),
        create.into(),
        schedule(implicit(0), ompt_task_switch, TASK),
        schedule(TASK, ompt_task_yield, implicit(0)),
        has_yielded.clone(),
        Step::Sync(2),
        implicit_task(ompt_scope_end, 0),
        end.into(),
    ];
    let second = vec![
        thread_begin(ompt_thread_worker, 5),
        has_team,
        implicit_task(ompt_scope_begin, 1),
        has_yielded,
        schedule(implicit(1), ompt_task_switch, TASK),
        schedule(TASK, ompt_task_complete, implicit(1)),
        implicit_task(ompt_scope_end, 1),
        Step::Sync(2),
    ];
    vec![first, second]
}

#[test]
fn a_task_that_migrates_is_one_task_of_two_locations() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("t.omptrace");
    let mut runtime = reference_runtime();
    runtime.env("OMP_TOOL_LIBRARIES", tool_library()).env("OMPTRACE_OUTPUT", &trace);
    let (_, output) = play(&script(threads()), &mut runtime);
    assert!(output.status.success(), "{output:?}");
    let out = folder.path().join("archive");
    convert(&trace, "otf2", &out, &[]);
    let anchor = out.join("traces.otf2");
    assert_sound(&anchor);

    let answer = events(&anchor);
    let parts: Vec<(String, String)> = rows(&answer["intervals"])
        .filter(|row| text(&row[3]).starts_with("!$omp task"))
        .map(|row| (text(&row[0]), row[4]["part"].to_string()))
        .collect();
    let part = |thread: &str, part: &str| (thread.to_owned(), part.to_owned());
    // The first part is not known for one when it begins.
    assert_eq!(parts, [part("main", "null"), part("OpenMP worker 1", "2")]);
    let counts = &answer["counts"];
    assert_eq!((&counts["ThreadTaskCreate"], &counts["ThreadTaskComplete"]), (&1.into(), &1.into()));

    // On each thread, a switch to the task, and one back: the task has one name.
    let printed = printed(&anchor, &[]);
    let switches = printed.lines().filter(|line| line.starts_with("THREAD_TASK_SWITCH"));
    let of_task: Vec<&str> = switches.clone().filter(|line| line.ends_with("Generation Number: 1")).collect();
    let location = |line: &&str| line.split_whitespace().nth(1).map(str::to_owned);
    let locations: Vec<String> = of_task.iter().filter_map(location).collect();
    assert_eq!(locations, ["0", "1"]);
    assert!(of_task.iter().all(|line| line.contains("Creating Thread: 0")), "{of_task:?}");
    assert_eq!(switches.count(), 4);
}
