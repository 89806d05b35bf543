//! Ranks that are made up call by call, with waits of known lengths.

mod gaps;
mod graph;
mod windows;

use std::sync::Arc;

use omptrace_trace_format::event::{CallBegin, CallEnd, CallObjects, Event, ObjectDefined, ObjectFreed};
use omptrace_trace_format::field::{Address, CallClass, CallRole, ObjectKind, Text};

use super::call_list::CallList;
use super::calls::Calls;
use super::forbidden::ThreadRules;
use super::joints::{Joint, WaitKind};
use super::process_calls::ProcessCalls;
use super::windows::{Matched, Matching, Wanted};
use super::{LongestOperation, MessageCounts, PairMessages, RankMessages, Ranks};
use crate::model::Ns;

const WORLD: u64 = 0x100;
const DOUBLE: u64 = 0x200;
const NONE: i32 = -4;
const ANY: i32 = -1;
const PROC_NULL: i32 = -2;

/// The calls of one rank, on one thread unless a test says otherwise.
struct Rank {
    calls: Calls,
    thread: usize,
    name: &'static str,
    events: Vec<Recorded>,
}

/// An event: its thread and time, and the latest time so far.
type Recorded = (usize, Ns, Ns, Event<'static>);

/// A call's arguments that matter: communicator or other object, peer, tag, number of doubles.
type Begin = (u64, i32, i32, u64);
/// A status: peer, tag, bytes; or nothing.
type Status = Option<(i32, i32, u64)>;

impl Rank {
    fn new(rank: u32, size: u32) -> Rank {
        let list = CallList::new(Some(Arc::default()));
        let calls = Calls::new(rank, 2, ThreadRules::default(), list);
        let mut it = Rank { calls, thread: 0, name: "", events: Vec::new() };
        it.begin(0, "MPI_Init", (0, NONE, NONE, 0));
        let members: Vec<u64> = (0..u64::from(size)).collect();
        it.communicator(WORLD, 0, rank, &members);
        it.communicator(WORLD + 1, 0, 0, &[rank.into()]);
        it.define(ObjectKind::datatype, DOUBLE, 0, &[8]);
        it.end(1, 0, None);
        it
    }

    fn number(&self) -> (u32, CallClass) {
        let (number, function) = omptrace_mpi_api::functions().find(|(_, it)| it.name == self.name).unwrap();
        (number, CallClass(function.class as u32))
    }

    fn event(&mut self, time: Ns, event: impl Into<Event<'static>>) {
        let event = event.into();
        let latest = self.events.last().map_or(time, |(.., latest, _)| time.max(*latest));
        self.calls.event(self.thread, time, &event);
        self.events.push((self.thread, time, latest, event));
    }

    fn begin(&mut self, time: Ns, name: &'static str, (object, peer, tag, count): Begin) {
        self.name = name;
        let (function, class) = self.number();
        self.event(
            time,
            CallBegin {
                class,
                function,
                domain: 1,
                object: Address(object),
                peer,
                tag,
                count,
                datatype: Address(DOUBLE),
                codeptr_ra: Address(0x1000),
            },
        );
    }

    fn end(&mut self, time: Ns, object: u64, status: Status) {
        let (function, class) = self.number();
        let (peer, tag, bytes) = status.unwrap_or((NONE, NONE, 0));
        let (object, codeptr_ra) = (Address(object), Address(0x1000));
        self.event(
            time,
            CallEnd { class, function, domain: 1, object, peer, tag, bytes, result: 0, codeptr_ra },
        );
    }

    fn objects(&mut self, role: CallRole, numbers: &[u64]) {
        self.event(0, CallObjects { role, numbers: numbers.to_vec().into() });
    }

    fn define(&mut self, kind: ObjectKind, handle: u64, parent: u64, facts: &[u64]) {
        let (handle, parent) = (Address(handle), Address(parent));
        let facts = facts.to_vec().into();
        self.event(0, ObjectDefined { domain: 1, kind, handle, parent, facts, name: Text(None) });
    }

    fn communicator(&mut self, handle: u64, parent: u64, rank: u32, members: &[u64]) {
        let facts = [&[members.len() as u64, rank.into(), 0], members].concat();
        self.define(ObjectKind::communicator, handle, parent, &facts);
    }

    fn call(&mut self, (from, to): (Ns, Ns), name: &'static str, begin: Begin, object: u64, status: Status) {
        self.begin(from, name, begin);
        self.end(to, object, status);
    }

    fn send(&mut self, when: (Ns, Ns), to: i32, tag: i32, count: u64) {
        self.call(when, "MPI_Send", (WORLD, to, tag, count), 0, None);
    }

    fn receive(&mut self, when: (Ns, Ns), (from, tag): (i32, i32), status: Status) {
        self.call(when, "MPI_Recv", (WORLD, from, tag, 9), 0, status);
    }

    /// Waits for requests, and gets these statuses.
    fn wait_all(&mut self, (from, to): (Ns, Ns), requests: &[(u64, i32, i32, u64)]) {
        self.begin(from, "MPI_Waitall", (0, NONE, NONE, 0));
        let handles: Vec<u64> = requests.iter().map(|request| request.0).collect();
        // Many are told in parts.
        handles.chunks(3).for_each(|part| self.objects(CallRole::awaited, part));
        let signed = |number: i32| i64::from(number) as u64;
        let words = requests
            .iter()
            .flat_map(|(handle, peer, tag, bytes)| [*handle, signed(*peer), signed(*tag), *bytes]);
        let words: Vec<u64> = words.collect();
        self.objects(CallRole::completed, &words);
        self.end(to, 0, None);
    }

    fn split(&mut self, when: (Ns, Ns), handle: u64, parent: u64, rank: u32, members: &[u64]) {
        self.begin(when.0, "MPI_Comm_split", (parent, NONE, NONE, 0));
        self.communicator(handle, parent, rank, members);
        self.end(when.1, handle, None);
    }

    fn finalize(mut self) -> ProcessCalls {
        self.call((900, 901), "MPI_Finalize", (0, NONE, NONE, 0), 0, None);
        self.calls.finish()
    }
}

fn all(mut ranks: Vec<Rank>) -> Vec<RankMessages> {
    ranks.iter_mut().for_each(|rank| rank.call((900, 901), "MPI_Finalize", (0, NONE, NONE, 0), 0, None));
    let events: Vec<Vec<Recorded>> = ranks.iter().map(|rank| rank.events.clone()).collect();
    let whole = matched(ranks.into_iter().map(|rank| rank.calls.finish()).collect(), Wanted::Events).results;
    windows::are_the_same(&whole, &events);
    whole
}

fn matched(processes: Vec<ProcessCalls>, wanted: Wanted) -> Matched {
    let size = processes.len();
    let mut matching = Matching::of(size, (0..size).collect(), wanted);
    matching.window(processes, None, &mut |_, _| {});
    matching.finish()
}

fn two(make: impl Fn(&mut Rank, &mut Rank)) -> Vec<RankMessages> {
    let (mut first, mut second) = (Rank::new(0, 2), Rank::new(1, 2));
    make(&mut first, &mut second);
    all(vec![first, second])
}

fn waits(of: &RankMessages) -> Vec<(Ns, Ns, u32, WaitKind)> {
    let wait = |it: &Joint| (it.begin, it.until, it.rank, it.kind);
    of.joints.all().iter().map(wait).collect()
}

fn is_all_matched(all: &[RankMessages]) -> bool {
    all.iter()
        .all(|it| it.unmatched_sends.count == 0 && it.unmatched_receives.count == 0 && it.open_requests == 0)
}

#[test]
fn a_late_sender_is_waited_for_until_it_sends() {
    let all = two(|first, second| {
        first.receive((100, 550), (1, 7), Some((1, 7, 24)));
        second.send((500, 510), 0, 7, 3);
    });
    assert!(is_all_matched(&all));
    assert_eq!(waits(&all[0]), [(100, 500, 1, WaitKind::LateSender)]);
    assert_eq!(waits(&all[1]), []);
    let received = MessageCounts { receives: 1, received_bytes: 24, ..MessageCounts::default() };
    assert_eq!(all[0].counts, received);
    let sent = MessageCounts { sends: 1, sent_bytes: 24, ..MessageCounts::default() };
    assert_eq!(all[1].counts, sent);
}

#[test]
fn a_late_receiver_is_waited_for_only_by_a_send_that_has_not_returned() {
    let all = two(|first, second| {
        first.send((100, 110), 1, 0, 1);
        first.send((200, 450), 1, 0, 1);
        second.receive((150, 160), (0, 0), Some((0, 0, 8)));
        second.receive((400, 440), (0, 0), Some((0, 0, 8)));
    });
    assert!(is_all_matched(&all));
    assert_eq!(waits(&all[0]), [(200, 400, 1, WaitKind::LateReceiver)]);
    assert_eq!(waits(&all[1]), []);
}

/// The message of tag 1 is there while that of tag 2 is waited for. Where the first was asked for before, its order is right.
#[test]
fn an_exchange_also_waits_for_the_receiver_of_its_message() {
    let exchange = |it: &mut Rank, when: (Ns, Ns), status: Status| {
        it.call(when, "MPI_Sendrecv", (WORLD, 1, 7, 3), 0, status);
    };
    let to_nobody = Some((PROC_NULL, ANY, 0));
    let all = two(|sender, receiver| {
        exchange(sender, (200, 500), to_nobody);
        receiver.receive((400, 500), (0, 7), Some((0, 7, 24)));
        // The message is copied.
        exchange(sender, (600, 610), to_nobody);
        receiver.receive((700, 710), (0, 7), Some((0, 7, 24)));
    });
    assert_eq!(waits(&all[0]), [(200, 400, 1, WaitKind::LateReceiver)]);
    let all = two(|sender, receiver| {
        exchange(sender, (200, 500), Some((1, 8, 24)));
        receiver.send((300, 310), 0, 8, 3);
        receiver.receive((400, 500), (0, 7), Some((0, 7, 24)));
    });
    assert_eq!(waits(&all[0]), [(200, 400, 1, WaitKind::Several)]);
}

#[test]
fn a_wait_while_an_earlier_message_is_there_is_in_the_wrong_order() {
    for (asked_before, kind) in [(false, WaitKind::WrongOrder), (true, WaitKind::LateSender)] {
        let all = two(|first, second| {
            second.send((150, 151), 0, 1, 1);
            second.send((300, 301), 0, 2, 1);
            let nonblocking = (WORLD, 1, 1, 1);
            if asked_before {
                first.call((90, 91), "MPI_Irecv", nonblocking, 0xa0, None);
            }
            first.receive((100, 310), (1, 2), Some((1, 2, 8)));
            if !asked_before {
                first.call((320, 321), "MPI_Irecv", nonblocking, 0xa0, None);
            }
            first.wait_all((330, 331), &[(0xa0, 1, 1, 8)]);
        });
        assert!(is_all_matched(&all));
        assert_eq!(waits(&all[0]), [(100, 300, 1, kind)]);
    }
}

#[test]
fn messages_of_one_key_match_in_the_order_of_posting_also_from_any_source() {
    let mut ranks: Vec<Rank> = (0..3).map(|rank| Rank::new(rank, 3)).collect();
    ranks[1].send((200, 201), 0, 5, 1);
    ranks[1].send((300, 301), 0, 5, 2);
    ranks[2].send((100, 101), 0, 6, 1);
    ranks[0].receive((50, 120), (ANY, ANY), Some((2, 6, 8)));
    ranks[0].receive((130, 220), (1, ANY), Some((1, 5, 8)));
    ranks[0].receive((230, 320), (ANY, 5), Some((1, 5, 16)));
    let all = all(ranks);
    assert!(is_all_matched(&all));
    let late = WaitKind::LateSender;
    assert_eq!(waits(&all[0]), [(50, 100, 2, late), (130, 200, 1, late), (230, 300, 1, late)]);
}

#[test]
fn waiting_for_several_requests_is_for_the_last() {
    let mut ranks: Vec<Rank> = (0..3).map(|rank| Rank::new(rank, 3)).collect();
    let receive = |rank: &mut Rank, when, request, from| {
        rank.call((when, when + 1), "MPI_Irecv", (WORLD, from, 1, 1), request, None);
    };
    receive(&mut ranks[0], 10, 0xa0, 1);
    receive(&mut ranks[0], 12, 0xb0, 2);
    // Sends that are complete at once have one handle.
    for (when, to) in [(14, 1), (16, 2)] {
        ranks[0].call((when, when + 1), "MPI_Isend", (WORLD, to, 2, 1), 0xcc, None);
    }
    ranks[0].wait_all(
        (20, 400),
        &[(0xa0, 1, 1, 8), (0xb0, 2, 1, 8), (0xcc, PROC_NULL, ANY, 0), (0xcc, PROC_NULL, ANY, 0)],
    );
    for (rank, when) in [(1, 100), (2, 300)] {
        ranks[rank].send((when, when + 1), 0, 1, 1);
        ranks[rank].receive((when + 10, when + 20), (0, 2), Some((0, 2, 8)));
    }
    let all = all(ranks);
    assert!(is_all_matched(&all));
    assert_eq!(waits(&all[0]), [(20, 300, 2, WaitKind::Several)]);
}

#[test]
fn threads_may_wait_for_requests_of_one_handle_at_the_same_time() {
    let all = two(|first, second| {
        // Open MPI has one handle for all sends that are complete at once.
        for thread in [0, 1] {
            first.thread = thread;
            first.call((10, 11), "MPI_Isend", (WORLD, 1, thread as i32, 1), 0xcc, None);
        }
        first.thread = 0;
        first.begin(20, "MPI_Wait", (0, NONE, NONE, 0));
        first.objects(CallRole::awaited, &[0xcc]);
        first.thread = 1;
        first.wait_all((30, 31), &[(0xcc, PROC_NULL, ANY, 0)]);
        first.thread = 0;
        first.name = "MPI_Wait";
        first.objects(CallRole::completed, &[0xcc, PROC_NULL as u64, ANY as u64, 0]);
        first.end(40, 0, None);
        for tag in [0, 1] {
            second.receive((50, 51), (0, tag), Some((0, tag, 8)));
        }
    });
    assert!(is_all_matched(&all));
}

#[test]
fn a_request_that_a_call_leaves_open_can_be_waited_for_again() {
    let all = two(|first, second| {
        first.call((10, 11), "MPI_Irecv", (WORLD, 1, 1, 1), 0xa0, None);
        first.call((12, 13), "MPI_Irecv", (WORLD, 1, 2, 1), 0xb0, None);
        first.begin(20, "MPI_Waitany", (0, NONE, NONE, 0));
        first.objects(CallRole::awaited, &[0xa0, 0xb0]);
        first.objects(CallRole::completed, &[0xb0, 1, 2, 8]);
        first.end(60, 0, Some((1, 2, 8)));
        first.wait_all((70, 90), &[(0xa0, 1, 1, 8)]);
        second.send((15, 16), 0, 2, 1);
        second.send((80, 81), 0, 1, 1);
    });
    assert!(is_all_matched(&all));
}

#[test]
fn a_handle_that_another_thread_gets_meanwhile_is_another_request() {
    let all = two(|first, second| {
        first.call((10, 11), "MPI_Irecv", (WORLD, 1, 1, 1), 0xa0, None);
        first.begin(20, "MPI_Wait", (0, NONE, NONE, 0));
        first.objects(CallRole::awaited, &[0xa0]);
        first.thread = 1;
        first.call((55, 56), "MPI_Irecv", (WORLD, 1, 2, 1), 0xa0, None);
        first.thread = 0;
        first.name = "MPI_Wait";
        first.objects(CallRole::completed, &[0xa0, 1, 1, 8]);
        first.end(60, 0, Some((1, 1, 8)));
        first.wait_all((80, 120), &[(0xa0, 1, 2, 8)]);
        second.send((50, 51), 0, 1, 1);
        second.send((110, 111), 0, 2, 1);
    });
    assert!(is_all_matched(&all));
    let late = WaitKind::LateSender;
    assert_eq!(waits(&all[0]), [(20, 50, 1, late), (80, 110, 1, late)]);
}

#[test]
fn each_start_of_a_persistent_request_is_a_message() {
    let all = two(|first, second| {
        first.call((10, 11), "MPI_Recv_init", (WORLD, 1, 3, 2), 0xa0, None);
        second.call((10, 11), "MPI_Send_init", (WORLD, 0, 3, 2), 0xb0, None);
        for round in 0..3 {
            let when = 100 * (round + 1);
            for (rank, request, late) in [(&mut *first, 0xa0, 0), (&mut *second, 0xb0, 40)] {
                rank.begin(when + late, "MPI_Start", (request, NONE, NONE, 0));
                rank.objects(CallRole::started, &[request]);
                rank.end(when + late + 1, 0, None);
            }
            first.wait_all((when + 10, when + 50), &[(0xa0, 1, 3, 16)]);
            second.wait_all((when + 42, when + 43), &[(0xb0, 0, 3, 16)]);
        }
        for (rank, request) in [(first, 0xa0), (second, 0xb0)] {
            rank.begin(500, "MPI_Request_free", (request, NONE, NONE, 0));
            let handle = Address(request);
            rank.event(500, ObjectFreed { domain: 1, kind: ObjectKind::request, handle });
            rank.end(501, 0, None);
        }
    });
    assert!(is_all_matched(&all));
    assert_eq!((all[0].counts.receives, all[0].counts.received_bytes), (3, 48));
    assert_eq!((all[1].counts.sends, all[1].counts.sent_bytes), (3, 48));
    let late = WaitKind::LateSender;
    assert_eq!(waits(&all[0]), [(110, 140, 1, late), (210, 240, 1, late), (310, 340, 1, late)]);
}

#[test]
fn a_persistent_request_stays_the_same_where_its_handle_changes() {
    let all = two(|first, second| {
        let handles = [[0xa0, 0xb0], [0xa0, 0xb0], [0xc0, 0xa0]];
        for (place, handle) in (0..).zip(handles[0]) {
            second.call(
                (10 + place, 11 + place),
                "MPI_Bsend_init",
                (WORLD, 0, place as i32, 2),
                handle,
                None,
            );
        }
        for (round, when) in [(1, 100), (2, 200)] {
            let ([a, b], [c, d]) = (handles[round - 1], handles[round]);
            second.begin(when, "MPI_Startall", (0, NONE, NONE, 0));
            second.objects(CallRole::started, &[a, b]);
            if [a, b] != [c, d] {
                second.objects(CallRole::replaced, &[a, c, b, d]);
            }
            second.end(when + 1, 0, None);
            second.wait_all((when + 10, when + 20), &[(c, 0, 0, 16), (d, 0, 1, 16)]);
            first.receive((when, when + 1), (1, 0), Some((1, 0, 16)));
            first.receive((when + 2, when + 3), (1, 1), Some((1, 1, 16)));
        }
        for (when, request) in [(500, 0xc0), (502, 0xa0)] {
            second.begin(when, "MPI_Request_free", (request, NONE, NONE, 0));
            let handle = Address(request);
            second.event(when, ObjectFreed { domain: 1, kind: ObjectKind::request, handle });
            second.end(when + 1, 0, None);
        }
        second.call((600, 601), "MPI_Finalize", (0, NONE, NONE, 0), 0, None);
    });
    assert!(is_all_matched(&all));
    assert_eq!((all[1].counts.sends, all[1].counts.sent_bytes), (4, 64));
    assert_eq!((all[1].open_persistent, all[1].open_requests), (0, 0));
}

#[test]
fn nobody_gets_what_is_sent_to_no_process_or_cancelled() {
    let all = two(|first, second| {
        first.send((10, 11), PROC_NULL, 0, 1);
        first.receive((12, 13), (PROC_NULL, 0), Some((PROC_NULL, ANY, 0)));
        first.call((14, 15), "MPI_Irecv", (WORLD, 1, 4, 1), 0xa0, None);
        const CANCELLED: i32 = -5;
        first.wait_all((20, 21), &[(0xa0, CANCELLED, ANY, 0)]);
        first.receive((30, 60), (1, 4), Some((1, 4, 8)));
        second.send((50, 51), 0, 4, 1);
    });
    assert!(is_all_matched(&all));
    assert_eq!(waits(&all[0]), [(30, 50, 1, WaitKind::LateSender)]);
    assert_eq!((all[0].counts.sends, all[0].counts.receives), (0, 1));
}

#[test]
fn a_probe_waits_for_the_message_and_leaves_it() {
    let all = two(|first, second| {
        first.call((10, 60), "MPI_Probe", (WORLD, ANY, 4, 0), 0, Some((1, 4, 8)));
        first.receive((70, 71), (1, 4), Some((1, 4, 8)));
        first.call((80, 160), "MPI_Mprobe", (WORLD, ANY, ANY, 0), 0xe0, Some((1, 5, 8)));
        first.call((170, 171), "MPI_Mrecv", (0xe0, NONE, NONE, 1), 0, Some((1, 5, 8)));
        second.send((50, 51), 0, 4, 1);
        second.send((150, 151), 0, 5, 1);
    });
    assert!(is_all_matched(&all));
    let late = WaitKind::LateSender;
    assert_eq!(waits(&all[0]), [(10, 50, 1, late), (80, 150, 1, late)]);
    assert_eq!(all[0].counts.receives, 2);
}

#[test]
fn parts_of_a_split_communicator_are_apart() {
    let mut ranks: Vec<Rank> = (0..4).map(|rank| Rank::new(rank, 4)).collect();
    for (number, rank) in ranks.iter_mut().enumerate() {
        let own = (number / 2) as u32;
        let members = [number as u64 % 2, number as u64 % 2 + 2];
        // Handles are the rank's own.
        let [half, copy] = [0x300 + 8 * number as u64, 0x400];
        rank.split((10, 20), half, WORLD, own, &members);
        rank.split((30, 40), copy, half, own, &members);
    }
    // The same ranks and tags in all parts.
    ranks[0].call((100, 250), "MPI_Recv", (0x400, 1, 1, 1), 0, Some((1, 1, 8)));
    ranks[2].call((200, 201), "MPI_Send", (0x400, 0, 1, 1), 0, None);
    ranks[1].call((100, 350), "MPI_Recv", (0x400, 1, 1, 1), 0, Some((1, 1, 8)));
    ranks[3].call((300, 301), "MPI_Send", (0x400, 0, 1, 1), 0, None);
    // Each half has its own barrier.
    for (rank, (half, when)) in
        [(0x300, 400), (0x308, 410), (0x310, 420), (0x318, 440)].into_iter().enumerate()
    {
        ranks[rank].call((when, 450), "MPI_Barrier", (half, NONE, NONE, 0), 0, None);
    }
    let all = all(ranks);
    assert!(is_all_matched(&all));
    let (late, barrier) = (WaitKind::LateSender, WaitKind::Barrier);
    assert_eq!(waits(&all[0]), [(100, 200, 2, late), (400, 420, 2, barrier)]);
    assert_eq!(waits(&all[1]), [(100, 300, 3, late), (410, 440, 3, barrier)]);
    assert_eq!(waits(&all[2]), []);
    assert_eq!((all[0].counts.communicators, all[0].open_communicators), (2, 2));
}

#[test]
fn ranks_that_are_told_no_members_find_their_communicator() {
    let mut ranks: Vec<Rank> = (0..4).map(|rank| Rank::new(rank, 4)).collect();
    for (number, rank) in ranks.iter_mut().enumerate() {
        let own = (number / 2) as u32;
        let members = [number as u64 % 2, number as u64 % 2 + 2];
        rank.begin(10, "MPI_Comm_split", (WORLD, NONE, NONE, 0));
        let told = if own == 0 { &members[..] } else { &[] };
        rank.define(ObjectKind::communicator, 0x400, WORLD, &[&[2, own.into(), 0], told].concat());
        rank.end(20, 0x400, None);
        let when = 100 + 10 * number as Ns;
        rank.call((when, 200), "MPI_Barrier", (0x400, NONE, NONE, 0), 0, None);
    }
    let all = all(ranks);
    assert_eq!(waits(&all[0]), [(100, 120, 2, WaitKind::Barrier)]);
    assert_eq!(waits(&all[1]), [(110, 130, 3, WaitKind::Barrier)]);
}

#[test]
fn collective_operations_wait_for_whom_they_need() {
    let check = |name: &'static str, root: i32, expected: [&[(Ns, Ns, u32, WaitKind)]; 3]| {
        let mut ranks: Vec<Rank> = (0..3).map(|rank| Rank::new(rank, 3)).collect();
        for (rank, when) in [100, 300, 200].into_iter().enumerate() {
            ranks[rank].call((when, 400), name, (WORLD, root, NONE, 1), 0, None);
        }
        let all = all(ranks);
        for (of, expected) in all.iter().zip(expected) {
            assert_eq!(waits(of), expected, "{name}");
        }
    };
    let all = WaitKind::AllToAll;
    check("MPI_Allreduce", NONE, [&[(100, 300, 1, all)], &[], &[(200, 300, 1, all)]]);
    let late = WaitKind::LateBroadcast;
    check("MPI_Bcast", 2, [&[(100, 200, 2, late)], &[], &[]]);
    check("MPI_Scatterv", 1, [&[(100, 300, 1, late)], &[], &[(200, 300, 1, late)]]);
    // The root can begin with the first.
    check("MPI_Reduce", 0, [&[(100, 200, 2, WaitKind::EarlyReduce)], &[], &[]]);
    check("MPI_Gather", 1, [&[], &[], &[]]);
    check("MPI_Scan", NONE, [&[], &[], &[(200, 300, 1, WaitKind::EarlyScan)]]);
    check("MPI_Neighbor_allgather", NONE, [&[], &[], &[]]);
}

