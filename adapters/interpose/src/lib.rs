//! Exported functions that replace a function of another library and then jump to it as if the program had called it.
//! Libraries loaded by `LD_PRELOAD` also use the crate to query the loader without its locks ([`find_object`],
//! [`started_with`]) and to read the symbols of libraries ([`elf`]). Its memory ([`memory`]) and system calls
//! ([`system_call`]) cannot be replaced by other libraries.
//!
//! The loader and libgomp look at the return address of their caller. So such a function must not *call* the function
//! that it replaces. It preserves all registers that may hold arguments, calls a Rust function that returns the target
//! address, and jumps to it.

pub mod elf;
pub mod find_object;
pub mod memory;
pub mod modules;
mod planted;
pub mod started_with;
pub mod system_call;
mod thread_words;

use std::ffi::{CStr, c_void};
use std::mem::transmute_copy;

/// The function with this name in the libraries that follow this one in the search order (`RTLD_NEXT`).
///
/// # Safety
/// `F` is a function pointer type, and functions with this name have this type.
pub unsafe fn next<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: a constant of the loader.
    let next = unsafe { symbol(libc::RTLD_NEXT, name) };
    // SAFETY: not null, and of this type by the caller's promise.
    (!next.is_null()).then(|| unsafe { transmute_copy::<*mut c_void, F>(&next) })
}

/// Calls `dlsym`, which takes the loader's lock. Clears the error if the symbol is not found, so that the program's
/// `dlerror` does not return it.
///
/// # Safety
/// `scope` is a handle of the loader, or one of its constants.
pub unsafe fn symbol(scope: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: by the caller's promise; the call only looks the symbol up.
    let found = unsafe { libc::dlsym(scope, name.as_ptr()) };
    if found.is_null() {
        forget_error();
    }
    found
}

/// Clears this library's error, so that the program's `dlerror` does not return it. The first call takes the text, the
/// second one frees it.
pub fn forget_error() {
    // SAFETY: no arguments; the texts are not read.
    unsafe {
        libc::dlerror();
        libc::dlerror();
    }
}

/// The C name of an item as a constant string.
#[macro_export]
macro_rules! c_name {
    ($name:ident) => {
        const {
            match ::core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name holds no NUL"),
            }
        }
    };
}

/// Defines an exported function that continues at the address that `choose` returns:
///
/// ```text
/// pub(crate) unsafe extern "C" fn name(arguments) -> result, goes on in choose        choose(arguments)
/// unsafe extern "C" fn name(), goes on in choose(number)                              choose(return address, number)
/// ```
///
/// The function at this address finds the registers and the stack as the caller left them.
#[macro_export]
macro_rules! interpose {
    ($(#[$attribute:meta])* $visibility:vis unsafe extern $abi:literal fn $name:ident($($argument:ident: $type:ty),+ $(,)?)
        $(-> $result:ty)?, goes on in $choose:ident) => {
        $crate::interpose!(@ [$(#[$attribute])*] [$visibility] $abi $name [$(_: $type),+] [$(-> $result)?] $choose "");
    };
    ($(#[$attribute:meta])* $visibility:vis unsafe extern $abi:literal fn $name:ident(),
        goes on in $choose:ident($number:literal)) => {
        $crate::interpose!(@ [$(#[$attribute])*] [$visibility] $abi $name [] [] $choose $crate::return_address_and!($number));
    };
    (@ [$($attribute:tt)*] [$visibility:vis] $abi:literal $name:ident [$($parameters:tt)*] [$($result:tt)*] $choose:ident
        $arguments:expr) => {
        $($attribute)*
        // SAFETY: a library that the program is linked to has a function with this name and signature, and gets the
        // caller's arguments unchanged.
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        $visibility unsafe extern $abi fn $name($($parameters)*) $($result)* {
            ::core::arch::naked_asm!($crate::ask_and_jump!($arguments), sym $choose)
        }
    };
}

/// The instructions that call `{}` and jump to the address that it returns, with the caller's arguments. `$arguments`
/// are instructions that set other arguments for the call of `{}`.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[macro_export]
macro_rules! ask_and_jump {
    ($arguments:expr) => {
        concat!(
            ".cfi_startproc\n push rdi\n push rsi\n push rdx\n push rcx\n push r8\n push r9\n push rax\n .cfi_adjust_cfa_offset 56\n ",
            $arguments,
            "call {}\n mov r11, rax\n \
             pop rax\n pop r9\n pop r8\n pop rcx\n pop rdx\n pop rsi\n pop rdi\n .cfi_adjust_cfa_offset -56\n jmp r11\n .cfi_endproc"
        )
    };
}

/// The instructions that call `{}` and jump to the address that it returns, with the caller's arguments. `$arguments`
/// are instructions that set other arguments for the call of `{}`.
#[cfg(target_arch = "aarch64")]
#[doc(hidden)]
#[macro_export]
macro_rules! ask_and_jump {
    ($arguments:expr) => {
        concat!(
            ".cfi_startproc\n stp x29, x30, [sp, #-80]!\n .cfi_adjust_cfa_offset 80\n .cfi_rel_offset x29, 0\n .cfi_rel_offset x30, 8\n \
             stp x0, x1, [sp, #16]\n stp x2, x3, [sp, #32]\n stp x4, x5, [sp, #48]\n stp x6, x7, [sp, #64]\n ",
            $arguments,
            "bl {}\n mov x16, x0\n \
             ldp x0, x1, [sp, #16]\n ldp x2, x3, [sp, #32]\n ldp x4, x5, [sp, #48]\n ldp x6, x7, [sp, #64]\n \
             ldp x29, x30, [sp], #80\n .cfi_adjust_cfa_offset -80\n .cfi_restore x29\n .cfi_restore x30\n br x16\n .cfi_endproc"
        )
    };
}

/// Makes the return address in the program and a number the arguments of the call.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[macro_export]
macro_rules! return_address_and {
    ($number:literal) => {
        concat!("mov rdi, [rsp + 56]\n mov esi, ", $number, "\n ")
    };
}

/// Makes the return address in the program and a number the arguments of the call.
#[cfg(target_arch = "aarch64")]
#[doc(hidden)]
#[macro_export]
macro_rules! return_address_and {
    ($number:literal) => {
        concat!("mov x0, x30\n mov x1, #", $number, "\n ")
    };
}
