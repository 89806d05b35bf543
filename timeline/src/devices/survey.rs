//! A first pass over the device streams of a trace, before its events are interpreted: the devices' clocks, and whether
//! the devices were traced.

use std::collections::BTreeMap;

use ompt_sys as ompt;
use omptrace_symbols::fast_map::FastMap;
use omptrace_symbols::parallel::in_parallel;
use omptrace_trace_format::event::Event;
use omptrace_trace_format::reader::{Reader, Record, Stream};

use super::clock::{Bounds, ClockPoint, DeviceClockMap, DeviceClockReport, Translation, choose};
use super::record::{DataOp, DeviceWork, Work};

/// Number of records per stream with which clock maps are checked.
const MAX_SAMPLES: usize = 2000;

/// The first word of the name of the provider CUPTI, which sees the driver's allocations instead of the runtime's.
const CUPTI: &str = "CUPTI";

/// The results of the survey.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    devices: BTreeMap<i32, Surveyed>,
}

#[derive(Debug, Default)]
struct Surveyed {
    is_traced: bool,
    /// CUPTI traced the device. Allocations from memory that the runtime already has are not recorded, and if the
    /// runtime reports no operations, records name target regions.
    by_cupti: bool,
    clock: Option<(DeviceClockMap, DeviceClockReport)>,
}

/// Data from the devices' streams.
#[derive(Default)]
struct Found {
    pairs: Vec<(i32, ClockPoint)>,
    translations: Vec<(i32, Translation)>,
    samples: Vec<Sample>,
    /// The devices that records name.
    recorded: BTreeMap<i32, ()>,
}

struct Sample {
    device_num: i32,
    work: DeviceWork,
    delivered_ns: f64,
}

/// By operation id: when the host requested the operation, and from which device.
type Asked = FastMap<u64, (f64, i32)>;

impl Survey {
    /// Surveys `reader`. `is_device`: by stream, whether it is a device's.
    pub(crate) fn of(reader: &Reader, is_device: &[bool]) -> Survey {
        let streams = |wanted: bool| -> Vec<&Stream> {
            let both = reader.streams().iter().zip(is_device);
            both.filter(|(_, is_device)| **is_device == wanted).map(|(stream, _)| stream).collect()
        };
        let mut found = Found::default();
        in_parallel(streams(true), |stream| Found::of(reader, stream))
            .into_iter()
            .for_each(|more| found.add(more));
        let wanted: FastMap<u64, ()> =
            found.samples.iter().map(|sample| (sample.work.host_op_id, ())).collect();
        let asked: Asked = if wanted.is_empty() {
            Asked::default()
        } else {
            in_parallel(streams(false), |stream| asked(reader, stream, &wanted))
                .into_iter()
                .flatten()
                .collect()
        };
        let mut survey = found.conclude(&asked, reader.clock().start_realtime_ns());
        // A device that should have recorded operations, but did not, counts as traced, so that missing records are
        // reported.
        for (device_num, device) in &reader.metadata().devices {
            if !device.records.is_empty() {
                let surveyed = survey.devices.entry(*device_num).or_default();
                surveyed.is_traced = true;
                surveyed.by_cupti = device.provider.starts_with(CUPTI);
            }
        }
        survey
    }

    /// Whether the device records operations, or should have done so. Otherwise, its operations are those that the host
    /// observed.
    pub(crate) fn is_traced(&self, device_num: i32) -> bool {
        self.devices.get(&device_num).is_some_and(|device| device.is_traced)
    }

    /// Whether CUPTI traced the device. Its records may contain the id of a target region instead of an operation.
    pub(crate) fn is_by_cupti(&self, device_num: i32) -> bool {
        self.devices.get(&device_num).is_some_and(|device| device.by_cupti)
    }

    /// Whether the device, which was traced, should have recorded this operation.
    pub(crate) fn expects(&self, device_num: i32, work: &Work) -> bool {
        !self.is_by_cupti(device_num) || !matches!(work, Work::DataOp(op) if op.is_of_memory())
    }

    /// The map of the device's clock.
    pub(crate) fn clock(&self, device_num: i32) -> Option<&DeviceClockMap> {
        Some(&self.devices.get(&device_num)?.clock.as_ref()?.0)
    }

    /// The report on the device's clock.
    pub(crate) fn clock_report(&self, device_num: i32) -> Option<DeviceClockReport> {
        Some(self.devices.get(&device_num)?.clock.as_ref()?.1)
    }
}

