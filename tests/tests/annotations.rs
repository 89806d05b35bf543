//! What programs say of themselves, by real clients and by a generated program that prints its own truth.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use omptrace_analysis::answers::{Accounting, Cause};
use omptrace_analysis::{Options, Stats};
use omptrace_tests::env::{
    Compiler, annotation_clients, compile, omptrace_program, program_on, python, python_package, root,
    runtime, talp_pages, tool_library,
};
use omptrace_tests::trace::{Traces, count, dump, omptrace};
use omptrace_tests::windows::agree;
use omptrace_trace_format::Reader;
use serde_json::Value;

const SOURCE: &str = "tests/programs/annotations.c";

fn generated() -> PathBuf {
    compile(SOURCE, Compiler::Gcc, &["-pthread", "-ldl"])
}

/// Runs a command by `record` with these options.
fn recorded(traces: &Traces, options: &[&str], command: &[&str]) -> Output {
    let mut record = Command::new(omptrace_program());
    record.args(["record", "--quiet", "-o"]).arg(traces.path().join("%p.omptrace")).args(options);
    record.arg("--").args(command).env("PYTHONPATH", annotation_clients());
    record.output().expect("the program can be run")
}

/// A number of 64 bits, which JSON may have as a text.
fn word(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How often ranges ended, and the sum of their payloads, by interface, domain and name.
type Truth = BTreeMap<(String, String, String), (i64, i64)>;

fn truth(printed: &str) -> Truth {
    let mut truth = Truth::new();
    for line in printed.lines() {
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().unwrap_or_default().to_owned();
        let (way, domain) = (word(), word());
        let (count, sum) = (word().parse::<i64>().expect(line), word().parse::<i64>().expect(line));
        // All three ways of NVTX are one interface; without a domain there is none.
        let (source, domain) = match &*way {
            "nvtx" | "process" => ("nvtx".to_owned(), domain),
            "text" => ("nvtx".to_owned(), String::new()),
            "kokkos" => (way, String::new()),
            _ => (way, domain),
        };
        let known = truth.entry((source, domain, word())).or_default();
        known.0 += count;
        known.1 += sum;
    }
    truth
}

/// The same of a trace: each end belongs to the newest begin of its stack.
fn found(trace: &Path) -> Truth {
    let events = dump(trace);
    let mut texts: BTreeMap<u64, String> = BTreeMap::new();
    let is_text = |event: &&Value| event["event"] == "omptrace_object_defined" && event["kind"] != "category";
    for event in events.iter().filter(is_text) {
        let handle = event["handle"].as_str().expect("an address").trim_start_matches("0x");
        let handle = u64::from_str_radix(handle, 16).expect("an address");
        texts.insert(handle, event["name"].as_str().unwrap_or_default().to_owned());
    }
    let name = |event: &Value, key: &str| match event[key].as_u64() {
        Some(0) | None => String::new(),
        Some(number) => {
            texts.get(&number).cloned().unwrap_or_else(|| format!("text {number} is not defined"))
        }
    };
    let mut open: BTreeMap<(String, String), Vec<&Value>> = BTreeMap::new();
    let mut truth = Truth::new();
    for event in &events {
        let stack = || {
            let is_of_process = event["kind"] == "process";
            let thread = if is_of_process { String::new() } else { event["stream"].to_string() };
            let of =
                format!("{} {} {} {}", event["source"], event["domain"], event["kind"], event["instance"]);
            (thread, of)
        };
        if event["event"] == "omptrace_annotation_begin" {
            open.entry(stack()).or_default().push(event);
        } else if event["event"] == "omptrace_annotation_end"
            && let Some(begin) = open.get_mut(&stack()).and_then(Vec::pop)
        {
            let source = begin["source"].as_str().unwrap_or_default().to_owned();
            let known = truth.entry((source, name(begin, "domain"), name(begin, "name"))).or_default();
            known.0 += 1;
            let is_payload_counted = begin["kind"] == "range" && begin["payload_type"] == "int64";
            known.1 += if is_payload_counted { begin["payload"].as_i64().unwrap_or(0) } else { 0 };
        }
    }
    truth
}

/// How often each phase began, as `stats` has it.
fn phases(trace: &Path) -> BTreeMap<String, i64> {
    let stats = omptrace(["stats".as_ref(), "--json".as_ref(), trace.as_os_str()]);
    assert!(stats.status.success(), "{}", text(&stats.stderr));
    let stats: Value = serde_json::from_slice(&stats.stdout).expect("JSON");
    let mut counts = BTreeMap::new();
    for range in stats["ranges"].as_array().expect("a tree") {
        let name = range["name"].as_str().expect("a name").to_owned();
        *counts.entry(name).or_default() += range["count"].as_i64().expect("a number");
    }
    counts
}

fn assert_is_told(seed: u32, what: &str) {
    let traces = Traces::folder();
    let program = generated();
    let seed = seed.to_string();
    let command = [program.to_str().expect("UTF-8"), &seed, "4", "300", what];
    let output = recorded(&traces, &[], &command);
    assert!(output.status.success() && output.stderr.is_empty(), "{seed}: {output:?}");
    let alone = Command::new(&program).args(&command[1..]).output().expect("the program can be run");
    assert_eq!(text(&output.stdout), text(&alone.stdout), "{seed}: the program does the same");
    let (expected, trace) = (truth(&text(&output.stdout)), traces.only());
    assert_eq!(found(&trace), expected, "{seed} {what}");
    let mut by_name: BTreeMap<String, i64> = BTreeMap::new();
    for ((_, domain, name), (count, _)) in &expected {
        let name = if domain.is_empty() { name.clone() } else { format!("{domain}/{name}") };
        *by_name.entry(name).or_default() += count;
    }
    if what != "open" {
        assert_eq!(phases(&trace), by_name, "{seed} {what}");
    }
    let checked = omptrace(["check".as_ref(), trace.as_os_str()]);
    assert!(checked.status.success(), "{seed} {what}: {}", text(&checked.stdout));
}

#[test]
fn what_threads_say_at_random_is_in_the_trace() {
    // `OMPTRACE_TEST_SEEDS=200` for more.
    let seeds = std::env::var("OMPTRACE_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(12);
    (1..=seeds).for_each(|seed| assert_is_told(seed, ""));
}

#[test]
fn ends_without_begins_are_survived() {
    assert_is_told(7, "pops");
}

#[test]
fn threads_that_end_inside_of_ranges_are_survived() {
    assert_is_told(8, "open");
}

#[test]
fn a_forked_child_that_says_something_has_a_trace_of_its_own() {
    let traces = Traces::folder();
    let program = generated();
    let output = recorded(&traces, &[], &[program.to_str().expect("UTF-8"), "3", "2", "50", "fork"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let expected = truth(&text(&output.stdout));
    let found: Vec<Truth> = traces.files().iter().map(|trace| found(trace)).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&expected), "{found:?} instead of {expected:?}");
    let is_named = |truth: &Truth| truth.keys().all(|(_, _, name)| !name.contains("not defined"));
    assert!(found.iter().all(is_named), "{found:?}");
}

#[test]
fn interfaces_that_are_not_asked_for_are_not_heard() {
    let program = generated();
    let program = program.to_str().expect("UTF-8");
    let sources = |options: &[&str]| {
        let traces = Traces::folder();
        let output = recorded(&traces, options, &[program, "5", "2", "200"]);
        assert!(output.status.success(), "{output:?}");
        let mut sources: Vec<String> = match &traces.files()[..] {
            [] => Vec::new(),
            [trace, ..] => {
                found(trace).into_keys().map(|(source, domain, _)| format!("{source}:{domain}")).collect()
            }
        };
        sources.dedup();
        sources
    };
    assert_eq!(sources(&["--annotations", "none"]), [""; 0]);
    assert_eq!(sources(&["--annotations", "itt"]), ["itt:io", "itt:solver"]);
    let domains = sources(&["--annotations", "nvtx,itt", "--annotation-domains", "*,-io"]);
    assert_eq!(domains, ["itt:solver", "nvtx:", "nvtx:solver"]);
}

#[test]
fn private_texts_stay_out_of_the_trace() {
    let traces = Traces::folder();
    let program = generated();
    let output =
        recorded(&traces, &["--no-annotation-text"], &[program.to_str().expect("UTF-8"), "5", "2", "200"]);
    assert!(output.status.success(), "{output:?}");
    let bytes = std::fs::read(traces.only()).expect("a trace");
    assert!(!bytes.windows(13).any(|part| part == b"halo exchange"));
    let events = dump(&traces.only());
    assert!(count(&events, "omptrace_annotation_begin") > 100);
    let names: Vec<&str> = events.iter().filter_map(|event| event["name"].as_str()).collect();
    assert!(names.contains(&"solver") && !names.contains(&"axpy"), "{names:?}");
}

/// What Python's modules for NVTX and ITT say.
const PYTHON: &str = "
import threading, nvtx, ittapi
for i in range(10):
    with nvtx.annotate('step', color='blue', domain='solver', category='math', payload=i):
        with nvtx.annotate('axpy', domain='solver'):
            pass
nvtx.mark('converged', domain='solver')
whole = nvtx.start_range('whole', domain='solver')
t = threading.Thread(target=lambda: nvtx.end_range(whole))
t.start(); t.join()
@nvtx.annotate('decorated')
def decorated(): pass
decorated()
with ittapi.task('named', domain='itt.solver'): pass
print('done')
";

#[test]
fn python_modules_are_heard() {
    let traces = Traces::folder();
    let output = recorded(&traces, &[], &[python().to_str().expect("UTF-8"), "-c", PYTHON]);
    assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(0), "done\n"), "{output:?}");
    let trace = traces.only();
    let phases = phases(&trace);
    for (name, count) in [
        ("solver/step", 10),
        ("solver/axpy", 10),
        ("solver/whole", 1),
        ("decorated", 1),
        ("itt.solver/named", 1),
    ] {
        assert_eq!(phases.get(name), Some(&count), "{name}: {phases:?}");
    }
    let chrome = traces.path().join("chrome.json");
    omptrace_tests::trace::convert(&trace, "chrome", &chrome, &[]);
    let chrome = std::fs::read_to_string(chrome).expect("text");
    for words in ["solver/step", "solver/converged", "ranges of solver", "math", "\"payload\":9"] {
        assert!(chrome.contains(words), "{words}");
    }
    let tables = traces.path().join("app.tables");
    omptrace_tests::trace::convert(&trace, "parquet", &tables, &[]);
    let mut query = Command::new(python());
    query.arg("-c").arg(QUERY).arg(&tables).env("PYTHONPATH", python_package());
    let output = query.output().expect("DuckDB can be asked");
    assert_eq!(text(&output.stdout), "[(10, 9, 'math', 10)]\n[('mark', 1), ('process', 1)]\n", "{output:?}");
}

