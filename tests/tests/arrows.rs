//! Each kind of arrow starts on what caused and ends on what was caused, in each viewer that draws arrows. The text, which
//! names both ends of each, is the truth.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use omptrace_tests::trace::Traced;
use omptrace_tests::viewers::{Rows, open_in_catapult, open_in_speedscope, query};

/// From a thread to a thread at a time in nanoseconds.
type Arrow = (String, String, u64);

/// Arrows by kind.
type Arrows = BTreeMap<String, Vec<Arrow>>;

fn program() -> Traced {
    Traced::program("tests/programs/arrows.c", &["3", "6"])
}

/// Those of the text: `   0.001000000  <- KIND from THREAD at 0.000900000` below the name of a thread.
fn truth(text: &Path) -> Arrows {
    let text = fs::read_to_string(text).expect("a file");
    let mut thread = "";
    let mut arrows = Arrows::new();
    for line in text.lines() {
        let Some((time, event)) = line.trim_start().split_once("  ") else {
            thread = line.split(" (thread ").next().unwrap_or(line);
            continue;
        };
        let Some((kind, from)) = event
            .trim_start()
            .strip_prefix("<- ")
            .and_then(|arrow| arrow.split_once(" from "))
        else {
            continue;
        };
        let (from, _) = from.rsplit_once(" at").expect("when it began");
        let time = time.replace('.', "").parse().expect("nanoseconds");
        let arrow = (from.to_owned(), thread.to_owned(), time);
        arrows.entry(kind.to_owned()).or_default().push(arrow);
    }
    arrows.values_mut().for_each(|arrows| arrows.sort());
    arrows
}

/// The kind of an arrow between slices of these names; what is no arrow of ours has none.
fn kind(from: &str, to: &str) -> Option<&'static str> {
    let construct = |name: &str| name.split(" @").next().unwrap_or_default().to_owned();
    match (&construct(from)[..], &construct(to)[..]) {
        ("single" | "task_create", "task") => Some("task_create"),
        ("task", "task" | "task_dependence") => Some("task_dependence"),
        ("critical", "critical") | ("ordered", "ordered") => Some("mutex_release"),
        ("mutex_released", "mutex_acquired") => Some("mutex_release"),
        // The acquisition was reported before the release.
        ("mutex_released", "critical" | "ordered") => Some("mutex_release"),
        _ => None,
    }
}

/// Rows with the names of both slices and threads, and when the second begins.
fn shown(rows: &Rows) -> Arrows {
    let mut arrows = Arrows::new();
    for row in rows {
        let text = |column: &str| row[column].as_str().unwrap_or_default().to_owned();
        let (from, to) = (text("from_slice"), text("to_slice"));
        let kind = kind(&from, &to).unwrap_or_else(|| panic!("an arrow from {from} to {to}"));
        let time = row["time"].as_u64().expect("a time");
        let arrow = (text("from_thread"), text("to_thread"), time);
        arrows.entry(kind.to_owned()).or_default().push(arrow);
    }
    arrows.values_mut().for_each(|arrows| arrows.sort());
    arrows
}

const ARROWS: &str = "select s.name from_slice, d.name to_slice, a.name from_thread, b.name to_thread, d.ts time \
                      from flow f join slice s on f.slice_out = s.id join slice d on f.slice_in = d.id \
                      join thread_track ta on s.track_id = ta.id join thread a on ta.utid = a.utid \
                      join thread_track tb on d.track_id = tb.id join thread b on tb.utid = b.utid";

/// All kinds that a host has are there, each more than once.
fn expect_all_kinds(truth: &Arrows) {
    for kind in ["task_create", "task_dependence", "mutex_release"] {
        assert!(truth[kind].len() > 10, "{kind}: {}", truth[kind].len());
    }
}

#[test]
fn perfetto_draws_each_arrow_from_its_cause_to_its_effect() {
    let traced = program();
    let truth = truth(&traced.convert("text", "a.txt", &[]));
    expect_all_kinds(&truth);
    for (format, name) in [("perfetto", "a.pftrace"), ("chrome", "a.json")] {
        let rows = query(&traced.convert(format, name, &[]), &[ARROWS]);
        assert_eq!(shown(&rows[0]), truth, "{format}");
    }
}

#[test]
fn catapult_draws_each_arrow_from_its_cause_to_its_effect() {
    let traced = program();
    let truth = truth(&traced.convert("text", "a.txt", &[]));
    expect_all_kinds(&truth);
    let results = open_in_catapult(&traced.convert("chrome", "a.json", &[])).sound();
    assert_eq!(from_first(shown(&results[1])), from_first(truth));
}

/// The same, with times since the first arrow's: Catapult counts from the trace's first event.
fn from_first(mut arrows: Arrows) -> Arrows {
    let times = arrows.values().flatten().map(|(_, _, time)| *time);
    let first = times.min().unwrap_or_default();
    for (_, _, time) in arrows.values_mut().flatten() {
        *time -= first;
    }
    arrows
}

/// It draws no arrows, but its slices must end.
#[test]
fn speedscope_shows_the_times_that_perfetto_shows() {
    let traced = program();
    for arguments in ["all", "none"] {
        let json = traced.convert("chrome", "a.json", &["--args", arguments]);
        let frames = open_in_speedscope(&json).sound().remove(0);
        let mut times: BTreeMap<String, f64> = BTreeMap::new();
        for frame in frames {
            let name = frame["frame"].as_str().expect("a name");
            // It makes a frame of each name with its arguments.
            let name = name.split(" {").next().unwrap_or_default();
            *times.entry(name.to_owned()).or_default() += frame["self"].as_f64().expect("a time");
        }
        // A slice's own time is its duration without that of its children.
        let own = "select s.name, sum(s.dur - coalesce((select sum(c.dur) from slice c where c.parent_id = s.id), 0)) ns \
                   from slice s where s.name not glob 'mutex_*' group by 1";
        for row in &query(&json, &[own])[0] {
            let (name, ns) = (row["name"].as_str(), row["ns"].as_f64());
            let (name, ns) = name.zip(ns).expect("a name and a time");
            let shown = times.get(name).copied().unwrap_or_default();
            assert!(
                (shown * 1000.0 - ns).abs() < 1000.0,
                "{name}: {shown} us of {ns} ns"
            );
        }
    }
}
