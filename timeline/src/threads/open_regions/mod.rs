//! The regions that are open on one thread, strictly nested.
//!
//! Events of real runtimes do not nest: ends are reported late or never, a task continues while the one above it is
//! suspended, and a phase may end inside another region than it started in. [`Thread`] makes the regions nest:
//!
//! * an end closes its region, after closing the regions that are still open above it, whose ends are missing;
//! * a region that outlives the one around it (a [phase](Construct::Phase)) is cut: it ends with that region and
//!   continues after it;
//! * a task that leaves the thread is [cut out](Thread::cut) and its regions are kept elsewhere;
//! * a wait pauses while a task runs on top of it, and continues after the task ([`Thread::settle`]);
//! * a member's implicit task lasts until its parallel region ends, or until the thread does something else;
//! * idling, and running tasks of the region, do not count as something else;
//! * the tracer's own activities may come between the late ends of a region ([`Thread::make_way`]);
//! * times never decrease.

mod frame;
mod progress;

use ompt_sys as ompt;
use omptrace_trace_format::field::Id;

use crate::interpret::item_emitter::Stage;
use crate::model::repairs::Cause;
use crate::model::{
    Anchor, Argument, Awaited, LocationId, Ns, Part, Point, RegionId, ThreadEvent, Value, argument,
};
use crate::names::construct::Construct;
pub(crate) use frame::{Frame, Meaning};
pub(crate) use progress::{FrameState, Progress};

/// Limits the time for a trace that contains only starts: each end is searched among all open regions. Deeper regions
/// are left out; formats for viewers with less room show less.
const MAX_DEPTH: usize = 1 << 16;

/// A thread and its open regions, outermost first.
pub(crate) struct Thread {
    pub(crate) location: LocationId,
    pub(crate) stream: u32,
    /// The thread is a [hidden helper](crate::threads::helpers).
    pub(crate) is_helper: bool,
    stack: Vec<Frame>,
    /// The time of the thread's latest item.
    last: Ns,
    /// The time of the latest instant.
    last_instant: Option<Ns>,
    /// Number of regions deeper than [`MAX_DEPTH`], which are not on the stack.
    hidden: usize,
    /// The unannounced task below all open tasks, if an event names it: an initial task of TR2.
    pub(crate) unannounced_base: Option<u64>,
    /// Construct and key of regions that made way: their late ends are still to come.
    awaited: Vec<(Construct, u64)>,
    /// The tasks of the taskwaits in which this thread is, whose ids the tracer did not set; innermost last.
    pub(crate) taskwaits: Vec<u64>,
    /// The [label](crate::names::Names::label) of regions that start.
    pub(crate) label: u32,
}

impl Thread {
    /// A thread on which nothing has happened since `start`.
    pub(crate) fn new(location: LocationId, stream: u32, is_helper: bool, start: Ns) -> Thread {
        Thread {
            location,
            stream,
            is_helper,
            stack: Vec::new(),
            last: start,
            last_instant: None,
            hidden: 0,
            unannounced_base: None,
            awaited: Vec::new(),
            taskwaits: Vec::new(),
            label: 0,
        }
    }

    pub(crate) fn stack(&self) -> &[Frame] {
        &self.stack
    }

    /// The innermost region.
    pub(crate) fn innermost(&mut self) -> Option<&mut Frame> {
        self.stack.last_mut()
    }

    /// The open regions, innermost first.
    pub(crate) fn regions(&self) -> impl Iterator<Item = RegionId> {
        self.stack.iter().rev().map(|frame| frame.region)
    }

    /// The point of `time` on this thread, but not before the latest item.
    pub(crate) fn point(&mut self, time: Ns) -> Point {
        self.last = self.last.max(time);
        Point { location: self.location, time: self.last }
    }

    /// The point of an item without duration.
    pub(crate) fn instant(&mut self, time: Ns) -> Point {
        let at = self.point(time);
        self.last_instant = Some(at.time);
        at
    }

