//! Traces behind commands that use them. A shell script plays the traced program: it puts a trace where the tracer would,
//! and notes it as the tracer does.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use omptrace_trace_format::block::{Chunk, ClockPair, Codec, FileHeader};
use omptrace_trace_format::blocks::{chunk_header, metadata_block, push_words};
use omptrace_trace_format::event::Event;
use omptrace_trace_format::predict::State;
use omptrace_trace_format::{Ending, Reader};
use serde_json::json;

use crate::support::{compile, folder, omptrace, record, run};

/// Chunks enough that a signal comes before they are read.
pub(crate) const LONG: u32 = 100_000;
pub(crate) const SESSION: u64 = 1;
pub(crate) const CLOCK: ClockPair =
    ClockPair { ticks: 1_000_000, monotonic_raw_ns: 5_000_000_000, realtime_ns: 1_700_000_000_000_000_000 };

/// A trace with a stream of three events.
pub(crate) fn write_trace(path: &Path) {
    write_chunks(path, 1);
}

/// A trace with a stream of this many chunks, of three events each.
pub(crate) fn write_chunks(path: &Path, chunks: u32) {
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
pub(crate) fn interrupt(
    command: &mut Command,
    folder: &Path,
    signal: i32,
    passes: impl Fn(&str) -> bool,
) -> ExitStatus {
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    while !names_in(folder).iter().any(|name| passes(name)) {
        assert_eq!(child.try_wait().unwrap(), None, "it came to its end");
        thread::sleep(Duration::from_millis(1));
    }
    send(signal, child.id());
    child.wait().unwrap()
}

pub(crate) fn send(signal: i32, pid: u32) {
    // SAFETY: `kill` takes any numbers.
    assert_eq!(unsafe { libc::kill(pid.cast_signed(), signal) }, 0);
}

/// Without the core that QUIT may dump.
pub(crate) fn names_in(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("core"))
        .collect()
}

/// Shell commands that make the trace `name`, as session `note` of the tracer.
pub(crate) fn traced(name: &str, note: &str) -> String {
    format!("cp made.omptrace {name}; ln -s \"$PWD/{name}\" \"$OMPTRACE_REGISTRY/{note}\"; ")
}

pub(crate) fn record_of(trace: &Path) -> omptrace_trace_format::metadata::Record {
    Reader::open(trace).unwrap().metadata().record.clone().unwrap()
}

#[test]
fn record_completes_every_trace_and_reports_it() {
    let folder = folder_with_trace("record_completes_every_trace_and_reports_it");
    let script = traced("own.omptrace", "$$.1") + &traced("child.omptrace", "4000000000.1") + "exit 3";
    let said = run(&mut record(&folder, &[], &["sh", "-c", &script]));
    assert_eq!(said.status, Some(3));
    for line in [
        "omptrace: sh -c ",
        " failed with exit status 3 after ",
        "  Traces 2 files in own.omptrace child.omptrace (",
        ", 6 events, none lost)",
        "omptrace view own.omptrace child.omptrace",
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

/// As `-q` of cargo, perf and git.
#[test]
fn quiet_says_nothing_of_a_run_in_which_all_went_well() {
    let folder = folder_with_trace("quiet_says_nothing");
    let script = traced("own.omptrace", "$$.1") + &traced("child.omptrace", "4000000000.1");
    let said = run(&mut record(&folder, &["--quiet"], &["sh", "-c", &script]));
    assert_eq!((said.status, said.stdout.as_str(), said.stderr.as_str()), (Some(0), "", ""));
    let dies = traced("own.omptrace", "$$.1") + "kill -KILL $$";
    let said = run(&mut record(&folder, &["--quiet"], &["sh", "-c", &dies]));
    assert!(said.stderr.contains("was killed by signal 9"), "{}", said.stderr);
}

/// Ranks that a launcher starts one by one say it once.
#[test]
fn one_rank_speaks_for_all() {
    let folder = folder_with_trace("one_rank_speaks_for_all");
    fs::create_dir(folder.join("job")).unwrap();
    for (rank, says) in [("0", true), ("1", false)] {
        let script = traced(&format!("job/{rank}.omptrace"), "$$.1");
        let mut record = record(&folder, &[], &["sh", "-c", &script]);
        let said = run(record.env("OMPI_COMM_WORLD_RANK", rank).env("OMPI_COMM_WORLD_SIZE", "2"));
        assert_eq!(said.stderr.contains("rank 0 of 2"), says, "{}", said.stderr);
        assert_eq!(said.stderr.contains("omptrace stats job/"), says, "{}", said.stderr);
    }
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
    assert!(
        said.stderr.contains("  Trace  good.omptrace (") && said.stderr.contains(", 3 events, none lost)"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_trace_called_like_an_option_is_suggested_as_a_path() {
    let folder = folder_with_trace("a_trace_called_like_an_option");
    let script = traced("./-x.omptrace", "$$.1");
    let said = run(&mut record(&folder, &[], &["sh", "-c", &script]));
    let words = "omptrace view ./-x.omptrace";
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
    let finding = "found while finishing the trace: the file ends 8 bytes before the end of this block";
    for command in ["recover", "symbolize"] {
        fs::write(folder.join("cut.omptrace"), cut).unwrap();
        let said = run(omptrace(&folder).args([command, "cut.omptrace"]));
        let reported = "warning: cut.omptrace: the file ends 8 bytes before";
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
        let words = "missing: No such file";
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
        assert!(said.stderr.contains("--to: chrome, perfetto"), "{}", said.stderr);
    }
    let said = run(omptrace(&folder).args(["convert", "made.omptrace"]));
    assert!(said.stderr.contains("no output format was given"), "{}", said.stderr);
    for output in ["nowhere/a.json", "nowhere/a.otf2", "nowhere/a.tables"] {
        let said = convert(output);
        assert!(said.stderr.contains("nowhere"), "{output}: {}", said.stderr);
        assert!(!said.stderr.contains(".omptrace-"), "{output}: {}", said.stderr);
    }
}
