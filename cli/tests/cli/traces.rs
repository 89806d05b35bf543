//! Traces behind commands that use them. A shell script plays the traced program: it puts a trace where the tracer would,
//! and notes it as the tracer does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use omptrace_trace_format::block::{Chunk, ClockPair, Codec, FileHeader};
use omptrace_trace_format::event::Event;
use omptrace_trace_format::predict::State;
use omptrace_trace_format::writer::{chunk_header, metadata_block, push_words};
use omptrace_trace_format::{Ending, InDoubt, Reader, seal};
use serde_json::json;

use crate::support::{compile, folder, omptrace, record, run};

/// Chunks enough that a signal comes before they are read.
const LONG: u32 = 100_000;
const SESSION: u64 = 1;
const CLOCK: ClockPair =
    ClockPair { ticks: 1_000_000, monotonic_raw_ns: 5_000_000_000, realtime_ns: 1_700_000_000_000_000_000 };

/// A trace with a stream of three events.
fn write_trace(path: &Path) {
    write_chunks(path, 1);
}

/// A trace with a stream of this many chunks, of three events each.
fn write_chunks(path: &Path, chunks: u32) {
    // No process has this number.
    let header = FileHeader::of_trace(SESSION, u32::MAX, &[]);
    let metadata = json!({
        "tracer": "test",
        "process": {"pid": u32::MAX},
        "clock": {"kind": "tsc", "ticks_per_second": 2.0e9, "uncertainty_ticks": 40},
    });
    let mut bytes = header.encode();
    bytes.extend(metadata_block(SESSION, CLOCK, &metadata));
    for sequence in 0..chunks {
        let chunk = Chunk { stream: 1, sequence, clock: CLOCK, first_id: 1 << 40 };
        let mut state = State::new(chunk.first_id);
        let mut words = Vec::new();
        for (row, ticks) in [100, 200, 300].into_iter().enumerate() {
            let mut out = [0; 64];
            let event = Event::generate(row, &state, &mut || 7);
            let len = event.encode(&mut state, ticks, &mut out).unwrap();
            words.extend_from_slice(&out[..len]);
        }
        let mut payload = Vec::new();
        push_words(&mut payload, &words);
        let words = u32::try_from(words.len()).unwrap();
        bytes.extend(chunk_header(SESSION, &chunk, words, 3, Codec::RAW, &payload));
        bytes.extend(payload);
    }
    fs::write(path, bytes).unwrap();
}

/// A folder with a trace `made.omptrace`.
pub(crate) fn folder_with_trace(test: &str) -> PathBuf {
    let folder = folder(test);
    write_trace(&folder.join("made.omptrace"));
    folder
}

/// Runs `command` until there is a file whose name passes, and sends it a signal; returns how it ended.
fn interrupt(command: &mut Command, folder: &Path, signal: i32, passes: impl Fn(&str) -> bool) -> ExitStatus {
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    while !names_in(folder).iter().any(|name| passes(name)) {
        assert_eq!(child.try_wait().unwrap(), None, "it came to its end");
        thread::sleep(Duration::from_millis(1));
    }
    send(signal, child.id());
    child.wait().unwrap()
}

fn send(signal: i32, pid: u32) {
    // SAFETY: `kill` takes any numbers.
    assert_eq!(unsafe { libc::kill(pid.cast_signed(), signal) }, 0);
}

/// Without the core that QUIT may dump.
fn names_in(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("core"))
        .collect()
}

/// Shell commands that make the trace `name`, as session `note` of the tracer.
fn traced(name: &str, note: &str) -> String {
    format!("cp made.omptrace {name}; ln -s \"$PWD/{name}\" \"$OMPTRACE_REGISTRY/{note}\"; ")
}

fn record_of(trace: &Path) -> omptrace_trace_format::metadata::Record {
    Reader::open(trace).unwrap().metadata().record.clone().unwrap()
}

#[test]
fn record_completes_every_trace_and_reports_it() {
    let folder = folder_with_trace("record_completes_every_trace_and_reports_it");
    let script = traced("own.omptrace", "$$.1") + &traced("child.omptrace", "4000000000.1") + "exit 3";
    let said = run(&mut record(&folder, &[], &["sh", "-c", &script]));
    assert_eq!(said.status, Some(3));
    for line in [
        "omptrace: own.omptrace: 3 events of 1 thread, none lost, ",
        "omptrace: child.omptrace: 3 events of 1 thread, none lost, ",
        "omptrace: 2 files: 6 events, none lost, ",
        "omptrace: next: omptrace view own.omptrace child.omptrace",
    ] {
        assert!(said.stderr.contains(line), "{line}\n{}", said.stderr);
    }
    let own = record_of(&folder.join("own.omptrace"));
    assert_eq!((own.exit_status, own.signal), (Some(3), None));
    assert_eq!(own.command_line, ["sh", "-c", &script]);
    // How the child ended is not known to `record`.
    let child = record_of(&folder.join("child.omptrace"));
    assert_eq!((child.exit_status, child.signal), (None, None));
    assert!(Reader::open(&folder.join("child.omptrace")).unwrap().summary().sealed);
}

