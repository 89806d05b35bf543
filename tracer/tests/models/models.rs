//! The models, each with a few threads that act like the tracer's threads.

use std::array;

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;
use omptrace_trace_format::block::{ChunkState, ClockPair};

use crate::lockfree::chunk_header::Header;
use crate::lockfree::gate::{Busy, Limit, ModeCell};
use crate::lockfree::list::{Link, Linked, List};
use crate::lockfree::queues::Queues;
use crate::lockfree::ring::Ring;
use crate::lockfree::writer_priority::WriterPriority;
use crate::lockfree::writer_wakeup::WriterWakeup;
use crate::sync::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering, Queue};

/// All models, with what each shows.
pub(crate) const MODELS: &[(&str, fn())] = &[
    ("who sees a chunk's length sees its words", publication),
    ("every chunk has one owner, and comes into the file once", hand_over),
    ("the end takes over chunks that are whole", take_over),
    ("the writer sleeps through no work", wake_up),
    ("the writer ends, and leaves nothing behind", stop),
    ("the writer that somebody waits for is not left idle", hurry_as_it_begins),
    ("not even as another waits no more", hurry_as_another_relaxes),
    ("who finds a part of the queues finds it whole", growing),
    ("who records sees the session", beginning),
    ("the session ends after all that record, and nobody records afterwards", ending),
    ("so it does while a thread ends", ending_as_a_thread_ends),
    ("and while the next one takes the recorder", ending_as_threads_come_and_go),
    ("every recorder has one thread, and is seen whole", recorders),
    ("a chunk that is free again is in the file", written),
    ("a chunk that is kept is written whole, or not at all", keeping),
    ("who reads a running process's chunk knows whether it is another one by now", recycling),
    ("a sample is read as it was written", sampling),
    ("of a thread that has ended every sample is read", sampling_as_a_thread_ends),
];

/// A chunk like in the spool: header and words.
struct Chunk<const WORDS: usize> {
    header: Header,
    words: [UnsafeCell<u64>; WORDS],
}

// SAFETY: loom detects unordered accesses to a word.
unsafe impl<const WORDS: usize> Sync for Chunk<WORDS> {}

impl<const WORDS: usize> Chunk<WORDS> {
    fn new() -> Chunk<WORDS> {
        Chunk { header: header(), words: array::from_fn(|_| UnsafeCell::new(0)) }
    }

    /// The hot path: stores a word, then publishes it.
    fn put(&self, cursor: usize, value: u64) {
        // SAFETY: loom checks that there is no concurrent access.
        self.words[cursor].with_mut(|word| unsafe { *word = value });
        self.header.publish(cursor + 1);
    }

    /// The published words.
    fn read(&self) -> Vec<u64> {
        // SAFETY: as above.
        let read = |word: &UnsafeCell<u64>| word.with(|word| unsafe { *word });
        self.words[..self.header.published()].iter().map(read).collect()
    }
}

fn header() -> Header {
    Header(array::from_fn(|_| AtomicU64::new(0)))
}

fn publication() {
    let chunk = Arc::new(Chunk::<2>::new());
    let theirs = Arc::clone(&chunk);
    let thread = thread::spawn(move || {
        theirs.put(0, 1);
        theirs.put(1, 2);
    });
    let seen = chunk.read();
    assert_eq!(seen, [1, 2][..seen.len()]);
    thread.join().expect("no panic");
}

