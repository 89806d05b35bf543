//! Facts about a program that are known without running it: the kind of its file, and the OpenMP runtime that it needs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use omptrace_runtimes::{Runtime, Vendor};

use crate::system::elf::{self, Elf, Native};
use crate::system::library_search::{Loader, Needed};
use crate::system::openmp_runtime::{self, ToolsInterface};

/// A program's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// Its kind.
    pub(crate) kind: Kind,
    /// Whether it runs with the privileges of another user or group, so that the loader ignores `LD_PRELOAD` and
    /// libraries distrust the environment.
    pub(crate) privileged: bool,
}

/// The kind of file that a program is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A program for another machine.
    Foreign(&'static str),
    /// A script, with the name of its interpreter in the first line (`sh` if missing).
    Script {
        /// The interpreter's name, without directory.
        interpreter: String,
    },
    /// A program for the loader of musl, another C library, which cannot load libraries made for glibc.
    Musl,
    /// A program without a loader.
    Static {
        /// Whether an OpenMP runtime is part of it.
        openmp: bool,
    },
    /// A program with a loader, or a library.
    Dynamic {
        /// The OpenMP runtimes among all needed libraries.
        runtimes: Vec<RuntimeNeeded>,
        /// Whether an OpenMP runtime is part of the program's own file.
        openmp_inside: bool,
        /// Whether it or a needed library contains a tools interface whose tools must be present from the start.
        needs_preloaded_tool: bool,
    },
    /// The file cannot be read, for this reason.
    Unreadable(String),
}

/// An OpenMP runtime that a program needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuntimeNeeded {
    /// The runtime.
    pub(crate) runtime: &'static Runtime,
    /// The name under which it is needed.
    pub(crate) name: String,
    /// The path where the loader finds it; `None` if it does not.
    pub(crate) path: Option<PathBuf>,
}

impl Program {
    /// The program to start, followed by those that are visible among its arguments: `mpirun -n 4 ./app`,
    /// `numactl python x.py`, and `srun lmp`, if the first program does not use OpenMP itself.
    pub(crate) fn of_command(command: &[OsString], loader: &Loader) -> Vec<Program> {
        let (first, others) = command.split_first().expect("clap requires a program");
        let mut programs: Vec<Program> = Program::find(first, loader).into_iter().collect();
        let may_launch = programs.iter().all(|first| first.runtimes().is_empty());
        for word in others {
            let bytes = word.as_encoded_bytes();
            let names_one = bytes.contains(&b'/') || bytes.starts_with(b"python");
            if !names_one && !may_launch {
                continue;
            }
            // A word without a directory may be the name of a program by chance: `./run.sh test`.
            let found = Program::find(word, loader);
            let may_matter = |program: &Program| !program.runtimes().is_empty() || program.runs_packages();
            programs.extend(found.filter(|program| names_one || may_matter(program)));
        }
        programs
    }

    /// Examines the program that `execvp` would find for `word`; `None` if it would find none.
    pub(crate) fn find(word: &OsStr, loader: &Loader) -> Option<Program> {
        let path = resolve(word)?;
        let kind = kind(&path, loader).unwrap_or_else(|error| Kind::Unreadable(error.to_string()));
        Some(Program { privileged: is_privileged(&path), path, kind })
    }

    /// Whether the program needs GCC's runtime.
    pub(crate) fn needs_libgomp(&self) -> bool {
        self.runtimes().iter().any(|needed| needed.runtime.vendor == Vendor::Gnu)
    }

    /// Whether the program can only be traced by a tool that is present from its start.
    pub(crate) fn needs_preloaded_tool(&self) -> bool {
        matches!(self.kind, Kind::Dynamic { needs_preloaded_tool: true, .. })
    }

    /// Whether the program needs an OpenMP runtime, or contains one.
    pub(crate) fn has_openmp(&self) -> bool {
        match &self.kind {
            Kind::Dynamic { runtimes, openmp_inside, needs_preloaded_tool } => {
                !runtimes.is_empty() || *openmp_inside || *needs_preloaded_tool
            }
            Kind::Static { openmp } => *openmp,
            _ => false,
        }
    }

    /// The OpenMP runtimes that it needs.
    pub(crate) fn runtimes(&self) -> &[RuntimeNeeded] {
        match &self.kind {
            Kind::Dynamic { runtimes, .. } => runtimes,
            _ => &[],
        }
    }

    /// Whether the program is Python, R or Octave, or a script for one of them, so that the libraries of its packages
    /// are unknown. The name counts as well, because R, and a version manager's `python3`, are scripts for another
    /// interpreter.
    pub(crate) fn runs_packages(&self) -> bool {
        match &self.kind {
            Kind::Script { interpreter } if has_packages(interpreter) => true,
            _ => has_packages(&name_of(&self.path)),
        }
    }
}

