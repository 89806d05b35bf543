//! The numbers of traces whose times are known.

use std::fs;

use omptrace_trace_format::Reader;
use omptrace_viewer_export::{ConstructStats, Stats, TeamStats, Times, symbols};

use crate::fixture;

fn stats(text: &str) -> Stats {
    let folder = tempfile::tempdir().expect("a folder");
    let readers = fixture::open(text, folder.path());
    let inputs: Vec<&Reader> = readers.iter().collect();
    Stats::of(&inputs, &symbols::Options::default()).0
}

/// The construct whose name begins like this.
fn construct<'s>(stats: &'s Stats, name: &str) -> &'s ConstructStats {
    let mut found = stats
        .constructs
        .iter()
        .filter(|stats| stats.name.starts_with(name));
    let construct = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(found.next().is_none(), "several are called {name}");
    construct
}

fn times([count, total_ns, mean_ns, min_ns, max_ns]: [u64; 5]) -> Times {
    Times {
        count,
        total_ns,
        mean_ns,
        min_ns,
        max_ns,
    }
}

#[test]
fn a_wait_that_tasks_interrupt_is_one() {
    let stats = stats(include_str!("../fixtures/tasks_in_barrier.trace"));
    let wait = construct(&stats, "!$omp implicit barrier wait");
    assert_eq!(wait.times, times([1, 220, 220, 220, 220]));
    assert_eq!((wait.self_ns, wait.waiting_ns), (220, 220));

    let task = construct(&stats, "!$omp task @");
    assert_eq!(task.times, times([2, 180, 90, 80, 100]));
    assert_eq!((task.self_ns, task.waiting_ns), (150, 10));

    let thread = &stats.threads[0];
    assert_eq!((thread.parallel_ns, thread.working_ns), (590, 360));
    assert_eq!((thread.barriers_ns, thread.tasks_ns), (220, 10));
    assert_eq!((thread.wake_up_ns, thread.tasks), (10, 2));
}

/// Whatever is cut, suspended, interrupted or migrates.
#[test]
fn the_mean_lies_between_the_shortest_and_the_longest() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let paths = fs::read_dir(fixtures)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    for path in paths.filter(|path| path.extension().is_some_and(|kind| kind == "trace")) {
        for construct in stats(&fs::read_to_string(&path).unwrap()).constructs {
            let Times {
                min_ns,
                mean_ns,
                max_ns,
                ..
            } = construct.times;
            let (name, path) = (construct.name, path.display());
            assert!(
                min_ns <= mean_ns && mean_ns <= max_ns,
                "{path}: {name}: {min_ns} {mean_ns} {max_ns}"
            );
        }
    }
}

/// The task waits for its own, and goes on elsewhere.
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
    // One worked 400 ns; the other came 50 ns late, worked 50 and waited till the region ended at 500.
    let expected = TeamStats {
        members: 2,
        working_ns: 450,
        longest_ns: 400,
        imbalance_ns: 175,
    };
    assert_eq!(construct(&stats, "!$omp parallel @").team, Some(expected));
    let members = construct(&stats, "!$omp implicit task @");
    assert_eq!(members.times, times([2, 750, 375, 350, 400]));
    assert_eq!(members.waiting_ns, 300);
    assert_eq!(members.wait_share(), 0.4);
}

#[test]
fn locks_tell_how_long_they_were_held() {
    let stats = stats(include_str!("../fixtures/locks_out_of_order.trace"));
    let held = |name: &str| {
        let lock = stats.locks.iter().find(|lock| lock.name == name);
        lock.expect("a lock").times
    };
    assert_eq!(held("lock 0xb"), times([1, 12, 12, 12, 12]));
    // From 11 until the worker gets it at 20, and from then to the end.
    assert_eq!(held("lock 0xa"), times([2, 89, 44, 9, 80]));
    assert_eq!(stats.threads[1].locks_ns, 4);
}

/// The ends of holds, or the members of teams, were not wanted.
#[test]
fn what_was_not_recorded_has_no_numbers() {
    let without = |callback: &str| {
        let text = include_str!("../fixtures/locks_out_of_order.trace");
        let lines = text.lines().filter(|line| !line.contains(callback));
        let lines: Vec<&str> = lines.collect();
        let wanted =
            "parallel_begin,parallel_end,implicit_task,mutex_acquire,mutex_acquired,mutex_released";
        let wanted = wanted.replace(callback, "");
        let settings = format!(r#"{{"settings": {{"OMPTRACE_EVENTS": "{wanted}"}}}}"#);
        stats(&format!(
            "process app\nmetadata {settings}\n{}",
            lines.join("\n")
        ))
    };
    assert_eq!(without("mutex_released").locks.len(), 0);
    let teams = without("implicit_task").constructs.into_iter();
    let teams: Vec<_> = teams.filter_map(|construct| construct.team).collect();
    assert_eq!(teams, []);
}

#[test]
fn devices_tell_what_they_did() {
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
