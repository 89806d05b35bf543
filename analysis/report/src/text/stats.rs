//! The statistics as tables for terminals.

use std::fmt;

use super::cells::cells;
use super::constructs::{
    CONSTRUCT, LOCK, PHASE, RANGE, REGION, construct_row, lock_row, phase_row, range_row, region_row,
};
use super::devices::{DEVICE, DEVICE_USE, MEMORY, TRANSFERS, device_use_row, memory_rows, transfer_rows};
use super::job::{job_gain_line, job_path_lines};
use super::overview::{due_words, head, headline, write_blocked};
use super::rank_waits::rank_wait_lines;
use super::ranks::rank_lines;
use super::table::{
    Layout, Table, column, column_of, counted, percent, time, with_commas, write_more, write_wrapped,
};
use super::threads::{
    FUNCTION, HELPER, PROCESS, THREAD, counter_names, counter_row, function_row, helper_row,
    more_processes_words, process_row, serial_words, thread_row, time_words,
};
use omptrace_analysis::SampledTime;
use omptrace_analysis::{Analysed, ConstructStats, DeviceStats, Stats, ThreadStats};

/// Number of locks that are shown.
const MAX_LOCKS: usize = 20;

/// `1,200 samples: 1.20 s of CPU time, 1.10 s OpenMP work, 100 ms OpenMP wait`.
fn sampled_words(sampled: &SampledTime) -> String {
    let lost = match sampled.lost {
        0 => String::new(),
        lost => format!("; {} samples lost, which represent {}", with_commas(lost), time(sampled.lost_ns)),
    };
    format!(
        "{}: {} of CPU time, {} OpenMP work, {} OpenMP wait{lost}",
        counted(sampled.samples, "sample"),
        time(sampled.sampled_ns),
        time(sampled.work_ns),
        time(sampled.wait_ns)
    )
}

/// `of 2.000 s to 2.500 s, phase solve, thread main`.
pub(crate) fn analysed_words(analysed: &Analysed) -> String {
    let seconds = |ns: i64| format!("{} s", ns as f64 / 1e9);
    let window = match (analysed.window_begin_ns, analysed.window_end_ns) {
        (Some(begin), Some(end)) => Some(format!("{} to {}", seconds(begin), seconds(end))),
        (Some(begin), None) => Some(format!("{} to the end", seconds(begin))),
        _ => None,
    };
    let steps = match (analysed.first_step, analysed.last_step) {
        (Some(first), Some(last)) if first == last => Some(format!("step {first}")),
        (Some(first), Some(last)) => Some(format!("steps {first} to {last}")),
        _ => None,
    };
    let phase = analysed.phase.as_ref().map(|name| format!("phase {name}"));
    let threads = analysed.threads.iter().map(|name| format!("thread {name}"));
    let words: Vec<String> = window.into_iter().chain(steps).chain(phase).chain(threads).collect();
    format!("of {}", words.join(", "))
}

/// The statistics as tables in this layout.
pub fn stats_tables(stats: &Stats, layout: Layout) -> impl fmt::Display {
    Tables { stats, layout }
}

fn write_head(stats: &Stats, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    let mut lines: Vec<String> = stats.analysed.iter().map(analysed_words).collect();
    match &stats.processes[..] {
        // If only a window is analysed, the time around it is unknown.
        _ if is_part(stats) => {
            lines.push(format!("{} analysed", time(stats.answers.duration_ns)));
        }
        [process] => {
            lines.push(time_words(process));
            let serial = serial_words(process);
            lines.extend(serial.map(|(serial, place)| format!("{serial} serial: {place}")));
        }
        _ => lines.push(format!("{} from start to end of the run", time(stats.answers.duration_ns))),
    }
    let of_team = |thread: &&ThreadStats| thread.role != "helper" && thread.parallel_ns > Some(0);
    let in_teams: Vec<_> = stats.threads.iter().filter(of_team).collect();
    let sum = |what: fn(&ThreadStats) -> Option<u64>| {
        let known = in_teams.iter().filter_map(|thread| what(thread));
        known.fold(0, u64::saturating_add)
    };
    let (parallel, working) = (sum(|t| t.parallel_ns), sum(|t| t.working_ns));
    if parallel > 0 {
        let waiting = parallel.saturating_sub(working) as f64 / parallel as f64;
        lines
            .push(format!("in parallel regions, threads spent {} % of their time waiting", percent(waiting)));
    }
    lines.push("times of constructs are summed over threads".to_owned());
    for line in lines {
        write_wrapped(f, &line, 0, layout)?;
    }
    writeln!(f)
}

