//! An MPI call and its arguments.

use core::ffi::c_void;

use omptrace_mpi_api::Class;
use omptrace_mpi_api::wrappers::Spelling;

use crate::communicator_size;
use crate::family::{Family, STATUS_WORDS};
use crate::fortran_handles;
use crate::frame::{Frame, REGISTERS, invoke};
use crate::next;
use crate::row::{Handle, Kind, NONE, ROWS, Row};
use crate::thread::Thread;
use crate::tracer::{CallBegins, CallEnds, Tracer, peer, role, tag};

/// An MPI call. Its arguments are where its caller and `omptrace_mpi_call` have stored them.
///
/// The creator of a value promises that they are a program's arguments for the function ([`Call::of`]). All code that
/// reads them relies on this, as the MPI library does: addresses refer to as many variables as the function takes, and
/// results are read only after the call has succeeded.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) row: &'static Row,
    pub(crate) number: u32,
    spelling: usize,
    frame: *mut Frame,
    /// Number of argument words.
    length: usize,
    pub(crate) code: *const c_void,
    next: usize,
}

/// The tracer to which a call is reported, the MPI library's constants, and the calling thread.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) tracer: &'static Tracer,
    pub(crate) family: &'static Family,
    pub(crate) thread: *mut Thread,
    pub(crate) errno: Errno,
}

/// The thread's `errno`, which is preserved so that MPI and the program find it as without the tracer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errno {
    place: *mut i32,
    value: i32,
}

impl Errno {
    pub(crate) fn of_thread() -> Errno {
        // SAFETY: the thread's own variable.
        unsafe {
            let place = libc::__errno_location();
            Errno { place, value: *place }
        }
    }

    fn keep(&mut self) {
        // SAFETY: the thread's own variable.
        self.value = unsafe { *self.place };
    }

    pub(crate) fn restore(self) {
        // SAFETY: the thread's own variable.
        unsafe { *self.place = self.value }
    }
}

/// The duration of one in so many unsuccessful tests is measured, because a test takes hardly longer than reading a clock. A
/// prime number, because libraries do more in each 2nd, 4th, ..., 256th test.
const TESTS_PER_MEASUREMENT: u64 = 7;

impl Context {
    /// Makes the call in the next definition.
    pub(crate) fn go_on(&mut self, call: &Call) -> u64 {
        self.errno.restore();
        let result = call.go_on();
        self.errno.keep();
        result
    }

    /// Reports the begin of the call; false if the call is not recorded.
    pub(crate) fn begins(&self, begins: &CallBegins) -> bool {
        let is_recorded = (self.tracer.begins)(begins);
        if is_recorded {
            // SAFETY: the thread's own words.
            unsafe {
                (*self.thread).open = begins.function;
                (*self.thread).open_class = begins.class;
                if (*self.thread).fruitless != 0 {
                    tell_fruitless(self.tracer, self.thread);
                }
            }
        }
        is_recorded
    }

    /// The time before a test, if its duration is measured: the first of each [`TESTS_PER_MEASUREMENT`] tests. The time
    /// that reading the clock takes is added, so that it does not count.
    pub(crate) fn test_begins(&self) -> Option<u64> {
        // SAFETY: the thread's own words.
        let tests = unsafe { (*self.thread).fruitless };
        tests.is_multiple_of(TESTS_PER_MEASUREMENT).then(|| {
            let (first, second) = ((self.tracer.raw_clock)(), (self.tracer.raw_clock)());
            second.saturating_add(second.saturating_sub(first))
        })
    }

    /// Counts a test that completed nothing. `begin`: see [`Context::test_begins`].
    pub(crate) fn count_fruitless(&self, function: u32, begin: Option<u64>) {
        let ns = begin.map(|begin| (self.tracer.raw_clock)().saturating_sub(begin));
        // SAFETY: the thread's own words.
        unsafe {
            (*self.thread).fruitless += 1;
            (*self.thread).fruitless_function = u64::from(function);
            if let Some(ns) = ns {
                (*self.thread).measured += 1;
                (*self.thread).measured_ns = (*self.thread).measured_ns.saturating_add(ns);
            }
        }
    }
}

