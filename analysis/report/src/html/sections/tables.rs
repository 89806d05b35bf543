//! Threads, constructs, locks, devices.

use super::regions::by_duration;
use super::*;

/// Threads, constructs, locks, devices.
pub(crate) fn tables(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let stats = report.stats;
    let more = |by: &str| format!("{} --by {by} --all", report.stats_command);
    section(out, "per-thread", "Threads", "");
    let rows = stats.threads.iter().map(|thread| {
        let share = |ns: Option<u64>| Some(ns? as f64 / thread.duration_ns.max(1) as f64);
        let name = thread_name(report, &thread.process, &thread.name);
        let working = thread.working_ns.map(|ns| ns + thread.serial_ns);
        vec![
            Cell::Name(name),
            Cell::Name(thread.role.to_owned()),
            Cell::known_time(thread.working_ns),
            Cell::time(thread.serial_ns),
            Cell::known_time(thread.barriers_ns),
            Cell::known_time(thread.taskwaits_ns),
            Cell::known_time(thread.locks_ns),
            Cell::known_time(thread.wake_up_ns),
            Cell::known_time(thread.idle_ns),
            Cell::known_count(thread.tasks),
            share(working).map_or(Cell::unknown(), heat),
        ]
    });
    let headings = [
        "thread",
        "role",
        "working",
        "serial",
        "at barriers",
        "in taskwaits",
        "for locks",
        "wake-up",
        "idle",
        "tasks",
        "at work",
    ];
    table(out, "threads-table", "Threads", &headings, rows.collect(), (limits.rows, &more("thread")));
    *out += "</section>";
    constructs(out, report, limits);
    grains(out, report, limits);
    if !stats.locks.is_empty() {
        section(out, "locks", "Locks", "");
        let rows = stats.locks.iter().map(|lock| {
            vec![
                Cell::Name(lock.place_name.clone().unwrap_or_else(|| lock.name.clone())),
                Cell::Name(lock.kind.to_owned()),
                Cell::count(lock.acquisitions),
                Cell::known_count(lock.waits),
                Cell::known_time(lock.waiting_ns),
                Cell::known_time(lock.times.map(|times| times.total_ns)),
            ]
        });
        let headings = ["lock", "kind", "acquisitions", "contended", "waited for", "held"];
        table(
            out,
            "locks-table",
            "Locks and critical regions",
            &headings,
            rows.collect(),
            (limits.rows / 4, &more("lock")),
        );
        *out += "</section>";
    }
    devices(out, report, limits);
}

/// All constructs, with their counts and times.
fn constructs(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let stats = report.stats;
    if stats.constructs.is_empty() {
        return;
    }
    let lead = "Counts and times of each construct, summed over all threads and sorted by self time.";
    section(out, "constructs", "Constructs", lead);
    let rows = stats.constructs.iter().map(|row| {
        let times = row.times;
        let of_whole = |number: u64| (!times.is_of_parts).then_some(number);
        vec![
            Cell::Name(row.name.clone()),
            Cell::known_count(of_whole(times.count)),
            Cell::time(times.total_ns),
            Cell::time(row.self_ns),
            Cell::known_time(of_whole(times.mean_ns)),
            Cell::known_time(of_whole(times.min_ns)),
            Cell::known_time(of_whole(times.max_ns)),
            Cell::known_time(row.waiting_ns),
        ]
    });
    let headings = ["construct", "count", "total", "self", "mean", "shortest", "longest", "waiting"];
    let more = format!("{} --by construct --all", report.stats_command);
    let limit = (limits.rows / 3, &*more);
    table(out, "constructs-table", "Constructs", &headings, rows.collect(), limit);
    *out += "</section>";
}

/// How much work a task or a chunk of a loop is. Where it is little, to hand it out costs more than to do it.
fn grains(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let constructs = report.stats.constructs.iter();
    let tasks = constructs.clone().filter(|row| row.category == "task");
    let tasks: Vec<_> = tasks.filter(|row| !row.durations.is_empty()).collect();
    let loops = constructs.filter_map(|row| Some((row, row.of_loop?)));
    let loops: Vec<Vec<Cell>> = loops
        .map(|(row, of_loop)| {
            vec![
                Cell::Name(row.name.clone()),
                Cell::Name(row.schedule.clone().unwrap_or_default()),
                Cell::count(of_loop.chunks),
                Cell::time(of_loop.chunk_mean_ns),
                Cell::Number(format!("{:.1}", of_loop.iterations_per_chunk), of_loop.iterations_per_chunk),
            ]
        })
        .collect();
    if tasks.is_empty() && loops.is_empty() {
        return;
    }
    let lead = "Durations of tasks and loop chunks. If the runtime takes about as long to schedule a task or chunk as the task or chunk takes to run, make the tasks or chunks larger.";
    section(out, "grains", "Grains of work", lead);
    let more = format!("{} --by construct --all", report.stats_command);
    if !loops.is_empty() {
        let headings = ["loop", "schedule", "chunks", "mean time of a chunk", "iterations per chunk"];
        table(
            out,
            "chunks-table",
            "Loop chunks, if the runtime reports them",
            &headings,
            loops,
            (limits.rows / 4, &more),
        );
    }
    *out += "<div class=charts>";
    let tasks = tasks.iter().map(|row| (short(&row.name), &row.durations));
    let chunks = report.overview.chunks.iter();
    let chunks = chunks.map(|(name, durations)| (format!("chunks of {}", short(name)), durations));
    let charts: Vec<_> = tasks.chain(chunks).collect();
    for (name, durations) in charts.iter().take(limits.charts) {
        by_duration(out, &format!("{name}, by duration"), durations);
    }
    *out += "</div>";
    left_out(out, charts.len(), limits.charts, &more);
    *out += "</section>";
}

/// A share as a number on a ground that is the darker the greater it is.
pub(super) fn heat(share: f64) -> Cell {
    let strength = (share * 60.0).clamp(0.0, 60.0);
    Cell::Html(format!(
        "<span class=heat style=\"--s:{strength:.0}%\" data-value=\"{share}\">{}</span>",
        percent(share)
    ))
}

fn devices(out: &mut String, report: &Report<'_>, limits: &Limits) {
    let stats = report.stats;
    if stats.device_use.is_empty() {
        return;
    }
    section(out, "devices", "Devices", "");
    let rows = stats.device_use.iter().map(|of| {
        vec![
            Cell::Name(format!("{} device {}", of.process, of.device_num)),
            Cell::count(of.kernels),
            Cell::known_time(of.kernels_ns),
            Cell::known_time(of.transfers_ns),
            Cell::known_time(of.overlap_ns),
            Cell::known_time(of.idle_ns),
            Cell::known_bytes(of.peak_bytes),
        ]
    });
    let headings =
        ["device", "kernels", "kernel time", "transfer time", "both at the same time", "idle", "peak memory"];
    let more = |by: &str| format!("{} --by {by} --all", report.stats_command);
    table(
        out,
        "device-use-table",
        "Use of devices",
        &headings,
        rows.collect(),
        (limits.rows / 4, &more("device")),
    );
    let rows = stats.devices.iter().map(|of| {
        vec![
            Cell::Name(of.name.clone()),
            Cell::Name(of.queue.clone()),
            Cell::count(of.times.count),
            Cell::time(of.times.total_ns),
            Cell::time(of.times.max_ns),
        ]
    });
    let headings = ["work", "queue", "count", "total", "longest"];
    table(
        out,
        "devices-table",
        "Work of devices",
        &headings,
        rows.collect(),
        (limits.rows / 4, &more("device")),
    );
    *out += "</section>";
}
