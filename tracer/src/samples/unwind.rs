//! Finds the frames of a stack, from registers and the stack's memory. Does not allocate, lock, or call the loader.
//!
//! Only certain frames are returned: if the next frame cannot be determined, the stack ends, with the reason.

use std::ops::Range;

use framehop::{Error, FrameAddress, Unwinder};
use omptrace_trace_format::field::StackEnd;

use crate::samples::loaded_code::LoadedCode;
use crate::samples::processor::{self, Cache, LEAF_HAS_NO_FRAME, Registers};
use crate::samples::unwind_rules::{Row, Rule};

/// A frame address that the runtime does not report.
pub(super) const NO_FRAME: i32 = -1;
/// A frame address that is in none of the frames found.
const NOT_FOUND: i32 = -2;

/// The result of unwinding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) frames: usize,
    pub(super) end: StackEnd,
    /// For each requested address: the number of frames inside of it, [`NO_FRAME`] or [`NOT_FOUND`].
    pub(super) inside: [i32; 2],
}

/// Stores the frames in `out`, which has room for at least one: first the program counter, then return addresses.
/// `stack` is the part of the thread's stack that may be read. `inside_of` are addresses on the stack, or 0.
pub(super) fn unwind(
    code: Option<&LoadedCode>,
    cache: &mut Cache,
    start: Registers,
    stack: Range<u64>,
    inside_of: [u64; 2],
    out: &mut [u64],
) -> Found {
    out[0] = start.pc;
    let mut found = Found {
        frames: 1,
        end: StackEnd::limit,
        inside: inside_of.map(|address| if address == 0 { NO_FRAME } else { NOT_FOUND }),
    };
    let mut registers = start;
    let mut read = |address: u64| {
        let is_there = address.is_multiple_of(8) && stack.contains(&address) && stack.end - address >= 8;
        // SAFETY: the caller promises that the thread's stack may be read there.
        is_there.then(|| unsafe { (address as *const u64).read() }).ok_or(())
    };
    let mut at = FrameAddress::from_instruction_pointer(start.pc);
    while found.frames < out.len() {
        let before = registers.stack_pointer();
        let is_first = found.frames == 1;
        let caller = match next(code, cache, at, is_first, &mut registers, &mut read) {
            Ok(caller) => caller,
            Err(end) => {
                found.end = end;
                return found;
            }
        };
        // Each frame must be above the one that it called; otherwise, a stack might never end.
        let may_be_same = LEAF_HAS_NO_FRAME && !at.is_return_address();
        if registers.stack_pointer() < before || (registers.stack_pointer() == before && !may_be_same) {
            found.end = StackEnd::unreadable;
            return found;
        }
        for (inside, address) in found.inside.iter_mut().zip(inside_of) {
            if *inside == NOT_FOUND && registers.stack_pointer() > address {
                *inside = found.frames as i32 - 1;
            }
        }
        out[found.frames] = caller.address();
        found.frames += 1;
        at = caller;
    }
    found
}

/// In a signal handler running on `stack`: finds the return address of handlers, if unwinding needs it.
pub(super) fn find_signal_return(
    code: Option<&LoadedCode>,
    cache: &mut Cache,
    stack: Range<u64>,
    frames: &mut [u64],
) {
    /// Maximum number of the handler's own frames.
    const MAX_OWN: usize = 16;
    let Some(code) = code.filter(|_| !processor::knows_signal_return()) else {
        return;
    };
    let here = Registers::here();
    let frames = &mut frames[..MAX_OWN];
    let found = unwind(Some(code), cache, here, stack, [0; 2], frames);
    let module_at = |pc: u64| code.module_at(pc).map(std::ptr::from_ref);
    let ours = module_at(here.pc);
    let mut callers = frames[1..found.frames].iter();
    if let Some(place) = callers.find(|caller| module_at(**caller - 1) != ours) {
        // SAFETY: it called the outermost function of this library, all of whose functions have unwind information.
        unsafe { processor::note_signal_return(*place) };
    }
}

