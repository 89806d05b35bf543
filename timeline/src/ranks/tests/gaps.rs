//! Waits that work could have filled.

use super::*;
use crate::ranks::{IdleWaits, UnsuccessfulTests};

/// Rank 0 starts a receive, works for a while, waits, and works again.
fn idle_waits(work: Ns, work_after: Ns) -> Vec<IdleWaits> {
    let all = two(|first, second| {
        first.call((10, 20), "MPI_Irecv", (WORLD, 1, 7, 9), 0xa0, None);
        first.wait_all((20 + work, 100_020 + work), &[(0xa0, 1, 7, 8)]);
        let then = 100_020 + work + work_after;
        first.call((then, then + 5), "MPI_Send", (WORLD, 1, 8, 1), 0, None);
        second.send((80_020 + work, 80_030 + work), 0, 7, 1);
        second.receive((then, then + 5), (0, 8), Some((0, 8, 8)));
    });
    all[0].idle_waits.clone()
}

#[test]
fn work_after_a_wait_could_fill_it_if_there_is_none_before() {
    let [wait] = idle_waits(100, 50_000)[..] else { panic!("no wait") };
    assert_eq!((wait.count, wait.waits_ns, wait.fillable_ns), (1, 80_000, 50_000));
    let [wait] = idle_waits(100, 300_000)[..] else { panic!("no wait") };
    assert_eq!(wait.fillable_ns, 80_000);
    assert_eq!(idle_waits(20_000, 50_000), []);
}

/// Between two calls, rank 0 tests this often in vain. Of each ten tests, one was measured, and took 90 ns.
fn tests_in_vain(gap: Ns, count: u64) -> UnsuccessfulTests {
    let all = two(|first, second| {
        first.call((10, 20), "MPI_Irecv", (WORLD, 1, 7, 9), 0xa0, None);
        first.begin(20 + gap, "MPI_Test", (0, NONE, NONE, 0));
        let function = u64::from(first.number().0);
        first.objects(CallRole::spun, &[count, function, count / 10, count / 10 * 90]);
        first.objects(CallRole::awaited, &[0xa0]);
        first.objects(CallRole::completed, &[0xa0, 1, 7, 8]);
        first.end(30 + gap, 0, None);
        first.call((30_030 + gap, 30_040 + gap), "MPI_Send", (WORLD, 1, 8, 1), 0, None);
        second.send((gap, 10 + gap), 0, 7, 1);
        second.receive((gap, 30_040 + gap), (0, 8), Some((0, 8, 8)));
    });
    let [tests] = all[0].tests[..] else { panic!("{:?}", all[0].tests) };
    assert!(tests.site.is_some(), "a call of the same function ended them");
    tests
}

#[test]
fn tests_take_time_from_the_work_between_them_or_are_a_wait() {
    let tests = tests_in_vain(100_000, 100);
    assert_eq!((tests.count, tests.between_work_ns, tests.waiting_ns, tests.fillable_ns), (100, 9_000, 0, 0));
    let tests = tests_in_vain(100_000, 1000);
    assert_eq!((tests.between_work_ns, tests.waiting_ns, tests.fillable_ns), (0, 100_000, 30_000));
}
