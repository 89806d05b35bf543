//! Reads the streams of each process in the order of time, and interprets them into a sink.

pub(crate) mod alignment;
pub(crate) mod excerpts;
pub(crate) mod merge;
pub(crate) mod parallel_sinks;
pub(crate) mod process;
pub(crate) mod report;
pub(crate) mod segments;
pub(crate) mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use omptrace_symbols::Table;
use omptrace_trace_format::checkpoint::Packed;
use omptrace_trace_format::{ClockMap, Diagnostic, Reader, Severity};

use crate::devices::{DeviceReport, Devices, Survey, device_name};
use crate::interpret::annotations::Texts;
use crate::interpret::item_emitter::Stage;
use crate::interpret::old::collector::repeated_forks;
use crate::interpret::{Interpreter, MpiKnowledge, Recorder, Restart, Samples};
use crate::model::manner::Manner;
use crate::model::repairs::Cause;
use crate::model::session_clock::SessionClock;
use crate::model::thread_introduction::ThreadIntroduction;
use crate::model::{Item, LocationKind, Ns, Process, ProcessId, Sink, Summary, Wants};
use crate::ranks::{Ranks, Wanted};
use crate::replay::alignment::{HostClocks, Start, alignment_note, uncertainty};
use crate::replay::excerpts::{Excerpts, Part};
use crate::replay::merge::Merge;
use crate::replay::process::{command_line, lifetime, process_name, processors};
use crate::replay::report::{EventCounts, ProcessReport, Report, is_overwritten};
use crate::replay::segments::Segments;
use crate::replay::stream::{Decoding, Extent, begins_something};
use crate::runtime_quirks::capabilities::Reports;
use crate::samples::availability::SampleSums;
use crate::samples::energy;
use crate::threads::locations::{display_order, introductions};
use crate::threads::open_regions::Thread;

/// Events between two looks at progress and at the sink's state.
const STEP: u64 = 1 << 14;

/// Interprets `inputs` as one timeline and hands it to `sink`, which is not finished. `progress` is called now and then
/// with the number of events done.
///
/// Processes are ordered by rank, then start; their times are aligned by the system's real-time clock. Code has the
/// names that the traces brought along.
pub fn replay(inputs: &[&Reader], sink: &mut dyn Sink, progress: &mut dyn FnMut(u64)) -> Report {
    replay_with(inputs, &Table::stored, Manner::default(), sink, progress)
}

/// Like [`replay`], with the names that `symbols` gives.
pub fn replay_with(
    inputs: &[&Reader],
    symbols: &dyn Fn(&Reader) -> Table,
    manner: Manner,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(u64),
) -> Report {
    let timeline = Timeline::of(inputs);
    let timeline = match sink.wants().contains(Wants::MPI) {
        true => timeline.with_messages(),
        false => timeline.with_ranks(),
    };
    let mut report = timeline.replay(0, 1, symbols, manner, sink, progress);
    report.uncertainty_ns = timeline.uncertainty_ns;
    report
}

/// The processes of a timeline, before they are interpreted.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// In the timeline's order.
    inputs: Vec<&'a Reader>,
    /// The timeline's start, in nanoseconds since 1970; 0 where nobody knows it.
    origin: u64,
    /// See [`Report::uncertainty_ns`].
    pub uncertainty_ns: u64,
    /// When each session began on the timeline.
    offsets: Vec<Ns>,
    /// The messages between the processes; `None` where they were not matched.
    ranks: Option<Ranks>,
}

