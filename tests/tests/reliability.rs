//! What happens to programs in production: they crash, fork under load, get signals, run out of disk, live in
//! sandboxes, share the runtime with other tools. The program never notices the tracer, and nothing is lost silently.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use omptrace_tests::env::{
    Compiler, compile, failing_calls, limited, omptrace_program, program_on, runtime, tool_library,
};
use omptrace_tests::trace::{Traces, count, dump, dump_with_warnings, info, omptrace};
use serde_json::Value;

/// Threads of a team, and regions of a run of `reliability_ends`.
const THREADS: usize = 2;
const ROUNDS: usize = 1000;

/// The program of `source`, for every runtime, on LLVM 19's.
fn program(source: &str, arguments: &[&str]) -> Command {
    program_on("llvm-19", source, arguments)
}

/// What `command` said and how it ended, traced into `traces`.
fn run(traces: &Traces, command: &mut Command) -> Output {
    traces.trace(command).output().expect("it can be run")
}

/// `program`, which does not wait for ever for what does not come.
fn patient(program: &str) -> Command {
    let mut command = Command::new("timeout");
    // unshare survives anything less.
    command.args(["--signal=KILL", "120", program]);
    command
}

/// The number behind `word` on stdout.
#[track_caller]
fn number(output: &str, word: &str) -> usize {
    let mut words = output.split_whitespace();
    words
        .find(|other| *other == word)
        .and_then(|_| words.next()?.parse().ok())
        .unwrap_or_else(|| panic!("no `{word}` in {output:?}"))
}

/// Regions begun and ended, and criticals or locks left.
fn regions(events: &[Value]) -> [usize; 3] {
    ["parallel_begin", "parallel_end", "mutex_released"].map(|name| count(events, name))
}

/// Whether `omptrace info` finds what has this name.
fn finds(trace: &Path, name: &str) -> bool {
    let info = info(trace);
    let mut findings = info["findings"].as_array().expect("a list").iter();
    findings.any(|finding| finding["name"] == name)
}

/// All traces, each as [`regions`], in ascending order.
fn all_regions(traces: &Traces) -> Vec<[usize; 3]> {
    let of = |trace: &PathBuf| regions(&dump(trace));
    let mut all: Vec<_> = traces.files().iter().map(of).collect();
    all.sort_unstable();
    all
}

/// One line of the tracer on stderr, which contains `words`, and besides at most the runtime's.
#[track_caller]
fn one_line(output: &Output, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    let ours: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("OMP: "))
        .collect();
    assert_eq!(ours.len(), 1, "{said}");
    assert!(
        ours[0].starts_with("omptrace: ") && ours[0].contains(words),
        "{said}"
    );
}

// How a process ends.

#[test]
fn every_event_before_a_sudden_end_is_kept() {
    for (how, signal) in [
        ("segv", Some(libc::SIGSEGV)),
        ("abort", Some(libc::SIGABRT)),
        ("_exit", None),
        ("quick_exit", None),
        ("exec", None),
    ] {
        for (name, place, begun) in [
            ("llvm-14", "", ROUNDS),
            ("llvm-19", "", ROUNDS),
            ("llvm-19", "_in_region", ROUNDS + 1),
            ("intel-2026", "_in_region", ROUNDS + 1),
        ] {
            let traces = Traces::folder();
            let how = format!("{how}{place}");
            let output = run(
                &traces,
                &mut program_on(name, "reliability_ends.c", &[&how]),
            );
            assert_eq!(output.status.signal(), signal, "{name} {how}: {output:?}");
            assert_eq!(output.stdout, b"checksum 2000\n");
            assert_eq!(String::from_utf8_lossy(&output.stderr), "");
            assert_eq!(
                all_regions(&traces),
                [[begun, ROUNDS, THREADS * ROUNDS]],
                "{name} {how}"
            );
            assert_eq!(info(&traces.files()[0])["ending"], "did not finish");
        }
    }
}

#[test]
fn a_program_whose_main_thread_left_can_be_read_while_it_stays_and_after_it_was_killed() {
    let traces = Traces::folder();
    let mut command = program("reliability_ends.c", &["pthread_exit"]);
    let mut child = traces.trace(&mut command).stdout(Stdio::null()).spawn();
    let child = child.as_mut().expect("it can be run");
    let stat = format!("/proc/{}/stat", child.id());
    // The kernel shows a process whose first thread has gone as a zombie.
    while !fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z ")) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let expected = [[ROUNDS, ROUNDS, THREADS * ROUNDS]];
    assert_eq!(all_regions(&traces), expected);
    child.kill().expect("it runs");
    // It did live until now.
    let status = child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}");
    assert_eq!(all_regions(&traces), expected);
    assert_eq!(info(&traces.files()[0])["ending"], "did not finish");
}

