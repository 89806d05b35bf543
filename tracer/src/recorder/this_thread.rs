//! The thread's recorder, by one word of the thread's ([`thread_word`]).
//!
//! The word is the distance from [`IDLE`] to the recorder, so that zero, as in a thread that is new, means [`IDLE`].

use crate::os::threads::thread_word;
use crate::recorder::recorder::{IDLE, OURS, Recorder};

/// The thread's recorder; [`IDLE`], which is always full, on a thread that has none.
#[inline]
pub(crate) fn recorder() -> &'static Recorder {
    at(thread_word::get())
}

/// The same for the hot path of callbacks. In programs with very many keys it is [`IDLE`], and every event is recorded on the
/// cold path.
#[inline(always)]
pub(crate) fn recorder_if_near() -> &'static Recorder {
    at(thread_word::get_fast())
}

#[inline(always)]
fn at(distance: usize) -> &'static Recorder {
    // SAFETY: the sum is `IDLE`, `OURS` or a recorder that stays mapped until its own thread sets another one.
    unsafe { &*(&raw const IDLE).wrapping_byte_add(distance) }
}

fn set(recorder: &'static Recorder) {
    let start = &raw const IDLE as usize;
    thread_word::set((std::ptr::from_ref(recorder) as usize).wrapping_sub(start));
}

/// Makes `recorder` the thread's; `None` takes the thread's recorder away.
pub(crate) fn set_recorder(recorder: Option<&'static Recorder>) {
    set(recorder.unwrap_or(&IDLE));
}

/// What the thread does from now on is the tracer's own work, until [`set_recorder`].
pub(crate) fn begin_own_work() {
    set(&OURS);
}
