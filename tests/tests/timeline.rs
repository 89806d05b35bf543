//! The timeline of programs whose structure is known, as Perfetto's trace processor sees it: number, nesting and duration
//! of what both formats export.

use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_tests::env::{
    Compiler, OPENMP_45, RUNTIMES_OF_CLANG_22, RUNTIMES_OF_TR6, are_given, compile, further_runtimes, runtime,
};
use omptrace_tests::trace::{Traces, convert, info, omptrace};
use omptrace_tests::viewers::query;

/// A format, its extension, and where the trace processor keeps the arguments of its slices.
const FORMATS: [(&str, &str, &str); 2] = [("chrome", "json", "args"), ("perfetto", "pftrace", "debug")];

const THREADS: u64 = 2;
const ROUNDS: u64 = 5;
const TASKS: u64 = 20;

fn export(trace: &Path, format: &str, extension: &str) -> PathBuf {
    let out = trace.with_extension(extension);
    convert(trace, format, &out, &[]);
    out
}

/// The number that each query answers.
fn numbers(export: &Path, queries: &[String]) -> Vec<i64> {
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    let rows = query(export, &queries);
    let number = |rows: &Vec<serde_json::Map<String, serde_json::Value>>| {
        let row = rows.first().expect("a row");
        row.values().next().and_then(|value| value.as_i64())
    };
    rows.iter().map(|rows| number(rows).unwrap_or(0)).collect()
}

/// Members whose wake-up gap and implicit task are not together as long as their region. The runtime may take a
/// thread of a nested region back for another one before the first has ended. That ends its task early where it wakes
/// in time, else it shortens the gap of the second. Being idle does so, too. Runtimes of TR6 report it when they wake
/// a thread. They let go of a task that is done, which may be before its region has ended.
fn inexact_members(arguments: &str) -> String {
    let region = format!("extract_arg(arg_set_id, '{arguments}.parallel_data')");
    format!(
        "with region as (select {region} id, ts, dur from slice where category = 'parallel'), \
              task as (select {region} id, ts, dur, track_id from slice \
                       where category = 'implicit_task' and name glob '*implicit task*'), \
              gap as (select {region} id, ts, dur, track_id from slice where name glob '*(wake-up)*') \
         select count(*) from task join region using (id) left join gap using (id, track_id) \
         where task.ts + task.dur > region.ts + region.dur \
            or task.ts + task.dur < region.ts + region.dur \
               and not exists (select * from gap next where next.track_id = task.track_id \
                               and next.ts = task.ts + task.dur and next.id != task.id) \
               and coalesce((select name from slice next where next.track_id = task.track_id \
                             and next.ts >= task.ts + task.dur order by next.ts limit 1), '') \
                   not glob 'idle*' \
            or coalesce(gap.ts + gap.dur, task.ts) != task.ts \
            or coalesce(gap.ts, task.ts) != region.ts \
               and not exists (select * from task other where other.track_id = task.track_id \
                               and other.ts + other.dur = coalesce(gap.ts, task.ts) \
                               and other.ts + other.dur > region.ts) \
               and not exists (select * from slice idle where idle.track_id = task.track_id \
                               and idle.name glob 'idle*' \
                               and idle.ts + idle.dur = coalesce(gap.ts, task.ts))"
    )
}

/// Slices that reach beyond the one that they lie in.
const OVERLAPS: &str = "select count(*) from slice c join slice p on c.parent_id = p.id \
                        where c.ts < p.ts or c.ts + c.dur > p.ts + p.dur";
/// The number of errors of the trace processor.
const COMPLAINTS: &str = "select count(*) from stats where value != 0 and severity != 'info'";
/// Waiting that has something inside: while a thread works, it does not wait.
const BUSY_WAITS: &str = "select count(*) from slice c join slice p on c.parent_id = p.id \
                          where p.category = 'wait' and c.category = 'task' and c.dur > 0";

