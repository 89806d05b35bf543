//! Counters of real programs: what threads count, when others have their processors, and why a counter is missing.

use std::process::{Command, Output};

use omptrace_tests::env::{Compiler, compile};
use omptrace_tests::trace::{Traces, count, dump, omptrace};
use serde_json::Value;

const MILLISECONDS: u64 = 100;
const PAGES: u64 = 1000;

/// Runs `counters.c` with what `prepare` asks for; its trace, and what it printed.
fn run(prepare: impl Fn(&mut Command)) -> (Traces, Output) {
    let program = compile("tests/programs/counters.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let mut command = Command::new(program);
    command.args([MILLISECONDS.to_string(), PAGES.to_string()]);
    prepare(traces.trace(&mut command));
    let output = command.output().expect("the program can be run");
    assert!(output.status.success(), "{output:?}");
    (traces, output)
}

fn stats(traces: &Traces, options: &[&str]) -> Value {
    let trace = traces.only();
    let trace = trace.to_str().expect("UTF-8");
    let output = omptrace(["stats", "--json", trace].iter().chain(options));
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The sum of a counter over all constructs.
fn sum(stats: &Value, counter: &str) -> u64 {
    let rows = stats["counters"].as_array().expect("rows").iter();
    rows.filter_map(|row| row["counters"][counter].as_u64()).sum()
}

#[test]
fn a_thread_is_preempted_where_another_has_its_processor() {
    let (traces, output) = run(|command| _ = command.env("OMPTRACE_CPU_TIME", "1"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let worked = said.lines().map(|line| {
        let ns = line.strip_prefix("worked ").expect("its words");
        ns.parse::<u64>().expect("a number")
    });
    let worked: Vec<u64> = worked.collect();
    assert_eq!(worked.len(), 2);

    let stats = stats(&traces, &[]);
    let accounting = &stats["accounting"];
    // The one that ended last has waited as long as the other one worked, but for the time of a clock's reading.
    let preempted = accounting["preempted_ns"].as_u64().expect("a number");
    assert!(preempted > MILLISECONDS * 900_000, "{accounting}");
    // Nobody worked while another one had the processor.
    let [useful, total] = ["useful_ns", "total_ns"].map(|name| accounting[name].as_u64());
    let worked_ns: u64 = worked.iter().sum();
    assert!(useful >= Some(worked_ns / 100 * 99), "{accounting}");
    let causes = accounting.as_object().expect("sums").iter();
    let causes = causes.filter(|(name, _)| *name != "total_ns");
    assert_eq!(total, causes.map(|(_, ns)| ns.as_u64()).sum::<Option<u64>>());
    let mut not_seen = stats["not_seen"].as_array().expect("a list").iter();
    assert!(not_seen.all(|of| of["cause"] != "preempted"), "{stats}");
    assert!(sum(&stats, "task-clock") >= worked_ns, "{stats}");
}

#[test]
fn without_counters_nothing_is_said_of_preemption() {
    let (traces, _) = run(|_| {});
    let events = dump(&traces.only());
    assert_eq!(count(&events, "omptrace_counters"), 0);
    let stats = stats(&traces, &[]);
    let mut not_seen = stats["not_seen"].as_array().expect("a list").iter();
    assert!(not_seen.any(|of| of["cause"] == "preempted"), "{stats}");
    assert_eq!(stats["counters"], Value::Array(Vec::new()));
}

#[test]
fn processor_time_and_the_cost_of_an_event_are_there_without_being_asked_for() {
    let (traces, output) = run(|_| {});
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let worked = said.lines().filter_map(|line| line.strip_prefix("worked ")?.parse::<u64>().ok());
    let worked: u64 = worked.sum();
    let stats = stats(&traces, &[]);
    let threads = stats["per_thread"].as_array().expect("threads").iter();
    let threads: Vec<u64> = threads.map(|thread| thread["cpu_ns"].as_u64().expect("its time")).collect();
    let of_threads: u64 = threads.iter().sum();
    let process = &stats["processes"][0];
    let of_process = process["cpu_ns"].as_u64().expect("its time");
    assert!(worked <= of_threads, "{worked} {threads:?}");
    // The process has the tracer's writer, too. Its clock is read last.
    assert!(of_threads <= of_process, "{threads:?} {of_process}");
    let duration = stats["duration_ns"].as_u64().expect("a time");
    assert!(threads.iter().all(|ns| *ns <= duration), "{threads:?} {duration}");
    let cost = process["event_cost_ns"].as_f64().expect("a cost");
    assert!(cost > 0.1 && cost < 100_000.0, "{cost}");
}

#[test]
fn pages_that_a_region_touches_are_faults_in_it() {
    let (traces, _) = run(|command| _ = command.env("OMPTRACE_COUNTERS", "page-faults"));
    let stats = stats(&traces, &["--by", "counter"]);
    let rows = stats["counters"].as_array().expect("rows").iter();
    let most = rows.filter_map(|row| row["counters"]["page-faults"].as_u64());
    assert!(most.max() >= Some(PAGES), "{stats}");
}

#[test]
fn the_processors_counters_have_values_or_a_reason() {
    let asked = "cycles,instructions,task-clock";
    let (traces, output) = run(|command| _ = command.env("OMPTRACE_COUNTERS", asked));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let stats = stats(&traces, &["--by", "counter"]);
    let reasons = stats["not_counted"].to_string();
    for counter in ["cycles", "instructions"] {
        let is_there = sum(&stats, counter) > 0;
        assert_eq!(words.contains(counter), !is_there, "{words}{stats}");
        assert_eq!(reasons.contains(counter), !is_there, "{stats}");
    }
    // Work for 0.1 s is more than 12,000 instructions.
    let rows = stats["counters"].as_array().expect("rows").iter();
    let mut ratios = rows.filter_map(|row| row["ipc"].as_f64());
    let has_both = ["cycles", "instructions"].map(|counter| sum(&stats, counter) > 0) == [true; 2];
    assert_eq!(ratios.next().is_some(), has_both, "{stats}");
    assert!(ratios.all(|ipc| (0.01..10.0).contains(&ipc)), "{stats}");

    let trace = traces.only();
    let info = omptrace(["info", trace.to_str().expect("UTF-8")]);
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("counters          task-clock") || has_both, "{info}");
}
