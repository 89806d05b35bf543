//! Reads the streams of each process in the order of time, and interprets them into a sink.

use std::collections::{BTreeMap, BTreeSet};

use omptrace_symbols::Table;
use omptrace_trace_format::{Diagnostic, Reader, Severity};

use crate::devices::{DeviceReport, Devices, Survey, device_name};
use crate::emitter::Stage;
use crate::interpret::collector::repeated_forks;
use crate::interpret::{Interpreter, SessionClock};
use crate::locations::{ThreadIntroduction, display_order, introductions};
use crate::merge::Merge;
use crate::repair::Cause;
use crate::report::{ProcessReport, Report, is_overwritten};
use crate::reports::Reports;
use crate::sink::{Lifetime, LocationId, LocationKind, Ns, Process, ProcessId, Sink, Summary};
use crate::stream::Decoding;
use crate::thread::Thread;

/// Events between two looks at progress and at the sink's state.
const STEP: u64 = 1 << 14;

/// Interprets `inputs` as one timeline and hands it to `sink`, which is not finished. `progress` is called now and then
/// with the number of events done.
///
/// Processes are ordered by rank, then start; their times are aligned by the system's real-time clock. Code has the
/// names that the traces brought along.
pub fn replay(inputs: &[&Reader], sink: &mut dyn Sink, progress: &mut dyn FnMut(u64)) -> Report {
    let brought_along =
        |reader: &Reader| Table::from_metadata(reader.metadata()).unwrap_or_default();
    replay_with(inputs, &brought_along, Manner::default(), sink, progress)
}

/// How to interpret.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Show each chunk of a loop that is not static.
    pub chunks: bool,
    /// Leave out what lies in more regions than these.
    pub max_depth: Option<usize>,
    /// Let another thread decode.
    pub ahead: bool,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner {
            chunks: false,
            max_depth: None,
            ahead: omptrace_common::thread_pool::processors() > 1,
        }
    }
}

/// As [`replay`], with the names that `symbols` gives.
pub fn replay_with(
    inputs: &[&Reader],
    symbols: &dyn Fn(&Reader) -> Table,
    manner: Manner,
    sink: &mut dyn Sink,
    progress: &mut dyn FnMut(u64),
) -> Report {
    let timeline = Timeline::of(inputs);
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
}

