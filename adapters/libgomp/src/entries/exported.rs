//! Exported functions that know where they were called.
//!
//! OMPT requires the return address of the program's call (`codeptr_ra`) and the caller's frame (`enter_frame`). Stable
//! Rust has no access to either, so each exported function begins with a few instructions that pass them on: as two
//! further arguments if these fit into registers ([`entry!`]), otherwise together with all arguments in memory
//! ([`entry_in_memory!`]).

use core::ffi::c_void;

use crate::entries::call::CallSite;
use crate::which_libgomp::functions::{CopyFunction, Outlined};

/// The instructions that append the call site to the given number of arguments and jump to the function `{}`.
#[cfg(target_arch = "x86_64")]
macro_rules! append_call_site {
    () => {
        "mov rdi, [rsp]\n lea rsi, [rsp + 8]\n jmp {}"
    };
    ($a:ident) => {
        "mov rsi, [rsp]\n lea rdx, [rsp + 8]\n jmp {}"
    };
    ($a:ident, $b:ident) => {
        "mov rdx, [rsp]\n lea rcx, [rsp + 8]\n jmp {}"
    };
    ($a:ident, $b:ident, $c:ident) => {
        "mov rcx, [rsp]\n lea r8, [rsp + 8]\n jmp {}"
    };
    ($a:ident, $b:ident, $c:ident, $d:ident) => {
        "mov r8, [rsp]\n lea r9, [rsp + 8]\n jmp {}"
    };
}

/// The instructions that append the call site to the given number of arguments and jump to the function `{}`.
#[cfg(target_arch = "aarch64")]
macro_rules! append_call_site {
    () => {
        "mov x0, x30\n mov x1, sp\n b {}"
    };
    ($a:ident) => {
        "mov x1, x30\n mov x2, sp\n b {}"
    };
    ($a:ident, $b:ident) => {
        "mov x2, x30\n mov x3, sp\n b {}"
    };
    ($a:ident, $b:ident, $c:ident) => {
        "mov x3, x30\n mov x4, sp\n b {}"
    };
    ($a:ident, $b:ident, $c:ident, $d:ident) => {
        "mov x4, x30\n mov x5, sp\n b {}"
    };
}

/// The body of an exported function, in a module that gives the function a name in stack traces and contains `MORE`.
macro_rules! entry_body {
    (fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?, $call:ident => $body:block $(, $more:item)?) => {
        mod $name {
            #[allow(unused_imports, reason = "of what the other functions need")]
            use super::*;

            $($more)?

            pub(super) unsafe extern "C-unwind" fn body(
                $($argument: $type,)*
                return_address: *const core::ffi::c_void,
                frame: *mut core::ffi::c_void,
            ) $(-> $result)? {
                let $call = $crate::entries::call::Call::enter($crate::entries::call::CallSite { return_address, frame });
                $body
            }
        }
    };
}

/// An exported function with at most four arguments. `CALL` is the name of the [`Call`](call::Call) in the body.
macro_rules! entry {
    (fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?, $call:ident => $body:block) => {
        const _: () = {
            // SAFETY: libgomp has a function of this name and signature, which this one replaces.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C-unwind" fn $name($(_: $type),*) $(-> $result)? {
                core::arch::naked_asm!(append_call_site!($($argument),*), sym $name::body)
            }
        };

        entry_body!(fn $name($($argument: $type),*) $(-> $result)?, $call => $body);
    };
}

/// The instructions that jump to another runtime's function, if `{passed_on}` holds its address.
#[cfg(target_arch = "x86_64")]
macro_rules! pass_on {
    () => {
        "mov r11, [rip + {passed_on}]\n test r11, r11\n jz 2f\n jmp r11\n 2:\n "
    };
}

/// The instructions that jump to another runtime's function, if `{passed_on}` holds its address.
#[cfg(target_arch = "aarch64")]
macro_rules! pass_on {
    () => {
        "adrp x16, {passed_on}\n ldr x16, [x16, :lo12:{passed_on}]\n cbz x16, 2f\n br x16\n 2:\n "
    };
}

/// Like [`entry!`], for OpenMP API functions, which other runtimes define, too. If such a runtime follows this library
/// in the search order, it gets the call as the program made it, because it reports the return address itself.
macro_rules! entry_of_openmp {
    (fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?, $call:ident => $body:block) => {
        const _: () = {
            // SAFETY: OpenMP has a function of this name and signature, which this one replaces.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C-unwind" fn $name($(_: $type),*) $(-> $result)? {
                core::arch::naked_asm!(
                    concat!(pass_on!(), append_call_site!($($argument),*)),
                    sym $name::body,
                    passed_on = sym $name::PASSED_ON,
                )
            }
        };

        entry_body!(fn $name($($argument: $type),*) $(-> $result)?, $call => $body, passed_on!($name););
    };
}

/// Defines `PASSED_ON`, the address of another runtime's function to which `NAME` jumps, if there is one.
macro_rules! passed_on {
    ($name:ident) => {
        #[used]
        #[unsafe(link_section = "omptgomp_passed_on")]
        pub(super) static PASSED_ON: $crate::which_libgomp::passed_on::PassedOn =
            $crate::which_libgomp::passed_on::PassedOn::new(interpose::c_name!($name));
    };
}

