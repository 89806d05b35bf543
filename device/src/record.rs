//! Records taken out of a buffer, raw: nothing in them is trusted, nothing is interpreted.

use std::ffi::c_char;
use std::mem::size_of;
use std::ops::Range;

use ompt_sys::{self as ompt, *};

use crate::memory;
use crate::problem::Problem;

/// Bytes of `ompt_record_ompt_t` before its union.
const HEAD_BYTES: usize = std::mem::offset_of!(ompt_record_ompt_t, record);
/// Bytes of the union: those of its largest member.
const MAX_BYTES: usize = size_of::<ompt_any_record_ompt_t>();
/// The longest name of a native record's type that is kept.
const MAX_NAME: usize = 128;

/// What is kept of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// In the standard format.
    Ompt(OmptRecord),
    /// In the device's own format.
    Native(NativeRecord),
}

/// An `ompt_record_ompt_t` (OpenMP 5.2, 19.4.3.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OmptRecord {
    /// What it is a record of.
    pub r#type: ompt_callbacks_t,
    /// When it was, on the device's clock.
    pub time: ompt_device_time_t,
    /// The device's thread.
    pub thread_id: ompt_id_t,
    /// The target region.
    pub target_id: ompt_id_t,
    words: [u64; MAX_BYTES / 8],
    len: usize,
}

