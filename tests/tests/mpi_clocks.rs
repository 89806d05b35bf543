//! Clocks of several hosts, compared while an MPI job runs. Hosts are namespaces (unshare(1)), whose clocks are apart by a known time.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use omptrace_tests::env::{compile, unshare};
use omptrace_tests::mpi::{LIBRARIES, Library, launched, trace};
use omptrace_tests::trace::{Traces, dump};
use omptrace_timeline::Timeline;
use omptrace_trace_format::Reader;
use serde_json::Value;

const RANKS: usize = 4;
/// The first rank of the second host.
const SECOND: u64 = 2;
/// How far the second host's clock is ahead.
const SKEW_S: i64 = 5;

/// A script that runs the program on one of two hosts, by the rank.
fn on_two_hosts(folder: &Path, program: &Path) -> PathBuf {
    let unshare = unshare();
    let words = [unshare.get_program()].into_iter().chain(unshare.get_args());
    let unshare: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let (program, unshare) = (program.display(), unshare.join(" "));
    let text = format!(
        "#!/bin/sh\n\
         [ ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} -lt {SECOND} ] && exec {program} \"$@\"\n\
         exec {unshare} --mount --time --monotonic {SKEW_S} --fork --kill-child sh -ec '\n\
         id=$(mktemp); echo 00000000-1111-2222-3333-444444444444 > $id\n\
         mount --bind $id /proc/sys/kernel/random/boot_id; rm $id\n\
         \"$@\"' sh {program} \"$@\"\n"
    );
    let script = folder.join("on_host.sh");
    fs::write(&script, text).expect("the folder is ours");
    fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("the file is ours");
    script
}

/// A job on two hosts, or on one, and how it ends. Debian's MPICH goes through UCX, which takes the namespaces for hosts, too, and then
/// hangs now and then in `MPI_Finalize`, also without the tracer: on two hosts, it aborts the job instead.
fn job((compiler, launcher, name): Library, hosts: usize, options: &[&str]) -> (Traces, Output) {
    let how: &[&str] = if hosts > 1 && name == "mpich" { &["abort"] } else { &[] };
    let program = compile("tests/programs/mpi_waits.c", compiler, &["-fno-openmp"]);
    let traces = Traces::folder();
    let program = if hosts > 1 { on_two_hosts(traces.path(), &program) } else { program };
    let options = [&["--quiet"], options].concat();
    let output = launched(traces.path(), (launcher, RANKS), &program, Some(&options), how);
    assert_eq!(output.status.success(), how.is_empty(), "{output:?}");
    (traces, output)
}

fn comparisons(trace: &Path) -> Vec<Value> {
    dump(trace).into_iter().filter(|event| event["event"] == "omptrace_clock_measured").collect()
}

#[test]
fn clocks_of_hosts_are_compared_to_half_the_round_trip() {
    for library in LIBRARIES {
        let (traces, output) = job(library, 2, &["--mpi-clocks"]);
        let found = comparisons(&trace(traces.path(), 0));
        // At the begin, and at the end where the job is not aborted.
        let measurements = if output.status.success() { 2 } else { 1 };
        assert_eq!(found.len(), measurements, "{found:?}");
        for row in &found {
            let number = |name: &str| row[name].as_i64().unwrap_or_else(|| panic!("{name}: {row}"));
            assert_eq!(row["peer"], SECOND, "{row}");
            let error = number("peer_ns") - number("own_ns") - SKEW_S * 1_000_000_000;
            assert!(error.abs() <= number("round_trip_ns") / 2 + 1, "{error} ns: {row}");
        }
        for rank in 1..RANKS {
            assert_eq!(comparisons(&trace(traces.path(), rank)), [] as [Value; 0]);
        }
        let readers = (0..RANKS).map(|rank| Reader::open(&trace(traces.path(), rank)).expect("a trace"));
        let readers: Vec<Reader> = readers.collect();
        let timeline = Timeline::of(&readers.iter().collect::<Vec<_>>()).with_ranks();
        let hosts = timeline.ranks().and_then(|ranks| ranks.hosts).expect("two hosts");
        assert_eq!((hosts.hosts, hosts.measurements), (2, measurements as u64));
        assert!(hosts.error_ns.is_some(), "{hosts:?}");
    }
}

#[test]
fn clocks_are_compared_only_where_all_ranks_of_several_hosts_are_recorded() {
    for library in LIBRARIES {
        let cases: [(usize, &[&str]); 3] =
            [(2, &[]), (2, &["--mpi-clocks", "--ranks", "0,2"]), (1, &["--mpi-clocks"])];
        for (hosts, options) in cases {
            let (traces, _) = job(library, hosts, options);
            assert_eq!(comparisons(&trace(traces.path(), 0)), [] as [Value; 0], "{options:?}");
        }
    }
}

#[test]
fn a_job_that_aborts_ends_where_clocks_are_compared() {
    let (compiler, launcher, _) = LIBRARIES[0];
    let program = compile("tests/programs/mpi_waits.c", compiler, &["-fno-openmp"]);
    let run = |options: &[&str]| {
        let traces = Traces::folder();
        let program = on_two_hosts(traces.path(), &program);
        launched(traces.path(), (launcher, RANKS), &program, Some(options), &["abort"]).status
    };
    assert_eq!(run(&["--quiet", "--mpi-clocks"]), run(&["--quiet"]));
}
