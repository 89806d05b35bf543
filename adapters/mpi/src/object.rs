//! The objects that calls create: communicators with their members, windows, files, datatypes with their sizes.
//!
//! All queries to the library are local: the members of a communicator are known on each of them without a message.

use core::ffi::{CStr, c_char};
use core::ptr::null;
use core::sync::atomic::{AtomicBool, Ordering};
use std::alloc::{GlobalAlloc, Layout};

use interpose::memory::KernelMemory;

use crate::call::{Call, Context};
use crate::communicator_size;
use crate::next::{Pmpi, to};
use crate::row::{Handle, Kind};
use crate::tracer::kind;

static COMM_SIZE: Pmpi = Pmpi::of(c"PMPI_Comm_size");
static COMM_RANK: Pmpi = Pmpi::of(c"PMPI_Comm_rank");
static COMM_REMOTE_SIZE: Pmpi = Pmpi::of(c"PMPI_Comm_remote_size");
static COMM_TEST_INTER: Pmpi = Pmpi::of(c"PMPI_Comm_test_inter");
static COMM_GROUP: Pmpi = Pmpi::of(c"PMPI_Comm_group");
static COMM_REMOTE_GROUP: Pmpi = Pmpi::of(c"PMPI_Comm_remote_group");
static GROUP_TRANSLATE_RANKS: Pmpi = Pmpi::of(c"PMPI_Group_translate_ranks");
static GROUP_FREE: Pmpi = Pmpi::of(c"PMPI_Group_free");
static TYPE_SIZE_X: Pmpi = Pmpi::of(c"PMPI_Type_size_x");
static TYPE_SIZE: Pmpi = Pmpi::of(c"PMPI_Type_size");

/// Whether `MPI_COMM_WORLD` exists: a program may use sessions only.
pub(crate) static HAS_WORLD: AtomicBool = AtomicBool::new(false);

/// Size of a communicator up to which every rank reports the members; for larger ones, only rank 0 of the communicator
/// does.
const MOST: usize = 256;

/// Queries a value from the library.
///
/// # Safety
/// See the function, which takes a handle and the address of an `int`.
pub(crate) unsafe fn ask(function: &Pmpi, handle: u64) -> Option<i32> {
    let mut answer = 0_i32;
    // SAFETY: by the caller's promise.
    unsafe { function.succeeds([handle, to(&mut answer), 0, 0, 0]) }.then_some(answer)
}

/// The calling process's rank in a communicator, and its size.
///
/// # Safety
/// `communicator` is one.
pub(crate) unsafe fn rank_and_size(communicator: u64) -> Option<(i32, i32)> {
    // SAFETY: by the caller's promise.
    unsafe { Some((ask(&COMM_RANK, communicator)?, ask(&COMM_SIZE, communicator)?)) }
}

/// Reports a new communicator, or that this process is not a member.
///
/// # Safety
/// `communicator` is a handle that a successful call has returned, or a constant.
pub(crate) unsafe fn new_communicator(context: &Context, communicator: u64, parent: u64) {
    // SAFETY: by the caller's promise.
    unsafe { define(context, communicator, parent, communicator) }
}

/// Reports a communicator that may not be used yet, with the members of another one.
///
/// # Safety
/// See [`new_communicator`]; `like` is a communicator.
pub(crate) unsafe fn copied_communicator(context: &Context, communicator: u64, like: u64) {
    // SAFETY: by the caller's promise.
    unsafe { define(context, communicator, like, like) }
}