/// Whether only a part of the run was analysed.
fn is_part(stats: &Stats) -> bool {
    let has_part = |of: &Analysed| of.window_begin_ns.is_some() || of.phase.is_some();
    stats.analysed.as_ref().is_some_and(has_part)
}

fn write_phases(stats: &Stats, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    if !stats.ranges.is_empty() {
        let mut tree = Table::new("phase", &RANGE);
        for range in &stats.ranges {
            let analysed = stats.phases.iter().find(|phase| phase.name == range.name);
            range_row(&mut tree, range, analysed);
        }
        tree.write(f, layout)?;
        write_more(f, tree.len(), layout.top, "phase")?;
        return write_steps(stats, f, layout);
    }
    let mut table = Table::new("phase", &PHASE);
    let rows = stats.phases.iter();
    rows.for_each(|phase| phase_row(&mut table, phase));
    table.write(f, layout)?;
    write_more(f, table.len(), layout.top, "phase")
}

/// The time steps, in words, and the longest of them.
fn write_steps(stats: &Stats, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    let Some(steps) = &stats.steps else { return Ok(()) };
    writeln!(f)?;
    let mut words = format!(
        "time steps ({}): {}, median {}, 95 % take at most {}, longest {}",
        steps.name,
        with_commas(steps.count),
        time(steps.median_ns),
        time(steps.p95_ns),
        time(steps.longest_ns)
    );
    if let Some(ns) = steps.warm_up_ns {
        words += &format!("; the first took {}", time(ns));
    }
    if let Some(ns) = steps.drift_ns {
        let (more, ns) = if ns < 0.0 { ("less", -ns) } else { ("more", ns) };
        words += &format!("; each step takes {} {more} than the previous step", time(ns.round() as u64));
    }
    write_wrapped(f, &words, 0, layout)?;
    for step in &steps.worst {
        let (took, times) = (time(step.duration_ns), steps.medians(step));
        let mut words = format!("step {} took {took} ({times:.1} x the median)", step.number);
        if let Some(why) = step.why() {
            words += &format!(": {why}");
        }
        write_wrapped(f, &words, 2, layout)?;
    }
    Ok(())
}

fn write_threads(stats: &Stats, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    // Users look for each of their threads, so all are shown.
    let layout = layout.of_all();
    let processes = stats.threads.chunk_by(|a, b| a.process_id == b.process_id);
    let processes = processes.count();
    let most = layout.top.unwrap_or(usize::MAX);
    let of_processes = stats.threads.chunk_by(|a, b| a.process_id == b.process_id);
    for threads in of_processes.take(most) {
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
        write_more(f, table.len(), layout.top, "thread")?;
        if !helpers.is_empty() {
            helpers.write(f, &layout)?;
        }
        let id = threads[0].process_id;
        let process = stats.processes.iter().find(|process| process.id == id);
        for words in process.into_iter().flat_map(|process| &process.unknown) {
            write_wrapped(f, &format!("not known: {words}"), 0, &layout)?;
        }
    }
    match processes.saturating_sub(most) {
        0 => Ok(()),
        more => writeln!(f, "and threads of {}", more_processes_words(more)),
    }
}

fn write_processes(stats: &Stats, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    let mut table = Table::new("process", &PROCESS);
    let rows = stats.processes.iter();
    rows.for_each(|process| process_row(&mut table, process));
    if let Some(ranks) = &stats.ranks {
        for line in rank_lines(ranks) {
            write_wrapped(f, &line, 0, layout)?;
        }
        writeln!(f)?;
    }
    let top = layout.top.unwrap_or(usize::MAX);
    let waits = stats.rank_waits.as_ref().map(|waits| rank_wait_lines(waits, top));
    let path = stats.job_path.as_ref().map(|path| job_path_lines(path, top));
    let gains = stats.job_gains.as_ref().and_then(|gains| job_gain_line(gains, top));
    for lines in [waits.unwrap_or_default(), path.unwrap_or_default(), gains.into_iter().collect()] {
        for (number, line) in lines.iter().enumerate() {
            write_wrapped(f, line, if number == 0 { 0 } else { 2 }, layout)?;
        }
        if !lines.is_empty() {
            writeln!(f)?;
        }
    }
    let layout = layout.of_all();
    table.write(f, &layout)?;
    let more = table.len().saturating_sub(layout.top.unwrap_or(usize::MAX));
    match more {
        0 => Ok(()),
        more => writeln!(f, "and {}", more_processes_words(more)),
    }
}

fn write_constructs(
    stats: &Stats,
    f: &mut fmt::Formatter<'_>,
    layout: &Layout,
    is_wanted: impl Fn(&ConstructStats) -> bool,
) -> fmt::Result {
    let mut table = Table::new("construct", &CONSTRUCT);
    let rows = stats.constructs.iter().filter(|row| is_wanted(row));
    rows.for_each(|construct| construct_row(&mut table, construct));
    table.write(f, layout)?;
    write_more(f, table.len(), layout.top, "construct")
}

