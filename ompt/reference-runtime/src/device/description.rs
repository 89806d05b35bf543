//! A device as a script describes it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::misbehaviour::{AMDS, MISSING_AMDS, Misbehaviour};

/// A device as the script wants it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// The format of its records.
    pub format: Format,
    /// Its clock.
    pub clock: Clock,
    /// Entry points that its lookup does not answer, by name without `ompt_`.
    pub missing: Vec<String>,
    /// Completions come on a thread that no callback has announced.
    pub foreign_threads: bool,
    /// Of a buffer it uses no more bytes than these, unless they are 0.
    pub uses_bytes: usize,
    /// The driver's library, by path, to which it reports its work instead of writing records. It has a function
    /// `stand_in_work`.
    pub driver: Option<PathBuf>,
    /// Its faults and unusual ways.
    pub misbehaviours: Vec<Misbehaviour>,
}

impl Device {
    /// Whether it does this, by name or as one of several.
    pub(super) fn does(&self, misbehaviour: Misbehaviour) -> bool {
        let named = |misbehaviour| self.misbehaviours.contains(misbehaviour);
        named(&misbehaviour) || named(&Misbehaviour::Amd2026) && AMDS.contains(&misbehaviour)
    }

    /// Whether its lookup does not answer this name, which is without `ompt_`.
    pub(super) fn lacks(&self, name: &str) -> bool {
        let is_amds = self.misbehaviours.contains(&Misbehaviour::Amd2026);
        self.missing.iter().any(|missing| missing == name) || is_amds && MISSING_AMDS.contains(&name)
    }
}

/// The formats of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// The standard's.
    #[default]
    Ompt,
    /// Its own, which only `ompt_get_record_abstract` understands.
    Native,
}

/// A clock beside the host's, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    /// The difference of its clock from the host's.
    pub offset: u64,
    /// By how many millionths it is faster.
    pub drift_ppm: f64,
    /// Before and after the clock is read, a call takes up to this time.
    pub jitter_us: u64,
}

impl Clock {
    /// The reading of its clock at a time of the host.
    pub(super) fn at(&self, host_ns: u64) -> u64 {
        host_ns.wrapping_add(self.offset).wrapping_add((host_ns as f64 * self.drift_ppm / 1e6) as i64 as u64)
    }

    /// The time of the host at which it shows so much.
    pub(super) fn host_ns(&self, device_time: u64) -> f64 {
        device_time.wrapping_sub(self.offset) as f64 / (1.0 + self.drift_ppm / 1e6)
    }
}
