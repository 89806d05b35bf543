//! The program's source files for a page that is handed on.
//!
//! Traces come from others, and what they call a source may be any file of the one who makes the page. So a file is shown
//! only where the program's sources can be, which its reader decides, and only if it looks like a source:
//!
//! ```text
//! path of the trace --> as it is, or below --source DIR --> below a root, or with the program's checksum, links followed?
//!             --> no hidden part? --> the name of a source? --> a regular file of text? --> shown
//! ```
//!
//! Roots are the directories of `--source`, the current directory, and the checkout that this lies in. Elsewhere a file is shown
//! that has the checksum of the one that the program was compiled from: whoever wrote the trace had its text.

use std::env;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use omptrace_trace_format::open_regular;

/// Bytes of a source file that are read: a longer one was not written by a person.
const MAX_FILE: u64 = 4 << 20;

/// Ends of the names of sources, in small letters: of languages that compile to code with debug information.
const EXTENSIONS: &[&str] = &[
    "adb", "ads", "asm", "c", "c++", "cc", "cl", "clj", "cp", "cpp", "cppm", "cr", "cu", "cuh", "cxx", "d",
    "def", "f", "f03", "f08", "f15", "f18", "f77", "f90", "f95", "fi", "for", "fpp", "ftn", "go", "h", "h++",
    "hh", "hip", "hpp", "hs", "hxx", "i", "icc", "ii", "inc", "inl", "ino", "ipp", "ispc", "ixx", "java",
    "jl", "kt", "l", "ll", "m", "ml", "mm", "nim", "pas", "pf", "pxd", "pxi", "py", "pyx", "r", "rs", "s",
    "scala", "swift", "sx", "tcc", "tpp", "txx", "upc", "v", "y", "yy", "zig",
];

/// Files and directories that a directory with a checkout of a version control system has.
const CHECKOUTS: &[&str] = &[".git", ".hg", ".svn", ".jj"];

/// A directory whose sources may be shown.
#[derive(Debug)]
struct Root {
    directory: PathBuf,
    /// Only the files in it, not those of its directories.
    is_flat: bool,
}

/// Where sources may be.
#[derive(Debug)]
pub(crate) struct Roots {
    roots: Vec<Root>,
    /// The directories that the user named. Their files count by the end of their path, for programs are built elsewhere.
    named: Vec<PathBuf>,
}

/// A file that may be shown.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its path below the root; its whole path where it is below none.
    pub(crate) path: PathBuf,
    /// Its text.
    pub(crate) text: String,
    /// When it was changed.
    pub(crate) changed: SystemTime,
    /// Whether it is what the program was compiled from, where the trace has its checksum.
    pub(crate) is_same: Option<bool>,
}

impl Roots {
    /// The directories that the user named, and the current one.
    ///
    /// # Errors
    /// One of `named` cannot be found.
    pub(crate) fn new(named: &[PathBuf]) -> io::Result<Roots> {
        let named: Vec<PathBuf> = named.iter().map(fs::canonicalize).collect::<Result<_, _>>()?;
        let mut roots: Vec<Root> =
            named.iter().map(|directory| Root { directory: directory.clone(), is_flat: false }).collect();
        let home = env::home_dir().and_then(|home| fs::canonicalize(home).ok());
        // Below a home directory is everything that its user has.
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

    /// The source that a trace names by `path`, where the program ran in one of `directories`. `checksums` are those that
    /// the trace has for it, MD5 in hex.
    pub(crate) fn find(&self, path: &Path, directories: &[&Path], checksums: &[&str]) -> Option<Found> {
        let mut candidates = self.candidates(path, directories);
        candidates.find_map(|candidate| self.read(&candidate, checksums))
    }

    /// The directory that the user could name to have the source shown; `None` where it is shown, or not there.
    pub(crate) fn missing(&self, path: &Path, directories: &[&Path]) -> Option<PathBuf> {
        self.candidates(path, directories).find_map(|candidate| {
            let real = fs::canonicalize(candidate).ok()?;
            let is_outside = is_source(&real) && real.is_file() && self.below_root(&real).is_none();
            is_outside.then(|| real.parent().map(Path::to_owned))?
        })
    }

    /// Where the file may be, the most likely first.
    fn candidates(&self, path: &Path, directories: &[&Path]) -> impl Iterator<Item = PathBuf> {
        /// More are no path of a person's.
        const MAX_PARTS: usize = 64;

        let mut candidates: Vec<PathBuf> = vec![path.to_owned()];
        candidates.extend(directories.iter().map(|directory| directory.join(path)));
        // What comes after the last `..`: its parts are names.
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
        // Elsewhere only the text itself can show that the file is the program's.
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

    /// The path below a root, no part of which is hidden; `None` where there is none.
    fn below_root<'p>(&self, real: &'p Path) -> Option<&'p Path> {
        self.roots.iter().find_map(|root| {
            let below = real.strip_prefix(&root.directory).ok()?;
            let is_shown = !is_hidden(below) && (!root.is_flat || below.components().count() == 1);
            is_shown.then_some(below)
        })
    }
}

/// Whether a part of the path is hidden.
fn is_hidden(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
}

/// Whether a file has the name of a source.
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
        // The directory where the program ran is the trace's word.
        let build = here.join("build");
        assert_eq!(shown(&near, "../a.c", &[&build]).as_deref(), Some("a.c"));
        assert_eq!(shown(&near, "../secret.c", &[&here]), None);
        // A flat root has its own files only.
        let flat = roots(&[], &here, true);
        assert!(shown(&flat, &absolute("here/a.c"), &[]).is_some());
        assert_eq!(shown(&flat, &absolute("here/src/b.F90"), &[]), None);
        // Where the user says so, wherever the program was built.
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
