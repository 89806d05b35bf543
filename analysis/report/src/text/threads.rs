//! Rows about processes, threads, functions and counters.

use omptrace_timeline::model::short_name;

use super::table::{
    Column, Empty, Table, UNKNOWN, column, counted, known, known_time, percent, time, with_commas,
};
use omptrace_analysis::CounterStats;
use omptrace_analysis::FunctionStats;
use omptrace_analysis::ProcessStats;
use omptrace_analysis::ThreadStats;

pub(crate) const THREAD: [Column; 10] = [
    column("parallel", 0),
    column("working", 0),
    column("barriers", 0).if_empty(Empty::IfThereIsRoom),
    column("taskwaits", 0).if_empty(Empty::IfThereIsRoom),
    column("locks", 0).if_empty(Empty::IfThereIsRoom),
    column("start-up", 1).if_empty(Empty::IfThereIsRoom),
    column("serial", 0),
    column("idle", 0),
    column("unknown", 0).if_empty(Empty::Never),
    column("tasks", 2),
];

pub(crate) fn thread_row(table: &mut Table, stats: &ThreadStats) {
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

pub(crate) const HELPER: [Column; 3] = [column("working", 0), column("idle", 0), column("tasks", 0)];

pub(crate) fn helper_row(table: &mut Table, stats: &ThreadStats) {
    let cells = [known_time(stats.working_ns), known_time(stats.idle_ns), known(stats.tasks)];
    table.row(stats.name.clone(), cells);
}

pub(crate) const FUNCTION: [Column; 7] = [
    column("self", 0),
    column("self %", 0),
    column("total", 1),
    column("total %", 2),
    column("wait", 3),
    column("others waited", 1).if_empty(Empty::IfThereIsRoom),
    column("on path", 2).if_empty(Empty::IfThereIsRoom),
];

pub(crate) fn function_row(table: &mut Table, function: &FunctionStats, all_ns: u64) {
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
pub(crate) fn counter_names(counters: &[CounterStats]) -> Vec<&str> {
    let names = counters.iter().flat_map(|stats| stats.counters.keys());
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A row of counters. `names`: the names of the counters. `has_ratios`: cycles were counted, so there are ratios.
pub(crate) fn counter_row(table: &mut Table, stats: &CounterStats, names: &[&str], has_ratios: bool) {
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

pub(crate) const PROCESS: [Column; 6] = [
    column("threads", 2),
    column("time", 0),
    column("serial", 0),
    column("before", 1),
    column("between", 1),
    column("after", 1),
];

pub(crate) fn process_row(table: &mut Table, stats: &ProcessStats) {
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

/// The lines above the tables: the duration, and the serial time.
/// The duration from start to end, in words.
pub(crate) fn time_words(process: &ProcessStats) -> String {
    let time_of = time(process.duration_ns);
    match process.before_tracing_ns {
        Some(_) => format!("{time_of} from start to end of the process"),
        None => {
            format!(
                "{time_of} from start to end of the trace, which does not contain the start time of the process"
            )
        }
    }
}

/// The serial time and its position, in words.
pub(crate) fn serial_words(process: &ProcessStats) -> Option<(String, String)> {
    let serial = process.serial_ns?;
    let parts = (process.serial_before_ns, process.serial_between_ns, process.serial_after_ns);
    let position = match parts {
        (Some(before), Some(between), Some(after)) => {
            serial_position(serial, [before, between, after], process.duration_ns)
        }
        _ => "not known when, because older events were overwritten".to_owned(),
    };
    Some((time(serial), position))
}

/// Where serial time lies, in words. `parts`: before the first parallel region, between regions, after the last.
pub(crate) fn serial_position(serial: u64, parts: [u64; 3], duration: u64) -> String {
    if parts[0] >= serial && serial >= duration {
        return "the main thread was in no parallel region".to_owned();
    }
    let [before, between, after] = parts.map(time);
    format!(
        "{before} before the first parallel region, {between} between regions, {after} after the last region"
    )
}

/// `1 more process`, `2 more processes`.
pub(crate) fn more_processes_words(count: usize) -> String {
    counted(count as u64, "more process").replace("processs", "processes")
}