/// Asks the tables in a folder for the steps, and for what is no range of a thread.
const QUERY: &str = "
import duckdb, sys
table = duckdb.read_parquet(sys.argv[1] + '/table=annotations/**/*.parquet')
steps = table.filter(\"source = 'nvtx' AND domain = 'solver' AND name = 'step' AND end_ns >= begin_ns\")
print(steps.aggregate('count(*), max(payload_int), min(category), count(colour)').fetchall())
print(table.filter(\"kind <> 'range'\").aggregate('kind, count(*)').order('kind').fetchall())
";

/// Applies gates on Kokkos's OpenMP threads.
const KOKKOS: &str = "
import sys
sys.path.insert(0, 'FOLDER')
import lightning_kokkos_ops as kokkos
state = kokkos.StateVectorC128(16)
for i in range(20):
    state.Hadamard([i % 16], False, [])
print('done')
";

#[test]
fn kernels_of_kokkos_are_phases_and_name_their_regions() {
    let traces = Traces::folder();
    let folder = annotation_clients().join("pennylane_lightning");
    let script = KOKKOS.replace("FOLDER", &folder.display().to_string());
    let mut record = Command::new(omptrace_program());
    record.args(["record", "--quiet", "-o"]).arg(traces.path().join("%p.omptrace")).arg("--").arg(python());
    record.args(["-c", &script]).env("PYTHONPATH", talp_pages()).env("OMP_NUM_THREADS", "2");
    let output = record.env("OMP_PROC_BIND", "false").output().expect("the program can be run");
    assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(0), "done\n"), "{output:?}");
    let trace = traces.only();
    let stats = omptrace(["stats".as_ref(), "--json".as_ref(), trace.as_os_str()]);
    let stats: Value = serde_json::from_slice(&stats.stdout).expect("JSON");
    let ranges = stats["ranges"].as_array().expect("a tree");
    let names: Vec<&str> = ranges.iter().filter_map(|range| range["name"].as_str()).collect();
    let kernel = names.iter().find(|name| name.contains("Hadamard") || name.contains("applyNC1"));
    let kernel = kernel.unwrap_or_else(|| panic!("{names:?}"));
    let label: String = kernel.chars().take(20).collect();
    let constructs = stats["constructs"].as_array().expect("a list");
    let functions: Vec<&str> = constructs.iter().filter_map(|row| row["function"].as_str()).collect();
    assert!(functions.iter().any(|function| function.starts_with(&label)), "{label}: {functions:?}");
}

#[test]
fn a_c_program_with_the_headers_of_nvtx_is_heard() {
    let include = annotation_clients().join("nvidia/cu13/include");
    let include = format!("-I{}", include.display());
    let program = compile("tests/programs/annotations_nvtx.c", Compiler::Gcc, &[&include, "-ldl"]);
    let traces = Traces::folder();
    let output = recorded(&traces, &[], &[program.to_str().expect("UTF-8")]);
    let alone = Command::new(&program).output().expect("the program can be run");
    assert_eq!((output.status.code(), &output.stdout), (Some(0), &alone.stdout), "{output:?}");
    let trace = traces.only();
    let phases = phases(&trace);
    for (name, count) in [("outer", 1), ("solver/step", 12), ("solver/range", 1)] {
        assert_eq!(phases.get(name), Some(&count), "{name}: {phases:?}");
    }
    let events = dump(&trace);
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).cloned().collect::<Vec<_>>();
    let [counter] = &of("omptrace_annotation_value")[..] else { panic!("{events:?}") };
    assert_eq!(
        (counter["value_type"].as_str(), word(&counter["value"])),
        (Some("float64"), Some(0.25_f64.to_bits()))
    );
    let begin = of("omptrace_annotation_begin");
    let step = begin.iter().find(|event| event["payload_type"] == "float64").expect("a payload");
    assert_eq!(word(&step["payload"]), Some(0.5_f64.to_bits()));
    assert_eq!(step["colour"].as_u64(), Some(0xff00_ff00));
}

