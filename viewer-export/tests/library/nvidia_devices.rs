//! Traces from an NVIDIA H200 (`tests/devices/README.md`), checked against the program's requests, and against times
//! that the program read from the device's own clock.

use omptrace_analysis::{Info, Stats};
use omptrace_symbols::Options;

use crate::device_traces::{has_findings, is_as_before, open};
use crate::historic::text;

/// One trace of `tests/programs/gpu.c`.
struct Case {
    name: &'static str,
    kernels: u64,
    /// Number of transfers to and from the device. LLVM's runtime performs one more to the device when it starts.
    transfers: [u64; 2],
    /// Number of operations that are shown as observed by the host.
    host_observed: u64,
    /// Names of the reader's findings.
    findings: &'static [&'static str],
}

const CASES: &[Case] = &[
    // Kernels that spin for 1 to 4 ms, and transfer two times back.
    Case { name: "nvidia_spin", kernels: 4, transfers: [1, 4], host_observed: 0, findings: &[] },
    // 8 threads with 4 target regions each.
    Case {
        name: "nvidia_threads",
        kernels: 8 * 4,
        transfers: [1 + 8 * 4, 8 * 4],
        host_observed: 0,
        findings: &["late_end"],
    },
    // The same with CUDA 12's library.
    Case {
        name: "nvidia_cupti12",
        kernels: 8 * 4,
        transfers: [1 + 8 * 4, 8 * 4],
        host_observed: 0,
        findings: &["late_end"],
    },
    // Target tasks, run by hidden helper threads.
    Case {
        name: "nvidia_nowait",
        kernels: 12,
        transfers: [1 + 12, 12],
        host_observed: 0,
        findings: &["late_end", "missing_end"],
    },
    // 6 copies within the device, between a copy to it and a copy back.
    Case { name: "nvidia_within", kernels: 0, transfers: [1 + 1, 1], host_observed: 0, findings: &[] },
    // 10 kernels, 10 while recording was paused, 10 more.
    Case {
        name: "nvidia_pause",
        kernels: 2 * 10,
        transfers: [1 + 2, 2],
        host_observed: 0,
        findings: &["device_record_of_pause", "late_end"],
    },
    // 10 kernels with data that stays on the device, and `_exit`.
    Case {
        name: "nvidia_end",
        kernels: 10,
        transfers: [1 + 1, 1],
        host_observed: 10 + 3 + 2,
        findings: &["missing_end", "no_device_record"],
    },
    // A library's 5 kernels and its copy, between 3 kernels of an OpenMP program and 1.
    Case {
        name: "nvidia_beside",
        kernels: 3 + 5 + 1,
        transfers: [1 + 4, 4 + 1],
        host_observed: 0,
        findings: &[],
    },
    // With GCC's runtime, which reports target regions but no operations, each kernel has a transfer of its arguments.
    Case { name: "nvidia_gcc_spin", kernels: 4, transfers: [1 + 4, 4], host_observed: 0, findings: &[] },
    Case {
        name: "nvidia_gcc_threads",
        kernels: 8 * 4,
        transfers: [1 + 8 * 4, 8 * 4],
        host_observed: 0,
        findings: &["late_end"],
    },
    Case {
        name: "nvidia_gcc_end",
        kernels: 0,
        transfers: [0, 0],
        host_observed: 0,
        findings: &["missing_end", "no_record_of_region"],
    },
];

#[test]
fn what_the_program_asked_for_shows_once() {
    for case in CASES {
        let reader = open(case.name);
        let stats = Stats::of(&[&reader], &Options::default()).0;
        let device = stats.device_use.first().map(|device| {
            let transfers = [device.to_device.count, device.from_device.count];
            (device.kernels, transfers, device.host_observed)
        });
        assert_eq!(
            device.unwrap_or_default(),
            (case.kernels, case.transfers, case.host_observed),
            "{}",
            case.name
        );
        let info = Info::of(&reader);
        let clock = info.devices[&0].timeline.clock.expect("a clock");
        assert!(clock.uncertainty_ns < 100, "{}: {clock}", case.name);
        assert_eq!(clock.residual_ns, 0, "{}: {clock}", case.name);
        // All kernels except the library's have the line of their construct.
        let sources = stats.devices.iter().filter(|work| work.name.contains("kernel"));
        let sources: Vec<&str> = sources.map(|work| work.name.as_str()).collect();
        let is_named = |name: &&str| name.contains(" @") || name.contains("library_kernel");
        assert!(sources.iter().all(is_named), "{}: {sources:?}", case.name);
    }
}

#[test]
fn what_is_missing_is_reported() {
    for case in CASES {
        has_findings(case.name, case.findings);
    }
}

/// The device's clock in nanoseconds at the start and end of each kernel, as printed by the programs.
const SPUN: &[(&str, [(i64, i64); 4])] = &[
    (
        "nvidia_spin",
        [
            (1795714297423579968, 1795714297424579968),
            (1795714297424745120, 1795714297426745120),
            (1795714297427051328, 1795714297430051328),
            (1795714297430407584, 1795714297434407584),
        ],
    ),
    (
        "nvidia_gcc_spin",
        [
            (20469124098, 20470124100),
            (20470324876, 20472324897),
            (20472390772, 20475390781),
            (20475464095, 20479464171),
        ],
    ),
];

/// Starts and durations of the kernels on a timeline, in nanoseconds.
fn kernels(timeline: &str) -> Vec<(i64, i64)> {
    let of_line = |line: &str| {
        let (begin, rest) = line.trim().split_once("  kernel ")?;
        let (_, length) = rest.rsplit_once("= ")?;
        let begin: f64 = begin.parse().ok()?;
        let length: f64 = length.strip_suffix(" us")?.parse().ok()?;
        Some(((begin * 1e9).round() as i64, (length * 1e3).round() as i64))
    };
    timeline.lines().filter_map(of_line).collect()
}

/// A kernel starts with code that the compiler adds before the program's, which takes microseconds with GCC.
#[test]
fn times_are_those_of_the_devices_own_clock() {
    const OTHER_CODE_NS: i64 = 10_000;
    for (name, spun) in SPUN {
        let kernels = kernels(&text(&open(name)));
        assert_eq!(kernels.len(), spun.len(), "{name}");
        for ((begin, length), (spun_begin, spun_end)) in kernels.iter().zip(spun) {
            let more = length - (spun_end - spun_begin);
            assert!((0..OTHER_CODE_NS).contains(&more), "{name}: {more} ns");
            let apart = (begin - kernels[0].0) - (spun_begin - spun[0].0);
            assert!(apart.abs() < OTHER_CODE_NS, "{name}: {apart} ns");
        }
    }
}

#[test]
fn timelines_are_as_before() {
    for case in CASES {
        is_as_before(case.name);
    }
}
