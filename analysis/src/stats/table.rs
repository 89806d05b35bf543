//! The numbers as tables for people.

use std::fmt::{self, Write as _};

use crate::stats::{
    ConstructStats, DeviceStats, LockStats, ProcessStats, Stats, ThreadStats, Times,
};
use omptrace_timeline::sink::short_name;

/// Locks that are shown.
const MAX_LOCKS: usize = 20;
/// Letters that the names are given at least: columns are left out for them.
const MIN_FOR_NAMES: usize = 28;

/// How the tables are laid out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// The letters of a line; `None` for as many as it takes.
    pub width: Option<usize>,
    /// The rows of each table but that of threads, and of processes; `None` for all.
    pub top: Option<usize>,
}

/// A column of numbers.
#[derive(Clone, Copy)]
struct Column {
    heading: &'static str,
    /// Where there is no room for all, the greatest is left out first.
    rank: u8,
    /// Whether it is shown that says nothing, in any row.
    empty: Empty,
}

/// Whether a column without content is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    Shown,
    /// It is the first to go where there is no room for all.
    IfThereIsRoom,
    Never,
}

const fn column(heading: &'static str, rank: u8) -> Column {
    Column {
        heading,
        rank,
        empty: Empty::Shown,
    }
}

impl Column {
    const fn if_empty(self, empty: Empty) -> Column {
        Column { empty, ..self }
    }
}

struct Row {
    name: String,
    cells: Vec<String>,
    /// Words of a line below.
    below: Option<String>,
}

/// A table: the first column is names, the others are numbers.
struct Table {
    heading: &'static str,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

fn letters(text: &str) -> usize {
    text.chars().count()
}

impl Table {
    fn new(heading: &'static str, columns: &[Column]) -> Table {
        Table {
            heading,
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    fn row(&mut self, name: String, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        let below = None;
        self.rows.push(Row { name, cells, below });
    }

    /// The letters of a column.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| letters(&row.cells[column]));
        let heading = letters(self.columns[column].heading);
        cells.max().unwrap_or(0).max(heading)
    }

    /// The columns that are shown, those that are not for want of room, and the letters between two.
    fn fit(&self, layout: &Layout) -> (Vec<usize>, Vec<usize>, usize) {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let is_empty = |column: usize, empty: Empty| {
            let says_nothing = |row: &Row| ["", "0", "0 ns"].contains(&&*row.cells[column]);
            self.columns[column].empty == empty && self.rows.iter().all(says_nothing)
        };
        shown.retain(|column| !is_empty(*column, Empty::Never));
        let Some(width) = layout.width else {
            return (shown, Vec::new(), 2);
        };
        let names = self.rows.iter().map(|row| letters(&row.name));
        let longest = names.max().unwrap_or(0).max(letters(self.heading));
        let room = width.saturating_sub(longest.min(MIN_FOR_NAMES));
        let fits = |shown: &[usize], gap: usize| {
            let widths = shown.iter().map(|column| gap + self.width(*column));
            widths.sum::<usize>() <= room
        };
        let mut left_out = Vec::new();
        while !fits(&shown, 2)
            && let Some(place) = shown
                .iter()
                .rposition(|column| is_empty(*column, Empty::IfThereIsRoom))
        {
            shown.remove(place);
        }
        while !fits(&shown, 1) && shown.len() > 1 {
            let rank = |column: &usize| (self.columns[*column].rank, *column);
            let Some(least) = shown.iter().copied().max_by_key(rank) else {
                break;
            };
            shown.retain(|column| *column != least);
            left_out.push(least);
        }
        left_out.sort_unstable();
        let gap = if fits(&shown, 2) { 2 } else { 1 };
        (shown, left_out, gap)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        let (shown, left_out, gap) = self.fit(layout);
        let widths: Vec<usize> = shown.iter().map(|column| self.width(*column)).collect();
        let numbers: usize = widths.iter().map(|width| gap + width).sum();
        // Without a limit, longer names than these would push all numbers aside.
        let most = layout
            .width
            .map_or(64, |width| width.saturating_sub(numbers));
        let beside = self.rows.iter().map(|row| letters(&row.name));
        let beside = beside.filter(|letters| *letters <= most);
        let names = beside.max().unwrap_or(0).max(letters(self.heading));
        let line = |f: &mut fmt::Formatter<'_>, name: &str, cells: &[&str]| -> fmt::Result {
            if letters(name) > names {
                write_wrapped(f, name, 0, layout)?;
                write!(f, "{:names$}", "")?;
            } else {
                write!(f, "{name:<names$}")?;
            }
            let mut numbers = String::new();
            for (cell, width) in cells.iter().zip(&widths) {
                let _ = write!(numbers, "{:gap$}{cell:>width$}", "");
            }
            writeln!(f, "{}", numbers.trim_end())
        };
        let headings: Vec<&str> = shown
            .iter()
            .map(|column| self.columns[*column].heading)
            .collect();
        line(f, self.heading, &headings)?;
        let rows = self.rows.len().min(layout.top.unwrap_or(usize::MAX));
        for row in &self.rows[..rows] {
            let cells: Vec<&str> = shown.iter().map(|column| &*row.cells[*column]).collect();
            line(f, &row.name, &cells)?;
            if let Some(below) = &row.below {
                write_wrapped(f, below, 2, layout)?;
            }
        }
        if !left_out.is_empty() {
            let headings = left_out.iter().map(|column| self.columns[*column].heading);
            let words = format!(
                "(no room for: {}; --json, or COLUMNS=160, shows all)",
                headings.collect::<Vec<_>>().join(", ")
            );
            write_wrapped(f, &words, 0, layout)?;
        }
        Ok(())
    }
}

/// Writes words on as many lines as they take, with `blanks` blanks in front.
fn write_wrapped(
    f: &mut fmt::Formatter<'_>,
    words: &str,
    indent: usize,
    layout: &Layout,
) -> fmt::Result {
    let width = layout.width.unwrap_or(usize::MAX).saturating_sub(indent);
    let width = width.max(1);
    let mut line = String::new();
    for mut word in words.split(' ') {
        let sum = letters(&line) + letters(word);
        if !line.is_empty() && sum < width {
            line.push(' ');
        } else if !line.is_empty() {
            writeln!(f, "{:indent$}{line}", "")?;
            line.clear();
        }
        // A name longer than a line.
        while letters(word) > width {
            let end = word.char_indices().nth(width).map_or(word.len(), |at| at.0);
            writeln!(f, "{:indent$}{}", "", &word[..end])?;
            word = &word[end..];
        }
        line += word;
    }
    writeln!(f, "{:indent$}{line}", "")
}

/// A time with three digits or more: `1.23 ms`.
fn time(ns: u64) -> String {
    let in_unit = |unit: f64, name: &str| {
        let value = ns as f64 / unit;
        let decimals = if value < 10.0 {
            2
        } else {
            usize::from(value < 100.0)
        };
        format!("{value:.decimals$} {name}")
    };
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => in_unit(1e3, "us"),
        1_000_000..1_000_000_000 => in_unit(1e6, "ms"),
        _ => in_unit(1e9, "s"),
    }
}

