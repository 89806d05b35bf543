//! Use of devices: how long kernels ran and data was transferred, how much of this overlapped, and how soon kernels
//! started.
//!
//! Times come from the devices' own records. For operations that only the host observed, just number and bytes are
//! counted, because the host does not know when the device executed them.

pub(crate) mod overlap;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::intervals::merged;
use crate::model::place::Position;
use crate::model::sum::add;
use crate::summary::static_str::{self, Word};
use omptrace_symbols::FileNames;
use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::DeviceReport;
use omptrace_timeline::model::{DeviceWork, Interval, Ns, Source};

/// The maximum number of intervals that are kept for each kind of work. If a device has more, the overlap
/// is not known.
const MAX_SPANS: usize = 1 << 20;

/// How a device was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// The name of the process that used the device.
    pub process: String,
    /// The `id` of this process in `processes`.
    pub process_id: u32,
    /// The device number.
    pub device_num: i32,
    /// The number of kernels that the device ran.
    pub kernels: u64,
    /// The number of operations for which only the start and end on the host are known; they are not
    /// included in any of the times below.
    pub host_observed: u64,
    /// The time in which at least one kernel ran. This field and all times below are `None` if the device
    /// recorded nothing.
    pub kernels_ns: Option<u64>,
    /// The time in which data was transferred to or from the device.
    pub transfers_ns: Option<u64>,
    /// The time in which kernels ran and data was transferred at the same time.
    pub overlap_ns: Option<u64>,
    /// The time in which the process was running, but the device ran no kernel and transferred no data.
    pub idle_ns: Option<u64>,
    /// The mean time from the start of a submission on the host to the start of its kernel.
    pub launch_mean_ns: Option<u64>,
    /// The longest time from the start of a submission on the host to the start of its kernel.
    pub launch_max_ns: Option<u64>,
    /// The peak amount of device memory in use, in bytes, according to the host's allocations. `None` if no
    /// allocation was seen, or if only part of the run is analysed.
    pub peak_bytes: Option<u64>,
    /// Transfers to the device.
    pub to_device: Transfers,
    /// Transfers from the device.
    pub from_device: Transfers,
    /// The transfers, grouped by the source location at which the host requested them, and sorted by bytes.
    pub places: Vec<PlaceTransfers>,
    /// The allocations, grouped by the source location at which the host requested them, and sorted by
    /// bytes; empty if `peak_bytes` is `None`.
    pub memory: Vec<PlaceMemory>,
}

/// A source location in the program. Fields that are not known are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Site {
    /// The source file.
    pub file: Option<String>,
    /// The line in the source file.
    pub line: Option<u32>,
    /// The function.
    pub function: Option<String>,
    /// How the function, file and line are related to the request.
    pub position: Option<Position>,
}

impl Site {
    fn of(source: &Source) -> Site {
        let (file, line) = source.line.clone().unzip();
        Site {
            file,
            line,
            function: source.function.clone(),
            position: source.is_known().then(|| source.position.into()),
        }
    }

    /// The sort key for locations with the same number of bytes: their names.
    fn order(&self) -> (Option<String>, &Site) {
        (self.name(&FileNames::default()), self)
    }

    /// The location as shown to users: file and line, or if these are unknown, the function; `None` if neither is
    /// known.
    pub fn name(&self, file_names: &FileNames) -> Option<String> {
        let line = self.file.as_deref().zip(self.line);
        let line = line.map(|(file, line)| format!("{}:{line}", file_names.name(file)));
        line.or_else(|| self.function.clone())
    }
}

/// The device memory that was allocated at a source location.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlaceMemory {
    /// The location at which the host requested the allocations.
    #[serde(flatten)]
    pub site: Site,
    /// The number of allocations.
    pub allocations: u64,
    /// The peak number of bytes in use.
    pub peak_bytes: u64,
}

/// The transfers that were requested at a source location, in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlaceTransfers {
    /// The location at which the host requested the transfers.
    #[serde(flatten)]
    pub site: Site,
    /// `to_device` or `from_device`.
    #[serde(deserialize_with = "static_str::word")]
    pub direction: Word,
    /// The number of transfers.
    pub count: u64,
    /// The total number of bytes.
    pub bytes: u64,
    /// The total time of the transfers; `None` if a device did not record all of them.
    pub total_ns: Option<u64>,
}

