//! Devices on the timeline: what they did, by their own records, or else by what the host saw of it.
//!
//! ```text
//! host:   target_data_op_emi, target_submit_emi --> HostOperations ----+--> host-observed work --+
//!                                                        | which one?  |  (no records)           v
//! device: device_record --> DeviceWork -- clock map --> work on the timeline ------------> Queues --> intervals, flows,
//!                                                                                                     counters
//! ```

mod clock;
mod host;
mod images;
mod queues;
mod record;
mod survey;

use std::collections::BTreeMap;
use std::rc::Rc;

use ompt_sys as ompt;
use omptrace_trace_format::event::{
    DeviceImage, DeviceLoad, DeviceNativeRecord, DeviceRecord, TargetDataOpEmi, TargetEmi,
    TargetSubmitEmi,
};
use omptrace_trace_format::field::Address;
use serde::Serialize;

pub use clock::{ClockSource, DeviceClockReport};
pub(crate) use survey::Survey;

use crate::emitter::Stage;
use crate::interpret::SessionClock;
use crate::repair::Cause;
use crate::sink::{CounterId, LocationKind, Ns, Point, Source};
use host::{HostOperation, HostOperations, TargetRegion};
use images::Images;
use omptrace_common::fast_map::FastMap;
use queues::{Label, Placed, Queue};
use record::{DataOp, DeviceWork, Work};

/// What a device's timeline was made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceReport {
    /// Pieces of work that the device has records of.
    pub records: u64,
    /// Pieces of work of which only the host's begin and end are known.
    pub host_observed: u64,
    /// Records for which no operation of the host was found.
    pub uncorrelated: u64,
    /// How its times were mapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<DeviceClockReport>,
}

/// The kinds of work that have tracks of their own, in the order of display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum QueueKind {
    Kernels,
    ToDevice,
    FromDevice,
    Memory,
    OtherOperations,
    Hardware(u64),
}

impl QueueKind {
    fn of(work: &Work, device_num: i32) -> QueueKind {
        let op = match work {
            Work::Kernel { .. } => return QueueKind::Kernels,
            Work::Native { hwid, .. } => return QueueKind::Hardware(*hwid),
            Work::DataOp(op) => op,
        };
        match op.kind() {
            ompt::ompt_target_data_transfer_to_device => QueueKind::ToDevice,
            ompt::ompt_target_data_transfer_from_device => QueueKind::FromDevice,
            ompt::ompt_target_data_transfer | ompt::ompt_target_data_transfer_rect
                if op.dest_device_num == device_num =>
            {
                QueueKind::ToDevice
            }
            ompt::ompt_target_data_transfer | ompt::ompt_target_data_transfer_rect => {
                QueueKind::FromDevice
            }
            ompt::ompt_target_data_alloc
            | ompt::ompt_target_data_delete
            | ompt::ompt_target_data_associate
            | ompt::ompt_target_data_disassociate => QueueKind::Memory,
            _ => QueueKind::OtherOperations,
        }
    }

    fn name(self) -> String {
        match self {
            QueueKind::Kernels => "kernels".into(),
            QueueKind::ToDevice => "transfers to device".into(),
            QueueKind::FromDevice => "transfers from device".into(),
            QueueKind::Memory => "memory".into(),
            QueueKind::OtherOperations => "other operations".into(),
            QueueKind::Hardware(hwid) => format!("hardware {hwid:#x}"),
        }
    }

    /// What its counter of bytes per second is called.
    fn rate(self, device: &str) -> Option<String> {
        match self {
            QueueKind::ToDevice => Some(format!("to {device}")),
            QueueKind::FromDevice => Some(format!("from {device}")),
            _ => None,
        }
    }
}

/// The devices of a process.
pub(crate) struct Devices {
    survey: Survey,
    /// What runtimes call them, by number.
    types: BTreeMap<i32, String>,
    devices: BTreeMap<i32, Device>,
    threads: Vec<OnHost>,
    operations: HostOperations,
    images: Images,
    /// Names of kernels by the code address of their construct; valid until a module comes or goes.
    kernels: FastMap<u64, Rc<Label>>,
    data_ops: BTreeMap<u32, Rc<Label>>,
}

/// What a thread of the host is in the midst of.
#[derive(Default)]
struct OnHost {
    regions: Vec<TargetRegion>,
    operations: Vec<HostOperation>,
}