impl OmptRecord {
    /// The union's member that belongs to the type, as it lies in memory.
    pub fn member(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

/// What `ompt_get_record_abstract` returns for a native record (OpenMP 5.2, 19.4.3.3).
#[derive(Clone, Debug, PartialEq)]
pub struct NativeRecord {
    /// The operation of the host that it belongs to.
    pub host_op_id: ompt_id_t,
    /// Information or event.
    pub rclass: ompt_record_native_t,
    /// The name of its type.
    pub r#type: Option<Vec<u8>>,
    /// When it began, on the device's clock.
    pub start_time: ompt_device_time_t,
    /// When it ended.
    pub end_time: ompt_device_time_t,
    /// Where on the device it was.
    pub hwid: ompt_hwid_t,
}

/// The size of the union's member for a type; that of the whole union for types that are not known.
fn member_bytes(kind: ompt_callbacks_t) -> usize {
    match kind {
        ompt::ompt_callback_thread_begin => size_of::<ompt_record_thread_begin_t>(),
        ompt::ompt_callback_thread_end => 0,
        ompt::ompt_callback_parallel_begin => size_of::<ompt_record_parallel_begin_t>(),
        ompt::ompt_callback_parallel_end => size_of::<ompt_record_parallel_end_t>(),
        ompt::ompt_callback_work => size_of::<ompt_record_work_t>(),
        ompt::ompt_callback_dispatch => size_of::<ompt_record_dispatch_t>(),
        ompt::ompt_callback_task_create => size_of::<ompt_record_task_create_t>(),
        ompt::ompt_callback_dependences => size_of::<ompt_record_dependences_t>(),
        ompt::ompt_callback_task_dependence => size_of::<ompt_record_task_dependence_t>(),
        ompt::ompt_callback_task_schedule => size_of::<ompt_record_task_schedule_t>(),
        ompt::ompt_callback_implicit_task => size_of::<ompt_record_implicit_task_t>(),
        ompt::ompt_callback_masked => size_of::<ompt_record_masked_t>(),
        ompt::ompt_callback_sync_region
        | ompt::ompt_callback_sync_region_wait
        | ompt::ompt_callback_reduction => size_of::<ompt_record_sync_region_t>(),
        ompt::ompt_callback_mutex_acquire | ompt::ompt_callback_lock_init => {
            size_of::<ompt_record_mutex_acquire_t>()
        }
        ompt::ompt_callback_mutex_acquired
        | ompt::ompt_callback_mutex_released
        | ompt::ompt_callback_lock_destroy => size_of::<ompt_record_mutex_t>(),
        ompt::ompt_callback_nest_lock => size_of::<ompt_record_nest_lock_t>(),
        ompt::ompt_callback_flush => size_of::<ompt_record_flush_t>(),
        ompt::ompt_callback_cancel => size_of::<ompt_record_cancel_t>(),
        ompt::ompt_callback_target | ompt::ompt_callback_target_emi => {
            size_of::<ompt_record_target_t>()
        }
        ompt::ompt_callback_target_data_op | ompt::ompt_callback_target_data_op_emi => {
            size_of::<ompt_record_target_data_op_t>()
        }
        ompt::ompt_callback_target_map | ompt::ompt_callback_target_map_emi => {
            size_of::<ompt_record_target_map_t>()
        }
        ompt::ompt_callback_target_submit | ompt::ompt_callback_target_submit_emi => {
            size_of::<ompt_record_target_kernel_t>()
        }
        ompt::ompt_callback_control_tool => size_of::<ompt_record_control_tool_t>(),
        ompt::ompt_callback_error => size_of::<ompt_record_error_t>(),
        _ => MAX_BYTES,
    }
}

/// Copies `bytes` from `address`: as it is where that lies in a buffer of ours, `readable`, else by the kernel.
fn copy(address: usize, bytes: &mut [u8], readable: &Range<usize>) -> bool {
    let end = address.checked_add(bytes.len());
    if address < readable.start || end.is_none_or(|end| end > readable.end) {
        return memory::copy(address, bytes);
    }
    // SAFETY: the bytes lie in a buffer that is never unmapped, and may hold anything. The device is done with this part of
    // it: it said so by the completion.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
    true
}

/// The word at `at`, less where bytes are missing.
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let part = &bytes[at..bytes.len().min(at + 8)];
    word[..part.len()].copy_from_slice(part);
    u64::from_ne_bytes(word)
}

/// The standard record at `address`, of which no more is read than its type has.
pub(crate) fn ompt_record(address: usize, readable: &Range<usize>) -> Result<OmptRecord, Problem> {
    const TIME: usize = std::mem::offset_of!(ompt_record_ompt_t, time);
    const THREAD: usize = std::mem::offset_of!(ompt_record_ompt_t, thread_id);
    const TARGET: usize = std::mem::offset_of!(ompt_record_ompt_t, target_id);

    if address == 0 {
        return Err(Problem::NullRecord);
    }
    let mut head = [0; HEAD_BYTES];
    if !copy(address, &mut head, readable) {
        return Err(Problem::UnreadableRecord);
    }
    let kind = ompt_callbacks_t(word(&head, 0) as u32);
    let mut member = [0; MAX_BYTES];
    let mut len = member_bytes(kind);
    let place = address.saturating_add(HEAD_BYTES);
    if !copy(place, &mut member[..len], readable) {
        // A type that is not known may be shorter.
        match kind.name() {
            Some(_) => return Err(Problem::UnreadableRecord),
            None => len = 0,
        }
    }
    let mut words = [0; MAX_BYTES / 8];
    for (at, into) in words.iter_mut().enumerate().take(len.div_ceil(8)) {
        *into = word(&member, 8 * at);
    }
    Ok(OmptRecord {
        r#type: kind,
        time: word(&head, TIME),
        thread_id: word(&head, THREAD),
        target_id: word(&head, TARGET),
        words,
        len: len.div_ceil(8),
    })
}

/// The abstract record at `address`.
pub(crate) fn native_record(
    address: usize,
    host_op_id: ompt_id_t,
) -> Result<NativeRecord, Problem> {
    const BYTES: usize = size_of::<ompt_record_abstract_t>();
    const TYPE: usize = std::mem::offset_of!(ompt_record_abstract_t, r#type);
    const START: usize = std::mem::offset_of!(ompt_record_abstract_t, start_time);
    const END: usize = std::mem::offset_of!(ompt_record_abstract_t, end_time);
    const HWID: usize = std::mem::offset_of!(ompt_record_abstract_t, hwid);

    if address == 0 {
        return Err(Problem::NullRecord);
    }
    let mut bytes = [0; BYTES];
    if !memory::copy(address, &mut bytes) {
        return Err(Problem::UnreadableRecord);
    }
    let name = word(&bytes, TYPE) as usize;
    Ok(NativeRecord {
        host_op_id,
        rclass: ompt_record_native_t(word(&bytes, 0) as u32),
        r#type: memory::text(name as *const c_char, MAX_NAME),
        start_time: word(&bytes, START),
        end_time: word(&bytes, END),
        hwid: word(&bytes, HWID),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record that ends where the mapping ends, so that one byte more would be a fault.
    #[test]
    fn reads_no_more_than_the_type_has() {
        let kernel = ompt_record_ompt_t {
            r#type: ompt_callback_target_submit,
            time: 7,
            thread_id: 8,
            target_id: 9,
            record: ompt_any_record_ompt_t {
                target_kernel: ompt_record_target_kernel_t {
                    host_op_id: 10,
                    requested_num_teams: 11,
                    granted_num_teams: 12,
                    end_time: 13,
                },
            },
        };
        let bytes = HEAD_BYTES + size_of::<ompt_record_target_kernel_t>();
        let mut buffer = vec![0_u64; bytes / 8];
        // SAFETY: the record is longer than what is copied of it, and the buffer just as long.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (&raw const kernel).cast(),
                buffer.as_mut_ptr().cast::<u8>(),
                bytes,
            );
        }
        let address = buffer.as_ptr() as usize;
        for readable in [address..address + bytes, 0..0] {
            let record = ompt_record(address, &readable).expect("a record");
            assert_eq!((record.time, record.thread_id, record.target_id), (7, 8, 9));
            assert_eq!(record.member(), [10, 11 | 12 << 32, 13]);
        }
    }

    #[test]
    fn bad_pointers_are_problems() {
        assert_eq!(ompt_record(0, &(0..0)), Err(Problem::NullRecord));
        assert_eq!(ompt_record(8, &(0..0)), Err(Problem::UnreadableRecord));
        assert_eq!(native_record(0, 1), Err(Problem::NullRecord));
        assert_eq!(
            native_record(usize::MAX - 7, 1),
            Err(Problem::UnreadableRecord)
        );
    }
}
