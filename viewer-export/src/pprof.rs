//! Profiles for `go tool pprof`, and for other programs that read its files, such as speedscope, Grafana and editors.
//! The format is [profile.proto](https://github.com/google/pprof/blob/main/proto/profile.proto):
//!
//! ```text
//! Profile --> sample --> locations, innermost first; values; labels
//!                            location --> line --> function --> name, file
//! ```
//!
//! The values of a sample are a count and the CPU time. Its labels are the thread, the process if there are several,
//! and `openmp`: `work` or `wait`, as defined in the Collector API's paper. All texts are in one table, and are
//! referred to by index.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use omptrace_timeline::model::{Function, Item, Location, Ns, Process, Sample, Sink, StackFrame, Wants};

use crate::phase_frames;
use crate::writer::output::Output;
use crate::writer::protobuf as pb;

/// The numbers of the fields that are written.
mod field {
    crate::writer::protobuf::messages! {
        /// `Profile`
        profile {
            SAMPLE_TYPE = 1,
            SAMPLE = 2,
            MAPPING = 3,
            LOCATION = 4,
            FUNCTION = 5,
            STRING_TABLE = 6,
            TIME_NANOS = 9,
            DURATION_NANOS = 10,
            PERIOD_TYPE = 11,
            PERIOD = 12,
            COMMENT = 13,
            DEFAULT_SAMPLE_TYPE = 14,
        }
        /// `ValueType`
        value_type { TYPE = 1, UNIT = 2, }
        /// `Sample`
        sample { LOCATION_ID = 1, VALUE = 2, LABEL = 3, }
        /// `Label`
        label { KEY = 1, STR = 2, }
        /// `Mapping`
        mapping {
            ID = 1,
            FILENAME = 5,
            HAS_FUNCTIONS = 7,
            HAS_FILENAMES = 8,
            HAS_LINE_NUMBERS = 9,
            HAS_INLINE_FRAMES = 10,
        }
        /// `Location`
        location { ID = 1, MAPPING_ID = 2, LINE = 4, }
        /// `Line`
        line { FUNCTION_ID = 1, LINE = 2, }
        /// `Function`
        function { ID = 1, NAME = 2, FILENAME = 4, }
    }
}

/// The texts of a profile. The first is empty.
struct Texts {
    all: Vec<String>,
    places: HashMap<String, u64>,
}

impl Texts {
    fn new() -> Texts {
        let mut texts = Texts { all: Vec::new(), places: HashMap::new() };
        texts.number("");
        texts
    }

    /// The number of a text.
    fn number(&mut self, text: &str) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}

/// Where samples were taken: thread, whether the samples are OpenMP Work, and stack, innermost frame first.
type Place = (usize, bool, Vec<StackFrame>);

/// Writes a profile for pprof.
pub(crate) struct Pprof {
    out: Output,
    has_phases: bool,
    /// In nanoseconds since 1970.
    start: u64,
    end: Ns,
    period_ns: u64,
    processes: Vec<Process>,
    /// Process and name of each location.
    threads: Vec<(usize, String)>,
    functions: Vec<Function>,
    /// Count and CPU time.
    samples: BTreeMap<Place, (u64, u64)>,
}

impl Pprof {
    /// `has_phases`: stacks start with the phases of the program.
    pub(crate) fn new(out: Output, has_phases: bool) -> Pprof {
        Pprof {
            out,
            has_phases,
            start: 0,
            end: 0,
            period_ns: 0,
            processes: Vec::new(),
            threads: Vec::new(),
            functions: Vec::new(),
            samples: BTreeMap::new(),
        }
    }

    fn process(&mut self, process: &Process) {
        self.period_ns = self.period_ns.max(process.sampling_period_ns);
        self.processes.push(process.clone());
    }

    fn location(&mut self, location: &Location) {
        let process = location.process.0 as usize;
        self.threads.push((process, location.name.clone()));
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let thread = sample.at.location.0 as usize;
        let process = &self.processes[self.threads[thread].0];
        let stack = sample.stack.iter().rev().copied().collect();
        let place = (thread, sample.is_work(), stack);
        let (count, ns) = self.samples.entry(place).or_default();
        *count = count.saturating_add(sample.periods(process.sampling_period_ns));
        *ns = ns.saturating_add(sample.weight_ns);
    }