#[test]
fn the_signal_that_killed_the_program_is_in_its_trace() {
    let folder = folder_with_trace("the_signal_that_killed_the_program");
    let script = traced("own.omptrace", "$$.1") + "kill -KILL $$";
    let said = run(&mut record(&folder, &[], &["sh", "-c", &script]));
    assert_eq!(said.status, Some(137));
    let trace = Reader::open(&folder.join("own.omptrace")).unwrap();
    assert_eq!(trace.ending(), Ending::Killed(9));
}

#[test]
fn of_a_process_that_executed_another_program_the_last_session_saw_the_end() {
    let folder = folder_with_trace("of_a_process_that_executed_another_program");
    let script = traced("first.omptrace", "$$.1") + &traced("second.omptrace", "$$.2") + "exit 4";
    run(&mut record(&folder, &[], &["sh", "-c", &script]));
    assert_eq!(record_of(&folder.join("first.omptrace")).exit_status, None);
    assert_eq!(record_of(&folder.join("second.omptrace")).exit_status, Some(4));
}

#[test]
fn a_trace_that_cannot_be_completed_is_reported_and_the_others_are() {
    let folder = folder_with_trace("a_trace_that_cannot_be_completed");
    let script = "echo nonsense > bad.omptrace; ln -s \"$PWD/bad.omptrace\" $OMPTRACE_REGISTRY/5.1; "
        .to_owned()
        + &traced("good.omptrace", "$$.1");
    let said = run(&mut record(&folder, &[], &["sh", "-c", &script]));
    assert_eq!(said.status, Some(0));
    assert!(said.stderr.contains("warning: bad.omptrace: "), "{}", said.stderr);
    assert!(said.stderr.contains("good.omptrace: 3 events"), "{}", said.stderr);
}

#[test]
fn a_trace_called_like_an_option_is_suggested_as_a_path() {
    let folder = folder_with_trace("a_trace_called_like_an_option");
    let script = traced("./-x.omptrace", "$$.1");
    let said = run(&mut record(&folder, &[], &["sh", "-c", &script]));
    let words = "next: omptrace view ./-x.omptrace";
    assert!(said.stderr.contains(words), "{}", said.stderr);
}

/// A user who has no patience.
#[test]
fn a_signal_while_record_completes_traces_changes_nothing() {
    let folder = folder("a_signal_while_record_completes_traces");
    write_chunks(&folder.join("made.omptrace"), LONG);
    let script = traced("own.omptrace", "$$.1") + "exit 3";
    let is_unfinished = |name: &str| name.contains(".sealing.");
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let mut record = record(&folder, &[], &["sh", "-c", &script]);
        let status = interrupt(&mut record, &folder, signal, is_unfinished);
        assert_eq!(status.code(), Some(3), "{status}");
        let own = Reader::open(&folder.join("own.omptrace")).unwrap();
        assert!(own.summary().sealed);
    }
}

#[test]
fn quit_while_record_completes_traces_leaves_them_as_they_were() {
    let folder = folder("quit_while_record_completes_traces");
    write_chunks(&folder.join("made.omptrace"), LONG);
    let script = traced("own.omptrace", "$$.1");
    let is_unfinished = |name: &str| name.contains(".sealing.");
    let mut before = names_in(&folder);
    before.insert("own.omptrace".to_owned());
    let mut record = record(&folder, &[], &["sh", "-c", &script]);
    record.env("TMPDIR", &folder);
    let status = interrupt(&mut record, &folder, libc::SIGQUIT, is_unfinished);
    assert_eq!(status.signal(), Some(libc::SIGQUIT), "{status}");
    assert_eq!(names_in(&folder), before);
    let own = fs::read(folder.join("own.omptrace")).unwrap();
    assert!(own == fs::read(folder.join("made.omptrace")).unwrap());
}

