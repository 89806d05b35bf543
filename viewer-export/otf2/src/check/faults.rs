//! The faults of an archive, counted by kind.

use omptrace_trace_format::Severity;

use omptrace_trace_format::Finding;

/// Turns a row `Fault severity "name" "words"` into a variant and its texts.
macro_rules! faults {
    ($($Fault:ident $severity:ident $name:literal $text:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Fault { $($Fault,)* }

        impl Fault {
            fn of(self) -> (Severity, &'static str, &'static str) {
                match self { $(Fault::$Fault => (Severity::$severity, $name, $text),)* }
            }
        }
    };
}

faults! {
    Damaged Error "damaged" "files cannot be read completely";
    MissingFile Error "missing_file" "locations have no file of events";
    MissingDefinitions Note "missing_definitions" "locations have no file of definitions";
    DefinitionCount Error "definition_count" "the anchor states a different number of definitions";
    LocationCount Error "location_count" "the anchor states a different number of locations";
    EventCount Error "event_count" "the number of events of locations differs from that in their definition";
    ChunkNumbers Warning "chunk_numbers" "chunks state a number of events that differs from their content";
    DefinedTwice Error "defined_twice" "definitions occur twice";
    Undefined Error "undefined_reference" "references have no definition";
    Forward Warning "forward_reference" "definitions refer to later definitions, which some readers do not accept";
    ClockProperties Error "clock_properties" "there are no clock properties, or there are several";
    Paradigm Warning "paradigm" "paradigms are used without a definition";
    LocationGroup Warning "location_group" "location groups contain locations of another type, or no locations of their own type";
    Group Error "group" "groups of threads do not match the group of all locations";
    TimeWentBack Error "time_went_back" "events are older than the previous event";
    OutsideClock Warning "outside_clock" "events are outside of the time range of the clock properties";
    ClockOffset Error "clock_offset" "clock offsets of locations are not in chronological order";
    Attributes Error "attributes" "attributes occur twice, or their type differs from that in their definition";
    Parameter Error "parameter" "the type of parameter values differs from that in the definition of the parameter";
    Metric Error "metric" "metrics have values that differ from those that their class defines";
    Nesting Error "nesting" "regions are left that are not the innermost region";
    NotLeft Error "not_left" "regions are entered but never left";
    ForkJoin Error "fork_join" "forks and joins do not match";
    Team Error "team" "begins and ends of teams do not match";
    NotAMember Error "not_a_member" "threads work in a team of which they are not a member";
    TaskUnknown Error "task_unknown" "tasks run or complete that were not created or are already complete";
    TaskTwice Error "task_twice" "tasks are created that already exist";
    TaskNotComplete Warning "task_not_complete" "tasks were created but never complete";
    TaskNotLeft Error "task_not_left" "tasks complete before their regions were left";
    Lock Error "lock" "locks are released by a thread that did not acquire them, or are acquired but not released";
    LockOrder Error "lock_order" "acquisitions of locks are not numbered consecutively from 1";
    Program Error "program" "the begin and end of programs do not match, or do not enclose the events of the program";
    Rank Error "rank" "messages or transfers refer to a rank that their communicator does not have";
    Rma Error "rma" "transfers and their completions do not match";
}

/// The faults found: how often each occurred, and where first, in the order of first occurrence.
#[derive(Default)]
pub(super) struct Faults(Vec<(Fault, u64, String)>);

impl Faults {
    /// Adds a fault at `place`, which is called only for the first one of its kind.
    #[cold]
    pub(super) fn add(&mut self, fault: Fault, place: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|met| met.0 == fault) {
            Some((_, count, _)) => *count += 1,
            None => self.0.push((fault, 1, place())),
        }
    }

    /// All faults, the most severe first.
    pub(super) fn findings(self) -> Vec<Finding> {
        let finding = |(fault, count, place): &(Fault, u64, String)| {
            let (severity, name, words) = fault.of();
            let text = format!("{words} ({count}; first: {place})");
            Finding { severity, name, text }
        };
        let mut findings: Vec<Finding> = self.0.iter().map(finding).collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings
    }
}
