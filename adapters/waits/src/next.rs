//! Where a function goes on: in the next library that defines its name, in the order in which the loader looks.
//!
//! `dlsym` takes the loader's lock, may allocate, and finds an old version of some functions. So the libraries' own tables are read, when
//! this library is loaded, or at the first call of another one's constructor.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicUsize, Ordering};

use interpose::elf::{self, Library, LinkMap};

/// The next definition of a function; 0 until it is found.
#[derive(Debug)]
pub(crate) struct Next {
    name: &'static CStr,
    address: AtomicUsize,
    /// The function that does the same where it need not wait, and its address where it is to be called first; else 0. Each function has
    /// its own: a sanitizer may define one of those that take a lock, and not another.
    tries: Option<&'static CStr>,
    trying: AtomicUsize,
}

impl Next {
    pub(crate) const fn of(name: &'static CStr, tries: Option<&'static CStr>) -> Next {
        Next { name, address: AtomicUsize::new(0), tries, trying: AtomicUsize::new(0) }
    }

    /// Its address, 0 where no library defines it.
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        // Relaxed: whoever finds another value finds the same function.
        match self.address.load(Ordering::Relaxed) {
            0 => self.find_now(),
            address => address,
        }
    }

    /// The address of the function to be called first, 0 where there is none.
    #[inline(always)]
    pub(crate) fn trying(&self) -> usize {
        // Relaxed: as above.
        self.trying.load(Ordering::Relaxed)
    }

    #[cold]
    fn find_now(&self) -> usize {
        self.find();
        self.address.load(Ordering::Relaxed)
    }

    /// Finds it, and the function that tries.
    pub(crate) fn find(&self) {
        // SAFETY: the loader's list: what is in front of this library, and the C library behind it, stay.
        let own = unsafe { elf::maps_from(elf::first_map()) }.find(|map| is_own(*map));
        let Some((map, address)) = own.and_then(|own| definition(own, self.name)) else { return };
        if let Some(tries) = self.tries
            && is_c_library(map)
            // SAFETY: a library that is loaded.
            && let Some(address) = unsafe { Library::of_map(map) }.function(tries)
        {
            self.trying.store(address, Ordering::Relaxed);
        }
        self.address.store(address, Ordering::Relaxed);
    }
}

fn is_own(map: *const LinkMap) -> bool {
    // SAFETY: a library that is loaded.
    unsafe { Library::of_map(map) }.is_own()
}

/// The first definition of a function behind the library of `own`.
fn definition(own: *const LinkMap, name: &CStr) -> Option<(*const LinkMap, usize)> {
    // SAFETY: as in `Next::find`.
    unsafe { elf::maps_from(own) }.skip(1).find_map(|map| {
        // SAFETY: a library that is loaded.
        let address = unsafe { Library::of_map(map) }.function(name)?;
        Some((map, address))
    })
}

/// Whether it is the C library itself, or the part for threads that it had up to glibc 2.33. Another library may see more in a call that
/// tries a lock than in one that takes it: a sanitizer finds wrong orders of locks by the latter.
fn is_c_library(map: *const LinkMap) -> bool {
    // SAFETY: a library that is loaded, and the loader's name of it.
    let path = unsafe {
        let name: *const c_char = (*map).name;
        elf::text(name).to_bytes()
    };
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let name = &path[start..];
    [&b"libc.so"[..], b"libc-", b"libpthread.so", b"libpthread-"]
        .iter()
        .any(|begin| elf::begins_with(name, begin))
}
