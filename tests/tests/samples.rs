//! Samples of real programs: whose they are, what they weigh, and that neither program nor events notice.

#![cfg(target_arch = "x86_64")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::omptrace_program;
use omptrace_tests::env::{Compiler, RUNTIMES_OF_CLANG_22, compile, libgomp_adapter, pprof, runtime};
use omptrace_tests::trace::{Traces, convert, count, dump, omptrace};
use omptrace_tests::viewers::{open_in_firefox, query};
use omptrace_trace_format::{Event, Reader, Record};
use serde_json::Value;

/// The numbers that a program has printed, by their names.
fn numbers(said: &str) -> BTreeMap<String, u64> {
    let pair = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), number(value)))
    };
    said.lines().filter_map(pair).collect()
}

fn number(text: &str) -> u64 {
    let hex = text.strip_prefix("0x");
    let parsed = hex.map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    parsed.unwrap_or_else(|_| panic!("{text:?} is no number"))
}

fn named<'e>(events: &'e [Value], name: &str) -> impl Iterator<Item = &'e Value> {
    events.iter().filter(move |event| event["event"] == name)
}

fn frames(event: &Value) -> Vec<u64> {
    let frames = event["stack"].as_array().expect("a list");
    frames.iter().map(|frame| number(frame.as_str().expect("a text"))).collect()
}

fn sum(events: &[Value], name: &str, argument: &str) -> u64 {
    named(events, name).map(|event| event[argument].as_u64().expect("a number")).sum()
}

/// Where code lies: the function of `samples.c` that begins last before it.
fn function(functions: &BTreeMap<String, u64>, code: u64) -> Option<&str> {
    let before = functions.iter().filter(|(_, begin)| **begin <= code);
    before.max_by_key(|(_, begin)| **begin).map(|(name, _)| name.as_str())
}

const FUNCTIONS: [&str; 7] = ["burn", "seventy", "twenty", "ten", "region", "around", "main"];

/// Runs `samples.c`, built by `compiler`, in the environment that `prepare` gives it, and looks at all of its samples.
fn check_samples(compiler: Compiler, prepare: impl Fn(&mut Command)) {
    const THREADS: usize = 2;
    const TICK_NS: u64 = 20_000_000;
    let program = compile("tests/programs/samples.c", compiler, &[]);
    let run = |is_sampled: &str| {
        let traces = Traces::folder();
        let mut command = Command::new(&program);
        prepare(command.args(["2", "10", "40"]).env("OMPTRACE_SAMPLE", is_sampled));
        let said = traces.record(&mut command);
        (dump(&traces.only()), numbers(&said))
    };
    let (plain, _) = run("off");
    assert!(named(&plain, "omptrace_sample").next().is_none());
    let (events, said) = run("cpu");

    // The events are those of a run without samples.
    for name in ["parallel_begin", "parallel_end"] {
        assert_eq!(count(&events, name) as u64, said["regions"], "{name}");
        assert_eq!(count(&events, name), count(&plain, name), "{name}");
    }
    assert_eq!(count(&events, "omptrace_lost"), 0);
    assert_eq!(count(&events, "omptrace_samples_lost"), 0);

    // Each thread has a stream of samples, and the weights are its processor time.
    let of_thread = named(&events, "omptrace_sample_stream");
    let threads: BTreeSet<_> = of_thread.map(|event| event["thread_stream"].as_u64()).collect();
    assert!(threads.len() >= THREADS, "{threads:?}");
    let weight = sum(&events, "omptrace_sample", "weight_ns");
    let slack = TICK_NS * threads.len() as u64;
    let (least, most) = (said["worked"] * 7 / 10, said["process"]);
    assert!((least.saturating_sub(slack)..most + slack).contains(&weight), "{weight} of {least} to {most}");

    // Stacks are complete, and begin in the program's functions.
    let functions: BTreeMap<_, _> = said
        .iter()
        .filter(|(name, _)| FUNCTIONS.contains(&name.as_str()))
        .map(|(name, begin)| (name.clone(), *begin))
        .collect();
    let of_function = |code: u64| function(&functions, code).filter(|_| code < said["burn"] + (1 << 20));
    let mut shares: BTreeMap<&str, u64> = BTreeMap::new();
    let mut in_burn = BTreeSet::new();
    for sample in named(&events, "omptrace_sample") {
        let frames = frames(sample);
        if of_function(frames[0]) != Some("burn") {
            continue;
        }
        assert_eq!(sample["end"], "outermost", "{sample}");
        in_burn.insert(sample["stream"].as_u64());
        let caller = of_function(frames[1]).expect("a function of the program");
        *shares.entry(caller).or_default() += sample["weight_ns"].as_u64().expect("a number");
        // `burn`, its caller, and the outlined function, which the runtime has called.
        assert_eq!(sample["exit_frame"], 3, "{sample}");
    }
    assert!(in_burn.len() >= THREADS, "{in_burn:?}");
    let all: u64 = shares.values().sum();
    // On a busy machine there are few samples, of weights that differ much.
    let seventy = *shares.get("seventy").unwrap_or(&0);
    assert!(seventy * 100 > all * 35, "{shares:?}");

    // Who created a region says where.
    let mut creators = BTreeSet::new();
    for context in named(&events, "omptrace_context") {
        assert_eq!(context["end"], "outermost", "{context}");
        let code = frames(context).into_iter();
        creators.extend(code.filter_map(of_function).map(str::to_owned));
    }
    for name in ["region", "around", "main"] {
        assert!(creators.contains(name), "{name} of {creators:?}");
    }
}

