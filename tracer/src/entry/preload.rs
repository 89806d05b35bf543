//! The library when it is preloaded, and thus in the program's global scope from the start. `omptrace record` preloads
//! it for runtimes that do not look for tools. The library looks for such runtimes when it is loaded, and whenever the
//! program loads another library.

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

/// The result of [`is_in_global_scope`] when the library was loaded.
static IS_GLOBAL: AtomicBool = AtomicBool::new(false);

/// Whether other libraries find this library's symbols, as they do if it is preloaded.
pub(crate) fn is_global() -> bool {
    // Relaxed: stored by the constructor.
    IS_GLOBAL.load(Ordering::Relaxed)
}

/// Called by the loader when the library is loaded.
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
        // If a runtime has loaded the library as a tool, that runtime will call it.
        if is_in_global_scope() {
            // Relaxed: read when the process ends.
            IS_GLOBAL.store(true, Ordering::Relaxed);
            collector::look_in(global_scope());
        }
        // Failed lookups left an error text behind.
        loader::forget_error();
    }
    constructor
};

/// Whether other libraries find this library's symbols.
fn is_in_global_scope() -> bool {
    // SAFETY: a handle of the loader.
    let found = unsafe { loader::symbol(global_scope(), c"ompt_start_tool") };
    // Compares modules, not function addresses: for this library, too, the name refers to the first function of that
    // name.
    let own = loader::module_of((&raw const IS_GLOBAL).cast());
    own.is_some() && own == loader::module_of(found)
}

interpose::interpose! {
    /// Replaces the C library's `dlopen` if this library is preloaded, and calls it.
    ///
    /// For a name without a directory, the C library searches the `DT_RUNPATH` of its caller. Such a call must not come
    /// from this library: it jumps to the C library, as if the program had called that directly. The libraries that it
    /// loads are searched at the next call of `dlopen`.
    ///
    /// # Safety
    /// Like the C library's.
    pub(crate) unsafe extern "C" fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void, goes on in choose
}

/// The function in which a call of `dlopen` continues.
unsafe extern "C" fn choose(name: *const c_char, flags: c_int) -> Dlopen {
    // SAFETY: the program's argument is null or a C string.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    if flags & libc::RTLD_DEEPBIND != 0 {
        isolated::note(name, Way::DeepBind);
    }
    // If LLVM's runtime replaces libgomp, no other runtime is looked for.
    if !is_in_global_scope() {
        return dlopen_of_c_library();
    }
    // Search the libraries of a previous call that jumped to the C library.
    collector::look_in(global_scope());
    let has_folder = name.is_some_and(|name| name.to_bytes().contains(&b'/'));
    // `$ORIGIN` is the caller's directory.
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
