//! A log of the first pass, from which the replay of changes is made without reading and interpreting the trace again.
//!
//! ```text
//! first pass   trace --> interpretation --> Logged --> numbers, answers
//!                                              |
//! second pass                                 log ---> replay
//! ```
//!
//! Each item that matters for a replay is a [record](crate::passes::log_records), which has the kind, the thread, the time
//! since the item before, and the region, and up to two ids or numbers. Definitions are kept beside the records. The
//! chunks of dynamic loops go only into the log, because the first pass adds them up per loop. The wait in a barrier does
//! not go into the log, because for a replay, the thread is in the barrier anyway.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use ompt_sys as ompt;
use omptrace_timeline::model::{
    Argument, Arguments, Awaited, Construct, Enter, Instant, Item, Leave, Location, LockId, Part, Point,
    Process, ProcessId, Region, RegionId, Sink, Summary, TaskId, TeamId, ThreadEvent, Value, Wants, argument,
};

use crate::passes::log_records::{KINDS, MAX_BYTES, Records};
use crate::states::collector::{iterations, number};
use crate::states::region_kind::Kind;

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
    /// A segment begins.
    pub(super) const SEGMENT: u64 = 22;

    /// By kind, the number of numbers in a record.
    pub(super) const NUMBERS: [usize; super::KINDS] = {
        let mut numbers = [0; super::KINDS];
        let kinds: [(&[u64], usize); 4] = [
            (&[ENTER, INSTANT, RECORDING, FORK, JOIN, TASK_SWITCH, TASK_COMPLETE, ACQUIRE, RELEASE], 1),
            (&[ENTER_MUTEX, ENTER_DEPENDENCES, ENTER_LOOP, TEAM_BEGIN, TASK_CREATE], 2),
            (&[TASK_DEPENDENCE, TASK_FULFILL], 2),
            (&[ENTER_CHUNK, FIRST_CHUNK], 3),
        ];
        let mut of_kind = 0;
        while of_kind < kinds.len() {
            let (ops, count) = kinds[of_kind];
            let mut op = 0;
            while op < ops.len() {
                numbers[ops[op] as usize] = count;
                op += 1;
            }
            of_kind += 1;
        }
        numbers
    };
}

/// What starting a region of a construct is, for a replay.
#[derive(Clone, Copy)]
enum Start {
    Plain,
    Loop,
    Chunk,
    /// A barrier, or the wait in it.
    Barrier,
    /// An implicit task.
    Member,
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
    /// The depths of open regions that are not in the log.
    left_out: Vec<u32>,
    /// The open implicit tasks of teams.
    members: Vec<OpenMember>,
    /// The team whose implicit task starts next.
    joined: Option<TeamId>,
}

/// An open implicit task.
#[derive(Clone, Copy)]
struct OpenMember {
    team: TeamId,
    depth: u32,
    /// The depth of the barrier in which its thread is.
    barrier: Option<u32>,
}

impl Open {
    /// Whether the barrier region that starts is a part of one that is already open, such as the wait in it. For a
    /// replay, it means nothing. Otherwise, the thread arrives at a barrier.
    #[inline]
    fn is_in_barrier(&mut self) -> bool {
        let Some(member) = self.members.last_mut() else {
            return false;
        };
        let around = self.depth - 1;
        match member.barrier {
            Some(barrier) => barrier == around || self.left_out.last() == Some(&around),
            None => {
                member.barrier = Some(self.depth);
                false
            }
        }
    }
}

/// The log of one process, or of a segment of it.
#[derive(Default)]
pub(super) struct ReplayLog {
    records: Records,
    definitions: Vec<Definition>,
    starts: Vec<Start>,
    moments: Vec<Moment>,
    /// By location.
    open: Vec<Open>,
    /// The teams that exist.
    teams: BTreeSet<TeamId>,
}

impl fmt::Debug for ReplayLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayLog").field("records", &self.records).finish_non_exhaustive()
    }
}

impl ReplayLog {
    /// Whether the log of a trace with this many bytes of events is likely to fit: records take about as much.
    pub(super) fn is_enough_for(event_bytes: u64) -> bool {
        event_bytes <= MAX_BYTES
    }

    /// Whether a replay can be made from the log.
    pub(super) fn is_complete(&self) -> bool {
        self.records.are_complete()
    }

