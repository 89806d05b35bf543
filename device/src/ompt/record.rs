//! Reads records from a buffer; nothing in them is trusted.

use std::ffi::c_char;
use std::mem::{offset_of, size_of};
use std::ops::Range;

use ompt_sys::{self as ompt, *};

use crate::memory;
use crate::problem::Problem;
use crate::record::{DataOp, Record, Work};

/// Bytes of `ompt_record_ompt_t` before its union.
const HEAD_BYTES: usize = offset_of!(ompt_record_ompt_t, record);
/// Size of the union in bytes.
const MAX_BYTES: usize = size_of::<ompt_any_record_ompt_t>();
/// Maximum length of the type name of a native record, in bytes.
const MAX_NAME: usize = 128;

/// The size of the union's member for a type; the size of the whole union for unknown types.
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
        ompt::ompt_callback_target | ompt::ompt_callback_target_emi => size_of::<ompt_record_target_t>(),
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

/// Copies `bytes` from `address`: directly if they are in `readable`, a buffer of ours, otherwise with the kernel's
/// help.
fn copy(address: usize, bytes: &mut [u8], readable: &Range<usize>) -> bool {
    let end = address.checked_add(bytes.len());
    if address < readable.start || end.is_none_or(|end| end > readable.end) {
        return memory::copy(address, bytes);
    }
    // SAFETY: the bytes are in a buffer that is never unmapped, and may have any value. By the completion, the device
    // no longer uses this part.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), bytes.len()) };
    true
}

/// The word at `at`; missing bytes are 0.
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    let part = &bytes[at..bytes.len().min(at + 8)];
    word[..part.len()].copy_from_slice(part);
    u64::from_ne_bytes(word)
}

/// The standard record at `address` (`ompt_record_ompt_t`; OpenMP 5.2, 19.4.3.4). Reads no more bytes than its type
/// has.
pub(crate) fn ompt_record(address: usize, readable: &Range<usize>) -> Result<Record, Problem> {
    const TIME: usize = offset_of!(ompt_record_ompt_t, time);
    const THREAD: usize = offset_of!(ompt_record_ompt_t, thread_id);
    const TARGET: usize = offset_of!(ompt_record_ompt_t, target_id);

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
        // A record of unknown type may be shorter.
        match kind.name() {
            Some(_) => return Err(Problem::UnreadableRecord),
            None => len = 0,
        }
    }
    let member = &member[..len];
    let (correlation_id, end, work) = match kind {
        ompt::ompt_callback_target_submit | ompt::ompt_callback_target_submit_emi => kernel(member),
        ompt::ompt_callback_target_data_op | ompt::ompt_callback_target_data_op_emi => data_op(member),
        r#type => {
            let words = (0..len).step_by(8).map(|at| word(member, at)).collect();
            (ompt_id_none, ompt_time_none, Work::Marker { r#type, words })
        }
    };
    Ok(Record {
        correlation_id,
        target_id: word(&head, TARGET),
        stream: word(&head, THREAD),
        begin: word(&head, TIME),
        end,
        work,
    })
}

/// From an `ompt_record_target_kernel_t`: the operation, its end, and its description.
fn kernel(member: &[u8]) -> (ompt_id_t, ompt_device_time_t, Work) {
    type Kernel = ompt_record_target_kernel_t;
    let work = Work::Kernel {
        requested_num_teams: word(member, offset_of!(Kernel, requested_num_teams)) as u32,
        granted_num_teams: word(member, offset_of!(Kernel, granted_num_teams)) as u32,
        name: None,
    };
    let host_op_id = word(member, offset_of!(Kernel, host_op_id));
    (host_op_id, word(member, offset_of!(Kernel, end_time)), work)
}

/// From an `ompt_record_target_data_op_t`: the same.
fn data_op(member: &[u8]) -> (ompt_id_t, ompt_device_time_t, Work) {
    type Op = ompt_record_target_data_op_t;
    let work = Work::of_data_op(DataOp {
        optype: ompt_target_data_op_t(word(member, offset_of!(Op, optype)) as u32),
        src_addr: word(member, offset_of!(Op, src_addr)),
        src_device_num: word(member, offset_of!(Op, src_device_num)) as i32,
        dest_addr: word(member, offset_of!(Op, dest_addr)),
        dest_device_num: word(member, offset_of!(Op, dest_device_num)) as i32,
        bytes: word(member, offset_of!(Op, bytes)),
        codeptr_ra: word(member, offset_of!(Op, codeptr_ra)),
    });
    let host_op_id = word(member, offset_of!(Op, host_op_id));
    (host_op_id, word(member, offset_of!(Op, end_time)), work)
}

/// The abstract record at `address`: the result of `ompt_get_record_abstract` for a native record (OpenMP 5.2,
/// 19.4.3.3).
pub(crate) fn native_record(address: usize, host_op_id: ompt_id_t) -> Result<Record, Problem> {
    const BYTES: usize = size_of::<ompt_record_abstract_t>();
    const TYPE: usize = offset_of!(ompt_record_abstract_t, r#type);
    const START: usize = offset_of!(ompt_record_abstract_t, start_time);
    const END: usize = offset_of!(ompt_record_abstract_t, end_time);
    const HWID: usize = offset_of!(ompt_record_abstract_t, hwid);

    if address == 0 {
        return Err(Problem::NullRecord);
    }
    let mut bytes = [0; BYTES];
    if !memory::copy(address, &mut bytes) {
        return Err(Problem::UnreadableRecord);
    }
    let name = word(&bytes, TYPE) as usize;
    Ok(Record {
        correlation_id: host_op_id,
        target_id: ompt_id_none,
        stream: word(&bytes, HWID),
        begin: word(&bytes, START),
        end: word(&bytes, END),
        work: Work::Native {
            rclass: ompt_record_native_t(word(&bytes, 0) as u32),
            name: memory::text(name as *const c_char, MAX_NAME),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record ends at the end of the mapping, so that reading one byte more would fault.
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
        // SAFETY: the record is at least as long as the copied bytes, and the buffer is as long as these.
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
            let expected = Record {
                correlation_id: 10,
                target_id: 9,
                stream: 8,
                begin: 7,
                end: 13,
                work: Work::Kernel { requested_num_teams: 11, granted_num_teams: 12, name: None },
            };
            assert_eq!(record, expected);
        }
    }

    #[test]
    fn what_is_no_work_of_a_device_keeps_its_words() {
        let masked = ompt_record_ompt_t {
            r#type: ompt_callback_masked,
            time: 7,
            thread_id: 8,
            target_id: 9,
            record: ompt_any_record_ompt_t {
                masked: ompt_record_masked_t {
                    endpoint: ompt_scope_begin,
                    parallel_id: 10,
                    task_id: 11,
                    codeptr_ra: std::ptr::null(),
                },
            },
        };
        let record = ompt_record(&raw const masked as usize, &(0..0)).expect("a record");
        let Work::Marker { r#type, words } = record.work else {
            panic!("{record:?}");
        };
        assert_eq!(r#type, ompt_callback_masked);
        assert_eq!(words[1..], [10, 11, 0]);
    }

    #[test]
    fn bad_pointers_are_problems() {
        assert_eq!(ompt_record(0, &(0..0)), Err(Problem::NullRecord));
        assert_eq!(ompt_record(8, &(0..0)), Err(Problem::UnreadableRecord));
        assert_eq!(native_record(0, 1), Err(Problem::NullRecord));
        assert_eq!(native_record(usize::MAX - 7, 1), Err(Problem::UnreadableRecord));
    }
}
