//! The library as a part of the program from its start, in the scope that all libraries share. `omptrace record` preloads it
//! for runtimes that look for no tool. The library looks for such runtimes when it is loaded, and whenever the program loads
//! a library later.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::annotations;
use crate::dialects::old::collector;
use crate::dialects::prepared;
use crate::entry::isolated::{self, Way};
use crate::entry::libgomp_threads;
use crate::os::loader::{self, Dlopen, dlopen_of_c_library, global_scope};
use crate::os::threads::thread_word;
use crate::os::time::clock;
use crate::{calls, waits};

/// See [`is_in_global_scope`]; as it was when the library was loaded.
static IS_GLOBAL: AtomicBool = AtomicBool::new(false);

/// True where the library is what other libraries find, as one that is preloaded.
pub(crate) fn is_global() -> bool {
    // Relaxed: stored by the constructor.
    IS_GLOBAL.load(Ordering::Relaxed)
}

/// The loader calls it when the library is loaded.
#[unsafe(link_section = ".init_array")]
#[used]
static CONSTRUCTOR: extern "C" fn() = {
    extern "C" fn constructor() {
        if !loader::is_running() {
            return;
        }
        thread_word::prepare();
        loader::prepare();
        libgomp_threads::prepare();
        clock::find_offset();
        isolated::begin();
        waits::connect();
        calls::connect(prepared::begin_without_runtime);
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        annotations::connect(prepared::begin_without_runtime);
        // A runtime that has loaded the library as a tool will call it.
        if is_in_global_scope() {
            // Relaxed: read when the process ends.
            IS_GLOBAL.store(true, Ordering::Relaxed);
            collector::look_in(global_scope());
        }
        // What was not found by other ways left a text behind.
        loader::forget_error();
    }
    constructor
};

/// Whether symbols of this library are what other libraries find.
fn is_in_global_scope() -> bool {
    // SAFETY: a handle of the loader.
    let found = unsafe { loader::symbol(global_scope(), c"ompt_start_tool") };
    // Not by the function's address, which is that of the first function of the name for this library, too.
    let own = loader::module_of((&raw const IS_GLOBAL).cast());
    own.is_some() && own == loader::module_of(found)
}

interpose::interpose! {
    /// Takes the place of the C library's `dlopen` where this library is preloaded, and calls that.
    ///
    /// The C library looks for a name without a folder in the `DT_RUNPATH` of its caller. So such a call must not come from
    /// here: it goes on in the C library as if it had gone there at once. The next call of `dlopen` looks at what this one
    /// loaded.
    ///
    /// # Safety
    /// Like the C library's.
    pub(crate) unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void, goes on in choose
}

/// The function that a call of `dlopen` goes on in.
unsafe extern "C" fn choose(name: *const c_char, flags: c_int) -> Dlopen {
    // SAFETY: the program's argument is null or a C string.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    if flags & libc::RTLD_DEEPBIND != 0 {
        isolated::note(name, Way::DeepBind);
    }
    // Behind LLVM's runtime in libgomp's place, nothing is looked for.
    if !is_in_global_scope() {
        return dlopen_of_c_library();
    }
    // Of a call before this one, which could not be looked at.
    collector::look_in(global_scope());
    let has_folder = name.is_some_and(|name| name.to_bytes().contains(&b'/'));
    // `$ORIGIN` is the caller's folder.
    let names_caller = name.is_some_and(|name| name.to_bytes().contains(&b'$'));
    if has_folder && !names_caller { load_and_look } else { dlopen_of_c_library() }
}

unsafe extern "C" fn load_and_look(name: *const c_char, flags: c_int) -> *mut c_void {
    // SAFETY: the program's own call.
    let handle = unsafe { dlopen_of_c_library()(name, flags) };
    if !handle.is_null() {
        collector::look_in(handle);
    }
    handle
}
