//! Messages between the ranks of MPI programs, matched after the run, against what the programs count themselves.

use std::fs;
use std::path::Path;

use omptrace_tests::env::{Compiler, compile, omptrace_program};
use omptrace_tests::trace::{Traces, chrome_events, convert};
use omptrace_timeline::{MessageCounts, RankMessages, Timeline};
use omptrace_trace_format::Reader;
use serde_json::Value;
use std::process::Command;

use crate::{ended_well, recording};

/// Runs an MPI program on this many ranks; gives the lines that it printed.
fn run(traces: &Traces, compiler: Compiler, program: &Path, ranks: usize) -> Vec<Value> {
    let launcher = match compiler {
        Compiler::OpenMpi => &["mpirun.openmpi", "--oversubscribe"][..],
        _ => &["mpirun.mpich", "-launcher", "fork"][..],
    };
    let (count, program) = (ranks.to_string(), program.to_string_lossy());
    let arguments = [&["--mpi", "on", "-o", "rank%r.omptrace", "--"], launcher, &["-n", &count, &program]];
    let output = ended_well(
        recording(traces, arguments.concat())
            // Tests may run as root.
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    );
    let lines = String::from_utf8(output.stdout).expect("text");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn messages(traces: &Traces, ranks: usize) -> Vec<RankMessages> {
    let open = |rank| Reader::open(&traces.path().join(format!("rank{rank}.omptrace"))).expect("a trace");
    let readers: Vec<Reader> = (0..ranks).map(open).collect();
    let timeline = Timeline::of(&readers.iter().collect::<Vec<_>>()).with_ranks();
    let matched = timeline.ranks().expect("a job of MPI");
    assert!(matched.are_complete(), "{matched:?}");
    (0..ranks).map(|rank| matched.process(rank).expect("a rank").clone()).collect()
}

#[test]
fn all_messages_of_a_job_are_matched_and_counted() {
    const RANKS: usize = 4;
    for compiler in [Compiler::OpenMpi, Compiler::Mpich] {
        let program = compile("tests/programs/mpi_messages.c", compiler, &[]);
        let traces = Traces::folder();
        let said = run(&traces, compiler, &program, RANKS);
        assert_eq!(said.len(), RANKS, "{said:?}");
        let matched = messages(&traces, RANKS);
        for of_rank in &said {
            let number = |name: &str| of_rank[name].as_u64().unwrap_or_else(|| panic!("{name}: {of_rank}"));
            let counts = MessageCounts {
                sends: number("sends"),
                sent_bytes: number("sent_bytes"),
                receives: number("receives"),
                received_bytes: number("received_bytes"),
                collectives: number("collectives"),
                communicators: number("communicators"),
            };
            let found = &matched[number("rank") as usize];
            assert_eq!(found.counts, counts, "{compiler:?}: {of_rank}");
            let alone = (found.unmatched_sends.count, found.unmatched_receives.count);
            let open = (found.open_requests, found.open_communicators);
            assert_eq!((alone, open), ((0, 0), (0, 0)), "{compiler:?}: {of_rank}");
        }
        waits_are_told(&traces, RANKS);
    }
}

/// Communication is a wait or a transfer where all ranks are there, and nobody knows which where one is missing.
fn waits_are_told(traces: &Traces, ranks: usize) {
    let stats = |inputs: &[&str]| -> Value {
        let arguments = [&["stats", "--json", "--all"], inputs].concat();
        let output = ended_well(Command::new(omptrace_program()).args(arguments).current_dir(traces.path()));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let number = |stats: &Value, cause: &str| stats["accounting"][cause].as_u64().unwrap_or(0);
    let all = stats(&["."]);
    assert!(number(&all, "mpi_wait_ns") > 0 && number(&all, "mpi_transfer_ns") > 0, "{}", all["accounting"]);
    assert_eq!(number(&all, "mpi_ns"), 0, "{}", all["accounting"]);
    let some = stats(&["rank0.omptrace", "rank2.omptrace", "rank3.omptrace"]);
    assert_eq!(number(&some, "mpi_wait_ns"), 0, "{}", some["accounting"]);
    assert!(number(&some, "mpi_ns") > 0, "{}", some["accounting"]);
    let note = format!("which part of MPI calls is a wait is not known: 1 of {ranks} ranks are missing");
    assert!(some["notes"].to_string().contains(&note), "{}", some["notes"]);

    // Each wait lies in the call that it is a part of, and begins with it.
    let file = traces.path().join("all.json");
    convert(traces.path(), "chrome", &file, &[]);
    let text = fs::read_to_string(&file).expect("a file");
    assert!(text.contains("MPI_Recv wait"), "no wait in the timeline");
    assert!(!chrome_events(&traces.path().join("rank0.omptrace")).is_empty());
}
