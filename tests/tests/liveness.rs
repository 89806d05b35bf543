//! A trace is sealed when its process has ended, and only then, wherever the process ran and wherever one looks from.
//! Containers and other hosts are namespaces here (unshare(1)).

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use omptrace_tests::env::{Compiler, compile, omptrace_program, unshare};
use omptrace_tests::trace::{Traces, count, dump, info, omptrace};
use serde_json::Value;

/// Regions of `stays.c` before it does what it may do, and after.
const ROUNDS: usize = 100;

/// `stays.c` under the tracer. It is killed with the value.
struct Stays {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Its output behind `ready`: its child's process id, seen from where it runs.
    said: String,
}

impl Stays {
    /// Runs it by `command`, to which its path and `how` are added as the last words.
    fn start(mut command: Command, traces: &Path, how: &str) -> Stays {
        let program = compile("tests/programs/stays.c", Compiler::Clang22, &[]);
        command
            .arg(program)
            .arg(how)
            .env("OMP_TOOL_LIBRARIES", omptrace_tests::env::tool_library())
            .env("OMPTRACE_OUTPUT", traces.join("%e.%p.omptrace"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program can be run");
        let mut said = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        stdout.read_line(&mut said).expect("it says something");
        assert!(said.starts_with("ready "), "{said:?}");
        Stays { child, stdout, said }
    }

    /// Kills it, and waits until all are gone that it was started through.
    fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
        if self.grandchild() == 0 {
            let end = self.stdout.read_to_string(&mut String::new());
            end.expect("its end is seen");
        }
    }

    /// The process that it forked, which stays; 0 for none.
    fn grandchild(&self) -> i32 {
        self.said["ready ".len()..].trim().parse().expect("a number")
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn plain() -> Command {
    let mut env = Command::new("env");
    env.arg("--");
    env
}

/// Runs what follows in a container: other process ids, another host name, other mounts. It ends with unshare.
fn container() -> Command {
    let mut command = unshare();
    command.args(["--pid", "--uts", "--mount", "--mount-proc", "--fork"]);
    command.args(["--kill-child", "--"]);
    command
}

/// Runs `script` in a container that mounts what it wants before, as `sh -c SCRIPT sh WORDS` does.
fn in_container(script: &str) -> Command {
    let mut command = container();
    // LLVM's runtime leaves a file there when it is killed, by its process id: that of every container's first process.
    let script = format!("set -e; hostname elsewhere; mount -t tmpfs shm /dev/shm; {script}");
    command.args(["sh", "-c", &script, "sh"]);
    command
}

/// Makes the kernel look like another one's: what the system has of another host, but for its file systems.
const OTHER_BOOT: &str = "id=$(mktemp); echo 00000000-1111-2222-3333-444444444444 > $id; \
    mount --bind $id /proc/sys/kernel/random/boot_id; rm $id; ";

fn recover(mut command: Command, options: &[&str], trace: &Path) -> Output {
    command.arg(omptrace_program()).arg("recover").args(options);
    command.arg(trace).output().expect("omptrace can be run")
}

/// A file's identity and content.
type File = (u64, Vec<u8>);

/// Waits until the tracer has measured what its events cost: the last that it writes into the trace of a process that does nothing.
fn is_quiet(trace: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_measured = || {
        let output = omptrace([Path::new("stats"), Path::new("--json"), trace]);
        let answers: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        answers["processes"][0]["event_cost_ns"].is_number()
    };
    while !is_measured() {
        assert!(Instant::now() < deadline, "what events cost is not in {}", trace.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Every file in a folder.
fn files(folder: &Path) -> Vec<(PathBuf, File)> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let inode = fs::metadata(&path).expect("a file").ino();
            let content = fs::read(&path).expect("a file");
            (path, (inode, content))
        })
        .collect();
    files.sort();
    files
}

/// The trace is refused for this reason, and no file changes.
#[track_caller]
fn is_refused(command: Command, options: &[&str], trace: &Path, reason: &str) {
    let folder = trace.parent().expect("a folder");
    is_quiet(trace);
    let before = files(folder);
    let output = recover(command, options, trace);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains(reason), "{said}");
    assert!(before == files(folder), "recover changed a file: {said}");
}

#[track_caller]
fn is_completed(command: Command, options: &[&str], trace: &Path, rounds: usize) {
    let output = recover(command, options, trace);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(count(&dump(trace), "parallel_end"), rounds);
    assert_eq!(fs::read_dir(trace.parent().unwrap()).unwrap().count(), 1);
}

fn only_trace(folder: &Path) -> PathBuf {
    let mut entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let is_trace = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "omptrace");
    entries.find(is_trace).expect("a trace")
}

const RUNNING: &str = "still running";

/// From here, from a container, from another host; and the other way round.
#[test]
fn a_running_process_is_seen_from_everywhere_and_its_end_too() {
    type Start = fn() -> Command;
    let elsewhere: [(&str, Start); 3] = [
        ("here", plain),
        ("a container", || in_container("exec \"$@\"")),
        ("another host", || in_container(&format!("{OTHER_BOOT} exec \"$@\""))),
    ];
    for (ran_in, run) in elsewhere {
        for (seen_from, see) in elsewhere {
            let traces = Traces::folder();
            let mut stays = Stays::start(run(), traces.path(), "plain");
            let trace = only_trace(traces.path());
            is_refused(see(), &[], &trace, RUNNING);
            // Nobody needs to insist on what is known.
            is_refused(see(), &["--force"], &trace, RUNNING);
            assert_eq!(info(&trace)["ending"], "still running", "{ran_in}");
            stays.kill();
            println!("ran in {ran_in}, seen from {seen_from}");
            is_completed(see(), &[], &trace, 2 * ROUNDS);
        }
    }
}

/// A lock goes with the last descriptor of its file, and children inherit both: neither may mislead.
#[test]
fn the_lock_ends_with_the_process_that_records() {
    for (how, rounds) in [("close", 2 * ROUNDS), ("fork", 2 * ROUNDS), ("exec", ROUNDS)] {
        let traces = Traces::folder();
        let mut stays = Stays::start(plain(), traces.path(), how);
        let trace = only_trace(traces.path());
        let child = stays.grandchild();
        if how == "exec" {
            let name = format!("/proc/{}/comm", stays.child.id());
            while fs::read_to_string(&name).expect("it runs") != "sleep\n" {
                std::thread::sleep(Duration::from_millis(1));
            }
        } else {
            is_refused(in_container("exec \"$@\""), &[], &trace, RUNNING);
            is_refused(plain(), &[], &trace, RUNNING);
            stays.kill();
        }
        println!("{how}");
        is_completed(in_container("exec \"$@\""), &[], &trace, rounds);
        if child != 0 {
            assert!(Path::new(&format!("/proc/{child}")).exists(), "it stays");
            // SAFETY: no pointers; the child is ours.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
    }
}

#[test]
fn a_daemon_has_a_lock_of_its_own() {
    let traces = Traces::folder();
    let mut stays = Stays::start(plain(), traces.path(), "daemon");
    stays.child.wait().expect("the parent ends");
    let name = |pid: &str| {
        let mut files = traces.files().into_iter();
        files.find(|file| file.to_str().is_some_and(|file| file.contains(pid)))
    };
    let parent = name(&format!(".{}.", stays.child.id())).expect("the parent's");
    let of_daemon = |file: &PathBuf| *file != parent;
    let daemon = traces.files().into_iter().find(of_daemon);
    let daemon = daemon.expect("the daemon's");
    let see = || in_container("exec \"$@\"");
    is_refused(see(), &[], &daemon, RUNNING);
    is_refused(plain(), &[], &daemon, RUNNING);
    assert!(recover(see(), &[], &parent).status.success());
    assert_eq!(count(&dump(&parent), "parallel_end"), ROUNDS);
    let pid = daemon.to_str().and_then(|name| name.rsplit('.').nth(1)?.parse().ok());
    // SAFETY: no pointers; the daemon is ours.
    unsafe { libc::kill(pid.expect("a process id"), libc::SIGKILL) };
}

/// Locks and devices as another mount of the files shows them: overlayfs has its own.
#[test]
fn where_neither_lock_nor_process_can_be_seen_only_force_completes() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(path(name)).expect("a folder");
    }
    let mount = format!(
        "mount -t overlay overlay -o lowerdir={},upperdir={},workdir={} {}; exec \"$@\"",
        path("lower").display(),
        path("upper").display(),
        path("work").display(),
        path("merged").display()
    );
    let mut stays = Stays::start(in_container(&mount), &path("merged"), "plain");
    let trace = only_trace(&path("upper"));
    let see = || in_container("exec \"$@\"");
    let reason = "ran in another container";
    is_refused(see(), &[], &trace, reason);
    let found = info(&trace);
    // From here, the mapping of the spool can be seen.
    assert_eq!(found["ending"], "still running");
    is_refused(plain(), &[], &trace, RUNNING);
    stays.kill();
    is_refused(see(), &[], &trace, reason);
    is_completed(see(), &["--force"], &trace, 2 * ROUNDS);
}