#[test]
fn samples_of_llvms_and_intels_runtime_are_the_threads_processor_time() {
    for name in RUNTIMES_OF_CLANG_22 {
        check_samples(Compiler::Clang22, |command| {
            command.env("LD_LIBRARY_PATH", runtime(name));
        });
    }
}

#[test]
fn samples_on_libgomp_are_the_threads_processor_time() {
    check_samples(Compiler::Gcc, |command| {
        command.env("LD_PRELOAD", libgomp_adapter());
    });
}

/// The stacks of a folded trace, outermost function first, with their nanoseconds.
fn folded(text: &str) -> Vec<(Vec<&str>, u64)> {
    let line = |line| -> Option<(&str, &str)> { str::rsplit_once(line, ' ') };
    let lines = text.lines().map(|each| line(each).expect("a stack and its weight"));
    lines.map(|(stack, weight)| (stack.split(';').collect(), number(weight))).collect()
}

/// The functions where the stacks of each thread begin. Those of a team's workers end in the runtime: the reader goes on.
const OUTERMOST: &str = "
    WITH RECURSIVE up(utid, callsite) AS (
        SELECT utid, callsite_id FROM cpu_profile_stack_sample
        UNION SELECT utid, parent_id FROM up JOIN stack_profile_callsite ON id = callsite WHERE parent_id IS NOT NULL
    )
    SELECT DISTINCT utid, frame.name FROM up
    JOIN stack_profile_callsite AS site ON site.id = callsite
    JOIN stack_profile_frame AS frame ON frame.id = frame_id
    WHERE parent_id IS NULL";

