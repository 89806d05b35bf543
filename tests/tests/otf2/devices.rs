//! The work of devices, in archives of real offloading programs.

use std::collections::{BTreeMap, BTreeSet};

use omptrace_tests::otf2::{assert_sound, events, events_of_old_reader, number, printed, rows, text};
use omptrace_tests::trace::Traced;
use serde_json::Value;

use crate::{OFFLOAD, archive};

fn offload(mode: &str) -> Traced {
    Traced::built("tests/programs/offload.c", OFFLOAD, &[mode, "3"])
}

/// The device's number, out of the name of a group or location.
fn device(name: &str) -> u64 {
    let rest = name.strip_prefix("device ").expect("a device's name");
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn each_device_is_an_accelerator_whose_streams_say_who_observed_them() {
    for mode in ["constructs", "threads", "nowait", "memcpy"] {
        let traced = offload(mode);
        let answer = events(&archive(&traced, &[]));
        let mut devices = BTreeSet::new();
        for row in rows(&answer["locations"]) {
            let (name, group, kind) = (text(&row[0]), text(&row[2]), text(&row[3]));
            if row[1] == true {
                assert_eq!((&kind[..], &row[4]), ("PROCESS", &Value::Null), "{name}");
                continue;
            }
            assert_eq!(kind, "ACCELERATOR", "{name}");
            assert!(text(&row[4]).starts_with("offload"), "{row:?}");
            assert_eq!(device(&name), device(&group), "{row:?}");
            assert!(name.contains("(host-observed)"), "{name}");
            devices.insert(device(&group));
        }
        let expected = match mode {
            "memcpy" => 1,
            "threads" => 2,
            _ => 4,
        };
        assert_eq!(devices, (0..expected).collect(), "{mode}");
        for row in rows(&answer["intervals"]) {
            if text(&row[0]).starts_with("device ") {
                assert_eq!(row[4]["observed_by"], "host", "{row:?}");
            }
        }
    }
}

/// The archive says so to the reference library, too.
#[test]
fn accelerators_stand_below_the_host_as_the_format_wants_it() {
    let traced = offload("constructs");
    let definitions = printed(&archive(&traced, &[]), &["-G"]);
    let count = |what: &[&str]| {
        let is_it = |line: &&str| what.iter().all(|part| line.contains(part));
        definitions.lines().filter(is_it).count()
    };
    assert_eq!(count(&["SYSTEM_TREE_NODE_DOMAIN", "ACCELERATOR_DEVICE"]), 4);
    assert_eq!(count(&["LOCATION_GROUP ", "Type: ACCELERATOR"]), 4);
    assert_eq!(count(&["PARADIGM ", "Class: ACCELERATOR"]), 1);
    assert_eq!(count(&["PARADIGM_PROPERTY", "RMA_ONLY", "TRUE"]), 1);
    assert_eq!(count(&["RMA_WIN", "\"OPENMP_TARGET_WINDOW\"", "NONE"]), 1);
}

/// Each thread of the host uses a device of its own.
#[test]
fn transfers_are_with_the_threads_that_asked_for_them() {
    let traced = offload("threads");
    for (options, read) in
        [(&[][..], events as fn(&std::path::Path) -> Value), (&["--otf2-enums", "3.0"], events_of_old_reader)]
    {
        let answer = read(&archive(&traced, options));
        let mut remotes: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for row in rows(&answer["transfers"]) {
            let remote = text(&row[5]);
            remotes.entry(device(&text(&row[0]))).or_default().insert(remote);
            assert!([4, 1024].contains(&number(&row[4])), "{row:?}");
        }
        let [of_first, of_second] = [0, 1].map(|device| Vec::from_iter(&remotes[&device]));
        assert_eq!(of_first, ["main"], "{options:?}");
        assert_eq!(of_second.len(), 1, "{options:?}");
        assert!(of_second[0].starts_with("OpenMP worker"), "{of_second:?}");
    }
}

/// Kernels have the roles and names by which tools know them, in each generation of enumerators.
#[test]
fn kernels_are_kernels() {
    let traced = offload("constructs");
    for (options, role, paradigm) in
        [(&[][..], "Role: INVALID <40>", "<25>"), (&["--otf2-enums", "3.0"], "Role: FUNCTION", "<3>")]
    {
        let definitions = printed(&archive(&traced, options), &["-G"]);
        let is_kernel = |line: &&str| {
            line.starts_with("REGION ") && line.contains("!$omp target (kernel execution) @offload.c:")
        };
        let kernels: Vec<&str> = definitions.lines().filter(is_kernel).collect();
        assert_eq!(kernels.len(), 3, "{kernels:?}");
        for kernel in kernels {
            assert!(kernel.contains(role) && kernel.contains(paradigm), "{kernel}");
            assert!(kernel.contains("tests/programs/offload.c"), "{kernel}");
        }
    }
}

/// Scalasca 2.6 refuses archives that have locations of other kinds.
#[test]
fn an_archive_of_the_host_only_has_threads_and_all_that_they_did() {
    for mode in ["constructs", "nowait"] {
        let traced = offload(mode);
        let all = events(&archive(&traced, &[]));
        let anchor = archive(&traced, &["--host-only"]);
        let host = events(&anchor);
        assert_sound(&anchor);
        assert!(rows(&host["locations"]).all(|row| row[1] == true && row[3] == "PROCESS"));
        let of_threads: Vec<&Vec<Value>> =
            rows(&all["intervals"]).filter(|row| !text(&row[0]).starts_with("device ")).collect();
        let of_host: Vec<&Vec<Value>> = rows(&host["intervals"]).collect();
        assert_eq!(of_host, of_threads, "{mode}");
        let counts = host["counts"].as_object().expect("counts");
        assert!(counts.keys().all(|kind| !kind.starts_with("Rma")), "{counts:?}");
        let definitions = printed(&anchor, &["-G"]);
        for what in ["ACCELERATOR_", "RMA_WIN", "Type: ACCELERATOR"] {
            assert!(!definitions.contains(what), "{what}");
        }
    }
}

/// Viewers that know the property can put the runtime's own threads out of the way.
#[test]
fn hidden_helpers_are_named_as_such() {
    let traced = Traced::built("tests/programs/target_nowait.c", OFFLOAD, &[]);
    let definitions = printed(&archive(&traced, &[]), &["-G"]);
    let of_role = |role: &str| {
        let is_it = |line: &&str| {
            line.starts_with("LOCATION_PROPERTY")
                && line.contains("\"OMPTRACE::THREAD_ROLE\"")
                && line.contains(&format!("\"{role}\""))
        };
        definitions.lines().filter(is_it).count()
    };
    assert_eq!(["main", "worker", "helper"].map(of_role), [1, 1, 8], "{definitions}");
}
