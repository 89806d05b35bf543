//! A device as a script describes it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::misbehaviour::{AMDS, MISSING_AMDS, Misbehaviour};

/// A device as described by a script.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// The format of the device's records.
    pub format: Format,
    /// The device's clock.
    pub clock: Clock,
    /// Entry points that the device's lookup function does not find, by name without `ompt_`.
    pub missing: Vec<String>,
    /// Completions are made on a thread that no callback has announced.
    pub foreign_threads: bool,
    /// Maximum number of bytes of a buffer that the device uses; 0 for no limit.
    pub uses_bytes: usize,
    /// The path of the driver's library, to which the device reports its work instead of writing records. The library
    /// has a function `stand_in_work`.
    pub driver: Option<PathBuf>,
    /// The device's faults and unusual behaviour.
    pub misbehaviours: Vec<Misbehaviour>,
}

impl Device {
    /// Whether the device has this misbehaviour, directly or by a group.
    pub(super) fn does(&self, misbehaviour: Misbehaviour) -> bool {
        let named = |misbehaviour| self.misbehaviours.contains(misbehaviour);
        named(&misbehaviour) || named(&Misbehaviour::Amd2026) && AMDS.contains(&misbehaviour)
    }

    /// Whether the device's lookup function does not find this name (without `ompt_`).
    pub(super) fn lacks(&self, name: &str) -> bool {
        let is_amds = self.misbehaviours.contains(&Misbehaviour::Amd2026);
        self.missing.iter().any(|missing| missing == name) || is_amds && MISSING_AMDS.contains(&name)
    }
}

/// The formats of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// The standard format.
    #[default]
    Ompt,
    /// The native format, which only `ompt_get_record_abstract` understands.
    Native,
}

/// A device clock relative to the host's clock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// The difference from the host's clock.
    pub offset: u64,
    /// How much faster it is than the host's, in millionths.
    pub drift_ppm: f64,
    /// Maximum extra time of a call before and after the clock is read.
    pub jitter_us: u64,
}

impl Clock {
    /// The clock's reading at a time of the host.
    pub(super) fn at(&self, host_ns: u64) -> u64 {
        host_ns.wrapping_add(self.offset).wrapping_add((host_ns as f64 * self.drift_ppm / 1e6) as i64 as u64)
    }

    /// The time of the host at which the clock shows `device_time`.
    pub(super) fn host_ns(&self, device_time: u64) -> f64 {
        device_time.wrapping_sub(self.offset) as f64 / (1.0 + self.drift_ppm / 1e6)
    }
}
