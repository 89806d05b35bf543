//! Running other programs, each shown before it runs as one could type it.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The target that the compiler builds for, such as `x86_64-unknown-linux-gnu`.
///
/// # Errors
/// It does not say.
pub(crate) fn host() -> Result<String> {
    let version = output(&mut command("rustc", ["-vV"]))?;
    let version = String::from_utf8(version)?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .ok_or("rustc -vV names no host")?;
    Ok(host.to_owned())
}

/// `program` with `arguments`, run in the workspace's folder.
pub(crate) fn command<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// The cargo that runs this task, so that a `+toolchain` given to it holds for its children too.
pub(crate) fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    command(
        std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
        arguments,
    )
}

/// Runs the command to its end.
///
/// # Errors
/// The program cannot be started, or does not end with status 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    show(command);
    let status = command.status().map_err(|error| explain(command, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} ended with {status}", name(command)).into())
    }
}

/// Runs quietly; true if it could be started and ended with status 0.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The same, for a program that reads `input`.
pub(crate) fn succeeds_with_input(command: &mut Command, input: &[u8]) -> bool {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    let is_given = child
        .stdin
        .take()
        .is_some_and(|mut stdin| stdin.write_all(input).is_ok());
    child.wait().is_ok_and(|status| status.success()) && is_given
}

/// Runs quietly and returns what it wrote to stdout.
///
/// # Errors
/// Like [`run`].
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| explain(command, &error))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{} ended with {}", name(command), output.status).into())
    }
}

/// Runs to the end, passing both its outputs on to stdout, and shows each line to `look` as well.
/// Returns true if it ended with status 0.
///
/// # Errors
/// The program cannot be started.
pub(crate) fn run_watched(command: &mut Command, mut look: impl FnMut(&str)) -> Result<bool> {
    show(command);
    // One pipe for both outputs keeps their lines in order.
    let (reader, writer) = std::io::pipe()?;
    let mut child = command
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()
        .map_err(|error| explain(command, &error))?;
    // The command still holds the pipe's writing ends: as long as they are open, reading does not end.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let mut lines = BufReader::new(reader);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        std::io::stdout().write_all(&line)?;
        look(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
    Ok(child.wait()?.success())
}

fn show(command: &Command) {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    eprintln!("$ {}", words.join(" "));
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn explain(command: &Command, error: &std::io::Error) -> String {
    format!("cannot run {}: {error}", name(command))
}
