//! Devices on the timeline: their operations, according to their own records, or if there are none, as observed by the
//! host.
//!
//! ```text
//! host:   target_data_op_emi, target_submit_emi --> HostOperations ----+--> host-observed work --+
//!                                                        | which one?  |  (without a record)     v
//! device: device_record --> DeviceWork -- clock map --> work on the timeline ------------> Queues --> intervals, flows,
//!                                                                                                     counters
//! ```

mod clock;
mod host;
mod images;
mod queue_kind;
mod queues;
mod record;
mod sum;
mod survey;

use std::collections::BTreeMap;
use std::sync::Arc;

use ompt_sys as ompt;
use omptrace_trace_format::clock::MAX_SESSION_NS;
use omptrace_trace_format::event::{
    DeviceImage, DeviceKernel, DeviceLoad, DeviceNativeRecord, DeviceRecord, TargetDataOpEmi, TargetEmi,
    TargetSubmitEmi,
};
use omptrace_trace_format::field::Address;
use serde::Serialize;

pub use clock::{ClockSource, DeviceClockReport};
pub(crate) use survey::Survey;

use crate::interpret::item_emitter::Stage;
use crate::model::repairs::Cause;
use crate::model::session_clock::SessionClock;
use crate::model::{CounterId, LocationKind, Ns, Point, Source};
use host::{HostOperation, HostOperations, Observed, Regions, TargetRegion, Unrecorded};
use images::Images;
use omptrace_symbols::fast_map::FastMap;
use queue_kind::QueueKind;
use queues::{Label, Queue, TimedOperation};
use record::{DataOp, DeviceWork, Work};
use sum::Sum;

/// How a device's timeline was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceReport {
    /// Number of operations that the device recorded.
    pub records: u64,
    /// Number of operations of which only the start and end on the host are known.
    pub host_observed: u64,
    /// Number of operations of a traced device that should have been recorded, but were not.
    pub without_record: u64,
    /// Number of records for which no host operation was found.
    pub uncorrelated: u64,
    /// Peak number of bytes of device memory in use, by the host's allocations.
    pub peak_bytes: u64,
    /// The memory allocated at each place of the program; empty if no allocation was seen.
    #[serde(skip)]
    pub memory: Vec<MemoryOfPlace>,
    /// How the device's times were mapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<DeviceClockReport>,
}

/// The device memory that a place of the program allocated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryOfPlace {
    /// The place; empty if unknown.
    pub source: Source,
    /// Number of allocations.
    pub allocations: u64,
    /// Peak number of bytes in use.
    pub peak_bytes: u64,
}

/// The devices of a process.
pub(crate) struct Devices {
    survey: Survey,
    /// The runtimes' names of the devices, by number.
    types: BTreeMap<i32, String>,
    devices: BTreeMap<i32, Device>,
    threads: Vec<OnHost>,
    operations: HostOperations,
    regions: Regions,
    /// The work of records that match no host operation. Each of these may be the record of an operation that seems to
    /// have none.
    anonymous: Vec<Work>,
    /// The intervals in which recording was paused, in order.
    pauses: Vec<(Ns, Ns)>,
    images: Images,
    /// Names of kernels by the code address of their construct and by the name in their record. Cleared whenever a
    /// module is loaded or unloaded.
    kernels: FastMap<(u64, Option<Arc<str>>), Arc<Label>>,
    data_ops: BTreeMap<(u32, u64), Arc<Label>>,
}

/// A thread of the host, with its target regions and the operations that it has requested and not seen the end of.
struct OnHost {
    stream: u32,
    regions: Vec<TargetRegion>,
    operations: Vec<HostOperation>,
}

#[derive(Default)]
struct Device {
    /// The queues by kind, and by whether their operations were only observed by the host.
    queues: BTreeMap<(QueueKind, bool), Queue>,
    report: DeviceReport,
    memory: Memory,
}

/// More bytes than any device has. A counter of such numbers does not overflow.
const MAX_BYTES: u64 = 1 << 48;

/// The allocated memory of a device, as far as the host knows.
#[derive(Default)]
struct Memory {
    counter: Option<CounterId>,
    by_address: FastMap<u64, Allocated>,
    in_use: Sum,
    places: Vec<MemoryAtPlace>,
    /// The index of each place in `places`.
    by_source: FastMap<Source, usize>,
}

