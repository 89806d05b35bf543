//! The program's source files for a page that may be passed on to others.
//!
//! Traces come from others, and a path that they give as a source may be any file of the user who creates the page. So
//! a file is shown only if it is in a place for the program's sources, which the user decides, and only if it looks
//! like a source file:
//!
//! ```text
//! path in the trace --> as it is, or below --source DIR --> below a root, or with the program's checksum, links resolved?
//!             --> no hidden part? --> the name of a source? --> a regular text file? --> shown
//! ```
//!
//! Roots are the directories of `--source`, the current directory, and the checkout around it. Outside of the roots, a
//! file is shown if it has the checksum of the file from which the program was compiled, because then the author of the
//! trace already had its text.

use std::env;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use omptrace_trace_format::open_regular;

/// Maximum size of a source file; longer files were not written by people.
const MAX_FILE: u64 = 4 << 20;

/// Extensions of source files, in lower case, for languages that are compiled to code with debug information.
const EXTENSIONS: &[&str] = &[
    "adb", "ads", "asm", "c", "c++", "cc", "cl", "clj", "cp", "cpp", "cppm", "cr", "cu", "cuh", "cxx", "d",
    "def", "f", "f03", "f08", "f15", "f18", "f77", "f90", "f95", "fi", "for", "fpp", "ftn", "go", "h", "h++",
    "hh", "hip", "hpp", "hs", "hxx", "i", "icc", "ii", "inc", "inl", "ino", "ipp", "ispc", "ixx", "java",
    "jl", "kt", "l", "ll", "m", "ml", "mm", "nim", "pas", "pf", "pxd", "pxi", "py", "pyx", "r", "rs", "s",
    "scala", "swift", "sx", "tcc", "tpp", "txx", "upc", "v", "y", "yy", "zig",
];

/// Entries that mark a directory as a checkout of a version control system.
const CHECKOUTS: &[&str] = &[".git", ".hg", ".svn", ".jj"];

/// A directory whose source files may be shown.
#[derive(Debug)]
struct Root {
    directory: PathBuf,
    /// Only files in the directory itself may be shown, not those in subdirectories.
    is_flat: bool,
}

/// The directories that may contain sources.
#[derive(Debug)]
pub(crate) struct Roots {
    roots: Vec<Root>,
    /// The directories that the user named. Their files are matched by the end of the path, because programs may have
    /// been built elsewhere.
    named: Vec<PathBuf>,
}

/// A file that may be shown.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its path below the root, or its whole path if it is not below a root.
    pub(crate) path: PathBuf,
    /// Its contents.
    pub(crate) text: String,
    /// Its modification time.
    pub(crate) changed: SystemTime,
    /// Whether the program was compiled from this file, if the trace contains its checksum.
    pub(crate) is_same: Option<bool>,
}

impl Roots {
    /// The directories that the user named, and the current directory.
    ///
    /// # Errors
    /// A directory in `named` does not exist.
    pub(crate) fn new(named: &[PathBuf]) -> io::Result<Roots> {
        let named: Vec<PathBuf> = named.iter().map(fs::canonicalize).collect::<Result<_, _>>()?;
        let mut roots: Vec<Root> =
            named.iter().map(|directory| Root { directory: directory.clone(), is_flat: false }).collect();
        let home = env::home_dir().and_then(|home| fs::canonicalize(home).ok());
        // A home directory contains everything that its user has.
        let is_wide = |directory: &Path| {
            directory.parent().is_none() || home.as_ref().is_some_and(|home| home.starts_with(directory))
        };
        if let Ok(current) = env::current_dir().and_then(fs::canonicalize) {
            let has_checkout = |directory: &&Path| CHECKOUTS.iter().any(|name| directory.join(name).exists());
            let checkout = current.ancestors().find(has_checkout);
            let checkout = checkout.filter(|directory| !is_wide(directory));
            let directory = checkout.unwrap_or(&current).to_owned();
            roots.push(Root { is_flat: is_wide(&directory), directory });
        }
        Ok(Roots { roots, named })
    }