    #[cold]
    fn define(&mut self, definition: Definition) {
        if let Definition::Region(Region { construct, .. }) = &definition {
            self.starts.push(match Kind::of(*construct) {
                Kind::StaticLoop => Start::Loop,
                Kind::Chunk => Start::Chunk,
                Kind::Barrier { .. } => Start::Barrier,
                Kind::Member | Kind::Initial => Start::Member,
                _ => Start::Plain,
            });
            self.moments.push(match construct {
                Construct::Dispatch(ompt::ompt_dispatch_ws_loop_chunk) => Moment::Chunk,
                Construct::Doacross | Construct::Cancel => Moment::Problem,
                _ => Moment::Nothing,
            });
        }
        self.records.push_mark(op::DEFINITION);
        self.definitions.push(definition);
    }

    /// Notes an item. Returns false if it is about a chunk of a dynamic loop.
    #[inline(always)]
    fn note(&mut self, item: &Item<'_>) -> bool {
        match item {
            Item::Enter(enter) => return self.enter(enter),
            Item::Leave(leave) => return self.leave(leave.at),
            Item::ThreadEvent(at, event) => self.event(*at, *event),
            Item::Instant(instant) => self.instant(instant),
            Item::Process(process) => self.define(Definition::Process((*process).clone())),
            Item::Location(location) => self.define(Definition::Location((*location).clone())),
            Item::Region(region) => self.define(Definition::Region((*region).clone())),
            Item::Summary(id, summary) => self.define(Definition::Summary(*id, (*summary).clone())),
            Item::Segment => self.records.push_mark(op::SEGMENT),
            _ => {}
        }
        true
    }

    #[inline(always)]
    fn enter(&mut self, enter: &Enter<Arguments<'_>>) -> bool {
        let (at, region) = (enter.at, u64::from(enter.region.0));
        let index = at.location.0 as usize;
        if index >= self.open.len() {
            self.add_location(index);
        }
        let open = &mut self.open[index];
        open.depth += 1;
        let joined = open.joined.take();
        match (self.starts[enter.region.0 as usize], enter.awaited) {
            (Start::Chunk, _) => {
                open.chunks.push(open.depth);
                let [start, iterations] = iterations(enter.arguments);
                self.records.push(op::ENTER_CHUNK, at, [region, start, iterations]);
                return false;
            }
            (Start::Barrier, _) if open.is_in_barrier() => open.left_out.push(open.depth),
            (Start::Loop, _) => {
                self.records.push(op::ENTER_LOOP, at, [region, number(enter.arguments, "count")]);
            }
            (_, Some(Awaited::Mutex { lock, .. })) if enter.part == Part::First => {
                self.records.push(op::ENTER_MUTEX, at, [region, lock.0]);
            }
            (_, Some(Awaited::Dependences { task })) => {
                self.records.push(op::ENTER_DEPENDENCES, at, [region, task.0]);
            }
            (start, _) => {
                if let (Start::Member, Some(team)) = (start, joined) {
                    open.members.push(OpenMember { team, depth: open.depth, barrier: None });
                }
                self.records.push(op::ENTER, at, [region]);
            }
        }
        true
    }

    /// Notes the end of a region. Returns false if it is a chunk of a dynamic loop.
    #[inline(always)]
    fn leave(&mut self, at: Point) -> bool {
        let Some(open) = self.open.get_mut(at.location.0 as usize) else {
            self.records.push(op::LEAVE, at, []);
            return true;
        };
        let depth = open.depth;
        open.depth = depth.saturating_sub(1);
        if open.left_out.last() == Some(&depth) {
            open.left_out.pop();
            return true;
        }
        if let Some(member) = open.members.last_mut() {
            if member.barrier == Some(depth) {
                member.barrier = None;
            } else if member.depth == depth {
                open.members.pop();
            }
        }
        self.records.push(op::LEAVE, at, []);
        let is_chunk = open.chunks.last() == Some(&depth);
        if is_chunk {
            open.chunks.pop();
        }
        !is_chunk
    }

    /// The open regions of a location.
    fn open_at(&mut self, at: Point) -> &mut Open {
        let index = at.location.0 as usize;
        if index >= self.open.len() {
            self.add_location(index);
        }
        &mut self.open[index]
    }

