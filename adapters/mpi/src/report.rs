//! What the tracer is told of a call.

use core::ptr::null;

use crate::call::{Call, Context, Errno};
use crate::communicator_size;
use crate::completion;
use crate::family::{STATUS_WORDS, family};
use crate::frame::Frame;
use crate::initialization;
use crate::object;
use crate::row::Kind;
use crate::thread::{self, Thread};
use crate::tracer::{ABANDONED, CallEnds, Tracer, kind, peer, role, tag, tracer};

/// Goes on from `omptrace_mpi_call`.
///
/// # Safety
/// The frame is that of a call, and the slot is the called symbol's.
pub(crate) unsafe extern "C-unwind" fn enter(frame: *mut Frame, slot: u32) -> u64 {
    let slot = slot as usize;
    // SAFETY: by the caller's promise.
    let call = unsafe { Call::of(frame, slot) };
    let Some(tracer) = tracer() else {
        return call.go_on();
    };
    let thread = thread::words();
    let stack_pointer = frame as usize;
    // SAFETY: the thread's own words.
    let inside = unsafe { (*thread).inside };
    if inside > stack_pointer {
        return call.go_on();
    }
    if inside != 0 {
        end_abandoned(tracer, thread);
    }
    // SAFETY: the thread's own words.
    unsafe { (*thread).inside = stack_pointer };
    let result = outermost(call, tracer, thread);
    // SAFETY: as above.
    unsafe {
        (*thread).inside = 0;
        (*thread).open = 0;
    }
    result
}

/// The call before was left by `longjmp` or an exception: it ends, as far as that is known, when the next one begins.
#[cold]
fn end_abandoned(tracer: &'static Tracer, thread: *mut Thread) {
    // SAFETY: the thread's own words.
    let (function, class) = unsafe { ((*thread).open, (*thread).open_class) };
    if function != 0 {
        let ends = CallEnds {
            function,
            class,
            result: ABANDONED,
            peer: peer::NONE,
            tag: tag::NONE,
            object: 0,
            bytes: 0,
            code: null(),
        };
        let errno = Errno::of_thread();
        (tracer.ends)(&ends);
        errno.restore();
    }
}

/// A call that the program has made.
fn outermost(mut call: Call, tracer: &'static Tracer, thread: *mut Thread) -> u64 {
    let errno = Errno::of_thread();
    let result = match family() {
        // SAFETY: the program's own call.
        Some(family) => report(&mut Context { tracer, family, thread, errno }, &mut call),
        None => call.go_on(),
    };
    errno.restore();
    result
}

/// Reports a call.
fn report(context: &mut Context, call: &mut Call) -> u64 {
    match call.row.kind {
        Kind::Wait | Kind::Waitall | Kind::Waitany | Kind::Waitsome => completion::wait(context, call),
        Kind::Test | Kind::Testall | Kind::Testany | Kind::Testsome => completion::test(context, call),
        Kind::CommitType | Kind::NewType | Kind::FreeType => object::datatype(context, call),
        Kind::NameCommunicator | Kind::NameWindow => object::name(context, call),
        Kind::Pcontrol => {
            (context.tracer.pauses)(call.integer(0) == 0);
            context.go_on(call)
        }
        Kind::Attempt => attempt(context, call),
        Kind::Init | Kind::InitThread | Kind::SessionInit => {
            (context.tracer.starts)();
            usual(context, call)
        }
        _ => usual(context, call),
    }
}

/// A call that is reported when it begins and when it ends.
fn usual(context: &mut Context, call: &mut Call) -> u64 {
    let object = call.object(context.family);
    let begins = call.begins(context.family, object);
    let is_recorded = context.begins(&begins);
    if is_recorded || call.row.kind == Kind::FreeCommunicator {
        before(context, call, object);
    }
    let mut own_status = [0; STATUS_WORDS];
    if is_recorded {
        call.replace_status(context.family, &mut own_status);
    }
    let result = context.go_on(call);
    let code = call.result_code(result);
    let new = match code {
        0 => call.result(context.family),
        _ => 0,
    };
    if code == 0 {
        after(context, call, object, new);
    }
    if is_recorded {
        let ends = call.ends(context.family, code, new);
        (context.tracer.ends)(&ends);
    }
    result
}

/// A probe that need not find a message: it is reported where it has found one.
fn attempt(context: &mut Context, call: &mut Call) -> u64 {
    let object = call.object(context.family);
    let mut own_status = [0; STATUS_WORDS];
    call.replace_status(context.family, &mut own_status);
    let result = context.go_on(call);
    let code = call.result_code(result);
    if code == 0 && !call.flag() {
        context.count_fruitless(call.number);
        return result;
    }
    let begins = call.begins(context.family, object);
    if context.begins(&begins) {
        let new = if code == 0 { call.result(context.family) } else { 0 };
        let ends = call.ends(context.family, code, new);
        (context.tracer.ends)(&ends);
    }
    result
}

/// What is told before the library does it.
fn before(context: &Context, call: &Call, object: u64) {
    let freed = |of: u32| (context.tracer.freed)(of, object);
    match call.row.kind {
        // Before: another thread may get the same handle as soon as it is free.
        Kind::FreeCommunicator => {
            communicator_size::forget(object);
            freed(kind::COMMUNICATOR);
        }
        Kind::FreeWindow => freed(kind::WINDOW),
        Kind::CloseFile => freed(kind::FILE),
        Kind::FreeRequest => freed(kind::REQUEST),
        Kind::Start => context.tracer.tell(role::STARTED, &[object]),
        Kind::SendAndReceive => context.tracer.tell(role::RECEIVED, &call.received(context.family)),
        Kind::Startall => completion::started(context, call),
        _ => {}
    }
}

/// What is told when the library has done it.
fn after(context: &Context, call: &Call, object: u64, new: u64) {
    // SAFETY: by the caller's promise.
    unsafe {
        match call.row.kind {
            Kind::Init | Kind::InitThread | Kind::SessionInit => initialization::describe(context, call),
            Kind::NewCommunicator => object::new_communicator(context, new, object),
            Kind::NewCommunicatorLater => object::copied_communicator(context, new, object),
            Kind::NewWindow => object::new_window(context, new, [object, call.long(1), call.unit(2)]),
            Kind::NewAllocatedWindow => {
                object::new_window(context, new, [object, call.long(0), call.unit(1)])
            }
            Kind::NewDynamicWindow => object::new_window(context, new, [object, 0, 1]),
            Kind::OpenFile => object::new_file(context, call, new, object),
            _ => {}
        }
    }
}
