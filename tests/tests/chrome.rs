//! Chrome JSON of real programs in the real viewers: Perfetto's UI in a browser, its trace processor, Catapult.

use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_tests::env::{Compiler, compile};
use omptrace_tests::trace::{Traces, counts, dump, omptrace, regions_of_leagues};
use omptrace_tests::viewers::{open_in_catapult, open_in_ui, query};

/// A trace of `source`, and its Chrome JSON.
fn converted(traces: &Traces, source: &str, arguments: &[&str]) -> (PathBuf, PathBuf) {
    let program = compile(source, Compiler::Clang22, &["-g"]);
    traces.record(Command::new(program).args(arguments).env("OMP_CANCELLATION", "true"));
    let (trace, json) = (traces.only(), traces.path().join("trace.json"));
    let output = omptrace([
        Path::new("convert"),
        &trace,
        Path::new("--to"),
        Path::new("chrome"),
        Path::new("-o"),
        &json,
    ]);
    assert!(output.status.success(), "{output:?}");
    (trace, json)
}

const NUMBER_OF: &str = "select count(*) n from slice where category = ";
/// Slices that reach beyond their parent: none may.
const OVERLAPS: &str = "select count(*) n from slice c join slice p on c.parent_id = p.id \
                        where c.ts < p.ts or c.ts + c.dur > p.ts + p.dur";

#[test]
fn the_real_ui_shows_what_was_recorded() {
    let traces = Traces::folder();
    let (trace, json) = converted(&traces, "tests/programs/nearly_everything.c", &["2", "5"]);
    let events = dump(&trace);
    let (counts, of_leagues) = (counts(&events), regions_of_leagues(&events));
    let queries = [format!("{NUMBER_OF}'parallel'"), format!("{NUMBER_OF}'implicit_task'"), OVERLAPS.into()];
    let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
    let rows = open_in_ui(&json, &queries).sound();
    let number = |index: usize| rows[index][0]["n"].as_u64().expect("a number");
    assert_eq!(number(0) + of_leagues, counts["parallel_begin"]);
    assert_eq!(number(1) + of_leagues, counts["implicit_task/begin"]);
    assert_eq!(number(2), 0, "slices nest");
}

#[test]
fn the_trace_processor_has_no_complaint_about_any_program() {
    for (source, arguments) in [
        ("tests/programs/nearly_everything.c", &["3", "5"][..]),
        ("tests/programs/tasks.c", &["2", "8"]),
        ("tests/programs/locks.c", &["2", "50"]),
        ("tests/programs/nested.c", &["2", "2", "5"]),
        ("tests/programs/foreign_pthreads.c", &["2", "2", "5"]),
        ("tests/programs/control_tool.c", &["2", "5"]),
        ("tests/programs/exit_in_parallel.c", &["2", "0"]),
    ] {
        let traces = Traces::folder();
        let (trace, json) = converted(&traces, source, arguments);
        let rows = query(&json, &[&format!("{NUMBER_OF}'parallel'"), OVERLAPS]);
        let events = dump(&trace);
        let regions = counts(&events)["parallel_begin"] - regions_of_leagues(&events);
        assert_eq!(rows[0][0]["n"].as_u64(), Some(regions), "{source}");
        assert_eq!(rows[1][0]["n"].as_u64(), Some(0), "{source}: slices nest");
    }
}

#[test]
fn catapult_shows_it_too() {
    let traces = Traces::folder();
    let (_, json) = converted(&traces, "examples/task_tree.c", &["6", "2"]);
    open_in_catapult(&json).sound();
}