/// Transfers in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfers {
    /// The number of transfers.
    pub count: u64,
    /// The total number of bytes.
    pub bytes: u64,
    /// The bytes per second of the transfers that the device recorded; the time of simultaneous transfers
    /// is shared among them.
    pub bytes_per_second: Option<u64>,
}

/// How evenly kernels were spread over a process's devices: the mean of the devices' kernel times / the
/// longest of them. `None` unless several devices recorded kernels.
pub(crate) fn load_balance(devices: &[DeviceUse], process_id: u32) -> Option<f64> {
    let of_process = devices.iter().filter(|device| device.process_id == process_id);
    let times: Vec<u64> = of_process.filter_map(|device| device.kernels_ns).collect();
    let longest = times.iter().copied().max().filter(|longest| *longest > 0)?;
    let mean = times.iter().map(|ns| *ns as f64).sum::<f64>() / times.len() as f64;
    (times.len() > 1).then_some(mean / longest as f64)
}

/// Collects the use of all devices.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    /// By process and device number.
    devices: BTreeMap<(u32, i32), Device>,
}

#[derive(Debug, Default)]
struct Device {
    kernels: u64,
    host_observed: u64,
    recorded: u64,
    kernel_spans: Spans,
    /// Transfers to and from the device.
    moved: [Moved; 2],
    launches: u64,
    launch_ns: u64,
    launch_max_ns: u64,
    lived_ns: u64,
}

#[derive(Debug, Default)]
struct Moved {
    count: u64,
    bytes: u64,
    /// Bytes of the transfers that the device recorded.
    recorded_bytes: u64,
    spans: Spans,
    /// The transfers by source location. The number of entries is bounded by the program's lines that transfer data.
    places: FastMap<Source, PlaceTransfers>,
}

impl Devices {
    /// Adds an interval of a device's queue.
    pub(crate) fn interval(
        &mut self,
        (process, device_num): (u32, i32),
        host_observed: bool,
        interval: &Interval<'_>,
    ) {
        let device = self.devices.entry((process, device_num)).or_default();
        let (begin, end) = (interval.begin, interval.end);
        let count = if host_observed { &mut device.host_observed } else { &mut device.recorded };
        *count += 1;
        let (moved, bytes, source) = match interval.work {
            Some(DeviceWork::Kernel(_)) => {
                device.kernels += 1;
                if !host_observed {
                    device.kernel_spans.add(begin, end);
                }
                return;
            }
            Some(DeviceWork::TransferTo { bytes, source }) => (&mut device.moved[0], bytes, source),
            Some(DeviceWork::TransferFrom { bytes, source }) => (&mut device.moved[1], bytes, source),
            _ => return,
        };
        moved.count += 1;
        add(&mut moved.bytes, bytes);
        let ns = (!host_observed).then(|| end.abs_diff(begin));
        moved.at(source, bytes, ns);
        if !host_observed {
            add(&mut moved.recorded_bytes, bytes);
            moved.spans.add(begin, end);
        }
    }

    /// A kernel that the device recorded started this long after the start of its submission.
    pub(crate) fn launched(&mut self, process: u32, device_num: i32, ns: u64) {
        let device = self.devices.entry((process, device_num)).or_default();
        device.launches += 1;
        add(&mut device.launch_ns, ns);
        device.launch_max_ns = device.launch_max_ns.max(ns);
    }

    /// The process existed for this long.
    pub(crate) fn lived(&mut self, process: u32, ns: u64) {
        let devices = self.devices.range_mut((process, i32::MIN)..=(process, i32::MAX));
        devices.for_each(|(_, device)| device.lived_ns = ns);
    }

    /// The statistics, by device number. `name` and `process_id` describe the process.
    pub(crate) fn stats(self, name: &str, process_id: u32) -> Vec<DeviceUse> {
        let stats = |((_, device_num), device): ((u32, i32), Device)| DeviceUse {
            process: name.to_owned(),
            process_id,
            device_num,
            ..device.stats()
        };
        self.devices.into_iter().map(stats).collect()
    }
}