#[test]
fn viewers_show_samples_in_the_users_model() {
    let program = compile("tests/programs/samples.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let mut command = Command::new(program);
    command.args(["2", "10", "40"]).env("LD_LIBRARY_PATH", runtime("llvm-19")).env("OMPTRACE_SAMPLE", "cpu");
    traces.record(&mut command);
    let recorded = traces.only();
    let converted = |format: &str, file: &str| {
        let path = traces.path().join(file);
        convert(&recorded, format, &path, &[]);
        path
    };
    let text = std::fs::read_to_string(converted("folded", "samples.folded"));
    let text = text.expect("a text");
    let stacks = folded(&text);
    assert_eq!(serial_functions(&stats(&recorded)), [""; 0]);
    let all: u64 = stacks.iter().map(|(_, weight)| weight).sum();
    let weight = sum(&dump(&recorded), "omptrace_sample", "weight_ns");
    assert_eq!(all, weight);

    // `main` has called `seventy`, through the region, on each thread.
    let place = |stack: &[&str], name: &str| stack.iter().position(|each| *each == name);
    let way = |stack: &[&str]| ["main", "region", "seventy"].map(|name| place(stack, name));
    let ways = stacks.iter().map(|(stack, weight)| (way(stack), weight));
    let in_seventy = ways.filter(|(way, _)| way[2].is_some());
    let (known, truncated): (Vec<_>, Vec<_>) =
        in_seventy.partition(|(way, _)| way[0].is_some() && way.is_sorted());
    let weight = |stacks: &[(_, &u64)]| stacks.iter().map(|each| each.1).sum::<u64>();
    // The creator's stack is missing where the only sample of a region came at its very end.
    assert!(!known.is_empty(), "{text}");
    assert!(weight(&truncated) * 9 <= weight(&known), "{text}");

    let period = 1_000_000;
    let trace = converted("perfetto", "samples.pftrace");
    let count = "SELECT count(*) AS samples, count(DISTINCT utid) AS threads FROM cpu_profile_stack_sample";
    let [counts, outermost] = <[_; 2]>::try_from(query(&trace, &[count, OUTERMOST])).expect("two answers");
    assert_eq!(counts[0]["samples"].as_u64(), Some(all / period), "{counts:?}");
    let threads = counts[0]["threads"].as_u64().expect("a number");
    let of_main =
        outermost.iter().filter(|row| row["name"].as_str().is_some_and(|name| name == stacks_begin(&stacks)));
    assert_eq!(of_main.count() as u64, threads, "{outermost:?}");

    let profile = converted("firefox", "samples.json");
    let threads = open_in_firefox(&profile).sound().swap_remove(0);
    let weights = threads.iter().filter_map(|row| row["weight"].as_u64());
    assert_eq!(weights.sum::<u64>(), all / period, "{threads:?}");
}

/// The nanoseconds of a column of a row of `pprof -top`: `1200ns 3.00% 5.00% 40000ns 99.9% name`.
fn of_top(text: &str, column: usize, function: &str) -> u64 {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = rows.filter(|row| row.len() > 5 && row[5..].join(" ") == function);
    let values = rows.map(|row| row[column].trim_end_matches("ns").parse::<u64>().unwrap_or(0));
    values.sum()
}

#[test]
fn pprof_shows_what_folded_stacks_have() {
    let program = compile("tests/programs/spins.c", Compiler::Clang22, &["-O2"]);
    let traces = Traces::folder();
    let mut command = Command::new(&program);
    command
        .args(["flush", "10", "20"])
        .env("LD_LIBRARY_PATH", runtime("llvm-19"))
        .env("OMPTRACE_SAMPLE", "cpu");
    traces.record(&mut command);
    let recorded = traces.only();
    let path = traces.path().join("samples.folded");
    convert(&recorded, "folded", &path, &[]);
    let text = std::fs::read_to_string(path).expect("a text");
    let stacks = folded(&text);
    let all: u64 = stacks.iter().map(|(_, weight)| weight).sum();
    let asked = |profile: &Path, options: &[&str]| {
        let output = Command::new(pprof())
            .args(["-unit=ns", "-nodefraction=0", "-nodecount=10000"])
            .args(options)
            .arg(profile)
            .output()
            .expect("pprof can be run");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    // pprof reads both.
    for name in ["samples.pb.gz", "samples.pb"] {
        let profile = traces.path().join(name);
        convert(&recorded, "pprof", &profile, &[]);
        let top = asked(&profile, &["-top"]);
        assert!(top.contains(&format!("Total samples = {all}ns")), "{top}");
        let file = program.file_name().expect("a name").to_string_lossy();
        assert!(top.contains(&format!("File: {file}\n")), "{top}");
        let functions: BTreeSet<&str> = stacks.iter().flat_map(|(stack, _)| stack).copied().collect();
        assert!(functions.iter().any(|name| name.starts_with("<OMP-")), "{text}");
        for function in functions {
            let weight = |is_it: &dyn Fn(&[&str]) -> bool| {
                let own = stacks.iter().filter(|(stack, _)| is_it(stack));
                own.map(|each| each.1).sum::<u64>()
            };
            let flat = weight(&|stack| stack.last() == Some(&function));
            let cumulative = weight(&|stack| stack.contains(&function));
            let found = [0, 3].map(|column| of_top(&top, column, function));
            assert_eq!(found, [flat, cumulative], "{function}: {top}");
        }
        let tags = asked(&profile, &["-tags"]);
        for tag in ["openmp:", "work", "wait", "thread:", "main", "OpenMP worker 1"] {
            assert!(tags.contains(tag), "{tags}");
        }
        let of_worker = asked(&profile, &["-top", "-tagfocus=thread=OpenMP worker 1"]);
        let main = of_top(&of_worker, 3, "main");
        assert!(main > 0 && main < of_top(&top, 3, "main"), "{of_worker}");
    }
}

/// Whether `stack` has these functions next to each other.
fn has(stack: &[&str], functions: &[&str]) -> bool {
    stack.windows(functions.len()).any(|window| window == functions)
}

#[test]
fn inlined_functions_and_creators_of_tasks_have_frames_of_their_own() {
    for (compiler, sample) in
        [(Compiler::Clang22, "cpu"), (Compiler::Clang22, "cpu,tasks"), (Compiler::Gcc, "cpu,tasks")]
    {
        let program = compile("tests/programs/samples_inlined.c", compiler, &["-O2"]);
        let traces = Traces::folder();
        let mut command = Command::new(program);
        command.env("OMPTRACE_SAMPLE", sample);
        match compiler {
            Compiler::Gcc => command.env("LD_PRELOAD", libgomp_adapter()),
            _ => command.env("LD_LIBRARY_PATH", runtime("llvm-19")),
        };
        traces.record(&mut command);
        let path = traces.path().join("samples.folded");
        convert(&traces.only(), "folded", &path, &[]);
        let text = std::fs::read_to_string(path).expect("a text");
        let stacks = folded(&text);
        let weight = |functions: &[&str]| {
            let stacks = stacks.iter().filter(|(stack, _)| has(stack, functions));
            stacks.map(|each| each.1).sum::<u64>()
        };
        let all = weight(&["inner"]);
        assert!(all > 0, "{compiler:?}: {text}");
        assert_eq!(weight(&["outer", "inner"]), all, "{compiler:?}: {text}");
        // Half of the work is in the region, and half in the tasks.
        let of_region = ["around", "encloses", "encloses [OpenMP]", "outer", "inner"];
        let of_task = ["creates", "creates [OpenMP]", "outer", "inner"];
        for way in [&of_region[..], &of_task] {
            assert!(weight(way) * 4 > all, "{compiler:?}: {text}");
        }
        let creator = weight(&[&["main [OpenMP]", "calls"], &of_task[..]].concat());
        let expected = if sample == "cpu" { 0 } else { weight(&of_task) };
        assert_eq!(creator, expected, "{compiler:?}, {sample}: {text}");
    }
}

#[test]
fn code_that_the_program_makes_has_the_names_of_its_perf_map() {
    let program = compile("tests/programs/samples_made.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let recorded = traces.path().join("made.omptrace");
    let output = Command::new(omptrace_program())
        .args(["record", "--sample", "-o"])
        .args([&recorded, Path::new("--"), &program])
        .env("LD_LIBRARY_PATH", runtime("llvm-19"))
        .output()
        .expect("it can be run");
    assert!(output.status.success(), "{output:?}");
    let map = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // The trace keeps the names.
    std::fs::remove_file(&map).expect("the program has written a map");
    let path = traces.path().join("made.folded");
    convert(&recorded, "folded", &path, &[]);
    let text = std::fs::read_to_string(path).expect("a text");
    assert!(text.contains("counts_down"), "{text}");
    assert!(!text.contains("[unknown]"), "{text}");
}

/// The function where most stacks begin: that of the C library which calls `main`.
fn stacks_begin<'s>(stacks: &[(Vec<&'s str>, u64)]) -> &'s str {
    let longest = stacks.iter().filter(|(stack, _)| stack.contains(&"main"));
    longest.max_by_key(|each| each.1).expect("a stack with main").0[0]
}

