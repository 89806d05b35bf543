//! The numbers as tables for people.

use std::fmt;

use crate::constructs::counters::CounterStats;
use crate::constructs::functions::{FunctionStats, SampledTime};
use crate::devices::{DeviceUse, Transfers};
use crate::model::accounting::Accounting;
use crate::model::answers::RegionAnswer;
use crate::model::cause::Cause;
use crate::model::process_stats::ProcessStats;
use crate::model::stats::{
    Analysed, ConstructStats, DeviceStats, LockStats, PhaseStats, Stats, ThreadStats, Times,
};
use crate::text::table::{
    Column, Empty, Layout, Table, UNKNOWN, bytes, column, column_of, counted, known, known_time, percent,
    time, with_commas, write_more, write_wrapped,
};
use omptrace_timeline::sink::short_name;

/// Locks that are shown.
const MAX_LOCKS: usize = 20;

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
    let name = short_name(&stats.name).to_owned();
    table.row_above(name, cells, loop_words(stats));
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
        format!("{} of {each}, {} each", counted(of_loop.chunks, "chunk"), time(of_loop.chunk_mean_ns))
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
    let cells = [known_time(stats.working_ns), known_time(stats.idle_ns), known(stats.tasks)];
    table.row(stats.name.clone(), cells);
}

const REGION: [Column; 7] = [
    column("visits", 1),
    column("time", 0),
    column("efficiency %", 0),
    column("load balance %", 3),
    column("lost", 0),
    column("most of it", 1),
    column("share %", 2),
];

fn region_row(table: &mut Table, region: &RegionAnswer) {
    let known = |share: Option<f64>| share.map_or_else(|| UNKNOWN.to_owned(), percent);
    let [lost, greatest, share] = lost(&region.accounting);
    let cells = [
        with_commas(region.visits),
        time(region.duration_ns),
        known(region.efficiency.parallel),
        known(region.efficiency.load_balance),
        lost,
        greatest,
        share,
    ];
    table.row(region.place.long(), cells);
}

/// The time lost, the cause of most of it, and that cause's share of all time.
fn lost(accounting: &Accounting) -> [String; 3] {
    let losses = accounting.iter();
    let losses = losses.filter(|(cause, ns)| cause.is_loss() && *ns > 0);
    let greatest = losses.max_by_key(|(cause, ns)| (*ns, std::cmp::Reverse(*cause)));
    let words = |(cause, _): (Cause, u64)| cause.name().replace('_', " ");
    let share = |(cause, _): (Cause, u64)| accounting.share(cause).map(percent);
    [
        time(accounting.lost()),
        greatest.map_or_else(String::new, words),
        greatest.and_then(share).unwrap_or_default(),
    ]
}

const PHASE: [Column; 8] = [
    column("count", 1),
    column("time", 0),
    column("threads", 2),
    column("efficiency %", 0),
    column("load balance %", 3),
    column("lost", 0),
    column("most of it", 1),
    column("share %", 2),
];

fn phase_row(table: &mut Table, phase: &PhaseStats) {
    let known = |share: Option<f64>| share.map_or_else(|| UNKNOWN.to_owned(), percent);
    let [lost, greatest, share] = lost(&phase.accounting);
    let cells = [
        with_commas(phase.count),
        time(phase.duration_ns),
        phase.threads.to_string(),
        known(phase.efficiency.parallel),
        known(phase.efficiency.load_balance),
        lost,
        greatest,
        share,
    ];
    table.row(phase.name.clone(), cells);
}

const FUNCTION: [Column; 7] = [
    column("self", 0),
    column("self %", 0),
    column("total", 1),
    column("total %", 2),
    column("wait", 3),
    column("others waited", 1).if_empty(Empty::IfThereIsRoom),
    column("on path", 2).if_empty(Empty::IfThereIsRoom),
];

fn function_row(table: &mut Table, function: &FunctionStats, all_ns: u64) {
    let share = |ns: u64| percent(ns as f64 / all_ns.max(1) as f64);
    let cells = [
        time(function.self_ns),
        share(function.self_ns),
        time(function.total_ns),
        share(function.total_ns),
        time(function.wait_ns),
        time(function.blame_ns),
        time(function.path_ns),
    ];
    table.row(function.function.clone(), cells);
}

