//! Builds an `LD_PRELOAD` that does no harm to started programs of another architecture or C library.
//!
//! All programs that a recorded program starts inherit the variable. So the libraries are named through a directory
//! with `$LIB`, which each loader replaces by the name of its own directories. This machine's glibc loader finds the
//! libraries there. The loaders of 32-bit programs, and of other machines' programs under an emulator, find an empty
//! library, because they would complain about a missing one. musl's loader does not replace `$LIB`, finds nothing, and
//! continues; given a library made for glibc, it would end the program.
//!
//! A program may run as another user, who cannot read a library in a closed directory. Such a library is copied.
//!
//! In another root directory that lacks the libraries, glibc's loader would print for each program that they cannot be
//! preloaded. If the command shows such a root, nothing is preloaded.
//!
//! `LD_PRELOAD` is separated by spaces and colons, which cannot be quoted. The directory contains links to the
//! libraries, so libraries can be preloaded even if their path contains these characters.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::output::failure::{Failure, Result};
use crate::output::temp_files;
use crate::record::find_tracer;
use crate::record::libgomp::Decision;
use crate::record::permissions::closed_part;
use crate::system::processor;

/// Libraries to preload. The directory is removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Preload {
    folder: TempDir,
    /// The names, as returned by [`linked`].
    names: Vec<OsString>,
}

/// The libraries to preload. If the tracer comes first, it finds runtimes that do not look for a tool. If it comes
/// after a runtime that replaces libgomp, it emulates libgomp's behaviour, and the runtime ends before it. After this
/// runtime or the adapter, it also notes libraries that are loaded into separate namespaces.
pub(crate) fn libraries<'a>(
    decision: &'a Decision,
    tracer: &'a Path,
    looks_for_runtimes: bool,
) -> Vec<&'a Path> {
    match decision {
        Decision::ReplaceBy(stand_in) if looks_for_runtimes => vec![tracer, &stand_in.libomp],
        Decision::ReplaceBy(stand_in) => vec![&stand_in.libomp, tracer],
        Decision::ObserveBy(adapter) if looks_for_runtimes => vec![tracer, adapter],
        Decision::ObserveBy(adapter) => vec![adapter, tracer],
        _ if looks_for_runtimes => vec![tracer],
        _ => Vec::new(),
    }
}

/// A library as `LD_PRELOAD` can name it without our directory.
///
/// # Errors
/// The name contains a separator.
pub(crate) fn named(library: &Path) -> Result<&OsStr> {
    if can_be_preloaded(library.as_os_str()) {
        return Ok(library.as_os_str());
    }
    Err(Failure::new(format!(
        "the path {} contains a space, a colon or a dollar sign, which LD_PRELOAD does not allow",
        library.display()
    ))
    .hint("use a symbolic link whose path does not contain these characters: ln -s DIRECTORY LINK"))
}

/// The values of `$LIB` in glibc's 64-bit loaders.
const LIB64: &[&str] = processor::THIS.lib;

/// The values of `$LIB` in glibc's 32-bit loaders, if there are any: Debian's, that of its packages for 64-bit
/// machines, and Red Hat's and SUSE's.
const LIB32: &[&str] = if cfg!(target_arch = "aarch64") {
    &["lib/arm-linux-gnueabihf", "lib/arm-linux-gnueabi"]
} else if cfg!(target_arch = "x86_64") {
    &["lib/i386-linux-gnu", "lib32", "lib"]
} else {
    &[]
};

/// A machine in ELF headers. The flags are those of the calling convention that its loader requires.
#[derive(Clone, Copy)]
struct Machine {
    number: u16,
    flags: u32,
    is_64: bool,
    is_big_endian: bool,
}

const fn little(number: u16, is_64: bool) -> Machine {
    with_flags(number, is_64, 0)
}

const fn with_flags(number: u16, is_64: bool, flags: u32) -> Machine {
    Machine { number, flags, is_64, is_big_endian: false }
}

