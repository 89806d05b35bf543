//! Symbols of a loaded library, read from the loader's list and the library's dynamic section (System V ABI, "Dynamic
//! Linking").

use core::ffi::{CStr, c_char, c_int};
use core::{ptr, slice};

/// The public part of the loader's `struct link_map`, which describes a library.
#[repr(C)]
#[derive(Debug)]
pub struct LinkMap {
    /// The load address: the difference between the library's addresses in memory and in the file.
    pub addr: usize,
    /// Path of the library's file; empty for the program.
    pub name: *const c_char,
    dynamic: *const Entry,
    /// The next library; null for the last one.
    pub next: *const LinkMap,
}

/// The loader's structure for debuggers (`struct r_debug` in `link.h`).
#[repr(C)]
struct Debug {
    version: c_int,
    first: *const LinkMap,
}

unsafe extern "C" {
    /// The loader's structure for the program's namespace.
    static _r_debug: Debug;
}

/// The first entry of the loader's list: the program.
pub fn first_map() -> *const LinkMap {
    // SAFETY: the loader fills in this structure when the process starts.
    unsafe { (&raw const _r_debug.first).read() }
}

/// The entries of the loader's list from `map` on, which may be null.
///
/// # Safety
/// `map` is null or in the list, and none of the entries that the iterator visits is loaded or removed meanwhile.
pub unsafe fn maps_from(map: *const LinkMap) -> impl Iterator<Item = *const LinkMap> {
    let mut next = map;
    core::iter::from_fn(move || {
        let this = next;
        // SAFETY: null, or the loader's description of a library that stays loaded.
        next = unsafe { this.as_ref() }?.next;
        Some(this)
    })
}

/// An entry of a dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    tag: i64,
    value: usize,
}

/// The tags of dynamic sections that are used here. The last four are GNU extensions.
mod tag {
    pub(crate) const NULL: i64 = 0;
    pub(crate) const PLT_RELOCATION_BYTES: i64 = 2;
    pub(crate) const OLD_HASHES: i64 = 4;
    pub(crate) const STRINGS: i64 = 5;
    pub(crate) const SYMBOLS: i64 = 6;
    pub(crate) const RELOCATIONS: i64 = 7;
    pub(crate) const RELOCATION_BYTES: i64 = 8;
    pub(crate) const PLT_RELOCATIONS: i64 = 23;
    pub(crate) const HASHES: i64 = 0x6fff_fef5;
    pub(crate) const SYMBOL_VERSIONS: i64 = 0x6fff_fff0;
    pub(crate) const DEFINED_VERSIONS: i64 = 0x6fff_fffc;
    pub(crate) const NEEDED_VERSIONS: i64 = 0x6fff_fffe;
}

/// A library of which versions are required, and the distance to the first of these versions (`Elf64_Verneed`).
#[repr(C)]
struct Needed {
    version: u16,
    count: u16,
    file: u32,
    first: u32,
    next: u32,
}

/// A required version (`Elf64_Vernaux`).
#[repr(C)]
struct NeededVersion {
    hash: u32,
    flags: u16,
    number: u16,
    name: u32,
    next: u32,
}

/// A version that the library defines (`Elf64_Verdef`).
#[repr(C)]
struct DefinedVersion {
    version: u16,
    flags: u16,
    number: u16,
    count: u16,
    hash: u32,
    first: u32,
    next: u32,
}

/// The bits of a symbol's version entry that hold the version's number.
const NUMBER: u16 = 0x7fff;
/// The bit of a symbol that is found only if this version is requested.
const IS_HIDDEN: u16 = 0x8000;

/// The relocation types by which a library gets the addresses of functions (`R_*_GLOB_DAT`, `R_*_JUMP_SLOT`).
const OF_FUNCTIONS: [u32; 2] = if cfg!(target_arch = "x86_64") { [6, 7] } else { [1025, 1026] };

/// A loaded library. Two values are equal if they have the same dynamic section.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// The load address.
    pub base: usize,
    dynamic: *const Entry,
}

// SAFETY: the dynamic section belongs to the loader and does not change once the library is loaded.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl PartialEq for Library {
    fn eq(&self, other: &Library) -> bool {
        ptr::eq(self.dynamic, other.dynamic)
    }
}