/// The numbers of a trace.
fn stats(trace: &Path) -> Value {
    let output = omptrace(["stats".as_ref(), "--json".as_ref(), "--all".as_ref(), trace.as_os_str()]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The functions that are found to run in serial code only.
fn serial_functions(stats: &Value) -> Vec<&str> {
    let findings = stats["findings"].as_array().expect("a list").iter();
    let serial = findings.filter(|finding| finding["id"] == "serial_function");
    serial.filter_map(|finding| finding["function"].as_str()).collect()
}

/// What others waited for functions because of `cause`, in all rows of blame. Parts of a row add up to it.
fn blamed<'s>(stats: &'s Value, cause: &str) -> BTreeMap<&'s str, u64> {
    let mut blamed = BTreeMap::new();
    let rows = stats["blame"].as_array().expect("a list");
    for row in rows.iter().filter(|row| row["cause"] == cause) {
        let shares = row["functions"].as_array().expect("a list");
        let shares = shares.iter().map(|share| {
            let name = share["function"].as_str().expect("a name");
            (name, share["ns"].as_u64().expect("a number"))
        });
        let unnamed = row["no_sample_ns"].as_u64().expect("there are samples");
        let named: u64 = shares.clone().map(|(_, ns)| ns).sum();
        assert_eq!(Some(named + unnamed), row["ns"].as_u64(), "{row}");
        shares.for_each(|(name, ns)| *blamed.entry(name).or_default() += ns);
    }
    blamed
}