/// `omptrace info` reading a running process, as in `trace_format::spool`. It reads the header to list the chunks,
/// reads it again, and then reads the header, the words and the header again. Each read is a system call, across which
/// accesses are not reordered; within one, the order is arbitrary.
fn recycling() {
    struct Shared {
        header: Header,
        word: AtomicU64,
    }

    impl Shared {
        /// Like [`Chunk::put`]; the other process may read words in any state.
        fn record(&self, sequence: u32) {
            let clock = ClockPair { ticks: sequence.into(), ..ClockPair::default() };
            self.header.begin(1, sequence, clock, 0);
            self.word.store(sequence.into(), Ordering::Relaxed);
            self.header.publish(1);
        }

        /// State, stream and sequence number with clock, and the published length.
        fn read(&self) -> (u64, (u32, u64), u64) {
            let word = |index: usize| self.header.0[index].load(Ordering::Relaxed);
            let (published, state) = (word(7), word(1));
            let chunk = (self.header.place().1, self.header.clock().ticks);
            loom::sync::atomic::fence(Ordering::Acquire);
            (state, chunk, published)
        }
    }

    let shared = Arc::new(Shared { header: header(), word: AtomicU64::new(0) });
    shared.record(1);
    let theirs = Arc::clone(&shared);
    let thread = thread::spawn(move || theirs.record(2));

    let (state, listed, _) = shared.read();
    let (state_again, listed_again, at_least) = shared.read();
    let (_, before, published) = shared.read();
    let word = shared.word.load(Ordering::Relaxed);
    loom::sync::atomic::fence(Ordering::Acquire);
    let (_, after, _) = shared.read();
    let is_active = [state, state_again] == [ChunkState::ACTIVE.0; 2];
    let is_one = listed == listed_again && listed == before && before == after;
    if is_active && is_one && published.max(at_least) == 1 {
        assert_eq!(before, (word as u32, word));
    }
    thread.join().expect("no panic");
}

/// Two threads fill chunks, of which there are too few; the writer writes them; then the session ends.
fn hand_over() {
    const CHUNKS: usize = 3;
    const THREADS: usize = 2;
    const CHUNKS_OF_A_THREAD: u32 = 2;

    struct Spool {
        chunks: [Chunk<1>; CHUNKS],
        queues: Queues,
        file: Mutex<Vec<(u32, u32)>>,
    }

    impl Spool {
        /// Like `Output::write_chunk`.
        fn write(&self, chunk: &Chunk<1>) {
            let (stream, sequence) = chunk.header.place();
            assert_eq!(chunk.read(), [u64::from(stream) << 32 | u64::from(sequence)]);
            self.file.lock().expect("no panic").push((stream, sequence));
        }

        /// Like `Session::drain`.
        fn drain(&self) {
            while let Some(index) = self.queues.take_full() {
                let chunk = &self.chunks[index as usize];
                self.write(chunk);
                self.queues.release(index, &chunk.header);
            }
        }

        /// A thread's life, like `Session::renew`.
        fn record(&self, stream: u32) {
            let mut old = None;
            for sequence in 0..CHUNKS_OF_A_THREAD {
                let index = match (self.queues.take_free(), old) {
                    (Some(index), old) => {
                        if let Some(old) = old {
                            self.queues.hand_over(old, &self.chunks[old as usize].header);
                        }
                        index
                    }
                    (None, Some(old)) => {
                        self.write(&self.chunks[old as usize]);
                        old
                    }
                    (None, None) => unreachable!("there is one for each to begin with"),
                };
                let chunk = &self.chunks[index as usize];
                chunk.header.begin(stream, sequence, ClockPair::default(), 0);
                chunk.put(0, u64::from(stream) << 32 | u64::from(sequence));
                old = Some(index);
            }
        }
    }

    let spool = Arc::new(Spool {
        chunks: array::from_fn(|_| Chunk::new()),
        queues: Queues::new(CHUNKS),
        file: Mutex::new(Vec::new()),
    });
    for (index, chunk) in spool.chunks.iter().enumerate() {
        spool.queues.open(index as u32);
        spool.queues.release(index as u32, &chunk.header);
    }
    let threads: Vec<_> = (0..THREADS as u32)
        .map(|stream| {
            let spool = Arc::clone(&spool);
            thread::spawn(move || spool.record(stream))
        })
        .collect();
    let theirs = Arc::clone(&spool);
    let writer = thread::spawn(move || theirs.drain());
    // Like `Session::end`: the threads' last chunks still belong to them.
    for thread in threads {
        thread.join().expect("no panic");
    }
    writer.join().expect("no panic");
    spool.drain();
    for chunk in &spool.chunks {
        if chunk.header.take_over() {
            spool.write(chunk);
        }
    }
    let mut file = spool.file.lock().expect("no panic").clone();
    file.sort_unstable();
    assert_eq!(file, [(0, 0), (0, 1), (1, 0), (1, 1)]);
}

