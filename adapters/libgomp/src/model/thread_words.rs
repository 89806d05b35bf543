//! Three thread-local words of the initial-exec model: the pointer to the thread's `Thread`, NULL before the thread is
//! registered; whether the thread is [`Searching`]; and the pointer to its `Thread` while it is being registered.

use core::ffi::c_void;

interpose::thread_words!("omptgomp_thread", 24, *const c_void);

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn get() -> *const c_void {
    let thread;
    // SAFETY: reads eight bytes of the thread's own; the linker fills in their offset.
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
    // SAFETY: the address is valid while the thread runs, and only this thread uses it.
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

/// The calling thread searches for a libgomp. The search may call functions that the program replaces, which may call
/// libgomp.
pub(crate) struct Searching(());

impl Searching {
    /// Begins a search; `None` if the thread is already searching.
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

/// An address that identifies the calling thread among the running ones.
pub(crate) fn of_thread() -> usize {
    is_searching() as usize
}
