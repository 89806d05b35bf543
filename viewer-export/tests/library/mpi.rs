//! Messages between the processes of an MPI job, from invented traces of two hosts.

use std::fmt::Write;
use std::path::PathBuf;

use omptrace_timeline::model::*;
use omptrace_timeline::{Report, replay};
use omptrace_trace_format::Reader;

use crate::fixture;

/// Collects MPI events.
#[derive(Default)]
struct Calls {
    process: u32,
    communicators: Vec<(u32, Communicator)>,
    events: Vec<(u32, Ns, MpiEvent)>,
    texts: Vec<String>,
    notes: Vec<String>,
}

impl Sink for Calls {
    fn wants(&self) -> Wants {
        Wants::MPI
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Process(process) => self.process = process.id.0,
            Item::Communicator(it) => self.communicators.push((self.process, (*it).clone())),
            Item::Mpi(at, event) => self.events.push((self.process, at.time, **event)),
            Item::Note(_, text) => self.notes.push((*text).to_owned()),
            Item::Enter(enter) => {
                let comm = enter.arguments.iter().find(|argument| argument.name == "comm");
                if let Some(Argument { value: Value::Text(name), .. }) = comm {
                    self.texts.push((*name).to_owned());
                }
            }
            _ => {}
        }
    }
}

fn calls(text: &str) -> (Calls, Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    let mut found = Calls::default();
    let report = replay(&inputs, &mut found, &mut |_| {});
    (found, report)
}

fn fixture_text() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mpi_messages.trace");
    std::fs::read_to_string(path).expect("a fixture")
}

#[test]
fn both_ends_of_a_message_have_its_number_and_communicators_have_one_on_all_ranks() {
    let (found, _) = calls(&fixture_text());
    let names: Vec<(u32, u32, &str)> =
        found.communicators.iter().map(|(process, it)| (*process, it.id.0, &it.name[..])).collect();
    let of = |process| {
        let own = names.iter().filter(move |(of, ..)| *of == process);
        own.map(|(_, id, name)| (*id, *name)).collect::<Vec<_>>()
    };
    assert_eq!(of(0).len(), 3, "{names:?}");
    let shared: Vec<_> = of(0).into_iter().filter(|own| of(1).contains(own)).collect();
    assert_eq!(shared.iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["MPI_COMM_WORLD", "halo"]);
    let halo = &found.communicators.iter().find(|(_, it)| it.name == "halo").expect("it").1;
    assert_eq!((&halo.members[..], halo.kind), (&[0, 1][..], CommunicatorKind::Made));

    let ends = |is_send: bool| -> Vec<(u32, u64, i32, u64)> {
        let events = found.events.iter();
        let messages = events.filter(|(.., event)| matches!(event, MpiEvent::Send(..)) == is_send);
        messages
            .filter_map(|(process, _, event)| {
                let message = event.message()?;
                let number = message.other.expect("the other end").message.get();
                assert_eq!(message.communicator, halo.id);
                assert_eq!(message.peer_in_world, Some(1 - process));
                Some((*process, number, message.tag, message.bytes))
            })
            .collect()
    };
    let mut sent = ends(true);
    sent.sort_unstable_by_key(|(_, number, ..)| *number);
    let mut received = ends(false);
    received.sort_unstable_by_key(|(_, number, ..)| *number);
    assert_eq!(sent, [(1, 1, 4, 16), (0, 2, 3, 32)]);
    assert_eq!(received, [(0, 1, 4, 16), (1, 2, 3, 32)]);

    // Posted, complete and cancelled requests.
    let of_first = |is_one: fn(&MpiEvent) -> bool| {
        found.events.iter().filter(|(process, _, event)| *process == 0 && is_one(event)).count()
    };
    assert_eq!(of_first(|event| matches!(event, MpiEvent::SendComplete(_))), 1);
    assert_eq!(of_first(|event| matches!(event, MpiEvent::ReceiveRequest(_))), 2);
    assert_eq!(of_first(|event| matches!(event, MpiEvent::Cancelled(_))), 1);
    assert_eq!(of_first(|event| matches!(event, MpiEvent::Freed(_))), 1);

    let parts = found.events.iter().filter_map(|(process, _, event)| match event {
        MpiEvent::CollectiveEnd(part) | MpiEvent::CollectiveComplete(part, _) => {
            Some((*process, part.number.get(), part.operation(), part.sent, part.received))
        }
        _ => None,
    });
    let expected = [(0, 1, 32, 16), (0, 2, 0, 0), (1, 1, 0, 16), (1, 2, 0, 0)];
    let operations = |number| if number == 1 { "bcast" } else { "barrier" };
    let mut parts: Vec<_> = parts.collect();
    // Numbers are assigned by communicator, starting with `MPI_COMM_WORLD`.
    parts.iter_mut().for_each(|part| part.1 = 3 - part.1);
    let expected = expected.map(|(process, number, sent, received)| {
        (process, number, operations(number).to_owned(), sent, received)
    });
    assert_eq!(parts, expected);
}

