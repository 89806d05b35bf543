//! The statistics of traces with known times.

use std::fs;

use omptrace_analysis::answers::Cause;
use omptrace_analysis::{ConstructStats, Options, ProcessStats, Stats, TeamStats, ThreadStats, Times};
use omptrace_report::Layout;
use omptrace_symbols as symbols;
use omptrace_trace_format::Reader;

use crate::contract::nonsense;
use crate::fixture;

pub(crate) fn stats(text: &str) -> Stats {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    Stats::of(&inputs, &symbols::Options::default()).0
}

/// The construct whose name starts with this text.
fn construct<'s>(stats: &'s Stats, name: &str) -> &'s ConstructStats {
    let mut found = stats.constructs.iter().filter(|stats| stats.name.starts_with(name));
    let construct = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(found.next().is_none(), "several are called {name}");
    construct
}

fn times([count, total_ns, mean_ns, min_ns, max_ns]: [u64; 5]) -> Times {
    Times { count, total_ns, mean_ns, min_ns, max_ns, is_of_parts: false }
}

#[test]
fn a_wait_that_tasks_interrupt_is_one() {
    let stats = stats(include_str!("../fixtures/tasks_in_barrier.trace"));
    let wait = construct(&stats, "!$omp implicit barrier wait");
    assert_eq!(wait.times, times([1, 220, 220, 220, 220]));
    assert_eq!((wait.self_ns, wait.waiting_ns), (220, Some(220)));

    let task = construct(&stats, "!$omp task @");
    assert_eq!(task.times, times([2, 180, 90, 80, 100]));
    assert_eq!((task.self_ns, task.waiting_ns), (150, Some(10)));

    let thread = &stats.threads[0];
    // The wake-up belongs to the region, and so does the wait for its end after the implicit task.
    assert_eq!((thread.parallel_ns, thread.working_ns), (Some(600), Some(270)));
    assert_eq!((thread.barriers_ns, thread.taskwaits_ns), (Some(310), Some(10)));
    assert_eq!((thread.wake_up_ns, thread.tasks), (Some(10), Some(2)));
}

/// The texts of all fixtures, with their names.
pub(crate) fn fixtures() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let paths = fs::read_dir(folder).unwrap();
    let paths = paths.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "trace"))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path.display().to_string(), text)
        })
        .collect()
}

/// For all constructs that are cut, suspended, interrupted or migrate.
#[test]
fn the_mean_lies_between_the_shortest_and_the_longest() {
    for (path, text) in fixtures() {
        for construct in stats(&text).constructs {
            let Times { min_ns, mean_ns, max_ns, .. } = construct.times;
            let name = construct.name;
            assert!(min_ns <= mean_ns && mean_ns <= max_ns, "{path}: {name}: {min_ns} {mean_ns} {max_ns}");
        }
    }
}

/// At each moment, a thread does one thing, so its times add up to the lifetime of its process, to the nanosecond.
fn adds_up(name: &str, stats: &Stats) {
    for thread in &stats.threads {
        let ThreadStats {
            parallel_ns,
            working_ns,
            barriers_ns,
            taskwaits_ns,
            locks_ns,
            wake_up_ns,
            serial_ns,
            idle_ns,
            unknown_ns,
            duration_ns,
            ..
        } = *thread;
        let sum = |parts: &[Option<u64>]| parts.iter().map(|part| part.unwrap_or(0)).sum::<u64>();
        let parts = [working_ns, barriers_ns, taskwaits_ns, locks_ns, wake_up_ns];
        if let Some(parallel_ns) = parallel_ns {
            assert_eq!(parallel_ns, sum(&parts), "{name}: {thread:?}");
        }
        let whole = sum(&parts) + sum(&[Some(serial_ns), idle_ns, Some(unknown_ns)]);
        assert_eq!(whole, duration_ns, "{name}: {thread:?}");
        let process = &stats.processes[thread.process_id as usize];
        assert_eq!(duration_ns, process.duration_ns, "{name}: {thread:?}");
        if thread.role == "main" {
            let serial = [process.serial_before_ns, process.serial_between_ns, process.serial_after_ns];
            assert_eq!(sum(&serial), serial_ns, "{name}: {process:?}");
        }
    }
    if let [process] = &stats.processes[..] {
        assert_eq!(process.duration_ns, stats.answers.duration_ns, "{name}");
    }
    for construct in &stats.constructs {
        let total = construct.times.total_ns;
        assert!(construct.self_ns <= total, "{name}: {construct:?}");
        assert!(construct.waiting_ns.unwrap_or(0) <= total, "{name}: {construct:?}");
    }
}