#[derive(Default)]
struct Device {
    queues: BTreeMap<QueueKind, Queue>,
    report: DeviceReport,
    memory: Memory,
}

/// More than any device has; a counter of such numbers does not overflow.
const MAX_BYTES: u64 = 1 << 48;

/// What is allocated on a device, as far as the host knows.
#[derive(Default)]
struct Memory {
    counter: Option<CounterId>,
    bytes: FastMap<u64, u64>,
    in_use: Sum,
}

impl Devices {
    /// The devices of a process with `threads` threads. `types` are the runtime's words for them; of those in `tracks` the
    /// location is defined already.
    pub(crate) fn new(
        survey: Survey,
        types: BTreeMap<i32, String>,
        tracks: impl Iterator<Item = i32>,
        threads: usize,
    ) -> Devices {
        Devices {
            survey,
            devices: tracks
                .map(|device_num| (device_num, Device::default()))
                .collect(),
            types,
            threads: (0..threads).map(|_| OnHost::default()).collect(),
            operations: HostOperations::default(),
            images: Images::default(),
            kernels: FastMap::default(),
            data_ops: BTreeMap::new(),
        }
    }

    /// Addresses mean something else from now on.
    pub(crate) fn modules_changed(&mut self) {
        self.kernels.clear();
    }

    pub(crate) fn load(&mut self, e: &DeviceLoad<'_>) {
        self.images.load(e);
    }

    pub(crate) fn image(&mut self, e: &DeviceImage<'_>) {
        self.images.part(e);
        self.kernels.clear();
    }

    pub(crate) fn target(&mut self, thread: usize, e: &TargetEmi) {
        let regions = &mut self.threads[thread].regions;
        if e.endpoint != ompt::ompt_scope_end {
            regions.push(TargetRegion::of(e));
        }
        if e.endpoint != ompt::ompt_scope_begin
            && let Some(index) = regions
                .iter()
                .rposition(|region| region.target_data == e.target_data.0)
        {
            regions.truncate(index);
        }
    }

    pub(crate) fn submit(
        &mut self,
        stage: &mut Stage<'_>,
        thread: usize,
        at: Point,
        e: &TargetSubmitEmi,
    ) {
        if e.endpoint != ompt::ompt_scope_end {
            let regions = &self.threads[thread].regions;
            let named = regions
                .iter()
                .rfind(|region| region.target_data == e.target_data.0);
            let Some(region) = named.or(regions.last()) else {
                return;
            };
            let operation = HostOperation {
                at,
                device_num: region.device_num,
                host_op_id: e.host_op_id.0,
                target_data: region.target_data,
                codeptr_ra: region.codeptr_ra,
                work: Work::Kernel {
                    requested_num_teams: e.requested_num_teams,
                    granted_num_teams: 0,
                },
            };
            self.begin(thread, operation);
        }
        if e.endpoint != ompt::ompt_scope_begin {
            self.end(stage, thread, at.time, |work| {
                matches!(work, Work::Kernel { .. })
            });
        }
    }

    pub(crate) fn data_op(
        &mut self,
        stage: &mut Stage<'_>,
        thread: usize,
        at: Point,
        e: &TargetDataOpEmi,
    ) {
        let op = DataOp::of(e);
        let device_num = op.device_num(|number| self.types.contains_key(&number));
        if e.endpoint != ompt::ompt_scope_end {
            self.begin(
                thread,
                HostOperation {
                    at,
                    device_num,
                    host_op_id: e.host_op_id.0,
                    target_data: e.target_data.known().unwrap_or(0),
                    codeptr_ra: e.codeptr_ra,
                    work: Work::DataOp(op),
                },
            );
        }
        if e.endpoint != ompt::ompt_scope_begin {
            if let Some(operation) = self.threads[thread].operations.last_mut()
                && matches!(&operation.work, Work::DataOp(begun) if begun.optype == op.optype)
            {
                // Only now the address on the device is known.
                operation.work = Work::DataOp(op);
            }
            self.end(
                stage,
                thread,
                at.time,
                |work| matches!(work, Work::DataOp(begun) if begun.optype == op.optype),
            );
            let device = self.device(stage, device_num);
            device.memory.change(stage, device_num, at.time, &op);
        }
    }

