//! The processed profile of the [Firefox Profiler](https://profiler.firefox.com): samples by thread, and OpenMP regions
//! as markers.
//!
//! Stacks follow the user's model. Each sample carries the CPU time that it represents, and is weighted by the number
//! of sampling periods in it. The profile is kept in memory until it is complete, because the format consists of tables
//! of columns.

use std::collections::BTreeMap;
use std::io;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerTiming, ProcessHandle,
    Profile, ReferenceTimestamp, SamplingInterval, StaticSchemaMarker, StaticSchemaMarkerField, StringHandle,
    ThreadHandle, Timestamp,
};
use omptrace_timeline::model::{
    Category, Function, FunctionKind, Item, Location, LocationKind, Ns, Point, Process, Region, RegionId,
    Sample, Sink, ThreadRole, Wants, short_name,
};

use crate::writer::output::Output;

/// Writes a profile.
pub(crate) struct Firefox {
    out: Output,
    profile: Profile,
    categories: Categories,
    /// The processes, each with its sampling period.
    processes: Vec<(ProcessHandle, u64)>,
    /// By location number.
    threads: BTreeMap<u32, ThreadMarkers>,
    regions: Vec<OmpMarker>,
    functions: Vec<FrameInfo>,
}

/// A thread and its open regions.
struct ThreadMarkers {
    thread: ThreadHandle,
    period_ns: u64,
    open: Vec<(RegionId, Ns)>,
}

/// The categories (colours) of frames and markers.
struct Categories {
    program: CategoryHandle,
    body: CategoryHandle,
    wait: CategoryHandle,
    overhead: CategoryHandle,
    region: CategoryHandle,
}

impl Categories {
    fn of_function(&self, kind: FunctionKind) -> CategoryHandle {
        use omptrace_timeline::model::RuntimeActivity::{Flush, LockTest, Overhead, Reduction};
        match kind {
            FunctionKind::Code => self.program,
            FunctionKind::Outlined => self.body,
            FunctionKind::Runtime(Overhead | Reduction | Flush | LockTest) => self.overhead,
            FunctionKind::Runtime(_) => self.wait,
            FunctionKind::Phase | FunctionKind::Truncated => CategoryHandle::OTHER,
        }
    }

    fn of_region(&self, category: Category) -> CategoryHandle {
        match category {
            Category::Wait => self.wait,
            Category::Omptrace => CategoryHandle::OTHER,
            _ => self.region,
        }
    }
}

/// A marker for an OpenMP region.
#[derive(Clone, Copy)]
struct OmpMarker {
    name: StringHandle,
    category: CategoryHandle,
}

impl StaticSchemaMarker for OmpMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "OpenMP";
    const CHART_LABEL: Option<&'static str> = Some("{marker.name}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.name
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}

impl Firefox {
    pub(crate) fn new(out: Output) -> Firefox {
        let reference = ReferenceTimestamp::from_millis_since_unix_epoch(0.0);
        let interval = SamplingInterval::from_millis(1);
        let mut profile = Profile::new("omptrace", reference, interval);
        profile.set_os_name("Linux");
        profile.set_symbolicated(true);
        let categories = Categories {
            program: profile.add_category("Program", CategoryColor::Yellow),
            body: profile.add_category("OpenMP body", CategoryColor::Green),
            wait: profile.add_category("OpenMP wait", CategoryColor::Red),
            overhead: profile.add_category("OpenMP overhead", CategoryColor::Orange),
            region: profile.add_category("OpenMP region", CategoryColor::Blue),
        };
        Firefox {
            out,
            profile,
            categories,
            processes: Vec::new(),
            threads: BTreeMap::new(),
            regions: Vec::new(),
            functions: Vec::new(),
        }
    }

