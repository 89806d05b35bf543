//! Which module holds an address, by `_dl_find_object` (glibc 2.35). It takes no lock, and signal handlers may call it.

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

/// What distinguishes a module from others. One that comes in its place, when it is gone, may have the same all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Where its memory begins; of a program with holes between its parts, where the part begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The loader's `struct link_map`, as long as the module is loaded.
    pub link_map: usize,
    /// Its `.eh_frame_hdr`; 0 where it has none.
    pub eh_frame: usize,
}

/// The C library's `_dl_find_object`, if it has one.
#[derive(Debug)]
pub struct FindObject(AtomicPtr<c_void>);

impl FindObject {
    /// Nobody has looked for it yet.
    pub const fn unknown() -> FindObject {
        FindObject(AtomicPtr::new(null_mut()))
    }

    /// Takes note of the function.
    ///
    /// # Safety
    /// It is the C library's function of this name, or null.
    pub unsafe fn set(&self, function: *mut c_void) {
        // Relaxed: stored before anybody asks.
        self.0.store(function, Ordering::Relaxed);
    }

    /// Whether modules can be asked for.
    pub fn is_known(&self) -> bool {
        // Relaxed: see `set`.
        !self.0.load(Ordering::Relaxed).is_null()
    }

    /// The module at `address`, nothing where there is none. `None` where the C library has no such function.
    pub fn at(&self, address: usize) -> Option<Option<Mark>> {
        // Relaxed: see `set`.
        let function = self.0.load(Ordering::Relaxed);
        // SAFETY: null, or glibc's function of this name and type.
        let find = unsafe { transmute::<*mut c_void, Option<Function>>(function) }?;
        let mut found = Found {
            flags: 0,
            map_start: null_mut(),
            map_end: null_mut(),
            link_map: null_mut(),
            eh_frame: null_mut(),
            reserved: [0; 7],
        };
        // SAFETY: any address may be asked about; `found` is valid for writing.
        let is_found = unsafe { find(address as *mut c_void, &raw mut found) } == 0;
        Some(is_found.then_some(Mark {
            start: found.map_start as usize,
            end: found.map_end as usize,
            link_map: found.link_map as usize,
            eh_frame: found.eh_frame as usize,
        }))
    }
}