/// Reports the tests that completed nothing, before a call that is recorded.
#[cold]
#[inline(never)]
pub(crate) fn tell_fruitless(tracer: &Tracer, thread: *mut Thread) {
    // SAFETY: the thread's own words.
    let numbers = unsafe {
        [(*thread).fruitless, (*thread).fruitless_function, (*thread).measured, (*thread).measured_ns]
    };
    // SAFETY: as above.
    unsafe { ((*thread).fruitless, (*thread).measured, (*thread).measured_ns) = (0, 0, 0) };
    tracer.tell(role::FRUITLESS, &numbers);
}

impl Call {
    /// # Safety
    /// `frame` is the frame of a call of this slot's symbol, with the arguments that it takes, and exists until the
    /// call returns.
    #[inline(always)]
    pub(crate) unsafe fn of(frame: *mut Frame, slot: usize) -> Call {
        let number = slot / 8;
        let spelling = slot % 8;
        let row = ROWS.get(number).unwrap_or(&ROWS[0]);
        let length = match spelling >= Spelling::Underscore as usize {
            // Fortran also passes the address of the error code.
            true => row.arguments - row.c_only + 1 + row.strings,
            // The number of further arguments is unknown; those in registers suffice.
            false if row.kind == Kind::Pcontrol => REGISTERS as u8,
            false => row.arguments,
        };
        // SAFETY: by the promise for the call.
        let code = unsafe { (*frame).return_address } as *const c_void;
        let next = next::of_slot(slot);
        Call { row, number: number as u32, spelling, frame, length: length.into(), code, next }
    }

    /// Makes the call in the next definition.
    #[inline(always)]
    pub(crate) fn go_on(&self) -> u64 {
        // SAFETY: by the promise for the call.
        unsafe { invoke(self.next, self.frame, self.length.saturating_sub(REGISTERS)) }
    }

    #[inline(always)]
    pub(crate) fn is_fortran(&self) -> bool {
        self.spelling >= Spelling::Underscore as usize
    }

    fn is_large(&self) -> bool {
        self.spelling == Spelling::LargeCount as usize
    }

    /// Address of the argument; `None` if the call has no such argument.
    #[inline(always)]
    fn place(&self, argument: u8) -> Option<*mut u64> {
        let c_only = if self.is_fortran() { self.row.c_only } else { 0 };
        self.word(usize::from(argument.wrapping_sub(c_only)))
    }

    /// Address of an argument word.
    #[inline(always)]
    fn word(&self, place: usize) -> Option<*mut u64> {
        // Number of words in the frame between the registers and the arguments on the stack.
        const BETWEEN: usize = size_of::<Frame>() / size_of::<u64>() - REGISTERS;
        let offset = if place < REGISTERS { place } else { place + BETWEEN };
        // SAFETY: the call has this word.
        (place < self.length).then(|| unsafe { self.frame.cast::<u64>().add(offset) })
    }

    /// An argument that is an address in C, too.
    #[inline(always)]
    pub(crate) fn address(&self, argument: u8) -> u64 {
        // SAFETY: an argument of the call.
        self.place(argument).map_or(0, |place| unsafe { place.read() })
    }

    /// Replaces an argument. By the calling conventions, arguments on the stack belong to the callee.
    pub(crate) fn set_address(&mut self, argument: u8, address: u64) {
        if let Some(place) = self.place(argument) {
            // SAFETY: an argument of the call.
            unsafe { place.write(address) };
        }
    }

    /// The length that Fortran passes for its first string.
    pub(crate) fn text_length(&self) -> usize {
        let place = self.word(self.length - usize::from(self.row.strings));
        // SAFETY: a word of the call.
        place.map_or(0, |place| unsafe { place.read() } as usize)
    }