impl DeviceUse {
    /// The names of source files as shown to users.
    pub fn file_names(&self) -> FileNames {
        let places = self.places.iter().map(|place| &place.site);
        let sites = places.chain(self.memory.iter().map(|place| &place.site));
        FileNames::of(sites.filter_map(|site| site.file.as_deref()))
    }

    /// Sets the peak memory use.
    pub(crate) fn set_memory(&mut self, report: &DeviceReport) {
        let of_place = |memory: &omptrace_timeline::MemoryOfPlace| PlaceMemory {
            site: Site::of(&memory.source),
            allocations: memory.allocations,
            peak_bytes: memory.peak_bytes,
        };
        self.peak_bytes = Some(report.peak_bytes).filter(|_| !report.memory.is_empty());
        self.memory = report.memory.iter().map(of_place).collect();
        self.memory.sort_by(|one, other| {
            let by_bytes = other.peak_bytes.cmp(&one.peak_bytes);
            by_bytes.then_with(|| one.site.order().cmp(&other.site.order()))
        });
    }
}

impl Device {
    fn stats(self) -> DeviceUse {
        let is_recorded = self.recorded > 0;
        let [to, from] = self.moved;
        let places = [("to_device", &to), ("from_device", &from)];
        let places = places.map(|(direction, moved)| moved.by_place(direction));
        let mut places = places.concat();
        places.sort_by(|one, other| {
            let by_bytes = other.bytes.cmp(&one.bytes);
            by_bytes
                .then_with(|| (one.direction, one.site.order()).cmp(&(other.direction, other.site.order())))
        });
        let (to_device, to) = to.stats();
        let (from_device, from) = from.stats();
        let kernels = self.kernel_spans.merged();
        let transfers = to.zip(from).map(|(to, from)| merged([to, from].concat()));
        let overlap = kernels.as_ref().zip(transfers.as_ref());
        let overlap = overlap.map(|(kernels, transfers)| overlap_ns(kernels, transfers));
        let kernels_ns = kernels.as_deref().map(total_ns);
        let transfers_ns = transfers.as_deref().map(total_ns);
        let idle = |((kernels, transfers), overlap): ((u64, u64), u64)| {
            let busy = kernels.saturating_add(transfers).saturating_sub(overlap);
            self.lived_ns.saturating_sub(busy)
        };
        let idle_ns = kernels_ns.zip(transfers_ns).zip(overlap).map(idle);
        DeviceUse {
            kernels: self.kernels,
            host_observed: self.host_observed,
            kernels_ns: kernels_ns.filter(|_| is_recorded),
            transfers_ns: transfers_ns.filter(|_| is_recorded),
            overlap_ns: overlap.filter(|_| is_recorded),
            idle_ns: idle_ns.filter(|_| is_recorded),
            launch_mean_ns: self.launch_ns.checked_div(self.launches),
            launch_max_ns: (self.launches > 0).then_some(self.launch_max_ns),
            to_device,
            from_device,
            places,
            ..DeviceUse::default()
        }
    }
}

impl Moved {
    /// Adds a transfer requested at `source`, with its time if the device recorded it.
    fn at(&mut self, source: &Source, bytes: u64, ns: Option<u64>) {
        if !self.places.contains_key(source) {
            let new =
                PlaceTransfers { site: Site::of(source), total_ns: Some(0), ..PlaceTransfers::default() };
            self.places.insert(source.clone(), new);
        }
        if let Some(of_place) = self.places.get_mut(source) {
            of_place.count += 1;
            add(&mut of_place.bytes, bytes);
            let known = of_place.total_ns.zip(ns);
            of_place.total_ns = known.map(|(total, ns)| total.saturating_add(ns));
        }
    }

    /// The transfers by source location.
    fn by_place(&self, direction: &'static str) -> Vec<PlaceTransfers> {
        let of_place = |place: &PlaceTransfers| PlaceTransfers { direction, ..place.clone() };
        self.places.values().map(of_place).collect()
    }