const MACHINE_32: Machine =
    if cfg!(target_arch = "aarch64") { with_flags(40, false, 0x0500_0000) } else { little(3, false) };

/// The values of `$LIB` in loaders for other machines, as in Debian's libraries for emulators and cross compilers.
const OF_OTHERS: &[(&str, Machine)] = &[
    ("lib/aarch64-linux-gnu", little(183, true)),
    ("lib/arm-linux-gnueabi", with_flags(40, false, 0x0500_0000)),
    ("lib/arm-linux-gnueabihf", with_flags(40, false, 0x0500_0000)),
    ("lib/i386-linux-gnu", little(3, false)),
    ("lib/loongarch64-linux-gnu", with_flags(258, true, 0x43)),
    ("lib/mips64el-linux-gnuabi64", little(8, true)),
    ("lib/mipsel-linux-gnu", little(8, false)),
    ("lib/powerpc64le-linux-gnu", with_flags(21, true, 2)),
    ("lib/riscv64-linux-gnu", with_flags(243, true, 4)),
    ("lib/s390x-linux-gnu", Machine { number: 22, flags: 0, is_64: true, is_big_endian: true }),
    ("lib/x86_64-linux-gnu", little(62, true)),
    ("lib/x86_64-linux-gnux32", little(62, false)),
    ("libx32", little(62, false)),
];

impl Preload {
    /// Creates the directory.
    ///
    /// # Errors
    /// There is no place for the directory.
    pub(crate) fn new(libraries: &[&Path]) -> Result<Preload> {
        Preload::made(libraries).map_err(|error| {
            Failure::because("cannot create a directory for preloaded libraries", &error)
                .hint("set TMPDIR to a writable directory whose path contains no space or colon")
        })
    }

    fn made(libraries: &[&Path]) -> io::Result<Preload> {
        let folder = temp_files::make(|| {
            let mut builder = tempfile::Builder::new();
            // Programs that run as another user read it, too.
            builder.prefix("omptrace-preload-").permissions(Permissions::from_mode(0o755));
            builder.tempdir_in(place())
        })?;
        let mut names = Vec::new();
        for (number, library) in libraries.iter().enumerate() {
            let root = folder.path().join(number.to_string());
            names.push(linked(&root, library)?.into_os_string());
        }
        Ok(Preload { folder, names })
    }

    /// The value of the variable: the libraries, followed by the current value.
    pub(crate) fn value(&self) -> OsString {
        let before = find_tracer::variable("LD_PRELOAD");
        let names = self.names.iter().cloned().chain(before);
        names.collect::<Vec<_>>().join(OsStr::new(":"))
    }

    /// The path by which the loader finds one of the libraries.
    pub(crate) fn path_of(&self, library: &Path) -> Option<&Path> {
        let mut paths = self.names.iter().map(Path::new);
        paths.find(|path| path.file_name() == library.file_name())
    }

    /// Called when the programs have ended. If other processes with the variable are still running, keeps the
    /// directory.
    pub(crate) fn end(self) {
        if is_in_use(self.folder.path()) {
            let _stays: PathBuf = self.folder.keep();
        }
    }
}

/// Whether programs with the root directory `root` find the preloaded libraries.
pub(crate) fn is_in_root(libraries: &[&Path], root: &Path) -> bool {
    let inside = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    let id = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let place = place();
    id(&inside(&place)) == id(&place) && libraries.iter().all(|library| inside(library).exists())
}

/// A directory for temporary files that `LD_PRELOAD` can name.
fn place() -> PathBuf {
    let usual = env::temp_dir();
    if can_be_preloaded(usual.as_os_str()) { usual } else { PathBuf::from("/tmp") }
}

/// Whether `LD_PRELOAD` takes it for a single name.
fn can_be_preloaded(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    !bytes.iter().any(|byte| matches!(byte, b' ' | b':' | b'$'))
}

