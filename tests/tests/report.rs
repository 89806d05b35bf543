//! The page of `omptrace report`, as a reader has it in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_analysis::answers::Cause;
use omptrace_tests::env::{Compiler, compile, root, runtime, tools};
use omptrace_tests::trace::{Traces, omptrace};
use omptrace_tests::viewers::read_page;
use serde_json::Value;

/// A run of `tests/programs/planted.c` with four threads.
fn traced(traces: &Traces, fault: &str) -> PathBuf {
    let program = compile("tests/programs/planted.c", Compiler::Clang22, &[]);
    traces.record(Command::new(program).arg(fault).env("OMP_NUM_THREADS", "4"));
    traces.only()
}

fn stats(trace: &Path) -> Value {
    let trace = trace.to_str().expect("UTF-8");
    let output = omptrace(["stats", trace, "--json", "--all"].iter());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The page about these inputs.
fn page(folder: &Path, inputs: &[&Path]) -> PathBuf {
    let page = folder.join("report.html");
    let mut words = vec!["report".as_ref(), "-o".as_ref(), page.as_os_str()];
    words.extend(inputs.iter().map(|input| input.as_os_str()));
    let output = omptrace(words.iter());
    assert!(output.status.success(), "{output:?}");
    page
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn the_page_has_the_numbers_of_stats_and_can_be_used() {
    let traces = Traces::folder();
    let trace = traced(&traces, "critical");
    let stats = stats(&trace);
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), &[&trace]);
    assert!(fs::metadata(&page).expect("a page").len() <= 1 << 20);
    let seen = read_page(&page, None);

    assert_eq!(seen["errors"], serde_json::json!([]));
    // It has all that it needs, and a name for all that can be used.
    assert_eq!(seen["requests"], serde_json::json!([]));
    assert_eq!(seen["nameless"], serde_json::json!([]));
    assert_eq!(seen["contrast"], serde_json::json!([]));
    assert_eq!(seen["dark_contrast"], serde_json::json!([]));

    let numbers = &seen["numbers"];
    let tiles = &numbers["tiles"];
    assert_eq!(tiles["duration"], stats["duration_ns"]);
    assert_eq!(tiles["threads"], stats["threads"]);
    assert_eq!(tiles["gain"], stats["findings"][0]["gain_ns"]);
    for name in ["parallel", "load_balance", "communication", "serialisation", "transfer"] {
        assert_eq!(numbers["efficiencies"][name], stats["efficiency"][name], "{name}");
    }

    // Each cause, and bars that add up to that of the whole.
    let tree = rows(&numbers["tree"]);
    let width = |row: &Value| row["width"].as_f64().expect("a width");
    let mut sum = 0.0;
    for row in tree.iter().filter(|row| row["level"] == 1) {
        let cause = Cause::ALL.iter().find(|cause| row["name"] == cause.title());
        let name = cause.unwrap_or_else(|| panic!("{row}")).name();
        assert_eq!(row["ns"], stats["accounting"][format!("{name}_ns")], "{name}");
        // What is too short to be seen has a pixel.
        sum += if width(row) > 1.5 { width(row) } else { 0.0 };
    }
    assert_eq!(tree[0]["ns"], stats["accounting"]["total_ns"]);
    assert!((sum - width(&tree[0])).abs() < 16.0, "{sum} of {}", tree[0]);

    let findings = rows(&numbers["findings"]);
    assert_eq!(findings.len(), rows(&stats["findings"]).len());
    for (shown, finding) in findings.iter().zip(rows(&stats["findings"])) {
        assert_eq!((&shown["id"], &shown["gain_ns"]), (&finding["id"], &finding["gain_ns"]));
        let instances = rows(&finding["instances"]);
        for (command, instance) in rows(&shown["commands"]).iter().zip(instances) {
            // A viewer's window begins with the timeline.
            let begin = instance["begin_ns"].as_i64().unwrap_or(0).max(0);
            let window = format!("--window {begin}ns..{}ns", instance["end_ns"]);
            assert!(command.as_str().is_some_and(|text| text.ends_with(&window)), "{command} {window}");
        }
    }
    let regions = rows(&numbers["regions"]);
    assert_eq!(regions.len(), rows(&stats["regions"]).len());
    for (shown, region) in regions.iter().zip(rows(&stats["regions"])) {
        assert_eq!((&shown[1], &shown[2]), (&region["visits"], &region["duration_ns"]));
        assert_eq!(shown[5], region["efficiency"]["parallel"]);
    }
    // The fault's line is in the source view.
    let line = stats["findings"][0]["line"].clone();
    assert!(rows(&seen["sources"]).contains(&line), "{line}: {}", seen["sources"]);

    let mut sorted = rows(&seen["sorted"][0]).to_vec();
    sorted.sort_by_key(|visits| std::cmp::Reverse(visits.as_u64()));
    assert_eq!(rows(&seen["sorted"][0]), sorted);
    sorted.reverse();
    assert_eq!(rows(&seen["sorted"][1]), sorted);

    // The timeline answers the pointer and the keys.
    let says = |what: &str, part: &str| {
        let text = seen[what].as_str().unwrap_or_default();
        assert!(text.contains(part), "{what}: {text}");
    };
    says("hover", "main");
    says("home", "main from 0 ns to ");
    says("down", "OpenMP worker 1 from 0 ns to ");
    let span = |what: &str| {
        let ends: Vec<f64> = rows(&seen[what]).iter().filter_map(Value::as_f64).collect();
        assert_eq!(ends.len(), 2, "{what}: {}", seen[what]);
        ends[1] - ends[0]
    };
    assert_eq!(span("whole") as u64, stats["duration_ns"].as_u64().expect("a time"));
    assert!((span("zoomed") / span("whole") - 0.5).abs() < 0.01);
    assert_eq!(span("again"), span("whole"));
    assert!((span("dragged") / span("whole") - 0.25).abs() < 0.05, "{}", seen["dragged"]);
    says("command", "omptrace view ");
    says("command", " --window 0ns..");
    // Useful work and locks have their colours.
    for colour in ["#0072b2", "#d55e00"] {
        assert!(seen["colours"][colour].as_u64() > Some(100), "{colour}: {}", seen["colours"]);
    }

    for width in ["360", "1600"] {
        assert_eq!(seen["widths"][width].to_string(), width);
    }
    assert_ne!(seen["light"], seen["dark"]);
    assert_eq!(seen["pdf"], "%PDF-");
}

