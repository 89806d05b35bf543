//! Traces with a coarse clock, such as Arm's, which ticks 24 million to a thousand million times per second, so that
//! many events have the same time.

use std::collections::BTreeMap;
use std::panic::catch_unwind;

use omptrace_analysis::Info;
use serde_json::Value;

use crate::contract::{keeps_contract, nonsense};
use crate::facts::{json_of, with_trace};
use crate::stats::{fixtures, stats};

/// The rates of Apple's and others' CPUs, servers, a development board, and CPUs from Armv8.6 on.
const RATES: [u64; 5] = [24_000_000, 25_000_000, 54_000_000, 100_000_000, 1_000_000_000];

/// The text, with each process on a clock with this many ticks per second.
fn with_clock(text: &str, hz: u64) -> String {
    let is_process = |line: &&str| line.trim_start().starts_with("process ");
    match text.lines().any(|line| is_process(&line)) {
        true => text
            .lines()
            .map(|line| if is_process(&line) { format!("{line} hz={hz}\n") } else { format!("{line}\n") })
            .collect(),
        false => format!("process app hz={hz}\n{text}"),
    }
}

/// Traces whose events may be contradictory: their regions overlap.
const NONSENSE: &str = "seed";

fn traces() -> Vec<(String, String)> {
    let nonsense = (1..=60).map(|seed| (format!("{NONSENSE} {seed}"), nonsense(seed)));
    fixtures().into_iter().chain(nonsense).collect()
}

/// The names and times of each stream's events, in their order.
fn by_stream(text: &str) -> BTreeMap<u64, Vec<(String, u64)>> {
    let mut streams: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
    for line in json_of(text).lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let name = event["event"].as_str().expect("a name").to_owned();
        let time = event["time_ns"].as_u64().expect("a time that is not negative");
        streams.entry(event["stream"].as_u64().expect("a number")).or_default().push((name, time));
    }
    streams
}

#[test]
fn threads_keep_the_order_of_their_events() {
    for (name, text) in traces() {
        let truth = by_stream(&with_clock(&text, 1_000_000_000));
        for hz in RATES {
            let tick_ns = 1_000_000_000_u64.div_ceil(hz);
            let coarse = by_stream(&with_clock(&text, hz));
            assert_eq!(coarse.len(), truth.len(), "{name}, {hz} Hz");
            for (stream, events) in &coarse {
                let names = |events: &[(String, u64)]| -> Vec<String> {
                    events.iter().map(|(name, _)| name.clone()).collect()
                };
                assert_eq!(names(events), names(&truth[stream]), "{name}, {hz} Hz, stream {stream}");
                assert!(events.is_sorted_by_key(|(_, time)| *time), "{name}, {hz} Hz, stream {stream}");
                let apart = events.iter().zip(&truth[stream]).map(|(one, other)| one.1.abs_diff(other.1));
                assert!(apart.max() <= Some(tick_ns), "{name}, {hz} Hz, stream {stream}");
            }
        }
    }
}

#[test]
fn timelines_keep_their_contract_and_durations_are_not_negative() {
    let keeps = |text: &str| catch_unwind(|| with_trace(text, keeps_contract)).is_ok();
    let all = traces();
    let count = all.len();
    // The contract concerns items as exports receive them. In one fixture, about counters, they are not in this order
    // on any clock.
    let sound: Vec<_> = all.into_iter().filter(|(_, text)| keeps(text)).collect();
    assert!(sound.len() + 1 >= count, "{} of {count}", sound.len());
    for (name, text) in sound {
        for hz in RATES {
            let text = with_clock(&text, hz);
            assert!(keeps(&text), "{name}, {hz} Hz");
            for construct in stats(&text).constructs {
                let times = construct.times;
                let what = format!("{name}, {hz} Hz: {}: {times:?}", construct.name);
                assert!(times.max_ns < 1 << 62 && times.total_ns < 1 << 62, "{what}");
                let is_ordered = times.min_ns <= times.mean_ns && times.mean_ns <= times.max_ns;
                let is_exempt = name.starts_with(NONSENSE) || name.ends_with(TASK_ON_TWO_THREADS);
                assert!(is_ordered || is_exempt, "{what}");
            }
        }
    }
}

/// An untied task is suspended on one thread and resumed on another within one tick. The order is unknown, and so is
/// the duration of the task.
const TASK_ON_TWO_THREADS: &str = "left_in_draft.trace";

/// A CPU may read its counter before an earlier instruction.
#[test]
fn a_time_that_goes_back_is_that_of_the_event_before() {
    let text = "1000 1 thread_begin type=initial\n\
        2000 1 parallel_begin parallel=1 task=1 team=1\n\
        1900 1 parallel_end parallel=1 task=1\n\
        3000 1 thread_end\n";
    let events = by_stream(&with_clock(text, 25_000_000));
    let times: Vec<u64> = events[&1].iter().map(|(_, time)| *time).collect();
    assert_eq!(times, [1000, 2000, 2000, 3000]);
}

#[test]
fn info_has_the_resolution_of_the_clock() {
    let of = |hz| {
        with_trace(&with_clock("5 1 thread_begin type=initial\n", hz), |trace| {
            let info = Info::of(trace);
            let clock = info.clock.clone().expect("a clock");
            (clock.kind, clock.resolution_ns, omptrace_report::info_text(&info).to_string())
        })
    };
    let (kind, resolution_ns, text) = of(25_000_000);
    assert_eq!((&*kind, resolution_ns), ("cntvct", 40.0));
    assert!(text.contains("clock             cntvct, 25.0 MHz: times are exact to 40 ns\n"), "{text}");
    let (_, resolution_ns, text) = of(1_000_000_000);
    assert_eq!(resolution_ns, 1.0);
    assert!(text.contains("clock             cntvct, 1.00 GHz: times are exact to 1 ns\n"), "{text}");
    let (_, _, text) = of(24_000_000);
    assert!(text.contains("cntvct, 24.0 MHz: times are exact to 42 ns\n"), "{text}");
}

/// The counter of Armv8.6 counts nanoseconds, but in larger steps if the underlying clock is slower.
#[test]
fn steps_of_several_ticks_are_the_resolution() {
    let text = "metadata {\"clock\": {\"kind\": \"cntvct\", \"ticks_per_second\": 1e9, \"step_ticks\": 40}}\n\
        5 1 thread_begin type=initial\n";
    let info = with_trace(text, Info::of);
    assert_eq!(info.clock.map(|clock| clock.resolution_ns), Some(40.0));
}