#[test]
fn number_and_duration_are_those_of_the_program() {
    let traces = Traces::folder();
    let program = compile("tests/programs/structure.c", Compiler::Clang22, &[]);
    let arguments = [THREADS, ROUNDS, TASKS].map(|number| number.to_string());
    let took: i64 = traces.record(Command::new(program).args(arguments)).trim().parse().expect("nanoseconds");
    let trace = traces.only();
    for (format, extension, arguments) in FORMATS {
        let export = export(&trace, format, extension);
        let count = |what: &str| format!("select count(*) from slice where {what}");
        let argument = |name: &str| format!("extract_arg(arg_set_id, '{arguments}.{name}')");
        let expected = [
            (COMPLAINTS.to_owned(), 0),
            (OVERLAPS.to_owned(), 0),
            (BUSY_WAITS.to_owned(), 0),
            (inexact_members(arguments), 0),
            (count("category = 'parallel'"), ROUNDS * (5 + THREADS)),
            (count("name glob '*implicit task*'"), ROUNDS * (6 * THREADS)),
            (count(&format!("{} = 'static'", argument("schedule"))), ROUNDS * THREADS),
            (
                format!(
                    "select sum({}) from slice where {} = 'dynamic'",
                    argument("chunks"),
                    argument("schedule")
                ),
                ROUNDS * 10,
            ),
            (
                format!(
                    "select sum({}) from slice where {} = 'dynamic'",
                    argument("iterations"),
                    argument("schedule")
                ),
                ROUNDS * 100,
            ),
            (count("name glob 'single*'"), ROUNDS * THREADS),
            (count("name glob 'critical @*'"), ROUNDS * THREADS),
            (count("name glob '*barrier*' and name not glob '*@*'"), 0),
            (count("category = 'task' and dur > 0"), ROUNDS * (TASKS + 4)),
            (
                "select count(*) from flow join slice on slice.id = slice_in where category = 'task'"
                    .to_owned(),
                ROUNDS * (TASKS + 4 + 4),
            ),
        ];
        let queries: Vec<String> = expected.iter().map(|(query, _)| query.clone()).collect();
        for ((query, number), found) in expected.iter().zip(numbers(&export, &queries)) {
            assert_eq!(found, *number as i64, "{format}: {query}");
        }

        let most = |name: &str| {
            format!(
                "select cast(max(value) as int) from counter join counter_track track \
                 on track.id = track_id where track.name glob '*{name}*'"
            )
        };
        let found = numbers(&export, &[most("in parallel regions"), most("created but not finished")]);
        assert_eq!(found[0], THREADS as i64, "{format}: threads at most");
        assert!((1..=TASKS as i64).contains(&found[1]), "{format}: {found:?}");

        let long = "category = 'task' and dur > 100000";
        let of_tasks = numbers(&export, &[format!("select sum(dur) from slice where {long}")])[0];
        let difference = of_tasks.abs_diff(took) as f64 / took as f64;
        assert!(difference < 0.02, "{format}: {of_tasks} ns, not {took} ns");
    }
}

