//! Exported functions that take the place of another library's function, and go on there as if the program had called it.
//! Whoever is loaded into programs by `LD_PRELOAD` also asks the loader without its locks ([`find_object`], [`started_with`]), and reads
//! what libraries define ([`elf`]). It has memory ([`memory`]) and system calls ([`system_call`]) that no other library can replace.
//!
//! The loader and libgomp look at the return address of their caller. So such a function must not *call* the one that it
//! replaces. It keeps all registers that may hold arguments, asks a Rust function where to go on, and jumps there.

pub mod elf;
pub mod find_object;
pub mod memory;
pub mod modules;
pub mod started_with;
pub mod system_call;
mod thread_words;

use std::ffi::{CStr, c_void};
use std::mem::transmute_copy;

/// The function of this name in the libraries behind the one that this is linked into (`RTLD_NEXT`).
///
/// # Safety
/// `F` is the type of a function pointer, and a function of this name has this type.
pub unsafe fn next<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: a constant of the loader.
    let next = unsafe { symbol(libc::RTLD_NEXT, name) };
    // SAFETY: not null, and of this type by this function's contract.
    (!next.is_null()).then(|| unsafe { transmute_copy::<*mut c_void, F>(&next) })
}

/// `dlsym`, which takes the loader's lock. A symbol that is not there leaves no error for the program's `dlerror`.
///
/// # Safety
/// `scope` is a handle of the loader, or one of its constants.
pub unsafe fn symbol(scope: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: by this function's contract; it only looks the symbol up.
    let found = unsafe { libc::dlsym(scope, name.as_ptr()) };
    if found.is_null() {
        forget_error();
    }
    found
}

/// Leaves no error of ours for the program's `dlerror`. The first call takes the text, the second one frees it.
pub fn forget_error() {
    // SAFETY: no arguments; the texts are not read.
    unsafe {
        libc::dlerror();
        libc::dlerror();
    }
}

/// The name of an item as C has it, in a constant.
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

/// Defines an exported function that goes on where `choose` says:
///
/// ```text
/// pub(crate) unsafe extern "C" fn name(arguments) -> result, goes on in choose        choose(arguments)
/// unsafe extern "C" fn name(), goes on in choose(number)                              choose(return address, number)
/// ```
///
/// `choose` returns the address of a function, which finds the registers and the stack as the caller left them.
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
        // SAFETY: a library that the program is linked to has a function of this name and signature; all that the caller
        // passes reaches it unchanged.
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        $visibility unsafe extern $abi fn $name($($parameters)*) $($result)* {
            ::core::arch::naked_asm!($crate::ask_and_jump!($arguments), sym $choose)
        }
    };
}

/// The instructions that call `{}` and jump to what it returns, with the caller's arguments. `$arguments` replaces those
/// of the call by others.
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

/// The instructions that call `{}` and jump to what it returns, with the caller's arguments. `$arguments` replaces those
/// of the call by others.
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

/// Makes the program's return address and a number the arguments of the call.
#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[macro_export]
macro_rules! return_address_and {
    ($number:literal) => {
        concat!("mov rdi, [rsp + 56]\n mov esi, ", $number, "\n ")
    };
}

/// Makes the program's return address and a number the arguments of the call.
#[cfg(target_arch = "aarch64")]
#[doc(hidden)]
#[macro_export]
macro_rules! return_address_and {
    ($number:literal) => {
        concat!("mov x0, x30\n mov x1, #", $number, "\n ")
    };
}
