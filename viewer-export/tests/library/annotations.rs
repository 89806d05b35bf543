//! Annotations of programs: word for word, as counters, and as frames around stacks.

use std::path::PathBuf;

use omptrace_analysis::Stats;
use omptrace_timeline::model::*;
use omptrace_timeline::replay;
use omptrace_trace_format::Reader;
use omptrace_viewer_export::{ConvertOptions, Format, FormatOptions, convert};

use crate::fixture;
use crate::shared::Shared;

/// Keeps annotations and counters.
#[derive(Default)]
struct Said {
    annotations: Vec<Annotation>,
    counts: Vec<(Ns, CountValue)>,
}

impl Sink for Said {
    fn wants(&self) -> Wants {
        Wants::ANNOTATIONS.and(Wants::COUNTS)
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Annotation(annotation) => self.annotations.push((*annotation).clone()),
            Item::Count(count) => self.counts.push((count.time, count.value)),
            _ => {}
        }
    }
}

fn said(text: &str) -> Said {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    let mut said = Said::default();
    replay(&inputs, &mut said, &mut |_| {});
    said
}

/// Ranges of two domains that overlap, one of the process that ends on another thread, one that does not end, and a mark.
const RANGES: &str = "
metadata {\"annotations\": true}
0  1 thread_info os_tid=10
0  1 object_defined domain=2 kind=7 handle=1 name=solver
0  1 object_defined domain=2 kind=9 handle=2 name=step
0  1 object_defined domain=2 kind=8 handle=5 parent=1 name=math
0  2 thread_info os_tid=11
10 1 annotation_begin kind=1 source=1 domain=1 name=2 category=5 colour=0xff0000ff payload_type=2 payload=7
20 1 annotation_begin kind=1 source=2 domain=0 name=2
30 1 annotation_end kind=1 source=1 domain=1
40 1 annotation_end kind=1 source=2 domain=0
50 1 annotation_begin kind=2 source=1 domain=1 name=2 instance=3
60 2 annotation_end kind=2 source=1 domain=1 instance=3
70 2 annotation_end kind=1 source=1 domain=1
80 1 annotation_mark source=1 domain=1 name=2 payload_type=4 payload=2
90 1 annotation_begin kind=1 source=6 name=2
";

#[test]
fn ranges_are_whole_where_their_slices_are_cut() {
    let said = said(RANGES);
    let range = |of: &Annotation| match &of.what {
        Annotated::Range { end, .. } => {
            Some((of.time, *end, of.domain.as_deref() == Some("solver"), of.instance))
        }
        _ => None,
    };
    let ranges: Vec<_> = said.annotations.iter().filter_map(range).collect();
    assert_eq!(
        ranges,
        [(10, Some(30), true, 0), (20, Some(40), false, 0), (50, Some(60), true, 3), (90, None, false, 0)]
    );
    let first = &said.annotations[0];
    assert_eq!((first.name.as_str(), &first.payload), ("step", &Payload::Int(7)));
    let Annotated::Range { looks, .. } = &first.what else { panic!("{first:?}") };
    assert_eq!((looks.category.as_deref(), looks.colour), (Some("math"), 0xff00_00ff));
    let mark = said.annotations.iter().find(|of| matches!(of.what, Annotated::Mark(_))).expect("a mark");
    assert_eq!((mark.time, &mark.payload), (80, &Payload::Text("step".to_owned())));
}

#[test]
fn counters_have_fractions_and_are_numbers() {
    let value = |time: u64, role: u32, kind: u32, value: u64| {
        format!("{time} 1 annotation_value source=1 role={role} name=3 value_type={kind} value={value}\n")
    };
    let mut text = "metadata {\"annotations\": true}\n0 1 thread_info os_tid=10\n".to_owned();
    text += "0 1 object_defined domain=2 kind=10 handle=3 name=residual\n";
    text += &value(2_000, 1, 3, 0.5_f64.to_bits());
    text += &value(4_000, 2, 1, 2);
    // A value that is not a number, and one that is too large.
    text += &value(6_000, 1, 3, f64::NAN.to_bits());
    text += &value(8_000, 1, 3, f64::MAX.to_bits());
    text += &value(10_000, 2, 3, f64::MAX.to_bits());
    let said = said(&text);
    let real = |value: f64| CountValue::Real(value);
    assert_eq!(
        said.counts,
        [(2_000, real(0.5)), (4_000, real(2.5)), (8_000, real(f64::MAX)), (10_000, real(f64::MAX))]
    );
    let values = said.annotations.iter().filter(|of| matches!(of.what, Annotated::Value(_)));
    assert_eq!(values.count(), 5, "word for word, all of them are there");

    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(&text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    let chrome = export(&inputs, "chrome", FormatOptions::default());
    let chrome: serde_json::Value = serde_json::from_str(&chrome).expect("JSON");
    let events = chrome["traceEvents"].as_array().expect("events");
    let counters: Vec<&serde_json::Value> = events.iter().filter(|event| event["ph"] == "C").collect();
    let values = |event: &&serde_json::Value| event["args"].as_object()?.values().next()?.as_f64();
    let values: Vec<f64> = counters.iter().filter_map(values).collect();
    assert_eq!(values, [0.5, 2.5, f64::MAX, f64::MAX]);
}

fn export(inputs: &[&Reader], format: &str, format_options: FormatOptions) -> String {
    let out = Shared::default();
    let options = ConvertOptions { format: format_options, ..ConvertOptions::default() };
    let format = Format::by_name(format).expect("a format");
    convert(inputs, format, &options, Box::new(out.clone()), &mut |_| {}).expect("memory can be written");
    String::from_utf8(out.bytes()).expect("UTF-8")
}

#[test]
fn phases_are_the_outermost_frames_on_all_threads_of_a_team() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/samples.trace");
    let text = std::fs::read_to_string(path).expect("a fixture");
    // From 60 on, the initial thread is in a phase. A phase that a worker starts is only around its own samples.
    let fork = "100 1 parallel_begin";
    let phases = "60 1 control_tool command=64 text=step1\n100 1 parallel_begin";
    let inner = "150 12 sample";
    let worker = "140 2 control_tool command=64 text=inner\n150 12 sample";
    let text = text.replacen(fork, phases, 1).replacen(inner, worker, 1);
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(&text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    let mut options = FormatOptions::default();
    let folded = Format::by_name("folded").expect("a format");
    options.switch_on(folded.options.iter().find(|option| option.name == "phases").expect("the option"));
    let with = export(&inputs, "folded", options);
    let without = export(&inputs, "folded", FormatOptions::default());
    assert!(!without.contains("step1"), "{without}");
    let line = |end: &str| {
        let line = with.lines().find(|line| line.ends_with(end));
        line.unwrap_or_else(|| panic!("{end} in\n{with}"))
    };
    assert!(line(" 1").starts_with("main"), "before the phase");
    assert!(line(" 10").starts_with("step1;inner;"), "a worker in both");
    assert!(line(" 1100").starts_with("step1;inner;"), "the team that the worker forms");
    let weight = |text: &str| -> u64 {
        let weights = text.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        weights.sum()
    };
    assert_eq!(weight(&with), weight(&without));
}

/// On a coarse clock, a step may start at the time at which the one before ends.
#[test]
fn steps_without_a_gap_are_counted_one_by_one() {
    let mut text = "
metadata {\"annotations\": true}
0  1 thread_info os_tid=10
0  1 object_defined domain=2 kind=9 handle=2 name=step
"
    .to_owned();
    for step in 0..10 {
        let (begin, end) = (10 + 10 * step, 20 + 10 * step);
        text += &format!("{begin} 1 annotation_begin kind=1 source=1 domain=0 name=2\n");
        text += &format!("{end} 1 annotation_end kind=1 source=1 domain=0\n");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(&text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    let (stats, _) = Stats::of(&inputs, &omptrace_symbols::Options::default());
    let steps = stats.steps.expect("time steps");
    let of_range = stats.ranges.iter().find(|range| range.name == "step").expect("a range");
    assert_eq!((steps.count, of_range.count), (10, 10));
}