/// The runtime looks things up in the record of that thread at the end of each `critical`, where a tool wants to know of it.
#[test]
fn a_program_whose_first_thread_ends_lives_on() {
    for name in ["llvm-14", "llvm-19", "llvm-21", "intel-2021"] {
        let traces = Traces::folder();
        let mut command = program_on(name, "first_thread.c", &["20"]);
        let output = run(&traces, &mut command);
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        assert_eq!(output.stdout, b"checksum 42\n");
        one_line(&output, "the thread that used OpenMP first has ended");
        let trace = traces.only();
        let events = dump(&trace);
        assert_eq!(count(&events, "mutex_acquired"), 42, "{name}");
        assert_eq!(count(&events, "mutex_released"), 2, "{name}");
        assert!(info(&trace)["messages"].to_string().contains("has ended"));

        // Nothing is missing, and nothing is said.
        let traces = Traces::folder();
        traces.record(&mut program_on(name, "first_thread.c", &["0"]));
        assert_eq!(all_regions(&traces), [[1, 1, 2]], "{name}");
    }
}

// Children.

/// Runs `reliability_children`; all its children must end well. Returns the number of regions of the parent.
#[track_caller]
fn with_children(traces: &Traces, name: &str, how: &str, children: &str) -> usize {
    let mut command = program_on(name, "reliability_children.c", &[how, "2", children, "20"]);
    // LLVM's own words about fork inside a region.
    let output = run(traces, command.env("KMP_WARNINGS", "0"));
    assert!(output.status.success(), "{name} {how}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{name} {how}");
    number(&String::from_utf8_lossy(&output.stdout), "regions")
}

#[test]
fn children_without_openmp_leave_the_parents_trace_exact() {
    for how in ["fork", "vfork", "spawn", "clone"] {
        let traces = Traces::folder();
        let n = with_children(&traces, "llvm-19", how, "40");
        traces.only();
        assert_eq!(all_regions(&traces), [[n, n, 2 * n]], "{how}");
    }
}

#[test]
fn children_made_under_load_have_exact_traces_and_so_has_their_parent() {
    for (name, how) in [
        ("llvm-14", "fork_openmp"),
        ("llvm-19", "fork_openmp"),
        ("llvm-19", "fork_exit"),
        ("intel-2026", "fork_openmp"),
    ] {
        let traces = Traces::folder();
        let n = with_children(&traces, name, how, "40");
        let mut expected = vec![[20, 20, 40]; 40];
        expected.push([n, n, 2 * n]);
        expected.sort_unstable();
        assert_eq!(all_regions(&traces), expected, "{name} {how}");
    }
}

#[test]
fn a_child_with_its_parents_number_leaves_its_parents_trace_alone() {
    let ends = program("reliability_extremes.c", &[]);
    // SAFETY: no arguments.
    let spaces = if unsafe { libc::geteuid() } == 0 {
        "-pf"
    } else {
        "-rpf"
    };
    for compress in ["auto", "off"] {
        let traces = Traces::folder();
        let mut command = patient("unshare");
        command
            .args([spaces, "--kill-child"])
            .arg(ends.get_program())
            .arg("container")
            .env("LD_LIBRARY_PATH", runtime("llvm-19"))
            .env("OMPTRACE_COMPRESS", compress);
        let output = run(&traces, &mut command);
        assert_eq!(output.stdout, b"done\n", "{output:?}");
        assert!(output.status.success(), "{output:?}");
        assert_eq!(all_regions(&traces), [[2, 2, 0]], "{compress}");
    }
}

#[test]
fn a_child_is_paused_as_its_parent_was() {
    let traces = Traces::folder();
    run(&traces, &mut program("reliability_extremes.c", &["paused"]));
    assert_eq!(all_regions(&traces), [[0, 0, 0], [1, 1, 0]]);
}

#[test]
fn a_child_that_no_library_knows_of_has_a_trace_of_its_own() {
    for how in ["clone_openmp", "clone_loader"] {
        let traces = Traces::folder();
        let n = with_children(&traces, "llvm-19", how, "10");
        let mut expected = vec![[0, 0, 20]; 10];
        expected.push([n, n, 2 * n]);
        assert_eq!(all_regions(&traces), expected, "{how}");
        for trace in traces.files() {
            // Where the loader cannot be asked, the child knows what its parent knew.
            assert!(count(&dump(&trace), "omptrace_module") > 0, "{how}");
        }
    }
}

// Signals.

#[test]
fn callbacks_out_of_signal_handlers_are_recorded_or_counted() {
    for compress in ["auto", "off"] {
        let traces = Traces::folder();
        let mut command = program("reliability_signals.c", &["2", "20000"]);
        // The runtime's other locks have one place per thread to wait in: a handler would take it away.
        command
            .env("KMP_LOCK_KIND", "tas")
            .env("OMPTRACE_COMPRESS", compress);
        let said = traces.record(&mut command);
        let trace = traces.only();
        let events = dump(&trace);
        let recorded: usize = ["mutex_acquire", "mutex_acquired", "mutex_released"]
            .map(|name| count(&events, name))
            .iter()
            .sum();
        let lost = info(&trace)["lost"].as_u64().expect("a number") as usize;
        assert_eq!(recorded + lost, number(&said, "mutexes"), "{lost} lost");
        // Only what comes within another event is lost: three of a handler.
        let handled = number(&said, "handled");
        assert!(handled > 0 && lost <= 3 * handled, "{lost} of {handled}");
    }
}

