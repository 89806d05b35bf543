//! The reference runtime itself, with tools in C.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ompt_reference_runtime::argument::*;
use ompt_reference_runtime::generate;
use ompt_reference_runtime::tool::{Found, Place};
use ompt_reference_runtime::{Call, Report, Round, Script};
use ompt_sys::*;
use omptrace_tests::env::{self, Compiler};

use crate::{play, reference_runtime, sample, script, steps};

/// `tests/tools/probe.c`; `behaviour` is what it is compiled with.
fn probe(behaviour: &str) -> PathBuf {
    let headers = env::all_headers().pop().expect("the newest header");
    let include = format!("-I{}", headers.display());
    env::compile(
        "tests/tools/probe.c",
        Compiler::Gcc,
        &["-fno-openmp", "-shared", "-fPIC", &include, behaviour],
    )
}

/// The result of the search with these settings.
fn found(variables: &[(&str, &str)]) -> (Found, String) {
    let (report, output) = play(&script(vec![]), reference_runtime().envs(variables.iter().copied()));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (report.rounds[0].tool.clone(), words)
}

fn list(libraries: &[&Path]) -> String {
    let libraries = std::env::join_paths(libraries).expect("no colons");
    libraries.into_string().expect("UTF-8")
}

#[test]
fn finds_nothing_without_libraries() {
    assert_eq!(found(&[]).0, Found::Nothing);
    assert_eq!(found(&[("OMP_TOOL_LIBRARIES", "/nowhere.so::")]).0, Found::Nothing);
}

#[test]
fn takes_the_leftmost_library_that_wants_to_be_used() {
    let (refuses, declines, works) = (probe("-DREFUSE"), probe("-DDECLINE"), probe("-DWORK"));
    let find = |libraries: &[&Path]| found(&[("OMP_TOOL_LIBRARIES", &list(libraries))]).0;

    let nowhere = Path::new("/nowhere.so");
    assert_eq!(find(&[nowhere, &refuses, &works]), Found::Active(Place::Library(works.clone())));
    // Who declines later has been chosen: nobody else is asked.
    assert_eq!(find(&[&refuses, &declines, &works]), Found::Declined(Place::Library(declines)));
    assert_eq!(find(&[&refuses]), Found::Nothing);
}

#[test]
fn prefers_a_tool_in_the_address_space() {
    let (preloaded, listed) = (probe("-DWORK"), probe("-DDECLINE"));
    let preloaded = preloaded.to_str().expect("UTF-8");
    let variables = [("LD_PRELOAD", preloaded), ("OMP_TOOL_LIBRARIES", &list(&[&listed]))];
    assert_eq!(found(&variables).0, Found::Active(Place::AddressSpace));
}

#[test]
fn searches_only_when_enabled() {
    let libraries = list(&[&probe("-DWORK")]);
    let find = |setting| found(&[("OMP_TOOL", setting), ("OMP_TOOL_LIBRARIES", &libraries)]);
    assert!(matches!(find("enabled").0, Found::Active(_)));
    assert!(matches!(find("").0, Found::Active(_)));
    assert_eq!(find("disabled"), (Found::Disabled, String::new()));

    let (found, words) = find("maybe");
    assert_eq!(found, Found::BadSetting);
    assert!(words.contains("maybe"), "{words}");
}

#[test]
fn says_what_it_does_when_asked() {
    let libraries = list(&[&probe("-DREFUSE")]);
    let (_, words) = found(&[("OMP_TOOL_VERBOSE_INIT", "stderr"), ("OMP_TOOL_LIBRARIES", &libraries)]);
    assert!(words.contains("ompt_start_tool returned"), "{words}");
}

