//! Finds the calling thread's recorder, with one word per thread ([`thread_word`]).
//!
//! The word is the distance from [`IDLE`] to the recorder, so zero, as in a new thread, means [`IDLE`].

use crate::os::threads::thread_word;
use crate::recorder::recorder::{IDLE, OURS, Recorder};

/// The thread's recorder; if it has none, [`IDLE`], which is always full.
#[inline]
pub(crate) fn recorder() -> &'static Recorder {
    at(thread_word::get())
}

/// Like [`recorder`], for the hot path of callbacks. In programs with very many keys it returns [`IDLE`], so that every
/// event takes the cold path.
#[inline(always)]
pub(crate) fn recorder_if_near() -> &'static Recorder {
    at(thread_word::get_fast())
}

#[inline(always)]
fn at(distance: usize) -> &'static Recorder {
    // SAFETY: the sum is the address of `IDLE`, of `OURS`, or of a recorder that stays mapped until its thread sets
    // another one.
    unsafe { &*(&raw const IDLE).wrapping_byte_add(distance) }
}

fn set(recorder: &'static Recorder) {
    let start = &raw const IDLE as usize;
    thread_word::set((std::ptr::from_ref(recorder) as usize).wrapping_sub(start));
}

/// Sets the thread's recorder; `None` removes it.
pub(crate) fn set_recorder(recorder: Option<&'static Recorder>) {
    set(recorder.unwrap_or(&IDLE));
}

/// Marks what the thread does from now on as the tracer's own work, until [`set_recorder`].
pub(crate) fn begin_own_work() {
    set(&OURS);
}
