//! What `omptrace stats --json --all` prints of a trace or a part of it, and nothing else of the program: this is built anew for each
//! planted fault.

use std::env;

use omptrace_analysis::{Options, Stats};
use omptrace_trace_format::Reader;

/// The times of `--window 10ns..20ns`.
fn window(text: &str) -> (i64, i64) {
    let time = |text: &str| text.trim_end_matches("ns").parse().expect("nanoseconds");
    let (begin, end) = text.split_once("..").expect("a window");
    (time(begin), time(end))
}

fn main() {
    let (mut options, mut traces) = (Options::default(), vec![]);
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("a value");
        match argument.as_str() {
            "--window" => options.window = Some(window(&value())),
            "--phase" => options.phase = Some(value()),
            "--thread" => options.selected.push(value()),
            trace if trace.ends_with(".omptrace") => traces.push(argument),
            _ => {}
        }
    }
    let readers: Vec<Reader> =
        traces.iter().map(|trace| Reader::open(trace.as_ref()).expect("a trace")).collect();
    let readers: Vec<&Reader> = readers.iter().collect();
    let (stats, _) = Stats::with(&readers, &options).unwrap_or_else(|none| panic!("{none:?}"));
    println!("{}", serde_json::to_string(&stats).expect("JSON"));
}