unsafe extern "C" {
    /// The dynamic section of this library: the linker defines the symbol in each library.
    static _DYNAMIC: Entry;
}

impl Library {
    /// Whether this is the library into which the function is linked.
    pub fn is_own(&self) -> bool {
        ptr::eq(self.dynamic, &raw const _DYNAMIC)
    }

    /// The library that `dl_iterate_phdr` describes by these values; `None` for a statically linked program.
    ///
    /// # Safety
    /// See [`Library::of_map`].
    pub unsafe fn of_headers(base: usize, headers: &[libc::Elf64_Phdr]) -> Option<Library> {
        let mut dynamic = headers.iter().filter(|header| header.p_type == libc::PT_DYNAMIC);
        dynamic.next().map(|header| Library {
            base,
            dynamic: base.wrapping_add(header.p_vaddr as usize) as *const Entry,
        })
    }

    /// The library that this entry of the loader's list describes.
    ///
    /// # Safety
    /// The library is loaded and stays loaded while the result is used.
    pub unsafe fn of_map(map: *const LinkMap) -> Library {
        // SAFETY: by the caller's promise.
        unsafe { Library { base: (*map).addr, dynamic: (*map).dynamic } }
    }

    fn value(&self, wanted: i64) -> Option<usize> {
        // SAFETY: the dynamic section of a loaded library, which ends with a `NULL` entry.
        let all = (0..).map(|place| unsafe { self.dynamic.add(place).read() });
        let mut all = all.take_while(|entry| entry.tag != tag::NULL);
        all.find(|entry| entry.tag == wanted).map(|entry| entry.value)
    }

    /// The address of a table. glibc's loader relocates some entries to addresses and leaves others as they are in the
    /// file.
    fn table<T>(&self, tag: i64) -> Option<*const T> {
        let at = self.value(tag)?;
        let address = if at < self.base { self.base + at } else { at };
        Some(address as *const T)
    }

    /// The string at this offset of the string table.
    fn string(&self, place: u32) -> Option<&CStr> {
        let strings: *const c_char = self.table(tag::STRINGS)?;
        // SAFETY: the library itself refers to this string of its table.
        Some(unsafe { text(strings.add(place as usize)) })
    }

    /// Whether the library refers to a symbol of this version whose name satisfies `is_wanted`.
    pub fn refers_to(&self, version: &CStr, is_wanted: impl Fn(&CStr) -> bool) -> bool {
        self.search_references(version, is_wanted).unwrap_or(false)
    }

    /// Like [`Library::refers_to`]; `None` if the library has no symbol versions.
    fn search_references(&self, version: &CStr, is_wanted: impl Fn(&CStr) -> bool) -> Option<bool> {
        let symbols: *const libc::Elf64_Sym = self.table(tag::SYMBOLS)?;
        let versions: *const u16 = self.table(tag::SYMBOL_VERSIONS)?;
        let numbers = self.numbers(version)?;
        if numbers.is_empty() {
            return Some(false);
        }
        let is_it = |relocation: &libc::Elf64_Rela| {
            let symbol = (relocation.r_info >> 32) as usize;
            // SAFETY: relocations refer to symbols of the same library, each of which has a version.
            let (number, name) = unsafe {
                let number = versions.add(symbol).read() & NUMBER;
                (number, (*symbols.add(symbol)).st_name)
            };
            numbers.contains(&number) && self.string(name).is_some_and(&is_wanted)
        };
        Some(self.relocations().any(is_it))
    }

    fn relocations(&self) -> impl Iterator<Item = &libc::Elf64_Rela> {
        let tables =
            [(tag::RELOCATIONS, tag::RELOCATION_BYTES), (tag::PLT_RELOCATIONS, tag::PLT_RELOCATION_BYTES)];
        let tables = tables.into_iter().filter_map(|(first, bytes)| {
            let count = self.value(bytes)? / size_of::<libc::Elf64_Rela>();
            let first = self.table::<libc::Elf64_Rela>(first)?;
            // SAFETY: the dynamic section gives the number of consecutive relocations.
            Some(unsafe { slice::from_raw_parts(first, count) })
        });
        tables.flatten()
    }

