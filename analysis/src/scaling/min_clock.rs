//! A priority queue of threads: finds the thread with the earliest time.

/// The time of a thread that has nothing to do.
pub(crate) const NEVER: u64 = u64::MAX;

/// The times of threads, as a tournament tree: each node is the earlier of its two children. If times are equal, the
/// lower thread number wins.
#[derive(Debug, Default)]
pub(crate) struct ThreadQueue {
    /// Times, with the thread number in the lowest bits, so that one comparison decides. The children of node `n` are
    /// `2n` and `2n + 1`; node 1 is the root, and node 0 is unused. The second half of the nodes are the threads. Their
    /// number is rounded up to a power of two; the excess nodes are [`NEVER`].
    nodes: Vec<u64>,
    /// Number of bits of a thread number.
    bits: u32,
}

impl ThreadQueue {
    /// Restarts with these times.
    pub(crate) fn start(&mut self, times: &[u64]) {
        let width = times.len().next_power_of_two();
        let bits = width.trailing_zeros();
        self.bits = bits;
        self.nodes.clear();
        self.nodes.resize(width, NEVER);
        self.nodes.extend(times.iter().zip(0..).map(|(time, thread)| packed(*time, thread, bits)));
        self.nodes.resize(2 * width, NEVER);
        for node in (1..width).rev() {
            self.nodes[node] = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
        }
    }

    /// This many threads, which start at 0.
    pub(crate) fn idle(threads: usize) -> ThreadQueue {
        let width = threads.next_power_of_two();
        let mut nodes = vec![NEVER; 2 * width];
        (0..threads).for_each(|thread| nodes[width + thread] = thread as u64);
        for node in (1..width).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        ThreadQueue { nodes, bits: width.trailing_zeros() }
    }

    /// The earliest time, and the thread that has it.
    #[inline]
    pub(crate) fn first(&self) -> (u64, usize) {
        match self.nodes[1] {
            NEVER => (NEVER, 0),
            first => (first >> self.bits, (first & ((1 << self.bits) - 1)) as usize),
        }
    }

    /// Changes the time of a thread.
    #[inline]
    pub(crate) fn set(&mut self, thread: usize, time: u64) {
        let mut first = packed(time, thread as u64, self.bits);
        let nodes = &mut self.nodes[..];
        let mut node = nodes.len() / 2 + thread;
        nodes[node] = first;
        while node > 1 {
            first = first.min(nodes[node ^ 1]);
            node /= 2;
            nodes[node] = first;
        }
    }
}

/// A time with its thread. Times of more than a year are cut off if there are many threads.
#[inline]
fn packed(time: u64, thread: u64, bits: u32) -> u64 {
    match time {
        NEVER => NEVER,
        _ => time.min((NEVER - 1) >> bits) << bits | thread,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_first_and_of_equal_ones_the_lowest() {
        for threads in 1..=9_usize {
            let mut earliest = ThreadQueue::default();
            let mut times: Vec<u64> = (0..threads as u64).map(|thread| thread % 3).collect();
            earliest.start(&times);
            for turn in 0..200_u64 {
                let first = times.iter().copied().zip(0..).min();
                assert_eq!(Some(earliest.first()), first);
                let thread = (turn * 7) as usize % threads;
                let time = match turn % 5 {
                    0 => NEVER,
                    _ => turn * 31 % 17,
                };
                times[thread] = time;
                earliest.set(thread, time);
            }
        }
    }
}
