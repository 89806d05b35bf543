//! The tracks of a device: one for each kind of operation, and more if operations overlap.
//!
//! Records arrive in the order of delivery. A queue holds some back, to pass them on in the order of their starts. Each
//! operation is placed in the first free row.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::queue_kind::QueueKind;
use super::record::{DataOp, Work};
use super::sum::Sum;
use crate::interpret::item_emitter::Stage;
use crate::model::repairs::Cause;
use crate::model::{
    Anchor, Argument, Category, CounterId, DeviceWork, Interval, LinkKind, LocationId, LocationKind, Ns,
    Point, Source, Value, argument,
};

/// Maximum number of operations that are held back.
const MAX_WAITING: usize = 1 << 14;
/// Maximum number of tracks per kind. Operations that overlap more often are shortened.
const MAX_ROWS: usize = 64;

/// An operation on the timeline.
#[derive(Debug)]
pub(crate) struct TimedOperation {
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) label: Arc<Label>,
    pub(crate) work: Work,
    pub(crate) host_op_id: u64,
    pub(crate) target_id: u64,
    /// The host operation that led to this operation.
    pub(crate) from: Option<(LinkKind, Point)>,
    /// The device recorded nothing; the times are the host's.
    pub(crate) host_observed: bool,
}

/// The displayed name of an operation.
#[derive(Debug, Default)]
pub(crate) struct Label {
    pub(crate) name: String,
    /// The source location of its construct; empty if there is none.
    pub(crate) source: Source,
}

impl Label {
    /// A label without a source location.
    pub(crate) fn named(name: String) -> Label {
        Label { name, ..Label::default() }
    }
}

/// The tracks of one kind of operation.
#[derive(Debug)]
pub(crate) struct Queue {
    kind: QueueKind,
    device_num: i32,
    host_observed: bool,
    name: String,
    waiting: BinaryHeap<Reverse<Waiting>>,
    arrivals: u64,
    rows: Vec<Row>,
    rate: Option<Rate>,
}

#[derive(Debug)]
struct Row {
    location: LocationId,
    free_from: Ns,
}

/// An operation that is held back, ordered by start, then by arrival.
#[derive(Debug)]
struct Waiting {
    arrival: u64,
    placed: TimedOperation,
}

impl Waiting {
    fn key(&self) -> (Ns, u64) {
        (self.placed.begin, self.arrival)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Queue {
    /// A queue called `name` for operations of this kind, which either the host observed or the device recorded.
    /// `rate`: the name of the counter of bytes per second, if there is one.
    pub(crate) fn new(
        (kind, host_observed): (QueueKind, bool),
        device_num: i32,
        name: String,
        rate: Option<String>,
    ) -> Queue {
        Queue {
            kind,
            device_num,
            host_observed,
            name,
            waiting: BinaryHeap::new(),
            arrivals: 0,
            rows: Vec::new(),
            rate: rate.map(Rate::new),
        }
    }

    pub(crate) fn push(&mut self, stage: &mut Stage<'_>, placed: TimedOperation) {
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.waiting.push(Reverse(Waiting { arrival, placed }));
        if self.waiting.len() > MAX_WAITING {
            self.place_first(stage);
        }
    }

    /// Passes on the remaining operations.
    pub(crate) fn finish(&mut self, stage: &mut Stage<'_>) {
        while self.place_first(stage) {}
        if let Some(rate) = &mut self.rate {
            rate.advance(stage, Ns::MAX);
        }
    }

    fn place_first(&mut self, stage: &mut Stage<'_>) -> bool {
        let Some(Reverse(Waiting { placed, .. })) = self.waiting.pop() else {
            return false;
        };
        let (row, begin) = self.row(stage, placed.begin);
        let end = placed.end.max(begin);
        self.rows[row].free_from = end;
        let track = self.rows[row].location;
        stage.interval(Interval {
            track,
            name: &placed.label.name,
            category: Category::Target,
            begin,
            end,
            arguments: &arguments(&placed),
            work: Some(self.work(&placed)),
        });
        if let Some((kind, from)) = placed.from {
            let to = Point { location: track, time: begin };
            // The mapped clock may be inaccurate, but a link must not lead back in time. Before the host operation,
            // another region is the innermost.
            let cause = match from.time <= begin {
                true => Anchor::Inside,
                false => Anchor::Moment,
            };
            let time = from.time.min(begin);
            let from = Point { time, ..from };
            stage.link(kind, (from, cause), (to, Anchor::Begin));
        }
        if let (Some(rate), Work::DataOp(op)) = (&mut self.rate, &placed.work) {
            rate.add(stage, begin, end, op.bytes);
        }
        true
    }

    fn work<'p>(&self, placed: &'p TimedOperation) -> DeviceWork<&'p Source> {
        match (&placed.work, self.kind) {
            (Work::Kernel { .. }, _) => DeviceWork::Kernel(&placed.label.source),
            (Work::DataOp(DataOp { bytes, .. }), QueueKind::ToDevice) => {
                DeviceWork::TransferTo { bytes: *bytes, source: &placed.label.source }
            }
            (Work::DataOp(DataOp { bytes, .. }), QueueKind::FromDevice) => {
                DeviceWork::TransferFrom { bytes: *bytes, source: &placed.label.source }
            }
            (Work::DataOp(op), _) => DeviceWork::DataOp(op.kind()),
            (Work::Native { .. }, _) => DeviceWork::Native,
        }
    }

