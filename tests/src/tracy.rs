//! Chrome JSON as Tracy's importer reads it.
//!
//! No registry has that program (`import/src/import-chrome.cpp` of <https://github.com/wolfpld/tracy>), so its rules are
//! repeated here, as version 0.14.0 has them. docs/viewers.md says what the program itself showed.
//!
//! * A thread is `pid` and `tid` (`getPseudoTid`).
//! * A time is `uint64_t( v["ts"].get<double>() * 1000. )`.
//! * `std::stable_sort` orders begins and ends by time. What has one time keeps the file's order.
//! * An end ends the thread's innermost zone, whatever its name (`auto zone = stack.back_and_pop()` in `TracyWorker.cpp`).
//!   Where there is none it is lost. A begin without an end never ends.
//! * `loc` is the file and, behind its last colon, the line.
//! * A plot has the key of its value as its name, in all processes (`plot.name == metricName`).

use std::collections::BTreeMap;

use serde_json::Value;

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Zone {
    /// Its process.
    pub pid: u64,
    /// Its thread.
    pub tid: u64,
    /// When it begins, in nanoseconds.
    pub begin: u64,
    /// When it ends.
    pub end: u64,
    /// Its name.
    pub name: String,
    /// Its file and line, as the trace has them.
    pub loc: Option<String>,
}

/// The content that the importer shows.
#[derive(Debug, Default)]
pub struct Imported {
    /// The zones of all threads, in the order of their ends.
    pub zones: Vec<Zone>,
    /// Ends that end no zone, or one of another name, and begins without an end.
    pub lost: Vec<String>,
    /// The processes whose values are in one plot, by its name.
    pub plots: BTreeMap<String, Vec<u64>>,
}

/// Imports a Chrome JSON trace.
///
/// # Panics
/// It is none.
pub fn import(trace: &Value) -> Imported {
    let events = trace["traceEvents"].as_array().expect("a list of events");
    let number = |event: &Value, key: &str| event[key].as_u64().expect("a number");
    let time = |event: &Value| (event["ts"].as_f64().expect("a time") * 1000.0) as u64;
    let phase = |event: &&Value| event["ph"].as_str().unwrap_or_default().to_owned();
    let name = |event: &Value| event["name"].as_str().expect("a name").to_owned();

    let mut imported = Imported::default();
    for event in events.iter().filter(|event| phase(event) == "C") {
        let values = event["args"].as_object().expect("a counter has values");
        for key in values.keys() {
            let pids = imported.plots.entry(key.clone()).or_default();
            pids.push(number(event, "pid"));
            pids.sort_unstable();
            pids.dedup();
        }
    }
    let is_timeline = |event: &&Value| ["B", "E"].contains(&&phase(event)[..]);
    let mut timeline: Vec<&Value> = events.iter().filter(is_timeline).collect();
    timeline.sort_by_key(|event| time(event));
    let mut open: BTreeMap<(u64, u64), Vec<&Value>> = BTreeMap::new();
    for event in timeline {
        let (pid, tid) = (number(event, "pid"), number(event, "tid"));
        let stack = open.entry((pid, tid)).or_default();
        if phase(&event) == "B" {
            stack.push(event);
            continue;
        }
        match stack.pop() {
            Some(begin) if begin["name"] == event["name"] => imported.zones.push(Zone {
                pid,
                tid,
                begin: time(begin),
                end: time(event),
                name: name(begin),
                loc: begin["loc"].as_str().map(str::to_owned),
            }),
            _ => imported.lost.push(event.to_string()),
        }
    }
    let unended = open.into_values().flatten().map(ToString::to_string);
    imported.lost.extend(unended);
    imported
}
