//! Generates a trace: parallel regions of four threads, each with a loop, a barrier and tasks.

use std::path::Path;

use ompt_sys as ompt;
use omptrace_trace_format::block::{Chunk, ClockPair, Codec, FileHeader};
use omptrace_trace_format::blocks::{chunk_header, metadata_block, push_words};
use omptrace_trace_format::event::*;
use omptrace_trace_format::field::{Address, Id, Text};
use omptrace_trace_format::predict::State;

const THREADS: u32 = 4;
const TASKS_PER_MEMBER: u64 = 4;
/// Words per chunk; less than the tracer's 32 Ki.
const CHUNK_WORDS: usize = 30_000;
const SESSION: u64 = 1;

/// The chunks of one stream that is being written.
struct Stream {
    number: u32,
    sequence: u32,
    base: u64,
    first_id: u64,
    state: State,
    words: Vec<u64>,
    file: Vec<u8>,
    events: u64,
}

impl Stream {
    fn new(number: u32) -> Stream {
        let first_id = u64::from(number) << 40;
        Stream {
            number,
            sequence: 0,
            base: 0,
            first_id,
            state: State::new(first_id),
            words: Vec::new(),
            file: Vec::new(),
            events: 0,
        }
    }

    fn fresh_id(&mut self) -> u64 {
        self.state.next_id += 1;
        self.state.next_id
    }

    fn push(&mut self, time: u64, event: Event<'_>) {
        let mut words = [0; 64];
        let len = event.encode(&mut self.state, time - self.base, &mut words).expect("a short event");
        self.words.extend_from_slice(&words[..len]);
        self.events += 1;
        if self.words.len() > CHUNK_WORDS {
            self.finish_chunk(time);
        }
    }

    fn finish_chunk(&mut self, next_base: u64) {
        let clock = clock(self.base);
        let chunk = Chunk { stream: self.number, sequence: self.sequence, clock, first_id: self.first_id };
        let mut payload = Vec::new();
        push_words(&mut payload, &self.words);
        self.file.extend(chunk_header(SESSION, &chunk, self.words.len() as u32, 0, Codec::RAW, &payload));
        self.file.extend(payload);
        self.words.clear();
        self.sequence += 1;
        self.base = next_base;
        self.first_id = self.state.next_id;
        self.state.reset(self.first_id);
    }
}

fn clock(ticks: u64) -> ClockPair {
    ClockPair {
        ticks: ticks + 1,
        monotonic_raw_ns: ticks + 1,
        realtime_ns: ticks + 1_700_000_000_000_000_000,
    }
}

/// Writes a trace of at least `events` events; returns their actual number.
pub(crate) fn write_trace(path: &Path, events: u64) -> u64 {
    let header = FileHeader::of_trace(SESSION, 1, &[]);
    let mut streams: Vec<Stream> = (1..=THREADS).map(Stream::new).collect();
    introduce(&mut streams);
    let mut time = 100;
    while streams.iter().map(|stream| stream.events).sum::<u64>() < events {
        region(&mut streams, &mut time);
    }
    let mut file = header.encode();
    let metadata =
        serde_json::json!({"clock": {"kind": "tsc", "ticks_per_second": 1e9, "uncertainty_ticks": 10}});
    file.extend(metadata_block(SESSION, clock(0), &metadata));
    for stream in &mut streams {
        stream.finish_chunk(time);
        file.extend(&stream.file);
    }
    std::fs::write(path, file).expect("a writable folder");
    streams.iter().map(|stream| stream.events).sum()
}

fn introduce(streams: &mut [Stream]) {
    for stream in streams {
        let thread_type =
            if stream.number == 1 { ompt::ompt_thread_initial } else { ompt::ompt_thread_worker };
        let info = ThreadInfo { os_tid: stream.number as i32, name: Text::new(b"bench") };
        stream.push(1, info.into());
        stream.push(2, ThreadBegin { thread_type, thread_data: Id(stream.number.into()) }.into());
    }
}

/// A parallel region whose members share a loop, create tasks and wait in the barrier.
fn region(streams: &mut [Stream], time: &mut u64) {
    let parallel_data = Id(streams[0].fresh_id());
    let codeptr_ra = Address(0x401000);
    let begin = ParallelBegin {
        encountering_task_data: Id(1),
        exit_frame: Address(0),
        enter_frame: Address(0),
        exit_frame_flags: ompt::ompt_frame_flag_t(0),
        enter_frame_flags: ompt::ompt_frame_flag_t(0),
        parallel_data,
        requested_parallelism: THREADS,
        flags: ompt::ompt_parallel_flag_t(0x8000_0002),
        codeptr_ra,
    };
    streams[0].push(*time, begin.into());
    let begin = *time;
    for (index, stream) in streams.iter_mut().enumerate() {
        member(stream, begin + 10 * index as u64, index as u32, parallel_data, codeptr_ra);
    }
    *time += 5_000;
    let flags = ompt::ompt_parallel_flag_t(0x8000_0002);
    let end = ParallelEnd { parallel_data, encountering_task_data: Id(1), flags, codeptr_ra };
    streams[0].push(*time, end.into());
    *time += 100;
}

fn member(stream: &mut Stream, begin: u64, index: u32, parallel_data: Id, codeptr_ra: Address) {
    let mut now = begin;
    let mut tick = || {
        now += 50;
        now
    };
    let task_data = Id(stream.fresh_id());
    let flags = ompt::ompt_task_flag_t(2);
    let (begin, end) = (ompt::ompt_scope_begin, ompt::ompt_scope_end);
    let actual_parallelism = THREADS;
    stream.push(
        tick(),
        ImplicitTaskBegin { endpoint: begin, parallel_data, task_data, actual_parallelism, index, flags }
            .into(),
    );
    let work_type = ompt::ompt_work_loop_static;
    for endpoint in [begin, end] {
        stream.push(
            tick(),
            Work { endpoint, work_type, parallel_data, task_data, count: 1000, codeptr_ra }.into(),
        );
    }
    for _ in 0..TASKS_PER_MEMBER {
        let task = Id(stream.fresh_id());
        let create = TaskCreate {
            has_dependences: 0,
            encountering_task_data: task_data,
            exit_frame: Address(0),
            enter_frame: Address(0),
            exit_frame_flags: ompt::ompt_frame_flag_t(0),
            enter_frame_flags: ompt::ompt_frame_flag_t(0),
            new_task_data: task,
            flags: ompt::ompt_task_flag_t(4),
            codeptr_ra,
        };
        stream.push(tick(), create.into());
        let (switch, complete) = (ompt::ompt_task_switch, ompt::ompt_task_complete);
        let run =
            TaskSchedule { prior_task_data: task_data, prior_task_status: switch, next_task_data: task };
        stream.push(tick(), run.into());
        let done =
            TaskComplete { prior_task_data: task, prior_task_status: complete, next_task_data: task_data };
        stream.push(tick(), done.into());
    }
    let kind = ompt::ompt_sync_region_barrier_implicit_parallel;
    let barrier = |endpoint| SyncRegion { endpoint, kind, parallel_data, task_data, codeptr_ra };
    let wait = |endpoint| SyncRegionWait { endpoint, kind, parallel_data, task_data, codeptr_ra };
    stream.push(tick(), barrier(begin).into());
    stream.push(tick(), wait(begin).into());
    stream.push(tick(), wait(end).into());
    stream.push(tick(), barrier(end).into());
    stream.push(
        tick(),
        ImplicitTaskEnd {
            endpoint: end,
            parallel_data: Id::NULL,
            task_data,
            actual_parallelism: 0,
            index,
            flags,
        }
        .into(),
    );
}
