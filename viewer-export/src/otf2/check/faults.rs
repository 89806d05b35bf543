//! What can be wrong with an archive, counted per kind.

use omptrace_trace_format::Severity;

use crate::check::Finding;

/// Turns a row `Fault severity "name" "words"` into a variant and its texts.
macro_rules! faults {
    ($($Fault:ident $severity:ident $name:literal $text:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Fault { $($Fault,)* }

        impl Fault {
            const NUMBER: usize = [$(Fault::$Fault),*].len();

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
    DefinitionCount Error "definition_count" "the anchor tells another number of definitions";
    LocationCount Error "location_count" "the anchor tells another number of locations";
    EventCount Error "event_count" "locations are said to have another number of events";
    ChunkNumbers Warning "chunk_numbers" "chunks tell other numbers of events than they have";
    DefinedTwice Error "defined_twice" "definitions come twice";
    Undefined Error "undefined_reference" "references lead to no definition";
    Forward Warning "forward_reference" "definitions refer to later ones, which some readers do not bear";
    ClockProperties Error "clock_properties" "there are no properties of the clock, or several";
    Paradigm Warning "paradigm" "paradigms are used without a definition";
    Group Error "group" "groups of threads do not fit the group of all locations";
    TimeWentBack Error "time_went_back" "events are older than their predecessor";
    OutsideClock Warning "outside_clock" "events lie outside of the time that the clock's properties tell";
    Attributes Error "attributes" "attributes come twice or have another type than their definition";
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
    Rma Error "rma" "transfers and their completions do not match";
}

/// The faults that were found.
#[derive(Default)]
pub(super) struct Faults {
    /// How often, and where first.
    met: [Option<(u64, String)>; Fault::NUMBER],
    order: Vec<Fault>,
}

impl Faults {
    /// There is a fault at `place`, which is put in words for the first of its kind.
    #[cold]
    pub(super) fn add(&mut self, fault: Fault, place: impl FnOnce() -> String) {
        match &mut self.met[fault as usize] {
            Some((count, _)) => *count += 1,
            new => {
                *new = Some((1, place()));
                self.order.push(fault);
            }
        }
    }

    /// All of them, the worst first.
    pub(super) fn findings(self) -> Vec<Finding> {
        let finding = |fault: &Fault| {
            let (severity, name, words) = fault.of();
            let (count, place) = self.met[*fault as usize].as_ref()?;
            let text = format!("{words} ({count}; first: {place})");
            Some(Finding {
                severity,
                name,
                text,
            })
        };
        let mut findings: Vec<Finding> = self.order.iter().filter_map(finding).collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings
    }
}
