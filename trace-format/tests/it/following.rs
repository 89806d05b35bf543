//! Given a growing trace and spool, checks what a follower reads.

use ompt_sys as ompt;
use omptrace_trace_format::block::ChunkState;
use omptrace_trace_format::event::{
    Event, ImplicitTaskBegin, ParallelBegin, ParallelEnd, SyncRegion, ThreadBegin, Work,
};
use omptrace_trace_format::field::{Address, Id};
use omptrace_trace_format::follow::{self, Bounds, Polled};
use omptrace_trace_format::{DiagnosticKind, Follower, Reader, Severity};

use crate::build::{Found, Trace, chunk, encode, read};

/// Bounds with which no event is dropped or skipped.
const ALL: Bounds = Bounds { keep_from: 0, most_words: 1 << 20, most_events: 1 << 20 };
const CODE: Address = Address(0x1000);

fn thread_begin(thread_type: ompt::ompt_thread_t) -> Event<'static> {
    Event::from(ThreadBegin { thread_type, thread_data: Id(1) })
}

fn region_begin(id: u64) -> Event<'static> {
    Event::from(ParallelBegin {
        encountering_task_data: Id(90),
        exit_frame: Address(0),
        enter_frame: Address(0),
        exit_frame_flags: ompt::ompt_frame_flag_t(0),
        enter_frame_flags: ompt::ompt_frame_flag_t(0),
        parallel_data: Id(id),
        requested_parallelism: 2,
        flags: ompt::ompt_parallel_flag_t(0),
        codeptr_ra: CODE,
    })
}

fn region_end(id: u64) -> Event<'static> {
    Event::from(ParallelEnd {
        parallel_data: Id(id),
        encountering_task_data: Id(90),
        flags: ompt::ompt_parallel_flag_t(0),
        codeptr_ra: CODE,
    })
}

fn member(region: u64, task: u64) -> Event<'static> {
    Event::from(ImplicitTaskBegin {
        endpoint: ompt::ompt_scope_begin,
        parallel_data: Id(region),
        task_data: Id(task),
        actual_parallelism: 2,
        index: 0,
        flags: ompt::ompt_task_flag_t(0),
    })
}

fn work(endpoint: ompt::ompt_scope_endpoint_t, region: u64, task: u64) -> Event<'static> {
    Event::from(Work {
        endpoint,
        work_type: ompt::ompt_work_loop_static,
        parallel_data: Id(region),
        task_data: Id(task),
        count: 8,
        codeptr_ra: CODE,
    })
}

fn barrier(endpoint: ompt::ompt_scope_endpoint_t, region: u64, task: u64) -> Event<'static> {
    Event::from(SyncRegion {
        endpoint,
        kind: ompt::ompt_sync_region_barrier_explicit,
        parallel_data: Id(region),
        task_data: Id(task),
        codeptr_ra: CODE,
    })
}

/// Events of a thread in a loop of parallel region 7, in implicit task 8.
fn begins() -> Vec<Event<'static>> {
    vec![
        thread_begin(ompt::ompt_thread_initial),
        region_begin(7),
        member(7, 8),
        work(ompt::ompt_scope_begin, 7, 8),
    ]
}

fn words(sequence: u32, events: &[Event<'_>]) -> Vec<u64> {
    encode(chunk(1, sequence).first_id, events)
}

/// The time of event number `place` of a chunk made by [`words`].
fn ticks(sequence: u32, place: u64) -> u64 {
    chunk(1, sequence).clock.ticks + 100 * place
}

fn poll(follower: &mut Follower, bounds: Bounds) -> Polled {
    follower.poll(bounds).expect("the spool can be read")
}

/// The events of an excerpt without the last one, which only marks its end.
fn excerpt_of(follower: &mut Follower, from: u64, until: u64) -> Found {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("excerpt.omptrace");
    std::fs::write(&path, follower.excerpt(from, until)).expect("the folder is ours");
    let mut found = read(&path);
    let grave = |found: &Found| {
        let mut all = found.diagnostics.iter();
        all.any(|diagnostic| diagnostic.severity > Severity::Note)
    };
    assert!(!grave(&found), "{:#?}", found.diagnostics);
    let (_, last, event) = found.events.pop().expect("the last event");
    assert!(last == until && matches!(event, Event::Flush(_)), "{event:?}");
    found
}

fn events_of(found: &Found) -> Vec<Event<'static>> {
    let events = found.events.iter();
    events.map(|(_, _, event)| event.clone()).collect()
}

