//! The drafts of OpenMP 5.0, TR4, TR6 and TR7. All that their runtimes can report is recorded under the numbers and
//! with the arguments that they have. It means what it means today.

use std::collections::BTreeMap;
use std::path::Path;

use ompt_reference_runtime::argument::*;
use ompt_reference_runtime::{Call, Dialect, Round, Script, Step, generate};
use ompt_sys::*;
use omptrace_tests::trace::{Counts, counts, dump, info, omptrace};

use crate::tracer::{check, trace};
use crate::{sample, steps};

const DRAFTS: [(Dialect, &str); 4] =
    [(Dialect::EarlyTr4, "TR4"), (Dialect::Tr4, "TR4"), (Dialect::Tr6, "TR6"), (Dialect::Tr7, "TR7")];

/// The callbacks of the host: TR7 has two new ones, and not `idle`.
fn callbacks_of_host(dialect: Dialect) -> usize {
    match dialect {
        Dialect::Tr7 => 24,
        _ => 23,
    }
}

#[test]
fn every_callback_is_recorded() {
    for (dialect, name) in DRAFTS {
        let traced = trace(&Script {
            dialect,
            rounds: vec![Round::new(vec![steps(sample(generate::one_of_each()))])],
            ..Script::default()
        });
        let round = &traced.report.rounds[0];
        assert_eq!(round.threads[0].played.len(), callbacks_of_host(dialect), "{name}");
        check(round, traced.dump());
    }
}

#[test]
fn what_was_played_is_recorded() {
    for (dialect, _) in DRAFTS {
        let traced = trace(&Script { dialect, ..sample(generate::script(4, 300)) });
        check(&traced.report.rounds[0], traced.dump());
    }
}

#[test]
fn results_of_registrations_have_the_names_of_the_draft() {
    for (dialect, name) in DRAFTS {
        let results = ["work", "flush", "cancel", "nest_lock"];
        let grants = results.iter().zip(0..).map(|(name, result)| (name.to_string(), result)).collect();
        let calls = sample(generate::one_of_each());
        let traced = trace(&Script {
            dialect,
            grants,
            rounds: vec![Round::new(vec![steps(calls)])],
            ..Script::default()
        });
        let round = &traced.report.rounds[0];
        // An error, and one that never comes.
        let refused = 2;
        let played = callbacks_of_host(dialect) - refused;
        assert_eq!(round.threads[0].played.len(), played, "{name}");
        check(round, traced.dump());
        let callbacks = info(&traced.file("t.omptrace"))["callbacks"].clone();
        let of = |meaning: &str| callbacks[meaning].as_array().expect(meaning).clone();
        assert_eq!(of("error"), ["work"]);
        assert_eq!(of("never"), ["flush"]);
        assert_eq!(of("sometimes"), ["cancel"]);
        assert_eq!(of("sometimes_paired"), ["nest_lock"]);
        assert_eq!(of("always").len(), callbacks_of_host(dialect) - results.len());
    }
}

/// Numbers of the drafts.
const SYNC_BARRIER: u32 = 1;
const TASK_OTHERS: u32 = 4;
const INVOKER_RUNTIME: u32 = 2;

