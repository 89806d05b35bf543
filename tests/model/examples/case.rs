//! Prints the case of a seed: the program, what each thread does when, the sums, and the text of the trace.
//!
//! ```text
//! cargo run -p omptrace-model --example case -- 1707 > case.txt
//! cargo run -p omptrace-model --example case -- 1707 case.omptrace
//! ```

use std::env;
use std::path::Path;

use omptrace_model::case::Case;
use omptrace_model::checker::write_trace;
use omptrace_model::truth::accounting::{Part, accounting, intervals};
use omptrace_model::truth::path;
use omptrace_model::write::{Ending, Process, text};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let seed = arguments.first().and_then(|seed| seed.parse().ok()).expect("a seed");
    let case = Case::new(seed);
    let Some(run) = case.run() else {
        println!("{case}it waits for itself, or takes no time");
        return;
    };
    let text = text(&Process { pid: 10, start: 0, run: &run, ending: Ending::Complete }, case.dialect);
    if let Some(trace) = arguments.get(1) {
        write_trace(&text, Path::new(trace)).expect("a writable file");
    }
    println!("{case}");
    for (thread, intervals) in intervals(&run).iter().enumerate() {
        let cause = |cause: &'static str| if cause.is_empty() { "-" } else { cause };
        for of in intervals {
            println!(
                "thread {thread}: {:6} to {:6} {} at {:#x}",
                of.begin,
                of.end,
                cause(of.cause),
                of.place
            );
        }
    }
    let truth = accounting(&run, &Part::whole(&run));
    println!("N {}, T {}, {:?}", truth.threads, truth.duration, truth.causes);
    println!("critical path {}", path::critical_path(&run));
    for (place, region) in path::regions(&run) {
        println!("region {place:#x}: {region:?}");
    }
    println!("\n{text}");
}