#[test]
fn a_nonblocking_operation_is_waited_for_where_its_request_is() {
    let all = two(|first, second| {
        first.call((10, 11), "MPI_Ibarrier", (WORLD, NONE, NONE, 0), 0xa0, None);
        first.wait_all((50, 90), &[(0xa0, 0, 0, 0)]);
        second.call((80, 81), "MPI_Ibarrier", (WORLD, NONE, NONE, 0), 0xa0, None);
        second.wait_all((95, 96), &[(0xa0, 0, 0, 0)]);
    });
    assert_eq!(waits(&all[0]), [(50, 80, 1, WaitKind::Barrier)]);
    assert_eq!(waits(&all[1]), []);
    assert_eq!(all[0].counts.collectives, 1);
}

#[test]
fn a_fence_waits_for_the_last_rank_at_the_same_window() {
    let mut ranks: Vec<Rank> = (0..3).map(|rank| Rank::new(rank, 3)).collect();
    for (number, rank) in ranks.iter_mut().enumerate() {
        // Handles are the rank's own, and the first window has gone when the third is made.
        let windows = [0x700, 0x710, 0x700].map(|handle: u64| handle + number as u64);
        for (window, when) in [(windows[0], 10), (windows[1], 20)] {
            rank.begin(when, "MPI_Win_create", (WORLD, NONE, NONE, 0));
            rank.define(ObjectKind::window, window, WORLD, &[WORLD, 64, 8]);
            rank.end(when + 5, window, None);
        }
        let late = [0, 40, 20][number];
        rank.call((100 + late, 150), "MPI_Win_fence", (windows[1], NONE, NONE, 0), 0, None);
        // These need not wait: they return at once.
        rank.call((200 + late, 205 + late), "MPI_Win_fence", (windows[0], NONE, NONE, 0), 0, None);
        rank.event(300, ObjectFreed { domain: 1, kind: ObjectKind::window, handle: Address(windows[0]) });
        rank.define(ObjectKind::window, windows[2], WORLD, &[WORLD, 64, 8]);
        rank.call((400 - late, 450), "MPI_Win_fence", (windows[2], NONE, NONE, 0), 0, None);
    }
    let all = all(ranks);
    let barrier = WaitKind::Barrier;
    assert_eq!(waits(&all[0]), [(100, 140, 1, barrier)]);
    assert_eq!(waits(&all[1]), [(360, 400, 0, barrier)]);
    assert_eq!(waits(&all[2]), [(120, 140, 1, barrier), (380, 400, 0, barrier)]);
}