impl<'a> Timeline<'a> {
    /// The timeline of `inputs`, whose clocks are aligned.
    pub fn of(inputs: &[&'a Reader]) -> Timeline<'a> {
        let mut inputs = inputs.to_vec();
        inputs.sort_by_key(|reader| {
            let rank = reader
                .metadata()
                .process
                .as_ref()
                .and_then(|process| process.rank);
            (
                rank.is_none(),
                rank,
                reader.clock().start_realtime_ns(),
                reader.header().pid,
                reader.path().to_owned(),
            )
        });
        let starts = inputs
            .iter()
            .map(|reader| reader.clock().start_realtime_ns());
        Timeline {
            origin: starts.filter(|start| *start > 0).min().unwrap_or(0),
            uncertainty_ns: uncertainty(&inputs),
            inputs,
        }
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
        let mut report = Report::default();
        if self.origin > 0 {
            sink.start(self.origin);
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
                start: offset(reader, self.origin),
                done,
                ahead: manner.ahead,
            };
            let process = replay.run(symbols(reader), &mut report.end, progress);
            done += process.events;
            report.processes.push(process);
        }
        if first == 0 && self.uncertainty_ns > 0 {
            let text = format!(
                "the clocks of the processes were aligned by the time of day; they may be {} ns apart, and more where \
                 the hosts' clocks disagree",
                self.uncertainty_ns
            );
            stage.sink.note(ProcessId(0), &text);
        }
        report
    }
}

/// When the session began on a timeline that starts at `origin`; 0 where the trace does not say.
fn offset(reader: &Reader, origin: u64) -> Ns {
    let start = reader.clock().start_realtime_ns();
    i64::try_from(start.saturating_sub(origin)).unwrap_or(0)
}

/// The two least certain clocks may err in opposite directions.
fn uncertainty(inputs: &[&Reader]) -> u64 {
    let mut each: Vec<u64> = inputs
        .iter()
        .map(|reader| reader.clock().realtime_uncertainty_ns())
        .collect();
    each.sort_unstable_by(|a, b| b.cmp(a));
    match each[..] {
        [first, second, ..] => first.saturating_add(second),
        _ => 0,
    }
}

/// One process being interpreted.
struct ProcessReplay<'a, 's> {
    reader: &'a Reader,
    stage: &'a mut Stage<'s>,
    id: ProcessId,
    /// Whether a process before this one has the same id of the operating system.
    has_namesake: bool,
    /// The session's start on the timeline.
    start: Ns,
    /// Events of the processes before this one.
    done: u64,
    /// Let another thread decode.
    ahead: bool,
}

/// What came of reading a process's events.
struct Read {
    events: u64,
    /// Events that the tracer had lost.
    lost: u64,
    devices: BTreeMap<i32, DeviceReport>,
    /// The last event's time.
    end: Ns,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> ProcessReplay<'a, '_> {
    fn run(
        &mut self,
        symbols: Table,
        end: &mut Ns,
        progress: &mut dyn FnMut(u64),
    ) -> ProcessReport {
        let name = process_name(self.reader);
        let unnamed = symbols
            .problems()
            .map(|(module, problem)| (module.path.clone(), problem))
            .collect();
        self.stage.begin_process(self.id, symbols);
        let metadata = self.reader.metadata();
        let machine = metadata.machine.as_ref();
        let process = Process {
            id: self.id,
            name: name.clone(),
            os_pid: self.reader.header().pid,
            has_namesake: self.has_namesake,
            host: machine.map_or(String::new(), |machine| machine.host.clone()),
            rank: metadata.process.as_ref().and_then(|process| process.rank),
            command_line: command_line(self.reader),
            exit_status: metadata
                .record
                .as_ref()
                .and_then(|record| record.exit_status),
            lifetime: lifetime(self.reader, self.start),
            reports: Reports::of(metadata),
            is_overwritten: is_overwritten(self.reader.diagnostics()),
        };
        self.stage.sink.process(&process);
        let introductions = introductions(self.reader);
        let (threads, thread_names) = self.locations(&introductions);
        let devices = self.devices(&introductions);

        let read = if self.ahead {
            Decoding::ahead(|decoding| {
                self.interpret(threads, thread_names, devices, decoding, progress)
            })
        } else {
            self.interpret(threads, thread_names, devices, Decoding::Here, progress)
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
            events: read.events,
            lost: read.lost,
            failure: self.reader.metadata().failure_message(),
            paused: self.stage.pause.is_some(),
            repairs,
            devices: read.devices,
            diagnostics,
            unnamed,
        };
        for (_, note) in report.notes() {
            self.stage.sink.note(self.id, &note);
        }
        self.stage
            .sink
            .summary(self.id, &self.summary(&report, read.end));
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
            damages: report.diagnostics.iter().filter(is_damage).count() as u64,
            repairs: repairs
                .map(|repair| (repair.cause.name(), repair.count))
                .collect(),
        }
    }

    /// Interprets all events.
    fn interpret(
        &mut self,
        threads: Vec<Thread>,
        thread_names: Vec<String>,
        devices: Devices,
        decoding: Decoding<'_, 'a>,
        progress: &mut dyn FnMut(u64),
    ) -> Read {
        let reader = self.reader;
        let clock = SessionClock {
            map: reader.clock(),
            start: self.start,
        };
        let mut interpreter = Interpreter::new(
            self.stage,
            reader.metadata(),
            clock,
            threads,
            thread_names,
            devices,
            repeated_forks(reader),
        );
        let mut merge = Merge::new(reader, clock, decoding);
        let (mut events, mut end) = (0, self.start);
        while let Some(run) = merge.next_run() {
            for timed in run.events {
                end = timed.time;
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
                    break;
                }
            }
        }
        let (lost, devices) = interpreter.finish(end);
        Read {
            events,
            lost,
            devices,
            end,
            diagnostics: merge.take_diagnostics(),
        }
    }

