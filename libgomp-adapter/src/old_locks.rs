//! Locks of OpenMP 2.5, which code built before GCC 4.4 uses.
//!
//! libgomp has its lock functions twice: as `OMP_1.0`, where a thread owns a lock, and as `OMP_3.0`, where a task does. A
//! nestable lock of the first has half the size. The functions here have no versions, so they serve both. Which a caller
//! wants is in its library's relocations.

use core::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::elf::Library;

/// The version of the old functions.
pub(crate) const VERSION: &CStr = c"OMP_1.0";

/// The library that was asked about last: where it is loaded, and in the last bit whether it calls old lock functions. A
/// library's call sites mostly come one after another, and large libraries have a hundred thousand relocations.
static LAST: AtomicUsize = AtomicUsize::new(0);

/// Whether the code at `address` belongs to a library that calls old lock functions. `base` is where that is loaded: at
/// the begin of a page.
pub(crate) fn are_called_by_library_of(address: *const c_void, base: usize) -> bool {
    // Relaxed: the word says all.
    let last = LAST.load(Ordering::Relaxed);
    if last & !1 == base {
        return last & 1 != 0;
    }
    let library = Library::of_code(address);
    let are_called = library.is_some_and(|library| library.refers_to(VERSION, is_lock));
    LAST.store(base | usize::from(are_called), Ordering::Relaxed);
    are_called
}

/// Another library may lie in its place from now on.
pub(crate) fn forget_unloaded() {
    LAST.store(0, Ordering::Relaxed);
}

fn is_lock(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.starts_with(b"omp_") && (name.ends_with(b"_lock") || name.ends_with(b"_lock_"))
}
