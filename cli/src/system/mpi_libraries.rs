//! The MPI libraries of this machine, and the launchers of MPI jobs.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::system::elf;
use crate::system::executable::name_of;
use crate::system::library_search::Loader;

/// Programs that start MPI jobs, by prefix of their names.
const LAUNCHERS: [&str; 11] =
    ["mpirun", "mpiexec", "orterun", "prterun", "prun", "srun", "aprun", "jsrun", "ibrun", "poe", "palsrun"];

/// What `doctor` prints about MPI.
#[derive(Debug, Serialize)]
pub(crate) struct InstalledMpi {
    libraries: Vec<MpiLibrary>,
    /// The launchers in `PATH`.
    launchers: Vec<PathBuf>,
    /// What cannot be recorded about MPI.
    unseen: &'static str,
}

#[derive(Debug, Serialize)]
struct MpiLibrary {
    path: PathBuf,
    /// Its binary interface, named as in traces.
    family: &'static str,
}

const UNSEEN: &str = "not visible: calls to a statically linked MPI library, and calls to MPI functions that a program looks up with dlsym (as ctypes and Julia do)";

impl InstalledMpi {
    pub(crate) fn find(loader: &Loader) -> InstalledMpi {
        let libraries = loader.libraries(|name| name.starts_with("libmpi") && name.contains(".so"));
        let libraries = libraries.into_iter().filter(|path| is_mpi_library(path));
        let libraries = libraries
            .map(|path| MpiLibrary { family: family(&path), path: path.canonicalize().unwrap_or(path) });
        let mut libraries: Vec<MpiLibrary> = libraries.collect();
        libraries.sort_by(|a, b| a.path.cmp(&b.path));
        libraries.dedup_by(|a, b| a.path == b.path);
        let path = env::var_os("PATH").unwrap_or_default();
        let in_path = |name: &&str| {
            let mut folders = env::split_paths(&path);
            folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file()))
        };
        InstalledMpi { libraries, launchers: LAUNCHERS.iter().filter_map(in_path).collect(), unseen: UNSEEN }
    }

    /// Lines for the output; empty if there is no MPI.
    pub(crate) fn lines(&self) -> Vec<String> {
        if self.libraries.is_empty() && self.launchers.is_empty() {
            return Vec::new();
        }
        let mut lines: Vec<String> = self
            .libraries
            .iter()
            .map(|library| format!("{} (interface of {})", library.path.display(), library.interface()))
            .collect();
        if self.libraries.is_empty() {
            lines.push("no MPI library in the loader's directories".to_owned());
        }
        let launchers: Vec<String> = self.launchers.iter().map(|path| path.display().to_string()).collect();
        lines.push(match &*launchers {
            [] => "no MPI launcher in PATH".to_owned(),
            launchers => format!("launchers: {}", launchers.join(", ")),
        });
        lines.push(self.unseen.to_owned());
        lines
    }
}

impl MpiLibrary {
    fn interface(&self) -> &'static str {
        match self.family {
            "openmpi" => "Open MPI",
            "abi" => "MPI 5",
            _ => "MPICH",
        }
    }
}

/// The binary interface of a library, determined as in the preloaded library.
fn family(path: &Path) -> &'static str {
    match () {
        () if name_of(path).starts_with("libmpi_abi") => "abi",
        () if elf::defines(path, &["ompi_mpi_comm_world"]) => "openmpi",
        () => "mpich",
    }
}

/// Whether it is an MPI library. Names differ (`libmpich.so.12`, `libmpi_cray.so.12`), and those of its parts, such as
/// Fortran's, look similar.
pub(crate) fn is_mpi_library(path: &Path) -> bool {
    name_of(path).starts_with("libmpi") && elf::defines(path, &["PMPI_Init"])
}

/// Whether the word is an MPI launcher.
pub(crate) fn is_launcher(word: &OsStr) -> bool {
    let name = name_of(Path::new(word));
    let stem = name.split('.').next().unwrap_or_default();
    LAUNCHERS.contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_their_names() {
        for word in ["mpirun", "/usr/bin/mpiexec.hydra", "mpirun.openmpi", "srun"] {
            assert!(is_launcher(OsStr::new(word)), "{word}");
        }
        for word in ["./mpirun_like", "srunner", "omptrace", "-n"] {
            assert!(!is_launcher(OsStr::new(word)), "{word}");
        }
    }
}