    #[cold]
    #[inline(never)]
    fn add_location(&mut self, index: usize) {
        self.open.resize(index + 1, Open::default());
    }

    /// A team begins or ends: its members are in no barrier.
    fn end_barriers(&mut self, team: TeamId) {
        let members = self.open.iter_mut().flat_map(|open| &mut open.members);
        members.filter(|member| member.team == team).for_each(|member| member.barrier = None);
    }

    #[inline(always)]
    fn instant(&mut self, instant: &Instant<Arguments<'_>>) {
        let region = u64::from(instant.region.0);
        match self.moments[instant.region.0 as usize] {
            Moment::Chunk => {
                let [start, iterations] = iterations(instant.arguments);
                self.records.push(op::FIRST_CHUNK, instant.at, [region, start, iterations]);
            }
            Moment::Problem => self.records.push(op::INSTANT, instant.at, [region]),
            Moment::Nothing => {}
        }
    }

    #[inline(always)]
    fn event(&mut self, at: Point, event: ThreadEvent) {
        let records = &mut self.records;
        match event {
            ThreadEvent::Fork { team, .. } => {
                records.push(op::FORK, at, [team.0]);
                if !self.teams.insert(team) {
                    self.end_barriers(team);
                }
            }
            ThreadEvent::Join { team } => {
                records.push(op::JOIN, at, [team.0]);
                self.teams.remove(&team);
                self.end_barriers(team);
            }
            ThreadEvent::TeamBegin { team, size, .. } => {
                records.push(op::TEAM_BEGIN, at, [u64::from(size), team.0]);
                let is_known = self.teams.contains(&team);
                self.open_at(at).joined = Some(team).filter(|_| is_known);
            }
            ThreadEvent::MemberDone => {
                records.push(op::MEMBER_DONE, at, []);
                if let Some(member) = self.open_at(at).members.last_mut() {
                    member.barrier = None;
                }
            }
            ThreadEvent::TaskCreate { task, region, is_undeferred, .. } => {
                let more = u64::from(region.0) << 1 | u64::from(is_undeferred);
                records.push(op::TASK_CREATE, at, [more, task.0]);
            }
            ThreadEvent::TaskDependence { from, to } => {
                records.push(op::TASK_DEPENDENCE, at, [from.0, to.0]);
            }
            ThreadEvent::TaskSwitch { task, .. } => records.push(op::TASK_SWITCH, at, [task.0]),
            ThreadEvent::TaskFulfill { task, is_late } => {
                records.push(op::TASK_FULFILL, at, [u64::from(is_late), task.0]);
            }
            ThreadEvent::TaskComplete { task } => records.push(op::TASK_COMPLETE, at, [task.0]),
            ThreadEvent::AcquireLock { lock, .. } => records.push(op::ACQUIRE, at, [lock.0]),
            ThreadEvent::ReleaseLock { lock, .. } => records.push(op::RELEASE, at, [lock.0]),
            ThreadEvent::Recording { on } => records.push(op::RECORDING, at, [u64::from(on)]),
            // Without functions, a replay ignores samples.
            ThreadEvent::Sampled { .. } => {}
            _ => records.push(op::OTHER, at, []),
        }
    }

