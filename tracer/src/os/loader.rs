//! Information about modules, obtained without the loader's main lock.
//!
//! `dladdr`, `dlsym` and `dlopen` take the lock that a thread holds while it loads or closes a library. Meanwhile, a
//! constructor may wait for a team of threads, none of which may then take that lock. `dl_iterate_phdr` has another
//! lock, which constructors do not hold; but the function that it calls holds it, and may wait for a team, too.
//! `_dl_find_object` (glibc 2.35) takes no lock; where it is available, threads of the program use it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs;
use std::mem::transmute;

pub(crate) use interpose::find_object::Mark;
pub(crate) use interpose::{forget_error, symbol};

use interpose::elf::{Library, LinkMap};
use interpose::find_object::FindObject;
use interpose::modules;
use interpose::started_with::StartedWith;
use omptrace_device::memory;

use crate::os::forks;

/// `dlopen`.
pub(crate) type Dlopen = unsafe extern "C" fn(name: *const c_char, flags: c_int) -> *mut c_void;

/// Whether the loader that this library is bound to has loaded the program. A statically linked program loads libraries
/// by itself; the loader that comes with them has not started then, and cannot access thread-local variables, so this
/// library must do nothing.
pub(crate) fn is_running() -> bool {
    /// The begin of glibc's `r_debug`.
    #[repr(C)]
    struct Debug {
        version: c_int,
    }
    unsafe extern "C" {
        static _r_debug: Debug;
    }
    // SAFETY: the loader writes it when it starts, before any other code runs.
    unsafe { (&raw const _r_debug.version).read_volatile() != 0 }
}

/// The C library's `dlopen`.
pub(crate) fn dlopen_of_c_library() -> Dlopen {
    unsafe extern "C" fn none(_: *const c_char, _: c_int) -> *mut c_void {
        std::ptr::null_mut()
    }
    // SAFETY: it has this type.
    unsafe { interpose::next(c"dlopen") }.unwrap_or(none)
}

/// The scope of the program and the libraries that it was started with. `RTLD_DEFAULT` would include this library's
/// scope.
pub(crate) fn global_scope() -> *mut c_void {
    // SAFETY: without a name it loads nothing.
    unsafe { dlopen_of_c_library()(std::ptr::null(), libc::RTLD_LAZY) }
}

/// Calls `visit` for each module until it returns true; not at all if the loader's lock is unavailable (see
/// [`forks::outside`]). The loader holds a lock during the call.
pub(crate) fn each_module(visit: impl FnMut(&libc::dl_phdr_info, &[libc::Elf64_Phdr]) -> bool) -> Option<()> {
    // SAFETY: the C library's function.
    forks::outside(|| unsafe { modules::each(libc::dl_iterate_phdr, visit) })
}

/// Finds modules without a lock, if the C library supports it.
static FIND_OBJECT: FindObject = FindObject::unknown();

/// Looks up what needs the loader's lock. Called by the library's constructor, whose thread holds it.
pub(crate) fn prepare() {
    // SAFETY: a constant of the loader, and the C library's function.
    unsafe { FIND_OBJECT.set(symbol(libc::RTLD_DEFAULT, c"_dl_find_object")) };
    // SAFETY: by this function's contract, the loader's list does not change now.
    unsafe { STARTED_WITH.find() };
}

/// The modules with which the process was started, as far as known.
static STARTED_WITH: StartedWith = StartedWith::unknown();

/// Whether the module with this load address stays loaded until the process ends.
pub(crate) fn stays(load_address: u64) -> bool {
    STARTED_WITH.has(load_address as usize)
}

/// Address of the `.eh_frame_hdr` of the module at `pc`, 0 if it has none. `None` if the C library cannot find modules
/// without a lock. May be called in signal handlers.
pub(crate) fn unwind_header_of(pc: u64) -> Option<u64> {
    let found = FIND_OBJECT.at(pc as usize)?;
    Some(found.map_or(0, |found| found.eh_frame as u64))
}

/// Whether the C library can find modules without a lock.
pub(crate) fn asks_without_lock() -> bool {
    FIND_OBJECT.is_known()
}

