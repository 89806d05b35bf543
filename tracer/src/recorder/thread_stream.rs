//! A recorder's fields for the cold path: its stream, its chunk, the events that were lost.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use omptrace_trace_format::block::ClockPair;

use crate::lockfree::chunk_header::Header;
use crate::lockfree::gate::Busy;
use crate::recorder::dependence_collection::Collecting;
use crate::recorder::held_events::Held;
use crate::recorder::initial_task::InitialTask;
use crate::recorder::kept_chunks::KeptChunks;
use crate::recorder::known_modules::KnownModules;
use crate::recorder::registers::Registers;
use crate::recorder::waiting_task::Joining;
use crate::storage::spool::{Chunk, Spool};

/// What a stream holds. All zeros is a thread's.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Kind {
    /// The events of a thread.
    Thread = 0,
    /// The records of a device, by its number.
    Device(i32) = 1,
    /// The samples of a thread.
    Samples(SamplesOf) = 2,
}

/// Whose samples a stream holds, and those that a chunk may begin with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SamplesOf {
    /// The stream of the thread's events.
    pub(crate) thread_stream: u32,
    /// The processor time between two samples that was asked for.
    pub(crate) period_ns: u64,
    /// The clocks before the oldest.
    pub(crate) since: ClockPair,
    /// The time of the newest that the stream has.
    pub(crate) newest: u64,
}

/// The device of a thread that is in no target region.
pub(crate) const NO_DEVICE: i32 = -1;

/// The cold half of a [`crate::recorder::recorder::Recorder`]. All zeros is that of a thread without stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The stream's number in the session, from 1; 0: none.
    pub(crate) number: Cell<u32>,
    /// Chunks begun before the current one.
    pub(crate) sequence: Cell<u32>,
    /// The current chunk's index in the spool, where there is one.
    pub(crate) chunk: Cell<u32>,
    /// Words of the chunk for events.
    pub(crate) chunk_words: Cell<usize>,
    /// The implicit task that waits at the end of its region.
    pub(crate) joining: Joining,
    /// The thread's initial task.
    pub(crate) initial: InitialTask,
    /// The same where there is a second tool, as the runtime has it.
    pub(crate) initial_of_both: InitialTask,
    /// Whether the runtime may be collecting the dependences of a task that this thread created.
    pub(crate) collecting: Collecting,
    /// The spool of the chunk, by which a session is known; null before the first.
    pub(crate) spool: Cell<*const Spool>,
    /// Whether the thread is on the cold path.
    pub(crate) busy: Busy,
    /// What it holds.
    pub(crate) kind: Cell<Kind>,
    /// The thread's record of samples, by its number from 1; 0 where it is not sampled.
    pub(crate) sampled: Cell<u32>,
    /// The processor's counters of the thread.
    pub(crate) registers: Cell<Registers>,
    /// The thread's record of processor time, by its number from 1; 0 where it has none.
    pub(crate) cpu_time: Cell<u32>,
    /// The device of the target region that the thread is in, or [`NO_DEVICE`].
    pub(crate) target_device: Cell<i32>,
    /// A device's tracer knows of the operation that the thread asks for.
    pub(crate) is_announced: Cell<bool>,
    /// The target regions that the thread is in, the innermost in the lowest bit: 1 where it was announced to a tracer of devices.
    pub(crate) announced_regions: Cell<u64>,
    /// True where ids were given that the chunk does not know of: nothing more may be written into it.
    pub(crate) stale: Cell<bool>,
    /// Events not recorded, and not reported yet. Atomic since signal handlers on the same thread count, too.
    lost: AtomicU64,
    /// The chunk in whose header they are counted, too: its number from 1, or 0 for none.
    unreported_in: Cell<u32>,
    /// The spool of the session that they are lost in; null where the process has none yet.
    unreported_of: Cell<*const Spool>,
    /// The clock before the first of them.
    pub(crate) lost_since: Cell<u64>,
    /// The newest id given to a target region or data operation, counted from 1.
    pub(crate) newest_target: Cell<u64>,
    /// Full chunks that a flight recorder keeps, the oldest first.
    pub(crate) kept: KeptChunks,
    /// Modules that this thread has asked for.
    pub(crate) modules: KnownModules,
    /// Events of a forked child that has not used OpenMP yet.
    pub(crate) held: Held,
}

/// Ids of streams lie this far apart.
const ID_SHIFT: u32 = 40;
/// Set in ids of target regions and data operations, which no predictor counts.
const TARGET_BIT: u64 = 1 << 39;

impl Stream {
    pub(crate) const fn new() -> Stream {
        Stream {
            number: Cell::new(0),
            sequence: Cell::new(0),
            chunk: Cell::new(0),
            chunk_words: Cell::new(0),
            joining: Joining::new(),
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
            held: Held::new(),
        }
    }

    /// The stream's newest id before its first event.
    pub(crate) fn first_id(&self) -> u64 {
        u64::from(self.number.get()) << ID_SHIFT
    }

    /// A new id for a target region or data operation.
    pub(crate) fn target_id(&self) -> u64 {
        self.newest_target.set(self.newest_target.get() + 1);
        self.first_id() | TARGET_BIT | self.newest_target.get()
    }

    /// Counts an event that was not recorded. The header of the stream's last chunk counts it, too: the process may be
    /// killed before the stream has another chunk to report it in. `spool` is that of the session.
    pub(crate) fn lose(&self, now: u64, spool: Option<&Spool>) {
        let of = spool.map_or(std::ptr::null(), std::ptr::from_ref);
        if self.unreported_of.replace(of) != of {
            // Of a session before, whose end did not wait for this thread: its spool reports them.
            self.lost.store(0, Ordering::Relaxed);
        }
        // Relaxed: shared only with signal handlers on this thread.
        if self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            self.lost_since.set(now);
            let own = |spool: &&Spool| std::ptr::eq(self.spool.get(), *spool);
            // A stream that never had one counts in the first of all.
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

    /// How many were counted since this was asked last; they are reported now.
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

    /// Becomes the new stream `number`.
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
