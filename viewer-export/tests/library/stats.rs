//! The numbers of traces whose times are known.

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
    assert_eq!(wait.times, times([1, 220, 220, 20, 100]));
    assert_eq!((wait.self_ns, wait.waiting_ns), (220, 220));

    let task = construct(&stats, "!$omp task @");
    assert_eq!(task.times, times([2, 180, 90, 80, 100]));
    assert_eq!((task.self_ns, task.waiting_ns), (150, 10));

    let thread = &stats.threads[0];
    assert_eq!((thread.parallel_ns, thread.working_ns), (590, 360));
    assert_eq!((thread.barriers_ns, thread.tasks_ns), (220, 10));
    assert_eq!((thread.wake_up_ns, thread.tasks), (10, 2));
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
