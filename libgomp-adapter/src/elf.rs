//! Symbols of a library, by the loader and the library's dynamic section (System V ABI, "Dynamic Linking").

use core::ffi::{CStr, c_char, c_int, c_void};
use core::{ptr, slice};

/// The loader's description of a library, as far as it is public.
#[repr(C)]
pub(crate) struct LinkMap {
    pub(crate) addr: usize,
    pub(crate) name: *const c_char,
    dynamic: *const Entry,
}

/// An entry of a dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    tag: i64,
    value: usize,
}

/// The tags of dynamic sections that matter here. The last three are GNU's.
mod tag {
    pub(super) const NULL: i64 = 0;
    pub(super) const PLT_RELOCATION_BYTES: i64 = 2;
    pub(super) const STRINGS: i64 = 5;
    pub(super) const SYMBOLS: i64 = 6;
    pub(super) const RELOCATIONS: i64 = 7;
    pub(super) const RELOCATION_BYTES: i64 = 8;
    pub(super) const PLT_RELOCATIONS: i64 = 23;
    pub(super) const HASHES: i64 = 0x6fff_fef5;
    pub(super) const SYMBOL_VERSIONS: i64 = 0x6fff_fff0;
    pub(super) const NEEDED_VERSIONS: i64 = 0x6fff_fffe;
}

/// A library whose versions are needed, and the first of these.
#[repr(C)]
struct Needed {
    version: u16,
    count: u16,
    file: u32,
    first: u32,
    next: u32,
}

/// A version that is needed.
#[repr(C)]
struct NeededVersion {
    hash: u32,
    flags: u16,
    number: u16,
    name: u32,
    next: u32,
}

/// The bits of a symbol's version that are its number.
const NUMBER: u16 = 0x7fff;

/// The result that `dladdr1` shall find beside that of `dladdr` (`RTLD_DL_LINKMAP`).
const WITH_LINK_MAP: c_int = 2;

/// A loaded library.
pub(crate) struct Library {
    base: usize,
    dynamic: *const Entry,
}

impl Library {
    /// The one that the code at `address` belongs to.
    pub(crate) fn of_code(address: *const c_void) -> Option<Library> {
        let mut map: *mut LinkMap = ptr::null_mut();
        // SAFETY: all zeros is a value of this structure.
        let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
        // SAFETY: any address may be asked about; the loader writes a pointer to its own description.
        let is_known =
            unsafe { libc::dladdr1(address, &raw mut info, (&raw mut map).cast(), WITH_LINK_MAP) };
        if is_known == 0 || map.is_null() {
            return None;
        }
        // SAFETY: the loader's description of a library that is loaded.
        Some(unsafe { Library::of_map(map) })
    }

    /// The one that the loader describes so.
    ///
    /// # Safety
    /// The library is loaded, and stays so for as long as the result is used.
    pub(crate) unsafe fn of_map(map: *const LinkMap) -> Library {
        // SAFETY: by the caller's promise.
        unsafe {
            Library {
                base: (*map).addr,
                dynamic: (*map).dynamic,
            }
        }
    }

    fn value(&self, wanted: i64) -> Option<usize> {
        // SAFETY: the dynamic section of a loaded library; the last entry is `NULL`.
        let all = (0..).map(|place| unsafe { self.dynamic.add(place).read() });
        let mut all = all.take_while(|entry| entry.tag != tag::NULL);
        all.find(|entry| entry.tag == wanted)
            .map(|entry| entry.value)
    }

    /// The address of a table. glibc's loader has made some entries addresses, and left others as they are in the file.
    fn table<T>(&self, tag: i64) -> Option<*const T> {
        let at = self.value(tag)?;
        let address = if at < self.base { self.base + at } else { at };
        Some(address as *const T)
    }

    /// The name at this place of the strings.
    fn string(&self, place: u32) -> Option<&CStr> {
        let strings: *const c_char = self.table(tag::STRINGS)?;
        // SAFETY: the library's own reference to a string of its table.
        Some(unsafe { CStr::from_ptr(strings.add(place as usize)) })
    }

