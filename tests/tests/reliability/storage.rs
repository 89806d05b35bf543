//! Thread-local storage and the keys of threads, which the tracer shares with the program.

use std::path::PathBuf;
use std::process::Command;

use omptrace_tests::env::{Compiler, compile, omptrace_program, tool_library};
use omptrace_tests::trace::{Traces, count, dump};

use crate::{number, program, run};

/// glibc keeps 1,664 bytes for the static storage of all libraries that are loaded at run time. A library with one variable
/// of the initial-exec model takes static storage for all its variables.
#[test]
fn the_tracer_takes_at_most_16_bytes_of_static_storage() {
    let output = Command::new("readelf")
        .args(["--wide", "--segments", "--dynamic"])
        .arg(tool_library())
        .env("LC_ALL", "C")
        .output()
        .expect("binutils are there");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("Dynamic section"), "{output:?}");
    let segment = said.lines().find(|line| line.trim().starts_with("TLS "));
    let size = segment.map_or(0, |line| {
        let size = line.split_whitespace().nth(5).expect("a size in memory");
        usize::from_str_radix(size.trim_start_matches("0x"), 16).expect("a number")
    });
    assert!(!said.contains("STATIC_TLS") || size <= 16, "{said}");
}

#[test]
fn libraries_that_are_loaded_later_have_the_room_that_they_have_alone() {
    let with = |bytes: usize| {
        let bytes = format!("-DBYTES={bytes}");
        let flags = ["-shared", "-fPIC", "-fno-openmp", &bytes];
        compile("tests/programs/large_storage.c", Compiler::Gcc, &flags)
    };
    let sizes = [1000, 1400, 1600, 1648];
    let libraries: Vec<PathBuf> = sizes.map(with).into();
    for (compiler, options) in
        [(Compiler::Clang22, &[][..]), (Compiler::Clang22, &["--preload"]), (Compiler::Gcc, &[])]
    {
        let host = compile("tests/programs/storage_host.c", compiler, &["-ldl"]);
        for library in &libraries {
            let alone = Command::new(&host).arg(library).output();
            let alone = alone.expect("it can be run");
            let traces = Traces::folder();
            let output = Command::new(omptrace_program())
                .args(["record", "-o"])
                .arg(traces.path().join("t.omptrace"))
                .args(options)
                .arg(&host)
                .arg(library)
                .output()
                .expect("it can be run");
            assert_eq!(
                (output.status.code(), &output.stdout),
                (alone.status.code(), &alone.stdout),
                "{compiler:?} {options:?} {library:?}: {output:?}"
            );
            let begun = count(&dump(&traces.files()[0]), "parallel_begin");
            assert_eq!(begun, 2, "{compiler:?} {options:?}");
        }
    }
}

#[test]
fn a_program_may_use_any_number_of_keys() {
    // No key. Some keys, whose destructors use OpenMP. All that lie in a thread's descriptor. The same, deleted while threads have
    // values of them. Nearly all that there are.
    for [keys, deleted] in [[0, 0], [30, 0], [40, 0], [40, 40], [1000, 0]] {
        let [keys, deleted] = [keys, deleted].map(|number: usize| number.to_string());
        let traces = Traces::folder();
        let mut command = program("thread_keys.c", &[&keys, &deleted]);
        let output = run(&traces, &mut command);
        assert!(output.status.success(), "{keys} {deleted}: {output:?}");
        let regions = number(&String::from_utf8_lossy(&output.stdout), "regions");
        let events = dump(&traces.only());
        for event in ["parallel_begin", "parallel_end"] {
            assert_eq!(count(&events, event), regions, "{keys} {deleted} {event}");
        }
        assert_eq!(count(&events, "mutex_released"), 2 * regions, "{keys} {deleted}");
        assert_eq!(count(&events, "omptrace_lost"), 0, "{keys} {deleted}");
    }
}