#[test]
fn waits_are_due_to_the_functions_of_those_who_cause_them() {
    let program = compile("tests/programs/blame.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let mut command = Command::new(program);
    command.args(["2", "15", "20"]).env("LD_LIBRARY_PATH", runtime("llvm-19")).env("OMPTRACE_SAMPLE", "cpu");
    traces.record(&mut command);
    let stats = stats(&traces.only());
    assert_eq!(serial_functions(&stats), ["prepares"]);
    for (cause, function) in [("serial", "prepares"), ("imbalance", "is_late"), ("critical", "holds")] {
        let blamed = blamed(&stats, cause);
        assert!(blamed.get(function) > Some(&0), "{cause}: {blamed:?}");
    }
    let serial = blamed(&stats, "serial");
    let most = serial.iter().max_by_key(|(_, ns)| **ns).expect("functions");
    assert_eq!(*most.0, "prepares", "{serial:?}");

    // Functions have the sums of their parts.
    let functions = stats["functions"].as_array().expect("a list");
    let causes = stats["blame"].as_array().expect("a list").iter();
    let all: u64 = causes
        .flat_map(|row| row["functions"].as_array().expect("a list"))
        .map(|share| share["ns"].as_u64().expect("a number"))
        .sum();
    let of_functions = functions.iter().map(|row| row["blame_ns"].as_u64());
    assert_eq!(of_functions.sum::<Option<u64>>(), Some(all));
    let path = &stats["critical_path"];
    let of_functions = functions.iter().map(|row| row["path_ns"].as_u64());
    let on_path = of_functions.sum::<Option<u64>>().expect("numbers");
    let unnamed = path["no_sample_ns"].as_u64().expect("there are samples");
    assert_eq!(Some(on_path + unnamed), path["useful_ns"].as_u64());
    for name in ["prepares", "is_late", "holds"] {
        let row = functions.iter().find(|row| row["function"] == name);
        let on_path = row.and_then(|row| row["path_ns"].as_u64());
        assert!(on_path > Some(0), "{name}: {row:?}");
    }
}

#[test]
fn loops_that_wait_for_other_threads_are_found() {
    for compiler in [Compiler::Clang22, Compiler::Gcc] {
        let program = compile("tests/programs/spins.c", compiler, &["-O2"]);
        // Each test of a lock is an event.
        for (how, milliseconds, expected) in [("flush", "40", 1), ("lock", "20", 1), ("barrier", "20", 0)] {
            let traces = Traces::folder();
            let mut command = Command::new(&program);
            command.args([how, "10", milliseconds]).env("OMPTRACE_SAMPLE", "cpu");
            match compiler {
                Compiler::Gcc => command.env("LD_PRELOAD", libgomp_adapter()),
                _ => command.env("LD_LIBRARY_PATH", runtime("llvm-19")),
            };
            traces.record(&mut command);
            let stats = stats(&traces.only());
            let findings = stats["findings"].as_array().expect("a list").iter();
            let spins = findings.filter(|finding| finding["id"] == "user_spinning");
            let spins: Vec<&Value> = spins.collect();
            let of_run = format!("{compiler:?}, {how}");
            assert_eq!(spins.len(), expected, "{of_run}: {}", stats["findings"]);
            for finding in spins {
                assert_eq!(finding["function"], "waits", "{of_run}: {finding}");
            }
        }
    }
}

/// Places of a program where libgcc unwinds the same stack.
#[test]
fn stacks_are_those_that_libgcc_finds() {
    for (compiler, flags) in
        [(Compiler::Clang22, &["-O2", "-lstdc++"]), (Compiler::Gcc, &["-O2", "-lstdc++"])]
    {
        let program = compile("tests/programs/unwinds.cpp", compiler, flags);
        let traces = Traces::folder();
        let mut command = Command::new(program);
        command.env("OMPTRACE_SAMPLE", "cpu");
        match compiler {
            Compiler::Gcc => command.env("LD_PRELOAD", libgomp_adapter()),
            _ => command.env("LD_LIBRARY_PATH", runtime("llvm-19")),
        };
        let said = traces.record(&mut command);
        let stack = |line: &str| -> Option<Vec<u64>> {
            let addresses = line.strip_prefix("stack ")?.split(' ');
            Some(addresses.map(number).collect())
        };
        let truth: BTreeSet<Vec<u64>> = said.lines().filter_map(stack).collect();
        // Samples of such places: `point` has called `syscall`. Others are the timer's.
        let events = dump(&traces.only());
        let mut callers: BTreeMap<u64, Vec<Vec<u64>>> = BTreeMap::new();
        for sample in named(&events, "omptrace_sample") {
            if let [_, point, outer @ ..] = &frames(sample)[..] {
                callers.entry(*point).or_default().push(outer.to_vec());
            }
        }
        let most = callers.into_values().max_by_key(Vec::len);
        let sampled = most.expect("samples");
        let (right, wrong): (Vec<_>, Vec<_>) = sampled.into_iter().partition(|stack| truth.contains(stack));
        assert!(truth.len() >= 40, "{}", truth.len());
        let found: BTreeSet<_> = right.iter().collect();
        assert!(found.len() * 2 >= truth.len(), "{} of {}", found.len(), truth.len());
        assert!(wrong.len() * 99 <= right.len(), "{wrong:x?} of {truth:x?}");
    }
}

/// GCC's runtime under the adapter, beside [`RUNTIMES_OF_CLANG_22`].
const LIBGOMP: &str = "libgomp";

/// Runs `samples_storm.c` on LLVM's runtime: see [`storm_on`].
fn storm(what: &str, arguments: &[&str], status: i32) -> (BTreeMap<String, u64>, Traces) {
    storm_on("llvm-19", what, arguments, status)
}

/// Runs `samples_storm.c` with samples; it must end with `status`. Returns what it prints and the traces.
fn storm_on(name: &str, what: &str, arguments: &[&str], status: i32) -> (BTreeMap<String, u64>, Traces) {
    let compiler = match name {
        LIBGOMP => Compiler::Gcc,
        _ => Compiler::Clang22,
    };
    let program = compile("tests/programs/samples_storm.c", compiler, &["-ldl"]);
    let traces = Traces::folder();
    let mut command = Command::new(program);
    command.arg(what).args(arguments).env("OMPTRACE_SAMPLE", "cpu");
    match name {
        LIBGOMP => command.env("LD_PRELOAD", libgomp_adapter()),
        _ => command.env("LD_LIBRARY_PATH", runtime(name)),
    };
    let output = traces.trace(&mut command).output().expect("it can be run");
    assert_eq!(output.status.code(), Some(status), "{what}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{what}");
    (numbers(&String::from_utf8_lossy(&output.stdout)), traces)
}

fn largest(traces: &Traces) -> std::path::PathBuf {
    let size = |path: &std::path::PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
    traces.files().into_iter().max_by_key(size).expect("a trace")
}

/// Each reason why a stack ended. Not by JSON: there may be millions of events.
fn ends(trace: &Path) -> BTreeSet<&'static str> {
    let reader = Reader::open(trace).expect("a trace");
    let events = reader.streams().iter().flat_map(|of| reader.events(of));
    let end = |record: Record| match record.event {
        Event::Sample(sample) => sample.end.name(),
        _ => None,
    };
    let ends: BTreeSet<&str> = events.filter_map(end).collect();
    assert!(!ends.is_empty());
    ends
}

