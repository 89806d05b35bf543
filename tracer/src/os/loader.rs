//! What the loader knows of an address, without its main lock.
//!
//! `dladdr`, `dlsym` and `dlopen` take the lock that a thread holds while it loads or closes a library. A constructor may
//! wait for a team of threads meanwhile, none of which may ask for that lock. `dl_iterate_phdr` has another one, which
//! constructors do not hold.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// `dlsym`, which takes the loader's lock. A symbol that is not there leaves no error for the program's `dlerror`.
///
/// # Safety
/// `scope` is a handle of the loader, or one of its constants.
pub(crate) unsafe fn symbol(scope: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: by this function's contract; it only looks the symbol up.
    let found = unsafe { libc::dlsym(scope, name.as_ptr()) };
    if found.is_null() {
        forget_error();
    }
    found
}

/// Leaves no error of ours for the program's `dlerror`. The first call takes the text, the second one frees it.
pub(crate) fn forget_error() {
    // SAFETY: no arguments; the texts are not read.
    unsafe {
        libc::dlerror();
        libc::dlerror();
    }
}

/// The program headers of a module; none where the loader gives no table.
///
/// # Safety
/// `dl_iterate_phdr` passes `info`, and is running.
pub(crate) unsafe fn program_headers(info: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    if info.dlpi_phdr.is_null() {
        return &[];
    }
    // SAFETY: the loader keeps the program headers of a loaded module mapped.
    unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) }
}

/// `struct dl_find_object` of glibc.
#[repr(C)]
struct FoundObject {
    flags: u64,
    map_start: *mut c_void,
    map_end: *mut c_void,
    link_map: *mut c_void,
    eh_frame: *mut c_void,
    reserved: [u64; 7],
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut FoundObject) -> c_int;

/// `_dl_find_object` (glibc 2.35); null where the C library has none.
static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Looks up what needs the loader's lock: for the library's constructor, whose thread has it.
pub(crate) fn prepare() {
    // SAFETY: a constant of the loader.
    let function = unsafe { symbol(libc::RTLD_DEFAULT, c"_dl_find_object") };
    // Relaxed: stored before anybody asks.
    FIND_OBJECT.store(function, Ordering::Relaxed);
}

/// The beginning of glibc's `struct link_map`, which `<link.h>` shows.
#[repr(C)]
struct LinkMap {
    addr: usize,
    name: *const c_char,
}

/// What is known of the module at `pc` without a lock: nothing where there is none. `None` where the C library cannot be
/// asked so. Signal handlers may call it.
fn find_object(pc: usize) -> Option<Option<FoundObject>> {
    // Relaxed: see `prepare`.
    let function = FIND_OBJECT.load(Ordering::Relaxed);
    // SAFETY: null, or glibc's function of this name and type, which may be called in signal handlers.
    let find = unsafe { transmute::<*mut c_void, Option<FindObject>>(function) }?;
    let mut found = FoundObject {
        flags: 0,
        map_start: null_mut(),
        map_end: null_mut(),
        link_map: null_mut(),
        eh_frame: null_mut(),
        reserved: [0; 7],
    };
    // SAFETY: as above; `found` is valid for writing.
    match unsafe { find(pc as *mut c_void, &raw mut found) } {
        0 => Some(Some(found)),
        _ => Some(None),
    }
}

/// Where the `.eh_frame_hdr` of the module at `pc` lies, 0 where there is none. `None` where the C library cannot be asked
/// without a lock. Signal handlers may call it.
pub(crate) fn unwind_header_of(pc: u64) -> Option<u64> {
    let found = find_object(pc as usize)?;
    Some(found.map_or(0, |found| found.eh_frame as u64))
}

/// A library, or the program.
struct Found {
    /// Which one it is: an address that no other module has. Where its memory begins would not do: glibc gives the parts of a
    /// program that has holes between them one by one.
    module: usize,
    /// As the loader names it; empty for the program.
    name: Vec<u8>,
}

