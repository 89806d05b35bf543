//! Programs with a planted fault: the first finding names it and its line. Programs whose efficiencies and whose time on other
//! numbers of threads have closed forms.

use std::path::Path;
use std::process::{Child, Command};

use omptrace_tests::env::{Compiler, compile, omptrace_program, root};
use omptrace_tests::trace::{Traces, accounts_add_up, omptrace};
use serde_json::Value;

/// A fault of `tests/programs/planted.c`, which marks its line by the fault's name, and the rules that find it.
const FAULTS: &[(&str, &[&str])] = &[
    ("imbalance", &["load_imbalance"]),
    ("serial", &["serial_part"]),
    ("critical", &["critical_contention"]),
    ("lock", &["lock_contention"]),
    ("ordered", &["ordered_serialises"]),
    ("single", &["single_serialises"]),
    ("narrow", &["narrow_team"]),
    ("tasks", &["too_few_tasks"]),
    ("taskwait", &["taskwait_chain"]),
    ("nested", &["region_in_single"]),
    ("depends", &["dependence_chain"]),
    // The second, where another thread than its creator runs the task: the creator waits for it, too.
    ("long_task", &["too_few_tasks", "taskwait_chain"]),
    ("in_tasks", &["critical_contention"]),
    ("two_mutexes", &["several_mutexes"]),
    ("inside", &["load_imbalance"]),
];

/// The answers of a run with four threads.
fn answers(arguments: &[&str]) -> Value {
    answers_of("tests/programs/planted.c", arguments, 4)
}

/// The answers of a run of a program with this many threads.
fn answers_of(program: &str, arguments: &[&str], threads: u64) -> Value {
    let program = compile(program, Compiler::Clang22, &[]);
    let traces = Traces::folder();
    traces.record(Command::new(program).args(arguments).env("OMP_NUM_THREADS", threads.to_string()));
    let trace = traces.only();
    let output = omptrace(["stats", trace.to_str().expect("UTF-8"), "--json"].iter());
    assert!(output.status.success(), "{output:?}");
    let answers: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    accounts_add_up(&answers).unwrap_or_else(|fault| panic!("{fault}"));
    answers
}

/// The line that is marked by the fault's name.
fn marked(fault: &str) -> u64 {
    let source = root().join("tests/programs/planted.c");
    let source = std::fs::read_to_string(source).expect("a source");
    let mut lines = source.lines();
    let mark = format!("/* {fault}");
    let line = lines.position(|line| line.contains(&mark));
    line.unwrap_or_else(|| panic!("no line is marked {mark}")) as u64 + 1
}

#[test]
fn the_first_finding_is_the_planted_fault() {
    for (fault, rules) in FAULTS {
        let found = answers(&[fault]);
        let first = &found["findings"][0];
        let rule = first["id"].as_str().unwrap_or_default();
        assert!(rules.contains(&rule), "{fault}: {}", found["findings"]);
        // A compiler may give a construct the line of its directive or of its body.
        let line = first["line"].as_u64().unwrap_or(0);
        assert!(line.abs_diff(marked(fault)) <= 1, "{fault}: {first}");
    }
}

/// GCC's static loops are not seen: the barrier behind a part of the region says in which one threads differ.
#[test]
fn imbalance_in_a_part_of_a_region_is_at_the_barrier_behind_it() {
    let source = "tests/programs/gcc_uneven_parts.c";
    let traces = Traces::folder();
    let trace = traces.path().join("t.omptrace");
    let mut record = Command::new(omptrace_program());
    record.args(["record", "--quiet", "-o"]).arg(&trace).arg(compile(source, Compiler::Gcc, &[]));
    let output = record.env("OMP_NUM_THREADS", "2").output().expect("it can be run");
    assert!(output.status.success(), "{output:?}");
    let output = omptrace(["stats", trace.to_str().expect("UTF-8"), "--json"].iter());
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let lines = std::fs::read_to_string(root().join(source)).expect("a source");
    let barrier = lines.lines().position(|line| line.contains("/* between")).expect("a mark") as u64 + 1;
    // Not the finding, which there is none of where others take the CPUs.
    let blame = found["blame"].as_array().expect("a list").iter();
    let imbalance = blame.filter(|row| row["cause"] == "imbalance");
    let most = imbalance.max_by_key(|row| row["ns"].as_u64()).expect("imbalance");
    assert_eq!((&most["construct"], &most["line"]), (&"barrier".into(), &barrier.into()), "{most}");
}

