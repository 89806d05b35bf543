//! Whatever goes wrong for the tracer, the program runs on with its own output and exit status. One line says what happened
//! and what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use omptrace_tests::env::{Compiler, compile, limited, tool_library};
use omptrace_tests::trace::{Traces, counts, dump};
use tempfile::TempDir;

const ROUNDS: &str = "300";

/// The program that shall not notice anything.
fn program() -> Command {
    let program = compile("tests/programs/nearly_everything.c", Compiler::Clang22, &[]);
    let mut command = Command::new(program);
    command.args(["2", ROUNDS]);
    command
}

/// Runs it; its output and status must be what they always are.
#[track_caller]
fn unharmed(command: &mut Command) -> Output {
    let output = command.env("OMP_TOOL_LIBRARIES", tool_library()).output().expect("the program can be run");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "checksum 62400\n");
    output
}

/// It also says one line that contains `words`.
#[track_caller]
fn unharmed_with_one_line(command: &mut Command, words: &str) {
    let output = unharmed(command);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("omptrace: ") && said.contains(words), "{said}");
}

#[test]
fn the_folder_is_missing() {
    let mut command = program();
    command.env("OMPTRACE_OUTPUT", "/nonexistent/x.omptrace");
    unharmed_with_one_line(&mut command, "/nonexistent/x.omptrace: No such file");
}

#[test]
fn the_trace_would_be_a_device() {
    let mut command = program();
    command.env("OMPTRACE_OUTPUT", "/dev/null");
    unharmed_with_one_line(&mut command, "cannot create /dev/null: the path exists");
    assert!(!Path::new("/dev/null.2").exists());
}

#[test]
fn the_spools_folder_is_missing() {
    let traces = Traces::folder();
    let mut command = program();
    traces.trace(&mut command).env("OMPTRACE_SPOOL", "/nonexistent");
    unharmed_with_one_line(&mut command, "OMPTRACE_SPOOL");
    assert_eq!(traces.all_files(), [""; 0].map(std::path::PathBuf::from));
}

#[test]
fn the_folder_cannot_be_written() {
    let folder = TempDir::new().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).expect("permissions");
    // Root may write everywhere but there.
    let place = if running_as_root() { Path::new("/proc") } else { folder.path() };
    let mut command = program();
    command.env("OMPTRACE_OUTPUT", place.join("x.omptrace"));
    unharmed_with_one_line(&mut command, "cannot create");
}

fn running_as_root() -> bool {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn files_may_not_become_large() {
    let traces = Traces::folder();
    let mut command = program();
    limited(&mut command, libc::RLIMIT_FSIZE, 600 << 10);
    traces.trace(&mut command);
    unharmed_with_one_line(&mut command, "File too large");
    // What fitted is there.
    let events: u64 = counts(&dump(&traces.files()[0])).values().sum();
    assert!(events > 10_000, "{events}");
}

#[test]
fn there_are_no_more_file_descriptors() {
    let traces = Traces::folder();
    let mut command = program();
    limited(&mut command, libc::RLIMIT_NOFILE, 4);
    traces.trace(&mut command);
    unharmed(&mut command);
}

#[test]
fn address_space_is_short() {
    let traces = Traces::folder();
    let mut command = program();
    limited(&mut command, libc::RLIMIT_AS, 512 << 20);
    traces.trace(&mut command).env("OMP_STACKSIZE", "1M");
    unharmed(&mut command);
    assert!(counts(&dump(&traces.only()))["parallel_begin"] > 0);
}

#[test]
fn a_wrong_value_is_reported_and_the_default_taken() {
    for (name, value) in [
        ("OMPTRACE_BUFFER", "12"),
        ("OMPTRACE_COMPRESS", "fast"),
        ("OMPTRACE_EVENTS", "everything"),
        ("OMPTRACE_ON_FULL", "explode"),
        ("OMPTRACE_DISABLED", "maybe"),
    ] {
        let traces = Traces::folder();
        let mut command = program();
        traces.trace(&mut command).env(name, value);
        unharmed_with_one_line(&mut command, &format!("{name}={value} is not allowed"));
        traces.only();
    }
}

#[test]
fn what_is_said_where_nobody_listens_does_no_harm() {
    let traces = Traces::folder();
    let mut command = program();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    traces.trace(&mut command).env("OMPTRACE_COMPRESS", "fast").stderr(writer);
    let output = command.output().expect("the program can be run");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"checksum 62400\n");
    traces.only();
}

#[test]
fn a_link_in_the_place_of_the_trace_is_not_followed() {
    let traces = Traces::folder();
    let in_folder = |name: &str| traces.path().join(name);
    let victim = in_folder("victim");
    fs::write(&victim, "precious").expect("can be written");
    // Also one that leads nowhere, where a file would be made, and one in the spool's place.
    for (target, link, trace) in [
        ("victim", "x.omptrace", "x.2.omptrace"),
        ("nowhere", "y.omptrace", "y.2.omptrace"),
        ("victim", "z.omptrace.spool", "z.omptrace"),
        ("nowhere", "w.omptrace.spool", "w.omptrace"),
    ] {
        std::os::unix::fs::symlink(in_folder(target), in_folder(link)).expect("a link");
        let output = in_folder(link.trim_end_matches(".spool"));
        let mut command = program();
        traces.trace(&mut command).env("OMPTRACE_OUTPUT", output);
        unharmed(&mut command);
        assert_eq!(fs::read(&victim).expect("it is there"), b"precious");
        assert!(!in_folder("nowhere").exists(), "{link}");
        assert!(in_folder(link).is_symlink(), "{link}");
        assert!(counts(&dump(&in_folder(trace)))["parallel_begin"] > 0, "{link}");
    }
}

#[test]
fn disabled_means_no_trace() {
    for (name, value) in [("OMPTRACE_DISABLED", "1"), ("OMP_TOOL", "disabled")] {
        let traces = Traces::folder();
        let mut command = program();
        traces.trace(&mut command).env(name, value);
        unharmed(&mut command);
        assert_eq!(traces.all_files().len(), 0);
    }
}

#[test]
fn every_way_of_compression_keeps_every_event() {
    let mut all = Vec::new();
    for (compress, on_full) in [("auto", "write"), ("off", "write"), ("19", "write"), ("auto", "drop")] {
        let traces = Traces::folder();
        let mut command = program();
        traces
            .trace(&mut command)
            .env("OMPTRACE_COMPRESS", compress)
            .env("OMPTRACE_ON_FULL", on_full)
            .env("OMPTRACE_BUFFER", "4M");
        unharmed(&mut command);
        all.push(counts(&dump(&traces.only()))["work/begin"]);
    }
    assert!(all.iter().all(|count| *count == all[0]), "{all:?}");
}