/// The mark of the module at `pc`; the inner `None` means that there is no module. `None` if the C library cannot find
/// modules without a lock.
pub(crate) fn mark_at(pc: u64) -> Option<Option<Mark>> {
    FIND_OBJECT.at(pc as usize)
}

/// A copy of the loader's description of a module.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) mark: Mark,
    pub(crate) load_address: u64,
    /// Empty for the program itself.
    pub(crate) name: Vec<u8>,
    pub(crate) headers: Vec<libc::Elf64_Phdr>,
}

/// Finds the module at `pc` without a lock and copies its description; the inner `None` means that there is no module.
/// `None` if modules cannot be found without a lock. Another thread may unload the module meanwhile, so the kernel
/// copies the memory.
pub(crate) fn copy_at(pc: u64) -> Option<Option<Copied>> {
    const MAX_NAME: usize = 4096;
    let Some(mark) = FIND_OBJECT.at(pc as usize)? else {
        return Some(None);
    };
    let [load_address, name] = copied_words(mark.link_map)?;
    let name = match name {
        0 => Vec::new(),
        name => memory::text(name as *const c_char, MAX_NAME)?,
    };
    let headers = match name.is_empty() {
        true => headers_of_program()?.to_vec(),
        false => copied_headers(mark.start)?,
    };
    Some(Some(Copied { mark, load_address: load_address as u64, name, headers }))
}

fn copied_words<const N: usize>(address: usize) -> Option<[usize; N]> {
    let mut words = [0; N];
    // SAFETY: the words' bytes, each of which may have any value.
    let bytes =
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), size_of::<[usize; N]>()) };
    memory::copy(address, bytes).then_some(words)
}

/// Distinguishes a module that calls from an earlier module at the same address, which may have had the same mark: by
/// the start of its build id, and by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// Offset of the build id in the module, within its first page.
    id_at: usize,
    id: u64,
    name: [u64; Identity::NAME_WORDS],
    /// Number of words of the name, and a mask of the bits that count in the last word.
    words: usize,
    last: u64,
}

impl Identity {
    /// Maximum number of words of a name; longer names are compared in another way.
    const NAME_WORDS: usize = 12;
    const WORD: usize = size_of::<u64>();