#[test]
fn tasks_are_shown_by_their_duration() {
    let traces = Traces::folder();
    let trace = traced(&traces, "taskwait");
    let stats = stats(&trace);
    let folder = tempfile::tempdir().expect("a folder");
    let seen = read_page(&page(folder.path(), &[&trace]), None);
    assert_eq!(seen["errors"], serde_json::json!([]));
    let constructs = rows(&stats["constructs"]).iter();
    let tasks: Vec<&Value> =
        constructs.filter(|row| row["category"] == "task").map(|row| &row["count"]).collect();
    assert_eq!(tasks.len(), 1, "the program has one task construct");
    let shown: Vec<&Value> = rows(&seen["numbers"]["tasks"]).iter().collect();
    assert_eq!(shown, tasks);
}

/// A trace of a graphics processor, which ran 32 kernels of 8 threads.
#[test]
fn devices_and_counters_are_lanes_below_the_threads() {
    let trace = root().join("viewer-export/tests/devices/nvidia_threads.omptrace");
    let folder = tempfile::tempdir().expect("a folder");
    let seen = read_page(&page(folder.path(), &[&trace]), None);
    assert_eq!(seen["errors"], serde_json::json!([]));
    let levels: Vec<(&str, &str)> = rows(&seen["levels"])
        .iter()
        .map(|level| level.as_str().expect("text"))
        .map(|level| level.split_once(" from 0 ns to ").expect("a time"))
        .collect();
    let most_of = |name: &str| -> f64 {
        let level = levels.iter().find(|(level, _)| *level == name);
        let (_, level) = level.unwrap_or_else(|| panic!("{name}: {levels:?}"));
        let (_, most) = level.split_once("; at most ").expect("the largest value");
        let mut words = most.split(' ');
        let number: f64 = words.next().expect("a number").parse().expect("a number");
        let unit = words.next().expect("a unit");
        number * if unit == "kB" { 1e3 } else { 1.0 }
    };
    // What ran at once, and what was in use, on average in the fullest bin.
    let (kernels, bytes) = (most_of("kernels on device 0"), most_of("bytes in use on device 0"));
    assert!(kernels > 0.0 && kernels <= 8.0, "{kernels}");
    // With three digits.
    assert!(bytes > 4096.0 && bytes <= 32_800.0, "{bytes}");
    assert!(most_of("MB/s to device 0") > 0.0);
}

