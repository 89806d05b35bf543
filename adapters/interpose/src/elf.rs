//! Symbols of a library, by the loader and the library's dynamic section (System V ABI, "Dynamic Linking").

use core::ffi::{CStr, c_char, c_int};
use core::{ptr, slice};

/// The loader's description of a library, as far as it is public.
#[repr(C)]
#[derive(Debug)]
pub struct LinkMap {
    /// What is added to the library's addresses.
    pub addr: usize,
    /// Its file; empty for the program.
    pub name: *const c_char,
    dynamic: *const Entry,
    /// The next library; null at the last.
    pub next: *const LinkMap,
}

/// What debuggers read (`link.h`).
#[repr(C)]
struct Debug {
    version: c_int,
    first: *const LinkMap,
}

unsafe extern "C" {
    /// The loader's own, of the program's namespace.
    static _r_debug: Debug;
}

/// The first of the loader's list: the program.
pub fn first_map() -> *const LinkMap {
    // SAFETY: the loader's structure. It is written when the process begins.
    unsafe { (&raw const _r_debug.first).read() }
}

/// The loader's list from `map` on, which may be null.
///
/// # Safety
/// Null or in the list, of which nothing that is asked for comes or goes meanwhile.
pub unsafe fn maps_from(map: *const LinkMap) -> impl Iterator<Item = *const LinkMap> {
    let mut next = map;
    core::iter::from_fn(move || {
        let this = next;
        // SAFETY: null, or the loader's description of a library that stays.
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

/// The tags of dynamic sections that matter here. The last four are GNU's.
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

/// A version that is defined.
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

/// The bits of a symbol's version that are its number.
const NUMBER: u16 = 0x7fff;
/// The bit of one that is found only by who asks for this version.
const IS_HIDDEN: u16 = 0x8000;

/// The relocations by which a library gets the addresses of functions (`R_*_GLOB_DAT`, `R_*_JUMP_SLOT`).
const OF_FUNCTIONS: [u32; 2] = if cfg!(target_arch = "x86_64") { [6, 7] } else { [1025, 1026] };

/// A loaded library. It is another one only if its dynamic section lies elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// What is added to its addresses.
    pub base: usize,
    dynamic: *const Entry,
}

// SAFETY: what it points to is the loader's, and does not change once the library is loaded.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl PartialEq for Library {
    fn eq(&self, other: &Library) -> bool {
        ptr::eq(self.dynamic, other.dynamic)
    }
}

unsafe extern "C" {
    /// The dynamic section of this library: the linker defines it in each.
    static _DYNAMIC: Entry;
}

impl Library {
    /// Whether it is this library.
    pub fn is_own(&self) -> bool {
        ptr::eq(self.dynamic, &raw const _DYNAMIC)
    }

    /// The one that `dl_iterate_phdr` describes so; `None` for a program that is linked statically.
    ///
    /// # Safety
    /// As of [`Library::of_map`].
    pub unsafe fn of_headers(base: usize, headers: &[libc::Elf64_Phdr]) -> Option<Library> {
        let mut dynamic = headers.iter().filter(|header| header.p_type == libc::PT_DYNAMIC);
        dynamic.next().map(|header| Library {
            base,
            dynamic: base.wrapping_add(header.p_vaddr as usize) as *const Entry,
        })
    }

    /// The one that the loader describes so.
    ///
    /// # Safety
    /// The library is loaded, and stays so for as long as the result is used.
    pub unsafe fn of_map(map: *const LinkMap) -> Library {
        // SAFETY: by the caller's promise.
        unsafe { Library { base: (*map).addr, dynamic: (*map).dynamic } }
    }

    fn value(&self, wanted: i64) -> Option<usize> {
        // SAFETY: the dynamic section of a loaded library; the last entry is `NULL`.
        let all = (0..).map(|place| unsafe { self.dynamic.add(place).read() });
        let mut all = all.take_while(|entry| entry.tag != tag::NULL);
        all.find(|entry| entry.tag == wanted).map(|entry| entry.value)
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
        Some(unsafe { text(strings.add(place as usize)) })
    }

    /// Whether it refers to a symbol of this version whose name is wanted.
    pub fn refers_to(&self, version: &CStr, is_wanted: impl Fn(&CStr) -> bool) -> bool {
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
        Some(self.relocations().any(is_it))
    }

    fn relocations(&self) -> impl Iterator<Item = &libc::Elf64_Rela> {
        let tables =
            [(tag::RELOCATIONS, tag::RELOCATION_BYTES), (tag::PLT_RELOCATIONS, tag::PLT_RELOCATION_BYTES)];
        let tables = tables.into_iter().filter_map(|(first, bytes)| {
            let count = self.value(bytes)? / size_of::<libc::Elf64_Rela>();
            let first = self.table::<libc::Elf64_Rela>(first)?;
            // SAFETY: as many relocations follow each other as the library says.
            Some(unsafe { slice::from_raw_parts(first, count) })
        });
        tables.flatten()
    }

    /// The addresses that the loader has found so far for functions with wanted names, which others define.
    pub fn bindings(&self, is_wanted: impl Fn(&CStr) -> bool) -> impl Iterator<Item = usize> {
        let symbols: Option<*const libc::Elf64_Sym> = self.table(tag::SYMBOLS);
        self.relocations().filter_map(move |relocation| {
            let (symbol, kind) = (relocation.r_info >> 32, relocation.r_info as u32);
            if !OF_FUNCTIONS.contains(&kind) {
                return None;
            }
            // SAFETY: relocations name symbols of the same library, and a place in it.
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

    /// The symbols that it defines; `None` where it has none.
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

    /// The address of the function that it defines under this name. See [`Symbols::function`].
    pub fn function(&self, name: &CStr) -> Option<usize> {
        self.symbols()?.function(name)
    }

    /// The same for a version of the function, as `dlvsym` finds it.
    pub fn function_of_version(&self, name: &CStr, version: &CStr) -> Option<usize> {
        let wanted = self.number(version)?;
        self.symbols()?.search(name, |version| version & NUMBER == wanted)
    }

    /// The number of a version that it defines.
    fn number(&self, name: &CStr) -> Option<u16> {
        let mut version: *const DefinedVersion = self.table(tag::DEFINED_VERSIONS)?;
        // SAFETY: each names the distance to its name, and that to the next, 0 at the last.
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

/// The table by which symbols are found.
#[derive(Clone, Copy, Debug)]
enum Hashes {
    /// GNU's.
    Gnu(*const u32),
    /// That of the System V ABI, of which only the number of symbols is used.
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

// SAFETY: as of `Library`.
unsafe impl Send for Symbols {}
// SAFETY: as above.
unsafe impl Sync for Symbols {}

impl Symbols {
    /// The address of the function of this name, as `dlsym` finds it. Allocates nothing, and calls nothing.
    pub fn function(&self, name: &CStr) -> Option<usize> {
        self.search(name, |version| version & IS_HIDDEN == 0)
    }

    /// The address of the symbol at this place, if it is the function of this name, of a version that `is_wanted`.
    fn address(&self, place: u32, name: &CStr, is_wanted: impl Fn(u16) -> bool) -> Option<usize> {
        let place = place as usize;
        // SAFETY: there is a symbol of this number with a name, and a version of each.
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
                // SAFETY: the second word is the number of symbols.
                let count = unsafe { hashes.add(1).read() };
                return (1..count).find_map(|place| self.address(place, name, &is_wanted));
            }
        };
        let hash = name
            .to_bytes()
            .iter()
            .fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
        // SAFETY: the header, the filter of 64-bit words, the buckets and the chains follow each other. A chain ends with an
        // odd number, and there is a symbol for each link. A name has two bits in one word of the filter.
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

// The program may have functions of its own in the place of the C library's, and use OpenMP in them. So strings are read here
// without `strlen` and `memcmp`.

/// The string at an address.
///
/// # Safety
/// There is one, for as long as the result is used.
pub unsafe fn text<'a>(at: *const c_char) -> &'a CStr {
    // SAFETY: by the caller's promise, no byte behind the string's end is read. Volatile, so that it stays a loop.
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
/// `one` points to a string.
unsafe fn is_same(one: *const c_char, other: &CStr) -> bool {
    let one = one.cast::<u8>();
    let mut other = other.to_bytes_with_nul().iter().enumerate();
    // SAFETY: no byte behind the first difference is read, so none behind the end.
    other.all(|(place, byte)| unsafe { one.add(place).read() } == *byte)
}
