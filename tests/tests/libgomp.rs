//! Programs on GCC's own libgomp, which `libomptgomp.so` gives the tools interface.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use omptrace_tests::env::{
    Compiler, compile, conformance_tool, count_tool, libgomp_adapter, runtime,
};
use omptrace_tests::trace::{Counts, Traces, counts, dump, omptrace};
use tempfile::TempDir;

/// Programs with arguments, as far as GCC 12 compiles them, and the status that they exit with.
const PROGRAMS: &[(&str, &[&str], i32)] = &[
    ("nearly_everything.c", &["2", "20"], 0),
    ("gcc_loops.c", &["2", "10"], 0),
    ("tasks.c", &["2", "8"], 0),
    ("task_paths.c", &["2", "5"], 0),
    ("cancelled_tasks.c", &["20"], 0),
    ("locks.c", &["2", "200"], 0),
    ("nested.c", &["2", "2", "10"], 0),
    ("foreign_pthreads.c", &["2", "2", "10"], 0),
    ("first_thread.c", &["1"], 0),
    ("fork_exit.c", &["2", "3"], 0),
    ("exit_in_parallel.c", &["2", "7"], 7),
    ("pause_resource.c", &["2", "soft"], 0),
    ("pause_resource.c", &["2", "hard"], 0),
];

/// Whether the program prints how many tasks ran before they were cancelled.
fn prints_luck(source: &str, cancels: bool) -> bool {
    source == "cancelled_tasks.c" && cancels
}

/// The program, untraced; `cancels`: with cancellation.
fn bare(source: &str, arguments: &[&str], cancels: bool) -> Command {
    let program = compile(&format!("tests/programs/{source}"), Compiler::Gcc, &[]);
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("OMP_CANCELLATION", if cancels { "true" } else { "false" });
    command
}

/// Puts the adapter before libgomp.
fn adapted(command: &mut Command) -> &mut Command {
    command.env("LD_PRELOAD", libgomp_adapter())
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the program can be run")
}

/// What the conformance tool reports of a run of `command`, and the run's output.
fn conformance(command: &mut Command) -> (String, Output) {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let report = folder.path().join("report");
    let output = output(
        command
            .env("OMP_TOOL_LIBRARIES", conformance_tool())
            .env("OMPT_CONFORMANCE_OUTPUT", &report),
    );
    let report = fs::read_to_string(&report).expect("the tool was loaded, and finalized");
    (report, output)
}

#[test]
fn the_adapter_keeps_the_rules_and_the_program() {
    for &(source, arguments, status) in PROGRAMS {
        for cancels in [false, true] {
            let expected = output(&mut bare(source, arguments, cancels));
            assert_eq!(
                expected.status.code(),
                Some(status),
                "{source} untraced: {expected:?}"
            );
            let (report, found) = conformance(adapted(&mut bare(source, arguments, cancels)));
            assert!(report.contains(" events, "), "{source}: {report}");
            assert!(report.contains(", 0 faults\n"), "{source}: {report}");
            assert_eq!(found.status, expected.status, "{source}: {found:?}");
            if !prints_luck(source, cancels) {
                assert_eq!(found, expected, "{source}: output");
            }
        }
    }
}

#[test]
fn a_runtime_that_breaks_rules_is_found_out() {
    // LLVM's runtime passes data of tasks that are not the current ones to GCC's code (docs/dialects.md).
    let mut command = bare("nearly_everything.c", &["2", "20"], false);
    let library = runtime("llvm-19").join("libomp.so.5");
    let (report, _) = conformance(command.env("LD_PRELOAD", library));
    assert!(!report.contains(", 0 faults\n"), "{report}");
    assert!(report.contains("what began last ends first"), "{report}");
}

/// What the counting tool counts.
fn counted(command: &mut Command) -> Counts {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let file = folder.path().join("counts.json");
    let output = output(
        command
            .env("OMP_TOOL_LIBRARIES", count_tool())
            .env("COUNT_OUT", &file),
    );
    assert!(output.status.success(), "{output:?}");
    let counts = fs::read(&file).expect("the tool was loaded");
    serde_json::from_slice(&counts).expect("the tool writes JSON")
}

