//! Fills the tool's buffers, and returns them.

use std::cell::Cell;
use std::ffi::c_int;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use std::{mem, ptr};

use ompt_sys::*;

use super::description::Format;
use super::misbehaviour::{BIG_RECORD_BYTES, Misbehaviour};
use super::operation::{Operation, Played, host_ns};
use super::records::NativeRecord;
use super::running::{Buffer, ENDS, FLUSHES, LATE, Running, Trace, die};

thread_local! {
    /// Whether the thread is in a completion.
    static IN_COMPLETION: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn is_in_completion() -> bool {
    IN_COMPLETION.get()
}

/// Waits for all flushes of all devices.
pub(super) fn wait_for_flushes() {
    let flushes = mem::take(&mut *FLUSHES.lock().unwrap_or_else(PoisonError::into_inner));
    for flush in flushes {
        flush.join().expect("no delivery panics");
    }
}

/// Duration of a flush with [`Misbehaviour::FlushReturnsEarly`].
const FLUSH_TAKES: Duration = Duration::from_millis(5);

impl Running {
    /// The device number that the device reports.
    pub(super) fn said_number(&self) -> c_int {
        if self.does(Misbehaviour::SaysDeviceZero) { 0 } else { self.number as c_int }
    }

    pub(super) fn record_bytes(&self) -> usize {
        match self.script.format {
            Format::Ompt if self.does(Misbehaviour::BigRecords) => BIG_RECORD_BYTES,
            Format::Ompt => size_of::<ompt_record_ompt_t>(),
            Format::Native => size_of::<NativeRecord>(),
        }
    }

    pub(super) fn jitter(&self) {
        let most_ns = self.script.clock.jitter_us * 1000;
        if most_ns > 0 {
            // SplitMix64 (Steele, Lea, Flood 2014).
            let mut z = self.random.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            let until = host_ns() + (z ^ z >> 31) % most_ns;
            while host_ns() < until {}
        }
    }

    /// Writes a record of `operation`, if tracing is on and there is room.
    pub(super) fn write(&self, truth: Option<Operation>, operation: &Operation) {
        if self.keeps_silent_about(operation) {
            self.trace().played.unrecorded.extend(truth);
            return;
        }
        let place = |at: usize, is_second: bool| {
            // SAFETY: the buffer has room for it, and the tool guarantees that it can be written.
            unsafe {
                match self.script.format {
                    Format::Ompt => (at as *mut ompt_record_ompt_t)
                        .write_unaligned(self.ompt_record(operation, is_second)),
                    Format::Native => {
                        (at as *mut NativeRecord).write_unaligned(self.native_record(operation))
                    }
                }
            }
        };
        self.write_with(place, |played| match truth {
            Some(truth) => played.operations.push(truth),
            None => played.alone += 1,
        });
    }

    /// Writes a record of the begin or end of a target region, if the tool wants that.
    pub(super) fn write_target(&self, endpoint: ompt_scope_endpoint_t, target_id: u64) {
        let is_wanted = self.does(Misbehaviour::TargetRecords) && self.trace().wants_targets;
        if is_wanted && self.script.format == Format::Ompt {
            let record = self.target_record(endpoint, target_id);
            // SAFETY: as in `write`.
            let place = |at: usize, _| unsafe {
                (at as *mut ompt_record_ompt_t).write_unaligned(record);
            };
            self.write_with(place, |_| ());
        }
    }

    /// Whether no record of the operation will ever be delivered.
    fn keeps_silent_about(&self, operation: &Operation) -> bool {
        let trace = self.trace();
        if trace.callbacks.is_none() || trace.is_paused {
            // The tool does not expect a record.
            return false;
        }
        let optype = ompt_target_data_op_t(operation.data_op.unwrap_or(0));
        let is_association = optype == ompt_target_data_associate || optype == ompt_target_data_disassociate;
        let is_transfer =
            optype == ompt_target_data_transfer_to_device || optype == ompt_target_data_transfer_from_device;
        trace.is_unloaded
            || is_association && self.does(Misbehaviour::NoAssociationRecords)
            || is_transfer && self.does(Misbehaviour::NoTransferRecords)
    }

    /// Writes a record with `place`, if tracing is on and there is room, and counts it with `account`.
    fn write_with(&self, place: impl FnOnce(usize, bool), account: impl FnOnce(&mut Played)) {
        let bytes = self.record_bytes();
        let Some(mut trace) = self.make_room(bytes) else {
            return;
        };
        let writer = self.writer();
        let Some(buffer) = trace.filling.get_mut(&writer) else {
            trace.played.dropped += 1;
            return;
        };
        let at = buffer.address + buffer.used;
        buffer.used += bytes;
        trace.written += 1;
        place(at, trace.written % 2 == 0);
        account(&mut trace.played);
        drop(trace);
        if self.does(Misbehaviour::CompletesInParts) {
            let turn = self.turn();
            let mut trace = self.trace();
            let buffer = trace.filling.get_mut(&writer).map(|buffer| {
                let now = *buffer;
                buffer.delivered = buffer.used;
                now
            });
            drop(trace);
            if let Some(buffer) = buffer {
                self.complete(buffer, false);
            }
            drop(turn);
        }
    }

    /// Serializes completions of a device. Within a completion, the thread already has its turn.
    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let lock = || self.completions.lock().unwrap_or_else(PoisonError::into_inner);
        (!is_in_completion()).then(lock)
    }

    /// The key of the buffer to which the calling thread writes.
    pub(super) fn writer(&self) -> u64 {
        if self.does(Misbehaviour::BufferPerThread) {
            // SAFETY: only queries the kernel.
            unsafe { libc::gettid() as u64 }
        } else {
            0
        }
    }

    /// The trace, with a current buffer that has room; `None` if tracing is off.
    pub(super) fn make_room(&self, bytes: usize) -> Option<MutexGuard<'_, Trace>> {
        let trace = self.trace();
        let (request, _) = trace.callbacks.filter(|_| !trace.is_paused)?;
        if trace.wants_targets && self.does(Misbehaviour::DiesOfTargetRecords) {
            die("a record of a target region on a thread without a task");
        }
        let writer = self.writer();
        if trace.filling.get(&writer).is_some_and(|buffer| buffer.used + bytes <= buffer.bytes) {
            return Some(trace);
        }
        drop(trace);
        let turn = self.turn();
        let mut trace = self.trace();
        let full = trace.filling.remove(&writer);
        trace.full.extend(full);
        let waits = self.does(Misbehaviour::ReversesBuffers) || self.does(Misbehaviour::KeepsBuffers);
        let full = if waits { Vec::new() } else { mem::take(&mut trace.full) };
        drop(trace);
        full.into_iter().for_each(|buffer| self.complete(buffer, true));
        drop(turn);
        let (mut address, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the tool's callback, with valid pointers.
        unsafe { request(self.said_number(), &mut address, &mut size) };
        if self.script.uses_bytes > 0 {
            size = size.min(self.script.uses_bytes);
        }
        let has_room = !address.is_null() && size >= bytes;
        if !has_room && self.does(Misbehaviour::BigRecords) {
            die("no room for a record");
        }
        let mut trace = self.trace();
        if has_room {
            let buffer =
                Buffer { address: address as usize, bytes: size, used: 0, delivered: 0, is_flushed: false };
            // Another thread that shares the buffer may have added one in the meantime.
            let other = trace.filling.insert(writer, buffer);
            trace.full.extend(other);
        }
        Some(trace)
    }

    /// Delivers the undelivered part of the buffer; `owned` returns the buffer to the tool.
    pub(super) fn complete(&self, buffer: Buffer, owned: bool) {
        let trace = self.trace();
        let (Some((_, complete)), false) = (trace.callbacks, trace.is_unloaded) else {
            return;
        };
        drop(trace);
        let mut calls = Vec::new();
        let in_parts = self.does(Misbehaviour::CompletesInParts) || self.does(Misbehaviour::BufferPerThread);
        let ranges = self.ranges(&buffer);
        for (number, range) in ranges.iter().enumerate() {
            let mut bytes = range.len();
            if self.does(Misbehaviour::TooManyBytes) {
                bytes += buffer.bytes + (1 << 20);
            }
            let is_last = owned && !in_parts && number + 1 == ranges.len();
            calls.push((buffer.address, bytes, range.start as u64, is_last, range.end));
        }
        if owned && in_parts {
            calls.push((buffer.address, 0, 0, true, 0));
        }
        if owned && self.does(Misbehaviour::CompletesTwice) {
            calls.push((buffer.address, 0, 0, true, 0));
        }
        if owned && self.does(Misbehaviour::CompletesForeignBuffers) {
            calls.push((calls.as_ptr() as usize, 0, 0, true, 0));
        }
        let number = self.said_number();
        let deliver = move || {
            let before = IN_COMPLETION.replace(true);
            for (address, bytes, begin, owned, end) in calls {
                ENDS.lock().unwrap_or_else(PoisonError::into_inner).insert(address, end);
                let address = address as *mut ompt_buffer_t;
                // SAFETY: the tool's callback, with one of its buffers, or a buffer with which this device misbehaves.
                unsafe { complete(number, address, bytes, begin, owned.into()) };
            }
            IN_COMPLETION.set(before);
        };
        if self.script.foreign_threads {
            thread::spawn(deliver).join().expect("no delivery panics");
        } else {
            deliver();
        }
    }

    /// The ranges of a buffer to deliver, with one completion for each.
    fn ranges(&self, buffer: &Buffer) -> Vec<Range<usize>> {
        let (begin, end) = (buffer.address + buffer.delivered, buffer.address + buffer.used);
        let bytes = self.record_bytes();
        if !self.does(Misbehaviour::GapsInBuffers) {
            return (begin < end).then_some(begin..end).into_iter().collect();
        }
        let records = |first: usize| {
            let begins = (begin..end).step_by(bytes).skip(first).step_by(2);
            begins.map(move |begin| begin..begin + bytes)
        };
        records(0).chain(records(1)).collect()
    }

    /// Delivers everything; with `stop`, also returns all buffers.
    pub(super) fn flush(&'static self, stop: bool) {
        if stop || !self.does(Misbehaviour::FlushReturnsEarly) {
            return self.flush_now(stop);
        }
        wait_for_flushes();
        let flush = thread::spawn(|| {
            thread::sleep(FLUSH_TAKES);
            self.flush_now(false);
        });
        FLUSHES.lock().unwrap_or_else(PoisonError::into_inner).push(flush);
    }

    pub(super) fn flush_now(&self, stop: bool) {
        let _turn = self.turn();
        let mut trace = self.trace();
        let keeps = self.does(Misbehaviour::KeepsBuffers) && !stop;
        if keeps {
            return;
        }
        let mut buffers = mem::take(&mut trace.full);
        let mut partly = Vec::new();
        if self.does(Misbehaviour::BufferPerThread) || self.does(Misbehaviour::FlushesBufferOnce) {
            for buffer in trace.filling.values_mut() {
                if buffer.is_flushed && self.does(Misbehaviour::FlushesBufferOnce) {
                    continue;
                }
                partly.push(*buffer);
                buffer.delivered = buffer.used;
                buffer.is_flushed = true;
            }
        } else {
            buffers.extend(mem::take(&mut trace.filling).into_values());
        }
        drop(trace);
        partly.into_iter().for_each(|buffer| self.complete(buffer, false));
        if self.does(Misbehaviour::ReversesBuffers) {
            buffers.reverse();
        }
        buffers.into_iter().for_each(|buffer| self.complete(buffer, true));
    }

    /// Stops tracing.
    pub(super) fn stop(&'static self) {
        if self.does(Misbehaviour::CompletesAfterStop) {
            let late = thread::spawn(|| {
                thread::sleep(Duration::from_millis(2));
                self.flush_now(true);
                self.trace().callbacks = None;
            });
            LATE.lock().unwrap_or_else(PoisonError::into_inner).push(late);
            return;
        }
        if !self.does(Misbehaviour::StopDropsUndelivered) {
            self.flush_now(true);
        }
        self.trace().callbacks = None;
        wait_for_flushes();
    }

    /// Aborts if the runtime has deleted what its entry points need.
    pub(super) fn must_be_alive(&self, entry_point: &str) {
        if self.trace().is_finalized && self.does(Misbehaviour::EntryPointsDieAtFinalize) {
            die(&format!("{entry_point} after device_finalize"));
        }
    }
}