#[test]
fn an_excerpt_that_begins_at_the_start_has_all_events() {
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(0, &begins()));
    let mut follower = Follower::open(&trace.write()).expect("a trace");
    let polled = poll(&mut follower, ALL);
    assert_eq!(polled.events_read, 4);
    assert_eq!(polled.words, polled.words_read);
    let found = excerpt_of(&mut follower, 0, ticks(0, 50));
    assert_eq!(events_of(&found), begins());
    assert_eq!(found.events[3].1, ticks(0, 3));
}

#[test]
fn what_is_open_before_an_excerpt_is_in_it() {
    let mut events = begins();
    events.push(work(ompt::ompt_scope_end, 7, 8));
    events.push(barrier(ompt::ompt_scope_begin, 7, 8));
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(0, &events));
    let mut follower = Follower::open(&trace.write()).expect("a trace");
    poll(&mut follower, ALL);
    let found = excerpt_of(&mut follower, ticks(0, 5), ticks(0, 50));
    // The loop has ended by then.
    let expected = [&events[..3], &events[5..]].concat();
    assert_eq!(events_of(&found), expected);
    assert_eq!(found.kinds(), [DiagnosticKind::ChunksOverwritten]);
    assert_eq!(follower.covered_from(), ticks(0, 4));
}

#[test]
fn what_is_over_before_an_excerpt_takes_no_time_in_it() {
    let mut events = begins()[..2].to_vec();
    events.push(region_end(7));
    events.push(region_begin(9));
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(0, &events));
    let mut follower = Follower::open(&trace.write()).expect("a trace");
    poll(&mut follower, ALL);
    let found = excerpt_of(&mut follower, ticks(0, 3), ticks(0, 50));
    assert_eq!(events_of(&found), events);
    // The first region is reported with its end at once, because it only describes the thread.
    assert_eq!(found.events[2].1, ticks(0, 1));
}

#[test]
fn a_later_poll_reads_only_what_is_new() {
    let before = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(0, &begins()));
    let path = before.write();
    let mut follower = Follower::open(&path).expect("a trace");
    poll(&mut follower, ALL);
    assert_eq!(poll(&mut follower, ALL), Polled::default());
    let mut events = begins();
    events.push(work(ompt::ompt_scope_end, 7, 8));
    let after = Trace::new().spooled(chunk(1, 0), ChunkState::FULL, &words(0, &events));
    let next =
        after.spooled(chunk(1, 1), ChunkState::ACTIVE, &words(1, &[barrier(ompt::ompt_scope_begin, 7, 8)]));
    // Overwrite in place, as shared memory would be: the follower has the file open.
    let grown = std::fs::read(omptrace_trace_format::spool::default_path(&next.write()));
    let spool = omptrace_trace_format::spool::default_path(&path);
    crate::build::overwrite(&spool, &grown.expect("a spool"));
    let polled = poll(&mut follower, ALL);
    assert_eq!(polled.events_read, 2);
    let found = excerpt_of(&mut follower, 0, ticks(1, 50));
    assert_eq!(events_of(&found).len(), 6);
}