/// The same, where it is known.
fn known_time(ns: Option<u64>) -> String {
    ns.map_or_else(|| UNKNOWN.to_owned(), time)
}

/// A share in percent, without the sign: the heading has it.
fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// A number with commas: `900,000`.
fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn counted(number: u64, thing: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {thing}{s}", with_commas(number))
}

/// Total, mean, min, max.
fn cells(times: &Times) -> [String; 4] {
    let has_duration = times.max_ns > 0;
    let cell = |ns, is_known| match is_known {
        true => time(ns),
        false => UNKNOWN.to_owned(),
    };
    let has_whole = has_duration && !times.is_of_parts;
    [
        cell(times.total_ns, has_duration),
        cell(times.mean_ns, has_whole),
        cell(times.min_ns, has_whole),
        cell(times.max_ns, has_whole),
    ]
}

/// What is shown where a number is not known.
const UNKNOWN: &str = "-";

/// A count, where it is known.
fn known(number: Option<u64>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string())
}

const CONSTRUCT: [Column; 9] = [
    column("count", 0),
    column("total", 1),
    column("self", 0),
    column("mean", 2),
    column("self mean", 4),
    column("min", 5),
    column("max", 3),
    column("waiting %", 0),
    column("imbalance %", 0).if_empty(Empty::IfThereIsRoom),
];