/// Ways of `tests/programs/fine_work.c`, and the rules that find them.
const FINE_WORK: &[(&str, &str)] = &[
    ("tasks", "tasks_too_fine"),
    ("tree", "tasks_too_fine"),
    ("taskloop", "tasks_too_fine"),
    ("chunks", "chunk_too_small"),
    ("regions", "region_too_small"),
];

/// The first finding about a way of `tests/programs/fine_work.c`, and all of its answers.
fn first_of_fine_work(program: &Path, how: &str) -> (String, Value) {
    let traces = Traces::folder();
    let trace = traces.path().join("t.omptrace");
    let mut record = Command::new(omptrace_program());
    record.args(["record", "--quiet", "-o"]).arg(&trace).arg(program).arg(how);
    let output = record.env("OMP_NUM_THREADS", "2").output().expect("it can be run");
    assert!(output.status.success(), "{output:?}");
    let output = omptrace(["stats", trace.to_str().expect("UTF-8"), "--json"].iter());
    let answers: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = answers["findings"].as_array().expect("a list");
    // Here, the tracer does disturb.
    let first = findings.iter().find(|finding| finding["id"] != "tracer_disturbs");
    let first = first.map_or("nothing", |first| first["id"].as_str().expect("an id"));
    (first.to_owned(), answers)
}

/// Whatever cause the cost of fine work lands in, on both runtimes, the advice is to do more at once.
#[test]
fn fine_work_is_told_apart_from_too_few_tasks_and_imbalance() {
    for compiler in [Compiler::Clang22, Compiler::Gcc] {
        let program = compile("tests/programs/fine_work.c", compiler, &[]);
        for (how, rule) in FINE_WORK {
            // Where others take the CPUs in a run of some tens of milliseconds, that is the larger loss, and found first.
            let mut others = Vec::new();
            let is_first = (0..5).any(|_| {
                let (first, answers) = first_of_fine_work(&program, how);
                let is_first = first == *rule;
                if !is_first {
                    others.push(format!("{} {}", answers["cpu_note"], answers["findings"]));
                }
                is_first
            });
            assert!(is_first, "{compiler:?} {how}: {others:#?}");
        }
    }
}

/// Programs that want the processors and give nothing back. They end with the value.
struct Others(Vec<Child>);

