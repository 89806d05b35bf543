//! Traces from AMD's device tracing (`tests/devices/README.md`), checked against the structure of the traced program.

use omptrace_analysis::{DeviceUse, Info, Stats};
use omptrace_report::Layout;
use omptrace_symbols::Options;

use crate::device_traces::{has_findings, is_as_before, open};

/// One trace.
struct Case {
    name: &'static str,
    /// Number of operations from the device's records.
    records: u64,
    /// Number of operations that are shown as observed by the host.
    host_observed: u64,
    /// Names of the reader's findings.
    findings: &'static [&'static str],
}

/// An allocation, a transfer to the device, a kernel, a transfer back, and a deletion.
const TARGET: u64 = 5;
/// Records of target regions.
const TARGET_RECORDS: &str = "unknown_device_record";

const CASES: &[Case] = &[
    Case {
        name: "amd_basic",
        // Three regions; a data region around one of them, whose data is already there, and two updates; enter and exit
        // data.
        records: 3 * TARGET + (4 + 1 + 2) + 4,
        host_observed: 0,
        findings: &[TARGET_RECORDS],
    },
    Case {
        name: "amd_devices",
        // On each of four devices: an allocation, a copy to the device, a kernel, a copy back, a deletion, and a data
        // region as above. Then copies from device to device, and a region with associated memory, between that
        // memory's allocation and deletion.
        records: 4 * (5 + 4 + 1 + 2) + 3 * 2 + (3 + 2),
        // The association, and its end.
        host_observed: 2,
        findings: &["no_device_record", TARGET_RECORDS],
    },
    Case {
        name: "amd_pause",
        records: 2 * 2 * TARGET,
        host_observed: 0,
        findings: &["device_record_of_pause", "late_end", TARGET_RECORDS],
    },
    Case {
        name: "amd_async",
        records: 3 * 20 * TARGET,
        host_observed: 0,
        findings: &["late_end", TARGET_RECORDS],
    },
    Case {
        name: "amd_small_buffers",
        records: 3 * 20 * TARGET,
        host_observed: 0,
        findings: &["late_end", TARGET_RECORDS],
    },
    Case {
        name: "amd_forks",
        // Five times two regions of four threads. After the first fork, the runtime delivers only those of the forking
        // thread.
        records: 4 * 2 * TARGET + 4 * 2 * TARGET,
        host_observed: 4 * 3 * 2 * TARGET,
        findings: &["late_end", "no_device_record"],
    },
];

#[test]
fn each_operation_shows_once() {
    for case in CASES {
        let info = Info::of(&open(case.name));
        let timelines = || info.devices.values().map(|device| &device.timeline);
        let records: u64 = timelines().map(|timeline| timeline.records).sum();
        let observed: u64 = timelines().map(|timeline| timeline.host_observed).sum();
        let without: u64 = timelines().map(|timeline| timeline.without_record).sum();
        let anonymous: u64 = timelines().map(|timeline| timeline.uncorrelated).sum();
        let name = case.name;
        assert_eq!((records, observed), (case.records, case.host_observed), "{name}");
        assert_eq!((without, anonymous), (case.host_observed, 0), "{name}");
        // The host has a device number of its own, and does nothing.
        let devices: Vec<i32> = info.devices.keys().copied().collect();
        assert_eq!(devices, [0, 1, 2, 3], "{name}");
    }
}

#[test]
fn devices_are_used_as_the_program_says() {
    const REGIONS: u64 = 3 * 20;
    let stats = Stats::of(&[&open("amd_async")], &Options::default()).0;
    let sum = |number: fn(&DeviceUse) -> u64| stats.device_use.iter().map(number).sum::<u64>();
    assert_eq!(sum(|device| device.kernels), REGIONS);
    // 64 numbers of 8 bytes each.
    for transfers in [
        |device: &DeviceUse| (device.to_device.count, device.to_device.bytes),
        |device: &DeviceUse| (device.from_device.count, device.from_device.bytes),
    ] {
        for device in &stats.device_use {
            let (count, bytes) = transfers(device);
            assert_eq!((count, bytes), (device.kernels, 512 * count));
        }
    }
    // The kernels' own times: 4.87, 3.31, 4.07 and 3.54 us. None of them overlap, because each is as long as the work
    // of its queue.
    let kernels: Vec<u64> = stats.device_use.iter().filter_map(|device| device.kernels_ns).collect();
    let of_queue = |number: usize| {
        let queue = format!("device {number} kernels");
        let queues = stats.devices.iter().filter(|device| device.queue == queue);
        queues.map(|device| device.times.total_ns).sum::<u64>()
    };
    assert_eq!(kernels, [0, 1, 2, 3].map(of_queue));
    let balance = stats.processes[0].device_load_balance.expect("devices");
    let mean = kernels.iter().sum::<u64>() as f64 / 4.0;
    let longest = kernels.iter().copied().max().expect("kernels") as f64;
    assert!((balance - mean / longest).abs() < 1e-9, "{balance}");
    assert!(balance > 0.8 && balance < 0.82, "{balance}");
    let text = omptrace_report::stats_tables(&stats, Layout::default()).to_string();
    let words = format!("load balance of kernels across devices: {:.1} %", balance * 100.0);
    assert!(text.contains(&words), "{text}");
}

/// The program has one array of 100 numbers of 8 bytes, which it maps five times, once by `enter data`.
#[test]
fn memory_is_that_of_the_mapped_arrays() {
    let reader = open("amd_basic");
    let stats = Stats::of(&[&reader], &Options::default()).0;
    let device = &stats.device_use[0];
    assert_eq!(device.peak_bytes, Some(800));
    let lines = device.memory.iter();
    let lines: Vec<_> = lines.map(|of| (of.allocations, of.peak_bytes)).collect();
    assert_eq!(lines, [(1, 800), (4, 800)]);
    assert_eq!(device.memory[0].site.line, Some(17));

    // The peak in a part of the run is unknown.
    let part =
        omptrace_analysis::Options { window: Some((0, i64::MAX)), ..omptrace_analysis::Options::default() };
    let (part, _) = Stats::with(&[&reader], &part).expect("the window has events");
    assert_eq!(part.device_use[0].peak_bytes, None);
}

#[test]
fn clocks_are_mapped_by_readings_of_both() {
    for case in CASES {
        let info = Info::of(&open(case.name));
        for device in info.devices.values() {
            let clock = device.timeline.clock.expect("a clock");
            assert!(clock.uncertainty_ns < 100, "{}: {clock}", case.name);
            assert_eq!(clock.residual_ns, 0, "{}: {clock}", case.name);
        }
    }
}

#[test]
fn what_is_missing_is_reported() {
    for case in CASES {
        has_findings(case.name, case.findings);
    }
}

#[test]
fn timelines_are_as_before() {
    for case in CASES {
        is_as_before(case.name);
    }
}