#[test]
fn what_has_no_partner_is_told() {
    let all = two(|first, second| {
        first.send((10, 11), 1, 4, 1);
        first.send((12, 13), 1, 5, 1);
        second.call((10, 11), "MPI_Irecv", (WORLD, 0, 9, 1), 0xa0, None);
        second.call((12, 13), "MPI_Irecv", (WORLD, ANY, ANY, 1), 0xb0, None);
        second.receive((14, 15), (0, 5), Some((0, 5, 8)));
    });
    assert_eq!((all[0].unmatched_sends.count, all[0].unmatched_sends.first), (1, Some((1, 4))));
    assert_eq!((all[1].unmatched_receives.count, all[1].unmatched_receives.first), (2, Some((0, 9))));
    assert_eq!((all[0].open_requests, all[1].open_requests), (0, 2));
}

#[test]
fn a_message_that_is_longer_than_its_buffer_is_told() {
    let all = two(|first, second| {
        // The receive fails, or the program is ended in it.
        first.begin(10, "MPI_Recv", (WORLD, 1, 7, 2));
        second.send((20, 21), 0, 7, 3);
    });
    assert_eq!((all[0].truncated.count, all[0].truncated.first), (1, Some((1, 7))));
    assert_eq!(all[1].truncated.count, 0);
}