impl<'a> Timeline<'a> {
    /// The timeline of `inputs`, whose clocks are aligned.
    pub fn of(inputs: &[&'a Reader]) -> Timeline<'a> {
        let starts: Vec<Start> = inputs.iter().map(|reader| Start::of(reader)).collect();
        let uncertainty_ns = uncertainty(&starts);
        Timeline { uncertainty_ns, ..Timeline::among(inputs, &starts) }
    }

    /// The processes of `inputs` on the timeline of all processes that begin at `starts`. Nothing is said of their clocks.
    pub fn among(inputs: &[&'a Reader], starts: &[Start]) -> Timeline<'a> {
        let clocks = HostClocks::of(starts);
        let origin = clocks.origin(starts);
        let mut own: Vec<(Start, &'a Reader)> =
            inputs.iter().map(|reader| (clocks.aligned(Start::of(reader)), *reader)).collect();
        own.sort_by(|(a, _), (b, _)| a.cmp(b));
        let offsets = own.iter().map(|(start, _)| start.offset(origin)).collect();
        let inputs = own.into_iter().map(|(_, reader)| reader).collect();
        Timeline { inputs, origin, uncertainty_ns: 0, offsets, ranks: None }
    }

    /// Matches the messages between the processes, so that waits in calls of MPI are shown. That reads all events once more, but only where
    /// there are several processes that have recorded such calls.
    pub fn with_ranks(self) -> Timeline<'a> {
        self.with(Wanted::Waits)
    }

    /// The same, and finds out what each call of MPI needs of other ranks: see [`Ranks::graph`].
    pub fn with_graph(self) -> Timeline<'a> {
        self.with(Wanted::Graph)
    }

    /// Like [`Timeline::with_ranks`], and finds out what each call of MPI does, and what communicators are called: for sinks that want
    /// [`Wants::MPI`](crate::model::Wants::MPI).
    pub fn with_messages(self) -> Timeline<'a> {
        self.with(Wanted::Events)
    }

    fn with(mut self, wanted: Wanted) -> Timeline<'a> {
        let inputs: Vec<(&Reader, Ns)> =
            self.inputs.iter().copied().zip(self.offsets.iter().copied()).collect();
        self.ranks = Ranks::of(&inputs, wanted);
        // What the program's run says of clocks is more exact than the time of day.
        let known = self.ranks.as_ref().and_then(|ranks| ranks.hosts?.error_ns);
        if self.uncertainty_ns > 0 {
            self.uncertainty_ns = known.unwrap_or(self.uncertainty_ns);
        }
        self
    }

    /// The messages between the processes, where they were matched.
    pub fn ranks(&self) -> Option<&Ranks> {
        self.ranks.as_ref()
    }

    /// Words about how far clocks of processes may be apart, of which it is known from their starts that it is no more than
    /// `uncertainty_ns`; `None` where they are one.
    pub fn alignment_note(&self, uncertainty_ns: u64) -> Option<String> {
        match self.ranks.as_ref().and_then(|ranks| ranks.hosts) {
            Some(hosts) => Some(hosts.note(uncertainty_ns)),
            None => alignment_note(uncertainty_ns),
        }
    }

    /// The corrected clock of a process, where it is on another host than the first.
    fn clock(&self, number: usize) -> Option<(&ClockMap, Ns)> {
        self.ranks.as_ref()?.clock(number)
    }

    /// The process of that number, and when its session began on the timeline.
    pub fn process(&self, number: usize) -> Option<(&'a Reader, Ns)> {
        let reader = *self.inputs.get(number)?;
        Some((reader, self.offsets[number]))
    }

    /// Interprets one process of `step`, beginning with that of number `first`, and hands them to `sink`, where they count
    /// up from 0. The report is of these only.
    pub fn replay(
        &self,
        first: usize,
        step: usize,
        symbols: &dyn Fn(&Reader) -> Table,
        manner: Manner,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(u64),
    ) -> Report {
        self.replay_parts((first, step), Selected::All, symbols, manner, sink, progress)
    }

    /// Interprets these excerpts of the only process, one after the other.
    pub fn replay_excerpts(
        &self,
        excerpts: &Excerpts,
        symbols: &dyn Fn(&Reader) -> Table,
        manner: Manner,
        sink: &mut dyn Sink,
    ) -> Report {
        match self.inputs[..] {
            [_] => {
                let excerpts = Selected::Excerpts(excerpts);
                self.replay_parts((0, 1), excerpts, symbols, manner, sink, &mut |_| {})
            }
            _ => Report::default(),
        }
    }

    /// Interprets `wanted` of the `segments` of the only process, one after the other. Wherever that begins, `sink` gets the same
    /// behind each [`Item::Segment`]. The report is of all events up to there.
    pub fn replay_segments(
        &self,
        segments: &Segments,
        wanted: Range<usize>,
        symbols: &dyn Fn(&Reader) -> Table,
        manner: Manner,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(u64),
    ) -> Report {
        match self.inputs[..] {
            [_] => {
                let segments = Selected::Segments(segments, wanted);
                self.replay_parts((0, 1), segments, symbols, manner, sink, progress)
            }
            _ => Report::default(),
        }
    }

    /// See [`Timeline::replay`]: one process of `step`, beginning with that of number `first`. Of each, what is `selected`.
    fn replay_parts(
        &self,
        (first, step): (usize, usize),
        selected: Selected<'_>,
        symbols: &dyn Fn(&Reader) -> Table,
        manner: Manner,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(u64),
    ) -> Report {
        let mut report = Report::default();
        if self.origin > 0 {
            sink.item(&Item::Start { realtime_ns: self.origin });
        }
        let mut stage = Stage::new(sink, manner);
        let mut done = 0;
        for (index, number) in (first..self.inputs.len()).step_by(step).zip(0..) {
            let reader = self.inputs[index];
            let pid = reader.header().pid;
            let mut before = self.inputs[..index].iter();
            let mut replay = ProcessReplay {
                reader,
                stage: &mut stage,
                id: ProcessId(number),
                has_namesake: before.any(|reader| reader.header().pid == pid),
                start: self.offsets[index],
                begin: self.clock(index).map_or(self.offsets[index], |(_, begin)| begin),
                clock: self.clock(index).map_or(reader.clock(), |(clock, _)| clock),
                is_corrected: self.clock(index).is_some(),
                mpi: MpiKnowledge::of(self.ranks.as_ref(), index),
                done,
                manner,
                segments: selected.segments(),
                excerpts: selected.excerpts(),
            };
            let process = replay.run(symbols(reader), &mut report.end, progress);
            done += process.events;
            report.processes.push(process);
        }
        if let Some(text) = self.alignment_note(self.uncertainty_ns).filter(|_| first == 0) {
            stage.item(&Item::Note(ProcessId(0), &text));
        }
        report
    }
}

/// One process being interpreted.
struct ProcessReplay<'a, 's> {
    reader: &'a Reader,
    stage: &'a mut Stage<'s>,
    id: ProcessId,
    /// Whether a process before this one has the same id of the operating system.
    has_namesake: bool,
    /// The session's start on the timeline, by the trace's own clock.
    start: Ns,
    /// The same by the corrected clock.
    begin: Ns,
    /// The process's clock, and whether it differs from the trace's own.
    clock: &'a ClockMap,
    is_corrected: bool,
    /// What is known of its calls of MPI.
    mpi: MpiKnowledge<'a>,
    /// Events of the processes before this one.
    done: u64,
    manner: Manner,
    /// The segments that it is interpreted in, and those that are wanted.
    segments: Option<(&'a Segments, Range<usize>)>,
    /// The excerpts that it is interpreted in.
    excerpts: Option<&'a Excerpts>,
}

/// The part of a process that is interpreted.
enum Selected<'s> {
    All,
    Segments(&'s Segments, Range<usize>),
    Excerpts(&'s Excerpts),
}

impl<'s> Selected<'s> {
    fn segments(&self) -> Option<(&'s Segments, Range<usize>)> {
        match self {
            Selected::Segments(segments, wanted) => Some((segments, wanted.clone())),
            _ => None,
        }
    }

    fn excerpts(&self) -> Option<&'s Excerpts> {
        match self {
            Selected::Excerpts(excerpts) => Some(excerpts),
            _ => None,
        }
    }
}

/// All of a process.
const WHOLE: Part = Part { from: 0, until: u64::MAX };

/// The result of reading a process's events.
struct Read {
    events: u64,
    /// By stream; empty where they are not wanted.
    counts: Vec<EventCounts>,
    /// Events that the tracer had lost.
    lost: u64,
    samples: SampleSums,
    devices: BTreeMap<i32, DeviceReport>,
    /// The last event's time.
    end: Ns,
    diagnostics: Vec<Diagnostic>,
    checkpoints: Vec<Packed>,
}

impl<'a> ProcessReplay<'a, '_> {
    fn run(&mut self, symbols: Table, end: &mut Ns, progress: &mut dyn FnMut(u64)) -> ProcessReport {
        let name = process_name(self.reader);
        let unnamed = symbols.problems().map(|(module, problem)| (module.path.clone(), problem)).collect();
        let metadata = self.reader.metadata();
        let reports = Reports::of(metadata);
        self.stage.begin_process(self.id, symbols, reports);
        let machine = metadata.machine.as_ref();
        let process = Process {
            id: self.id,
            name: name.clone(),
            os_pid: self.reader.header().pid,
            has_namesake: self.has_namesake,
            host: machine.map_or(String::new(), |machine| machine.host.clone()),
            rank: metadata.rank(),
            command_line: command_line(self.reader),
            exit_status: metadata.record.as_ref().and_then(|record| record.exit_status),
            processors: processors(metadata),
            lifetime: lifetime(self.reader, self.begin),
            reports,
            sampling_period_ns: metadata.sampling.as_ref().map_or(0, |it| it.period_ns),
            counters: metadata.counting.as_ref().map_or(Vec::new(), |it| it.counters.clone()),
            is_overwritten: is_overwritten(self.reader.diagnostics()),
        };
        self.stage.item(&Item::Process(&process));
        if self.stage.wants_mpi() {
            self.mpi.communicators().for_each(|it| self.stage.item(&Item::Communicator(it)));
        }
        let introductions = match &self.segments {
            Some((segments, _)) => segments.introductions.clone(),
            None => introductions(self.reader),
        };
        let (threads, thread_names) = self.locations(&introductions);
        let devices = self.devices(&introductions);
        let samples = Samples::new(&introductions, self.stage.wants_samples());
        let window = self.window(&introductions);
        energy::show(self.stage, metadata.record.as_ref(), self.clock());
        let of_process = (threads, thread_names, devices, samples);

        let read = if self.manner.ahead {
            Decoding::ahead(|decoding| self.interpret(of_process, window, decoding, progress))
        } else {
            self.interpret(of_process, window, Decoding::Here, progress)
        };
        *end = read.end.max(*end);

        let mut diagnostics = self.reader.diagnostics().to_vec();
        diagnostics.extend(read.diagnostics);
        let repairs = self.stage.repairs.clone();
        let runtime = self.reader.metadata().runtime.as_ref();
        let report = ProcessReport {
            name,
            runtime: runtime.map_or(String::new(), |runtime| runtime.version.clone()),
            ending: Some(self.reader.ending()),
            threads: introductions,
            events: read.events,
            counts: read.counts,
            lost: read.lost,
            samples: read.samples,
            failure: self.reader.metadata().failure_message(),
            paused: self.stage.pause.is_some(),
            repairs,
            devices: read.devices,
            diagnostics,
            unnamed,
            summarised: Vec::new(),
            checkpoints: read.checkpoints,
        };
        if !self.is_before_last() {
            for (_, note) in report.notes() {
                self.stage.item(&Item::Note(self.id, &note));
            }
            let summary = self.summary(&report, read.end);
            self.stage.item(&Item::Summary(self.id, &summary));
        }
        report
    }