fn construct_row(table: &mut Table, stats: &ConstructStats) {
    let [total, mean, min, max] = cells(&stats.times);
    let has_duration = stats.times.max_ns > 0;
    let own = |ns: Option<u64>| known_time(ns.filter(|_| has_duration));
    let times = &stats.times;
    let waiting = stats.wait_share().filter(|_| has_duration);
    let imbalance = stats.team.map(|team| percent(team.imbalance()));
    let cells = [
        known((!times.is_of_parts).then_some(times.count)),
        total,
        own(Some(stats.self_ns)),
        mean,
        own(stats.self_mean_ns),
        min,
        max,
        waiting.map_or_else(|| UNKNOWN.to_owned(), percent),
        imbalance.unwrap_or_default(),
    ];
    table.row(short_name(&stats.name).to_owned(), cells);
    if let Some(row) = table.rows.last_mut() {
        row.below = loop_words(stats);
    }
}

/// How a loop was handed out.
fn loop_words(stats: &ConstructStats) -> Option<String> {
    let schedule = stats.schedule.as_deref();
    let schedule = schedule.map(|schedule| format!("schedule {schedule}"));
    let chunks = stats.of_loop.map(|of_loop| {
        let each = of_loop.iterations_per_chunk;
        let each = if each.fract() == 0.0 {
            counted(each as u64, "iteration")
        } else {
            format!("{each:.1} iterations")
        };
        format!(
            "{} of {each}, {} each",
            counted(of_loop.chunks, "chunk"),
            time(of_loop.chunk_mean_ns)
        )
    });
    match (schedule, chunks) {
        (Some(schedule), Some(chunks)) => Some(format!("{schedule}, {chunks}")),
        (one, other) => one.or(other),
    }
}

const THREAD: [Column; 10] = [
    column("parallel", 0),
    column("working", 0),
    column("barriers", 0).if_empty(Empty::IfThereIsRoom),
    column("taskwaits", 0).if_empty(Empty::IfThereIsRoom),
    column("locks", 0).if_empty(Empty::IfThereIsRoom),
    column("wake-up", 1).if_empty(Empty::IfThereIsRoom),
    column("serial", 0),
    column("idle", 0),
    column("unknown", 0).if_empty(Empty::Never),
    column("tasks", 2),
];

fn thread_row(table: &mut Table, stats: &ThreadStats) {
    let cells = [
        known_time(stats.parallel_ns),
        known_time(stats.working_ns),
        known_time(stats.barriers_ns),
        known_time(stats.taskwaits_ns),
        known_time(stats.locks_ns),
        known_time(stats.wake_up_ns),
        time(stats.serial_ns),
        known_time(stats.idle_ns),
        time(stats.unknown_ns),
        known(stats.tasks),
    ];
    table.row(stats.name.clone(), cells);
}

const HELPER: [Column; 3] = [column("working", 0), column("idle", 0), column("tasks", 0)];

fn helper_row(table: &mut Table, stats: &ThreadStats) {
    let cells = [
        known_time(stats.working_ns),
        known_time(stats.idle_ns),
        known(stats.tasks),
    ];
    table.row(stats.name.clone(), cells);
}

const LOCK: [Column; 8] = [
    column("got", 0),
    column("waits", 0),
    column("waited", 0),
    column("not got", 0).if_empty(Empty::Never),
    column("held", 0),
    column("mean", 1),
    column("min", 3),
    column("max", 2),
];

fn lock_row(table: &mut Table, stats: &LockStats) {
    let unknown = || [(); 4].map(|()| UNKNOWN.to_owned());
    let [held, mean, min, max] = stats.times.as_ref().map_or_else(unknown, cells);
    let cells = [
        stats.acquisitions.to_string(),
        known(stats.waits),
        known_time(stats.waiting_ns),
        stats.failures.to_string(),
        held,
        mean,
        min,
        max,
    ];
    let address = stats.name.strip_prefix("lock ").unwrap_or(&stats.name);
    table.row(format!("L{} {address}", stats.number), cells);
    if let Some(row) = table.rows.last_mut() {
        row.below = stats.place.clone();
    }
}

const DEVICE: [Column; 5] = [
    column("count", 0),
    column("total", 0),
    column("mean", 1),
    column("min", 3),
    column("max", 2),
];

const PROCESS: [Column; 6] = [
    column("threads", 2),
    column("time", 0),
    column("serial", 0),
    column("before", 1),
    column("between", 1),
    column("after", 1),
];

