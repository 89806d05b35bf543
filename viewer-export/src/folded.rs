//! Folded stacks, one per line: the functions from the outermost inward, separated by `;`, and the CPU time that
//! threads spent in the stack, in nanoseconds. This is the format of Brendan Gregg's FlameGraph, which other viewers
//! read, too:
//!
//! ```text
//! main;solve;solve [OpenMP];smooth 70000000
//! main;solve;<OMP-implicit_barrier> 12000000
//! ```
//!
//! The times of all threads are added up, because the threads of a team have the same stacks in the user's model. If
//! there are several processes, the outermost frame is the process. With `--phases`, the program's phases are frames
//! around its functions.

use std::collections::BTreeMap;
use std::io;

use omptrace_timeline::model::{Function, Item, Location, Process, Sample, Sink, Wants};

use crate::phase_frames;
use crate::writer::output::Output;

/// Writes folded stacks.
pub(crate) struct Folded {
    out: Output,
    has_phases: bool,
    /// The names of processes.
    processes: Vec<String>,
    /// The process of each location.
    locations: Vec<usize>,
    functions: Vec<Function>,
    /// By process and the numbers of the functions on the stack.
    weights: BTreeMap<(usize, Vec<u32>), u64>,
}

impl Folded {
    /// `has_phases`: stacks start with the phases of the program.
    pub(crate) fn new(out: Output, has_phases: bool) -> Folded {
        Folded {
            out,
            has_phases,
            processes: Vec::new(),
            locations: Vec::new(),
            functions: Vec::new(),
            weights: BTreeMap::new(),
        }
    }

    fn process(&mut self, process: &Process) {
        self.processes.push(frame_name(&process.name));
    }

    fn location(&mut self, location: &Location) {
        self.locations.push(location.process.0 as usize);
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let stack = sample.stack.iter().map(|frame| frame.function.0).collect();
        let key = (self.locations[sample.at.location.0 as usize], stack);
        let weight = self.weights.entry(key).or_default();
        *weight = weight.saturating_add(sample.weight_ns);
    }

    /// CPU time by process and stack as text. Several functions may have the same name.
    fn by_name(&self) -> BTreeMap<(usize, String), u64> {
        let names: Vec<String> =
            phase_frames::names(&self.functions).into_iter().map(|name| frame_name(&name)).collect();
        let mut by_name: BTreeMap<(usize, String), u64> = BTreeMap::new();
        for ((process, stack), weight) in &self.weights {
            let stack: Vec<&str> = stack.iter().map(|function| &*names[*function as usize]).collect();
            let sum = by_name.entry((*process, stack.join(";"))).or_default();
            *sum = sum.saturating_add(*weight);
        }
        by_name
    }
}

/// A name without the characters that separate frames and lines.
fn frame_name(name: &str) -> String {
    name.replace(';', ",").replace(['\n', '\r'], " ")
}

impl Sink for Folded {
    fn wants(&self) -> Wants {
        phase_frames::wanted(self.has_phases)
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Process(process) => self.process(process),
            Item::Location(location) => self.location(location),
            Item::Function(function) => self.functions.push((*function).clone()),
            Item::Sample(sample) => self.sample(sample),
            _ => {}
        }
    }

    fn failed(&self) -> bool {
        self.out.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let are_several = self.processes.len() > 1;
        for ((process, stack), weight) in &self.by_name() {
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
