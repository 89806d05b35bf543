//! The regions that are open on one thread, strictly nested.
//!
//! Events of a real runtime do not nest: ends come late or never, a task goes on while the one above it is
//! suspended, a phase ends inside another region than it began in. [`Thread`] makes them nest:
//!
//! * an end closes its region and, before it, what is still open above: those ends are missing;
//! * a region that outlives the one around it (a [phase](Construct::Phase)) is cut: it ends with it and goes on after it;
//! * a task that leaves the thread is [cut out](Thread::cut) and its regions wait elsewhere;
//! * times never go back.

use ompt_sys as ompt;

use crate::names::Construct;
use crate::sink::{Argument, LocationId, Ns, Point, RegionId, Value, argument};
use crate::timeline::repair::Cause;
use crate::timeline::stage::Stage;

/// Perfetto's importer drops what is deeper.
const MAX_DEPTH: usize = 500;

/// An open region.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) construct: Construct,
    /// What its end names: the id of a task or region, an address, or 0.
    pub(crate) key: u64,
    pub(crate) region: RegionId,
    /// Ends after this time are late: when the member's parallel region ended.
    limit: Ns,
    /// Counts the slices that this region was cut into.
    part: u64,
}

impl Frame {
    pub(crate) fn new(construct: Construct, key: u64, region: RegionId) -> Frame {
        Frame {
            construct,
            key,
            region,
            limit: Ns::MAX,
            part: 1,
        }
    }

    /// Why the region has no end, when something else shows that it has ended.
    fn cause_of_missing_end(&self) -> Cause {
        match self.construct {
            Construct::Work(ompt::ompt_work_single_executor) => Cause::SingleWithoutEnd,
            _ => Cause::MissingEnd,
        }
    }

    /// Whether the region is a task: what runs inside it belongs to that task.
    pub(crate) fn is_task(&self) -> bool {
        self.is_explicit_task() || self.is_implicit_task()
    }

    /// Whether the region is a member's task; the initial tasks of a league are its members' tasks.
    fn is_implicit_task(&self) -> bool {
        matches!(
            self.construct,
            Construct::ImplicitTask | Construct::InitialTask
        )
    }

    /// Whether the region is a task that can be suspended and go on elsewhere.
    pub(crate) fn is_explicit_task(&self) -> bool {
        matches!(
            self.construct,
            Construct::Task
                | Construct::UntiedTask
                | Construct::TargetTask
                | Construct::TaskwaitTask
        )
    }
}

/// A thread and its open regions, the outermost first.
pub(crate) struct Thread {
    pub(crate) location: LocationId,
    pub(crate) stream: u32,
    stack: Vec<Frame>,
    /// The time of the newest thing on this thread.
    last: Ns,
    /// Regions left out above the deepest that is shown.
    hidden: usize,
}

impl Thread {
    /// A thread on which nothing has happened since `start`.
    pub(crate) fn new(location: LocationId, stream: u32, start: Ns) -> Thread {
        Thread {
            location,
            stream,
            stack: Vec::new(),
            last: start,
            hidden: 0,
        }
    }

    pub(crate) fn stack(&self) -> &[Frame] {
        &self.stack
    }

    /// The open regions, from the innermost.
    pub(crate) fn regions(&self) -> impl Iterator<Item = RegionId> {
        self.stack.iter().rev().map(|frame| frame.region)
    }

    /// The point of `time` on this thread, never before what was there already.
    pub(crate) fn point(&mut self, time: Ns) -> Point {
        self.last = self.last.max(time);
        Point {
            location: self.location,
            time: self.last,
        }
    }

    /// The time of the newest thing on this thread.
    pub(crate) fn last(&self) -> Ns {
        self.last
    }

