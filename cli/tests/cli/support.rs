//! A folder for each test, and `omptrace` run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// An empty folder of the test's own, which stays for a look when the test is over.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    // A tool that no runtime can load.
    fs::write(folder.join("libomptrace.so"), "").unwrap();
    folder
}

/// `omptrace` in a folder made by [`folder`], in an environment without settings of OpenMP or ours.
pub(crate) fn omptrace(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_omptrace"));
    command.current_dir(folder);
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("OMP") || name_text == "LD_PRELOAD" || name_text == "COLUMNS" {
            command.env_remove(&name);
        }
    }
    command
}

/// `omptrace record` with `options`, of a program.
pub(crate) fn record(folder: &Path, options: &[&str], program: &[&str]) -> Command {
    let mut command = omptrace(folder);
    command.args(["record", "--tool", "libomptrace.so"]).args(options).arg("--").args(program);
    command
}

/// The output of a command, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: Option<i32>,
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Said {
    Said::from(command.output().unwrap())
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            status: output.status.code(),
        }
    }
}

/// Compiles C to `folder/name`; a library where the flags say so.
pub(crate) fn compile(folder: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let file = folder.join(name).with_added_extension("c");
    fs::write(&file, source).unwrap();
    let said =
        run(Command::new("cc").arg(&file).arg("-o").arg(folder.join(name)).args(flags).current_dir(folder));
    assert_eq!(said.status, Some(0), "{}", said.stderr);
    folder.join(name)
}
