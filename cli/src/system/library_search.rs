//! Finds the libraries of a program as the dynamic loader does (`ld.so(8)`), without running the program.
//!
//! Some of the loader's rules are left out: `LD_PRELOAD`, directories for hardware capabilities, and libraries that the
//! program loads at run time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::system::elf::{self, Elf, Native};
use crate::system::folders::{each_file_once, files_in};
use crate::system::processor;

/// A library that a program needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Needed {
    /// Its name in `DT_NEEDED`.
    pub(crate) name: String,
    /// The path where the loader finds it; `None` if it does not.
    pub(crate) path: Option<PathBuf>,
}

/// The directories and the cache that the loader searches.
#[derive(Debug)]
pub(crate) struct Loader {
    /// `LD_LIBRARY_PATH`.
    variable: Vec<PathBuf>,
    /// `/etc/ld.so.cache`: the paths by name.
    cache: BTreeMap<String, Vec<PathBuf>>,
}

/// The directories that are searched last.
fn default_folders() -> impl Iterator<Item = PathBuf> {
    let of = |lib: &str| ["/", "/usr"].map(|prefix| Path::new(prefix).join(lib));
    processor::THIS.lib.iter().flat_map(move |lib| of(lib))
}

impl Loader {
    /// The search paths of a program that is started now.
    pub(crate) fn new() -> Loader {
        let variable = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        Loader {
            variable: env::split_paths(&variable).filter(|folder| !folder.as_os_str().is_empty()).collect(),
            cache: fs::read("/etc/ld.so.cache").map(|bytes| cached(&bytes)).unwrap_or_default(),
        }
    }

    /// All libraries that a program needs, directly or indirectly, each once, nearest first.
    pub(crate) fn needed(&self, program: &Path, elf: &Native) -> Vec<Needed> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        // DT_RPATH also applies to the libraries of libraries.
        let mut todo = VecDeque::from([(program.to_owned(), elf.clone(), Vec::new())]);
        while let Some((object, elf, inherited)) = todo.pop_front() {
            let origin = object.parent().unwrap_or(Path::new("/"));
            let runpath = expanded(&elf.runpath, origin);
            let rpath = if elf.runpath.is_empty() {
                [expanded(&elf.rpath, origin), inherited].concat()
            } else {
                Vec::new()
            };
            for name in &elf.needed {
                if !seen.insert(name.clone()) {
                    continue;
                }
                let resolved = self.resolve(name, &rpath, &runpath);
                if let Some((path, library)) = &resolved {
                    todo.push_back((path.clone(), library.clone(), rpath.clone()));
                }
                found.push(Needed { name: name.clone(), path: resolved.map(|(path, _)| path) });
            }
        }
        found
    }

    /// The library that `dlopen` finds if `caller` calls it.
    pub(crate) fn library(&self, name: &Path, caller: &Path) -> Option<PathBuf> {
        let resolved = match name.to_str().filter(|name| !name.contains('/')) {
            Some(name) => {
                let Ok(Some(Elf::Native(elf))) = elf::read(caller) else {
                    return None;
                };
                let origin = caller.parent().unwrap_or(Path::new("/"));
                let folders = [&elf.rpath, &elf.runpath].map(|list| expanded(list, origin));
                self.resolve(name, &folders[0], &folders[1])
            }
            None => library(name.to_owned()),
        };
        resolved.map(|(path, _)| path)
    }

    /// All libraries known to the loader whose names pass, each file once, in search order.
    pub(crate) fn libraries(&self, passes: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in self.folders() {
            found.extend(files_in(&folder, &passes));
        }
        for (name, paths) in &self.cache {
            if passes(name) {
                found.extend(paths.iter().cloned());
            }
        }
        each_file_once(found)
    }

    /// `LD_LIBRARY_PATH`, followed by the default directories.
    fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.variable.iter().cloned().chain(default_folders())
    }

    fn resolve(&self, name: &str, rpath: &[PathBuf], runpath: &[PathBuf]) -> Option<(PathBuf, Native)> {
        if name.contains('/') {
            return library(PathBuf::from(name));
        }
        let before = [rpath, &self.variable, runpath].concat();
        let cached = self.cache.get(name).into_iter().flatten().cloned();
        before
            .iter()
            .map(|folder| folder.join(name))
            .chain(cached)
            .chain(default_folders().map(|folder| folder.join(name)))
            .find_map(library)
    }
}

