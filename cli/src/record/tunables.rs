//! Variables of the C library and of sanitizers that must be set because our libraries are in the program.
//!
//! Like `LD_PRELOAD` and `LD_AUDIT`, they are inherited by all programs that a recorded program starts. The user's own
//! values are kept after ours, because of two values the later one counts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::record::find_tracer;
use crate::system::elf::{self, Elf};
use crate::system::executable::{Kind, Program};
use crate::system::library_search::Loader;

/// Bytes of thread-local storage that glibc reserves for libraries that are loaded later.
const ROOM_LATER: u64 = 512;
/// The reserve for programs that are not visible before the run: jemalloc needs 3 KB.
const ROOM_OF_UNSEEN: u64 = 4096;

/// What to prepend to variables if `preloaded` libraries are used; with an auditing library if `is_audited`.
pub(crate) fn additions(
    preloaded: &[&Path],
    is_audited: bool,
    programs: &[Program],
    loader: &Loader,
) -> Vec<(&'static str, String)> {
    let mut additions = Vec::new();
    if !preloaded.is_empty() {
        // A shared AddressSanitizer ends the program if another library comes before it. Its only purpose is that its
        // functions are found before the C library's, and our libraries define none of these.
        additions.push(("ASAN_OPTIONS", "verify_asan_link_order=0".to_owned()));
    }
    if is_audited {
        let room = room(preloaded, programs, loader);
        let tunable = format!("glibc.rtld.optional_static_tls={room}");
        additions.push(("GLIBC_TUNABLES", tunable));
    }
    additions
}

/// The variable with `ours` before its current value.
pub(crate) fn joined((name, ours): (&'static str, String)) -> (&'static str, OsString) {
    let mut value = OsString::from(ours);
    if let Some(theirs) = find_tracer::variable(name) {
        value.push(":");
        value.push(theirs);
    }
    (name, value)
}

/// The thread-local storage that a program needs. With auditing libraries, glibc determines the layout of threads'
/// storage before it knows the program's libraries, so their storage comes from the reserve for later libraries. The
/// reserve is part of each thread's stack, so it must not be larger than necessary.
fn room(preloaded: &[&Path], programs: &[Program], loader: &Loader) -> u64 {
    let is_seen = |program: &Program| matches!(program.kind, Kind::Dynamic { .. });
    let of_program = |program: &Program| -> u64 {
        let Ok(Some(Elf::Native(elf))) = elf::read(&program.path) else {
            return 0;
        };
        let needed = loader.needed(&program.path, &elf).into_iter();
        let needed = needed.filter_map(|needed| needed.path);
        let users = preloaded_by_user().filter_map(|name| loader.library(&name, &program.path));
        let with_theirs = users.flat_map(|path| with_needed(path, loader));
        needed.chain(with_theirs).map(|path| storage(&path)).sum()
    };
    let seen = programs.iter().filter(|program| is_seen(program));
    let most = seen.map(of_program).max().unwrap_or_default();
    let unseen = match programs.iter().all(is_seen) {
        true if !programs.is_empty() => 0,
        _ => ROOM_OF_UNSEEN,
    };
    let ours: u64 = preloaded.iter().map(|path| storage(path)).sum();
    ROOM_LATER + ours + most.max(unseen)
}

/// A library, and the libraries that it needs.
fn with_needed(library: PathBuf, loader: &Loader) -> Vec<PathBuf> {
    let Ok(Some(Elf::Native(elf))) = elf::read(&library) else {
        return Vec::new();
    };
    let needed = loader.needed(&library, &elf).into_iter();
    let needed: Vec<_> = needed.filter_map(|needed| needed.path).collect();
    [vec![library], needed].concat()
}

/// The libraries that the user preloads.
fn preloaded_by_user() -> impl Iterator<Item = PathBuf> {
    let list = find_tracer::variable("LD_PRELOAD").unwrap_or_default();
    let list = list.to_string_lossy().into_owned();
    let names: Vec<PathBuf> =
        list.split([':', ' ']).filter(|name| !name.is_empty()).map(PathBuf::from).collect();
    names.into_iter()
}

/// Maximum size of a library's thread-local storage, including alignment.
fn storage(library: &Path) -> u64 {
    match elf::read(library) {
        Ok(Some(Elf::Native(elf))) => elf.thread_local_bytes,
        _ => 0,
    }
}