    /// An argument that is an `int`.
    #[inline(always)]
    pub(crate) fn integer(&self, argument: u8) -> i32 {
        let word = self.address(argument);
        match self.is_fortran() {
            // SAFETY: Fortran passes the addresses of variables.
            true if word != 0 => unsafe { (word as *const i32).read() },
            _ => word as i32,
        }
    }

    /// An argument that is a 64-bit integer, such as an `MPI_Aint`.
    pub(crate) fn long(&self, argument: u8) -> u64 {
        let word = self.address(argument);
        match self.is_fortran() {
            // SAFETY: Fortran passes the addresses of variables.
            true if word != 0 => unsafe { (word as *const u64).read() },
            _ => word,
        }
    }

    /// A displacement unit: an `int`, except in the variants for large counts.
    pub(crate) fn unit(&self, argument: u8) -> u64 {
        if self.is_large() { self.address(argument) } else { self.integer(argument) as u64 }
    }

    /// A number of elements; 0 if the call has no such argument.
    #[inline(always)]
    fn count(&self, argument: u8) -> u64 {
        match argument {
            NONE => 0,
            _ if self.is_large() => self.address(argument),
            _ => u64::from(self.integer(argument).max(0).cast_unsigned()),
        }
    }

    fn count_of_parts(&self) -> u64 {
        u64::from(self.integer(self.row.partitions).max(0).cast_unsigned())
    }

    /// The message that is received along with a sent one: source, tag, number of elements, datatype.
    pub(crate) fn received(&self, family: &Family) -> [u64; 4] {
        let row = self.row;
        let (source, tag) =
            (family.peer(self.integer(row.other_peer)), family.tag(self.integer(row.other_tag)));
        [
            i64::from(source) as u64,
            i64::from(tag) as u64,
            self.count(row.other_count),
            self.handle(family, row.other_datatype, Handle::Datatype),
        ]
    }

    /// The sum of an array that has a number of elements for each rank.
    fn sum(&self, argument: u8, ranks: usize) -> u64 {
        let array = self.address(argument);
        if array == 0 {
            return 0;
        }
        let read = |place: usize| {
            // SAFETY: by the promise for the call, the array has an element for each rank.
            unsafe {
                match self.is_large() {
                    true => (array as *const i64).add(place).read(),
                    false => i64::from((array as *const i32).add(place).read()),
                }
            }
        };
        (0..ranks).map(|place| read(place).max(0).cast_unsigned()).fold(0, u64::wrapping_add)
    }

    /// A handle that C passes by value.
    #[inline(always)]
    pub(crate) fn handle(&self, family: &Family, argument: u8, of: Handle) -> u64 {
        match (argument, self.is_fortran()) {
            (NONE, _) => 0,
            (_, true) => fortran_handles::handle(family, of, self.integer(argument)),
            (_, false) if of == Handle::File => self.address(argument),
            (_, false) => family.handle(self.address(argument)),
        }
    }

    /// The handle at an address, or a further one in an array.
    #[inline(always)]
    pub(crate) fn handle_at(&self, family: &Family, argument: u8, of: Handle, place: usize) -> u64 {
        let address = self.address(argument);
        if argument == NONE || address == 0 {
            return 0;
        }
        // SAFETY: by the promise for the call.
        unsafe {
            match (self.is_fortran(), of) {
                (true, _) => fortran_handles::handle(family, of, (address as *const i32).add(place).read()),
                (false, Handle::File) => (address as *const u64).add(place).read(),
                (false, _) => family.handle_at(address, place),
            }
        }
    }

    /// The object on which the call operates.
    #[inline(always)]
    pub(crate) fn object(&self, family: &Family) -> u64 {
        let row = self.row;
        match row.object_by_address {
            true => self.handle_at(family, row.object, row.object_type, 0),
            false => self.handle(family, row.object, row.object_type),
        }
    }

