//! Traces are handed on, and whoever wrote one chose the names in it. None drives a terminal, or forges a line or markup, or
//! makes a command read a file of its reader's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use omptrace_trace_format::{InDoubt, Reader, seal};
use serde_json::Value;

use crate::support::{Said, folder, omptrace, run};

/// The end of each name. It clears the screen in two ways, goes back to the line's begin, turns the direction of writing, and
/// begins a line.
const DRIVES: &str = "\x1b[2J\u{9b}2J\r\u{202e}\nFORGED|<img>";
/// Words of the metadata that readers compare with those they know.
const KNOWN_WORDS: &[&str] =
    &["build_id", "clock", "dialect", "end", "kind", "lock", "meaning", "schema", "settings", "start"];

/// A copy of a trace of 0.2.0 in which all names are hostile.
fn hostile(folder: &Path, set: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/0.2.0").join(set);
    let mut traces = fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path());
    let is_trace = |path: &PathBuf| path.extension().is_some_and(|end| end == "omptrace");
    let trace = folder.join(format!("{set}.omptrace"));
    fs::copy(traces.find(is_trace).unwrap(), &trace).unwrap();
    let mut metadata = serde_json::to_value(Reader::open(&trace).unwrap().metadata()).unwrap();
    poison(&mut metadata);
    seal(&trace, metadata, InDoubt::Refuse, &mut |_, _| {}).unwrap();
    trace
}

fn poison(value: &mut Value) {
    match value {
        Value::String(text) => *text += DRIVES,
        Value::Array(elements) => elements.iter_mut().for_each(poison),
        Value::Object(fields) => fields
            .iter_mut()
            .filter(|(key, _)| !KNOWN_WORDS.contains(&key.as_str()))
            .for_each(|(_, value)| poison(value)),
        _ => {}
    }
}

fn said(folder: &Path, words: &[&str]) -> Said {
    // So wide that no name is folded: what begins a line was made to.
    run(omptrace(folder).env("COLUMNS", "4000").args(words))
}

#[test]
fn names_neither_drive_a_terminal_nor_forge_lines() {
    let folder = folder("names_neither_drive_a_terminal_nor_forge_lines");
    let is_driving =
        |letter: char| letter != '\n' && letter.is_control() || ('\u{202a}'..='\u{202e}').contains(&letter);
    let by = [
        "construct",
        "region",
        "function",
        "counter",
        "thread",
        "task",
        "lock",
        "device",
        "process",
        "phase",
    ];
    for set in ["nearly_everything", "sampled", "devices", "counters", "mpi", "killed"] {
        let trace = hostile(&folder, set);
        let trace = trace.file_name().unwrap().to_str().unwrap();
        let mut commands = vec![
            vec!["stats", "--full", "--all", trace],
            vec!["stats", trace],
            vec!["stats", "--md", "--all", trace],
            vec!["stats", "--format", "lines", trace],
            vec!["info", trace],
            vec!["check", trace],
            vec!["dump", trace],
            vec!["diff", "--all", trace, trace],
            vec!["diff", "--md", trace, "--", trace],
            vec!["scaling", trace, trace],
            vec!["scaling", "--md", trace],
            vec!["convert", "--to", "text", trace, "-o", "-"],
            vec!["convert", "--to", "chrome", "--thread", "none", trace, "-o", "x.json"],
            vec!["report", "--md", trace],
            vec!["report", "--md", trace, "--", trace],
            vec!["report", trace, "-o", "page.html"],
            vec!["top", "--once", trace],
            vec!["symbolize", trace],
            vec!["recover", trace],
        ];
        commands.extend(by.map(|by| vec!["stats", "--by", by, trace]));
        for command in commands {
            let said = said(&folder, &command);
            for text in [&said.stdout, &said.stderr] {
                let driving = text.lines().find(|line| line.contains(is_driving));
                assert_eq!(driving, None, "{command:?}");
                let forged = text.lines().find(|line| line.trim_start().starts_with("FORGED"));
                assert_eq!(forged, None, "{command:?}");
            }
            if command.contains(&"--md") {
                let is_tag = |line: &&str| line.replace("\\<img", "").contains("<img") && !line.contains('`');
                assert_eq!(said.stdout.lines().find(is_tag), None, "{command:?}");
            }
        }
        let page = fs::read_to_string(folder.join("page.html")).unwrap();
        assert!(!page.contains(['\x1b', '\u{9b}', '\u{202e}']) && !page.contains("<img>"));
    }
}

