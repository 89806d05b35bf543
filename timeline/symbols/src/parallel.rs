//! Threads for divisible work: as many as there are CPUs, or as many as can be created.
//!
//! Batch systems and containers limit a user's threads, even on machines with more CPUs.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Maximum number of threads; 0 means the number of CPUs.
static MOST: AtomicUsize = AtomicUsize::new(0);
/// `None` if fewer than two threads can be created.
static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();

/// Limits the number of threads of [`in_parallel`]. Must be called before its first use.
pub fn limit_threads(most: NonZero<usize>) {
    // Relaxed: an independent number.
    MOST.store(most.get(), Ordering::Relaxed);
}

/// The results of `work` for each part, in the order of the parts.
pub fn in_parallel<T, R>(parts: Vec<T>, work: impl Fn(T) -> R + Sync + Send) -> Vec<R>
where
    T: Send,
    R: Send,
{
    // Few traces have devices, and many have only one stream: a single part needs no threads.
    let pool = match parts.len() {
        0 | 1 => None,
        _ => POOL.get_or_init(new_pool).as_ref(),
    };
    match pool {
        Some(pool) => pool.install(|| parts.into_par_iter().map(work).collect()),
        None => parts.into_iter().map(work).collect(),
    }
}

/// Number of CPUs that this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Number of threads that may work at the same time: the number of CPUs, unless limited.
pub fn threads() -> usize {
    // Relaxed: see `limit_threads`.
    match MOST.load(Ordering::Relaxed) {
        0 => processors(),
        most => most,
    }
}

fn new_pool() -> Option<ThreadPool> {
    std::iter::successors(Some(threads()), |threads| Some(threads / 2))
        .take_while(|threads| *threads > 1)
        .find_map(|threads| ThreadPoolBuilder::new().num_threads(threads).build().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_parts() {
        let doubled = in_parallel((0..1000).collect(), |part| 2 * part);
        assert_eq!(doubled, (0..1000).map(|part| 2 * part).collect::<Vec<_>>());
    }
}
