//! The output of `omptrace stats` for programs that measure themselves, and for traces of runtimes that report less than
//! others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_tests::env::{
    Compiler, OPENMP_45, RUNTIMES, RUNTIMES_OF_TR6, compile, libgomp_adapter, program_on, runtime,
};
use omptrace_tests::trace::{Traces, accounts_add_up, info, omptrace};
use omptrace_timeline::model::split_place;
use serde_json::Value;

/// A trace's numbers, and what its program printed.
struct Recorded {
    stats: Value,
    text: String,
    info: Value,
    truth: Vec<u64>,
}

/// Traces a program, whose runtime loads the tracer, and adds up.
fn recorded_stats(command: &mut Command) -> Recorded {
    let traces = Traces::folder();
    let printed = traces.record(command);
    let trace = traces.only();
    let run = |options: &[&str]| {
        let trace = trace.to_str().expect("UTF-8");
        let output = omptrace(["stats", trace].iter().chain(options));
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    Recorded {
        stats: serde_json::from_slice(&run(&["--json", "--all"])).expect("JSON"),
        text: String::from_utf8(run(&["--full"])).expect("UTF-8"),
        info: info(&trace),
        truth: printed.split_whitespace().filter_map(|word| word.parse().ok()).collect(),
    }
}

fn accounts(what: &str) -> Recorded {
    let program = compile("tests/programs/accounts.c", Compiler::Clang22, &[]);
    let recorded = recorded_stats(Command::new(program).arg(what));
    adds_up(&recorded.stats);
    recorded
}

fn ns(of: &Value, what: &str) -> u64 {
    let number = of[what].as_u64();
    number.unwrap_or_else(|| panic!("{what} in {of}"))
}

fn list<'v>(of: &'v Value, what: &str) -> &'v [Value] {
    of[what].as_array().expect("a list")
}

/// The construct whose name begins so.
fn construct<'v>(stats: &'v Value, name: &str) -> &'v Value {
    let is_it = |construct: &&Value| construct["name"].as_str().unwrap().starts_with(name);
    let found = list(stats, "constructs").iter().find(is_it);
    found.unwrap_or_else(|| panic!("{name} in {stats}"))
}

/// The states of a thread add up to the time of its process, to the nanosecond.
fn adds_up(stats: &Value) {
    accounts_add_up(stats).unwrap_or_else(|fault| panic!("{fault}"));
    for thread in list(stats, "per_thread") {
        assert_eq!(ns(thread, "duration_ns"), ns(stats, "duration_ns"), "{thread}");
    }
}

/// The process is seen from its start, which is known to a tick of 10 ms, to its end.
#[test]
fn serial_time_before_the_first_region_and_after_the_last_is_reported() {
    let Recorded { stats, text, info, truth } = accounts("serial");
    let process = &list(&stats, "processes")[0];
    assert!(ns(process, "serial_before_ns") >= truth[0], "{process}");
    assert!(ns(process, "serial_after_ns") >= truth[1], "{process}");
    let main = &list(&stats, "per_thread")[0];
    assert_eq!(ns(main, "serial_ns"), ns(process, "serial_ns"));
    assert!(ns(process, "before_tracing_ns") <= ns(&stats, "duration_ns"));
    assert!(text.contains("from start to end of the process"), "{text}");
    assert!(text.contains(" before the first parallel region"), "{text}");
    assert_eq!(info["duration_ns"], stats["duration_ns"]);
    assert!(ns(&info["serial"], "before_ns") >= truth[0], "{info}");
}

#[test]
fn a_parallel_region_waits_as_long_as_its_members() {
    let Recorded { stats, truth, .. } = accounts("masked");
    let region = construct(&stats, "!$omp parallel @");
    let (regions, waits) = (truth[0], truth[1]);
    // What a thread is kept from the processor for between a clock and the event counts at one of them only.
    assert!(ns(region, "members_waiting_ns") >= waits / 2, "{region}");
    assert!(ns(region, "members_ns") <= 2 * regions, "{region}");
    let share = |part: &str, whole: &str| ns(region, part) as f64 / ns(region, whole) as f64;
    let of_members = share("members_waiting_ns", "members_ns");
    assert!((share("waiting_ns", "total_ns") - of_members).abs() < 1e-6);
    // One of two threads waits while the other does two thirds of the region.
    assert!((0.2..0.8).contains(&of_members), "{region}");
}

