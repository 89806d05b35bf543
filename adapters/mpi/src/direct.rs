//! The fast path for most calls: C functions of which only the begin and the end are reported.
//!
//! The general path checks for each argument whether it exists, whether the program passes its address and whether it
//! is on the stack. For these functions the answers are known at compile time, so a [`Direct`] is a list of word
//! indices in a [`Frame`]. This code does not change `errno`, and the tracer preserves it.

use core::ffi::c_void;

use omptrace_mpi_api::Class;

use crate::family::{Family, STATUS_WORDS};
use crate::frame::{Frame, REGISTERS, invoke};
use crate::row::{Handle, Kind, NONE, ROWS, Row};
use crate::thread::Thread;
use crate::tracer::{CallBegins, CallEnds, Tracer, peer, tag};

/// A function and the positions of its arguments: word indices in the frame, or [`NONE`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direct {
    /// Whether the function takes this path at all.
    is_one: bool,
    class: u8,
    object: u8,
    peer: u8,
    tag: u8,
    count: u8,
    datatype: u8,
    /// A call whose buffer is in place takes the general path.
    in_place: u8,
    result: u8,
    status: u8,
    /// Number of arguments on the stack.
    on_stack: u8,
    /// Whether the status has the message's source: a status of a file operation does not.
    has_source: bool,
}

pub(crate) static DIRECT: [Direct; ROWS.len()] = {
    let mut all = [Direct::of(&ROWS[0]); ROWS.len()];
    let mut number = 0;
    while number < ROWS.len() {
        all[number] = Direct::of(&ROWS[number]);
        number += 1;
    }
    all
};

/// The word of the frame that holds the argument.
const fn word(argument: u8) -> u8 {
    /// Number of words in the frame between the registers and the arguments on the stack.
    const BETWEEN: u8 = (size_of::<Frame>() / size_of::<u64>() - REGISTERS) as u8;
    match argument {
        NONE => NONE,
        argument if argument < REGISTERS as u8 => argument,
        argument => argument + BETWEEN,
    }
}

impl Direct {
    const fn of(row: &Row) -> Direct {
        let is_plain = matches!(row.kind, Kind::Plain) && row.arguments > 0;
        // File handles are pointers, whatever the other handles are.
        let has_file = matches!(row.object_type, Handle::File) || matches!(row.result_type, Handle::File);
        let has_count = row.partitions == NONE && row.counts == NONE;
        let is_one_sided = matches!(row.class, Class::OneSided);
        Direct {
            is_one: is_plain && !has_file && has_count && !row.object_by_address && !is_one_sided,
            class: row.class as u8,
            object: word(row.object),
            peer: word(row.peer),
            tag: word(row.tag),
            count: word(row.count),
            datatype: word(row.datatype),
            in_place: word(row.in_place),
            result: word(row.result),
            status: word(row.status),
            on_stack: row.arguments.saturating_sub(REGISTERS as u8),
            has_source: !matches!(row.class, Class::File),
        }
    }

    /// The function with this number, if a call with these arguments takes this path.
    ///
    /// # Safety
    /// The frame is that of a call of the function.
    #[inline(always)]
    pub(crate) unsafe fn find(
        number: usize,
        frame: *const Frame,
        family: &Family,
    ) -> Option<&'static Direct> {
        let direct = DIRECT.get(number)?;
        if !direct.is_one {
            return None;
        }
        let is_in_place = direct.in_place != NONE
            // SAFETY: by the caller's promise.
            && unsafe { argument(frame, direct.in_place) } == family.in_place;
        (!is_in_place).then_some(direct)
    }
}

/// # Safety
/// The call has this argument.
#[inline(always)]
unsafe fn argument(frame: *const Frame, place: u8) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe { frame.cast::<u64>().add(place.into()).read() }
}

/// Makes a call and reports it.
///
/// # Safety
/// The frame is that of a call of this function, and `next` is the address of the next definition.
#[inline(always)]
pub(crate) unsafe fn call(
    (tracer, family, thread): (&'static Tracer, &'static Family, *mut Thread),
    (direct, number): (&'static Direct, u32),
    frame: *mut Frame,
    next: usize,
) -> u64 {
    // SAFETY: by the caller's promise.
    let read = |place: u8| unsafe { argument(frame, place) };
    let handle = |place: u8| if place == NONE { 0 } else { family.handle(read(place)) };
    // SAFETY: as above.
    let code = unsafe { (*frame).return_address } as *const c_void;
    let begins = CallBegins {
        function: number,
        class: direct.class.into(),
        object: handle(direct.object),
        peer: if direct.peer == NONE { peer::NONE } else { family.peer(read(direct.peer) as i32) },
        tag: if direct.tag == NONE { tag::NONE } else { family.tag(read(direct.tag) as i32) },
        count: if direct.count == NONE { 0 } else { (read(direct.count) as i32).max(0) as u64 },
        datatype: handle(direct.datatype),
        code,
    };
    // SAFETY: as above.
    let go_on = || unsafe { invoke(next, frame, direct.on_stack.into()) };
    if !(tracer.begins)(&begins) {
        return go_on();
    }
    // SAFETY: the thread's own words.
    unsafe {
        (*thread).open = number;
        (*thread).open_class = direct.class.into();
        if (*thread).fruitless != 0 {
            crate::call::tell_fruitless(tracer, thread);
        }
    }
    let mut ends = CallEnds {
        function: number,
        class: direct.class.into(),
        result: 0,
        peer: peer::NONE,
        tag: tag::NONE,
        object: 0,
        bytes: 0,
        code,
    };
    let result;
    if direct.status == NONE {
        result = go_on();
    } else {
        let mut own = [0_u64; STATUS_WORDS];
        let mut status = read(direct.status);
        if status == family.status_ignore {
            status = own.as_mut_ptr() as usize as u64;
            // SAFETY: by the calling conventions, arguments on the stack belong to the callee.
            unsafe { frame.cast::<u64>().add(direct.status.into()).write(status) };
        }
        result = go_on();
        if result as i32 == 0 {
            // SAFETY: the call has filled in the status.
            let received = unsafe { family.received(status) };
            ends.bytes = received.bytes;
            if direct.has_source {
                (ends.peer, ends.tag) = (received.peer, received.tag);
            }
        }
    }
    ends.result = result as i32;
    if direct.result != NONE && result as i32 == 0 {
        // SAFETY: a successful call has stored a handle there.
        ends.object = unsafe { family.handle_at(read(direct.result), 0) };
    }
    (tracer.ends)(&ends);
    result
}
