//! Calls that the loader binds past preloaded libraries: through `dlopen` with `RTLD_DEEPBIND`, and through `dlsym`.
//!
//! `LD_AUDIT` may also name this library. The loader then loads a second copy into a namespace of its own and calls it
//! for each binding. If the target is a libgomp, the copy returns the function of the preloaded copy instead
//! (`rtld-audit(7)`). This code does not allocate, lock or call the loader.

use core::ffi::{CStr, c_char, c_long, c_uint};
use core::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use omptrace_runtimes::Vendor;

use interpose::elf::{Library, LinkMap};

/// The supported version of the auditing interface.
const INTERFACE: c_uint = 1;
/// Requests calls for bindings to and from the library (`LA_FLG_BINDTO`, `LA_FLG_BINDFROM`).
const BINDINGS: c_uint = 1 | 2;
/// Requests no notifications of calls (`LA_SYMB_NOPLTENTER`, `LA_SYMB_NOPLTEXIT`).
const NO_CALLS: c_uint = 1 | 2;
/// The program's namespace.
const OF_PROGRAM: c_long = 0;

/// The preloaded copy.
static PRELOADED: AtomicPtr<LinkMap> = AtomicPtr::new(ptr::null_mut());

/// The kind of each library, which the loader stores with the library for the auditor.
mod kind {
    pub(crate) const OTHER: usize = 0;
    pub(crate) const LIBGOMP: usize = 1;
    pub(crate) const ADAPTER: usize = 2;
}

fn kind_of(path: &CStr) -> usize {
    let path = path.to_bytes();
    if path.rsplit(|byte| *byte == b'/').next() == Some(b"libomptgomp.so") {
        kind::ADAPTER
    } else if Vendor::Gnu.makes(path) {
        kind::LIBGOMP
    } else {
        kind::OTHER
    }
}

#[unsafe(no_mangle)]
extern "C" fn la_version(_: c_uint) -> c_uint {
    INTERFACE
}

#[unsafe(no_mangle)]
unsafe extern "C" fn la_objopen(map: *mut LinkMap, namespace: c_long, cookie: *mut usize) -> c_uint {
    // SAFETY: the loader's description of a library with its name, and a word for the auditor.
    let kind = unsafe {
        let kind = match namespace {
            OF_PROGRAM => kind_of(CStr::from_ptr((*map).name)),
            _ => kind::OTHER,
        };
        cookie.write(kind);
        kind
    };
    if kind == kind::ADAPTER {
        // Release: pairs with the acquire in `la_symbind64`.
        PRELOADED.store(map, Ordering::Release);
    }
    match namespace {
        OF_PROGRAM => BINDINGS,
        _ => 0,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn la_symbind64(
    symbol: *mut libc::Elf64_Sym,
    _: c_uint,
    caller: *mut usize,
    definer: *mut usize,
    flags: *mut c_uint,
    name: *const c_char,
) -> usize {
    // SAFETY: the loader's symbol, whose value is its address by now, the auditor's words, and the loader's flags and
    // name.
    let (address, caller, definer, name) = unsafe {
        flags.write(flags.read() | NO_CALLS);
        let address = (*symbol).st_value as usize;
        (address, caller.read(), definer.read(), CStr::from_ptr(name))
    };
    // Acquire: pairs with the release in `la_objopen`.
    let preloaded = PRELOADED.load(Ordering::Acquire);
    if definer != kind::LIBGOMP || caller != kind::OTHER || preloaded.is_null() {
        return address;
    }
    // SAFETY: a preloaded library is never unloaded.
    let adapter = unsafe { Library::of_map(preloaded) };
    adapter.function(name).unwrap_or(address)
}
