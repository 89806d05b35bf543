//! Reads ELF headers, as far as they concern the loader and OpenMP.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use object::elf::{self, FileHeader64};
use object::read::StringTable;
use object::read::elf::{
    ElfFile64, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym, SymbolTable,
};
use object::{Endianness, Object, ObjectSection, ReadCache, SectionIndex, SectionKind};

use crate::system::processor;

/// A program or a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Elf {
    /// For another machine, with this name.
    Foreign(&'static str),
    /// For this machine.
    Native(Native),
}

/// A program or a library for this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Native {
    /// `PT_INTERP`: the loader. Only static programs have none.
    pub(crate) loader: Option<String>,
    /// `DT_NEEDED`: the needed libraries.
    pub(crate) needed: Vec<String>,
    /// `DT_RPATH`: searched before LD_LIBRARY_PATH.
    pub(crate) rpath: Vec<String>,
    /// `DT_RUNPATH`: searched after it; if present, DT_RPATH is ignored.
    pub(crate) runpath: Vec<String>,
    /// `PT_TLS`: the maximum size of its thread-local storage, including alignment.
    pub(crate) thread_local_bytes: u64,
}

/// Reads a file's headers and dynamic section; `None` if it is not an ELF file.
///
/// # Errors
/// The file cannot be read, or is damaged.
pub(crate) fn read(path: &Path) -> io::Result<Option<Elf>> {
    let mut file = File::open(path)?;
    let mut start = [0; 20];
    if file.read_exact(&mut start).is_err() || start[..4] != elf::ELFMAG {
        return Ok(None);
    }
    if let Some(machine) = foreign(&start) {
        return Ok(Some(Elf::Foreign(machine)));
    }
    let cache = ReadCache::new(file);
    let native = native(&cache).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Some(Elf::Native(native)))
}

/// Whether the file defines one of these symbols, unless they were stripped.
pub(crate) fn defines(path: &Path, names: &[&str]) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let cache = ReadCache::new(file);
    let defined_in = |kind| -> object::Result<bool> {
        let symbols = Symbols::read(&cache, kind)?;
        Ok(symbols.table.iter().any(|symbol| {
            let is_it = symbol
                .name(symbols.endian, symbols.names)
                .is_ok_and(|name| names.iter().any(|wanted| wanted.as_bytes() == name));
            is_it && symbol.is_definition(symbols.endian, symbols.names)
        }))
    };
    [elf::SHT_DYNSYM, elf::SHT_SYMTAB].into_iter().any(|kind| defined_in(kind).unwrap_or(false))
}

/// A table of symbols. All names are read at once, because a library has thousands of symbols.
struct Symbols<'c> {
    endian: Endianness,
    sections: SectionTable<'c, FileHeader64<Endianness>, &'c ReadCache<File>>,
    table: SymbolTable<'c, FileHeader64<Endianness>, &'c ReadCache<File>>,
    names: StringTable<'c>,
}

impl<'c> Symbols<'c> {
    fn read(data: &'c ReadCache<File>, kind: elf::SectionType) -> object::Result<Symbols<'c>> {
        let header = FileHeader64::<Endianness>::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let table = sections.symbols(endian, data, kind)?;
        let names: &[u8] = match table.string_section() {
            // The table does not exist.
            SectionIndex(0) => &[],
            section => sections.section(section)?.data(endian, data)?,
        };
        Ok(Symbols { endian, sections, table, names: StringTable::new(names, 0, names.len() as u64) })
    }
}

/// A dynamic symbol and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DynamicSymbol {
    /// Its name.
    pub(crate) name: String,
    /// The object defines the symbol; otherwise, it refers to another object's.
    pub(crate) is_defined: bool,
    /// The name of its version, if it has one.
    version: Option<String>,
    /// Only references to this version are bound to it: `name@version` instead of `name@@version`.
    is_hidden: bool,
}

impl DynamicSymbol {
    /// Whether the loader would bind `reference` to this definition (glibc, `check_match` in `elf/dl-lookup.c`).
    pub(crate) fn satisfies(&self, reference: &DynamicSymbol) -> bool {
        let fits = match (&self.version, &reference.version) {
            (Some(version), Some(wanted)) => version == wanted,
            (None, Some(_)) | (_, None) => !self.is_hidden,
        };
        self.is_defined && self.name == reference.name && fits
    }
}

/// The dynamic symbols whose names pass; empty if the file cannot be read.
pub(crate) fn dynamic_symbols(path: &Path, passes: impl Fn(&str) -> bool) -> Vec<DynamicSymbol> {
    let Ok(file) = File::open(path) else {
        return Vec::new();
    };
    symbols(&ReadCache::new(file), passes).unwrap_or_default()
}

