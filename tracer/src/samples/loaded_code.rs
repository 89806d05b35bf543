//! The loaded modules with copies of their unwind information, for signal handlers.
//!
//! A handler may not query the loader, which takes locks. It may not read a library's own unwind information either,
//! because another thread may be closing the library. So the information is copied while the loader holds its lock
//! (`dl_iterate_phdr`). Copies are never freed, because there is no way to wait for all handlers. A module that is
//! found again keeps its copy. The thread that drains samples copies modules that are loaded later. A handler checks
//! without a lock whether a module is still loaded (`_dl_find_object`, glibc 2.35).

use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};

use crate::os::loader;
use crate::samples::processor::{Unwinding, plain};
use crate::samples::unwind_rules::Rules;
use crate::session::loaded_modules;

/// Maximum number of times that modules are read; each time leaks a list of modules.
const MAX_READINGS: u32 = 1000;

/// A module's code and unwind information, never freed.
#[derive(Debug)]
pub(super) struct Code {
    start: u64,
    end: u64,
    base: u64,
    /// Address of its `.eh_frame_hdr`, called `dlfo_eh_frame` by `_dl_find_object`.
    header_address: u64,
    header: &'static [u8],
    eh_frame_address: u64,
    eh_frame: &'static [u8],
    pub(super) rules: Rules,
}

/// The modules that were loaded at some time.
pub(super) struct LoadedCode {
    pub(super) unwinder: Unwinding,
    /// Sorted by address.
    modules: Vec<&'static Code>,
    /// The loader's counts at that time.
    counts: (u64, u64),
    readings: u32,
}

/// The newest list; null before the first.
static LOADED: AtomicPtr<LoadedCode> = AtomicPtr::new(null_mut());

/// The modules that were read last.
pub(super) fn loaded() -> Option<&'static LoadedCode> {
    // SAFETY: null, or leaked by `read`. Acquire; pairs with Release there.
    unsafe { LOADED.load(Ordering::Acquire).as_ref() }
}

impl LoadedCode {
    /// The module at `pc`, if it is still loaded.
    pub(super) fn module_at(&self, pc: u64) -> Option<&'static Code> {
        let next = self.modules.partition_point(|module| module.start <= pc);
        let module = *self.modules.get(next.checked_sub(1)?)?;
        let is_there = pc < module.end && is_loaded(pc, module.header_address);
        is_there.then_some(module)
    }
}

/// Reads the modules again if any were loaded or unloaded since, at most [`MAX_READINGS`] times. Called by one thread.
pub(super) fn refresh() {
    let before = loaded();
    let Some(counts) = loaded_modules::loader_counts() else {
        return;
    };
    let readings = before.map_or(0, |before| before.readings);
    if before.is_some_and(|before| before.counts == counts) || readings >= MAX_READINGS {
        return;
    }
    let mut found = Vec::new();
    let asked = loader::each_module(|info, headers| {
        // SAFETY: the loader holds its lock, and reports this module.
        found.extend(unsafe { code_of(info, headers) });
        false
    });
    if asked.is_none() {
        return;
    }
    let mut modules: Vec<&'static Code> = found.into_iter().map(Found::keep).collect();
    modules.sort_by_key(|module| module.start);
    let mut unwinder = Unwinding::new();
    for module in &modules {
        unwinder.add_module(module.for_framehop());
    }
    let loaded = Box::new(LoadedCode { unwinder, modules, counts, readings: readings + 1 });
    // Release; pairs with Acquire in `loaded`. The previous list is not freed, because a handler may be using it.
    LOADED.store(Box::into_raw(loaded), Ordering::Release);
}

/// A module found while the loader holds its lock: already known, or newly copied.
enum Found {
    Known(&'static Code),
    New(Copied),
}

struct Copied {
    start: u64,
    end: u64,
    base: u64,
    header_address: u64,
    header: Vec<u8>,
    eh_frame_address: u64,
    eh_frame: Vec<u8>,
}

impl Found {
    fn keep(self) -> &'static Code {
        let mut copied = match self {
            Found::Known(code) => return code,
            Found::New(copied) => copied,
        };
        plain(&mut copied.eh_frame, copied.eh_frame_address);
        let eh_frame: &'static [u8] = copied.eh_frame.leak();
        Box::leak(Box::new(Code {
            start: copied.start,
            end: copied.end,
            base: copied.base,
            header_address: copied.header_address,
            header: copied.header.leak(),
            eh_frame_address: copied.eh_frame_address,
            rules: Rules::of(eh_frame, copied.eh_frame_address, copied.start),
            eh_frame,
        }))
    }
}

