//! Samples as `StreamingProfilePacket`s, from which the importer makes a flame graph for each thread.
//!
//! Such a packet does not name its thread, so each thread has a packet sequence of its own, which starts with the
//! thread's descriptor and repeats the names of functions. The time of a sample is the sum of the differences since
//! then. Samples have no weight, so a sample is written once per period of the sampling clock that it represents.

use std::collections::HashMap;

use omptrace_timeline::model::{Function, FunctionId, Ns, Sample};

use super::schema::{
    INCREMENTAL_STATE_CLEARED, NEEDS_INCREMENTAL_STATE, callstack, frame, interned, interned_text, mapping,
    packet, streaming_profile, thread, trace,
};
use crate::writer::protobuf as pb;

/// The first id of sequences of samples, above those of tracks.
const FIRST_SEQUENCE: u64 = 1 << 16;
/// Samples per packet.
const BATCH: usize = 128;
/// Maximum number of repetitions of a sample. Guards against an invalid weight.
const MAX_REPEATS: u64 = 10_000;

/// The samples of a thread.
pub(super) struct SampleSequence {
    number: u64,
    /// The names of functions and modules that the sequence has defined.
    functions: HashMap<FunctionId, u64>,
    modules: HashMap<String, u64>,
    /// By the functions of a stack.
    stacks: HashMap<Vec<FunctionId>, u64>,
    /// The time of the newest sample that has been written.
    last_us: i64,
    /// Stack and time of samples that have not been written yet.
    pending: Vec<(u64, i64)>,
}

impl SampleSequence {
    /// Begins the sequence of the thread with number `thread` in the file.
    pub(super) fn begin(out: &mut Vec<u8>, thread: u64, (pid, tid): (u32, u32)) -> SampleSequence {
        let sequence = SampleSequence {
            number: FIRST_SEQUENCE + thread,
            functions: HashMap::new(),
            modules: HashMap::new(),
            stacks: HashMap::new(),
            last_us: 0,
            pending: Vec::new(),
        };
        pb::message(out, trace::PACKET, |out| {
            pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, sequence.number);
            pb::uint(out, packet::SEQUENCE_FLAGS, INCREMENTAL_STATE_CLEARED);
            pb::uint(out, packet::FIRST_PACKET_ON_SEQUENCE, 1);
            pb::message(out, packet::THREAD_DESCRIPTOR, |out| {
                pb::uint(out, thread::PID, pid.into());
                pb::uint(out, thread::TID, tid.into());
                pb::uint(out, thread::REFERENCE_TIMESTAMP_US, 0);
            });
        });
        sequence
    }

    /// Adds a sample that represents a multiple of `period_ns`.
    pub(super) fn sample(
        &mut self,
        out: &mut Vec<u8>,
        functions: &[Function],
        sample: &Sample<'_>,
        period_ns: u64,
    ) {
        let stack: Vec<FunctionId> = sample.stack.iter().map(|frame| frame.function).collect();
        let stack = match self.stacks.get(&stack) {
            Some(known) => *known,
            None => self.new_stack(out, functions, stack),
        };
        let time_us = micros(sample.at.time);
        for _ in 0..sample.periods(period_ns).min(MAX_REPEATS) {
            self.pending.push((stack, time_us));
            if self.pending.len() == BATCH {
                self.write(out);
            }
        }
    }

    /// Writes the remaining samples.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) {
        if self.pending.is_empty() {
            return;
        }
        let mut last_us = self.last_us;
        self.packet(out, |out| {
            pb::message(out, packet::STREAMING_PROFILE_PACKET, |out| {
                for (stack, _) in &self.pending {
                    pb::uint(out, streaming_profile::CALLSTACK_IID, *stack);
                }
                for (_, time_us) in &self.pending {
                    pb::int(out, streaming_profile::TIMESTAMP_DELTA_US, time_us - last_us);
                    last_us = *time_us;
                }
            });
        });
        self.last_us = last_us;
        self.pending.clear();
    }

    fn packet(&self, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
        pb::message(out, trace::PACKET, |out| {
            pb::uint(out, packet::TRUSTED_PACKET_SEQUENCE_ID, self.number);
            pb::uint(out, packet::SEQUENCE_FLAGS, NEEDS_INCREMENTAL_STATE);
            content(out);
        });
    }

    /// Defines a stack, and those of its functions that are new.
    fn new_stack(&mut self, out: &mut Vec<u8>, functions: &[Function], stack: Vec<FunctionId>) -> u64 {
        let mut data = Vec::new();
        let frames: Vec<u64> =
            stack.iter().map(|function| self.frame(&mut data, &functions[function.0 as usize])).collect();
        let iid = self.stacks.len() as u64 + 1;
        self.stacks.insert(stack, iid);
        pb::message(&mut data, interned::CALLSTACKS, |out| {
            pb::uint(out, callstack::IID, iid);
            for frame in frames {
                pb::uint(out, callstack::FRAME_IDS, frame);
            }
        });
        self.packet(out, |out| pb::bytes(out, packet::INTERNED_DATA, &data));
        iid
    }

    fn frame(&mut self, data: &mut Vec<u8>, function: &Function) -> u64 {
        if let Some(known) = self.functions.get(&function.id) {
            return *known;
        }
        let mapping = self.mapping(data, &function.module);
        let iid = self.functions.len() as u64 + 1;
        self.functions.insert(function.id, iid);
        text(data, interned::FUNCTION_NAMES, iid, &function.name);
        pb::message(data, interned::FRAMES, |out| {
            pb::uint(out, frame::IID, iid);
            pb::uint(out, frame::FUNCTION_NAME_ID, iid);
            pb::uint(out, frame::MAPPING_ID, mapping);
            pb::uint(out, frame::REL_PC, iid);
        });
        iid
    }

    fn mapping(&mut self, data: &mut Vec<u8>, module: &str) -> u64 {
        if let Some(known) = self.modules.get(module) {
            return *known;
        }
        let iid = self.modules.len() as u64 + 1;
        self.modules.insert(module.to_owned(), iid);
        text(data, interned::MAPPING_PATHS, iid, module);
        pb::message(data, interned::MAPPINGS, |out| {
            pb::uint(out, mapping::IID, iid);
            pb::uint(out, mapping::PATH_STRING_IDS, iid);
        });
        iid
    }
}

fn text(data: &mut Vec<u8>, field: u32, iid: u64, text: &str) {
    pb::message(data, field, |out| {
        pb::uint(out, interned_text::IID, iid);
        pb::text(out, interned_text::TEXT, text);
    });
}

/// The importer stores the times of samples in whole microseconds.
fn micros(time: Ns) -> i64 {
    time / 1000
}