    fn begin(&mut self, thread: usize, operation: HostOperation) {
        if self.survey.gives_records(operation.device_num) {
            self.operations.add(operation.clone());
        }
        self.threads[thread].operations.push(operation);
    }

    /// The thread's newest operation that `is_it` ends; without records, that is all that is known of it.
    fn end(
        &mut self,
        stage: &mut Stage<'_>,
        thread: usize,
        time: Ns,
        is_it: impl Fn(&Work) -> bool,
    ) {
        let open = &mut self.threads[thread].operations;
        let Some(index) = open.iter().rposition(|operation| is_it(&operation.work)) else {
            return;
        };
        open.truncate(index + 1);
        let Some(operation) = open.pop() else { return };
        if self.survey.gives_records(operation.device_num) {
            return;
        }
        let label = self.label(stage, &operation.work, operation.codeptr_ra);
        let placed = Placed {
            begin: operation.at.time,
            end: time,
            label,
            host_op_id: operation.host_op_id,
            target_id: operation.target_data,
            from: Some((operation.flow(), operation.at)),
            work: operation.work,
            host_observed: true,
        };
        self.place(stage, operation.device_num, placed);
    }

    pub(crate) fn record(
        &mut self,
        stage: &mut Stage<'_>,
        clock: SessionClock<'_>,
        e: &DeviceRecord<'_>,
    ) -> Result<(), Cause> {
        let work = DeviceWork::of_record(e).ok_or(Cause::UnknownDeviceRecord)?;
        self.work(stage, clock, e.device_num, work)
    }

    pub(crate) fn native_record(
        &mut self,
        stage: &mut Stage<'_>,
        clock: SessionClock<'_>,
        e: &DeviceNativeRecord<'_>,
    ) -> Result<(), Cause> {
        self.work(stage, clock, e.device_num, DeviceWork::of_native(e))
    }

    /// A device reports work that it did; what was repaired of it is the error.
    fn work(
        &mut self,
        stage: &mut Stage<'_>,
        clock: SessionClock<'_>,
        said_device_num: i32,
        mut work: DeviceWork,
    ) -> Result<(), Cause> {
        if work.begin == 0 || work.end == 0 {
            return Err(Cause::NoDeviceTime);
        }
        let is_swapped = work.end < work.begin;
        if is_swapped {
            std::mem::swap(&mut work.begin, &mut work.end);
        }
        let named = self
            .operations
            .named(&work.work, work.host_op_id, work.target_id);
        let said = named.map_or(said_device_num, |operation| operation.device_num);
        let map = self
            .survey
            .clock(said)
            .or_else(|| self.survey.clock(said_device_num));
        let Some(map) = map else {
            return Err(Cause::NoDeviceClock);
        };
        let time = |device_time| clock.start.saturating_add(map.ns(device_time) as Ns).max(0);
        let (begin, end) = (time(work.begin), time(work.end));
        let operation = named
            .or_else(|| self.operations.likely(&work.work, work.target_id, begin))
            .cloned();
        let mut device_num = said;
        let mut codeptr_ra = Address(0);
        if let Some(operation) = &operation {
            (device_num, codeptr_ra) = (operation.device_num, operation.codeptr_ra);
            (work.host_op_id, work.target_id) = (operation.host_op_id, operation.target_data);
        }
        let label = self.label(stage, &work.work, codeptr_ra);
        let placed = Placed {
            begin,
            end,
            label,
            work: work.work,
            host_op_id: work.host_op_id,
            target_id: work.target_id,
            from: operation
                .as_ref()
                .map(|operation| (operation.flow(), operation.at)),
            host_observed: false,
        };
        self.device(stage, device_num).report.uncorrelated += u64::from(operation.is_none());
        self.place(stage, device_num, placed);
        if is_swapped {
            Err(Cause::DeviceTimesSwapped)
        } else {
            Ok(())
        }
    }

    fn place(&mut self, stage: &mut Stage<'_>, device_num: i32, placed: Placed) {
        let device = self.device(stage, device_num);
        if placed.host_observed {
            device.report.host_observed += 1;
        } else {
            device.report.records += 1;
        }
        let kind = QueueKind::of(&placed.work, device_num);
        let new = || {
            let of_device = format!("device {device_num}");
            let observed = if placed.host_observed {
                " (host-observed)"
            } else {
                ""
            };
            let name = format!("{of_device} {}{observed}", kind.name());
            Queue::new(kind, device_num, name, kind.rate(&of_device))
        };
        device
            .queues
            .entry(kind)
            .or_insert_with(new)
            .push(stage, placed);
    }

