//! Payloads of the extension for several numbers. Of each list, the first number is recorded, if its type is simple: structures are not read.

use core::ffi::c_void;

use omptrace_trace_format::field::PayloadType;

use crate::range::{NONE, Payload};

/// `nvtxPayloadData_t`.
#[repr(C)]
pub(super) struct PayloadData {
    schema: u64,
    size: usize,
    data: *const c_void,
}

/// Schemas that are types.
mod simple {
    pub(super) const INT64: u64 = 17;
    pub(super) const UINT64: u64 = 18;
    pub(super) const FLOAT32: u64 = 19;
    pub(super) const FLOAT64: u64 = 20;
}

/// The first number of some payloads.
///
/// # Safety
/// So many payloads of the program's.
pub(super) unsafe fn first_number(payloads: *const PayloadData, count: usize) -> Payload {
    if payloads.is_null() || count == 0 {
        return NONE;
    }
    // SAFETY: by the caller's promise.
    let payload = unsafe { &*payloads };
    // SAFETY: as above, as many bytes.
    unsafe { number(payload.schema, payload.size, payload.data.cast()) }
}

/// # Safety
/// As many bytes of the program's are there.
unsafe fn number(schema: u64, size: usize, data: *const u8) -> Payload {
    let bytes = match schema {
        simple::FLOAT32 => 4,
        _ => 8,
    };
    if data.is_null() || size < bytes {
        return NONE;
    }
    let mut word = [0; 8];
    // SAFETY: by the caller's promise.
    word[..bytes].copy_from_slice(unsafe { core::slice::from_raw_parts(data, bytes) });
    let word = u64::from_le_bytes(word);
    match schema {
        simple::INT64 => (PayloadType::int64, word),
        simple::UINT64 => (PayloadType::uint64, word),
        simple::FLOAT64 => (PayloadType::float64, word),
        simple::FLOAT32 => (PayloadType::float64, f64::from(f32::from_bits(word as u32)).to_bits()),
        _ => NONE,
    }
}