#[test]
fn a_thread_is_cancelled_where_the_program_says_and_not_in_the_tracer() {
    for compress in ["auto", "off"] {
        let traces = Traces::folder();
        let mut command = program("reliability_cancelled_threads.c", &[]);
        let output = run(&traces, command.env("OMPTRACE_COMPRESS", compress));
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let done = number(&String::from_utf8_lossy(&output.stdout), "regions");
        traces.only();
        assert_eq!(all_regions(&traces), [[done, done, 0]]);
    }
}

// Disks.

#[test]
fn a_call_that_fails_costs_events_and_no_more() {
    let shim = failing_calls();
    for (fails, words) in [
        (format!("pwritev:{}:1", libc::EIO), "Input/output error"),
        (
            format!("pwritev:{}:2", libc::ENOSPC),
            "runs without tracing",
        ),
        (format!("pwritev:{}:3", libc::EIO), "tracing is off"),
        (format!("pwritev:{}:12", libc::ENOSPC), "No space left"),
        (format!("pwritev:{}:12", libc::EDQUOT), "Disk quota"),
        (format!("fallocate:{}:1", libc::ENOSPC), "lose events"),
        (format!("fallocate:{}:3", libc::EIO), "lose events"),
    ] {
        let traces = Traces::folder();
        let mut command = program("reliability_ends.c", &["_exit", "2", "20000"]);
        command
            .env("LD_PRELOAD", &shim)
            .env("OMPTRACE_TEST_FAIL", &fails);
        let output = run(&traces, &mut command);
        assert!(output.status.success(), "{fails}: {output:?}");
        assert_eq!(output.stdout, b"checksum 40000\n");
        one_line(&output, words);
        for trace in traces.files() {
            // The others fail before any event, some before anything is known.
            let in_the_middle = fails.ends_with(":12");
            let (_, warnings) = dump_with_warnings(&trace);
            // A thread may have been about to store an event when tracing went off.
            let mut others = warnings
                .lines()
                .filter(|line| !line.contains("events were lost"));
            assert!(
                !in_the_middle || others.next().is_none(),
                "{fails}: {warnings}"
            );
            assert_eq!(finds(&trace, "tracing_off"), in_the_middle, "{fails}");
        }
    }
}

#[test]
fn without_a_writer_thread_nothing_is_lost() {
    let shim = failing_calls();
    let traces = Traces::folder();
    // The first one made is the runtime's second, the next one would be the writer.
    let mut command = program("reliability_ends.c", &["none", "2", "50000"]);
    command.env("LD_PRELOAD", &shim).env(
        "OMPTRACE_TEST_FAIL",
        format!("pthread_create:{}:2", libc::EAGAIN),
    );
    let output = run(&traces, &mut command);
    one_line(&output, "cannot start the writer thread");
    traces.only();
    assert_eq!(all_regions(&traces), [[50000, 50000, 100_000]]);
}

/// Some calls are for processes of one thread only. So is the tracer's share in a process until it has a second.
#[test]
fn a_program_of_one_thread_stays_one() {
    for (regions, variables) in [
        (1, [("OMPTRACE_MODE", "record")]),
        // Several chunks.
        (100_000, [("OMPTRACE_MODE", "record")]),
        (100_000, [("OMPTRACE_MODE", "flight")]),
    ] {
        let traces = Traces::folder();
        let mut command = program("reliability_one_thread.c", &[&regions.to_string()]);
        let said = traces.record(command.envs(variables));
        assert_eq!(said, "threads 1, a user namespace of its own: 1\n");
        let trace = traces.only();
        let lost = info(&trace)["lost"].as_u64();
        assert_eq!(lost, Some(0), "{regions} {variables:?}");
        if variables[0].1 == "record" {
            // And one of two threads behind it.
            let events = dump(&trace);
            assert_eq!(count(&events, "parallel_begin"), regions + 1);
            assert_eq!(count(&events, "parallel_end"), regions + 1);
        }
    }
}