/// Programs get the names as they are.
#[test]
fn json_has_names_as_they_are() {
    let folder = folder("json_has_names_as_they_are");
    hostile(&folder, "nearly_everything");
    let said = said(&folder, &["info", "--json", "--all", "nearly_everything.omptrace"]);
    let answer: Value = serde_json::from_str(&said.stdout).unwrap();
    let host = answer["machine"]["host"].as_str().unwrap();
    assert!(host.ends_with(DRIVES), "{host:?}");
}

/// A pipe in a folder is no trace of it, and one that is named is refused: nobody waits for its writer.
#[test]
fn pipes_and_devices_are_not_read() {
    let folder = folder("pipes_and_devices_are_not_read");
    let job = folder.join("job");
    fs::create_dir(&job).unwrap();
    hostile(&job, "stencil");
    symlink("/dev/zero", job.join("zero.omptrace")).unwrap();
    for pipe in [job.join("pipe.omptrace"), folder.join("archive.otf2")] {
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
    }
    for command in [
        &["info"][..],
        &["stats"],
        &["check"],
        &["scaling"],
        &["convert", "--to", "text", "-o", "-"],
        &["report", "-o", "page.html"],
        &["top", "--once"],
        &["symbolize"],
        &["recover"],
    ] {
        let said = said(&folder, &[command, &["job"]].concat());
        assert_ne!(said.status, Some(2), "{command:?}: {}", said.stderr);
        for (named, what) in [("job/pipe.omptrace", "pipe"), ("job/zero.omptrace", "device")] {
            let said = self::said(&folder, &[command, &[named]].concat());
            assert_eq!(said.status, Some(2), "{command:?}");
            assert!(said.stderr.contains(what), "{command:?}: {}", said.stderr);
        }
    }
    let said = said(&folder, &["check", "archive.otf2"]);
    assert!(said.stderr.contains("the path is a pipe"), "{}", said.stderr);
}

