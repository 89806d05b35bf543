//! The callbacks that read counters when a construct, a task or a wait begins or ends.
//!
//! They are registered instead of the usual callbacks and call these, so the usual callbacks have no extra cost if no
//! counters are requested. A reading precedes its event, so the counts between two readings belong to the construct
//! that is innermost after the first event.

use std::ffi::c_void;
use std::mem::transmute;

use ompt_sys::ompt_callback_t;

use super::reading;
use crate::recorder::callback::Callback;
use crate::recorder::callback::Function;
use crate::runtime::entry_point::EntryPoint;

/// A callback with any arguments: none has more than these, and all are numbers or pointers. Each argument is in the
/// register where the runtime has put it; further registers are ignored.
type Registered = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize);

/// Names of the callbacks that read counters.
const NAMES: [&str; 6] =
    ["parallel_begin", "parallel_end", "implicit_task", "work", "task_schedule", "sync_region"];

/// The usual callbacks, called after the reading.
static BEHIND: [EntryPoint<Registered>; NAMES.len()] = [const { EntryPoint::new() }; NAMES.len()];

/// The callbacks that read counters.
static READING: [Function; NAMES.len()] = {
    // SAFETY: `boundary` passes on the arguments of any callback with these names.
    unsafe {
        [
            Function::new(boundary::<0> as *const c_void),
            Function::new(boundary::<1> as *const c_void),
            Function::new(boundary::<2> as *const c_void),
            Function::new(boundary::<3> as *const c_void),
            Function::new(boundary::<4> as *const c_void),
            Function::new(boundary::<5> as *const c_void),
        ]
    }
};

/// Replaces those of `callbacks` that should read counters.
pub(crate) fn put_in_front(callbacks: &mut [Callback]) {
    for callback in callbacks {
        let place = NAMES.iter().position(|name| *name == callback.name);
        if let Some(place) = place {
            // SAFETY: both are function pointers; the function is called with the arguments that the runtime passes to
            // it.
            let behind = unsafe { transmute::<ompt_callback_t, Registered>(callback.function) };
            BEHIND[place].set(Some(behind));
            callback.function = READING[place].0;
        }
    }
    reading::is_called();
}

unsafe extern "C" fn boundary<const PLACE: usize>(
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) {
    reading::read();
    if let Some(behind) = BEHIND[PLACE].get() {
        // SAFETY: the arguments of this call.
        unsafe { behind(a, b, c, d, e, f) }
    }
}
