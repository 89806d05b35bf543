//! The libraries that the process has loaded.
//!
//! A thread that calls OpenMP must not wait for the loader. Another thread may hold the loader's lock while it runs a
//! library's constructor that waits for this thread. So this module does not use `dladdr`, `dlsym` or `dlopen`.
//! `_dl_find_object` (glibc 2.35) takes no lock, and `dl_iterate_phdr` takes one that is not held during constructors.

use core::ffi::{CStr, c_char, c_void};
use core::ops::Range;
use core::ptr::null_mut;
use core::{mem, ptr};
use std::sync::atomic::{AtomicPtr, Ordering};

pub(crate) use interpose::find_object::Mark;

use interpose::elf::{self, Library, LinkMap, text};
use interpose::find_object::FindObject;
use interpose::modules::{self, Iterate};

/// A library and its address range.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) library: Library,
    pub(crate) place: Range<usize>,
    /// The loader's name of the library, valid while it is loaded.
    pub(crate) name: *const c_char,
}

impl Module {
    /// The library that contains this code address; `None` for code of a just-in-time compiler.
    pub(crate) fn of_code(address: usize) -> Option<Module> {
        if let Some(mark) = FIND_OBJECT.at(address) {
            return described(mark?);
        }
        let mut found = None;
        each(|module, _| {
            if found.is_none() && module.place.contains(&address) {
                found = Some(module.clone());
            }
        });
        found
    }

    /// The library's name, which is empty for the program itself.
    pub(crate) fn name(&self) -> &CStr {
        if self.name.is_null() {
            return c"";
        }
        // SAFETY: a string of the loader.
        unsafe { text(self.name) }
    }
}

/// Finds libraries without a lock, if the C library supports this. Unknown before [`prepare`].
static FIND_OBJECT: FindObject = FindObject::unknown();

/// The C library's `dl_iterate_phdr`: the program may define its own, which uses OpenMP. NULL before [`prepare`].
static ITERATE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The next `pthread_key_delete` after this library in the search order. NULL before [`prepare`].
static DELETE_KEY: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// See [`DELETE_KEY`].
pub(crate) fn delete_key() -> *const c_void {
    DELETE_KEY.load(Ordering::Relaxed)
}

/// Looks up the loader's functions when the process starts: no library is loaded or removed meanwhile. False if this
/// library is in another namespace than the program.
pub(crate) fn prepare() -> bool {
    let (mut iterate, mut find, mut delete_key, mut is_here) = (0, 0, None, false);
    // SAFETY: the loader's list, which does not change now.
    for map in unsafe { elf::maps_from(elf::first_map()) } {
        // SAFETY: as above.
        let library = unsafe { Library::of_map(map) };
        if library.is_own() {
            is_here = true;
        } else if let Some(symbols) = library.symbols() {
            // The C library follows all libraries that may replace its functions.
            iterate = symbols.function(c"dl_iterate_phdr").unwrap_or(iterate);
            find = symbols.function(c"_dl_find_object").unwrap_or(find);
            if is_here {
                delete_key = delete_key.or_else(|| symbols.function(c"pthread_key_delete"));
            }
        }
    }
    if !is_here {
        return false;
    }
    // Relaxed: these functions exist since the process started.
    DELETE_KEY.store(ptr::with_exposed_provenance_mut(delete_key.unwrap_or(0)), Ordering::Relaxed);
    ITERATE.store(ptr::with_exposed_provenance_mut(iterate), Ordering::Relaxed);
    // SAFETY: 0, or the C library's function.
    unsafe { FIND_OBJECT.set(ptr::with_exposed_provenance_mut(find)) };
    true
}

/// The loaded library with this mark.
fn described(mark: Mark) -> Option<Module> {
    let map = mark.link_map as *const LinkMap;
    if map.is_null() {
        return None;
    }
    // SAFETY: the loader's description of a loaded library.
    let (library, name) = unsafe { (Library::of_map(map), (*map).name) };
    Some(Module { library, place: mark.start..mark.end, name })
}

/// The mark of the library at an address, if there is a library; `None` if this cannot be determined without a lock.
pub(crate) fn mark_at(address: usize) -> Option<Option<Mark>> {
    FIND_OBJECT.at(address)
}

/// Calls `f` for each library, in the order of loading. `f` must not load libraries: the loader holds a lock meanwhile.
pub(crate) fn each(mut f: impl FnMut(&Module, &[libc::Elf64_Phdr])) {
    let iterate = ITERATE.load(Ordering::Relaxed);
    // SAFETY: NULL, or the C library's function with this name and type.
    let Some(iterate) = (unsafe { mem::transmute::<*mut c_void, Option<Iterate>>(iterate) }) else {
        return;
    };
    let visit = |info: &libc::dl_phdr_info, headers: &[libc::Elf64_Phdr]| {
        let base = info.dlpi_addr as usize;
        let (mut start, mut end) = (usize::MAX, 0);
        for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD) {
            let begin = base.wrapping_add(header.p_vaddr as usize);
            start = start.min(begin);
            end = end.max(begin.wrapping_add(header.p_memsz as usize));
        }
        // SAFETY: the loader keeps the library loaded while it calls this function.
        if let Some(library) = unsafe { Library::of_headers(base, headers) } {
            let (place, name) = (start..end, info.dlpi_name);
            f(&Module { library, place, name }, headers);
        }
        false
    };
    // SAFETY: the C library's function.
    unsafe { modules::each(iterate, visit) };
}
