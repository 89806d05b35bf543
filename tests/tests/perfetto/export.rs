//! The whole timeline.

use std::fs;
use std::path::Path;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile};
use omptrace_tests::trace::{Traced, Traces, convert, omptrace};
use omptrace_tests::viewers::{Rows, open_in_ui, query};

use crate::intervals::{Interval, lasting, of_chrome, of_text};
use crate::pftrace;

/// The programs that are traced, and how large.
const PROGRAMS: [(&str, &[&str]); 6] = [
    ("examples/stencil.c", &["400", "20"]),
    ("examples/task_tree.c", &["9", "4"]),
    ("examples/lock_fight.c", &["2000"]),
    ("examples/nested.c", &["480", "20"]),
    ("tests/programs/nearly_everything.c", &["2", "20"]),
    ("tests/programs/control_tool.c", &["2", "20"]),
];

#[test]
fn all_formats_report_the_same_intervals() {
    for (source, arguments) in PROGRAMS {
        let traced = Traced::program(source, arguments);
        let perfetto = pftrace::intervals(&traced.convert("perfetto", "a.pftrace", &[]));
        let chrome = of_chrome(&traced.convert("chrome", "a.json", &[]));
        let text = of_text(&traced.convert("text", "a.txt", &[]));
        assert!(perfetto.len() > 50, "{source}: {}", perfetto.len());
        same(&lasting(&perfetto), &chrome, source);
        same(&perfetto, &text, source);
    }
}

/// Lists of thousands say little when they differ: their first difference does.
#[track_caller]
pub(crate) fn same(left: &[Interval], right: &[Interval], what: &str) {
    let difference = left.iter().zip(right).find(|(left, right)| left != right);
    assert_eq!(difference, None, "{what}");
    assert_eq!(left.len(), right.len(), "{what}");
}

#[test]
fn the_trace_processor_sees_what_was_written() {
    for (source, arguments) in PROGRAMS {
        let traced = Traced::program(source, arguments);
        let path = traced.convert("perfetto", "a.pftrace", &[]);
        let written = pftrace::intervals(&path);
        // Instants are slices of no duration too.
        let slices = "select count(*) n, sum(dur) ns, min(ts) first from slice where dur > 0";
        let deeper = "select count(*) n from slice s join slice p on s.parent_id = p.id \
                      where s.ts < p.ts or s.ts + s.dur > p.ts + p.dur or s.depth != p.depth + 1";
        let results = query(&path, &[slices, deeper]);
        let lasting: Vec<&Interval> = written.iter().filter(|slice| slice.end > slice.begin).collect();
        let ns: u64 = lasting.iter().map(|slice| slice.end - slice.begin).sum();
        assert_eq!(number(&results[0], "n"), lasting.len() as u64, "{source}");
        assert_eq!(number(&results[0], "ns"), ns, "{source}");
        assert_eq!(number(&results[1], "n"), 0, "{source}");
    }
}

/// Each is a sequence of its own, and they are written side by side.
#[test]
fn processes_are_one_timeline() {
    let traces = Traces::folder();
    let program = compile("tests/programs/tasks.c", Compiler::Clang22, &[]);
    for arguments in [["2", "14"], ["2", "3"], ["2", "13"]] {
        traces.record(Command::new(&program).args(arguments));
    }
    let path = traces.path().join("a.pftrace");
    let mut arguments = vec!["convert", "--jobs", "4", "--to", "perfetto", "-o"];
    let files = traces.files();
    let paths = [&path].into_iter().chain(&files);
    arguments.extend(paths.map(|path| path.to_str().expect("UTF-8")));
    let output = omptrace(&arguments);
    assert!(output.status.success(), "{output:?}");
    let written = pftrace::intervals(&path);

    let mut each = Vec::new();
    let mut arrows = 0;
    for file in &files {
        let path = traces.path().join("one.pftrace");
        convert(file, "perfetto", &path, &[]);
        each.extend(pftrace::intervals(&path));
        arrows += number(&query(&path, &["select count(*) n from flow"])[0], "n");
    }
    assert_eq!(written.len(), each.len());
    assert!(arrows > 0);
    assert!(fs::metadata(&path).expect("a file").len() > 1 << 20);

    let results = query(
        &path,
        &[
            "select count(distinct upid) n from thread where tid > 0 and name = 'main'",
            "select count(*) n from slice where dur > 0",
            "select count(*) n from flow",
            "with located as (select s.id, upid from slice s join thread_track t on s.track_id = t.id \
             join thread using (utid)) select count(*) n from flow f \
             join located a on f.slice_in = a.id join located b on f.slice_out = b.id where a.upid = b.upid",
            "select count(*) n from slice s join thread_track t on s.track_id = t.id \
             join thread using (utid) where thread.name = 'main' and s.dur > 0 group by upid",
            "select count(*) n from slice where name is null",
        ],
    );
    let lasting = written.iter().filter(|slice| slice.end > slice.begin);
    let numbers = [0, 1, 2, 3, 5].map(|index| number(&results[index], "n"));
    assert_eq!(numbers, [3, lasting.count() as u64, arrows, arrows, 0]);
    assert_eq!(results[4].len(), 3);
}

/// The number in a column of the first row.
#[track_caller]
pub(crate) fn number(rows: &Rows, column: &str) -> u64 {
    let value = &rows[0][column];
    value.as_u64().unwrap_or_else(|| panic!("{column} is {value}"))
}