/// The end does not wait forever for a thread that is on the cold path.
fn take_over() {
    let chunk = Arc::new(Chunk::<1>::new());
    let theirs = Arc::clone(&chunk);
    let thread = thread::spawn(move || {
        theirs.header.begin(7, 3, ClockPair::default(), 11);
        theirs.put(0, 1);
    });
    if chunk.header.take_over() {
        assert_eq!((chunk.header.place(), chunk.header.newest_id()), ((7, 3), 11));
        chunk.read();
    }
    thread.join().expect("no panic");
}

/// A chunk is added while the writer looks for chunks.
fn growing() {
    struct Shared {
        header: Header,
        queues: Queues,
    }
    let shared = Arc::new(Shared { header: header(), queues: Queues::new(1) });
    let theirs = Arc::clone(&shared);
    let thread = thread::spawn(move || {
        theirs.queues.open(0);
        theirs.queues.hand_over(0, &theirs.header);
    });
    let theirs = Arc::clone(&shared);
    let writer = thread::spawn(move || theirs.queues.take_full());
    thread.join().expect("no panic");
    let seen = writer.join().expect("no panic");
    assert_eq!(seen.or_else(|| shared.queues.take_full()), Some(0));
    assert!(shared.queues.is_drained());
}

/// `omptrace info` reads a running process: first the spool, then the file.
fn written() {
    struct Shared {
        header: Header,
        queues: Queues,
        file: AtomicU64,
    }
    let shared = Arc::new(Shared { header: header(), queues: Queues::new(1), file: AtomicU64::new(0) });
    shared.queues.open(0);
    shared.header.begin(1, 0, ClockPair::default(), 0);
    let theirs = Arc::clone(&shared);
    let writer = thread::spawn(move || {
        theirs.file.store(1, Ordering::Relaxed);
        theirs.queues.release(0, &theirs.header);
    });
    let state = shared.header.0[1].load(Ordering::Relaxed);
    loom::sync::atomic::fence(Ordering::Acquire);
    if state == ChunkState::FREE.0 {
        assert_eq!(shared.file.load(Ordering::Relaxed), 1);
    }
    writer.join().expect("no panic");
}

/// A flight recorder: a thread reuses its retained chunk for new events, while another one writes retained chunks.
fn keeping() {
    struct Shared {
        chunk: Chunk<1>,
        keeping: Mutex<()>,
    }

    impl Shared {
        /// Like `Session::next_kept`, the hot path, and `Session::keep`.
        fn record(&self, sequence: u32) {
            let header = &self.chunk.header;
            let nobody_writes_it = self.keeping.lock();
            header.set_state(ChunkState::FREE);
            drop(nobody_writes_it);
            header.begin(1, sequence, ClockPair::default(), 0);
            self.chunk.put(0, sequence.into());
            header.set_state(ChunkState::FULL);
        }

        /// Like `Session::write_kept`.
        fn write_kept(&self) -> Option<u32> {
            let _nobody_takes_it = self.keeping.lock();
            self.chunk.header.is_full().then(|| {
                let sequence = self.chunk.header.place().1;
                assert_eq!(self.chunk.read(), [u64::from(sequence)]);
                self.chunk.header.set_state(ChunkState::FREE);
                sequence
            })
        }
    }

    let shared = Arc::new(Shared { chunk: Chunk::new(), keeping: Mutex::new(()) });
    let theirs = Arc::clone(&shared);
    let thread = thread::spawn(move || {
        theirs.record(1);
        theirs.record(2);
    });
    let asked = shared.write_kept();
    thread.join().expect("no panic");
    let at_end = shared.write_kept();
    // Each chunk is written once, and the newest is written.
    assert_eq!(asked.max(at_end), Some(2));
    assert_ne!(asked, at_end);
}