impl Code {
    fn for_framehop(&self) -> Module<&'static [u8]> {
        let place = |address: u64, bytes: &[u8]| {
            let from_base = address - self.base;
            Some(from_base..from_base + bytes.len() as u64)
        };
        let sections = ExplicitModuleSectionInfo {
            eh_frame_svma: place(self.eh_frame_address, self.eh_frame),
            eh_frame: Some(self.eh_frame),
            eh_frame_hdr_svma: place(self.header_address, self.header),
            eh_frame_hdr: Some(self.header),
            ..ExplicitModuleSectionInfo::default()
        };
        Module::new(String::new(), self.start..self.end, self.base, sections)
    }

    /// Whether the bytes at the same address equal the copy.
    ///
    /// # Safety
    /// The module at that address has this header, and is not closed meanwhile.
    unsafe fn is_same(&self, header: Range<u64>) -> bool {
        header == (self.header_address..self.header_address + self.header.len() as u64)
            // SAFETY: by this function's contract.
            && unsafe { bytes(header) } == self.header
    }
}

/// The module's code; `None` if it has no unwind information, or in an unknown format.
///
/// # Safety
/// The loader holds its lock, and reports this module.
unsafe fn code_of(info: &libc::dl_phdr_info, headers: &[libc::Elf64_Phdr]) -> Option<Found> {
    let place = |header: &libc::Elf64_Phdr| {
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
        start..start.wrapping_add(header.p_memsz)
    };
    let loads = || {
        let loads = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        loads.map(place)
    };
    let start = loads().map(|load| load.start).min()?;
    let end = loads().map(|load| load.end).max()?;
    let header = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME).map(place)?;
    let segment = loads().find(|load| load.contains(&header.start))?;
    if segment.end < header.end {
        return None;
    }
    let mut known = loaded().into_iter().flat_map(|loaded| &loaded.modules);
    // SAFETY: the header of a loaded module.
    if let Some(code) = known.find(|code| unsafe { code.is_same(header.clone()) }) {
        return Some(Found::Known(code));
    }
    // SAFETY: as above; both are within mapped segments.
    let (header_bytes, eh_frame_address) = unsafe {
        let header_bytes = bytes(header.clone());
        (header_bytes.to_vec(), eh_frame_address(header_bytes, header.start)?)
    };
    let segment = loads().find(|load| load.contains(&eh_frame_address))?;
    // SAFETY: as above.
    let eh_frame = unsafe { bytes(eh_frame_address..segment.end) };
    let eh_frame = eh_frame[..length(eh_frame)].to_vec();
    Some(Found::New(Copied {
        start,
        end,
        base: info.dlpi_addr.min(start),
        header_address: header.start,
        header: header_bytes,
        eh_frame_address,
        eh_frame,
    }))
}

/// # Safety
/// The range is mapped, and stays so while the slice is used.
unsafe fn bytes<'a>(range: Range<u64>) -> &'a [u8] {
    let len = (range.end - range.start) as usize;
    // SAFETY: by this function's contract.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, len) }
}

/// The address of `.eh_frame`, given the header at `address`: version 1, with a 4-byte pointer relative to itself, as
/// all linkers write it.
fn eh_frame_address(header: &[u8], address: u64) -> Option<u64> {
    const PC_RELATIVE_IN_4_BYTES: u8 = 0x1b;
    let is_known = header.first() == Some(&1) && header.get(1) == Some(&PC_RELATIVE_IN_4_BYTES);
    let distance = header.get(4..8).filter(|_| is_known)?;
    let distance = i32::from_ne_bytes(distance.try_into().ok()?);
    Some((address + 4).wrapping_add_signed(distance.into()))
}

/// Length of `.eh_frame` in bytes: entries, each preceded by its length, up to one with length 0.
fn length(eh_frame: &[u8]) -> usize {
    let mut at = 0;
    while let Some(len) = eh_frame.get(at..at + 4) {
        let len = u32::from_ne_bytes(len.try_into().expect("four bytes"));
        let Some(next) = at.checked_add(4 + len as usize) else {
            break;
        };
        // An entry of more than 4 GiB has another format.
        if len == 0 || len == u32::MAX || next > eh_frame.len() {
            break;
        }
        at = next;
    }
    at
}

/// Whether the module at `pc` is the one whose `.eh_frame_hdr` is at `header_address`; assumed if the C library cannot
/// find modules without a lock.
fn is_loaded(pc: u64, header_address: u64) -> bool {
    loader::unwind_header_of(pc).is_none_or(|found| found == header_address)
}