/// The original, which was killed, is as it was, whatever becomes of the copy.
#[test]
fn a_copy_takes_nothing_from_the_original() {
    for with_spool in [false, true] {
        let traces = Traces::folder();
        let mut stays = Stays::start(plain(), traces.path(), "plain");
        stays.kill();
        let trace = only_trace(traces.path());
        let before = files(traces.path());
        let elsewhere = tempfile::TempDir::new().expect("a folder");
        for (file, _) in &before {
            if with_spool || *file == trace {
                fs::copy(file, elsewhere.path().join(file.file_name().unwrap())).expect("a copy");
            }
        }
        let copy = only_trace(elsewhere.path());
        is_completed(plain(), &[], &copy, 2 * ROUNDS);
        assert!(before == files(traces.path()));
        is_completed(plain(), &[], &trace, 2 * ROUNDS);
        // The copy has all by itself.
        assert_eq!(count(&dump(&copy), "parallel_end"), 2 * ROUNDS);
    }
}

#[test]
fn a_copy_of_a_running_trace_takes_nothing_from_it() {
    let traces = Traces::folder();
    let stays = Stays::start(plain(), traces.path(), "plain");
    let trace = only_trace(traces.path());
    is_quiet(&trace);
    let before = files(traces.path());
    let elsewhere = tempfile::TempDir::new().expect("a folder");
    let copy = elsewhere.path().join("copy.omptrace");
    fs::copy(&trace, &copy).expect("a copy");
    for see in [plain(), in_container("exec \"$@\"")] {
        recover(see, &["--force"], &copy);
        assert!(before == files(traces.path()));
    }
    drop(stays);
    is_completed(plain(), &[], &trace, 2 * ROUNDS);
}

