//! Summaries that `record` and `recover` put into traces, and what is said of the ranks of a job.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use omptrace_analysis::{Options, Stats, check};
use omptrace_tests::env::{Compiler, compile, omptrace_program};
use omptrace_tests::trace::{Traces, info, omptrace};
use omptrace_trace_format::{Reader, Severity};
use serde_json::Value;

/// Records a program of the tests as this rank of a job.
fn record(trace: &Path, options: &[&str], program: &[&OsStr], rank: u32) -> Output {
    let output = Command::new(omptrace_program())
        .arg("record")
        .args(options)
        .arg("-o")
        .arg(trace)
        .arg("--")
        .args(program)
        .env("OMP_NUM_THREADS", "2")
        .env("OMPI_COMM_WORLD_RANK", rank.to_string())
        .output()
        .expect("omptrace can be run");
    assert!(trace.exists(), "{output:?}");
    output
}

fn summary_bytes(trace: &Path) -> u64 {
    info(trace)["size"]["summary_bytes"].as_u64().expect("a number")
}

/// What `stats --json --all` prints, and what it says beside it.
fn stats(input: &Path, options: &[&str]) -> (String, String) {
    let words = ["stats", "--json", "--all"].map(OsStr::new);
    let options = options.iter().map(OsStr::new);
    let output = omptrace(words.into_iter().chain(options).chain([input.as_os_str()]));
    assert!(output.status.success(), "{output:?}");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_trace_has_its_summary_from_record_or_recover_and_stats_is_the_same() {
    let program = compile("tests/programs/planted.c", Compiler::Clang22, &["-g"]);
    let traces = Traces::folder();
    let program = [program.as_os_str(), "imbalance".as_ref()];
    let with = traces.path().join("with.omptrace");
    record(&with, &[], &program, 0);
    let (bytes, answer) = (summary_bytes(&with), stats(&with, &[]));
    assert!((1..=64 << 10).contains(&bytes), "{bytes} bytes");
    assert!(answer.0.contains("accounting"), "{answer:?}");
    assert_eq!(stats(&with, &["--from", "events"]), answer);
    for (options, has_summary) in [
        (["--quiet", "--summary=soon"], true),
        (["--quiet", "--summary=wait"], true),
        (["--quiet", "--summary=later"], false),
    ] {
        let trace = traces.path().join("option.omptrace");
        record(&trace, &options, &program, 0);
        assert_eq!(summary_bytes(&trace) > 0, has_summary, "{options:?}");
        fs::remove_file(&trace).expect("it is there");
    }

    let without = traces.path().join("without.omptrace");
    record(&without, &["--no-summary"], &program, 0);
    assert_eq!(summary_bytes(&without), 0);
    let answer = stats(&without, &[]);
    let recover = |options: &[&str]| {
        let words = [OsStr::new("recover")].into_iter();
        let options = options.iter().map(OsStr::new);
        let output = omptrace(words.chain(options).chain([without.as_os_str()]));
        assert!(output.status.success(), "{output:?}");
    };
    recover(&["--no-summary"]);
    assert_eq!(summary_bytes(&without), 0);
    recover(&[]);
    assert!(summary_bytes(&without) > 0);
    assert_eq!(stats(&without, &[]), answer);
    let checked = omptrace([OsStr::new("check"), without.as_os_str()]);
    assert!(checked.status.success(), "{checked:?}");

    // Names that are looked up later would be others in a summary.
    let later = traces.path().join("later.omptrace");
    record(&later, &["--symbols", "later"], &program, 0);
    assert_eq!(summary_bytes(&later), 0);
    let named = omptrace([OsStr::new("symbolize"), later.as_os_str()]);
    assert!(named.status.code().is_some_and(|code| code < 2), "{named:?}");
    assert!(summary_bytes(&later) > 0, "{named:?}");
}

#[test]
fn ranks_that_died_or_are_missing_are_reported() {
    let planted = compile("tests/programs/planted.c", Compiler::Clang22, &[]);
    let ends = compile("tests/programs/reliability_ends.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let folder = traces.path().join("job");
    std::fs::create_dir(&folder).expect("a folder");
    for rank in [0, 1, 2, 4] {
        let program = match rank {
            4 => [ends.as_os_str(), "_exit".as_ref()],
            _ => [planted.as_os_str(), "imbalance".as_ref()],
        };
        record(&folder.join(format!("{rank}.omptrace")), &[], &program, rank);
    }
    let (answer, _) = stats(&folder, &[]);
    let ranks = &json(&answer)["ranks"];
    assert_eq!(ranks["count"], 4, "{ranks:#}");
    assert_eq!(ranks["missing"], serde_json::json!([3]), "{ranks:#}");
    assert_eq!(ranks["died"], serde_json::json!([4]), "{ranks:#}");

    // The same by summaries alone, but for what needs a replay.
    let (by_summaries, _) = stats(&folder, &["--from", "summaries"]);
    let (by_summaries, by_events) = (json(&by_summaries), json(&stats(&folder, &["--from", "events"]).0));
    assert_eq!(json(&answer), by_events);
    for field in ["accounting", "efficiency", "regions", "blame", "constructs", "processes", "ranks"] {
        assert_eq!(by_summaries[field], by_events[field], "{field}");
    }
    let text = omptrace([OsStr::new("stats"), folder.as_os_str()]);
    let text = String::from_utf8(text.stdout).expect("UTF-8");
    assert!(text.contains("no trace of rank 3"), "{text}");
    assert!(text.contains("killed or not finished: rank 4"), "{text}");
}

/// Whatever part of a recorded trace is damaged: header, metadata, events, summary, checkpoints, index.
#[test]
fn no_flipped_bit_of_a_recorded_trace_is_sound() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let trace = traces.path().join("x.omptrace");
    let program = [program.as_os_str(), "2".as_ref(), "4".as_ref()];
    record(&trace, &[], &program, 0);
    let is_sound = |trace: &Path| {
        let Ok(reader) = Reader::open(trace) else {
            return false;
        };
        let findings = check(&reader);
        findings.iter().all(|finding| finding.severity == Severity::Note)
    };
    assert!(is_sound(&trace));
    assert!(summary_bytes(&trace) > 0);
    let file = fs::read(&trace).expect("our file");
    let damaged = traces.path().join("damaged.omptrace");
    for (number, at) in (0..file.len()).step_by(23).enumerate() {
        let mut bytes = file.clone();
        bytes[at] ^= 1 << (number % 8);
        fs::write(&damaged, &bytes).expect("our file");
        assert!(!is_sound(&damaged), "byte {at} of {}", file.len());
    }
}

/// What `record` and `info` say of a file is so.
#[test]
fn the_size_of_a_trace_is_that_of_its_file() {
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    let traces = Traces::folder();
    let trace = traces.path().join("x.omptrace");
    let program = [program.as_os_str(), "2".as_ref(), "10".as_ref()];
    let said = record(&trace, &[], &program, 0);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let bytes = fs::metadata(&trace).expect("our file").len() as f64;
    let number = |line: &str| line.split_once(" kB, ")?.0.rsplit('(').next()?.parse::<f64>().ok();
    let kb = said.lines().find_map(number).expect("a size in kB");
    assert!((kb * 1000.0 - bytes).abs() < 0.05 * bytes, "{said} {bytes}");
    let info = info(&trace);
    let events = info["events"].as_u64().expect("a number") as f64;
    let per_event = info["size"]["bytes_per_event"].as_f64().expect("a number");
    assert!((per_event * events - bytes).abs() < 0.05 * bytes, "{info}");
}

/// What `record` shows of a run that takes too long to analyse is what `stats --window` shows of that part, and no more is read.
#[test]
fn the_beginning_of_a_run_is_analysed_by_itself() {
    let program = compile("tests/programs/many_tasks.c", Compiler::Clang22, &["-g"]);
    let traces = Traces::folder();
    let trace = traces.path().join("many.omptrace");
    record(&trace, &["--no-summary"], &[program.as_os_str(), "400000".as_ref()], 0);
    let all = Reader::open(&trace).expect("a trace").summary().event_bytes;
    assert!(all > 4 << 20, "{all} bytes of events");
    for parts in [2, 8] {
        let reader = Reader::open(&trace).expect("a trace");
        let end = reader.ticks_at_event_bytes(all / parts).expect("there is more");
        let beginning = Stats::of_beginning(&reader, all / parts).expect("there is more");
        let based_on = beginning.based_on.expect("a part");
        assert!((based_on.share * parts as f64 - 1.0).abs() < 1e-6 && based_on.windows.is_none());
        let read = reader.event_bytes_read();
        // Chunks are read whole, some ahead, and the first of each stream more than once.
        assert!((all / parts..all / parts + all / 3).contains(&read), "{read} of {all} bytes for 1/{parts}");
        let window = Some((i64::MIN, reader.clock().ns(end)));
        let (window, _) =
            Stats::with(&[&reader], &Options { window, ..Options::default() }).expect("something is there");
        assert_eq!(beginning.answers.accounting, window.answers.accounting, "1/{parts}");
        assert_eq!(beginning.answers.threads, window.answers.threads, "1/{parts}");
    }
    assert_eq!(Reader::open(&trace).expect("a trace").ticks_at_event_bytes(all), None);
}

/// `stats --estimate` answers from a part of a long run, and marks it, so that it is not compared with others.
#[test]
fn an_estimate_is_marked_and_not_compared() {
    let program = compile("tests/programs/many_tasks.c", Compiler::Clang22, &["-g"]);
    let traces = Traces::folder();
    let trace = traces.path().join("many.omptrace");
    record(&trace, &["--no-summary"], &[program.as_os_str(), "1500000".as_ref()], 0);
    let stats = |options: &[&str]| {
        let output = omptrace([["stats"].as_slice(), options, &[trace.to_str().expect("UTF-8")]].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let text = stats(&["--estimate", "--json"]);
    let estimated: Value = serde_json::from_str(&text).expect("JSON");
    let share = estimated["based_on"]["share"].as_f64().expect("a share");
    assert!(share > 0.0 && share < 1.0, "{share}");
    // The program has one region only, so this is its beginning.
    assert!(estimated["based_on"]["windows"].is_null());
    assert_eq!(estimated["findings"], serde_json::json!([]));
    let words = stats(&["--estimate"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the rest of the run may differ"), "{words}");
    let json = traces.path().join("estimated.json");
    fs::write(&json, text).expect("our folder");
    let compared = omptrace([Path::new("diff"), &json, &json]);
    let said = String::from_utf8_lossy(&compared.stderr);
    assert!(!compared.status.success() && said.contains("estimates from a part of the run"), "{said}");

    // What has a summary is answered exactly.
    let recovered = omptrace([Path::new("recover"), &trace]);
    assert!(recovered.status.success(), "{recovered:?}");
    let exact: Value = serde_json::from_str(&stats(&["--estimate", "--json"])).expect("JSON");
    assert!(exact.get("based_on").is_none());
}
