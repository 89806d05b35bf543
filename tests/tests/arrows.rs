//! Each kind of arrow starts on what caused and ends on what was caused, in each viewer that draws arrows. The text, which
//! names both ends of each, is the truth.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, root, runtime};
use omptrace_tests::generator;
use omptrace_tests::trace::{Traced, Traces, convert};
use omptrace_tests::viewers::{Rows, open_in_catapult, open_in_speedscope, query};

/// An arrow of the text: the places that it leads from and to, with times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrow {
    kind: String,
    from: (String, u64),
    to: (String, u64),
}

fn program() -> Traced {
    Traced::program("tests/programs/arrows.c", &["3", "6"])
}

/// The arrows of a text: `   0.001000000  <- KIND from PLACE at 0.000900000` below the name of a thread or track.
fn truth(text: &Path) -> Vec<Arrow> {
    let text = fs::read_to_string(text).expect("a file");
    let ns = |time: &str| -> u64 { time.trim().replace('.', "").parse().expect("nanoseconds") };
    let mut place = "";
    let mut arrows = Vec::new();
    for line in text.lines() {
        let Some((time, event)) = line.trim_start().split_once("  ") else {
            place = line.split(" (thread ").next().unwrap_or(line);
            continue;
        };
        let arrow = event.trim_start().strip_prefix("<- ");
        let Some((kind, from)) = arrow.and_then(|arrow| arrow.split_once(" from ")) else {
            continue;
        };
        let (from, began) = from.rsplit_once(" at").expect("when it began");
        arrows.push(Arrow {
            kind: kind.to_owned(),
            from: (from.to_owned(), ns(began)),
            to: (place.to_owned(), ns(time)),
        });
    }
    arrows.sort();
    arrows
}

fn kinds(arrows: &[Arrow]) -> BTreeMap<&str, usize> {
    let mut kinds = BTreeMap::new();
    for arrow in arrows {
        *kinds.entry(&arrow.kind[..]).or_default() += 1;
    }
    kinds
}

/// Whether an arrow of that kind may lead from a slice of the one name to one of the other.
fn connects(kind: &str, from: &str, to: &str) -> bool {
    let construct = |name: &str| {
        let name = name.split(" @").next().unwrap_or_default();
        name.trim_end_matches(" inside").to_owned()
    };
    let (from, to) = (construct(from), construct(to));
    let is_task = |name: &str| ["task", "task untied", "target task", "taskwait depend"].contains(&name);
    match kind {
        "task_create" => is_task(&to) && !from.ends_with("wait") && from != "task_dependence",
        "task_dependence" => (is_task(&from) || from == kind) && (is_task(&to) || to == kind),
        // The acquisition of a region may be reported before its release by the one before: then the cause is a mark.
        "mutex_release" => {
            let is_region = |name: &str| ["critical", "ordered", "atomic"].contains(&name);
            match (&from[..], &to[..]) {
                ("mutex_released", to) => to == "mutex_acquired" || is_region(to),
                (from, to) => from == to && is_region(from),
            }
        }
        "target_submit" => (from == "target submit" || from == kind) && to != from,
        "target_data_op" => (from.starts_with("target data") || from == kind) && to != from,
        _ => false,
    }
}

/// Each arrow that a viewer shows is one of `truth`. It starts on a slice that lasts when it begins, and ends on one
/// that begins when it ends. `since` is the time from which the viewer counts.
///
/// Catapult prefers a slice that has just ended to a mark of the same time: then the arrow still starts at its time.
fn expect(shown: &Rows, truth: &[Arrow], since: u64, what: &str) {
    let ended_slices = what.ends_with("in Catapult");
    let mut left = truth.to_vec();
    for row in shown {
        let text = |column: &str| row[column].as_str().unwrap_or_default();
        let time = |column: &str| row[column].as_u64().expect("a time") + since;
        let is_it = |arrow: &Arrow| {
            arrow.from.0 == text("from_thread")
                && arrow.to.0 == text("to_thread")
                && arrow.to.1 == time("time")
                && (time("from_begin")..=time("from_end")).contains(&arrow.from.1)
                && (arrow.kind != "task_dependence" || time("from_end") == arrow.from.1)
                && (connects(&arrow.kind, text("from_slice"), text("to_slice"))
                    || ended_slices && time("from_end") == arrow.from.1)
        };
        let near = || left.iter().filter(|arrow| arrow.to.1 == time("time"));
        let place = left
            .iter()
            .position(is_it)
            .unwrap_or_else(|| panic!("{what}: {row:?} is not one of {:?}", near().collect::<Vec<_>>()));
        left.swap_remove(place);
    }
    assert!(left.is_empty(), "{what} does not show {left:?}");
}

