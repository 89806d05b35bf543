//! How long a loop takes with another `schedule` clause: its iterations are divided again, one by one.

use crate::program::{Ns, Schedule};

/// What handing out a chunk takes in LLVM's runtime; a chunk's time in a trace has it.
pub const CHUNK_COST: f64 = 450.0;

/// The chunks of a loop, in order: how many iterations each has.
pub fn chunks(schedule: Schedule, count: usize, threads: usize) -> Vec<usize> {
    let mut left = count;
    let mut chunks = Vec::new();
    let next = |number: usize, left: usize| match schedule {
        Schedule::Static => count / threads + usize::from(number < count % threads),
        Schedule::StaticChunks(size) | Schedule::Dynamic(size) => size,
        // As LLVM's runtime has it.
        Schedule::Guided => left.div_ceil(2 * threads),
    };
    while left > 0 {
        let chunk = next(chunks.len(), left).min(left);
        chunks.push(chunk);
        left -= chunk;
    }
    chunks
}

/// The iterations as a trace shows them, which says how long each piece took: in a piece, they are taken to be alike.
pub fn as_recorded(iterations: &[Ns], pieces: &[usize], cost: f64) -> Vec<f64> {
    let mut begin = 0;
    let mut each = Vec::new();
    for piece in pieces {
        let work: Ns = iterations[begin..begin + piece].iter().sum();
        let work = (work as f64 - cost).max(0.0);
        each.extend(std::iter::repeat_n(work / *piece as f64, *piece));
        begin += piece;
    }
    each
}

/// The time until the last of the threads is done, which begin at once.
pub fn loop_time(iterations: &[f64], schedule: Schedule, threads: usize) -> f64 {
    let mut done = vec![0.0; threads];
    let mut begin = 0;
    for (number, chunk) in chunks(schedule, iterations.len(), threads).into_iter().enumerate() {
        let work: f64 = iterations[begin..begin + chunk].iter().sum();
        begin += chunk;
        match schedule {
            Schedule::Static | Schedule::StaticChunks(_) => done[number % threads] += work,
            Schedule::Dynamic(_) | Schedule::Guided => {
                let first = done.iter_mut().min_by(|a, b| a.total_cmp(b));
                *first.expect("a thread") += work + CHUNK_COST;
            }
        }
    }
    done.into_iter().fold(0.0, f64::max)
}

/// The clause as OpenMP spells it.
pub fn spelled(schedule: Schedule) -> String {
    match schedule {
        Schedule::Static => "schedule(static)".to_owned(),
        Schedule::StaticChunks(size) => format!("schedule(static, {size})"),
        Schedule::Dynamic(size) => format!("schedule(dynamic, {size})"),
        Schedule::Guided => "schedule(guided)".to_owned(),
    }
}