/// # Safety
/// As above; `asked` is a communicator with the same members.
#[inline(never)]
unsafe fn define(context: &Context, communicator: u64, parent: u64, asked: u64) {
    let defined = |handle: u64, facts: &[u64]| {
        (context.tracer.defined)(kind::COMMUNICATOR, handle, parent, facts.as_ptr(), facts.len(), null());
    };
    if communicator == context.family.comm_null || communicator == 0 {
        // This process is not a member. The ranks that are members count the call, so this rank must count it, too.
        return defined(0, &[0, 0, 0]);
    }
    // SAFETY: by the caller's promise.
    let Some((rank, size)) = (unsafe { rank_and_size(asked) }) else { return };
    // SAFETY: as above.
    let is_inter = unsafe { ask(&COMM_TEST_INTER, asked) }.unwrap_or(0) != 0;
    // SAFETY: as above.
    let remote = if is_inter { unsafe { ask(&COMM_REMOTE_SIZE, asked) }.unwrap_or(0) } else { 0 };
    let numbers = [size, rank, remote];
    communicator_size::note(communicator, if is_inter { remote } else { size });
    let members = (size.max(0) + remote.max(0)) as usize;
    let are_told = HAS_WORLD.load(Ordering::Relaxed) && (members <= MOST || rank == 0);
    // The numbers and members, then two arrays of `int`.
    let layout = Layout::array::<u64>(numbers.len() + 2 * members).ok();
    let Some(layout) = layout.filter(|_| are_told) else {
        return defined(communicator, &numbers.map(|number| number as u64));
    };
    // SAFETY: the layout's size is not 0.
    let memory = unsafe { KernelMemory.alloc_zeroed(layout) }.cast::<u64>();
    if memory.is_null() {
        return defined(communicator, &numbers.map(|number| number as u64));
    }
    // SAFETY: memory of this number of words, which are zero.
    let words = unsafe { core::slice::from_raw_parts_mut(memory, numbers.len() + 2 * members) };
    let (facts, scratch) = words.split_at_mut(numbers.len() + members);
    for (fact, number) in facts.iter_mut().zip(numbers) {
        *fact = number as u64;
    }
    let (own, other) = facts[numbers.len()..].split_at_mut(size.max(0) as usize);
    // SAFETY: as above.
    let are_known = unsafe {
        world_ranks(context, (&COMM_GROUP, asked), own, scratch)
            && (!is_inter || world_ranks(context, (&COMM_REMOTE_GROUP, asked), other, scratch))
    };
    let told = if are_known { facts.len() } else { numbers.len() };
    defined(communicator, &facts[..told]);
    // SAFETY: allocated above.
    unsafe { KernelMemory.dealloc(memory.cast(), layout) };
}

/// The members of a communicator's group as ranks in the world. `scratch` has at least as many words.
///
/// # Safety
/// `communicator` is one and has this group.
unsafe fn world_ranks(
    context: &Context,
    (group_of, communicator): (&Pmpi, u64),
    members: &mut [u64],
    scratch: &mut [u64],
) -> bool {
    let count = members.len();
    let (mut group, mut world) = (0_u64, 0_u64);
    let ranks = scratch.as_mut_ptr().cast::<i32>();
    // SAFETY: two arrays of `int` in as many words; the handles are those that the library returns.
    unsafe {
        let translated = ranks.add(count);
        for rank in 0..count {
            ranks.add(rank).write(rank as i32);
        }
        let places = [ranks, translated].map(|array| array as usize as u64);
        let has_groups = group_of.succeeds([communicator, to(&mut group), 0, 0, 0])
            && COMM_GROUP.succeeds([context.family.world, to(&mut world), 0, 0, 0]);
        let is_done =
            has_groups && GROUP_TRANSLATE_RANKS.succeeds([group, count as u64, places[0], world, places[1]]);
        for group in [&mut group, &mut world] {
            if *group != 0 {
                GROUP_FREE.succeeds([to(group), 0, 0, 0, 0]);
            }
        }
        if is_done {
            for (place, member) in members.iter_mut().enumerate() {
                *member = i64::from(translated.add(place).read()) as u64;
            }
        }
        is_done
    }
}

/// Reports a window: its communicator, its size in bytes, and the displacement unit.
pub(crate) fn new_window(context: &Context, window: u64, facts: [u64; 3]) {
    (context.tracer.defined)(kind::WINDOW, window, facts[0], facts.as_ptr(), facts.len(), null());
}

