//! The callbacks that the tool has registered, and those that it may register (OpenMP 5.2, 19.6.1.3).

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use ompt_sys::*;

use super::dialect::Dialect;

/// Greater than any callback's number; the numbers start at 1.
pub(super) const NUMBERS: usize = 38;

/// The functions that the tool has registered, by number. Relaxed: this runtime starts no thread before `initialize`
/// returns, so every thread sees the callbacks and the tool's other data.
pub(super) static CALLBACKS: [AtomicPtr<c_void>; NUMBERS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; NUMBERS];

/// The results of `ompt_set_callback`, by number; set before a tool calls it.
pub(super) static GRANTS: [AtomicU32; NUMBERS] = [const { AtomicU32::new(0) }; NUMBERS];

/// Sets the results of `ompt_set_callback` that a script requests.
///
/// # Errors
/// The name of a callback that does not exist.
pub(super) fn grant(grants: &BTreeMap<String, u32>) -> Result<(), String> {
    let dialect = Dialect::current();
    let (always, _) = dialect.set_results();
    let names = ompt_callbacks_t::VALUES.iter().map(|(name, _)| *name);
    for name in names.chain(["idle"]) {
        if let Some(number) = dialect.number(name.trim_start_matches("ompt_callback_")) {
            GRANTS[number as usize].store(always, Ordering::Relaxed);
        }
    }
    for (name, result) in grants {
        let number = dialect.number(name).ok_or_else(|| format!("there is no callback {name}"))?;
        GRANTS[number as usize].store(*result, Ordering::Relaxed);
    }
    Ok(())
}

/// The function that the tool has registered for the callback with this name.
pub(super) fn callback(name: &str) -> Option<ompt_callback_t> {
    callback_of_number(Dialect::current().number(name)?)
}

/// The function that the tool has registered for this number.
pub(super) fn callback_of_number(number: u32) -> Option<ompt_callback_t> {
    let callback = CALLBACKS.get(number as usize)?.load(Ordering::Relaxed);
    // SAFETY: of the same size as such an option, and stored only by `set_callback`, from one.
    unsafe { std::mem::transmute::<*mut c_void, Option<ompt_callback_t>>(callback) }
}

/// Removes what a previous tool has registered.
pub(super) fn forget_callbacks() {
    for callback in &CALLBACKS {
        callback.store(ptr::null_mut(), Ordering::Relaxed);
    }
}
