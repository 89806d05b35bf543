//! The module (program or shared library) that contains a code address: looked up if an address is new, and recorded as
//! an event if the module is.
//!
//! Libraries may be loaded and unloaded, even at the same address, so a module is valid from its event's time on. A
//! lookup first determines which reported modules are gone, by their [marks](Mark), without a lock. If the C library
//! has no such function, the loader's counts of libraries added and removed tell whether anything changed. The program
//! and the libraries with which the process was started are not checked, because they stay loaded. The others are
//! checked at new addresses, and when a parallel region begins. No check is made within some microseconds after the
//! previous one, because no library can be unloaded and another loaded in that time ([`KnownModules`]).

use std::ffi::{CStr, OsStr};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use omptrace_device::memory;
use omptrace_settings::value::Keep;
use omptrace_trace_format::event::Module;
use omptrace_trace_format::field::{Address, ModuleChange, Text};

use crate::os::files::module_file;
use crate::os::loader;
use crate::os::loader::{Identity, Mark};
use crate::os::system;
use crate::os::threads::lock::{Guard, Mutex};
use crate::recorder::known_modules::{Known, KnownModules, State};

/// A module as described by the loader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    path: Vec<u8>,
    /// The path for opening its file: the program's own file may have no name any more.
    file: Vec<u8>,
    build_id: Vec<u8>,
    load_address: u64,
    start: u64,
    end: u64,
}

impl Loaded {
    /// The event that reports the module.
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

/// The modules that the session's events have reported.
#[derive(Debug)]
pub(crate) struct Modules {
    reported: Mutex<Reported>,
    /// Whether one of them may be unloaded.
    may_go: AtomicBool,
    /// Number of times that modules were found to be gone.
    changes: AtomicU64,
    /// The modules that the parent had reported, if this process is a forked child, which may be unable to query the
    /// loader.
    inherited: Vec<Loaded>,
    /// Whether modules reported by other threads are reported again to a thread that looks them up, because the other
    /// reports may be overwritten.
    again: bool,
    /// The directory in which `omptrace record` receives the files of modules.
    registry: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct Reported {
    modules: Vec<ReportedModule>,
    /// The state at the last query of the loader.
    state: State,
}

#[derive(Debug)]
struct ReportedModule {
    module: Loaded,
    mark: Option<Mark>,
    stays: bool,
    /// The time of the first event that reports the module, in raw ticks.
    since: u64,
}

/// How a code address is used when its module is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The code is calling, so its module stays loaded.
    Calls,
    /// Like `Calls`, for a call that does not involve the runtime and began at this time.
    Waits {
        /// In raw ticks.
        since: u64,
    },
    /// The address is an argument of a callback. Its module may be gone, because a worker reports the end of a region
    /// late.
    Named,
    /// The address is from a sample, and is looked up by a helper thread.
    Sampled,
}

impl Code {
    /// Whether the module stays loaded during the lookup.
    fn calls(self) -> bool {
        matches!(self, Code::Calls | Code::Waits { .. })
    }
}

impl Modules {
    /// No modules reported yet. `inherited` is the result of [`Modules::reported`] in the parent.
    pub(crate) fn new(keep: Keep, inherited: Vec<Loaded>, registry: Option<PathBuf>) -> Modules {
        let again = keep == Keep::Newest;
        let (may_go, changes) = (AtomicBool::new(false), AtomicU64::new(0));
        Modules { reported: Mutex::default(), may_go, changes, inherited, again, registry }
    }

    /// The modules that events have reported; empty if another thread holds the lock, for which a child would wait
    /// forever.
    pub(crate) fn reported(&self) -> Vec<Loaded> {
        let reported = self.reported.try_lock();
        let cloned = |reported: Guard<'_, Reported>| {
            let all = reported.modules.iter();
            all.map(|reported| reported.module.clone()).collect()
        };
        reported.map_or_else(Vec::new, cloned)
    }

