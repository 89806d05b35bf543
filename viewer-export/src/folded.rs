//! Folded stacks: a line for each. It has the functions from the outermost with `;` between, then the processor time that
//! threads spent in the stack, in nanoseconds. The form is that of Brendan Gregg's FlameGraph, which other viewers read, too:
//!
//! ```text
//! main;solve;solve [OpenMP];smooth 70000000
//! main;solve;<OMP-implicit_barrier> 12000000
//! ```
//!
//! All threads are summed up: in the user's model, those of a team have the same stacks. Of several processes, the outermost
//! frame is the process.

use std::collections::BTreeMap;
use std::io;

use omptrace_timeline::model::{Function, Item, Location, Process, Sample, Sink, Wants};

use crate::writer::output::Output;

/// Writes folded stacks.
pub(crate) struct Folded {
    out: Output,
    /// The names of processes.
    processes: Vec<String>,
    /// The process of each location.
    locations: Vec<usize>,
    /// The names of functions.
    functions: Vec<String>,
    /// By process and stack.
    weights: BTreeMap<(usize, String), u64>,
    /// The stack of the newest sample.
    stack: String,
}

impl Folded {
    pub(crate) fn new(out: Output) -> Folded {
        Folded {
            out,
            processes: Vec::new(),
            locations: Vec::new(),
            functions: Vec::new(),
            weights: BTreeMap::new(),
            stack: String::new(),
        }
    }

    fn process(&mut self, process: &Process) {
        self.processes.push(frame_name(&process.name));
    }

    fn location(&mut self, location: &Location) {
        self.locations.push(location.process.0 as usize);
    }

    fn function(&mut self, function: &Function) {
        self.functions.push(frame_name(&function.name));
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        self.stack.clear();
        for (index, frame) in sample.stack.iter().enumerate() {
            if index > 0 {
                self.stack.push(';');
            }
            self.stack.push_str(&self.functions[frame.function.0 as usize]);
        }
        let key = (self.locations[sample.at.location.0 as usize], self.stack.clone());
        let weight = self.weights.entry(key).or_default();
        *weight = weight.saturating_add(sample.weight_ns);
    }
}

/// A name without what separates frames and lines.
fn frame_name(name: &str) -> String {
    name.replace(';', ",").replace(['\n', '\r'], " ")
}

impl Sink for Folded {
    fn wants(&self) -> Wants {
        Wants::SAMPLES
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Process(process) => self.process(process),
            Item::Location(location) => self.location(location),
            Item::Function(function) => self.function(function),
            Item::Sample(sample) => self.sample(sample),
            _ => {}
        }
    }

    fn failed(&self) -> bool {
        self.out.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let are_several = self.processes.len() > 1;
        for ((process, stack), weight) in &self.weights {
            let process = match are_several {
                true => format!("{};", self.processes[*process]),
                false => String::new(),
            };
            let line = format!("{process}{stack} {weight}\n");
            self.out.buffer().extend_from_slice(line.as_bytes());
            self.out.written();
        }
        self.out.finish()
    }
}
