//! The session's clock: raw ticks, read on every event, and pairs with the system's clocks, read rarely.
//!
//! Reading the clock is the largest part of an event's cost. On x86_64, the time stamp counter is used if it is
//! invariant and the kernel itself trusts it (as its clocksource). On Arm, it is the generic timer, with 1 MHz to 1
//! GHz, so that several events may have the same time. Neither instruction waits for previous instructions, so an event
//! may be some ticks earlier than the thread's previous event. Readers keep a thread's events in order, and give such
//! an event the time of the previous one. An `isb` before each reading would prevent that; its cost has not been
//! measured. On RISC-V, it is the counter that `rdtime` reads, on POWER the time base (`mftb`): like Arm's, they count
//! at a constant rate, but more slowly than the CPU. On other architectures it is `CLOCK_MONOTONIC`, whose ticks are
//! nanoseconds, read with the function that the kernel maps into the process ([`vdso`]) if available.

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

/// Decides once, before the first event, which clock the process uses.
pub(crate) fn choose() -> ClockKind {
    let kind = if counter_is_trusted() { ClockKind::Counter } else { ClockKind::Monotonic };
    vdso::prepare();
    // Relaxed: stored before any callback is registered; the runtime's own synchronisation makes it visible.
    KIND.store(kind as u8, Ordering::Relaxed);
    kind
}

/// Chooses the counter in tests, whatever the machine's clocksource is.
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

/// Reads the CPU's counter or, on an architecture without one, `CLOCK_MONOTONIC`.
#[inline(always)]
pub(crate) fn counter() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction exists on every x86_64 CPU; `choose` checks whether its value can be trusted.
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

/// Reads a system clock, in nanoseconds.
fn clock_ns(clock: libc::clockid_t) -> u64 {
    vdso::clock_ns(clock).unwrap_or_else(|| system::clock_ns(clock))
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: common to all processes of a host, and never corrected.
pub(crate) fn raw_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// Reads the session's clock.
#[inline]
pub(crate) fn ticks() -> u64 {
    match kind() {
        ClockKind::Counter => counter(),
        ClockKind::Monotonic => clock_ns(libc::CLOCK_MONOTONIC),
    }
}

/// Offset of local time from UTC in seconds.
static OFFSET: AtomicI32 = AtomicI32::new(0);

/// Determines the offset of local time. `chrono` keeps the time zone in a thread-local value with a destructor, which
/// takes the loader's lock. So this is called by the library's constructor, whose thread holds that lock.
pub(crate) fn find_offset() {
    // Relaxed: only the number is shared.
    OFFSET.store(Local::now().offset().fix().local_minus_utc(), Ordering::Relaxed);
}

/// The local time.
pub(crate) fn local_time() -> DateTime<FixedOffset> {
    let now = DateTime::from_timestamp_nanos(clock_ns(libc::CLOCK_REALTIME) as i64);
    // Relaxed: as above.
    let offset = FixedOffset::east_opt(OFFSET.load(Ordering::Relaxed));
    now.with_timezone(&offset.unwrap_or(Offset::fix(&chrono::Utc)))
}

/// Measures elapsed time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    begun_ns: u64,
}

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { begun_ns: clock_ns(libc::CLOCK_MONOTONIC) }
    }

    /// The time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_nanos(clock_ns(libc::CLOCK_MONOTONIC).saturating_sub(self.begun_ns))
    }
}

/// Reads the session's clock together with the system's clocks, and returns the ticks that the reading took. Uses the
/// fastest of three readings.
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

/// The name of the CPU's counter in traces: the instruction or register with which it is read.
const COUNTER: &str = if cfg!(target_arch = "aarch64") {
    "cntvct"
} else if cfg!(target_arch = "riscv64") {
    "rdtime"
} else if cfg!(target_arch = "powerpc64") {
    "mftb"
} else {
    "tsc"
};

/// Determines the ticks per second from an earlier pair; accurate to some 100 ppm after a millisecond.
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

/// The smallest increment of the counter in ticks, if it may be larger than one: since Armv8.6, the generic timer
/// counts nanoseconds, but the clock behind it may be slower. 0 if it need not be measured.
fn step_ticks() -> u64 {
    /// One step takes at most 40 ns.
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
    // Ignore readings at which the counter went back.
    let steps = readings.take(MOST_READINGS).filter(|step| (1..1 << 32).contains(step));
    steps.take(STEPS).min().unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
fn counter_is_trusted() -> bool {
    use core::arch::x86_64::__cpuid;
    // Bit 8 of EDX in leaf 0x8000_0007: the counter runs at one rate in all power states.
    let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0;
    // The kernel's verdict on the counters of all CPUs; two hypervisor clocks are derived from a counter that the host
    // vouches for.
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    invariant && source.is_ok_and(|s| matches!(s.trim(), "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page"))
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_trusted() -> bool {
    // By architecture, Arm's generic timer, RISC-V's `time` and POWER's time base count at a constant rate, the same on
    // all CPUs.
    cfg!(any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "powerpc64"))
}