/// Whether an interpreter with this name is used for numerical work.
fn has_packages(name: &str) -> bool {
    let is_python = ["python", "pypy"].iter().any(|start| name.starts_with(start));
    is_python || ["R", "Rscript", "octave"].contains(&name)
}

/// The last part of a path.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The file that `execvp` would run.
fn resolve(word: &OsStr) -> Option<PathBuf> {
    let path = Path::new(word);
    if path.components().count() > 1 || path.is_absolute() || word.as_encoded_bytes().contains(&b'/') {
        return is_executable(path).then(|| path.to_owned());
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(path)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn is_privileged(path: &Path) -> bool {
    const SET_USER_ID: u32 = 0o4000;
    const SET_GROUP_ID: u32 = 0o2000;

    // The owner of our own entry in `/proc` is our effective user.
    let (Ok(program), Ok(own)) = (fs::metadata(path), fs::metadata("/proc/self")) else {
        return false;
    };
    (program.mode() & SET_USER_ID != 0 && program.uid() != own.uid())
        || (program.mode() & SET_GROUP_ID != 0 && program.gid() != own.gid())
}

fn kind(path: &Path, loader: &Loader) -> io::Result<Kind> {
    match elf::read(path)? {
        None => script(path),
        Some(Elf::Foreign(machine)) => Ok(Kind::Foreign(machine)),
        // A library does not name a loader either. Among the arguments, it is a plug-in, whose libraries will be
        // needed.
        Some(Elf::Native(elf)) if elf.loader.is_none() && elf.needed.is_empty() => {
            Ok(Kind::Static { openmp: openmp_runtime::is_linked_statically(path) })
        }
        Some(Elf::Native(elf)) if is_of_musl(&elf) => Ok(Kind::Musl),
        Some(Elf::Native(elf)) => Ok(dynamic(path, loader.needed(path, &elf))),
    }
}

/// Whether the program uses musl's loader, `/lib/ld-musl-x86_64.so.1`.
fn is_of_musl(elf: &Native) -> bool {
    let loader = elf.loader.as_deref().map(Path::new);
    loader.is_some_and(|loader| name_of(loader).starts_with("ld-musl-"))
}

fn dynamic(path: &Path, needed: Vec<Needed>) -> Kind {
    let waits = |path: &Path| openmp_runtime::tools_interface(path) == Some(ToolsInterface::Preloaded);
    let mut libraries = needed.iter().filter_map(|library| library.path.as_deref());
    Kind::Dynamic {
        openmp_inside: openmp_runtime::is_linked_statically(path),
        needs_preloaded_tool: waits(path) || libraries.any(waits),
        runtimes: needed
            .into_iter()
            .filter_map(|library| {
                let name = name_of(Path::new(&library.name));
                Some(RuntimeNeeded { runtime: Runtime::of_library(&name)?, name, path: library.path })
            })
            .collect(),
    }
}

/// The interpreter in the first line: `#!/usr/bin/python3 -u`, or `#!/usr/bin/env python3`.
fn script(path: &Path) -> io::Result<Kind> {
    // The kernel reads no more of the line.
    const MAX_LINE: u64 = 256;

    let mut line = Vec::new();
    BufReader::new(File::open(path)?.take(MAX_LINE)).read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line);
    let mut words =
        line.strip_prefix("#!").unwrap_or_default().split_whitespace().map(|word| name_of(Path::new(word)));
    let mut interpreter = words.next();
    if interpreter.as_deref() == Some("env") {
        interpreter = words.find(|word| !word.starts_with('-') && !word.contains('='));
    }
    Ok(Kind::Script { interpreter: interpreter.unwrap_or_else(|| "sh".to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interpreter(text: &str) -> String {
        let path = env::temp_dir().join(format!("omptrace-script-{}", std::process::id()));
        fs::write(&path, text).unwrap();
        let kind = script(&path).unwrap();
        fs::remove_file(&path).unwrap();
        match kind {
            Kind::Script { interpreter } => interpreter,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_line_names_the_interpreter() {
        assert_eq!(interpreter("#!/usr/bin/python3 -u\nx"), "python3");
        assert_eq!(interpreter("#!/usr/bin/env python3\n"), "python3");
        assert_eq!(interpreter("#!/usr/bin/env -S A=1 python3.11 -u\n"), "python3.11");
        assert_eq!(interpreter("#! /bin/bash"), "bash");
        assert_eq!(interpreter("#!/usr/bin/env Rscript\n"), "Rscript");
        assert_eq!(interpreter("echo no first line\n"), "sh");
        assert_eq!(interpreter(""), "sh");
    }

    #[test]
    fn programs_are_found_as_the_shell_finds_them() {
        assert!(resolve(OsStr::new("sh")).is_some());
        assert!(resolve(OsStr::new("/bin/sh")).is_some());
        assert_eq!(resolve(OsStr::new("no-such-program")), None);
        assert_eq!(resolve(OsStr::new("/etc")), None);
    }
}