/// The names of all counters, in order.
fn counter_names(counters: &[CounterStats]) -> Vec<&str> {
    let names = counters.iter().flat_map(|stats| stats.counters.keys());
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// `names` are those of the counters. Where cycles were counted, there are ratios of them.
fn counter_row(table: &mut Table, stats: &CounterStats, names: &[&str], has_ratios: bool) {
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| UNKNOWN.to_owned(), |ratio| format!("{ratio:.2}"));
    let value = |name: &&str| match (*name, stats.counters.get(*name)) {
        (_, None) => UNKNOWN.to_owned(),
        ("task-clock", Some(ns)) => time(*ns),
        (_, Some(value)) => with_commas(*value),
    };
    let mut cells = vec![with_commas(stats.visits), time(stats.counted_ns)];
    if has_ratios {
        cells.extend([stats.ipc, stats.ghz].map(ratio));
    }
    cells.extend(names.iter().map(value));
    let below = stats.no_ratios.clone().filter(|_| has_ratios);
    table.row_above(short_name(&stats.name).to_owned(), cells, below);
}

impl SampledTime {
    /// `1,200 samples: 1.20 s of processor time, 1.10 s OpenMP work, 100 ms OpenMP wait`.
    fn words(&self) -> String {
        let lost = match self.lost {
            0 => String::new(),
            lost => format!("; {} samples of {} lost", with_commas(lost), time(self.lost_ns)),
        };
        format!(
            "{}: {} of processor time, {} OpenMP work, {} OpenMP wait{lost}",
            counted(self.samples, "sample"),
            time(self.sampled_ns),
            time(self.work_ns),
            time(self.wait_ns)
        )
    }
}

impl Analysed {
    /// `of 2.000 s to 2.500 s, phase solve, thread main`.
    fn words(&self) -> String {
        let seconds = |ns: i64| format!("{} s", ns as f64 / 1e9);
        let window = match (self.window_begin_ns, self.window_end_ns) {
            (Some(begin), Some(end)) => Some(format!("{} to {}", seconds(begin), seconds(end))),
            (Some(begin), None) => Some(format!("{} to the end", seconds(begin))),
            _ => None,
        };
        let phase = self.phase.as_ref().map(|name| format!("phase {name}"));
        let threads = self.threads.iter().map(|name| format!("thread {name}"));
        let words: Vec<String> = window.into_iter().chain(phase).chain(threads).collect();
        format!("of {}", words.join(", "))
    }
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
    let name = format!("L{} {address}", stats.number);
    table.row_above(name, cells, stats.place_name.clone());
}

const DEVICE: [Column; 5] =
    [column("count", 0), column("total", 0), column("mean", 1), column("min", 3), column("max", 2)];

const TRANSFERS: [Column; 3] = [column("count", 1), column("moved", 0), column("time", 0)];

/// The transfers for each line, of a device.
fn transfer_rows(table: &mut Table, device: &DeviceUse, with_process: bool) {
    let name = device_name(device, with_process);
    let file_names = device.file_names();
    for of_place in &device.places {
        let direction = match of_place.direction {
            "to_device" => "to",
            _ => "from",
        };
        let place = of_place.site.name(&file_names);
        let place = place.map_or_else(String::new, |place| format!(" @{place}"));
        let cells = [of_place.count.to_string(), bytes(of_place.bytes), known_time(of_place.total_ns)];
        table.row(format!("{direction} {name}{place}"), cells);
    }
}

const MEMORY: [Column; 2] = [column("allocations", 0), column("in use at once", 0)];

/// What each line allocated, of a device.
fn memory_rows(table: &mut Table, device: &DeviceUse, with_process: bool) {
    let name = device_name(device, with_process);
    let file_names = device.file_names();
    for of_place in &device.memory {
        let place = of_place.site.name(&file_names);
        let place = place.map_or_else(String::new, |place| format!(" @{place}"));
        let cells = [of_place.allocations.to_string(), bytes(of_place.peak_bytes)];
        table.row(format!("on {name}{place}"), cells);
    }
}

fn device_name(device: &DeviceUse, with_process: bool) -> String {
    match with_process {
        true => format!("{} device {}", device.process, device.device_num),
        false => format!("device {}", device.device_num),
    }
}

const DEVICE_USE: [Column; 12] = [
    column("kernels", 0),
    column("kernel time", 0),
    column("transfers", 1),
    column("transfer time", 1),
    column("both", 3),
    column("idle", 2),
    column("launch mean", 2),
    column("launch max", 5),
    column("MB/s to", 4),
    column("MB/s from", 4),
    column("memory", 3),
    column("host-observed", 3),
];