/// Finds the caller of the frame with these registers, and changes them to the caller's.
fn next(
    code: Option<&LoadedCode>,
    cache: &mut Cache,
    at: FrameAddress,
    is_first: bool,
    registers: &mut Registers,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Result<FrameAddress, StackEnd> {
    if let Some(interrupted) = processor::interrupted_code(at.address(), registers, read) {
        return interrupted.map(FrameAddress::from_instruction_pointer).map_err(|()| StackEnd::unreadable);
    }
    let pc = at.address_for_lookup();
    let code = code.ok_or(StackEnd::no_unwind_information)?;
    let module = code.module_at(pc).ok_or(StackEnd::no_unwind_information)?;
    if !module.rules.cover(pc) {
        // SAFETY: the thread executes the code from here on, up to a branch, after which nothing is read; the code
        // before it in its page is mapped.
        let instruction = |address: u64| unsafe { (address as *const u32).read() };
        let is_aligned = !at.is_return_address() && pc.is_multiple_of(4);
        let caller = if is_aligned { processor::by_stub(pc, registers, instruction) } else { None };
        return caller.and_then(FrameAddress::from_return_address).ok_or(StackEnd::no_unwind_information);
    }
    let (return_address, is_signal) = match module.rules.row(pc) {
        Some(row) => (by_row(row, is_first, !at.is_return_address(), registers, read)?, row.is_signal),
        None => {
            let caller = match code.unwinder.unwind_frame(at, &mut registers.others, cache, read) {
                Err(Error::DidNotAdvance) if at.is_return_address() => {
                    let instruction = |address: u64| {
                        let is_code = module.rules.cover(address) && address.is_multiple_of(4);
                        // SAFETY: code of a loaded module, to which the thread returns.
                        is_code.then(|| unsafe { (address as *const u32).read() })
                    };
                    let caller = processor::by_epilogue(at.address(), registers, instruction, read);
                    Some(caller.ok_or(StackEnd::unreadable)?)
                }
                caller => caller.map_err(|_| StackEnd::unreadable)?,
            };
            (caller, false)
        }
    };
    let return_address = return_address.ok_or(StackEnd::outermost)?;
    if is_signal {
        return Ok(FrameAddress::from_instruction_pointer(return_address));
    }
    FrameAddress::from_return_address(return_address).ok_or(StackEnd::outermost)
}

/// The caller according to a row of rules; `None` if there is none.
fn by_row(
    row: &Row,
    is_first: bool,
    is_interrupted: bool,
    registers: &mut Registers,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Result<Option<u64>, StackEnd> {
    if row.return_address == Rule::Undefined {
        return Ok(None);
    }
    let before = *registers;
    let register = |base| before.get(base, is_first, is_interrupted).ok_or(StackEnd::no_unwind_information);
    let mut value = |rule, frame_address: u64| match rule {
        Rule::Sum(base, bytes) => Ok(register(base)?.wrapping_add_signed(bytes.into())),
        Rule::Memory(base, bytes) => {
            read(register(base)?.wrapping_add_signed(bytes.into())).map_err(|()| StackEnd::unreadable)
        }
        Rule::AtFrame(bytes) => {
            read(frame_address.wrapping_add_signed(bytes.into())).map_err(|()| StackEnd::unreadable)
        }
        Rule::Same => Ok(before.frame_pointer()),
        Rule::Undefined | Rule::Unknown => Err(StackEnd::no_unwind_information),
    };
    let frame_address = value(row.frame_address, 0)?;
    let return_address = value(row.return_address, frame_address)?;
    let frame_pointer = value(row.frame_pointer, frame_address)?;
    Ok(Some(registers.become_callers(frame_address, return_address, frame_pointer)))
}

#[cfg(test)]
mod tests {
    use std::ffi::{c_int, c_void};
    use std::hint::black_box;

    use super::*;
    use crate::os::loader;
    use crate::os::threads::lock::Mutex;
    use crate::os::time::timer;
    use crate::samples::loaded_code;

    unsafe extern "C" {
        fn _Unwind_Backtrace(
            visit: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
            frames: *mut c_void,
        ) -> c_int;
        fn _Unwind_GetIP(context: *mut c_void) -> u64;
    }

    extern "C" fn visit(context: *mut c_void, frames: *mut c_void) -> c_int {
        // SAFETY: the list below, and the context that the unwinder passes.
        unsafe { (*frames.cast::<Vec<u64>>()).push(_Unwind_GetIP(context)) };
        0
    }

    /// The frames found by libgcc and by us, and why ours end.
    type Both = (Vec<u64>, Vec<u64>, StackEnd);

    /// The frames of a call at this depth.
    #[inline(never)]
    fn both(depth: usize, room: usize, is_handler: bool) -> Both {
        if depth > 0 {
            return black_box(both(black_box(depth - 1), room, is_handler));
        }
        let mut theirs = Vec::new();
        // SAFETY: as libgcc specifies.
        unsafe { _Unwind_Backtrace(visit, (&raw mut theirs).cast()) };
        theirs.retain(|frame| *frame != 0);
        let (low, high) = timer::stack_of_this_thread().unwrap();
        let start = Registers::here();
        let mut frames = vec![0; room];
        let mut cache = Cache::new_in();
        let stack = start.stack_pointer()..high;
        let loaded = loaded_code::loaded();
        if is_handler {
            find_signal_return(loaded, &mut cache, low..high, &mut frames);
        }
        let found = unwind(loaded, &mut cache, start, stack, [0; 2], &mut frames);
        frames.truncate(found.frames);
        (theirs, frames, found.end)
    }

    #[test]
    fn frames_are_those_of_libgcc() {
        loader::prepare();
        loaded_code::refresh();
        for depth in [0, 1, 100] {
            let (theirs, ours, end) = both(depth, 1000, false);
            assert_eq!(end, StackEnd::outermost);
            // The innermost frames are two places in this function.
            let callers = theirs.iter().rev().zip(ours[1..].iter().rev());
            assert!(callers.clone().all(|(theirs, ours)| theirs == ours));
            assert!(callers.count() > depth + 2);
        }
        let (_, ours, end) = both(100, 50, false);
        assert_eq!((ours.len(), end), (50, StackEnd::limit));
    }

    #[test]
    fn a_stack_goes_on_behind_a_signal_handler() {
        static FOUND: Mutex<Option<Both>> = Mutex::new(None);
        extern "C" fn handle(_: c_int) {
            *FOUND.lock() = Some(both(0, 1000, true));
        }
        loader::prepare();
        loaded_code::refresh();
        let handler = handle as extern "C" fn(c_int) as libc::sighandler_t;
        // SAFETY: the handler of a signal that is only sent by `raise` below.
        unsafe {
            libc::signal(libc::SIGWINCH, handler);
            libc::raise(libc::SIGWINCH);
        }
        let (theirs, ours, end) = FOUND.lock().take().unwrap();
        assert_eq!(end, StackEnd::outermost);
        // The frames of the handler, of the C library's functions that return from and send the signal, and of this
        // test.
        let callers = theirs.iter().rev().zip(ours[1..].iter().rev());
        assert!(callers.clone().all(|(theirs, ours)| theirs == ours));
        assert!(callers.count() > 4);
    }

    #[test]
    fn code_that_is_not_known_ends_a_stack() {
        loader::prepare();
        loaded_code::refresh();
        let mut frames = [0; 8];
        let start = Registers { pc: 0x1234, ..Registers::here() };
        let stack = start.stack_pointer()..start.stack_pointer() + 64;
        let mut cache = Cache::new_in();
        let loaded = loaded_code::loaded();
        let found = unwind(loaded, &mut cache, start, stack, [0, 1], &mut frames);
        assert_eq!((found.frames, frames[0]), (1, 0x1234));
        assert_eq!(found.end, StackEnd::no_unwind_information);
        assert_eq!(found.inside, [NO_FRAME, NOT_FOUND]);
    }
}
