//! The code of samples that depends on the CPU architecture, in one file per architecture: where the interrupted code's
//! registers are, which of them unwind information refers to, and what framehop supports.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as this;
#[cfg(target_arch = "x86_64")]
use x86_64 as this;

pub(super) use this::{
    Base, Cache, FRAME_POINTER, LEAF_HAS_NO_FRAME, RED_ZONE, RETURN_ADDRESS, Registers,
    UNSAVED_RETURN_ADDRESS, Unwinding, base, by_epilogue, by_stub, framehop_evaluates, interrupted_code,
    knows_signal_return, may_need_rows, note_signal_return, plain, thread_pointer,
};