#[test]
fn what_a_ring_has_no_room_for_is_counted() {
    const SENT: u64 = 20_000;
    let (said, traces) = storm("self", &[&SENT.to_string()], 0);
    assert_eq!(said["sent"], SENT);
    let events = dump(&traces.only());
    let recorded = count(&events, "omptrace_sample") as u64;
    let lost = sum(&events, "omptrace_samples_lost", "samples");
    assert!(recorded > 0 && lost > 0, "{recorded} {lost}");
    // The timer of the thread had its own.
    assert!(recorded + lost >= SENT, "{recorded} {lost}");
    assert_eq!(count(&events, "parallel_begin"), 1);
    let recovered = omptrace([Path::new("recover"), &traces.only()]);
    let said = String::from_utf8_lossy(&recovered.stderr).replace(',', "");
    assert!(said.contains(&format!(" {lost} samples LOST")), "{said}");
}

/// Signals that a storm has at least; `cargo xtask soak` asks for more.
fn signals() -> u64 {
    let asked = std::env::var("OMPTRACE_TEST_SIGNALS");
    asked.map_or(10_000, |signals| number(&signals))
}

#[test]
fn signals_harm_no_malloc_fork_dlopen_or_thread() {
    let rounds = [("malloc", "100"), ("fork", "20"), ("dlopen", "100"), ("threads", "50")];
    for name in RUNTIMES_OF_CLANG_22.iter().chain([&LIBGOMP]) {
        for (what, rounds) in rounds {
            // A child of a process in which libgomp has threads waits for them for ever.
            if *name == LIBGOMP && what == "fork" {
                continue;
            }
            let (said, traces) = storm_on(name, what, &[rounds, &signals().to_string()], 0);
            assert!(said["sent"] >= signals(), "{name}, {what}");
            assert_eq!(*said.get("failed").unwrap_or(&0), 0, "{name}, {what}");
            ends(&largest(&traces));
        }
    }
}

