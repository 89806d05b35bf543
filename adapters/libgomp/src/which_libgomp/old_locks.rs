//! OpenMP 2.5 locks, used by code that was built before GCC 4.4.
//!
//! libgomp has two versions of its lock functions: in `OMP_1.0` a thread owns a lock, in `OMP_3.0` a task. A nestable
//! lock of `OMP_1.0` has half the size. The functions of this library have no symbol versions, so they serve both. The
//! relocations of a caller's library tell which version it needs.

use core::ffi::CStr;

use interpose::elf::{Library, begins_with, ends_with};

/// The symbol version of the old functions.
pub(crate) const VERSION: &CStr = c"OMP_1.0";

/// Whether the library calls old lock functions. Slow: large libraries have a hundred thousand relocations.
pub(crate) fn are_called_by(library: Library) -> bool {
    library.refers_to(VERSION, is_lock)
}

fn is_lock(name: &CStr) -> bool {
    let name = name.to_bytes();
    begins_with(name, b"omp_") && (ends_with(name, b"_lock") || ends_with(name, b"_lock_"))
}
