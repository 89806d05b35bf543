//! Writes the traces of a large MPI job into a folder: `job FOLDER RANKS MESSAGES`.
//!
//! In each step, each rank computes, receives from the rank before it, sends to the rank after it, and waits for the receive. All ranks
//! take part in an `MPI_Allreduce` every hundred steps.

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use ompt_sys as ompt;
use omptrace_model::random::Random;
use omptrace_trace_format::block::{BLOCK_HEADER_BYTES, Chunk, ClockPair, Codec, FileHeader};
use omptrace_trace_format::blocks::{Index, chunk_header, metadata_block, push_words};
use omptrace_trace_format::event::{
    CallBegin, CallEnd, CallObjects, Event, ImplicitTaskBegin, ImplicitTaskEnd, ObjectDefined, ThreadBegin,
    ThreadInfo,
};
use omptrace_trace_format::field::{Address, CallClass, CallRole, Id, ObjectKind, Text};
use omptrace_trace_format::predict::State;
use serde_json::json;

/// Steps between two collective operations.
const STEPS: u64 = 100;

/// Events of a chunk.
const CHUNK: u32 = 1 << 12;

/// When the session begins, on the process's clock and in real time.
const START: u64 = 1_000_000;
const REALTIME: u64 = 1_700_000_000_000_000_000;

const WORLD: u64 = 0x10;
const DOUBLE: u64 = 0x20;
const REQUEST: u64 = 0xa0;
const NONE: i32 = -4;

/// Class and number of a function.
type Function = (u32, u32);

const INIT: Function = (14, 250);
const IRECV: Function = (5, 257);
const SEND: Function = (1, 346);
const WAIT: Function = (7, 434);
const ALLREDUCE: Function = (10, 19);

/// The trace of a rank, while it is written.
struct Trace {
    file: File,
    session: u64,
    index: Index,
    written: u64,
    chunk: Chunk,
    state: State,
    words: Vec<u64>,
    events: u32,
}

impl Trace {
    fn new(folder: &Path, rank: usize, size: usize) -> Trace {
        let pid = 100 + rank as u32;
        let session = u64::from(pid);
        let metadata = json!({
            "tracer": "omptrace fixture",
            "process": {"pid": pid, "executable": "/bin/app", "rank": rank},
            "clock": {"kind": "tsc", "ticks_per_second": 1e9, "uncertainty_ticks": 100},
            "runtime": {"version": "LLVM OMP version: 5.0.20140926", "dialect": "5.x"},
            "mpi": {"library": "MPI", "rank": rank, "size": size},
            "machine": {"host": "one", "boot": "b1"},
            "end": {"how": "finalize"},
        });
        let mut bytes = FileHeader::of_trace(session, pid, &[]).encode();
        let metadata = metadata_block(session, clock(0), &metadata);
        let mut index = Index::default();
        index.push(bytes.len() as u64, &metadata[..BLOCK_HEADER_BYTES]);
        bytes.extend(metadata);
        let mut file = File::create(folder.join(format!("rank{rank}.omptrace"))).expect("a new file");
        file.write_all(&bytes).expect("room");
        let chunk = Chunk { stream: 1, sequence: 0, clock: clock(0), first_id: 1 << 40 };
        let (state, words) = (State::new(chunk.first_id), Vec::new());
        Trace { file, session, index, written: bytes.len() as u64, chunk, state, words, events: 0 }
    }

    fn event(&mut self, time: u64, event: impl Into<Event<'static>>) {
        if self.events == CHUNK {
            self.end_chunk(time);
        }
        let since = START + time - self.chunk.clock.ticks;
        let mut words = [0; 256];
        let len = event.into().encode(&mut self.state, since, &mut words).expect("a short event");
        self.words.extend_from_slice(&words[..len]);
        self.events += 1;
    }

    /// Writes the chunk. The next one begins at `time`.
    fn end_chunk(&mut self, time: u64) {
        let mut payload = Vec::new();
        push_words(&mut payload, &self.words);
        let count = self.words.len() as u32;
        let header = chunk_header(self.session, &self.chunk, count, self.events, Codec::RAW, &payload);
        self.index.push(self.written, &header);
        self.file.write_all(&header).expect("room");
        self.file.write_all(&payload).expect("room");
        self.written += (header.len() + payload.len()) as u64;
        (self.chunk.sequence, self.chunk.clock) = (self.chunk.sequence + 1, clock(time));
        (self.state, self.events) = (State::new(self.chunk.first_id), 0);
        self.words.clear();
    }

    fn starts(&mut self, os_tid: i32) {
        self.event(0, ThreadInfo { os_tid, name: Text(Some(b"app"[..].into())) });
        self.event(0, ThreadBegin { thread_type: ompt::ompt_thread_initial, thread_data: Id(1) });
        let endpoint = ompt::ompt_scope_begin;
        let (parallel_data, task_data, flags) = (Id(2), Id(3), ompt::ompt_task_initial);
        let (actual_parallelism, index) = (1, 1);
        self.event(
            0,
            ImplicitTaskBegin { endpoint, parallel_data, task_data, actual_parallelism, index, flags },
        );
    }

