//! Repairs made during interpretation, counted by cause. Nothing is repaired silently.

use omptrace_trace_format::Severity;

use crate::model::Ns;

/// Turns a row `Cause severity "name" "words"` into a variant and its texts.
macro_rules! causes {
    ($($(#[$doc:meta])* $Cause:ident $severity:ident $name:literal $text:literal;)*) => {
        /// The reason for a repair or omission.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Cause { $($(#[$doc])* $Cause,)* }

        impl Cause {
            /// All causes, in display order.
            pub const ALL: &'static [Cause] = &[$(Cause::$Cause),*];

            /// The cause's name in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Cause::$Cause => $name,)* }
            }

            /// The cause in words; a number in parentheses may follow.
            pub fn text(self) -> &'static str {
                match self { $(Cause::$Cause => $text,)* }
            }

            /// A note if runtimes are known to behave like this and nothing is missing, otherwise a warning.
            pub fn severity(self) -> Severity {
                match self { $(Cause::$Cause => Severity::$severity,)* }
            }
        }
    };
}

causes! {
    /// LLVM's workers report these ends when the next region wakes them.
    LateEnd Note "late_end"
        "workers reported only after a parallel region had ended that their constructs in it had ended; the timeline ends these constructs together with the region";
    /// Code built by GCC does not report the end of a single region on the thread that executes it.
    SingleWithoutEnd Note "single_without_end"
        "the runtime did not report the ends of `single` regions; each of these regions is shown until the next worksharing region or barrier starts";
    /// LLVM's primary thread of a nested team reports the end of its region after it has returned the team. By then,
    /// another thread may have started a region with that team.
    MisnamedRegion Note "misnamed_region"
        "some events for the end of a parallel region identified a region of another thread; each of these events was assigned to the region of the task that reported the end";
    /// OpenUH reports FORK, ordered regions and waits for them more than once.
    ReportedAgain Note "reported_again" "the starts of some constructs were reported more than once; each start was counted once";
    /// OpenUH and TAU: a thread was idle before tracing began, or the end of a wait is reported that did not take
    /// place.
    EndAlone Note "end_alone"
        "ends of idle times and waits were reported without a start, because the idle time or wait started before the trace, or because there was nothing to wait for";
    /// LLVM waits for the detached tasks of a team of one after it has reported the region's end.
    EndBeforeTasks Note "end_before_tasks"
        "parallel regions of one thread were reported to end before their tasks were complete; each of these regions is shown until its last task ends";
    /// LLVM names an ended task when it runs tasks of a former team.
    EndedTask Note "ended_task"
        "threads switched to tasks that had already ended; in the timeline, such a thread returns to the parent of its previous task";
    /// The event was lost or not delivered, or the program died before it.
    MissingEnd Warning "missing_end"
        "the ends of some regions were not reported; these regions are shown until the enclosing region ends or, if there is none, until the trace ends";
    /// The start event was lost or not delivered.
    EndWithoutBegin Warning "end_without_begin" "ends of constructs were reported without a start; these ends were left out";
    /// `OMPTRACE_EVENTS` excludes the counterpart.
    CounterpartLeftOut Note "counterpart_left_out"
        "events are not shown, because the matching start or end was not selected for recording";
    /// Without `task_create`, tasks have no ids, so resumed tasks cannot be told from new ones.
    PartOfTask Note "part_of_task"
        "tasks whose creation was not recorded were suspended; each period in which such a task ran is shown as a separate task, so more tasks are shown than were created";
    /// LLVM 3.7.
    TasksWithoutSwitch Note "tasks_without_switch"
        "the runtime does not report when threads switch tasks, so each task is shown as running from its start to its end";
    /// A TR2 runtime without `task_switch`.
    TasksUnseen Note "tasks_unseen"
        "the runtime does not report when tasks run, so the time in which threads execute tasks is shown as waiting";
    /// LLVM 3.7 to 5.0, for critical regions and some locks.
    ReleaseWithoutAcquire Note "release_without_acquire"
        "the runtime reports only the release of some mutexes, not their acquisition, so these releases are shown as instants";
    /// The creation was lost or not delivered.
    UnannouncedTask Warning "unannounced_task" "the creation of some tasks is not in the trace";
    /// The region's start was lost or not delivered.
    UnannouncedRegion Warning "unannounced_region"
        "implicit tasks belong to a parallel region whose start is not in the trace";
    /// An endpoint other than begin, end and beginend.
    UnknownEndpoint Warning "unknown_endpoint" "events that are neither a start nor an end were left out";
    /// Perfetto shows no more than 512 levels.
    TooDeep Warning "too_deep" "regions that were nested too deeply to be shown were left out";
    /// A damaged chunk, or a clock that differs between CPUs.
    TimeWentBack Warning "time_went_back"
        "some events had an earlier timestamp than the previous event of the same thread, and were moved to the time of that previous event";
    /// A kind of operation that devices do not perform, or a record that is too short.
    UnknownDeviceRecord Note "unknown_device_record"
        "device records that describe neither kernels nor data operations were left out";
    /// The device did not record any times of the operation.
    NoDeviceTime Warning "no_device_time" "device records without timestamps were left out";
    /// Nothing is known of the device's clock.
    NoDeviceClock Warning "no_device_clock" "device records were left out, because the device's clock is unknown";
    /// The device reports the end first.
    DeviceTimesSwapped Warning "device_times_swapped"
        "device records had an end before their start; their start and end were exchanged";
    /// The runtime does not record such operations, dropped the record, or died with it in a buffer.
    NoDeviceRecord Warning "no_device_record"
        "operations of traced devices have no device record; these operations are shown with the timestamps that the host observed";
    /// The runtime does not report operations, and died with its records in a buffer.
    NoRecordOfRegion Warning "no_record_of_region"
        "target regions ran on traced devices, but no device record describes these regions, so only the host's time in them is known";
    /// The runtime cannot pause its tracing.
    DeviceRecordOfPause Note "device_record_of_pause"
        "device records of operations that ran while recording was paused were left out";
    /// More operations at once than there are tracks.
    DeviceOverlap Warning "device_overlap" "device records that overlapped with too many other records were shortened";
    /// An event of a newer tracer.
    UnknownEvent Note "unknown_event"
        "events of a kind unknown to this version of omptrace are shown as instants";
}

/// Where a cause first occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The stream.
    pub stream: u32,
    /// The time on the timeline.
    pub time: Ns,
}

/// How often a cause occurred, and where first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The cause.
    pub cause: Cause,
    /// How often.
    pub count: u64,
    /// The first occurrence.
    pub first: Place,
}

/// Repairs of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    met: [Option<Repair>; Cause::ALL.len()],
}

impl Repairs {
    pub(crate) fn add(&mut self, cause: Cause, stream: u32, time: Ns) {
        let first = Place { stream, time };
        let repair = self.met[cause as usize].get_or_insert(Repair { cause, count: 0, first });
        repair.count += 1;
    }

    /// Restores a repair that was counted earlier.
    pub(crate) fn set(&mut self, repair: Repair) {
        self.met[repair.cause as usize] = Some(repair);
    }

    /// How often `cause` occurred.
    pub fn count(&self, cause: Cause) -> u64 {
        self.met[cause as usize].map_or(0, |repair| repair.count)
    }

    /// The causes that occurred.
    pub fn iter(&self) -> impl Iterator<Item = &Repair> + '_ {
        self.met.iter().flatten()
    }
}