#[test]
fn traces_hold_what_another_tool_counts() {
    // Which thread gets which chunk or task is luck.
    const LUCK: &[&str] = &["dispatch", "task_schedule", "cancel"];
    // libgomp's threads of nested regions end by themselves, and the process may end before the last of them.
    const LATE_ENDS: &[&str] = &[
        "thread_end",
        "implicit_task/end",
        "sync_region/end",
        "sync_region_wait/end",
    ];
    const MAX_LATE: u64 = 4;
    for (source, arguments) in [
        ("nearly_everything.c", ["2", "20"].as_slice()),
        ("tasks.c", &["2", "8"]),
        ("locks.c", &["2", "200"]),
    ] {
        let mut expected = counted(adapted(&mut bare(source, arguments, false)));
        let traces = Traces::folder();
        traces.record(adapted(&mut bare(source, arguments, false)));
        let trace = traces.only();
        let mut found = counts(&dump(&trace));
        for name in LUCK {
            expected.remove(*name);
            found.remove(*name);
        }
        for name in LATE_ENDS {
            let ends = (found.remove(*name), expected.remove(*name));
            let (found, expected) = (ends.0.unwrap_or(0), ends.1.unwrap_or(0));
            let missing = found.abs_diff(expected);
            assert!(missing <= MAX_LATE, "{source}: {name}: {found} {expected}");
        }
        assert!(expected.len() > 4, "{source}: {expected:?}");
        assert_eq!(found, expected, "{source}");
        let check = omptrace([Path::new("check"), &trace]);
        assert!(check.status.success(), "{source}: {check:?}");
    }
}

#[test]
fn exact_ends_come_with_their_regions() {
    let (report, output) = conformance(
        adapted(&mut bare("nearly_everything.c", &["2", "20"], false))
            .env("OMPTGOMP_EXACT_ENDS", "true"),
    );
    assert!(output.status.success(), "{output:?}");
    assert!(report.contains(", 0 faults\n"), "{report}");
    let traces = Traces::folder();
    traces.record(
        adapted(&mut bare("nearly_everything.c", &["2", "20"], false))
            .env("OMPTGOMP_EXACT_ENDS", "true"),
    );
    // Ends that come late are moved, and counted.
    let check = omptrace([Path::new("check"), &traces.only()]);
    let words = String::from_utf8_lossy(&check.stdout);
    assert!(!words.contains("moved to it"), "{words}");
}

#[test]
fn without_a_tool_a_program_runs_as_it_does_without_the_adapter() {
    for &(source, arguments, _) in PROGRAMS {
        let expected = output(&mut bare(source, arguments, false));
        let found = output(adapted(&mut bare(source, arguments, false)));
        assert_eq!(found, expected, "{source}");
    }
}

/// A library goes when the program closes it, and the next may lie in its place.
#[test]
fn libraries_are_unloaded_as_without_the_adapter() {
    let host = compile("tests/programs/reload_host.c", Compiler::Gcc, &["-ldl"]);
    let library = |offset: &str| {
        let flags = ["-shared", "-fPIC", offset];
        compile("tests/programs/unloaded_library.c", Compiler::Gcc, &flags)
    };
    let libraries = [library("-DOFFSET=0"), library("-DOFFSET=100")];
    let host = || {
        let mut command = Command::new(&host);
        command.args(&libraries);
        command
    };
    let bare = output(&mut host());
    assert!(bare.status.success(), "{bare:?}");
    assert!(
        bare.stdout
            .starts_with(b"2\nunloaded 0\n102\nunloaded 100\n"),
        "{bare:?}"
    );

    let without_a_tool = output(adapted(&mut host()));
    assert_eq!(without_a_tool, bare);
    let (report, checked) = conformance(adapted(&mut host()));
    assert_eq!(checked, bare);
    assert!(report.contains(" 0 faults"), "{report}");
    let traces = Traces::folder();
    let traced = output(adapted(traces.trace(&mut host())));
    assert_eq!(traced, bare);
    let events = dump(&traces.only());
    assert_eq!(counts(&events)["parallel_begin"], 40);
}

/// Tasks that one thread creates and others run use the same memory again, also where they may be discarded.
#[test]
fn memory_does_not_grow_with_the_number_of_tasks() {
    const MAX_MORE_KIB: i64 = 32 << 10;
    let used = |command: &mut Command| -> i64 {
        let output = output(command.env("OMP_TOOL_LIBRARIES", conformance_tool()));
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.trim().parse().expect("a number")
    };
    for cancels in [false, true] {
        let bare = used(&mut bare("one_creator.c", &[], cancels));
        let report = TempDir::new().expect("a temporary folder can be made");
        let adapted = used(
            adapted(&mut self::bare("one_creator.c", &[], cancels))
                .env("OMPT_CONFORMANCE_OUTPUT", report.path().join("report")),
        );
        assert!(adapted < bare + MAX_MORE_KIB, "{cancels}: {bare} {adapted}");
    }
}