    /// The totals, and the intervals of the transfers.
    fn stats(self) -> (Transfers, Option<Vec<(Ns, Ns)>>) {
        let spans = self.spans.merged();
        let ns = spans.as_deref().map(total_ns).filter(|ns| *ns > 0);
        let rate = |ns| u128::from(self.recorded_bytes) * 1_000_000_000 / u128::from(ns);
        let transfers = Transfers {
            count: self.count,
            bytes: self.bytes,
            bytes_per_second: ns.and_then(|ns: u64| u64::try_from(rate(ns)).ok()),
        };
        (transfers, spans)
    }
}

/// Intervals, mostly in chronological order.
#[derive(Debug, Default)]
struct Spans {
    spans: Vec<(Ns, Ns)>,
    are_too_many: bool,
}

impl Spans {
    fn add(&mut self, begin: Ns, end: Ns) {
        if let Some((last_begin, last_end)) = self.spans.last_mut()
            && (*last_begin..=*last_end).contains(&begin)
        {
            *last_end = end.max(*last_end);
        } else if self.spans.len() < MAX_SPANS {
            self.spans.push((begin, end.max(begin)));
        } else {
            self.are_too_many = true;
        }
    }

    /// The intervals in order, with overlapping and adjacent ones merged; `None` if some are missing.
    fn merged(self) -> Option<Vec<(Ns, Ns)>> {
        (!self.are_too_many).then(|| merged(self.spans))
    }
}

fn total_ns(spans: &[(Ns, Ns)]) -> u64 {
    let ns = spans.iter().map(|(begin, end)| end.abs_diff(*begin));
    ns.fold(0, u64::saturating_add)
}

/// The total overlap of two lists of merged intervals.
fn overlap_ns(a: &[(Ns, Ns)], b: &[(Ns, Ns)]) -> u64 {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut ns = 0;
    while let (Some(one), Some(other)) = (a.peek(), b.peek()) {
        let (begin, end) = (one.0.max(other.0), one.1.min(other.1));
        if begin < end {
            add(&mut ns, end.abs_diff(begin));
        }
        let is_first = one.1 <= other.1;
        if is_first {
            a.next();
        } else {
            b.next();
        }
    }
    ns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(list: &[(Ns, Ns)]) -> Spans {
        let mut spans = Spans::default();
        list.iter().for_each(|(begin, end)| spans.add(*begin, *end));
        spans
    }

    #[test]
    fn spans_count_once_in_any_order() {
        let spans = spans(&[(10, 20), (15, 30), (5, 8), (40, 50), (8, 9), (41, 42)]);
        let merged = spans.merged().expect("not too many");
        assert_eq!(merged, [(5, 9), (10, 30), (40, 50)]);
        assert_eq!(total_ns(&merged), 34);
    }

    #[test]
    fn load_balance_is_the_mean_by_the_longest() {
        let device = |process_id, kernels_ns| DeviceUse { process_id, kernels_ns, ..DeviceUse::default() };
        let devices = [device(0, Some(100)), device(0, Some(50)), device(0, None), device(1, Some(100))];
        assert_eq!(load_balance(&devices, 0), Some(0.75));
        assert_eq!(load_balance(&devices, 1), None);
        assert_eq!(load_balance(&[device(0, Some(0)), device(0, Some(0))], 0), None);
    }

    #[test]
    fn overlap_is_what_both_have() {
        let (a, b) = ([(0, 10), (20, 30), (40, 50)], [(5, 25), (28, 60)]);
        assert_eq!(overlap_ns(&a, &b), 5 + 5 + 2 + 10);
        assert_eq!(overlap_ns(&b, &a), 22);
        assert_eq!(overlap_ns(&a, &[]), 0);
    }

    #[test]
    fn spans_beyond_the_limit_are_not_known() {
        let mut spans = Spans::default();
        (0..=MAX_SPANS as Ns).for_each(|n| spans.add(2 * n, 2 * n + 1));
        assert_eq!(spans.merged(), None);
    }
}