fn write_functions(stats: &Stats, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    let Some(sampled) = &stats.sampling else {
        let why = stats.no_samples.as_deref().unwrap_or("none were taken");
        return write_wrapped(f, &format!("no samples in this trace: {why}"), 0, layout);
    };
    write_wrapped(f, &sampled_words(sampled), 0, layout)?;
    let mut table = Table::new("function", &FUNCTION);
    let rows = stats.functions.iter();
    rows.for_each(|function| function_row(&mut table, function, sampled.sampled_ns));
    table.write(f, layout)?;
    write_more(f, table.len(), layout.top, "function")?;
    match due_words(&stats.answers) {
        Some(words) => write_wrapped(f, &words, 0, layout),
        None => Ok(()),
    }
}

fn write_counters(stats: &Stats, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    if !stats.counters.is_empty() {
        let names = counter_names(&stats.counters);
        let has_ratios = names.contains(&"cycles");
        let mut columns = vec![column("visits", 2), column("time", 0)];
        if has_ratios {
            columns.extend([column("IPC", 0), column("GHz", 1)]);
        }
        columns.extend(names.iter().map(|name| column_of((*name).to_owned(), 1)));
        let mut table = Table::new("construct", &columns);
        for stats in &stats.counters {
            counter_row(&mut table, stats, &names, has_ratios);
        }
        table.write(f, layout)?;
        write_more(f, table.len(), layout.top, "construct")?;
    }
    for line in &stats.not_counted {
        write_wrapped(f, &format!("not known: {line}"), 0, layout)?;
    }
    Ok(())
}

fn write_regions(stats: &Stats, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    let mut table = Table::new("parallel region", &REGION);
    let rows = stats.answers.regions.iter();
    rows.for_each(|region| region_row(&mut table, region));
    table.write(f, layout)?;
    write_more(f, table.len(), layout.top, "region")
}

fn write_locks(stats: &Stats, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    let mut table = Table::new("lock", &LOCK);
    let rows = stats.locks.iter();
    rows.for_each(|lock| lock_row(&mut table, lock));
    if table.is_empty() {
        return write_wrapped(f, "no locks, critical or atomic regions were recorded", 0, layout);
    }
    table.write(f, layout)?;
    write_more(f, table.len(), layout.top, "lock")
}

fn write_devices(stats: &Stats, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
    if !stats.device_use.is_empty() {
        writeln!(f)?;
        let mut table = Table::new("device", &DEVICE_USE);
        let with_process = stats.processes.len() > 1;
        let rows = stats.device_use.iter();
        rows.for_each(|device| device_use_row(&mut table, device, with_process));
        table.write(f, layout)?;
        write_more(f, table.len(), layout.top, "device")?;
        let mut table = Table::new("transfers", &TRANSFERS);
        let rows = stats.device_use.iter();
        rows.for_each(|device| transfer_rows(&mut table, device, with_process));
        if !table.is_empty() {
            writeln!(f)?;
            table.write(f, layout)?;
            write_more(f, table.len(), layout.top, "row")?;
        }
        let mut table = Table::new("memory", &MEMORY);
        let rows = stats.device_use.iter();
        rows.for_each(|device| memory_rows(&mut table, device, with_process));
        if !table.is_empty() {
            writeln!(f)?;
            table.write(f, layout)?;
            write_more(f, table.len(), layout.top, "row")?;
        }
        for process in &stats.processes {
            if let Some(balance) = process.device_load_balance {
                writeln!(f)?;
                let of = match with_process {
                    true => format!(" of {}", process.name),
                    false => String::new(),
                };
                let balance = percent(balance);
                let words = format!("load balance of kernels across devices{of}: {balance} %");
                write_wrapped(f, &words, 0, layout)?;
            }
        }
    }
    let queues = stats.devices.iter();
    let mut queues: Vec<(u32, &str)> = queues.map(|device| (device.process_id, &*device.queue)).collect();
    queues.sort_unstable();
    queues.dedup();
    for queue in queues {
        writeln!(f)?;
        write_wrapped(f, queue.1, 0, layout)?;
        let of_queue = |device: &&DeviceStats| (device.process_id, &*device.queue) == queue;
        let mut table = Table::new("work", &DEVICE);
        for stats in stats.devices.iter().filter(of_queue) {
            let [total, mean, min, max] = cells(&stats.times);
            let count = stats.times.count.to_string();
            table.row(stats.name.clone(), [count, total, mean, min, max]);
        }
        table.write(f, layout)?;
        write_more(f, table.len(), layout.top, "row")?;
    }
    Ok(())
}