    fn summary(&self, report: &ProcessReport, end: Ns) -> Summary {
        let metadata = self.reader.metadata();
        let runtime = metadata.runtime.as_ref();
        let is_damage = |diagnostic: &&Diagnostic| diagnostic.severity > Severity::Note;
        let repairs = report.repairs.iter();
        Summary {
            tracer: metadata.tracer.clone().unwrap_or_default(),
            runtime: report.runtime.clone(),
            dialect: runtime.map_or(String::new(), |runtime| runtime.dialect.clone()),
            end,
            events: report.events,
            lost: report.lost,
            samples: report.samples,
            damages: report.diagnostics.iter().filter(is_damage).count() as u64,
            repairs: repairs.map(|repair| (repair.cause.name(), repair.count)).collect(),
        }
    }

    /// Whether there are segments behind those that are wanted.
    fn is_before_last(&self) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|(segments, wanted)| wanted.end < segments.count())
    }

    fn clock(&self) -> SessionClock<'a> {
        SessionClock { map: self.clock, start: self.start }
    }

    /// The time that is wanted, where events outside of it need not be read. Those of devices and of samples come later than what
    /// they are about.
    fn window(&self, introductions: &[ThreadIntroduction]) -> Option<(Ns, Ns)> {
        let is_late =
            |thread: &ThreadIntroduction| thread.device_num.is_some() || thread.samples_of.is_some();
        let window = self.manner.window;
        window.filter(|_| !introductions.iter().any(is_late))
    }

    /// Interprets all events, or those that a window needs.
    fn interpret(
        &mut self,
        (threads, thread_names, devices, samples): (Vec<Thread>, Vec<String>, Devices, Samples),
        window: Option<(Ns, Ns)>,
        decoding: Decoding<'_, 'a>,
        progress: &mut dyn FnMut(u64),
    ) -> Read {
        let is_before_last = self.is_before_last();
        let wanted = self.segments.as_ref().map_or(0..1, |(_, wanted)| wanted.clone());
        let segments = self.segments.as_ref().map(|(segments, _)| *segments);
        let (reader, clock) = (self.reader, self.clock());
        let texts = match segments {
            Some(segments) => Arc::clone(&segments.texts),
            None => Arc::new(Texts::of(reader)),
        };
        // Checkpoints have times of the trace's own clock, and know nothing of ranges word for word.
        let has_checkpoints = !self.is_corrected && !self.stage.wants_annotations();
        let mut interpreter = Interpreter::new(
            self.stage,
            reader.metadata(),
            clock,
            threads,
            thread_names,
            devices,
            repeated_forks(reader),
        )
        .with_samples(samples)
        .with_mpi(self.mpi)
        .with_texts(texts);
        let end_of = |segment| segments.map_or(u64::MAX, |segments| segments.end(segment));
        let mut segment = wanted.start;
        let mut end_of_segment = end_of(segment);
        let begun = segments.filter(|segments| segments.begin(segment).is_some());
        let restart = match begun {
            Some(segments) => segments.restart(reader, segment),
            None => window
                .filter(|_| has_checkpoints)
                .and_then(|(begin, _)| Restart::before(reader, clock, begin)),
        };
        let extent = Extent {
            from: restart.as_ref().map_or(0, |restart| restart.ticks),
            until: window.map_or(Ns::MAX, |(_, end)| end),
        };
        let mut events = 0;
        if let Some(restart) = restart {
            interpreter.begin_at(&restart);
            events = restart.events_before();
            if begun.is_some() {
                interpreter.begin_segment();
            }
        }
        let distance = self.manner.checkpoints;
        let mut recorder = distance.map(|distance| Recorder::new(reader, distance));
        let excerpts = self.excerpts;
        let parts = excerpts.map_or(&[WHOLE][..], Excerpts::parts);
        if let Some(excerpts) = excerpts {
            excerpts.first_modules(reader).for_each(|module| interpreter.know_module(&module));
        }
        let mut diagnostics = Vec::new();
        let mut end = self.begin;
        let streams = if self.manner.counts { reader.streams().len() } else { 0 };
        let mut counts = vec![EventCounts::default(); streams];
        // What is repaired behind the window may be repaired only since not all is read there.
        let mut repairs = None;
        let noted_from = match recorder {
            Some(_) => Ns::MIN,
            None => extent.until,
        };
        let mut is_over = false;
        for part in parts {
            let extent = match excerpts {
                Some(_) => part.extent(clock),
                None => extent,
            };
            // An excerpt ends as a segment does, so that the loop compares each time with one end.
            if excerpts.is_some() {
                end_of_segment = part.until;
            }
            let mut merge = Merge::new(reader, clock, extent, decoding);
            'part: while let Some(run) = merge.next_run() {
                if let Some(counts) = counts.get_mut(run.thread) {
                    let all = run.events.iter();
                    all.for_each(|timed| counts.add(&timed.record.event));
                }
                'event: for timed in run.events {
                    while timed.record.ticks >= end_of_segment {
                        if let Some(excerpts) = excerpts {
                            // Behind an excerpt, threads only leave what is over.
                            match excerpts.is_main(run.thread) || begins_something(&timed.record.event) {
                                true => continue 'event,
                                false => break,
                            }
                        }
                        segment += 1;
                        if segment == wanted.end {
                            is_over = true;
                            break 'part;
                        }
                        end_of_segment = end_of(segment);
                        interpreter.begin_segment();
                    }
                    end = timed.time;
                    if end >= noted_from {
                        if end >= extent.until && repairs.is_none() {
                            repairs = Some(interpreter.repairs().clone());
                        }
                        if let Some(recorder) = &mut recorder {
                            recorder.before(&interpreter, run.thread, timed);
                        }
                    }
                    if timed.was_raised {
                        interpreter.repair(run.thread, end, Cause::TimeWentBack);
                    }
                    interpreter.event(run.thread, end, &timed.record.event);
                }
                let steps_before = events / STEP;
                events += run.events.len() as u64;
                if events / STEP != steps_before {
                    progress(self.done + events);
                    if interpreter.sink_failed() {
                        is_over = true;
                        break;
                    }
                }
            }
            diagnostics.extend(merge.take_diagnostics());
            if is_over {
                break;
            }
        }
        // Segments may have no events where the file was changed meanwhile.
        while segment + 1 < wanted.end {
            segment += 1;
            interpreter.begin_segment();
        }
        let samples = interpreter.sample_sums();
        let (lost, devices) = match is_before_last {
            true => interpreter.end_segment(),
            false => interpreter.finish(end),
        };
        if let Some(repairs) = repairs {
            self.stage.repairs = repairs;
        }
        Read {
            events,
            counts,
            lost,
            samples,
            devices,
            end,
            diagnostics,
            checkpoints: recorder.map_or(Vec::new(), Recorder::finish),
        }
    }

    /// Defines the threads' locations in the order of display; gives them in the order of streams.
    fn locations(&mut self, threads: &[ThreadIntroduction]) -> (Vec<Thread>, Vec<String>) {
        // By the place of the stream.
        let mut locations = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for index in display_order(threads) {
            let thread = &threads[index];
            let location = match thread.device_num {
                Some(device_num) => {
                    let mut name = device_name(device_num, device_type(self.reader, device_num));
                    // A device that was finalized and initialized again.
                    if !seen.insert(device_num) {
                        name = format!("{name}, stream {}", thread.stream);
                    }
                    self.stage.location(LocationKind::Device { device_num }, name)
                }
                None => {
                    let kind = LocationKind::Thread {
                        os_tid: thread.os_tid,
                        stream: thread.stream,
                        role: thread.role(),
                    };
                    self.stage.location(kind, thread.name.clone())
                }
            };
            locations.insert(index, location);
        }
        // Streams come in the order of their numbers.
        let place_of = |stream| threads.binary_search_by_key(&stream, |thread| thread.stream).ok();
        let new_thread = |(index, thread): (usize, &ThreadIntroduction)| {
            let sampled = thread.samples_of.and_then(place_of);
            let location = locations[&sampled.unwrap_or(index)];
            Thread::new(location, thread.stream, thread.is_helper, self.begin)
        };
        let states = threads.iter().enumerate().map(new_thread).collect();
        (states, threads.iter().map(|thread| thread.name.clone()).collect())
    }

    fn devices(&self, threads: &[ThreadIntroduction]) -> Devices {
        let is_device: Vec<bool> = threads.iter().map(|thread| thread.device_num.is_some()).collect();
        let survey = Survey::of(self.reader, &is_device);
        let known = &self.reader.metadata().devices;
        let types = known.iter().map(|(number, device)| (*number, device.r#type.clone()));
        let tracks = threads.iter().filter_map(|thread| thread.device_num);
        let streams = threads.iter().map(|thread| thread.stream);
        Devices::new(survey, types.collect(), tracks, streams)
    }
}

/// The runtime's word for the device; empty where it is not known.
fn device_type(reader: &Reader, device_num: i32) -> &str {
    let device = reader.metadata().devices.get(&device_num);
    device.map_or("", |device| &device.r#type)
}
