//! Exported functions that know where they were called from.
//!
//! Stable Rust has no access to a function's return address, so each exported function begins with a few instructions that make it one
//! more argument.

/// The instructions that go on in the function `{}` with the return address behind the arguments listed.
#[cfg(target_arch = "x86_64")]
macro_rules! append_return_address {
    ($a:ident) => {
        "mov rsi, [rsp]\n jmp {}"
    };
    ($a:ident, $b:ident) => {
        "mov rdx, [rsp]\n jmp {}"
    };
    ($a:ident, $b:ident, $c:ident) => {
        "mov rcx, [rsp]\n jmp {}"
    };
    ($a:ident, $b:ident, $c:ident, $d:ident) => {
        "mov r8, [rsp]\n jmp {}"
    };
    ($a:ident, $b:ident, $c:ident, $d:ident, $e:ident) => {
        "mov r9, [rsp]\n jmp {}"
    };
    ($a:ident, $b:ident, $c:ident, $d:ident, $e:ident, $f:ident) => {
        ".cfi_startproc\n push [rsp]\n .cfi_adjust_cfa_offset 8\n call {}\n add rsp, 8\n .cfi_adjust_cfa_offset -8\n ret\n \
         .cfi_endproc"
    };
}

/// The instructions that go on in the function `{}` with the return address behind the arguments listed.
#[cfg(target_arch = "aarch64")]
macro_rules! append_return_address {
    ($a:ident) => {
        "mov x1, x30\n b {}"
    };
    ($a:ident, $b:ident) => {
        "mov x2, x30\n b {}"
    };
    ($a:ident, $b:ident, $c:ident) => {
        "mov x3, x30\n b {}"
    };
    ($a:ident, $b:ident, $c:ident, $d:ident) => {
        "mov x4, x30\n b {}"
    };
    ($a:ident, $b:ident, $c:ident, $d:ident, $e:ident) => {
        "mov x5, x30\n b {}"
    };
    ($a:ident, $b:ident, $c:ident, $d:ident, $e:ident, $f:ident) => {
        "mov x6, x30\n b {}"
    };
}

/// Defines exported functions, a row each:
///
/// ```text
/// fn name(arguments) -> result: kind of object                         each call may wait
/// fn name(arguments) -> result: kind of object, locks by tries         tries(object) returns EBUSY where it would wait
/// fn name(arguments) -> result: kind of object, takes by tries         tries(object) returns -1 where it would wait
/// ```
macro_rules! waits {
    ($(fn $name:ident($($argument:ident: $type:ty),+) -> $result:ty: $kind:ident of $object:expr $(, $how:ident by $tries:ident)?;)*) => {
        /// Where all of them go on.
        pub(crate) static ALL: &[&Next] = &[$(&$name::NEXT),*];

        $(
            const _: () = {
                // SAFETY: the C library has a function of this name and signature, which this one replaces.
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                unsafe extern "C-unwind" fn $name($(_: $type),+) -> $result {
                    core::arch::naked_asm!(append_return_address!($($argument),+), sym $name::body)
                }
            };

            mod $name {
                #[allow(unused_imports, reason = "of what the other functions need")]
                use super::*;

                pub(super) static NEXT: Next = Next::of(interpose::c_name!($name), waits!(@tries $($tries)?));

                pub(super) unsafe extern "C-unwind" fn body($($argument: $type,)+ return_address: *const c_void) -> $result {
                    $(if let Some(result) = $how(NEXT.trying(), $object) {
                        return result;
                    })?
                    // SAFETY: the program's own call.
                    unsafe { go_on($($argument,)+ return_address) }
                }

                /// Apart, so that a lock that is free saves no registers.
                #[inline(never)]
                unsafe extern "C-unwind" fn go_on($($argument: $type,)+ return_address: *const c_void) -> $result {
                    let address = NEXT.address();
                    if address == 0 {
                        return missing() as $result;
                    }
                    // SAFETY: the next function of this name, which has this signature.
                    let next = unsafe {
                        transmute::<usize, unsafe extern "C-unwind" fn($($type),+) -> $result>(address)
                    };
                    let call = Call { kind: WaitKind::$kind, object: waits!(@object $object), return_address };
                    // SAFETY: the program's own call.
                    wait(call, || unsafe { next($($argument),+) })
                }
            }
        )*
    };
    (@tries) => { None };
    (@tries $tries:ident) => { Some(interpose::c_name!($tries)) };
    (@object $object:expr) => { $object as usize as u64 };
}