/// A task that was cut into parts is one task.
#[test]
fn statistics_are_those_of_the_program() {
    let traces = Traces::folder();
    let program = compile("tests/programs/structure.c", Compiler::Clang22, &[]);
    let arguments = [THREADS, ROUNDS, TASKS].map(|number| number.to_string());
    let took = traces.record(Command::new(program).args(arguments));
    let took: u64 = took.trim().parse().expect("nanoseconds");
    let output = omptrace(["stats".as_ref(), traces.only().as_path(), "--json".as_ref(), "--all".as_ref()]);
    assert!(output.status.success(), "{output:?}");
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let constructs = stats["constructs"].as_array().expect("a list");
    let sum = |which: &dyn Fn(&serde_json::Value) -> bool, what: &str| -> u64 {
        let chosen = constructs.iter().filter(|construct| which(construct));
        chosen.filter_map(|construct| construct[what].as_u64()).sum()
    };
    let called = |begin: &'static str| {
        move |construct: &serde_json::Value| construct["name"].as_str().expect("a name").starts_with(begin)
    };
    let of_category = |name: &'static str| move |construct: &serde_json::Value| construct["category"] == name;

    assert_eq!(sum(&of_category("parallel"), "count"), ROUNDS * (5 + THREADS));
    assert_eq!(sum(&called("!$omp implicit task"), "count"), ROUNDS * (6 * THREADS));
    assert_eq!(sum(&of_category("parallel"), "members"), ROUNDS * (6 * THREADS));
    assert_eq!(sum(&called("!$omp critical @"), "count"), ROUNDS * THREADS);
    assert_eq!(sum(&called("!$omp single"), "count"), ROUNDS * THREADS);
    assert_eq!(sum(&of_category("task"), "count"), ROUNDS * (TASKS + 4));
    assert!(sum(&of_category("task"), "total_ns") >= took);
    // Of a region that a tail call leads to, only the place around it is known.
    let has_place = |construct: &serde_json::Value| {
        let name = construct["name"].as_str().unwrap_or_default();
        let file = construct["file"].as_str().unwrap_or_default();
        let has_line = file.ends_with("structure.c") && construct["line"].as_u64() > Some(0);
        has_line || name.contains(" inside @structure.c:")
    };
    assert!(constructs.iter().filter(|construct| construct["category"] == "parallel").all(has_place));

    let threads = stats["per_thread"].as_array().expect("a list");
    let of = |thread: &serde_json::Value, what: &str| thread[what].as_u64().expect("a number");
    assert_eq!(threads.len() as u64, THREADS);
    assert_eq!(threads.iter().map(|thread| of(thread, "tasks")).sum::<u64>(), ROUNDS * (TASKS + 4));
    for thread in threads {
        let parts = ["working_ns", "barriers_ns", "taskwaits_ns", "locks_ns", "wake_up_ns"];
        let parts: u64 = parts.iter().map(|what| of(thread, what)).sum();
        assert_eq!(parts, of(thread, "parallel_ns"), "{thread}");
    }
}

#[test]
fn tasks_are_counted_by_id() {
    const ROUNDS: i64 = 5;
    let traces = Traces::folder();
    let program = compile("tests/programs/task_paths.c", Compiler::Clang22, &[]);
    traces.record(Command::new(program).args(["2", &ROUNDS.to_string()]).env("OMP_CANCELLATION", "true"));
    let trace = traces.only();
    for (format, extension, arguments) in FORMATS {
        let id = format!("extract_arg(arg_set_id, '{arguments}.task_data')");
        let untied = "category = 'task' and name glob '* untied *'";
        let tied = "category = 'task' and name glob 'task @*' and name not glob '*:91'";
        let found = numbers(
            &export(&trace, format, extension),
            &[
                format!("select count(distinct {id}) from slice where {untied}"),
                format!("select count(*) > count(distinct {id}) from slice where {untied}"),
                format!("select count(distinct {id}) from slice where {tied}"),
                "select count(*) from slice where name = 'task fulfilled'".to_owned(),
            ],
        );
        // Children of untied tasks, detached tasks and the one that fulfils, and those that the barrier runs.
        let tied = 20 + 4 + 1 + 20 * 3;
        let expected = [20 * ROUNDS, 1, tied * ROUNDS, 4 * ROUNDS];
        assert_eq!(found, expected, "{format}");
    }
}

/// The timeline of these programs on a runtime is nested, complete, and exact for each member of each region; nothing was
/// left out.
fn is_sound(traces: &Traces, what: &str) {
    let trace = traces.only();
    let check = omptrace([Path::new("check"), &trace]);
    let said = String::from_utf8_lossy(&check.stderr) + String::from_utf8_lossy(&check.stdout);
    assert!(check.status.success() && !said.contains("warning"), "{what}: {said}");
    for (format, extension, arguments) in FORMATS {
        let queries =
            [COMPLAINTS.to_owned(), OVERLAPS.to_owned(), BUSY_WAITS.to_owned(), inexact_members(arguments)];
        let found = numbers(&export(&trace, format, extension), &queries);
        assert_eq!(found, [0; 4], "{what}, {format}: {queries:?}");
    }
}