#[test]
fn time_steps_are_compared_and_can_be_selected() {
    let traces = Traces::folder();
    let script = "
import time, nvtx
for i in range(20):
    with nvtx.annotate('step %d' % i, domain='solver'):
        time.sleep(0.03 if i == 12 else 0.002)
";
    let output = recorded(&traces, &[], &[python().to_str().expect("UTF-8"), "-c", script]);
    assert!(output.status.success(), "{output:?}");
    let trace = traces.only();
    let json = |options: &[&str]| -> Value {
        let stats = omptrace(["stats", "--json"].iter().chain(options).map(Path::new).chain([&*trace]));
        assert!(stats.status.success(), "{}", text(&stats.stderr));
        serde_json::from_slice(&stats.stdout).expect("JSON")
    };
    let stats = json(&[]);
    let steps = &stats["steps"];
    assert_eq!((steps["name"].as_str(), steps["count"].as_u64()), (Some("solver/step *"), Some(20)));
    assert_eq!(steps["worst"][0]["number"], 13);
    let longest = steps["longest_ns"].as_u64().expect("a time");
    assert!(longest > 5 * steps["median_ns"].as_u64().expect("a time"), "{steps}");
    let one = json(&["--window", "step:13"]);
    assert_eq!(one["analysed"]["first_step"], 13);
    assert_eq!(one["duration_ns"].as_u64(), Some(longest));
    let third = json(&["--phase", "step *#3"]);
    let all = json(&["--phase", "solver/*"]);
    let ns = |stats: &Value| stats["duration_ns"].as_u64().expect("a time");
    assert!(2_000_000 <= ns(&third) && 20 * ns(&third) < 2 * ns(&all), "{} {}", ns(&third), ns(&all));
    let refused = omptrace(["stats".as_ref(), "--window".as_ref(), "step:21".as_ref(), trace.as_os_str()]);
    assert!(
        text(&refused.stderr).contains("the trace does not have these time steps: its last time step is 20"),
        "{refused:?}"
    );

    assert_eq!(steps["bins"].as_array().map(Vec::len), Some(20));
    let page = traces.path().join("report.html");
    let made = omptrace(["report".as_ref(), trace.as_os_str(), "-o".as_ref(), page.as_os_str()]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("id=steps-chart") && page.contains("Step 13: "), "the chart of the steps");
    let options = ["diff", "--json", "--all"].map(Path::new);
    let diff = omptrace(options.into_iter().chain([&*trace, &*trace]));
    let diff: Value = serde_json::from_slice(&diff.stdout).expect("JSON");
    let rows = diff["rows"].as_array().expect("rows");
    let of_steps = |metric: &str| rows.iter().filter(|row| row["metric"] == metric).count();
    assert_eq!((of_steps("step_median"), of_steps("step")), (1, 20), "{diff}");
}

