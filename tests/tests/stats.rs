//! What `omptrace stats` says of programs that measure themselves, and of traces of runtimes that report less than others.

use std::process::Command;

use omptrace_tests::env::{
    Compiler, OPENMP_45, RUNTIMES, RUNTIMES_OF_TR6, compile, program_on, runtime,
};
use omptrace_tests::trace::{Traces, accounts_add_up, info, omptrace};
use omptrace_timeline::sink::split_place;
use serde_json::Value;

/// A trace's numbers, and what its program printed.
struct Told {
    stats: Value,
    text: String,
    info: Value,
    truth: Vec<u64>,
}

/// Traces a program, whose runtime loads the tracer, and adds up.
fn told(command: &mut Command) -> Told {
    let traces = Traces::folder();
    let printed = traces.record(command);
    let trace = traces.only();
    let run = |options: &[&str]| {
        let trace = trace.to_str().expect("UTF-8");
        let output = omptrace(["stats", trace].iter().chain(options));
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    Told {
        stats: serde_json::from_slice(&run(&["--json"])).expect("JSON"),
        text: String::from_utf8(run(&[])).expect("UTF-8"),
        info: info(&trace),
        truth: printed
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect(),
    }
}

fn accounts(what: &str) -> Told {
    let program = compile("tests/programs/accounts.c", Compiler::Clang22, &[]);
    let told = told(Command::new(program).arg(what));
    adds_up(&told.stats);
    told
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

/// What a thread does adds up to the time of its process, to the nanosecond.
fn adds_up(stats: &Value) {
    accounts_add_up(stats).unwrap_or_else(|fault| panic!("{fault}"));
    for thread in list(stats, "threads") {
        assert_eq!(
            ns(thread, "duration_ns"),
            ns(stats, "duration_ns"),
            "{thread}"
        );
    }
}

/// The process is seen from its start, which is known to a tick of 10 ms, to its end.
#[test]
fn serial_time_before_the_first_region_and_after_the_last_is_told() {
    let Told {
        stats,
        text,
        info,
        truth,
    } = accounts("serial");
    let process = &list(&stats, "processes")[0];
    assert!(ns(process, "serial_before_ns") >= truth[0], "{process}");
    assert!(ns(process, "serial_after_ns") >= truth[1], "{process}");
    let main = &list(&stats, "threads")[0];
    assert_eq!(ns(main, "serial_ns"), ns(process, "serial_ns"));
    assert!(ns(process, "before_tracing_ns") <= ns(&stats, "duration_ns"));
    assert!(text.contains("from start to end of the process"), "{text}");
    assert!(text.contains(" before the first parallel region"), "{text}");
    assert_eq!(info["duration_ns"], stats["duration_ns"]);
    assert!(ns(&info["serial"], "before_ns") >= truth[0], "{info}");
}

#[test]
fn a_parallel_region_waits_as_long_as_its_members() {
    let Told { stats, truth, .. } = accounts("masked");
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
fn loops_tell_their_schedule_and_chunks() {
    let Told { stats, text, .. } = accounts("dynamic");
    let loops: Vec<&Value> = list(&stats, "constructs")
        .iter()
        .filter(|construct| construct["schedule"].is_string())
        .collect();
    let of = |schedule: &str| {
        *loops
            .iter()
            .find(|l| l["schedule"] == schedule)
            .expect(schedule)
    };
    let dynamic = of("dynamic");
    assert_eq!(ns(dynamic, "chunks"), 2000);
    assert_eq!(ns(dynamic, "iterations"), 10_000);
    assert_eq!(dynamic["iterations_per_chunk"], 5.0);
    // A thread that came too late for any has no part in it.
    assert!(ns(dynamic, "chunks_ns") <= ns(dynamic, "total_ns"));
    assert_eq!(
        ns(dynamic, "chunk_mean_ns"),
        ns(dynamic, "chunks_ns") / 2000
    );
    assert!(of("static")["chunks"].is_null());
    assert!(!text.contains("dispatch"), "{text}");
    assert!(
        text.contains("schedule dynamic, 2,000 chunks of 5 iterations, "),
        "{text}"
    );
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn nested_regions_add_up() {
    let Told { stats, truth, .. } = accounts("nested");
    let threads = list(&stats, "threads");
    assert!(threads.len() >= 4, "{stats}");
    // However many regions it is in, a thread's time counts once.
    assert!(ns(&threads[0], "parallel_ns") <= truth[0], "{stats}");
    assert!(ns(&threads[0], "wake_up_ns") > 0, "{stats}");
}

#[test]
fn locks_tell_where_they_were_made_and_who_waited() {
    let Told {
        stats, text, truth, ..
    } = accounts("locks");
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
    let place = first["place"].as_str().expect("a place");
    assert!(place.starts_with("omp_init_lock @accounts.c:"), "{place}");
    assert_ne!(first["place"], second["place"]);
    let test = construct(&stats, "omp_test_lock @");
    assert_eq!(ns(test, "waiting_ns"), 0, "{test}");
    assert!(text.contains("L0 0x") && text.contains("not got"), "{text}");
}

/// Nothing that the runtime does for itself is the program's.
#[test]
fn hidden_helpers_stand_apart() {
    let flags = ["-fopenmp-targets=x86_64-pc-linux-gnu"];
    let program = compile("tests/programs/target_nowait.c", Compiler::Clang22, &flags);
    let Told { stats, text, .. } = told(&mut Command::new(program));
    adds_up(&stats);
    let threads = list(&stats, "threads");
    let helpers: Vec<&Value> = threads.iter().filter(|t| t["role"] == "helper").collect();
    assert!(!helpers.is_empty(), "{stats}");
    let tasks: u64 = helpers.iter().map(|helper| ns(helper, "tasks")).sum();
    assert!(tasks > 0, "{helpers:?}");
    for helper in helpers {
        // It waits for work all the time that it has no task.
        assert_eq!(ns(helper, "barriers_ns"), 0, "{helper}");
        assert!(
            ns(helper, "tasks") > 0 || ns(helper, "working_ns") == 0,
            "{helper}"
        );
    }
    let main = threads.iter().find(|thread| thread["role"] == "main");
    assert!(ns(main.expect("main"), "serial_ns") > 0);
    assert!(text.contains("the runtime's own"), "{text}");
    let regions = list(&stats, "constructs").iter();
    let of_runtime = regions
        .filter(|construct| construct["category"] == "parallel" && construct["line"].is_null());
    assert_eq!(of_runtime.count(), 0, "{stats}");
}

/// Runtimes of TR6 report idle threads, which do not wait at a barrier.
#[test]
fn threads_are_idle_after_the_last_region_and_at_no_barrier() {
    for name in RUNTIMES_OF_TR6 {
        let Told { stats, truth, .. } = told(&mut program_on(name, "accounts.c", &["serial"]));
        adds_up(&stats);
        let threads = list(&stats, "threads");
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

/// What `stats` counts under that name.
fn counted(stats: &Value, name: &str) -> u64 {
    let Some((_, construct)) = COUNTED.iter().find(|(counted, _)| *counted == name) else {
        let threads = list(stats, "threads").iter();
        return threads.map(|thread| ns(thread, "tasks")).sum();
    };
    let constructs = list(stats, "constructs").iter();
    let of_kind =
        constructs.filter(|row| split_place(row["name"].as_str().unwrap()).0 == *construct);
    of_kind.map(|row| ns(row, "count")).sum()
}

/// Loops of each schedule, collapsed, ordered and doacross, sections, single, masked, regions in regions in regions,
/// reductions of taskgroups and taskloops, detached and cancelled tasks, scans.
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
            let output = omptrace(["stats", "--json", trace]);
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

/// What a thread did before the first event that is left is not known, and no work.
#[test]
fn a_flight_recorder_knows_its_last_moments_only() {
    let program = compile("tests/programs/structure.c", Compiler::Clang22, &[]);
    let Told { stats, text, .. } = told(
        Command::new(program)
            .args(["2", "500", "20"])
            .env("OMPTRACE_MODE", "flight")
            .env("OMPTRACE_BUFFER", "512K"),
    );
    adds_up(&stats);
    let main = &list(&stats, "threads")[0];
    assert!(ns(main, "unknown_ns") > ns(main, "parallel_ns"), "{main}");
    let process = &list(&stats, "processes")[0];
    assert!(process["serial_before_ns"].is_null(), "{process}");
    assert!(text.contains("older events were overwritten"), "{text}");
    assert!(text.contains("not known: what threads did"), "{text}");
}
