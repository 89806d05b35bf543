//! The tools that are compared: ours, references that do as little as can be done, and other people's libraries.

pub(crate) mod gcc;
pub(crate) mod lttng;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::omptrace::release;
use crate::process::{command, root, run, succeeds};
use crate::result::Result;
use crate::setup::tools::openmp_flags;

/// All callbacks, which do nothing: costs are counted from here.
pub(super) const EMPTY: &str = "empty";
/// The time stamp counter and 16 bytes into memory: no tracer costs less.
pub(super) const FLOOR: &str = "floor";
/// The floor, which also writes what it has to a file.
pub(super) const FLOOR_WRITE: &str = "floor-write";
/// Ours, as users get it.
pub(super) const OMPTRACE: &str = "omptrace";
/// Ours, which does not pack while the program runs.
pub(super) const OMPTRACE_OFF: &str = "omptrace-off";

/// The tools of `--short`.
pub(super) const SHORT: &[&str] = &[EMPTY, FLOOR, OMPTRACE, OMPTRACE_OFF];

/// A tool, ready to be loaded.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// `None`: the program runs without a tool.
    pub(super) library: Option<PathBuf>,
    /// Further variables.
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// The files that it leaves in its folder.
    pub(super) leaves: Leaves,
    /// Whether valgrind can run it.
    pub(super) countable: bool,
}

/// The files that a run leaves on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    Nothing,
    /// Files as they stay.
    Files,
    /// Our trace, which `omptrace recover` completes as `omptrace record` would.
    Trace,
    /// The files that LTTng's daemon writes; its tool needs a session.
    Session,
}

/// A tool that cannot be built here, and why.
#[derive(Debug, Serialize)]
pub(super) struct MissingTool {
    pub(super) name: &'static str,
    pub(super) why: String,
}

/// A tool of `tests/benches/tools`.
struct Source {
    name: &'static str,
    file: &'static str,
    flags: &'static [&'static str],
    leaves: Leaves,
    countable: bool,
    /// A header that must be there, and the Debian package that has it.
    needs: Option<(&'static str, &'static str)>,
}

const SOURCES: &[Source] = &[
    reference(EMPTY, "empty.c", &[], Leaves::Nothing),
    reference(FLOOR, "floor.c", &[], Leaves::Nothing),
    reference(FLOOR_WRITE, "floor.c", &["-DWRITE"], Leaves::Files),
    reference("floor-clock", "floor.c", &["-DCLOCK"], Leaves::Nothing),
    Source {
        needs: Some(("otf2/otf2.h", "libotf2-trace-dev")),
        ..reference("otf2", "otf2.c", &["-lotf2"], Leaves::Files)
    },
    Source {
        needs: Some(("lttng/tracepoint.h", "liblttng-ust-dev and lttng-tools")),
        // Its constructor waits for the daemon.
        countable: false,
        ..reference("lttng", "lttng.c", &["-llttng-ust", "-ldl"], Leaves::Session)
    },
];

const fn reference(
    name: &'static str,
    file: &'static str,
    flags: &'static [&'static str],
    leaves: Leaves,
) -> Source {
    Source { name, file, flags, leaves, countable: true, needs: None }
}

/// All tools that there are.
#[derive(Debug)]
pub(super) struct Tools {
    tools: Vec<Tool>,
    /// The tests' tool that counts events.
    pub(super) count: Tool,
}

impl Tools {
    /// Compiles the references, and returns with the tools those that were left out.
    ///
    /// # Errors
    /// The compiler cannot be run.
    pub(super) fn build(folder: &Path) -> Result<(Tools, Vec<MissingTool>)> {
        let mut left = Vec::new();
        let mut tools = vec![Tool {
            name: "none",
            library: None,
            variables: &[("OMP_TOOL", "disabled")],
            leaves: Leaves::Nothing,
            countable: true,
        }];
        for source in SOURCES {
            match source.needs {
                Some((header, package)) if !has_header(header) => {
                    left.push(MissingTool { name: source.name, why: format!("install {package}") })
                }
                _ => tools.push(source.build(folder)?),
            }
        }
        // A copy: a build that runs meanwhile must not change what is measured.
        let library = folder.join("libomptrace.so");
        fs::copy(release().join("libomptrace.so"), &library)?;
        tools.push(ours(OMPTRACE, &library, &[]));
        tools.push(ours(OMPTRACE_OFF, &library, &[("OMPTRACE_COMPRESS", "off")]));
        let count = Tool {
            name: "count",
            library: Some(compile("count", "tests/tools/count.c", &[], folder)?),
            variables: &[],
            leaves: Leaves::Nothing,
            countable: false,
        };
        Ok((Tools { tools, count }, left))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter()
    }
}

fn ours(name: &'static str, library: &Path, variables: &'static [(&'static str, &'static str)]) -> Tool {
    Tool { name, library: Some(library.to_owned()), variables, leaves: Leaves::Trace, countable: true }
}

impl Source {
    fn build(&self, folder: &Path) -> Result<Tool> {
        let source = format!("tests/benches/tools/{}", self.file);
        Ok(Tool {
            name: self.name,
            library: Some(compile(self.name, &source, self.flags, folder)?),
            variables: &[],
            leaves: self.leaves,
            countable: self.countable,
        })
    }
}

fn has_header(header: &str) -> bool {
    succeeds(&mut command("clang-22", ["-fsyntax-only", "-include", header, "-x", "c", "/dev/null"]))
}

fn compile(name: &str, source: &str, flags: &[&str], folder: &Path) -> Result<PathBuf> {
    let library = folder.join(format!("lib{name}.so"));
    run(command("clang-22", ["-O2", "-shared", "-fPIC", "-Itests/benches/tools"])
        .args(openmp_flags())
        .args(["-fno-openmp", "-o"])
        .arg(&library)
        .arg(root().join(source))
        .args(flags))?;
    Ok(library)
}