#[test]
fn persistent_requests_are_to_be_freed_and_their_operations_match() {
    let all = two(|first, second| {
        for (rank, late) in [(first, 0), (second, 40)] {
            rank.call((10, 11), "MPI_Barrier_init", (WORLD, NONE, NONE, 0), 0xa0, None);
            for round in 0..2 {
                let when = 100 * (round + 1) + late;
                rank.begin(when, "MPI_Start", (0xa0, NONE, NONE, 0));
                rank.objects(CallRole::started, &[0xa0]);
                rank.end(when + 1, 0, None);
                rank.wait_all((when + 10, 100 * (round + 1) + 60), &[(0xa0, 0, 0, 0)]);
            }
        }
    });
    let barrier = WaitKind::Barrier;
    assert_eq!(waits(&all[0]), [(110, 140, 1, barrier), (210, 240, 1, barrier)]);
    assert_eq!((all[0].open_persistent, all[0].open_requests), (1, 0));
    assert_eq!(all[0].counts.collectives, 2);
}

#[test]
fn a_job_that_hangs_shows_who_waits_for_whom() {
    let mut ranks: Vec<Rank> = (0..4).map(|rank| Rank::new(rank, 4)).collect();
    ranks[0].begin(10, "MPI_Recv", (WORLD, 1, 7, 1));
    ranks[1].call((10, 11), "MPI_Irecv", (WORLD, 2, 7, 1), 0xa0, None);
    ranks[1].begin(20, "MPI_Wait", (0, NONE, NONE, 0));
    ranks[1].objects(CallRole::awaited, &[0xa0]);
    ranks[2].begin(10, "MPI_Ssend", (WORLD, 0, 9, 1));
    ranks[3].begin(10, "MPI_Barrier", (WORLD, NONE, NONE, 0));
    let all: Vec<ProcessCalls> = ranks.into_iter().map(|rank| rank.calls.finish()).collect();
    let waiting = matched(all, Wanted::Waits).waiting;
    let of = |rank: usize| (waiting[rank].function, &waiting[rank].waits_for[..]);
    assert_eq!(of(0), ("MPI_Recv", &[1][..]));
    assert_eq!(of(1), ("MPI_Wait", &[2][..]));
    assert_eq!(of(2), ("MPI_Ssend", &[0][..]));
    assert_eq!(of(3), ("MPI_Barrier", &[0, 1, 2][..]));
    let ranks = Ranks { deadlock: super::hung::deadlock(&waiting), waiting, ..Ranks::default() };
    assert_eq!(ranks.deadlock, Some(vec![0, 1, 2]));
    let notes = ranks.waiting_notes();
    assert_eq!(notes[0], "rank 0 is in MPI_Recv and waits for rank 1");
    assert_eq!(notes[4], "deadlock: each of these ranks waits for the next: 0 -> 1 -> 2 -> 0");
}