#[test]
fn recover_completes_a_folder() {
    let folder = folder_with_trace("recover_completes_a_folder");
    fs::copy(folder.join("made.omptrace"), folder.join("other.omptrace")).unwrap();
    let said = run(omptrace(&folder).args(["recover", "."]));
    assert_eq!((said.stdout.as_str(), said.status), ("", Some(0)));
    assert!(said.stderr.contains("2 files: 6 events"), "{}", said.stderr);
    for name in ["made.omptrace", "other.omptrace"] {
        assert!(Reader::open(&folder.join(name)).unwrap().summary().sealed);
    }
}

/// Completing a trace takes the damage out of the file, and keeps that there was some.
#[test]
fn what_was_damaged_when_a_trace_was_completed_is_reported_by_all() {
    let folder = folder_with_trace("what_was_damaged_is_reported_by_all");
    let whole = fs::read(folder.join("made.omptrace")).unwrap();
    let cut = &whole[..whole.len() - 8];
    let finding = "found while sealing: the file ends 8 bytes before this block does";
    for command in ["recover", "symbolize"] {
        fs::write(folder.join("cut.omptrace"), cut).unwrap();
        let said = run(omptrace(&folder).args([command, "cut.omptrace"]));
        let reported = "cut.omptrace: error: the file ends 8 bytes before";
        assert!(said.stderr.contains(reported), "{command}: {}", said.stderr);
        let status = [0, 1][usize::from(command == "symbolize")];
        assert_eq!(said.status, Some(status));

        let again = run(omptrace(&folder).args(["recover", "cut.omptrace"]));
        assert!(again.stderr.contains("SOME MISSING"), "{}", again.stderr);
        let check = run(omptrace(&folder).args(["check", "cut.omptrace"]));
        assert_eq!(check.status, Some(1));
        assert_eq!(check.stdout.matches(finding).count(), 1, "{}", check.stdout);
        for all in [
            &["info", "cut.omptrace"][..],
            &["stats", "cut.omptrace"],
            &["dump", "cut.omptrace"],
            &["convert", "cut.omptrace", "--to", "text", "-o", "-"],
        ] {
            let said = run(omptrace(&folder).args(all));
            let reported = said.stdout + &said.stderr;
            assert!(reported.contains(finding), "{all:?}: {reported}");
        }
    }
}

#[test]
fn a_trace_that_is_not_there_cannot_be_read() {
    let folder = folder("a_trace_that_is_not_there");
    for command in ["recover", "symbolize"] {
        let said = run(omptrace(&folder).args([command, "missing"]));
        assert_eq!(said.status, Some(2));
        let words = "missing: the trace cannot be read: No such file";
        assert!(said.stderr.contains(words), "{}", said.stderr);
        assert!(!said.stderr.contains("room"), "{}", said.stderr);
    }
}

#[test]
fn recovering_that_a_signal_ends_leaves_the_trace_as_it_was() {
    let folder = folder("recovering_that_a_signal_ends");
    write_chunks(&folder.join("long.omptrace"), LONG);
    let whole = fs::read(folder.join("long.omptrace")).unwrap();
    let before = names_in(&folder);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let mut recover = omptrace(&folder);
        recover.args(["recover", "long.omptrace"]);
        let is_unfinished = |name: &str| name.contains(".sealing.");
        let status = interrupt(&mut recover, &folder, signal, is_unfinished);
        assert_eq!(status.signal(), Some(signal), "{status}");
        assert_eq!(names_in(&folder), before);
        assert!(fs::read(folder.join("long.omptrace")).unwrap() == whole);
    }
}

#[test]
fn recover_removes_what_was_left_of_its_traces_only() {
    let folder = folder_with_trace("recover_removes_what_was_left");
    // No process has this number; the test is one that still runs.
    let gone = u32::MAX;
    let left = format!("made.omptrace.sealing.{gone}");
    let others = [
        format!("made.omptrace.sealing.{}", process::id()),
        format!("other.omptrace.sealing.{gone}"),
        "made.omptrace.sealing.notes".to_owned(),
    ];
    for name in others.iter().chain([&left]) {
        fs::write(folder.join(name), "").unwrap();
    }
    // The second time, the trace is complete already.
    for _ in 0..2 {
        fs::write(folder.join(&left), "").unwrap();
        let said = run(omptrace(&folder).args(["recover", "made.omptrace"]));
        assert_eq!(said.status, Some(0), "{}", said.stderr);
        let names = names_in(&folder);
        assert!(!names.contains(&left));
        assert!(others.iter().all(|other| names.contains(other)), "{names:?}");
    }
}