/// An allocation, and the index of the place that requested it.
#[derive(Clone, Copy)]
struct Allocated {
    bytes: u64,
    place: usize,
}

/// The memory that a place of the program has allocated on a device.
#[derive(Default)]
struct MemoryAtPlace {
    report: MemoryOfPlace,
    in_use: Sum,
}

impl Devices {
    /// The devices of a process whose threads have these `streams`. `types`: the runtime's names of the devices.
    /// `tracks`: the devices whose location is already defined.
    pub(crate) fn new(
        survey: Survey,
        types: BTreeMap<i32, String>,
        tracks: impl Iterator<Item = i32>,
        streams: impl Iterator<Item = u32>,
    ) -> Devices {
        let on_host = |stream| OnHost { stream, regions: Vec::new(), operations: Vec::new() };
        Devices {
            survey,
            devices: tracks.map(|device_num| (device_num, Device::default())).collect(),
            types,
            threads: streams.map(on_host).collect(),
            operations: HostOperations::default(),
            regions: Regions::default(),
            anonymous: Vec::new(),
            pauses: Vec::new(),
            images: Images::default(),
            kernels: FastMap::default(),
            data_ops: BTreeMap::new(),
        }
    }

    /// A module was loaded or unloaded, so addresses may have other meanings.
    pub(crate) fn modules_changed(&mut self) {
        self.kernels.clear();
    }

    /// Recording is paused. Operations in a pause get ids that are missing in the trace.
    pub(crate) fn paused(&mut self, time: Ns) {
        if self.pauses.last().is_none_or(|(_, end)| *end < Ns::MAX) {
            self.pauses.push((time, Ns::MAX));
        }
    }

    /// Recording continues.
    pub(crate) fn resumed(&mut self, time: Ns) {
        if let Some((_, end)) = self.pauses.last_mut() {
            *end = time.min(*end);
        }
    }

    fn is_in_pause(&self, time: Ns) -> bool {
        let after = self.pauses.partition_point(|(begin, _)| *begin <= time);
        let last = after.checked_sub(1).and_then(|index| self.pauses.get(index));
        last.is_some_and(|(_, end)| time < *end)
    }

    pub(crate) fn load(&mut self, e: &DeviceLoad<'_>) {
        self.images.load(e);
    }

    pub(crate) fn image(&mut self, e: &DeviceImage<'_>) {
        self.images.part(e);
        self.kernels.clear();
    }

    pub(crate) fn target(&mut self, thread: usize, at: Point, e: &TargetEmi) {
        if e.endpoint != ompt::ompt_scope_end && self.survey.is_by_cupti(e.device_num) {
            self.regions.add(at, thread, TargetRegion::of(e));
        }
        let regions = &mut self.threads[thread].regions;
        if e.endpoint != ompt::ompt_scope_end {
            regions.push(TargetRegion::of(e));
        }
        if e.endpoint != ompt::ompt_scope_begin
            && let Some(index) = regions.iter().rposition(|region| region.target_data == e.target_data.0)
        {
            regions.truncate(index);
        }
    }

    pub(crate) fn submit(&mut self, stage: &mut Stage<'_>, thread: usize, at: Point, e: &TargetSubmitEmi) {
        if e.endpoint != ompt::ompt_scope_end {
            let regions = &self.threads[thread].regions;
            let named = regions.iter().rfind(|region| region.target_data == e.target_data.0);
            let Some(region) = named.or(regions.last()) else {
                return;
            };
            let operation = HostOperation {
                at,
                thread,
                device_num: region.device_num,
                host_op_id: e.host_op_id.0,
                target_data: region.target_data,
                codeptr_ra: region.codeptr_ra,
                work: Work::Kernel {
                    requested_num_teams: e.requested_num_teams,
                    granted_num_teams: 0,
                    name: None,
                },
            };
            self.begin(stage, operation);
        }
        if e.endpoint != ompt::ompt_scope_begin {
            self.end(stage, thread, at.time, |work| matches!(work, Work::Kernel { .. }));
        }
    }

