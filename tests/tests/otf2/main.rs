//! OTF2 archives of real programs, read by the reference library and its Python modules, and checked by ourselves;
//! archives of others, checked by ourselves.

mod archives;
mod contract;
mod devices;
mod mapping;
mod others;

use omptrace_tests::otf2::{assert_sound, events, events_of_old_reader, printed};
use omptrace_tests::trace::Traced;

/// A program with the flags that it is compiled with, and how large it is run.
type Program = (&'static str, &'static [&'static str], &'static [&'static str]);

/// For devices on the host's own cores.
const OFFLOAD: &[&str] = &["-fopenmp-targets=x86_64-pc-linux-gnu"];

const PROGRAMS: [Program; 11] = [
    ("examples/stencil.c", &[], &["400", "20"]),
    ("examples/task_tree.c", &[], &["9", "4"]),
    ("examples/lock_fight.c", &[], &["2000"]),
    ("examples/nested.c", &[], &["480", "20"]),
    ("examples/offload.c", OFFLOAD, &["1000", "10"]),
    ("tests/programs/nearly_everything.c", &[], &["2", "20"]),
    ("tests/programs/control_tool.c", &[], &["2", "20"]),
    ("tests/programs/structure.c", &[], &[]),
    ("tests/programs/nested.c", &[], &["2", "2", "10"]),
    ("tests/programs/task_paths.c", &[], &["2", "5"]),
    ("tests/programs/offload.c", OFFLOAD, &["constructs", "3"]),
];

fn traced((source, flags, arguments): Program) -> Traced {
    Traced::built(source, flags, arguments)
}

/// The anchor of an archive of the trace.
fn archive(traced: &Traced, options: &[&str]) -> std::path::PathBuf {
    traced.convert("otf2", "archive", options).join("traces.otf2")
}

#[test]
fn every_reader_reads_without_a_word() {
    for program in PROGRAMS {
        let traced = traced(program);
        let anchor = archive(&traced, &[]);
        printed(&anchor, &[]);
        printed(&anchor, &["-G"]);
        let newest = events(&anchor);
        assert_sound(&anchor);
        let anchor = archive(&traced, &["--otf2-enums", "3.0"]);
        let oldest = events_of_old_reader(&anchor);
        assert_eq!(oldest["intervals"], newest["intervals"], "{program:?}");
        assert_eq!(oldest["transfers"], newest["transfers"], "{program:?}");
        assert_sound(&anchor);
    }
}
