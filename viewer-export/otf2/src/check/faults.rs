//! The faults of an archive, counted per kind.

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
    Damaged Error "damaged" "files cannot be read to their end";
    MissingFile Error "missing_file" "locations have no file of events";
    MissingDefinitions Note "missing_definitions" "locations have no file of definitions";
    DefinitionCount Error "definition_count" "the anchor states another number of definitions";
    LocationCount Error "location_count" "the anchor states another number of locations";
    EventCount Error "event_count" "locations have another number of events than their definition states";
    ChunkNumbers Warning "chunk_numbers" "chunks state other numbers of events than they have";
    DefinedTwice Error "defined_twice" "definitions come twice";
    Undefined Error "undefined_reference" "references lead to no definition";
    Forward Warning "forward_reference" "definitions refer to later ones, which some readers do not accept";
    ClockProperties Error "clock_properties" "there are no properties of the clock, or several";
    Paradigm Warning "paradigm" "paradigms are used without a definition";
    LocationGroup Warning "location_group" "location groups hold locations of another type, or none of their own";
    Group Error "group" "groups of threads do not fit the group of all locations";
    TimeWentBack Error "time_went_back" "events are older than their predecessor";
    OutsideClock Warning "outside_clock" "events lie outside of the time range of the clock's properties";
    ClockOffset Error "clock_offset" "clock offsets of locations are not in the order of time";
    Attributes Error "attributes" "attributes come twice or have another type than their definition";
    Parameter Error "parameter" "parameters have values of another type than their definition";
    Metric Error "metric" "metrics have other values than their class defines";
    Nesting Error "nesting" "regions are left that are not the newest entered";
    NotLeft Error "not_left" "regions are entered and never left";
    ForkJoin Error "fork_join" "forks and joins do not match";
    Team Error "team" "begins and ends of teams do not match";
    NotAMember Error "not_a_member" "threads work in a team that they are no member of";
    TaskUnknown Error "task_unknown" "tasks run or complete that were not created, or have completed";
    TaskTwice Error "task_twice" "tasks are created that exist already";
    TaskNotComplete Warning "task_not_complete" "tasks were created and are never complete";
    TaskNotLeft Error "task_not_left" "tasks are complete whose regions were not left";
    Lock Error "lock" "locks are released that the thread did not acquire, or acquired and not released";
    LockOrder Error "lock_order" "acquisitions of locks do not count up from 1";
    Program Error "program" "begin and end of programs do not match, or do not enclose their events";
    Rank Error "rank" "messages and transfers are with a rank that their communicator does not have";
    Rma Error "rma" "transfers and their completions do not match";
}

/// The faults that were found: how often, and where first, in the order in which they were met.
#[derive(Default)]
pub(super) struct Faults(Vec<(Fault, u64, String)>);

impl Faults {
    /// There is a fault at `place`, which is put in words for the first of its kind.
    #[cold]
    pub(super) fn add(&mut self, fault: Fault, place: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|met| met.0 == fault) {
            Some((_, count, _)) => *count += 1,
            None => self.0.push((fault, 1, place())),
        }
    }

    /// All of them, the worst first.
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
