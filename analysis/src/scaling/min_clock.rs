//! A priority queue of threads: finds the thread with the earliest time.

/// The time of a thread that has nothing to do.
pub(crate) const NEVER: u64 = u64::MAX;

/// The times of threads, as a tournament tree: each node is the earlier of its two children. If times are equal, the
/// lower thread number wins.
#[derive(Debug, Default)]
pub(crate) struct Earliest {
    /// Times with thread numbers. The children of node `n` are `2n` and `2n + 1`; node 1 is the root, and node 0 is
    /// unused. The second half of the nodes are the threads. Their number is rounded up to a power of two; the excess
    /// nodes are [`NEVER`].
    nodes: Vec<(u64, u32)>,
}

impl Earliest {
    /// Restarts with these times.
    pub(crate) fn start(&mut self, times: &[u64]) {
        let width = times.len().next_power_of_two();
        self.nodes.clear();
        self.nodes.resize(width, (NEVER, 0));
        self.nodes.extend(times.iter().copied().zip(0..));
        self.nodes.resize(2 * width, (NEVER, 0));
        for node in (1..width).rev() {
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            self.nodes[node] = if right.0 < left.0 { right } else { left };
        }
    }

    /// The earliest time, and the thread that has it.
    #[inline]
    pub(crate) fn first(&self) -> (u64, usize) {
        let (time, thread) = self.nodes[1];
        (time, thread as usize)
    }

    /// Changes the time of a thread.
    #[inline]
    pub(crate) fn set(&mut self, thread: usize, time: u64) {
        let mut node = self.nodes.len() / 2 + thread;
        let mut first = (time, thread as u32);
        self.nodes[node] = first;
        while node > 1 {
            let other = self.nodes[node ^ 1];
            let is_right = node % 2 == 1;
            // Avoids branches, because they would be unpredictable.
            if (other.0 < first.0) | (is_right & (other.0 == first.0)) {
                first = other;
            }
            node /= 2;
            self.nodes[node] = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_first_and_of_equal_ones_the_lowest() {
        for threads in 1..=9_usize {
            let mut earliest = Earliest::default();
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
