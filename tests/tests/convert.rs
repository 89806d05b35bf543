//! The bytes of an export do not depend on the number of threads that make it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use omptrace_tests::env::{Compiler, compile, failing_calls, omptrace_program, root};
use omptrace_tests::trace::{Traces, omptrace};
use omptrace_trace_format::Reader;
use omptrace_viewer_export::{ConvertOptions, Format, convert, convert_to_folder};
use serde_json::{Value, json};

/// Memory that a format writes into.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn converted(traces: &[PathBuf], format: &str, threads: usize) -> Vec<u8> {
    let open = |trace: &PathBuf| Reader::open(trace).expect("a trace");
    let readers: Vec<Reader> = traces.iter().map(open).collect();
    let inputs: Vec<&Reader> = readers.iter().collect();
    let format = Format::by_name(format).expect("a format");
    let options = ConvertOptions { threads: NonZero::new(threads), ..ConvertOptions::default() };
    if format.is_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        convert_to_folder(&inputs, format, &options, folder.path(), &mut |_| {})
            .expect("the folder can be written to");
        return content(folder.path());
    }
    let out = Memory::default();
    let target = Box::new(out.clone());
    convert(&inputs, format, &options, target, &mut |_| {}).expect("memory can be written");
    std::mem::take(&mut *out.0.lock().expect("no panic"))
}

/// The files of a folder and of those in it, one after the other, by name.
fn content(folder: &Path) -> Vec<u8> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let bytes = |path: &PathBuf| {
        if path.is_dir() { content(path) } else { fs::read(path).expect("a file") }
    };
    paths.iter().flat_map(bytes).collect()
}

#[test]
fn output_is_the_same_for_any_number_of_threads() {
    let traces = Traces::folder();
    // A tree of tasks, so large that each of two streams is decoded in many batches.
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    traces.record(Command::new(program).args(["2", "14"]));
    is_the_same(&traces.files());
}

/// They are converted side by side to most formats, more than there are threads or shares of the file.
#[test]
fn output_of_processes_is_the_same_for_any_number_of_threads() {
    let traces = Traces::folder();
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    for depth in [14, 12, 3, 13, 3, 3, 3, 3, 12, 3] {
        traces.record(Command::new(&program).args(["2", &depth.to_string()]));
    }
    is_the_same(&traces.files());
}

/// Slices, instants and counters of an export, by the system's number of their process: all that has no numbers of the export.
fn events_by_process(export: &[u8]) -> BTreeMap<String, Vec<String>> {
    let json: Value = serde_json::from_slice(export).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events");
    let mut by_process: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // Only of several processes.
    let is_about_clocks = |event: &Value| {
        let name = event["name"].as_str().unwrap_or_default();
        name.starts_with("the clocks of the processes were aligned")
    };
    for event in events {
        let is_event = ["B", "E", "i", "C"].iter().any(|phase| event["ph"] == *phase);
        if is_event && !is_about_clocks(event) {
            let process = event["pid"].to_string();
            let event = without_numbers(event.clone());
            by_process.entry(process).or_default().push(event);
        }
    }
    by_process
}

/// The event without the time of the export's first process, and without the numbers of processes. The values of
/// counters have keys with those numbers, but for the first process.
fn without_numbers(mut event: Value) -> String {
    let process = format!(" ({})", event["pid"]);
    let event = event.as_object_mut().expect("an object");
    if let Some(values) = event.get_mut("args").and_then(Value::as_object_mut) {
        let values_without = std::mem::take(values).into_iter();
        values.extend(values_without.map(|(key, value)| {
            let key = key.strip_suffix(&process).unwrap_or(&key).to_owned();
            (key, value)
        }));
    }
    event.retain(|key, _| key != "pid" && key != "tid" && key != "ts" && key != "id");
    serde_json::to_string(event).expect("it was JSON")
}

/// Each process has the events that it has in an export of its own, in their order.
#[test]
fn shares_that_interleave_lose_nothing() {
    let traces = Traces::folder();
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    for depth in [13, 12, 12] {
        traces.record(Command::new(&program).args(["2", &depth.to_string()]));
    }
    let files = traces.files();
    let together = converted(&files, "chrome", 3);
    assert!(together.len() > 4 << 20, "buffers of each share");
    let alone = files.iter().flat_map(|file| {
        let file = std::slice::from_ref(file);
        events_by_process(&converted(file, "chrome", 1))
    });
    let alone: BTreeMap<String, Vec<String>> = alone.collect();
    assert_eq!(alone.len(), 3);
    assert!(events_by_process(&together) == alone);
}

fn is_the_same(traces: &[PathBuf]) {
    for format in ["chrome", "perfetto", "otf2", "text"] {
        let alone = converted(traces, format, 1);
        assert!(alone.len() > 1 << 20, "{format}");
        // With two, one encodes what it interprets; with more, another does.
        for threads in [2, 3, 8, 40] {
            assert!(alone == converted(traces, format, threads), "{format}");
        }
    }
}

