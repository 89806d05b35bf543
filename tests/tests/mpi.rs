//! Calls of MPI, recorded from programs on Open MPI and MPICH that measure themselves, and messages, which they count.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use omptrace_tests::env::{compile, omptrace_program};
use omptrace_tests::mpi::{LIBRARIES, counted, launch, launched, matched, trace};
use omptrace_tests::otf2::{assert_sound, printed};
use omptrace_tests::trace::{Traces, accounts_add_up, convert, count, dump, info, omptrace};
use omptrace_timeline::{MessageCounts, RankMessages};
use omptrace_trace_format::Reader;
use serde_json::Value;

const SOURCE: &str = "tests/programs/mpi_waits.c";
const RANKS: usize = 2;

/// What a rank has measured.
struct Measured {
    calls: usize,
    communication: f64,
    other: f64,
}

fn measured(folder: &Path, rank: usize) -> Measured {
    let text = fs::read_to_string(folder.join(format!("rank{rank}"))).expect("the rank's file");
    let words: Vec<&str> = text.split_whitespace().collect();
    let seconds = |place: usize| words[place].parse().expect("seconds");
    Measured { calls: words[0].parse().expect("a number"), communication: seconds(1), other: seconds(2) }
}

fn stats(traces: &[PathBuf]) -> Value {
    let words = ["stats", "--json", "--all"].map(PathBuf::from);
    let output = omptrace(words.iter().chain(traces));
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Seconds of the causes of which `is_one` is true.
fn seconds(stats: &Value, is_one: impl Fn(&str) -> bool) -> f64 {
    let accounting = stats["accounting"].as_object().expect("an object");
    let sums = accounting.iter().filter(|(name, _)| is_one(name)).filter_map(|(_, ns)| ns.as_u64());
    sums.sum::<u64>() as f64 / 1e9
}

fn communicates(cause: &str) -> bool {
    cause.starts_with("mpi_") && cause != "mpi_other_ns"
}

#[test]
fn time_in_mpi_is_what_the_program_measures() {
    for (compiler, launcher, family) in LIBRARIES {
        for flags in [&[][..], &["-fno-openmp"]] {
            let program = compile(SOURCE, compiler, flags);
            let traces = Traces::folder();
            let folder = traces.path();
            let alone = launched(folder, (launcher, RANKS), &program, None, &[]);
            let output = launched(folder, (launcher, RANKS), &program, Some(&["--quiet"]), &[]);
            assert_eq!((output.status, &output.stdout), (alone.status, &alone.stdout), "{output:?}");
            assert!(output.status.success(), "{output:?}");
            let all: Vec<PathBuf> = (0..RANKS).map(|rank| trace(folder, rank)).collect();
            for (rank, trace) in all.iter().enumerate() {
                let measured = measured(folder, rank);
                let info = info(trace);
                assert_eq!(info["mpi"]["family"], family, "{info}");
                assert_eq!((&info["mpi"]["rank"], &info["mpi"]["size"]), (&rank.into(), &RANKS.into()));
                assert_eq!(info["program"]["rank"], rank);
                assert!(info["mpi_note"].is_null(), "{info}");
                // And MPI_Finalize.
                let events = dump(trace);
                assert_eq!(count(&events, "omptrace_call_begin"), measured.calls + 1, "{events:?}");
                assert_eq!(count(&events, "omptrace_call_end"), measured.calls + 1, "{events:?}");
                let stats = stats(std::slice::from_ref(trace));
                accounts_add_up(&stats).expect("sums");
                let found = seconds(&stats, communicates);
                let difference = (found - measured.communication).abs();
                assert!(
                    difference < 0.02 * measured.communication + 0.002,
                    "{found} {}",
                    measured.communication
                );
                let found = seconds(&stats, |cause| cause == "mpi_other_ns");
                assert!(found >= 0.98 * measured.other - 0.002, "{found} {}", measured.other);
                let check = omptrace([Path::new("check"), trace]);
                assert!(check.status.success(), "{check:?}");
            }
            // Rank 0 waits for a tenth of a second.
            let first = stats(&all[..1]);
            assert!(seconds(&first, communicates) > 0.09, "{first}");
            let blamed = first["blame"].as_array().expect("rows").iter();
            let mut of_mpi =
                blamed.filter(|row| row["cause"].as_str().is_some_and(|cause| cause.starts_with("mpi")));
            assert!(of_mpi.any(|row| row["construct"] == "MPI_Recv" && !row["line"].is_null()), "{first}");
            let whole = stats(&all);
            accounts_add_up(&whole).expect("sums");
            waits_are_told(&whole, all.len());
            // For `diff`, the ranks are one run.
            let ranks = || all.iter().map(PathBuf::as_path);
            let words = ["diff", "--json"].map(Path::new).into_iter().chain(ranks());
            let compared = omptrace(words.chain([Path::new("--")]).chain(ranks()));
            let compared: Value = serde_json::from_slice(&compared.stdout).expect("JSON");
            for set in ["before", "after"] {
                assert_eq!(compared[set]["runs"].as_array().map(Vec::len), Some(1), "{compared}");
            }
        }
    }
}

/// Even if the OpenMP runtime, which joins the session of MPI later, never starts a worker.
#[test]
fn it_is_known_how_long_other_programs_had_the_cpu_of_a_rank() {
    for (compiler, launcher, _) in LIBRARIES {
        let program = compile(SOURCE, compiler, &[]);
        let traces = Traces::folder();
        let folder = traces.path();
        let mut command = launch(folder, (launcher, RANKS), &program, Some(&["--quiet"]), &[]);
        let output = command.env("OMP_THREAD_LIMIT", "1").output().expect("the launcher can be run");
        assert!(output.status.success(), "{output:?}");
        for rank in 0..RANKS {
            let reader = Reader::open(&trace(folder, rank)).expect("a trace");
            assert!(reader.metadata().runtime.is_some(), "OpenMP takes part");
            let times = reader.metadata().cpu_time.as_ref().expect("CPU times");
            assert!(times.delay_ns.is_some(), "{times:?}");
        }
    }
}

#[test]
fn a_job_that_aborts_leaves_its_calls() {
    for (compiler, launcher, _) in LIBRARIES {
        let program = compile(SOURCE, compiler, &[]);
        let traces = Traces::folder();
        let folder = traces.path();
        let alone = launched(folder, (launcher, RANKS), &program, None, &["abort"]);
        let output = launched(folder, (launcher, RANKS), &program, Some(&["--quiet"]), &["abort"]);
        assert_eq!(output.status, alone.status, "{output:?}");
        for rank in 0..RANKS {
            let events = dump(&trace(folder, rank));
            // The last call has no end. Others than the first may be ended before they make it.
            let begins = count(&events, "omptrace_call_begin");
            let calls = measured(folder, rank).calls;
            let expected = if rank == 0 { calls + 2..=calls + 2 } else { calls + 1..=calls + 2 };
            assert!(expected.contains(&begins), "{begins} {calls}");
        }
    }
}

#[test]
fn nothing_of_mpi_is_recorded_where_that_is_not_wanted() {
    let (compiler, launcher, _) = LIBRARIES[1];
    let program = compile(SOURCE, compiler, &[]);
    let traces = Traces::folder();
    let output =
        launched(traces.path(), (launcher, RANKS), &program, Some(&["--quiet", "--mpi", "off"]), &[]);
    assert!(output.status.success(), "{output:?}");
    let info = info(&trace(traces.path(), 0));
    assert!(info["mpi"].is_null() && !info["mpi_note"].is_null(), "{info}");
}

/// `mpirun omptrace record ./app`: the traces of all ranks are summarised once, where rank 0 finds them.
#[test]
fn rank_0_speaks_for_all_ranks_that_are_recorded_one_by_one() {
    for (compiler, launcher, name) in LIBRARIES {
        let program = compile(SOURCE, compiler, &["-fno-openmp"]);
        let cases = [
            ("all", "2 ranks", "omptrace report"),
            ("$OMPI_COMM_WORLD_RANK$PMI_RANK", "rank 0 of 2", "omptrace stats"),
        ];
        for (place, of, next) in cases {
            let traces = Traces::folder();
            let folder = traces.path();
            let script = folder.join("recorded.sh");
            let (omptrace, program) = (omptrace_program().display().to_string(), program.display());
            let output = format!("{place}/rank%r.omptrace");
            let text = format!(
                "#!/bin/sh\nmkdir -p {place}\nexec {omptrace} record -o \"{output}\" -- {program} \"$@\"\n"
            );
            fs::write(&script, text).expect("the folder is ours");
            fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("the file is ours");
            let output = launched(folder, (launcher, RANKS), &script, None, &[]);
            assert!(output.status.success(), "{output:?}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains(of) && said.contains(next), "{name}, {place}: {said}");
            assert_eq!(said.matches("omptrace view").count(), 1, "{name}, {place}: {said}");
        }
    }
}

/// Rank 0 waits for a message that rank 1 sends after a tenth of a second.
fn waits_are_told(whole: &Value, ranks: usize) {
    let waits = seconds(whole, |cause| cause == "mpi_wait_ns");
    assert!(waits > 0.09, "{ranks} ranks wait {waits} s: {}", whole["accounting"]);
    let unknown = seconds(whole, |cause| cause == "mpi_ns");
    assert_eq!(unknown, 0.0, "{}", whole["accounting"]);
    let blamed = whole["blame"].as_array().expect("rows");
    let is_wait = |row: &Value| row["cause"] == "mpi_wait" && row["construct"] == "MPI_Recv wait";
    assert!(blamed.iter().any(is_wait), "{}", whole["blame"]);
}

#[test]
fn all_messages_of_a_job_are_matched() {
    const RANKS: usize = 4;
    for (compiler, launcher, family) in LIBRARIES {
        let program = compile("tests/programs/mpi_messages.c", compiler, &[]);
        let traces = Traces::folder();
        let folder = traces.path();
        let output = launched(folder, (launcher, RANKS), &program, Some(&["--quiet"]), &[]);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stdout).expect("text");
        let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(said.len(), RANKS, "{said:?}");
        let matched = matched(folder, RANKS);
        for of_rank in &said {
            let number = |name: &str| of_rank[name].as_u64().unwrap_or_else(|| panic!("{name}: {of_rank}"));
            let counts = counted(of_rank);
            let found = &matched[number("rank") as usize];
            assert_eq!(found.counts, counts, "{family}: {of_rank}");
            let alone = (found.unmatched_sends.count, found.unmatched_receives.count);
            let open = (found.open_requests, found.open_communicators);
            assert_eq!((alone, open), ((0, 0), (0, 0)), "{family}: {of_rank}");
        }

        let all: Vec<PathBuf> = (0..RANKS).map(|rank| trace(folder, rank)).collect();
        let some = stats(&[&all[..1], &all[2..]].concat());
        assert!(seconds(&some, |cause| cause == "mpi_ns") > 0.0, "{}", some["accounting"]);
        assert!(some["accounting"]["mpi_wait_ns"].is_null(), "{}", some["accounting"]);
        let note = "because the traces of 1 of 4 ranks are missing";
        assert!(some["notes"].to_string().contains(note), "{}", some["notes"]);
        let check = omptrace([&[PathBuf::from("check")], &all[..]].concat());
        assert!(check.status.success(), "{check:?}");
        assert!(!String::from_utf8_lossy(&check.stdout).contains("mpi_"), "{check:?}");
        let file = folder.join("all.json");
        convert(folder, "chrome", &file, &[]);
        let text = fs::read_to_string(&file).expect("a file");
        assert!(text.contains("MPI_Sendrecv wait"), "{family}: no wait in the timeline");
        let received: u64 = matched.iter().map(|of_rank| of_rank.counts.receives).sum();
        arrows_join_processes(&serde_json::from_str(&text).expect("JSON"), received);
        archive_has_messages(folder, &matched);
    }
}

/// Each message is an arrow, and those between ranks are between processes.
fn arrows_join_processes(timeline: &Value, messages: u64) {
    let events = timeline["traceEvents"].as_array().expect("events");
    let ends = |phase: &str| -> BTreeMap<String, u64> {
        let of_message = |event: &&Value| event["ph"] == phase && event["name"] == "mpi_message";
        let all = events.iter().filter(of_message);
        all.map(|event| (event["id"].to_string(), event["pid"].as_u64().expect("a number"))).collect()
    };
    let (sources, targets) = (ends("s"), ends("f"));
    assert_eq!((sources.len() as u64, targets.len() as u64), (messages, messages));
    let is_between = |(id, pid): (&String, &u64)| sources[id] != *pid;
    assert!(targets.iter().filter(|(id, pid)| is_between((id, pid))).count() > targets.len() / 2);
    let named = |name: &str| events.iter().any(|event| event["args"]["comm"] == name);
    assert!(named("MPI_COMM_WORLD"), "communicators have names");
}

/// The archive is sound, and has a record for each end of each message and each operation.
fn archive_has_messages(folder: &Path, matched: &[RankMessages]) {
    let archive = folder.join("archive");
    convert(folder, "otf2", &archive, &[]);
    let anchor = archive.join("traces.otf2");
    assert_sound(&anchor);
    let events = printed(&anchor, &[]);
    let count = |names: &[&str]| {
        let of_line = |line: &&str| line.split_whitespace().next().is_some_and(|name| names.contains(&name));
        events.lines().filter(of_line).count() as u64
    };
    let sum = |number: fn(&MessageCounts) -> u64| matched.iter().map(|it| number(&it.counts)).sum::<u64>();
    assert_eq!(count(&["MPI_SEND", "MPI_ISEND"]), sum(|counts| counts.sends));
    assert_eq!(count(&["MPI_RECV", "MPI_IRECV"]), sum(|counts| counts.receives));
    let ends = count(&["MPI_COLLECTIVE_END", "NON_BLOCKING_COLLECTIVE_COMPLETE"]);
    assert_eq!(ends, sum(|counts| counts.collectives));
    let definitions = printed(&anchor, &["-G"]);
    assert!(
        definitions.contains("COMM_LOCATIONS") && definitions.contains("MPI_COMM_WORLD"),
        "{definitions}"
    );
}