/// The writer's wake-up state, and its work.
struct Work {
    bell: WriterWakeup,
    queue: Queue<u32>,
}

impl Work {
    fn new() -> Arc<Work> {
        Arc::new(Work {
            bell: WriterWakeup { sleeping: AtomicBool::new(false), stop: AtomicBool::new(false) },
            queue: Queue::new(2),
        })
    }

    fn push(&self, item: u32, writer: &thread::Thread) {
        self.queue.push(item).expect("there is room");
        if self.bell.ring() {
            writer.unpark();
        }
    }

    fn drain(&self) -> u32 {
        std::iter::from_fn(|| self.queue.pop()).count() as u32
    }

    /// Like `Writer::run`, but without a time limit for sleeping: a writer that is not woken sleeps forever, which loom
    /// detects. Ends when `enough` is done, or on request.
    fn run(&self, enough: u32) -> u32 {
        let mut done = 0;
        loop {
            done += self.drain();
            if done == enough || self.bell.is_stopped() {
                return done;
            }
            self.bell.sleep(|| !self.queue.is_empty(), thread::park);
        }
    }
}

fn wake_up() {
    let work = Work::new();
    let theirs = Arc::clone(&work);
    let writer = thread::spawn(move || theirs.run(2));
    work.push(1, writer.thread());
    work.push(2, writer.thread());
    assert_eq!(writer.join().expect("no panic"), 2);
}

fn stop() {
    let work = Work::new();
    let theirs = Arc::clone(&work);
    let writer = thread::spawn(move || theirs.run(u32::MAX));
    work.push(1, writer.thread());
    work.bell.stop();
    writer.thread().unpark();
    let done = writer.join().expect("no panic");
    // Like `Session::end`.
    assert_eq!(done + work.drain(), 1);
}

/// The writer's pace, and what the kernel was told last; calls for a thread are serialized.
struct Paced {
    pace: WriterPriority,
    ordinary: Mutex<bool>,
}

impl Paced {
    fn new() -> Arc<Paced> {
        Arc::new(Paced {
            pace: WriterPriority { thread: AtomicI32::new(0), waiting: AtomicUsize::new(0) },
            ordinary: Mutex::new(true),
        })
    }

    fn set(&self) -> impl Fn(i32, bool) {
        |thread, ordinary| {
            assert_eq!(thread, 1);
            *self.ordinary.lock().expect("no model panics here") = ordinary;
        }
    }

    fn is_ordinary(&self) -> bool {
        *self.ordinary.lock().expect("no model panics here")
    }
}

fn hurry_as_it_begins() {
    let paced = Paced::new();
    let theirs = Arc::clone(&paced);
    let writer = thread::spawn(move || theirs.pace.begin(1, theirs.set()));
    paced.pace.hurry(paced.set());
    writer.join().expect("no panic");
    assert!(paced.is_ordinary());
    paced.pace.relax(paced.set());
    assert!(!paced.is_ordinary());
}

fn hurry_as_another_relaxes() {
    let paced = Paced::new();
    paced.pace.begin(1, paced.set());
    assert!(!paced.is_ordinary());
    let theirs = Arc::clone(&paced);
    let other = thread::spawn(move || {
        theirs.pace.hurry(theirs.set());
        theirs.pace.relax(theirs.set());
    });
    paced.pace.hurry(paced.set());
    other.join().expect("no panic");
    assert!(paced.is_ordinary());
    paced.pace.relax(paced.set());
    assert!(!paced.is_ordinary());
}

const OFF: u8 = 0;
const RECORD: u8 = 1;

/// A recorder, as far as other threads see it.
struct Recorder {
    limit: Limit,
    busy: Busy,
    link: Link<Recorder>,
    /// The field that only its own thread uses.
    state: UnsafeCell<u32>,
}