#[test]
fn communicators_have_their_names_without_the_other_ranks() {
    let text = fixture_text();
    let alone = &text[..text.find("process second").expect("the second")];
    let (found, _) = calls(alone);
    assert!(found.communicators.is_empty() && found.events.is_empty(), "{:?}", found.events);
    for name in ["MPI_COMM_WORLD", "halo"] {
        assert!(found.texts.iter().any(|text| text == name), "{:?}", found.texts);
    }
}

const SKEW_NS: i64 = 5_000_000;
const SECONDS: i64 = 10;

/// The contents of the traces of two hosts.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Half of the round-trip time in measurements at the start and at the end.
    half_round_trip_ns: Option<i64>,
    /// Whether the second rank sends messages, too.
    both_ways: bool,
}

/// The time of day on the second host is 5 ms ahead, and its clock is faster by 40 millionths. The ranks exchange a
/// message each second.
fn two_hosts(known: Known) -> String {
    const RAW_AT_START: i64 = 1_000_000;
    let shown = |rank: usize, time: i64| if rank == 0 { time } else { time + time / 25_000 };
    let mut text = String::new();
    for rank in 0..2_usize {
        let start = SKEW_NS * rank as i64;
        let _ = writeln!(text, "process p{rank} pid=4{rank} rank={rank} start={start}");
        let _ = writeln!(
            text,
            r#"metadata {{"mpi": {{"rank": {rank}, "size": 2}}, "machine": {{"host": "h{rank}", "boot": "b{rank}"}}}}"#
        );
        let _ = writeln!(text, "0 1 thread_info os_tid=4{rank}");
        let _ = writeln!(text, "1 1 call_begin class=14 function=250 domain=1 peer=-4 tag=-4");
        let _ = writeln!(text, "2 1 object_defined domain=1 kind=1 handle=0x10 facts=2,{rank},0,0,1");
        let _ = writeln!(text, "3 1 call_end class=14 function=250 domain=1 peer=-4 tag=-4");
        if let Some(half) = known.half_round_trip_ns.filter(|_| rank == 0) {
            // The answer was sent at the start of the round trip, which is the worst case.
            let mut measure = |time: i64| {
                let (own, peer) = (RAW_AT_START + time + half, RAW_AT_START + shown(1, time + 10));
                let trip = 2 * half;
                let _ = writeln!(
                    text,
                    "{} 1 clock_measured peer=1 own_ns={own} peer_ns={peer} round_trip_ns={trip}",
                    time + trip
                );
            };
            measure(1_000);
        }
        let mut lines: Vec<(i64, String)> = Vec::new();
        for second in 0..=SECONDS {
            let time = 1_000_000 + second * 1_000_000_000;
            for (from, time) in [(0, time), (1, time + 100_000)] {
                if from == 1 && !known.both_ways {
                    continue;
                }
                let peer = 1 - rank;
                let (begin, end) =
                    if from == rank { (time, time + 1_000) } else { (time - 1_000, time + 20_000) };
                let (begin, end) = (shown(rank, begin), shown(rank, end));
                if from == rank {
                    lines.push((
                        begin,
                        format!("call_begin class=1 function=346 domain=1 object=0x10 peer={peer} tag=1"),
                    ));
                    lines.push((end, "call_end class=1 function=346 domain=1 peer=-4 tag=-4".to_owned()));
                } else {
                    lines.push((
                        begin,
                        format!("call_begin class=2 function=313 domain=1 object=0x10 peer={peer} tag=1"),
                    ));
                    lines.push((end, format!("call_end class=2 function=313 domain=1 peer={peer} tag=1")));
                }
            }
        }
        for (time, line) in lines {
            let _ = writeln!(text, "{time} 1 {line}");
        }
        if let Some(half) = known.half_round_trip_ns.filter(|_| rank == 0) {
            let time = SECONDS * 1_000_000_000 + 10_000_000;
            let (own, peer) = (RAW_AT_START + time + half, RAW_AT_START + shown(1, time + 10));
            let _ = writeln!(
                text,
                "{} 1 clock_measured peer=1 own_ns={own} peer_ns={peer} round_trip_ns={}",
                time + 2 * half,
                2 * half
            );
        }
    }
    text
}