    fn device(&mut self, stage: &mut Stage<'_>, device_num: i32) -> &mut Device {
        let kind = self.types.get(&device_num).map_or("", String::as_str);
        self.devices.entry(device_num).or_insert_with(|| {
            let name = device_name(device_num, kind);
            stage.location(LocationKind::Device { device_num }, name);
            Device::default()
        })
    }

    fn label(&mut self, stage: &mut Stage<'_>, work: &Work, codeptr_ra: Address) -> Rc<Label> {
        match work {
            Work::Native { name, .. } => Rc::new(Label::named(name.clone())),
            Work::DataOp(op) => {
                let number = op.optype.0;
                let spelled = || {
                    let name = op
                        .optype
                        .name()
                        .map_or_else(|| format!("{number:#x}"), |name| name.replace('_', " "));
                    Rc::new(Label::named(name))
                };
                self.data_ops.entry(number).or_insert_with(spelled).clone()
            }
            Work::Kernel { .. } => {
                let images = &self.images;
                let new = || Rc::new(kernel_label(images, stage.names.source(codeptr_ra)));
                self.kernels.entry(codeptr_ra.0).or_insert_with(new).clone()
            }
        }
    }

    /// The process has no more events.
    pub(crate) fn finish(mut self, stage: &mut Stage<'_>) -> BTreeMap<i32, DeviceReport> {
        let of_device = |(device_num, device): (&i32, &mut Device)| {
            device
                .queues
                .values_mut()
                .for_each(|queue| queue.finish(stage));
            let clock = self.survey.clock_report(*device_num);
            (
                *device_num,
                DeviceReport {
                    clock,
                    ..device.report.clone()
                },
            )
        };
        self.devices.iter_mut().map(of_device).collect()
    }
}

/// What people call a device; `kind` is the runtime's word, empty where there is none.
pub(crate) fn device_name(device_num: i32, kind: &str) -> String {
    match kind {
        "" => format!("device {device_num}"),
        kind => format!("device {device_num} ({kind})"),
    }
}

/// What the kernel of a target construct is called, whose place is known as text and in the source.
fn kernel_label(images: &Images, place: Option<(String, Source)>) -> Label {
    let Some((text, source)) = place else {
        return Label::named("kernel".into());
    };
    let line = source.line.as_ref().map(|(_, line)| *line);
    let name = match line.and_then(|line| images.function(line)) {
        Some(function) => format!("kernel {function} @{text}"),
        None => format!("kernel @{text}"),
    };
    Label { name, source }
}

impl Memory {
    /// The operation has ended: more or less memory of the device is in use.
    fn change(&mut self, stage: &mut Stage<'_>, device_num: i32, time: Ns, op: &DataOp) {
        let change = match op.kind() {
            ompt::ompt_target_data_alloc => {
                let bytes = op.bytes.min(MAX_BYTES);
                let before = self.bytes.insert(op.dest_addr, bytes).unwrap_or(0);
                bytes as i64 - before as i64
            }
            // Its own number of bytes is 0 in some runtimes.
            ompt::ompt_target_data_delete => -(self.bytes.remove(&op.src_addr).unwrap_or(0) as i64),
            _ => 0,
        };
        if change == 0 {
            return;
        }
        let in_use = self.in_use.add(change);
        let new = || stage.counter(format!("in use on device {device_num}"), "bytes");
        let counter = *self.counter.get_or_insert_with(new);
        stage.sink.count(counter, time, in_use);
    }
}

/// The sum of a counter whose changes a trace may state as it likes. It is exact; a counter shows it between 0 and
/// its largest value.
#[derive(Debug, Default)]
struct Sum(i128);

impl Sum {
    /// Adds a change, and returns what the counter shows.
    fn add(&mut self, change: i64) -> i64 {
        // A trace cannot have the 2^64 changes that it takes to come near the limit.
        self.0 = self.0.saturating_add(change.into());
        i64::try_from(self.0.max(0)).unwrap_or(i64::MAX)
    }
}