#[test]
fn several_recover_one_trace_at_once() {
    let traces = Traces::folder();
    Stays::start(plain(), traces.path(), "plain").kill();
    let trace = only_trace(traces.path());
    let start = || {
        Command::new(omptrace_program())
            .arg("recover")
            .arg(&trace)
            .stderr(Stdio::piped())
            .spawn()
            .expect("omptrace can be run")
    };
    let all: Vec<Child> = (0..6).map(|_| start()).collect();
    for mut child in all {
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
        assert!(said.contains("none lost"), "{said}");
    }
    assert_eq!(count(&dump(&trace), "parallel_end"), 2 * ROUNDS);
    assert_eq!(traces.all_files(), [trace]);
}

#[test]
fn a_recover_that_is_killed_loses_nothing() {
    let traces = Traces::folder();
    Stays::start(plain(), traces.path(), "plain").kill();
    let trace = only_trace(traces.path());
    let before = files(traces.path());
    for round in 0..20 {
        let elsewhere = tempfile::TempDir::new().expect("a folder");
        for (file, _) in &before {
            fs::copy(file, elsewhere.path().join(file.file_name().unwrap())).expect("a copy");
        }
        let copy = elsewhere.path().join(trace.file_name().unwrap());
        let mut child = Command::new(omptrace_program())
            .arg("recover")
            .arg(&copy)
            .stderr(Stdio::null())
            .spawn()
            .expect("omptrace can be run");
        std::thread::sleep(Duration::from_micros(round * 800));
        child.kill().expect("it is our child");
        child.wait().expect("it ends");
        assert_eq!(count(&dump(&copy), "parallel_end"), 2 * ROUNDS);
        is_completed(plain(), &[], &copy, 2 * ROUNDS);
    }
}