    /// A region begins.
    pub(crate) fn open(
        &mut self,
        stage: &mut Stage<'_>,
        time: Ns,
        frame: Frame,
        arguments: &[Argument<'_>],
    ) {
        self.close_overdue(stage, time);
        if self.stack.len() >= MAX_DEPTH {
            self.hidden += 1;
            return stage.repairs.add(Cause::TooDeep, self.stream, time);
        }
        stage.sink.enter(self.point(time), frame.region, arguments);
        self.stack.push(frame);
    }

    /// A region that was cut goes on.
    fn reopen(&mut self, stage: &mut Stage<'_>, time: Ns, mut frame: Frame) {
        frame.part += 1;
        let part = argument("part", Value::Uint(frame.part));
        let key = argument("task_data", Value::Hex(frame.key));
        let arguments = if frame.is_explicit_task() {
            &[part, key][..]
        } else {
            &[part][..]
        };
        self.open(stage, time, frame, arguments);
    }

    /// The newest open region of `construct` with `key` ends. False where there is none.
    pub(crate) fn close(
        &mut self,
        stage: &mut Stage<'_>,
        time: Ns,
        construct: Construct,
        key: u64,
        arguments: &[Argument<'_>],
    ) -> bool {
        if self.hidden > 0 {
            self.hidden -= 1;
            return true;
        }
        let is_it = |frame: &Frame| frame.construct == construct && frame.key == key;
        let Some(index) = self.stack.iter().rposition(is_it) else {
            return false;
        };
        let time = self.end_time(stage, time);
        if construct == Construct::Phase {
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

    /// Ends what is open from `depth` on: their own ends are missing. Gives back the phases, which go on.
    /// `cause` tells why an end is missing.
    fn close_above(
        &mut self,
        stage: &mut Stage<'_>,
        time: Ns,
        depth: usize,
        cause: fn(&Frame) -> Cause,
    ) -> Vec<Frame> {
        let mut phases = Vec::new();
        let time = stage.end_of_unended(self.last, time);
        while self.stack.len() > depth {
            let frame = self.leave(stage, time, &[]);
            if frame.construct == Construct::Phase {
                phases.insert(0, frame);
            } else {
                stage.repairs.add(cause(&frame), self.stream, time);
            }
        }
        phases
    }

    fn leave(&mut self, stage: &mut Stage<'_>, time: Ns, arguments: &[Argument<'_>]) -> Frame {
        stage.sink.leave(self.point(time), arguments);
        self.stack.pop().expect("callers leave only what is open")
    }

    /// Ends what is open from `depth` on, for events show that it has ended. Phases go on.
    pub(crate) fn close_unended(&mut self, stage: &mut Stage<'_>, time: Ns, depth: usize) {
        for phase in self.close_above(stage, time, depth, Frame::cause_of_missing_end) {
            self.reopen(stage, time, phase);
        }
    }

    /// Ends everything: the thread or the trace is at its end.
    pub(crate) fn close_all(&mut self, stage: &mut Stage<'_>, time: Ns) {
        self.close_overdue(stage, time);
        self.close_above(stage, time, 0, |_| Cause::MissingEnd);
        self.hidden = 0;
    }

    /// Takes the regions `from..to` out, so that those above go on without them. `arguments` are those of the end of
    /// the outermost that is taken.
    pub(crate) fn cut(
        &mut self,
        stage: &mut Stage<'_>,
        time: Ns,
        from: usize,
        to: usize,
        arguments: &[Argument<'_>],
    ) -> Vec<Frame> {
        for depth in (from..self.stack.len()).rev() {
            let arguments = if depth == from { arguments } else { &[] };
            stage.sink.leave(self.point(time), arguments);
        }
        let mut taken = self.stack.split_off(from);
        for frame in taken.split_off(to - from) {
            self.reopen(stage, time, frame);
        }
        taken
    }

    /// Regions that were cut out elsewhere go on here.
    pub(crate) fn resume(&mut self, stage: &mut Stage<'_>, time: Ns, frames: Vec<Frame>) {
        for frame in frames {
            self.reopen(stage, time, frame);
        }
    }

    /// Where the regions of the task at `index` end and those of the next task above begin.
    pub(crate) fn task_end(&self, index: usize) -> usize {
        let above = self.stack[index + 1..].iter().position(Frame::is_task);
        above.map_or(self.stack.len(), |distance| index + 1 + distance)
    }

    /// The parallel region whose implicit task is `task` has ended at `time`: later ends are late.
    pub(crate) fn set_limit(&mut self, task: u64, time: Ns) {
        let is_it = |frame: &&mut Frame| frame.is_implicit_task() && frame.key == task;
        if let Some(frame) = self.stack.iter_mut().rev().find(is_it) {
            frame.limit = time;
        }
    }

    /// The innermost implicit task's place and limit.
    fn limit(&self) -> Option<(usize, Ns)> {
        let index = self.stack.iter().rposition(Frame::is_implicit_task)?;
        Some((index, self.stack[index].limit))
    }

    /// When something that ends at `time` really ended.
    fn end_time(&mut self, stage: &mut Stage<'_>, time: Ns) -> Ns {
        match self.limit() {
            Some((_, limit)) if limit < time => {
                stage.repairs.add(Cause::LateEnd, self.stream, time);
                limit
            }
            _ => time,
        }
    }

    /// Ends an implicit task whose region is over: something new begins, so its own end will not come.
    fn close_overdue(&mut self, stage: &mut Stage<'_>, time: Ns) {
        while let Some((index, limit)) = self.limit()
            && limit < time
        {
            self.close_unended(stage, limit, index);
        }
    }
}