/// A loop with a dynamic schedule, whose chunks have a chart.
#[test]
fn chunks_are_shown_by_their_duration() {
    let traces = Traces::folder();
    let program = compile("tests/programs/scalable.c", Compiler::Clang22, &[]);
    traces.record(Command::new(program).arg("dynamic").env("OMP_NUM_THREADS", "2"));
    let stats = stats(&traces.only());
    let folder = tempfile::tempdir().expect("a folder");
    let seen = read_page(&page(folder.path(), &[&traces.only()]), None);
    assert_eq!(seen["errors"], serde_json::json!([]));
    let chunks: Vec<&Value> = rows(&stats["constructs"])
        .iter()
        .map(|row| &row["chunks"])
        .filter(|chunks| chunks.is_u64())
        .collect();
    assert_eq!(rows(&seen["numbers"]["tasks"]).iter().collect::<Vec<_>>(), chunks);
    assert!(chunks.len() == 1, "the program has one loop: {chunks:?}");
}

#[test]
fn each_process_has_its_line_over_time() {
    let (one, two) = (Traces::folder(), Traces::folder());
    let (first, second) = (traced(&one, "imbalance"), traced(&two, "critical"));
    let folder = tempfile::tempdir().expect("a folder");
    let seen = read_page(&page(folder.path(), &[&first, &second]), None);
    assert_eq!(seen["errors"], serde_json::json!([]));
    let words = ["stats".as_ref(), "--json".as_ref(), "--all".as_ref()];
    let inputs = [first.as_os_str(), second.as_os_str()];
    let output = omptrace(words.iter().chain(&inputs));
    let stats: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let lines = rows(&seen["numbers"]["heat"]);
    let names =
        |rows: &[Value], field: &str| -> Vec<Value> { rows.iter().map(|row| row[field].clone()).collect() };
    assert_eq!(names(lines, "process"), names(rows(&stats["processes"]), "name"));
    let useful: u64 = lines.iter().map(|line| line["useful_ns"].as_u64().expect("a time")).sum();
    assert_eq!(useful, stats["accounting"]["useful_ns"]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_flame_graph_has_the_times_of_functions_and_can_be_used() {
    let traces = Traces::folder();
    let program = compile("tests/programs/samples.c", Compiler::Clang22, &[]);
    let mut command = Command::new(program);
    command.args(["2", "10", "40"]).env("LD_LIBRARY_PATH", runtime("llvm-19")).env("OMPTRACE_SAMPLE", "cpu");
    traces.record(&mut command);
    let trace = traces.only();
    let stats = stats(&trace);
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), &[&trace]);
    let seen = read_page(&page, None);
    for what in ["errors", "requests", "nameless", "contrast", "dark_contrast"] {
        assert_eq!(seen[what], serde_json::json!([]), "{what}");
    }

    let flame = &seen["flame"];
    let frames = rows(&flame["frames"]);
    assert_eq!(flame["items"].as_u64(), Some(frames.len() as u64));
    assert_eq!(frames[0]["ns"], stats["sampling"]["sampled_ns"]);
    // All calls of a function that does not call itself are its total time.
    let total = |name: &str| -> u64 {
        let of_name = frames.iter().filter(|frame| frame["name"] == name);
        of_name.filter_map(|frame| frame["ns"].as_u64()).sum()
    };
    for function in rows(&stats["functions"]) {
        let name = function["function"].as_str().expect("a name");
        if ["seventy", "twenty", "burn"].contains(&name) {
            assert_eq!(Some(total(name)), function["total_ns"].as_u64(), "{name}");
        }
    }
    let number = |frame: &Value, what: &str| frame[what].as_f64().expect("a number");
    let whole = number(&frames[0], "width");
    for frame in frames {
        let share = number(frame, "ns") / number(&frames[0], "ns");
        assert!((number(frame, "width") - share * whole).abs() < 2.0, "{frame}");
        let row = number(frame, "top") / 21.0 + 1.0;
        assert!((row - number(frame, "level")).abs() < 0.05, "{frame}");
    }

    let says = |what: &str, part: &str| {
        let text = flame[what].as_str().unwrap_or_default();
        assert!(text.starts_with(part), "{what}: {text}");
    };
    says("root", "all samples: ");
    says("down", frames[1]["name"].as_str().expect("a name"));
    says("below", frames[2]["name"].as_str().expect("a name"));
    says("up", frames[1]["name"].as_str().expect("a name"));
    // Who is shown is as wide as all, and so are those that called it.
    for (what, level) in [("zoomed", 3), ("clicked", 2)] {
        let shown = rows(&flame[what]);
        assert!(shown.len() <= frames.len());
        for frame in shown.iter().filter(|frame| frame["level"].as_u64() <= Some(level)) {
            assert!((number(frame, "width") - whole).abs() < 1.0, "{what}: {frame}");
        }
    }
    for what in ["again", "button"] {
        let shown = rows(&flame[what]);
        assert_eq!(shown.len(), frames.len(), "{what}");
        for (shown, frame) in shown.iter().zip(frames) {
            let moved = ["left", "top", "width"].map(|of| number(shown, of) - number(frame, of));
            assert!(moved.iter().all(|by| by.abs() < 1.0), "{what}: {shown} {frame}");
        }
    }
}