/// The arguments of a call as the instructions of [`entry_in_memory!`] store them.
#[cfg(target_arch = "x86_64")]
#[repr(C)]
pub(crate) struct Arguments {
    registers: [u64; 6],
    return_address: *const c_void,
    stack: [u64; 0],
}

/// The arguments of a call as the instructions of [`entry_in_memory!`] store them.
#[cfg(target_arch = "aarch64")]
#[repr(C)]
pub(crate) struct Arguments {
    frame_pointer: u64,
    return_address: *const c_void,
    registers: [u64; 8],
    stack: [u64; 0],
}

/// Types that the calling conventions pass in one integer register or in eight bytes of the stack.
///
/// # Safety
/// The value is in the low bytes of the register.
pub(crate) unsafe trait Argument: Copy {}

// SAFETY: integers, pointers and `bool` are in the low bytes (System V ABI of x86_64; AAPCS64).
unsafe impl Argument for bool {}
// SAFETY: as above.
unsafe impl Argument for i32 {}
// SAFETY: as above.
unsafe impl Argument for u32 {}
// SAFETY: as above.
unsafe impl Argument for i64 {}
// SAFETY: as above.
unsafe impl Argument for u64 {}
// SAFETY: as above.
unsafe impl Argument for usize {}
// SAFETY: as above.
unsafe impl<T> Argument for *mut T {}
// SAFETY: as above.
unsafe impl<T> Argument for *const T {}
// SAFETY: as above.
unsafe impl Argument for Outlined {}
// SAFETY: as above; NULL is `None`.
unsafe impl Argument for Option<CopyFunction> {}

impl Arguments {
    /// The argument number `place`, counted from 0.
    ///
    /// # Safety
    /// The caller passed an argument of this type, or the memory there may be read as one.
    #[inline(always)]
    pub(crate) unsafe fn get<T: Argument>(&self, place: usize) -> T {
        const { assert!(size_of::<T>() <= 8 && cfg!(target_endian = "little")) };
        let word: *const u64 = if place < self.registers.len() {
            &raw const self.registers[place]
        } else {
            // SAFETY: arguments beyond the registers are on the caller's stack, eight bytes each.
            unsafe { self.stack.as_ptr().add(place - self.registers.len()) }
        };
        // SAFETY: by the caller's promise and `Argument`'s.
        unsafe { word.cast::<T>().read() }
    }

    /// The call site.
    pub(crate) fn call_site(&self) -> CallSite {
        CallSite { return_address: self.return_address, frame: self.stack.as_ptr().cast_mut().cast() }
    }
}

/// The instructions that store all arguments, call the function `{}` with a pointer to them, and return.
#[cfg(target_arch = "x86_64")]
macro_rules! arguments_in_memory {
    () => {
        ".cfi_startproc\n push r9\n push r8\n push rcx\n push rdx\n push rsi\n push rdi\n .cfi_adjust_cfa_offset 48\n \
         mov rdi, rsp\n sub rsp, 8\n .cfi_adjust_cfa_offset 8\n call {}\n \
         add rsp, 56\n .cfi_adjust_cfa_offset -56\n ret\n .cfi_endproc"
    };
}

/// The instructions that store all arguments, call the function `{}` with a pointer to them, and return.
#[cfg(target_arch = "aarch64")]
macro_rules! arguments_in_memory {
    () => {
        ".cfi_startproc\n stp x29, x30, [sp, #-80]!\n .cfi_adjust_cfa_offset 80\n .cfi_rel_offset x29, 0\n .cfi_rel_offset x30, 8\n \
         mov x29, sp\n stp x0, x1, [sp, #16]\n stp x2, x3, [sp, #32]\n stp x4, x5, [sp, #48]\n stp x6, x7, [sp, #64]\n \
         mov x0, sp\n bl {}\n \
         ldp x29, x30, [sp], #80\n .cfi_adjust_cfa_offset -80\n .cfi_restore x29\n .cfi_restore x30\n ret\n .cfi_endproc"
    };
}

/// Like [`entry!`], for functions with any number of arguments.
macro_rules! entry_in_memory {
    (fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?, $call:ident => $body:block) => {
        const _: () = {
            // SAFETY: libgomp has a function of this name and signature, which this one replaces.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C-unwind" fn $name() $(-> $result)? {
                core::arch::naked_asm!(arguments_in_memory!(), sym $name::body)
            }
        };

        // A module, as in `entry!`.
        mod $name {
            #[allow(unused_imports, reason = "of what the other functions need")]
            use super::*;

            pub(super) unsafe extern "C-unwind" fn body(
                arguments: &$crate::entries::exported::Arguments,
            ) $(-> $result)? {
                let mut place = 0;
                $(
                    // SAFETY: callers pass the arguments of libgomp's signature. Old callers of GOMP_task pass fewer;
                    // then words of the caller's stack are read, as libgomp does, too.
                    let $argument: $type = unsafe { arguments.get(place) };
                    place += 1;
                )*
                let _ = place;
                let $call = $crate::entries::call::Call::enter(arguments.call_site());
                $body
            }
        }
    };
}
