//! A priority queue of threads: finds the thread with the earliest time.

/// The time of a thread that has nothing to do.
pub(crate) const NEVER: u64 = u64::MAX;

/// The largest number of threads whose times are in an array, so that no index has to be checked.
const MAX_FEW: usize = 64;
/// The largest index of that array.
const MASK: usize = 2 * MAX_FEW - 1;

/// The times of threads, as a tournament tree: each node is the earlier of its two children. If times are equal, the
/// lower thread number wins.
///
/// The nodes are times, with the thread number in the lowest bits, so that one comparison decides. The children of node
/// `n` are `2n` and `2n + 1`; node 1 is the root, and node 0 is unused. The second half of the nodes are the threads.
/// Their number is rounded up to a power of two; the excess nodes are [`NEVER`].
#[derive(Debug)]
pub(crate) struct ThreadQueue {
    few: [u64; 2 * MAX_FEW],
    /// The nodes of more than [`MAX_FEW`] threads; otherwise empty.
    many: Vec<u64>,
    /// Number of threads, rounded up.
    width: usize,
    /// Number of bits of a thread number.
    bits: u32,
}

impl Default for ThreadQueue {
    fn default() -> ThreadQueue {
        ThreadQueue { few: [NEVER; 2 * MAX_FEW], many: Vec::new(), width: 1, bits: 0 }
    }
}

impl ThreadQueue {
    /// Restarts with these times.
    pub(crate) fn start(&mut self, times: &[u64]) {
        let width = times.len().next_power_of_two();
        let bits = width.trailing_zeros();
        (self.width, self.bits) = (width, bits);
        self.many.clear();
        if width > MAX_FEW {
            self.many.resize(2 * width, NEVER);
        }
        let nodes = match width > MAX_FEW {
            true => &mut self.many[..],
            false => &mut self.few[..2 * width],
        };
        nodes[width..].fill(NEVER);
        for (node, (time, thread)) in nodes[width..].iter_mut().zip(times.iter().zip(0..)) {
            *node = packed(*time, thread, bits);
        }
        for node in (1..width).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
    }

    /// This many threads, which start at 0.
    pub(crate) fn idle(threads: usize) -> ThreadQueue {
        let mut queue = ThreadQueue::default();
        queue.start(&vec![0; threads]);
        queue
    }

    /// The earliest time, and the thread that has it.
    #[inline]
    pub(crate) fn first(&self) -> (u64, usize) {
        let first = match self.many.get(1) {
            None => self.few[1],
            Some(first) => *first,
        };
        match first {
            NEVER => (NEVER, 0),
            first => (first >> self.bits, (first & ((1 << self.bits) - 1)) as usize),
        }
    }

    /// Changes the time of a thread.
    #[inline]
    pub(crate) fn set(&mut self, thread: usize, time: u64) {
        let mut first = packed(time, thread as u64, self.bits);
        let mut node = self.width + thread;
        if !self.many.is_empty() {
            return self.set_of_many(node, first);
        }
        self.few[node & MASK] = first;
        for _ in 0..self.bits {
            first = first.min(self.few[(node ^ 1) & MASK]);
            node /= 2;
            self.few[node & MASK] = first;
        }
    }

    #[inline(never)]
    fn set_of_many(&mut self, mut node: usize, mut first: u64) {
        let nodes = &mut self.many[..];
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

/// The time when all work is done if the first free thread takes the next piece of `works`. `W`: the largest number of
/// threads. `ends`: when each thread is free. `None` if times may be too long to be packed with the number of a thread.
pub(crate) fn hand_out<const W: usize>(ends: &[u64], works: &[u64], sum: u64) -> Option<u64> {
    let bits = W.trailing_zeros();
    let latest = ends.iter().copied().max().unwrap_or(0);
    if ends.len() > W || latest.saturating_add(sum) >= NEVER >> (bits + 1) {
        return None;
    }
    let mut times = [NEVER; W];
    for (time, (end, thread)) in times.iter_mut().zip(ends.iter().zip(0..)) {
        *time = end << bits | thread;
    }
    for work in works {
        let first = earliest(&times);
        times[first as usize & (W - 1)] = first + (work << bits);
    }
    times.iter().filter(|time| **time != NEVER).map(|time| time >> bits).max()
}

/// The earliest time, as a tournament of pairs.
#[inline(always)]
fn earliest<const W: usize>(times: &[u64; W]) -> u64 {
    let mut left = *times;
    let mut width = W;
    while width > 1 {
        width /= 2;
        for pair in 0..width {
            left[pair] = left[pair].min(left[pair + width]);
        }
    }
    left[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_first_and_of_equal_ones_the_lowest() {
        for threads in (1..=9_usize).chain([63, 64, 65, 130]) {
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

    #[test]
    fn work_is_handed_out_as_by_the_queue() {
        for threads in 1..=8_usize {
            let mut queue = ThreadQueue::default();
            let ends: Vec<u64> = (0..threads as u64).map(|thread| thread * 5 % 3).collect();
            let works: Vec<u64> = (0..300_u64).map(|number| number * number % 41).collect();
            queue.start(&ends);
            let mut last = ends.iter().copied().max().unwrap_or(0);
            for work in &works {
                let (time, thread) = queue.first();
                queue.set(thread, time + work);
                last = last.max(time + work);
            }
            let sum = works.iter().sum();
            let all = [hand_out::<2>, hand_out::<4>, hand_out::<8>].map(|by| by(&ends, &works, sum));
            let expected = [2, 4, 8].map(|most| (threads <= most).then_some(last));
            assert_eq!(all, expected, "{threads}");
        }
        assert_eq!(hand_out::<2>(&[0, 1], &[u64::MAX / 8, 3], u64::MAX / 4), None);
    }
}
