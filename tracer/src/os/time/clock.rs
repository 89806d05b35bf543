//! The session's clock: raw ticks, read on every event, and pairs with the system's clocks, read rarely.
//!
//! Reading the clock is the largest part of an event's cost. On x86_64 the time stamp counter is used where it is invariant
//! and the kernel itself trusts it (its own clocksource). On Arm it is the generic timer, of 1 MHz to 1 GHz: several events may have one
//! time. Neither instruction waits for those before it, so that a thread's time may be some ticks earlier than that of its event before.
//! The reader keeps a thread's events in their order, and gives such an event the time of the one before. An `isb` before each reading
//! would prevent it; what that costs has not been measured. On RISC-V it is the counter that `rdtime` reads, on POWER the time base
//! (`mftb`): like Arm's they count at one rate, but are slower than the CPU. Elsewhere it is `CLOCK_MONOTONIC`,
//! whose ticks are nanoseconds, by the function that the kernel maps into the process ([`vdso`]) where there is one.

use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::time::Duration;

use chrono::{DateTime, FixedOffset, Local, Offset};
use omptrace_trace_format::block::ClockPair;
use omptrace_trace_format::metadata;

use crate::os::system;
use crate::os::time::vdso;

/// The source of the ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ClockKind {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    Monotonic = 0,
    /// The CPU's own counter, read by an instruction.
    Counter = 1,
}

static KIND: AtomicU8 = AtomicU8::new(ClockKind::Monotonic as u8);

/// Decides once, before the first event, which clock the process has; the same answer ever after.
pub(crate) fn choose() -> ClockKind {
    let kind = if counter_is_trusted() { ClockKind::Counter } else { ClockKind::Monotonic };
    vdso::prepare();
    // Relaxed: stored before any callback is registered; the runtime's own synchronisation makes it visible.
    KIND.store(kind as u8, Ordering::Relaxed);
    kind
}

/// In tests, the counter, whatever the machine's clock source is.
#[cfg(test)]
pub(crate) fn choose_counter() {
    KIND.store(ClockKind::Counter as u8, Ordering::Relaxed);
}

/// The clock that was chosen.
#[inline]
pub(crate) fn kind() -> ClockKind {
    // Relaxed: see `choose`.
    if KIND.load(Ordering::Relaxed) == ClockKind::Counter as u8 {
        ClockKind::Counter
    } else {
        ClockKind::Monotonic
    }
}

/// The CPU's counter; on a processor that has none, `CLOCK_MONOTONIC`.
#[inline(always)]
pub(crate) fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction exists on every x86_64 CPU; `choose` asks whether its value can be trusted.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads a counter that Linux lets user space read; no memory, no flags.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags))
        };
        ticks
    }
    #[cfg(target_arch = "riscv64")]
    {
        let ticks: u64;
        // SAFETY: reads a counter that Linux lets user space read; no memory.
        unsafe { core::arch::asm!("rdtime {}", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }
    #[cfg(target_arch = "powerpc64")]
    {
        let ticks: u64;
        // SAFETY: reads the time base, which every program may; no memory.
        unsafe { core::arch::asm!("mftb {}", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
        ticks
    }
    #[cfg(not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64",
        target_arch = "powerpc64"
    )))]
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// One of the system's clocks, in nanoseconds.
fn clock_ns(clock: libc::clockid_t) -> u64 {
    vdso::clock_ns(clock).unwrap_or_else(|| system::clock_ns(clock))
}

/// `CLOCK_MONOTONIC_RAW`, in nanoseconds: what all processes of a host have, and no correction changes.
pub(crate) fn raw_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// The session's clock, whichever it is.
#[inline]
pub(crate) fn ticks() -> u64 {
    match kind() {
        ClockKind::Counter => counter(),
        ClockKind::Monotonic => clock_ns(libc::CLOCK_MONOTONIC),
    }
}

/// Seconds by which local time is ahead of UTC.
static OFFSET: AtomicI32 = AtomicI32::new(0);