const ARROWS: &str = "select s.name from_slice, d.name to_slice, coalesce(a.name, ta.name) from_thread, \
                      coalesce(b.name, tb.name) to_thread, s.ts from_begin, s.ts + s.dur from_end, d.ts time \
                      from flow f join slice s on f.slice_out = s.id join slice d on f.slice_in = d.id \
                      join track ta on s.track_id = ta.id join track tb on d.track_id = tb.id \
                      left join thread_track tta on s.track_id = tta.id left join thread a on tta.utid = a.utid \
                      left join thread_track ttb on d.track_id = ttb.id left join thread b on ttb.utid = b.utid";
/// Exports a trace and compares the arrows of each viewer with those of the text.
fn expect_everywhere(trace: &Path, folder: &Path, what: &str) -> Vec<Arrow> {
    let export = |format: &str, name: &str| {
        let out = folder.join(name);
        convert(trace, format, &out, &[]);
        out
    };
    let truth = truth(&export("text", "arrows.txt"));
    let proto = query(&export("perfetto", "arrows.pftrace"), &[ARROWS]);
    expect(&proto[0], &truth, 0, &format!("{what} in Perfetto"));
    let json = export("chrome", "arrows.json");
    let rows = query(&json, &[ARROWS]);
    expect(&rows[0], &truth, 0, &format!("{what} in Perfetto, as JSON"));
    let shown = open_in_catapult(&json).sound();
    // Catapult counts from the first event.
    let shown_first = shown[1].iter().filter_map(|row| row["time"].as_u64()).min();
    let first = truth.iter().map(|arrow| arrow.to.1).min();
    let since = first.unwrap_or(0) - shown_first.unwrap_or(0);
    expect(&shown[1], &truth, since, &format!("{what} in Catapult"));
    truth
}

#[test]
fn each_kind_of_a_host_leads_from_its_cause_to_its_effect() {
    let traced = program();
    let folder = traced.path("");
    let arrows = expect_everywhere(traced.trace(), &folder, "arrows.c");
    // All kinds that a host has are there, each more than once.
    let kinds = kinds(&arrows);
    for kind in ["task_create", "task_dependence", "mutex_release"] {
        assert!(kinds[kind] > 10, "{kinds:?}");
    }
}

#[test]
fn arrows_lead_from_the_host_to_the_devices() {
    for (mode, submits) in [("constructs", 3), ("nowait", 1)] {
        let program =
            compile("tests/programs/offload.c", Compiler::Clang22, &["-fopenmp-targets=x86_64-pc-linux-gnu"]);
        let traces = Traces::folder();
        traces.record(Command::new(program).args([mode, "3"]));
        let arrows = expect_everywhere(&traces.only(), traces.path(), mode);
        let kinds = kinds(&arrows);
        // Rounds and devices.
        assert_eq!(kinds["target_submit"], submits * 3 * 4, "{mode}: {kinds:?}");
        assert!(kinds["target_data_op"] > 0, "{mode}: {kinds:?}");
    }
}

/// Cases that real programs seldom have: records of devices, releases reported late, tasks that move and that wait.
#[test]
fn arrows_of_rare_cases_lead_from_cause_to_effect() {
    for name in [
        "device_records",
        "device_native",
        "device_repairs",
        "shifted_data_op",
        "late_release",
        "locks_out_of_order",
        "contended_critical",
        "dependences",
        "detached_task",
        "create_after_instant",
        "dependence_after_instant",
        "lock_released_elsewhere",
        "tasks_on_top_of_tasks",
        "taskwaits_without_id",
        "untied_migration",
    ] {
        let text = format!("viewer-export/tests/fixtures/{name}.trace");
        let text = fs::read_to_string(root().join(text)).expect("a fixture");
        let folder = tempfile::tempdir().expect("a temporary folder");
        omptrace_trace_builder::open(&text, folder.path());
        let mut files = fs::read_dir(folder.path()).expect("our folder");
        let trace = files.next().expect("a trace").expect("can be read").path();
        let arrows = expect_everywhere(&trace, folder.path(), name);
        assert!(!arrows.is_empty(), "{name}");
    }
}

