//! `LD_PRELOAD` that no program is harmed by which cannot take the libraries.
//!
//! Every program that a recorded one starts inherits the variable. So it names the libraries by way of a folder with
//! `$LIB`, for which each loader puts the name of its own folders. glibc's loader of this machine comes to the libraries.
//! That of 32-bit programs comes to an empty library, as it complains of one that is missing. musl's takes `$LIB` as it
//! is, finds nothing, and goes on; it would end the program over a library made for glibc.
//!
//! `LD_PRELOAD` separates by spaces and colons, and has no way to quote them. The folder is reached by links, so what lies
//! in a folder with one of them in its name can be preloaded, too.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::failure::{Failure, Result};
use crate::find_tracer;
use crate::libgomp::Decision;
use crate::temp_files;

/// Libraries to preload. The folder goes away with this value.
#[derive(Debug)]
pub(crate) struct Preload {
    folder: TempDir,
    /// The names, as [`linked`] has them.
    names: Vec<OsString>,
}

/// The libraries to preload. In front, the tracer looks for runtimes that look for no tool. Behind a runtime in libgomp's
/// place, it cares for what libgomp does all the same, and the runtime ends before it. Behind either, it notes libraries
/// that are loaded apart.
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

/// A library as `LD_PRELOAD` names it without a folder of ours.
///
/// # Errors
/// It cannot.
pub(crate) fn named(library: &Path) -> Result<&OsStr> {
    if can_be_preloaded(library.as_os_str()) {
        return Ok(library.as_os_str());
    }
    Err(Failure::new(format!(
        "{} has a space, a colon or a dollar sign in its path, which LD_PRELOAD cannot hold",
        library.display()
    ))
    .hint("name it by a link without these: ln -s FOLDER link"))
}

/// The values of `$LIB` in glibc's 64-bit loaders: Debian's; Red Hat's, SUSE's and glibc's own; Arch's.
const LIB64: &[&str] = if cfg!(target_arch = "aarch64") {
    &["lib/aarch64-linux-gnu", "lib64", "lib"]
} else {
    &["lib/x86_64-linux-gnu", "lib64", "lib"]
};

/// In its 32-bit loaders: Debian's, and that of its packages for 64-bit machines; Red Hat's and SUSE's.
const LIB32: &[&str] = if cfg!(target_arch = "aarch64") {
    &[]
} else {
    &["lib/i386-linux-gnu", "lib32", "lib"]
};

impl Preload {
    /// Makes the folder.
    ///
    /// # Errors
    /// There is no place for it.
    pub(crate) fn new(libraries: &[&Path]) -> Result<Preload> {
        Preload::made(libraries).map_err(|error| {
            Failure::because("cannot make a folder for what is preloaded", &error).hint(
                "name a folder that can be written to in TMPDIR, without space or colon in its path",
            )
        })
    }

    fn made(libraries: &[&Path]) -> io::Result<Preload> {
        let folder = temp_files::make(|| {
            let mut builder = tempfile::Builder::new();
            // Programs that run as another user read it, too.
            builder
                .prefix("omptrace-preload-")
                .permissions(Permissions::from_mode(0o755));
            builder.tempdir_in(place())
        })?;
        let mut names = Vec::new();
        for (number, library) in libraries.iter().enumerate() {
            let root = folder.path().join(number.to_string());
            names.push(linked(&root, library)?.into_os_string());
        }
        Ok(Preload { folder, names })
    }

    /// The value of the variable: the libraries, then what it holds already.
    pub(crate) fn value(&self) -> OsString {
        let before = find_tracer::variable("LD_PRELOAD");
        let names = self.names.iter().cloned().chain(before);
        names.collect::<Vec<_>>().join(OsStr::new(":"))
    }

    /// How the loader finds one of the libraries.
    pub(crate) fn path_of(&self, library: &Path) -> Option<&Path> {
        let mut paths = self.names.iter().map(Path::new);
        paths.find(|path| path.file_name() == library.file_name())
    }

    /// The programs have ended that are waited for. Where others run on that have the variable, the folder stays.
    pub(crate) fn end(self) {
        if is_in_use(self.folder.path()) {
            let _stays: PathBuf = self.folder.keep();
        }
    }
}

/// A folder for temporary files that `LD_PRELOAD` can name.
fn place() -> PathBuf {
    let usual = env::temp_dir();
    if can_be_preloaded(usual.as_os_str()) {
        usual
    } else {
        PathBuf::from("/tmp")
    }
}

/// Whether `LD_PRELOAD` takes it for one name.
fn can_be_preloaded(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    !bytes.iter().any(|byte| matches!(byte, b' ' | b':' | b'$'))
}