fn process_row(table: &mut Table, stats: &ProcessStats) {
    let cells = [
        stats.threads.to_string(),
        time(stats.duration_ns),
        known_time(stats.serial_ns),
        known_time(stats.serial_before_ns),
        known_time(stats.serial_between_ns),
        known_time(stats.serial_after_ns),
    ];
    table.row(stats.name.clone(), cells);
}

/// The lines above the tables: how long it took, and what of that was serial.
impl ProcessStats {
    /// Words about the time from start to end.
    pub(crate) fn time_words(&self) -> String {
        let time_of = time(self.duration_ns);
        match self.before_tracing_ns {
            Some(_) => format!("{time_of} from start to end of the process"),
            None => format!(
                "{time_of} from start to end of the trace; it does not say when the process started"
            ),
        }
    }

    /// Words about serial time: how much, and where it lies.
    pub(crate) fn serial_words(&self) -> Option<(String, String)> {
        let serial = time(self.serial_ns?);
        let parts = (
            self.serial_before_ns,
            self.serial_between_ns,
            self.serial_after_ns,
        );
        let (Some(before), Some(between), Some(after)) = parts else {
            return Some((serial, "older events were overwritten".to_owned()));
        };
        let [before, between, after] = [before, between, after].map(time);
        let has_region =
            self.serial_before_ns < self.serial_ns || self.serial_ns < Some(self.duration_ns);
        let where_it_lies = if has_region {
            format!(
                "{before} before the first parallel region, {between} between regions, {after} after the last"
            )
        } else {
            "the main thread was in no parallel region".to_owned()
        };
        Some((serial, where_it_lies))
    }
}

impl Stats {
    /// The numbers as tables, laid out like this.
    pub fn tables(&self, layout: Layout) -> impl fmt::Display {
        Tables {
            stats: self,
            layout,
        }
    }

    fn write_head(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        let mut lines = Vec::new();
        match &self.processes[..] {
            [process] => {
                lines.push(process.time_words());
                let serial = process.serial_words();
                lines.extend(serial.map(|(serial, place)| format!("{serial} serial: {place}")));
            }
            _ => lines.push(format!("{} from start to end", time(self.duration_ns))),
        }
        let of_team =
            |thread: &&ThreadStats| thread.role != "helper" && thread.parallel_ns > Some(0);
        let in_teams: Vec<_> = self.threads.iter().filter(of_team).collect();
        let sum = |what: fn(&ThreadStats) -> Option<u64>| {
            let known = in_teams.iter().filter_map(|thread| what(thread));
            known.fold(0, u64::saturating_add)
        };
        let (parallel, working) = (sum(|t| t.parallel_ns), sum(|t| t.working_ns));
        if parallel > 0 {
            let waiting = (parallel - working) as f64 / parallel as f64;
            lines.push(format!(
                "in parallel regions, threads waited {} % of their time",
                percent(waiting)
            ));
        }
        lines.push("times of constructs are sums over threads".to_owned());
        for line in lines {
            write_wrapped(f, &line, 0, layout)?;
        }
        writeln!(f)
    }

    fn write_threads(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        // People look for all of their threads.
        let layout = Layout {
            top: None,
            ..*layout
        };
        for threads in self.threads.chunk_by(|a, b| a.process_id == b.process_id) {
            writeln!(f)?;
            write_wrapped(f, &threads[0].process, 0, &layout)?;
            let mut table = Table::new("thread", &THREAD);
            let mut helpers = Table::new("the runtime's own", &HELPER);
            for thread in threads {
                match thread.role {
                    "helper" => helper_row(&mut helpers, thread),
                    _ => thread_row(&mut table, thread),
                }
            }
            table.write(f, &layout)?;
            if !helpers.rows.is_empty() {
                helpers.write(f, &layout)?;
            }
            let process = self.processes.get(threads[0].process_id as usize);
            for words in process.into_iter().flat_map(|process| &process.unknown) {
                write_wrapped(f, &format!("not known: {words}"), 0, &layout)?;
            }
        }
        Ok(())
    }
}

struct Tables<'s> {
    stats: &'s Stats,
    layout: Layout,
}