#[test]
fn processes_threads_and_locks_are_a_tree() {
    let traced = Traced::example("lock_fight", &["50"]);
    let path = traced.convert("perfetto", "a.pftrace", &[]);
    let threads = "select t.name, p.name as process from thread t join process p using (upid) \
                   where p.pid > 0 order by t.tid";
    let locks = "select count(*) n from track t join track p on t.parent_id = p.id \
                 where p.name = 'Locks' and t.name like 'lock 0x%'";
    let holders = "select distinct s.name from slice s join track t on s.track_id = t.id \
                   where t.name like 'lock 0x%' order by s.name";
    let results = query(&path, &[threads, locks, holders]);
    assert_eq!(names(&results[0]), ["main", "OpenMP worker 1"]);
    let process = results[0][0]["process"].as_str().unwrap_or_default();
    assert!(process.starts_with("lock_fight"), "{process}");
    assert!(number(&results[1], "n") > 5, "one lock, then sixteen");
    assert_eq!(names(&results[2]), ["OpenMP worker 1", "main"]);
}

/// The viewer makes a colour of the correlation id.
#[test]
fn work_and_waiting_have_colours_of_their_own() {
    let traced = Traced::example("lock_fight", &["50"]);
    let path = traced.convert("perfetto", "a.pftrace", &[]);
    let colours = "select distinct category, extract_arg(arg_set_id, 'correlation_id') colour \
                   from slice where dur > 0";
    let aid = "select extract_arg(source_arg_set_id, 'description') aid from track where name = 'omptrace'";
    let results = query(&path, &[colours, aid]);
    let mut seen = Vec::new();
    for row in &results[0] {
        let text = |column: &str| row[column].as_str().unwrap_or_default();
        let expected: &[&str] = match text("category") {
            "parallel" | "implicit_task" => &["region"],
            "work" => &["useful work"],
            "mutex" => &["work under a lock"],
            "sync" => &["starts, joins, barriers"],
            "wait" => &["waits for slower threads", "waits for locks", "starts, joins, barriers"],
            other => panic!("{other}"),
        };
        let (group, _) = text("colour").split_once(", shade ").expect("a colour");
        assert!(expected.contains(&group), "{row:?}");
        seen.push(group.to_owned());
    }
    assert!(seen.contains(&"useful work".to_owned()), "{seen:?}");
    assert!(seen.contains(&"waits for slower threads".to_owned()), "{seen:?}");
    let aid = results[1][0]["aid"].as_str().unwrap_or_default();
    assert!(aid.starts_with("Colours show what a thread did:"), "{aid}");
}

fn names(rows: &Rows) -> Vec<&str> {
    rows.iter().filter_map(|row| row["name"].as_str()).collect()
}

#[test]
fn arrows_lead_to_the_tasks() {
    let traced = Traced::example("task_tree", &["8", "3"]);
    let path = traced.convert("perfetto", "a.pftrace", &[]);
    let results = query(
        &path,
        &[
            "select count(*) n from slice where name like 'task @%'",
            "select count(*) n from flow f join slice s on f.slice_in = s.id \
             join slice c on f.slice_out = c.id \
             where s.name like 'task @%' and c.name = 'task_create' and c.ts <= s.ts",
            "select count(*) n from flow",
        ],
    );
    let [tasks, arrows, all] = [0, 1, 2].map(|index| number(&results[index], "n"));
    assert!(arrows > 0 && arrows == all && arrows <= tasks, "{results:?}");
}

#[test]
fn events_report_arguments_source_and_time_of_day() {
    let traced = Traced::example("stencil", &["100", "3"]);
    let path = traced.convert("perfetto", "a.pftrace", &[]);
    let arguments = "select a.key, a.display_value value from slice s join args a using (arg_set_id) \
                     where s.name like 'parallel @stencil.c:%' and s.dur > 0 \
                     and (a.key like 'debug.requested%' or a.key like 'source.%') group by a.key order by a.key";
    let clock = "select clock_value value from clock_snapshot where clock_name = 'REALTIME'";
    let results = query(&path, &[arguments, clock]);
    let keys: Vec<&str> = results[0].iter().filter_map(|row| row["key"].as_str()).collect();
    assert_eq!(
        keys,
        ["debug.requested_parallelism", "source.file_name", "source.function_name", "source.line_number",],
    );
    let realtime = results[1][0]["value"].as_str().unwrap_or_default();
    let realtime: u128 = realtime.parse().expect("nanoseconds since 1970");
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock that is right");
    assert!(now.as_nanos().abs_diff(realtime) < 3_600_000_000_000, "{realtime}");
}

#[test]
fn the_file_is_small_and_the_same_each_time() {
    // The strings are written once, whatever the length. A hold of a lock is one slice in JSON, too, but two packets in Perfetto's
    // format.
    for (source, arguments, most_percent) in [
        ("examples/stencil.c", &["800", "200"], 30),
        ("examples/task_tree.c", &["10", "5"], 30),
        ("examples/lock_fight.c", &["6000", ""], 35),
        ("examples/nested.c", &["240", "160"], 30),
    ] {
        let traced = Traced::program(source, arguments);
        let perfetto = traced.convert("perfetto", "a.pftrace", &[]);
        let chrome = traced.convert("chrome", "a.json", &[]);
        let bytes = |path: &Path| fs::metadata(path).expect("a file").len();
        let (small, large) = (bytes(&perfetto), bytes(&chrome));
        assert!(small * 100 <= large * most_percent, "{source}: {small} of {large} bytes");

        let again = traced.convert("perfetto", "b.pftrace", &[]);
        assert!(fs::read(perfetto).ok() == fs::read(again).ok(), "{source}");
    }
}

#[test]
fn the_real_ui_opens_it() {
    let traced = Traced::example("stencil", &["100", "3"]);
    let path = traced.convert("perfetto", "a.pftrace", &[]);
    let slices = "select count(*) n from slice where dur > 0";
    let in_ui = open_in_ui(&path, &[slices]).sound();
    assert_eq!(in_ui, query(&path, &[slices]));
}
