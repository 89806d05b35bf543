//! A separate stack, for work that needs more stack than a thread of the program may have.
//!
//! The first thread that uses OpenMP starts the tracer. Its stack may be as small as `PTHREAD_STACK_MIN`, and the
//! runtime uses most of it. The work stays on the same thread, because the runtime identifies it, and because the
//! process may have to be single-threaded.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use crate::os::system;

/// Stack sizes to try: the default size of a thread's stack, because the next tool's code runs there, too. Unused pages
/// take no memory.
const BYTES: [usize; 2] = [8 << 20, 1 << 20];

/// Up to this many bytes of the initial thread's stack may already be in use.
const MAX_USED: usize = 512 << 10;

/// Runs `f` with a large stack: the initial thread's, or else a separate one. Without memory for that, runs `f` on the
/// thread's own stack.
pub(crate) fn with_much<T>(f: impl FnOnce() -> T) -> T {
    if is_initial_stack() || stacks_are_threads() {
        return f();
    }
    let Some(stack) = BYTES.into_iter().find_map(Stack::new) else {
        return f();
    };
    stack.run(f)
}

/// Whether LLVM's or Intel's runtime identifies threads by their stack, as the user can request. On another stack, the
/// runtime would take the thread for a different one, and later the other way round.
fn stacks_are_threads() -> bool {
    let mode = std::env::var_os("KMP_GTID_MODE");
    mode.is_some_and(|mode| ["0", "1"].contains(&mode.to_string_lossy().trim()))
}

/// Whether this is the upper end of the process's initial stack. The initial thread of a forked child has the stack of
/// the thread that forked, and a program may use other stacks, for example with `makecontext`.
fn is_initial_stack() -> bool {
    // SAFETY: only reads what the kernel has passed. The random bytes are above the first frame.
    let top = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
    let here = (&raw const top).addr();
    top.checked_sub(here).is_some_and(|used| used < MAX_USED)
}

struct Stack {
    base: *mut u8,
    bytes: usize,
}

impl Stack {
    fn new(bytes: usize) -> Option<Stack> {
        let base = system::map_private(bytes).ok()?;
        let stack = Stack { base, bytes };
        // The lowest page stays inaccessible, whatever is mapped below it.
        let guard = system::page_bytes();
        system::open_memory(base.wrapping_add(guard), bytes - guard).ok()?;
        Some(stack)
    }

    fn run<F: FnOnce() -> T, T>(&self, f: F) -> T {
        struct Call<F, T> {
            f: Option<F>,
            result: MaybeUninit<thread::Result<T>>,
        }
        unsafe extern "C" fn call<F: FnOnce() -> T, T>(data: *mut c_void) {
            // SAFETY: `run` passes its own `Call`.
            let call = unsafe { &mut *data.cast::<Call<F, T>>() };
            if let Some(f) = call.f.take() {
                call.result.write(catch_unwind(AssertUnwindSafe(f)));
            }
        }
        let mut data = Call { f: Some(f), result: MaybeUninit::uninit() };
        // SAFETY: the function takes this `Call`, and no panic leaves it. The memory is a stack that nothing else uses,
        // and its end is page-aligned.
        unsafe {
            switch((&raw mut data).cast(), call::<F, T>, self.base.wrapping_add(self.bytes));
        }
        // SAFETY: `call` has run, with an `f` in place.
        match unsafe { data.result.assume_init() } {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        system::unmap(self.base, self.bytes);
    }
}

/// Calls `function(data)` on the stack that ends at `end`.
///
/// # Safety
/// No panic leaves the function; the stack is valid, and its end is aligned to 16 bytes.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn switch(data: *mut c_void, function: unsafe extern "C" fn(*mut c_void), end: *mut u8) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    );
}

/// Calls `function(data)` on the stack that ends at `end`.
///
/// # Safety
/// No panic leaves the function; the stack is valid, and its end is aligned to 16 bytes.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn switch(data: *mut c_void, function: unsafe extern "C" fn(*mut c_void), end: *mut u8) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset x29, -16",
        ".cfi_offset x30, -8",
        "mov x29, sp",
        ".cfi_def_cfa_register x29",
        "mov sp, x2",
        "blr x1",
        "mov sp, x29",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa sp, 0",
        "ret",
        ".cfi_endproc",
    );
}

/// Calls `function(data)` on the thread's own stack: switching is not implemented for this CPU architecture.
///
/// # Safety
/// The requirements of `function`.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn switch(data: *mut c_void, function: unsafe extern "C" fn(*mut c_void), _: *mut u8) {
    // SAFETY: by this function's contract.
    unsafe { function(data) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_panics_come_back_from_another_stack() {
        let here = 0_u8;
        let here = (&raw const here).addr();
        // Test threads are not the initial thread.
        let (there, sum) = with_much(|| {
            let numbers = [3_u64; 50_000];
            let numbers = std::hint::black_box(&numbers);
            (numbers.as_ptr().addr(), numbers.iter().sum::<u64>())
        });
        assert_eq!(sum, 150_000);
        assert!(there.abs_diff(here) > BYTES[1] / 4);
        let panic = catch_unwind(|| with_much(|| panic!("within")));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"within"));
    }
}
