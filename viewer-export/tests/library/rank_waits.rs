//! Waits of ranks for each other, and what is charged for them, in random jobs. The truth is counted nanosecond by nanosecond.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use omptrace_analysis::answers::Cause;
use omptrace_analysis::{Charge, Options, RankWaits, Stats};
use omptrace_symbols as symbols;
use omptrace_trace_format::Reader;

use crate::fixture;

/// A function's number in the table of MPI functions, and its class.
type Function = (&'static str, u32, u32);

const INIT: Function = ("MPI_Init", 250, 14);
const SEND: Function = ("MPI_Send", 346, 1);
const SSEND: Function = ("MPI_Ssend", 368, 1);
const RECV: Function = ("MPI_Recv", 313, 2);
const IRECV: Function = ("MPI_Irecv", 257, 5);
const WAITALL: Function = ("MPI_Waitall", 435, 7);
const BARRIER: Function = ("MPI_Barrier", 30, 10);
const ALLREDUCE: Function = ("MPI_Allreduce", 19, 10);
const BCAST: Function = ("MPI_Bcast", 32, 10);
const REDUCE: Function = ("MPI_Reduce", 315, 10);
const SCAN: Function = ("MPI_Scan", 340, 10);

const REGION: u64 = 0x9000;
const LATE: &str = "late_sender";

/// Random numbers: the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// What a rank's first thread does in a nanosecond.
#[derive(Clone, Debug, PartialEq)]
enum Doing {
    Nothing,
    Serial,
    /// It is in a call, which is a cause, at this place.
    Call(&'static str, String),
    /// It waits for a rank, in this state, in a call at this place.
    Wait {
        rank: usize,
        state: &'static str,
        place: String,
    },
    /// A cause in a parallel region.
    Region(&'static str),
}

/// A rank of a job that is made up.
struct Rank {
    number: u64,
    now: u64,
    lines: Vec<(u64, String)>,
    /// By nanosecond.
    doing: Vec<Doing>,
    /// Of each message that it gets, when it is sent and when its receive is posted.
    got: Vec<(u64, u64)>,
    /// Waits for a late sender: begin of the call, end, and when the message is sent.
    late: Vec<(u64, u64, u64)>,
}

impl Rank {
    fn new(number: u64, ranks: u64) -> Rank {
        let mut rank =
            Rank { number, now: 0, lines: Vec::new(), doing: Vec::new(), got: Vec::new(), late: Vec::new() };
        // The main thread has the process's id.
        rank.line(0, 1, &format!("thread_info os_tid={} name=app", rank.pid()));
        rank.line(0, 2, &format!("thread_info os_tid={} name=app", rank.pid() + 1));
        rank.line(0, 1, "thread_begin type=initial");
        rank.line(0, 1, "implicit_task begin parallel=? task=1 team=1 index=1 flags=1");
        rank.line(0, 2, "thread_begin type=worker");
        rank.begin(0, INIT, "");
        let members: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
        let world = format!("handle=0x10 facts={ranks},{number},0,{}", members.join(","));
        rank.line(5, 1, &format!("object_defined domain=1 kind=1 {world}"));
        rank.line(6, 1, &format!("object_defined domain=1 kind=1 handle=0x11 facts=1,0,0,{number}"));
        rank.line(7, 1, "object_defined domain=1 kind=5 handle=0x20 facts=8");
        rank.end(9, INIT, "");
        rank.fill(0, 9, &Doing::Call("mpi_other", rank.place(INIT)));
        rank.now = 9;
        rank
    }

    fn pid(&self) -> u64 {
        40 + 10 * self.number
    }

    fn line(&mut self, time: u64, thread: u64, event: &str) {
        self.lines.push((time, format!("{time} {thread} {event}")));
    }

    fn code(&self, function: Function) -> u64 {
        0x1_0000 * (self.number + 1) + u64::from(function.1)
    }

    /// A call's place, as answers have it.
    fn place(&self, function: Function) -> String {
        format!("{} @{:#x}", function.0, self.code(function))
    }

    fn begin(&mut self, time: u64, function: Function, arguments: &str) {
        let (code, (_, number, class)) = (self.code(function), function);
        let begin = format!("call_begin class={class} function={number} domain=1 {arguments} code={code:#x}");
        let usual = if arguments.contains("peer") { "" } else { " peer=-4 tag=-4" };
        self.line(time, 1, &(begin + usual));
    }

    fn end(&mut self, time: u64, function: Function, arguments: &str) {
        let (code, (_, number, class)) = (self.code(function), function);
        let usual = if arguments.contains("peer") { "" } else { " peer=-4 tag=-4" };
        let end = format!("call_end class={class} function={number} domain=1 {arguments} code={code:#x}");
        self.line(time, 1, &(end + usual));
    }

    fn fill(&mut self, from: u64, to: u64, doing: &Doing) {
        let need = self.doing.len().max(to as usize);
        self.doing.resize(need, Doing::Serial);
        self.doing[from as usize..to as usize].fill(doing.clone());
    }

    /// A call from now on until `end`, in which it waits for another rank until that begins something.
    fn call(
        &mut self,
        function: Function,
        (begin_with, end_with): (&str, &str),
        end: u64,
        wait: Option<(u64, usize, &'static str)>,
    ) {
        let begin = self.now;
        self.begin(begin, function, begin_with);
        self.end(end, function, end_with);
        let place = self.place(function);
        self.fill(begin, end, &Doing::Call("mpi_transfer", place.clone()));
        if let Some((until, rank, state)) = wait.filter(|(until, ..)| *until > begin) {
            self.fill(begin, until.min(end), &Doing::Wait { rank, state, place });
            if state == LATE {
                self.late.push((begin, until.min(end), until));
            }
        }
        self.now = end;
    }

    /// A parallel region of two threads, which arrive at its barrier at different times.
    fn region(&mut self, arrivals: [u64; 2]) {
        let begin = self.now;
        let arrivals = arrivals.map(|after| begin + 1 + after);
        let (last, end) = (arrivals[0].max(arrivals[1]), arrivals[0].max(arrivals[1]) + 1);
        let region = format!("parallel=100 task=1 code={REGION:#x}");
        self.line(begin, 1, &format!("parallel_begin {region} team=2"));
        for (index, arrival) in arrivals.into_iter().enumerate() {
            let (thread, task) = (index as u64 + 1, 101 + index);
            let member = format!("parallel=100 task={task} team=2 index={index}");
            let barrier = format!("kind=barrier_implicit_parallel parallel=100 task={task} code={REGION:#x}");
            self.line(begin, thread, &format!("implicit_task begin {member}"));
            self.line(arrival, thread, &format!("sync_region begin {barrier}"));
            self.line(arrival, thread, &format!("sync_region_wait begin {barrier}"));
            self.line(end, thread, &format!("sync_region_wait end {barrier}"));
            self.line(end, thread, &format!("sync_region end {barrier}"));
            self.line(end, thread, &format!("implicit_task end {member}"));
        }
        self.line(end, 1, &format!("parallel_end {region}"));
        self.fill(begin, arrivals[0], &Doing::Region("useful"));
        self.fill(arrivals[0], last, &Doing::Region("imbalance"));
        self.fill(last, end, &Doing::Region("join"));
        self.now = end;
    }

    fn text(mut self) -> (String, Vec<Doing>) {
        let pid = self.pid();
        let end = self.now + 5;
        self.line(end, 1, "implicit_task end task=1 flags=1");
        self.line(end, 1, "thread_end");
        self.line(end, 2, "thread_end");
        self.fill(self.now, end, &Doing::Serial);
        // A message that was sent before could have been received meanwhile.
        for (begin, until, awaited) in self.late {
            if self.got.iter().any(|(sent, posted)| *sent < awaited && *posted > begin) {
                for doing in &mut self.doing[begin as usize..until as usize] {
                    if let Doing::Wait { state, .. } = doing {
                        *state = "wrong_order";
                    }
                }
            }
        }
        // Lines of one moment stay in their order.
        self.lines.sort_by_key(|(time, _)| *time);
        let mut text = format!("process rank{0} pid={1} rank={0} start=0\n", self.number, pid);
        let mpi = format!("\"rank\": {}, \"size\": SIZE", self.number);
        // Ranks of one host have one clock.
        let host = r#""machine": {"host": "one", "boot": "b1"}"#;
        writeln!(text, r#"metadata {{"mpi": {{"library": "MPI", {mpi}}}, {host}}}"#).expect("a string");
        for (_, line) in self.lines {
            text += &line;
            text.push('\n');
        }
        (text, self.doing)
    }
}

/// A job of random ranks: its traces, and what each rank does in each nanosecond.
fn job(random: &mut Random) -> (String, Vec<Vec<Doing>>) {
    let size = 2 + random.below(4);
    let mut ranks: Vec<Rank> = (0..size).map(|rank| Rank::new(rank, size)).collect();
    for _ in 0..10 + random.below(30) {
        for rank in &mut ranks {
            rank.now += 1 + random.below(60);
            if random.below(3) == 0 {
                rank.region([random.below(40), random.below(40)]);
                rank.now += random.below(20);
            }
        }
        let a = random.below(size) as usize;
        let b = (a + 1 + random.below(size - 1) as usize) % size as usize;
        match random.below(5) {
            0 => message(&mut ranks, (a, b), random),
            1 => synchronous(&mut ranks, (a, b), random),
            2 => wrong_order(&mut ranks, (a, b), random),
            3 => several(&mut ranks, (a, b), random),
            _ => collective(&mut ranks, a, random),
        }
    }
    let (mut text, mut doing) = (String::new(), Vec::new());
    for rank in ranks {
        let (of_rank, did) = rank.text();
        text += &of_rank.replace("SIZE", &size.to_string());
        doing.push(did);
    }
    (text, doing)
}

fn to(peer: usize, tag: u64) -> String {
    format!("object=0x10 peer={peer} tag={tag} count=1 datatype=0x20")
}

fn status(peer: usize, tag: u64) -> String {
    format!("peer={peer} tag={tag} bytes=8")
}

/// A send that may wait for its receiver, which begins to receive then. Gives when it begins.
fn send(ranks: &mut [Rank], (a, b): (usize, usize), tag: u64, received: u64, random: &mut Random) -> u64 {
    let sent = ranks[a].now;
    let end = sent + 1 + random.below(9);
    // Who has returned before has not waited: the message was copied.
    let wait = Some((received, b, "late_receiver")).filter(|_| received < end);
    ranks[a].call(SEND, (&to(b, tag), ""), end, wait);
    sent
}

fn message(ranks: &mut [Rank], (a, b): (usize, usize), random: &mut Random) {
    let sent = send(ranks, (a, b), 1, ranks[b].now, random);
    let end = ranks[b].now.max(sent) + 1 + random.below(9);
    let late = Some((sent, a, LATE));
    let received = ranks[b].now;
    ranks[b].got.push((sent, received));
    ranks[b].call(RECV, (&to(a, 1), &status(a, 1)), end, late);
}

fn synchronous(ranks: &mut [Rank], (a, b): (usize, usize), random: &mut Random) {
    let (sent, received) = (ranks[a].now, ranks[b].now);
    let both = sent.max(received);
    let ends = [both + 1 + random.below(9), both + 1 + random.below(9)];
    ranks[a].call(SSEND, (&to(b, 2), ""), ends[0], Some((received, b, "late_receiver")));
    ranks[b].call(RECV, (&to(a, 2), &status(a, 2)), ends[1], Some((sent, a, LATE)));
    ranks[b].got.push((sent, received));
}

/// Two messages are received the other way round.
fn wrong_order(ranks: &mut [Rank], (a, b): (usize, usize), random: &mut Random) {
    let (first, received) = (send(ranks, (a, b), 3, u64::MAX, random), ranks[b].now);
    ranks[a].now += random.below(50);
    let second = send(ranks, (a, b), 4, ranks[b].now, random);
    let end = ranks[b].now.max(second) + 1 + random.below(9);
    ranks[b].call(RECV, (&to(a, 4), &status(a, 4)), end, Some((second, a, LATE)));
    ranks[b].got.push((second, received));
    ranks[b].now += random.below(5);
    ranks[b].got.push((first, ranks[b].now));
    let end = ranks[b].now + 1 + random.below(9);
    ranks[b].call(RECV, (&to(a, 3), &status(a, 3)), end, None);
}

/// A rank waits for two messages at once, of one rank or two.
fn several(ranks: &mut [Rank], (a, b): (usize, usize), random: &mut Random) {
    let others: Vec<usize> = (0..ranks.len()).filter(|rank| *rank != b).collect();
    let c = others[random.below(others.len() as u64) as usize];
    let mut posts = Vec::new();
    for (request, from, tag) in [("0xa0", a, 5), ("0xb0", c, 6)] {
        let begin = ranks[b].now;
        posts.push(begin);
        let posted = format!("object={request}");
        ranks[b].call(IRECV, (&to(from, tag), &posted), begin + 1 + random.below(3), None);
    }
    let mut last: Vec<(u64, usize)> = Vec::new();
    for ((from, tag), posted) in [(a, 5), (c, 6)].into_iter().zip(posts) {
        ranks[from].now += random.below(40);
        let sent = send(ranks, (from, b), tag, posted, random);
        last.push((sent, from));
        ranks[b].got.push((sent, posted));
    }
    let begin = ranks[b].now;
    let (until, rank) = last.iter().copied().max().expect("two messages");
    let both = last.iter().all(|(sent, _)| *sent > begin);
    let state = if both { "completion" } else { LATE };
    let end = begin.max(until) + 1 + random.below(9);
    let first = ranks[b].lines.len();
    ranks[b].call(WAITALL, ("", ""), end, Some((until, rank, state)));
    // Between begin and end.
    let objects =
        [(begin, "1 numbers=0xa0,0xb0".to_owned()), (end, format!("2 numbers=0xa0,{a},5,8,0xb0,{c},6,8"))];
    for (place, (time, words)) in objects.into_iter().enumerate() {
        ranks[b].line(time, 1, &format!("call_objects role={words}"));
        let line = ranks[b].lines.pop().expect("a line");
        ranks[b].lines.insert(first + 1 + place, line);
    }
}

fn collective(ranks: &mut [Rank], root: usize, random: &mut Random) {
    let begins: Vec<u64> = ranks.iter().map(|rank| rank.now).collect();
    let last = |of: &[usize]| of.iter().map(|rank| (begins[*rank], *rank)).max();
    let all: Vec<usize> = (0..ranks.len()).collect();
    let kind = random.below(5);
    for rank in 0..ranks.len() {
        let others: Vec<usize> = all.iter().copied().filter(|other| *other != rank).collect();
        let (function, state, awaited) = match kind {
            0 => (BARRIER, "wait_at_barrier", last(&others)),
            1 => (ALLREDUCE, "wait_at_nxn", last(&others)),
            2 => (BCAST, "late_broadcast", (rank != root).then_some((begins[root], root))),
            3 => {
                let first = others.iter().map(|other| (begins[*other], *other)).min();
                (REDUCE, "early_reduce", first.filter(|_| rank == root))
            }
            _ => (SCAN, "early_scan", last(&all[..rank])),
        };
        // The root of a reduction needs all the others.
        let needed = match (kind, rank == root) {
            (3, true) => last(&others),
            _ => awaited,
        };
        let end = begins[rank].max(needed.map_or(0, |(begin, _)| begin)) + 1 + random.below(9);
        let peer = if matches!(kind, 2 | 3) { root as i64 } else { -4 };
        let arguments = format!("object=0x10 peer={peer} tag=-4 count=1 datatype=0x20");
        let wait = awaited.map(|(until, awaited)| (until, awaited, state));
        ranks[rank].call(function, (&arguments, ""), end, wait);
    }
}

/// Rank, cause and place of who is waited for; wait state and call of who waits.
type Key = (usize, &'static str, String, &'static str, String);
type Sums = BTreeMap<Key, (u64, BTreeSet<usize>)>;

/// Cause and place of what a rank does in a nanosecond. Serial code is named after what comes next.
fn named(doing: &[Doing], time: usize) -> (&'static str, String) {
    let region = format!("parallel @{REGION:#x}");
    match &doing.get(time).unwrap_or(&Doing::Nothing) {
        Doing::Nothing => ("", String::new()),
        Doing::Call(cause, place) => (cause, place.clone()),
        Doing::Wait { place, .. } => ("mpi_wait", place.clone()),
        Doing::Region("useful") => ("useful", region),
        Doing::Region(cause) => (cause, format!("implicit barrier @{REGION:#x}")),
        Doing::Serial => {
            let next = doing[time..].iter().find(|doing| !matches!(doing, Doing::Serial));
            let next = match next {
                Some(Doing::Region(_)) => region,
                Some(Doing::Call(_, place) | Doing::Wait { place, .. }) => place.clone(),
                _ => String::new(),
            };
            ("useful", format!("serial code before {next}"))
        }
    }
}

fn truth(ranks: &[Vec<Doing>], passes_on: bool) -> (u64, Sums) {
    let (mut total, mut sums) = (0, Sums::new());
    for (waiting, doing) in ranks.iter().enumerate() {
        for (time, did) in doing.iter().enumerate() {
            let Doing::Wait { rank, state, place } = did else { continue };
            let mut of = *rank;
            while passes_on && let Some(Doing::Wait { rank, .. }) = ranks[of].get(time) {
                of = *rank;
            }
            let (cause, at) = named(&ranks[of], time);
            total += 1;
            let (ns, who) = sums.entry((of, cause, at, state, place.clone())).or_default();
            *ns += 1;
            who.insert(waiting);
        }
    }
    (total, sums)
}

/// Rows that are not as expected.
fn differences(rows: &[Charge], expected: &Sums) -> Vec<String> {
    let rows = rows.iter().map(|row| {
        let cause = row.cause.map_or("", Cause::name);
        let place = row.place.as_ref().map_or_else(String::new, |place| place.long());
        let key = (row.rank as usize, cause, place, row.state, row.waits_at.long());
        (key, (row.ns, row.ranks))
    });
    let found: BTreeMap<Key, (u64, u64)> = rows.collect();
    let expected: BTreeMap<Key, (u64, u64)> =
        expected.iter().map(|(key, (ns, who))| (key.clone(), (*ns, who.len() as u64))).collect();
    let keys: BTreeSet<&Key> = found.keys().chain(expected.keys()).collect();
    let differ = keys.into_iter().filter(|key| found.get(*key) != expected.get(*key));
    differ.map(|key| format!("{key:?}: {:?}, not {:?}", found.get(key), expected.get(key))).collect()
}

fn waits_of(text: &str) -> (RankWaits, Stats) {
    waits_in(text, None)
}

/// The waits in a window.
fn waits_in(text: &str, window: Option<(i64, i64)>) -> (RankWaits, Stats) {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    let options = Options { symbols: symbols::Options::default(), window, ..Options::default() };
    let stats = Stats::with(&inputs, &options).expect("answers").0;
    (stats.rank_waits.clone().expect("all ranks are there"), stats)
}

#[test]
fn each_nanosecond_of_a_wait_is_charged_to_what_the_awaited_rank_did() {
    let (mut waited, mut states, mut passed_on) = (0, BTreeSet::new(), 0);
    for seed in 0..120 {
        let (text, doing) = job(&mut Random(seed));
        let (waits, stats) = waits_of(&text);
        let (total, direct) = truth(&doing, false);
        let first = truth(&doing, true).1;
        assert_eq!(differences(&waits.charged, &direct), [""; 0], "seed {seed}, charged");
        assert_eq!(differences(&waits.first_causes, &first), [""; 0], "seed {seed}, first causes");
        let accounted = stats.answers.accounting[Cause::MpiWait];
        assert_eq!((waits.total_ns, accounted), (total, total), "seed {seed}");
        let sum = |rows: &[Charge]| rows.iter().map(|row| row.ns).sum::<u64>();
        let of_states: u64 = waits.states.iter().map(|state| state.ns).sum();
        let of_waits: u64 = waits.waits.iter().map(|row| row.ns).sum();
        assert_eq!([sum(&waits.charged), sum(&waits.first_causes), of_states, of_waits], [total; 4]);
        waited += total;
        states.extend(waits.states.iter().filter(|state| state.ns > 0).map(|state| state.state));
        passed_on += u64::from(first != direct);
    }
    assert!(waited > 100_000 && passed_on > 50, "{waited} ns, passed on in {passed_on} jobs");
    assert_eq!(states.len(), 9, "{states:?}");
}

/// What lies outside of a window is not waited for, and not charged.
#[test]
fn waits_in_a_window_add_up() {
    for seed in 0..20 {
        let (text, doing) = job(&mut Random(seed));
        let (waits, stats) = waits_in(&text, Some((200, 900)));
        let inside = doing.iter().flat_map(|doing| doing.iter().take(900).skip(200));
        let total = inside.filter(|doing| matches!(doing, Doing::Wait { .. })).count() as u64;
        let sums =
            [&waits.charged, &waits.first_causes].map(|rows| rows.iter().map(|row| row.ns).sum::<u64>());
        assert_eq!(stats.answers.accounting[Cause::MpiWait], total, "seed {seed}");
        assert_eq!((waits.total_ns, sums), (total, [total; 2]), "seed {seed}");
        let is_known = waits.charged.iter().all(|row| row.cause.is_some());
        assert!(total > 0 && is_known, "seed {seed}: {:?}", waits.charged);
    }
}

/// The traces of ranks that have done all.
fn text_of(ranks: Vec<Rank>) -> String {
    let size = ranks.len().to_string();
    ranks.into_iter().map(|rank| rank.text().0.replace("SIZE", &size)).collect()
}

/// What a rule says that a job would save, and how long the job takes.
fn saving(ranks: Vec<Rank>, rule: &str) -> (Option<u64>, u64) {
    let stats = waits_of(&text_of(ranks)).1;
    let finding = stats.answers.findings.iter().find(|finding| finding.id == rule);
    (finding.map(|finding| finding.gain_ns), stats.answers.duration_ns)
}

/// The faulty program's finding must promise what the repaired one gains, within a fifth, and that one must have none.
fn is_as_promised((promised, faulty): (Option<u64>, u64), (left, repaired): (Option<u64>, u64), rule: &str) {
    let (promised, gained) = (promised.expect(rule), faulty - repaired);
    assert!(promised.abs_diff(gained) * 5 <= gained, "{rule}: promised {promised}, gained {gained}");
    assert_eq!(left, None, "{rule}");
}

#[test]
fn a_message_that_is_sent_before_the_work_gains_what_the_finding_promises() {
    for work in [[10_000, 8_000], [8_000, 10_000]] {
        let job = |sends_first: bool| {
            let mut random = Random(7);
            let mut ranks: Vec<Rank> = (0..2).map(|rank| Rank::new(rank, 2)).collect();
            ranks.iter_mut().for_each(|rank| rank.now += 20);
            if !sends_first {
                ranks[1].now += work[1];
            }
            message(&mut ranks, (1, 0), &mut random);
            ranks[0].now += work[0];
            if sends_first {
                ranks[1].now += work[1];
            }
            let last = ranks[0].now.max(ranks[1].now);
            for (rank, other) in [(0, 1), (1, 0)] {
                let other_begins = ranks[other].now;
                let arguments = "object=0x10 peer=-4 tag=-4 count=1 datatype=0x20";
                let wait = if rank == 0 { None } else { Some((other_begins, other, "wait_at_barrier")) };
                ranks[rank].call(BARRIER, (arguments, ""), last + 5, wait);
            }
            saving(ranks, "late_sender")
        };
        is_as_promised(job(false), job(true), "late_sender");
    }
}

#[test]
fn work_beside_a_call_gains_what_the_finding_promises() {
    let (call, work) = (6_000, 10_000);
    let job = |overlaps: bool| {
        let mut ranks: Vec<Rank> = (0..2).map(|rank| Rank::new(rank, 2)).collect();
        for (rank, other) in [(0, 1), (1, 0)] {
            let of = &mut ranks[rank];
            of.now += 20;
            let arguments = to(other, 1);
            if overlaps {
                // The first thread is in the call, then all share what is left.
                of.begin(of.now + 2, SEND, &arguments);
                of.end(of.now + 2 + call, SEND, "");
                of.region([work + call / 2; 2]);
            } else {
                of.call(SEND, (&arguments, ""), of.now + call, None);
                of.now += 1;
                of.region([work; 2]);
            }
        }
        saving(ranks, "idle_during_mpi")
    };
    is_as_promised(job(false), job(true), "idle_during_mpi");
}
