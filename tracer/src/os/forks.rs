//! Coordinates forks with threads that hold the loader's lock.
//!
//! In a forked child, glibc (2.36) does not release the lock of `dl_iterate_phdr` if another thread held it in the
//! parent. The child would wait for it forever. So a fork waits until no thread of the tracer holds the lock, and
//! threads wait for the fork.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::os::system;
use crate::os::time::clock::Stopwatch;

/// Maximum time that a fork waits for other threads to leave the loader, and that threads wait for a fork. Without this
/// limit, a signal handler that forks, or that interrupts a fork, would wait for its own thread.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);

/// Number of threads in which the tracer holds the loader's lock.
static IN_LOADER: AtomicU32 = AtomicU32::new(0);
/// Number of forks in progress.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// This process is a forked child in which the loader's lock may be held forever by a thread that does not exist here.
static LOADER_IS_LOST: AtomicBool = AtomicBool::new(false);

/// Runs `f`, which takes the loader's lock, while no thread forks. Returns `None` without running `f` in a child that
/// cannot take the lock, for example after a raw clone, before which no fork handler ran.
pub(super) fn outside<T>(f: impl FnOnce() -> T) -> Option<T> {
    // Relaxed: when it is stored, the child has one thread.
    if LOADER_IS_LOST.load(Ordering::Relaxed) {
        return None;
    }
    let mut waiting = None;
    loop {
        // SeqCst; pairs with `begins`: either the fork sees this thread, or this thread sees the fork.
        IN_LOADER.fetch_add(1, Ordering::SeqCst);
        if FORKS.load(Ordering::SeqCst) == 0
            || waiting.get_or_insert_with(Stopwatch::start).elapsed() > PATIENCE
        {
            break;
        }
        IN_LOADER.fetch_sub(1, Ordering::SeqCst);
        system::yield_now();
    }
    let result = f();
    // Release; pairs with `wait_for_loader`: this thread has left the loader.
    IN_LOADER.fetch_sub(1, Ordering::Release);
    Some(result)
}

/// A fork begins: from now on, no thread enters the loader.
pub(crate) fn begins() {
    // SeqCst; pairs with `outside`.
    FORKS.fetch_add(1, Ordering::SeqCst);
}

/// Waits for the threads that are in the loader, with a time limit.
pub(crate) fn wait_for_loader() {
    let start = Stopwatch::start();
    while IN_LOADER.load(Ordering::SeqCst) > 0 && start.elapsed() < PATIENCE {
        system::yield_now();
    }
}

/// In the parent: the fork is complete.
pub(crate) fn ended_in_parent() {
    // SeqCst; pairs with `outside`.
    FORKS.fetch_sub(1, Ordering::SeqCst);
}

/// In the child: the fork is complete.
pub(crate) fn ended_in_child() {
    // Relaxed: the child has one thread.
    FORKS.store(0, Ordering::Relaxed);
    if IN_LOADER.swap(0, Ordering::Relaxed) > 0 {
        // The wait ended at its time limit.
        lose_loader();
    }
}

/// In a child: marks the loader's lock as possibly held forever.
pub(crate) fn lose_loader() {
    // Relaxed: the child has one thread.
    LOADER_IS_LOST.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_fork_and_a_thread_in_the_loader_wait_for_one_another() {
        let (inside, is_inside) = mpsc::channel();
        let (leave, may_leave) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            outside(|| {
                inside.send(()).unwrap();
                may_leave.recv().unwrap();
            })
        });
        is_inside.recv().unwrap();
        begins();
        let fork = std::thread::spawn(wait_for_loader);
        leave.send(()).unwrap();
        fork.join().unwrap();
        assert_eq!(thread.join().unwrap(), Some(()));
        let late = std::thread::spawn(|| outside(|| ()));
        ended_in_parent();
        assert_eq!(late.join().unwrap(), Some(()));
    }
}
