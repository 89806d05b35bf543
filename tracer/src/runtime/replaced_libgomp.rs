//! Queries of a libgomp that another runtime replaces, and of that runtime.

use std::ffi::{CStr, CString, c_int, c_void};

use omptrace_runtimes::Vendor;
use omptrace_trace_format::metadata::OfLibgomp;

use crate::os::loader;
use crate::os::threads::lock::Mutex;
use crate::runtime::entry_point::EntryPoint;

/// The view of the replaced libgomp when the other runtime started.
static REPLACED: Mutex<Option<OfLibgomp>> = Mutex::new(None);

/// The view of the replaced libgomp; `None` if libgomp is not replaced.
pub(crate) fn replaced() -> Option<OfLibgomp> {
    REPLACED.lock().clone()
}

/// Stores the view of the replaced libgomp.
pub(crate) fn set_replaced(view: Option<OfLibgomp>) {
    *REPLACED.lock() = view;
}

/// Whether `address` is in the code of the libgomp adapter, which observes libgomp and calls it.
pub(crate) fn is_adapter(address: *const c_void) -> bool {
    let path = loader::library_of(address).unwrap_or_default();
    path.ends_with("/libomptgomp.so")
}

type Ask = extern "C" fn() -> c_int;

/// `omp_get_level` and `omp_get_max_threads` of the runtime that replaces libgomp.
static LEVEL: EntryPoint<Ask> = EntryPoint::new();
static MAX_THREADS: EntryPoint<Ask> = EntryPoint::new();

/// Looks up the functions for [`max_threads`], when the runtime that contains `address` starts. Later, the loader's
/// lock may be held.
pub(crate) fn look_up_max_threads(address: *const c_void) {
    let library = loader::library_of(address).and_then(|path| Library::open(&path));
    let function = |name| library.as_ref().and_then(|library| library.typed(name));
    LEVEL.set(function(c"omp_get_level"));
    MAX_THREADS.set(function(c"omp_get_max_threads"));
}

/// `omp_get_max_threads` of the runtime that replaces libgomp, outside of parallel regions.
pub(crate) fn max_threads() -> Option<i32> {
    let is_outside = LEVEL.get()?() == 0;
    is_outside.then(|| MAX_THREADS.get().map(|ask| ask()))?
}

/// The paths of all loaded libgomps.
pub(crate) fn loaded() -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    loader::each_module(|info, _| {
        if !info.dlpi_name.is_null() {
            // SAFETY: the loader's names are C strings.
            let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy();
            if Vendor::Gnu.makes(name.as_bytes()) {
                found.push(name.into_owned());
            }
        }
        false
    });
    found
}

/// A library that is already loaded.
pub(crate) struct Library(*mut c_void);

impl Library {
    pub(crate) fn open(path: &str) -> Option<Library> {
        let path = CString::new(path).ok()?;
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        // SAFETY: loads nothing, because the library is already loaded.
        let handle = unsafe { loader::dlopen_of_c_library()(path.as_ptr(), flags) };
        if handle.is_null() {
            loader::forget_error();
            return None;
        }
        Some(Library(handle))
    }

    /// The address of the library's function `name`.
    pub(crate) fn function(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is open.
        let found = unsafe { loader::symbol(self.0, name) };
        (!found.is_null()).then_some(found)
    }

    /// Calls the library's function `name`, which has no parameters and returns an `int`.
    pub(crate) fn ask(&self, name: &CStr) -> Option<c_int> {
        self.typed(name).map(|function| function())
    }

    fn typed(&self, name: &CStr) -> Option<Ask> {
        let function = self.function(name)?;
        // SAFETY: OpenMP 5.2, section 18: the queried functions have this type.
        Some(unsafe { std::mem::transmute::<*mut c_void, Ask>(function) })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and no longer used.
        unsafe { libc::dlclose(self.0) };
    }
}
