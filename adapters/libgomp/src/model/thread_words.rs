//! Three words of the calling thread's, of initial-exec storage. The first is the pointer to its `Thread`, NULL before its begin. The
//! second says whether it is [`Searching`]. The third is the `Thread` as which it begins.

use core::ffi::c_void;

interpose::thread_words!("omptgomp_thread", 24, *const c_void);

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn get() -> *const c_void {
    let thread;
    // SAFETY: reads the thread's own eight bytes; the linker fills in their offset.
    unsafe {
        core::arch::asm!(
            "mov {t}, qword ptr [rip + omptgomp_thread@GOTTPOFF]",
            "mov {t}, qword ptr fs:[{t}]",
            t = out(reg) thread,
            options(readonly, nostack, preserves_flags)
        );
    }
    thread
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn get() -> *const c_void {
    // SAFETY: the address is valid for as long as the thread runs, and only this thread uses it.
    unsafe { *words() }
}

pub(crate) fn set(thread: *const c_void) {
    // SAFETY: as in `get`.
    unsafe { *words() = thread }
}

pub(crate) fn beginning() -> *mut *const c_void {
    // SAFETY: the third word.
    unsafe { words().add(2) }
}

fn is_searching() -> *mut bool {
    // SAFETY: the second word.
    unsafe { words().add(1).cast() }
}

/// The calling thread looks for a libgomp. What it calls for that may be the program's, and may call libgomp.
pub(crate) struct Searching(());

impl Searching {
    /// Begins; `None` where the thread is searching already.
    pub(crate) fn begin() -> Option<Searching> {
        // SAFETY: the thread's own word.
        let was = unsafe { is_searching().replace(true) };
        (!was).then_some(Searching(()))
    }
}

impl Drop for Searching {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { is_searching().write(false) };
    }
}

/// An address that no other thread has meanwhile.
pub(crate) fn of_thread() -> usize {
    is_searching() as usize
}