    /// Passes all items to `sink`, as the second pass over the trace would, except for those that no replay needs.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub(super) fn replay(&self, sink: &mut (impl Sink + ?Sized)) -> io::Result<()> {
        let mut records = self.records.read();
        let mut definitions = self.definitions.iter();
        while let Some((kind, at, [first, second, third])) = records.next(&op::NUMBERS) {
            let region = RegionId(first as u32);
            let enter = |part, awaited| Enter { at, region, part, awaited, arguments: NONE };
            let event = match kind {
                op::ENTER => {
                    sink.item(&Item::Enter(enter(Part::Further, None)));
                    continue;
                }
                op::ENTER_MUTEX => {
                    let awaited = Some(Awaited::Mutex { lock: LockId(second), held: None });
                    sink.item(&Item::Enter(enter(Part::First, awaited)));
                    continue;
                }
                op::ENTER_DEPENDENCES => {
                    let awaited = Some(Awaited::Dependences { task: TaskId(second) });
                    sink.item(&Item::Enter(enter(Part::Further, awaited)));
                    continue;
                }
                op::ENTER_LOOP => {
                    let arguments = [argument("count", Value::Uint(second))];
                    sink.item(&Item::Enter(enter(Part::Further, None).with(&arguments[..])));
                    continue;
                }
                op::ENTER_CHUNK => {
                    let arguments = chunk(second, third);
                    sink.item(&Item::Enter(enter(Part::Further, None).with(&arguments[..])));
                    continue;
                }
                op::LEAVE => {
                    sink.item(&Item::Leave(Leave { at, arguments: NONE }));
                    continue;
                }
                op::FIRST_CHUNK => {
                    let arguments = chunk(second, third);
                    sink.item(&Item::Instant(Instant { at, region, arguments: &arguments }));
                    continue;
                }
                op::INSTANT => {
                    sink.item(&Item::Instant(Instant { at, region, arguments: NONE }));
                    continue;
                }
                op::SEGMENT => {
                    sink.item(&Item::Segment);
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
                op::FORK => ThreadEvent::Fork { team: TeamId(first), requested: 0 },
                op::JOIN => ThreadEvent::Join { team: TeamId(first) },
                op::TEAM_BEGIN => {
                    ThreadEvent::TeamBegin { team: TeamId(second), index: 0, size: first as u32, task: None }
                }
                op::MEMBER_DONE => ThreadEvent::MemberDone,
                op::TASK_CREATE => ThreadEvent::TaskCreate {
                    task: TaskId(second),
                    region: RegionId((first >> 1) as u32),
                    parent: None,
                    is_undeferred: first & 1 == 1,
                    is_final: false,
                    has_dependences: false,
                },
                op::TASK_DEPENDENCE => {
                    ThreadEvent::TaskDependence { from: TaskId(first), to: TaskId(second) }
                }
                op::TASK_SWITCH => ThreadEvent::TaskSwitch { task: TaskId(first), has_id: true },
                op::TASK_FULFILL => ThreadEvent::TaskFulfill { task: TaskId(second), is_late: first == 1 },
                op::TASK_COMPLETE => ThreadEvent::TaskComplete { task: TaskId(first) },
                op::ACQUIRE => {
                    ThreadEvent::AcquireLock { lock: LockId(first), kind: ompt::ompt_mutex_lock, order: 0 }
                }
                op::RELEASE => ThreadEvent::ReleaseLock { lock: LockId(first), order: 0 },
                op::RECORDING => ThreadEvent::Recording { on: first == 1 },
                _ => ThreadEvent::Loop { schedule: ompt::ompt_work_loop_static },
            };
            sink.item(&Item::ThreadEvent(at, event));
        }
        records.end()
    }
}

/// The arguments of a chunk.
fn chunk(start: u64, iterations: u64) -> [Argument<'static>; 2] {
    [argument("start", Value::Uint(start)), argument("iterations", Value::Uint(iterations))]
}

const NONE: Arguments<'static> = &[];

/// Logs the items that it passes on to another sink.
pub(super) struct Logged<'s, T: Sink + ?Sized> {
    pub(super) log: ReplayLog,
    pub(super) sink: &'s mut T,
}

impl<T: Sink + ?Sized> Sink for Logged<'_, T> {
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

impl<T: Sink + ?Sized> fmt::Debug for Logged<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logged").field("log", &self.log).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use omptrace_timeline::model::LocationId;

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
    fn items_come_back() {
        let mut log = ReplayLog::default();
        let mut expected = Kept::default();
        for number in 0..200_000_u64 {
            // Times go forward by little, far forward, and back.
            let time = 1_000_000 + (number * number % 1_000_003).cast_signed() * ((number % 7) as i64).pow(9);
            let at = Point { location: LocationId((number / 2 % 5) as u32), time };
            let event = match number % 3 {
                0 => ThreadEvent::TaskSwitch { task: TaskId(number << 40), has_id: true },
                1 => ThreadEvent::TaskDependence { from: TaskId(number), to: TaskId(u64::MAX - number) },
                _ => ThreadEvent::MemberDone,
            };
            assert!(log.note(&Item::ThreadEvent(at, event)));
            expected.0.push((at, event));
        }
        assert!(log.is_complete());
        let mut replayed = Kept::default();
        log.replay(&mut replayed).expect("the file can be read");
        assert!(replayed.0 == expected.0);
    }
}