/// Finds out how far local time is ahead. `chrono` keeps the time zone in a thread-local value with a destructor, which takes
/// the loader's lock. So this is for the library's constructor, whose thread has that lock.
pub(crate) fn find_offset() {
    // Relaxed: the number is all that is shared.
    OFFSET.store(Local::now().offset().fix().local_minus_utc(), Ordering::Relaxed);
}

/// The local time.
pub(crate) fn local_time() -> DateTime<FixedOffset> {
    let now = DateTime::from_timestamp_nanos(clock_ns(libc::CLOCK_REALTIME) as i64);
    // Relaxed: as above.
    let offset = FixedOffset::east_opt(OFFSET.load(Ordering::Relaxed));
    now.with_timezone(&offset.unwrap_or(Offset::fix(&chrono::Utc)))
}

/// Time that passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    begun_ns: u64,
}

impl Stopwatch {
    /// It begins now.
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { begun_ns: clock_ns(libc::CLOCK_MONOTONIC) }
    }

    /// Since it began.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(clock_ns(libc::CLOCK_MONOTONIC).saturating_sub(self.begun_ns))
    }
}

/// The session's clock beside the system's, and the ticks that the reading took: of three tries the tightest.
pub(crate) fn pair() -> (ClockPair, u64) {
    let reading = || {
        let before = ticks();
        let monotonic_raw_ns = clock_ns(libc::CLOCK_MONOTONIC_RAW);
        let after = ticks();
        let realtime_ns = clock_ns(libc::CLOCK_REALTIME);
        let took = after.wrapping_sub(before);
        (ClockPair { ticks: before.wrapping_add(took / 2), monotonic_raw_ns, realtime_ns }, took)
    };
    (0..2).fold(reading(), |best, _| {
        let next = reading();
        if next.1 < best.1 { next } else { best }
    })
}

/// What the traces call the CPU's counter: by the instruction or the register that it is read by.
const COUNTER: &str = if cfg!(target_arch = "aarch64") {
    "cntvct"
} else if cfg!(target_arch = "riscv64") {
    "rdtime"
} else if cfg!(target_arch = "powerpc64") {
    "mftb"
} else {
    "tsc"
};

/// Ticks per second, from a pair read earlier: good to some 100 ppm after a millisecond.
pub(crate) fn describe(first: ClockPair, uncertainty_ticks: u64) -> metadata::Clock {
    let (now, _) = pair();
    let ns = now.monotonic_raw_ns.saturating_sub(first.monotonic_raw_ns).max(1);
    let ticks = now.ticks.wrapping_sub(first.ticks);
    let (kind, ticks_per_second) = match kind() {
        ClockKind::Counter => (COUNTER, ticks as f64 * 1e9 / ns as f64),
        ClockKind::Monotonic => ("monotonic", 1e9),
    };
    metadata::Clock { kind: kind.into(), ticks_per_second, uncertainty_ticks, step_ticks: step_ticks() }
}

/// The fewest ticks by which the counter goes on, if that may be more than one: from Armv8.6 on the generic timer counts nanoseconds, but the
/// clock behind it may be slower. 0 where nobody has to look.
fn step_ticks() -> u64 {
    /// A step takes 40 ns at most.
    const STEPS: usize = 16;
    const MOST_READINGS: usize = 10_000;
    if cfg!(target_arch = "x86_64") || kind() != ClockKind::Counter {
        return 0;
    }
    let mut last = counter();
    let readings = std::iter::repeat_with(|| {
        let now = counter();
        now.wrapping_sub(std::mem::replace(&mut last, now))
    });
    // One that went back is none.
    let steps = readings.take(MOST_READINGS).filter(|step| (1..1 << 32).contains(step));
    steps.take(STEPS).min().unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
fn counter_is_trusted() -> bool {
    use core::arch::x86_64::__cpuid;
    // Bit 8 of EDX in leaf 0x8000_0007: the counter runs at one rate in all power states.
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0;
    // What the kernel found out about the counters of all CPUs; two hypervisor clocks are made of a counter that the
    // host vouches for.
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    invariant && source.is_ok_and(|s| matches!(s.trim(), "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page"))
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_trusted() -> bool {
    // Arm's generic timer, RISC-V's `time` and POWER's time base count at one rate, the same on all CPUs, by architecture.
    cfg!(any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "powerpc64"))
}
