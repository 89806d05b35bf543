//! A log of the first pass, from which the replay of changes is made without reading and interpreting the trace again.
//!
//! ```text
//! first pass   trace --> interpretation --> Logged --> numbers, answers
//!                                              |
//! second pass                                 log ---> replay
//! ```
//!
//! Each item that matters for a replay is one word, which has the kind, the thread, the time since the item before, and
//! the region, and up to two more words. Definitions are kept beside it. Words that do not fit into a small buffer are
//! in a temporary file, because memory must not grow with the number of events. The chunks of dynamic loops go only
//! into the log, because the first pass adds them up per loop.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::{fmt, mem};

use ompt_sys as ompt;
use omptrace_timeline::model::{
    Arguments, Awaited, Construct, Enter, Instant, Item, Leave, Location, LocationId, LockId, Ns, Part,
    Point, Process, ProcessId, Region, RegionId, Sink, Summary, TaskId, TeamId, ThreadEvent, Value, Wants,
    argument,
};

use crate::states::collector::{iterations, number};

/// Maximum number of words, 256 MiB. A process with more events is read twice.
const MAX_WORDS: u64 = 32 << 20;
/// Number of words that are in memory.
const BUFFER: usize = 1 << 16;
/// Approximate number of words per eight bytes of unpacked events.
const WORDS_PER_EVENT_WORD: u64 = 2;

const OP_BITS: u32 = 5;
const LOCATION_BITS: u32 = 14;
const TIME_BITS: u32 = 26;
const MORE_BITS: u32 = 64 - OP_BITS - LOCATION_BITS - TIME_BITS;

/// The kinds of items.
mod op {
    pub(super) const ENTER: u64 = 0;
    pub(super) const ENTER_MUTEX: u64 = 1;
    pub(super) const ENTER_DEPENDENCES: u64 = 2;
    pub(super) const ENTER_LOOP: u64 = 3;
    pub(super) const ENTER_CHUNK: u64 = 4;
    pub(super) const LEAVE: u64 = 5;
    pub(super) const FIRST_CHUNK: u64 = 6;
    pub(super) const INSTANT: u64 = 7;
    pub(super) const FORK: u64 = 8;
    pub(super) const JOIN: u64 = 9;
    pub(super) const TEAM_BEGIN: u64 = 10;
    pub(super) const MEMBER_DONE: u64 = 11;
    pub(super) const TASK_CREATE: u64 = 12;
    pub(super) const TASK_DEPENDENCE: u64 = 13;
    pub(super) const TASK_SWITCH: u64 = 14;
    pub(super) const TASK_FULFILL: u64 = 15;
    pub(super) const TASK_COMPLETE: u64 = 16;
    pub(super) const ACQUIRE: u64 = 17;
    pub(super) const RELEASE: u64 = 18;
    pub(super) const RECORDING: u64 = 19;
    /// Another event, which a replay only needs to know the time of.
    pub(super) const OTHER: u64 = 20;
    /// A definition.
    pub(super) const DEFINITION: u64 = 21;
    /// The next word is the time.
    pub(super) const TIME: u64 = 22;
}

/// What starting a region of a construct is, for a replay.
#[derive(Clone, Copy)]
enum Start {
    Plain,
    Loop,
    Chunk,
}

/// An instant's meaning for a replay.
#[derive(Clone, Copy)]
enum Moment {
    Chunk,
    Problem,
    Nothing,
}

enum Definition {
    Process(Process),
    Location(Location),
    Region(Region),
    Summary(ProcessId, Summary),
}

/// The open regions of a location.
#[derive(Clone, Default)]
struct Open {
    depth: u32,
    /// The depths of open chunks.
    chunks: Vec<u32>,
}

/// The log of one process.
#[derive(Default)]
pub(super) struct ReplayLog {
    /// The newest words.
    words: Vec<u64>,
    /// The words before, in a file that has no name.
    file: Option<File>,
    words_in_file: u64,
    definitions: Vec<Definition>,
    last: Ns,
    starts: Vec<Start>,
    moments: Vec<Moment>,
    /// By location.
    open: Vec<Open>,
    /// Something does not fit, so the log is useless.
    is_full: bool,
}

