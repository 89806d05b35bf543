//! Programs: each program encloses its process's events, and all events are within the clock's range.

use super::{Checker, in_order};
use crate::check::faults::Fault;
use crate::records::Event;

impl Checker<'_> {
    pub(super) fn check_time(&mut self, index: usize, time: u64, event: &Event) {
        let group = self.sources[index].facts.group;
        let program = self.programs.entry(group).or_default();
        program.first.get_or_insert(time);
        let end = match event {
            Event::BufferFlush(flush) => {
                let numbers = &self.sources[index].numbers;
                numbers.global_time(flush.stop_time.0).max(time)
            }
            _ => time,
        };
        program.last = program.last.max(end);
        let is_inside = self.definitions.clock.as_ref().is_none_or(|clock| {
            let begin = clock.global_offset;
            (begin..=begin.saturating_add(clock.trace_length)).contains(&time)
        });
        if !is_inside {
            self.fault(Fault::OutsideClock, index, time);
        }
    }

    pub(super) fn program_begin(&mut self, index: usize, time: u64) {
        let group = self.sources[index].facts.group;
        let program = self.programs.entry(group).or_default();
        if program.begin.replace(time).is_some() {
            self.fault(Fault::Program, index, time);
        }
    }

    pub(super) fn program_end(&mut self, index: usize, time: u64) {
        let group = self.sources[index].facts.group;
        let program = self.programs.entry(group).or_default();
        if program.end.replace(time).is_some() {
            self.fault(Fault::Program, index, time);
        }
    }

    /// The start of a program must be the first event of its process, and its end the last.
    pub(super) fn finish_programs(&mut self) {
        for (group, program) in in_order(&self.programs) {
            let first = program.first.unwrap_or(0);
            let is_enclosing = match (program.begin, program.end) {
                (None, None) => true,
                (begin, end) => begin == Some(first) && end == Some(program.last),
            };
            if !is_enclosing {
                self.faults.add(Fault::Program, || format!("location group {group}"));
            }
        }
    }
}
