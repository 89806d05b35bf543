//! Chrome JSON in the importers of other viewers: each slice of a thread arrives with its begin and end. Perfetto's own format,
//! which another module writes and Perfetto reads, is the truth.

use std::fs;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile};
use omptrace_tests::trace::{Traced, Traces, omptrace};
use omptrace_tests::tracy::{self, Imported};
use omptrace_tests::viewers::{Rows, open_in_firefox, query};
use serde_json::Value;

const PROGRAMS: &[(&str, &[&str])] = &[
    ("tests/programs/nearly_everything.c", &["3", "5"]),
    ("tests/programs/arrows.c", &["3", "6"]),
    ("tests/programs/locks.c", &["3", "50"]),
    ("tests/programs/nested.c", &["2", "2", "5"]),
    ("tests/programs/foreign_pthreads.c", &["2", "2", "5"]),
];

/// A slice of a thread: process, thread, begin, end, name.
type Slice = (u64, u64, u64, u64, String);

/// Ids of threads from here on are the exporter's: of locks, queues and other tracks.
const FIRST_OWN_ID: u64 = (1 << 22) + 1;

/// Those of the threads of a program, without the marks that carry arrows, in order.
fn sorted(slices: impl Iterator<Item = Slice>) -> Vec<Slice> {
    const MARKS: [&str; 4] = ["mutex_released", "mutex_acquired", "task_create", "task_dependence"];
    let is_shown = |(_, tid, _, _, name): &Slice| *tid < FIRST_OWN_ID && !MARKS.contains(&&name[..]);
    let mut slices: Vec<Slice> = slices.filter(is_shown).collect();
    slices.sort();
    slices
}

const SLICES: &str = "select p.pid, t.tid, s.name, s.ts begin, s.dur duration from slice s \
                      join thread_track tt on s.track_id = tt.id join thread t using (utid) join process p using (upid)";

fn number(row: &Rows, index: usize, column: &str) -> u64 {
    row[index][column].as_u64().expect("a number")
}

/// The slices that Perfetto shows of its own format.
fn truth(trace: &Path) -> Vec<Slice> {
    let rows = &query(trace, &[SLICES])[0];
    sorted((0..rows.len()).map(|index| {
        let begin = number(rows, index, "begin");
        let name = rows[index]["name"].as_str().expect("a name").to_owned();
        let end = begin + number(rows, index, "duration");
        (number(rows, index, "pid"), number(rows, index, "tid"), begin, end, name)
    }))
}

/// Those that last.
fn lasting(slices: &[Slice]) -> Vec<Slice> {
    let lasts = |(_, _, begin, end, _): &&Slice| begin < end;
    slices.iter().filter(lasts).cloned().collect()
}

/// The same from the first one's begin on, from which Firefox counts.
fn from_first(mut slices: Vec<Slice>) -> Vec<Slice> {
    let first = slices.iter().map(|slice| slice.2).min().unwrap_or_default();
    for slice in &mut slices {
        slice.2 -= first;
        slice.3 -= first;
    }
    slices
}

fn in_tracy(json: &Path) -> Imported {
    let json: Value = serde_json::from_slice(&fs::read(json).expect("a file")).expect("JSON");
    tracy::import(&json)
}

#[test]
fn firefox_shows_each_slice_and_the_details() {
    for (source, arguments) in PROGRAMS {
        let traced = Traced::program(source, arguments);
        let truth = truth(&traced.convert("perfetto", "a.pftrace", &[]));
        let results = open_in_firefox(&traced.convert("chrome", "a.json", &[])).sound();
        let (threads, markers) = (&results[0], &results[1]);
        let shown = (0..markers.len()).map(|index| {
            let thread = &threads[number(markers, index, "thread") as usize];
            let ids = thread["tid"].as_str().and_then(|ids| ids.split_once(':'));
            let (pid, tid) = ids.expect("process and thread");
            let begin = number(markers, index, "begin");
            let duration = markers[index]["duration"].as_u64().unwrap_or(0);
            let name = markers[index]["name"].as_str().expect("a name").to_owned();
            let id = |id: &str| id.parse().expect("an id");
            (id(pid), id(tid), begin, begin + duration, name)
        });
        let shown = sorted(shown);
        // Those without duration are markers, too, as are the notes on the trace.
        assert_eq!(from_first(lasting(&shown)), from_first(lasting(&truth)), "{source}");
        assert!(shown.len() >= truth.len(), "{source}");
        let has_detail = |marker: &serde_json::Map<String, Value>| {
            let detail = marker["detail"].as_str().unwrap_or_default();
            marker["name"].as_str() == Some("initial task") && detail.contains("index=1")
        };
        assert!(markers.iter().any(has_detail), "{source}");
    }
}

