//! perf_event_open(2) for one thread: the CPU's counters, read without a system call (`rdpmc`), and a clock that sends
//! signals.
//!
//! The kernel maps a page for each counter, which contains the CPU register that currently counts, and what was counted
//! before. The page keeps the counter alive: the descriptor is closed at once, so that the program has no unknown
//! descriptor. A forked child does not inherit the page. Only the clock keeps a descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{Ordering, compiler_fence};

use interpose::system_call;

use crate::os::files::protected_fd::{HIGH, LOWEST};
use crate::os::system;

/// `PERF_TYPE_HARDWARE`, `PERF_TYPE_SOFTWARE`.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_TASK_CLOCK`.
const TASK_CLOCK: u64 = 1;
/// `F_SETSIG` and `F_SETOWN_EX`, with the signal's recipient `F_OWNER_TID`.
const SET_SIGNAL: usize = 10;
const SET_OWNER: usize = 15;
const OWNER_IS_THREAD: i32 = 0;
/// `PERF_EVENT_IOC_REFRESH` and `PERF_EVENT_IOC_ID`.
const REFRESH: usize = 0x2402;
const ID: usize = 0x8008_2407;
/// Bits of `perf_event_attr`'s flags. Disabled: does not count before [`REFRESH`].
const DISABLED: u64 = 1;
/// Pinned: fail rather than count only part of the time.
const PINNED: u64 = 1 << 2;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: usize = 1 << 3;
const THIS_THREAD: usize = 0;
const ANY_PROCESSOR: usize = usize::MAX;
const NO_GROUP: usize = usize::MAX;
/// Maximum number of attempts to read a page that changes during the reading, because the thread is preempted.
#[cfg(target_arch = "x86_64")]
const ATTEMPTS: u32 = 8;

/// The first 64 bytes of `perf_event_attr`, which is all that kernels of 2009 had.
#[repr(C)]
struct Attributes {
    r#type: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

impl Attributes {
    /// Attributes for counting in user mode.
    fn of(r#type: u32, config: u64) -> Attributes {
        Attributes {
            r#type,
            size: size_of::<Attributes>() as u32,
            config,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            wakeup_events: 0,
            breakpoint_type: 0,
            breakpoint_address: 0,
        }
    }

    /// Starts counting for the calling thread.
    fn open(&self) -> io::Result<OwnedFd> {
        let arguments =
            [std::ptr::from_ref(self).addr(), THIS_THREAD, ANY_PROCESSOR, NO_GROUP, CLOSE_ON_EXEC];
        // SAFETY: valid attributes of the size that they name.
        let descriptor = unsafe { system_call::call(libc::SYS_perf_event_open, arguments) }?;
        // SAFETY: opened above, and nobody else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
    }

    /// Starts counting for the calling thread without keeping a descriptor. Returns the page's address.
    fn map(&self) -> io::Result<usize> {
        let descriptor = self.open()?;
        let arguments = [
            0,
            system::page_bytes(),
            libc::PROT_READ as usize,
            libc::MAP_SHARED as usize,
            descriptor.as_raw_fd() as usize,
            0,
        ];
        // SAFETY: a new mapping, where the kernel wants it.
        let page = unsafe { system_call::call(libc::SYS_mmap, arguments) };
        system::close(descriptor);
        page
    }
}

/// Unmaps a page, which ends its counter.
fn unmap(page: usize) {
    if page != 0 {
        // SAFETY: mapped by `Attributes::map`; an ended counter is no longer read.
        let _ = unsafe { system_call::call(libc::SYS_munmap, [page, system::page_bytes()]) };
    }
}

/// A clock of a thread's CPU time in user mode, which sends the thread a signal and stops until [`Ticker::go_on`].
///
/// If it did not stop, signals to a thread that blocks them would fill the user's signal queue. The kernel would then
/// send SIGIO, which kills programs. Continuing needs a descriptor. It has a high number, like all of ours, and is used
/// only while it still belongs to the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticker {
    descriptor: i32,
    id: u64,
}