#[test]
fn the_header_names_phases_and_does_nothing_without_the_tracer() {
    let include = format!("-I{}", root().join("include").display());
    let program = compile("tests/programs/annotations_own.c", Compiler::Gcc, &[&include, "-ldl"]);
    let traces = Traces::folder();
    let output = recorded(&traces, &[], &[program.to_str().expect("UTF-8")]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let alone = Command::new(&program).output().expect("the program can be run");
    assert_eq!(alone.stdout, output.stdout);
    let phases = phases(&traces.only());
    for (name, count) in [("time loop", 10), ("solver/assemble", 10), ("solve", 10)] {
        assert_eq!(phases.get(name), Some(&count), "{name}: {phases:?}");
    }
    let events = dump(&traces.only());
    assert_eq!(
        (count(&events, "omptrace_annotation_mark"), count(&events, "omptrace_annotation_value")),
        (1, 10)
    );
}

/// Texts are looked up by their addresses, where they are still the same.
#[test]
fn texts_that_follow_each_other_in_a_buffer_are_told_apart() {
    let include = format!("-I{}", root().join("include").display());
    let program = compile("tests/programs/annotated_buffer.c", Compiler::Gcc, &[&include, "-ldl"]);
    let traces = Traces::folder();
    let output = recorded(&traces, &[], &[program.to_str().expect("UTF-8")]);
    assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(0), "done\n"), "{output:?}");
    let long = "x".repeat(512);
    let names = ["texts/first", "texts/second", "texts/fir", "first", &long, "both", "unnamed domain"];
    let expected: BTreeMap<String, i64> = names.iter().map(|name| ((*name).to_owned(), 10)).collect();
    assert_eq!(phases(&traces.only()), expected);
}