impl Linked for Recorder {
    fn link(&self) -> &Link<Recorder> {
        &self.link
    }
}

/// A process: its mode, its recorders, its session.
struct Process {
    mode: ModeCell,
    recorders: List<Recorder>,
    session: UnsafeCell<u32>,
}

// SAFETY: loom detects unordered accesses to a session, or to a recorder's state.
unsafe impl Sync for Process {}
// SAFETY: as above; `List` holds pointers.
unsafe impl Send for Process {}

impl Process {
    fn new(mode: u8) -> Arc<Process> {
        Arc::new(Process {
            mode: ModeCell(AtomicU8::new(mode)),
            recorders: List(AtomicPtr::new(std::ptr::null_mut())),
            session: UnsafeCell::new(0),
        })
    }

    /// Like `recorder::take`.
    fn take(&self) -> &'static Recorder {
        self.recorders.take().unwrap_or_else(|| {
            let recorder: &'static Recorder = Box::leak(Box::new(Recorder {
                limit: Limit(AtomicUsize::new(0)),
                busy: Busy(AtomicBool::new(false)),
                link: Link { taken: AtomicBool::new(false), next: AtomicPtr::new(std::ptr::null_mut()) },
                state: UnsafeCell::new(0),
            }));
            assert!(recorder.link.claim());
            self.recorders.push(recorder);
            recorder
        })
    }

    /// The cold path, like `cold_path::enter`.
    fn enter(&self, recorder: &Recorder) {
        assert!(!recorder.busy.enter());
        recorder.limit.close();
        if self.use_session() {
            recorder.limit.open(1, &self.mode, RECORD);
        }
        recorder.busy.leave(false);
    }

    /// The thread's end, like `cold_path::leave`.
    fn leave(&self, recorder: &Recorder) {
        assert!(!recorder.busy.enter());
        recorder.limit.close();
        self.use_session();
        recorder.busy.leave(false);
        recorder.link.give_back();
    }

    /// Like `Recorder::begin_stream`.
    fn begin_stream(&self, recorder: &Recorder) -> bool {
        assert!(!recorder.busy.enter());
        let records = self.mode.load() != OFF;
        if records {
            // SAFETY: loom checks that the end does not access it concurrently.
            recorder.state.with_mut(|state| unsafe { *state += 1 });
        }
        recorder.busy.leave(false);
        records
    }

    /// False if nothing is recorded.
    fn use_session(&self) -> bool {
        let records = self.mode.load() == RECORD;
        if records {
            // SAFETY: loom checks that the session is not being created or ended.
            self.session.with(|session| unsafe { *session });
        }
        records
    }

    /// Like `Mode::set`.
    fn set(&self, mode: u8) {
        self.mode.switch(mode);
        if mode != RECORD {
            self.recorders.iter().for_each(|recorder| recorder.limit.close());
        }
    }

    /// Like `Session::end`.
    fn end(&self) {
        self.set(OFF);
        while self.recorders.iter().any(|recorder| recorder.busy.is_busy()) {
            thread::yield_now();
        }
        for recorder in self.recorders.iter() {
            // SAFETY: loom checks that no thread is starting a stream on it.
            recorder.state.with(|state| unsafe { *state });
        }
        // SAFETY: loom checks that no thread uses it.
        self.session.with_mut(|session| unsafe { *session = 2 });
    }

    /// Frees the recorders after all threads have ended.
    fn free(&self) {
        let recorders: Vec<_> = self.recorders.iter().collect();
        self.recorders.forget();
        for recorder in recorders {
            // SAFETY: leaked by `take`, no longer in a list, and its thread has ended.
            drop(unsafe { Box::from_raw(std::ptr::from_ref(recorder).cast_mut()) });
        }
    }
}

fn beginning() {
    let process = Process::new(OFF);
    let theirs = Arc::clone(&process);
    let thread = thread::spawn(move || {
        theirs.enter(theirs.take());
    });
    // SAFETY: no thread records before the mode is set.
    process.session.with_mut(|session| unsafe { *session = 1 });
    process.set(RECORD);
    thread.join().expect("no panic");
    process.free();
}

