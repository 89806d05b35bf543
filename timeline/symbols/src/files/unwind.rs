//! The starts of functions, from a module's unwind information. Programs without symbols have it, too, because
//! exceptions and profilers need it.

use addr2line::gimli::{BaseAddresses, CieOrFde, EhFrame, RunTimeEndian, UnwindSection};
use object::{Object, ObjectSection};

/// Start and end of each piece of code that `.eh_frame` describes, sorted: functions, and parts that the compiler moved
/// out of functions. In damaged information, the pieces before the damage are found.
pub(crate) fn functions(file: &object::File<'_>) -> Vec<(u64, u64)> {
    let mut functions = Vec::new();
    let Some(section) = file.section_by_name(".eh_frame") else {
        return functions;
    };
    let Ok(bytes) = section.data() else {
        return functions;
    };
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let address = |name| file.section_by_name(name).map_or(0, |section| section.address());
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_text(address(".text"))
        .set_got(address(".got"));
    let mut eh_frame = EhFrame::new(bytes, endian);
    eh_frame.set_address_size(if file.is_64() { 8 } else { 4 });
    let mut entries = eh_frame.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(entry) = partial.parse(EhFrame::cie_from_offset)
            && let Some(end) = entry.initial_address().checked_add(entry.len())
        {
            functions.push((entry.initial_address(), end));
        }
    }
    functions.sort_unstable();
    functions
}

/// The start of the piece in `functions` that contains `offset`.
pub(crate) fn begin(functions: &[(u64, u64)], offset: u64) -> Option<u64> {
    let after = functions.partition_point(|(begin, _)| *begin <= offset);
    let (begin, end) = functions[..after].last()?;
    (offset < *end).then_some(*begin)
}