#[test]
fn convert_names_its_output_after_input_and_format() {
    let folder = folder_with_trace("convert_names_its_output");
    for (format, name) in [("chrome", "made.json"), ("text", "made.txt")] {
        let said = run(omptrace(&folder).args(["convert", "made.omptrace", "--to", format]));
        assert_eq!((said.stdout.as_str(), said.status), ("", Some(0)), "{}", said.stderr);
        assert!(said.stderr.contains(&format!("omptrace: {name}: ")), "{}", said.stderr);
        assert!(folder.join(name).is_file());
    }
    let chrome = fs::read(folder.join("made.json")).unwrap();
    serde_json::from_slice::<serde_json::Value>(&chrome).unwrap();
}

#[test]
fn convert_writes_to_stdout_what_it_writes_to_a_file() {
    let folder = folder_with_trace("convert_writes_to_stdout");
    run(omptrace(&folder).args(["convert", "made.omptrace", "--to", "text", "-o", "file"]));
    let said = run(omptrace(&folder).args(["convert", "made.omptrace", "--to", "text", "-o", "-"]));
    assert_eq!(said.stdout, fs::read_to_string(folder.join("file")).unwrap());
}

#[test]
fn a_window_behind_the_end_is_reported() {
    let folder = folder_with_trace("a_window_behind_the_end");
    for (window, is_reported) in [("0s..1s", false), ("10s..20s", true)] {
        for options in ["-o out.txt", "-o out.txt --split 1M"] {
            let said = run(omptrace(&folder)
                .args(["convert", "made.omptrace", "--to", "chrome", "--window", window])
                .args(options.split_whitespace()));
            assert_eq!(said.status, Some(0), "{}", said.stderr);
            let words = "warning: nothing is within the window: the timeline ends at 0.0";
            assert_eq!(said.stderr.contains(words), is_reported, "{}", said.stderr);
        }
    }
}

#[test]
fn formats_of_one_file_are_not_split() {
    let folder = folder_with_trace("formats_of_one_file_are_not_split");
    for format in ["text", "folded", "pprof", "firefox"] {
        let options = ["--to", format, "--split", "20K", "-o", "x"];
        let said = run(omptrace(&folder).args(["convert", "made.omptrace"]).args(options));
        assert_eq!(said.status, Some(2), "{format}");
        // Whether it has samples is another question.
        let words = ["cannot be split", "has no samples"];
        assert!(words.iter().any(|words| said.stderr.contains(words)), "{}", said.stderr);
        assert_eq!(names_in(&folder).len(), 2, "{format}");
    }
}

#[test]
fn a_series_does_not_go_to_stdout() {
    let folder = folder_with_trace("a_series_does_not_go_to_stdout");
    let before = names_in(&folder);
    let options = ["--to", "chrome", "--split", "20K", "-o", "-"];
    let said = run(omptrace(&folder).args(["convert", "made.omptrace"]).args(options));
    assert_eq!((said.stdout.as_str(), said.status), ("", Some(2)));
    assert!(said.stderr.contains("cannot go to stdout"), "{}", said.stderr);
    assert_eq!(names_in(&folder), before);
}

#[test]
fn convert_compresses_by_name_and_the_same_input_gives_the_same_bytes() {
    let folder = folder_with_trace("convert_compresses_by_name");
    let converted = || {
        run(omptrace(&folder).args(["convert", ".", "--to", "chrome", "-o", "x.json.gz"]));
        fs::read(folder.join("x.json.gz")).unwrap()
    };
    let first = converted();
    assert_eq!(first[..2], [0x1f, 0x8b]);
    // The modification time of a gzip header.
    assert_eq!(first[4..8], [0; 4]);
    assert!(first == converted());
}

#[test]
fn convert_overwrites_its_own_outputs_and_no_trace() {
    let folder = folder_with_trace("convert_overwrites_no_trace");
    fs::copy(folder.join("made.omptrace"), folder.join("other")).unwrap();
    let before = fs::read(folder.join("made.omptrace")).unwrap();
    for output in ["made.omptrace", "other"] {
        let said = run(omptrace(&folder).args(["convert", "made.omptrace", "--to", "text", "-o", output]));
        assert_eq!(said.status, Some(2));
        assert!(said.stderr.contains("is a trace, and will not be overwritten"), "{}", said.stderr);
        assert!(fs::read(folder.join(output)).unwrap() == before);
    }
    for _ in 0..2 {
        let said = run(omptrace(&folder).args(["convert", "made.omptrace", "--to", "text"]));
        assert_eq!(said.status, Some(0));
    }
}

