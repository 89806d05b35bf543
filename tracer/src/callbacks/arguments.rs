//! Converts callback arguments to fields of events.
//!
//! Pointers are followed where the specification says that they are valid during the callback.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::offset_of;

use ompt_sys::*;
use omptrace_device::memory;
use omptrace_trace_format::field::{Address, Dependence, Id, Numbers, Text};
use omptrace_trace_format::predict::State;

use crate::recorder::thread_stream::Stream;

pub(super) type Data = *mut ompt_data_t;
pub(super) type Code = *const c_void;
pub(super) type Frame = *const ompt_frame_t;
pub(super) type Memory = *mut c_void;
pub(super) type Addresses = *mut *mut c_void;

/// The data behind a pointer, as an id.
///
/// # Safety
/// `data` is null, or valid for reading during the callback.
#[inline(always)]
pub(super) unsafe fn id(data: Data) -> Id {
    if data.is_null() {
        return Id::NULL;
    }
    // SAFETY: by this function's contract; every bit pattern is a number.
    Id(unsafe { (*data).value })
}

/// Assigns the stream's next id to an object.
///
/// # Safety
/// `data` is null, or valid for writing during the callback.
#[inline(always)]
pub(super) unsafe fn new_id(state: &State, data: Data) -> Id {
    if data.is_null() {
        return Id::NULL;
    }
    let id = state.fresh_id();
    // SAFETY: by this function's contract.
    unsafe { set(data, id) };
    Id(id)
}

/// # Safety
/// `data` is null, or valid for writing.
#[inline(always)]
pub(super) unsafe fn set(data: Data, value: u64) {
    if !data.is_null() {
        // SAFETY: by this function's contract.
        unsafe { (*data).value = value };
    }
}

/// Assigns an id to a target region or an operation.
///
/// # Safety
/// `id` is null, or valid for writing during the callback.
pub(super) unsafe fn set_id(stream: &Stream, id: *mut ompt_id_t) {
    // SAFETY: by this function's contract; `ompt_data_t` and `ompt_id_t` are both a 64-bit number.
    unsafe { set(id.cast(), stream.target_id()) };
}

#[inline(always)]
pub(super) fn address<T>(pointer: *const T) -> Address {
    Address(pointer as usize as u64)
}

/// The content of a frame (OpenMP 5.2, 19.4.4.28): exit and enter frame, and their flags; zeros for a null pointer.
///
/// # Safety
/// `frame` is null, or valid for reading during the callback.
#[inline(always)]
pub(super) unsafe fn frame(frame: Frame) -> (Address, Address, ompt_frame_flag_t, ompt_frame_flag_t) {
    if frame.is_null() {
        return (Address(0), Address(0), ompt_frame_flag_t(0), ompt_frame_flag_t(0));
    }
    // SAFETY: by this function's contract.
    let frame = unsafe { &*frame };
    // SAFETY: every bit pattern of the union is a number.
    let (exit, enter) = unsafe { (frame.exit_frame.value, frame.enter_frame.value) };
    let flags = |flags: c_int| ompt_frame_flag_t(flags as u32);
    (Address(exit), Address(enter), flags(frame.exit_frame_flags), flags(frame.enter_frame_flags))
}

/// The chunk of iterations to which `instance` points if `kind` is a chunk; valid only during the callback.
///
/// # Safety
/// `instance` is as specified for `kind` (OpenMP 5.2, 19.5.2.6).
#[inline(always)]
pub(super) unsafe fn chunk(kind: ompt_dispatch_t, instance: ompt_data_t) -> (u64, u64) {
    let is_chunk = kind == ompt_dispatch_ws_loop_chunk
        || kind == ompt_dispatch_taskloop_chunk
        || kind == ompt_dispatch_distribute_chunk;
    // SAFETY: any bit pattern may be read as a pointer.
    let pointer = unsafe { instance.ptr }.cast::<ompt_dispatch_chunk_t>();
    if !is_chunk || pointer.is_null() {
        return (0, 0);
    }
    // SAFETY: by this function's contract.
    let chunk = unsafe { &*pointer };
    (chunk.start, chunk.iterations)
}

/// Maximum bytes of a text and maximum elements of an array in an event, which must fit into a chunk.
const MAX_TEXT: usize = 4096;
const MAX_ELEMENTS: usize = 4096;

/// A C string of the runtime.
pub(super) fn text(text: *const c_char) -> Text<'static> {
    Text(memory::text(text, MAX_TEXT).map(Cow::Owned))
}

/// A message of `length` bytes, truncated.
pub(super) fn message_of(message: *const c_char, length: usize) -> Text<'static> {
    Text(memory::text(message, length.min(MAX_TEXT)).map(Cow::Owned))
}

/// The elements of an array, as words.
///
/// # Safety
/// `array` is null, or `len` elements of it are valid for reading during the callback.
pub(super) unsafe fn numbers<T: Copy + TryInto<u64>>(array: *const T, len: c_uint) -> Numbers<'static> {
    if array.is_null() {
        return Cow::Borrowed(&[]);
    }
    // SAFETY: by this function's contract.
    let elements = unsafe { std::slice::from_raw_parts(array, (len as usize).min(MAX_ELEMENTS)) };
    elements.iter().map(|element| (*element).try_into().unwrap_or(u64::MAX)).collect()
}

/// The elements of the array of dependences.
///
/// # Safety
/// `array` is null, or `len` elements of it are valid for reading during the callback.
#[inline]
pub(crate) unsafe fn dependences_of<'a>(array: *const ompt_dependence_t, len: c_int) -> &'a [Dependence] {
    const {
        assert!(size_of::<Dependence>() == size_of::<ompt_dependence_t>());
        assert!(align_of::<Dependence>() <= align_of::<ompt_dependence_t>());
        assert!(offset_of!(Dependence, variable) == offset_of!(ompt_dependence_t, variable));
        assert!(offset_of!(Dependence, dependence_type) == offset_of!(ompt_dependence_t, dependence_type));
    }
    let len = usize::try_from(len).unwrap_or(0).min(MAX_ELEMENTS);
    match array.is_null() {
        true => &[],
        // SAFETY: by this function's contract; both types have the same layout, and every bit pattern is valid.
        false => unsafe { std::slice::from_raw_parts(array.cast(), len) },
    }
}