/// Answers come through pipes, which can be read once.
#[test]
fn diff_reads_answers_from_pipes() {
    let folder = folder("diff_reads_answers_from_pipes");
    hostile(&folder, "stencil");
    let program = env!("CARGO_BIN_EXE_omptrace");
    let script = format!(
        "diff() {{ '{program}' diff \"$@\"; }}; stats() {{ '{program}' stats --json --all stencil.omptrace; }}
         diff <(stats) <(sleep 0.2; stats)"
    );
    let said = run(std::process::Command::new("bash").current_dir(&folder).args(["-c", &script]));
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    let said = self::said(&folder, &["diff", "pipe", "stencil.omptrace"]);
    assert_eq!(said.status, Some(2));
    assert!(std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
    let said = self::said(&folder, &["diff", "pipe", "stencil.omptrace"]);
    assert!(said.stderr.contains("no process writes to this pipe"), "{}", said.stderr);
}

/// The page of `report` has lines of sources only from where its reader lets it look.
#[test]
fn a_page_has_no_file_that_only_a_trace_names() {
    let folder = folder("a_page_has_no_file_that_only_a_trace_names");
    let here = folder.join("here");
    fs::create_dir_all(here.join("src")).unwrap();
    // A checkout of ours around it would be one of the page's maker, too.
    fs::create_dir(here.join(".git")).unwrap();
    let secret = folder.join("secret.c");
    let key = here.join("key");
    let own = here.join("src/own.c");
    for (file, text) in [(&secret, "SECRET"), (&key, "KEY"), (&own, "OWN")] {
        fs::write(file, format!("{text}\n").repeat(400)).unwrap();
    }
    let page = |file: &Path, options: &[&str]| {
        let trace = hostile_source(&folder, file, None);
        let words = [&["report", "-o", "page.html", trace.to_str().unwrap()], options].concat();
        let said = said(&here, &words);
        assert_eq!(said.status, Some(0), "{}", said.stderr);
        (fs::read_to_string(here.join("page.html")).unwrap(), said.stderr)
    };
    let (text, words) = page(&secret, &[]);
    assert!(!text.contains("SECRET") && words.contains("--source"), "{words}");
    let (text, _) = page(&key, &[]);
    assert!(!text.contains("KEY"));
    let (text, words) = page(&own, &[]);
    assert!(text.contains("OWN") && words.contains("source lines of src/own.c"), "{words}");
    assert!(text.contains("This report quotes these files"));
    let (text, _) = page(&own, &["--no-source"]);
    assert!(!text.contains("OWN"));
    let (text, _) = page(&secret, &["--source", folder.to_str().unwrap()]);
    assert!(text.contains("SECRET"));
}

/// A source from elsewhere is shown if the trace has its checksum, for then who wrote the trace had its text.
#[test]
fn a_page_has_the_sources_that_the_program_was_compiled_from() {
    let folder = folder("a_page_has_the_sources_that_the_program_was_compiled_from");
    let here = folder.join("here");
    fs::create_dir_all(here.join(".git")).unwrap();
    let source = folder.join("there.c");
    let own = here.join("own.c");
    for file in [&source, &own] {
        fs::write(file, "LINE\n".repeat(400)).unwrap();
    }
    let said = run(std::process::Command::new("md5sum").arg(&source));
    let right = said.stdout.split(' ').next().unwrap();
    let wrong = "0cc175b9c0f1b6a831c399e269772661";
    let page = |file: &Path, checksum: &str| {
        let trace = hostile_source(&folder, file, Some(checksum));
        let said = self::said(&here, &["report", "-o", "page.html", trace.to_str().unwrap()]);
        assert_eq!(said.status, Some(0), "{}", said.stderr);
        let page = fs::read_to_string(here.join("page.html")).unwrap();
        (page.contains("LINE"), page.contains("has changed since the program was built or started"))
    };
    assert_eq!(page(&source, right), (true, false));
    assert_eq!(page(&source, wrong), (false, false));
    assert_eq!(page(&own, right), (true, false));
    assert_eq!(page(&own, wrong), (true, true));
}

/// A trace whose constructs are all in `file`, which has that checksum.
fn hostile_source(folder: &Path, file: &Path, checksum: Option<&str>) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/0.2.0/stencil");
    let mut traces = fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path());
    let is_trace = |path: &PathBuf| path.extension().is_some_and(|end| end == "omptrace");
    let trace = folder.join("stencil.omptrace");
    fs::copy(traces.find(is_trace).unwrap(), &trace).unwrap();
    let metadata = serde_json::to_value(Reader::open(&trace).unwrap().metadata()).unwrap();
    let mut symbols = metadata["symbols"].clone();
    let mut md5 = Vec::new();
    for (number, string) in (1..).zip(symbols["strings"].as_array_mut().unwrap()) {
        if string.as_str().is_some_and(|string| string.ends_with(".c")) {
            *string = Value::from(file.to_str().unwrap());
            md5.extend(checksum.map(|checksum| serde_json::json!([number, checksum])));
        }
    }
    if checksum.is_some() {
        symbols["modules"][0]["md5"] = md5.into();
    }
    let news = serde_json::json!({ "symbols": symbols });
    seal(&trace, news, InDoubt::Refuse, &mut |_, _| {}).unwrap();
    trace
}