/// A trace whose first chunk is in the file, and whose spool has a much later chunk with these events.
fn with_gap(events: &[Event<'_>]) -> Trace {
    Trace::new().raw(chunk(1, 0), &words(0, &begins())).spooled(
        chunk(1, 5),
        ChunkState::ACTIVE,
        &words(5, events),
    )
}

#[test]
fn a_region_is_open_behind_a_gap_where_its_thread_says_so() {
    let later = [work(ompt::ompt_scope_end, 7, 8)];
    let mut follower = Follower::open(&with_gap(&later).write()).expect("a trace");
    let polled = poll(&mut follower, ALL);
    assert_eq!(polled.events_read, 1);
    let found = excerpt_of(&mut follower, 0, ticks(5, 50));
    // It is not known whether this is the same loop.
    assert_eq!(events_of(&found), [&begins()[..3], &later].concat());
    assert_eq!(follower.covered_from(), ticks(5, 0));
}

#[test]
fn a_region_is_over_behind_a_gap_where_its_thread_is_elsewhere() {
    let later = [barrier(ompt::ompt_scope_begin, 70, 80)];
    let mut follower = Follower::open(&with_gap(&later).write()).expect("a trace");
    poll(&mut follower, ALL);
    let found = excerpt_of(&mut follower, 0, ticks(5, 50));
    let regions = events_of(&found)
        .into_iter()
        .filter(|event| matches!(event, Event::ParallelBegin(_) | Event::ParallelEnd(_)));
    assert_eq!(regions.collect::<Vec<_>>(), [region_begin(7), region_end(7)]);
}

/// LLVM's workers report the end of their implicit task only when the next region wakes them.
#[test]
fn a_region_that_is_over_has_its_end_where_a_worker_has_not_left_it() {
    let encounters = [region_begin(7), region_end(7), work(ompt::ompt_scope_begin, 0, 0)];
    let worker = [member(7, 8), barrier(ompt::ompt_scope_begin, 7, 8)];
    let of_worker = encode(chunk(2, 0).first_id, &worker);
    let trace = Trace::new().spooled(chunk(1, 0), ChunkState::ACTIVE, &words(0, &encounters)).spooled(
        chunk(2, 0),
        ChunkState::ACTIVE,
        &of_worker,
    );
    let mut follower = Follower::open(&trace.write()).expect("a trace");
    poll(&mut follower, ALL);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("excerpt.omptrace");
    let excerpt = follower.excerpt(ticks(0, 20), ticks(0, 50));
    std::fs::write(&path, excerpt).expect("the folder is ours");
    let found = read(&path);
    let regions = found
        .events
        .iter()
        .filter(|(_, _, event)| matches!(event, Event::ParallelBegin(_) | Event::ParallelEnd(_)));
    let times: Vec<u64> = regions.map(|(_, ticks, _)| *ticks).collect();
    assert_eq!(times, [ticks(0, 0), ticks(0, 1)]);
}

#[test]
fn with_too_much_to_read_the_newest_chunks_are_read() {
    let events = vec![work(ompt::ompt_scope_begin, 7, 8); 600];
    let trace = Trace::new()
        .spooled(chunk(1, 0), ChunkState::FULL, &words(0, &begins()))
        .spooled(chunk(1, 1), ChunkState::FULL, &words(1, &events))
        .spooled(chunk(1, 2), ChunkState::ACTIVE, &words(2, &events));
    let mut follower = Follower::open(&trace.write()).expect("a trace");
    let few = Bounds { most_words: 100, ..ALL };
    let polled = poll(&mut follower, few);
    assert_eq!(polled.events_read, 600);
    assert_eq!(follower.covered_from(), ticks(2, 0));
    // After the eleventh event from the end.
    assert_eq!(follower.begin_of_last(10, 0), ticks(2, 589) + 1);
}

#[test]
fn the_newest_part_is_a_trace_of_its_own() {
    let trace = Trace::new()
        .raw(chunk(1, 0), &words(0, &begins()))
        .raw(chunk(1, 1), &words(1, &begins()))
        .raw(chunk(1, 2), &words(2, &begins()))
        .spooled(chunk(1, 3), ChunkState::ACTIVE, &words(3, &begins()));
    let reader = Reader::open(&trace.write()).expect("a trace");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("saved.omptrace");
    let mut file = std::fs::File::create(&path).expect("the folder is ours");
    let chunks = follow::save(&reader, ticks(3, 0), &mut file).expect("it is written");
    // The chunk that starts before `from` may last until then.
    assert_eq!(chunks, 2);
    let saved = read(&path);
    assert_eq!(saved.kinds(), [DiagnosticKind::ChunksOverwritten]);
    // The thread's description comes first.
    assert_eq!(saved.events.len(), 9);
    assert_eq!(saved.events[0].2, begins()[0]);
    assert_eq!(saved.events[0].1, ticks(2, 0));
}
