//! How summaries store sums: raw, before the means and shares of the JSON of `stats` are derived from them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::constructs::sums::{ConstructSums, ProcessSums, Sums};
use crate::devices::DeviceUse;
use crate::model::histogram::Histogram;
use crate::model::place::Place;
use crate::model::process_stats::ProcessStats;
use crate::model::stats::{ConstructStats, DeviceStats, LockStats, LoopStats, TeamStats, ThreadStats, Times};
use crate::summary::static_str::{self, Word};

/// [`Sums`] of one process.
#[derive(Serialize, Deserialize)]
struct StoredSums {
    process: Option<StoredProcess>,
    constructs: Vec<StoredConstruct>,
}

#[derive(Serialize, Deserialize)]
struct StoredProcess {
    stats: ProcessStats,
    threads: Vec<ThreadStats>,
    locks: Vec<StoredLock>,
    device_use: Vec<DeviceUse>,
    devices: Vec<StoredDevice>,
    notes: Vec<String>,
}

/// The numbers of [`Times`], and whether they are about parts.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct StoredTimes([u64; 5], bool);

#[derive(Serialize, Deserialize)]
struct StoredConstruct {
    name: String,
    #[serde(deserialize_with = "static_str::word")]
    category: Word,
    place: Place,
    times: StoredTimes,
    self_ns: u64,
    waiting_ns: Option<u64>,
    team: Option<TeamStats>,
    of_loop: Option<LoopStats>,
    is_parallel: bool,
    /// The non-empty buckets, with their counts.
    durations: Vec<(usize, u64)>,
    schedules: Vec<Schedule>,
}

#[derive(Serialize, Deserialize)]
struct Schedule(#[serde(deserialize_with = "static_str::word")] Word);

#[derive(Serialize, Deserialize)]
struct StoredLock {
    name: String,
    #[serde(deserialize_with = "static_str::word")]
    kind: Word,
    number: usize,
    place: Option<Place>,
    place_name: Option<String>,
    acquisitions: u64,
    waits: Option<u64>,
    waiting_ns: Option<u64>,
    failures: u64,
    times: Option<StoredTimes>,
}

#[derive(Serialize, Deserialize)]
struct StoredDevice {
    queue: String,
    name: String,
    times: StoredTimes,
}

/// Writes the sums of one process.
pub(crate) fn serialize<S: Serializer>(sums: &Sums, serializer: S) -> Result<S::Ok, S::Error> {
    StoredSums::from(sums).serialize(serializer)
}

/// Reads the sums of one process.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Sums, D::Error> {
    StoredSums::deserialize(deserializer).map(Sums::from)
}

impl From<Times> for StoredTimes {
    fn from(times: Times) -> StoredTimes {
        let Times { count, total_ns, mean_ns, min_ns, max_ns, is_of_parts } = times;
        StoredTimes([count, total_ns, mean_ns, min_ns, max_ns], is_of_parts)
    }
}

impl From<StoredTimes> for Times {
    fn from(StoredTimes(numbers, is_of_parts): StoredTimes) -> Times {
        let [count, total_ns, mean_ns, min_ns, max_ns] = numbers;
        Times { count, total_ns, mean_ns, min_ns, max_ns, is_of_parts }
    }
}

impl From<&Sums> for StoredSums {
    fn from(sums: &Sums) -> StoredSums {
        StoredSums {
            process: sums.processes.values().next().cloned().map(StoredProcess::from),
            constructs: sums.constructs.values().cloned().map(StoredConstruct::from).collect(),
        }
    }
}

impl From<StoredSums> for Sums {
    fn from(stored: StoredSums) -> Sums {
        let constructs = stored.constructs.into_iter().map(ConstructSums::from);
        match stored.process {
            Some(process) => Sums::of(0, process.into(), constructs),
            None => Sums::default(),
        }
    }
}

impl From<ProcessSums> for StoredProcess {
    fn from(process: ProcessSums) -> StoredProcess {
        let locks = process.locks.into_iter().map(|lock| StoredLock {
            name: lock.name,
            kind: lock.kind,
            number: lock.number,
            place: lock.place,
            place_name: lock.place_name,
            acquisitions: lock.acquisitions,
            waits: lock.waits,
            waiting_ns: lock.waiting_ns,
            failures: lock.failures,
            times: lock.times.map(StoredTimes::from),
        });
        let devices = process.devices.into_iter().map(|device| StoredDevice {
            queue: device.queue,
            name: device.name,
            times: device.times.into(),
        });
        StoredProcess {
            stats: process.stats,
            threads: process.threads,
            locks: locks.collect(),
            device_use: process.device_use,
            devices: devices.collect(),
            notes: process.notes,
        }
    }
}

impl From<StoredProcess> for ProcessSums {
    fn from(stored: StoredProcess) -> ProcessSums {
        let name = &stored.stats.name;
        let locks = stored.locks.into_iter().map(|lock| LockStats {
            process: name.clone(),
            process_id: 0,
            name: lock.name,
            kind: lock.kind,
            number: lock.number,
            place: lock.place,
            place_name: lock.place_name,
            acquisitions: lock.acquisitions,
            waits: lock.waits,
            waiting_ns: lock.waiting_ns,
            failures: lock.failures,
            times: lock.times.map(Times::from),
        });
        let devices = stored.devices.into_iter().map(|device| DeviceStats {
            process: name.clone(),
            process_id: 0,
            queue: device.queue,
            name: device.name,
            times: device.times.into(),
        });
        ProcessSums {
            threads: stored.threads,
            locks: locks.collect(),
            device_use: stored.device_use,
            devices: devices.collect(),
            notes: stored.notes,
            stats: stored.stats,
        }
    }
}

impl From<ConstructSums> for StoredConstruct {
    fn from(sums: ConstructSums) -> StoredConstruct {
        // The other fields are derived when all processes are known.
        let ConstructStats { name, category, place, times, self_ns, waiting_ns, team, of_loop, .. } =
            sums.stats;
        StoredConstruct {
            name,
            category,
            place,
            times: times.into(),
            self_ns,
            waiting_ns,
            team,
            of_loop,
            is_parallel: sums.is_parallel,
            durations: sums.durations.counts().collect(),
            schedules: sums.schedules.into_iter().map(Schedule).collect(),
        }
    }
}

impl From<StoredConstruct> for ConstructSums {
    fn from(stored: StoredConstruct) -> ConstructSums {
        let stats = ConstructStats {
            name: stored.name,
            category: stored.category,
            place: stored.place,
            times: stored.times.into(),
            self_ns: stored.self_ns,
            waiting_ns: stored.waiting_ns,
            team: stored.team,
            of_loop: stored.of_loop,
            ..ConstructStats::default()
        };
        ConstructSums {
            durations: Histogram::of(&stored.durations),
            schedules: stored.schedules.into_iter().map(|word| word.0).collect(),
            ..ConstructSums::of(stats, stored.is_parallel)
        }
    }
}