/// A library whose functions take the place of the C library's, as libfaketime's do, may be gone before the tracer is.
#[test]
fn the_tracer_calls_nothing_that_a_preloaded_library_replaced_and_took_away() {
    let shim = compile(
        "tests/programs/reliability_gone_wrappers.c",
        Compiler::Clang22,
        &["-shared", "-fPIC", "-fno-openmp"],
    );
    for runtime in ["llvm-14", "llvm-19", "intel-2021"] {
        for compress in ["auto", "off"] {
            // As a tool, and preloaded: then the runtime says how it ends when all destructors of preloaded libraries are
            // done.
            for tracer in ["OMP_TOOL_LIBRARIES", "LD_PRELOAD"] {
                let traces = Traces::folder();
                let mut command = program_on(runtime, "reliability_ends.c", &["none"]);
                let mut preloaded = shim.clone().into_os_string();
                traces.trace(&mut command);
                if tracer == "LD_PRELOAD" {
                    command.env_remove("OMP_TOOL_LIBRARIES");
                    preloaded.push(":");
                    preloaded.push(tool_library());
                }
                command
                    .env("LD_PRELOAD", preloaded)
                    .env("OMPTRACE_COMPRESS", compress);
                let output = command.output().expect("it can be run");
                let case = format!("{runtime} {compress} {tracer}");
                assert_eq!(output.status.code(), Some(3), "{case}: {output:?}");
                assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{case}");
                assert_eq!(output.stdout, b"checksum 2000\n", "{case}");
                let expected = [[ROUNDS, ROUNDS, THREADS * ROUNDS]];
                assert_eq!(all_regions(&traces), expected, "{case}");
            }
        }
    }
}

/// Debian's `faketime`, which is such a library.
#[test]
fn a_program_under_faketime_is_traced() {
    for shift in ["+0", "-1d"] {
        let traces = Traces::folder();
        let program = compile("tests/programs/reliability_ends.c", Compiler::Clang14, &[]);
        let mut command = Command::new("faketime");
        command.args(["-f", shift]).arg(program).arg("none");
        command.env("LD_LIBRARY_PATH", runtime("llvm-19"));
        let output = run(&traces, &mut command);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert_eq!(output.stdout, b"checksum 2000\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let expected = [[ROUNDS, ROUNDS, THREADS * ROUNDS]];
        assert_eq!(all_regions(&traces), expected);
    }
}

/// A shell's `script` with a file system of its own of `size` mounted at `$1`, the tracer at `$2`, the program at `$3`.
fn with_small_disk(size: &str, script: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    // Only root may mount; anybody may be root of a namespace of their own.
    // SAFETY: no arguments.
    let spaces = if unsafe { libc::geteuid() } == 0 {
        "-m"
    } else {
        "-rm"
    };
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
                "OMPTRACE_COMPRESS={compress} $3 _exit 2 200000; $2 dump --json $1/x.omptrace 2>/dev/null | wc -l"
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
             $2 dump --json $1/x.omptrace | grep -c mutex_acquired; rm -r $S"
        );
        let output = with_small_disk("64k", &script);
        assert_eq!(
            output.stdout, b"checksum 2000\n2000\n",
            "{compress}: {output:?}"
        );
    }
}