/// Before each system call by which it changes files, so after each, too.
#[test]
fn a_recover_that_is_killed_at_any_step_loses_nothing() {
    const MAX_STEPS: u32 = 1000;

    let shim =
        compile("tests/programs/kill_at_call.c", Compiler::Clang22, &["-shared", "-fPIC", "-fno-openmp"]);
    let traces = Traces::folder();
    Stays::start(plain(), traces.path(), "plain").kill();
    let trace = only_trace(traces.path());
    let before = files(traces.path());
    let mut steps = 0;
    for step in 1..=MAX_STEPS {
        let elsewhere = tempfile::TempDir::new().expect("a folder");
        for (file, _) in &before {
            fs::copy(file, elsewhere.path().join(file.file_name().unwrap())).expect("a copy");
        }
        let copy = elsewhere.path().join(trace.file_name().unwrap());
        let output = Command::new(omptrace_program())
            .arg("recover")
            .arg(&copy)
            .env("LD_PRELOAD", &shim)
            .env("OMPTRACE_TEST_KILL_AT", step.to_string())
            .output()
            .expect("omptrace can be run");
        let has_ended = output.status.success();
        assert_eq!(count(&dump(&copy), "parallel_end"), 2 * ROUNDS, "{step} {output:?}");
        is_completed(plain(), &[], &copy, 2 * ROUNDS);
        assert_eq!(files(elsewhere.path()).len(), 1, "{step} {output:?}");
        if has_ended {
            break;
        }
        assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{step} {output:?}");
        steps = step;
    }
    // It reads, locks, writes, names and removes; and comes to an end.
    assert!((20..MAX_STEPS).contains(&steps), "{steps}");
}

/// On a disk that is full, and in a folder that may not be written to.
#[test]
fn where_nothing_can_be_written_the_trace_stays_as_it_is() {
    let traces = Traces::folder();
    Stays::start(plain(), traces.path(), "plain").kill();
    let trace = only_trace(traces.path());
    let before = files(traces.path());
    let name = trace.file_name().unwrap().to_str().unwrap();
    let folder = traces.path().display();
    let program = omptrace_program();
    let program = program.display();
    for (why, script) in [
        (
            "Read-only file system",
            format!(
                "mount --bind {folder} {folder}; mount -o remount,bind,ro {folder}; \
                 ! {program} recover {folder}/{name}"
            ),
        ),
        (
            "No space left on device",
            format!(
                "mount -t tmpfs -o size=2M tmpfs /mnt; cp {folder}/* /mnt; \
                 head -c 9M /dev/zero > /mnt/rest 2>/dev/null || true; \
                 md5sum /mnt/{name}* > /tmp/sums.$$; ! {program} recover --force /mnt/{name}; \
                 md5sum --quiet --check /tmp/sums.$$; rm /tmp/sums.$$ /mnt/rest; \
                 {program} recover --force /mnt/{name}; {program} info /mnt/{name} > /dev/null; \
                 test $(ls /mnt | wc -l) = 1"
            ),
        ),
    ] {
        let output = in_container(&script).output().expect("unshare can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains(why), "{said}");
        assert!(before == files(traces.path()), "{why}");
    }
    let output = omptrace([Path::new("recover"), &trace]);
    assert!(output.status.success(), "{output:?}");
}
