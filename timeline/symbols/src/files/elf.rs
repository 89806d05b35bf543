//! The contents of a module's file: its debug sections, and the functions in its symbol table.

use std::borrow::Cow;

use addr2line::gimli::{self, EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::files::MAX_BYTES;

pub(crate) type Slice<'d> = EndianSlice<'d, RunTimeEndian>;
pub(crate) type Sections<'d> = gimli::DwarfSections<Cow<'d, [u8]>>;

/// The uncompressed debug sections; missing or damaged ones are empty.
pub(crate) fn sections<'d>(file: &object::File<'d>) -> Sections<'d> {
    let data = |id: gimli::SectionId| {
        let section = file.section_by_name(id.name())?;
        let packed = section.compressed_data().ok()?;
        (packed.uncompressed_size <= MAX_BYTES).then_some(())?;
        packed.decompress().ok()
    };
    let loaded = Sections::load(|id| Ok::<_, gimli::Error>(data(id).unwrap_or_default()));
    loaded.unwrap_or_default()
}

/// A function of the symbol table.
pub(crate) struct TextSymbol<'d> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: &'d str,
}

/// The functions in the symbol table, or if there is none, in the dynamic symbol table, by address.
pub(crate) fn text_symbols<'d>(file: &object::File<'d>) -> Vec<TextSymbol<'d>> {
    let functions = |symbols: object::SymbolIterator<'d, '_>| {
        let mut functions: Vec<TextSymbol<'d>> = symbols
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            // Symbols without size are labels, and the code after a label may be anything.
            .filter(|symbol| symbol.size() > 0)
            .filter_map(|symbol| {
                Some(TextSymbol {
                    start: symbol.address(),
                    end: symbol.address().checked_add(symbol.size())?,
                    name: symbol.name().ok().filter(|name| !name.is_empty())?,
                })
            })
            .collect();
        functions.sort_by_key(|symbol| (symbol.start, symbol.end, symbol.name));
        functions
    };
    let all = functions(file.symbols());
    match all.is_empty() {
        true => functions(file.dynamic_symbols()),
        false => all,
    }
}