#[test]
fn messages_that_could_be_parts_of_earlier_ones_are_counted_at_both_ends() {
    let (mut first, mut second) = (Rank::new(0, 2), Rank::new(1, 2));
    for time in [10, 30, 50, 90] {
        // What is sent after an answer may depend on it.
        if time == 90 {
            second.send((70, 72), 0, 8, 1000);
            first.receive((70, 80), (1, 8), Some((1, 8, 8000)));
        }
        first.send((time, time + 10), 1, 7, 1);
        second.receive((time, time + 12), (0, 7), Some((0, 7, 8)));
    }
    first.send((110, 120), 1, 9, 1);
    second.receive((110, 122), (0, 9), Some((0, 9, 8)));
    let ranks = vec![first.finalize(), second.finalize()];
    let Matched { results: all, traffic, .. } = matched(ranks, Wanted::Waits);
    let pair = |from, to, count, bytes| PairMessages { from, to, count, bytes };
    assert_eq!(traffic.pairs, [pair(0, 1, 5, 40), pair(1, 0, 1, 8000)]);
    let site = |rank: usize, name: &str| {
        let number = omptrace_mpi_api::functions().find(|(_, it)| it.name == name).unwrap().0;
        all[rank].sites.iter().find(|site| site.function == number).unwrap().clone()
    };
    let (sends, receives) = (site(0, "MPI_Send"), site(1, "MPI_Recv"));
    assert_eq!((sends.calls, sends.ns, sends.combinable, sends.combinable_bytes), (5, 50, 3, 24));
    assert_eq!((receives.calls, receives.ns, receives.combinable), (5, 60, 3));
    assert_eq!((sends.first, site(1, "MPI_Send").combinable), ((0, 10), 0));
}

#[test]
fn operations_are_summed_up_by_call_site() {
    let (mut first, mut second) = (Rank::new(0, 2), Rank::new(1, 2));
    for (time, late) in [(10, 5), (100, 30)] {
        first.call((time, time + 40), "MPI_Barrier", (WORLD, NONE, NONE, 0), 0, None);
        second.call((time + late, time + 41), "MPI_Barrier", (WORLD, NONE, NONE, 0), 0, None);
    }
    let ranks = vec![first.finalize(), second.finalize()];
    let traffic = matched(ranks, Wanted::Waits).traffic;
    let [barrier] = &traffic.collectives[..] else { panic!("{traffic:?}") };
    assert_eq!((barrier.ranks, barrier.count, barrier.ns), (2, 2, 40 + 36 + 40 + 11));
    assert_eq!(barrier.longest, LongestOperation { begin: 10, ns: 41, last_rank: 1 });
}