    /// The source that a trace calls `path`, if the program ran in one of `directories`. `checksums`: the checksums in
    /// the trace for this path, MD5 in hex.
    pub(crate) fn find(&self, path: &Path, directories: &[&Path], checksums: &[&str]) -> Option<Found> {
        let mut candidates = self.candidates(path, directories);
        candidates.find_map(|candidate| self.read(&candidate, checksums))
    }

    /// The directory that the user could name to have the source shown; `None` if it is shown already, or does not
    /// exist.
    pub(crate) fn missing(&self, path: &Path, directories: &[&Path]) -> Option<PathBuf> {
        self.candidates(path, directories).find_map(|candidate| {
            let real = fs::canonicalize(candidate).ok()?;
            let is_outside = is_source(&real) && real.is_file() && self.below_root(&real).is_none();
            is_outside.then(|| real.parent().map(Path::to_owned))?
        })
    }

    /// Possible paths of the file, most likely first.
    fn candidates(&self, path: &Path, directories: &[&Path]) -> impl Iterator<Item = PathBuf> {
        /// Longer paths were not created by people.
        const MAX_PARTS: usize = 64;

        let mut candidates: Vec<PathBuf> = vec![path.to_owned()];
        candidates.extend(directories.iter().map(|directory| directory.join(path)));
        // The parts after the last `..` are names.
        let mut names: Vec<&std::ffi::OsStr> = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::ParentDir => names.clear(),
                _ => {}
            }
        }
        let first = names.len().saturating_sub(MAX_PARTS);
        for directory in &self.named {
            let ends = (first..names.len()).map(|from| names[from..].iter().collect::<PathBuf>());
            candidates.extend(ends.map(|end| directory.join(end)));
        }
        candidates.into_iter()
    }

    fn read(&self, candidate: &Path, checksums: &[&str]) -> Option<Found> {
        let real = fs::canonicalize(candidate).ok()?;
        let below = self.below_root(&real);
        // Outside of the roots, only the contents can prove that the file belongs to the program.
        let may_be_shown = below.is_some() || !checksums.is_empty() && !is_hidden(&real);
        if !may_be_shown || !is_source(&real) {
            return None;
        }
        let file = open_regular(&real).ok()?;
        let changed = file.metadata().ok()?.modified().ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
        let is_same = (!checksums.is_empty()).then(|| {
            let checksum = format!("{:x}", md5::compute(&bytes));
            checksums.contains(&&*checksum)
        });
        let is_shown = !bytes.contains(&0) && (below.is_some() || is_same == Some(true));
        is_shown.then(|| Found {
            path: below.unwrap_or(&real).to_owned(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
            changed,
            is_same,
        })
    }

    /// The path below a root, without hidden parts; `None` if there is none.
    fn below_root<'p>(&self, real: &'p Path) -> Option<&'p Path> {
        self.roots.iter().find_map(|root| {
            let below = real.strip_prefix(&root.directory).ok()?;
            let is_shown = !is_hidden(below) && (!root.is_flat || below.components().count() == 1);
            is_shown.then_some(below)
        })
    }
}

/// Whether any part of the path is hidden.
fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
}