    /// The whole profile.
    fn profile(&self) -> Vec<u8> {
        use field::profile::*;

        let mut texts = Texts::new();
        let mut out = Vec::new();
        let cpu = texts.number("cpu");
        let nanoseconds = texts.number("nanoseconds");
        let count = [texts.number("samples"), texts.number("count")];
        for types in [count, [cpu, nanoseconds]] {
            pb::message(&mut out, SAMPLE_TYPE, |out| value_type(out, types));
        }
        let mut frames: BTreeMap<StackFrame, u64> = BTreeMap::new();
        for (place, values) in &self.samples {
            pb::message(&mut out, SAMPLE, |out| {
                self.write_sample(out, &mut texts, &mut frames, place, *values);
            });
        }
        let modules = self.modules();
        for (module, id) in modules.iter().zip(1..) {
            let name = texts.number(module);
            pb::message(&mut out, MAPPING, |out| mapping(out, id, name));
        }
        for (frame, id) in &frames {
            let module = &*self.functions[frame.function.0 as usize].module;
            // Activities of the runtime are not in a module.
            let place = modules.iter().position(|known| *known == module);
            let mapping = place.map_or(0, |place| place as u64 + 1);
            pb::message(&mut out, LOCATION, |out| location(out, *id, mapping, frame));
        }
        let names = phase_frames::names(&self.functions);
        for (number, (function, name)) in (1..).zip(self.functions.iter().zip(&names)) {
            let name = texts.number(name);
            let file = texts.number(function.file.as_deref().unwrap_or_default());
            pb::message(&mut out, FUNCTION, |out| {
                pb::uint(out, field::function::ID, number);
                // Without a system name, pprof uses the name unchanged; otherwise, it would remove the parts in angle
                // brackets.
                pb::uint(out, field::function::NAME, name);
                pb::uint(out, field::function::FILENAME, file);
            });
        }
        pb::uint(&mut out, TIME_NANOS, self.start);
        pb::int(&mut out, DURATION_NANOS, self.end);
        pb::message(&mut out, PERIOD_TYPE, |out| value_type(out, [cpu, nanoseconds]));
        pb::uint(&mut out, PERIOD, self.period_ns);
        for process in &self.processes {
            let comment = texts.number(&process.name);
            pb::uint(&mut out, COMMENT, comment);
        }
        pb::uint(&mut out, DEFAULT_SAMPLE_TYPE, cpu);
        for text in &texts.all {
            pb::text(&mut out, STRING_TABLE, text);
        }
        out
    }

    /// The modules of functions. The first must be the program.
    fn modules(&self) -> Vec<&str> {
        let modules = self.functions.iter().map(|function| &*function.module);
        let modules: BTreeSet<&str> = modules.filter(|module| !module.is_empty()).collect();
        let mut modules: Vec<&str> = modules.into_iter().collect();
        let is_program = |module: &str| {
            let name = module.rsplit('/').next().unwrap_or_default();
            let mut processes = self.processes.iter();
            processes.any(|process| process.name_beside_id().ends_with(name))
        };
        modules.sort_by_key(|module| !is_program(module));
        modules
    }

    fn write_sample(
        &self,
        out: &mut Vec<u8>,
        texts: &mut Texts,
        frames: &mut BTreeMap<StackFrame, u64>,
        (thread, is_work, stack): &Place,
        (count, ns): (u64, u64),
    ) {
        use field::sample::*;

        for frame in stack {
            let next = frames.len() as u64 + 1;
            pb::uint(out, LOCATION_ID, *frames.entry(*frame).or_insert(next));
        }
        pb::uint(out, VALUE, count);
        pb::uint(out, VALUE, ns);
        let (process, name) = &self.threads[*thread];
        let work = match is_work {
            true => "work",
            false => "wait",
        };
        let mut labels = vec![("thread", &**name), ("openmp", work)];
        if self.processes.len() > 1 {
            labels.push(("process", &self.processes[*process].name));
        }
        for (key, value) in labels {
            let (key, value) = (texts.number(key), texts.number(value));
            pb::message(out, LABEL, |out| {
                pb::uint(out, field::label::KEY, key);
                pb::uint(out, field::label::STR, value);
            });
        }
    }
}

fn value_type(out: &mut Vec<u8>, [kind, unit]: [u64; 2]) {
    pb::uint(out, field::value_type::TYPE, kind);
    pb::uint(out, field::value_type::UNIT, unit);
}

/// A frame at a line of a function. All names are known, so pprof need not look them up.
fn location(out: &mut Vec<u8>, id: u64, mapping: u64, frame: &StackFrame) {
    use field::location::*;

    pb::uint(out, ID, id);
    if mapping > 0 {
        pb::uint(out, MAPPING_ID, mapping);
    }
    pb::message(out, LINE, |out| {
        pb::uint(out, field::line::FUNCTION_ID, u64::from(frame.function.0) + 1);
        pb::uint(out, field::line::LINE, frame.line.unwrap_or(0).into());
    });
}

fn mapping(out: &mut Vec<u8>, id: u64, name: u64) {
    use field::mapping::*;

    pb::uint(out, ID, id);
    pb::uint(out, FILENAME, name);
    for known in [HAS_FUNCTIONS, HAS_FILENAMES, HAS_LINE_NUMBERS, HAS_INLINE_FRAMES] {
        pb::uint(out, known, 1);
    }
}

impl Sink for Pprof {
    fn wants(&self) -> Wants {
        phase_frames::wanted(self.has_phases)
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Start { realtime_ns } => self.start = *realtime_ns,
            Item::Process(process) => self.process(process),
            Item::Location(location) => self.location(location),
            Item::Function(function) => self.functions.push((*function).clone()),
            Item::Sample(sample) => self.sample(sample),
            Item::Summary(_, summary) => self.end = self.end.max(summary.end),
            _ => {}
        }
    }

    fn failed(&self) -> bool {
        self.out.failed()
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let profile = self.profile();
        self.out.buffer().extend_from_slice(&profile);
        self.out.written();
        self.out.finish()
    }
}
