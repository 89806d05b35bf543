//! The libgomp whose place another runtime took, and what is asked of it and of that runtime.

use std::ffi::{CStr, CString, c_int, c_void};

use omptrace_runtimes::Vendor;
use omptrace_trace_format::metadata::OfLibgomp;

use crate::os::loader;
use crate::os::threads::lock::Mutex;
use crate::runtime::entry_point::EntryPoint;

/// The view of the libgomp whose place another runtime took, when that started.
static REPLACED: Mutex<Option<OfLibgomp>> = Mutex::new(None);

/// The view of the libgomp whose place another runtime took; `None` where there is none.
pub(crate) fn replaced() -> Option<OfLibgomp> {
    REPLACED.lock().clone()
}

/// Keeps the view of the libgomp whose place another runtime takes.
pub(crate) fn set_replaced(view: Option<OfLibgomp>) {
    *REPLACED.lock() = view;
}

/// Whether the code at `address` is that of the library which observes libgomp, and calls it.
pub(crate) fn is_adapter(address: *const c_void) -> bool {
    let path = loader::library_of(address).unwrap_or_default();
    path.ends_with("/libomptgomp.so")
}

type Ask = extern "C" fn() -> c_int;

/// `omp_get_level` and `omp_get_max_threads` of the runtime in libgomp's place.
static LEVEL: EntryPoint<Ask> = EntryPoint::new();
static MAX_THREADS: EntryPoint<Ask> = EntryPoint::new();

/// Looks up what [`max_threads`] asks: the runtime that holds `address` starts. Later, the loader's lock may be taken.
pub(crate) fn look_up_max_threads(address: *const c_void) {
    let library = loader::library_of(address).and_then(|path| Library::open(&path));
    let function = |name| library.as_ref().and_then(|library| library.typed(name));
    LEVEL.set(function(c"omp_get_level"));
    MAX_THREADS.set(function(c"omp_get_max_threads"));
}

/// How many threads a region of the runtime in libgomp's place would have, asked outside of regions.
pub(crate) fn max_threads() -> Option<i32> {
    let is_outside = LEVEL.get()?() == 0;
    is_outside.then(|| MAX_THREADS.get().map(|ask| ask()))?
}

/// The libgomps that the loader has.
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

/// A library that is loaded.
pub(crate) struct Library(*mut c_void);

impl Library {
    pub(crate) fn open(path: &str) -> Option<Library> {
        let path = CString::new(path).ok()?;
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
        // SAFETY: it loads nothing: the library is there.
        let handle = unsafe { loader::dlopen_of_c_library()(path.as_ptr(), flags) };
        if handle.is_null() {
            loader::forget_error();
            return None;
        }
        Some(Library(handle))
    }

    /// Its function of this name.
    pub(crate) fn function(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is open.
        let found = unsafe { loader::symbol(self.0, name) };
        (!found.is_null()).then_some(found)
    }

    /// The answer of its function of this name, which takes nothing and gives an `int`.
    pub(crate) fn ask(&self, name: &CStr) -> Option<c_int> {
        self.typed(name).map(|function| function())
    }

    fn typed(&self, name: &CStr) -> Option<Ask> {
        let function = self.function(name)?;
        // SAFETY: OpenMP 5.2, section 18: the functions that are asked for have this type.
        Some(unsafe { std::mem::transmute::<*mut c_void, Ask>(function) })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and not used any more.
        unsafe { libc::dlclose(self.0) };
    }
}