#[test]
fn openacc_on_the_host_is_heard() {
    let program = compile("tests/programs/annotations_openacc.c", Compiler::Gcc, &["-fopenacc"]);
    let traces = Traces::folder();
    let output = recorded(&traces, &[], &[program.to_str().expect("UTF-8")]);
    assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(0), "20\n"), "{output:?}");
    let phases = phases(&traces.only());
    let compute = phases.get("parallel").or_else(|| phases.get("kernels"));
    assert_eq!(compute, Some(&3), "{phases:?}");
}

#[test]
fn statically_linked_programs_load_the_tracer_unharmed() {
    let program = compile("tests/programs/static_with_tools.c", Compiler::Gcc, &["-static"]);
    let mut record = Command::new(omptrace_program());
    let folder = Traces::folder();
    record.args(["record", "--quiet", "-o"]).arg(folder.path().join("%p.omptrace")).arg("--").arg(&program);
    let output = record.output().expect("the program can be run");
    assert_eq!((output.status.code(), &*text(&output.stdout)), (Some(0), "4950\n"), "{output:?}");
    assert!(text(&output.stderr).contains("loaded 4\n"), "{output:?}");
}

#[test]
fn another_tool_that_was_set_before_gets_all_calls() {
    // The tracer itself, in a copy of the library that is asked for its own trace, would do as well as any.
    let other = compile("tests/programs/annotation_tool.c", Compiler::Gcc, &["-shared", "-fPIC"]);
    let program = generated();
    let alone = Command::new(&program)
        .args(["9", "2", "200"])
        .env("NVTX_INJECTION64_PATH", &other)
        .env("INTEL_LIBITTNOTIFY64", &other)
        .env("KOKKOS_TOOLS_LIBS", &other)
        .output()
        .expect("the program can be run");
    let heard = text(&alone.stderr);
    assert!(heard.contains("heard"), "{alone:?}");
    let traces = Traces::folder();
    let mut record = Command::new(omptrace_program());
    record.args(["record", "--quiet", "-o"]).arg(traces.path().join("%p.omptrace")).arg("--").arg(&program);
    record.args(["9", "2", "200"]).env("NVTX_INJECTION64_PATH", &other).env("INTEL_LIBITTNOTIFY64", &other);
    let both = record.env("KOKKOS_TOOLS_LIBS", &other).output().expect("the program can be run");
    assert_eq!((text(&both.stdout), text(&both.stderr)), (text(&alone.stdout), heard));
    assert_eq!(found(&traces.only()), truth(&text(&both.stdout)));
}