/// What a runtime of the drafts, LLVM's at the end of 2017, calls for
///
/// ```c
/// #pragma omp parallel num_threads(2)
/// {
///   #pragma omp for
///   for (...) ...
///   #pragma omp critical
///   ...
///   #pragma omp single
///   { #pragma omp task ... #pragma omp taskwait }
/// }
/// ```
fn program(dialect: Dialect) -> Vec<Vec<Step>> {
    let (taskwait, critical) = match dialect {
        Dialect::Tr7 => (5, 3),
        _ => (2, 0x13),
    };
    let explicit_task = match dialect {
        Dialect::EarlyTr4 => 3,
        _ => ompt_task_explicit.0,
    };

    const CODE: Address = Address(0x40_1000);
    let initial = Data::Slot(0);
    let region = Data::Slot(1);
    let begin = || Enum::new(ompt_scope_begin.0);
    let end = || Enum::new(ompt_scope_end.0);
    let thread = |number: u32| Data::Slot(2 + number);
    let task = |number: u32| Data::Slot(4 + number);
    let explicit = Data::Slot(6);
    let no_frame = || Frame(None);

    let implicit_task = |endpoint, parallel_data, number, team_size| Call::ImplicitTask {
        endpoint,
        parallel_data,
        task_data: New(task(number)),
        actual_parallelism: team_size,
        index: number,
        flags: Enum::new(0xdead),
    };
    let work = |work_type: ompt_work_t, endpoint, number| Call::Work {
        work_type: Enum::new(work_type.0),
        endpoint,
        parallel_data: region,
        task_data: task(number),
        count: 10,
        codeptr_ra: CODE,
    };
    let sync = |kind, endpoint, parallel_data, number| Call::SyncRegion {
        kind: Enum::new(kind),
        endpoint,
        parallel_data,
        task_data: task(number),
        codeptr_ra: CODE,
    };
    let wait = |kind, endpoint, parallel_data, number| Call::SyncRegionWait {
        kind: Enum::new(kind),
        endpoint,
        parallel_data,
        task_data: task(number),
        codeptr_ra: CODE,
    };
    let (kind, wait_id) = (Enum::new(critical), Address(0x77));
    let critical = || {
        vec![
            Call::MutexAcquire { kind, hint: 0, r#impl: 1, wait_id, codeptr_ra: CODE },
            Call::MutexAcquired { kind, wait_id, codeptr_ra: CODE },
            Call::MutexReleased { kind, wait_id, codeptr_ra: CODE },
        ]
    };
    let schedule = |prior, status, next| Call::TaskSchedule {
        prior_task_data: prior,
        prior_task_status: Enum::new(status),
        next_task_data: next,
    };
    let idle = |endpoint| Call::Idle { endpoint };
    let thread_begin = |number: u32, kind: ompt_thread_t| Call::ThreadBegin {
        thread_type: Enum::new(kind.0),
        thread_data: New(thread(number)),
    };
    let thread_end = |number| Call::ThreadEnd { thread_data: thread(number) };

    // Meetings: the team is formed, what it waits for is there, the region has ended.
    let (formed, arrived, ended) = (Step::Sync(0), Step::Sync(1), Step::Sync(2));
    let mut first = steps([
        thread_begin(0, ompt_thread_initial),
        Call::TaskCreate {
            encountering_task_data: Data::Null,
            encountering_task_frame: no_frame(),
            new_task_data: New(initial),
            flags: Enum::new(ompt_task_initial.0),
            has_dependences: 0,
            codeptr_ra: Address(0),
        },
        Call::ParallelBegin {
            encountering_task_data: initial,
            encountering_task_frame: Frame(Some(FrameContent {
                exit_frame: 0,
                enter_frame: 0x7fff_0000,
                exit_frame_flags: 0xbad,
                enter_frame_flags: 0xbad,
            })),
            parallel_data: New(region),
            requested_parallelism: 2,
            flags: Enum::new(INVOKER_RUNTIME),
            codeptr_ra: CODE,
        },
    ]);
    first.push(formed.clone());
    first.extend(steps([
        implicit_task(begin(), region, 0, 2),
        work(ompt_work_loop, begin(), 0),
        work(ompt_work_loop, end(), 0),
    ]));
    first.extend(steps(critical()));
    first.extend(steps([
        work(ompt_work_single_executor, begin(), 0),
        Call::TaskCreate {
            encountering_task_data: task(0),
            encountering_task_frame: no_frame(),
            new_task_data: New(explicit),
            flags: Enum::new(explicit_task),
            has_dependences: 0,
            codeptr_ra: CODE,
        },
        sync(taskwait, begin(), region, 0),
        wait(taskwait, begin(), region, 0),
        schedule(task(0), TASK_OTHERS, explicit),
        schedule(explicit, ompt_task_complete.0, task(0)),
        wait(taskwait, end(), region, 0),
        sync(taskwait, end(), region, 0),
        work(ompt_work_single_executor, end(), 0),
        sync(SYNC_BARRIER, begin(), region, 0),
        wait(SYNC_BARRIER, begin(), region, 0),
    ]));
    first.push(arrived.clone());
    first.extend(steps([
        wait(SYNC_BARRIER, end(), Data::Null, 0),
        sync(SYNC_BARRIER, end(), Data::Null, 0),
        implicit_task(end(), Data::Null, 0, 2),
        Call::ParallelEnd {
            parallel_data: region,
            encountering_task_data: initial,
            flags: Enum::new(INVOKER_RUNTIME),
            codeptr_ra: CODE,
        },
    ]));
    first.push(ended.clone());
    first.extend(steps([thread_end(0)]));

    let mut second = steps([thread_begin(1, ompt_thread_worker), idle(begin())]);
    second.push(formed);
    second.extend(steps([
        idle(end()),
        implicit_task(begin(), region, 1, 2),
        work(ompt_work_loop, begin(), 1),
        work(ompt_work_loop, end(), 1),
    ]));
    second.extend(steps(critical()));
    second.extend(steps([
        work(ompt_work_single_other, begin(), 1),
        work(ompt_work_single_other, end(), 1),
        sync(SYNC_BARRIER, begin(), region, 1),
        wait(SYNC_BARRIER, begin(), region, 1),
    ]));
    second.push(arrived);
    second.push(ended);
    // Workers report what has ended when they are woken again, or go.
    second.extend(steps([
        wait(SYNC_BARRIER, end(), Data::Null, 1),
        sync(SYNC_BARRIER, end(), Data::Null, 1),
        implicit_task(end(), Data::Null, 1, 0),
        idle(begin()),
        idle(end()),
        thread_end(1),
    ]));
    vec![first, second]
}

/// How often slices of each name and category are in the timeline of `trace`.
fn slices(trace: &Path) -> BTreeMap<String, usize> {
    let out = trace.with_extension("json");
    omptrace_tests::trace::convert(trace, "chrome", &out, &[]);
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&out).expect("the export")).expect("JSON");
    let mut slices = BTreeMap::new();
    for event in json["traceEvents"].as_array().expect("events") {
        if ["B"].contains(&event["ph"].as_str().unwrap_or_default()) {
            let name = event["name"].as_str().expect("a name");
            let name = name.split(" @").next().expect("a first part");
            *slices.entry(name.to_owned()).or_default() += 1;
        }
    }
    slices
}

