//! Conversions as users start them: outputs, formats, signals and errors.

use crate::support::{folder, omptrace, run};
use crate::traces::{LONG, SESSION, folder_with_trace, interrupt, names_in, write_chunks, write_trace};
use omptrace_trace_format::block::FileHeader;
use omptrace_trace_format::{InDoubt, seal};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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
            let words = "warning: the window is empty: the timeline ends at 0.0";
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
        let words = ["--split does not work with", "has no samples"];
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
    assert!(said.stderr.contains("cannot be written to stdout"), "{}", said.stderr);
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
        assert!(said.stderr.contains("is a trace and will not be overwritten"), "{}", said.stderr);
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
    assert!(said.stderr.contains("contains the input out/traces/7.evt"), "{}", said.stderr);
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
    assert!(
        said.stderr.contains("no samples were requested") && said.stderr.contains("--sample"),
        "{}",
        said.stderr
    );
    let news = json!({ "sampling": {"clock": "perf", "period_ns": 1_000_000, "problems": []} });
    seal(&folder.join("made.omptrace"), news, InDoubt::Refuse, &mut |_, _| {}).unwrap();
    let said = converted();
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.contains("CPU time") && !said.stderr.contains("--sample"), "{}", said.stderr);
}