impl fmt::Display for Tables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tables { stats, layout } = self;
        stats.write_head(f, layout)?;
        if stats.processes.len() > 1 {
            let mut table = Table::new("process", &PROCESS);
            let rows = stats.processes.iter();
            rows.for_each(|process| process_row(&mut table, process));
            let layout = Layout {
                top: None,
                ..*layout
            };
            table.write(f, &layout)?;
            writeln!(f)?;
        }
        let mut constructs = Table::new("construct", &CONSTRUCT);
        let rows = stats.constructs.iter();
        rows.for_each(|construct| construct_row(&mut constructs, construct));
        constructs.write(f, layout)?;
        write_more(f, stats.constructs.len(), layout.top, "construct")?;

        stats.write_threads(f, layout)?;
        if !stats.locks.is_empty() {
            writeln!(f)?;
            let mut table = Table::new("lock", &LOCK);
            let rows = stats.locks.iter();
            rows.for_each(|lock| lock_row(&mut table, lock));
            let top = layout.top.unwrap_or(MAX_LOCKS);
            let layout = Layout {
                top: Some(top),
                ..*layout
            };
            table.write(f, &layout)?;
            write_more(f, stats.locks.len(), Some(top), "lock")?;
        }
        if !stats.devices.is_empty() {
            let queues = stats.devices.iter();
            let mut queues: Vec<(u32, &str)> = queues
                .map(|device| (device.process_id, &*device.queue))
                .collect();
            queues.sort_unstable();
            queues.dedup();
            for queue in queues {
                writeln!(f)?;
                write_wrapped(f, queue.1, 0, layout)?;
                let of_queue = |device: &&DeviceStats| (device.process_id, &*device.queue) == queue;
                let rows: Vec<&DeviceStats> = stats.devices.iter().filter(of_queue).collect();
                let mut table = Table::new("work", &DEVICE);
                for stats in &rows {
                    let [total, mean, min, max] = cells(&stats.times);
                    let count = stats.times.count.to_string();
                    table.row(stats.name.clone(), [count, total, mean, min, max]);
                }
                table.write(f, layout)?;
                write_more(f, rows.len(), layout.top, "row")?;
            }
        }
        Ok(())
    }
}

/// Names rows that are not shown.
fn write_more(
    f: &mut fmt::Formatter<'_>,
    rows: usize,
    top: Option<usize>,
    thing: &str,
) -> fmt::Result {
    match rows.saturating_sub(top.unwrap_or(usize::MAX)) as u64 {
        0 => Ok(()),
        1 => writeln!(f, "and 1 {thing} more"),
        more => writeln!(f, "and {} {thing}s more", with_commas(more)),
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tables(Layout::default()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown(Table, Layout);

    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.write(f, &self.1)
        }
    }

    fn table(rows: &[(&str, [&str; 3])]) -> Table {
        let columns = [column("count", 0), column("min", 2), column("max", 1)];
        let mut table = Table::new("construct", &columns);
        for (name, cells) in rows {
            table.row((*name).to_owned(), cells.map(str::to_owned));
        }
        table
    }

    #[test]
    fn long_names_leave_the_columns_where_they_are() {
        let long = "x".repeat(65);
        let rows = [
            (&*long, ["12345678", "1 ns", "2 ns"]),
            ("short", ["1", "3 ns", "4 ns"]),
        ];
        assert_eq!(
            Shown(table(&rows), Layout::default()).to_string(),
            format!(
                "construct     count   min   max\n\
                 {long}\n           12345678  1 ns  2 ns\n\
                 short             1  3 ns  4 ns\n"
            )
        );
    }

    #[test]
    fn what_has_no_room_is_left_out_and_said() {
        let rows = [("a name of 20 letters", ["7", "1 ns", "2 ns"])];
        let shown = |width| {
            let layout = Layout {
                width: Some(width),
                top: None,
            };
            Shown(table(&rows), layout).to_string()
        };
        assert_eq!(
            shown(40),
            "construct             count   min   max\na name of 20 letters      7  1 ns  2 ns\n"
        );
        assert_eq!(
            shown(34),
            "construct             count   max\n\
             a name of 20 letters      7  2 ns\n\
             (no room for: min; --json, or\n\
             COLUMNS=160, shows all)\n"
        );
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        let texts = [0, 999, 1_000, 12_345, 123_456, 9_999_999, 1_500_000_000].map(time);
        assert_eq!(
            texts,
            [
                "0 ns", "999 ns", "1.00 us", "12.3 us", "123 us", "10.00 ms", "1.50 s"
            ]
        );
    }

    #[test]
    fn numbers_have_commas() {
        let texts = [0, 999, 1_000, 900_000, 1_234_567].map(with_commas);
        assert_eq!(texts, ["0", "999", "1,000", "900,000", "1,234,567"]);
    }
}
