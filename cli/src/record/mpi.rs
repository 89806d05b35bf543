//! Decides which of the libraries that record MPI calls are preloaded.
//!
//! Programs may check which MPI functions exist, and call the existing ones. So one of our libraries is preloaded only
//! if the MPI library in use has all functions that ours exports:
//!
//! | library | exports | preloaded if |
//! | --- | --- | --- |
//! | `libomptmpi.so` | functions of MPI 3.1 | a program needs MPI, or a launcher starts it |
//! | `libomptmpi4.so` | functions added in MPI 4.0 | each MPI library that may be used has these |
//! | `libomptmpi4c.so` | large-count variants | each MPI library that may be used has these |

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use omptrace_settings::value::{RankList, Value};

use crate::output::failure::{Failure, Result};
use crate::record::find_tracer::{self, Variables};
use crate::system::elf::{self, Elf};
use crate::system::executable::Program;
use crate::system::folders::files_in;
use crate::system::library_search::Loader;
use crate::system::mpi_libraries::{is_launcher, is_mpi_library};

/// Whether calls of MPI are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenMpi {
    /// Only if the program needs an MPI library, or if an MPI launcher starts the program
    #[default]
    Auto,
    /// Always, even if no MPI library or launcher can be detected before the run
    On,
    /// Never
    Off,
}

const LIBRARY: &str = "libomptmpi.so";
/// The other libraries, each with a function whose presence shows that an MPI library has all of its functions.
const FURTHER: [(&str, &str); 2] =
    [("libomptmpi4c.so", "MPI_Send_c"), ("libomptmpi4.so", "MPI_Session_init")];

/// Variables that launchers set for their processes.
const VARIABLES: [&str; 7] = [
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMIX_RANK",
    "PMI_SIZE",
    "MPI_LOCALNRANKS",
    "MV2_COMM_WORLD_SIZE",
    "PALS_RANKID",
];

/// The libraries to preload for MPI, in this order.
///
/// # Errors
/// The libraries are not installed, but MPI was requested.
pub(crate) fn libraries(
    when: WhenMpi,
    tracer: &Path,
    (command, programs): (&[OsString], &[Program]),
    loader: &Loader,
) -> Result<Vec<PathBuf>> {
    let mut candidates: Vec<PathBuf> = programs.iter().flat_map(|program| needed(program, loader)).collect();
    if candidates.is_empty() {
        candidates = launcher(command).map(|path| beside_launcher(&path)).unwrap_or_default();
    }
    let is_mpi = || !candidates.is_empty() || launcher(command).is_some() || is_launched();
    if when == WhenMpi::Off || (when == WhenMpi::Auto && !is_mpi()) {
        return Ok(Vec::new());
    }
    let library = tracer.with_file_name(LIBRARY);
    if !library.is_file() {
        // If the tracer is installed without these libraries, it records everything else.
        return match when {
            WhenMpi::On => Err(Failure::new(format!("--mpi on: {} does not exist", library.display())).hint(
                "to build this file and install it next to the tracer's library, run cargo xtask install; to only build it, run cargo build -p omptrace-mpi",
            )),
            _ => Ok(Vec::new()),
        };
    }
    let has_all = |function: &str| {
        !candidates.is_empty() && candidates.iter().all(|path| elf::defines(path, &[function]))
    };
    let further = FURTHER.iter().filter(|(_, function)| has_all(function));
    // In front, because they pass calls on to the other library.
    let further = further.map(|(name, _)| tracer.with_file_name(name)).filter(|path| path.is_file());
    Ok(further.chain([library]).collect())
}

/// A message about a program that is linked statically with MPI. `libraries`: the libraries preloaded for its calls.
pub(crate) fn linked_statically(libraries: &[PathBuf], programs: &[Program]) -> Option<String> {
    let has_mpi = |program: &&Program| elf::defines(&program.path, &["PMPI_Init"]);
    let program = programs.iter().filter(|_| !libraries.is_empty()).find(has_mpi)?;
    let path = program.path.display();
    Some(format!("MPI is linked statically into {path}, so the program's MPI calls are not visible"))
}

/// Whether this rank is to be recorded.
pub(crate) fn is_wanted(rank: u32, variables: &Variables) -> bool {
    const RANKS: &str = "OMPTRACE_RANKS";
    let of_option = variables.iter().find(|(name, _)| *name == RANKS).map(|(_, value)| value.clone());
    let ranks = of_option.or_else(|| find_tracer::variable(RANKS)).and_then(|ranks| RankList::parse(&ranks));
    ranks.is_none_or(|ranks| ranks.has(rank))
}

fn is_launched() -> bool {
    VARIABLES.iter().any(|name| env::var_os(name).is_some())
}

/// The MPI libraries that a program needs; only those with the C functions.
fn needed(program: &Program, loader: &Loader) -> Vec<PathBuf> {
    let Ok(Some(Elf::Native(elf))) = elf::read(&program.path) else {
        return Vec::new();
    };
    let needed = loader.needed(&program.path, &elf).into_iter().filter_map(|needed| needed.path);
    needed.filter(|path| is_mpi_library(path)).collect()
}

/// The launcher in the command.
fn launcher(command: &[OsString]) -> Option<PathBuf> {
    let word = command.iter().find(|word| is_launcher(word))?;
    let path = Path::new(word);
    match word.as_encoded_bytes().contains(&b'/') {
        true => Some(path.to_owned()),
        false => env::split_paths(&env::var_os("PATH")?)
            .map(|folder| folder.join(path))
            .find(|path| path.is_file()),
    }
}

/// MPI libraries installed with a launcher. If the launcher is a script, nothing is known about the library that its
/// modules will load.
fn beside_launcher(launcher: &Path) -> Vec<PathBuf> {
    let Ok(launcher) = fs::canonicalize(launcher) else { return Vec::new() };
    let Some(prefix) = launcher.parent().and_then(Path::parent) else { return Vec::new() };
    let folders = ["lib", "lib64"].map(|folder| prefix.join(folder));
    let is_named = |name: &str| name.starts_with("libmpi") && name.contains(".so");
    let found = folders.iter().flat_map(|folder| files_in(folder, is_named));
    found.filter(|path| is_mpi_library(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_mpi_that_are_not_installed_are_no_failure_unless_asked_for() {
        let tracer = Path::new("/nowhere/libomptrace.so");
        let command = [OsString::from("mpirun")];
        let found = |when| libraries(when, tracer, (&command, &[]), &Loader::new());
        assert_eq!(found(WhenMpi::Auto).ok(), Some(Vec::new()));
        assert_eq!(found(WhenMpi::Off).ok(), Some(Vec::new()));
        assert!(found(WhenMpi::On).is_err());
    }
}
