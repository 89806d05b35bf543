//! Which module (program or shared library) holds a code address: asked when an address is new, recorded as an event
//! when the module is.
//!
//! Libraries come and go, also at the same address, so a module is valid from its event's time on. The loader counts
//! libraries added and removed; whoever asks compares the counts first. An address asks once per chunk
//! ([`crate::hot::slow_path`]). So does a parallel region that begins some microseconds after the last question: in less, no
//! library can go and another one come.

use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use omptrace_settings::value::Keep;
use omptrace_trace_format::event::Module;
use omptrace_trace_format::field::{Address, ModuleChange, Text};

use crate::os::loader;
use crate::os::lock::Mutex;
use crate::os::module_file;
use crate::os::system;
use crate::session::fork;

/// Ranges that a thread asked for last: no lock for the same few modules.
#[derive(Debug)]
pub(crate) struct KnownModules {
    ranges: [Cell<(u64, u64)>; 4],
    next: Cell<usize>,
    counts: Cell<(u64, u64)>,
}

impl KnownModules {
    pub(crate) const fn new() -> KnownModules {
        KnownModules {
            ranges: [const { Cell::new((0, 0)) }; 4],
            next: Cell::new(0),
            counts: Cell::new((0, 0)),
        }
    }

    fn contains(&self, code: u64) -> bool {
        self.ranges.iter().any(|range| (range.get().0..range.get().1).contains(&code))
    }

    fn add(&self, start: u64, end: u64) {
        let next = self.next.get() % self.ranges.len();
        self.ranges[next].set((start, end));
        self.next.set(next + 1);
    }

    pub(crate) fn forget(&self) {
        self.ranges.iter().for_each(|range| range.set((0, 0)));
    }
}

/// A module as the loader has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    path: Vec<u8>,
    /// By which its file is opened: the program's own may have no name any more.
    file: Vec<u8>,
    build_id: Vec<u8>,
    load_address: u64,
    start: u64,
    end: u64,
}

impl Loaded {
    /// The event that reports it.
    pub(crate) fn event(&self, change: ModuleChange) -> Module<'_> {
        let (file_size, modified_ns) = system::file_stamp(&self.file);
        Module {
            change,
            path: Text::new(&self.path),
            build_id: if self.build_id.is_empty() { Text(None) } else { Text::new(&self.build_id) },
            load_address: Address(self.load_address),
            start: Address(self.start),
            end: Address(self.end),
            file_size,
            modified_ns,
        }
    }
}

/// The session's modules: those that some event has reported.
#[derive(Debug)]
pub(crate) struct Modules {
    reported: Mutex<Reported>,
    /// The modules that the parent had reported, where this process is a child: it may be unable to ask the loader.
    inherited: Vec<Loaded>,
    /// Whether modules that other threads know are reported again to a thread that asks: theirs may be overwritten.
    again: bool,
    /// Where `omptrace record` takes the files of modules.
    registry: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct Reported {
    modules: Vec<Loaded>,
    /// The loader's counts of libraries added and removed.
    counts: (u64, u64),
}

impl Modules {
    /// None reported yet. `inherited` are those [`Modules::reported`] of the parent.
    pub(crate) fn new(keep: Keep, inherited: Vec<Loaded>, registry: Option<PathBuf>) -> Modules {
        Modules { reported: Mutex::default(), inherited, again: keep == Keep::Newest, registry }
    }

    /// The modules that some event has reported; none where a thread is looking at them, which a child would wait for for
    /// ever.
    pub(crate) fn reported(&self) -> Vec<Loaded> {
        self.reported.try_lock().map_or_else(Vec::new, |reported| reported.modules.clone())
    }

    /// Calls `report` with the module that holds `code` if the session has not reported it yet; `report` says whether it
    /// has now.
    pub(crate) fn note(&self, code: u64, known: &KnownModules, mut report: impl FnMut(Module<'_>) -> bool) {
        if code == 0 {
            return;
        }
        self.refresh(known, &mut report);
        if known.contains(code) {
            return;
        }
        let Some(module) = self.module_at(code) else {
            return;
        };
        let mut reported = self.reported.lock();
        let is_new = !reported.modules.contains(&module);
        if (is_new || self.again) && !report(module.event(ModuleChange::seen)) {
            return;
        }
        if is_new {
            reported.modules.push(module.clone());
        }
        drop(reported);
        known.add(module.start, module.end);
        if let Some(folder) = self.registry.as_ref().filter(|_| is_new) {
            module_file::send(folder, &module.path, &module.file);
        }
    }

    fn module_at(&self, code: u64) -> Option<Loaded> {
        loaded_at(code).unwrap_or_else(|| {
            let mut inherited = self.inherited.iter();
            let holds = |module: &&Loaded| (module.start..module.end).contains(&code);
            inherited.find(holds).cloned()
        })
    }

    /// Calls `report` with each module that the loader has removed since anybody asked.
    pub(crate) fn refresh(&self, known: &KnownModules, mut report: impl FnMut(Module<'_>) -> bool) {
        let Some(counts) = loader_counts() else {
            return;
        };
        if known.counts.replace(counts) == counts {
            return;
        }
        known.forget();
        let mut reported = self.reported.lock();
        if reported.counts != counts {
            reported.counts = counts;
            reported.modules.retain(|module| {
                let still = self.module_at(module.start).is_some_and(|now| now == *module);
                still || !report(module.event(ModuleChange::unloaded))
            });
        }
    }
}

/// The loader's counts of libraries added and removed since the process began; `None` where it cannot be asked.
pub(crate) fn loader_counts() -> Option<(u64, u64)> {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, counts: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid structure, and `counts` is the pair below.
        unsafe { *counts.cast::<(u64, u64)>() = ((*info).dlpi_adds, (*info).dlpi_subs) };
        1
    }
    let mut counts = (0, 0);
    // SAFETY: `first` treats its arguments as `dl_iterate_phdr` gives them.
    fork::outside_forks(|| unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut counts).cast()) })?;
    Some(counts)
}

