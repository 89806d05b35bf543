//! Reports of a call to the tracer.

use core::ptr::null;

use omptrace_mpi_api::wrappers::Spelling;

use crate::call::{Call, Context, Errno};
use crate::clocks;
use crate::communicator_size;
use crate::completion;
use crate::direct::{self, Direct};
use crate::family::{Family, STATUS_WORDS, family};
use crate::frame::Frame;
use crate::initialization;
use crate::next;
use crate::object;
use crate::row::Kind;
use crate::thread::{self, Thread};
use crate::tracer::{self, ABANDONED, CallEnds, Tracer, kind, peer, role, tag, tracer};

/// Called by `omptrace_mpi_call`.
///
/// # Safety
/// `frame` is that of a call, and `slot` is the called symbol's.
pub(crate) unsafe extern "C-unwind" fn enter(frame: *mut Frame, slot: u32) -> u64 {
    let slot = slot as usize;
    // SAFETY: by the caller's promise, here and below.
    let pass_on = || unsafe { Call::of(frame, slot) }.go_on();
    let (Some(tracer), Some(family)) = (tracer(), family()) else {
        return pass_on();
    };
    let thread = thread::words();
    // SAFETY: the thread's own words.
    if unsafe { (*thread).inside } != 0 {
        // SAFETY: the frame is on this thread's stack.
        if unsafe { (*thread).is_within(frame) } {
            return pass_on();
        }
        end_abandoned(tracer, thread);
    }
    // SAFETY: as above.
    unsafe {
        (*thread).inside = frame as usize;
        (*thread).code = (*frame).return_address;
    }
    let (number, spelling) = (slot / 8, slot % 8);
    let direct = match spelling == Spelling::C as usize {
        // SAFETY: as above.
        true => unsafe { Direct::find(number, frame, family) },
        false => None,
    };
    let result = match direct {
        // SAFETY: as above.
        Some(row) => unsafe {
            direct::call((tracer, family, thread), (row, number as u32), frame, next::of_slot(slot))
        },
        // SAFETY: as above.
        None => unsafe { otherwise((tracer, family, thread), frame, slot) },
    };
    // SAFETY: as above.
    unsafe {
        (*thread).inside = 0;
        (*thread).open = 0;
    }
    result
}

/// The previous call was left by `longjmp` or an exception: its end is reported when the next call begins.
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

/// A call that is not [`Direct`]. The functions for it are never inlined: a thread's stack may be small, and rare calls
/// need more of it.
///
/// # Safety
/// See [`enter`].
#[inline(never)]
unsafe fn otherwise(
    (tracer, family, thread): (&'static Tracer, &'static Family, *mut Thread),
    frame: *mut Frame,
    slot: usize,
) -> u64 {
    let errno = Errno::of_thread();
    // SAFETY: by the caller's promise.
    let mut call = unsafe { Call::of(frame, slot) };
    let result = report(&mut Context { tracer, family, thread, errno }, &mut call);
    errno.restore();
    result
}

/// Reports a call.
fn report(context: &mut Context, call: &mut Call) -> u64 {
    match call.row.kind {
        Kind::Wait | Kind::Waitall | Kind::Waitany | Kind::Waitsome => completion::wait(context, call),
        Kind::Test | Kind::Testall | Kind::Testany | Kind::Testsome => completion::test(context, call),
        Kind::Start | Kind::Startall => completion::start(context, call),
        Kind::CommitType | Kind::NewType | Kind::FreeType => object::datatype(context, call),
        Kind::NameCommunicator | Kind::NameWindow => object::name(context, call),
        Kind::Pcontrol => {
            (context.tracer.pauses)(call.integer(0) == 0);
            context.go_on(call)
        }
        Kind::Attempt => attempt(context, call),
        Kind::Init | Kind::InitThread | Kind::SessionInit => {
            // If clocks are compared, other ranks wait for this rank.
            if !(context.tracer.starts)() && !(context.tracer.compares_clocks)() {
                // Nothing will be recorded: from now on, calls jump directly to the next definition.
                tracer::forget();
                return context.go_on(call);
            }
            usual(context, call)
        }
        _ => usual(context, call),
    }
}

/// A call of which the begin and the end are reported.
#[inline(never)]
fn usual(context: &mut Context, call: &mut Call) -> u64 {
    interpose::plant_race!();
    let object = call.object(context.family);
    let begins = call.begins(context.family, object);
    let is_recorded = context.begins(&begins);
    let matters = matches!(call.row.kind, Kind::FreeCommunicator | Kind::Finalize | Kind::Abort);
    if is_recorded || matters {
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

/// A probe that returns even if there is no message: it is reported if it found one.
#[inline(never)]
fn attempt(context: &mut Context, call: &mut Call) -> u64 {
    let object = call.object(context.family);
    let mut own_status = [0; STATUS_WORDS];
    call.replace_status(context.family, &mut own_status);
    let begin = context.test_begins();
    let result = context.go_on(call);
    let code = call.result_code(result);
    if code == 0 && !call.flag() {
        context.count_fruitless(call.number, begin);
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

/// Reports before the library is called.
#[inline(never)]
fn before(context: &Context, call: &Call, object: u64) {
    let freed = |of: u32| (context.tracer.freed)(of, object);
    match call.row.kind {
        // Reported before the call: another thread may get the same handle as soon as it is free.
        Kind::FreeCommunicator => {
            communicator_size::forget(object);
            freed(kind::COMMUNICATOR);
        }
        Kind::FreeWindow => freed(kind::WINDOW),
        Kind::CloseFile => freed(kind::FILE),
        Kind::FreeRequest => freed(kind::REQUEST),
        // SAFETY: by the promise for the call.
        Kind::Finalize => unsafe { clocks::end(context) },
        Kind::Abort => clocks::abort(),
        Kind::SendAndReceive => context.tracer.tell(role::RECEIVED, &call.received(context.family)),
        _ => {}
    }
}

/// Reports after the library has returned.
#[inline(never)]
fn after(context: &Context, call: &Call, object: u64, new: u64) {
    // SAFETY: by the caller's promise.
    unsafe {
        match call.row.kind {
            Kind::Init | Kind::InitThread => {
                initialization::describe(context, call);
                clocks::begin(context);
            }
            Kind::SessionInit => initialization::describe(context, call),
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
