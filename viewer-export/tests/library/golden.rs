//! Compares exports with golden files: `tests/fixtures/NAME.trace` is exported as `NAME.txt` and `NAME.json`.
//!
//! `OMPTRACE_BLESS=1` updates the golden files; read the difference before you commit it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use omptrace_timeline::why_no_samples;
use omptrace_trace_format::Reader;
use omptrace_viewer_export::{ConvertOptions, FORMATS, Format, convert};

use crate::fixture;
use crate::shared::Shared;

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn export(inputs: &[&Reader], format: &Format) -> String {
    let out = Shared::default();
    let target = Box::new(out.clone());
    convert(inputs, format, &ConvertOptions::default(), target, &mut |_| {}).expect("memory can be written");
    String::from_utf8(out.bytes()).expect("UTF-8")
}

fn check(name: &str) {
    let text = fs::read_to_string(fixtures().join(format!("{name}.trace"))).expect("a fixture");
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(&text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    for format in ["chrome", "text"].map(|name| Format::by_name(name).expect("a format")) {
        let exported = export(&inputs, format);
        if format.name == "chrome" {
            is_sound_chrome(&exported);
        }
        expect(&format!("{name}.{}", format.extension), &exported);
    }
    if readers.iter().any(|reader| why_no_samples(reader).is_none()) {
        let folded = Format::by_name("folded").expect("a format");
        expect(&format!("{name}.folded"), &export(&inputs, folded));
    }
}

fn expect(file: &str, actual: &str) {
    is_as_reviewed(&fixtures().join(file), actual);
}

/// With `OMPTRACE_BLESS=1`, updates the golden file.
pub(crate) fn is_as_reviewed(path: &Path, actual: &str) {
    if std::env::var_os("OMPTRACE_BLESS").is_some() {
        fs::write(path, actual).expect("a writable folder");
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert!(
        expected == actual,
        "{} should be\n{expected}\nbut is\n{actual}\nOMPTRACE_BLESS=1 accepts it",
        path.display()
    );
}

/// Checks that the file is JSON, that the starts and ends of each thread's slices are in chronological order, that each
/// end names the newest open slice, and that each arrow has a source that is not later than its end.
fn is_sound_chrome(text: &str) {
    let json: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events");
    let nanoseconds = |event: &serde_json::Value, key: &str| -> u64 {
        (event[key].as_f64().expect("a number") * 1000.0).round() as u64
    };
    let mut threads: HashMap<(u64, u64), (u64, Vec<String>)> = HashMap::new();
    let mut sources = HashMap::new();
    let mut effects = Vec::new();
    for event in events {
        let number = |key: &str| event[key].as_u64().expect("a number");
        let thread = (number("pid"), number("tid"));
        let name = event["name"].as_str().expect("a name").to_owned();
        let (last, open) = threads.entry(thread).or_default();
        match event["ph"].as_str().expect("a phase") {
            "s" => {
                let source = sources.insert(event["id"].to_string(), nanoseconds(event, "ts"));
                assert_eq!(source, None, "one source: {event}");
            }
            "f" => effects.push((event["id"].to_string(), nanoseconds(event, "ts"))),
            // Marks for sources that are known later than they happened.
            "B" | "E" if name == "mutex_released" || name == "task_dependence" => {}
            phase @ ("B" | "E") => {
                let time = nanoseconds(event, "ts");
                assert!(time >= *last, "time went back from {last}: {event}");
                *last = time;
                match phase {
                    "B" => open.push(name),
                    _ => assert_eq!(open.pop(), Some(name), "{event}"),
                }
            }
            _ => {}
        }
    }
    for (thread, (_, open)) in threads {
        assert_eq!(open, [""; 0], "{thread:?}");
    }
    assert_eq!(effects.len(), sources.len(), "arrows");
    for (id, time) in effects {
        assert!(sources[&id] <= time, "{id}");
    }
}

macro_rules! golden {
    ($($name:ident)*) => { $( #[test] fn $name() { check(stringify!($name)); } )* };
}

golden! {
    late_worker_ends
    flush_between_late_ends
    nested_regions
    samples
    counters
    misnamed_region
    taken_early
    tasks_on_top_of_tasks
    untied_migration
    untied_without_creation
    detached_task
    ended_task_named
    energy
    external_waits
    mpi_waits
    mpi_messages
    locks_out_of_order
    failed_test_lock
    missing_ends
    pause_gap
    phases
    lost_events
    unknown_events
    shifted_data_op
    single_without_end
    single_in_nested_serialized
    taskloop_in_single
    league_body
    league_without_begin
    cancelled_in_draft
    left_in_draft
    two_processes
    zero_length_hold
    late_release
    tasks_in_barrier
    dynamic_loop
    hidden_helpers
    dependences
    create_after_instant
    dependence_after_instant
    lock_released_elsewhere
    taskwaits_without_id
    contended_critical
    device_records
    device_repairs
    device_native
}

/// The table of tests above is complete.
#[test]
fn every_fixture_is_checked() {
    let source = include_str!("golden.rs");
    for entry in fs::read_dir(fixtures()).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        assert!(source.contains(&format!("    {name}\n")), "{name} is not in the table");
    }
}

#[test]
fn gzip_output_is_the_same_each_time() {
    let text = fs::read_to_string(fixtures().join("nested_regions.trace")).expect("a fixture");
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(&text, folder.path());
    let packed = || {
        let out = Shared::default();
        let inputs: Vec<&Reader> = readers.iter().collect();
        let options = ConvertOptions { gzip: true, ..ConvertOptions::default() };
        convert(&inputs, &FORMATS[0], &options, Box::new(out.clone()), &mut |_| {}).expect("written");
        out.bytes()
    };
    let bytes = packed();
    assert_eq!(bytes, packed());
    assert_eq!(bytes[..2], [0x1f, 0x8b]);
    let mut text = String::new();
    io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).expect("gzip");
    is_sound_chrome(&text);
}

/// The size of the text grows with the events, not with the square of the depth.
#[test]
fn lines_of_deep_nests_are_not_long() {
    const DEPTH: u64 = 1000;
    let regions = (0..DEPTH).flat_map(|level| {
        let (time, parallel, task, inner) = (10 * level, 2 * level + 2, 2 * level + 1, 2 * level + 3);
        [
            format!("{time} 1 parallel_begin parallel={parallel} team=1 task={task}\n"),
            format!("{time} 1 implicit_task begin parallel={parallel} task={inner} team=1\n"),
        ]
    });
    let text: String = std::iter::once("0 1 implicit_task begin task=1 flags=1 team=1\n".to_owned())
        .chain(regions)
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(&text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    let exported = export(&inputs, Format::by_name("text").expect("a format"));
    let longest = exported.lines().map(str::len).max();
    assert!(longest.is_some_and(|bytes| bytes < 250), "{longest:?}");
    let depth = format!("[{}] ", 2 * DEPTH);
    assert!(exported.contains(&depth), "{}", exported.lines().last().unwrap_or_default());
}

/// Speedscope sorts starts and ends with the same time, and does not find the start of a mark after another start.
#[test]
fn the_mark_of_an_arrow_comes_before_what_begins_at_its_time() {
    // An acquisition without duration, after which the thread waits again.
    let text = "0  1 implicit_task begin task=1 flags=1\n\
                0  2 implicit_task begin task=2 flags=1\n\
                20 2 mutex_acquire kind=critical wait_id=7\n\
                30 1 mutex_acquired kind=critical wait_id=7\n\
                30 1 mutex_released kind=critical wait_id=7\n\
                30 1 mutex_acquire kind=critical wait_id=7\n\
                31 2 mutex_acquired kind=critical wait_id=7\n\
                40 2 mutex_released kind=critical wait_id=7\n\
                41 1 mutex_acquired kind=critical wait_id=7\n\
                50 1 mutex_released kind=critical wait_id=7\n";
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    let exported = export(&inputs, Format::by_name("chrome").expect("a format"));
    let at_30 =
        exported.lines().filter(|line| line.contains("\"ts\":0.030") && line.contains("\"ph\":\"B\""));
    let at_30: Vec<&str> = at_30.collect();
    assert_eq!(at_30.len(), 2, "{at_30:?}");
    assert!(at_30[0].contains("mutex_released"), "{at_30:?}");
}