/// The path and the file's headers, if the loader would accept the library: it skips libraries for other machines.
fn library(path: PathBuf) -> Option<(PathBuf, Native)> {
    match elf::read(&path) {
        Ok(Some(Elf::Native(native))) => Some((path, native)),
        _ => None,
    }
}

fn expanded(folders: &[String], origin: &Path) -> Vec<PathBuf> {
    let origin = origin.to_string_lossy();
    folders
        .iter()
        .map(|folder| {
            let mut folder = folder.clone();
            for (name, value) in [("ORIGIN", &*origin), ("LIB", processor::THIS.lib[0])] {
                folder = folder.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
            }
            PathBuf::from(folder)
        })
        .collect()
}

/// The libraries of `/etc/ld.so.cache`, in its order.
///
/// The cache starts with `glibc-ld.so.cache1.1`, the number of entries, and 24 further bytes. An entry has 24 bytes: at
/// byte 4 the offset of a name, and at byte 8 that of its path, both from the start of the cache (glibc,
/// `sysdeps/generic/dl-cache.h`). Before glibc 2.32 an older table came first.
fn cached(bytes: &[u8]) -> BTreeMap<String, Vec<PathBuf>> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER_BYTES: usize = 48;
    const ENTRY_BYTES: usize = 24;

    let mut libraries: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let Some(start) = bytes.windows(MAGIC.len()).position(|window| window == MAGIC) else {
        return libraries;
    };
    let bytes = &bytes[start..];
    let count = word(bytes, MAGIC.len()).unwrap_or(0);
    let entries = bytes.get(HEADER_BYTES..).unwrap_or_default();
    for entry in entries.chunks_exact(ENTRY_BYTES).take(count) {
        let text_at = |offset| text(bytes, word(entry, offset)?);
        if let (Some(name), Some(path)) = (text_at(4), text_at(8)) {
            libraries.entry(name).or_default().push(PathBuf::from(path));
        }
    }
    libraries
}

/// The 32-bit number at an offset, in this machine's byte order, which the loader uses.
fn word(bytes: &[u8], offset: usize) -> Option<usize> {
    let bytes = bytes.get(offset..)?.first_chunk()?;
    usize::try_from(u32::from_ne_bytes(*bytes)).ok()
}

/// The text at an offset, up to the terminating NUL.
fn text(bytes: &[u8], offset: usize) -> Option<String> {
    let bytes = bytes.get(offset..)?;
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = b"glibc-ld.so.cache1.1".to_vec();
        bytes.extend(u32::try_from(entries.len()).unwrap().to_ne_bytes());
        bytes.resize(48, 0);
        let mut texts = Vec::new();
        let first_text = 48 + 24 * entries.len();
        for (name, path) in entries {
            let mut entry = [0; 24];
            for (at, text) in [(4, name), (8, path)] {
                let offset = u32::try_from(first_text + texts.len()).unwrap();
                entry[at..at + 4].copy_from_slice(&offset.to_ne_bytes());
                texts.extend(text.bytes().chain([0]));
            }
            bytes.extend(entry);
        }
        bytes.extend(texts);
        bytes
    }

    #[test]
    fn the_cache_names_every_path() {
        let entries = [
            ("libomp.so.5", "/a/libomp.so.5"),
            ("libc.so.6", "/b/libc.so.6"),
            ("libomp.so.5", "/c/libomp.so.5"),
        ];
        let libraries = cached(&cache(&entries));
        let expected = ["/a/libomp.so.5", "/c/libomp.so.5"].map(PathBuf::from);
        assert_eq!(libraries["libomp.so.5"], expected);
        assert_eq!(libraries.len(), 2);
    }

    #[test]
    fn a_damaged_cache_is_no_panic() {
        let whole = cache(&[("libomp.so.5", "/a/libomp.so.5")]);
        for length in 0..whole.len() {
            cached(&whole[..length]);
        }
        for index in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[index] ^= 0xff;
            cached(&damaged);
        }
    }

    #[test]
    fn origin_is_the_folder_of_the_object() {
        let folders = ["$ORIGIN/../lib".to_owned(), "${ORIGIN}".to_owned()];
        assert_eq!(
            expanded(&folders, Path::new("/opt/app/bin")),
            ["/opt/app/bin/../lib", "/opt/app/bin"].map(PathBuf::from)
        );
    }
}