    /// Calls `report` with the module that contains `code`, used by an event at time `at` (raw ticks), unless the
    /// session has reported the module by then. `report` returns whether it succeeded. Returns whether it has checked
    /// which modules are gone, which it does not for code that stays loaded.
    pub(crate) fn note(
        &self,
        code: u64,
        whose: Code,
        at: u64,
        known: &KnownModules,
        mut report: impl FnMut(Module<'_>) -> bool,
    ) -> bool {
        if code == 0 || known.has_for_ever(code) {
            return false;
        }
        self.refresh(known, &mut report);
        let mark = match whose {
            Code::Calls | Code::Waits { .. } | Code::Named => loader::mark_at(code),
            Code::Sampled => None,
        };
        if mark == Some(None) {
            return true;
        }
        if let Some((place, before)) = known.find_marked(code, mark.flatten()) {
            // Another module may get the mark of an unloaded one, but its use starts with a call.
            // SAFETY: the code is calling, so its module, including its notes, stays loaded.
            let now = whose.calls().then(|| unsafe { stamp_and_identity(code) });
            match now.flatten() {
                Some((stamp, _)) if stamp != before.stamp => known.remove(place),
                Some((_, identity)) => {
                    known.identify(place, identity);
                    return true;
                }
                None => return true,
            }
        }
        let copied = mark.and_then(|_| loader::copy_at(code)).flatten();
        let (module, stamp) = match copied {
            Some(it) => {
                let stamp = stamp_of(it.mark, &it.name, &build_id_of(it.load_address, &it.headers));
                (Some(Loaded::of(it.load_address, &it.name, &it.headers)), stamp)
            }
            None => (self.module_at(code), 0),
        };
        let Some(module) = module else {
            return true;
        };
        let known_by = mark.flatten();
        let mark = loader::mark_at(module.start).flatten();
        let stays = loader::stays(module.load_address);
        let mut reported = self.reported.lock();
        let before = reported.modules.iter_mut().find(|reported| reported.module == module);
        let is_new = before.is_none();
        // Another thread may have seen the module at the same time, and reported it after this event.
        let is_told = before.as_ref().is_some_and(|reported| reported.since <= at);
        if (!is_told || self.again) && !report(module.event(ModuleChange::seen)) {
            return true;
        }
        if let Some(before) = before {
            before.since = before.since.min(at);
        }
        if is_new {
            if !stays {
                // Relaxed: a thread that uses the module has reported it under the lock.
                self.may_go.store(true, Ordering::Relaxed);
            }
            reported.modules.push(ReportedModule { module: module.clone(), mark, stays, since: at });
        }
        drop(reported);
        // SAFETY: as above.
        let identity = whose.calls().then(|| unsafe { stamp_and_identity(code) });
        let identity = identity.flatten().filter(|(now, _)| *now == stamp).and_then(|(_, identity)| identity);
        known.add(Known { start: module.start, end: module.end, stays, mark: known_by, stamp, identity });
        if let Some(folder) = self.registry.as_ref().filter(|_| is_new) {
            module_file::send(folder, &module.path, &module.file);
        }
        true
    }

    fn module_at(&self, code: u64) -> Option<Loaded> {
        loaded_at(code).unwrap_or_else(|| {
            let mut inherited = self.inherited.iter();
            let holds = |module: &&Loaded| (module.start..module.end).contains(&code);
            inherited.find(holds).cloned()
        })
    }

    /// Calls `report` with each module that the loader has removed since the last check.
    pub(crate) fn refresh(&self, known: &KnownModules, mut report: impl FnMut(Module<'_>) -> bool) {
        // Relaxed: a module that another thread reports at this moment was loaded at this moment.
        if !self.may_go.load(Ordering::Relaxed) {
            return;
        }
        let Some(state) = self.find_gone(&mut report).or_else(loader_counts) else {
            return;
        };
        if known.state.replace(state) == state {
            return;
        }
        known.forget();
        let mut reported = self.reported.lock();
        if !loader::asks_without_lock() && reported.state != state {
            reported.state = state;
            reported.modules.retain(|ReportedModule { module, stays, .. }| {
                let still = *stays || self.module_at(module.start).is_some_and(|now| now == *module);
                still || !report(module.event(ModuleChange::unloaded))
            });
        }
    }

    /// Reports modules that are gone, without taking a lock that the program may hold; `None` if the C library has no
    /// function for that.
    fn find_gone(&self, mut report: impl FnMut(Module<'_>) -> bool) -> Option<State> {
        if !loader::asks_without_lock() {
            return None;
        }
        // If another thread holds the lock, it does the same.
        if let Some(mut reported) = self.reported.try_lock() {
            let before = reported.modules.len();
            reported.modules.retain(|ReportedModule { module, mark, stays, .. }| {
                let still = *stays || mark.is_some() && loader::mark_at(module.start) == Some(*mark);
                still || !report(module.event(ModuleChange::unloaded))
            });
            if reported.modules.len() < before {
                // Relaxed: a thread that sees the number accesses the modules under the lock.
                self.changes.fetch_add(1, Ordering::Relaxed);
            }
        }
        Some((self.changes.load(Ordering::Relaxed), 0))
    }
}

/// [`stamp_of`] for the module that contains `code`, and its identity, which is cheaper to compare. `None` if the
/// module cannot be found without a lock.
///
/// # Safety
/// The code is calling, so its module, including its notes, stays loaded.
unsafe fn stamp_and_identity(code: u64) -> Option<(u64, Option<Identity>)> {
    // SAFETY: by this function's contract.
    let (module, build_id) = unsafe {
        let module = loader::calling_at(code)?;
        let build_id = build_id_in(module.load_address, module.headers);
        (module, build_id)
    };
    Some((stamp_of(module.mark, module.name, build_id), Identity::of(&module, build_id)))
}

/// A hash that distinguishes a module from an earlier one at the same address, which its mark may not.
fn stamp_of(mark: Mark, name: &[u8], build_id: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (mark, name, build_id).hash(&mut hasher);
    hasher.finish()
}

/// The loader's counts of libraries added and removed since the process started; `None` if the loader's lock is
/// unavailable.
pub(crate) fn loader_counts() -> Option<(u64, u64)> {
    let mut counts = (0, 0);
    loader::each_module(|info, _| {
        counts = (info.dlpi_adds, info.dlpi_subs);
        true
    })?;
    Some(counts)
}

impl Loaded {
    /// The module with this load address, name and program headers.
    fn of(load_address: u64, name: &[u8], headers: &[libc::Elf64_Phdr]) -> Loaded {
        let Range { start, end } = range_of(load_address, headers);
        let (path, file) = path_of(name);
        let build_id = build_id_of(load_address, headers);
        let build_id = build_id.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
        Loaded { path, file, build_id, load_address, start, end }
    }
}

/// The address range of a module with these program headers.
fn range_of(load_address: u64, headers: &[libc::Elf64_Phdr]) -> Range<u64> {
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = loads().map(|header| load_address.wrapping_add(header.p_vaddr)).min();
    let end = loads().map(|header| load_address.wrapping_add(header.p_vaddr + header.p_memsz)).max();
    start.unwrap_or(0)..end.unwrap_or(0)
}

/// The module that contains `code`, if any; `None` if the loader's lock is unavailable.
fn loaded_at(code: u64) -> Option<Option<Loaded>> {
    let mut found = None;
    loader::each_module(|info, headers| {
        let is_it = range_of(info.dlpi_addr, headers).contains(&code);
        if is_it {
            let name = match info.dlpi_name.is_null() {
                true => &[],
                // SAFETY: the loader's names are C strings.
                false => unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes(),
            };
            found = Some(Loaded::of(info.dlpi_addr, name, headers));
        }
        is_it
    })?;
    Some(found)
}

/// Maximum number of bytes of notes to read.
const MAX_NOTES: u64 = 4096;

/// The build id of a module, empty if it has none. The kernel copies the memory, because another thread may unload the
/// module.
fn build_id_of(load_address: u64, headers: &[libc::Elf64_Phdr]) -> Vec<u8> {
    let mut notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
    let found = notes.find_map(|header| {
        let mut note = vec![0; header.p_memsz.min(MAX_NOTES) as usize];
        let address = load_address.wrapping_add(header.p_vaddr) as usize;
        memory::copy(address, &mut note).then(|| build_id(&note).map(<[u8]>::to_vec)).flatten()
    });
    found.unwrap_or_default()
}

/// Like [`build_id_of`], without copying.
///
/// # Safety
/// The module is loaded, and stays so while the result is used.
unsafe fn build_id_in(load_address: u64, headers: &'static [libc::Elf64_Phdr]) -> &'static [u8] {
    let mut notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
    let found = notes.find_map(|header| {
        let note = load_address.wrapping_add(header.p_vaddr) as *const u8;
        // SAFETY: a note segment of a loaded module is mapped and readable.
        build_id(unsafe { std::slice::from_raw_parts(note, header.p_memsz.min(MAX_NOTES) as usize) })
    });
    found.unwrap_or_default()
}

/// The path of a module, given the loader's name, which is empty for the program itself; and the path for opening its
/// file.
fn path_of(name: &[u8]) -> (Vec<u8>, Vec<u8>) {
    const PROGRAM: &str = "/proc/self/exe";

    if name.is_empty() {
        let path = std::fs::read_link(PROGRAM).unwrap_or_default();
        return (path.into_os_string().into_vec(), PROGRAM.into());
    }
    // A relative name is relative to the current directory.
    let path = system::absolute(Path::new(OsStr::from_bytes(name)));
    let path = path.into_os_string().into_vec();
    (path.clone(), path)
}

/// The build id in a note segment: `NT_GNU_BUILD_ID` (3) of `GNU`.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    while notes.len() >= 12 {
        let number =
            |at: usize| u32::from_ne_bytes(notes[at..at + 4].try_into().expect("four bytes")) as usize;
        let (name_len, len, kind) = (number(0), number(4), number(8));
        let text = 12 + name_len.next_multiple_of(4);
        let content = notes.get(text..text.checked_add(len)?)?;
        if kind == 3 && notes[12..].starts_with(b"GNU\0") {
            return Some(content);
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
            modules.note(code, Code::Calls, 10, known, |module| {
                paths.push(module.path.lossy().into_owned());
                true
            });
        }
        assert_eq!(paths, [std::env::current_exe().unwrap().to_str().unwrap()]);
    }

    /// Events that a thread recorded before the first report of the module need a report, too.
    #[test]
    fn tells_again_of_what_was_told_of_later_than_it_is_used() {
        let modules = Modules::new(Keep::All, Vec::new(), None);
        let code = tells_again_of_what_was_told_of_later_than_it_is_used as fn() as usize as u64;
        let mut told = Vec::new();
        for at in [10, 8, 9, 11] {
            modules.note(code, Code::Calls, at, &KnownModules::new(), |_| {
                told.push(at);
                true
            });
        }
        assert_eq!(told, [10, 8]);
    }

    #[test]
    fn notes_give_the_build_id() {
        let note = b"\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0\xab\x01\xff\0";
        assert_eq!(build_id(note).unwrap(), b"\xab\x01\xff");
        assert_eq!(build_id(&note[..15]), None);
    }
}
