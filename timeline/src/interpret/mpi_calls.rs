//! Calls of MPI: the time that a thread is in the library, whatever it does there.

use omptrace_trace_format::field::CallClass;

use super::*;
use crate::names::construct::MpiFunction;

/// How the tracer writes a peer or tag that a call does not have, and the peers that are no ranks.
const NONE: i32 = -4;
const ROOT: i32 = -3;
const PROC_NULL: i32 = -2;
const ANY: i32 = -1;

impl Interpreter<'_, '_> {
    #[inline(never)]
    pub(super) fn call_begin(&mut self, thread: usize, time: Ns, e: &CallBegin) {
        self.end_abandoned_call(thread, time);
        let construct = Construct::MpiCall(MpiFunction::new(e.function, e.class));
        let scope = Scope::new(ompt::ompt_scope_begin, construct).at(e.codeptr_ra);
        let peer = match e.class {
            CallClass::receive | CallClass::nonblocking_receive | CallClass::probe => "source",
            CallClass::collective | CallClass::nonblocking_collective => "root",
            _ => "dest",
        };
        let arguments = [
            (e.object.0 != 0).then(|| ("comm", hex(e.object.0))),
            (e.peer != NONE).then(|| (peer, rank(e.peer))),
            (e.tag != NONE).then(|| ("tag", rank(e.tag))),
            (e.datatype.0 != 0).then_some(("count", Value::Uint(e.count))),
            (e.datatype.0 != 0).then(|| ("datatype", hex(e.datatype.0))),
        ];
        self.scope(thread, time, scope, &present(arguments));
    }

    #[inline(never)]
    pub(super) fn call_end(&mut self, thread: usize, time: Ns, e: &CallEnd) {
        let construct = Construct::MpiCall(MpiFunction::new(e.function, e.class));
        let arguments = [
            (e.object.0 != 0).then(|| ("request", hex(e.object.0))),
            (e.peer != NONE).then(|| ("from", rank(e.peer))),
            (e.peer != NONE && e.tag != NONE).then(|| ("with_tag", rank(e.tag))),
            (e.bytes != 0).then_some(("bytes", Value::Uint(e.bytes))),
            (e.result != 0).then(|| ("error", Value::Int(e.result.into()))),
        ];
        let is_it = |frame: &Frame| frame.construct == construct;
        // The begin may be lost, or lie before the recording.
        if self.threads[thread].stack().last().is_some_and(is_it) {
            self.threads[thread].close(self.stage, time, construct, 0, &present(arguments));
        }
    }

    /// A call that an error handler left by `longjmp`, or an exception, has no end. The library reports no call within another.
    fn end_abandoned_call(&mut self, thread: usize, time: Ns) {
        if let Some(innermost) = self.threads[thread].stack().last()
            && matches!(innermost.construct, Construct::MpiCall(_))
        {
            let construct = innermost.construct;
            self.threads[thread].close(self.stage, time, construct, 0, &[]);
        }
    }
}

/// A rank or a tag, by its name where it is none.
fn rank(number: i32) -> Value<'static> {
    match number {
        ANY => Value::Text("any"),
        PROC_NULL => Value::Text("MPI_PROC_NULL"),
        ROOT => Value::Text("MPI_ROOT"),
        _ => Value::Int(number.into()),
    }
}

/// Those arguments that there are.
fn present<'a, const N: usize>(arguments: [Option<(&'static str, Value<'a>)>; N]) -> Vec<Argument<'a>> {
    arguments.into_iter().flatten().map(|(name, value)| argument(name, value)).collect()
}