    /// The addresses to which the loader has bound the library's references to functions with wanted names so far.
    pub fn bindings(&self, is_wanted: impl Fn(&CStr) -> bool) -> impl Iterator<Item = usize> {
        let symbols: Option<*const libc::Elf64_Sym> = self.table(tag::SYMBOLS);
        self.relocations().filter_map(move |relocation| {
            let (symbol, kind) = (relocation.r_info >> 32, relocation.r_info as u32);
            if !OF_FUNCTIONS.contains(&kind) {
                return None;
            }
            // SAFETY: a relocation refers to a symbol of the same library and to a word in it.
            unsafe {
                let symbol = &*symbols?.add(symbol as usize);
                if symbol.st_shndx != 0 || !is_wanted(self.string(symbol.st_name)?) {
                    return None;
                }
                let place = self.base.wrapping_add(relocation.r_offset as usize);
                Some((place as *const usize).read())
            }
        })
    }

    /// The numbers by which this library refers to a version, one for each required library that defines it.
    fn numbers(&self, version: &CStr) -> Option<Vec<u16>> {
        let mut numbers = Vec::new();
        let mut library: *const Needed = self.table(tag::NEEDED_VERSIONS)?;
        // SAFETY: each entry has the distance to the next one, which is 0 in the last entry.
        unsafe {
            loop {
                let first = (*library).first as usize;
                let mut needed = library.byte_add(first).cast::<NeededVersion>();
                loop {
                    if self.string((*needed).name).is_some_and(|name| is_same(name.as_ptr(), version)) {
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

    /// The symbols that the library defines; `None` if it has no symbol table.
    pub fn symbols(&self) -> Option<Symbols> {
        Some(Symbols {
            base: self.base,
            symbols: self.table(tag::SYMBOLS)?,
            strings: self.table(tag::STRINGS)?,
            versions: self.table(tag::SYMBOL_VERSIONS),
            hashes: match self.table(tag::HASHES) {
                Some(hashes) => Hashes::Gnu(hashes),
                None => Hashes::Old(self.table(tag::OLD_HASHES)?),
            },
        })
    }

    /// The address of the library's function with this name. See [`Symbols::function`].
    pub fn function(&self, name: &CStr) -> Option<usize> {
        self.symbols()?.function(name)
    }

    /// The address of a certain version of the function, as `dlvsym` finds it.
    pub fn function_of_version(&self, name: &CStr, version: &CStr) -> Option<usize> {
        let wanted = self.number(version)?;
        self.symbols()?.search(name, |version| version & NUMBER == wanted)
    }

    /// The number of a version that the library defines.
    fn number(&self, name: &CStr) -> Option<u16> {
        let mut version: *const DefinedVersion = self.table(tag::DEFINED_VERSIONS)?;
        // SAFETY: each entry has the distances to its name and to the next entry, the latter 0 in the last entry.
        unsafe {
            loop {
                let its_name = version.byte_add((*version).first as usize).cast::<u32>();
                if self.string(*its_name).is_some_and(|its_name| is_same(its_name.as_ptr(), name)) {
                    return Some((*version).number & NUMBER);
                }
                match (*version).next {
                    0 => return None,
                    next => version = version.byte_add(next as usize),
                }
            }
        }
    }
}

/// The hash table by which symbols are found.
#[derive(Clone, Copy, Debug)]
enum Hashes {
    /// GNU's table.
    Gnu(*const u32),
    /// The System V ABI's table, of which only the number of symbols is used.
    Old(*const u32),
}

/// The symbols that a loaded library defines.
#[derive(Clone, Copy, Debug)]
pub struct Symbols {
    base: usize,
    symbols: *const libc::Elf64_Sym,
    strings: *const c_char,
    versions: Option<*const u16>,
    hashes: Hashes,
}

// SAFETY: as for `Library`.
unsafe impl Send for Symbols {}
// SAFETY: as above.
unsafe impl Sync for Symbols {}

impl Symbols {
    /// The address of the function with this name, as `dlsym` finds it. Neither allocates nor calls other libraries.
    pub fn function(&self, name: &CStr) -> Option<usize> {
        self.search(name, |version| version & IS_HIDDEN == 0)
    }

    /// The address of symbol number `place`, if it is a function with this name and its version satisfies `is_wanted`.
    fn address(&self, place: u32, name: &CStr, is_wanted: impl Fn(u16) -> bool) -> Option<usize> {
        let place = place as usize;
        // SAFETY: the library has a symbol with this number, whose name and version follow from the tables.
        let (symbol, version, found) = unsafe {
            let symbol = &*self.symbols.add(place);
            let version = self.versions.map_or(0, |versions| versions.add(place).read());
            (symbol, version, self.strings.add(symbol.st_name as usize))
        };
        // SAFETY: as above.
        let is_it = symbol.st_shndx != 0 && is_wanted(version) && unsafe { is_same(found, name) };
        is_it.then(|| self.base.wrapping_add(symbol.st_value as usize))
    }

    fn search(&self, name: &CStr, is_wanted: impl Fn(u16) -> bool) -> Option<usize> {
        let hashes = match self.hashes {
            Hashes::Gnu(hashes) => hashes,
            Hashes::Old(hashes) => {
                // SAFETY: the second word of the table is the number of symbols.
                let count = unsafe { hashes.add(1).read() };
                return (1..count).find_map(|place| self.address(place, name, &is_wanted));
            }
        };
        let hash = name
            .to_bytes()
            .iter()
            .fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
        // SAFETY: the header, the filter of 64-bit words, the buckets and the chains lie one after another. A chain
        // ends with an odd number, and there is a symbol for each link. A name has two bits in one word of the filter.
        unsafe {
            let [buckets, first, words, shift] = [0, 1, 2, 3].map(|place| hashes.add(place).read());
            let filter: *const u64 = hashes.add(4).cast();
            let word = filter.add(((hash / 64) % words.max(1)) as usize).read_unaligned();
            if word >> (hash % 64) & word >> ((hash >> shift) % 64) & 1 == 0 {
                return None;
            }
            let heads = hashes.add(4 + 2 * words as usize);
            let chains = heads.add(buckets as usize);
            let mut symbol = heads.add((hash % buckets.max(1)) as usize).read();
            if symbol < first {
                return None;
            }
            loop {
                let link = chains.add((symbol - first) as usize).read();
                if link | 1 == hash | 1
                    && let Some(found) = self.address(symbol, name, &is_wanted)
                {
                    return Some(found);
                }
                if link & 1 != 0 {
                    return None;
                }
                symbol += 1;
            }
        }
    }
}

// The program may replace functions of the C library by its own and use OpenMP in them. So strings are read here
// without `strlen` and `memcmp`.

/// The string at an address.
///
/// # Safety
/// `at` points to a string that ends with NUL and is valid while the result is used.
pub unsafe fn text<'a>(at: *const c_char) -> &'a CStr {
    // SAFETY: by the caller's promise; nothing after the NUL is read. Volatile, so that the compiler does not make
    // `strlen` of the loop.
    unsafe {
        let end = (0..).find(|place| at.add(*place).read_volatile() == 0);
        let bytes = slice::from_raw_parts(at.cast(), end.unwrap_or(0) + 1);
        CStr::from_bytes_with_nul_unchecked(bytes)
    }
}

/// Whether a text begins with these bytes.
pub fn begins_with(text: &[u8], begin: &[u8]) -> bool {
    text.len() >= begin.len() && text.iter().zip(begin).all(|(one, other)| one == other)
}

/// Whether a text ends with these bytes.
pub fn ends_with(text: &[u8], end: &[u8]) -> bool {
    let begin = text.len().checked_sub(end.len());
    begin.is_some_and(|begin| begins_with(&text[begin..], end))
}

/// Whether two strings are the same.
///
/// # Safety
/// `one` points to a string that ends with NUL.
unsafe fn is_same(one: *const c_char, other: &CStr) -> bool {
    let one = one.cast::<u8>();
    let mut other = other.to_bytes_with_nul().iter().enumerate();
    // SAFETY: nothing after the first difference is read, so nothing after the NUL.
    other.all(|(place, byte)| unsafe { one.add(place).read() } == *byte)
}