const PROGRAMS: &[(&str, &[&str])] = &[
    ("tests/programs/nearly_everything.c", &["3", "5"]),
    ("tests/programs/tasks.c", &["2", "8"]),
    ("tests/programs/task_paths.c", &["2", "5"]),
    ("tests/programs/divided_taskloop.c", &[]),
    ("tests/programs/locks.c", &["2", "50"]),
    ("tests/programs/nested.c", &["2", "2", "5"]),
    ("tests/programs/control_tool.c", &["2", "5"]),
    ("tests/programs/foreign_pthreads.c", &["2", "2", "5"]),
];

fn programs_are_sound(compiler: Compiler, flags: &[&str], runtimes: &[&str]) {
    for (source, arguments) in PROGRAMS {
        if compiler == Compiler::Gcc && source.contains("control_tool") {
            // GCC 12's omp.h does not have it.
            continue;
        }
        if flags.contains(&OPENMP_45) && source.contains("task_paths") {
            // It detaches tasks.
            continue;
        }
        let program = compile(source, compiler, flags);
        for name in runtimes {
            let traces = Traces::folder();
            let mut command = Command::new(&program);
            command.args(*arguments).env("OMP_CANCELLATION", "true").env("LD_LIBRARY_PATH", runtime(name));
            if flags.contains(&OPENMP_45) {
                // `omp_set_max_active_levels` is not enough.
                command.env("OMP_NESTED", "true");
            }
            if compiler == Compiler::Gcc {
                command.env("LD_PRELOAD", runtime(name).join("libomp.so.5"));
            }
            traces.record(&mut command);
            is_sound(&traces, &format!("{source} of {compiler:?} on {name}"));
        }
    }
}

#[test]
fn timelines_of_clang_22_are_sound() {
    programs_are_sound(Compiler::Clang22, &[], RUNTIMES_OF_CLANG_22);
}

#[test]
fn timelines_of_clang_14_are_sound() {
    programs_are_sound(Compiler::Clang14, &[], &["llvm-14", "intel-2021"]);
}

#[test]
fn timelines_of_tr6_are_sound() {
    programs_are_sound(Compiler::Clang14, &[OPENMP_45, "-DWITHOUT_TEAMS"], RUNTIMES_OF_TR6);
}

#[test]
fn timelines_of_gcc_are_sound() {
    programs_are_sound(Compiler::Gcc, &[], &["llvm-19", "intel-2026"]);
}

/// One program each, unless a person asks for a few. LLVM 9 does not report enough of leagues for an exact timeline.
#[test]
fn timelines_on_further_runtimes_are_sound() {
    let programs = if are_given() { PROGRAMS } else { &PROGRAMS[..1] };
    for runtime in further_runtimes() {
        let Some(dialect) = runtime.dialect else {
            continue;
        };
        let flags: &[&str] = match runtime.name {
            "llvm-9" => &["-DWITHOUT_TEAMS"],
            _ => &[],
        };
        for (source, arguments) in programs {
            for compiler in [Compiler::Clang14, Compiler::Gcc] {
                let Some(mut command) = runtime.program(source, compiler, flags, arguments) else {
                    continue;
                };
                let traces = Traces::folder();
                traces.record(&mut command);
                let what = format!("{source} of {compiler:?} on {}", runtime.name);
                assert_eq!(info(&traces.only())["runtime"]["dialect"], dialect, "{what}");
                is_sound(&traces, &what);
            }
        }
    }
}

#[test]
fn hidden_helpers_have_names_of_their_own() {
    let traces = Traces::folder();
    let flags = ["-fopenmp-targets=x86_64-pc-linux-gnu"];
    let program = compile("tests/programs/target_nowait.c", Compiler::Clang22, &flags);
    traces.record(&mut Command::new(program));
    let export = export(&traces.only(), "perfetto", "pftrace");
    let count = |name: &str| format!("select count(*) from thread where name glob '{name}'");
    // They are not among the threads, so that viewers can fold them.
    let helpers = "select count(*) from track t join track around on t.parent_id = around.id \
                   where around.name = 'hidden helpers' and t.name glob 'hidden helper *'";
    let queries = [count("main"), count("OpenMP worker *"), count("hidden helper *"), helpers.to_owned()];
    assert_eq!(numbers(&export, &queries), [1, 1, 0, 8]);
}