/// A program of tasks that depend on each other, in C: a random graph, with regions and locks that threads wait for.
fn graph(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |limit: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) % limit
    };
    let mut body = String::new();
    for _ in 0..30 {
        let clauses: String = (0..=below(2))
            .map(|_| {
                let kind = ["in", "out", "inout"][below(3) as usize];
                format!(" depend({kind}: cells[{}])", below(4))
            })
            .collect();
        let untied = ["", " untied"][below(2) as usize];
        let work = [
            "work();",
            "omp_set_lock(&lock); work(); omp_unset_lock(&lock);",
            "{\n#pragma omp critical\nwork();\n}",
            "{\n#pragma omp task\nwork();\n#pragma omp taskwait\n}",
            "{\n#pragma omp taskyield\nwork();\n}",
        ][below(5) as usize];
        let between = [
            "",
            "",
            "\n#pragma omp taskwait",
            "\n#pragma omp taskwait depend(in: cells[0])",
            "\n#pragma omp critical\nwork();",
        ][below(5) as usize];
        body += &format!("#pragma omp task{clauses}{untied}\n{{ {work} }}{between}\n");
    }
    format!(
        "#include <omp.h>\n#include <unistd.h>\n\
         static omp_lock_t lock;\n\
         static int cells[4];\n\
         static void work(void) {{ for (volatile int i = 0; i < 20000; i++); }}\n\
         int main(void) {{\nomp_init_lock(&lock);\n\
         #pragma omp parallel\n{{\n\
         for (int i = 0; i < 20; i++) {{\n#pragma omp critical\nusleep(200);\n}}\n\
         #pragma omp single\n{{\n{body}}}\n}}\nreturn 0;\n}}\n"
    )
}

#[test]
fn arrows_of_random_programs_lead_from_cause_to_effect() {
    let programs = (1..=4).map(graph);
    let programs = programs.chain((1..=3).map(|seed| generator::program(seed, &generator::CLANG)));
    let mut arrows = Vec::new();
    for (index, text) in programs.enumerate() {
        let traces = Traces::folder();
        let source = traces.path().join("program.c");
        let binary = source.with_extension("exe");
        fs::write(&source, &text).expect("our folder");
        let compiled = Command::new(Compiler::Clang22.path())
            .args(Compiler::Clang22.flags())
            .arg("-o")
            .args([&binary, &source])
            .status()
            .expect("the compiler can be run");
        assert!(compiled.success(), "{text}");
        let output = traces
            .trace(&mut Command::new(&binary))
            .env("LD_LIBRARY_PATH", runtime("llvm-19"))
            .env("OMP_NUM_THREADS", "3")
            .env("OMP_CANCELLATION", "true")
            .env("OMP_MAX_ACTIVE_LEVELS", "4")
            .output()
            .expect("the program can be run");
        assert!(output.status.code().is_some(), "{output:?}\n{text}");
        let trace = traces.files().remove(0);
        // Its number gives the text again.
        let what = format!("program {index}");
        arrows.extend(expect_everywhere(&trace, traces.path(), &what));
    }
    let kinds = kinds(&arrows);
    for kind in ["task_create", "task_dependence", "mutex_release"] {
        let number = kinds.get(kind).copied().unwrap_or(0);
        assert!(number > 10, "{kinds:?}");
    }
}

/// It draws no arrows, but its slices must end.
#[test]
fn speedscope_shows_the_times_that_perfetto_shows() {
    let traced = program();
    for arguments in ["all", "none"] {
        let json = traced.convert("chrome", "a.json", &["--args", arguments]);
        let frames = open_in_speedscope(&json).sound().remove(0);
        let mut times: BTreeMap<String, f64> = BTreeMap::new();
        for frame in frames {
            let name = frame["frame"].as_str().expect("a name");
            // It makes a frame of each name with its arguments.
            let name = name.split(" {").next().unwrap_or_default();
            *times.entry(name.to_owned()).or_default() += frame["self"].as_f64().expect("a time");
        }
        // A slice's own time is its duration without that of its children.
        let own = "select s.name, sum(s.dur - coalesce((select sum(c.dur) from slice c where c.parent_id = s.id), 0)) ns \
                   from slice s where s.name not glob 'mutex_*' group by 1";
        for row in &query(&json, &[own])[0] {
            let (name, ns) = (row["name"].as_str(), row["ns"].as_f64());
            let (name, ns) = name.zip(ns).expect("a name and a time");
            let shown = times.get(name).copied().unwrap_or_default();
            assert!((shown * 1000.0 - ns).abs() < 1000.0, "{name}: {shown} us of {ns} ns");
        }
    }
}