    /// The identity of a module with this build id; `None` if the module has no build id, or has it in an unusual
    /// place.
    pub(crate) fn of(module: &Calling, build_id: &'static [u8]) -> Option<Identity> {
        let id = u64::from_ne_bytes(*build_id.first_chunk()?);
        let id_at = (build_id.as_ptr() as usize).checked_sub(module.mark.start)?;
        let name = module.name;
        let words = name.len() / Identity::WORD + 1;
        let is_usual = id_at <= PAGE - Identity::WORD
            && words <= Identity::NAME_WORDS
            && (name.as_ptr() as usize).is_multiple_of(Identity::WORD);
        let mut copy = [0; Identity::NAME_WORDS];
        for (word, bytes) in copy.iter_mut().zip(name.chunks(Identity::WORD)) {
            let mut whole = [0; Identity::WORD];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        // Including the zero after the name.
        let bits = (name.len() % Identity::WORD + 1) * 8;
        let last = u64::MAX >> (64 - bits);
        let last = if cfg!(target_endian = "little") { last } else { last << (64 - bits) };
        is_usual.then_some(Identity { id_at, id, name: copy, words, last })
    }

    /// Whether the module with this mark has this identity.
    ///
    /// # Safety
    /// The module is loaded.
    pub(crate) unsafe fn is_of(&self, mark: Mark) -> bool {
        // SAFETY: within the module's first page.
        let id = unsafe { ((mark.start + self.id_at) as *const u64).read_unaligned() };
        // SAFETY: the loader keeps the structure for as long as the module is loaded.
        let name = unsafe { (*(mark.link_map as *const LinkMap)).name }.cast::<u64>();
        let last = self.words - 1;
        let is_same = |place: usize| {
            // SAFETY: a C string. The previous words are equal and contain no zero, so the string reaches into this
            // word, which is aligned and thus within one page.
            let word = unsafe { name.wrapping_add(place).read() };
            (word ^ self.name[place]) & if place == last { self.last } else { u64::MAX } == 0
        };
        id == self.id && !name.is_null() && name.is_aligned() && (0..self.words).all(is_same)
    }
}

/// The smallest page size of all supported CPUs.
const PAGE: usize = 4096;

/// A module that is calling, and therefore stays loaded: like [`Copied`], but borrowed.
#[derive(Debug)]
pub(crate) struct Calling {
    pub(crate) mark: Mark,
    pub(crate) load_address: u64,
    pub(crate) name: &'static [u8],
    pub(crate) headers: &'static [libc::Elf64_Phdr],
}

/// The module at `pc`; `None` if there is none, or it cannot be found without a lock.
///
/// # Safety
/// The code at `pc` stays loaded for as long as the result is used.
pub(crate) unsafe fn calling_at(pc: u64) -> Option<Calling> {
    let mark = FIND_OBJECT.at(pc as usize)??;
    // SAFETY: the loader keeps the structure for as long as the module is loaded, as the caller promises.
    let LinkMap { addr, name, .. } = *unsafe { (mark.link_map as *const LinkMap).as_ref() }?;
    let name = match name.is_null() {
        true => &[],
        // SAFETY: a C string of the loader.
        false => unsafe { CStr::from_ptr(name) }.to_bytes(),
    };
    let headers = match name.is_empty() {
        true => headers_of_program(),
        // SAFETY: the module's memory starts there, and stays valid by the caller's promise.
        false => unsafe { headers_in_memory(mark.start as *const u8) },
    }?;
    Some(Calling { mark, load_address: addr as u64, name, headers })
}

/// The program headers of the program, as passed by the kernel.
fn headers_of_program() -> Option<&'static [libc::Elf64_Phdr]> {
    // SAFETY: only reads what the kernel has passed.
    let [first, count, bytes] =
        [libc::AT_PHDR, libc::AT_PHNUM, libc::AT_PHENT].map(|kind| unsafe { libc::getauxval(kind) } as usize);
    let is_usual = first != 0 && bytes == size_of::<libc::Elf64_Phdr>();
    // SAFETY: the program's headers, which stay as long as the process.
    is_usual.then(|| unsafe { std::slice::from_raw_parts(first as *const libc::Elf64_Phdr, count) })
}

/// The program headers of a module, if they are in its first page; else `None`.
///
/// # Safety
/// The first page of the module is mapped.
unsafe fn headers_in_memory(start: *const u8) -> Option<&'static [libc::Elf64_Phdr]> {
    // SAFETY: by this function's contract.
    let (first, count) = place_of_headers(unsafe { &*start.cast() })?;
    // SAFETY: within the first page.
    Some(unsafe { std::slice::from_raw_parts(start.add(first).cast(), count) })
}

/// Like [`headers_in_memory`], copied from a module that may have been unloaded.
fn copied_headers(start: usize) -> Option<Vec<libc::Elf64_Phdr>> {
    const WORDS: usize = size_of::<libc::Elf64_Ehdr>() / size_of::<usize>();
    let header = copied_words::<WORDS>(start)?;
    // SAFETY: each of its fields may have any value.
    let header = unsafe { transmute::<[usize; WORDS], libc::Elf64_Ehdr>(header) };
    let (first, count) = place_of_headers(&header)?;
    let mut bytes = vec![0_u8; count * size_of::<libc::Elf64_Phdr>()];
    if !memory::copy(start + first, &mut bytes) {
        return None;
    }
    let headers = bytes.chunks_exact(size_of::<libc::Elf64_Phdr>());
    // SAFETY: as many bytes as a header has; any value is valid for its fields.
    Some(headers.map(|bytes| unsafe { bytes.as_ptr().cast::<libc::Elf64_Phdr>().read_unaligned() }).collect())
}