impl fmt::Debug for ReplayLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayLog").field("words_in_file", &self.words_in_file).finish_non_exhaustive()
    }
}

impl ReplayLog {
    /// Whether the log of a trace with this many bytes of events is likely to fit.
    pub(super) fn is_enough_for(event_bytes: u64) -> bool {
        event_bytes / 8 * WORDS_PER_EVENT_WORD <= MAX_WORDS
    }

    /// Whether a replay can be made from the log.
    pub(super) fn is_complete(&self) -> bool {
        !self.is_full
    }

    /// Moves the words from memory to the file.
    #[cold]
    #[inline(never)]
    fn move_to_file(&mut self) {
        let words = mem::take(&mut self.words);
        if self.is_full {
            return;
        }
        self.is_full = self.words_in_file + words.len() as u64 > MAX_WORDS || self.append(&words).is_err();
        self.words = words;
        self.words.clear();
    }

    fn append(&mut self, words: &[u64]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let mut bytes = vec![0; 8 * words.len()];
        let (places, _) = bytes.as_chunks_mut::<8>();
        places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_ne_bytes());
        file.write_all(&bytes)?;
        self.words_in_file += words.len() as u64;
        Ok(())
    }

    #[inline(always)]
    fn put(&mut self, op: u64, at: Point, more: u64) {
        let mut ns = at.time.wrapping_sub(self.last).cast_unsigned();
        if ns >> TIME_BITS != 0 {
            self.words.extend([op::TIME, at.time.cast_unsigned()]);
            ns = 0;
        }
        self.last = at.time;
        let location = u64::from(at.location.0);
        self.is_full |= location >> LOCATION_BITS | more >> MORE_BITS != 0;
        let head = op | location << OP_BITS | ns << (OP_BITS + LOCATION_BITS);
        self.words.push(head | more << (OP_BITS + LOCATION_BITS + TIME_BITS));
    }

    #[inline(always)]
    fn put_with(&mut self, op: u64, at: Point, more: u64, word: u64) {
        self.put(op, at, more);
        self.words.push(word);
    }

    #[cold]
    fn define(&mut self, definition: Definition) {
        if let Definition::Region(Region { construct, .. }) = &definition {
            self.starts.push(match construct {
                Construct::Work(ompt::ompt_work_loop_static) => Start::Loop,
                Construct::Chunk => Start::Chunk,
                _ => Start::Plain,
            });
            self.moments.push(match construct {
                Construct::Dispatch(ompt::ompt_dispatch_ws_loop_chunk) => Moment::Chunk,
                Construct::Doacross | Construct::Cancel => Moment::Problem,
                _ => Moment::Nothing,
            });
        }
        self.words.push(op::DEFINITION);
        self.definitions.push(definition);
    }

    /// Notes an item. Returns false if it is about a chunk of a dynamic loop.
    #[inline(always)]
    fn note(&mut self, item: &Item<'_>) -> bool {
        if self.words.len() >= BUFFER {
            self.move_to_file();
        }
        match item {
            Item::Enter(enter) => return self.enter(enter),
            Item::Leave(leave) => return self.leave(leave.at),
            Item::ThreadEvent(at, event) => self.event(*at, *event),
            Item::Instant(instant) => self.instant(instant),
            Item::Process(process) => self.define(Definition::Process((*process).clone())),
            Item::Location(location) => self.define(Definition::Location((*location).clone())),
            Item::Region(region) => self.define(Definition::Region((*region).clone())),
            Item::Summary(id, summary) => self.define(Definition::Summary(*id, (*summary).clone())),
            _ => {}
        }
        true
    }

    #[inline(always)]
    fn enter(&mut self, enter: &Enter<Arguments<'_>>) -> bool {
        let (at, region) = (enter.at, u64::from(enter.region.0));
        let index = at.location.0 as usize;
        if index >= self.open.len() {
            self.open.resize(index + 1, Open::default());
        }
        let open = &mut self.open[index];
        open.depth += 1;
        match (self.starts[enter.region.0 as usize], enter.awaited) {
            (Start::Chunk, _) => {
                open.chunks.push(open.depth);
                let [start, iterations] = iterations(enter.arguments);
                self.put_with(op::ENTER_CHUNK, at, region, start);
                self.words.push(iterations);
                return false;
            }
            (Start::Loop, _) => {
                self.put_with(op::ENTER_LOOP, at, region, number(enter.arguments, "count"));
            }
            (_, Some(Awaited::Mutex { lock, .. })) if enter.part == Part::First => {
                self.put_with(op::ENTER_MUTEX, at, region, lock.0);
            }
            (_, Some(Awaited::Dependences { task })) => {
                self.put_with(op::ENTER_DEPENDENCES, at, region, task.0);
            }
            _ => self.put(op::ENTER, at, region),
        }
        true
    }

    #[inline(always)]
    fn leave(&mut self, at: Point) -> bool {
        self.put(op::LEAVE, at, 0);
        let Some(open) = self.open.get_mut(at.location.0 as usize) else {
            return true;
        };
        let is_chunk = open.chunks.last() == Some(&open.depth);
        if is_chunk {
            open.chunks.pop();
        }
        open.depth = open.depth.saturating_sub(1);
        !is_chunk
    }

    #[inline(always)]
    fn instant(&mut self, instant: &Instant<Arguments<'_>>) {
        let region = u64::from(instant.region.0);
        match self.moments[instant.region.0 as usize] {
            Moment::Chunk => {
                let [start, iterations] = iterations(instant.arguments);
                self.put_with(op::FIRST_CHUNK, instant.at, region, start);
                self.words.push(iterations);
            }
            Moment::Problem => self.put(op::INSTANT, instant.at, region),
            Moment::Nothing => {}
        }
    }

    #[inline(always)]
    fn event(&mut self, at: Point, event: ThreadEvent) {
        match event {
            ThreadEvent::Fork { team, .. } => self.put_with(op::FORK, at, 0, team.0),
            ThreadEvent::Join { team } => self.put_with(op::JOIN, at, 0, team.0),
            ThreadEvent::TeamBegin { team, size, .. } => {
                self.put_with(op::TEAM_BEGIN, at, u64::from(size), team.0);
            }
            ThreadEvent::MemberDone => self.put(op::MEMBER_DONE, at, 0),
            ThreadEvent::TaskCreate { task, region, is_undeferred, .. } => {
                let more = u64::from(region.0) << 1 | u64::from(is_undeferred);
                self.put_with(op::TASK_CREATE, at, more, task.0);
            }
            ThreadEvent::TaskDependence { from, to } => {
                self.put_with(op::TASK_DEPENDENCE, at, 0, from.0);
                self.words.push(to.0);
            }
            ThreadEvent::TaskSwitch { task, .. } => self.put_with(op::TASK_SWITCH, at, 0, task.0),
            ThreadEvent::TaskFulfill { task, is_late } => {
                self.put_with(op::TASK_FULFILL, at, u64::from(is_late), task.0);
            }
            ThreadEvent::TaskComplete { task } => self.put_with(op::TASK_COMPLETE, at, 0, task.0),
            ThreadEvent::AcquireLock { lock, .. } => self.put_with(op::ACQUIRE, at, 0, lock.0),
            ThreadEvent::ReleaseLock { lock, .. } => self.put_with(op::RELEASE, at, 0, lock.0),
            ThreadEvent::Recording { on } => self.put(op::RECORDING, at, u64::from(on)),
            // Without functions, a replay ignores samples.
            ThreadEvent::Sampled { .. } => {}
            _ => self.put(op::OTHER, at, 0),
        }
    }

    /// Passes all items to `sink`, as the second pass over the trace would, except for those that no replay needs.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub(super) fn replay(&self, sink: &mut (impl Sink + ?Sized)) -> io::Result<()> {
        let mask = |bits: u32| (1_u64 << bits) - 1;
        let mut words = Words { log: self, read: 0, buffer: Vec::new(), at: 0, error: None };
        let mut definitions = self.definitions.iter();
        let mut time: Ns = 0;
        while let Some(head) = words.next() {
            time = time.wrapping_add((head >> (OP_BITS + LOCATION_BITS) & mask(TIME_BITS)).cast_signed());
            let at = Point { location: LocationId((head >> OP_BITS & mask(LOCATION_BITS)) as u32), time };
            let more = head >> (OP_BITS + LOCATION_BITS + TIME_BITS);
            let region = RegionId(more as u32);
            let mut word = || words.next().unwrap_or(0);
            let enter = |part, awaited| Enter { at, region, part, awaited, arguments: NONE };
            let event = match head & mask(OP_BITS) {
                op::ENTER => {
                    sink.item(&Item::Enter(enter(Part::Further, None)));
                    continue;
                }
                op::ENTER_MUTEX => {
                    let awaited = Some(Awaited::Mutex { lock: LockId(word()), held: None });
                    sink.item(&Item::Enter(enter(Part::First, awaited)));
                    continue;
                }
                op::ENTER_DEPENDENCES => {
                    let awaited = Some(Awaited::Dependences { task: TaskId(word()) });
                    sink.item(&Item::Enter(enter(Part::Further, awaited)));
                    continue;
                }
                op::ENTER_LOOP => {
                    let arguments = [argument("count", Value::Uint(word()))];
                    sink.item(&Item::Enter(enter(Part::Further, None).with(&arguments[..])));
                    continue;
                }
                op::ENTER_CHUNK => {
                    let arguments = ["start", "iterations"].map(|name| argument(name, Value::Uint(word())));
                    sink.item(&Item::Enter(enter(Part::Further, None).with(&arguments[..])));
                    continue;
                }
                op::LEAVE => {
                    sink.item(&Item::Leave(Leave { at, arguments: NONE }));
                    continue;
                }
                op::FIRST_CHUNK => {
                    let arguments = ["start", "iterations"].map(|name| argument(name, Value::Uint(word())));
                    sink.item(&Item::Instant(Instant { at, region, arguments: &arguments }));
                    continue;
                }
                op::INSTANT => {
                    sink.item(&Item::Instant(Instant { at, region, arguments: NONE }));
                    continue;
                }
                op::TIME => {
                    time = word().cast_signed();
                    continue;
                }
                op::DEFINITION => {
                    let item = definitions.next().map(|definition| match definition {
                        Definition::Process(process) => Item::Process(process),
                        Definition::Location(location) => Item::Location(location),
                        Definition::Region(region) => Item::Region(region),
                        Definition::Summary(id, summary) => Item::Summary(*id, summary),
                    });
                    item.iter().for_each(|item| sink.item(item));
                    continue;
                }
                op::FORK => ThreadEvent::Fork { team: TeamId(word()), requested: 0 },
                op::JOIN => ThreadEvent::Join { team: TeamId(word()) },
                op::TEAM_BEGIN => {
                    ThreadEvent::TeamBegin { team: TeamId(word()), index: 0, size: more as u32, task: None }
                }
                op::MEMBER_DONE => ThreadEvent::MemberDone,
                op::TASK_CREATE => ThreadEvent::TaskCreate {
                    task: TaskId(word()),
                    region: RegionId((more >> 1) as u32),
                    parent: None,
                    is_undeferred: more & 1 == 1,
                    is_final: false,
                    has_dependences: false,
                },
                op::TASK_DEPENDENCE => {
                    let [from, to] = [TaskId(word()), TaskId(word())];
                    ThreadEvent::TaskDependence { from, to }
                }
                op::TASK_SWITCH => ThreadEvent::TaskSwitch { task: TaskId(word()), has_id: true },
                op::TASK_FULFILL => ThreadEvent::TaskFulfill { task: TaskId(word()), is_late: more == 1 },
                op::TASK_COMPLETE => ThreadEvent::TaskComplete { task: TaskId(word()) },
                op::ACQUIRE => {
                    ThreadEvent::AcquireLock { lock: LockId(word()), kind: ompt::ompt_mutex_lock, order: 0 }
                }
                op::RELEASE => ThreadEvent::ReleaseLock { lock: LockId(word()), order: 0 },
                op::RECORDING => ThreadEvent::Recording { on: more == 1 },
                _ => ThreadEvent::Loop { schedule: ompt::ompt_work_loop_static },
            };
            sink.item(&Item::ThreadEvent(at, event));
        }
        words.error.map_or(Ok(()), Err)
    }
}