/// Batch systems and containers bound the threads of a user.
#[test]
fn all_is_done_where_there_can_be_few_threads() {
    let traces = Traces::folder();
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    for _ in 0..3 {
        traces.record(Command::new(&program).args(["2", "6"]));
    }
    let shim = failing_calls();
    let files = traces.files();
    let convert = |format| ["convert", "--jobs", "8", "--to", format, "-o"];
    for arguments in [
        &["info", "--json", "--all"][..],
        &["stats", "--json", "--all"],
        &["check"],
        &["symbolize"],
        &convert("chrome"),
        &convert("perfetto"),
        &convert("otf2"),
    ] {
        let out = traces.path().join(arguments.concat());
        let outcome = |fails: &str| {
            let mut command = Command::new(omptrace_program());
            command.args(arguments);
            if arguments[0] == "convert" {
                command.arg(&out);
            }
            let output = command
                .args(&files)
                .env("LD_PRELOAD", &shim)
                .env("OMPTRACE_TEST_FAIL", fails)
                .output()
                .expect("omptrace can be run");
            assert!(output.status.success(), "{arguments:?}: {output:?}");
            let written = match arguments[..] {
                [.., "chrome", _] => events_by_process(&fs::read(&out).expect("the export")),
                _ => BTreeMap::new(),
            };
            let said = String::from_utf8(output.stdout).expect("UTF-8");
            (said, written)
        };
        let with_all = outcome("");
        for first in [1, 2, 3, 5, 8] {
            let fails = format!("pthread_create:{}:{first}", libc::EAGAIN);
            assert!(outcome(&fails) == with_all, "{arguments:?}, {first}");
        }
    }
}

/// A program of MPI leaves more traces than files may be open, until a program asks for more.
#[test]
fn more_traces_than_files_may_be_open() {
    const OPEN_FILES: u64 = 16;
    let traces = Traces::folder();
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    traces.record(Command::new(program).args(["2", "3"]));
    let trace = traces.only();
    for number in 0..2 * OPEN_FILES {
        fs::copy(&trace, traces.path().join(format!("{number}.omptrace"))).expect("a copy");
    }
    for format in ["chrome", "perfetto", "otf2"] {
        let limited = |most: u64| {
            let script = format!("ulimit -Sn {OPEN_FILES}; ulimit -Hn {most}; exec \"$@\"");
            let mut command = Command::new("sh");
            command.args(["-c", &script, "sh"]).arg(omptrace_program());
            command.args(["convert", "--to", format, "-o"]);
            let output = command
                .arg(traces.path().join(format!("{format}{most}")))
                .arg(traces.path())
                .output()
                .expect("a shell");
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (status, said) = limited(1024);
        assert_eq!(status, Some(0), "{format}: {said}");
        let (status, said) = limited(OPEN_FILES);
        assert_eq!(status, Some(2), "{format}: {said}");
        assert!(said.contains("Too many open files") && said.contains("ulimit -Hn"), "{said}");
    }
}

/// Nothing in the copy names the directories, the arguments or the host, in whatever command shows it; what is measured stays.
#[test]
fn an_anonymous_copy_names_neither_directories_nor_arguments_nor_the_host() {
    let traces = Traces::folder();
    let secret = traces.path().join("my secret/inner");
    fs::create_dir_all(&secret).expect("can be made");
    let source = secret.join("solve.c");
    fs::copy(root().join("tests/programs/closed_forms.c"), &source).expect("can be copied");
    let program = secret.join("solve");
    let built = Command::new("gcc")
        .args(["-g", "-O1", "-fopenmp"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .arg("-lm")
        .status();
    assert!(built.expect("gcc can be run").success());
    let original = traces.path().join("original.omptrace");
    let recorded = Command::new(omptrace_program())
        .args(["record", "--quiet", "-o"])
        .arg(&original)
        .arg("--")
        .arg(&program)
        .args(["loops", "--password=hunter2"])
        .current_dir(&secret)
        .output()
        .expect("omptrace can be run");
    assert!(original.exists(), "{recorded:?}");
    let copy = traces.path().join("copy.omptrace");
    let copied =
        omptrace([Path::new("convert"), Path::new("--anonymise"), Path::new("-o"), &copy, &original]);
    assert!(copied.status.success(), "{copied:?}");
    let host = Reader::open(&original).expect("a trace").metadata().machine.clone().expect("known").host;
    let secrets = ["my secret", "inner", "hunter2", "password", &*host];
    let commands: [&[&str]; 5] = [
        &["info", "--json"],
        &["dump", "--json"],
        &["stats", "--json", "--all"],
        &["convert", "--to", "text", "-o", "-"],
        &["check"],
    ];
    for command in commands {
        let shown = |trace: &Path| {
            let run = Command::new(omptrace_program())
                .args(command)
                .arg(trace)
                .output()
                .expect("omptrace can be run");
            assert!(run.status.success(), "{run:?}");
            String::from_utf8(run.stdout).expect("text").replace(&*trace.to_string_lossy(), "TRACE")
        };
        let (before, after) = (shown(&original), shown(&copy));
        let words = |text: &str| -> Vec<&str> {
            let words = text.split(|c: char| !c.is_alphanumeric() && !"-_ ".contains(c));
            let all: Vec<&str> = words.collect();
            secrets
                .into_iter()
                .filter(|secret| {
                    all.iter().any(|word| word == secret || (secret.len() > 4 && word.contains(secret)))
                })
                .collect()
        };
        assert_eq!(words(&after), [""; 0], "{command:?}: {after}");
        match command[0] {
            "info" => assert!(words(&before).len() >= 4, "{before}"),
            "stats" => {
                let numbers = |text: &str| -> Value {
                    let all: Value = serde_json::from_str(text).expect("JSON");
                    json!([all["accounting"], all["critical_path"]["length_ns"], all["efficiencies"]])
                };
                assert_eq!(numbers(&before), numbers(&after));
                assert!(after.contains("/solve.c") && after.contains("\"line\""), "{after}");
            }
            _ => {}
        }
    }
    // What no command shows.
    let object = Reader::open(&copy).expect("a trace").metadata_object();
    let text = serde_json::to_string(&object).expect("JSON");
    assert!(secrets[..4].iter().all(|secret| !text.contains(secret)), "{text}");
    // An input is never replaced, nor another trace.
    let refused =
        omptrace([Path::new("convert"), Path::new("--anonymise"), Path::new("-o"), &original, &original]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
