//! Which modules stay as long as the process: the program, and libraries that it was started with. The loader never removes them.
//!
//! The loader lists the program first, then the libraries that it was started with, in the order in which they are needed. It is
//! itself one of them. What is loaded later comes behind them. So those up to the loader were there at the start. Some of those behind
//! it may have been, too; they are not told from others.

use core::ptr::{self, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::elf::{LinkMap, first_map, maps_from};

/// The first and the last that are known to stay.
#[derive(Debug)]
pub struct StartedWith {
    first: AtomicPtr<LinkMap>,
    last: AtomicPtr<LinkMap>,
}

impl StartedWith {
    /// Nobody has looked for them yet: none.
    pub const fn unknown() -> StartedWith {
        StartedWith { first: AtomicPtr::new(null_mut()), last: AtomicPtr::new(null_mut()) }
    }

    /// Looks for them.
    ///
    /// # Safety
    /// No library comes or goes meanwhile.
    pub unsafe fn find(&self) {
        let first = first_map();
        // SAFETY: only reads what the kernel has passed.
        let loader = unsafe { libc::getauxval(libc::AT_BASE) } as usize;
        // SAFETY: the loader's list, which nothing changes now.
        let last = unsafe { maps_from(first).find(|map| (**map).addr == loader) };
        if let Some(last) = last {
            // Relaxed: stored before anybody asks.
            self.first.store(first.cast_mut(), Ordering::Relaxed);
            self.last.store(last.cast_mut(), Ordering::Relaxed);
        }
    }

    /// Whether the module with this load address is one of them.
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
