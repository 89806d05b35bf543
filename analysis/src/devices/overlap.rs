//! The overlap of device operations, and the durations of kernels by target construct.
//!
//! For operations that only the host observed, start and end on the host are known. They bound the duration from above,
//! but say nothing about overlap.

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{DeviceWork, Interval, Location, LocationKind, split_place};

use crate::devices::{DeviceUse, Devices};
use crate::model::sum::Sum;

/// Sums over the kernels of one target construct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kernels {
    pub(crate) count: u64,
    pub(crate) ns: u64,
}

/// The queues of a process's devices.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    /// By location: the device number, and whether only the host observed the operations.
    queues: FastMap<u32, (i32, bool)>,
    devices: Devices,
    /// By the place of the target construct.
    kernels: FastMap<String, Kernels>,
}

impl Queues {
    pub(crate) fn location(&mut self, location: &Location) {
        if let LocationKind::DeviceQueue { device_num, host_observed } = location.kind {
            let queue = (device_num, host_observed);
            self.queues.insert(location.id.0, queue);
        }
    }

    pub(crate) fn interval(&mut self, interval: &Interval<'_>) {
        let Some((device_num, host_observed)) = self.queues.get(&interval.track.0) else {
            return;
        };
        let device = (0, *device_num);
        self.devices.interval(device, *host_observed, interval);
        if let Some(DeviceWork::Kernel(_)) = interval.work {
            let spot = split_place(interval.name).1;
            let kernels = match self.kernels.get_mut(spot) {
                Some(kernels) => kernels,
                None => self.kernels.entry(spot.to_owned()).or_default(),
            };
            kernels.count += 1;
            kernels.ns.grow_by(interval.end.abs_diff(interval.begin));
        }
    }

    /// The kernels of the target construct at `spot`.
    pub(crate) fn kernels(&self, spot: &str) -> Kernels {
        self.kernels.get(spot).copied().unwrap_or_default()
    }

    /// The use of the devices.
    pub(crate) fn devices(self) -> Vec<DeviceUse> {
        self.devices.stats("", 0)
    }
}
