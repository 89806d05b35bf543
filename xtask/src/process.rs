//! Running other programs, each shown before it runs as one could type it.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::result::Result;

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
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
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc -vV names no host")?;
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
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), arguments)
}

/// Runs the command to its end.
///
/// # Errors
/// The program cannot be started, or does not end with status 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    show(command);
    let status = command.status().map_err(|error| explain(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", name(command)).into()) }
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
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    let is_given = child.stdin.take().is_some_and(|mut stdin| stdin.write_all(input).is_ok());
    child.wait().is_ok_and(|status| status.success()) && is_given
}

/// Runs quietly and returns what it wrote to stdout.
///
/// # Errors
/// Like [`run`].
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| explain(command, &error))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{} ended with {}", name(command), output.status).into())
    }
}

/// Every check and every test prints something in less time, on a busy machine, too.
pub(crate) const PATIENCE: Duration = Duration::from_mins(30);

/// How a command ended that was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With status 0.
    Well,
    /// With another status, or by a signal.
    Badly,
    /// It printed nothing for too long, and was ended.
    Silent,
}

/// Runs to the end, and gives each line of both its outputs to `look`. Where nothing comes for as
/// long as `patience`, the command and what it has started are ended.
///
/// # Errors
/// The program cannot be started.
pub(crate) fn run_watched(
    command: &mut Command,
    patience: Duration,
    mut look: impl FnMut(&str),
) -> Result<End> {
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

    let (sender, lines) = mpsc::channel();
    // It is not waited for: what was started and escaped may hold the pipe for ever.
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0)
            && sender.send(std::mem::take(&mut line)).is_ok()
        {}
    });
    loop {
        match lines.recv_timeout(patience) {
            Ok(line) => {
                look(String::from_utf8_lossy(&line).trim_end());
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                end_with_children(child.id());
                child.wait()?;
                return Ok(End::Silent);
            }
        }
    }
    Ok(match child.wait()?.success() {
        true => End::Well,
        false => End::Badly,
    })
}

/// Kills a process and all that descend from it.
fn end_with_children(root: u32) {
    let mut found = vec![root];
    let processes = parents();
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let children = processes.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(process, _)| process));
        next += 1;
    }
    for process in found {
        // SAFETY: it takes two numbers.
        unsafe { libc::kill(process.cast_signed(), libc::SIGKILL) };
    }
}

/// Each process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name, in parentheses, may hold anything; the state and the parent come behind it.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        Some((process, parent.parse().ok()?))
    };
    entries.filter_map(of).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Its grandchild holds the pipe, as a test program does that cargo has started.
    #[test]
    fn a_command_that_falls_silent_is_ended_with_what_it_started() {
        let mut lines = Vec::new();
        let mut hanging = command("sh", ["-c", "sh -c 'echo $$; sleep 600; :'; :"]);
        let end = run_watched(&mut hanging, Duration::from_secs(2), |line| {
            lines.push(line.to_owned());
        });
        assert_eq!(end.unwrap(), End::Silent);
        let grandchild: u32 = lines[0].parse().unwrap();
        let is_gone = || parents().iter().all(|(process, _)| *process != grandchild);
        // Whoever inherits it takes note of its end some time.
        let is_dead = || {
            let stat = fs::read_to_string(format!("/proc/{grandchild}/stat"));
            stat.is_ok_and(|stat| stat.contains(") Z "))
        };
        while !is_gone() && !is_dead() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_command_ends_well_with_status_0_only() {
        for (status, expected) in [("0", End::Well), ("3", End::Badly)] {
            let mut lines = Vec::new();
            let words = format!("echo a; echo b >&2; exit {status}");
            let end = run_watched(&mut command("sh", ["-c", &words]), Duration::from_secs(600), |line| {
                lines.push(line.to_owned())
            });
            assert_eq!(end.unwrap(), expected);
            assert_eq!(lines, ["a", "b"]);
        }
    }
}
