//! Finds the files that name a module's addresses: the module itself, its separate debug file, and the supplementary
//! file that several debug files share.
//!
//! Debug files are searched as GDB does ("Debugging Information in Separate Files"): by build id in `.build-id/`, and
//! by the name in `.gnu_debuglink`, next to the module, in its `.debug/`, and in the directories for debug files. The
//! supplementary file (dwz) is found through `.gnu_debugaltlink`.

pub(crate) mod call_site;
pub(crate) mod dwarf_functions;
pub(crate) mod elf;
pub(crate) mod image;
pub(crate) mod loaded_module;
pub(crate) mod perf_map;
pub(crate) mod source;
pub(crate) mod unwind;
pub(crate) mod vdso;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

use super::options::Options;
use crate::files::loaded_module::Instance;
use crate::names::missing_names::Problem;

/// The directory in which distributions install debug files.
const SYSTEM_DEBUG_DIR: &str = "/usr/lib/debug";

/// Maximum size of a file, and of an uncompressed section. Guards against a trace that names an endless file as a
/// module, and against a section of a few bytes that expands to all of memory.
pub(super) const MAX_BYTES: u64 = 4 << 30;

/// The contents of a module's files.
#[derive(Default)]
pub(super) struct Files {
    /// The module itself.
    pub(super) module: Option<Vec<u8>>,
    /// Its separate debug file.
    pub(super) debug: Option<Vec<u8>>,
    /// The supplementary file, whose data the debug information shares with others.
    pub(super) supplementary: Option<Vec<u8>>,
    /// One of the files contains debug information.
    pub(super) has_debug_info: bool,
    /// Why further files are missing.
    pub(super) problem: Option<Problem>,
}

/// How to check that a file belongs to a module.
#[derive(Clone, Copy)]
enum Proof<'a> {
    /// By this build id, in hex.
    BuildId(&'a str),
    /// By the checksum of all its bytes.
    Crc(u32),
}

impl Files {
    /// The files of `instance`, which was loaded from `path`.
    ///
    /// # Errors
    /// Why there are none.
    pub(super) fn find(instance: &Instance, path: &Path, options: &Options) -> Result<Files, Problem> {
        let debug_dirs = &options.debug_dirs;
        let own = own_file(instance, path).or_else(|problem| {
            let mut kept = options.kept.of(path);
            kept.find_map(|file| verified(instance, file).ok()).ok_or(problem)
        });
        let mut files = Files::default();
        if let Ok(bytes) = &own
            && has_debug_info(bytes)
        {
            files.has_debug_info = true;
            files.supplementary = supplementary(bytes, path, debug_dirs);
        } else {
            let (found, differs) = debug_file(instance, path, own.as_deref().ok(), debug_dirs);
            if let Some((debug_path, bytes)) = found {
                files.has_debug_info = true;
                files.supplementary = supplementary(&bytes, &debug_path, debug_dirs);
                files.debug = Some(bytes);
            } else if differs {
                files.problem = Some(Problem::DebugFileDiffers);
            }
        }
        match own {
            Ok(bytes) => files.module = Some(bytes),
            Err(problem) if files.debug.is_none() => return Err(problem),
            Err(_) => {}
        }
        Ok(files)
    }
}

/// The module's file, if it is the traced one.
fn own_file(instance: &Instance, path: &Path) -> Result<Vec<u8>, Problem> {
    if vdso::name(&instance.path).is_some() {
        let is_it = |bytes: &Vec<u8>| build_id(bytes).is_some_and(|id| id == instance.build_id);
        let bytes = vdso::of_this_process().filter(|_| !instance.build_id.is_empty());
        return bytes.filter(is_it).ok_or(Problem::Missing);
    }
    let found = fs::metadata(path).map_err(|_| Problem::Missing)?;
    // Checked before opening, because opening a pipe would wait for a writer.
    if !found.is_file() {
        return Err(Problem::Unreadable);
    }
    let file = File::open(path).map_err(|_| Problem::Unreadable)?;
    verified(instance, &file)
}

/// The contents of a file, if it is the traced one.
fn verified(instance: &Instance, file: &File) -> Result<Vec<u8>, Problem> {
    let metadata = file.metadata().map_err(|_| Problem::Unreadable)?;
    let has_stamp = instance.file_size != 0 && instance.modified_ns != 0;
    if instance.build_id.is_empty() {
        let modified_ns = metadata.mtime() as u64 * 1_000_000_000 + metadata.mtime_nsec() as u64;
        match has_stamp {
            false => return Err(Problem::Unverifiable),
            true if (metadata.len(), modified_ns) != (instance.file_size, instance.modified_ns) => {
                return Err(Problem::Changed);
            }
            true => {}
        }
    }
    let bytes = contents(file, &metadata).ok_or(Problem::Unreadable)?;
    let build_id = build_id(&bytes).ok_or(Problem::Unreadable)?;
    if !instance.build_id.is_empty() && build_id != instance.build_id {
        return Err(Problem::Changed);
    }
    Ok(bytes)
}