/// Files that hold events by other names, and by links: none is replaced, whatever command is asked to.
#[test]
fn no_output_takes_the_place_of_a_file_with_events() {
    let folder = folder_with_trace("no_output_takes_the_place_of_events");
    let at = |name: &str| folder.join(name);
    let trace = fs::read(at("made.omptrace")).unwrap();
    fs::write(at("other"), &trace).unwrap();
    symlink("other", at("link")).unwrap();
    fs::hard_link(at("made.omptrace"), at("second-name.json")).unwrap();
    let spool = FileHeader::of_spool(SESSION, u32::MAX, 16 << 10, b"/a.omptrace");
    fs::write(at("k.omptrace.spool"), spool.encode()).unwrap();
    // The first byte is damaged, which recover sees past.
    let mut damaged = trace.clone();
    damaged[0] ^= 1;
    fs::write(at("damaged.omptrace"), &damaged).unwrap();
    // The first part of a series, and a part of an archive.
    fs::write(at("part-001.json"), &trace).unwrap();
    run(omptrace(&folder).args(["convert", "made.omptrace", "--to", "otf2", "-o", "archive"]));
    fs::write(at("archive/traces/9.evt"), &trace).unwrap();

    let before = files_below(&folder);
    let outputs =
        ["made.omptrace", "other", "link", "second-name.json", "k.omptrace.spool", "damaged.omptrace"];
    let commands: &[&[&str]] = &[
        &["stats", "made.omptrace", "--talp"],
        &["convert", "made.omptrace", "--to", "chrome", "-o"],
        &["convert", "made.omptrace", "--to", "text", "-o"],
        &["convert", "made.omptrace", "--to", "otf2", "-o"],
        &["convert", "made.omptrace", "--to", "parquet", "-o"],
        &["report", "made.omptrace", "-o"],
        &["report", "made.omptrace", "--md", "-o"],
    ];
    let mut tried: Vec<Vec<&str>> = Vec::new();
    for command in commands {
        tried.extend(outputs.map(|output| [*command, &[output]].concat()));
    }
    let convert = ["convert", "made.omptrace", "--to"];
    tried.push([&convert[..], &["chrome", "--split", "1k", "-o", "part.json"]].concat());
    tried.push([&convert[..], &["otf2", "-o", "archive"]].concat());
    for arguments in tried {
        let said = run(omptrace(&folder).args(&arguments));
        assert_eq!(said.status, Some(2), "{arguments:?}: {}", said.stderr);
        assert!(files_below(&folder) == before, "{arguments:?}");
    }
}

/// A pipe is written to, stdout goes on where it is, and an error names what the user has named.
#[test]
fn outputs_that_are_no_files_are_written_and_errors_name_what_was_asked_for() {
    let folder = folder_with_trace("outputs_that_are_no_files");
    let script = "set -e
        text() { \"$0\" convert made.omptrace --to text -o \"$1\"; }
        text out.txt
        mkfifo pipe; cat pipe > by-pipe & text pipe; wait
        echo first > appended; text /dev/stdout >> appended
        \"$0\" stats made.omptrace --talp talp.json > table
        \"$0\" stats made.omptrace --talp /dev/stdout > both";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_omptrace")]);
    let said = run(shell.current_dir(&folder));
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("by-pipe"), read("out.txt"));
    assert_eq!(read("appended"), format!("first\n{}", read("out.txt")));
    assert_eq!(read("both"), read("talp.json") + &read("table"));
    let convert = ["convert", "made.omptrace", "--to"];
    for (arguments, output) in [
        ([&convert[..], &["text", "-o"]].concat(), "none/x"),
        ([&convert[..], &["otf2", "-o"]].concat(), "none/x"),
        ([&convert[..], &["parquet", "-o"]].concat(), "none/x"),
        ([&convert[..], &["chrome", "--split", "1k", "-o"]].concat(), "none/x"),
        (vec!["report", "made.omptrace", "-o"], "none/x"),
        (vec!["stats", "made.omptrace", "--talp"], "none/x"),
        (vec!["report", "made.omptrace", "-o"], "/dev/full"),
        (vec!["stats", "made.omptrace", "--talp"], "/dev/full"),
    ] {
        let said = run(omptrace(&folder).args(&arguments).arg(output));
        assert_eq!(said.status, Some(2), "{arguments:?}");
        let words = format!("error: cannot write {output}");
        assert!(said.stderr.contains(&words), "{}", said.stderr);
        assert!(!said.stderr.contains(".omptrace-"), "{}", said.stderr);
    }
}

/// Every file below a folder, with its content.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