#[test]
fn loops_report_their_schedule_and_chunks() {
    let Recorded { stats, text, .. } = accounts("dynamic");
    let loops: Vec<&Value> =
        list(&stats, "constructs").iter().filter(|construct| construct["schedule"].is_string()).collect();
    let of = |schedule: &str| *loops.iter().find(|l| l["schedule"] == schedule).expect(schedule);
    let dynamic = of("dynamic");
    assert_eq!(ns(dynamic, "chunks"), 2000);
    assert_eq!(ns(dynamic, "iterations"), 10_000);
    assert_eq!(dynamic["iterations_per_chunk"], 5.0);
    // A thread that came too late for any has no part in it.
    assert!(ns(dynamic, "chunks_ns") <= ns(dynamic, "total_ns"));
    assert_eq!(ns(dynamic, "chunk_mean_ns"), ns(dynamic, "chunks_ns") / 2000);
    assert!(of("static")["chunks"].is_null());
    assert!(!text.contains("dispatch"), "{text}");
    assert!(text.contains("schedule dynamic, 2,000 chunks of 5 iterations, "), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn nested_regions_add_up() {
    let Recorded { stats, truth, .. } = accounts("nested");
    let threads = list(&stats, "per_thread");
    assert!(threads.len() >= 4, "{stats}");
    // However many regions it is in, a thread's time counts once.
    assert!(ns(&threads[0], "parallel_ns") <= truth[0], "{stats}");
    assert!(ns(&threads[0], "wake_up_ns") > 0, "{stats}");
}

#[test]
fn locks_report_where_they_were_made_and_who_waited() {
    let Recorded { stats, text, truth, .. } = accounts("locks");
    let locks = list(&stats, "locks");
    let numbered = |number: u64| {
        let found = locks.iter().find(|lock| lock["number"] == number);
        found.unwrap_or_else(|| panic!("lock {number} in {locks:?}"))
    };
    let (first, second) = (numbered(0), numbered(1));
    assert_eq!(ns(first, "acquisitions"), truth[0]);
    assert_eq!(ns(first, "failures"), truth[1]);
    assert_eq!(ns(second, "acquisitions"), 100);
    assert!(ns(second, "waits") <= 100);
    assert_eq!(ns(first, "count"), truth[0]);
    let place = &first["place"];
    assert_eq!((&place["construct"], &place["position"]), (&"omp_init_lock".into(), &"at".into()));
    let file = place["file"].as_str().expect("a file");
    assert!(file.ends_with("/accounts.c"), "{place}");
    assert_ne!(first["place"], second["place"]);
    let test = construct(&stats, "omp_test_lock @");
    assert_eq!(ns(test, "waiting_ns"), 0, "{test}");
    assert!(text.contains("L0 0x") && text.contains("not got"), "{text}");
}

/// The causes that the program of `measures_itself.c` measures, and those of ours that they are. It does not know how long it waits
/// for tasks apart from members that are late.
const MEASURED: [(&str, &[&str]); 7] = [
    ("useful", &["useful_ns"]),
    ("serial", &["serial_ns"]),
    ("narrow_team", &["narrow_team_ns"]),
    ("critical", &["critical_ns"]),
    ("lock", &["lock_ns"]),
    ("ordered", &["ordered_ns"]),
    ("imbalance and tasks", &["imbalance_ns", "task_starvation_ns", "task_wait_ns"]),
];

/// The greatest difference between what a program measures itself and what `stats` says of it, as a share of all its
/// threads' time.
fn difference(program: &Path, threads: u64, preload: Option<PathBuf>) -> (f64, String) {
    let traces = Traces::folder();
    let mut command = Command::new(program);
    let printed = traces.record(
        command.args([&threads.to_string(), "20"]).envs(preload.map(|library| ("LD_PRELOAD", library))),
    );
    let lines = printed.lines().filter_map(|line| line.split_once(' '));
    let mut truth: BTreeMap<&str, i64> =
        lines.map(|(cause, ns)| (cause, ns.parse().expect("nanoseconds"))).collect();
    truth.insert("imbalance and tasks", truth["imbalance"] + truth["tasks"]);
    let trace = traces.only();
    let output = omptrace(["stats".as_ref(), trace.as_os_str(), "--json".as_ref()]);
    let stats: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    accounts_add_up(&stats).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(ns(&stats, "threads"), threads, "{stats}");
    // The program measures from its first region to its last.
    let process = &list(&stats, "processes")[0];
    let around = ns(process, "serial_before_ns") + ns(process, "serial_after_ns");
    let mut greatest = (0.0, String::new());
    for (cause, ours) in MEASURED {
        let accounting = &stats["accounting"];
        let sum: u64 = ours.iter().map(|ours| ns(accounting, ours)).sum();
        let sum = match cause {
            "useful" => sum - around,
            "serial" => sum - around * (threads - 1),
            _ => sum,
        };
        let share = truth[cause].abs_diff(sum as i64) as f64 / truth["total"] as f64;
        if share > greatest.0 {
            let words = format!("{cause}: {} measured, {sum} in {stats}", truth[cause]);
            greatest = (share, words);
        }
    }
    greatest
}

/// Useful time and each loss are those that the program measures by its own clock, within 2 % of all its threads' time.
///
/// A thread may lose its processor between the program's clock and the event: then one of both counts that time. So the best of a
/// few runs shows the tracer's own error.
#[test]
fn useful_and_lost_time_are_what_a_program_measures_itself() {
    for (compiler, preload) in [(Compiler::Clang22, None), (Compiler::Gcc, Some(libgomp_adapter()))] {
        let program = compile("tests/programs/measures_itself.c", compiler, &[]);
        for threads in [2, 4, 8] {
            let mut tries = (0..4).map(|_| difference(&program, threads, preload.clone()));
            let mut last = tries.next().expect("a try");
            while last.0 >= 0.02
                && let Some(next) = tries.next()
            {
                last = next;
            }
            assert!(last.0 < 0.02, "{threads} threads, {compiler:?}: {}", last.1);
        }
    }
}

/// Nothing that the runtime does for itself is the program's.
#[test]
fn hidden_helpers_stand_apart() {
    let flags = ["-fopenmp-targets=x86_64-pc-linux-gnu"];
    let program = compile("tests/programs/target_nowait.c", Compiler::Clang22, &flags);
    let Recorded { stats, text, .. } = recorded_stats(&mut Command::new(program));
    adds_up(&stats);
    let threads = list(&stats, "per_thread");
    let helpers: Vec<&Value> = threads.iter().filter(|t| t["role"] == "helper").collect();
    assert!(!helpers.is_empty(), "{stats}");
    let tasks: u64 = helpers.iter().map(|helper| ns(helper, "tasks")).sum();
    assert!(tasks > 0, "{helpers:?}");
    for helper in helpers {
        // It waits for work all the time that it has no task.
        assert_eq!(ns(helper, "barriers_ns"), 0, "{helper}");
        assert!(ns(helper, "tasks") > 0 || ns(helper, "working_ns") == 0, "{helper}");
    }
    let main = threads.iter().find(|thread| thread["role"] == "main");
    assert!(ns(main.expect("main"), "serial_ns") > 0);
    assert!(text.contains("the runtime's own"), "{text}");
    let regions = list(&stats, "constructs").iter();
    let of_runtime =
        regions.filter(|construct| construct["category"] == "parallel" && construct["line"].is_null());
    assert_eq!(of_runtime.count(), 0, "{stats}");
}

/// Runtimes of TR6 report idle threads, which do not wait at a barrier.
#[test]
fn threads_are_idle_after_the_last_region_and_at_no_barrier() {
    for name in RUNTIMES_OF_TR6 {
        let Recorded { stats, truth, .. } = recorded_stats(&mut program_on(name, "accounts.c", &["serial"]));
        adds_up(&stats);
        let threads = list(&stats, "per_thread");
        let worker = threads.iter().find(|thread| thread["role"] == "worker");
        let worker = worker.expect("a worker");
        assert!(ns(worker, "idle_ns") >= truth[1], "{name}: {worker}");
        let region = construct(&stats, "!$omp parallel @");
        let in_region = ns(worker, "parallel_ns");
        assert!(in_region <= ns(region, "total_ns"), "{name}: {worker}");
    }
}

/// The constructs of `stats` that the program of closed forms counts, by their names without places.
const COUNTED: [(&str, &str); 10] = [
    ("regions", "!$omp parallel"),
    ("loops", "!$omp for"),
    ("sections", "!$omp sections"),
    ("singles", "!$omp single"),
    ("masked", "!$omp masked"),
    ("criticals", "!$omp critical"),
    ("ordered", "!$omp ordered"),
    ("taskgroups", "!$omp taskgroup"),
    ("taskloops", "!$omp taskloop"),
    ("taskwaits", "!$omp taskwait"),
];

/// The count of `stats` under that name.
fn counted(stats: &Value, name: &str) -> u64 {
    let Some((_, construct)) = COUNTED.iter().find(|(counted, _)| *counted == name) else {
        let threads = list(stats, "per_thread").iter();
        return threads.map(|thread| ns(thread, "tasks")).sum();
    };
    let constructs = list(stats, "constructs").iter();
    let of_kind = constructs.filter(|row| split_place(row["name"].as_str().unwrap()).0 == *construct);
    of_kind.map(|row| ns(row, "count")).sum()
}

/// The program's groups: loops of each schedule, collapsed, ordered and doacross; sections, single, masked; regions in
/// regions in regions. And reductions of taskgroups and taskloops, detached and cancelled tasks, scans.
#[test]
fn constructs_are_as_many_as_the_program_counts_on_every_runtime() {
    let of_tr6 = RUNTIMES_OF_TR6.iter().map(|name| (name, true));
    for (name, is_old) in RUNTIMES.iter().map(|name| (name, false)).chain(of_tr6) {
        let flags: &[&str] = if is_old { &[OPENMP_45] } else { &[] };
        let program = compile(
            "tests/programs/closed_forms.c",
            Compiler::Clang14,
            &[&["-fopenmp-version=51"], flags].concat(),
        );
        for group in 0..if is_old { 6 } else { 8 } {
            let traces = Traces::folder();
            let mut command = Command::new(&program);
            let printed = traces.record(
                command
                    .arg(group.to_string())
                    .env("OMP_CANCELLATION", "true")
                    .env("OMP_NESTED", "true")
                    .env("KMP_WARNINGS", "0")
                    .env("LD_LIBRARY_PATH", runtime(name)),
            );
            let trace = traces.only();
            let trace = trace.to_str().expect("UTF-8");
            let output = omptrace(["stats", "--json", "--all", trace]);
            let stats: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            adds_up(&stats);
            for line in printed.lines() {
                let (what, own) = line.split_once(' ').expect("a name and a number");
                let found = counted(&stats, what).to_string();
                assert_eq!(found, own, "{name}, group {group}: {what} in {stats}");
            }
            let check = omptrace(["check", trace]);
            assert!(check.status.success(), "{name}, group {group}: {check:?}");
        }
    }
}

/// The state of a thread before the first event that is left is not known, and no work.
#[test]
fn a_flight_recorder_knows_its_last_moments_only() {
    let program = compile("tests/programs/structure.c", Compiler::Clang22, &[]);
    let Recorded { stats, text, .. } = recorded_stats(
        Command::new(program)
            .args(["2", "500", "20"])
            .env("OMPTRACE_MODE", "flight")
            .env("OMPTRACE_BUFFER", "512K"),
    );
    adds_up(&stats);
    let main = &list(&stats, "per_thread")[0];
    assert!(ns(main, "unknown_ns") > ns(main, "parallel_ns"), "{main}");
    let process = &list(&stats, "processes")[0];
    assert!(process["serial_before_ns"].is_null(), "{process}");
    assert!(text.contains("older events were overwritten"), "{text}");
    assert!(text.contains("not known: the activity of threads"), "{text}");
}