#[test]
fn a_small_alternate_stack_gets_the_program_counter_only() {
    let (_, traces) = storm("tiny", &["100", &signals().to_string()], 0);
    let found = ends(&traces.only());
    assert!(found.contains("no_room"), "{found:?}");
}

#[test]
fn a_program_may_exit_among_samples() {
    let (_, traces) = storm("exit", &["1", &signals().to_string()], 7);
    ends(&traces.only());
}

#[test]
fn the_programs_own_timer_and_its_sleep_go_on() {
    let (said, traces) = storm("own", &["300"], 0);
    assert_eq!(said["ticks"], 1);
    // Some kernels let a timer of processor time interrupt a call that is about to sleep.
    assert!(said["interrupted"] * 20 <= said["naps"], "{said:?}");
    ends(&traces.only());
}

#[test]
fn a_clock_that_there_is_not_is_refused() {
    let program = compile("tests/programs/samples.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let mut command = Command::new(program);
    command.args(["1", "1", "1"]).env("OMPTRACE_SAMPLE", "wall");
    let output = traces.trace(&mut command).output().expect("it can be run");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("OMPTRACE_SAMPLE=wall is not allowed"), "{said}");
}

/// Containers may forbid it: then the tracer says so, and all else is as always.
#[test]
fn perf_samples_user_mode_or_says_why_not() {
    let program = compile("tests/programs/samples.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let mut command = Command::new(program);
    command.args(["2", "10", "40"]).env("OMPTRACE_SAMPLE", "perf:2000");
    let output = traces.trace(&mut command).output().expect("it can be run");
    assert!(output.status.success(), "{output:?}");
    let words = String::from_utf8_lossy(&output.stderr);
    let said = numbers(&String::from_utf8_lossy(&output.stdout));
    let events = dump(&traces.only());
    assert_eq!(count(&events, "parallel_begin") as u64, said["regions"]);
    assert_eq!(count(&events, "omptrace_lost"), 0);

    let trace = traces.only();
    let info = omptrace(["info", trace.to_str().expect("UTF-8")]);
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("do not include time in the kernel"), "{info}");
    if !words.is_empty() {
        assert!(words.contains("perf_event_open"), "{words}");
        assert_eq!(count(&events, "omptrace_sample"), 0);
        return;
    }
    for stream in named(&events, "omptrace_sample_stream") {
        assert_eq!(stream["clock"], "perf");
        assert_eq!(stream["period_ns"], 500_000);
    }
    let weight = sum(&events, "omptrace_sample", "weight_ns");
    let slack = 2 * 500_000;
    assert!((1..said["process"] + slack).contains(&weight), "{weight}");
    let begin = said["burn"];
    let in_burn = named(&events, "omptrace_sample")
        .filter(|sample| (begin..begin + 0x100).contains(&frames(sample)[0]));
    assert!(in_burn.count() > 0);
}
