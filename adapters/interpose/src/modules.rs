//! The modules that the process has loaded, as `dl_iterate_phdr` reports them.

use std::ffi::{c_int, c_void};
use std::slice;

type Visit = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// The type of `dl_iterate_phdr`.
pub type Iterate = unsafe extern "C" fn(Option<Visit>, *mut c_void) -> c_int;

/// Calls `visit` for each module in the order of loading until it returns true. The loader holds a lock meanwhile.
///
/// # Safety
/// `iterate` is `dl_iterate_phdr` or behaves like it.
pub unsafe fn each<F>(iterate: Iterate, mut visit: F)
where
    F: FnMut(&libc::dl_phdr_info, &[libc::Elf64_Phdr]) -> bool,
{
    unsafe extern "C" fn call<F>(info: *mut libc::dl_phdr_info, _: usize, visit: *mut c_void) -> c_int
    where
        F: FnMut(&libc::dl_phdr_info, &[libc::Elf64_Phdr]) -> bool,
    {
        // SAFETY: the loader passes a valid structure, and `visit` is the function below.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<F>()) };
        let headers = match info.dlpi_phdr.is_null() {
            true => &[],
            // SAFETY: the loader keeps the program headers of a loaded module mapped.
            false => unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) },
        };
        c_int::from(visit(info, headers))
    }
    // SAFETY: `call` expects the arguments that `dl_iterate_phdr` passes, and `visit` outlives the call.
    unsafe { iterate(Some(call::<F>), (&raw mut visit).cast()) };
}
