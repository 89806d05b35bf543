//! Disks that are full or fail.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Output;

use omptrace_tests::env::{Compiler, compile, failing_calls, omptrace_program, runtime, tool_library};
use omptrace_tests::trace::{Traces, dump_with_warnings, omptrace};

use crate::{all_regions, finds, one_line, patient, program, run};

#[test]
fn a_call_that_fails_costs_events_and_no_more() {
    let shim = failing_calls();
    for (fails, words) in [
        (format!("pwritev:{}:1", libc::EIO), "Input/output error"),
        (format!("pwritev:{}:2", libc::ENOSPC), "runs without tracing"),
        (format!("pwritev:{}:3", libc::EIO), "tracing is off"),
        (format!("pwritev:{}:12", libc::ENOSPC), "No space left"),
        (format!("pwritev:{}:12", libc::EDQUOT), "Disk quota"),
        (format!("fallocate:{}:1", libc::ENOSPC), "lose events"),
        (format!("fallocate:{}:3", libc::EIO), "lose events"),
    ] {
        let traces = Traces::folder();
        let mut command = program("reliability_ends.c", &["_exit", "2", "20000"]);
        command.env("LD_PRELOAD", &shim).env("OMPTRACE_TEST_FAIL", &fails);
        let output = run(&traces, &mut command);
        assert!(output.status.success(), "{fails}: {output:?}");
        assert_eq!(output.stdout, b"checksum 40000\n");
        one_line(&output, words);
        for trace in traces.files() {
            // The others fail before any event, some before anything is known.
            let in_the_middle = fails.ends_with(":12");
            let (_, warnings) = dump_with_warnings(&trace);
            // A thread may have been about to store an event when tracing went off.
            let mut others = warnings.lines().filter(|line| !line.contains("events were lost"));
            assert!(!in_the_middle || others.next().is_none(), "{fails}: {warnings}");
            assert_eq!(finds(&trace, "tracing_off"), in_the_middle, "{fails}");
        }
    }
}

/// A shell's `script` with a file system of its own of `size` mounted at `$1`, the tracer at `$2`, the program at `$3`.
fn with_small_disk(size: &str, script: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    // Only root may mount; anybody may be root of a namespace of their own.
    // SAFETY: no arguments.
    let spaces = if unsafe { libc::geteuid() } == 0 { "-m" } else { "-rm" };
    let script = format!(
        "set -e; mount -t tmpfs -o size={size} none $1; export LD_LIBRARY_PATH={}; {script}",
        runtime("llvm-19").display()
    );
    let mut command = patient("unshare");
    command.args([spaces, "sh", "-c", &script, "sh"]);
    let ends = compile("tests/programs/reliability_ends.c", Compiler::Clang14, &[]);
    command
        .arg(folder.path())
        .arg(omptrace_program())
        .arg(ends)
        .env("OMP_TOOL_LIBRARIES", tool_library())
        .env("OMPTRACE_OUTPUT", folder.path().join("x.omptrace"));
    command.output().expect("unshare can be run")
}

#[test]
fn a_full_disk_is_an_error_and_no_fault() {
    for (size, compress) in [("1m", "off"), ("2m", "off"), ("2m", "auto"), ("4m", "off")] {
        let output = with_small_disk(
            size,
            &format!(
                "OMPTRACE_COMPRESS={compress} $3 _exit 2 200000; $2 dump --json --all $1/x.omptrace 2>/dev/null | wc -l"
            ),
        );
        assert!(output.status.success(), "{size} {compress}: {output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        let kept: usize = said
            .strip_prefix("checksum 400000\n")
            .and_then(|rest| rest.trim().parse().ok())
            .unwrap_or_else(|| panic!("{said}"));
        if compress == "off" {
            one_line(&output, "No space left on device");
        }
        assert!(kept > 10_000, "{size} {compress}: {kept}");
    }
}

#[test]
fn a_disk_that_fills_later_does_not_reach_what_is_reserved() {
    // The spool has a chunk; then the program stops until not a byte is free. What it stores now has its place.
    let output = with_small_disk(
        "4m",
        "$3 _exit 2 50000 & P=$!; until [ -n \"$(find $1 -name '*.spool' -size +64k)\" ]; do kill -0 $P; done;
         kill -STOP $P;
         dd if=/dev/zero of=$1/rest bs=4k 2>/dev/null || echo full; kill -CONT $P; wait $P;
         $2 dump --json $1/x.omptrace >/dev/null",
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"full\nchecksum 100000\n");
}

#[test]
fn what_cannot_be_written_stays_in_the_spool() {
    for compress in ["auto", "off"] {
        let script = format!(
            "S=$(mktemp -d); OMPTRACE_SPOOL=$S OMPTRACE_COMPRESS={compress} $3 none 2 1000 || true;
             $2 dump --json --all $1/x.omptrace | grep -c mutex_acquired; rm -r $S"
        );
        let output = with_small_disk("64k", &script);
        assert_eq!(output.stdout, b"checksum 2000\n2000\n", "{compress}: {output:?}");
    }
}

#[test]
fn on_btrfs_a_full_disk_is_no_fault() {
    // It wants new space for a page that has its place, and the program would die of SIGBUS. Only root may mount one: the shim
    // says that every file is on it.
    let shim = failing_calls();
    let traces = Traces::folder();
    let mut command = program("reliability_ends.c", &["segv", "2", "20000"]);
    let command = command.env("LD_PRELOAD", &shim).env("OMPTRACE_TEST_FAIL", "btrfs");
    let output = run(&traces, command);
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let trace = traces.only();
    let name = format!("{}.spool", trace.file_name().expect("a name").display());
    let spool = Path::new("/dev/shm").join(name);
    assert!(spool.exists(), "{}", spool.display());
    assert_eq!(all_regions(&traces), [[20_000, 20_000, 40_000]]);
    let recovered = omptrace(["recover".as_ref(), trace.as_os_str()]);
    assert!(recovered.status.success(), "{recovered:?}");
    assert!(!spool.exists());
    assert_eq!(all_regions(&traces), [[20_000, 20_000, 40_000]]);
}