    fn process(&mut self, process: &Process) {
        let handle =
            self.profile.add_process(&process.name, process.os_pid, timestamp(process.lifetime.traced_from));
        let period_ns = process.sampling_period_ns;
        if self.processes.is_empty() {
            self.profile.set_product(&process.name);
            if period_ns > 0 {
                self.profile.set_interval(SamplingInterval::from_nanos(period_ns));
            }
        }
        self.processes.push((handle, period_ns));
    }

    fn location(&mut self, location: &Location) {
        let LocationKind::Thread { os_tid, role, .. } = location.kind else {
            return;
        };
        let (process, period_ns) = self.processes[location.process.0 as usize];
        let is_main = role == ThreadRole::Main;
        let thread = self.profile.add_thread(process, os_tid, timestamp(0), is_main);
        self.profile.set_thread_name(thread, &location.name);
        let thread = ThreadMarkers { thread, period_ns, open: Vec::new() };
        self.threads.insert(location.id.0, thread);
    }

    fn region(&mut self, region: &Region) {
        self.regions.push(OmpMarker {
            name: self.profile.intern_string(short_name(&region.name)),
            category: self.categories.of_region(region.category),
        });
    }

    fn function(&mut self, function: &Function) {
        self.functions.push(FrameInfo {
            frame: Frame::Label(self.profile.intern_string(&function.name)),
            category_pair: self.categories.of_function(function.kind).into(),
            flags: FrameFlags::empty(),
        });
    }

    fn enter(&mut self, at: Point, region: RegionId) {
        if let Some(thread) = self.threads.get_mut(&at.location.0) {
            thread.open.push((region, at.time));
        }
    }

    fn leave(&mut self, at: Point) {
        let thread = self.threads.get_mut(&at.location.0);
        let ended = thread.and_then(|thread| Some((thread.thread, thread.open.pop()?)));
        if let Some((thread, (region, begin))) = ended {
            let timing = MarkerTiming::Interval(timestamp(begin), timestamp(at.time));
            let marker = self.regions[region.0 as usize];
            self.profile.add_marker(thread, timing, marker);
        }
    }

    fn instant(&mut self, at: Point, region: RegionId) {
        if let Some(thread) = self.threads.get(&at.location.0) {
            let timing = MarkerTiming::Instant(timestamp(at.time));
            let marker = self.regions[region.0 as usize];
            self.profile.add_marker(thread.thread, timing, marker);
        }
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let Some(thread) = self.threads.get(&sample.at.location.0) else {
            return;
        };
        let frames = sample.stack.iter();
        let frames = frames.map(|frame| self.functions[frame.function.0 as usize].clone());
        let stack = self.profile.intern_stack_frames(thread.thread, frames);
        self.profile.add_sample(
            thread.thread,
            timestamp(sample.at.time),
            stack,
            CpuDelta::from_nanos(sample.weight_ns),
            i32::try_from(sample.periods(thread.period_ns)).unwrap_or(i32::MAX),
        );
    }
}

fn timestamp(time: Ns) -> Timestamp {
    Timestamp::from_nanos_since_reference(time.max(0).unsigned_abs())
}

impl Sink for Firefox {
    fn wants(&self) -> Wants {
        Wants::SAMPLES
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Start { realtime_ns } => {
                let millis = *realtime_ns as f64 / 1e6;
                let reference = ReferenceTimestamp::from_millis_since_unix_epoch(millis);
                self.profile.set_reference_timestamp(reference);
            }
            Item::Process(process) => self.process(process),
            Item::Location(location) => self.location(location),
            Item::Region(region) => self.region(region),
            Item::Function(function) => self.function(function),
            Item::Enter(enter) => self.enter(enter.at, enter.region),
            Item::Leave(leave) => self.leave(leave.at),
            Item::Instant(instant) => self.instant(instant.at, instant.region),
            Item::Sample(sample) => self.sample(sample),
            _ => {}
        }
    }

    fn failed(&self) -> bool {
        self.out.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        serde_json::to_writer(self.out.buffer(), &self.profile)?;
        self.out.finish()
    }
}