/// The words of a log, in order.
struct Words<'l> {
    log: &'l ReplayLog,
    /// Number of words that have been in the buffer.
    read: u64,
    buffer: Vec<u64>,
    at: usize,
    error: Option<io::Error>,
}

impl Words<'_> {
    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        if self.at == self.buffer.len() {
            self.refill();
        }
        let word = self.buffer.get(self.at).copied();
        self.at += 1;
        word
    }

    /// Replaces the words, all of which were read, by the next ones; by none at the end.
    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        let log = self.log;
        let in_file = log.words_in_file.saturating_sub(self.read).min(BUFFER as u64);
        self.buffer.clear();
        self.at = 0;
        match &log.file {
            Some(file) if in_file > 0 => {
                let mut bytes = vec![0; 8 * in_file as usize];
                match file.read_exact_at(&mut bytes, 8 * self.read) {
                    Ok(()) => {
                        let words = bytes.as_chunks::<8>().0.iter();
                        self.buffer.extend(words.map(|word| u64::from_ne_bytes(*word)));
                    }
                    Err(error) => self.error = Some(error),
                }
                self.read += in_file;
            }
            _ if self.read == log.words_in_file => {
                self.buffer.extend_from_slice(&log.words);
                self.read += 1;
            }
            _ => {}
        }
    }
}