    /// The row for an operation that starts at `begin`, and the start of the operation in this row.
    fn row(&mut self, stage: &mut Stage<'_>, begin: Ns) -> (usize, Ns) {
        if let Some(free) = self.rows.iter().position(|row| row.free_from <= begin) {
            return (free, begin);
        }
        let rows = self.rows.len();
        if rows < MAX_ROWS {
            let name = match rows {
                0 => self.name.clone(),
                _ => format!("{} {}", self.name, rows + 1),
            };
            let kind =
                LocationKind::DeviceQueue { device_num: self.device_num, host_observed: self.host_observed };
            let location = stage.location(kind, name);
            self.rows.push(Row { location, free_from: Ns::MIN });
            return (rows, begin);
        }
        let free_from = |(_, row): &(usize, &Row)| row.free_from;
        let first = self.rows.iter().enumerate().min_by_key(free_from);
        let (row, begin) = first.map_or((0, begin), |(index, row)| (index, row.free_from));
        stage.repairs.add(Cause::DeviceOverlap, 0, begin);
        (row, begin)
    }
}

fn arguments(placed: &TimedOperation) -> Vec<Argument<'_>> {
    let mut arguments = Vec::new();
    match &placed.work {
        Work::Kernel { requested_num_teams, granted_num_teams, .. } => {
            // If the host operation is known, 0 is the program's value: the runtime chooses the number.
            if *requested_num_teams > 0 || placed.host_op_id != 0 {
                arguments.push(argument("requested_num_teams", Value::Uint((*requested_num_teams).into())));
            }
            if *granted_num_teams > 0 {
                arguments.push(argument("granted_num_teams", Value::Uint((*granted_num_teams).into())));
            }
        }
        Work::DataOp(DataOp { bytes, src_addr, src_device_num, dest_addr, dest_device_num, .. }) => {
            arguments.push(argument("bytes", Value::Uint(*bytes)));
            let ends = [
                ("src_addr", *src_addr, "src_device_num", *src_device_num),
                ("dest_addr", *dest_addr, "dest_device_num", *dest_device_num),
            ];
            // NVIDIA's records contain neither address nor device if no host operation of the copy is known.
            for (address, at, device, number) in ends {
                if at != 0 || number >= 0 {
                    arguments.push(argument(address, Value::Hex(at)));
                }
                if number >= 0 {
                    arguments.push(argument(device, Value::Int(number.into())));
                }
            }
        }
        Work::Native { hwid, .. } => arguments.push(argument("hwid", Value::Hex(*hwid))),
    }
    if placed.host_op_id != 0 {
        arguments.push(argument("host_op_id", Value::Hex(placed.host_op_id)));
    }
    if placed.target_id != 0 {
        arguments.push(argument("target_data", Value::Hex(placed.target_id)));
    }
    if placed.host_observed {
        arguments.push(argument("observed_by", Value::Text("host")));
    }
    arguments
}

/// The sum of the rates of the transfers in progress.
#[derive(Debug)]
struct Rate {
    name: String,
    counter: Option<CounterId>,
    value: Sum,
    ends: BinaryHeap<Reverse<(Ns, i64)>>,
    last: Ns,
}

impl Rate {
    fn new(name: String) -> Rate {
        Rate { name, counter: None, value: Sum::default(), ends: BinaryHeap::new(), last: 0 }
    }

    fn add(&mut self, stage: &mut Stage<'_>, begin: Ns, end: Ns, bytes: u64) {
        const NS_PER_MICROSECOND: u64 = 1000;
        let Some(ns) = u64::try_from(end.saturating_sub(begin)).ok().filter(|ns| *ns > 0) else {
            return;
        };
        // The counter's unit is MB/s, which is the same as bytes per microsecond.
        let rate = u128::from(bytes) * u128::from(NS_PER_MICROSECOND) / u128::from(ns);
        let rate = i64::try_from(rate).unwrap_or(i64::MAX);
        self.advance(stage, begin);
        self.ends.push(Reverse((end, rate)));
        self.change(stage, begin, rate);
    }

    /// Subtracts the transfers that end until `time`.
    fn advance(&mut self, stage: &mut Stage<'_>, time: Ns) {
        while let Some(Reverse((end, rate))) = self.ends.peek().copied()
            && end <= time
        {
            self.ends.pop();
            self.change(stage, end, -rate);
        }
    }

    fn change(&mut self, stage: &mut Stage<'_>, time: Ns, by: i64) {
        let new = || stage.counter(std::mem::take(&mut self.name), "MB/s");
        let counter = *self.counter.get_or_insert_with(new);
        self.last = self.last.max(time);
        stage.count(counter, self.last, self.value.add(by));
    }
}
