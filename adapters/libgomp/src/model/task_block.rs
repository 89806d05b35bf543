//! The block that libgomp gets instead of a task's data: a [`Header`], followed by the data if they are copied.

use core::ffi::{c_long, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

use crate::model::Task;
use crate::model::taskloop_tasks::Taskloop;
use crate::which_libgomp::functions::{CopyFunction, Outlined};

/// The flags that GCC passes to `GOMP_task` and `GOMP_taskloop`.
pub(crate) mod flag {
    pub(crate) const UNTIED: u32 = 1;
    pub(crate) const FINAL: u32 = 1 << 1;
    pub(crate) const MERGEABLE: u32 = 1 << 2;
    pub(crate) const DEPEND: u32 = 1 << 3;
    pub(crate) const UP: u32 = 1 << 8;
    pub(crate) const GRAINSIZE: u32 = 1 << 9;
    pub(crate) const IF: u32 = 1 << 10;
    pub(crate) const NOGROUP: u32 = 1 << 11;
    pub(crate) const REDUCTION: u32 = 1 << 12;
    pub(crate) const DETACH: u32 = 1 << 13;
    pub(crate) const STRICT: u32 = 1 << 14;
}

/// The words before a task's data.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Header {
    /// Words that libgomp writes or reads at the start of the data: the event of a detachable task, or the first
    /// iteration, the end and the reductions of a taskloop.
    pub(crate) words: [*mut c_void; 3],
    /// The task, for `GOMP_task`.
    pub(crate) task: Option<&'static Task>,
    /// The taskloop, for `GOMP_taskloop`.
    pub(crate) taskloop: *const Taskloop,
    pub(crate) function: Outlined,
    pub(crate) copy: Option<CopyFunction>,
    /// Address of the program's data, if they are not copied behind the header.
    pub(crate) original: *mut c_void,
    pub(crate) is_detachable: bool,
    /// Offset of the data from the header, in bytes.
    pub(crate) size: usize,
}

impl Header {
    /// The data that belong to a header at `at`.
    ///
    /// # Safety
    /// `at` is the address at which libgomp or the program's call has this header.
    pub(crate) unsafe fn data(&self, at: *mut c_void) -> *mut c_void {
        if !self.original.is_null() && self.copy.is_none() {
            self.original
        } else {
            // SAFETY: the data begin `size` bytes after the header.
            unsafe { at.byte_add(self.size) }
        }
    }
}

/// Smallest alignment that is requested from libgomp: that of a header.
const MIN_ALIGN: usize = 16;

/// The size of a header in front of data with this alignment, and the alignment of both.
pub(crate) fn layout(align: c_long) -> (usize, usize) {
    let align = (align.max(0) as usize).next_power_of_two().max(MIN_ALIGN);
    (size_of::<Header>().next_multiple_of(align), align)
}

/// Room for the header and the data on the stack, enough for most tasks. libgomp runs some tasks within the call that
/// creates them: if tasks create tasks recursively, the stack has one such block for each call.
#[repr(align(16))]
struct Little {
    _bytes: [u8; 256],
}

/// Like [`Little`], for tasks with more data.
#[repr(align(128))]
struct Much {
    _bytes: [u8; 1024],
}

/// Calls `with` with a copy of the header, followed by `size` bytes of data.
///
/// # Safety
/// `data` has `size` bytes.
pub(crate) unsafe fn with_block<T>(
    header: &Header,
    align: usize,
    data: *const c_void,
    size: usize,
    with: impl FnOnce(*mut c_void) -> T,
) -> T {
    let all = header.size + size;
    // SAFETY: `block` has room for the header and the data.
    let fill = |block: *mut u8| unsafe {
        block.cast::<Header>().write(*header);
        if size > 0 {
            ptr::copy_nonoverlapping(data.cast::<u8>(), block.add(header.size), size);
        }
        block.cast()
    };
    if all <= size_of::<Little>() && align <= align_of::<Little>() {
        return on_stack::<Little, T>(fill, with);
    }
    if all <= size_of::<Much>() && align <= align_of::<Much>() {
        return on_stack::<Much, T>(fill, with);
    }
    let Ok(layout) = Layout::from_size_align(all, align) else {
        // This amount of data cannot exist in memory.
        handle_alloc_error(Layout::new::<Header>());
    };
    // SAFETY: the size is not 0.
    let block = unsafe { alloc(layout) };
    if block.is_null() {
        handle_alloc_error(layout);
    }
    let result = with(fill(block));
    // SAFETY: allocated above. libgomp has a copy for a task that runs later.
    unsafe { dealloc(block, layout) };
    result
}

/// Calls `with` with a block on the stack that `fill` has filled. Not inlined, because the caller's frame would then
/// always have this size.
#[inline(never)]
fn on_stack<R, T>(fill: impl FnOnce(*mut u8) -> *mut c_void, with: impl FnOnce(*mut c_void) -> T) -> T {
    let mut room = MaybeUninit::<R>::uninit();
    with(fill(room.as_mut_ptr().cast()))
}

/// The copy function of a task whose data the program copies by a function.
pub(crate) unsafe extern "C-unwind" fn copy(to: *mut c_void, from: *mut c_void) {
    // SAFETY: libgomp passes room for a header and the data, and the header that it got, which names the data and the
    // program's copy function.
    unsafe {
        let header = from.cast::<Header>().read();
        to.cast::<Header>().write(header);
        if let Some(copy) = header.copy {
            copy(to.byte_add(header.size), header.original);
        }
    }
}