fn ending() {
    ends_while(|process, recorder| process.enter(recorder));
}

fn ending_as_a_thread_ends() {
    ends_while(|process, recorder| process.leave(recorder));
}

fn ending_as_threads_come_and_go() {
    ends_while(|process, recorder| {
        process.leave(recorder);
        let recorder = process.take();
        if process.begin_stream(recorder) {
            process.enter(recorder);
        }
        recorder.link.give_back();
    });
}

/// The session ends while another thread, possibly with a new recorder, is on the cold path.
fn ends_while(work: fn(&Process, &Recorder)) {
    let process = Process::new(RECORD);
    let theirs = Arc::clone(&process);
    let thread = thread::spawn(move || work(&theirs, theirs.take()));
    process.end();
    thread.join().expect("no panic");
    for recorder in process.recorders.iter() {
        assert_eq!(recorder.limit.get(), 0, "the hot path is open after the end");
    }
    process.free();
}

fn recorders() {
    fn live(process: &Process) {
        let recorder = process.take();
        // SAFETY: loom checks that no other thread has the recorder.
        recorder.state.with_mut(|state| unsafe { *state += 1 });
        recorder.link.give_back();
    }
    let process = Process::new(RECORD);
    let threads = [(); 2].map(|()| {
        let process = Arc::clone(&process);
        thread::spawn(move || live(&process))
    });
    live(&process);
    for thread in threads {
        thread.join().expect("no panic");
    }
    let lives = |recorder: &Recorder| {
        // SAFETY: all threads have ended.
        recorder.state.with(|state| unsafe { *state })
    };
    assert_eq!(process.recorders.iter().map(lives).sum::<u32>(), 3);
    process.free();
}

/// A thread's samples: a ring and its words, like `samples::sampled_threads`. A sample is one word.
struct Samples {
    ring: Ring,
    words: [UnsafeCell<u64>; 2],
}

// SAFETY: loom detects unordered accesses to a word.
unsafe impl Sync for Samples {}

impl Samples {
    fn new() -> Arc<Samples> {
        Arc::new(Samples {
            ring: Ring {
                written: AtomicUsize::new(0),
                read: AtomicUsize::new(0),
                ended: AtomicBool::new(false),
            },
            words: array::from_fn(|_| UnsafeCell::new(0)),
        })
    }

    /// The handler: false if the sample is lost.
    fn push(&self, value: u64) -> bool {
        let Some(at) = self.ring.room(1, self.words.len()) else {
            return false;
        };
        // SAFETY: loom checks that there is no concurrent access.
        self.words[at % 2].with_mut(|word| unsafe { *word = value });
        self.ring.publish(at + 1);
        true
    }

    fn drain(&self) -> Vec<u64> {
        let filled = self.ring.filled();
        let end = filled.end;
        // SAFETY: as above.
        let read = |at: usize| self.words[at % 2].with(|word| unsafe { *word });
        let values = filled.map(read).collect();
        self.ring.consume(end);
        values
    }
}

fn sampling() {
    let samples = Samples::new();
    let theirs = Arc::clone(&samples);
    // The third sample overwrites the first if that has been read in the meantime. The reader is started second, which
    // saves one switch.
    let reader = thread::spawn(move || theirs.drain());
    let pushed = (1..=3).filter(|value| samples.push(*value)).count();
    let mut values = reader.join().expect("no panic");
    values.extend(samples.drain());
    assert_eq!(values, [1, 2, 3][..pushed]);
}

fn sampling_as_a_thread_ends() {
    let samples = Samples::new();
    let theirs = Arc::clone(&samples);
    let thread = thread::spawn(move || {
        assert!(theirs.push(1));
        theirs.ring.end();
    });
    let has_ended = samples.ring.has_ended();
    let values = samples.drain();
    assert!(values == [1] || !has_ended);
    thread.join().expect("no panic");
}