    /// The object that the call has created.
    #[inline(always)]
    pub(crate) fn result(&self, family: &Family) -> u64 {
        self.handle_at(family, self.row.result, self.row.result_type, 0)
    }

    /// The report of the call's begin.
    #[inline(always)]
    pub(crate) fn begins(&self, family: &Family, object: u64) -> CallBegins {
        let row = self.row;
        let (mut count, mut datatype, mut counts) = (row.count, row.datatype, row.counts);
        if row.in_place != NONE && self.is_in_place(family, row.in_place) {
            counts = row.other_counts;
            if row.other_datatype != NONE {
                (count, datatype) = (row.other_count, row.other_datatype);
            }
        }
        let number = match (count, counts) {
            (NONE, NONE) => u64::from(datatype != NONE && row.class == Class::OneSided),
            (NONE, counts) => self.sum(counts, communicator_size::of(object)),
            (count, _) if row.partitions != NONE => self.count(count).wrapping_mul(self.count_of_parts()),
            (count, _) => self.count(count),
        };
        CallBegins {
            function: self.number,
            class: row.class as u32,
            object,
            peer: if row.peer == NONE { peer::NONE } else { family.peer(self.integer(row.peer)) },
            tag: if row.tag == NONE { tag::NONE } else { family.tag(self.integer(row.tag)) },
            count: number,
            datatype: self.handle(family, datatype, Handle::Datatype),
            code: self.code,
        }
    }

    fn is_in_place(&self, family: &Family, buffer: u8) -> bool {
        let buffer = self.address(buffer);
        match self.is_fortran() {
            true => family.fortran.is_in_place(buffer),
            false => buffer == family.in_place,
        }
    }

    /// The report of the call's end, after it has returned `code`.
    #[inline(always)]
    pub(crate) fn ends(&self, family: &Family, code: i32, object: u64) -> CallEnds {
        let mut ends = CallEnds {
            function: self.number,
            class: self.row.class as u32,
            result: code,
            peer: peer::NONE,
            tag: tag::NONE,
            object,
            bytes: 0,
            code: self.code,
        };
        if self.row.status != NONE && code == 0 {
            let status = self.address(self.row.status);
            // The status may be ignored if the call was not recorded from its begin.
            if !self.is_ignored(family, status) {
                // SAFETY: the call has filled in the status.
                let received = unsafe { family.received(status) };
                ends.bytes = received.bytes;
                if self.row.class != Class::File {
                    (ends.peer, ends.tag) = (received.peer, received.tag);
                }
            }
        }
        ends
    }

    /// Whether a status argument means that no status is wanted.
    #[inline(always)]
    pub(crate) fn is_ignored(&self, family: &Family, status: u64) -> bool {
        match self.is_fortran() {
            true => family.fortran.is_ignored(status),
            false => status == family.status_ignore,
        }
    }

    /// Passes a status of our own to the call if the program wants none.
    pub(crate) fn replace_status(&mut self, family: &Family, own: &mut [u64; STATUS_WORDS]) {
        if self.row.status != NONE && self.is_ignored(family, self.address(self.row.status)) {
            self.set_address(self.row.status, own.as_mut_ptr() as usize as u64);
        }
    }

    /// Whether the call's flag says that it found what it looked for.
    pub(crate) fn flag(&self) -> bool {
        let flag = self.address(self.row.flag) as *const i32;
        // SAFETY: the call has filled in the flag.
        self.row.flag == NONE || unsafe { flag.read() } != 0
    }

    /// The error code of the call: the C result, or the value that the call has stored for Fortran.
    #[inline(always)]
    pub(crate) fn result_code(&self, result: u64) -> i32 {
        if !self.is_fortran() {
            return result as i32;
        }
        let Some(place) = self.word(self.length - 1 - usize::from(self.row.strings)) else { return 0 };
        // SAFETY: null if the argument is omitted, as `mpi_f08` allows; otherwise the program's variable.
        unsafe { (place.read() as *const i32).as_ref() }.copied().unwrap_or(0)
    }
}