/// Makes `root/$LIB/NAME` lead each loader to `library`, or to nothing; returns that path.
fn linked(root: &Path, library: &Path) -> io::Result<PathBuf> {
    let name = library.file_name().unwrap_or(library.as_os_str());
    let folder = library.parent().unwrap_or(Path::new("/"));
    let libs = lib32().map(|lib| (lib, false));
    let lib64 = LIB64
        .iter()
        .filter(|lib| !lib32().any(|taken| taken == **lib));
    let libs: Vec<_> = libs.chain(lib64.map(|lib| (*lib, true))).collect();
    let plain = if can_be_preloaded(name) {
        name
    } else {
        OsStr::new("preloaded.so")
    };
    // A link to the folder: a library finds others beside itself. `lib` comes last, as it is part of other names.
    for (lib, is_native) in libs.into_iter().rev() {
        let place = root.join(lib);
        if is_native && plain == name && !place.exists() {
            fs::create_dir_all(place.parent().unwrap_or(root))?;
            symlink(folder, &place)?;
            continue;
        }
        fs::create_dir_all(&place)?;
        if is_native {
            symlink(library, place.join(plain))?;
        } else {
            fs::write(place.join(plain), nothing())?;
        }
    }
    Ok(root.join("$LIB").join(plain))
}

/// The values of [`LIB32`] that 32-bit loaders have here: `lib` is a 64-bit loader's where `lib64` is no folder of its own.
fn lib32() -> impl Iterator<Item = &'static str> {
    let lib64 = fs::symlink_metadata("/usr/lib64");
    let has_lib64 = lib64.is_ok_and(|found| found.is_dir());
    let has_own = move |lib: &&str| *lib != "lib" || has_lib64;
    LIB32.iter().copied().filter(has_own)
}

/// A library for 32-bit x86 that has nothing in it, and does nothing.
fn nothing() -> Vec<u8> {
    const HEADER: u32 = 52;
    const SEGMENT: u32 = 32;
    const DYNAMIC: u32 = HEADER + 3 * SEGMENT;
    const DYNAMIC_BYTES: u32 = 5 * 8;
    /// A symbol without name, whose first byte also is the table of names.
    const SYMBOLS: u32 = DYNAMIC + DYNAMIC_BYTES;
    const BYTES: u32 = SYMBOLS + 16;

    let halves = |low: u16, high: u16| u32::from(low) | u32::from(high) << 16;
    // ELF, 32 bits, little-endian, version 1.
    let mut words = vec![0x464c_457f, 0x0001_0101, 0, 0];
    // ET_DYN for EM_386, version 1; no entry, segments behind the header, no sections.
    words.extend([halves(3, 3), 1, 0, HEADER, 0, 0]);
    words.extend([halves(52, 32), halves(3, 40), 0]);
    let segment =
        |kind, at: u32, bytes, flags, align| [kind, at, at, at, bytes, bytes, flags, align];
    const READ_WRITE: u32 = 6;
    words.extend(segment(1, 0, BYTES, READ_WRITE, 0x1000));
    words.extend(segment(2, DYNAMIC, DYNAMIC_BYTES, READ_WRITE, 4));
    // PT_GNU_STACK: without it the loader would make stacks executable.
    words.extend(segment(0x6474_e551, 0, 0, READ_WRITE, 16));
    // DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL.
    words.extend([5, SYMBOLS, 6, SYMBOLS, 10, 1, 11, 16, 0, 0]);
    words.extend([0; 4]);
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Whether a process has the folder in the environment that it was started with, as far as that may be read.
fn is_in_use(folder: &Path) -> bool {
    let wanted = folder.as_os_str().as_encoded_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| environment(&process.path()))
        .any(|bytes| bytes.windows(wanted.len()).any(|part| part == wanted))
}

/// The environment of the process below `/proc`, if it may be read. While a process begins to execute a program, the
/// kernel shows none for a moment, so that is waited for.
fn environment(process: &Path) -> Option<Vec<u8>> {
    const MAX_TRIES: u32 = 20;
    for _ in 0..MAX_TRIES {
        let bytes = fs::read(process.join("environ")).ok()?;
        // The kernel's own threads have neither.
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
        let root = folder.path().join("0");
        let path = linked(&root, &library).unwrap();
        assert_eq!(path, root.join("$LIB/libx.so"));
        let found = |lib: &str| fs::read(root.join(lib).join("libx.so")).unwrap();
        assert_eq!(found(LIB64[0]), b"x");
        assert_eq!(found("lib64"), b"x");
        for lib in lib32() {
            assert_eq!(found(lib), nothing(), "{lib}");
        }
        assert!(!path.exists());
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
