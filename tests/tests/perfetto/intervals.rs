//! The intervals of a trace, as each format shows them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use omptrace_timeline::model::short_name;
use serde_json::Value;

/// A slice of a thread, or the hold of a lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub(crate) track: String,
    /// Nanoseconds.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) name: String,
}

/// The intervals that last: Chrome JSON has no slices without duration that have arguments.
pub(crate) fn lasting(intervals: &[Interval]) -> Vec<Interval> {
    let lasts = |interval: &&Interval| interval.begin < interval.end;
    intervals.iter().filter(lasts).cloned().collect()
}

/// The intervals of a Chrome JSON file that last.
pub(crate) fn of_chrome(path: &Path) -> Vec<Interval> {
    let json: Value = serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
    let events = json["traceEvents"].as_array().expect("events");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let nanoseconds = |value: &Value| (value.as_f64().expect("a time") * 1000.0).round() as u64;
    let mut tracks: BTreeMap<[String; 2], String> = BTreeMap::new();
    let mut open: BTreeMap<[String; 2], Vec<u64>> = BTreeMap::new();
    let mut intervals = Vec::new();
    for event in events {
        let thread = ["pid", "tid"].map(|id| event[id].to_string());
        match event["ph"].as_str() {
            Some("M") if event["name"] == "thread_name" => {
                tracks.insert(thread, text(&event["args"]["name"]));
            }
            _ if event["name"].as_str().is_some_and(is_mark) => {}
            Some("B") => {
                let open = open.entry(thread).or_default();
                open.push(nanoseconds(&event["ts"]));
            }
            Some("E") => intervals.push(Interval {
                track: tracks[&thread].clone(),
                begin: open.get_mut(&thread).and_then(Vec::pop).expect("an end has a begin"),
                end: nanoseconds(&event["ts"]),
                name: text(&event["name"]),
            }),
            _ => {}
        }
    }
    intervals.sort();
    lasting(&intervals)
}

/// Whether a slice without duration is an end of an arrow.
pub(crate) fn is_mark(name: &str) -> bool {
    let marks = ["mutex_released", "mutex_acquired", "task_create", "task_dependence"];
    marks.contains(&name)
}

/// The intervals of a text file.
pub(crate) fn of_text(path: &Path) -> Vec<Interval> {
    let text = fs::read_to_string(path).expect("a file");
    let mut track = "";
    let mut open: Vec<u64> = Vec::new();
    let mut intervals = Vec::new();
    for line in text.lines() {
        let Some((time, event)) = time_and_event(line) else {
            track = line;
            continue;
        };
        let event = event.trim_start();
        if event.starts_with("* ") || event.starts_with("<- ") {
            continue;
        }
        let name = event.strip_prefix("end ").unwrap_or(event);
        let name = name.split("  ").next().unwrap_or_default();
        let Some(duration) = duration(event) else {
            open.push(time);
            continue;
        };
        let begin = match event.starts_with("end ") {
            true => open.pop().expect("an end has a begin"),
            false => time,
        };
        let end = if begin == time { time + duration } else { time };
        assert_eq!(end - begin, duration, "{line}");
        intervals.push(Interval {
            track: track.split(" (thread ").next().unwrap_or(track).to_owned(),
            begin,
            end,
            name: short_name(name).to_owned(),
        });
    }
    intervals.sort();
    intervals
}

/// `   0.000001000  event`
fn time_and_event(line: &str) -> Option<(u64, &str)> {
    let (time, event) = line.strip_prefix(' ')?.trim_start().split_once("  ")?;
    let (seconds, nanoseconds) = time.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    Some((seconds * 1_000_000_000 + nanoseconds.parse::<u64>().ok()?, event))
}

/// `...  = 9.000 us`, in nanoseconds.
fn duration(event: &str) -> Option<u64> {
    let (_, duration) = event.strip_suffix(" us")?.rsplit_once("  = ")?;
    duration.replace('.', "").parse().ok()
}