    fn finish(mut self, time: u64) {
        let endpoint = ompt::ompt_scope_end;
        let (parallel_data, task_data, flags) = (Id(0), Id(3), ompt::ompt_task_initial);
        let (actual_parallelism, index) = (0, 1);
        self.event(
            time,
            ImplicitTaskEnd { endpoint, parallel_data, task_data, actual_parallelism, index, flags },
        );
        self.end_chunk(time);
        let end = self.index.finish(self.session, self.written);
        self.file.write_all(&end).expect("room");
    }

    fn begin(&mut self, time: u64, (class, function): Function, (object, peer, tag): (u64, i32, i32)) {
        let count = u64::from(object == WORLD);
        self.event(
            time,
            CallBegin {
                class: CallClass(class),
                function,
                domain: 1,
                object: Address(object),
                peer,
                tag,
                count,
                datatype: Address(DOUBLE * count),
                codeptr_ra: Address(0x1000 + 16 * u64::from(function)),
            },
        );
    }

    fn end(&mut self, time: u64, (class, function): Function, object: u64) {
        let codeptr_ra = Address(0x1000 + 16 * u64::from(function));
        self.event(
            time,
            CallEnd {
                class: CallClass(class),
                function,
                domain: 1,
                object: Address(object),
                peer: NONE,
                tag: NONE,
                bytes: 0,
                result: 0,
                codeptr_ra,
            },
        );
    }

    fn objects(&mut self, time: u64, role: CallRole, numbers: &[u64]) {
        self.event(time, CallObjects { role, numbers: numbers.to_vec().into() });
    }

    fn define(&mut self, time: u64, kind: ObjectKind, handle: u64, facts: &[u64]) {
        let (handle, parent, facts) = (Address(handle), Address(0), facts.to_vec().into());
        self.event(time, ObjectDefined { domain: 1, kind, handle, parent, facts, name: Text(None) });
    }
}

/// The clock at this time of the session.
fn clock(time: u64) -> ClockPair {
    ClockPair { ticks: START + time, monotonic_raw_ns: START + time, realtime_ns: REALTIME + time }
}

/// A rank's next event is at `now`.
struct Rank {
    now: u64,
    random: Random,
    trace: Trace,
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let [_, folder, ranks, messages] = &words[..] else { panic!("job FOLDER RANKS MESSAGES") };
    let (size, messages): (usize, u64) =
        (ranks.parse().expect("a number of ranks"), messages.parse().expect("a number of messages"));
    fs::create_dir_all(folder).expect("a folder");
    let rank = |rank: usize| {
        let mut trace = Trace::new(Path::new(folder), rank, size);
        trace.starts(100 + rank as i32);
        trace.begin(0, INIT, (0, NONE, NONE));
        let members: Vec<u64> = (0..size as u64).collect();
        let facts = [&[size as u64, rank as u64, 0], &members[..]].concat();
        trace.define(5, ObjectKind::communicator, WORLD, &facts);
        trace.define(7, ObjectKind::datatype, DOUBLE, &[8]);
        trace.end(9, INIT, 0);
        Rank { now: 9, random: Random::new(rank as u64), trace }
    };
    let mut ranks: Vec<Rank> = (0..size).map(rank).collect();
    for step in 1..=messages / size as u64 {
        execute(&mut ranks);
        if step % STEPS == 0 {
            let end = ranks.iter().map(|rank| rank.now + 10).max().expect("a rank") + 200;
            for rank in &mut ranks {
                rank.trace.begin(rank.now + 10, ALLREDUCE, (WORLD, NONE, NONE));
                rank.trace.end(end, ALLREDUCE, 0);
                rank.now = end;
            }
        }
    }
    ranks.into_iter().for_each(|rank| rank.trace.finish(rank.now + 5));
}

/// The next step of all ranks.
fn execute(ranks: &mut [Rank]) {
    let size = ranks.len();
    let posted: Vec<u64> = ranks.iter_mut().map(|rank| rank.now + 1000 + rank.random.below(500)).collect();
    let sent: Vec<u64> = posted.iter().map(|posted| posted + 100).collect();
    for (number, rank) in ranks.iter_mut().enumerate() {
        let (before, after) = ((number + size - 1) % size, (number + 1) % size);
        let begin = sent[number] + 300;
        rank.now = begin.max(sent[before]) + 50;
        let trace = &mut rank.trace;
        trace.begin(posted[number], IRECV, (WORLD, before as i32, 1));
        trace.end(posted[number] + 90, IRECV, REQUEST);
        trace.begin(sent[number], SEND, (WORLD, after as i32, 1));
        trace.end(sent[number] + 290, SEND, 0);
        trace.begin(begin, WAIT, (0, NONE, NONE));
        trace.objects(begin, CallRole::awaited, &[REQUEST]);
        trace.objects(rank.now, CallRole::completed, &[REQUEST, before as u64, 1, 8]);
        trace.end(rank.now, WAIT, 0);
    }
}