#[test]
fn the_times_of_each_thread_add_up_to_that_of_its_process() {
    for (path, text) in fixtures() {
        adds_up(&path, &stats(&text));
    }
    for seed in 1..=300 {
        adds_up(&format!("seed {seed}"), &stats(&nonsense(seed)));
    }
}

/// The task waits for its child tasks, and continues on another thread.
#[test]
fn a_task_that_migrates_is_one_with_all_that_is_open_in_it() {
    let stats = stats(
        "0   1 thread_begin type=initial\n\
         0   1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1\n\
         0   1 parallel_begin task=1 parallel=100 team=2 code=0x1234\n\
         0   1 implicit_task begin parallel=100 task=101 team=2 index=0\n\
         0   2 thread_begin type=worker\n\
         0   2 implicit_task begin parallel=100 task=102 team=2 index=1\n\
         10  1 task_create task=101 new=103 flags=0x10000004 code=0x1250\n\
         20  1 task_schedule prior=101 status=switch next=103\n\
         30  1 sync_region begin kind=taskgroup task=103 code=0x1260\n\
         35  1 sync_region_wait begin kind=taskgroup task=103 code=0x1260\n\
         40  1 task_schedule prior=103 status=switch next=101\n\
         60  2 task_schedule prior=102 status=switch next=103\n\
         75  2 sync_region_wait end kind=taskgroup task=103 code=0x1260\n\
         80  2 sync_region end kind=taskgroup task=103 code=0x1260\n\
         90  2 task_schedule prior=103 status=complete next=102\n\
         95  2 implicit_task end task=102 team=2 index=1\n\
         95  1 implicit_task end task=101 team=2 index=0\n\
         95  1 parallel_end parallel=100 task=1 code=0x1234\n",
    );
    let of = |name| construct(&stats, name).times;
    assert_eq!(of("!$omp task "), times([1, 50, 50, 50, 50]));
    assert_eq!(of("!$omp taskgroup @"), times([1, 30, 30, 30, 30]));
    assert_eq!(of("!$omp taskgroup wait"), times([1, 20, 20, 20, 20]));
}

#[test]
fn imbalance_is_what_an_even_spread_would_save() {
    let stats = stats(
        "0   1 thread_begin type=initial\n\
         0   1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1\n\
         100 1 parallel_begin task=1 parallel=100 team=2 code=0x1234\n\
         100 1 implicit_task begin parallel=100 task=101 team=2 index=0\n\
         150 2 thread_begin type=worker\n\
         150 2 implicit_task begin parallel=100 task=102 team=2 index=1\n\
         200 2 sync_region begin kind=barrier_implicit_parallel parallel=100 task=102 code=0x1234\n\
         200 2 sync_region_wait begin kind=barrier_implicit_parallel parallel=100 task=102 code=0x1234\n\
         500 1 sync_region begin kind=barrier_implicit_parallel parallel=100 task=101 code=0x1234\n\
         500 1 sync_region_wait begin kind=barrier_implicit_parallel parallel=100 task=101 code=0x1234\n\
         500 1 sync_region_wait end kind=barrier_implicit_parallel task=101 code=0x1234\n\
         500 1 sync_region end kind=barrier_implicit_parallel task=101 code=0x1234\n\
         500 1 implicit_task end task=101 team=2 index=0\n\
         500 1 parallel_end parallel=100 task=1 code=0x1234\n\
         900 2 sync_region_wait end kind=barrier_implicit_parallel task=102 code=0x1234\n\
         900 2 sync_region end kind=barrier_implicit_parallel task=102 code=0x1234\n\
         900 2 implicit_task end task=102 team=2 index=1\n",
    );
    // One thread worked 400 ns. The other was 50 ns late, worked 50 ns, and waited until the region ended at 500.
    let expected = TeamStats {
        members: 2,
        members_ns: 800,
        waiting_ns: 350,
        working_ns: 450,
        longest_ns: 400,
        imbalance_ns: 175,
    };
    assert_eq!(construct(&stats, "!$omp parallel @").team, Some(expected));
    let members = construct(&stats, "!$omp implicit task @");
    assert_eq!(members.times, times([2, 750, 375, 350, 400]));
    assert_eq!(members.waiting_ns, Some(300));
    assert_eq!(members.wait_share(), Some(0.4));
    // Of 400 ns, the late member waited 50 for its wake-up and 300 at the barrier: 175 each.
    let region = construct(&stats, "!$omp parallel @");
    assert_eq!(region.times.total_ns, 400);
    assert_eq!(region.waiting_ns, Some(175));
}

