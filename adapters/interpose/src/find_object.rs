//! Finds the module that contains an address, by `_dl_find_object` (glibc 2.35), which takes no lock and may be called
//! in signal handlers.

use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `struct dl_find_object` of glibc.
#[repr(C)]
struct Found {
    flags: u64,
    map_start: *mut c_void,
    map_end: *mut c_void,
    link_map: *mut c_void,
    eh_frame: *mut c_void,
    reserved: [u64; 7],
}

type Function = unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int;

/// Identifies a module. A module that is loaded at the same address later may have the same mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Start of the module's memory; for a program with gaps between its segments, the start of the contiguous part.
    pub start: usize,
    /// End of this memory.
    pub end: usize,
    /// Address of the loader's `struct link_map`, valid while the module is loaded.
    pub link_map: usize,
    /// Address of the module's `.eh_frame_hdr`; 0 if there is none.
    pub eh_frame: usize,
}

/// The C library's `_dl_find_object`, if the C library has one.
#[derive(Debug)]
pub struct FindObject(AtomicPtr<c_void>);

impl FindObject {
    /// The function has not been looked up yet.
    pub const fn unknown() -> FindObject {
        FindObject(AtomicPtr::new(null_mut()))
    }

    /// Stores the function.
    ///
    /// # Safety
    /// `function` is the C library's `_dl_find_object`, or null.
    pub unsafe fn set(&self, function: *mut c_void) {
        // Relaxed: stored before any thread looks up an address.
        self.0.store(function, Ordering::Relaxed);
    }

    /// Whether modules can be looked up.
    pub fn is_known(&self) -> bool {
        // Relaxed: see `set`.
        !self.0.load(Ordering::Relaxed).is_null()
    }

    /// The module at `address`, or `Some(None)` if there is none. `None` if the C library has no such function.
    pub fn at(&self, address: usize) -> Option<Option<Mark>> {
        // Relaxed: see `set`.
        let function = self.0.load(Ordering::Relaxed);
        // SAFETY: null, or glibc's function with this name and type.
        let find = unsafe { transmute::<*mut c_void, Option<Function>>(function) }?;
        let mut found = Found {
            flags: 0,
            map_start: null_mut(),
            map_end: null_mut(),
            link_map: null_mut(),
            eh_frame: null_mut(),
            reserved: [0; 7],
        };
        // SAFETY: any address may be looked up; `found` is valid for writing.
        let is_found = unsafe { find(address as *mut c_void, &raw mut found) } == 0;
        Some(is_found.then_some(Mark {
            start: found.map_start as usize,
            end: found.map_end as usize,
            link_map: found.link_map as usize,
            eh_frame: found.eh_frame as usize,
        }))
    }
}