impl Ticker {
    /// Sends `signal` like for a file (`POLL_IN` to `POLL_HUP`), after `period_ns` of the calling thread's CPU time.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn on_this_thread(signal: i32, period_ns: u64) -> io::Result<Ticker> {
        let mut attributes = Attributes { sample_period: period_ns, ..Attributes::of(SOFTWARE, TASK_CLOCK) };
        attributes.flags |= DISABLED;
        let low = attributes.open()?;
        let high = system::duplicate_from(low.as_fd(), HIGH);
        let file = high.or_else(|_| system::duplicate_from(low.as_fd(), LOWEST));
        system::close(low);
        let file = file?;
        let descriptor = file.as_raw_fd();
        let owner = [OWNER_IS_THREAD, system::thread_id()];
        let number = descriptor as usize;
        let calls = [
            [number, SET_SIGNAL, signal as usize],
            [number, SET_OWNER, owner.as_ptr().addr()],
            [number, libc::F_SETFL as usize, libc::O_ASYNC as usize],
        ];
        // SAFETY: of a descriptor of ours; the owner is valid for reading.
        let set = |call| unsafe { system_call::call(libc::SYS_fcntl, call) }.map(drop);
        let begun = calls.into_iter().try_for_each(set).and_then(|()| id_of(descriptor));
        match begun {
            Ok(id) => {
                let ticker = Ticker { descriptor: file.into_raw_fd(), id };
                ticker.go_on();
                Ok(ticker)
            }
            Err(error) => {
                system::close(file);
                Err(error)
            }
        }
    }

    /// The descriptor and the kernel's id of the event, for [`Ticker::of`].
    pub(crate) fn parts(self) -> (i32, u64) {
        (self.descriptor, self.id)
    }

    /// The clock with these parts.
    pub(crate) fn of((descriptor, id): (i32, u64)) -> Ticker {
        Ticker { descriptor, id }
    }

    /// Starts the next period after a signal; may be called in the handler. False if the program has closed the clock.
    pub(crate) fn go_on(self) -> bool {
        const ONCE: usize = 1;
        let arguments = [self.descriptor as usize, REFRESH, ONCE];
        // SAFETY: a plain number.
        self.is_there() && unsafe { system_call::call(libc::SYS_ioctl, arguments) }.is_ok()
    }

    fn is_there(self) -> bool {
        id_of(self.descriptor).is_ok_and(|id| id == self.id)
    }

    /// Ends the clock. A signal that was already sent may be delivered later.
    pub(crate) fn end(self) {
        if self.is_there() {
            // SAFETY: our own, which nobody else closes.
            system::close(unsafe { OwnedFd::from_raw_fd(self.descriptor) });
        }
    }
}

/// The kernel's id of a descriptor's event.
fn id_of(descriptor: i32) -> io::Result<u64> {
    let mut id: u64 = 0;
    let arguments = [descriptor as usize, ID, &raw mut id as usize];
    // SAFETY: valid for writing. Files of other kinds have no such command.
    unsafe { system_call::call(libc::SYS_ioctl, arguments) }?;
    Ok(id)
}

/// The start of `perf_event_mmap_page`.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
#[repr(C)]
struct Page {
    version: u32,
    compatible_version: u32,
    lock: u32,
    index: u32,
    offset: i64,
    time_enabled: u64,
    time_running: u64,
    capabilities: u64,
    width: u16,
}

/// Bit of `capabilities`: user space may read the register.
#[cfg(target_arch = "x86_64")]
const MAY_READ: u64 = 1 << 2;

/// A counter of one thread, as its page's address; 0 for none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter(usize);

/// Why a counter is unavailable.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The system's error.
    System(io::Error),
    /// The kernel has the counter, but does not allow reading it in user space.
    NotReadable,
    /// All of the CPU's registers are in use.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "no register is read there"))]
    Busy,
}

impl Counter {
    /// No counter.
    pub(crate) const NONE: Counter = Counter(0);

