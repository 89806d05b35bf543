//! The energy that the machine used while a program ran, from the kernel's powercap framework. It is available if an
//! Intel or AMD processor counts energy and the user may read the counters. It is the energy of all programs together,
//! as estimated by the processor.
//!
//! Source: Linux, `Documentation/power/powercap/powercap.rst`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use omptrace_trace_format::metadata::Energy;
use serde::Serialize;

use crate::record::child_process::raw_ns;

/// The directory of the powercap framework.
pub(crate) const POWERCAP: &str = "/sys/class/powercap";

/// The initial time between two readings.
const PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of readings per zone. When it is reached, every second reading is dropped, and the time between
/// readings doubles.
const MAX_READINGS: usize = 1024;
/// Maximum number of zones. CPUs have a few; this guards against a directory that another program created.
const MAX_ZONES: usize = 64;

/// The energy counters that `record` would read.
#[derive(Debug, Serialize)]
pub(crate) struct Readable {
    /// The zones that can be read.
    zones: Vec<String>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<String>,
}

impl Readable {
    /// Finds the zones at `root`.
    pub(crate) fn at(root: &Path) -> Readable {
        if let Some(found) = Zones::find(root) {
            let zones = found.finish().into_iter();
            return Readable { zones: zones.map(|energy| energy.zone).collect(), absent: None };
        }
        let refused = counters(root).find_map(|file| fs::read(&file).err());
        let root = root.display();
        let absent = match refused {
            Some(error) => {
                format!(
                    "{root}: {error}. To give all users read access to the energy counters, run: sudo chmod a+r {root}/*/energy_uj"
                )
            }
            None => format!("{root} contains no energy counters, as is usual on virtual machines"),
        };
        Readable { zones: Vec::new(), absent: Some(absent) }
    }

    /// The same as text.
    pub(crate) fn line(&self) -> String {
        match &self.absent {
            Some(absent) => format!("none: {absent}"),
            None => self.zones.join(", "),
        }
    }
}

/// The counters of the zones at `root`, whether or not they are readable.
fn counters(root: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path().join("energy_uj"));
    files.filter(|file| file.exists())
}

/// Reads counters while a program runs.
pub(crate) struct Meter {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Energy>>,
}

impl Meter {
    /// Starts to read the zones at `root`; `None` if none are readable.
    pub(crate) fn start(root: &Path) -> Option<Meter> {
        let mut zones = Zones::find(root)?;
        let (stop, stopped) = mpsc::channel();
        let read_on = move || {
            while stopped.recv_timeout(zones.period) == Err(RecvTimeoutError::Timeout) {
                zones.read();
            }
            zones.finish()
        };
        let thread = thread::Builder::new().name("omptrace-energy".into());
        Some(Meter { stop, thread: thread.spawn(read_on).ok()? })
    }

