//! Lends buffers to devices, and copies the records of completed buffers to the devices' streams.

use std::collections::BTreeMap;

use ompt_sys as ompt;
use omptrace_device::{BufferSource, Completion, DataOp, Lent, Problem, Record, Work};
use omptrace_trace_format::event::{DeviceKernel, DeviceNativeRecord, DeviceRecord, WideRow};
use omptrace_trace_format::field::{Address, Text};

use super::session_devices::{Devices, of_this_process};
use crate::devices::traced_device::Traced;
use crate::recorder::guarded::guarded;
use crate::session::Session;

/// The source of buffers for devices.
pub(super) const SOURCE: &dyn BufferSource = &OfSession;

/// The buffers of this process's session.
struct OfSession;

impl BufferSource for OfSession {
    fn lend(&self, device_num: i32) -> Option<Lent> {
        guarded(|| lend(device_num)).flatten()
    }

    unsafe fn complete(&self, completion: &Completion) {
        guarded(|| {
            let Some((session, devices)) = of_this_process() else {
                return;
            };
            let Some(traced) = devices.meant_by(completion.device_num) else {
                return;
            };
            // SAFETY: by this function's contract.
            unsafe { take_records(session, devices, &traced, completion) };
            if completion.is_returned && !devices.buffers.take_back(completion.buffer) {
                note(session, devices, &traced, Problem::UnknownBuffer, 1);
            }
        });
    }
}

fn lend(device_num: i32) -> Option<Lent> {
    let (session, devices) = of_this_process()?;
    let lent = devices.buffers.lend();
    let problem = match lent {
        None => {
            devices.needs_buffers();
            Problem::NoBuffer
        }
        Some(Lent { is_extra: true, .. }) => Problem::ExtraBuffer,
        _ => return lent,
    };
    if let Some(traced) = devices.meant_by(device_num) {
        note(session, devices, &traced, problem, 1);
    }
    lent
}

/// Counts a problem. The first one of a kind is written to the trace at once, because the program may be killed.
fn note(session: &Session, devices: &Devices, traced: &Traced, problem: Problem, times: u64) {
    if traced.counts.add(problem, times) {
        devices.write(session);
    }
}

/// Copies the records of a completed buffer to the streams of their devices. `traced` is the device that returned the
/// buffer.
///
/// # Safety
/// Like [`BufferSource::complete`].
unsafe fn take_records(
    session: &'static Session,
    devices: &Devices,
    traced: &Traced,
    completion: &Completion,
) {
    let readable = devices.buffers.range(completion.buffer);
    let mut problems = Vec::new();
    let room = readable.as_ref().map_or(completion.bytes, |range| range.len());
    if completion.bytes > room {
        problems.push((Problem::TooManyBytes, 1));
    }
    let valid = Completion { bytes: completion.bytes.min(room), ..*completion };
    let readable = readable.unwrap_or(0..0);
    let (mut records, mut newest) = (0, 0);
    let mut of_others: BTreeMap<i32, Vec<Record>> = BTreeMap::new();
    traced.record(session, |put| {
        let mut each = |device_num, record: Record| {
            if device_num == completion.device_num {
                newest = record.begin.max(record.end);
                put_record(device_num, record, put);
            } else {
                of_others.entry(device_num).or_default().push(record);
            }
        };
        let mut problem = |problem, times| problems.push((problem, times));
        // SAFETY: by this function's contract; the bytes are those of the completion, or fewer.
        records = unsafe { traced.tracer.drain(&valid, &readable, &mut each, &mut problem) };
    });
    for (device_num, others) in of_others {
        records -= others.len() as u64;
        put_records(session, devices, device_num, others);
    }
    match completion.bytes {
        // Records that had been waiting for related ones.
        0 => traced.counts.brought(records),
        _ => traced.counts.completed(records),
    }
    traced.read_clock_again(session, newest);
    for (problem, times) in problems {
        note(session, devices, traced, problem, times);
    }
}

/// Copies records to the stream of the device that they are of.
fn put_records(session: &'static Session, devices: &Devices, device_num: i32, records: Vec<Record>) {
    let Some(traced) = devices.meant_by(device_num) else {
        return;
    };
    traced.counts.brought(records.len() as u64);
    let newest = records.iter().map(|record| record.begin.max(record.end));
    let newest = newest.max().unwrap_or(0);
    traced.record(session, |put| {
        for record in records {
            put_record(device_num, record, put);
        }
    });
    traced.read_clock_again(session, newest);
}

/// Stores a record as an event: the words of a standard record, or the fields of a native one.
fn put_record(device_num: i32, record: Record, put: &mut dyn FnMut(&dyn WideRow)) {
    let mut put_words = |r#type, words: &[u64]| {
        put(&DeviceRecord {
            device_num,
            r#type,
            time: record.begin,
            thread_id: Address(record.stream),
            target_id: Address(record.target_id),
            record: words.into(),
        });
    };
    match record.work {
        Work::Kernel { requested_num_teams, granted_num_teams, name: Some(name) } => put(&DeviceKernel {
            device_num,
            host_op_id: Address(record.correlation_id),
            thread_id: Address(record.stream),
            requested_num_teams,
            granted_num_teams,
            name: Text(Some(name.into())),
            start_time: record.begin,
            end_time: record.end,
        }),
        Work::Kernel { requested_num_teams, granted_num_teams, name: None } => {
            let teams = u64::from(granted_num_teams) << 32 | u64::from(requested_num_teams);
            let words = [record.correlation_id, teams, record.end];
            put_words(ompt::ompt_callback_target_submit, &words);
        }
        Work::Copy(op) | Work::Memory(op) => {
            let words = data_op_words(record.correlation_id, &op, record.end);
            put_words(ompt::ompt_callback_target_data_op, &words);
        }
        Work::Marker { r#type, words } => put_words(r#type, &words),
        Work::Native { rclass, name } => put(&DeviceNativeRecord {
            device_num,
            host_op_id: Address(record.correlation_id),
            rclass,
            r#type: Text(name.map(Into::into)),
            start_time: record.begin,
            end_time: record.end,
            hwid: Address(record.stream),
        }),
    }
}

/// The words of an `ompt_record_target_data_op_t`.
fn data_op_words(correlation_id: u64, op: &DataOp, end: u64) -> [u64; 9] {
    // A 32-bit number before a 64-bit number is followed by padding.
    let number = |number: i32| u64::from(number as u32);
    [
        correlation_id,
        op.optype.0.into(),
        op.src_addr,
        number(op.src_device_num),
        op.dest_addr,
        number(op.dest_device_num),
        op.bytes,
        end,
        op.codeptr_ra,
    ]
}