/// Offset and number of the program headers, if the ELF header is of the usual kind.
fn place_of_headers(header: &libc::Elf64_Ehdr) -> Option<(usize, usize)> {
    let is_usual = header.e_ident.starts_with(b"\x7fELF")
        && usize::from(header.e_phentsize) == size_of::<libc::Elf64_Phdr>();
    let (first, count) = (usize::try_from(header.e_phoff).ok()?, usize::from(header.e_phnum));
    let end = first.checked_add(count * size_of::<libc::Elf64_Phdr>())?;
    let is_here = first.is_multiple_of(align_of::<libc::Elf64_Phdr>()) && end <= PAGE;
    (is_usual && is_here).then_some((first, count))
}

/// A library or the program, as found by its address.
struct Found {
    /// Identifies the module: an address that no other module has. The start of its memory would not do, because glibc
    /// reports the parts of a program with holes in between separately.
    module: usize,
    /// The loader's name; empty for the program.
    name: Vec<u8>,
}

/// The module that contains `address`, found without a lock if possible.
fn at(address: *const c_void) -> Option<Found> {
    if let Some(mark) = FIND_OBJECT.at(address as usize) {
        let link_map = mark?.link_map as *const LinkMap;
        // SAFETY: the loader keeps the structure for as long as the module is loaded, as the caller's address is.
        let name = unsafe { link_map.as_ref() }?.name;
        return Some(Found { module: link_map as usize, name: copied(name) });
    }
    let mut found = None;
    each_module(|info, headers| {
        let loads = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let begin_and_end = loads.map(|header| {
            let begin = info.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
            (begin, begin.wrapping_add(header.p_memsz as usize))
        });
        let mut base = usize::MAX;
        let mut is_here = false;
        for (begin, end) in begin_and_end {
            base = base.min(begin);
            is_here |= (begin..end).contains(&(address as usize));
        }
        if is_here {
            found = Some(Found { module: base, name: copied(info.dlpi_name) });
        }
        is_here
    })?;
    found
}

/// A copy of the loader's name of a module.
fn copied(name: *const c_char) -> Vec<u8> {
    match name.is_null() {
        true => Vec::new(),
        // SAFETY: a C string of the loader, copied at once.
        false => unsafe { CStr::from_ptr(name) }.to_bytes().to_vec(),
    }
}

/// Whether another module than this library defines the symbol, or may define it because it has no symbol table. False
/// if the loader's lock is unavailable.
pub(crate) fn is_defined_elsewhere(name: &CStr) -> bool {
    let mut found = false;
    each_module(|info, headers| {
        // SAFETY: the loader keeps the module loaded while it describes it.
        let library = unsafe { Library::of_headers(info.dlpi_addr as usize, headers) };
        found |= library.is_some_and(|library| {
            let defines = || library.symbols().is_none_or(|symbols| symbols.function(name).is_some());
            !library.is_own() && defines()
        });
        found
    });
    found
}

/// Identifies the module that contains `address`, for comparison only.
pub(crate) fn module_of(address: *const c_void) -> Option<usize> {
    at(address).map(|found| found.module)
}

/// The loader's name of the library that contains `address`; for the program, its path.
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

    #[test]
    fn modules_are_found_with_and_without_a_lock() {
        prepare();
        for code in [at as fn(*const c_void) -> Option<Found> as usize, libc::getpid as *const () as usize] {
            let mut expected = None;
            each_module(|info, headers| {
                let holds = |header: &libc::Elf64_Phdr| {
                    let begin = info.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
                    header.p_type == libc::PT_LOAD && code.wrapping_sub(begin) < header.p_memsz as usize
                };
                let is_it = headers.iter().any(holds);
                if is_it {
                    expected = Some((info.dlpi_addr, copied(info.dlpi_name), headers.len()));
                }
                is_it
            })
            .unwrap();
            // SAFETY: neither is ever unloaded.
            let calling = unsafe { calling_at(code as u64) }.unwrap();
            assert_eq!(Some((calling.load_address, calling.name.to_vec(), calling.headers.len())), expected);
            let found = copy_at(code as u64).unwrap().unwrap();
            assert_eq!(Some((found.load_address, found.name, found.headers.len())), expected);
            assert_eq!((found.mark, Some(Some(found.mark))), (calling.mark, mark_at(code as u64)));
        }
    }

    static PROBE: u8 = 0;
}
