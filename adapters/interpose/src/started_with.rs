//! The modules that stay loaded until the process ends: the program and the libraries that it was started with. The
//! loader never removes them.
//!
//! The loader's list has the program first, then the libraries that the program was started with in the order in which
//! they are needed, then libraries that were loaded later. The loader itself is one of the libraries that the program
//! was started with. So all modules up to the loader were there at the start. Some modules after the loader may have
//! been, too, but cannot be distinguished from later ones.

use core::ptr::{self, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::elf::{LinkMap, first_map, maps_from};

/// The first and the last module that are known to stay loaded.
#[derive(Debug)]
pub struct StartedWith {
    first: AtomicPtr<LinkMap>,
    last: AtomicPtr<LinkMap>,
}

impl StartedWith {
    /// The modules have not been determined yet: [`StartedWith::has`] is false for all.
    pub const fn unknown() -> StartedWith {
        StartedWith { first: AtomicPtr::new(null_mut()), last: AtomicPtr::new(null_mut()) }
    }

    /// Determines the modules.
    ///
    /// # Safety
    /// No library is loaded or removed meanwhile.
    pub unsafe fn find(&self) {
        let first = first_map();
        // SAFETY: only reads a value that the kernel passed to the process.
        let loader = unsafe { libc::getauxval(libc::AT_BASE) } as usize;
        // SAFETY: the loader's list, which does not change now.
        let last = unsafe { maps_from(first).find(|map| (**map).addr == loader) };
        if let Some(last) = last {
            // Relaxed: stored before any thread calls `has`.
            self.first.store(first.cast_mut(), Ordering::Relaxed);
            self.last.store(last.cast_mut(), Ordering::Relaxed);
        }
    }

    /// Whether the module with this load address is known to stay loaded until the process ends.
    pub fn has(&self, load_address: usize) -> bool {
        // Relaxed: see `find`.
        let (mut map, last) = (self.first.load(Ordering::Relaxed), self.last.load(Ordering::Relaxed));
        // SAFETY: null, or in the part of the loader's list that never changes.
        while let Some(described) = unsafe { map.as_ref() } {
            if described.addr == load_address {
                return true;
            }
            if ptr::eq(map, last) {
                break;
            }
            map = described.next.cast_mut();
        }
        false
    }
}