#[test]
fn an_archive_takes_the_place_of_nothing_else() {
    let folder = folder_with_trace("an_archive_takes_the_place_of_nothing_else");
    let archive =
        |out: &str| run(omptrace(&folder).args(["convert", "made.omptrace", "--to", "otf2", "-o", out]));
    for out in ["with_mine", "with_link", "without_anchor"] {
        let said = archive(out);
        assert_eq!(said.status, Some(0), "{}", said.stderr);
    }
    fs::write(folder.join("with_mine/traces/mine.omptrace"), "mine").unwrap();
    fs::rename(folder.join("with_link/traces"), folder.join("mine")).unwrap();
    symlink("../mine", folder.join("with_link/traces")).unwrap();
    fs::remove_file(folder.join("without_anchor/traces.otf2")).unwrap();
    fs::create_dir_all(folder.join("runs/traces")).unwrap();
    write_trace(&folder.join("runs/traces/run.omptrace"));

    let before = files_below(&folder);
    for out in ["with_mine", "with_link", "without_anchor", "runs", "."] {
        let said = archive(out);
        assert_eq!(said.status, Some(2), "{out}");
        let words = format!("error: cannot write {out}: ");
        assert!(said.stderr.starts_with(&words), "{}", said.stderr);
        assert!(files_below(&folder) == before, "{out}");
    }
}

#[test]
fn an_archive_is_written_into_no_folder_of_its_inputs() {
    let folder = folder_with_trace("into_no_folder_of_its_inputs");
    let archive = |input: &str| run(omptrace(&folder).args(["convert", input, "--to", "otf2", "-o", "out"]));
    assert_eq!(archive("made.omptrace").status, Some(0));
    // By its name it could be a part of the archive.
    write_trace(&folder.join("out/traces/7.evt"));
    let before = files_below(&folder);
    let said = archive("out/traces/7.evt");
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("7.evt is in it"), "{}", said.stderr);
    assert!(files_below(&folder) == before);
}

/// A shell may be in it.
#[test]
fn a_folder_that_is_there_stays_when_an_archive_comes() {
    let folder = folder_with_trace("a_folder_that_is_there_stays");
    let here = folder.join("here");
    fs::create_dir(&here).unwrap();
    let number = fs::metadata(&here).unwrap().ino();
    let mut first = None;
    for _ in 0..2 {
        let mut convert = omptrace(&here);
        convert.args(["convert", "../made.omptrace", "--to", "otf2", "-o", "."]);
        let said = run(&mut convert);
        assert_eq!(said.status, Some(0), "{}", said.stderr);
        assert_eq!(fs::metadata(&here).unwrap().ino(), number);
        let files = files_below(&here);
        assert!(files.contains_key(&here.join("traces.otf2")));
        assert!(*first.get_or_insert_with(|| files.clone()) == files);
        assert_eq!(fs::read_dir(&here).unwrap().count(), 4);
    }
}

#[test]
fn a_conversion_that_a_signal_ends_leaves_nothing() {
    let folder = folder("a_conversion_that_a_signal_ends");
    write_chunks(&folder.join("long.omptrace"), LONG);
    fs::create_dir(folder.join("there")).unwrap();
    let before = names_in(&folder);
    let is_unfinished = |name: &str| name.starts_with(".omptrace-");
    for (options, signal) in [
        ("--to chrome -o new", libc::SIGINT),
        ("--to chrome --split 100K -o new", libc::SIGHUP),
        ("--to otf2 -o new", libc::SIGTERM),
        ("--to otf2 -o there", libc::SIGQUIT),
    ] {
        let mut convert = omptrace(&folder);
        convert.args(["convert", "long.omptrace"]);
        convert.args(options.split_whitespace());
        let watched = if options.ends_with("there") { folder.join("there") } else { folder.clone() };
        let status = interrupt(&mut convert, &watched, signal, is_unfinished);
        assert_eq!(status.signal(), Some(signal), "{options}: {status}");
        assert_eq!(names_in(&folder), before, "{options}");
        assert!(names_in(&folder.join("there")).is_empty());
    }
}

#[test]
fn a_conversion_under_nohup_outlives_its_terminal() {
    let folder = folder("a_conversion_under_nohup");
    write_chunks(&folder.join("long.omptrace"), LONG);
    let program = omptrace(&folder).get_program().to_owned();
    let mut nohup = Command::new("sh");
    nohup.current_dir(&folder);
    nohup.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(program);
    nohup.args(["convert", "long.omptrace", "--to", "text", "-o", "new"]);
    let is_unfinished = |name: &str| name.starts_with(".omptrace-");
    let status = interrupt(&mut nohup, &folder, libc::SIGHUP, is_unfinished);
    assert_eq!(status.code(), Some(0));
    assert!(folder.join("new").is_file());
}