/// The library that holds `address`. It asks without a lock where it can: a thread that forks meanwhile would leave the
/// lock of `dl_iterate_phdr` taken in the child.
fn at(address: *const c_void) -> Option<Found> {
    if let Some(found) = find_object(address as usize) {
        let found = found?;
        let link_map = found.link_map.cast::<LinkMap>();
        // SAFETY: the loader keeps the structure for as long as the module is loaded, as the caller's address is.
        let name = unsafe { link_map.as_ref() }?.name;
        return Some(Found { module: link_map as usize, name: copied(name) });
    }
    struct Search {
        address: usize,
        found: Option<Found>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid structure, and `search` is the one below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: as the loader passes it.
        let headers = unsafe { program_headers(info) };
        let loads = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
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
        let name = copied(info.dlpi_name);
        search.found = Some(Found { module: base, name });
        1
    }
    let mut search = Search { address: address as usize, found: None };
    // SAFETY: `visit` treats its arguments as `dl_iterate_phdr` gives them.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// A name that the loader has for a module.
fn copied(name: *const c_char) -> Vec<u8> {
    match name.is_null() {
        true => Vec::new(),
        // SAFETY: a C string of the loader, copied at once.
        false => unsafe { CStr::from_ptr(name) }.to_bytes().to_vec(),
    }
}

/// Whether a module besides this library defines the symbol, or may do so: it has no hash table of the usual kind.
pub(crate) fn is_defined_elsewhere(name: &CStr) -> bool {
    struct Search<'n> {
        name: &'n CStr,
        found: bool,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid structure, and `search` is the one below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: as the loader passes it.
        let headers = unsafe { program_headers(info) };
        let own = (&raw const FIND_OBJECT) as usize;
        let is_own = headers.iter().any(|header| {
            let begin = info.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
            header.p_type == libc::PT_LOAD && own.wrapping_sub(begin) < header.p_memsz as usize
        });
        let mut all = headers.iter();
        if let Some(dynamic) = all.find(|header| header.p_type == libc::PT_DYNAMIC)
            && !is_own
        {
            let base = info.dlpi_addr as usize;
            let dynamic = base.wrapping_add(dynamic.p_vaddr as usize);
            // SAFETY: the dynamic section of a module that the loader has.
            search.found |= unsafe { defines(base, dynamic as *const Dynamic, search.name) };
        }
        c_int::from(search.found)
    }
    let mut search = Search { name, found: false };
    // SAFETY: `visit` treats its arguments as `dl_iterate_phdr` gives them.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// An entry of a dynamic section: tag and value.
type Dynamic = [usize; 2];

/// Whether the module at `base` defines the symbol, by its GNU hash table; true where it has none.
///
/// # Safety
/// The module is loaded, and `dynamic` its dynamic section.
unsafe fn defines(base: usize, mut dynamic: *const Dynamic, name: &CStr) -> bool {
    const NULL: usize = 0;
    const STRTAB: usize = 5;
    const SYMTAB: usize = 6;
    const GNU_HASH: usize = 0x6fff_fef5;
    let (mut strings, mut symbols, mut table) = (0, 0, 0);
    loop {
        // SAFETY: the section ends with `NULL`.
        let [tag, value] = unsafe { *dynamic };
        // Some loaders write the address here, others leave what lies in the file.
        let address = if value < base { base + value } else { value };
        match tag {
            NULL => break,
            STRTAB => strings = address,
            SYMTAB => symbols = address,
            GNU_HASH => table = address,
            _ => {}
        }
        dynamic = dynamic.wrapping_add(1);
    }
    if strings == 0 || symbols == 0 || table == 0 {
        return true;
    }
    // SAFETY: all that is read lies in the module's hash table, which is made so that this search ends.
    let word = |at: usize| unsafe { *(table as *const u32).wrapping_add(at) };
    let [buckets, first, filter_words] = [0, 1, 2].map(|at| word(at) as usize);
    let bucket_words = 4 + filter_words * (size_of::<usize>() / size_of::<u32>());
    let hash = name
        .to_bytes()
        .iter()
        .fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add((*byte).into()));
    if buckets == 0 {
        return false;
    }
    let mut number = word(bucket_words + hash as usize % buckets) as usize;
    while number >= first {
        let entry = word(bucket_words + buckets + number - first);
        // SAFETY: a symbol that the table names, and its name.
        let is_it = entry | 1 == hash | 1
            && unsafe {
                let symbol = &*(symbols as *const libc::Elf64_Sym).wrapping_add(number);
                symbol.st_shndx != 0
                    && CStr::from_ptr((strings + symbol.st_name as usize) as *const _) == name
            };
        if is_it || entry & 1 != 0 {
            return is_it;
        }
        number += 1;
    }
    false
}

/// Which library, or the program, holds `address`: to be compared with another one only.
pub(crate) fn module_of(address: *const c_void) -> Option<usize> {
    at(address).map(|found| found.module)
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
        assert_eq!(module_of(here), module_of((&raw const PROBE).cast()));
        assert_ne!(module_of(here), module_of(libc::getpid as *const c_void));
        let library = library_of(libc::getpid as *const c_void).unwrap();
        assert!(library.contains("libc"), "{library}");
        assert_eq!(library_of(std::ptr::null()), None);
    }

    #[test]
    fn a_symbol_of_another_library_is_found_by_its_hash() {
        for name in [c"malloc", c"pthread_create", c"dl_iterate_phdr"] {
            assert!(is_defined_elsewhere(name), "{name:?}");
        }
        for name in [c"omptrace_no_such_symbol", c"__tsan_init", c""] {
            assert!(!is_defined_elsewhere(name), "{name:?}");
        }
    }

    static PROBE: u8 = 0;
}
