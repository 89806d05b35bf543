//! The tables and columns with their meanings, in one table of tables.
//!
//! Changes are only additive: existing columns stay the same, new ones are appended, and readers ignore columns that
//! they do not know.

use parquet::data_type::ByteArray;

use crate::cells::{Buffer, Cell, Kind, Word};

/// The version of the tables. It is increased with each added column or table, which `docs/columns.md` lists.
pub const SCHEMA_VERSION: u32 = 5;

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: Kind,
    /// Whether values may be NULL.
    pub is_nullable: bool,
    /// The meaning of the column.
    pub meaning: &'static str,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct TableSchema {
    /// Its name.
    pub name: &'static str,
    /// The meaning of a row.
    pub meaning: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
}

/// A row of a table.
pub(crate) trait Row {
    /// The table.
    const SCHEMA: TableSchema;
    /// Adds the row to the table's columns.
    fn push(self, columns: &mut [Buffer]);
}

/// Turns `Row "name": "meaning" { column: type = "meaning"; }` into a struct with a field per column, and its schema.
macro_rules! tables {
    ($($row:ident $(<$life:lifetime>)? $name:literal: $meaning:literal {
        $($column:ident: $type:ty = $means:literal;)*
    })*) => {
        $(
            #[doc = $meaning]
            #[derive(Clone, Debug)]
            pub(crate) struct $row $(<$life>)? { $(#[doc = $means] pub(crate) $column: $type,)* }

            impl $(<$life>)? Row for $row $(<$life>)? {
                const SCHEMA: TableSchema = TableSchema {
                    name: $name,
                    meaning: $meaning,
                    columns: &[$(Column {
                        name: stringify!($column),
                        kind: <$type as Cell>::KIND,
                        is_nullable: <$type as Cell>::IS_NULLABLE,
                        meaning: $means,
                    },)*],
                };

                fn push(self, columns: &mut [Buffer]) {
                    let mut columns = columns.iter_mut();
                    $(if let Some(column) = columns.next() {
                        self.$column.push(column);
                    })*
                }
            }
        )*

        /// All tables.
        pub const TABLES: &[TableSchema] = &[$($row::SCHEMA,)*];
    };
}

tables! {
    ProcessRow<'a> "processes": "A process." {
        name: &'a str = "The display name: the program, the rank if there is one, and the process id.";
        host: Option<&'a str> = "The machine on which the process ran.";
        os_pid: i64 = "The process id in the operating system.";
        rank: Option<i32> = "The MPI rank, if a launcher set it.";
        command_line: Option<&'a str> = "The program and its arguments, separated by spaces.";
        exit_status: Option<i32> = "The program's exit status, if omptrace record started the program.";
        processors: Option<i32> = "The number of CPUs on which the process may run.";
        job_start_realtime_ns: Option<i64> = "The start of the job, in nanoseconds since 1970. All times are relative to this start.";
        clock_error_ns: i64 = "The uncertainty of time differences between processes; if the hosts' clocks are not synchronised, the error may be larger.";
        begin_ns: i64 = "The start of the process; negative if the process started before the tracer.";
        end_ns: i64 = "The end of the process.";
        threads: i32 = "The peak number of threads that were members of teams, called N.";
        critical_path_ns: i64 = "The useful work on the longest chain of work through all threads of the process.";
        events: i64 = "The number of events that were read from the trace.";
        lost_events: i64 = "The number of events that the tracer lost.";
        damages: i64 = "The number of places where the trace is damaged.";
        runtime: Option<&'a str> = "The OpenMP runtime, as it identifies itself.";
        tracer: Option<&'a str> = "The tracer that wrote the trace.";
        schema_version: i32 = "The version of these tables.";
    }
    ThreadRow<'a> "threads": "A thread or another track of events: a device, a device queue or a lock." {
        thread: i32 = "The number of the thread or other track, unique within the process.";
        kind: Word = "thread, device, device_queue, lock or track.";
        name: &'a str = "The display name, unique within the process.";
        role: Option<Word> = "The role of the thread, if the track is a thread: main, worker, initial, helper or other.";
        os_tid: Option<i64> = "The id of the thread in the operating system, if the track is a thread.";
        device_num: Option<i32> = "The number of the device, if the track is a device or a device queue.";
        wait_id: Option<i64> = "The runtime's id of the lock, usually its address, if the track is a lock.";
    }
    PlaceRow<'a> "places": "A place in the program where an OpenMP construct was recorded." {
        place: i32 = "The number of the place, unique within the process.";
        name: &'a str = "The construct and its place, as in other formats.";
        construct: &'a str = "The construct as the programmer wrote it, even if the name describes a wait in the construct. stats groups rows by construct, file, line and function.";
        file: Option<&'a str> = "The source file.";
        line: Option<i32> = "The line in the source file.";
        function: Option<&'a str> = "The function.";
        category: Word = "parallel, implicit_task, work, task, sync, wait, mutex, target, user or omptrace.";
        position: Option<&'a str> = "How the function, file and line relate to the construct: at (at this line), inside (in code of this line, or in a function called there) or near (the line may be that of an earlier statement). For serial code: before or after the region at this line.";
    }
    SliceRow "slices": "A period in which a thread was in a region." {
        thread: i32 = "The number of the thread in the table threads.";
        place: i32 = "The number of the region's place in the table places.";
        begin_ns: i64 = "The start.";
        end_ns: i64 = "The end.";
        depth: i32 = "The number of regions of the thread that enclose this one.";
        team: Option<i64> = "The thread's innermost team during the slice.";
        task: Option<i64> = "The explicit task that the thread runs.";
        is_first: bool = "Whether the region starts with this slice; otherwise, the region was interrupted and continues with this slice.";
    }
    InstantRow "instants": "An event without duration." {
        thread: i32 = "The thread.";
        place: i32 = "The number of the event's place in the table places.";
        time_ns: i64 = "The time of the event.";
    }
    WorkRow "work": "A period in which a thread ran the program's code. In the table accounting, this time has the cause useful." {
        thread: i32 = "The thread.";
        place: Option<i32> = "The number of the place in the table places; NULL in serial code.";
        begin_ns: i64 = "The start.";
        end_ns: i64 = "The end.";
    }
    WaitRow "waits": "A period in which a thread lost time." {
        thread: i32 = "The thread.";
        place: Option<i32> = "The number of the place in the table places.";
        begin_ns: i64 = "The start.";
        end_ns: i64 = "The end.";
        cause: Word = "The cause of the lost time, as in stats.";
        wait_id: Option<i64> = "The mutex that the thread waited for, as in the table locks.";
        blamed_thread: Option<i32> = "The thread that held the mutex; NULL for other waits, whose causes are in the table blame.";
        blamed_place: Option<i32> = "The place where the blamed thread acquired the mutex.";
    }
    FlowRow "flows": "A cause and its effect, which timelines connect by an arrow." {
        kind: Word = "The kind: task_create, task_dependence, fork, join, barrier_release, taskwait, mutex_release, target_submit, target_data_op.";
        from_thread: i32 = "The thread of the cause.";
        from_ns: i64 = "The time of the cause.";
        to_thread: i32 = "The thread of the effect.";
        to_ns: i64 = "The time of the effect.";
    }
    MessageRow "messages": "One end of a point-to-point MPI message: each message has one row in the sender's process, and one row in the receiver's process. The table has rows only if there are traces of all ranks of the job." {
        kind: Word = "send or receive.";
        message: Option<i64> = "The number of the message, unique within the job and the same at both ends; NULL if the other end was not found.";
        thread: i32 = "The thread.";
        time_ns: i64 = "The time at which the message was sent, or at which the receive was complete.";
        communicator: i32 = "The number of the communicator in the table communicators.";
        peer: i32 = "The rank of the other end in the communicator, or in the other group of an intercommunicator.";
        peer_rank: Option<i32> = "The rank of the other end in MPI_COMM_WORLD.";
        tag: i32 = "The tag.";
        bytes: i64 = "The number of bytes.";
        other_ns: Option<i64> = "The value of time_ns at the other end of the message.";
    }
    CollectiveRow "collectives": "A process's part in a collective MPI operation. The table has rows only if there are traces of all ranks of the job." {
        collective: i64 = "The number of the operation, unique within the job and the same in all processes that take part.";
        function: Word = "The MPI function.";
        communicator: i32 = "The number of the communicator in the table communicators.";
        root: Option<i32> = "The rank of the root in the communicator.";
        thread: i32 = "The thread that completed the operation.";
        begin_ns: i64 = "The time at which the process started the operation.";
        end_ns: i64 = "The time at which the operation was complete in the process.";
        sent_bytes: i64 = "The number of bytes that the process sent.";
        received_bytes: i64 = "The number of bytes that the process received.";
    }
    CommunicatorRow "communicators": "An MPI communicator of which the process is a member. The table has rows only if there are traces of all ranks of the job." {
        communicator: i32 = "The number of the communicator, unique within the job and the same in all processes.";
        name: ByteArray = "The name that the program gave the communicator, or a description of how the communicator was created.";
        kind: Word = "world, self, made (created by the program) or inter (an intercommunicator).";
        parent: Option<i32> = "The communicator from which this communicator was created.";
        size: i32 = "The number of members.";
        members: ByteArray = "The members as ranks in MPI_COMM_WORLD, separated by commas.";
        remote: Option<ByteArray> = "The members of the other group of an intercommunicator.";
    }
    TaskRow "tasks": "An explicit task." {
        task: i64 = "The number of the task, unique within the process.";
        parent: Option<i64> = "The explicit task that created this task.";
        place: i32 = "The number of the task's place in the table places.";
        created_by: i32 = "The thread that created the task.";
        created_ns: i64 = "The time at which the task was created.";
        executed_by: Option<i32> = "The thread that started the task; NULL if the task was never started.";
        begin_ns: Option<i64> = "The time at which the task was started.";
        end_ns: Option<i64> = "The time at which the task was complete; NULL if the trace does not contain it.";
        run_ns: i64 = "The time that threads spent in the task, including nested regions.";
        switches: i64 = "How often a thread started or resumed the task.";
        is_undeferred: bool = "Whether the parent task continued only after this task was complete.";
        is_final: bool = "Whether the task's descendants are executed immediately, on the same thread.";
    }
    TeamRow "teams": "A team of a parallel region." {
        team: i64 = "The number of the team, unique within the process.";
        thread: Option<i32> = "The thread that formed the team.";
        place: Option<i32> = "The parallel region's place.";
        parent: Option<i64> = "The parent team.";
        begin_ns: i64 = "The time at which the team was formed.";
        end_ns: Option<i64> = "The time at which the team was dissolved; NULL if the trace does not contain it.";
        requested: Option<i64> = "The requested number of threads.";
        size: Option<i64> = "The number of threads in the team.";
    }
    LockRow "locks": "A period in which a thread held a lock or was in a critical, ordered or atomic region." {
        wait_id: i64 = "The runtime's id of the mutex, usually its address.";
        kind: Word = "The kind of mutex, as OMPT names it.";
        acquisition: i64 = "The number of the acquisition. The acquisitions of a mutex are numbered from 1.";
        thread: i32 = "The thread.";
        place: Option<i32> = "The place of the innermost region in which the thread was.";
        begin_ns: i64 = "The start.";
        end_ns: Option<i64> = "The end; NULL if the trace does not contain it.";
    }
    DeviceOpRow "device_ops": "An operation of a device." {
        queue: i32 = "The number of the queue in the table threads.";
        device_num: i32 = "The device's number.";
        kind: Word = "kernel, transfer_to, transfer_from, data_op or native.";
        name: ByteArray = "The name of the operation.";
        begin_ns: i64 = "The start.";
        end_ns: i64 = "The end.";
        bytes: Option<i64> = "The number of bytes that were moved.";
        file: Option<ByteArray> = "The source file of the construct that requested the operation.";
        line: Option<i32> = "The line in the source file.";
    }
    CounterRow "counters": "A new value of a counter." {
        counter: ByteArray = "The counter's name.";
        unit: Word = "The unit of the counter.";
        time_ns: i64 = "The time of the change.";
        value: i64 = "The value from this time on; rounded, if the counter has fractions.";
        value_double: Option<f64> = "The value with its fraction; NULL if the counter has only whole numbers.";
    }
    SampleRow "samples": "A sample of a thread. The call stack corresponds to the source code and does not contain the runtime's frames (the user's model)." {
        thread: i32 = "The thread.";
        time_ns: i64 = "The end of the interval of CPU time that the sample represents.";
        weight_ns: i64 = "The CPU time that the sample represents.";
        activity: Option<Word> = "The activity of the runtime, as in stats; NULL if the thread executed code of the program.";
        is_work: bool = "Whether the time is OpenMP Work (the program's code and reductions); otherwise, it is OpenMP Wait.";
        function: Option<ByteArray> = "The innermost function; NULL if no frame is known.";
        module: Option<ByteArray> = "The module of the function; NULL for activities of the runtime.";
        file: Option<ByteArray> = "The source file.";
        line: Option<i32> = "The line in the source file.";
        stack: ByteArray = "All functions on the stack, outermost first, separated by semicolons.";
    }
    AccountingRow "accounting": "Thread time by cause, thread and place: the exact sums of stats." {
        thread: Option<i32> = "The thread; NULL for time that belongs to no thread.";
        place: Option<i32> = "The number of the place in the table places; NULL in serial code and for time without a place.";
        cause: Word = "The cause: useful, or why the time was lost.";
        ns: i64 = "The time. In rows without a thread, it may be negative if events were inconsistent.";
    }
    BlameRow<'a> "blame": "The constructs that caused lost time. For each cause, the rows add up to the time of that cause in accounting." {
        cause: Word = "The cause of the lost time, as in accounting.";
        construct: &'a str = "The construct that threads waited for.";
        file: Option<&'a str> = "The source file.";
        line: Option<i32> = "The line in the source file.";
        function: Option<&'a str> = "The function.";
        ns: i64 = "The time, summed over all threads.";
        position: Option<&'a str> = "How the function, file and line relate to the construct: at (at this line), inside (in code of this line, or in a function called there) or near (the line may be that of an earlier statement). For serial code: before or after the region at this line.";
    }
    RegionRow<'a> "regions": "Thread time by cause in the outermost parallel regions of each place." {
        construct: &'a str = "The construct.";
        file: Option<&'a str> = "The source file.";
        line: Option<i32> = "The line in the source file.";
        function: Option<&'a str> = "The function.";
        visits: i64 = "How often the region was entered; the same in all rows of the place.";
        duration_ns: i64 = "The time from start to end on the thread that encountered the region; the same in all rows of the place.";
        cause: Word = "The cause, as in the table accounting.";
        ns: i64 = "The time, summed over all threads.";
        position: Option<&'a str> = "How the function, file and line relate to the construct: at (at this line), inside (in code of this line, or in a function called there) or near (the line may be that of an earlier statement). For serial code: before or after the region at this line.";
    }
    PathRow<'a> "critical_path": "The useful work on the longest chain of work through all threads of the process." {
        construct: &'a str = "The construct.";
        file: Option<&'a str> = "The source file.";
        line: Option<i32> = "The line in the source file.";
        function: Option<&'a str> = "The function.";
        ns: i64 = "The time.";
        position: Option<&'a str> = "How the function, file and line relate to the construct: at (at this line), inside (in code of this line, or in a function called there) or near (the line may be that of an earlier statement). For serial code: before or after the region at this line.";
    }
    AnnotationRow "annotations": "A range or a mark that the program names with NVTX, ITT, Kokkos Tools, OpenACC, rocTX or omptrace's own header. Each range is one row, even if its slice is cut in the timeline." {
        thread: i32 = "The thread that begins the range, or makes the mark.";
        source: Word = "The interface: nvtx, itt, kokkos, openacc, roctx or omptrace.";
        kind: Word = "range, process (a range that may end on another thread), frame, mark, or the kind of a Kokkos kernel or OpenACC operation, such as parallel_for, fence, copy or compute.";
        domain: Option<ByteArray> = "The domain; NULL for the default domain.";
        name: ByteArray = "The name.";
        category: Option<ByteArray> = "The name of the category, or its number if it has no name.";
        colour: Option<i64> = "The colour, as 0xAARRGGBB.";
        begin_ns: i64 = "The start, or the time of the mark.";
        end_ns: Option<i64> = "The end; for a mark, the same as the start; NULL if the trace does not contain the end.";
        instance: Option<i64> = "The number by which the program refers to the range.";
        payload_int: Option<i64> = "The payload, if it is a whole number. Unsigned numbers from 2^63 are shown as negative ones.";
        payload_double: Option<f64> = "The payload, if it is a floating-point number.";
        payload_text: Option<ByteArray> = "The payload, if it is a text.";
    }
    AnnotationValueRow "annotation_values": "A number or a text that the program passes to an annotation interface: a counter's value, or a fact about a range or the process." {
        thread: i32 = "The thread that passes the number or text.";
        time_ns: i64 = "The time.";
        source: Word = "The interface, as in the table annotations.";
        role: Word = "counter (the new value of the counter), increment (a number that is added to the counter) or fact.";
        domain: Option<ByteArray> = "The domain; NULL for the default domain.";
        name: ByteArray = "The name of the counter or of the fact.";
        instance: Option<i64> = "The number of the range that the fact is about; NULL for the innermost open range of the thread and the domain, or for the process.";
        value_int: Option<i64> = "The value, if it is a whole number. Unsigned numbers from 2^63 are shown as negative ones.";
        value_double: Option<f64> = "The value, if it is a floating-point number.";
        value_text: Option<ByteArray> = "The value, if it is a text.";
    }
    EventRow "events": "An event of the runtime, without interpretation. The table is written only with --raw-events." {
        stream: i32 = "The number of the stream (one thread or device queue) in the trace.";
        time_ns: i64 = "The time of the event.";
        event: ByteArray = "The event, as OMPT names it.";
        arguments: ByteArray = "The arguments as JSON, with their OMPT names as keys.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference part of docs/columns.md.
    fn documented() -> String {
        let mut text = String::new();
        for table in TABLES {
            text += &format!("\n### `{}`\n\n{}\n\n", table.name, table.meaning);
            text += "| column | type | meaning |\n| --- | --- | --- |\n";
            for column in table.columns {
                let null = if column.is_nullable { ", or NULL" } else { "" };
                let kind = column.kind.name();
                text += &format!("| `{}` | {kind}{null} | {} |\n", column.name, column.meaning);
            }
        }
        text
    }

    #[test]
    fn the_documentation_has_the_tables() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/columns.md");
        let page = std::fs::read_to_string(path).expect("docs/columns.md");
        const BEGIN: &str = "<!-- tables -->\n";
        let (before, _) = page.split_once(BEGIN).expect("where the tables begin");
        let expected = format!("{before}{BEGIN}{}", documented());
        if std::env::var_os("OMPTRACE_BLESS").is_some() {
            std::fs::write(path, &expected).expect("can be written");
        } else {
            assert!(page == expected, "OMPTRACE_BLESS=1 writes docs/columns.md");
        }
        let version = format!("Version {SCHEMA_VERSION} ");
        assert!(page.contains(&version), "docs/columns.md says {version}");
    }

    #[test]
    fn no_two_columns_or_tables_have_one_name() {
        let mut names: Vec<_> = TABLES.iter().map(|table| table.name).collect();
        for table in TABLES {
            let mut columns: Vec<_> = table.columns.iter().map(|column| column.name).collect();
            let count = columns.len();
            columns.sort_unstable();
            columns.dedup();
            assert_eq!(columns.len(), count, "{}", table.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLES.len());
    }
}
