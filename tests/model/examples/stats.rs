//! What `omptrace stats --json --all` prints of a trace, and nothing else of the program: this is built anew for each planted fault.

use std::env;

use omptrace_analysis::{Options, Stats};
use omptrace_trace_format::Reader;

fn main() {
    let traces: Vec<String> =
        env::args().skip(1).filter(|argument| argument.ends_with(".omptrace")).collect();
    let readers: Vec<Reader> =
        traces.iter().map(|trace| Reader::open(trace.as_ref()).expect("a trace")).collect();
    let readers: Vec<&Reader> = readers.iter().collect();
    let (stats, _) = Stats::with(&readers, &Options::default()).expect("nothing is selected");
    println!("{}", serde_json::to_string(&stats).expect("JSON"));
}