impl Others {
    /// So many for each processor.
    fn begin(for_each: usize) -> Others {
        let processors = std::thread::available_parallelism().expect("a number").get();
        let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("it can be run");
        Others((0..for_each * processors).map(|_| busy()).collect())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Where others have the processors, that is what is said, and nobody is told to let threads spin there. Threads of GCC's runtime end
/// before the session does.
#[test]
fn a_busy_machine_is_named_and_not_the_program() {
    for compiler in [Compiler::Clang22, Compiler::Gcc] {
        let program = compile("tests/programs/even_loops.c", compiler, &[]);
        let traces = Traces::folder();
        let trace = traces.path().join("t.omptrace");
        let mut record = Command::new(omptrace_program());
        record.args(["record", "--quiet", "-o"]).arg(&trace).arg(&program).arg("100");
        let processors = std::thread::available_parallelism().expect("a number").get();
        let others = Others::begin(3);
        let output = record.env("OMP_NUM_THREADS", processors.to_string()).output().expect("it can be run");
        drop(others);
        assert!(output.status.success(), "{output:?}");
        let output = omptrace(["stats", trace.to_str().expect("UTF-8"), "--json"].iter());
        let answers: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(answers["cpu_note"].is_string(), "{compiler:?}: {answers}");
        let findings = answers["findings"].to_string();
        assert!(!findings.contains("OMP_WAIT_POLICY=active"), "{compiler:?}: {findings}");
    }
}

#[test]
fn a_program_without_a_fault_has_no_finding() {
    let answers = answers(&["clean"]);
    assert_eq!(answers["findings"], serde_json::json!([]));
}

/// An efficiency of the only region, in units of its closed form.
fn by_closed_form(fault: &str, threads: u64, name: &str, expected: f64) -> f64 {
    let answers = answers_of("tests/programs/planted.c", &[fault, "faulty", "5"], threads);
    let region = &answers["regions"][0];
    let share = region["efficiency"][name].as_f64();
    share.unwrap_or_else(|| panic!("no {name} in {region}")) / expected
}

/// Thread i works 1 + 2i units: load balance is n / (2n - 1). Where all work is ordered, serialisation is 1 / n.
#[test]
fn efficiencies_of_real_programs_have_their_closed_forms() {
    for threads in [2, 4] {
        let n = threads as f64;
        for (fault, name, expected) in
            [("imbalance", "load_balance", n / (2.0 * n - 1.0)), ("ordered", "serialisation", 1.0 / n)]
        {
            // A busy machine makes single sleeps longer, and then the run is unlike its closed form.
            let mut shares = Vec::new();
            let is_near = (0..5).any(|_| {
                let share = by_closed_form(fault, threads, name, expected);
                shares.push(share);
                (0.85..1.15).contains(&share)
            });
            let words = format!("{fault} on {threads} threads: {shares:?} of the closed form");
            assert!(is_near, "{words}");
        }
    }
}

/// Eight tasks of 1 to 8 units. List scheduling in this order takes 36, 20, 12 and 8 units on 1, 2, 4 and 8 threads.
///
/// The runtime decides which thread runs which task. It cannot take less than 36 units by the number of threads. Each thread of
/// another number may take as much more as the runtime did.
#[test]
fn tasks_are_predicted_for_other_numbers_of_threads() {
    const UNIT_NS: f64 = 50e6;
    for threads in [2_u64, 4] {
        // A thread that was kept from its processor for long makes the run unlike its model, which says so.
        let mut tries = (0..5).map(|_| answers_of("tests/programs/scalable.c", &["eight"], threads));
        let is_predicted = |answers: &Value| answers["other_threads"][0].is_object();
        let answers = tries.find(is_predicted).expect("a prediction in one of five runs");
        let region = &answers["task_regions"][0];
        let of = |name: &str| region[name].as_f64().unwrap_or_else(|| panic!("no {name} in {region}"));
        assert_eq!(of("tasks"), 8.0, "{region}");
        assert!(of("work_ns") >= 36.0 * UNIT_NS && of("span_ns") >= 8.0 * UNIT_NS, "{region}");
        let recorded = answers["duration_ns"].as_f64().expect("a time");
        let more = recorded - 36.0 / threads as f64 * UNIT_NS;
        assert!(more >= 0.0, "{recorded} ns");
        let rows = answers["other_threads"].as_array().expect("rows");
        assert_eq!(rows.len() as u64, 2 * threads, "{rows:?}");
        for (on, units) in [(1, 36.0), (2, 20.0), (4, 12.0), (8, 8.0)] {
            let Some(row) = rows.iter().find(|row| row["threads"] == on) else {
                assert!(on > 2 * threads, "{on} threads: {rows:?}");
                continue;
            };
            let predicted = row["duration_ns"].as_f64().expect("a time");
            let (least, most) = (0.85 * units * UNIT_NS, units * UNIT_NS + threads as f64 * more);
            assert!(
                (least..=most).contains(&predicted),
                "from {threads} to {on} threads: {row}, {least} to {most}"
            );
        }
    }
}
