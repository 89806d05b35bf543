//! The critical path: a track, and arrows from one thread to another.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile};
use omptrace_tests::trace::{Traces, omptrace};
use omptrace_tests::viewers::{open_in_catapult, query};
use serde_json::{Map, Value};

type Row = Map<String, Value>;

/// The steps of the paths, by process and in the order of time.
const STEPS: &str = "select s.ts begin, s.ts + s.dur end, upid, \
                     coalesce(extract_arg(s.arg_set_id, 'debug.thread'), extract_arg(s.arg_set_id, 'args.thread')) thread \
                     from slice s join process_track t on s.track_id = t.id \
                     where t.name = 'critical path' order by upid, s.ts";

/// As [`STEPS`], of a file whose tracks are threads.
const STEPS_OF_JSON: &str = "select s.ts begin, s.ts + s.dur end, upid, extract_arg(s.arg_set_id, 'args.thread') thread \
                             from slice s join thread_track t on s.track_id = t.id join thread h using (utid) \
                             where h.name = 'critical path' order by upid, s.ts";

/// The arrows along the paths.
const ARROWS: &str = "with mark as (select s.id, s.ts, s.dur, h.upid, h.name thread from slice s \
                      join thread_track t on s.track_id = t.id join thread h using (utid) where s.name = 'critical_path') \
                      select a.upid, a.thread from_thread, a.ts from_time, b.upid to_upid, b.thread to_thread, b.ts to_time \
                      from flow f join mark a on f.slice_out = a.id join mark b on f.slice_in = b.id";

/// An arrow's process, threads and times.
type Arrow = (u64, String, u64, String, u64);

/// Two processes of three threads, which wait for each other all the time.
#[test]
fn the_critical_paths_of_several_processes_lead_from_thread_to_thread() {
    let traces = Traces::folder();
    let program = compile("tests/programs/arrows.c", Compiler::Clang22, &[]);
    for rounds in ["3", "5"] {
        traces.record(Command::new(&program).args(["3", rounds]));
    }
    let files = traces.files();
    for (format, file, steps) in [("perfetto", "a.pftrace", STEPS), ("chrome", "a.json", STEPS_OF_JSON)] {
        let path = traces.path().join(file);
        let mut words: Vec<&Path> = vec!["convert".as_ref(), "--critical-path".as_ref()];
        words.extend(["--to".as_ref(), format.as_ref(), "-o".as_ref(), path.as_path()]);
        words.extend(files.iter().map(|file| file.as_path()));
        let output = omptrace(words);
        assert!(output.status.success(), "{output:?}");

        let mut results = query(&path, &[steps, ARROWS]);
        let (arrows, steps) = (results.remove(1), results.remove(0));
        let number = |row: &Row, column: &str| row[column].as_u64().expect("a number");
        let text = |row: &Row, column: &str| row[column].as_str().expect("a text").to_owned();
        let mut expected: Vec<Arrow> = Vec::new();
        for pair in steps.windows(2) {
            let [from, to] = pair else { continue };
            if number(from, "upid") != number(to, "upid") {
                continue;
            }
            assert!(number(from, "end") <= number(to, "begin"), "{format}: {pair:?}");
            if from["thread"] != to["thread"] {
                expected.push((
                    number(from, "upid"),
                    text(from, "thread"),
                    number(from, "end"),
                    text(to, "thread"),
                    number(to, "begin"),
                ));
            }
        }
        let shown = arrows.iter().map(|row| {
            assert_eq!(row["upid"], row["to_upid"], "{format}: {row:?}");
            let (from, to) = (text(row, "from_thread"), text(row, "to_thread"));
            let (begin, end) = (number(row, "from_time"), number(row, "to_time"));
            (number(row, "upid"), from, begin, to, end)
        });
        let mut shown: Vec<Arrow> = shown.collect();
        expected.sort();
        shown.sort();
        assert_eq!(shown, expected, "{format}");
        // Each thread has what others have had before.
        let processes: BTreeSet<u64> = expected.iter().map(|arrow| arrow.0).collect();
        assert_eq!(processes.len(), 2, "{format}: {expected:?}");
    }
    open_in_catapult(&traces.path().join("a.json")).sound();
}
