//! The values of settings: which are allowed, and how they are parsed and described.

use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::counters::{COUNTERS, Counter, MAX_COUNTERS};

/// How the command line treats values of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// One of several words, each with its help.
    Choice(&'static [(&'static str, &'static str)]),
    /// The name of a file, with `%` patterns.
    Pattern,
    /// A directory that exists.
    Folder,
    /// A list of callbacks and their groups.
    Events,
    /// A list of patterns, which may start with a minus.
    Patterns,
}

/// The value of a setting.
pub trait Value: Sized {
    /// How the command line treats the value.
    const KIND: Kind = Kind::Text;
    /// A description of the allowed values.
    fn allowed() -> String;
    /// Parses a value; `None` if it is not allowed.
    fn parse(text: &OsStr) -> Option<Self>;
    /// The value as in the trace's metadata.
    fn describe(&self) -> String;
}

/// A setting without a default: an empty text means no value.
impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;

    fn allowed() -> String {
        T::allowed()
    }

    fn parse(text: &OsStr) -> Option<Self> {
        match text.is_empty() {
            true => Some(None),
            false => T::parse(text).map(Some),
        }
    }

    fn describe(&self) -> String {
        self.as_ref().map(T::describe).unwrap_or_default()
    }
}

/// Turns words into an enum that is a [`Value`].
macro_rules! choices {
    ($(
        $(#[doc = $doc:literal])+
        $type:ident { $( #[doc = $help:literal] $name:ident = $word:literal, )* }
    )*) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $( #[doc = $help] $name, )* }

        impl Value for $type {
            const KIND: Kind = Kind::Choice(&[$(($word, $help)),*]);

            fn allowed() -> String {
                [$($word),*].join(", ")
            }

            fn parse(text: &OsStr) -> Option<Self> {
                match text.to_str()? {
                    $($word => Some($type::$name),)*
                    _ => None,
                }
            }

            fn describe(&self) -> String {
                match self {
                    $($type::$name => $word.to_owned(),)*
                }
            }
        }
    )*};
}

choices! {
    /// The action of a thread when its chunk is full and no other is free.
    OnFull {
        /// The thread writes the events itself, so no events are lost
        Write = "write",
        /// Events are dropped and counted
        Drop = "drop",
    }
    /// The part of a run that is kept.
    Keep {
        /// Every event
        All = "record",
        /// The newest events of each thread, as many as its memory holds: a flight recorder
        Newest = "flight",
    }
    /// A signal at which a flight recorder writes what it keeps.
    FlushSignal {
        /// SIGUSR2
        Usr2 = "SIGUSR2",
    }
    /// The messages on stderr.
    LogLevel {
        /// Nothing
        Quiet = "quiet",
        /// What costs the user events or the trace
        Warn = "warn",
        /// Also where the trace is
        Info = "info",
    }
    /// Whether something is on.
    Switch {
        /// Off
        Off = "0",
        /// On
        On = "1",
    }
}

/// A file name with `%` patterns, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(pub OsString);

impl Value for Pattern {
    const KIND: Kind = Kind::Pattern;

    fn allowed() -> String {
        "a file name; %e is the program, %h the host, %p the process id, %r the MPI rank, %t the start time, %% a percent sign"
            .to_owned()
    }

    fn parse(text: &OsStr) -> Option<Self> {
        Some(Pattern(text.to_owned()))
    }

    fn describe(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

/// A library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library(pub PathBuf);

impl Value for Library {
    fn allowed() -> String {
        "a library".to_owned()
    }

    fn parse(text: &OsStr) -> Option<Self> {
        Some(Library(text.into()))
    }

    fn describe(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

/// A folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(pub PathBuf);

impl Value for Folder {
    const KIND: Kind = Kind::Folder;

    fn allowed() -> String {
        "a directory".to_owned()
    }

    fn parse(text: &OsStr) -> Option<Self> {
        Some(Folder(text.into()))
    }

    fn describe(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

/// A list of callbacks and groups. Only the tracer knows their names, so only it checks them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventList(pub String);

impl Value for EventList {
    const KIND: Kind = Kind::Events;

    fn allowed() -> String {
        "a comma-separated list of `default`, `all`, `state`, groups and callbacks; an item with a leading `-` is excluded"
            .to_owned()
    }

    fn parse(text: &OsStr) -> Option<Self> {
        Some(EventList(text.to_str()?.to_owned()))
    }

    fn describe(&self) -> String {
        self.0.clone()
    }
}

/// A size in bytes between `MIN` and `MAX`, such as `256K`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes<const MIN: usize, const MAX: usize>(pub usize);

impl<const MIN: usize, const MAX: usize> Value for Bytes<MIN, MAX> {
    fn allowed() -> String {
        let (min, max) = (in_units(MIN), in_units(MAX));
        format!("a number of bytes from {min} to {max}, with an optional suffix K, M or G")
    }

    fn parse(text: &OsStr) -> Option<Self> {
        let bytes = parse_bytes(text.to_str()?)?;
        (MIN..=MAX).contains(&bytes).then_some(Bytes(bytes))
    }

    fn describe(&self) -> String {
        self.0.to_string()
    }
}

/// A size in the largest unit that divides it.
fn in_units(bytes: usize) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let unit = units.iter().find(|(shift, _)| bytes.is_multiple_of(1 << shift));
    unit.map_or(bytes.to_string(), |(shift, name)| format!("{}{name}", bytes >> shift))
}

fn parse_bytes(text: &str) -> Option<usize> {
    let shift = match text.bytes().last()?.to_ascii_uppercase() {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        _ => 0,
    };
    let digits = if shift == 0 { text } else { &text[..text.len() - 1] };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

/// Which thread packs chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compress {
    /// The writer thread, at this zstd level, with low priority.
    Level(i32),
    /// None: threads write their own chunks unpacked.
    Off,
}

impl Value for Compress {
    fn allowed() -> String {
        "auto, off, 1 to 19".to_owned()
    }

    fn parse(text: &OsStr) -> Option<Self> {
        match text.to_str()? {
            "auto" => Some(Compress::Level(1)),
            "off" => Some(Compress::Off),
            level => {
                let level = level.parse().ok()?;
                (1..=19).contains(&level).then_some(Compress::Level(level))
            }
        }
    }

    fn describe(&self) -> String {
        match self {
            Compress::Level(level) => level.to_string(),
            Compress::Off => "off".to_owned(),
        }
    }
}

/// Whether call stacks are sampled, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// No samples.
    Off,
    /// With samples.
    On(Sampling),
}

/// How call stacks are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The clock that triggers samples.
    pub clock: SamplingClock,
    /// Samples per second of a thread's time on this clock.
    pub rate: u32,
    /// Whether the call stacks of task creations are recorded, too.
    pub task_stacks: bool,
}

/// The clock that triggers samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingClock {
    /// A timer on the thread's CPU time, with the resolution of the kernel's clock tick.
    Cpu,
    /// `perf_event_open`'s clock of the thread's CPU time in user mode.
    Perf,
}

impl SamplingClock {
    /// The clock's name in settings and traces.
    pub fn name(self) -> &'static str {
        match self {
            SamplingClock::Cpu => "cpu",
            SamplingClock::Perf => "perf",
        }
    }
}

/// Samples per second if the user does not choose a rate.
const DEFAULT_RATE: u32 = 1000;
const MIN_RATE: u32 = 1;
const MAX_RATE: u32 = 10_000;

impl Value for Sample {
    fn allowed() -> String {
        format!(
            "off, cpu, perf, cpu:RATE or perf:RATE, where RATE is the number of samples per second of CPU time, from {MIN_RATE} to {MAX_RATE}; append `,tasks` to also record the stacks at which tasks are created"
        )
    }

    fn parse(text: &OsStr) -> Option<Self> {
        let text = text.to_str()?;
        if text == "off" {
            return Some(Sample::Off);
        }
        let (text, task_stacks) = match text.strip_suffix(",tasks") {
            None => (text, false),
            Some(text) => (text, true),
        };
        let (clock, rate) = match text.split_once(':') {
            None => (text, DEFAULT_RATE),
            Some((clock, rate)) => (clock, rate.parse().ok()?),
        };
        let clocks = [SamplingClock::Cpu, SamplingClock::Perf].into_iter();
        let sampling =
            Sampling { clock: clocks.into_iter().find(|known| known.name() == clock)?, rate, task_stacks };
        let is_rate = (MIN_RATE..=MAX_RATE).contains(&rate);
        is_rate.then_some(Sample::On(sampling))
    }

    fn describe(&self) -> String {
        match self {
            Sample::Off => "off".to_owned(),
            Sample::On(sampling) => {
                let tasks = if sampling.task_stacks { ",tasks" } else { "" };
                format!("{}:{}{tasks}", sampling.clock.name(), sampling.rate)
            }
        }
    }
}

/// The per-thread counters to record, without duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterList(pub Vec<&'static Counter>);

impl Value for CounterList {
    fn allowed() -> String {
        let names: Vec<&str> = COUNTERS.iter().map(|counter| counter.name).collect();
        format!("a comma-separated list of at most {MAX_COUNTERS} of these: {}", names.join(", "))
    }

    fn parse(text: &OsStr) -> Option<Self> {
        let mut counters: Vec<&Counter> = Vec::new();
        for name in text.to_str()?.split(',').map(str::trim) {
            let counter = Counter::of(name)?;
            if !counters.contains(&counter) {
                counters.push(counter);
            }
        }
        (counters.len() <= MAX_COUNTERS).then_some(CounterList(counters))
    }

    fn describe(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(|counter| counter.name).collect();
        names.join(",")
    }
}

/// The annotation interfaces, with their numbers in traces (`AnnotationSource`).
pub const ANNOTATIONS: [(&str, u32); 6] =
    [("nvtx", 1), ("itt", 2), ("kokkos", 3), ("openacc", 4), ("roctx", 5), ("omptrace", 6)];

/// A list of annotation interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationList(pub Vec<&'static str>);

impl AnnotationList {
    /// The numbers of the interfaces.
    pub fn sources(&self) -> Vec<u32> {
        let listed = ANNOTATIONS.iter().filter(|(name, _)| self.has(name));
        listed.map(|(_, number)| *number).collect()
    }

    /// Whether the interface is in the list.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }
}

impl Value for AnnotationList {
    fn allowed() -> String {
        let names = ANNOTATIONS.map(|(name, _)| name);
        format!("all, none, or a comma-separated list of these: {}", names.join(", "))
    }

    fn parse(text: &OsStr) -> Option<Self> {
        let all = ANNOTATIONS.map(|(name, _)| name);
        let text = text.to_str()?;
        match text {
            "all" => return Some(AnnotationList(all.to_vec())),
            "none" => return Some(AnnotationList(Vec::new())),
            _ => {}
        }
        let named = |word: &str| all.iter().copied().find(|name| *name == word.trim());
        text.split(',').map(named).collect::<Option<Vec<_>>>().map(AnnotationList)
    }

    fn describe(&self) -> String {
        match self.0[..] {
            [] => "none".to_owned(),
            _ if self.0.len() == ANNOTATIONS.len() => "all".to_owned(),
            _ => self.0.join(","),
        }
    }
}

/// Patterns that select domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainList(pub Vec<String>);

impl Value for DomainList {
    // A pattern may start with a minus.
    const KIND: Kind = Kind::Patterns;

    fn allowed() -> String {
        "a comma-separated list of patterns with the wildcards `*` and `?`; a pattern with a leading `-` excludes domains"
            .to_owned()
    }

    fn parse(text: &OsStr) -> Option<Self> {
        let patterns: Vec<String> = text.to_str()?.split(',').map(|text| text.trim().to_owned()).collect();
        let is_none = |pattern: &String| pattern.trim_start_matches('-').is_empty();
        (!patterns.iter().any(is_none)).then_some(DomainList(patterns))
    }

    fn describe(&self) -> String {
        self.0.join(",")
    }
}

/// Ranks of an MPI job, as numbers and ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankList(Vec<RangeInclusive<u32>>);

impl RankList {
    /// Whether the rank is in the list.
    pub fn has(&self, rank: u32) -> bool {
        self.0.iter().any(|range| range.contains(&rank))
    }
}

impl Value for RankList {
    fn allowed() -> String {
        "a comma-separated list of ranks and ranges of ranks, for example 0,1,100-107".to_owned()
    }

    fn parse(text: &OsStr) -> Option<Self> {
        let range = |item: &str| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some(first..=last)
        };
        text.to_str()?.split(',').map(range).collect::<Option<_>>().map(RankList)
    }

    fn describe(&self) -> String {
        let word = |range: &RangeInclusive<u32>| match (range.start(), range.end()) {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        };
        self.0.iter().map(word).collect::<Vec<_>>().join(",")
    }
}

/// The choice of CUPTI, NVIDIA's library for tracing devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cupti {
    /// The CUPTI that fits the driver.
    Auto,
    /// No CUPTI.
    Off,
    /// The CUPTI at this path.
    At(PathBuf),
}

impl Value for Cupti {
    fn allowed() -> String {
        "auto, off, or the path of a libcupti.so".to_owned()
    }

    /// A path must contain a slash, because the loader would search its directories for any other name.
    fn parse(text: &OsStr) -> Option<Self> {
        match text.to_str() {
            Some("auto") => Some(Cupti::Auto),
            Some("off") => Some(Cupti::Off),
            _ => {
                let is_path = text.as_encoded_bytes().contains(&b'/');
                is_path.then(|| Cupti::At(text.into()))
            }
        }
    }

    fn describe(&self) -> String {
        match self {
            Cupti::Auto => "auto".to_owned(),
            Cupti::Off => "off".to_owned(),
            Cupti::At(path) => path.to_string_lossy().into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_limits() {
        type Size = Bytes<{ 256 << 10 }, { 1 << 30 }>;
        let bytes = |text: &str| Size::parse(text.as_ref()).map(|bytes| bytes.0);
        assert_eq!(bytes("256K"), Some(256 << 10));
        assert_eq!(bytes("3m"), Some(3 << 20));
        assert_eq!(bytes("262144"), Some(256 << 10));
        for wrong in ["many", "", "255K", "2G", "4Q", "4MB", "4KM", "KK", "é"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_library_is_a_path_and_no_mistyped_word() {
        let cupti = |text: &str| Cupti::parse(text.as_ref());
        assert_eq!(cupti("auto"), Some(Cupti::Auto));
        assert_eq!(cupti("off"), Some(Cupti::Off));
        let path = "./libcupti.so.12";
        assert_eq!(cupti(path), Some(Cupti::At(path.into())));
        assert_eq!(cupti("of"), None);
        assert_eq!(cupti(""), None);
    }

    #[test]
    fn samples_have_a_clock_and_a_rate() {
        let sample = |text: &str| Sample::parse(text.as_ref()).map(|sample| sample.describe());
        for (text, described) in [
            ("off", "off"),
            ("cpu", "cpu:1000"),
            ("cpu:250", "cpu:250"),
            ("perf", "perf:1000"),
            ("perf:4000", "perf:4000"),
            ("cpu,tasks", "cpu:1000,tasks"),
            ("perf:4000,tasks", "perf:4000,tasks"),
        ] {
            assert_eq!(sample(text), Some(described.to_owned()));
        }
        for wrong in [
            "",
            "on",
            "cpu:",
            "cpu:0",
            "cpu:10001",
            "cpu:-1",
            "cpu250",
            "perf:",
            "perf:10001",
            "off,tasks",
            "tasks",
            "cpu,",
        ] {
            assert_eq!(sample(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn counters_are_named_and_few() {
        let counters = |text: &str| CounterList::parse(text.as_ref()).map(|list| list.describe());
        let two = "instructions,cycles";
        assert_eq!(counters(two), Some(two.to_owned()));
        assert_eq!(counters("cycles, cycles"), Some("cycles".to_owned()));
        let all: Vec<&str> = COUNTERS.iter().map(|counter| counter.name).collect();
        for wrong in ["", "cycles,", "cycle", &all.join(",")] {
            assert_eq!(counters(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ranks_are_numbers_and_ranges() {
        let ranks = |text: &str| RankList::parse(text.as_ref());
        let some = ranks("0,1, 100-107").expect("allowed");
        assert_eq!(some.describe(), "0,1,100-107");
        assert_eq!(
            [0, 1, 2, 99, 100, 107, 108].map(|rank| some.has(rank)),
            [true, true, false, false, true, true, false]
        );
        for wrong in ["", "0,", "a", "-1", "3-1", "1-2-3"] {
            assert_eq!(ranks(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn levels_are_those_of_zstd() {
        let level = |text: &str| Compress::parse(text.as_ref());
        assert_eq!(level("auto"), Some(Compress::Level(1)));
        assert_eq!(level("19"), Some(Compress::Level(19)));
        assert_eq!(level("20"), None);
        assert_eq!(level("fast"), None);
    }
}