#[test]
fn openmp_runtimes_that_speak_of_themselves_are_left_out() {
    for runtime in ["llvm-14", "llvm-19", "intel-2021", "intel-2026"] {
        let traces = Traces::folder();
        let program = program_on(runtime, "locks.c", &["2", "10"]);
        let mut record = Command::new(omptrace_program());
        record.args(["record", "--quiet", "-o"]).arg(traces.path().join("%p.omptrace")).arg("--");
        record.arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            record.env(name, value.unwrap_or_default());
        }
        let output = record.output().expect("the program can be run");
        assert!(output.status.success(), "{runtime}: {output:?}");
        let events = dump(&traces.only());
        assert!(count(&events, "mutex_acquired") > 0, "{runtime}");
        let is_said =
            |event: &&Value| event["event"].as_str().is_some_and(|name| name.contains("annotation"));
        assert_eq!(events.iter().filter(is_said).count(), 0, "{runtime}");
    }
}

#[test]
fn the_library_exports_what_interfaces_look_for() {
    let listed = Command::new("nm").args(["--dynamic", "--defined-only"]).arg(tool_library()).output();
    let listed = text(&listed.expect("nm").stdout);
    for name in [
        "InitializeInjectionNvtx2",
        "InitializeInjectionNvtxExtension",
        "__itt_api_init",
        "kokkosp_begin_parallel_for",
        "kokkosp_request_tool_settings",
        "acc_register_library",
        "roctxRangePushA",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(&format!(" {name}"))), "{name}");
    }
}

