//! MPI calls: the time that a thread spends in the library, and the part of it during which it waits for another
//! process.
//!
//! The wait is a region inside the call's region. It ends between two events, so it is closed before the next event is
//! interpreted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use omptrace_trace_format::field::CallClass;

use super::*;
use crate::model::{Communicator, MpiEvent};
use crate::names::construct::MpiFunction;
use crate::ranks::{CallEvents, Joints, Moment, RankMessages, Ranks};

/// The tracer's value for a peer or tag that a call does not have; also the values of peers that are not ranks.
const NONE: i32 = -4;
const ROOT: i32 = -3;
const PROC_NULL: i32 = -2;
const ANY: i32 = -1;

/// What the traces of other ranks show about a process's calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MpiKnowledge<'t> {
    /// The waits for other ranks; `None` if unknown.
    joints: Option<&'t Joints>,
    /// The messages and collectives of calls; `None` if unknown or not wanted.
    events: Option<(&'t CallEvents, &'t Ranks)>,
}

impl<'t> MpiKnowledge<'t> {
    /// The knowledge about the process with this number on the timeline.
    pub(crate) fn of(ranks: Option<&'t Ranks>, process: usize) -> MpiKnowledge<'t> {
        let Some(ranks) = ranks else { return MpiKnowledge::default() };
        let joints = ranks.process(process).map(RankMessages::joints);
        MpiKnowledge { joints, events: ranks.events(process).map(|events| (events, ranks)) }
    }

    /// The communicators that the process is a member of.
    pub(crate) fn communicators(&self) -> impl Iterator<Item = &'t Communicator> + use<'t> {
        // If ranks are missing, only the names of communicators are certain.
        let all = self.events.into_iter().filter(|(_, ranks)| ranks.are_complete());
        all.flat_map(|(events, ranks)| events.communicators().filter_map(|id| ranks.communicator(id)))
    }

    /// The name of the communicator with this handle at this time.
    fn name(&self, handle: u64, time: Ns) -> Option<&'t str> {
        let (events, ranks) = self.events?;
        Some(&ranks.communicator(events.communicator(handle, time)?)?.name)
    }

    /// The MPI events of the call that a thread started at this time.
    fn of_call(&self, thread: usize, begin: Ns, moment: Moment) -> impl Iterator<Item = MpiEvent> + use<'t> {
        self.events.into_iter().flat_map(move |(events, _)| events.of_call(thread, begin, moment))
    }
}

/// The current waits in MPI calls.
pub(super) struct MpiWaits<'t> {
    known: MpiKnowledge<'t>,
    /// The end times of the current waits, with their threads.
    ends: BinaryHeap<Reverse<(Ns, usize)>>,
    /// The earliest of these end times.
    pub(super) next: Ns,
}

impl Default for MpiWaits<'_> {
    fn default() -> Self {
        MpiWaits { known: MpiKnowledge::default(), ends: BinaryHeap::new(), next: Ns::MAX }
    }
}

impl<'t> MpiWaits<'t> {
    pub(super) fn of(known: MpiKnowledge<'t>) -> Self {
        MpiWaits { known, ..MpiWaits::default() }
    }
}

impl Interpreter<'_, '_> {
    #[inline(never)]
    pub(super) fn call_begin(&mut self, thread: usize, time: Ns, e: &CallBegin) {
        self.end_abandoned_call(thread, time);
        let function = MpiFunction::new(e.function, e.class);
        let function = function.with_known_waits(self.mpi_waits.known.joints.is_some());
        let scope = Scope::new(ompt::ompt_scope_begin, Construct::MpiCall(function)).at(e.codeptr_ra);
        let peer = match e.class {
            CallClass::receive | CallClass::nonblocking_receive | CallClass::probe => "source",
            CallClass::collective | CallClass::nonblocking_collective => "root",
            _ => "dest",
        };
        let known = self.mpi_waits.known;
        let name = known.name(e.object.0, time);
        let object = match e.class {
            CallClass::one_sided => "win",
            CallClass::file => "file",
            // Calls that create a request have a communicator, and calls that start one have a request.
            CallClass::start if name.is_none() => "request",
            _ => "comm",
        };
        let name = name.filter(|_| object == "comm");
        let collective = known.of_call(thread, time, Moment::Begin).find_map(|event| match event {
            MpiEvent::CollectiveBegin(part) | MpiEvent::CollectiveRequest(part, _) => Some(part.number.get()),
            _ => None,
        });
        let arguments = [
            (e.object.0 != 0).then(|| (object, name.map_or(hex(e.object.0), Value::Text))),
            (e.peer != NONE).then(|| (peer, rank(e.peer))),
            (e.tag != NONE).then(|| ("tag", rank(e.tag))),
            (e.datatype.0 != 0).then_some(("count", Value::Uint(e.count))),
            (e.datatype.0 != 0).then(|| ("datatype", hex(e.datatype.0))),
            collective.map(|number| ("collective", Value::Uint(number))),
        ];
        self.scope(thread, time, scope, &present(arguments));
        self.mpi_events(thread, time, (time, Moment::Begin));
        self.begin_mpi_wait(thread, time, function, e.codeptr_ra);
    }