fn device_use_row(table: &mut Table, device: &DeviceUse, with_process: bool) {
    const MEGA: u64 = 1_000_000;
    let rate = |transfers: &Transfers| known(transfers.bytes_per_second.map(|rate| rate / MEGA));
    let cells = [
        device.kernels.to_string(),
        known_time(device.kernels_ns),
        (device.to_device.count + device.from_device.count).to_string(),
        known_time(device.transfers_ns),
        known_time(device.overlap_ns),
        known_time(device.idle_ns),
        known_time(device.launch_mean_ns),
        known_time(device.launch_max_ns),
        rate(&device.to_device),
        rate(&device.from_device),
        device.peak_bytes.map_or_else(|| UNKNOWN.to_owned(), bytes),
        device.host_observed.to_string(),
    ];
    table.row(device_name(device, with_process), cells);
}

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
            None => {
                format!("{time_of} from start to end of the trace; it does not say when the process started")
            }
        }
    }

    /// Words about serial time: how much, and where it lies.
    pub(crate) fn serial_words(&self) -> Option<(String, String)> {
        let serial = time(self.serial_ns?);
        let parts = (self.serial_before_ns, self.serial_between_ns, self.serial_after_ns);
        let (Some(before), Some(between), Some(after)) = parts else {
            return Some((serial, "older events were overwritten".to_owned()));
        };
        let [before, between, after] = [before, between, after].map(time);
        let has_region = self.serial_before_ns < self.serial_ns || self.serial_ns < Some(self.duration_ns);
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
        Tables { stats: self, layout }
    }

    fn write_head(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        let mut lines: Vec<String> = self.analysed.iter().map(Analysed::words).collect();
        match &self.processes[..] {
            // Of a window, what lies around is not known.
            _ if self.is_part() => {
                lines.push(format!("{} analysed", time(self.answers.duration_ns)));
            }
            [process] => {
                lines.push(process.time_words());
                let serial = process.serial_words();
                lines.extend(serial.map(|(serial, place)| format!("{serial} serial: {place}")));
            }
            _ => lines.push(format!("{} from start to end", time(self.answers.duration_ns))),
        }
        let of_team = |thread: &&ThreadStats| thread.role != "helper" && thread.parallel_ns > Some(0);
        let in_teams: Vec<_> = self.threads.iter().filter(of_team).collect();
        let sum = |what: fn(&ThreadStats) -> Option<u64>| {
            let known = in_teams.iter().filter_map(|thread| what(thread));
            known.fold(0, u64::saturating_add)
        };
        let (parallel, working) = (sum(|t| t.parallel_ns), sum(|t| t.working_ns));
        if parallel > 0 {
            let waiting = parallel.saturating_sub(working) as f64 / parallel as f64;
            lines.push(format!("in parallel regions, threads waited {} % of their time", percent(waiting)));
        }
        lines.push("times of constructs are sums over threads".to_owned());
        for line in lines {
            write_wrapped(f, &line, 0, layout)?;
        }
        writeln!(f)
    }

    /// Whether a part of the time was analysed.
    fn is_part(&self) -> bool {
        let has_part = |of: &Analysed| of.window_begin_ns.is_some() || of.phase.is_some();
        self.analysed.as_ref().is_some_and(has_part)
    }

    fn write_phases(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        let mut table = Table::new("phase", &PHASE);
        let rows = self.phases.iter();
        rows.for_each(|phase| phase_row(&mut table, phase));
        table.write(f, layout)?;
        write_more(f, table.len(), layout.top, "phase")
    }

    fn write_threads(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        // People look for all of their threads.
        let layout = layout.of_all();
        let processes = self.threads.chunk_by(|a, b| a.process_id == b.process_id);
        let processes = processes.count();
        let most = layout.top.unwrap_or(usize::MAX);
        let of_processes = self.threads.chunk_by(|a, b| a.process_id == b.process_id);
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
            let process = self.processes.iter().find(|process| process.id == id);
            for words in process.into_iter().flat_map(|process| &process.unknown) {
                write_wrapped(f, &format!("not known: {words}"), 0, &layout)?;
            }
        }
        match processes.saturating_sub(most) {
            0 => Ok(()),
            more => writeln!(f, "and threads of {} more", processes_words(more)),
        }
    }

    fn write_processes(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        let mut table = Table::new("process", &PROCESS);
        let rows = self.processes.iter();
        rows.for_each(|process| process_row(&mut table, process));
        if let Some(ranks) = &self.ranks {
            ranks.write(f, layout)?;
            writeln!(f)?;
        }
        let layout = layout.of_all();
        table.write(f, &layout)?;
        let more = table.len().saturating_sub(layout.top.unwrap_or(usize::MAX));
        match more {
            0 => Ok(()),
            more => writeln!(f, "and {} more", processes_words(more)),
        }
    }

    fn write_constructs(
        &self,
        f: &mut fmt::Formatter<'_>,
        layout: &Layout,
        is_wanted: impl Fn(&ConstructStats) -> bool,
    ) -> fmt::Result {
        let mut table = Table::new("construct", &CONSTRUCT);
        let rows = self.constructs.iter().filter(|row| is_wanted(row));
        rows.for_each(|construct| construct_row(&mut table, construct));
        table.write(f, layout)?;
        write_more(f, table.len(), layout.top, "construct")
    }

    fn write_functions(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        let Some(sampled) = &self.sampling else {
            let why = self.no_samples.as_deref().unwrap_or("none were taken");
            return write_wrapped(f, &format!("no samples: {why}"), 0, layout);
        };
        write_wrapped(f, &sampled.words(), 0, layout)?;
        let mut table = Table::new("function", &FUNCTION);
        let rows = self.functions.iter();
        rows.for_each(|function| function_row(&mut table, function, sampled.sampled_ns));
        table.write(f, layout)?;
        write_more(f, table.len(), layout.top, "function")?;
        match self.answers.due_words() {
            Some(words) => write_wrapped(f, &words, 0, layout),
            None => Ok(()),
        }
    }

    fn write_counters(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        if !self.counters.is_empty() {
            let names = counter_names(&self.counters);
            let has_ratios = names.contains(&"cycles");
            let mut columns = vec![column("visits", 2), column("time", 0)];
            if has_ratios {
                columns.extend([column("IPC", 0), column("GHz", 1)]);
            }
            columns.extend(names.iter().map(|name| column_of((*name).to_owned(), 1)));
            let mut table = Table::new("construct", &columns);
            for stats in &self.counters {
                counter_row(&mut table, stats, &names, has_ratios);
            }
            table.write(f, layout)?;
            write_more(f, table.len(), layout.top, "construct")?;
        }
        for line in &self.not_counted {
            write_wrapped(f, &format!("not known: {line}"), 0, layout)?;
        }
        Ok(())
    }

    fn write_regions(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        let mut table = Table::new("parallel region", &REGION);
        let rows = self.answers.regions.iter();
        rows.for_each(|region| region_row(&mut table, region));
        table.write(f, layout)?;
        write_more(f, table.len(), layout.top, "region")
    }

    fn write_locks(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        let mut table = Table::new("lock", &LOCK);
        let rows = self.locks.iter();
        rows.for_each(|lock| lock_row(&mut table, lock));
        table.write(f, layout)?;
        write_more(f, table.len(), layout.top, "lock")
    }

    fn write_devices(&self, f: &mut fmt::Formatter<'_>, layout: &Layout) -> fmt::Result {
        if !self.device_use.is_empty() {
            writeln!(f)?;
            let mut table = Table::new("device", &DEVICE_USE);
            let with_process = self.processes.len() > 1;
            let rows = self.device_use.iter();
            rows.for_each(|device| device_use_row(&mut table, device, with_process));
            table.write(f, layout)?;
            write_more(f, table.len(), layout.top, "device")?;
            let mut table = Table::new("transfers", &TRANSFERS);
            let rows = self.device_use.iter();
            rows.for_each(|device| transfer_rows(&mut table, device, with_process));
            if !table.is_empty() {
                writeln!(f)?;
                table.write(f, layout)?;
                write_more(f, table.len(), layout.top, "row")?;
            }
            let mut table = Table::new("memory", &MEMORY);
            let rows = self.device_use.iter();
            rows.for_each(|device| memory_rows(&mut table, device, with_process));
            if !table.is_empty() {
                writeln!(f)?;
                table.write(f, layout)?;
                write_more(f, table.len(), layout.top, "row")?;
            }
            for process in &self.processes {
                if let Some(balance) = process.device_load_balance {
                    writeln!(f)?;
                    let of = match with_process {
                        true => format!(" of {}", process.name),
                        false => String::new(),
                    };
                    let balance = percent(balance);
                    let words = format!("load balance of kernels over devices{of}: {balance} %");
                    write_wrapped(f, &words, 0, layout)?;
                }
            }
        }
        let queues = self.devices.iter();
        let mut queues: Vec<(u32, &str)> = queues.map(|device| (device.process_id, &*device.queue)).collect();
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            writeln!(f)?;
            write_wrapped(f, queue.1, 0, layout)?;
            let of_queue = |device: &&DeviceStats| (device.process_id, &*device.queue) == queue;
            let mut table = Table::new("work", &DEVICE);
            for stats in self.devices.iter().filter(of_queue) {
                let [total, mean, min, max] = cells(&stats.times);
                let count = stats.times.count.to_string();
                table.row(stats.name.clone(), [count, total, mean, min, max]);
            }
            table.write(f, layout)?;
            write_more(f, table.len(), layout.top, "row")?;
        }
        Ok(())
    }

    /// The headline, and the one table of what `by` names.
    pub fn table_by(&self, by: By, layout: Layout) -> impl fmt::Display {
        TableBy { stats: self, by, layout }
    }
}