/// The trace of so many time steps.
fn steps(traces: &Traces, count: &str) -> PathBuf {
    let include = format!("-I{}", root().join("include").display());
    let program = compile("tests/programs/annotated_steps.c", Compiler::Clang14, &[&include, "-ldl"]);
    let mut record = Command::new(omptrace_program());
    record.args(["record", "--quiet", "-o"]).arg(traces.path().join("%p.omptrace")).arg("--");
    record.arg(&program).arg(count).env("LD_LIBRARY_PATH", runtime("llvm-21"));
    let output = record.output().expect("the program can be run");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    traces.only()
}

/// Ranges, frames and counters that go on at a checkpoint are the same behind it. Of the ranges of a thread, one is around nearly all
/// parallel regions, so most segments begin inside it.
#[test]
fn windows_and_segments_of_annotated_traces_are_those_of_the_whole() {
    let traces = Traces::folder();
    let trace = steps(&traces, "300");
    let phases = phases(&trace);
    assert_eq!((phases.get("solver/main loop"), phases.get("time loop")), (Some(&1), Some(&300)));
    let tried = agree(&trace, 7, 20).unwrap_or_else(|difference| panic!("{difference}"));
    assert!(tried.checkpoints > 5 && tried.segments > 5 && tried.analysed > 3, "{tried:?}");
}

/// Each step has a name of its own, and so have the paths of the ranges inside: more than are kept apart.
#[test]
fn many_steps_with_numbers_in_their_names_are_one_row() {
    let traces = Traces::folder();
    let trace = steps(&traces, "6000");
    let phases = phases(&trace);
    let count = |name: &str| phases.get(name).copied();
    assert_eq!(
        (count("solver/step *"), count("solver/assemble"), count("io/write")),
        (Some(6000), Some(6000), Some(2000))
    );
    let stats = omptrace(["stats".as_ref(), "--json".as_ref(), trace.as_os_str()]);
    let stats: Value = serde_json::from_slice(&stats.stdout).expect("JSON");
    let constructs = stats["constructs"].as_array().expect("constructs");
    let steps = constructs
        .iter()
        .filter(|it| it["name"].as_str().is_some_and(|name| name.starts_with("solver/step")));
    let steps: Vec<(&Value, &Value)> = steps.map(|step| (&step["name"], &step["count"])).collect();
    assert_eq!(steps, [(&Value::from("solver/step *"), &Value::from(6000))]);
}

/// The parts of the chart's columns are the threads' time in the steps, as `stats` has it.
#[test]
fn the_chart_of_time_steps_shows_the_time_of_all_threads() {
    let traces = Traces::folder();
    let trace = steps(&traces, "600");
    let reader = Reader::open(&trace).expect("a trace");
    let (stats, overview, _) = Stats::with_overview(&[&reader], &Options::default());
    let of_steps = stats.steps.expect("steps");
    assert_eq!((of_steps.steps_per_bin, overview.steps.len()), (3, of_steps.bins.len()));
    let phase = stats.phases.iter().find(|phase| phase.name == "time loop").expect("the steps");
    let mut sum = Accounting::default();
    overview.steps.iter().for_each(|bin| sum.merge(&bin.accounting));
    let duration: u64 = overview.steps.iter().map(|bin| bin.duration_ns).sum();
    assert_eq!(duration, phase.duration_ns);
    let known = |accounting: &Accounting| {
        let causes = Cause::ALL.iter().filter(|cause| **cause != Cause::Serial);
        causes.map(|cause| (*cause, accounting[*cause])).collect::<Vec<_>>()
    };
    assert_eq!(known(&sum), known(&phase.accounting));
    assert!(sum.total() <= duration * u64::from(phase.threads), "{sum:?}");
    let page = traces.path().join("page.html");
    let report = omptrace(["report".as_ref(), "-o".as_ref(), page.as_os_str(), trace.as_os_str()]);
    assert!(report.status.success(), "{report:?}");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("<path style=\"fill:#0072b2\""), "useful work is blue");
}