/// Whether the file name is that of a source file.
fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let extension = extension.map(str::to_ascii_lowercase);
    extension.is_some_and(|extension| EXTENSIONS.contains(&&*extension))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn roots(named: &[&Path], current: &Path, is_flat: bool) -> Roots {
        let named: Vec<PathBuf> = named.iter().map(|path| path.to_path_buf()).collect();
        let mut roots: Vec<Root> =
            named.iter().map(|directory| Root { directory: directory.clone(), is_flat: false }).collect();
        roots.push(Root { directory: current.to_owned(), is_flat });
        Roots { roots, named }
    }

    #[test]
    fn sources_below_a_root_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        for directory in ["here/src", "here/.cache", "here/build", "there/lib"] {
            fs::create_dir_all(top.join(directory)).unwrap();
        }
        for file in [
            "here/a.c",
            "here/src/b.F90",
            "here/key",
            "here/.cache/c.c",
            "here/.d.c",
            "secret.c",
            "secret",
            "there/lib/e.cpp",
        ] {
            fs::write(top.join(file), "text\n").unwrap();
        }
        fs::write(top.join("here/zero.c"), b"a\0b").unwrap();
        symlink("../secret.c", top.join("here/link.c")).unwrap();
        symlink("key", top.join("here/key.c")).unwrap();
        let here = top.join("here");
        let there = top.join("there");
        let near = roots(&[], &here, false);
        let shown = |roots: &Roots, path: &str, directories: &[&Path]| {
            let found = roots.find(Path::new(path), directories, &[])?;
            assert_eq!(found.text, "text\n");
            Some(found.path.display().to_string())
        };
        let absolute = |path: &str| top.join(path).display().to_string();
        for (path, found) in [
            ("here/a.c", Some("a.c")),
            ("here/build/../src/b.F90", Some("src/b.F90")),
            ("here/key", None),
            ("here/key.c", None),
            ("here/.cache/c.c", None),
            ("here/.d.c", None),
            ("here/zero.c", None),
            ("here/link.c", None),
            ("here/../secret.c", None),
            ("secret", None),
            ("there/lib/e.cpp", None),
        ] {
            let shown = shown(&near, &absolute(path), &[]);
            assert_eq!(shown.as_deref(), found, "{path}");
        }
        // The directory in which the program ran is only a claim of the trace.
        let build = here.join("build");
        assert_eq!(shown(&near, "../a.c", &[&build]).as_deref(), Some("a.c"));
        assert_eq!(shown(&near, "../secret.c", &[&here]), None);
        // A flat root includes only its own files.
        let flat = roots(&[], &here, true);
        assert!(shown(&flat, &absolute("here/a.c"), &[]).is_some());
        assert_eq!(shown(&flat, &absolute("here/src/b.F90"), &[]), None);
        // With `--source`, regardless of where the program was built.
        let both = roots(&[&there], &here, false);
        assert_eq!(shown(&both, "/ci/build/../lib/e.cpp", &[]).as_deref(), Some("lib/e.cpp"));
        assert_eq!(shown(&both, &absolute("secret.c"), &[]), None);
    }

    #[test]
    fn elsewhere_a_checksum_shows_that_a_source_is_the_programs() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        // Directories for temporary files may have a hidden name.
        let is_hidden_itself = is_hidden(&top);
        for directory in ["here", "there/.git"] {
            fs::create_dir_all(top.join(directory)).unwrap();
        }
        for file in ["here/a.c", "there/a.c", "there/key", "there/.git/a.c"] {
            fs::write(top.join(file), "text\n").unwrap();
        }
        let text = format!("{:x}", md5::compute("text\n"));
        let other = format!("{:x}", md5::compute("other"));
        let roots = roots(&[], &top.join("here"), false);
        let find = |path: &str, checksums: &[&str]| {
            let found = roots.find(&top.join(path), &[], checksums)?;
            assert_eq!(found.text, "text\n");
            Some((found.path, found.is_same))
        };
        let there = (!is_hidden_itself).then(|| (top.join("there/a.c"), Some(true)));
        assert_eq!(find("there/a.c", &[]), None);
        assert_eq!(find("there/a.c", &[&other]), None);
        assert_eq!(find("there/a.c", &[&other, &text]), there);
        assert_eq!(find("there/key", &[&text]), None);
        assert_eq!(find("there/.git/a.c", &[&text]), None);
        assert_eq!(find("here/a.c", &[&other]), Some(("a.c".into(), Some(false))));
        assert_eq!(find("here/a.c", &[]), Some(("a.c".into(), None)));
    }

    #[test]
    fn a_directory_with_more_sources_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(top.join("here")).unwrap();
        fs::write(top.join("a.c"), "").unwrap();
        fs::write(top.join("key"), "").unwrap();
        let near = roots(&[], &top.join("here"), false);
        assert_eq!(near.missing(&top.join("a.c"), &[]), Some(top.clone()));
        assert_eq!(near.missing(&top.join("key"), &[]), None);
        assert_eq!(near.missing(&top.join("none.c"), &[]), None);
    }
}
