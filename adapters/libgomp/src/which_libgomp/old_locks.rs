//! Locks of OpenMP 2.5, which code built before GCC 4.4 uses.
//!
//! libgomp has its lock functions twice: as `OMP_1.0`, where a thread owns a lock, and as `OMP_3.0`, where a task does. A
//! nestable lock of the first has half the size. The functions here have no versions, so they serve both. Which a caller
//! wants is in its library's relocations.

use core::ffi::CStr;

use interpose::elf::{Library, begins_with, ends_with};

/// The version of the old functions.
pub(crate) const VERSION: &CStr = c"OMP_1.0";

/// Whether the library calls old lock functions. Large ones have a hundred thousand relocations.
pub(crate) fn are_called_by(library: Library) -> bool {
    library.refers_to(VERSION, is_lock)
}

fn is_lock(name: &CStr) -> bool {
    let name = name.to_bytes();
    begins_with(name, b"omp_") && (ends_with(name, b"_lock") || ends_with(name, b"_lock_"))
}
