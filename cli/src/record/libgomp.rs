//! GCC programs: LLVM's runtime replaces libgomp, or the adapter adds the tools interface to libgomp.
//!
//! LLVM's runtime is preloaded by its absolute path. The alternative would be a directory in `LD_LIBRARY_PATH` that
//! contains LLVM's runtime as `libgomp.so.1`. But this would not reach programs with DT_RPATH or with a renamed
//! libgomp, and it would hide other libraries of the program.

use std::fs;
use std::path::{Path, PathBuf};

use crate::options::shared::{Libgomp, WhenLibgomp};
use crate::output::failure::{Failure, Result};
use crate::record::advice::INSTALL_LIBOMP;
use crate::system::executable::Program;
use crate::system::installed_runtimes;
use crate::system::library_search::Loader;
use crate::system::openmp_runtime;
use crate::system::processor;
use crate::system::python_packages;
use crate::system::symbol_versions::{self, Lacking};

/// The runtime that may replace libgomp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StandIn {
    /// The runtime's file.
    pub(crate) libomp: PathBuf,
    /// The functions that it lacks for the programs.
    pub(crate) lacking: Vec<Lacking>,
}

/// The decision about libgomp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// libgomp is kept, if it is used at all.
    Keep,
    /// libgomp is kept, and this library adds the tools interface.
    ObserveBy(PathBuf),
    /// This runtime replaces libgomp. It may lack functions, but the user insists.
    ReplaceBy(StandIn),
    /// libgomp is kept, because this runtime lacks functions that the programs need.
    CannotReplaceBy(StandIn),
    /// libgomp should be replaced, but no other runtime is installed.
    NothingInstalled,
}

/// Decides for a run of `programs`: the one that is started, and those that are visible among its arguments.
///
/// # Errors
/// The runtime that the user named does not exist or cannot replace libgomp; the adapter that the user requested does
/// not exist; or `--audit` is given but the adapter is not used.
pub(crate) fn decide(
    options: &Libgomp,
    tracer: &Path,
    programs: &[Program],
    loader: &Loader,
) -> Result<Decision> {
    let named = options.libomp.as_deref();
    match options.libgomp {
        WhenLibgomp::Replace | WhenLibgomp::Keep if options.audit => Err(Failure::new(
            "--audit has an effect only if libgomp is observed, but the given --libgomp option turns this observation off",
        )
        .hint("leave out one of the two options")),
        WhenLibgomp::Auto if options.audit => observe(tracer),
        WhenLibgomp::Keep => Ok(Decision::Keep),
        WhenLibgomp::Observe => observe(tracer),
        WhenLibgomp::Replace => match stand_in(named, programs, loader)? {
            Some(stand_in) => Ok(Decision::ReplaceBy(stand_in)),
            None => Err(Failure::new("--libgomp replace: no installed OpenMP runtime can replace libgomp")
                .hint(INSTALL_LIBOMP)),
        },
        WhenLibgomp::Auto => automatic(named, tracer, programs, loader),
    }
}

/// libgomp is observed if a program needs it, or is an interpreter whose packages may need it. It is also observed if
/// no program shows which runtime it uses: a shell, a script or `make` starts other programs, which preloading reaches.
///
/// Only one runtime per process can be traced. So if a program needs LLVM's or Intel's runtime in addition to libgomp,
/// or if the user names a runtime, that runtime replaces libgomp, provided that it has all functions that the program
/// calls. A runtime among an interpreter's packages does not count, because most programs never load it.
fn automatic(named: Option<&Path>, tracer: &Path, programs: &[Program], loader: &Loader) -> Result<Decision> {
    let needed = programs.iter().any(Program::needs_libgomp);
    let possible = programs.iter().any(Program::runs_packages);
    if !needed && !possible {
        let may_start_others = !programs.is_empty() && !programs.iter().any(Program::has_openmp);
        return Ok(match observe(tracer) {
            Ok(observed) if may_start_others => observed,
            _ => Decision::Keep,
        });
    }
    let beside = match named {
        Some(named) => Some(named.to_owned()),
        None => runtimes_needed(programs).find(|path| openmp_runtime::can_stand_in_for_libgomp(path)),
    };
    let lacks = match beside {
        Some(beside) => match stand_in(Some(&beside), programs, loader)? {
            Some(stand_in) if stand_in.lacking.is_empty() => {
                return Ok(Decision::ReplaceBy(stand_in));
            }
            lacks => lacks,
        },
        None => None,
    };
    if named.is_none()
        && let Ok(observed) = observe(tracer)
    {
        return Ok(observed);
    }
    let lacks = match lacks {
        Some(lacks) => Some(lacks),
        None => stand_in(named, programs, loader)?,
    };
    match lacks {
        Some(stand_in) if stand_in.lacking.is_empty() => Ok(Decision::ReplaceBy(stand_in)),
        Some(stand_in) => Ok(Decision::CannotReplaceBy(stand_in)),
        None if needed => Ok(Decision::NothingInstalled),
        None => Ok(Decision::Keep),
    }
}