fn symbols(data: &ReadCache<File>, passes: impl Fn(&str) -> bool) -> object::Result<Vec<DynamicSymbol>> {
    let Symbols { endian, sections, table, names } = Symbols::read(data, elf::SHT_DYNSYM)?;
    let versions = sections.versions(endian, data)?.unwrap_or_default();
    let mut found = Vec::new();
    for (index, symbol) in table.enumerate() {
        let name = String::from_utf8_lossy(symbol.name(endian, names)?);
        if !passes(&name) {
            continue;
        }
        let version_index = versions.version_index(endian, index);
        let version = versions.version(version_index.index())?;
        found.push(DynamicSymbol {
            name: name.into_owned(),
            is_defined: !symbol.is_undefined(endian),
            version: version.map(|version| String::from_utf8_lossy(version.name()).into_owned()),
            is_hidden: version_index.is_hidden(),
        });
    }
    Ok(found)
}

/// Whether a section of the file's constants contains `text`.
pub(crate) fn contains(path: &Path, text: &[u8]) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let cache = ReadCache::new(file);
    let Ok(file) = ElfFile64::<Endianness, _>::parse(&cache) else {
        return false;
    };
    let constants = file.sections().filter(|section| {
        matches!(section.kind(), SectionKind::ReadOnlyData | SectionKind::ReadOnlyString | SectionKind::Data)
    });
    constants
        .filter_map(|section| section.data().ok())
        .any(|data| data.windows(text.len()).any(|window| window == text))
}

/// The machine in the first bytes of an ELF file, if it is not this one. Bytes 18 and 19 are `e_machine`; on the
/// supported machines, their order is that of the file.
fn foreign(start: &[u8; 20]) -> Option<&'static str> {
    let bits64 = start[4] == elf::ELFCLASS64.0;
    let machine = elf::Machine(u16::from_ne_bytes([start[18], start[19]]));
    match machine {
        _ if bits64 && machine == processor::THIS.machine => None,
        elf::EM_386 => Some("32-bit x86"),
        elf::EM_X86_64 if bits64 => Some("x86-64"),
        elf::EM_X86_64 => Some("x32"),
        elf::EM_ARM => Some("32-bit Arm"),
        elf::EM_AARCH64 => Some("64-bit Arm"),
        elf::EM_PPC64 => Some("POWER"),
        elf::EM_RISCV => Some("RISC-V"),
        elf::EM_S390 => Some("IBM Z"),
        _ => Some("another machine"),
    }
}

fn native(data: &ReadCache<File>) -> object::Result<Native> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let mut native = Native::default();
    for segment in header.program_headers(endian, data)? {
        if let Some(path) = segment.interpreter(endian, data)? {
            native.loader = Some(String::from_utf8_lossy(path).into_owned());
        }
        if segment.p_type(endian) == elf::PT_TLS {
            let (bytes, align) = (segment.p_memsz(endian), segment.p_align(endian));
            native.thread_local_bytes = bytes.saturating_add(align);
        }
    }
    let table = sections.dynamic_table(endian, data)?;
    for entry in &table {
        let text =
            || -> object::Result<String> { Ok(String::from_utf8_lossy(table.string(entry)?).into_owned()) };
        match entry.tag {
            elf::DT_NEEDED => native.needed.push(text()?),
            elf::DT_RPATH => native.rpath = folders(&text()?),
            elf::DT_RUNPATH => native.runpath = folders(&text()?),
            _ => {}
        }
    }
    Ok(native)
}

fn folders(list: &str) -> Vec<String> {
    list.split(':').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::io_counts::reads_of;

    /// `name`, `name@version` or `name@@version`.
    fn symbol(text: &str, is_defined: bool) -> DynamicSymbol {
        let (name, version) = text.split_once('@').unzip();
        DynamicSymbol {
            name: name.unwrap_or(text).to_owned(),
            is_defined,
            version: version.map(|version| version.trim_start_matches('@').to_owned()),
            is_hidden: version.is_some_and(|version| !version.starts_with('@')),
        }
    }

    #[test]
    fn names_of_symbols_are_not_read_one_by_one() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        let library = paths.find(|path| path.contains("/libc.so")).expect("the C library");
        let mut answers = [false; 2];
        let reads = reads_of(|| {
            answers =
                [&["no_such", "malloc"][..], &["no_such"]].map(|names| defines(Path::new(library), names));
        });
        assert_eq!(answers, [true, false]);
        assert!(reads < 60, "{reads} reads of {library}");
        let reads = reads_of(|| {
            let found = dynamic_symbols(Path::new(library), |name| name == "malloc");
            assert!(found.iter().any(|symbol| symbol.is_defined), "{found:?}");
        });
        // Each version has a name.
        assert!(reads < 200, "{reads} reads of {library}");
    }

    #[test]
    fn versions_match_as_the_loader_matches_them() {
        for (definition, reference, binds) in [
            ("f@@VERSION", "f@OMP_5.0.1", false),
            ("f@OMP_1.0", "f@OMP_1.0", true),
            ("f", "f@OMP_5.0.1", true),
            ("f@@VERSION", "f", true),
            ("f@OMP_1.0", "f", false),
            ("g", "f", false),
        ] {
            let (definition, reference) = (symbol(definition, true), symbol(reference, false));
            assert_eq!(definition.satisfies(&reference), binds, "{definition:?} {reference:?}");
        }
    }
}
