//! Traces that omptrace 0.2.0 recorded, and what it answered: later versions answer the same, byte for byte, but for
//! repairs, which their commits name. `tests/0.2.0/README.md` says what each trace is of.
//!
//! `OMPTRACE_BLESS=1` writes what came out; read the difference before you commit it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::{folder, omptrace, run};
use crate::traces::write_trace;

/// What is asked of each set of traces, and the file that has the answer.
const QUESTIONS: &[(&str, &[&str])] = &[
    ("stats.txt", &["stats", "--full", "--all"]),
    ("stats.json", &["stats", "--json", "--all"]),
    ("events.json", &["stats", "--json", "--all", "--from", "events"]),
    ("check.txt", &["check"]),
];

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/0.2.0")
}

/// The sets of traces: a folder each.
fn sets() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(samples())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn traces_of_0_2_0_are_answered_as_before() {
    let sets = sets();
    assert!(sets.len() >= 16, "{sets:?}");
    let mut different = Vec::new();
    for set in sets {
        let source = samples().join(&set);
        // A copy: no command may write where the samples lie.
        let copy = folder(&format!("earlier_versions_{set}"));
        fs::remove_file(copy.join("libomptrace.so")).unwrap();
        let mut traces = Vec::new();
        for entry in fs::read_dir(&source).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if name.ends_with(".omptrace") || name.ends_with(".spool") {
                fs::copy(&path, copy.join(&name)).unwrap();
            }
            if name.ends_with(".omptrace") {
                traces.push(name);
            }
        }
        traces.sort();
        assert!(!traces.is_empty(), "{set}");
        for (file, question) in QUESTIONS {
            let said = run(omptrace(&copy).args(*question).args(&traces));
            let answer =
                format!("status {:?}\n--- stdout\n{}--- stderr\n{}", said.status, said.stdout, said.stderr);
            let reviewed = source.join(file);
            if std::env::var_os("OMPTRACE_BLESS").is_some() {
                fs::write(&reviewed, &answer).unwrap();
            }
            if fs::read_to_string(&reviewed).unwrap_or_default() != answer {
                fs::write(copy.join(file), &answer).unwrap();
                different.push(format!("diff {} {}", reviewed.display(), copy.join(file).display()));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Two traces of programs that were recorded one after the other.
fn two_recordings(test: &str) -> (PathBuf, Vec<String>) {
    let folder = folder(test);
    fs::remove_file(folder.join("libomptrace.so")).unwrap();
    let mut traces = Vec::new();
    for set in ["stencil", "task_tree"] {
        let mut entries = fs::read_dir(samples().join(set)).unwrap().map(|entry| entry.unwrap());
        let trace =
            entries.find(|entry| entry.path().extension().is_some_and(|it| it == "omptrace")).unwrap();
        let name = trace.file_name().into_string().unwrap();
        fs::copy(trace.path(), folder.join(&name)).unwrap();
        traces.push(name);
    }
    (folder, traces)
}

#[test]
fn separate_runs_are_shown_one_by_one() {
    let (folder, traces) = two_recordings("separate_runs_are_shown_one_by_one");
    let [first, second] = &traces[..] else { panic!("{traces:?}") };
    let alone = |trace: &String| run(omptrace(&folder).args(["stats", "--all", trace])).stdout;
    let expected =
        format!("run 1 of 2: {first}\n\n{}\nrun 2 of 2: {second}\n\n{}", alone(first), alone(second));
    for inputs in [vec![&**second, &**first], vec!["."]] {
        let both = run(omptrace(&folder).args(["stats", "--all"]).args(&inputs));
        assert_eq!(both.status, Some(0), "{both:?}");
        assert_eq!(both.stdout.replace("./", ""), expected);
        let words = ["the inputs are 2 separate runs", "compare the runs: omptrace diff "];
        assert!(words.iter().all(|words| both.stderr.contains(words)), "{}", both.stderr);
    }
    // One answer for programs is of all.
    let json = run(omptrace(&folder).args(["stats", "--select", "notes"]).args(&traces));
    assert!(json.stdout.contains("the inputs are 2 separate runs, analysed as one"), "{json:?}");
    assert!(json.stderr.contains("separate runs"), "{json:?}");
}

/// The tracer of a killed program records no end.
#[test]
fn a_killed_run_ends_with_its_last_event() {
    let (folder, later) = sample("a_killed_run_ends_with_its_last_event", "killed");
    write_trace(&folder.join("made.omptrace"));
    let both = run(omptrace(&folder).args(["stats", "."]));
    assert!(both.stdout.contains("run 1 of 2: ./made.omptrace"), "{both:?}");
    assert!(both.stdout.contains(&format!("run 2 of 2: ./{later}")), "{both:?}");
}

/// One sample in a folder of its own.
fn sample(test: &str, set: &str) -> (PathBuf, String) {
    let folder = folder(test);
    fs::remove_file(folder.join("libomptrace.so")).unwrap();
    let mut entries = fs::read_dir(samples().join(set)).unwrap().map(|entry| entry.unwrap());
    let trace = entries.find(|entry| entry.path().extension().is_some_and(|it| it == "omptrace")).unwrap();
    let name = trace.file_name().into_string().unwrap();
    fs::copy(trace.path(), folder.join(&name)).unwrap();
    (folder, name)
}

#[test]
fn the_first_screen_fits_and_says_what_else_there_is() {
    let (folder, trace) = sample("the_first_screen_fits", "stencil");
    let said = run(omptrace(&folder).args(["stats", &trace]));
    assert_eq!(said.status, Some(0), "{said:?}");
    for words in
        ["stencil", " wall", "Where the thread time went", "Efficiency (POP)", "More: --full", "--json"]
    {
        assert!(said.stdout.contains(words), "{words}\n{}", said.stdout);
    }
    assert!(said.stdout.lines().count() <= 40, "{}", said.stdout);
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 80), "{}", said.stdout);
    assert!(!said.stdout.contains(['\x1b', '█']) && !said.stdout.contains("!$omp"), "{}", said.stdout);
    // Who asks for more gets it, by the option's old name too.
    let rows =
        |option: &str| run(omptrace(&folder).args(["stats", "--by", "construct", option, "2", &trace]));
    assert_eq!(rows("--limit").stdout, rows("--top").stdout);
    let functions = run(omptrace(&folder).args(["stats", "--by", "function", &trace])).stdout;
    assert!(functions.contains("omptrace record --sample"), "{functions}");
}

/// As programmers write them.
#[test]
fn constructs_are_spelled_as_in_their_language() {
    for (set, has_sentinel) in [("stencil", false), ("fortran", true)] {
        let (folder, trace) = sample(&format!("constructs_are_spelled_{set}"), set);
        for question in [&["stats", "--full"][..], &["report", "--md"]] {
            let said = run(omptrace(&folder).args(question).arg(&trace));
            assert_eq!(said.stdout.contains("!$omp"), has_sentinel, "{set} {question:?}\n{}", said.stdout);
        }
    }
}

#[test]
fn a_trace_that_is_more_than_a_browser_takes_opens_as_a_window() {
    let (folder, trace) = sample("more_than_a_browser_takes", "stencil");
    for (options, has_window) in [(&["--max-events", "100"][..], true), (&["--whole"], false)] {
        let mut view = omptrace(&folder);
        view.args(["view", "--no-browser", "--port", "0"]).args(options).arg(&trace);
        let mut view = view.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(view.stdout.take().unwrap()).read_line(&mut address).unwrap();
        view.kill().unwrap();
        let said = String::from_utf8(view.wait_with_output().unwrap().stderr).unwrap();
        assert!(address.starts_with("http://"), "{address}{said}");
        assert_eq!(said.contains("about 100 of ") && said.contains("use --whole"), has_window, "{said}");
    }
}
