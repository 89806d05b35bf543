//! A recorder's fields for the cold path: its stream, its chunk, and its lost events.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use omptrace_trace_format::block::ClockPair;

use crate::lockfree::chunk_header::Header;
use crate::lockfree::gate::Busy;
use crate::recorder::dependence_collection::Collecting;
use crate::recorder::hardware_counters::Registers;
use crate::recorder::held_events::HeldEvents;
use crate::recorder::initial_task::InitialTask;
use crate::recorder::kept_chunks::KeptChunks;
use crate::recorder::known_modules::KnownModules;
use crate::recorder::waiting_task::WaitingTask;
use crate::storage::spool::{Chunk, Spool};

/// The content of a stream. All zeros means a thread's events.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Kind {
    /// The events of a thread.
    Thread = 0,
    /// The records of a device with this number.
    Device(i32) = 1,
    /// The samples of a thread.
    Samples(SamplesOf) = 2,
}

/// The thread of a sample stream, and what the stream's chunks need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SamplesOf {
    /// The number of the stream with the thread's events.
    pub(crate) thread_stream: u32,
    /// The requested CPU time between two samples, in nanoseconds.
    pub(crate) period_ns: u64,
    /// The clock pair before the oldest sample.
    pub(crate) since: ClockPair,
    /// The time of the newest sample in the stream, in raw ticks.
    pub(crate) newest: u64,
}

/// Marks a thread that is in no target region.
pub(crate) const NO_DEVICE: i32 = -1;

/// The cold half of a [`crate::recorder::recorder::Recorder`]. All zeros is a thread without a stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The stream's number in the session, from 1; 0 for none.
    pub(crate) number: Cell<u32>,
    /// Number of chunks before the current one.
    pub(crate) sequence: Cell<u32>,
    /// The current chunk's index in the spool; valid only if there is a chunk.
    pub(crate) chunk: Cell<u32>,
    /// Number of words for events in the chunk.
    pub(crate) chunk_words: Cell<usize>,
    /// The implicit task that waits at the end of its parallel region.
    pub(crate) joining: WaitingTask,
    /// The thread's initial task.
    pub(crate) initial: InitialTask,
    /// The thread's initial task with the runtime's pointers, if there is a second tool.
    pub(crate) initial_of_both: InitialTask,
    /// Whether the runtime may be collecting the dependences of a task that this thread created.
    pub(crate) collecting: Collecting,
    /// The spool of the chunk, which identifies the session; null before the first chunk.
    pub(crate) spool: Cell<*const Spool>,
    /// Whether the thread is on the cold path.
    pub(crate) busy: Busy,
    /// The stream's content.
    pub(crate) kind: Cell<Kind>,
    /// The number of the thread's record for samples, from 1; 0 if it is not sampled.
    pub(crate) sampled: Cell<u32>,
    /// The CPU's counters for the thread.
    pub(crate) registers: Cell<Registers>,
    /// The number of the thread's CPU time record, from 1; 0 if it has none.
    pub(crate) cpu_time: Cell<u32>,
    /// The device of the target region that the thread is in, or [`NO_DEVICE`].
    pub(crate) target_device: Cell<i32>,
    /// The operation that the thread requests was announced to a device tracer.
    pub(crate) is_announced: Cell<bool>,
    /// One bit per target region that the thread is in, the innermost in the lowest bit; set if the region was
    /// announced to a device tracer.
    pub(crate) announced_regions: Cell<u64>,
    /// Ids were assigned that the chunk does not reflect, so nothing more may be written into it.
    pub(crate) stale: Cell<bool>,
    /// Number of lost events that are not reported yet. Atomic because signal handlers on the same thread count, too.
    lost: AtomicU64,
    /// The number of the chunk whose header counts the lost events, too, from 1; 0 for none.
    unreported_in: Cell<u32>,
    /// The spool of the session to which the lost events belong; null if the process had none.
    unreported_of: Cell<*const Spool>,
    /// The time before the first lost event, in raw ticks.
    pub(crate) lost_since: Cell<u64>,
    /// The counter of ids of target regions and data operations.
    pub(crate) newest_target: Cell<u64>,
    /// Full chunks that a flight recorder retains, oldest first.
    pub(crate) kept: KeptChunks,
    /// Modules that this thread has looked up.
    pub(crate) modules: KnownModules,
    /// Events of a forked child that has not used OpenMP yet.
    pub(crate) held: HeldEvents,
}

