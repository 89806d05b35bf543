//! Paths of source files: each file has one name, and files with the same name are distinguished.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of directories that distinguish two files. Limits the cost of comparing paths with thousands of
/// directories.
const MAX_FOLDERS: usize = 16;

/// The path without `.`, `..` and empty parts, without asking the file system. `..` is kept if there is no directory
/// before it. LLVM and GDB do the same, because debug information contains a header under as many paths as there are
/// ways to include it.
pub fn normalised(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(last) if *last != ".." => {
                    parts.pop();
                }
                None if is_absolute => {}
                _ => parts.push(part),
            },
            part => parts.push(part),
        }
    }
    let root = if is_absolute { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// The displayed names of files: the last part of the path, with as many directories as are needed to distinguish
/// files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileNames {
    /// Names with directories, by path.
    longer: BTreeMap<String, String>,
}

impl FileNames {
    /// The names of these files.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p str>) -> FileNames {
        let mut by_name: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for path in paths {
            by_name.entry(last_parts(path, 1)).or_default().insert(path);
        }
        let mut longer = BTreeMap::new();
        for mut paths in by_name.into_values() {
            for parts in 2..MAX_FOLDERS + 2 {
                if paths.len() < 2 {
                    break;
                }
                let mut counts: HashMap<&str, usize> = HashMap::new();
                for path in &paths {
                    *counts.entry(last_parts(path, parts)).or_default() += 1;
                }
                // If all paths differ at this length, all get the same number of directories.
                if counts.values().all(|count| *count == 1) || parts > MAX_FOLDERS {
                    let names = paths.iter().map(|path| match parts > MAX_FOLDERS {
                        true => ((*path).to_owned(), (*path).to_owned()),
                        false => ((*path).to_owned(), last_parts(path, parts).to_owned()),
                    });
                    longer.extend(names);
                    paths.clear();
                }
            }
        }
        FileNames { longer }
    }

    /// The name of the file at `path`.
    pub fn name<'n>(&'n self, path: &'n str) -> &'n str {
        let longer = self.longer.get(path).map(String::as_str);
        longer.unwrap_or_else(|| last_parts(path, 1))
    }
}

/// The last `parts` parts of a path, or the whole path.
fn last_parts(path: &str, parts: usize) -> &str {
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at);
    match slashes.nth(parts - 1) {
        Some(at) => &path[at + 1..],
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_path() {
        for (path, right) in [
            ("/a/../inc.h", "/inc.h"),
            ("/b/./inc.h", "/b/inc.h"),
            ("/b//inc.h", "/b/inc.h"),
            ("/../../x.c", "/x.c"),
            ("../a/../x.c", "../x.c"),
            ("../../x.c", "../../x.c"),
            ("a/b/../../x.c", "x.c"),
            ("./x.c", "x.c"),
            ("x.c", "x.c"),
            ("", ""),
            ("/", "/"),
            ("<stdin>", "<stdin>"),
        ] {
            assert_eq!(normalised(path), right, "{path}");
        }
    }

    #[test]
    fn files_of_one_name_are_distinguished() {
        let names = FileNames::of([
            "/p/a/kernel.c",
            "/p/b/kernel.c",
            "/p/main.c",
            "/p/main.c",
            "x/y/deep.c",
            "z/y/deep.c",
            "rel.c",
            "/q/rel.c",
        ]);
        for (path, name) in [
            ("/p/a/kernel.c", "a/kernel.c"),
            ("/p/b/kernel.c", "b/kernel.c"),
            ("/p/main.c", "main.c"),
            ("x/y/deep.c", "x/y/deep.c"),
            ("rel.c", "rel.c"),
            ("/q/rel.c", "q/rel.c"),
            ("/elsewhere/new.c", "new.c"),
        ] {
            assert_eq!(names.name(path), name);
        }
    }

    #[test]
    fn long_paths_are_shown_whole() {
        let long = "/d".repeat(40);
        let (one, other) = (format!("/one{long}/x.c"), format!("/other{long}/x.c"));
        let names = FileNames::of([&*one, &*other]);
        assert_eq!((names.name(&one), names.name(&other)), (&*one, &*other));
    }
}