#[test]
fn what_cannot_be_read_is_2_and_leaves_no_output() {
    let folder = folder("what_cannot_be_read_is_2");
    fs::write(folder.join("text"), "no trace").unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    for input in ["missing", "text", "empty"] {
        let said = run(omptrace(&folder).args(["convert", input, "--to", "text", "-o", "out"]));
        assert_eq!(said.status, Some(2), "{input}");
        assert!(said.stderr.starts_with("error: "), "{}", said.stderr);
        assert!(said.stderr.contains(input), "{}", said.stderr);
        assert!(!folder.join("out").exists());
    }
}

/// Who asked for samples and got none gets no advice to ask for them.
#[test]
fn what_is_missing_for_a_format_is_said_with_what_helps() {
    let folder = folder_with_trace("what_is_missing_for_a_format");
    let converted = || run(omptrace(&folder).args(["convert", "--to", "folded", "made.omptrace", "-o", "-"]));
    let said = converted();
    assert!(said.stderr.contains("not asked for") && said.stderr.contains("--sample"), "{}", said.stderr);
    let news = json!({ "sampling": {"clock": "perf", "period_ns": 1_000_000, "problems": []} });
    seal(&folder.join("made.omptrace"), news, InDoubt::Refuse, &mut |_, _| {}).unwrap();
    let said = converted();
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("processor time") && !said.stderr.contains("--sample"), "{}", said.stderr);
}

#[test]
fn info_reports_each_trace() {
    let folder = folder_with_trace("info_reports_each_trace");
    fs::copy(folder.join("made.omptrace"), folder.join("other.omptrace")).unwrap();
    let said = run(omptrace(&folder).args(["info", "."]));
    assert_eq!(said.status, Some(0));
    assert!(said.stdout.contains("made.omptrace"), "{}", said.stdout);
    assert!(said.stdout.contains("other.omptrace"), "{}", said.stdout);
    let said = run(omptrace(&folder).args(["info", "--json", "."]));
    for line in said.stdout.lines() {
        let info: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(info["events"], 3);
    }
    assert_eq!(said.stdout.lines().count(), 2);
}

/// Paths stay whole: they are copied.
#[test]
fn lines_for_people_are_as_long_as_the_terminal_is_wide() {
    let folder = folder("lines_for_people");
    compile(&folder, "libomptrace.so", "", &["-shared", "-fPIC"]);
    let name = "a_folder_whose_name_is_long/and_a_trace_whose_name_is_no_shorter_than_that.omptrace";
    fs::create_dir(folder.join("a_folder_whose_name_is_long")).unwrap();
    let trace = folder.join(name);
    write_chunks(&trace, 3);
    // Cut off: there is something to find.
    let bytes = fs::read(&trace).unwrap();
    fs::write(&trace, &bytes[..bytes.len() - 100]).unwrap();
    for words in
        [&["info", name][..], &["check", name], &["stats", name], &["doctor", "--tool", "libomptrace.so"]]
    {
        let said = run(omptrace(&folder).args(words).env("COLUMNS", "80"));
        assert!(said.stdout.lines().count() > 1, "{words:?}: {said:?}");
        for line in said.stdout.lines() {
            let last_blank = line.trim_end().rfind(' ').unwrap_or(0);
            assert!(line.chars().count() <= 80 || last_blank < 20, "{line}");
        }
    }
    // In a pipe a script reads each as one line.
    let said = run(omptrace(&folder).args(["check", name]));
    assert!(said.stdout.lines().all(|line| line.starts_with(name)), "{said:?}");
}

#[test]
fn info_and_check_go_on_behind_what_cannot_be_read() {
    let folder = folder_with_trace("info_and_check_go_on");
    fs::copy(folder.join("made.omptrace"), folder.join("other.omptrace")).unwrap();
    fs::write(folder.join("text"), "no trace").unwrap();
    fs::create_dir(folder.join("empty")).unwrap();
    for command in ["info", "check"] {
        let see = |inputs: &[&str]| run(omptrace(&folder).arg(command).args(inputs));
        let sound = see(&["made.omptrace", "other.omptrace"]);
        for bad in ["text", "empty", "missing", "missing.otf2"] {
            let said = see(&["made.omptrace", bad, "other.omptrace"]);
            assert_eq!(said.status, Some(2), "{command} {bad}");
            assert_eq!(said.stdout, sound.stdout, "{command} {bad}");
            for words in [bad, "error: 1 of 3 inputs cannot be read"] {
                assert!(said.stderr.contains(words), "{}", said.stderr);
            }
            let said = see(&[bad]);
            assert_eq!((said.stdout.as_str(), said.status), ("", Some(2)));
            assert_eq!(said.stderr.matches("error: ").count(), 1, "{}", said.stderr);
        }
    }
}

