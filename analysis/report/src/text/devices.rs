//! Rows about devices.

use super::table::{Column, Table, UNKNOWN, bytes, column, known, known_time};
use omptrace_analysis::{DeviceUse, Transfers};

pub(crate) const DEVICE: [Column; 5] =
    [column("count", 0), column("total", 0), column("mean", 1), column("min", 3), column("max", 2)];

pub(crate) const TRANSFERS: [Column; 3] = [column("count", 1), column("moved", 0), column("time", 0)];

/// The transfers of a device by source line.
pub(crate) fn transfer_rows(table: &mut Table, device: &DeviceUse, with_process: bool) {
    let name = device_name(device, with_process);
    let file_names = device.file_names();
    for of_place in &device.places {
        let direction = match of_place.direction {
            "to_device" => "to",
            _ => "from",
        };
        let place = of_place.site.name(&file_names);
        let place = place.map_or_else(String::new, |place| format!(" @{place}"));
        let cells = [of_place.count.to_string(), bytes(of_place.bytes), known_time(of_place.total_ns)];
        table.row(format!("{direction} {name}{place}"), cells);
    }
}

pub(crate) const MEMORY: [Column; 2] = [column("allocations", 0), column("in use at once", 0)];

/// The allocations on a device by source line.
pub(crate) fn memory_rows(table: &mut Table, device: &DeviceUse, with_process: bool) {
    let name = device_name(device, with_process);
    let file_names = device.file_names();
    for of_place in &device.memory {
        let place = of_place.site.name(&file_names);
        let place = place.map_or_else(String::new, |place| format!(" @{place}"));
        let cells = [of_place.allocations.to_string(), bytes(of_place.peak_bytes)];
        table.row(format!("on {name}{place}"), cells);
    }
}

pub(crate) fn device_name(device: &DeviceUse, with_process: bool) -> String {
    match with_process {
        true => format!("{} device {}", device.process, device.device_num),
        false => format!("device {}", device.device_num),
    }
}

pub(crate) const DEVICE_USE: [Column; 12] = [
    column("kernels", 0),
    column("kernel time", 0),
    column("transfers", 1),
    column("transfer time", 1),
    column("both", 3),
    column("idle", 2),
    column("launch mean", 2),
    column("launch max", 5),
    column("MB/s to", 4),
    column("MB/s from", 4),
    column("memory", 3),
    column("host-observed", 3),
];

pub(crate) fn device_use_row(table: &mut Table, device: &DeviceUse, with_process: bool) {
    const MEGA: u64 = 1_000_000;
    let rate = |transfers: &Transfers| known(transfers.bytes_per_second.map(|rate| rate / MEGA));
    let cells = [
        device.kernels.to_string(),
        known_time(device.kernels_ns),
        (device.to_device.count + device.from_device.count).to_string(),
        known_time(device.transfers_ns),
        known_time(device.overlap_ns),
        known_time(device.idle_ns),
        known_time(device.launch_mean_ns),
        known_time(device.launch_max_ns),
        rate(&device.to_device),
        rate(&device.from_device),
        device.peak_bytes.map_or_else(|| UNKNOWN.to_owned(), bytes),
        device.host_observed.to_string(),
    ];
    table.row(device_name(device, with_process), cells);
}
