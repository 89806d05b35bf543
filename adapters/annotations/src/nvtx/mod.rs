//! NVTX version 3: the first call in each shared object loads the library that `NVTX_INJECTION64_PATH` names, and has it fill the
//! object's tables of functions.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`attributes`] | what an event has |
//! | [`functions`] | the functions of modules 1 and 5: ranges and marks, without and with a domain |
//! | [`payload`] | numbers of extended payloads |
//! | [`extensions`] | payloads and counters |
//! | [`next`] | another tool, which gets its own handles back |
//!
//! A domain and a registered string are a [`Text`](crate::text::Text) to us. Levels of ranges are not counted: functions return what they do without a tool, or
//! what the next tool returns.

mod attributes;
mod extensions;
mod functions;
mod next;
mod payload;

use core::ffi::c_void;

pub(crate) use functions::InitializeInjectionNvtx2;

use omptrace_trace_format::field::AnnotationSource;

const SOURCE: AnnotationSource = AnnotationSource::nvtx;

/// `NVTX_NO_PUSH_POP_TRACKING`: the level of a range where nobody counts levels.
const NO_LEVEL: i32 = -2;

/// `NvtxGetExportTableFunc_t`.
type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;