#[test]
fn answers_what_the_tool_asks() {
    const QUESTIONS: [&str; 15] = [
        "state",
        "wait id",
        "team size",
        "thread num",
        "tasks",
        "has thread data",
        "num procs",
        "num places",
        "place num",
        "num devices",
        "states",
        "mutex impls",
        "unique ids differ",
        "has own callback",
        "finalize",
    ];
    let ask = |question: &str| Call::ControlTool {
        command: 100 + QUESTIONS.iter().position(|known| *known == question).expect("a question") as u64,
        modifier: 0,
        arg: ControlArgument::Address(0),
        codeptr_ra: Address(0),
    };
    let implicit_task = |endpoint: ompt_scope_endpoint_t, slot| Call::ImplicitTask {
        endpoint: Enum::new(endpoint.0),
        parallel_data: Data::Null,
        task_data: New(Data::Slot(slot)),
        actual_parallelism: 7,
        index: 3,
        flags: Enum::new(ompt_task_implicit.0),
    };
    let (kind, wait_id, codeptr_ra) = (Enum::new(ompt_mutex_lock.0), Address(0x77), Address(0));
    let script = script(vec![steps([
        ask("has thread data"),
        Call::ThreadBegin { thread_type: Enum::new(1), thread_data: New(Data::Slot(0)) },
        ask("has thread data"),
        ask("state"),
        ask("team size"),
        implicit_task(ompt_scope_begin, 1),
        implicit_task(ompt_scope_begin, 2),
        ask("state"),
        ask("team size"),
        ask("thread num"),
        ask("tasks"),
        Call::MutexAcquire { kind, hint: 0, r#impl: 0, wait_id, codeptr_ra },
        ask("state"),
        ask("wait id"),
        Call::MutexAcquired { kind, wait_id, codeptr_ra },
        implicit_task(ompt_scope_end, 2),
        ask("tasks"),
        ask("num places"),
        ask("place num"),
        ask("num devices"),
        ask("states"),
        ask("mutex impls"),
        ask("unique ids differ"),
        ask("has own callback"),
        ask("finalize"),
        ask("finalize"),
    ])]);
    let mut runtime = reference_runtime();
    let (report, _) = play(&script, runtime.env("OMP_TOOL_LIBRARIES", probe("-DWORK")));
    let state = |state: ompt_state_t| state.0 as i32;
    assert_eq!(
        report.rounds[0].threads[0].control_tool_results,
        [
            0,
            1,
            state(ompt_state_work_serial),
            -1,
            state(ompt_state_work_parallel),
            7,
            3,
            2,
            state(ompt_state_wait_mutex),
            0x77,
            1,
            0,
            -1,
            0,
            3,
            1,
            1,
            1,
            1,
            1,
        ]
    );
}

/// How often each callback was played, as `tests/tools/count.c` counts.
fn counts(report: &Report) -> BTreeMap<String, u64> {
    let threads = report.rounds.iter().flat_map(|round| &round.threads);
    let mut counts = BTreeMap::new();
    for line in threads.flat_map(|thread| &thread.played) {
        let event = line["event"].as_str().expect("a name");
        let endpoint = line.get("endpoint").and_then(|endpoint| endpoint.as_str());
        let key = match endpoint {
            Some(endpoint @ ("begin" | "end" | "beginend")) => format!("{event}/{endpoint}"),
            _ => event.into(),
        };
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// Plays a script under the counting tool, and compares.
fn check_counts(script: &Script) -> BTreeMap<String, u64> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("counts.json");
    let mut runtime = reference_runtime();
    runtime.env("OMP_TOOL_LIBRARIES", env::count_tool()).env("COUNT_OUT", &file).env("COUNT_FLUSH", "1");
    let (report, _) = play(script, &mut runtime);
    let counted = std::fs::read(&file).expect("the tool's counts");
    let counted: BTreeMap<String, u64> = serde_json::from_slice(&counted).expect("JSON");
    assert_eq!(counted, counts(&report));
    counted
}

#[test]
fn delivers_every_callback() {
    let counted = check_counts(&script(vec![steps(sample(generate::one_of_each()))]));
    let names: Vec<&str> = counted.keys().map(|key| key.split('/').next().expect("a name")).collect();
    for (name, _) in ompt_callbacks_t::VALUES {
        let name = name.trim_start_matches("ompt_callback_");
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn delivers_what_it_reports() {
    for _ in 0..3 {
        check_counts(&sample(generate::script(8, 200)));
    }
}

#[test]
fn delivers_only_what_it_grants() {
    let names = ["thread_begin", "work", "error"];
    let grants = names.iter().zip(1..=3).map(|(name, result)| (name.to_string(), result)).collect();
    let rounds = vec![Round::new(vec![steps(sample(generate::one_of_each()))])];
    let counted = check_counts(&Script { grants, rounds, ..Script::default() });
    let counted = |name| counted.keys().any(|key| key.split('/').next() == Some(name));
    // Never, impossible, sometimes.
    assert_eq!(names.map(counted), [false, false, true]);
}

#[test]
fn rejects_a_script_with_a_callback_that_does_not_exist() {
    let grants = [("idle".to_string(), 5)].into();
    let mut runtime = reference_runtime();
    let script = serde_json::to_string(&Script { grants, ..Script::default() }).expect("JSON");
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(&file, script).expect("written");
    let output = runtime.arg(file.path()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("idle"));
}

#[test]
fn names_arguments_as_the_trace_format_does() {
    let schema = omptrace_trace_format::event::schema();
    let mut runtime = reference_runtime();
    let script = script(vec![steps(sample(generate::one_of_each()))]);
    let (report, _) =
        play(&script, runtime.env("OMP_TOOL_LIBRARIES", env::count_tool()).env("COUNT_FLUSH", "1"));
    for line in &report.rounds[0].threads[0].played {
        let rows = schema.iter().filter(|row| line["event"] == row.name);
        // What lies behind the last argument, which one vendor's runtimes pass.
        let arguments =
            rows.flat_map(|row| &row.arguments).filter(|argument| argument.name != "tenth_argument");
        let expected: BTreeSet<&str> = arguments.map(|argument| argument.name).chain(["event"]).collect();
        let names: BTreeSet<&str> = line.keys().map(String::as_str).collect();
        assert_eq!(names, expected);
    }
}
