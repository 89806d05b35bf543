//! Every MPI function that the adapter wraps, called in each binding and family of MPI libraries, without any MPI library.

use std::collections::BTreeMap;
use std::process::Command;

use omptrace_mpi_api::Class;
use omptrace_tests::env::omptrace_program;
use omptrace_tests::mpi_player::{BYTES, COUNT, FAMILIES, Family, PEER, PlayedCall, TAG};
use omptrace_tests::sanitized;
use omptrace_tests::trace::{Traces, dump, info};
use serde_json::Value;

/// What the library and the program do, as `tests/programs/mpi_player.h` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Succeeding = 0,
    Failing = 1,
    /// No call wants a status or names the source and the tag of a message.
    Ignoring = 2,
}

const ROUNDS: [Round; 3] = [Round::Succeeding, Round::Failing, Round::Ignoring];
/// How many threads make all calls at the same time.
const THREADS: usize = 3;
/// The error code of failing calls.
const FAILURE: i32 = 15;

/// The beginnings and ends of calls in the trace of a played program, in order, by thread.
fn recorded(family: &Family) -> BTreeMap<u64, Vec<[Value; 2]>> {
    let traces = Traces::folder();
    let folder = traces.path();
    let program = family.build(folder);
    let mut arguments = vec![THREADS.to_string()];
    arguments.extend(ROUNDS.map(|round| (round as i32).to_string()));
    let alone = Command::new(&program).args(&arguments).output().expect("the program can be run");
    assert!(alone.status.success() && alone.stdout.is_empty(), "{alone:?}");
    let trace = folder.join("run.omptrace");
    let traced = sanitized::command(&program);
    let mut command = Command::new(omptrace_program());
    command
        .args(["record", "--quiet", "--mpi", "on", "-o"])
        .arg(&trace)
        .arg("--")
        .arg(traced.get_program())
        .args(traced.get_args())
        .args(&arguments);
    let output = command.output().expect("omptrace can be run");
    assert!(output.status.success(), "{output:?}");
    let mpi = &info(&trace)["mpi"];
    assert_eq!((&mpi["family"], &mpi["rank"], &mpi["size"]), (&family.name.into(), &0.into(), &4.into()));
    let mut threads = BTreeMap::<u64, Vec<[Value; 2]>>::new();
    let mut begins = BTreeMap::new();
    for event in dump(&trace) {
        let thread = event["stream"].as_u64().expect("each event is in a stream");
        match event["event"].as_str() {
            Some("omptrace_call_begin") => assert_eq!(begins.insert(thread, event), None),
            Some("omptrace_call_end") => {
                let begin = begins.remove(&thread).expect("the call has begun");
                threads.entry(thread).or_default().push([begin, event]);
            }
            _ => {}
        }
    }
    assert!(begins.is_empty(), "{begins:?}");
    threads
}

/// What a call is recorded with.
fn is_right(call: &PlayedCall, round: Round, [begin, end]: &[Value; 2]) -> bool {
    let class = call.function.class;
    let receives = matches!(class, Class::Receive | Class::NonblockingReceive);
    let sends = matches!(class, Class::Send | Class::NonblockingSend);
    let is_open = round == Round::Ignoring && call.function.name != "MPI_Mrecv";
    let (peer, tag) = if receives && is_open { (-1, -1) } else { (PEER, TAG) };
    let names_message = !(sends || receives)
        || !has_communicator(call)
        || begin["peer"] == peer
            && begin["tag"] == tag
            && begin["count"] == COUNT
            && begin["datatype"] != "0x0";
    let is_failure = round == Round::Failing;
    let result = if is_failure { FAILURE } else { 0 };
    let has_status = class == Class::Receive && !is_failure;
    let status = [("peer", PEER), ("tag", TAG), ("bytes", BYTES)];
    names_message
        && end["result"] == result
        && (!has_status || status.iter().all(|(name, value)| end[*name] == *value))
}

fn has_communicator(call: &PlayedCall) -> bool {
    call.function.parameters().any(|parameter| parameter.kind == "COMMUNICATOR")
}

#[test]
fn every_function_is_recorded_once_and_passed_on_unchanged() {
    for family in &FAMILIES {
        let recorded = recorded(family);
        let calls = family.calls();
        // Of other functions, only objects are recorded.
        let calls = calls.iter().filter(|call| call.function.class != Class::Other);
        for (thread, rows) in &recorded {
            let is_first = Some(thread) == recorded.keys().next();
            let makes = |call: &&PlayedCall| is_first || !call.is_made_by_first_thread_only();
            let expected =
                ROUNDS.iter().flat_map(|round| calls.clone().filter(makes).map(|call| (call, *round)));
            let expected: Vec<_> = expected.collect();
            for (place, ((call, round), rows)) in expected.iter().zip(rows).enumerate() {
                let names = rows.each_ref().map(|row| row["function_name"].as_str());
                let case =
                    || format!("{} {thread} {round:?} {place}: {}: {rows:?}", family.name, call.symbol());
                assert_eq!(names, [Some(call.function.name); 2], "{}", case());
                assert!(is_right(call, *round, rows), "{}", case());
            }
            assert_eq!(expected.len(), rows.len(), "{} {thread}", family.name);
        }
        assert_eq!(recorded.len(), THREADS, "{}", family.name);
    }
}