const NONE: Arguments<'static> = &[];

/// Logs the items that it passes on to another sink.
pub(super) struct Logged<'s> {
    pub(super) log: ReplayLog,
    pub(super) sink: &'s mut dyn Sink,
}

impl Sink for Logged<'_> {
    fn wants(&self) -> Wants {
        self.sink.wants().and(Wants::THREAD_EVENTS)
    }

    #[inline]
    fn item(&mut self, item: &Item<'_>) {
        if self.log.note(item) {
            self.sink.item(item);
        }
    }

    fn failed(&self) -> bool {
        self.sink.failed()
    }
}

impl fmt::Debug for Logged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logged").field("log", &self.log).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps thread events.
    #[derive(Default)]
    struct Kept(Vec<(Point, ThreadEvent)>);

    impl Sink for Kept {
        fn wants(&self) -> Wants {
            Wants::THREAD_EVENTS
        }

        fn item(&mut self, item: &Item<'_>) {
            if let Item::ThreadEvent(at, event) = item {
                self.0.push((*at, *event));
            }
        }
    }

    #[test]
    fn items_come_back_from_file_and_memory() {
        let mut log = ReplayLog::default();
        let mut expected = Kept::default();
        for number in 0..200_000_u64 {
            // Times go forward by little, far forward, and back.
            let time = 1_000_000 + (number * number % 1_000_003).cast_signed() * ((number % 7) as i64).pow(9);
            let at = Point { location: LocationId((number % 5) as u32), time };
            let event = match number % 3 {
                0 => ThreadEvent::TaskSwitch { task: TaskId(number << 40), has_id: true },
                1 => ThreadEvent::TaskDependence { from: TaskId(number), to: TaskId(u64::MAX - number) },
                _ => ThreadEvent::MemberDone,
            };
            assert!(log.note(&Item::ThreadEvent(at, event)));
            expected.0.push((at, event));
            // Memory is bounded, whatever the items are.
            assert!(log.words.len() <= BUFFER + 4, "{}", log.words.len());
        }
        assert!(log.is_complete() && log.words_in_file > 2 * BUFFER as u64 && !log.words.is_empty());
        let mut replayed = Kept::default();
        log.replay(&mut replayed).expect("the file can be read");
        assert!(replayed.0 == expected.0);
    }

    #[test]
    fn what_does_not_fit_into_a_word_makes_the_log_useless() {
        let mut log = ReplayLog::default();
        let at = |location| Point { location: LocationId(location), time: 5 };
        log.note(&Item::ThreadEvent(at((1 << LOCATION_BITS) - 1), ThreadEvent::MemberDone));
        assert!(log.is_complete());
        log.note(&Item::ThreadEvent(at(1 << LOCATION_BITS), ThreadEvent::MemberDone));
        assert!(!log.is_complete());
    }
}