    /// Counts the event `number` (`PERF_COUNT_HW_...`) for the calling thread in user mode.
    ///
    /// # Errors
    /// Why the counter is unavailable.
    pub(crate) fn on_this_thread(number: u64) -> Result<Counter, Refusal> {
        let mut attributes = Attributes::of(HARDWARE, number);
        attributes.flags |= PINNED;
        let page = attributes.map();
        let counter = Counter(page.map_err(Refusal::System)?);
        match counter.is_readable() {
            Ok(()) => Ok(counter),
            Err(refusal) => {
                counter.end();
                Err(refusal)
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn is_readable(self) -> Result<(), Refusal> {
        match self.page() {
            Some(page) if page.capabilities & MAY_READ == 0 => Err(Refusal::NotReadable),
            Some(page) if page.index == 0 => Err(Refusal::Busy),
            _ => Ok(()),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_readable(self) -> Result<(), Refusal> {
        Err(Refusal::NotReadable)
    }

    /// The counter's value, read on its thread; `None` if it does not count now, or has not counted all the time.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn value(self) -> Option<u64> {
        for _ in 0..ATTEMPTS {
            let page = self.page()?;
            let counts = page.index != 0
                && page.capabilities & MAY_READ != 0
                && page.time_enabled == page.time_running;
            if !counts {
                return None;
            }
            let register = read_register(page.index - 1);
            compiler_fence(Ordering::SeqCst);
            if self.page()?.lock == page.lock {
                return Some(page.value(register));
            }
        }
        None
    }

    /// Always `None` on other CPU architectures.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn value(self) -> Option<u64> {
        None
    }

    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn page(self) -> Option<Page> {
        let page = self.0 as *const Page;
        // SAFETY: null, or mapped until `end`; the kernel writes while the thread does not run, and volatile reads see that.
        let page = (!page.is_null()).then(|| unsafe { page.read_volatile() });
        compiler_fence(Ordering::SeqCst);
        page
    }

    /// Ends the counter.
    pub(crate) fn end(self) {
        unmap(self.0);
    }
}

#[cfg(target_arch = "x86_64")]
impl Page {
    /// The count for this value of the register, which has `width` bits, including the sign.
    #[inline]
    fn value(&self, register: u64) -> u64 {
        let unused = 64_u32.saturating_sub(self.width.into()).min(63);
        let counted = (register << unused).cast_signed() >> unused;
        self.offset.wrapping_add(counted).cast_unsigned()
    }
}

/// Reads counter register `number` of the CPU.
#[cfg(target_arch = "x86_64")]
#[inline]
fn read_register(number: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads a register, which the kernel permits for programs with a page that says so.
    unsafe {
        core::arch::asm!("rdpmc", in("ecx") number, out("eax") low, out("edx") high,
            options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    fn page(offset: i64, width: u16) -> Page {
        Page {
            version: 0,
            compatible_version: 0,
            lock: 2,
            index: 1,
            offset,
            time_enabled: 5,
            time_running: 5,
            capabilities: MAY_READ,
            width,
        }
    }

    #[test]
    fn a_register_adds_to_what_was_counted_before() {
        assert_eq!(page(1000, 48).value(7), 1007);
        // The kernel lets registers start below zero, and accounts for that.
        let begin = 0xffff_8000_0000_u64;
        assert_eq!(page(0x8000_0000 + 3, 48).value(begin + 5), 8);
        assert_eq!(page(3, 64).value(4), 7);
    }

    #[test]
    fn a_page_without_a_register_has_no_value() {
        let value = |page: &Page| Counter(std::ptr::from_ref(page).addr()).value();
        let idle = Page { index: 0, ..page(5, 48) };
        assert_eq!(value(&idle), None);
        let forbidden = Page { capabilities: 0, ..page(5, 48) };
        assert_eq!(value(&forbidden), None);
        let shared = Page { time_running: 4, ..page(5, 48) };
        assert_eq!(value(&shared), None);
        assert_eq!(Counter::NONE.value(), None);
    }
}