    pub(crate) fn data_op(&mut self, stage: &mut Stage<'_>, thread: usize, at: Point, e: &TargetDataOpEmi) {
        let op = DataOp::of(e);
        let device_num = op.device_num(|number| self.types.contains_key(&number));
        if e.endpoint != ompt::ompt_scope_end {
            let operation = HostOperation {
                at,
                thread,
                device_num,
                host_op_id: e.host_op_id.0,
                target_data: e.target_data.known().unwrap_or(0),
                codeptr_ra: e.codeptr_ra,
                work: Work::DataOp(op),
            };
            self.begin(stage, operation);
        }
        if e.endpoint != ompt::ompt_scope_begin {
            if let Some(operation) = self.threads[thread].operations.last_mut()
                && matches!(&operation.work, Work::DataOp(begun) if begun.optype == op.optype)
            {
                // The address on the device is known only at the end.
                operation.work = Work::DataOp(op);
            }
            self.end(
                stage,
                thread,
                at.time,
                |work| matches!(work, Work::DataOp(begun) if begun.optype == op.optype),
            );
            let is_allocation = op.kind() == ompt::ompt_target_data_alloc;
            let label = is_allocation.then(|| self.label(stage, &Work::DataOp(op), e.codeptr_ra));
            let source = label.map(|label| label.source.clone()).unwrap_or_default();
            let device = self.device(stage, device_num);
            let in_use = device.memory.change(stage, (device_num, source), at.time, &op);
            device.report.peak_bytes = device.report.peak_bytes.max(in_use);
        }
    }

    fn begin(&mut self, stage: &mut Stage<'_>, operation: HostOperation) {
        self.threads[operation.thread].operations.push(operation.clone());
        if self.survey.is_traced(operation.device_num)
            && let Some(forgotten) = self.operations.add(operation)
        {
            self.place_unrecorded(stage, forgotten);
        }
    }

    /// Ends the thread's newest operation for which `is_it` holds. If its device is not traced, places it as observed
    /// by the host.
    fn end(&mut self, stage: &mut Stage<'_>, thread: usize, time: Ns, is_it: impl Fn(&Work) -> bool) {
        let open = &mut self.threads[thread].operations;
        let Some(index) = open.iter().rposition(|operation| is_it(&operation.work)) else {
            return;
        };
        open.truncate(index + 1);
        let Some(operation) = open.pop() else { return };
        let observed =
            Observed { end: time, label: self.label(stage, &operation.work, operation.codeptr_ra) };
        if self.survey.is_traced(operation.device_num) {
            self.operations.ended(operation, observed);
        } else {
            self.place_observed(stage, operation, observed);
        }
    }

    /// A traced device did not record the operation: shows it as observed by the host, and reports a repair.
    fn place_unrecorded(&mut self, stage: &mut Stage<'_>, unrecorded: Unrecorded) {
        let Unrecorded { operation, observed } = unrecorded;
        // The operation's record may be among those that name no operation.
        if self.anonymous.iter().any(|work| operation.fits(work)) {
            return;
        }
        if self.survey.expects(operation.device_num, &operation.work) {
            let stream = self.threads[operation.thread].stream;
            stage.repairs.add(Cause::NoDeviceRecord, stream, operation.at.time);
            self.device(stage, operation.device_num).report.without_record += 1;
        }
        self.place_observed(stage, operation, observed);
    }