/// Makes `root/$LIB/NAME` lead each loader to `library`, or to an empty library; returns that path.
fn linked(root: &Path, library: &Path) -> io::Result<PathBuf> {
    let name = library.file_name().unwrap_or(library.as_os_str());
    let folder = library.parent().unwrap_or(Path::new("/"));
    let libs: Vec<(&str, Option<Machine>)> = lib32()
        .map(|lib| (lib, Some(MACHINE_32)))
        .chain(LIB64.iter().map(|lib| (*lib, None)))
        .chain(OF_OTHERS.iter().map(|(lib, machine)| (*lib, Some(*machine))))
        .collect();
    let is_closed = closed_part(library).is_some();
    let plain = if can_be_preloaded(name) { name } else { OsStr::new("preloaded.so") };
    let is_taken = |number: usize, lib: &str| libs[..number].iter().any(|(before, _)| *before == lib);
    let mut places: Vec<_> =
        libs.iter().enumerate().filter(|(number, (lib, _))| !is_taken(*number, lib)).collect();
    // Links to the directory, because a library finds other libraries next to itself. `lib` comes last, because it is a
    // part of other names.
    places.sort_by_key(|(_, (lib, _))| std::cmp::Reverse(lib.len()));
    for (_, (lib, other)) in places {
        let place = root.join(lib);
        if other.is_none() && plain == name && !is_closed && !place.exists() {
            fs::create_dir_all(place.parent().unwrap_or(root))?;
            symlink(folder, &place)?;
            continue;
        }
        fs::create_dir_all(&place)?;
        let file = place.join(plain);
        match other {
            Some(machine) => fs::write(file, nothing(*machine))?,
            None if is_closed => copy_for_all(library, root, &file)?,
            None => symlink(library, file)?,
        }
    }
    Ok(root.join("$LIB").join(plain))
}

/// Copies the library to `file` in `root`, once.
fn copy_for_all(library: &Path, root: &Path, file: &Path) -> io::Result<()> {
    let copy = root.join("copy");
    if !copy.exists() {
        fs::copy(library, &copy)?;
        fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
    }
    fs::hard_link(copy, file)
}

/// The values in [`LIB32`] that 32-bit loaders use on this machine: `lib` belongs to a 64-bit loader unless `lib64` is
/// a separate directory.
fn lib32() -> impl Iterator<Item = &'static str> {
    let lib64 = fs::symlink_metadata("/usr/lib64");
    let has_lib64 = lib64.is_ok_and(|found| found.is_dir());
    let has_own = move |lib: &&str| *lib != "lib" || has_lib64;
    LIB32.iter().copied().filter(has_own)
}

/// An empty library for a machine.
fn nothing(machine: Machine) -> Vec<u8> {
    let Machine { number, flags, is_64, is_big_endian } = machine;
    let mut bytes: Vec<u8> = Vec::new();
    let mut put = |value: u64, size: usize| {
        let le = value.to_le_bytes();
        let part = le[..size].iter().copied();
        match is_big_endian {
            true => bytes.extend(part.rev()),
            false => bytes.extend(part),
        }
    };
    let word = if is_64 { 8 } else { 4 };
    let of = |of_64: u64, of_32: u64| if is_64 { of_64 } else { of_32 };
    let (header, segment, symbol) = (of(64, 52), of(56, 32), of(24, 16));
    const SEGMENTS: u64 = 3;
    const ENTRIES: u64 = 5;
    let dynamic = header + SEGMENTS * segment;
    let dynamic_bytes = ENTRIES * 2 * word as u64;
    // A symbol without name, whose first byte also serves as the string table.
    let symbols = dynamic + dynamic_bytes;
    let all = symbols + symbol;

    // Version 1 of ELF.
    for byte in [0x7f, b'E'.into(), b'L'.into(), b'F'.into(), of(2, 1), 1 + u64::from(is_big_endian), 1] {
        put(byte, 1);
    }
    (0..9).for_each(|_| put(0, 1));
    // ET_DYN.
    put(3, 2);
    put(number.into(), 2);
    put(1, 4);
    // No entry point; the segments follow the header; no sections.
    for value in [0, header, 0] {
        put(value, word);
    }
    put(flags.into(), 4);
    for value in [header, segment, SEGMENTS, of(64, 40), 0, 0] {
        put(value, 2);
    }
    const READ_WRITE: u64 = 6;
    let segments = [
        (1, 0, all, 0x1_0000),
        (2, dynamic, dynamic_bytes, word as u64),
        // PT_GNU_STACK: without it, the loader would make stacks executable.
        (0x6474_e551, 0, 0, 16),
    ];
    for (kind, at, bytes, align) in segments {
        put(kind, 4);
        if is_64 {
            put(READ_WRITE, 4);
        }
        for value in [at, at, at, bytes, bytes] {
            put(value, word);
        }
        if !is_64 {
            put(READ_WRITE, 4);
        }
        put(align, word);
    }
    // DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL.
    for value in [5, symbols, 6, symbols, 10, 1, 11, symbol, 0, 0] {
        put(value, word);
    }
    (0..symbol).for_each(|_| put(0, 1));
    bytes
}

