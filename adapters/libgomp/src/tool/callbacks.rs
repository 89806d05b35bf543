//! The callbacks that the tool registered, by their numbers (OpenMP 5.2, 19.4.2).

use core::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use ompt_sys::*;

/// One more than the largest callback number.
const COUNT: usize = 38;

/// NULL if the tool has not registered a callback.
static REGISTERED: [AtomicPtr<()>; COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; COUNT];

/// The function that the tool registered for a callback number. Relaxed: the function's code exists all the time, and a
/// thread may see the tool's changes late.
#[inline(always)]
pub(crate) fn get(event: ompt_callbacks_t) -> *mut () {
    REGISTERED[event.0 as usize].load(Ordering::Relaxed)
}

/// Registers `callback`, or removes the registered one (OpenMP 5.2, 19.6.1.3).
pub(crate) fn set(event: ompt_callbacks_t, callback: Option<ompt_callback_t>) -> ompt_set_result_t {
    let result = promise(event);
    if result != ompt_set_error && result != ompt_set_never {
        let callback = callback.map_or(ptr::null_mut(), |callback| callback as *mut ());
        REGISTERED[event.0 as usize].store(callback, Ordering::Relaxed);
    }
    result
}

/// Removes all callbacks.
pub(crate) fn clear() {
    for callback in &REGISTERED {
        callback.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

/// How completely libgomp's interface shows the events of a callback.
fn promise(event: ompt_callbacks_t) -> ompt_set_result_t {
    match event {
        ompt_callback_thread_begin
        | ompt_callback_thread_end
        | ompt_callback_parallel_begin
        | ompt_callback_parallel_end
        | ompt_callback_task_create
        | ompt_callback_task_schedule
        | ompt_callback_implicit_task
        | ompt_callback_control_tool
        | ompt_callback_sync_region
        | ompt_callback_sync_region_wait
        | ompt_callback_mutex_released
        | ompt_callback_mutex_acquired
        | ompt_callback_dependences
        | ompt_callback_lock_init
        | ompt_callback_lock_destroy
        | ompt_callback_nest_lock
        | ompt_callback_target
        | ompt_callback_target_emi
        | ompt_callback_cancel => ompt_set_always,
        // GCC inlines static loops and most atomics.
        ompt_callback_work | ompt_callback_mutex_acquire | ompt_callback_dispatch => {
            ompt_set_sometimes_paired
        }
        ompt_callback_error => ompt_set_always,
        // A device that no construct uses is not reported.
        ompt_callback_device_initialize | ompt_callback_device_finalize => ompt_set_sometimes,
        ompt_callback_device_load
        | ompt_callback_device_unload
        | ompt_callback_task_dependence
        | ompt_callback_masked
        | ompt_callback_flush
        | ompt_callback_reduction
        | ompt_callback_target_data_op
        | ompt_callback_target_data_op_emi
        | ompt_callback_target_submit
        | ompt_callback_target_submit_emi
        | ompt_callback_target_map
        | ompt_callback_target_map_emi => ompt_set_never,
        _ => ompt_set_error,
    }
}

/// Calls a callback if the tool registered it: `report!(NUMBER as SIGNATURE, arguments...)`.
macro_rules! report {
    ($event:ident as $type:ident $(, $argument:expr)* $(,)?) => {{
        let callback = $crate::tool::callbacks::get(ompt_sys::$event);
        if !callback.is_null() {
            // SAFETY: the tool registered a function with this signature for this number, as the specification
            // requires, and the arguments are those of the specification.
            unsafe {
                let callback: ompt_sys::$type = core::mem::transmute(callback);
                callback($($argument),*);
            }
        }
    }};
}