/// Number of bits of an id below the stream's number.
const ID_SHIFT: u32 = 40;
/// Set in ids of target regions and data operations, which are not counted by the predictors.
const TARGET_BIT: u64 = 1 << 39;

impl Stream {
    pub(crate) const fn new() -> Stream {
        Stream {
            number: Cell::new(0),
            sequence: Cell::new(0),
            chunk: Cell::new(0),
            chunk_words: Cell::new(0),
            joining: WaitingTask::new(),
            initial: InitialTask::new(),
            initial_of_both: InitialTask::new(),
            collecting: Collecting::new(),
            spool: Cell::new(std::ptr::null()),
            busy: Busy(AtomicBool::new(false)),
            kind: Cell::new(Kind::Thread),
            sampled: Cell::new(0),
            registers: Cell::new(Registers::NONE),
            cpu_time: Cell::new(0),
            target_device: Cell::new(0),
            is_announced: Cell::new(false),
            announced_regions: Cell::new(0),
            stale: Cell::new(false),
            lost: AtomicU64::new(0),
            unreported_in: Cell::new(0),
            unreported_of: Cell::new(std::ptr::null()),
            lost_since: Cell::new(0),
            newest_target: Cell::new(0),
            kept: KeptChunks::new(),
            modules: KnownModules::new(),
            held: HeldEvents::new(),
        }
    }

    /// The stream's newest id before its first event.
    pub(crate) fn first_id(&self) -> u64 {
        u64::from(self.number.get()) << ID_SHIFT
    }

    /// Assigns an id to a target region or data operation.
    pub(crate) fn target_id(&self) -> u64 {
        self.newest_target.set(self.newest_target.get() + 1);
        self.first_id() | TARGET_BIT | self.newest_target.get()
    }

    /// Counts a lost event. The header of the stream's last chunk counts it, too, because the process may be killed
    /// before the stream has another chunk for reporting it. `spool` is the session's.
    pub(crate) fn lose(&self, now: u64, spool: Option<&Spool>) {
        let of = spool.map_or(std::ptr::null(), std::ptr::from_ref);
        if self.unreported_of.replace(of) != of {
            // The count is from a previous session, whose end did not wait for this thread: its spool reports these
            // events.
            self.lost.store(0, Ordering::Relaxed);
        }
        // Relaxed: shared only with signal handlers on this thread.
        if self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            self.lost_since.set(now);
            let own = |spool: &&Spool| std::ptr::eq(self.spool.get(), *spool);
            // A stream that never had a chunk counts in the spool's first chunk.
            let index = spool.filter(own).map_or(0, |_| self.chunk.get());
            self.unreported_in.set(index + 1);
        }
        if let Some(header) = self.unreported_in(spool) {
            header.add_unreported();
        }
    }

    fn unreported_in<'s>(&self, spool: Option<&'s Spool>) -> Option<&'s Header> {
        spool?.reserved_chunk(self.unreported_in.get().checked_sub(1)?).map(Chunk::header)
    }

    /// Returns the number of events lost since the last call; the caller reports them.
    pub(crate) fn take_lost(&self, spool: Option<&Spool>) -> u64 {
        // Relaxed: as in `lose`; at the session's end, `Busy` orders it.
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let of = self.unreported_of.replace(std::ptr::null());
        if !of.is_null() && spool.is_some_and(|spool| !std::ptr::eq(of, spool)) {
            self.unreported_in.set(0);
            return 0;
        }
        if let Some(header) = self.unreported_in(spool) {
            header.forget_unreported(lost);
        }
        self.unreported_in.set(0);
        lost
    }

    /// Resets the stream for its new number.
    pub(crate) fn reset(&self, number: u32) {
        self.number.set(number);
        self.sequence.set(0);
        self.spool.set(std::ptr::null());
        self.kind.set(Kind::Thread);
        self.sampled.set(0);
        self.registers.set(Registers::NONE);
        self.cpu_time.set(0);
        self.target_device.set(NO_DEVICE);
        self.is_announced.set(false);
        self.announced_regions.set(0);
        self.joining.forget();
        self.initial.forget();
        self.initial_of_both.forget();
        self.collecting.end();
        self.stale.set(false);
        self.take_lost(None);
        self.newest_target.set(0);
        self.modules.forget();
        drop(self.held.take());
        self.kept.forget();
    }
}