#[test]
fn a_program_is_counted_exactly_and_its_timeline_is_sound() {
    for (dialect, name) in DRAFTS {
        let traced =
            trace(&Script { dialect, rounds: vec![Round::new(program(dialect))], ..Script::default() });
        check(&traced.report.rounds[0], traced.dump());
        let file = traced.file("t.omptrace");
        let mut expected: Counts = [
            ("thread_begin", 2),
            ("thread_end", 2),
            ("parallel_begin", 1),
            ("parallel_end", 1),
            ("task_create", 2),
            ("task_schedule", 2),
            ("implicit_task/begin", 2),
            ("implicit_task/end", 2),
            ("work/begin", 4),
            ("work/end", 4),
            ("sync_region/begin", 3),
            ("sync_region/end", 3),
            ("sync_region_wait/begin", 3),
            ("sync_region_wait/end", 3),
            ("mutex_acquire", 2),
            ("mutex_acquired", 2),
            ("mutex_released", 2),
            ("idle/begin", 2),
            ("idle/end", 2),
        ]
        .map(|(name, count)| (name.to_owned(), count))
        .into();
        if dialect == Dialect::Tr7 {
            expected.retain(|name, _| !name.starts_with("idle"));
        }
        assert_eq!(counts(&dump(&file)), expected, "{name}");

        let runtime = info(&file)["runtime"].clone();
        assert_eq!(runtime["dialect"], name);
        let words = omptrace([Path::new("info"), &file]);
        assert!(String::from_utf8_lossy(&words.stdout).contains(name));

        let checked = omptrace([Path::new("check"), &file]);
        assert!(checked.status.success(), "{name}: {checked:?}");

        let slices = slices(&file);
        let expected = [
            ("parallel", 1),
            ("implicit task", 2),
            ("for", 2),
            ("critical", 2),
            ("single", 2),
            ("taskwait", 1),
            ("task", 1),
            ("barrier", 2),
        ];
        for (slice, count) in expected {
            assert_eq!(slices.get(slice), Some(&count), "{name}: {slice}: {slices:?}");
        }
    }
}

#[test]
fn a_generation_that_nobody_knows_is_declined_in_one_line() {
    let traced = trace(&Script {
        dialect: Dialect::Unknown,
        rounds: vec![Round::new(program(Dialect::Unknown))],
        ..Script::default()
    });
    assert!(traced.output.status.success());
    let words = String::from_utf8_lossy(&traced.output.stderr);
    assert_eq!(words.lines().count(), 1, "{words}");
    assert!(words.contains("a tools interface that omptrace does not support"), "{words}");
    assert!(!traced.file("t.omptrace").exists());
}
