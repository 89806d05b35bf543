//! The callbacks that read counters: where a construct, a task or a wait begins or ends.
//!
//! They are registered in the place of the usual ones, which they call. So who asks for no counters has the usual ones. A
//! reading comes before the event. So what lies between two readings belongs to the construct that is innermost after the first
//! event.

use std::ffi::c_void;
use std::mem::transmute;

use ompt_sys::ompt_callback_t;

use super::reading;
use crate::recorder::callback::Callback;
use crate::recorder::callback::Function;
use crate::runtime::entry_point::EntryPoint;

/// A callback, whatever its arguments are: none has more than these, and all are numbers or pointers. It finds each in the
/// register where the runtime has put it, and looks at no further ones.
type Registered = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize);

/// The callbacks.
const NAMES: [&str; 6] =
    ["parallel_begin", "parallel_end", "implicit_task", "work", "task_schedule", "sync_region"];

/// Those that are called behind the reading.
static BEHIND: [EntryPoint<Registered>; NAMES.len()] = [const { EntryPoint::new() }; NAMES.len()];

/// Those that read.
static READING: [Function; NAMES.len()] = {
    // SAFETY: whatever a callback of these names has for arguments, `boundary` passes on.
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

/// From now on those of `callbacks` read where something begins or ends.
pub(crate) fn put_in_front(callbacks: &mut [Callback]) {
    for callback in callbacks {
        let place = NAMES.iter().position(|name| *name == callback.name);
        if let Some(place) = place {
            // SAFETY: both are pointers to functions. It is called with the arguments that the runtime has for it.
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
