//! Traces of runtimes that can no longer be installed (`tests/historic/README.md`), checked against the structure of
//! the traced program.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use omptrace_analysis::{Stats, check};
use omptrace_symbols as symbols;
use omptrace_trace_format::Finding;
use omptrace_trace_format::{Reader, Severity};
use omptrace_viewer_export::{ConvertOptions, Format, convert, dump_json};

use crate::golden::is_as_reviewed;
use crate::shared::Shared;

/// The program executes each section twice on three threads.
const REPETITIONS: u64 = 2;
const THREADS: u64 = 3;
/// One thread executes a single region; the others report that they do not execute it.
const SINGLES: (&str, u64) = ("!$omp single", REPETITIONS * THREADS);

/// One trace.
struct Case {
    name: &'static str,
    /// Number of occurrences of each construct, except for those that all sections contain.
    constructs: &'static [(&'static str, u64)],
    /// Number of explicit tasks.
    tasks: u64,
    /// Names of the reader's notes.
    notes: &'static [&'static str],
}

const LATE_ENDS: &str = "late_end";
/// The tracer did not see the events after `main`.
const MISSING_ENDS: &str = "missing_end";

const CASES: &[Case] = &[
    Case {
        name: "llvm_3_7_task",
        constructs: &[SINGLES, ("!$omp task", 20)],
        tasks: 20,
        notes: &[MISSING_ENDS, "tasks_without_switch"],
    },
    Case {
        name: "llvm_3_7_critical",
        constructs: &[("!$omp critical released", 60)],
        tasks: 0,
        notes: &[MISSING_ENDS, "release_without_acquire"],
    },
    Case { name: "llvm_3_7_ordered", constructs: ORDERED, tasks: 0, notes: &[MISSING_ENDS] },
    Case {
        name: "llvm_3_8_task",
        constructs: &[SINGLES, ("!$omp task", 20)],
        tasks: 20,
        notes: &[MISSING_ENDS],
    },
    Case {
        name: "llvm_4_0_task",
        constructs: &[SINGLES, ("!$omp task", 20)],
        tasks: 20,
        notes: &[MISSING_ENDS],
    },
    // Each part of a task has a creation and an end of its own.
    Case {
        name: "llvm_4_0_untied",
        constructs: &[SINGLES, ("!$omp task", 24), ("!$omp taskwait", 12)],
        tasks: 24,
        notes: &[MISSING_ENDS],
    },
    Case { name: "llvm_4_0_singlenw", constructs: &[SINGLES], tasks: 0, notes: &[MISSING_ENDS] },
    Case {
        name: "llvm_4_0_depend",
        constructs: &[SINGLES, ("!$omp task", 8)],
        tasks: 8,
        notes: &[MISSING_ENDS],
    },
    Case {
        name: "llvm_4_0_without_dynamic_locks_critical",
        constructs: &[("!$omp critical released", 60)],
        tasks: 0,
        notes: &[MISSING_ENDS, "release_without_acquire"],
    },
    Case {
        name: "llvm_5_0_taskwait",
        constructs: &[SINGLES, ("!$omp task", 40), ("!$omp taskwait", 2)],
        tasks: 40,
        notes: &[MISSING_ENDS],
    },
    Case {
        name: "ompt_tools_tr4_stable_task",
        constructs: &[SINGLES, ("!$omp task", 20)],
        tasks: 20,
        notes: &[LATE_ENDS, MISSING_ENDS],
    },
    Case {
        name: "llvm_trunk_2018_12_ordered",
        constructs: ORDERED,
        tasks: 0,
        notes: &[LATE_ENDS, MISSING_ENDS],
    },
    Case {
        name: "llvm_trunk_2018_12_taskwait",
        constructs: &[SINGLES, ("!$omp task", 40), ("!$omp taskwait", 2), ("!$omp taskwait wait", 2)],
        tasks: 40,
        notes: &[LATE_ENDS, MISSING_ENDS],
    },
    Case {
        name: "llvm_trunk_2018_12_depend",
        constructs: &[SINGLES, ("!$omp task", 8)],
        tasks: 8,
        notes: &[LATE_ENDS, MISSING_ENDS],
    },
];

const ORDERED: &[(&str, u64)] = &[("!$omp for", 6), ("!$omp ordered", 40), ("!$omp ordered wait", 40)];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/historic")
}

fn open(name: &str) -> Reader {
    Reader::open(&folder().join(format!("{name}.omptrace"))).expect("a trace")
}

fn stats(reader: &Reader) -> Stats {
    Stats::of(&[reader], &symbols::Options::default()).0
}

pub(crate) fn text(reader: &Reader) -> String {
    let out = Shared::default();
    let format = Format::by_name("text").expect("a format");
    let target = Box::new(out.clone());
    let options = ConvertOptions::default();
    convert(&[reader], format, &options, target, &mut |_| {}).expect("memory can be written");
    String::from_utf8(out.bytes()).expect("UTF-8")
}

