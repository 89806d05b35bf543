//! Calls of OpenMP from within others: from constructors, while the loader holds its lock, and from functions of the program's that
//! the adapter calls.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use omptrace_tests::env::{Compiler, compile, count_tool};
use tempfile::TempDir;

use super::{adapted, compiled, output};

/// The program, which is killed where it hangs.
fn limited(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "60"]).arg(program);
    command
}

/// Runs a command alone, behind the adapter without a tool, and with a tool that counts: each time with the same outcome.
#[track_caller]
fn is_the_same(command: impl Fn() -> Command, status: i32, what: &str) {
    let alone = output(&mut command());
    assert_eq!(alone.status.code(), Some(status), "{what}, alone: {alone:?}");
    let disabled = output(adapted(command().env("OMP_TOOL", "disabled")));
    assert_eq!(disabled, alone, "{what}, without a tool");
    let counted = output(adapted(command().env("OMP_TOOL_LIBRARIES", count_tool())));
    let printed = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(counted.status, alone.status, "{what}, with a tool: {counted:?}");
    assert!(printed(&counted).contains(&printed(&alone)), "{what}, with a tool: {counted:?}");
}

#[test]
fn constructors_and_their_threads_use_openmp_while_the_loader_is_locked() {
    let library = compiled("constructors.c", &["-shared", "-fPIC"]);
    let host = compiled("constructors_host.c", &["-ldl"]);
    for when in ["opened", "closed"] {
        for thread in [None, Some("ON_A_THREAD")] {
            for before in [None, Some("BEFORE")] {
                for deepbind in [None, Some("DEEPBIND")] {
                    let command = || {
                        let mut command = limited(&host);
                        command.arg(&library).env("WHEN", when);
                        let variables = [thread, before, deepbind];
                        command.envs(variables.into_iter().flatten().map(|name| (name, "1")));
                        command
                    };
                    is_the_same(command, 6, &format!("{when} {thread:?} {before:?} {deepbind:?}"));
                }
            }
        }
    }
}

#[test]
fn any_construct_may_be_the_first_while_the_loader_is_locked() {
    let library = compiled("constructors.c", &["-shared", "-fPIC"]);
    let host = compiled("constructors_host.c", &["-ldl"]);
    for first in ["region2", "lock", "critical", "task", "single", "loops", "teams"] {
        let command = || {
            let mut command = limited(&host);
            command.arg(&library).env("WHEN", "opened");
            command.env("ON_A_THREAD", "1").env("FIRST", first);
            command
        };
        is_the_same(command, 6, first);
    }
}

#[test]
fn functions_that_the_adapter_calls_may_be_the_programs_and_use_openmp() {
    for how in ["-DHOW=0", "-DHOW=1", "-DHOW=2"] {
        for replaced in ["-DMALLOC", "-DOTHERS"] {
            let flags = ["-O1", "-fno-builtin", "-fno-tree-loop-distribute-patterns", how, replaced, "-ldl"];
            let program = compiled("own_functions.c", &flags);
            is_the_same(|| limited(&program), 7, &format!("{how} {replaced}"));
        }
    }
}

/// Such as a plugin that was opened with `RTLD_DEEPBIND` and closes others itself.
#[test]
fn a_libgomp_may_be_unloaded_by_a_way_that_the_adapter_does_not_see() {
    let folder = tempfile::tempdir().expect("a folder");
    let gcc = Command::new(Compiler::Gcc.path()).arg("-print-file-name=libgomp.so.1").output();
    let libgomp = String::from_utf8_lossy(&gcc.expect("GCC is there").stdout).trim().to_owned();
    let patchelf = |words: &[&str], file: &Path| {
        let status = Command::new("patchelf").args(words).arg(file).status();
        assert!(status.expect("patchelf is there").success());
    };
    let libraries = ["libgomp-a.so.1", "libgomp-b.so.1"].map(|name| {
        let (renamed, library) = (folder.path().join(name), folder.path().join(format!("user-of-{name}")));
        fs::copy(&libgomp, &renamed).expect("our folder");
        fs::copy(compiled("openmp_library.c", &["-shared", "-fPIC"]), &library).expect("our folder");
        patchelf(&["--set-soname", name], &renamed);
        patchelf(&["--replace-needed", "libgomp.so.1", name], &library);
        library
    });
    let host = compile("tests/programs/closes_unseen.c", Compiler::Gcc, &["-fno-openmp", "-ldl"]);
    for libraries in [&libraries[..1], &libraries[..]] {
        let command = || {
            let mut command = limited(&host);
            command.args(libraries).env("LD_LIBRARY_PATH", folder.path());
            command
        };
        is_the_same(command, 7, &format!("{libraries:?}"));
    }
}

#[test]
fn tasks_within_tasks_fit_on_the_stack() {
    let program = compiled("deep_tasks.c", &["-O1", "-pthread"]);
    is_the_same(|| limited(&program), 0, "deep tasks");
}

#[test]
fn a_fork_while_the_tool_is_searched_leaves_a_child_that_runs() {
    let program = compiled("fork_while_searched.c", &["-rdynamic", "-pthread"]);
    is_the_same(|| limited(&program), 0, "a fork");
}

#[test]
fn a_fork_while_a_device_is_announced_leaves_a_child_that_uses_it() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let flags = ["-fno-openmp", "-shared", "-fPIC"];
    let plugin = compile("tests/programs/gcc_device_plugin.c", Compiler::Gcc, &flags);
    fs::copy(plugin, folder.path().join("libgomp-plugin-nvptx.so.1")).expect("the folder can be written");
    let program = compiled("fork_while_announced.c", &["-rdynamic", "-pthread"]);
    let command = || {
        let mut command = limited(&program);
        command.env("LD_LIBRARY_PATH", folder.path());
        command
    };
    assert_eq!(output(&mut command()).stdout, b"child 4950\n");
    is_the_same(command, 0, "a fork");
}

#[test]
fn a_fork_beside_threads_with_detachable_tasks_leaves_a_child_that_runs() {
    let program = compiled("forks_beside_events.c", &["-pthread"]);
    is_the_same(|| limited(&program), 0, "forks");
}

#[test]
fn a_region_costs_the_same_however_many_call_sites_there_are() {
    let program = compiled("gcc_call_sites.c", &["-mno-red-zone"]);
    let ran = output(adapted(limited(&program).env("OMP_TOOL", "disabled")));
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    let ms = |name: &str| -> f64 {
        let mut lines = printed.lines();
        let time = lines.find_map(|line| line.strip_prefix(name)).expect("a time");
        time.trim().parse().expect("milliseconds")
    };
    // 600,000 regions. Twenty thousand places are more than the processor's caches hold.
    assert!(ms("many") < 5.0 * ms("few") + 15.0, "{printed}");
}
