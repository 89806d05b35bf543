//! What the loader knows of an address, without its main lock.
//!
//! `dladdr`, `dlsym` and `dlopen` take the lock that a thread holds while it loads or closes a library. A constructor may
//! wait for a team of threads meanwhile, none of which may ask for that lock. `dl_iterate_phdr` has another one, which
//! constructors do not hold.

use std::ffi::{CStr, c_int, c_void};
use std::fs;

/// A library, or the program.
struct Found {
    base: usize,
    /// As the loader names it; empty for the program.
    name: Vec<u8>,
}

/// The library that holds `address`.
fn at(address: *const c_void) -> Option<Found> {
    struct Search {
        address: usize,
        found: Option<Found>,
    }
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid structure, and `search` is the one below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: the loader keeps the program headers of a loaded module mapped.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let loads = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD);
        let begin_and_end = loads.map(|header| {
            let begin = info.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
            (begin, begin.wrapping_add(header.p_memsz as usize))
        });
        let mut base = usize::MAX;
        let mut is_here = false;
        for (begin, end) in begin_and_end {
            base = base.min(begin);
            is_here |= (begin..end).contains(&search.address);
        }
        if !is_here {
            return 0;
        }
        let name = match info.dlpi_name.is_null() {
            true => Vec::new(),
            // SAFETY: a C string of the loader, copied at once.
            false => unsafe { CStr::from_ptr(info.dlpi_name) }
                .to_bytes()
                .to_vec(),
        };
        search.found = Some(Found { base, name });
        1
    }
    let mut search = Search {
        address: address as usize,
        found: None,
    };
    // SAFETY: `visit` treats its arguments as `dl_iterate_phdr` gives them.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// Where the library that holds `address` begins in memory.
pub(crate) fn base_of(address: *const c_void) -> Option<usize> {
    at(address).map(|found| found.base)
}

/// The library that holds `address`, as the loader names it; the program by its path.
pub(crate) fn library_of(address: *const c_void) -> Option<String> {
    let found = at(address)?;
    if found.name.is_empty() {
        let path = fs::read_link("/proc/self/exe").ok()?;
        return Some(path.to_string_lossy().into_owned());
    }
    Some(String::from_utf8_lossy(&found.name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_the_program_and_of_a_library_is_found() {
        let here = at as fn(*const c_void) -> Option<Found> as *const c_void;
        let program = std::env::current_exe().unwrap();
        assert_eq!(library_of(here).as_deref(), program.to_str());
        assert_eq!(base_of(here), base_of((&raw const PROBE).cast()));
        let library = library_of(libc::getpid as *const c_void).unwrap();
        assert!(library.contains("libc"), "{library}");
        assert_eq!(library_of(std::ptr::null()), None);
    }

    static PROBE: u8 = 0;
}