/// The module that holds `code`, if any does; `None` where the loader cannot be asked.
fn loaded_at(code: u64) -> Option<Option<Loaded>> {
    struct Search {
        code: u64,
        found: Option<Loaded>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid structure, and `search` is the one below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: as the loader passes it.
        let headers = unsafe { loader::program_headers(info) };
        let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start = loads().map(|header| info.dlpi_addr.wrapping_add(header.p_vaddr)).min().unwrap_or(0);
        let end = loads()
            .map(|header| info.dlpi_addr.wrapping_add(header.p_vaddr + header.p_memsz))
            .max()
            .unwrap_or(0);
        if !(start..end).contains(&search.code) {
            return 0;
        }
        let (path, file) = path_of(info.dlpi_name);
        search.found = Some(Loaded {
            path,
            file,
            build_id: headers
                .iter()
                .filter(|header| header.p_type == libc::PT_NOTE)
                .find_map(|header| {
                    let note = info.dlpi_addr.wrapping_add(header.p_vaddr) as *const u8;
                    // SAFETY: a note segment of a loaded module is mapped and readable.
                    build_id(unsafe { std::slice::from_raw_parts(note, header.p_memsz as usize) })
                })
                .unwrap_or_default(),
            load_address: info.dlpi_addr,
            start,
            end,
        });
        1
    }
    let mut search = Search { code, found: None };
    // SAFETY: `visit` treats its arguments as `dl_iterate_phdr` gives them.
    fork::outside_forks(|| unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) })?;
    Some(search.found)
}

/// The path of a module by the loader's name, which is empty for the program itself; and by which its file is opened.
fn path_of(name: *const libc::c_char) -> (Vec<u8>, Vec<u8>) {
    const PROGRAM: &str = "/proc/self/exe";

    let name = if name.is_null() {
        &[][..]
    } else {
        // SAFETY: the loader's names are C strings.
        unsafe { CStr::from_ptr(name) }.to_bytes()
    };
    if name.is_empty() {
        let path = std::fs::read_link(PROGRAM).unwrap_or_default();
        return (path.into_os_string().into_vec(), PROGRAM.into());
    }
    // A relative name is relative to the folder of this moment.
    let path = system::absolute(Path::new(OsStr::from_bytes(name)));
    let path = path.into_os_string().into_vec();
    (path.clone(), path)
}

/// The build id, in hex, of a note segment: `NT_GNU_BUILD_ID` (3) of `GNU`.
fn build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    while notes.len() >= 12 {
        let number =
            |at: usize| u32::from_ne_bytes(notes[at..at + 4].try_into().expect("four bytes")) as usize;
        let (name_len, len, kind) = (number(0), number(4), number(8));
        let text = 12 + name_len.next_multiple_of(4);
        let content = notes.get(text..text.checked_add(len)?)?;
        if kind == 3 && notes[12..].starts_with(b"GNU\0") {
            return Some(content.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect());
        }
        notes = notes.get(text + len.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_this_program_once() {
        let (modules, known, other) =
            (Modules::new(Keep::All, Vec::new(), None), KnownModules::new(), KnownModules::new());
        let code = finds_this_program_once as fn() as usize as u64;
        let mut paths = Vec::new();
        for known in [&known, &known, &other] {
            modules.note(code, known, |module| {
                paths.push(module.path.lossy().into_owned());
                true
            });
        }
        assert_eq!(paths, [std::env::current_exe().unwrap().to_str().unwrap()]);
    }

    #[test]
    fn notes_give_the_build_id() {
        let note = b"\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0\xab\x01\xff\0";
        assert_eq!(build_id(note).unwrap(), b"ab01ff");
        assert_eq!(build_id(&note[..15]), None);
    }
}