    /// Defines the threads' locations in the order of display; gives them in the order of streams.
    fn locations(&mut self, threads: &[ThreadIntroduction]) -> (Vec<Thread>, Vec<String>) {
        let mut by_stream = BTreeMap::new();
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
                    self.stage
                        .location(LocationKind::Device { device_num }, name)
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
            by_stream.insert(index, location);
        }
        let new_thread = |(thread, location): (&ThreadIntroduction, LocationId)| {
            Thread::new(location, thread.stream, thread.is_helper, self.start)
        };
        let states = threads
            .iter()
            .zip(by_stream.into_values())
            .map(new_thread)
            .collect();
        (
            states,
            threads.iter().map(|thread| thread.name.clone()).collect(),
        )
    }

    fn devices(&self, threads: &[ThreadIntroduction]) -> Devices {
        let is_device: Vec<bool> = threads
            .iter()
            .map(|thread| thread.device_num.is_some())
            .collect();
        let survey = Survey::of(self.reader, &is_device);
        let known = &self.reader.metadata().devices;
        let types = known
            .iter()
            .map(|(number, device)| (*number, device.r#type.clone()));
        let tracks = threads.iter().filter_map(|thread| thread.device_num);
        Devices::new(survey, types.collect(), tracks, threads.len())
    }
}

/// The runtime's word for the device; empty where it is not known.
fn device_type(reader: &Reader, device_num: i32) -> &str {
    let device = reader.metadata().devices.get(&device_num);
    device.map_or("", |device| &device.r#type)
}

/// When the process lived, on a timeline on which its session starts at `start`.
pub fn lifetime(reader: &Reader, start: Ns) -> Lifetime {
    let metadata = reader.metadata();
    let zero = i64::try_from(reader.clock().start_raw_ns()).unwrap_or(0);
    let on_timeline = |raw_ns: i64| raw_ns.saturating_sub(zero).saturating_add(start);
    let reading = |raw_ns: Option<u64>| i64::try_from(raw_ns?).ok().map(on_timeline);
    let record = metadata.record.as_ref();
    let seen = record.and_then(|record| reading(record.started_raw_ns));
    let told = metadata.process.as_ref();
    let told = told.and_then(|process| process.started_raw_ns.map(on_timeline));
    // Neither is after the true start, so the later is the better. And the tracer was there after it.
    let started = seen
        .max(told)
        .filter(|started| *started <= start && zero > 0);
    // A session without an end was killed, and what its threads did then is not known.
    let end = metadata.end.as_ref().filter(|_| metadata.failure.is_none());
    let ended = end.and_then(|end| {
        let tracer = reading(end.raw_ns);
        let process = record.and_then(|record| reading(record.ended_raw_ns));
        tracer.max(process).filter(|_| zero > 0)
    });
    Lifetime {
        traced_from: start,
        started,
        ended,
    }
}

fn command_line(reader: &Reader) -> Vec<String> {
    let process = reader.metadata().process.as_ref();
    process.map_or(Vec::new(), |process| process.command_line.clone())
}

/// The program, its rank where it has one, and its process id.
pub fn process_name(reader: &Reader) -> String {
    let pid = reader.header().pid;
    let Some(process) = &reader.metadata().process else {
        return format!("process {pid}");
    };
    let program = process.executable.rsplit('/').next().unwrap_or_default();
    match process.rank {
        Some(rank) => format!("rank {rank}: {program} ({pid})"),
        None => format!("{program} ({pid})"),
    }
}