    /// All readings, including a final one.
    pub(crate) fn finish(self) -> Vec<Energy> {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

/// The readable zones.
struct Zones {
    zones: Vec<Zone>,
    period: Duration,
}

/// A part of the machine.
struct Zone {
    file: PathBuf,
    /// The value at which the counter wraps around.
    range: u64,
    last: u64,
    total: u64,
    energy: Energy,
}

impl Zones {
    fn find(root: &Path) -> Option<Zones> {
        let entries = fs::read_dir(root).ok()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        // These are the same zones, accessed through other registers.
        let names = names.filter(|name| !name.starts_with("intel-rapl-mmio"));
        let mut names: Vec<String> = names.collect();
        names.sort();
        let zones = names.iter().filter_map(|name| Zone::open(root, name));
        let mut zones = Zones { zones: zones.take(MAX_ZONES).collect(), period: PERIOD };
        zones.read();
        (!zones.zones.is_empty()).then_some(zones)
    }

    fn read(&mut self) {
        let now = raw_ns();
        self.zones.iter_mut().for_each(|zone| zone.read(now));
        let is_full = |zone: &Zone| zone.energy.readings.len() >= MAX_READINGS;
        if self.zones.iter().any(is_full) {
            self.period *= 2;
            for zone in &mut self.zones {
                let readings = std::mem::take(&mut zone.energy.readings);
                zone.energy.readings = readings.into_iter().step_by(2).collect();
            }
        }
    }

    fn finish(mut self) -> Vec<Energy> {
        self.read();
        self.zones.into_iter().map(|zone| zone.energy).collect()
    }
}

impl Zone {
    /// `None` if it is not a zone, or not readable.
    fn open(root: &Path, name: &str) -> Option<Zone> {
        let text = |zone: &str, file: &str| fs::read_to_string(root.join(zone).join(file)).ok();
        let number = |file: &str| number(&root.join(name).join(file));
        let own = text(name, "name")?.trim().to_owned();
        // `intel-rapl:0:1` is a part of `intel-rapl:0`.
        let around = name.rsplit_once(':').and_then(|(around, _)| text(around, "name"));
        let around = around.filter(|_| name.matches(':').count() > 1);
        Some(Zone {
            file: root.join(name).join("energy_uj"),
            range: number("max_energy_range_uj").unwrap_or(0),
            last: number("energy_uj")?,
            total: 0,
            energy: Energy {
                zone: match around {
                    Some(around) => format!("{} {own}", around.trim()),
                    None => own,
                },
                readings: Vec::new(),
            },
        })
    }

    fn read(&mut self, now: u64) {
        let Some(value) = number(&self.file) else {
            return;
        };
        let more = match value.checked_sub(self.last) {
            Some(more) => more,
            None => value.saturating_add(self.range.saturating_sub(self.last)),
        };
        self.last = value;
        self.total = self.total.saturating_add(more);
        self.energy.readings.push((now, self.total));
    }
}

/// The number in a file of the kernel.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a zone as the kernel presents it.
    fn zone(root: &Path, folder: &str, name: &str, uj: u64) {
        let folder = root.join(folder);
        fs::create_dir_all(&folder).expect("a folder");
        for (file, text) in [
            ("name", name.to_owned()),
            ("energy_uj", uj.to_string()),
            ("max_energy_range_uj", "1000".to_owned()),
        ] {
            fs::write(folder.join(file), format!("{text}\n")).expect("a file");
        }
    }

    fn totals(energy: &[Energy]) -> Vec<(&str, u64)> {
        let totals = energy.iter().map(|energy| {
            let last = energy.readings.last().expect("a reading");
            (&*energy.zone, last.1)
        });
        totals.collect()
    }

    #[test]
    fn zones_are_read_from_begin_to_end_also_where_their_counter_begins_anew() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        zone(root, "intel-rapl:0", "package-0", 900);
        zone(root, "intel-rapl:0:0", "core", 10);
        zone(root, "intel-rapl:1", "psys", 5);
        zone(root, "intel-rapl-mmio:0", "package-0", 900);
        fs::create_dir(root.join("intel-rapl")).expect("a folder");
        let meter = Meter::start(root).expect("zones");
        zone(root, "intel-rapl:0", "package-0", 150);
        zone(root, "intel-rapl:0:0", "core", 70);
        let energy = meter.finish();
        let expected = [("package-0", 250), ("package-0 core", 60), ("psys", 0)];
        assert_eq!(totals(&energy), expected);
        let times = energy[0].readings.iter().map(|(time, _)| *time);
        assert!(times.clone().count() >= 2 && times.is_sorted());
    }

    #[test]
    fn where_nothing_may_be_read_nothing_is() {
        let root = tempfile::tempdir().expect("a folder");
        assert!(Meter::start(&root.path().join("none")).is_none());
        assert!(Meter::start(root.path()).is_none());
        fs::create_dir(root.path().join("dtpm")).expect("a folder");
        assert!(Meter::start(root.path()).is_none());
    }

    #[test]
    fn what_may_not_be_read_is_reported_with_the_reason() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        let none = Readable::at(&root.join("none"));
        assert!(none.line().ends_with("contains no energy counters, as is usual on virtual machines"));
        // A directory cannot be read as a file even by root.
        fs::create_dir_all(root.join("intel-rapl:0/energy_uj")).expect("a folder");
        fs::write(root.join("intel-rapl:0/name"), "package-0").expect("a file");
        let refused = Readable::at(root).line();
        assert!(refused.contains("sudo chmod a+r"), "{refused}");
        fs::remove_dir(root.join("intel-rapl:0/energy_uj")).expect("a folder");
        zone(root, "intel-rapl:0", "package-0", 1);
        zone(root, "intel-rapl:0:0", "core", 1);
        assert_eq!(Readable::at(root).line(), "package-0, package-0 core");
    }

    #[test]
    fn a_long_run_has_no_more_readings_than_a_short_one() {
        let root = tempfile::tempdir().expect("a folder");
        zone(root.path(), "intel-rapl:0", "package-0", 0);
        let mut zones = Zones::find(root.path()).expect("a zone");
        let file = root.path().join("intel-rapl:0/energy_uj");
        for uj in 1..=3 * MAX_READINGS as u64 {
            fs::write(&file, (uj % 1000).to_string()).expect("a file");
            zones.read();
        }
        assert!(zones.period > PERIOD);
        let energy = zones.finish();
        assert!(energy[0].readings.len() <= MAX_READINGS);
        assert!(energy[0].readings.is_sorted());
        assert_eq!(totals(&energy)[0].1, 3 * MAX_READINGS as u64);
    }
}
