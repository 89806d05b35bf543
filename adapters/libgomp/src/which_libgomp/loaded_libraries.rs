//! The libraries that the process has loaded.
//!
//! A thread that calls OpenMP must not wait for the loader. Another one may hold the loader's lock: it runs a library's
//! constructor, which waits for this thread. So nothing here is asked of `dladdr`, `dlsym` or `dlopen`. `_dl_find_object` (glibc
//! 2.35) takes no lock. `dl_iterate_phdr` takes one that no constructor's thread holds.

use core::ffi::{CStr, c_char, c_void};
use core::ops::Range;
use core::ptr::null_mut;
use core::{mem, ptr};
use std::sync::atomic::{AtomicPtr, Ordering};

pub(crate) use interpose::find_object::Mark;

use interpose::elf::{self, Library, LinkMap, text};
use interpose::find_object::FindObject;
use interpose::modules::{self, Iterate};

/// A library, and where it lies.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) library: Library,
    pub(crate) place: Range<usize>,
    /// The loader's name of it, for as long as it is loaded.
    pub(crate) name: *const c_char,
}

impl Module {
    /// Where the library that this code belongs to lies; `None` for a just-in-time compiler's.
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

    /// The name, which is empty for the program itself.
    pub(crate) fn name(&self) -> &CStr {
        if self.name.is_null() {
            return c"";
        }
        // SAFETY: a string of the loader's.
        unsafe { text(self.name) }
    }
}

/// Without a lock, where the C library can be asked so. Unknown before [`prepare`].
static FIND_OBJECT: FindObject = FindObject::unknown();

/// The C library's `dl_iterate_phdr`: the program may have one of its own, which uses OpenMP. NULL before [`prepare`].
static ITERATE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The next `pthread_key_delete` behind this library. NULL before [`prepare`].
static DELETE_KEY: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// See [`DELETE_KEY`].
pub(crate) fn delete_key() -> *const c_void {
    DELETE_KEY.load(Ordering::Relaxed)
}

/// Looks for the loader's functions, when the process begins: no library comes or goes meanwhile. False where this
/// library is in another namespace than the program.
pub(crate) fn prepare() -> bool {
    let (mut iterate, mut find, mut delete_key, mut is_here) = (0, 0, None, false);
    // SAFETY: the loader's list, which nothing changes now.
    for map in unsafe { elf::maps_from(elf::first_map()) } {
        // SAFETY: as above.
        let library = unsafe { Library::of_map(map) };
        if library.is_own() {
            is_here = true;
        } else if let Some(symbols) = library.symbols() {
            // The C library comes behind all that may replace its functions.
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
    // Relaxed: the functions are there since the process began.
    DELETE_KEY.store(ptr::with_exposed_provenance_mut(delete_key.unwrap_or(0)), Ordering::Relaxed);
    ITERATE.store(ptr::with_exposed_provenance_mut(iterate), Ordering::Relaxed);
    // SAFETY: 0, or the C library's function.
    unsafe { FIND_OBJECT.set(ptr::with_exposed_provenance_mut(find)) };
    true
}

/// The library of this mark, which is loaded.
fn described(mark: Mark) -> Option<Module> {
    let map = mark.link_map as *const LinkMap;
    if map.is_null() {
        return None;
    }
    // SAFETY: the loader's description of a library that is loaded.
    let (library, name) = unsafe { (Library::of_map(map), (*map).name) };
    Some(Module { library, place: mark.start..mark.end, name })
}

/// The mark of the library at an address, if there is one; `None` where the loader cannot be asked without a lock.
pub(crate) fn mark_at(address: usize) -> Option<Option<Mark>> {
    FIND_OBJECT.at(address)
}

/// Calls `f` with each library, in the order in which they were loaded. It must not load any: the loader holds a lock then.
pub(crate) fn each(mut f: impl FnMut(&Module, &[libc::Elf64_Phdr])) {
    let iterate = ITERATE.load(Ordering::Relaxed);
    // SAFETY: NULL, or the C library's function of this name and type.
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
        // SAFETY: the loader keeps the library loaded while it describes it.
        if let Some(library) = unsafe { Library::of_headers(base, headers) } {
            let (place, name) = (start..end, info.dlpi_name);
            f(&Module { library, place, name }, headers);
        }
        false
    };
    // SAFETY: the C library's function.
    unsafe { modules::each(iterate, visit) };
}