/// The debug file of `instance`, which was loaded from `path`, and whether debug files of other builds were found.
/// `own`: the contents of the module's own file, if available.
fn debug_file(
    instance: &Instance,
    path: &Path,
    own: Option<&[u8]>,
    debug_dirs: &[PathBuf],
) -> (Option<(PathBuf, Vec<u8>)>, bool) {
    let mut candidates = Vec::new();
    let id = &*instance.build_id;
    if !id.is_empty() {
        let by_build_id = paths_by_build_id(id, debug_dirs);
        let copies = debug_dirs.iter().flat_map(|folder| {
            let name = instance.file_name();
            [folder.join(name), folder.join(format!("{name}.debug"))]
        });
        candidates.extend(by_build_id.into_iter().chain(copies).map(|path| (path, Proof::BuildId(id))));
    }
    if let Some((name, crc)) = own.and_then(debug_link) {
        let proof = match id {
            "" => Proof::Crc(crc),
            id => Proof::BuildId(id),
        };
        let paths = paths_by_link(path, &name, debug_dirs);
        candidates.extend(paths.into_iter().map(|path| (path, proof)));
    }
    let mut differs = false;
    for (path, proof) in candidates {
        let Some(bytes) = read(&path) else {
            continue;
        };
        let is_it = match proof {
            Proof::BuildId(id) => build_id(&bytes).as_deref() == Some(id),
            Proof::Crc(crc) => crc32fast::hash(&bytes) == crc,
        };
        if is_it && has_debug_info(&bytes) {
            return (Some((path, bytes)), false);
        }
        differs |= !is_it;
    }
    (None, differs)
}

/// The supplementary file (dwz) to which the debug information in `bytes`, read from `path`, refers.
fn supplementary(bytes: &[u8], path: &Path, debug_dirs: &[PathBuf]) -> Option<Vec<u8>> {
    let file = object::File::parse(bytes).ok()?;
    let (name, id) = file.gnu_debugaltlink().ok()??;
    let id = hex(id);
    let beside = real_folder(path).join(String::from_utf8_lossy(name).as_ref());
    let mut paths = paths_by_build_id(&id, debug_dirs);
    paths.insert(0, beside);
    paths.iter().filter_map(|path| read(path)).find(|bytes| build_id(bytes).as_ref() == Some(&id))
}

/// The possible paths of a debug file with this build id: `.build-id/12/345678.debug`.
fn paths_by_build_id(id: &str, debug_dirs: &[PathBuf]) -> Vec<PathBuf> {
    let Some((folder, name)) = id.split_at_checked(2).filter(|_| is_hex(id)) else {
        return Vec::new();
    };
    roots(debug_dirs).map(|root| root.join(format!(".build-id/{folder}/{name}.debug"))).collect()
}

/// The possible paths of the debug file `name` of the module at `path`.
fn paths_by_link(path: &Path, name: &str, debug_dirs: &[PathBuf]) -> Vec<PathBuf> {
    let folder = real_folder(path);
    let mut paths = vec![folder.join(name), folder.join(".debug").join(name)];
    for root in roots(debug_dirs) {
        let inside = folder.strip_prefix("/").unwrap_or(&folder);
        paths.push(root.join(inside).join(name));
        paths.push(root.join(name));
    }
    paths
}

fn roots(debug_dirs: &[PathBuf]) -> impl Iterator<Item = &Path> {
    debug_dirs.iter().map(PathBuf::as_path).chain([Path::new(SYSTEM_DEBUG_DIR)])
}

/// The directory of the file after resolving symbolic links.
fn real_folder(path: &Path) -> PathBuf {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    real.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The contents of a regular file.
fn read(path: &Path) -> Option<Vec<u8>> {
    // Checked before opening, because opening a pipe would wait for a writer.
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    contents(&File::open(path).ok()?, &metadata)
}

/// The contents of an open file, regardless of the file position.
fn contents(file: &File, metadata: &fs::Metadata) -> Option<Vec<u8>> {
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(metadata.len()).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(bytes)
}

/// The build id in hex, empty if there is none; `None` if the bytes are not an object file.
fn build_id(bytes: &[u8]) -> Option<String> {
    let file = object::File::parse(bytes).ok()?;
    Some(file.build_id().ok()?.map(hex).unwrap_or_default())
}

/// Name and checksum of the separate debug file.
fn debug_link(bytes: &[u8]) -> Option<(String, u32)> {
    let file = object::File::parse(bytes).ok()?;
    let (name, crc) = file.gnu_debuglink().ok()??;
    let name = String::from_utf8_lossy(name);
    // Only a file name is allowed, not a path.
    (!name.is_empty() && !name.contains('/')).then(|| (name.into_owned(), crc))
}

fn has_debug_info(bytes: &[u8]) -> bool {
    let is_there = |file: &object::File<'_>, name: &str| {
        file.section_by_name(name)
            .and_then(|section| section.data().ok())
            .is_some_and(|data| !data.is_empty())
    };
    object::File::parse(bytes)
        .is_ok_and(|file| is_there(&file, ".debug_info") || is_there(&file, ".debug_line"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the text consists of hexadecimal digits, so that it is safe as part of a path.
fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_files_are_looked_for_in_the_given_folders_first() {
        let roots = [PathBuf::from("/symbols")];
        assert_eq!(
            paths_by_build_id("12ab34", &roots),
            [
                Path::new("/symbols/.build-id/12/ab34.debug"),
                Path::new("/usr/lib/debug/.build-id/12/ab34.debug"),
            ]
        );
        assert!(paths_by_build_id("../../etc", &roots).is_empty());
        assert_eq!(
            paths_by_link(Path::new("/opt/nothing/app"), "app.debug", &roots),
            [
                Path::new("/opt/nothing/app.debug"),
                Path::new("/opt/nothing/.debug/app.debug"),
                Path::new("/symbols/opt/nothing/app.debug"),
                Path::new("/symbols/app.debug"),
                Path::new("/usr/lib/debug/opt/nothing/app.debug"),
                Path::new("/usr/lib/debug/app.debug"),
            ]
        );
    }

    #[test]
    fn only_regular_files_are_read() {
        assert!(read(Path::new("/dev/zero")).is_none());
        assert!(read(Path::new("/")).is_none());
    }
}