/// # Errors
/// The adapter does not exist.
fn observe(tracer: &Path) -> Result<Decision> {
    Ok(Decision::ObserveBy(adapter(tracer)?))
}

/// The file name of the adapter, which adds the tools interface to libgomp.
const ADAPTER: &str = "libomptgomp.so";

/// The adapter, which is next to the tracer.
///
/// # Errors
/// The adapter does not exist, or not for this CPU.
pub(crate) fn adapter(tracer: &Path) -> Result<PathBuf> {
    if !processor::THIS.observes_libgomp() {
        return Err(
            Failure::new("--libgomp observe is supported only on x86_64 and aarch64").hint(INSTALL_LIBOMP)
        );
    }
    let path = tracer.with_file_name(ADAPTER);
    if path.is_file() {
        return Ok(path);
    }
    Err(Failure::new(format!("--libgomp observe: {} does not exist", path.display())).hint(
        "to build this file and install it next to the tracer's library, run cargo xtask install; to only build it, run cargo build -p omptrace-libgomp-adapter",
    ))
}

/// The runtime to preload, and the functions that it lacks for the programs.
///
/// # Errors
/// The named runtime does not exist, or has no tools interface.
pub(crate) fn stand_in(
    named: Option<&Path>,
    programs: &[Program],
    loader: &Loader,
) -> Result<Option<StandIn>> {
    let libomp = choose(named, programs, loader)?;
    Ok(libomp
        .map(|libomp| StandIn { lacking: symbol_versions::lacking_in(&libomp, programs, loader), libomp }))
}

/// The runtime to preload: the named one, otherwise [the program's own](runtime_beside), otherwise the newest
/// installed.
fn choose(named: Option<&Path>, programs: &[Program], loader: &Loader) -> Result<Option<PathBuf>> {
    if let Some(named) = named {
        let path = fs::canonicalize(named)
            .map_err(|error| Failure::because(format!("--libomp {}", named.display()), &error))?;
        if !openmp_runtime::can_stand_in_for_libgomp(&path) {
            return Err(Failure::new(format!(
                "--libomp {}: this file is not an OpenMP runtime that has a tools interface and can run GCC programs",
                path.display()
            ))
            .hint("give the path of libomp.so.5 from LLVM 10 or later, or of a libiomp5.so"));
        }
        return Ok(Some(path));
    }
    Ok(runtime_beside(programs).or_else(|| installed_runtimes::stand_in_for_libgomp(loader)))
}

/// The runtimes that the programs need.
fn runtimes_needed(programs: &[Program]) -> impl Iterator<Item = PathBuf> {
    let needed = programs.iter().flat_map(Program::runtimes);
    needed.filter_map(|needed| fs::canonicalize(needed.path.as_ref()?).ok())
}

/// LLVM's or Intel's runtime, if a program needs it in addition to libgomp, or if it is among the packages of an
/// interpreter.
fn runtime_beside(programs: &[Program]) -> Option<PathBuf> {
    let needed = runtimes_needed(programs);
    let interpreters = programs.iter().filter(|program| program.runs_packages());
    needed
        .chain(interpreters.flat_map(python_packages::runtimes))
        .find(|path| openmp_runtime::can_stand_in_for_libgomp(path))
}