/// Reports a file.
#[inline(never)]
pub(crate) fn new_file(context: &Context, call: &Call, file: u64, communicator: u64) {
    const NAME: u8 = 1;
    let mut buffer = [0; LONGEST];
    let name = text(call, NAME, &mut buffer);
    (context.tracer.defined)(kind::FILE, file, communicator, null(), 0, name.as_ptr());
}

/// Calls for datatypes. The calls are not reported, only the sizes of the datatypes.
#[inline(never)]
pub(crate) fn datatype(context: &mut Context, call: &Call) -> u64 {
    let at = |argument: u8| call.handle_at(context.family, argument, Handle::Datatype, 0);
    if call.row.kind == Kind::FreeType {
        // Reported before the call: another thread may get the same handle as soon as it is free.
        let datatype = at(call.row.object);
        (context.tracer.freed)(kind::DATATYPE, datatype);
        return context.go_on(call);
    }
    let result = context.go_on(call);
    if call.result_code(result) == 0 {
        let made = if call.row.kind == Kind::NewType { call.row.result } else { call.row.object };
        let datatype = call.handle_at(context.family, made, Handle::Datatype, 0);
        // SAFETY: the call has created or committed the datatype.
        unsafe { define_datatype(context, datatype) };
    }
    result
}

/// Reports the size of a datatype.
///
/// # Safety
/// `datatype` is one.
pub(crate) unsafe fn define_datatype(context: &Context, datatype: u64) {
    let mut bytes = 0_i64;
    // SAFETY: by the caller's promise.
    let is_known = unsafe { TYPE_SIZE_X.succeeds([datatype, to(&mut bytes), 0, 0, 0]) };
    if !is_known {
        // SAFETY: as above.
        bytes = unsafe { ask(&TYPE_SIZE, datatype) }.map_or(-1, i64::from);
    }
    if let Ok(bytes) = u64::try_from(bytes) {
        tell_datatype(context, datatype, bytes);
    }
}

/// Reports the size of a datatype.
pub(crate) fn tell_datatype(context: &Context, datatype: u64, bytes: u64) {
    (context.tracer.defined)(kind::DATATYPE, datatype, 0, &raw const bytes, 1, null());
}

/// Reports the name of a communicator or a window.
#[inline(never)]
pub(crate) fn name(context: &mut Context, call: &Call) -> u64 {
    const NAME: u8 = 1;
    let of = if call.row.kind == Kind::NameWindow { kind::WINDOW } else { kind::COMMUNICATOR };
    let result = context.go_on(call);
    if call.result_code(result) == 0 {
        let object = call.object(context.family);
        let mut buffer = [0; LONGEST];
        let name = text(call, NAME, &mut buffer);
        (context.tracer.named)(of, object, name.as_ptr());
    }
    result
}

/// Maximum number of bytes of a string with its NUL. Longer ones are cut.
const LONGEST: usize = 256;

/// A string that the program passes. Fortran's string has its length after the arguments, and blanks at its end.
fn text<'a>(call: &Call, argument: u8, buffer: &'a mut [u8; LONGEST]) -> &'a CStr {
    let from = call.address(argument) as *const c_char;
    let most = LONGEST - 1;
    let length = if call.is_fortran() { call.text_length().min(most) } else { most };
    if !from.is_null() {
        for (place, to) in buffer.iter_mut().enumerate().take(length) {
            // SAFETY: by the promise for the call; nothing is read after the string's end.
            match unsafe { from.add(place).read() } as u8 {
                0 => break,
                byte => *to = byte,
            }
        }
    }
    if call.is_fortran() {
        let end = buffer.iter().rposition(|byte| !matches!(byte, 0 | b' ')).map_or(0, |last| last + 1);
        buffer[end] = 0;
    }
    CStr::from_bytes_until_nul(buffer).unwrap_or_default()
}