/// The headline, and only the table that `by` selects.
pub fn table_by(stats: &Stats, by: By, layout: Layout) -> impl fmt::Display {
    TableBy { stats, by, layout }
}

/// The entities that are the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Constructs, by source location.
    Construct,
    /// Parallel regions, by source location.
    Region,
    /// Functions, by samples.
    Function,
    /// Counters, by construct.
    Counter,
    /// Threads.
    Thread,
    /// Constructs of explicit tasks: tasks, and waits for them.
    Task,
    /// Locks, critical and atomic regions.
    Lock,
    /// The operations of devices, by queue.
    Device,
    /// Processes.
    Process,
    /// Phases of the user's.
    Phase,
}

impl By {
    /// All variants, each with its name and its description.
    pub const ALL: [(By, &str, &str); 10] = [
        (By::Construct, "construct", "Constructs, by source location"),
        (By::Region, "region", "Parallel regions, by source location, with efficiency and losses"),
        (
            By::Function,
            "function",
            "Functions, according to samples: CPU time without callees (self) and with callees (total)",
        ),
        (By::Counter, "counter", "Counters of each construct: instructions per cycle, page faults etc."),
        (By::Thread, "thread", "Threads"),
        (By::Task, "task", "Constructs of explicit tasks"),
        (By::Lock, "lock", "Locks, critical and atomic regions"),
        (By::Device, "device", "Work of devices"),
        (By::Process, "process", "Processes"),
        (By::Phase, "phase", "The phases that the program marks, each analysed on its own"),
    ];

    /// The variant with this name.
    pub fn by_name(name: &str) -> Option<By> {
        let mut all = By::ALL.into_iter();
        all.find_map(|(by, other, _)| (other == name).then_some(by))
    }

    /// The JSON field that contains the rows.
    pub fn field(self) -> &'static str {
        match self {
            By::Construct | By::Task => "constructs",
            By::Region => "regions",
            By::Function => "functions",
            By::Counter => "counters",
            By::Thread => "per_thread",
            By::Lock => "locks",
            By::Device => "devices",
            By::Process => "processes",
            By::Phase => "phases",
        }
    }

    /// Whether the table includes this construct.
    pub fn is_of(self, construct: &ConstructStats) -> bool {
        self != By::Task || construct.category.starts_with("task")
    }
}

struct TableBy<'s> {
    stats: &'s Stats,
    by: By,
    layout: Layout,
}

impl fmt::Display for TableBy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableBy { stats, by, layout } = self;
        if let Some(headline) = headline(&stats.answers) {
            write_wrapped(f, &headline, 0, layout)?;
            if matches!(by, By::Thread | By::Device) {
                // These tables begin with a blank line.
            } else {
                writeln!(f)?;
            }
        }
        match by {
            By::Construct | By::Task => write_constructs(stats, f, layout, |construct| by.is_of(construct)),
            By::Region => write_regions(stats, f, layout),
            By::Function => write_functions(stats, f, layout),
            By::Counter => write_counters(stats, f, layout),
            By::Thread => write_threads(stats, f, layout),
            By::Lock => {
                write_locks(stats, f, layout)?;
                write_blocked(&stats.answers, f, layout)
            }
            By::Device => write_devices(stats, f, layout),
            By::Process => write_processes(stats, f, layout),
            By::Phase => write_phases(stats, f, layout),
        }
    }
}

struct Tables<'s> {
    stats: &'s Stats,
    layout: Layout,
}

impl fmt::Display for Tables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tables { stats, layout } = self;
        write!(f, "{}", head(&stats.answers, *layout))?;
        write_head(stats, f, layout)?;
        if stats.processes.len() > 1 {
            write_processes(stats, f, layout)?;
            writeln!(f)?;
        }
        if !stats.phases.is_empty() || !stats.ranges.is_empty() {
            write_phases(stats, f, layout)?;
            writeln!(f)?;
        }
        write_constructs(stats, f, layout, |_| true)?;
        if stats.sampling.is_some() {
            writeln!(f)?;
            write_functions(stats, f, layout)?;
        }
        if !stats.counters.is_empty() {
            writeln!(f)?;
            write_counters(stats, f, layout)?;
        }
        write_threads(stats, f, layout)?;
        if !stats.locks.is_empty() {
            writeln!(f)?;
            let layout = Layout { top: Some(layout.top.unwrap_or(MAX_LOCKS)), ..*layout };
            write_locks(stats, f, &layout)?;
        }
        write_devices(stats, f, layout)
    }
}
