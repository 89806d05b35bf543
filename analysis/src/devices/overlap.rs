//! The operations of devices beside each other, and the durations of their kernels.
//!
//! Work that the host alone observed has only its start and end on the host. That bounds its time from above, and says
//! nothing of what ran side by side.

use omptrace_symbols::fast_map::FastMap;
use omptrace_timeline::model::{DeviceWork, Interval, Location, LocationKind, split_place};

use crate::devices::{DeviceUse, Devices};
use crate::model::sum::Sum;

/// Kernels of one target construct.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kernels {
    pub(crate) count: u64,
    pub(crate) ns: u64,
}

/// The queues of a process's devices.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    /// By location: the device's number, and whether the host alone observed what is there.
    queues: FastMap<u32, (i32, bool)>,
    devices: Devices,
    /// By where the target construct is.
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

    /// How the devices were used.
    pub(crate) fn devices(self) -> Vec<DeviceUse> {
        self.devices.stats("", 0)
    }
}