/// A program and a trace may be called anything.
#[test]
fn names_from_traces_are_text_and_never_run() {
    let name = "<img src=x onerror=planted=1>\"'&<script>planted=2<|script>";
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join(name);
    fs::copy(compile("tests/programs/planted.c", Compiler::Clang22, &[]), &program).expect("a copy");
    let traces = Traces::folder();
    traces.record(Command::new(&program).arg("lock").env("OMP_NUM_THREADS", "2"));
    let trace = folder.path().join(format!("{name}.omptrace"));
    fs::rename(traces.only(), &trace)
        .or_else(|_| fs::copy(traces.only(), &trace).map(drop))
        .expect("a trace");
    let page = page(folder.path(), &[&trace]);
    let seen = read_page(&page, None);
    assert_eq!(seen["errors"], serde_json::json!([]));
    assert_eq!(seen["scripts_of_names"], Value::Null);
    let html = fs::read_to_string(&page).expect("a page");
    assert!(html.contains("&lt;img src=x onerror=planted=1&gt;"), "the name is shown");
    assert!(!html.contains("<img"), "the name is no tag");
}

#[test]
fn runs_before_and_after_are_compared() {
    let (one, two) = (Traces::folder(), Traces::folder());
    let (before, after) = (traced(&one, "critical"), traced(&two, "imbalance"));
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), &[&before, Path::new("--"), &after]);
    let html = fs::read_to_string(page).expect("a page");
    for part in ["Before and after", "id=diff-table", "whole run"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn markdown_fits_a_summary_and_names_the_fault() {
    let traces = Traces::folder();
    let trace = traced(&traces, "critical");
    let words = ["report".as_ref(), trace.as_os_str(), "--md".as_ref()];
    let output = omptrace(words.iter());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.len() <= 64 << 10);
    for part in ["critical_contention", "omptrace view ", "run details"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// `cargo xtask assets` fetches them.
#[test]
fn the_page_ships_the_library_that_npm_has() {
    let assets = root().join("analysis/report/assets");
    let package = tools().join("node_modules/uplot");
    let json = |path: PathBuf| -> Value {
        let text = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_slice(&text).expect("JSON")
    };
    let locked = json(assets.join("package-lock.json"));
    let installed = json(package.join("package.json"));
    assert_eq!(locked["packages"]["node_modules/uplot"]["version"], installed["version"]);
    for (file, name) in [
        ("dist/uPlot.iife.min.js", "uPlot.iife.min.js"),
        ("dist/uPlot.min.css", "uPlot.min.css"),
        ("LICENSE", "uPlot.LICENSE"),
    ] {
        let ours = fs::read(assets.join("vendor").join(name)).expect("an asset");
        assert!(ours == fs::read(package.join(file)).expect("a file"), "{name}");
    }
}