    /// Emits the MPI events of the call that the thread started at `begin`, whose region is its innermost.
    fn mpi_events(&mut self, thread: usize, time: Ns, (begin, moment): (Ns, Moment)) {
        if !self.stage.wants_mpi() || self.threads[thread].is_full() {
            return;
        }
        for event in self.mpi_waits.known.of_call(thread, begin, moment) {
            let at = self.threads[thread].point(time);
            self.stage.item(&Item::Mpi(at, &event));
        }
    }

    /// Starts the thread's wait at the start of the call, if there is one.
    fn begin_mpi_wait(&mut self, thread: usize, time: Ns, function: MpiFunction, codeptr_ra: Address) {
        let Some(joint) = self.mpi_waits.known.joints.and_then(|joints| joints.of_call(thread, time)) else {
            return;
        };
        if self.threads[thread].is_full() {
            return;
        }
        let arguments = arguments![
            "for_rank": uint(joint.rank),
            "wait": Value::Text(joint.kind.name()),
        ];
        let until = joint.until;
        let scope = Scope::new(ompt::ompt_scope_begin, Construct::MpiWait(function)).at(codeptr_ra);
        self.scope(thread, time, scope, arguments);
        let waits = &mut self.mpi_waits;
        waits.ends.push(Reverse((until, thread)));
        waits.next = waits.next.min(until);
    }

    /// Ends the waits that are over at `time`.
    #[cold]
    pub(super) fn end_mpi_waits(&mut self, time: Ns) {
        while let Some(Reverse((until, thread))) = self.mpi_waits.ends.peek().copied()
            && until <= time
        {
            self.mpi_waits.ends.pop();
            self.end_mpi_wait(thread, until);
        }
        let next = self.mpi_waits.ends.peek();
        self.mpi_waits.next = next.map_or(Ns::MAX, |Reverse((until, _))| *until);
    }

    /// Ends the wait, if it is the thread's innermost region.
    fn end_mpi_wait(&mut self, thread: usize, time: Ns) {
        if let Some(innermost) = self.threads[thread].stack().last()
            && let construct @ Construct::MpiWait(_) = innermost.construct
        {
            self.threads[thread].close(self.stage, time, construct, 0, &[]);
        }
    }

    #[inline(never)]
    pub(super) fn call_end(&mut self, thread: usize, time: Ns, e: &CallEnd) {
        let name = self.mpi_waits.known.name(e.object.0, time);
        let made = match (e.class, name) {
            (CallClass::management, Some(name)) => ("newcomm", Value::Text(name)),
            (CallClass::management, None) => ("object", hex(e.object.0)),
            (CallClass::probe, _) => ("message", hex(e.object.0)),
            _ => ("request", hex(e.object.0)),
        };
        let arguments = [
            (e.object.0 != 0).then_some(made),
            (e.peer != NONE).then(|| ("from", rank(e.peer))),
            (e.peer != NONE && e.tag != NONE).then(|| ("with_tag", rank(e.tag))),
            (e.bytes != 0).then_some(("bytes", Value::Uint(e.bytes))),
            (e.result != 0).then(|| ("error", Value::Int(e.result.into()))),
        ];
        // A region inside the call may have kept the wait open.
        self.end_mpi_wait(thread, time);
        let function = MpiFunction::new(e.function, e.class);
        // The start of the call may be lost, or precede the recording. At a checkpoint, waits are unknown, so the
        // construct is compared without them.
        if let Some(innermost) = self.threads[thread].stack().last()
            && let construct @ Construct::MpiCall(of_begin) = innermost.construct
            && of_begin.with_known_waits(false) == function
        {
            let begin = innermost.begin();
            self.mpi_events(thread, time, (begin, Moment::End));
            self.threads[thread].close(self.stage, time, construct, 0, &present(arguments));
        }
    }

    /// Ends a call without an end, which an error handler left by `longjmp` or an exception. The library never reports
    /// a call inside another.
    fn end_abandoned_call(&mut self, thread: usize, time: Ns) {
        self.end_mpi_wait(thread, time);
        if let Some(innermost) = self.threads[thread].stack().last()
            && matches!(innermost.construct, Construct::MpiCall(_))
        {
            let construct = innermost.construct;
            self.threads[thread].close(self.stage, time, construct, 0, &[]);
        }
    }
}

/// A rank or tag, or the name of a special value.
fn rank(number: i32) -> Value<'static> {
    match number {
        ANY => Value::Text("any"),
        PROC_NULL => Value::Text("MPI_PROC_NULL"),
        ROOT => Value::Text("MPI_ROOT"),
        _ => Value::Int(number.into()),
    }
}

/// The arguments that are present.
fn present<'a, const N: usize>(arguments: [Option<(&'static str, Value<'a>)>; N]) -> Vec<Argument<'a>> {
    arguments.into_iter().flatten().map(|(name, value)| argument(name, value)).collect()
}
