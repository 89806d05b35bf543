//! Forks and other ways to make a child.

use omptrace_tests::env::{program_on, runtime};
use omptrace_tests::trace::{Traces, count, dump};

use crate::{all_regions, number, patient, program, run};

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
    let spaces = if unsafe { libc::geteuid() } == 0 { "-pf" } else { "-rpf" };
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