#[test]
fn dump_prints_one_line_per_event() {
    let folder = folder_with_trace("dump_prints_one_line_per_event");
    let said = run(omptrace(&folder).args(["dump", "--json", "made.omptrace"]));
    assert_eq!(said.stdout.lines().count(), 3);
    for line in said.stdout.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["stream"], 1);
    }
    let said = run(omptrace(&folder).args(["dump", "made.omptrace"]));
    assert!(said.stdout.lines().count() >= 3, "{}", said.stdout);
    let said = run(omptrace(&folder).args(["dump", "--select", "stream", "made.omptrace"]));
    assert_eq!(said.stdout, "1\n1\n1\n");
}

/// As any other answer for programs, unless less is asked for.
#[test]
fn a_long_dump_as_json_is_complete() {
    let folder = folder("a_long_dump_as_json_is_complete");
    write_chunks(&folder.join("long.omptrace"), 200);
    let dump = |options: &[&str]| {
        let arguments = [&["dump", "--json", "long.omptrace"], options].concat();
        run(omptrace(&folder).args(arguments)).stdout
    };
    let all = dump(&[]);
    assert_eq!(all.lines().count(), 600);
    assert_eq!(dump(&["--all"]), all);
    assert_eq!(dump(&["--top", "0"]), all);
    let left_out = |line: Option<&str>| {
        let line: serde_json::Value = serde_json::from_str(line.unwrap()).unwrap();
        line["left_out"]["lines"].as_u64().unwrap()
    };
    let cut = dump(&["--max-bytes", "16K"]);
    assert!(cut.len() <= 16_000 && cut.len() > 8_000, "{}", cut.len());
    let shown = cut.lines().count() as u64 - 1;
    assert_eq!(left_out(cut.lines().last()), 600 - shown);
    assert!(all.starts_with(&cut[..cut.len() / 2]));
    let five = dump(&["--top", "5"]);
    assert_eq!((five.lines().count(), left_out(five.lines().last())), (6, 595));
}

#[test]
fn check_is_0_when_sound_1_with_findings_2_when_unreadable() {
    let folder = folder_with_trace("check_has_three_answers");
    fs::write(folder.join("text"), "no trace").unwrap();
    let whole = fs::read(folder.join("made.omptrace")).unwrap();
    fs::write(folder.join("cut.omptrace"), &whole[..whole.len() - 8]).unwrap();
    let cut = run(omptrace(&folder).args(["check", "cut.omptrace"]));
    assert_eq!(cut.status, Some(1), "{}", cut.stdout);
    assert!(cut.stdout.contains("cut.omptrace: "), "{}", cut.stdout);
    let said = run(omptrace(&folder).args(["check", "text", "cut.omptrace"]));
    assert_eq!(said.status, Some(2));
    assert_eq!(said.stdout, cut.stdout);
}

/// Without `--to`, the output's name decides.
#[test]
fn the_name_of_the_output_decides_the_format() {
    let folder = folder_with_trace("the_name_of_the_output_decides_the_format");
    let convert = |output: &str| {
        let mut command = omptrace(&folder);
        run(command.args(["convert", "made.omptrace", "-o", output]))
    };
    for output in ["a.pftrace", "a.pftrace.gz", "a.json", "a.json.gz", "a.txt", "a.otf2"] {
        let said = convert(output);
        assert_eq!(said.status, Some(0), "{output}: {}", said.stderr);
        assert!(folder.join(output).exists(), "{output}");
    }
    for output in ["-", "a.svg", "a"] {
        let said = convert(output);
        assert_eq!(said.status, Some(2), "{output}: {said:?}");
        assert!(said.stderr.contains("--to takes chrome, perfetto"), "{}", said.stderr);
    }
    let said = run(omptrace(&folder).args(["convert", "made.omptrace"]));
    assert!(said.stderr.contains("neither --to nor"), "{}", said.stderr);
    for output in ["nowhere/a.json", "nowhere/a.otf2", "nowhere/a.tables"] {
        let said = convert(output);
        assert!(said.stderr.contains("nowhere"), "{output}: {}", said.stderr);
        assert!(!said.stderr.contains(".omptrace-"), "{output}: {}", said.stderr);
    }
}