#[test]
fn on_btrfs_a_full_disk_is_no_fault() {
    // It wants new space for a page that has its place, and the program would die of SIGBUS. Only root may mount one: the shim
    // says that every file is on it.
    let shim = failing_calls();
    let traces = Traces::folder();
    let mut command = program("reliability_ends.c", &["segv", "2", "20000"]);
    let command = command
        .env("LD_PRELOAD", &shim)
        .env("OMPTRACE_TEST_FAIL", "btrfs");
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

#[test]
fn what_is_left_of_an_older_trace_is_not_in_the_way() {
    let traces = Traces::folder();
    let left = traces.path().join("x.omptrace.spool");
    fs::write(&left, "left").expect("can be written");
    let mut command = program("reliability_ends.c", &["_exit", "2", "1000"]);
    let command = traces.trace(&mut command);
    command.env("OMPTRACE_OUTPUT", traces.path().join("x.omptrace"));
    let output = command.output().expect("the program can be run");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(
        regions(&dump(&traces.path().join("x.omptrace"))),
        [1000, 1000, 2000]
    );
    assert_eq!(fs::read(&left).expect("is there"), b"left");
}

#[test]
fn a_trace_that_is_removed_meanwhile_is_told() {
    let traces = Traces::folder();
    let script = format!(
        "{} none 2 100000 & while ! ls {1}/*.spool >/dev/null 2>&1; do :; done; rm -rf {1}; wait $!",
        compile("tests/programs/reliability_ends.c", Compiler::Clang14, &[]).display(),
        traces.path().join("sub").display()
    );
    fs::create_dir(traces.path().join("sub")).expect("a folder");
    let mut command = patient("sh");
    traces
        .trace(&mut command)
        .args(["-c", &script])
        .env("LD_LIBRARY_PATH", runtime("llvm-19"))
        .env("OMPTRACE_OUTPUT", traces.path().join("sub/x.omptrace"));
    let output = command.output().expect("sh can be run");
    assert_eq!(output.stdout, b"checksum 200000\n", "{output:?}");
    one_line(&output, "was removed or replaced while the program ran");
}

/// As a program that gives its user up (setuid(2)) or its root (chroot(2)): names lead nowhere any more.
#[test]
fn a_trace_that_is_moved_meanwhile_is_whole() {
    let traces = Traces::folder();
    let [sub, moved] = ["sub", "moved"].map(|name| traces.path().join(name));
    let script = format!(
        "{} none 2 100000 & while ! ls {1}/*.spool >/dev/null 2>&1; do :; done; mv {1} {2}; wait $!",
        compile("tests/programs/reliability_ends.c", Compiler::Clang14, &[]).display(),
        sub.display(),
        moved.display()
    );
    fs::create_dir(&sub).expect("a folder");
    let mut command = patient("sh");
    traces
        .trace(&mut command)
        .args(["-c", &script])
        .env("LD_LIBRARY_PATH", runtime("llvm-19"))
        .env("OMPTRACE_OUTPUT", sub.join("x.omptrace"));
    let output = command.output().expect("sh can be run");
    assert_eq!(output.stdout, b"checksum 200000\n", "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let trace = moved.join("x.omptrace");
    assert!(!finds(&trace, "spool_damaged"));
    assert_eq!(regions(&dump(&trace)), [100_000, 100_000, 200_000]);
    let recovered = omptrace(["recover".as_ref(), moved.as_os_str()]);
    assert!(recovered.status.success(), "{recovered:?}");
    assert_eq!(fs::read_dir(&moved).expect("a folder").count(), 1);
}

#[test]
fn a_program_that_closes_what_it_does_not_know_keeps_its_files_and_its_trace() {
    for compress in ["auto", "off"] {
        let (traces, files) = (Traces::folder(), tempfile::tempdir().expect("a folder"));
        let mut command = program("reliability_descriptors.c", &[]);
        command.arg(files.path()).env("OMPTRACE_COMPRESS", compress);
        let output = run(&traces, &mut command);
        assert_eq!(output.stdout, b"checksum 88000\n", "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        traces.only();
        assert_eq!(all_regions(&traces), [[44_000, 44_000, 88_000]]);
    }
}

#[test]
fn a_trace_that_is_closed_and_removed_is_told_and_the_programs_files_stay_as_they_are() {
    for compress in ["auto", "off"] {
        let traces = Traces::folder();
        let mut command = program("reliability_descriptors.c", &[]);
        command
            .arg(traces.path())
            .args(["1", "30000", "remove"])
            .env("OMPTRACE_COMPRESS", compress);
        let output = run(&traces, &mut command);
        assert_eq!(output.stdout, b"checksum 120000\n", "{output:?}");
        one_line(&output, "closed it, and it cannot be opened again");
    }
}

#[test]
fn what_is_dropped_before_a_sudden_end_is_counted() {
    let trace = |on_full: &str| {
        let traces = Traces::folder();
        let mut command = program("reliability_ends.c", &["abort", "1", "20000"]);
        command
            .env("OMPTRACE_ON_FULL", on_full)
            .env("OMPTRACE_BUFFER", "256K")
            .env("OMPTRACE_COMPRESS", "19");
        run(&traces, &mut command);
        let (trace, recorded) = (traces.files().remove(0), |events: &[Value]| {
            let own = |event: &&Value| event["event"].to_string().contains("omptrace_");
            events.len() - events.iter().filter(own).count()
        });
        let info = info(&trace);
        let untold = info["findings"].as_array().expect("a list").iter();
        let untold: usize = untold
            .filter(|finding| finding["name"] == "events_untold")
            .map(|finding| {
                let words = finding["text"].as_str().expect("words");
                let count = words.split(' ').next().expect("a word");
                count.parse::<usize>().expect("a number")
            })
            .sum();
        let lost = info["lost"].as_u64().expect("a number") as usize;
        (recorded(&dump_with_warnings(&trace).0), lost + untold)
    };
    let (all, none) = trace("write");
    assert_eq!(none, 0);
    let (recorded, lost) = trace("drop");
    assert!(lost > 0);
    assert_eq!(recorded + lost, all);
}

// Limits.

#[test]
fn any_limit_that_the_program_can_live_with_it_can_live_with_traced() {
    let mib = 1 << 20;
    let limits = (3..9)
        .map(|files| (libc::RLIMIT_NOFILE, files))
        .chain([0, 1, 4095, 4096, 5000, 100 << 10, mib, 3 * mib].map(|n| (libc::RLIMIT_FSIZE, n)))
        .chain([20, 28, 36, 48, 64, 96, 128, 256, 1024].map(|n| (libc::RLIMIT_AS, n * mib)));
    let (mut lived, mut traced) = (0, 0);
    for (resource, limit) in limits {
        let ends = || {
            let mut command = program("reliability_ends.c", &["_exit", "2", "5000"]);
            command.env("OMP_STACKSIZE", "1M").stderr(Stdio::piped());
            limited(&mut command, resource, limit);
            command
        };
        let alone = ends().output().expect("it can be run");
        if !alone.status.success() {
            continue;
        }
        let traces = Traces::folder();
        let output = run(&traces, &mut ends());
        assert!(
            output.status.success() && output.stdout == alone.stdout,
            "{resource} {limit}: {output:?}"
        );
        let said = String::from_utf8_lossy(&output.stderr);
        let lines = said.lines().filter(|line| line.starts_with("omptrace: "));
        let lines = lines.count();
        assert!(lines <= 1, "{resource} {limit}: {said}");
        lived += 1;
        if lines == 0 {
            // Nothing to say: nothing is missing.
            let expected = [[5000, 5000, 10000]];
            assert_eq!(all_regions(&traces), expected, "{resource} {limit}");
            traced += 1;
        }
    }
    assert!(lived >= 15 && traced >= 10, "{lived}, {traced}");
}

#[test]
fn a_program_that_has_no_memory_left_goes_on() {
    for (mode, compress) in [("record", "auto"), ("record", "off"), ("flight", "auto")] {
        let traces = Traces::folder();
        let mut command = program("reliability_extremes.c", &["memory"]);
        command
            .env("OMPTRACE_MODE", mode)
            .env("OMPTRACE_COMPRESS", compress);
        let output = run(&traces, &mut command);
        assert!(output.status.success(), "{mode} {compress}: {output:?}");
        assert_eq!(output.stdout, b"done\n");
        let events = dump(&traces.files()[0]);
        assert!(
            count(&events, "mutex_acquired") > 10_000,
            "{mode} {compress}"
        );
    }
}

#[test]
fn a_small_stack_is_enough() {
    // What tracing may add to the stack of the thread that uses OpenMP first, which asks the runtime for its processors;
    // the others need less: see below.
    const MOST: usize = 16 << 10;
    let alone = program("reliability_stack.c", &[])
        .output()
        .expect("it can be run");
    let alone = number(&String::from_utf8_lossy(&alone.stdout), "used");
    for compress in ["auto", "off"] {
        let traces = Traces::folder();
        let mut command = program("reliability_stack.c", &[]);
        let said = traces.record(command.env("OMPTRACE_COMPRESS", compress));
        let used = number(&said, "used");
        assert!(
            used <= alone + MOST,
            "{used} bytes of stack, {alone} untraced"
        );

        let traces = Traces::folder();
        let mut command = program("nested.c", &[]);
        traces.record(
            command
                .env("OMPTRACE_COMPRESS", compress)
                .env("OMP_STACKSIZE", "16k"),
        );
    }
}

// Sandboxes, rights and other tools.

#[test]
fn where_files_may_not_be_mapped_events_wait_in_memory() {
    let sandbox = compile(
        "tests/programs/reliability_seccomp.c",
        Compiler::Gcc,
        &["-fno-openmp"],
    );
    let sandboxed = |how: &str| {
        let ends = program("reliability_ends.c", &[]);
        let mut command = Command::new(&sandbox);
        command
            .arg(ends.get_program())
            .args([how, "2", "20000"])
            .env("LD_LIBRARY_PATH", runtime("llvm-19"));
        command
    };
    let traces = Traces::folder();
    let output = run(&traces, &mut sandboxed("none"));
    one_line(&output, "wait in the program's memory");
    let trace = traces.only();
    assert_eq!(all_regions(&traces), [[20000, 20000, 40000]]);
    let info = info(&trace);
    assert_eq!(info["ending"], "ended");
    assert!(
        info["messages"][0]
            .as_str()
            .expect("a message")
            .contains("may not be mapped")
    );

    // Killed, it has what was written.
    let traces = Traces::folder();
    run(&traces, &mut sandboxed("_exit"));
    // The newest events are, and perhaps some before.
    let trace = traces.files().remove(0);
    assert!(regions(&dump_with_warnings(&trace).0) < [20000, 20000, 40000]);
    let messages = self::info(&trace)["messages"].to_string();
    assert!(messages.contains("may not be mapped"), "{messages}");
}

#[test]
fn a_program_with_more_rights_than_its_user_is_not_traced() {
    let traces = Traces::folder();
    let mut command = program("reliability_ends.c", &["_exit"]);
    command
        .env("LD_PRELOAD", failing_calls())
        .env("OMPTRACE_TEST_FAIL", "secure");
    let output = run(&traces, &mut command);
    one_line(&output, "more rights than its user");
    assert_eq!(traces.all_files(), [""; 0].map(PathBuf::from));

    // The real thing, which only root can make.
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        return;
    }
    let rpath = format!("-Wl,-rpath,{}", runtime("llvm-19").display());
    let ends = compile(
        "tests/programs/reliability_ends.c",
        Compiler::Clang14,
        &[&rpath],
    );
    let setuid = traces.path().join("setuid");
    fs::copy(ends, &setuid).expect("can be copied");
    let output = traces.path().join("out");
    fs::create_dir(&output).expect("a folder");
    for (path, mode) in [(traces.path(), 0o755), (&output, 0o777), (&setuid, 0o4755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    }
    // Where a user that is nobody can read it.
    let tool = traces.path().join("libomptrace.so");
    fs::copy(tool_library(), &tool).expect("can be copied");
    let mut command = Command::new(&setuid);
    command
        .arg("_exit")
        .uid(65534)
        .env("OMP_TOOL_LIBRARIES", &tool)
        .env("OMPTRACE_OUTPUT", output.join("x.omptrace"));
    let said = command.output().expect("it can be run");
    assert_eq!(said.stdout, b"checksum 2000\n", "{said:?}");
    one_line(&said, "more rights than its user");
    assert_eq!(fs::read_dir(&output).expect("it is there").count(), 0);
}

#[test]
fn traces_are_their_users_alone() {
    let traces = Traces::folder();
    run(&traces, &mut program("reliability_ends.c", &["_exit"]));
    assert_eq!(traces.all_files().len(), 2);
    for file in traces.all_files() {
        let mode = fs::metadata(&file).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{file:?}");
    }
}

#[test]
fn two_tools_share_a_runtime() {
    let tool = compile(
        "tests/programs/reliability_multiplex.c",
        Compiler::Clang22,
        &["-shared", "-fPIC"],
    );
    let traces = Traces::folder();
    let mut command = program("reliability_ends.c", &["none"]);
    traces
        .trace(&mut command)
        .env("OMP_TOOL_LIBRARIES", &tool)
        .env("OMPTRACE_TEST_TOOL_LIBRARIES", tool_library());
    let output = command.output().expect("it can be run");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        said, "checksum 2000\nother tool: 1000 regions, 2 threads, 0 wrong\n",
        "{output:?}"
    );
    traces.only();
    assert_eq!(all_regions(&traces), [[ROUNDS, ROUNDS, 2 * ROUNDS]]);
}

#[test]
fn memcheck_has_nothing_against_the_tracer() {
    for compress in ["auto", "off"] {
        let traces = Traces::folder();
        // Debian's valgrind reads no newer debug information.
        let nested = compile("tests/programs/nested.c", Compiler::Clang14, &["-gdwarf-4"]);
        let log = traces.path().join("log");
        let mut command = Command::new("valgrind");
        command
            .arg(format!("--log-file={}", log.display()))
            .arg(nested)
            .args(["2", "2", "2"])
            .env("LD_LIBRARY_PATH", runtime("llvm-19"))
            .env("OMPTRACE_COMPRESS", compress);
        let started = Instant::now();
        let output = run(&traces, &mut command);
        assert!(output.status.success(), "{output:?}");
        // The search for leaks looks at all memory that can be read: at what is reserved, not at what may ever be.
        assert!(started.elapsed() < Duration::from_secs(60));
        let log = fs::read_to_string(log).expect("valgrind writes it");
        assert!(log.contains("ERROR SUMMARY"), "{log}");
        assert!(!log.contains("libomptrace"), "{log}");
        assert!(count(&dump(&traces.files()[0]), "parallel_end") > 0);
    }
}

#[test]
fn a_program_under_address_sanitizer_is_traced() {
    // GCC's sanitizer comes with the compiler. It wants to be the first of all libraries, before the runtime.
    let program = compile(
        "tests/programs/nearly_everything.c",
        Compiler::Gcc,
        &["-fsanitize=address"],
    );
    let asked = Command::new(Compiler::Gcc.path())
        .arg("-print-file-name=libasan.so")
        .output()
        .expect("gcc can be run");
    let sanitizer = String::from_utf8_lossy(&asked.stdout);
    let libomp = runtime("llvm-19").join("libomp.so.5");
    let preload = format!("{} {}", sanitizer.trim(), libomp.display());
    let traces = Traces::folder();
    traces.record(
        Command::new(program)
            .args(["2", "20"])
            .env("LD_PRELOAD", preload),
    );
    let trace = traces.only();
    assert_eq!(info(&trace)["ending"], "ended");
    assert_eq!(count(&dump(&trace), "parallel_end"), 20 * (12 + 2));
}

// What is not wanted.

#[test]
fn a_callback_that_is_left_out_is_not_registered() {
    let traces = Traces::folder();
    let mut command = program("reliability_ends.c", &["none"]);
    command.env("OMPTRACE_EVENTS", "mutex,-mutex_acquire,-lock_init,work");
    run(&traces, &mut command);
    let trace = traces.only();
    let callbacks = info(&trace)["callbacks"].to_string();
    for (name, is_wanted) in [
        ("mutex_acquired", true),
        ("work", true),
        // A stream's begin and end.
        ("thread_begin", true),
        ("mutex_acquire", false),
        ("lock_init", false),
        ("parallel_begin", false),
    ] {
        assert_eq!(
            callbacks.contains(&format!("\"{name}\"")),
            is_wanted,
            "{name} in {callbacks}"
        );
    }
    assert_eq!(regions(&dump(&trace)), [0, 0, THREADS * ROUNDS]);
}

// The flight recorder.

/// A program that runs until it is killed, or ends by itself after a million regions.
fn in_flight(arguments: &[&str]) -> Command {
    let mut command = program("reliability_ends.c", arguments);
    command
        .env("OMPTRACE_MODE", "flight")
        .env("OMPTRACE_BUFFER", "512K");
    command
}

/// The parallel regions of the newest events, which must be the last of `all` without a gap; how many they are.
#[track_caller]
fn newest(trace: &Path) -> usize {
    let events = dump(trace);
    let ids = |name: &str| -> Vec<String> {
        let of = |event: &&Value| event["event"] == name && event["stream"] == 1;
        let id = |event: &Value| event["parallel_data"].as_str().expect("an id").to_owned();
        events.iter().filter(of).map(id).collect()
    };
    let (begun, ended) = (ids("parallel_begin"), ids("parallel_end"));
    // The first region that is there as a whole may follow the end of one that is not.
    let from = ended.iter().position(|id| *id == begun[0]).expect("an end");
    assert!(from <= 1);
    assert!(begun.starts_with(&ended[from..]) || ended[from..].starts_with(&begun));
    begun.len()
}

#[test]
fn a_flight_recorder_keeps_the_newest_events_within_its_memory() {
    for end in ["none", "_exit", "abort"] {
        let traces = Traces::folder();
        run(&traces, &mut in_flight(&[end, "2", "100000"]));
        let trace = traces.files().remove(0);
        let kept = newest(&trace);
        assert!((1000..50_000).contains(&kept), "{end}: {kept}");
        let mut check = Command::new(omptrace_program());
        let check = check
            .arg("check")
            .arg(&trace)
            .output()
            .expect("it can be run");
        let told = String::from_utf8_lossy(&check.stdout);
        assert!(told.contains("overwritten"), "{told}");
        assert!(!told.contains("missing"), "{told}");
        // Both threads kept what began before: only a program that did not come to its end has something to warn of.
        assert_eq!(told.contains(": sound"), end == "none", "{end}: {told}");
        assert!(!told.contains("warning: ends had no begin"), "{told}");
        assert!(!told.contains("warning: implicit tasks belong"), "{told}");
    }
}

#[test]
fn a_flight_recorder_writes_what_it_keeps_when_asked_by_the_program() {
    const REGIONS: usize = 50_000;
    let traces = Traces::folder();
    // Each time so many regions that their events do not fit: before the flush, and after it.
    traces.record(
        program("control_tool.c", &["2", &REGIONS.to_string()])
            .env("OMPTRACE_MODE", "flight")
            .env("OMPTRACE_BUFFER", "512K"),
    );
    let events = dump(&traces.only());
    let is_command = |event: &Value, command: u64| {
        event["event"] == "control_tool" && event["command"] == command
    };
    let flush = events.iter().position(|event| is_command(event, 3));
    let (before, after) = events.split_at(flush.expect("the flush's own event is in the file"));
    for events in [before, after] {
        let begun = count(events, "parallel_begin");
        assert!((1000..REGIONS).contains(&begun), "{begun}");
    }
    assert!(
        after.iter().any(|event| is_command(event, 4)),
        "the newest event"
    );
}

/// Whether the process has a handler for the signal.
fn catches(pid: i32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[test]
fn a_flight_recorder_writes_what_it_keeps_when_asked_by_signal() {
    let traces = Traces::folder();
    let mut command = in_flight(&["none", "2", "100000000"]);
    command.env("OMPTRACE_FLUSH_ON", "SIGUSR2");
    let mut child = traces.trace(&mut command).spawn().expect("it can be run");
    let pid = child.id() as i32;
    let written = || {
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |file| file.len());
        traces.files().iter().map(size).sum::<u64>()
    };
    let mut still_runs = || child.try_wait().expect("it is ours").is_none();
    while !catches(pid, libc::SIGUSR2) {
        assert!(still_runs());
        std::thread::sleep(Duration::from_millis(5));
    }
    // On a busy machine, little may have been kept when it is asked for the first time.
    let before = written();
    while written() < before + (256 << 10) {
        assert!(still_runs());
        // SAFETY: a plain system call; the child was not waited for yet.
        unsafe { libc::kill(pid, libc::SIGUSR2) };
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(count(&dump(&traces.files()[0]), "parallel_begin") > 1000);
}

/// A child has no thread that waits for the signal until it has a trace of its own; and what the program did with the
/// signal meanwhile stays.
#[test]
fn a_signal_that_a_flight_recorder_waits_for_is_given_back() {
    for (way, handled, traced) in [("child", 0, 2), ("own", 1, 1)] {
        let traces = Traces::folder();
        let mut command = program("flush_signal.c", &[way]);
        command
            .env("OMPTRACE_MODE", "flight")
            .env("OMPTRACE_FLUSH_ON", "SIGUSR2");
        let said = traces.record(&mut command);
        assert_eq!(number(&said, "handled"), handled, "{way}");
        assert_eq!(all_regions(&traces), vec![[1, 1, 0]; traced], "{way}");
    }
}