    /// The anchor of an arrow from the end of a region that ends at `time`.
    pub(crate) fn anchor_of_end(
        &self,
        stage: &Stage<'_>,
        time: Ns,
        is_it: impl Fn(&Frame) -> bool,
    ) -> Anchor {
        let is_innermost = self.stack.len() <= stage.max_depth && self.stack.last().is_some_and(is_it);
        let is_clear = time - self.last >= Anchor::CLEAR_NS && self.last_instant != Some(self.last);
        if is_innermost && is_clear { Anchor::End } else { Anchor::Moment }
    }

    /// The point of an earlier `time` on this thread.
    pub(crate) fn at(&self, time: Ns) -> Point {
        let location = self.location;
        Point { location, time }
    }

    /// Like [`Thread::point`], but earlier items may still follow.
    pub(crate) fn point_ahead(&self, time: Ns) -> Point {
        Point { location: self.location, time: self.last.max(time) }
    }

    /// The time of the latest item on this thread.
    pub(crate) fn last(&self) -> Ns {
        self.last
    }

    /// A region starts.
    #[inline(always)]
    pub(crate) fn open(
        &mut self,
        stage: &mut Stage<'_>,
        time: Ns,
        mut frame: Frame,
        arguments: &[Argument<'_>],
    ) {
        if !self.waits_for_region_end(&frame) {
            self.close_overdue(stage, time);
        }
        let depth = self.stack.len();
        if depth >= MAX_DEPTH {
            return self.hide(stage, time);
        }
        let at = self.point(time);
        if let Some(top) = self.stack.last_mut()
            && frame.is_explicit_task()
            && top.is_wait_for_tasks()
            && !top.paused
        {
            top.paused = true;
            if depth <= stage.max_depth {
                stage.leave(at, &[]);
            }
        }
        // A team is joined once, but a task is switched to whenever it resumes.
        if let Some(event) = frame.event()
            && (frame.part == 1 || frame.is_explicit_task())
        {
            stage.thread_event(at, event);
        }
        if let Construct::SyncRegion(kind) | Construct::SyncRegionWait(kind) = frame.construct
            && frame.part == 1
            && is_barrier(kind)
        {
            frame.meaning = self.barrier(frame.construct, kind);
        }
        let awaited = frame.awaited();
        if frame.part == 1 {
            stage.waits(at, awaited);
        }
        if depth < stage.max_depth {
            stage.enter(at, frame.region, (frame.next_part(), awaited), arguments);
        } else {
            stage.repairs.add(Cause::TooDeep, self.stream, time);
        }
        frame.begin = at.time;
        if frame.part == 1 {
            frame.opened = stage.event;
        }
        self.push(frame);
    }

    /// The meaning of a barrier that the thread enters: the next barrier number of its team. The wait in the barrier
    /// gets the same number.
    #[inline]
    fn barrier(&mut self, construct: Construct, kind: ompt::ompt_sync_region_t) -> Meaning {
        let Some(top) = self.stack.last() else {
            return Meaning::Alone;
        };
        if construct == Construct::SyncRegionWait(kind) && top.construct == Construct::SyncRegion(kind) {
            return top.meaning;
        }
        let Some(member) = top.implicit_task else {
            return Meaning::Alone;
        };
        let member = &mut self.stack[member as usize];
        let Meaning::Member { team, .. } = member.meaning else {
            return Meaning::Alone;
        };
        member.barriers = member.barriers.saturating_add(1);
        let number = member.barriers;
        Meaning::Wait(Awaited::Barrier { team, number })
    }

    #[cold]
    fn hide(&mut self, stage: &mut Stage<'_>, time: Ns) {
        self.hidden += 1;
        stage.repairs.add(Cause::TooDeep, self.stream, time);
    }

    /// Whether a region that starts now is hidden.
    pub(crate) fn is_full(&self) -> bool {
        self.stack.len() >= MAX_DEPTH
    }

    /// The end of a task that is not on the stack. False if no region is hidden.
    pub(crate) fn end_hidden(&mut self) -> bool {
        let is_hidden = self.hidden > 0;
        self.hidden -= usize::from(is_hidden);
        is_hidden
    }

    #[inline(always)]
    fn push(&mut self, mut frame: Frame) {
        frame.implicit_task = if frame.is_implicit_task() {
            Some(self.stack.len() as u32)
        } else {
            self.stack.last().and_then(|top| top.implicit_task)
        };
        self.stack.push(frame);
    }

    /// Nothing runs on top of the innermost region any more, so if it is a wait, it continues. Returns
    /// [`Thread::wait`].
    #[inline(always)]
    pub(crate) fn settle(&mut self, stage: &mut Stage<'_>, time: Ns) -> Option<Construct> {
        if self.stack.last()?.paused {
            return self.wait_on(stage, time);
        }
        self.wait()
    }

    #[inline(never)]
    fn wait_on(&mut self, stage: &mut Stage<'_>, time: Ns) -> Option<Construct> {
        let at = self.point(time);
        let is_shown = self.stack.len() <= stage.max_depth;
        if let Some(top) = self.stack.last_mut() {
            top.paused = false;
            top.further = stage.event;
            // A wait belongs to the region around it, which shows the total duration; idling has no such region.
            let part = argument("part", Value::Uint(u64::from(top.part) + 1));
            let arguments = match top.construct {
                Construct::Idle => &[part][..],
                _ => &[],
            };
            top.part += u32::from(top.construct == Construct::Idle);
            if is_shown {
                stage.enter(at, top.region, (Part::Resumed, top.awaited()), arguments);
            }
        }
        self.wait()
    }

    /// A region that was cut continues.
    #[inline(never)]
    fn reopen(&mut self, stage: &mut Stage<'_>, time: Ns, mut frame: Frame) {
        if frame.is_wait_for_tasks() {
            frame.paused = true;
            return self.push(frame);
        }
        frame.part += 1;
        let part = argument("part", Value::Uint(frame.part.into()));
        let key = argument("task_data", Value::Hex(frame.key));
        let arguments = if frame.is_explicit_task() { &[part, key][..] } else { &[part][..] };
        self.open(stage, time, frame, arguments);
    }

    /// Ends the newest open region of `construct` with `key`. False if there is none.
    #[inline(always)]
    pub(crate) fn close(
        &mut self,
        stage: &mut Stage<'_>,
        time: Ns,
        construct: Construct,
        key: u64,
        arguments: &[Argument<'_>],
    ) -> bool {
        match self.stack.last() {
            Some(top) if top.construct == construct && top.key == key && self.hidden == 0 => {
                let time = self.end_time(stage, time);
                self.leave(stage, time, arguments);
                true
            }
            _ => self.close_beneath(stage, time, construct, key, arguments),
        }
    }

    /// Like [`Thread::close`], if other regions are open above this one, or if it is hidden. A region without a key may
    /// be in a hidden task, so it counts as hidden. The end of a region with a key shows that all regions above it have
    /// ended.
    #[inline(never)]
    fn close_beneath(
        &mut self,
        stage: &mut Stage<'_>,
        time: Ns,
        construct: Construct,
        key: u64,
        arguments: &[Argument<'_>],
    ) -> bool {
        if self.hidden > 0 && key == 0 {
            return self.end_hidden();
        }
        let is_it = |frame: &Frame| frame.construct == construct && frame.key == key;
        let Some(index) = self.stack.iter().rposition(is_it) else {
            return self.end_hidden() || self.end_awaited(stage, time, construct, key);
        };
        let time = self.end_time(stage, time);
        if construct.is_phase() {
            self.cut(stage, time, index, index + 1, arguments);
        } else {
            let phases = self.close_above(stage, time, index + 1, Frame::cause_of_missing_end);
            self.leave(stage, time, arguments);
            for phase in phases {
                self.reopen(stage, time, phase);
            }
        }
        true
    }

    /// Ends the regions from `depth` on, whose own ends are missing. Returns those that
    /// [outlive](Frame::outlives_others) the others. `cause`: the reason why an end is missing.
    fn close_above(
        &mut self,
        stage: &mut Stage<'_>,
        time: Ns,
        depth: usize,
        cause: fn(&Frame) -> Option<Cause>,
    ) -> Vec<Frame> {
        let mut phases = Vec::new();
        let time = stage.end_of_unended(self.last, time);
        while self.stack.len() > depth {
            let frame = self.leave(stage, time, &[]);
            if frame.outlives_others() {
                phases.insert(0, frame);
            } else if let Some(cause) = cause(&frame) {
                stage.repairs.add(cause, self.stream, time);
            }
        }
        phases
    }

    #[inline(always)]
    fn leave(&mut self, stage: &mut Stage<'_>, time: Ns, arguments: &[Argument<'_>]) -> Frame {
        let frame = self.stack.pop().expect("callers leave only what is open");
        self.hidden = 0;
        let is_shown = !frame.paused && self.stack.len() < stage.max_depth;
        if is_shown {
            stage.leave(self.point(time), arguments);
        }
        if !is_shown || stage.wants_meetings && !matches!(frame.meaning, Meaning::Alone) {
            self.ends(stage, time, &frame);
        }
        frame
    }

    /// The next end of this task on the stack does not complete it.
    pub(crate) fn detach(&mut self, task: u64) {
        let is_it = |frame: &&mut Frame| frame.is_explicit_task() && frame.key == task;
        if let Some(frame) = self.stack.iter_mut().rev().find(is_it) {
            frame.detach();
        }
    }

    /// Emits the thread event for a region that has ended, if it has one.
    #[inline(always)]
    fn ends(&mut self, stage: &mut Stage<'_>, time: Ns, frame: &Frame) {
        if let Meaning::Wait(awaited) = frame.meaning {
            let at = self.point_ahead(time);
            stage.goes_on(frame.construct, frame.begin, at, awaited);
        }
        if let Some(event) = frame.end_of_event() {
            stage.thread_event(self.point(time), event);
        }
    }

    /// Ends the regions from `depth` on, because events show that they have ended. Phases continue.
    #[inline(never)]
    pub(crate) fn close_unended(&mut self, stage: &mut Stage<'_>, time: Ns, depth: usize) {
        for phase in self.close_above(stage, time, depth, Frame::cause_of_missing_end) {
            self.reopen(stage, time, phase);
        }
    }

    /// Ends all regions at the end of the thread or trace.
    pub(crate) fn close_all(&mut self, stage: &mut Stage<'_>, time: Ns) {
        self.await_no_more(stage, time);
        self.close_overdue(stage, time);
        let outliving =
            self.close_above(stage, time, 0, |frame| frame.cause_of_missing_end().map(|_| Cause::MissingEnd));
        let is_idle = |frame: &&Frame| frame.construct == Construct::Idle;
        for _ in outliving.iter().filter(is_idle) {
            stage.repairs.add(Cause::MissingEnd, self.stream, time);
        }
    }

    /// Removes the regions `from..to`; those above continue without them. `arguments`: the arguments of the end of the
    /// outermost removed region.
    pub(crate) fn cut(
        &mut self,
        stage: &mut Stage<'_>,
        time: Ns,
        from: usize,
        to: usize,
        arguments: &[Argument<'_>],
    ) -> Vec<Frame> {
        self.hidden = 0;
        for depth in (from..self.stack.len()).rev() {
            let arguments = if depth == from { arguments } else { &[] };
            if !self.stack[depth].paused && depth < stage.max_depth {
                stage.leave(self.point(time), arguments);
            }
        }
        let mut taken = self.stack.split_off(from);
        for frame in taken.split_off(to - from) {
            self.reopen(stage, time, frame);
        }
        taken
    }

    /// Regions that were cut out elsewhere continue here.
    pub(crate) fn resume(&mut self, stage: &mut Stage<'_>, time: Ns, frames: Vec<Frame>) {
        for frame in frames {
            self.reopen(stage, time, frame);
        }
    }

    /// The index after the regions of the task at `index`, at which the next task above starts.
    pub(crate) fn task_end(&self, index: usize) -> usize {
        let above = self.stack[index + 1..].iter().position(Frame::is_task);
        above.map_or(self.stack.len(), |distance| index + 1 + distance)
    }

    /// The implicit task `task` reports its end at `time`. If its parallel region continues, ends the regions above,
    /// and the task continues until its region ends; otherwise returns false.
    pub(crate) fn end_before_region(&mut self, stage: &mut Stage<'_>, time: Ns, task: u64) -> bool {
        let Some(index) = self.implicit_task(task) else {
            return false;
        };
        let frame = &self.stack[index];
        if !frame.is_member || frame.limit < Ns::MAX {
            return false;
        }
        self.close_unended(stage, time, index + 1);
        let end = self.point(time).time;
        let frame = &mut self.stack[index];
        (frame.ended, frame.limit) = (true, end);
        stage.thread_event(self.point(end), ThreadEvent::MemberDone);
        true
    }

    /// The implicit task `task`, which has reported its end, continues until the tasks of its region are complete.
    /// False if it has not reported its end.
    pub(crate) fn end_with_tasks(&mut self, task: u64) -> bool {
        let Some(index) = self.implicit_task(task) else {
            return false;
        };
        let frame = &mut self.stack[index];
        if frame.ended {
            frame.limit = Ns::MAX;
        }
        frame.ended
    }

    /// The parallel region whose implicit task is `task` has ended at `time`, and the task with it. Later ends are
    /// late.
    pub(crate) fn region_ended(&mut self, stage: &mut Stage<'_>, time: Ns, task: u64) {
        let Some(index) = self.implicit_task(task) else {
            return;
        };
        let frame = &mut self.stack[index];
        if frame.ended {
            frame.limit = Ns::MAX;
            let construct = frame.construct;
            self.close(stage, time, construct, task, &[]);
            // A thread that idled in it continues to do so.
            self.settle(stage, time);
        } else {
            frame.limit = time;
        }
    }

    /// Whether all parallel regions of the thread have ended, so that it only reports ends late. It may be in its
    /// initial task, and in ranges that the program named.
    pub(crate) fn is_between_regions(&self) -> bool {
        match self.stack.first() {
            None => true,
            Some(frame) if frame.is_member => frame.limit < Ns::MAX,
            Some(_) => self
                .stack
                .iter()
                .all(|frame| matches!(frame.construct, Construct::InitialTask | Construct::Annotation(_))),
        }
    }

    /// When the implicit task `task` reported its end; `None` if it has not.
    pub(crate) fn reported_end(&self, task: u64) -> Option<Ns> {
        let frame = &self.stack[self.implicit_task(task)?];
        frame.ended.then_some(frame.limit)
    }

    /// Whether a task is open.
    pub(crate) fn is_in_task(&self) -> bool {
        self.stack.iter().any(Frame::is_task)
    }

    /// The index of an open implicit task.
    fn implicit_task(&self, task: u64) -> Option<usize> {
        let is_it = |frame: &Frame| frame.is_implicit_task() && frame.key == task;
        self.stack.iter().rposition(is_it)
    }

    /// The innermost open implicit task.
    #[inline]
    pub(crate) fn innermost_implicit_task(&self) -> Option<u64> {
        let index = self.stack.last()?.implicit_task?;
        Some(self.stack[index as usize].key)
    }

    /// The index of the innermost implicit task, if it is a member's of the parallel region `region`.
    pub(crate) fn innermost_member_of(&self, region: Id) -> Option<usize> {
        let index = self.stack.last()?.implicit_task? as usize;
        match self.stack[index].meaning {
            Meaning::Member { team, .. } if Id(team.0) == region => Some(index),
            _ => None,
        }
    }

    /// Whether the thread is in a parallel region that has not ended.
    #[inline]
    pub(crate) fn is_in_parallel_region(&self) -> bool {
        let mut inside = self.stack.last();
        while let Some(index) = inside.and_then(|frame| frame.implicit_task) {
            let frame = &self.stack[index as usize];
            if frame.construct == Construct::ImplicitTask && frame.limit == Ns::MAX {
                return true;
            }
            inside = self.stack[..index as usize].last();
        }
        false
    }

    /// The wait in which the thread is. Testing a lock is not a wait.
    #[inline(always)]
    pub(crate) fn wait(&self) -> Option<Construct> {
        let top = self.stack.last()?;
        match top.construct {
            Construct::MutexWait(ompt::ompt_mutex_test_lock | ompt::ompt_mutex_test_nest_lock) => None,
            Construct::SyncRegionWait(_) | Construct::MutexWait(_) if self.goes_on() => Some(top.construct),
            _ => None,
        }
    }

    /// Whether the parallel region of the innermost implicit task continues.
    #[inline(always)]
    fn goes_on(&self) -> bool {
        let is_on = |(index, limit)| limit == Ns::MAX || self.is_left_early(index);
        self.limit().is_none_or(is_on)
    }

    /// The index and the limit of the innermost implicit task.
    #[inline(always)]
    fn limit(&self) -> Option<(usize, Ns)> {
        let index = self.stack.last()?.implicit_task? as usize;
        Some((index, self.stack[index].limit))
    }

    /// The actual end of a region whose end is reported at `time`.
    #[inline(always)]
    fn end_time(&mut self, stage: &mut Stage<'_>, time: Ns) -> Ns {
        match self.limit() {
            Some((index, limit)) if limit < time && !self.is_left_early(index) => {
                stage.repairs.add(Cause::LateEnd, self.stream, time);
                limit
            }
            _ => time,
        }
    }

    /// Whether the implicit task at `index` has reported its end, but the thread is in a region above it that still
    /// belongs to the parallel region.
    #[inline(never)]
    fn is_left_early(&self, index: usize) -> bool {
        self.stack[index].ended && index + 1 < self.stack.len()
    }

    /// Whether the thread, whose implicit task has reported its end, starts something that it may do until its parallel
    /// region ends: it may idle, or run tasks of the region. TR2 runtimes report that end before the region's last
    /// tasks have run.
    #[inline(always)]
    fn waits_for_region_end(&self, begins: &Frame) -> bool {
        let Some((index, limit)) = self.limit() else {
            return false;
        };
        let may_begin = || begins.construct == Construct::Idle || begins.is_explicit_task();
        limit < Ns::MAX && self.stack[index].ended && (may_begin() || index + 1 < self.stack.len())
    }

    /// Ends implicit tasks whose region is over, or that have reported their end: a new region starts, so nothing else
    /// will end them.
    #[inline(always)]
    pub(crate) fn close_overdue(&mut self, stage: &mut Stage<'_>, time: Ns) {
        while let Some((index, limit)) = self.limit()
            && limit < time
        {
            self.close_unended(stage, limit, index);
        }
    }

    /// An activity of the tracer at `time`, which says nothing about the program. Ends the regions that were over by
    /// then at their actual end; their reported ends may still follow.
    pub(crate) fn make_way(&mut self, stage: &mut Stage<'_>, time: Ns) {
        while let Some((index, limit)) = self.limit()
            && limit < time
            && !self.is_left_early(index)
        {
            let over = self.stack[index..].iter();
            let unended = over.filter(|frame| frame.cause_of_missing_end().is_some());
            self.awaited.extend(unended.map(|frame| (frame.construct, frame.key)));
            for phase in self.close_above(stage, limit, index, |_| None) {
                self.reopen(stage, limit, phase);
            }
        }
    }

    /// The late end of a region that made way. False if there is none.
    fn end_awaited(&mut self, stage: &mut Stage<'_>, time: Ns, construct: Construct, key: u64) -> bool {
        let is_it = |awaited: &(Construct, u64)| *awaited == (construct, key);
        let Some(index) = self.awaited.iter().rposition(is_it) else {
            return false;
        };
        self.awaited.remove(index);
        stage.repairs.add(Cause::LateEnd, self.stream, time);
        true
    }

    /// The thread does something else by now, so ends that have not been reported are missing.
    #[inline]
    pub(crate) fn await_no_more(&mut self, stage: &mut Stage<'_>, time: Ns) {
        for _ in self.awaited.drain(..) {
            stage.repairs.add(Cause::MissingEnd, self.stream, time);
        }
    }
}

/// Whether the members of a team wait for each other in this kind of region.
fn is_barrier(kind: ompt::ompt_sync_region_t) -> bool {
    matches!(
        kind,
        ompt::ompt_sync_region_barrier
            | ompt::ompt_sync_region_barrier_implicit
            | ompt::ompt_sync_region_barrier_explicit
            | ompt::ompt_sync_region_barrier_implementation
            | ompt::ompt_sync_region_barrier_implicit_workshare
            | ompt::ompt_sync_region_barrier_implicit_parallel
            | ompt::ompt_sync_region_barrier_teams
    )
}
