//! The tables, their columns and what these mean: one table of tables.
//!
//! Additive changes only: a column stays what it is, new ones come last, and readers ignore those that they do not know.

use parquet::data_type::ByteArray;

use crate::cells::{Buffer, Cell, Kind, Word};

/// The version of the tables. It grows with each column or table that is added, and `docs/columns.md` says what was.
pub const SCHEMA_VERSION: u32 = 3;

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it may be NULL.
    pub is_nullable: bool,
    /// What it means.
    pub meaning: &'static str,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct TableSchema {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub meaning: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
}

/// What a table is made of.
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
        name: &'a str = "Its display name: program, rank if there is one, process id.";
        host: Option<&'a str> = "The machine that it ran on.";
        os_pid: i64 = "Its process id in the operating system.";
        rank: Option<i32> = "Its MPI rank, if a launcher set it.";
        command_line: Option<&'a str> = "The program and its arguments, separated by spaces.";
        exit_status: Option<i32> = "The program's exit status, if its parent was observed.";
        processors: Option<i32> = "The number of CPUs that it may run on.";
        job_start_realtime_ns: Option<i64> = "The job's start, in nanoseconds since 1970: all times count from it.";
        clock_error_ns: i64 = "Times of two processes may be off by this much, and by more if the hosts' clocks disagree.";
        begin_ns: i64 = "Its start; below 0 if it started before the tracer.";
        end_ns: i64 = "When it ended.";
        threads: i32 = "N: the peak number of threads that were members of teams.";
        critical_path_ns: i64 = "Useful work on its longest chain of work through all threads.";
        events: i64 = "Events read.";
        lost_events: i64 = "Events that the tracer lost.";
        damages: i64 = "Places where the trace is damaged.";
        runtime: Option<&'a str> = "The OpenMP runtime, as it calls itself.";
        tracer: Option<&'a str> = "The tracer that wrote the trace.";
        schema_version: i32 = "The version of these tables.";
    }
    ThreadRow<'a> "threads": "A thread, or another track of events: a device, its queue, a lock." {
        thread: i32 = "Its number in the process.";
        kind: Word = "thread, device, device_queue, lock or track.";
        name: &'a str = "Its display name; unique within the process.";
        role: Option<Word> = "The role of a thread: main, worker, initial, helper or other.";
        os_tid: Option<i64> = "The operating system's id of a thread.";
        device_num: Option<i32> = "The number of a device.";
        wait_id: Option<i64> = "The runtime's id of a lock: usually its address.";
    }
    PlaceRow<'a> "places": "A place in the program where an OpenMP construct was seen." {
        place: i32 = "Its number in the process.";
        name: &'a str = "Construct and place, as in other formats.";
        construct: &'a str = "The construct as the programmer wrote it, even for a wait; stats groups by it and the next three columns.";
        file: Option<&'a str> = "The source file.";
        line: Option<i32> = "The line in it.";
        function: Option<&'a str> = "The function.";
        category: Word = "parallel, implicit_task, work, task, sync, wait, mutex, target, user or omptrace.";
        position: Option<&'a str> = "How function, file and line are related to the construct: at; inside, if it is in the code at that line or in a function called there; near, if the line may be that of an earlier statement. Before or after, for serial code.";
    }
    SliceRow "slices": "A region that a thread was in, from start to end." {
        thread: i32 = "The thread, as in threads.";
        place: i32 = "The region's place, as in places.";
        begin_ns: i64 = "When it began.";
        end_ns: i64 = "When it ended.";
        depth: i32 = "The number of the thread's regions that contain it.";
        team: Option<i64> = "The thread's innermost team.";
        task: Option<i64> = "The explicit task that the thread runs.";
        is_first: bool = "Whether the region starts; otherwise it was interrupted and continues.";
    }
    InstantRow "instants": "An event without duration." {
        thread: i32 = "The thread.";
        place: i32 = "Its place, as in places.";
        time_ns: i64 = "When.";
    }
    WorkRow "work": "A thread ran the program: cause useful." {
        thread: i32 = "The thread.";
        place: Option<i32> = "The place; NULL in serial code.";
        begin_ns: i64 = "Its start.";
        end_ns: i64 = "Its end.";
    }
    WaitRow "waits": "A thread lost time." {
        thread: i32 = "The thread.";
        place: Option<i32> = "Where.";
        begin_ns: i64 = "Its start.";
        end_ns: i64 = "Its end.";
        cause: Word = "The cause, as in stats.";
        wait_id: Option<i64> = "The mutex that it waited for, as in locks.";
        blamed_thread: Option<i32> = "The thread that held the mutex; NULL for other waits, which blame divides.";
        blamed_place: Option<i32> = "The place where it got the mutex.";
    }
    FlowRow "flows": "A cause and its effect." {
        kind: Word = "The kind: task_create, task_dependence, fork, join, barrier_release, taskwait, mutex_release, target_submit, target_data_op.";
        from_thread: i32 = "The thread where it started.";
        from_ns: i64 = "When it began.";
        to_thread: i32 = "The thread to which it led.";
        to_ns: i64 = "When it arrived.";
    }
    TaskRow "tasks": "An explicit task." {
        task: i64 = "Its number in the process.";
        parent: Option<i64> = "The explicit task that created it.";
        place: i32 = "Its place, as in places.";
        created_by: i32 = "The thread that created it.";
        created_ns: i64 = "When.";
        executed_by: Option<i32> = "The thread that started it; NULL if none did.";
        begin_ns: Option<i64> = "When it began.";
        end_ns: Option<i64> = "When it was complete; NULL if that was not seen.";
        run_ns: i64 = "The time that threads were in it, including regions inside.";
        switches: i64 = "How often a thread started or resumed it.";
        is_undeferred: bool = "Whether the parent continued only when it was complete.";
        is_final: bool = "Whether its descendants are executed immediately, on its thread.";
    }
    TeamRow "teams": "A team of a parallel region." {
        team: i64 = "Its number in the process.";
        thread: Option<i32> = "The thread that formed it.";
        place: Option<i32> = "The parallel region's place.";
        parent: Option<i64> = "The parent team.";
        begin_ns: i64 = "When it was formed.";
        end_ns: Option<i64> = "When it was dissolved; NULL if that was not seen.";
        requested: Option<i64> = "The requested number of threads.";
        size: Option<i64> = "Its number of threads.";
    }
    LockRow "locks": "A thread held a lock, critical, ordered or atomic region." {
        wait_id: i64 = "The runtime's id of it: usually its address.";
        kind: Word = "Its kind, as OMPT names it.";
        acquisition: i64 = "Acquisitions of the lock count up from 1.";
        thread: i32 = "The thread.";
        place: Option<i32> = "The innermost region that the thread was in.";
        begin_ns: i64 = "Its start.";
        end_ns: Option<i64> = "Its end; NULL if that was not seen.";
    }
    DeviceOpRow "device_ops": "An operation of a device." {
        queue: i32 = "The queue, as in threads.";
        device_num: i32 = "The device's number.";
        kind: Word = "kernel, transfer_to, transfer_from, data_op or native.";
        name: ByteArray = "Its name.";
        begin_ns: i64 = "When it began.";
        end_ns: i64 = "When it ended.";
        bytes: Option<i64> = "The number of bytes moved.";
        file: Option<ByteArray> = "The source file of the construct that requested it.";
        line: Option<i32> = "The line in it.";
    }
    CounterRow "counters": "A new value of a counter." {
        counter: ByteArray = "The counter's name.";
        unit: Word = "Its unit.";
        time_ns: i64 = "When.";
        value: i64 = "The value from then on.";
    }
    SampleRow "samples": "A sample of a thread, in the user's model of call stacks." {
        thread: i32 = "The thread.";
        time_ns: i64 = "The end of the CPU time that it represents.";
        weight_ns: i64 = "That CPU time.";
        activity: Option<Word> = "The runtime's activity, as in stats; NULL if the thread executed code of the program.";
        is_work: bool = "Whether it is OpenMP Work; otherwise it is OpenMP Wait.";
        function: Option<ByteArray> = "The innermost function; NULL if no frame is known.";
        module: Option<ByteArray> = "Its module; NULL for activities of the runtime.";
        file: Option<ByteArray> = "Its source file.";
        line: Option<i32> = "The line in it.";
        stack: ByteArray = "All functions, the outermost first, separated by semicolons.";
    }
    AccountingRow "accounting": "Thread time by cause: the exact sums of stats, by thread and place." {
        thread: Option<i32> = "The thread; NULL for time of no thread.";
        place: Option<i32> = "The place, as in places; NULL in serial code and for time without a place.";
        cause: Word = "The cause: useful, or why the time was lost.";
        ns: i64 = "The time. A row without thread may be below 0, if events were inconsistent.";
    }
    BlameRow<'a> "blame": "The causes of waits: for each cause, the rows add up to its accounting." {
        cause: Word = "The cause of the waits.";
        construct: &'a str = "The construct that threads waited for.";
        file: Option<&'a str> = "Its source file.";
        line: Option<i32> = "The line in it.";
        function: Option<&'a str> = "The function.";
        ns: i64 = "The time of all threads together.";
        position: Option<&'a str> = "How function, file and line are related to the construct: at; inside, if it is in the code at that line or in a function called there; near, if the line may be that of an earlier statement. Before or after, for serial code.";
    }
    RegionRow<'a> "regions": "Thread time in the outermost parallel regions of a place, by cause." {
        construct: &'a str = "The construct.";
        file: Option<&'a str> = "Its source file.";
        line: Option<i32> = "The line in it.";
        function: Option<&'a str> = "The function.";
        visits: i64 = "How often it was entered; the same in all rows of the place.";
        duration_ns: i64 = "Its time from start to end, on the thread that encountered it; the same in all rows of the place.";
        cause: Word = "The cause.";
        ns: i64 = "The time of all threads together.";
        position: Option<&'a str> = "How function, file and line are related to the construct: at; inside, if it is in the code at that line or in a function called there; near, if the line may be that of an earlier statement. Before or after, for serial code.";
    }
    PathRow<'a> "critical_path": "Useful work on the longest chain of work through all threads of the process." {
        construct: &'a str = "The construct.";
        file: Option<&'a str> = "Its source file.";
        line: Option<i32> = "The line in it.";
        function: Option<&'a str> = "The function.";
        ns: i64 = "The time.";
        position: Option<&'a str> = "How function, file and line are related to the construct: at; inside, if it is in the code at that line or in a function called there; near, if the line may be that of an earlier statement. Before or after, for serial code.";
    }
    EventRow "events": "The runtime's events, uninterpreted. Only with --raw-events." {
        stream: i32 = "The thread's or device queue's stream in the trace.";
        time_ns: i64 = "When.";
        event: ByteArray = "The event, as OMPT names it.";
        arguments: ByteArray = "Its arguments by their OMPT names, as JSON.";
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