#[test]
fn locks_show_how_long_they_were_held() {
    let stats = stats(include_str!("../fixtures/locks_out_of_order.trace"));
    let held = |name: &str| {
        let lock = stats.locks.iter().find(|lock| lock.name == name);
        lock.expect("a lock").times.expect("times")
    };
    assert_eq!(held("lock 0xb"), times([1, 12, 12, 12, 12]));
    // From 11 until the worker acquires it at 20, and from then to the end.
    assert_eq!(held("lock 0xa"), times([2, 89, 44, 9, 80]));
    assert_eq!(stats.threads[1].locks_ns, Some(4));
}

/// The ends of holds, or the members of teams, were not selected.
#[test]
fn what_was_not_recorded_has_no_numbers() {
    let without = |callback: &str| {
        let text = include_str!("../fixtures/locks_out_of_order.trace");
        let lines = text.lines().filter(|line| !line.contains(callback));
        let lines: Vec<&str> = lines.collect();
        let wanted = "parallel_begin,parallel_end,implicit_task,mutex_acquire,mutex_acquired,mutex_released";
        let wanted = wanted.replace(callback, "");
        let settings = format!(r#"{{"settings": {{"OMPTRACE_EVENTS": "{wanted}"}}}}"#);
        stats(&format!("process app\nmetadata {settings}\n{}", lines.join("\n")))
    };
    assert_eq!(without("mutex_released").locks.len(), 0);
    let teams = without("implicit_task").constructs.into_iter();
    let teams: Vec<_> = teams.filter_map(|construct| construct.team).collect();
    assert_eq!(teams, []);
}

#[test]
fn devices_show_what_they_did() {
    let stats = stats(include_str!("../fixtures/device_records.trace"));
    let kernels: Vec<_> = stats
        .devices
        .iter()
        .filter(|device| device.name.starts_with("kernel @"))
        .map(|device| (device.queue.as_str(), device.times.total_ns))
        .collect();
    let expected = [("device 0 kernels 2", 200), ("device 0 kernels", 150)];
    assert_eq!(kernels, expected);
}

/// One kernel runs from 250 to 400 ns, another from 300 to 500 ns. A transfer ends before. A deletion has no record.
#[test]
fn devices_have_times_of_their_own_records() {
    let stats = stats(include_str!("../fixtures/device_records.trace"));
    let device = &stats.device_use[0];
    assert_eq!((device.device_num, device.kernels), (0, 2));
    assert_eq!(device.kernels_ns, Some(250));
    assert_eq!(device.transfers_ns, Some(40));
    assert_eq!(device.overlap_ns, Some(0));
    let lived = stats.processes[0].duration_ns;
    assert_eq!(device.idle_ns, Some(lived - 250 - 40));
    // Requested at 210 and 250 ns.
    assert_eq!(device.launch_mean_ns, Some(45));
    assert_eq!(device.launch_max_ns, Some(50));
    assert_eq!((device.to_device.count, device.to_device.bytes), (1, 4096));
    // 4096 bytes in 40 ns.
    let rate = device.to_device.bytes_per_second;
    assert_eq!(rate, Some(102_400_000_000));
    assert_eq!(device.from_device.bytes_per_second, None);
    assert_eq!(device.host_observed, 1);
    let places: Vec<_> = device.places.iter().collect();
    let [to] = places[..] else {
        panic!("{places:?}");
    };
    assert_eq!((to.direction, to.count, to.bytes), ("to_device", 1, 4096));
    assert_eq!(to.total_ns, Some(40));
}

#[test]
fn times_of_devices_that_record_nothing_are_not_known() {
    let stats = stats(
        "0   1 thread_begin type=initial\n\
         100 1 target begin device=0 target=100 code=0x10100\n\
         130 1 target_data_op_emi begin target=100 op=102 kind=transfer_to_device src=0x1000 src_device=1 dest=0x2000 bytes=64\n\
         200 1 target_data_op_emi end target=100 op=102 kind=transfer_to_device src=0x1000 src_device=1 dest=0x2000 bytes=64\n\
         210 1 target_submit begin target=100 op=103 teams=4\n\
         220 1 target_submit end target=100 op=103 teams=4\n\
         230 1 target end device=0 target=100 code=0x10100\n",
    );
    let device = stats.device_use.first().expect("a device");
    assert_eq!((device.kernels, device.host_observed), (1, 2));
    assert_eq!((device.to_device.count, device.to_device.bytes), (1, 64));
    assert_eq!(device.to_device.bytes_per_second, None);
    assert_eq!(device.places[0].total_ns, None);
    let times =
        [device.kernels_ns, device.transfers_ns, device.overlap_ns, device.idle_ns, device.launch_mean_ns];
    assert_eq!(times, [None; 5]);
}

/// Metadata with the callbacks that a runtime granted.
fn granted(dialect: &str, callbacks: &[&str]) -> String {
    let registration =
        |callback: &&str| format!(r#""{callback}": {{"number": 1, "result": 5, "meaning": "always"}}"#);
    let callbacks: Vec<String> = callbacks.iter().map(registration).collect();
    format!(
        "process app\nmetadata {{\"runtime\": {{\"dialect\": \"{dialect}\"}}, \"callbacks\": {{{}}}}}\n",
        callbacks.join(", ")
    )
}

/// Runtimes older than OpenMP 5.0 report idle threads.
#[test]
fn a_thread_without_a_region_is_idle_and_not_at_a_barrier() {
    let stats = stats(
        "0   1 thread_begin type=initial\n\
         0   1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1\n\
         10  1 parallel_begin task=1 parallel=100 team=2 code=0x1234\n\
         10  1 implicit_task begin parallel=100 task=101 team=2 index=0\n\
         10  2 thread_begin type=worker\n\
         10  2 implicit_task begin parallel=100 task=102 team=2 index=1\n\
         30  2 implicit_task end task=102 team=2 index=1\n\
         30  1 implicit_task end task=101 team=2 index=0\n\
         30  1 parallel_end parallel=100 task=1 code=0x1234\n\
         30  2 idle begin\n\
         80  2 idle end\n\
         90  1 implicit_task end task=1 flags=1\n",
    );
    adds_up("idle", &stats);
    let worker = &stats.threads[1];
    assert_eq!((worker.parallel_ns, worker.barriers_ns), (Some(20), Some(0)));
    assert_eq!((worker.serial_ns, worker.idle_ns), (0, Some(70)));
    let main = &stats.threads[0];
    assert_eq!((main.parallel_ns, main.serial_ns), (Some(20), 70));
    let process = &stats.processes[0];
    assert_eq!(process.serial_before_ns, Some(10));
    assert_eq!(process.serial_after_ns, Some(60));
}

/// LLVM 3.8 to 5.0 report only the region.
#[test]
fn a_taskwait_without_waits_is_the_wait_less_the_tasks_in_it() {
    let events = "0   1 thread_begin type=initial\n\
         0   1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1\n\
         0   1 parallel_begin task=1 parallel=100 team=1 code=0x1234\n\
         0   1 implicit_task begin parallel=100 task=101 team=1 index=0\n\
         10  1 task_create task=101 new=103 flags=4 code=0x1250\n\
         20  1 sync_region begin kind=taskwait task=101 code=0x1260\n\
         30  1 task_schedule prior=101 status=switch next=103\n\
         70  1 task_schedule prior=103 status=complete next=101\n\
         90  1 sync_region end kind=taskwait task=101 code=0x1260\n\
         95  1 implicit_task end task=101 team=1 index=0\n\
         95  1 parallel_end parallel=100 task=1 code=0x1234\n";
    let with = |callbacks: &[&str]| {
        let stats = stats(&(granted("5.x", callbacks) + events));
        adds_up("taskwait", &stats);
        stats
    };
    let others = ["implicit_task", "task_schedule", "sync_region"];
    let without_waits = with(&others);
    let thread = &without_waits.threads[0];
    assert_eq!((thread.taskwaits_ns, thread.working_ns), (Some(30), Some(65)));
    assert_eq!(construct(&without_waits, "!$omp taskwait").waiting_ns, Some(30));
    // If waits are reported, there was none.
    let with_waits = with(&[&others[..], &["sync_region_wait"]].concat());
    assert_eq!(with_waits.threads[0].taskwaits_ns, Some(0));
    // If nothing is reported, nothing is known.
    let nothing = with(&others[..2]);
    assert_eq!(nothing.threads[0].locks_ns, None);
    let unknown = &nothing.processes[0].unknown;
    assert!(unknown.iter().any(|words| words.contains("locks")), "{unknown:?}");
}

/// The Collector API reports idle threads, but no members.
#[test]
fn who_is_not_idle_works_where_members_are_not_reported() {
    let callbacks = ["FORK", "JOIN", "THR_BEGIN_IDLE", "THR_BEGIN_IBAR"];
    let stats = stats(
        &(granted("Collector API", &callbacks)
            + "0   1 thread_info os_tid=10\n\
               10  1 parallel_begin parallel=1\n\
               12  2 thread_info os_tid=11\n\
               12  2 idle begin\n\
               15  2 idle end\n\
               60  1 sync_region_wait begin kind=barrier_implicit parallel=1\n\
               75  2 sync_region_wait begin kind=barrier_implicit parallel=1\n\
               80  2 sync_region_wait end kind=barrier_implicit parallel=1\n\
               80  2 idle begin\n\
               90  1 sync_region_wait end kind=barrier_implicit parallel=1\n\
               90  1 parallel_end parallel=1\n\
               99  1 control_tool command=1\n"),
    );
    adds_up("collector", &stats);
    let [main, worker] = &stats.threads[..] else {
        panic!("two threads: {stats:?}");
    };
    assert_eq!((main.parallel_ns, main.working_ns), (Some(80), Some(50)));
    assert_eq!((main.barriers_ns, main.serial_ns), (Some(30), 19));
    assert_eq!((worker.parallel_ns, worker.working_ns), (Some(65), Some(60)));
    assert_eq!((worker.barriers_ns, worker.idle_ns), (Some(5), Some(34)));
    // The region contains no taskwaits.
    assert_eq!((main.taskwaits_ns, main.wake_up_ns), (None, None));
    assert_eq!(construct(&stats, "!$omp parallel").waiting_ns, None);
}

/// A process that had run for 1000 ns when the tracer started, and ran for another 100 ns after the tracer had ended.
/// Its clock was at 1,000,000 at the tracer's start.
#[test]
fn a_process_counts_from_its_own_start_to_its_own_end() {
    let of_record = r#""record": {"exit_status": 0, "started_raw_ns": 999200, "ended_raw_ns": 1000700}"#;
    let with = |further: &str| {
        let process = r#""process": {"pid": 10, "executable": "/bin/app", "started_raw_ns": -24000000}"#;
        let end = r#""end": {"how": "finalize", "raw_ns": 1000600}"#;
        stats(&format!(
            "process app\nmetadata {{{process}, {end}{further}}}\n\
             0   1 thread_info os_tid=10\n\
             0   1 thread_begin type=initial\n\
             0   1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1\n\
             100 1 parallel_begin task=1 parallel=100 team=1 code=0x1234\n\
             100 1 implicit_task begin parallel=100 task=101 team=1 index=0\n\
             400 1 implicit_task end task=101 team=1 index=0\n\
             400 1 parallel_end parallel=100 task=1 code=0x1234\n\
             500 1 implicit_task end task=1 flags=1\n"
        ))
    };
    let alone = with("");
    adds_up("alone", &alone);
    let process = &alone.processes[0];
    // The system reports the tick of 10 ms in which the process started; from the end of this tick on, the process
    // existed.
    assert_eq!(process.duration_ns, 15_000_600);
    assert_eq!(process.before_tracing_ns, Some(15_000_000));
    let serial = |process: &ProcessStats| {
        [process.serial_before_ns, process.serial_between_ns, process.serial_after_ns]
    };
    // Nothing is known after the last event.
    assert_eq!(serial(process), [Some(15_000_100), Some(0), Some(100)]);
    // `record`, which started the process, knows its start more exactly.
    let recorded = with(&format!(", {of_record}"));
    adds_up("recorded", &recorded);
    assert_eq!(recorded.answers.duration_ns, 1500);
    assert_eq!(serial(&recorded.processes[0]), [Some(900), Some(0), Some(100)]);
    let text = omptrace_report::stats_tables(&recorded, Layout::default()).to_string();
    assert!(text.contains("\n1.50 us from start to end of the process\n"), "{text}");
}

/// A task is suspended and resumed, without an id that shows this.
#[test]
fn parts_of_tasks_without_ids_are_no_tasks() {
    let with = |events: &str| {
        let settings =
            format!(r#"{{"settings": {{"OMPTRACE_EVENTS": "{events}"}}, "runtime": {{"dialect": "5.x"}}}}"#);
        stats(&format!(
            "process app\nmetadata {settings}\n\
             0   1 thread_begin type=initial\n\
             0   1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1\n\
             10  1 task_schedule prior=1 status=switch next=?\n\
             20  1 task_schedule prior=? status=switch next=1\n\
             30  1 task_schedule prior=1 status=switch next=?\n\
             60  1 task_schedule prior=? status=complete next=1\n\
             90  1 implicit_task end task=1 flags=1\n"
        ))
    };
    let parts = with("implicit_task,task_schedule");
    adds_up("parts", &parts);
    assert_eq!(parts.threads[0].tasks, None);
    let task = construct(&parts, "!$omp task");
    assert_eq!((task.times.total_ns, task.times.is_of_parts), (40, true));
    assert_eq!(task.self_mean_ns, None);
    let json = serde_json::to_value(task).unwrap();
    for unknown in ["count", "mean_ns", "min_ns", "max_ns"] {
        assert_eq!(json[unknown], serde_json::Value::Null, "{unknown}");
    }
    let text = omptrace_report::stats_tables(&parts, Layout::default()).to_string();
    let row = text.lines().find(|line| line.starts_with("task "));
    let cells: Vec<&str> = row.expect("a row").split_whitespace().collect();
    assert_eq!(cells[1], "-", "{text}");
    let reason = &parts.processes[0].unknown;
    assert!(reason.iter().any(|words| words.contains("no ids")), "{reason:?}");
}

/// A runtime with the Collector API does not report tasks.
#[test]
fn tasks_that_were_not_reported_are_not_counted_as_none() {
    let stats = stats(
        &(granted("Collector API", &["FORK", "JOIN", "THR_BEGIN_IDLE"])
            + "0 1 thread_info os_tid=10\n10 1 parallel_begin parallel=1\n90 1 parallel_end parallel=1\n"),
    );
    assert_eq!(stats.threads[0].tasks, None);
}

#[test]
fn critical_regions_are_locks_with_a_place() {
    let stats = stats(
        "0   1 thread_begin type=initial\n\
         0   1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1\n\
         10  1 mutex_acquire kind=critical wait_id=0xc code=0x1234\n\
         12  1 mutex_acquired kind=critical wait_id=0xc code=0x1234\n\
         20  1 mutex_released kind=critical wait_id=0xc code=0x1240\n\
         30  1 mutex_acquire kind=critical wait_id=0xc code=0x1234\n\
         30  1 mutex_acquired kind=critical wait_id=0xc code=0x1234\n\
         50  1 mutex_released kind=critical wait_id=0xc code=0x1240\n\
         60  1 mutex_acquire kind=lock wait_id=0xd code=0x1250\n\
         60  1 mutex_acquired kind=lock wait_id=0xd code=0x1250\n\
         65  1 mutex_released kind=lock wait_id=0xd code=0x1260\n",
    );
    let of = |kind: &str| stats.locks.iter().find(|lock| lock.kind == kind).expect("one");
    let critical = of("critical");
    assert_eq!((critical.acquisitions, critical.waiting_ns), (2, Some(2)));
    assert_eq!(critical.times, Some(times([2, 28, 14, 8, 20])));
    assert_eq!(critical.name, "critical 0xc");
    let place = critical.place_name.as_deref().expect("a place");
    assert!(place.starts_with("!$omp critical @"), "{place}");
    assert_eq!(of("lock").times, Some(times([1, 5, 5, 5, 5])));
}

/// LLVM 3.7 reports only the releases of a lock.
#[test]
fn releases_alone_count_for_their_lock() {
    let stats = stats(
        &(granted("TR2", &["release_lock", "release_critical"])
            + "0 1 thread_begin type=initial\n\
               10 1 mutex_released kind=lock wait_id=0xa\n\
               20 1 mutex_released kind=critical wait_id=0xb\n\
               30 1 mutex_released kind=lock wait_id=0xa\n"),
    );
    let numbers = stats.locks.iter().map(|lock| {
        assert_eq!((lock.waits, lock.waiting_ns, lock.times), (None, None, None));
        (lock.name.as_str(), lock.acquisitions)
    });
    let numbers: Vec<_> = numbers.collect();
    assert_eq!(numbers, [("lock 0xa", 2), ("critical 0xb", 1)]);
}

const ALONE: &str = "0   1 thread_begin type=initial\n\
     0   1 implicit_task begin parallel=? task=1 team=1 index=1 flags=1\n\
     10  1 parallel_begin task=1 parallel=100 team=1 code=0x1234\n\
     10  1 implicit_task begin parallel=100 task=101 team=1 index=0\n";
const ALONE_END: &str = "90  1 implicit_task end task=101 team=1 index=0\n\
     90  1 parallel_end parallel=100 task=1 code=0x1234\n\
     95  1 implicit_task end task=1 flags=1\n";

#[test]
fn nobody_works_while_recording_is_off_or_events_are_lost() {
    let of = |gap: &str| {
        let stats = stats(&format!("{ALONE}{gap}{ALONE_END}"));
        adds_up(gap, &stats);
        let main = &stats.threads[0];
        assert_eq!((main.working_ns, main.unknown_ns), (Some(50), 30), "{gap}");
        let team = construct(&stats, "!$omp parallel @").team.expect("a team");
        assert_eq!((team.working_ns, team.waiting_ns), (50, 0), "{gap}");
        let reason = &stats.processes[0].unknown;
        assert!(reason.iter().any(|words| words.contains("off")), "{reason:?}");
    };
    of("40 1 monitoring change=2\n70 1 monitoring change=3\n");
    of("70 1 lost begin=40 events=7\n");
}

/// The overview contains the same time of each thread as the accounting; the rest is time in which threads had nothing
/// to do.
#[test]
fn the_picture_over_time_adds_up_to_the_accounting() {
    let gap = format!("{ALONE}40 1 monitoring change=2\n70 1 monitoring change=3\n{ALONE_END}");
    let mut texts = fixtures();
    texts.push(("a gap".to_owned(), gap));
    let sound = texts.len();
    texts.extend((1..=300).map(|seed| (format!("seed {seed}"), nonsense(seed))));
    for (index, (name, text)) in texts.into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let readers = fixture::open(&text, folder.path());
        let inputs: Vec<&Reader> = readers.iter().collect();
        let (stats, overview, _) = Stats::with_overview(&inputs, &Options::default());
        let cells = || overview.rows.iter().flat_map(|row| &row.cells);
        for cause in Cause::ALL {
            let is_idle = matches!(cause, Cause::Serial | Cause::NarrowTeam | Cause::Unobserved);
            let sum: u64 = cells().map(|cell| cell.accounting[*cause]).sum();
            // For contradictory traces, the accounting may contain less than everything.
            if !is_idle && index < sound {
                let expected = stats.answers.accounting[*cause];
                assert_eq!(sum, expected, "{name}: {}", cause.name());
            }
        }
        let too_full = cells().find(|cell| cell.accounting.total() > cell.lived_ns);
        assert!(too_full.is_none(), "{name}: {too_full:?}");
    }
}

/// LLVM names no task if a thread at the end of its region drops a task that was cancelled before it ran.
#[test]
fn a_task_that_is_dropped_at_the_end_of_a_region_begins_none() {
    let dropped = "30  1 task_create task=101 new=103 flags=4 code=0x1250\n\
         35  1 sync_region begin kind=barrier_implicit_parallel parallel=100 task=101\n\
         35  1 sync_region_wait begin kind=barrier_implicit_parallel parallel=100 task=101\n\
         40  1 task_schedule prior=103 status=cancel next=?\n\
         80  1 sync_region_wait end kind=barrier_implicit_parallel task=101\n\
         80  1 sync_region end kind=barrier_implicit_parallel task=101\n";
    let stats = stats(&format!("{ALONE}{dropped}{ALONE_END}"));
    adds_up("dropped", &stats);
    let main = &stats.threads[0];
    assert_eq!((main.tasks, main.barriers_ns), (Some(0), Some(45)));
}