impl Found {
    fn of(reader: &Reader, stream: &Stream) -> Found {
        let ns = |ticks| reader.clock().ns(ticks) as f64;
        let mut found = Found::default();
        for Record { ticks, event } in reader.events(stream) {
            let (device_num, work) = match &event {
                Event::DeviceClock(e) => {
                    let (before, after) = (ns(e.before.0), ns(e.after.0));
                    let point = ClockPoint {
                        device_time: e.device_time,
                        ns: (before + after) / 2.0,
                        uncertainty_ns: (after - before).abs() / 2.0,
                    };
                    found.pairs.push((e.device_num, point));
                    continue;
                }
                Event::DeviceTranslation(e) => {
                    let translation = Translation {
                        device_time: e.device_time,
                        seconds: e.seconds.get(),
                        asked_ns: ns(ticks),
                    };
                    found.translations.push((e.device_num, translation));
                    continue;
                }
                Event::DeviceRecord(e) => (e.device_num, DeviceWork::of_record(e)),
                Event::DeviceKernel(e) => (e.device_num, Some(DeviceWork::of_kernel(e))),
                Event::DeviceNativeRecord(e) => (e.device_num, Some(DeviceWork::of_native(e))),
                _ => continue,
            };
            found.recorded.insert(device_num, ());
            let work = work.filter(|work| work.begin != 0 && work.end != 0);
            if let Some(mut work) = work.filter(|_| found.samples.len() < MAX_SAMPLES) {
                (work.begin, work.end) = (work.begin.min(work.end), work.begin.max(work.end));
                found.samples.push(Sample { device_num, work, delivered_ns: ns(ticks) });
            }
        }
        found
    }

    fn add(&mut self, more: Found) {
        self.pairs.extend(more.pairs);
        self.translations.extend(more.translations);
        self.samples.extend(more.samples);
        self.recorded.extend(more.recorded);
    }

    fn conclude(self, asked: &Asked, realtime_ns: u64) -> Survey {
        let mut bounds: BTreeMap<i32, Vec<Bounds>> = BTreeMap::new();
        for sample in &self.samples {
            let asked = asked.get(&sample.work.host_op_id);
            // The host's device number is more reliable.
            let device_num = asked.map_or(sample.device_num, |(_, device_num)| *device_num);
            bounds.entry(device_num).or_default().push(Bounds {
                begin: sample.work.begin,
                end: sample.work.end,
                asked_ns: asked.map(|(ns, _)| *ns),
                delivered_ns: sample.delivered_ns,
            });
        }
        let mut survey = Survey::default();
        for device_num in bounds.keys().chain(self.recorded.keys()) {
            survey.devices.entry(*device_num).or_default().is_traced = true;
        }
        for (device_num, _) in &self.pairs {
            survey.devices.entry(*device_num).or_default();
        }
        for (device_num, device) in &mut survey.devices {
            fn of<T: Copy>(all: &[(i32, T)], device_num: i32) -> Vec<T> {
                all.iter().filter(|(number, _)| *number == device_num).map(|(_, what)| *what).collect()
            }
            let bounds = bounds.get(device_num).map_or(&[][..], Vec::as_slice);
            let translations = of(&self.translations, *device_num);
            device.clock = choose(of(&self.pairs, *device_num), &translations, bounds, realtime_ns);
        }
        survey
    }
}

/// When the thread of `stream` requested the operations in `wanted`, and from which device.
fn asked(reader: &Reader, stream: &Stream, wanted: &FastMap<u64, ()>) -> Vec<(u64, (f64, i32))> {
    let is_device = |number: i32| reader.metadata().devices.contains_key(&number);
    let (mut asked, mut regions) = (Vec::new(), Vec::new());
    for Record { ticks, event } in reader.events(stream) {
        let (endpoint, host_op_id, device_num) = match &event {
            Event::TargetEmi(e) if e.endpoint == ompt::ompt_scope_end => {
                regions.pop();
                continue;
            }
            Event::TargetEmi(e) => {
                regions.push(e.device_num);
                (e.endpoint, e.target_data.0, e.device_num)
            }
            Event::TargetSubmitEmi(e) => (e.endpoint, e.host_op_id.0, regions.last().copied().unwrap_or(-1)),
            Event::TargetDataOpEmi(e) => (e.endpoint, e.host_op_id.0, DataOp::of(e).device_num(is_device)),
            _ => continue,
        };
        if endpoint != ompt::ompt_scope_end && wanted.contains_key(&host_op_id) {
            asked.push((host_op_id, (reader.clock().ns(ticks) as f64, device_num)));
        }
    }
    asked
}