/// `1 process`, `2 processes`.
fn processes_words(count: usize) -> String {
    counted(count as u64, "process").replace("processs", "processes")
}

/// The things that are a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Constructs, by place.
    Construct,
    /// Parallel regions, by place.
    Region,
    /// Functions, by samples.
    Function,
    /// What threads counted in constructs.
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
    /// All, with their names and what they are.
    pub const ALL: [(By, &str, &str); 10] = [
        (By::Construct, "construct", "Constructs, by place"),
        (By::Region, "region", "Parallel regions, by place, with their efficiency and what was lost"),
        (By::Function, "function", "Functions, by samples: processor time in each, and with what it called"),
        (
            By::Counter,
            "counter",
            "What threads counted in each construct: instructions per cycle, page faults and so on",
        ),
        (By::Thread, "thread", "Threads"),
        (By::Task, "task", "Constructs of explicit tasks"),
        (By::Lock, "lock", "Locks, critical and atomic regions"),
        (By::Device, "device", "What devices did"),
        (By::Process, "process", "Processes"),
        (By::Phase, "phase", "The user's phases, each analysed alone"),
    ];

    /// The rows that have this name.
    pub fn by_name(name: &str) -> Option<By> {
        let mut all = By::ALL.into_iter();
        all.find_map(|(by, other, _)| (other == name).then_some(by))
    }

    /// The field of the JSON that has the rows.
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

    /// Whether a construct is wanted.
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
        if let Some(headline) = stats.answers.headline() {
            write_wrapped(f, &headline, 0, layout)?;
            if matches!(by, By::Thread | By::Device) {
                // These begin with a blank line.
            } else {
                writeln!(f)?;
            }
        }
        match by {
            By::Construct | By::Task => stats.write_constructs(f, layout, |construct| by.is_of(construct)),
            By::Region => stats.write_regions(f, layout),
            By::Function => stats.write_functions(f, layout),
            By::Counter => stats.write_counters(f, layout),
            By::Thread => stats.write_threads(f, layout),
            By::Lock => {
                stats.write_locks(f, layout)?;
                stats.answers.write_blocked(f, layout)
            }
            By::Device => stats.write_devices(f, layout),
            By::Process => stats.write_processes(f, layout),
            By::Phase => stats.write_phases(f, layout),
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
        write!(f, "{}", stats.answers.head(*layout))?;
        stats.write_head(f, layout)?;
        if stats.processes.len() > 1 {
            stats.write_processes(f, layout)?;
            writeln!(f)?;
        }
        if !stats.phases.is_empty() {
            stats.write_phases(f, layout)?;
            writeln!(f)?;
        }
        stats.write_constructs(f, layout, |_| true)?;
        if stats.sampling.is_some() {
            writeln!(f)?;
            stats.write_functions(f, layout)?;
        }
        if !stats.counters.is_empty() {
            writeln!(f)?;
            stats.write_counters(f, layout)?;
        }
        stats.write_threads(f, layout)?;
        if !stats.locks.is_empty() {
            writeln!(f)?;
            let layout = Layout { top: Some(layout.top.unwrap_or(MAX_LOCKS)), ..*layout };
            stats.write_locks(f, &layout)?;
        }
        stats.write_devices(f, layout)
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tables(Layout::default()).fmt(f)
    }
}