    fn place_observed(&mut self, stage: &mut Stage<'_>, operation: HostOperation, observed: Observed) {
        let placed = TimedOperation {
            begin: operation.at.time,
            end: observed.end,
            label: observed.label,
            host_op_id: operation.host_op_id,
            target_id: operation.target_data,
            from: Some((operation.link(), operation.at)),
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

    pub(crate) fn kernel(
        &mut self,
        stage: &mut Stage<'_>,
        clock: SessionClock<'_>,
        e: &DeviceKernel<'_>,
    ) -> Result<(), Cause> {
        self.work(stage, clock, e.device_num, DeviceWork::of_kernel(e))
    }

    pub(crate) fn native_record(
        &mut self,
        stage: &mut Stage<'_>,
        clock: SessionClock<'_>,
        e: &DeviceNativeRecord<'_>,
    ) -> Result<(), Cause> {
        self.work(stage, clock, e.device_num, DeviceWork::of_native(e))
    }

    /// Processes a record of a device. The error is the repair to count.
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
        let (operations, ids) = (&self.operations, (work.host_op_id, work.target_id));
        let named = operations.named(&work.work, ids.0, ids.1);
        let numbered = || operations.numbered(&work.work, ids.0);
        let said = named.or_else(numbered).map_or(said_device_num, |operation| operation.device_num);
        let map = self.survey.clock(said).or_else(|| self.survey.clock(said_device_num));
        let Some(map) = map else {
            return Err(Cause::NoDeviceClock);
        };
        let time = |device_time| {
            let since_start = (map.ns(device_time) as Ns).clamp(-MAX_SESSION_NS, MAX_SESSION_NS);
            clock.start.saturating_add(since_start).max(0)
        };
        let (begin, end) = (time(work.begin), time(work.end));
        let operation = named
            .or_else(|| operations.likely(&work.work, ids.1, begin))
            .or_else(numbered)
            .cloned()
            .or_else(|| self.regions.operation(&work.work, ids.0));
        if operation.is_none() && self.is_in_pause(begin) {
            return Err(Cause::DeviceRecordOfPause);
        }
        let mut device_num = said;
        let mut codeptr_ra = Address(0);
        if let Some(operation) = &operation {
            (device_num, codeptr_ra) = (operation.device_num, operation.codeptr_ra);
            (work.host_op_id, work.target_id) = (operation.host_op_id, operation.target_data);
            work.work.complete(&operation.work);
            self.operations.recorded(operation.host_op_id);
        } else if !self.anonymous.iter().any(|other| other.is_like(&work.work)) {
            self.anonymous.push(work.work.clone());
        }
        let label = self.label(stage, &work.work, codeptr_ra);
        let placed = TimedOperation {
            begin,
            end,
            label,
            work: work.work,
            host_op_id: work.host_op_id,
            target_id: work.target_id,
            from: operation.as_ref().map(|operation| (operation.link(), operation.at)),
            host_observed: false,
        };
        self.device(stage, device_num).report.uncorrelated += u64::from(operation.is_none());
        self.place(stage, device_num, placed);
        if is_swapped { Err(Cause::DeviceTimesSwapped) } else { Ok(()) }
    }

    fn place(&mut self, stage: &mut Stage<'_>, device_num: i32, placed: TimedOperation) {
        let device = self.device(stage, device_num);
        if placed.host_observed {
            device.report.host_observed += 1;
        } else {
            device.report.records += 1;
        }
        let kind = QueueKind::of(&placed.work, device_num);
        let key = (kind, placed.host_observed);
        let new = || {
            let of_device = format!("device {device_num}");
            let observed = if placed.host_observed { " (host-observed)" } else { "" };
            let name = format!("{of_device} {}{observed}", kind.name());
            Queue::new(key, device_num, name, kind.rate(&of_device))
        };
        device.queues.entry(key).or_insert_with(new).push(stage, placed);
    }

    fn device(&mut self, stage: &mut Stage<'_>, device_num: i32) -> &mut Device {
        let kind = self.types.get(&device_num).map_or("", String::as_str);
        self.devices.entry(device_num).or_insert_with(|| {
            let name = device_name(device_num, kind);
            stage.location(LocationKind::Device { device_num }, name);
            Device::default()
        })
    }

    fn label(&mut self, stage: &mut Stage<'_>, work: &Work, codeptr_ra: Address) -> Arc<Label> {
        match work {
            Work::Native { name, .. } => Arc::new(Label::named(name.clone())),
            Work::DataOp(op) => {
                let number = op.optype.0;
                let spelled = || {
                    let name = op
                        .optype
                        .name()
                        .map_or_else(|| format!("{number:#x}"), |name| name.replace('_', " "));
                    let place = stage.names.source(codeptr_ra);
                    let source = place.map(|(_, source)| source).unwrap_or_default();
                    Arc::new(Label { name, source })
                };
                let key = (number, codeptr_ra.0);
                self.data_ops.entry(key).or_insert_with(spelled).clone()
            }
            Work::Kernel { name, .. } => {
                let images = &self.images;
                let key = (codeptr_ra.0, name.clone());
                let new = || {
                    let place = stage.names.source(codeptr_ra);
                    Arc::new(kernel_label(images, place, name.as_deref()))
                };
                self.kernels.entry(key).or_insert_with(new).clone()
            }
        }
    }

    /// Ends the timelines of the devices.
    pub(crate) fn finish(mut self, stage: &mut Stage<'_>) -> BTreeMap<i32, DeviceReport> {
        let regions = self.regions.without_record();
        // If the runtime reports operations, records are expected per operation instead of per region.
        if self.operations.is_empty() {
            for (thread, time) in regions {
                let stream = self.threads[thread].stream;
                stage.repairs.add(Cause::NoRecordOfRegion, stream, time);
            }
        }
        for unrecorded in self.operations.finish() {
            self.place_unrecorded(stage, unrecorded);
        }
        let of_device = |(device_num, device): (&i32, &mut Device)| {
            device.queues.values_mut().for_each(|queue| queue.finish(stage));
            let clock = self.survey.clock_report(*device_num);
            (*device_num, DeviceReport { clock, memory: device.memory.of_places(), ..device.report.clone() })
        };
        self.devices.iter_mut().map(of_device).collect()
    }
}

/// A device's displayed name. `kind`: the runtime's name of the device type; may be empty.
pub(crate) fn device_name(device_num: i32, kind: &str) -> String {
    match kind {
        "" => format!("device {device_num}"),
        kind => format!("device {device_num} ({kind})"),
    }
}

/// The label of the kernel of a target construct, whose place is given as text and as source location. `linkage_name`:
/// the name in the kernel's record.
fn kernel_label(images: &Images, place: Option<(String, Source)>, linkage_name: Option<&str>) -> Label {
    let function = linkage_name.map(omptrace_symbols::kernel_function);
    let Some((text, source)) = place else {
        return Label::named(match function {
            Some(function) => format!("kernel {function}"),
            None => "kernel".into(),
        });
    };
    let line = source.own_line().map(|(_, line)| line);
    let of_image = || match line {
        Some(line) => images.function(line).map(str::to_owned),
        None => source.function.clone().filter(|function| images.has(function)),
    };
    let name = match function.or_else(of_image) {
        Some(function) => format!("kernel {function} @{text}"),
        None => format!("kernel @{text}"),
    };
    Label { name, source }
}

impl Memory {
    /// Updates the memory in use after an operation, which the program requested at `source`. Returns the bytes in use,
    /// or 0 if nothing changed.
    fn change(
        &mut self,
        stage: &mut Stage<'_>,
        (device_num, source): (i32, Source),
        time: Ns,
        op: &DataOp,
    ) -> u64 {
        let before = self.in_use.0;
        match op.kind() {
            ompt::ompt_target_data_alloc => {
                // An earlier allocation at this address must be gone: the runtime did not report its end.
                self.free(op.dest_addr);
                self.allocate(op.dest_addr, op.bytes.min(MAX_BYTES), source);
            }
            // Some runtimes report 0 bytes for deletions, so the size is that of the allocation.
            ompt::ompt_target_data_delete => self.free(op.src_addr),
            _ => {}
        }
        if self.in_use.0 == before {
            return 0;
        }
        let in_use = self.in_use.add(0);
        let new = || stage.counter(format!("in use on device {device_num}"), "bytes");
        let counter = *self.counter.get_or_insert_with(new);
        stage.count(counter, time, in_use);
        in_use.unsigned_abs()
    }

    fn allocate(&mut self, address: u64, bytes: u64, source: Source) {
        let place = match self.by_source.get(&source) {
            Some(known) => *known,
            None => {
                self.by_source.insert(source.clone(), self.places.len());
                self.places.push(MemoryAtPlace {
                    report: MemoryOfPlace { source, ..MemoryOfPlace::default() },
                    in_use: Sum::default(),
                });
                self.places.len() - 1
            }
        };
        self.by_address.insert(address, Allocated { bytes, place });
        self.in_use.add(bytes as i64);
        let at_place = &mut self.places[place];
        let in_use = at_place.in_use.add(bytes as i64).unsigned_abs();
        at_place.report.allocations += 1;
        at_place.report.peak_bytes = at_place.report.peak_bytes.max(in_use);
    }

    fn free(&mut self, address: u64) {
        if let Some(Allocated { bytes, place }) = self.by_address.remove(&address) {
            self.in_use.add(-(bytes as i64));
            self.places[place].in_use.add(-(bytes as i64));
        }
    }

    /// The memory of all places of the program, in the order of their first allocation.
    fn of_places(&self) -> Vec<MemoryOfPlace> {
        let reports = self.places.iter().map(|place| place.report.clone());
        reports.collect()
    }
}