/// The largest error of the second rank's times relative to the first one's, in nanoseconds. Each message takes 20
/// microseconds.
fn error_ns(found: &Calls) -> i64 {
    let second = found.events.iter().filter(|(process, ..)| *process == 1);
    let errors = second.filter_map(|(_, time, event)| {
        let other = event.message()?.other.expect("the other end").time;
        let took = if matches!(event, MpiEvent::Receive(..)) { time - other } else { other - time };
        Some((took - 20_000).abs())
    });
    let errors: Vec<i64> = errors.collect();
    assert!(errors.len() as i64 > SECONDS, "{errors:?}");
    errors.into_iter().max().expect("messages")
}

fn is_in_order(found: &Calls) -> bool {
    found.events.iter().all(|(_, time, event)| match event {
        MpiEvent::Receive(message, _) => message.other.is_some_and(|other| other.time <= *time),
        _ => true,
    })
}

#[test]
fn clocks_of_hosts_are_aligned_by_measurements_to_half_the_round_trip() {
    let half = 15_000;
    let known = Known { half_round_trip_ns: Some(half), both_ways: false };
    let (found, report) = calls(&two_hosts(known));
    let error = error_ns(&found);
    // Up to a nanosecond per rounding.
    assert!(error <= half + 4, "{error}");
    assert!(is_in_order(&found));
    assert!(report.uncertainty_ns >= error as u64 && report.uncertainty_ns <= 2 * half as u64, "{report:?}");
    let note = "the clocks of the 2 hosts were aligned by 2 measurements and by MPI messages";
    assert!(found.notes.iter().any(|text| text.starts_with(note)), "{:?}", found.notes);
}

#[test]
fn messages_both_ways_align_clocks_to_their_latency() {
    let (found, report) = calls(&two_hosts(Known { both_ways: true, ..Known::default() }));
    let error = error_ns(&found);
    assert!(error <= 20_004, "{error}");
    assert!(is_in_order(&found));
    assert!(report.uncertainty_ns >= error as u64 && report.uncertainty_ns <= 40_004, "{report:?}");
}

#[test]
fn messages_one_way_only_keep_their_order() {
    let (found, report) = calls(&two_hosts(Known::default()));
    assert!(is_in_order(&found));
    // Only the time of day limits the difference of the clocks.
    assert!(found.notes.iter().any(|text| text.contains("time of day")), "{:?} {report:?}", found.notes);
}