#[test]
fn tracy_loses_no_zone_and_knows_the_lines() {
    for (source, arguments) in PROGRAMS {
        let traced = Traced::program(source, arguments);
        let truth = lasting(&truth(&traced.convert("perfetto", "a.pftrace", &[])));
        let imported = in_tracy(&traced.convert("chrome", "a.json", &[]));
        assert_eq!(imported.lost, [""; 0], "{source}");
        for zone in &imported.zones {
            // What is inside of a place, or near one, has no line of its own.
            let (construct, place) = zone.name.split_once(" @").unwrap_or_default();
            if place.contains(".c:") && !construct.ends_with(" inside") && !construct.ends_with(" near") {
                assert_eq!(zone.loc.as_deref(), Some(place), "{source}");
            }
        }
        assert!(imported.zones.iter().any(|zone| zone.loc.is_some()), "{source}");
        // Its times are products of doubles, without what comes behind the point: a nanosecond may be missing.
        let zones = imported.zones.into_iter();
        let shown = lasting(&sorted(zones.map(|zone| (zone.pid, zone.tid, zone.begin, zone.end, zone.name))));
        let near = |one: &Slice, other: &Slice| one.2.abs_diff(other.2) < 2 && one.3.abs_diff(other.3) < 2;
        for slice in &truth {
            let same = |other: &&Slice| (slice.0, slice.1, &slice.4) == (other.0, other.1, &other.4);
            let found = shown.iter().filter(same).any(|other| near(slice, other));
            // One of a nanosecond may have none there.
            assert!(found || slice.3 - slice.2 < 2, "{source}: {slice:?}");
        }
        assert!(shown.len() <= truth.len(), "{source}");
    }
}

/// Traces of two ranks: in one export, and in one file of two exports.
fn two_ranks() -> (Traces, [std::path::PathBuf; 2]) {
    let traces = Traces::folder();
    let program = compile("tests/programs/locks.c", Compiler::Clang22, &[]);
    for rank in ["0", "1"] {
        let mut command = Command::new(&program);
        traces.record(command.args(["2", "20"]).env("OMPI_COMM_WORLD_RANK", rank));
    }
    let files = traces.files();
    let convert = |from: &[&Path], name: &str| {
        let to = traces.path().join(name);
        let words = ["convert", "--to", "chrome", "-o"].map(Path::new);
        let output = omptrace(words.into_iter().chain([&*to]).chain(from.iter().copied()));
        assert!(output.status.success(), "{output:?}");
        to
    };
    let together = convert(&[&files[0], &files[1]], "together.json");
    let mut events = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let json = convert(&[file], &format!("{index}.json"));
        let json: Value = serde_json::from_slice(&fs::read(json).expect("a file")).expect("JSON");
        events.extend(json["traceEvents"].as_array().expect("a list").clone());
    }
    let combined = traces.path().join("combined.json");
    let text = serde_json::json!({ "traceEvents": events }).to_string();
    fs::write(&combined, text).expect("the folder is ours");
    (traces, [together, combined])
}

#[test]
fn the_main_thread_of_each_process_is_known_also_in_combined_exports() {
    let (_traces, exports) = two_ranks();
    for json in &exports {
        let threads = &open_in_firefox(json).sound()[0];
        let name = |row: &serde_json::Map<String, Value>| row["thread"].as_str().map(str::to_owned);
        let is_main = |row: &serde_json::Map<String, Value>| row["is_main"] == true;
        let mains = threads.iter().filter(|row| name(row).as_deref() == Some("main"));
        assert_eq!(mains.clone().count(), 2, "{threads:?}");
        assert!(mains.clone().all(is_main), "{threads:?}");
        assert_eq!(threads.iter().filter(|row| is_main(row)).count(), 2);

        let sql = "select t.name, t.is_main_thread n from thread t join process p using (upid) where p.pid > 0 and t.tid < 4194304";
        for row in &query(json, &[sql])[0] {
            assert_eq!(row["n"] == 1, row["name"] == "main", "{row:?}");
        }
    }
}

#[test]
fn a_plot_of_tracy_has_the_values_of_one_process() {
    let (_traces, [together, _]) = two_ranks();
    let plots = in_tracy(&together).plots;
    assert!(plots.len() >= 4, "{plots:?}");
    assert!(plots.values().all(|pids| pids.len() == 1), "{plots:?}");
}