/// Number of occurrences of each construct, at all places.
fn counts(stats: &Stats) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for construct in &stats.constructs {
        let name = construct.name.split(" @").next().expect("a first part");
        *counts.entry(name.to_owned()).or_default() += construct.times.count;
    }
    counts
}

#[test]
fn constructs_are_those_of_the_program() {
    for case in CASES {
        let stats = stats(&open(case.name));
        let counts = counts(&stats);
        assert_eq!(counts.get("!$omp parallel"), Some(&REPETITIONS), "{}", case.name);
        let members = REPETITIONS * THREADS;
        assert_eq!(counts.get("!$omp implicit task"), Some(&members), "{}", case.name);
        let everywhere = ["parallel", "barrier", "implicit task", "initial task", "idle"];
        let is_own = |name: &str| !everywhere.iter().any(|other| name.contains(other));
        let own: BTreeMap<&str, u64> = counts
            .iter()
            .filter(|(name, _)| is_own(name))
            .map(|(name, count)| (name.as_str(), *count))
            .collect();
        assert_eq!(own, case.constructs.iter().copied().collect(), "{}", case.name);
        let tasks: u64 = stats.threads.iter().filter_map(|thread| thread.tasks).sum();
        assert_eq!(tasks, case.tasks, "{}", case.name);
    }
}

#[test]
fn nothing_is_repaired_but_what_the_runtime_leaves_out() {
    for case in CASES {
        let findings = check(&open(case.name));
        let mut found: Vec<_> = findings.iter().map(|finding| finding.name).collect();
        let mut expected = case.notes.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{}", case.name);
        let is_note = |finding: &Finding| finding.severity == Severity::Note;
        assert!(findings.iter().all(is_note), "{}: {findings:?}", case.name);
    }
}

/// A thread that ran tasks after reporting the end of its implicit task was still in its region.
#[test]
fn tasks_at_the_end_of_a_region_are_work_in_it() {
    for name in ["llvm_3_8_task", "llvm_4_0_task", "llvm_3_7_task"] {
        let stats = stats(&open(name));
        let tasks = stats.constructs.iter();
        let tasks = tasks.filter(|construct| construct.name.starts_with("!$omp task"));
        let in_tasks: u64 = tasks.map(|construct| construct.times.total_ns).sum();
        let working: u64 = stats.threads.iter().filter_map(|thread| thread.working_ns).sum();
        assert!(working >= in_tasks, "{name}: {working} {in_tasks}");
    }
}

#[test]
fn dependences_have_their_types() {
    // `out` (which Clang passes as `inout`), `in`, `in`, `inout`.
    for name in ["llvm_4_0_depend", "llvm_trunk_2018_12_depend"] {
        let reader = open(name);
        let out = Shared::default();
        dump_json(&reader, Box::new(out.clone())).expect("memory can be written");
        let lines = String::from_utf8(out.bytes()).expect("UTF-8");
        let of = |kind: &str| {
            let is_it = format!("\"dependence_type\":\"{kind}\"");
            lines.matches(&is_it).count()
        };
        let types: BTreeMap<&str, usize> = ["in", "out", "inout"]
            .into_iter()
            .map(|kind| (kind, of(kind)))
            .filter(|(_, count)| *count > 0)
            .collect();
        let expected = [("in", 4), ("inout", 4)].into_iter().collect();
        assert_eq!(types, expected, "{name}");
    }
}

#[test]
fn waits_for_ordered_regions_end_when_the_thread_gets_its_turn() {
    for name in ["llvm_3_7_ordered", "llvm_trunk_2018_12_ordered"] {
        let text = text(&open(name));
        assert!(!text.contains("acquired=\"no\""), "{name}");
        assert!(text.contains("<- mutex_release"), "{name}");
    }
}

/// With `OMPTRACE_BLESS=1`, updates the golden file; read the difference before you commit it.
#[test]
fn timelines_are_as_before() {
    for case in CASES {
        let path = folder().join(format!("{}.txt", case.name));
        is_as_reviewed(&path, &text(&open(case.name)));
    }
}

/// The table above is complete.
#[test]
fn every_trace_is_checked() {
    for entry in fs::read_dir(folder()).expect("a folder") {
        let path = entry.expect("an entry").path();
        // The Collector API's traces are checked by `openuh`.
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with("openuh")) {
            continue;
        }
        if path.extension().is_some_and(|extension| extension == "omptrace") {
            let name = path.file_stem().and_then(|name| name.to_str());
            let is_known = CASES.iter().any(|case| Some(case.name) == name);
            assert!(is_known, "{path:?} is not in the table");
        }
    }
}