    /// Whether it refers to a symbol of this version whose name is wanted.
    pub(crate) fn refers_to(&self, version: &CStr, is_wanted: impl Fn(&CStr) -> bool) -> bool {
        self.search_references(version, is_wanted).unwrap_or(false)
    }

    /// Like [`Library::refers_to`]; `None` where it has no versions.
    fn search_references(&self, version: &CStr, is_wanted: impl Fn(&CStr) -> bool) -> Option<bool> {
        let symbols: *const libc::Elf64_Sym = self.table(tag::SYMBOLS)?;
        let versions: *const u16 = self.table(tag::SYMBOL_VERSIONS)?;
        let numbers = self.numbers(version)?;
        if numbers.is_empty() {
            return Some(false);
        }
        let is_it = |relocation: &libc::Elf64_Rela| {
            let symbol = (relocation.r_info >> 32) as usize;
            // SAFETY: relocations name symbols of the same library, each of which has a version.
            let (number, name) = unsafe {
                let number = versions.add(symbol).read() & NUMBER;
                (number, (*symbols.add(symbol)).st_name)
            };
            numbers.contains(&number) && self.string(name).is_some_and(&is_wanted)
        };
        let tables = [
            (tag::RELOCATIONS, tag::RELOCATION_BYTES),
            (tag::PLT_RELOCATIONS, tag::PLT_RELOCATION_BYTES),
        ];
        let mut tables = tables.into_iter().filter_map(|(first, bytes)| {
            let count = self.value(bytes)? / size_of::<libc::Elf64_Rela>();
            let first = self.table::<libc::Elf64_Rela>(first)?;
            // SAFETY: as many relocations follow each other as the library says.
            Some(unsafe { slice::from_raw_parts(first, count) })
        });
        Some(tables.any(|relocations| relocations.iter().any(is_it)))
    }

    /// The numbers of a version in each library that is needed.
    fn numbers(&self, version: &CStr) -> Option<Vec<u16>> {
        let mut numbers = Vec::new();
        let mut library: *const Needed = self.table(tag::NEEDED_VERSIONS)?;
        // SAFETY: each names the distance to the next, 0 at the last.
        unsafe {
            loop {
                let first = (*library).first as usize;
                let mut needed = library.byte_add(first).cast::<NeededVersion>();
                loop {
                    if self.string((*needed).name) == Some(version) {
                        numbers.push((*needed).number & NUMBER);
                    }
                    match (*needed).next {
                        0 => break,
                        next => needed = needed.byte_add(next as usize),
                    }
                }
                match (*library).next {
                    0 => return Some(numbers),
                    next => library = library.byte_add(next as usize),
                }
            }
        }
    }

    /// The address of the function that it defines under this name, by its table of hashes (GNU's). Allocates nothing.
    pub(crate) fn function(&self, name: &CStr) -> Option<usize> {
        let hashes: *const u32 = self.table(tag::HASHES)?;
        let symbols: *const libc::Elf64_Sym = self.table(tag::SYMBOLS)?;
        let hash = name.to_bytes().iter().fold(5381_u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
        });
        // SAFETY: the header, the filter of 64-bit words, the buckets and the chains follow each other. A chain ends with an
        // odd number, and there is a symbol for each link.
        unsafe {
            let [buckets, first, filter] = [0, 1, 2].map(|place| hashes.add(place).read());
            let heads = hashes.add(4 + 2 * filter as usize);
            let chains = heads.add(buckets as usize);
            let mut symbol = heads.add((hash % buckets.max(1)) as usize).read();
            if symbol < first {
                return None;
            }
            loop {
                let link = chains.add((symbol - first) as usize).read();
                if link | 1 == hash | 1 {
                    let found = &*symbols.add(symbol as usize);
                    if self.string(found.st_name) == Some(name) {
                        return Some(self.base + found.st_value as usize);
                    }
                }
                if link & 1 != 0 {
                    return None;
                }
                symbol += 1;
            }
        }
    }
}
