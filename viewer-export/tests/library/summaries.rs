//! Summaries with numbers that no analysis produces, because a trace may come from anybody.

use std::fs;
use std::path::PathBuf;

use omptrace_analysis::summary::{NewSummary, Summary};
use omptrace_analysis::{Input, Options, Stats};
use omptrace_report::Layout;
use omptrace_trace_format::Reader;
use omptrace_trace_format::summary as stored;

/// Traces with tasks, locks, devices and several threads.
const TRACES: &[&str] =
    &["devices/amd_async.omptrace", "devices/nvidia_threads.omptrace", "devices/nvidia_gcc_threads.omptrace"];
/// Numbers that could cause overflows in sums and shifts.
const EXTREMES: &[&str] = &[
    "0",
    "1",
    "-1",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1e300",
    "null",
];
/// Number of changed summaries per trace.
const CHANGES: usize = 200;

/// The positions of numbers in a text.
fn numbers(text: &[u8]) -> Vec<(usize, usize)> {
    let mut numbers = Vec::new();
    let (mut begin, mut is_text) = (None, false);
    for (at, byte) in text.iter().enumerate() {
        is_text ^= *byte == b'"';
        match (byte.is_ascii_digit() && !is_text, begin) {
            (true, None) => begin = Some(at),
            (false, Some(from)) => {
                numbers.push((from, at));
                begin = None;
            }
            _ => {}
        }
    }
    numbers
}

#[test]
fn no_number_in_a_summary_is_a_panic() {
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let (mut read, mut refused) = (0, 0);
    for name in TRACES {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("trace.omptrace");
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
        fs::copy(source, &path).expect("a copy");
        let reader = Reader::open(&path).expect("a trace");
        let mut summary = NewSummary::of(&reader, true).expect("a summary");
        summary.write(&reader).expect("it can be written");
        let text = stored::read(&path).expect("a file").expect("a summary").text().expect("text");
        let places = numbers(&text);
        assert!(places.len() > 200, "{name}: {}", places.len());
        for _ in 0..CHANGES {
            let mut changed = text.clone();
            // Processed from the end, so that positions stay valid.
            let mut chosen: Vec<_> = (0..1 + random(3)).map(|_| places[random(places.len())]).collect();
            chosen.sort_unstable();
            chosen.dedup();
            for (begin, end) in chosen.into_iter().rev() {
                let extreme = EXTREMES[random(EXTREMES.len())];
                changed.splice(begin..end, extreme.bytes());
            }
            let reader = Reader::open(&path).expect("a trace");
            stored::write(&reader, &changed, &[]).expect("it can be written");
            let Some(summary) = Summary::read(&path).expect("a file") else {
                refused += 1;
                continue;
            };
            let input = || Input { trace: None, summary: Some(&summary) };
            let inputs = [input(), input()];
            for inputs in [&inputs[..1], &inputs] {
                match Stats::of_sources(inputs, &Options::default()) {
                    Ok((stats, _)) => {
                        omptrace_report::stats_tables(&stats, Layout::default()).to_string();
                        serde_json::to_string(&stats).expect("JSON");
                        read += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(read > CHANGES / 2 && refused > 0, "{read} {refused}");
}
