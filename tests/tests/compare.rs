//! Real runs compared: with themselves, with a repaired program, on several numbers of threads; and as TALP's JSON.

use std::path::{Path, PathBuf};
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, omptrace_program, python, root, talp_pages};
use omptrace_tests::trace::{Traces, omptrace};
use serde_json::Value;

/// Runs of `planted imbalance`, on this many threads.
fn runs(count: usize, threads: usize, repaired: bool) -> Vec<(Traces, PathBuf)> {
    let program = compile("tests/programs/planted.c", Compiler::Clang22, &[]);
    let run = |_| {
        let traces = Traces::folder();
        let mut command = Command::new(&program);
        command.arg("imbalance").args(repaired.then_some("repaired"));
        traces.record(command.env("OMP_NUM_THREADS", threads.to_string()));
        let trace = traces.only();
        (traces, trace)
    };
    (0..count).map(run).collect()
}

/// `omptrace diff --json`, and its status.
fn diff(options: &[&str], before: &[(Traces, PathBuf)], after: &[(Traces, PathBuf)]) -> (Value, i32) {
    let mut words: Vec<&Path> = vec!["diff".as_ref(), "--json".as_ref(), "--all".as_ref()];
    words.extend(options.iter().map(Path::new));
    words.extend(before.iter().map(|(_, trace)| trace.as_path()));
    words.push("--".as_ref());
    words.extend(after.iter().map(|(_, trace)| trace.as_path()));
    let output = omptrace(words);
    let answer = serde_json::from_slice(&output.stdout);
    let answer = answer.unwrap_or_else(|_| panic!("{output:?}"));
    (answer, output.status.code().expect("a status"))
}

#[test]
fn a_repaired_imbalance_is_found_and_equal_programs_are_equal() {
    let before = runs(5, 2, false);
    let (old, again) = before.split_at(2);
    let (answer, status) = diff(&["--fail-on", "duration>5%"], old, &again[..2]);
    assert_eq!((&answer["is_different"], status), (&false.into(), 0), "{answer:#}");

    let after = runs(3, 2, true);
    let (answer, _) = diff(&[], &before, &after);
    let rows = answer["rows"].as_array().expect("rows");
    let is_it = |row: &&Value| row["metric"] == "imbalance" && !row["region"].is_null();
    let row = rows.iter().find(is_it).expect("imbalance of the region");
    // Of five steps, each thread waits 4 ms of each on average; a busy machine adds its own.
    let less = -row["difference"].as_f64().expect("a number");
    assert!(less > 5e6, "{row:#}");
    let function = |side: &str| row["region"][side]["function"].as_str();
    assert_eq!((function("before"), function("after")), (Some("imbalance"), Some("imbalance")));
}

#[test]
fn record_ends_with_where_the_time_went() {
    let program = compile("tests/programs/planted.c", Compiler::Clang22, &[]);
    let said = |options: &[&str]| {
        let traces = Traces::folder();
        let output = Command::new(omptrace_program())
            .arg("record")
            .args(options)
            .arg("-o")
            .arg(traces.path().join("a.omptrace"))
            .arg("--")
            .args([program.as_os_str(), "imbalance".as_ref()])
            .env("OMP_NUM_THREADS", "2")
            .output()
            .expect("omptrace can be run");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    let words = [
        ", exit status 0",
        "Parallel efficiency",
        "  1. Load imbalance at planted.c:",
        "none lost",
        "omptrace report ",
    ];
    let (all, quiet) = (said(&[]), said(&["--quiet"]));
    for words in words {
        assert!(all.contains(words) && !quiet.contains(words), "{all}{quiet}");
    }
    assert_eq!(quiet, "");
}

/// TALP's JSON of a trace.
fn talp(trace: &Path, file: &Path) -> Value {
    let output = omptrace(["stats".as_ref(), trace.as_os_str(), "--talp".as_ref(), file.as_os_str()]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read(file).expect("our file");
    serde_json::from_slice(&text).expect("JSON")
}

/// The pages that the real `talp ci-report` makes of the files below `runs` in a folder.
fn talp_pages_of(folder: &Traces) -> String {
    let pages = folder.path().join("pages");
    let output = Command::new(python())
        .args(["-m", "talp_pages.talp", "ci-report", "--no-badge", "-i"])
        .arg(folder.path().join("runs"))
        .arg("-o")
        .arg(&pages)
        .env("PYTHONPATH", talp_pages())
        .output()
        .expect("talp can be run");
    assert!(output.status.success(), "{output:?}");
    html_of(&pages)
}

#[test]
fn talp_pages_reads_what_we_write() {
    let folder = Traces::folder();
    let input = folder.path().join("runs/strong");
    std::fs::create_dir_all(&input).expect("a folder");
    for threads in [2, 4] {
        let file = input.join(format!("talp_{threads}.json"));
        for (_traces, trace) in runs(1, threads, false) {
            talp(&trace, &file);
        }
    }
    let html = talp_pages_of(&folder);
    for words in ["2xOpenMP", "4xOpenMP", "OpenMP Load balance"] {
        assert!(html.contains(words), "{words} is not in the pages");
    }
}

/// Of devices that recorded what they did, and of those that the host alone observed.
#[test]
fn talp_pages_reads_what_we_write_of_devices() {
    let flags = ["-fopenmp-targets=x86_64-pc-linux-gnu"];
    let program = compile("tests/programs/offload.c", Compiler::Clang22, &flags);
    let traces = Traces::folder();
    traces.record(Command::new(program).args(["constructs", "3"]));
    let observed = traces.only();
    let recorded = root().join("viewer-export/tests/devices/amd_devices.omptrace");
    for (trace, is_recorded) in [(&*observed, false), (&*recorded, true)] {
        let folder = Traces::folder();
        let input = folder.path().join("runs/strong");
        std::fs::create_dir_all(&input).expect("a folder");
        let json = talp(trace, &input.join("talp_1.json"));
        let global = &json["Application"]["Global"];
        assert!(global["numGpus"].as_u64() > Some(1), "{global}");
        let offload = global["deviceOffloadEfficiency"].as_f64();
        assert!(offload.is_some_and(|share| (0.0..1.0).contains(&share)), "{global}");
        for name in [
            "gpuParallelEfficiency",
            "gpuLoadBalance",
            "gpuCommunicationEfficiency",
            "gpuOrchestrationEfficiency",
        ] {
            let share = global[name].as_f64();
            let is_share = share.is_some_and(|share| 0.0 < share && share <= 1.0);
            assert_eq!(is_share, is_recorded, "{name}: {global}");
            assert!(is_recorded || global[name].is_null(), "{name}: {global}");
        }
        let html = talp_pages_of(&folder);
        for words in ["Device Offload efficiency", "GPU Load Balance", "GPU"] {
            assert!(html.contains(words), "{words} is not in the pages of {trace:?}");
        }
    }
}

/// All pages below a folder.
fn html_of(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("pages");
    let paths = entries.map(|entry| entry.expect("can be read").path());
    paths
        .map(|path| match path.is_dir() {
            true => html_of(&path),
            false => std::fs::read_to_string(path).unwrap_or_default(),
        })
        .collect()
}
