//! How a process ends.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use omptrace_tests::env::program_on;
use omptrace_tests::trace::{Traces, count, dump, dump_with_warnings, info};
use serde_json::Value;

use crate::{ROUNDS, THREADS, all_regions, one_line, program, run};

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
            let output = run(&traces, &mut program_on(name, "reliability_ends.c", &[&how]));
            assert_eq!(output.status.signal(), signal, "{name} {how}: {output:?}");
            assert_eq!(output.stdout, b"checksum 2000\n");
            assert_eq!(String::from_utf8_lossy(&output.stderr), "");
            assert_eq!(all_regions(&traces), [[begun, ROUNDS, THREADS * ROUNDS]], "{name} {how}");
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
        one_line(&output, "the first thread that used OpenMP has ended");
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
        let unreported = info["findings"].as_array().expect("a list").iter();
        let unreported: usize = unreported
            .filter(|finding| finding["name"] == "events_unreported")
            .map(|finding| {
                let words = finding["text"].as_str().expect("words");
                let count = words.split(' ').next().expect("a word");
                count.parse::<usize>().expect("a number")
            })
            .sum();
        let lost = info["lost"].as_u64().expect("a number") as usize;
        (recorded(&dump_with_warnings(&trace).0), lost + unreported)
    };
    let (all, none) = trace("write");
    assert_eq!(none, 0);
    let (recorded, lost) = trace("drop");
    assert!(lost > 0);
    assert_eq!(recorded + lost, all);
}