/// Whether the directory is in the initial environment of a process, as far as that is readable.
fn is_in_use(folder: &Path) -> bool {
    let wanted = folder.as_os_str().as_encoded_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| environment(&process.path()))
        .any(|bytes| bytes.windows(wanted.len()).any(|part| part == wanted))
}

/// The environment of the process below `/proc`, if it is readable. While a process starts to execute a program, the
/// kernel shows an empty one for a moment, so this function waits.
fn environment(process: &Path) -> Option<Vec<u8>> {
    const MAX_TRIES: u32 = 20;
    for _ in 0..MAX_TRIES {
        let bytes = fs::read(process.join("environ")).ok()?;
        // Kernel threads have neither.
        let may_come = bytes.is_empty() && fs::read_link(process.join("exe")).is_ok();
        if !may_come {
            return Some(bytes);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loader_has_a_place_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("a b").join("libx.so");
        fs::create_dir(library.parent().unwrap()).unwrap();
        fs::write(&library, "x").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let root = folder.path().join("0");
        let path = linked(&root, &library).unwrap();
        assert_eq!(path, root.join("$LIB/libx.so"));
        let found = |lib: &str| fs::read(root.join(lib).join("libx.so")).unwrap();
        assert_eq!(found(LIB64[0]), b"x");
        assert_eq!(found("lib64"), b"x");
        for lib in lib32() {
            assert_eq!(found(lib), nothing(MACHINE_32), "{lib}");
        }
        assert_eq!(found("lib/s390x-linux-gnu").len(), nothing(OF_OTHERS[9].1).len());
        assert!(!path.exists());
    }

    #[test]
    fn another_root_lacks_the_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libx.so");
        fs::write(&library, "x").unwrap();
        assert!(is_in_root(&[&library], Path::new("/")));
        assert!(!is_in_root(&[&library], folder.path()));
        assert!(!is_in_root(&[], &folder.path().join("none")));
    }

    #[test]
    fn another_user_can_read_a_library_of_a_closed_folder() {
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("libx.so"), "x").unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
        let root = folder.path().join("0");
        linked(&root, &closed.join("libx.so")).unwrap();
        let found = root.join(LIB64[0]).join("libx.so");
        assert!(!fs::symlink_metadata(&found).unwrap().is_symlink());
        assert!(fs::canonicalize(&found).unwrap().starts_with(fs::canonicalize(&root).unwrap()));
        assert_eq!(fs::metadata(&found).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn a_folder_is_in_use_while_a_process_has_it() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_in_use(folder.path()));
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env("LD_PRELOAD_OF_TEST", folder.path())
            .spawn()
            .unwrap();
        assert!(is_in_use(folder.path()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
