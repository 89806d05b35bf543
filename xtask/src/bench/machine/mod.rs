//! The machine that is measured on, and whether it is quiet.

pub(crate) mod disk;

use std::fs;

/// Load above which other programs disturb. On a quiet machine it is near 0 before the first run. Our own runs add 1
/// or so to it later.
const QUIET: f64 = 0.5;

/// Runnable threads, averaged over the last minute.
pub(super) fn load_average() -> f64 {
    fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or(f64::NAN)
}

/// Says so if other programs disturb.
pub(super) fn warn_if_busy(load: f64) {
    println!("load average: {load:.2}");
    if load > QUIET {
        println!(
            "warning: other programs may be running; times are then meaningless, but instructions and bytes are still valid"
        );
    }
}

/// The processor's name.
pub(super) fn processor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown", |(_, name)| name)
        .to_owned()
}

/// Processors that this process may use.
pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
